"""Short queries with bounds on steps, and absences in front with a bound, drawn by chance.

The events lie one second apart or less, and the bounds are a few seconds, so a bound decides many
cases. Every bound is one that the engine runs.
"""

from __future__ import annotations

import random
import re

from absences import FILTERS, _events
from strategies import Case

FRAMES = (
    "A {o} B {w}", "A {o} B {w} {p} C", "A {o} B {p} C {w}", "A {o} B {w} {p} C {v}",
    "A {o} B+ {w}", "A {o} B+ {w} {p} C", "A {o} B{{2,3}} {w} {p} C", "A+ {w} {p} C {v}",
    "A {o} (B {w})+ {v}", "(A {o} B {w})+ {p} C", "(A {w} {o} B)+", "A {o} (B {p} C {w})+",
    "A {o} (B & C) {w} {p} D", "A ; (B AND C) {w} {p} D", "A : (B AND C) {w}",
    "(A AND B) {w} {o} C", "(A AND B)+ {w}", "A {o} (B | C) {w} {p} D", "(A | B) {o} C {w}",
    "A {o} ((B & C) | D) {w}", "A? {o} B {w} {p} C", "A {o} B? {w} {p} C", "A {o} B* {w} {p} C",
    "A {o} (B {p} C {w})? {p} D", "A {o} (B {w})?", "A {o} (B & C)? {w} {p} D",
    "A {o} !(B {w}) {p} C", "A {o} !(B {w})", "A {o} !(B {p} C {w}) {p} D",
    "A {o} !((B AND C) {w}) {p} D", "(A {o} !(B {w}) {p} C)+", "!(B {o} C {w}) {o} A",
    "!B {w} {o} A", "!B {w} {o} A {p} C", "!B {w} {o} !C {v} {p} A", "!(B {o} C) {w} {p} A",
    "!B {w} {o} (A & C)", "!B {w} {o} (A AND C)", "!(B AND C) {w} {o} A", "!B {w} {o} C? {p} A",
)  # fmt: skip
SIZES = ("0 SECONDS", "1 SECOND", "1 SECOND", "2 SECONDS", "2 SECONDS", "3 SECONDS", "1.5 SECONDS")


def bounded(seed: int) -> Case:
    """The case of a seed."""
    chance = random.Random(seed)
    streams = chance.choice((("S",), ("S",), ("S",), ("S", "T")))
    keyed = chance.random() < 0.2
    sequence = chance.choice(FRAMES).format(
        w=f"WITHIN {chance.choice(SIZES)}",
        v=f"WITHIN {chance.choice(SIZES)}",
        o=chance.choice(";;:,"),
        p=chance.choice(";;:,"),
    )
    sequence = sequence.replace(", (A AND", "; (A AND")
    names = sorted(set(re.findall(r"\b[A-E]\b", sequence)))
    defines = []
    for name in names:
        low = name.lower()
        on = ", ".join(chance.sample(streams, chance.randint(1, len(streams))))
        pattern = f"?k :{low} ?{low}" if keyed else f"[] :{low} ?{low}"
        texts = [text for text in FILTERS.get(name, ()) if chance.random() < 0.1]
        filters = "".join(
            f" FILTER({text})"
            for text in texts
            if "PREV" not in text and all(v[1:].upper() in names for v in re.findall(r"\?\w", text))
        )
        defines.append(f"DEFINE GPM {name} ON {on} {{ {pattern}{filters} }}")
    front = sequence.startswith("!") and not sequence.startswith("!(B , C W")
    windows = ["20 SECONDS", "20 SECONDS", "4 SECONDS"]
    if not ("!" in sequence or "?" in sequence or "*" in sequence):
        windows += ["TUMBLING 6 SECONDS", "5 EVENTS", "UNBOUNDED"]
    elif not front:
        windows.append("TUMBLING 6 SECONDS")
    clauses = [f"WITHIN {chance.choice(windows)}", *["PARTITION BY ?k"] * keyed]
    clauses += [f"FROM STREAM {name} :{name}" for name in streams]
    if chance.random() < 0.1:
        clauses.append("AFTER MATCH SKIP PAST LAST EVENT")
    head = "\n".join(["PREFIX : <http://example.org/>", "SELECT *", *clauses])
    body = "\n  ".join([f"SEQ({sequence})", *defines])
    query = f"{head}\nWHERE {{\n  {body}\n}}"
    return Case(query, _events(chance, streams, "".join(names).lower()))

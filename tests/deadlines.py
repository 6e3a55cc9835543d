"""Short queries with absences that have a deadline of their own, drawn by chance.

The events lie one second apart or less, and the deadlines are a few seconds, so a deadline decides
many cases. Every absence is one that the engine runs.
"""

from __future__ import annotations

import random
import re

from absences import FILTERS, _events
from strategies import Case

FRAMES = (
    "A {o} !B {w}", "A {o} !B {w} {p} C", "A {o} !B {w} {p} C", "A {o} !B {w} {p} C {v}",
    "A {o} !B {w} {p} !C {v}", "A {o} !B {w} {p} !C {v} ; D", "A {o} !B {p} !C {w}",
    "A {o} !B {p} !C {w} {o} D", "A {o} B? {p} !C {w}", "A {o} B? {p} !C {w} ; D",
    "A {o} !(B | C) {w}", "A {o} !(B | C) {w} {p} D", "A {o} !(B ; C) {w} {p} D",
    "A {o} !(B {p} C) {w}", "A {o} !(B & C) {w} {p} D", "A {o} !(B AND C) {w} {p} D",
    "A {o} !(B{{2}}) {w} {p} D", "A {o} !(B {v}) {w} {p} D", "A {o} !(B {v}) {p} !C {w}",
    "A+ {o} !B {w}", "A+ {o} !B {w} {p} C", "(A {o} !B {w})+", "(A {o} !B {w} {p} C)+",
    "(A {o} !B {w}){{2}} {p} C", "A {o} (!B {w} {p} C)+", "A {o} (!B {w} {p} C)+ {o} D",
    "A {o} (!B {w} {p} C){{1,2}}", "(!B {w} {o} A)+", "(!B {w} {o} A)+ {p} C",
    "!B {w} {o} A {p} !C {v}", "!B {w} {o} A {p} !C {v} {o} D", "!B {o} A {p} !C {w}",
    "!B {o} A {p} !C {w} {o} D", "A {p} !C {w} {o} D {p} !B {v}", "A? {o} !B {w} {p} C",
    "A? {o} !B {w} {p} C {o} !D {v}", "((A {o} !B {w}) | (A {p} C))", "((A {o} !B {w}) | D) {p} C",
    "A {o} ((C {p} !B {w}) | D)", "(A & C) {o} !B {w} {p} D", "(A AND C) {o} !B {w} {p} D",
    "A {o} !B {w} {p} (C & D)", "A {o} !B {w} ; (C AND D)", "A {o} !B {w} : (C AND D)",
    "A {o} !B {w} {p} (C | D)", "A {o} !B {w} {p} C?", "A {o} !B {w} {p} C? {o} D",
    "A {o} !B {w} {p} C+", "A {o} !B {w} {p} !D {p} C", "A {o} !B {w} {p} !D",
    "A {o} !B {w} {p} !(C {v}) {p} D", "A {o} !B {w} {p} C {o} !B {v} {p} D",
    "A {o} (!B {w} {p} C)", "A {o} !B {p} (!D {w} {p} C)", "A {o} C? {w}",
    "A {o} C? {w} {p} D? {v}", "A {o} !(B {p} C? {w}) {o} D", "A {o} !(B {p} C? {w})",
    "A {o} C* {w}", "(A {o} C? {w})+", "A {o} (C & D)? {w}", "A {o} !B {w} {p} C? {v}",
    "A {o} C? {w} {p} !B {v}", "A {o} C{{0,2}} {w}", "A {o} C? {w} {p} !B", "A {o} (C? {w}) {p} D*",
)  # fmt: skip
SIZES = ("0 SECONDS", "1 SECOND", "1 SECOND", "2 SECONDS", "2 SECONDS", "3 SECONDS", "1.5 SECONDS")
EMITS = ("EMIT MAX", "EMIT NEXT", "EMIT LAST", "EMIT ANY", "EMIT STRICT", "LIMIT 1")


def timed(seed: int) -> Case:
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
    if "AND" in sequence:
        sequence = re.sub(r", \((\w) AND", r"; (\1 AND", sequence)
    names = sorted(set(re.findall(r"\b[A-E]\b", sequence)))
    defines = []
    for name in names:
        low = name.lower()
        on = ", ".join(chance.sample(streams, chance.randint(1, len(streams))))
        pattern = f"?k :{low} ?{low}" if keyed else f"[] :{low} ?{low}"
        texts = [text for text in FILTERS.get(name, ()) if chance.random() < 0.1]
        filters = "".join(
            f" FILTER({text})" for text in texts
            if "PREV" not in text and all(v[1:].upper() in names for v in re.findall(r"\?\w", text))
        )  # fmt: skip
        defines.append(f"DEFINE GPM {name} ON {on} {{ {pattern}{filters} }}")
    windows = ["20 SECONDS", "20 SECONDS", "5 SECONDS"]
    if not re.match(r"\(*(!B WITHIN|A\?)", sequence):
        windows.append("TUMBLING 6 SECONDS")
        # Neither a negation or optional step waits for the window, nor is a bound in a negation.
        if not re.search(r"(![A-D]|[?*])\s*$|!\(\w WITHIN|[?*}] WITHIN", sequence):
            windows += ["4 EVENTS", "UNBOUNDED"]
    clauses = [f"WITHIN {chance.choice(windows)}", *["PARTITION BY ?k"] * keyed]
    clauses += [f"FROM STREAM {name} :{name}" for name in streams]
    if chance.random() < 0.1:
        clauses.append("AFTER MATCH SKIP PAST LAST EVENT")
    end = ""
    if chance.random() < 0.2:
        emit = chance.choice(EMITS)
        if emit.startswith("EMIT"):
            clauses.append(emit)
        else:
            end = f"\n{emit}"
    head = "\n".join(["PREFIX : <http://example.org/>", "SELECT *", *clauses])
    body = "\n  ".join([f"SEQ({sequence})", *defines])
    query = f"{head}\nWHERE {{\n  {body}\n}}{end}"
    return Case(query, _events(chance, streams, "".join(names).lower()))

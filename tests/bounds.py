"""Short queries with bounds on steps, and absences in front with a bound, drawn by chance.

The bounds are a few seconds, as far apart as the events, so a bound decides many cases.
"""

from __future__ import annotations

import random

from drawn_queries import (
    SIZES,
    WINDOWS,
    definitions,
    events_of,
    from_streams,
    in_allowed_window,
    names_in,
    query_text,
    streams_of,
)
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
    "A {o} (B {p} C) {w}", "A {o} (B {p} C) {w} {o} D", "A {o} (B {p} C)+ {w}", "A {o} (B+) {w}",
    "A {o} (B+) {w} {p} C", "A {o} (B{{2}} {p} C) {w}", "A {o} ((B {p} C) {w} {o} D) {v}",
    "(A {o} B) {w} {p} C", "((A {o} B) {w})+ {p} C", "(A {o} B+) {w}", "(A {o} B? {p} C) {w}",
    "A {o} (B? {p} C) {w}", "A {o} (B {p} C?) {w} {o} D", "A {o} (B {p} C)? {w} {o} D",
    "A {o} (B {p} C)? {w}", "A {o} !(B {p} C) {p} (D {o} C) {w}", "A {o} (B {p} !C {o} D) {w}",
    "A {o} !((B {p} C) {w}) {p} D", "A {o} ((B {w}) | C)", "A {o} ((B {w}) | (C {v})) {p} D",
    "A {o} (((B {p} C) {w}) | D)", "A {o} ((B {w} {p} C) | D)", "A {o} (((B & C) {w}) | D)",
    "A ; (((B AND C) {w}) | D)", "A {o} ((B+ {w}) | C) {p} D", "A {o} !((B {w}) | (C {v})) {p} D",
    "A {o} ((B {w}) | C)?", "A {o} (((B {w}) | C) {p} D)+", "A {o} B? {w} {p} C? {v}",
    "(A & B) {o} (C {p} D) {w}", "A ; ((B AND C) {p} D) {w}", "A {o} !B {v} {p} (C {o} D) {w}",
    "A {o} (!B {v} {p} C) {w}", "A {o} (C {p} !B {v}) {w}", "A {o} (C {p} !B {v}) {w} {o} D",
)  # fmt: skip


def bounded(seed: int) -> Case:
    """The case of a seed."""
    chance = random.Random(seed)
    streams = streams_of(chance)
    keyed = chance.random() < 0.2
    sequence = chance.choice(FRAMES).format(
        w=f"WITHIN {chance.choice(SIZES)}",
        v=f"WITHIN {chance.choice(SIZES)}",
        o=chance.choice(";;:,"),
        p=chance.choice(";;:,"),
    )
    sequence = sequence.replace(", (A AND", "; (A AND")
    names = names_in(sequence)
    defines = definitions(chance, names, streams, keyed)
    clauses = [*["PARTITION BY ?k"] * keyed, *from_streams(streams)]
    if chance.random() < 0.1:
        clauses.append("AFTER MATCH SKIP PAST LAST EVENT")

    def text(window: str) -> str:
        return query_text([f"WITHIN {window}", *clauses], sequence, defines)

    query = in_allowed_window(chance, WINDOWS, text)
    return Case(query, events_of(chance, streams, "".join(names).lower()))

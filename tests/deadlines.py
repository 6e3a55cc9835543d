"""Short queries with absences that have a deadline of their own, drawn by chance.

The deadlines are a few seconds, as far apart as the events, so a deadline decides many cases.
"""

from __future__ import annotations

import random
from dataclasses import replace

from drawn_queries import EMITS, framed_case, mixed_events
from strategies import EXAMPLE, Case

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
    "A {o} !(B {p} !C {w}) {p} D", "A {o} !(B {p} !C {w})", "A {o} !(B {p} !C {w}) {v}",
    "A {o} !(B {p} !C {w}) {v} {p} D", "A {o} !(B {p} !C {w} {o} E) {p} D", "!(B {p} !C {w}) {o} A",
    "A {o} (B {p} !C {w})? {p} D", "A {o} (B {p} !C {w})?", "A {o} (B {p} !C {w})* {p} D",
    "A {o} (B {p} !C {w})? {v}", "A {o} (!C {w} {p} B)? {p} D", "A {o} (!C {w} {p} B)?",
    "(B {p} !C {w})? {o} A", "(!C {w} {p} B)? {o} A", "A {o} (!C {w} {p} B)? {v} {p} D",
    "A {o} !(B {p} !(C {o} !E {v}) {w}) {p} D", "A {o} !(B {w} {p} !C) {p} D",
)  # fmt: skip

# One list of witnesses with several ends: at once, at deadlines, and when the window closes.
ENDS = (
    "((A {o} !B {w}) | (A {o} !B {v}))", "((A {o} !B {w}) | (A {p} !C {v}))",
    "A {o} ((C {o} !B {w}) | (C {p} !B {v}))", "A {o} (C | (C {p} !B {w}))",
    "A {o} (C | (C {p} !B))", "A {o} ((C {p} !B {w}) | (C {o} !D))",
    "((A {o} !B {w}) | (A {o} !B {v})) {p} C", "((A {o} !B {w}) | (A {o} !B {v})) {p} !D",
    "((A {o} !B {w}) | (A {o} !B {v})) {p} !D WITHIN 0 SECONDS",
    "A {o} !B {w} {p} !D WITHIN 0 SECONDS", "((A {o} !B {w}) | (A {o} !B {w} {p} !D {v}))",
    "A {o} ((C {w}) | (C {o} !B {w}))", "A {o} ((C {p} D? {w}) | (C {p} E? {v}))",
    "((A {p} !B {w}) | (A+))",
    "(A | (A {o} !B {w}))+", "((A {o} C? {w}) | (A {o} !B {v}))",
    "(((A & C) {o} !B {w}) | ((A & C) {p} !D {v}))",
)  # fmt: skip

# `,` after a deadline, within a partition.
STRICT = (
    "A {o} !B {w} , C", "A {o} !B {w} , C", "A {o} !B {w} , C {p} D", "A , C? {w} , D",
    "(A {o} !B {w} , C)+",
    "((A {o} !B {w}) | A) , C", "((A {o} !B {w}) | (A {o} !B {v})) , C", "A+ , !B {w} , C",
    "A {o} !B {w} , (C | D)", "A {o} !B {w} , (C & D)", "A {o} !B {w} , !D {v} , C",
    "A {o} !B {w} , C {v}", "A {o} !B {w} , !E , C",
)  # fmt: skip


def timed(seed: int) -> Case:
    """The case of a seed."""
    return framed_case(random.Random(seed), FRAMES, EMITS)


def ending_apart(seed: int) -> Case:
    """The case of a seed in which the same events may be several matches."""
    return framed_case(random.Random(seed), ENDS, EMITS)


def strict(seed: int) -> Case:
    """The case of a seed in which deadlines lie between the events of a few partitions."""
    chance = random.Random(seed)
    case = framed_case(chance, STRICT, EMITS, keyed=True)
    names = [iri.removeprefix(EXAMPLE) for iri in case.streams]
    return replace(case, streams=mixed_events(chance, names, ("aax", "ax", "xc", "c", "d", "b")))

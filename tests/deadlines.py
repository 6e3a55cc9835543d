"""Short queries with absences that have a deadline of their own, drawn by chance.

The deadlines are a few seconds, as far apart as the events, so a deadline decides many cases.
"""

from __future__ import annotations

import random

from drawn_queries import EMITS, framed_case
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
    "A {o} !(B {p} !C {w}) {p} D", "A {o} !(B {p} !C {w})", "A {o} !(B {p} !C {w}) {v}",
    "A {o} !(B {p} !C {w}) {v} {p} D", "A {o} !(B {p} !C {w} {o} E) {p} D", "!(B {p} !C {w}) {o} A",
    "A {o} (B {p} !C {w})? {p} D", "A {o} (B {p} !C {w})?", "A {o} (B {p} !C {w})* {p} D",
    "A {o} (B {p} !C {w})? {v}", "A {o} (!C {w} {p} B)? {p} D", "A {o} (!C {w} {p} B)?",
    "(B {p} !C {w})? {o} A", "(!C {w} {p} B)? {o} A", "A {o} (!C {w} {p} B)? {v} {p} D",
    "A {o} !(B {p} !(C {o} !E {v}) {w}) {p} D", "A {o} !(B {w} {p} !C) {p} D",
)  # fmt: skip


def timed(seed: int) -> Case:
    """The case of a seed."""
    return framed_case(random.Random(seed), FRAMES, EMITS)

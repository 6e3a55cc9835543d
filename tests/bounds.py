"""Short queries with bounds on steps, and absences in front with a bound, drawn by chance.

The bounds are a few seconds, as far apart as the events, so a bound decides many cases.
"""

from __future__ import annotations

import random

from drawn_queries import framed_case
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
    return framed_case(random.Random(seed), FRAMES)

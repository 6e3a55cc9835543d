"""Short queries with an optional or negated unit that holds iterations or `AND`, drawn by chance.

The streams fit them: events of one fact each, most of them of the unit, close to one another. So
the unit occurs in some cases under one operator and not under another.
"""

from __future__ import annotations

import random
import re
from collections import Counter

import pyoxigraph as ox
from oracle import timestamp
from strategies import EXAMPLE, Case, iri

from spaseq.rdf.event import NUMBER, Event, Fact

ITERATIONS = (
    "B{2}", "B{2}", "B{2,}", "B{2,3}", "B{3}", "B+", "(B , C){2}", "(B ; C){2}", "(B : C){2}",
    "(B | C){2}", "(B & C){2}", "B{2} , C", "B{2} ; C", "B+ , C", "C : B{2}", "(B{2} , C){2}",
    "E? , B{2}", "B ; !C ; B", "(B ; C?){2}", "(E? ; B){2}", "((B | E) , C){2}",
)  # fmt: skip
ANY_ORDERS = (
    "B AND C", "B AND C", "(B AND C) ; E", "(B AND C){2}", "(B AND C) | E", "E? ; (B AND C)",
    "(B & E) AND C", "((B AND C) , E){2}",
)  # fmt: skip
FRAMES = (
    "A {o} {n}", "A {o} {n} {p} D", "A {o} {n} {p} D", "A {o} ({n} {p} D)", "(A {o} {n})+ {p} D",
    "(A {o} {n}){{2}} {p} D", "A {o} ({n} {p} D){{2}}", "(A {o} {n} {p} D){{1,2}}",
    "A {o} {n} {p} {n2} ; D", "(A | D) {o} {n} {p} D", "A {o} {n} {p} D",
)  # fmt: skip
LEADING = ("{n} {p} D", "({n} {p} D)+", "({n} {p} D){{2}}", "({n} {p} D) {o} A")
FILTERS = {
    "B": ("?b > ?a", "?b >= PREV(?b, 0)", "?b < PREV(?b, 9)", "?b != ?d", "?b > COUNT(A)"),
    "C": ("?c > ?b", "?c > ?b", "?c = ?b", "?c != ?a", "?c < ?d"),
    "D": ("?d > ?a", "?d != ?a"),
    "E": ("?e > ?b", "?e != ?c"),
}


def absence(seed: int) -> Case:
    """The case of a seed."""
    chance = random.Random(seed)
    streams = chance.choice((("S",), ("S",), ("S",), ("S", "T")))
    keyed = chance.random() < 0.2
    sequence = _sequence(chance)
    names = sorted(set(re.findall(r"\b[A-E]\b", sequence)))
    defines = []
    for name in names:
        low = name.lower()
        on = ", ".join(chance.sample(streams, chance.randint(1, len(streams))))
        pattern = f"?k :{low} ?{low}" if keyed else f"[] :{low} ?{low}"
        often = 0.4 if name == "C" and "AND" in sequence else 0.1
        texts = [text for text in FILTERS.get(name, ()) if chance.random() < often]
        filters = "".join(
            f" FILTER({text})" for text in texts
            if all(v[1:].upper() in names for v in re.findall(r"\?\w", text))
        )  # fmt: skip
        defines.append(f"DEFINE GPM {name} ON {on} {{ {pattern}{filters} }}")
    window = chance.choice(("20 SECONDS", "20 SECONDS", "5 SECONDS", "TUMBLING 6 SECONDS"))
    clauses = [f"WITHIN {window}", *["PARTITION BY ?k"] * keyed]
    clauses += [f"FROM STREAM {name} :{name}" for name in streams]
    if chance.random() < 0.1:
        clauses.append("AFTER MATCH SKIP PAST LAST EVENT")
    head = "\n".join(["PREFIX : <http://example.org/>", "SELECT *", *clauses])
    body = "\n  ".join([f"SEQ({sequence})", *defines])
    query = f"{head}\nWHERE {{\n  {body}\n}}"
    return Case(query, _events(chance, streams, "".join(names).lower()))


def _sequence(chance: random.Random) -> str:
    units = chance.choice((ITERATIONS, ITERATIONS, ANY_ORDERS))

    def absent(optional: bool = False) -> str:
        unit = chance.choice(units)
        if unit == "B{2}" and chance.random() < 0.2:
            return "B{0,2}"
        return f"({unit})?" if optional or chance.random() < 0.5 else f"!({unit})"

    first = ",,,;:" if units is ITERATIONS else ";;;:"
    operators = {"o": chance.choice(first), "p": chance.choice(",;;:")}
    if chance.random() < 0.15:
        return chance.choice(LEADING).format(n=absent(optional=True), **operators)
    return chance.choice(FRAMES).format(n=absent(), n2=absent(), **operators)


def _events(chance: random.Random, streams: tuple[str, ...], names: str) -> dict[str, list[Event]]:
    """A, some events of the unit and others, D; in one case of three, twice."""
    out: dict[str, list[Event]] = {EXAMPLE + name: [] for name in streams}
    now, ordinals = 0, Counter[tuple[str, int]]()
    inner = [name for name in names if name in "bce"] or list(names)
    letters: list[str] = []
    for _ in range(chance.choice((1, 1, 2))):
        letters += ["a", *chance.choices([*inner, *inner, "x"], k=chance.randint(2, 5)), "d"]
    if chance.random() < 0.2:
        letters.insert(chance.randint(1, len(letters) - 1), "a")
    for letter in letters:
        now += (chance.random() < 0.9) * 1_000_000
        stream = EXAMPLE + chance.choice(streams)
        more = [chance.choice(inner)] if chance.random() < 0.1 else []
        facts: list[Fact] = [
            (iri(chance.choice("mmmn")), iri(one), ox.Literal(chance.randint(0, 4)))
            for one in dict.fromkeys([letter, *more])
        ]
        time = timestamp(now, NUMBER)
        out[stream].append(Event(stream, time, ordinals[stream, now], facts))
        ordinals[stream, now] += 1
    return out

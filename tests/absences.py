"""Short queries with an optional or negated unit that holds iterations or `AND`, drawn by chance.

The streams fit them: events of one fact each, most of them of the unit, close to one another. So
the unit occurs in some cases under one operator and not under another.
"""

from __future__ import annotations

import random

from drawn_queries import definitions, events_of, from_streams, names_in, query_text, streams_of
from strategies import Case

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


def absence(seed: int) -> Case:
    """The case of a seed."""
    chance = random.Random(seed)
    streams = streams_of(chance)
    keyed = chance.random() < 0.2
    sequence = _sequence(chance)
    names = names_in(sequence)
    often = "C" if "AND" in sequence else ""
    defines = definitions(chance, names, streams, keyed, previous=True, often=often)
    window = chance.choice(("20 SECONDS", "20 SECONDS", "5 SECONDS", "TUMBLING 6 SECONDS"))
    clauses = [f"WITHIN {window}", *["PARTITION BY ?k"] * keyed, *from_streams(streams)]
    if chance.random() < 0.1:
        clauses.append("AFTER MATCH SKIP PAST LAST EVENT")
    query = query_text(clauses, sequence, defines)
    return Case(query, events_of(chance, streams, "".join(names).lower()))


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

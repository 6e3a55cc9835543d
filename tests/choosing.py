"""Short queries that choose among the matches of an instant, or skip past them, drawn by chance.

Events of several streams are simultaneous, graph patterns read several streams, and values are
equal in several spellings: so the order of results decides.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace

import pyoxigraph as ox
from drawn_queries import from_streams, query_text
from oracle import XSD, timestamp
from strategies import EXAMPLE, Case, iri, random_case

from spaseq.parser import ast, parse
from spaseq.plan.places import sequence_places
from spaseq.rdf.event import NUMBER, Event, Fact

SEQUENCES = (
    "A", "A : B", "A : B", "A ; B", "A & B", "A AND B", "A : B : C", "A+ : B", "A : B+", "A ; B{2}",
    "(A | B)+ : C", "(A & B) : C", "A : (B AND C)", "(A & B)+", "(A : B)+", "A : (B | C)",
)  # fmt: skip
WAITING = (
    "A ; !N", "A : B ; !N", "A ; B?", "A : B?", "A ; B? ; !N", "A+ ; !N", "(A & B) ; !N",
    "A ; !(N{2})", "(A | B) ; !N", "A ; (B AND C)?", "A : (B ; C)?",
)  # fmt: skip
SPELLINGS = (
    ("1", "integer"), ("1.0", "decimal"), ("2", "integer"), ("02", "integer"), ("1.5", "decimal"),
    ("1E0", "double"), ("b", "string"), ("a", "string"),
)  # fmt: skip


def choice(seed: int) -> Case:
    """The case of a seed, with LIMIT, EMIT ANY or DISTINCT."""
    return _case(random.Random(seed), chance_of_waiting=0.15, skips=0.2, chooses=True)


def skip(seed: int) -> Case:
    """The case of a seed, with AFTER MATCH SKIP PAST LAST EVENT; most of its matches wait."""
    return _case(random.Random(seed), chance_of_waiting=0.8, skips=1, chooses=False)


def skip_to(seed: int) -> Case:
    """The case of a seed, with AFTER MATCH SKIP TO: one of the others, or a general one."""
    chance = random.Random(seed)
    case = chance.choice((skip, choice, random_case))(seed)
    query = parse(case.query)
    if isinstance(query.form, ast.Ask) and query.partition:
        return case
    name = chance.choice(sorted(sequence_places(query.sequence).positive_names()))
    where = chance.choice(("NEXT", "NEXT", f"FIRST {name}", f"LAST {name}"))
    clause, past = f"AFTER MATCH SKIP TO {where}", "AFTER MATCH SKIP PAST LAST EVENT"
    text = case.query.replace(past, clause)
    if text == case.query:
        text = text.replace("WITHIN", f"{clause}\nWITHIN", 1)
    return replace(case, query=text)


def _case(chance: random.Random, chance_of_waiting: float, skips: float, chooses: bool) -> Case:
    streams = chance.choice((("S", "T"), ("T", "S"), ("S", "T", "U"), ("S",)))
    keyed = chance.random() < 0.35
    waits = chance.random() < chance_of_waiting
    sequence = chance.choice(WAITING if waits else SEQUENCES)
    names = sorted(set(re.findall(r"\b[ABCN]\b", sequence)))
    defines = [_define(chance, name, names, streams, keyed) for name in names]
    windows = ["4 SECONDS", "6 SECONDS", "TUMBLING 3 SECONDS", *["4 EVENTS"] * (not waits)]
    clauses = [f"WITHIN {chance.choice(windows)}", *["PARTITION BY ?k"] * keyed]
    clauses += from_streams(streams)
    clauses += ["AFTER MATCH SKIP PAST LAST EVENT"] * (chance.random() < skips)
    limit = form = ""
    kind = chance.choice(("LIMIT", "ANY", "DISTINCT", "NEXT", "MAX")) if chooses else ""
    limited = kind == "LIMIT" or chance.random() < 0.2
    if kind in ("ANY", "NEXT", "MAX") and not (kind != "ANY" and chance.random() < 0.7):
        clauses.append(f"EMIT {kind}")
    variables = [f"?{name.lower()}" for name in names if name != "N"]
    shown = chance.sample(variables, chance.randint(1, len(variables)))
    form = "DISTINCT " if kind == "DISTINCT" else ""
    if limited:
        limit = f" LIMIT {chance.choice((1, 1, 2, 3))}"
        if chance.random() < 0.3:
            limit += f" PER {chance.choice(shown if form else variables)}"
        if chance.random() < 0.3:
            limit += f" EVERY {chance.choice((1, 2, 3))} SECONDS"
    head = form + " ".join(shown)
    query = query_text(clauses, sequence, defines, limit.strip(), head)
    return Case(query, _events(chance, streams, "".join(names).lower()))


def _define(
    chance: random.Random, name: str, names: list[str], streams: tuple[str, ...], keyed: bool
) -> str:
    low = name.lower()
    on = ", ".join(chance.sample(streams, chance.randint(1, len(streams))))
    subject = "?k" if keyed else chance.choice(("[]", "[]", f"?z{low}"))
    pattern = f"{subject} :{low} ?{low}"
    if name != "N" and chance.random() < 0.2:
        pattern += f" OPTIONAL {{ {subject} :x ?o{low} }}"
    if name in "BN" and "A" in names and chance.random() < 0.3:
        pattern += f" FILTER(?{low} {chance.choice(('=', '!=', '>='))} ?a)"
    return f"DEFINE GPM {name} ON {on} {{ {pattern} }}"


def _events(chance: random.Random, streams: tuple[str, ...], names: str) -> dict[str, list[Event]]:
    out: dict[str, list[Event]] = {EXAMPLE + name: [] for name in streams}
    now, ordinals = 0, Counter[tuple[str, int]]()
    spellings = chance.choice((SPELLINGS[:2], SPELLINGS[:5], SPELLINGS))
    often = names.replace("n", "") * 3 + "nx"
    for _ in range(chance.randint(4, 7)):
        now += chance.choice((0, 0, 1, 1, 2)) * 1_000_000
        stream = EXAMPLE + chance.choice(streams)
        facts: dict[Fact, None] = {}
        for _ in range(chance.choice((1, 1, 2, 3))):
            text, kind = chance.choice(spellings)
            value = ox.Literal(text, datatype=ox.NamedNode(XSD + kind))
            facts[iri(chance.choice("mmn")), iri(chance.choice(often)), value] = None
        event = Event(stream, timestamp(now, NUMBER), ordinals[stream, now], list(facts))
        out[stream].append(event)
        ordinals[stream, now] += 1
    return out

"""Matches that are gathered before they are made: those that Python lists, one for one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyoxigraph as ox
import pytest

from spaseq.engine import core_groups, output
from spaseq.engine.instants import QueryRun
from spaseq.engine.native import query_run
from spaseq.errors import QueryError
from spaseq.program import Program, compile_queries
from spaseq.rdf.event import NUMBER, Event, triple_of
from spaseq.rdf.time import from_micros
from spaseq.results import Match

INTEGER = ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer")
STREAMS = ("http://example.org/s", "http://example.org/r")
EX = "http://example.org/"
GPMS = {
    "A": "DEFINE GPM A ON s, r { ?k :a ?a OPTIONAL { ?k :c ?c } }",
    "B": "DEFINE GPM B ON s { ?k :b ?b }",
    "N": "DEFINE GPM N ON r { ?k :n ?n }",
}
SEQUENCES = (
    "A ; B",
    "A : B",
    "A : B+",
    "A : (B ; A)+",
    "A ; N? ; B",
    "(A AND B)",
    "(A & B)",
    "A : (B | N)",
    "A : (B | B)",
    "A : (B{1,2})+",
    "A ; !N",
    "A ; !N WITHIN 2 SECONDS",
    "A ; B?",
)
HEADS = (
    "SELECT DISTINCT ?k",
    "SELECT DISTINCT ?k ?c",
    "SELECT *",
    "SELECT ?k (?a + 1 AS ?v) (?v * 2 AS ?w)",
    "SELECT (1 / ?a AS ?v) (COALESCE(?c, ?k) AS ?w)",
    "SELECT DISTINCT (?a > 2 AS ?v)",
    "ASK",
    "CONSTRUCT { ?k :has ?a , ?c . [] :of ?k }",
    "CONSTRUCT { ?k :says <<( ?a :c ?c )>> ; ?c ?a }",
)
GROUPED = "SELECT ?k (COUNT(B) AS ?n) (SUM(?b) AS ?s) (FIRST(?b) AS ?f) (GROUP_CONCAT(?b) AS ?g)"
LIMITS = (
    "",
    "LIMIT 1",
    "LIMIT 2 EVERY 3 SECONDS",
    "LIMIT 1 PER ?k",
    "LIMIT 1 PER ?k ?a EVERY 2 SECONDS",
)
KEYS = (
    ("?k", "?k"),
    ("?k ?a", "?k ?a"),
    ("(?a > 1 AS ?q) ?k", "?q ?k"),
    ("(COUNT(B) AS ?q)", "?q"),
    ("(?a + ?b AS ?q)", "?q"),
)
CLAUSES = (
    "",
    "EMIT NEXT",
    "EMIT LAST",
    "EMIT ANY",
    "EMIT MAX",
    "PARTITION BY ?k",
    "AFTER MATCH SKIP PAST LAST EVENT",
    "AFTER MATCH SKIP TO NEXT",
    "AFTER MATCH SKIP TO LAST A",
)
WINDOWS = ("WITHIN 4 SECONDS", "WITHIN TUMBLING 5 SECONDS", "WITHIN 6 EVENTS")


def drawn_query(draw: random.Random) -> str:
    sequence, head, limit = map(draw.choice, (SEQUENCES, HEADS, LIMITS))
    window, clause = draw.choice(WINDOWS), draw.choice(CLAUSES)
    if sequence.endswith("+") and draw.random() < 0.6:
        head = GROUPED
    defines = " ".join(text for name, text in GPMS.items() if re.search(rf"\b{name}\b", sequence))
    return (
        f"PREFIX : <{EX}> {head} {window} FROM STREAM s <{STREAMS[0]}> "
        f"FROM STREAM r <{STREAMS[1]}> {clause} WHERE {{ SEQ({sequence}) {defines} }} {limit}"
    )


def drawn_grouped_query(draw: random.Random) -> str:
    """A query like the others, with a GROUP of sliding windows."""
    query = drawn_query(draw)
    head = query.partition(" WITHIN")[0]
    key, names = draw.choice(KEYS)
    grouped = draw.choice(
        (
            f"SELECT {names} (COUNT(*) AS ?all) (SUM(?a) AS ?sum)",
            f"SELECT DISTINCT {names} ?let",
            f"SELECT {names} (SAMPLE(?a) + 1 AS ?one) (GROUP_CONCAT(?k) AS ?texts) ?let",
            "SELECT DISTINCT (COUNT(DISTINCT ?a) AS ?all)",
            "CONSTRUCT { [] :let ?let ; :was " + names.split()[0] + " }",
            "ASK",
        )
    )
    query = query.replace(head, f"PREFIX : <{EX}> {grouped}", 1)
    body = query.rpartition("}")[0]
    limit = draw.choice(("", "LIMIT 1", "LIMIT 1 PER ?let", "LIMIT 2 PER ?let EVERY 2 SECONDS"))
    having = draw.choice(("", "HAVING (COUNT(*) > 1)", "HAVING (?let >= 1) (MIN(?a) < 3)"))
    over = f"OVER {draw.choice((1, 3, 60))} SECONDS LET (MAX(?a) AS ?let)"
    return f"{body} }} GROUP BY {key} {over} {having} {limit}"


def drawn_events(draw: random.Random, count: int, numbers: Sequence[str] = "0123") -> list[Event]:
    """Events of both streams, often with several rows or at one time."""
    events, micros, ordinals = list[Event](), 0, dict.fromkeys(STREAMS, 0)
    for _ in range(count):
        step = draw.choice((0, 0, 500_000, 1_000_000))
        if step:
            micros, ordinals = micros + step, dict.fromkeys(STREAMS, 0)
        facts = {
            (
                ox.NamedNode(f"{EX}k{draw.randrange(2)}"),
                ox.NamedNode(EX + draw.choice("aabbcn")),
                ox.Literal(draw.choice(numbers), datatype=INTEGER),
            )
            for _ in range(draw.randrange(1, 4))
        }
        stream = draw.choice(STREAMS)
        time = from_micros(micros, NUMBER)
        events.append(Event(stream, time, ordinals[stream], tuple(sorted(facts, key=str))))
        ordinals[stream] += 1
    return events


def found(
    program: Program, events: Sequence[Event], saved_at: int, batched: bool
) -> tuple[list[Match], dict[str, Any]]:
    """The matches and the statistics of a run that is saved and resumed once."""
    run, matches = program.start(), list[Match]()
    for number, event in enumerate(events):
        if number == saved_at:
            run = program.resume(run.save())
        if event.stream in program.streams and batched:
            matches += run.push_batch([event])
        elif event.stream in program.streams:
            triples = map(triple_of, event.facts)
            matches += run.push(event.stream, event.time.micros / 10**6, triples)
    matches += run.finish()
    stats = dict(run.stats["queries"]["q"])
    del stats["bytes"]  # Python remembers matches that it might find again
    return matches, stats


def gathers(program: Program) -> bool:
    (query,) = program.start().queries
    assert isinstance(query, QueryRun)
    return query.native.gathering is not None or (
        query.grouping is not None and query.grouping.gathers
    )


def gathered_program(draw: random.Random, drawn: Callable[[random.Random], str]) -> Program:
    """A program whose matches are gathered, of clauses that do not exclude each other."""
    while True:
        try:
            program = compile_queries(drawn(draw), names=["q"])
        except QueryError:
            continue
        if gathers(program):
            return program


@pytest.mark.parametrize("drawn", [drawn_query, drawn_grouped_query])
@pytest.mark.parametrize("seed", range(120))
def test_matches_are_those_that_python_lists(
    seed: int, drawn: Callable[[random.Random], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(f"gathered {seed}")
    program = gathered_program(draw, drawn)
    numbers = "0123" if seed % 3 else (*"0123", "9" * 40)
    events, saved_at = drawn_events(draw, 30, numbers), draw.randrange(30)
    batched = draw.random() < 0.3
    gathered, counted = found(program, events, saved_at, batched)
    texts = [match.to_json() for match in gathered]
    for module in (query_run, output):
        monkeypatch.setattr(module, "projection", lambda *_: None)
    monkeypatch.setattr(core_groups, "listing", lambda *_: None)
    listed, expected = found(program, events, saved_at, batched)
    assert not gathers(program)
    assert gathered == listed
    assert texts == [match.to_json() for match in listed]
    assert [match.id for match in gathered] == [match.id for match in listed]
    assert counted == expected

"""The engine means what the reference semantics means: on drawn queries, streams and KBs.

`SPASEQ_EXAMPLES` is the number of examples of each property (default 100), `SPASEQ_SEED`
the first seed of the evenly drawn campaign. A failing case is printed as a suite entry.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pyoxigraph as ox
import pytest
from bounds import bounded
from choosing import skip_to
from combined import combined
from deadlines import ending_apart, strict, timed
from drawn_terms import starred
from hypothesis import HealthCheck, given, settings
from oracle import Reference, comparable, evaluate
from registered_chains import registered_chain
from strategies import EXAMPLE, Case, cases, random_case, random_chain, smaller

import spaseq
from spaseq.errors import QueryError
from spaseq.io.lines import Lines
from spaseq.io.merge import merge
from spaseq.io.read_options import ReadOptions, TimeDomain
from spaseq.io.source import Source
from spaseq.parser import parse
from spaseq.pipeline import matches
from spaseq.rdf.event import Event
from spaseq.rdf.time import canonical_literal
from spaseq.results import Match

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "100"))
SEED = int(os.environ.get("SPASEQ_SEED", "0"))
CHUNK = 100
GENERATED_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
LENIENT = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def knowledge(case: Case) -> dict[str, list[ox.Triple]]:
    return {
        graph: [ox.Triple(*fact) for fact in facts]  # type: ignore[arg-type]
        for graph, facts in case.kb.items()
    }


def pushed(case: Case, sizes: Sequence[int] = (1,)) -> list[list[Match]]:
    """What the engine answers to each batch of events, and to the end of input."""
    run = spaseq.compile(case.query, names=["q"]).start(kb=knowledge(case))
    events, answers, turn = case.merged, [], 0
    while events:
        size = sizes[turn % len(sizes)]
        answers.append(list(run.push_batch(events[:size])))
        events, turn = events[size:], turn + 1
    return [*answers, list(run.finish())]


def objection(case: Case, sizes: Sequence[int] = (1,)) -> str:
    """How the engine's results differ from the reference's; "" if they do not."""
    reference = Reference(parse(case.query), case.streams, case.kb)
    results = [match for answer in pushed(case, sizes) for match in answer]
    return reference.objection(comparable(results))


def report(case: Case, found: str) -> str:
    wanted = evaluate(case.query, case.streams, case.kb)
    return f"{found}\n{case.entry(wanted)}"


@LENIENT
@given(cases())
def test_engine_equals_reference(case: Case) -> None:
    found = objection(case)
    assert not found, report(case, found)


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, CHUNK))
def test_engine_equals_reference_from_seeds(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES)):
        case = random_case(seed)
        if objection(case):

            def fails(candidate: Case) -> bool:
                try:
                    return bool(objection(candidate))
                except QueryError:
                    return False

            small = smaller(case, fails)
            pytest.fail(f"seed {seed}: {report(small, objection(small))}")


@pytest.mark.parametrize("seed", range(SEED, SEED + max(1, EXAMPLES // 5)))
def test_batches_do_not_matter(seed: int) -> None:
    case = random_case(seed)
    chance = random.Random(seed)
    sizes = [chance.randint(1, 4) for _ in range(9)]
    found = objection(case, sizes)
    assert not found, report(case, found)


@pytest.mark.parametrize("seed", range(SEED, SEED + max(1, EXAMPLES // 5)))
def test_triple_terms_change_nothing(seed: int) -> None:
    case = random_case(seed)
    star = starred(case, seed)
    results = [
        [match for answer in pushed(each, (1,)) for match in answer] for each in (case, star)
    ]
    plain, found = map(comparable, results)
    assert found == plain, star
    reference = Reference(parse(star.query), star.streams, star.kb)
    assert not reference.objection(found), star


def read(case: Case, folder: Path, workers: int) -> list[str]:
    """The matches of the events in files, which are read in batches of an event or two."""
    run, domain = spaseq.compile(case.query, names=["q"]).start(kb=knowledge(case)), TimeDomain()
    sources = []
    for number, iri in enumerate(run.program.streams):
        path = folder / f"{number}.nq"
        with path.open("w", encoding="utf-8") as file:
            for place, event in enumerate(case.streams.get(iri, ())):
                graph = f"<{EXAMPLE}graph/{place}>"
                file.write(f"{graph} {GENERATED_AT} {canonical_literal(event.time)} .\n")
                for fact in event.facts:
                    file.write(" ".join(map(str, fact)) + f" {graph} .\n")
        options = ReadOptions(workers=workers)
        source = Source(iri, [str(path)], options, number, domain, relevance=run.relevance)
        source.open_lines = lambda path: Lines(path, block=200)
        sources.append(source)
    return [match.to_json() for match in matches(run, merge(sources))]


@pytest.mark.parametrize("seed", range(SEED, SEED + max(1, EXAMPLES // 5)))
def test_reading_ahead_does_not_matter(seed: int, tmp_path: Path) -> None:
    case = random_case(seed)
    assert read(case, tmp_path, 2) == read(case, tmp_path, 1), repr(case)


def shuffled(case: Case, seed: int) -> list[Event]:
    """The events in another order of arrival: equal timestamps, other streams first."""
    chance = random.Random(seed)
    lots = {stream: chance.random() for stream in case.streams}
    first = chance.random() < 0.5
    return sorted(
        case.merged,
        key=lambda e: (
            (e.time.micros, lots[e.stream], e.ordinal)
            if first
            else (e.time.micros, e.ordinal, lots[e.stream])
        ),
    )


@pytest.mark.parametrize("seed", range(SEED, SEED + max(1, EXAMPLES // 5)))
def test_arrival_among_streams_does_not_matter(seed: int) -> None:
    case = random_case(seed)
    run = spaseq.compile(case.query, names=["q"]).start(kb=knowledge(case))
    results = [*run.push_batch(shuffled(case, seed)), *run.finish()]
    found = Reference(parse(case.query), case.streams, case.kb).objection(comparable(results))
    assert not found, report(case, found)


@pytest.mark.parametrize("seed", range(SEED, SEED + max(1, EXAMPLES // 5)))
def test_saving_and_resuming_does_not_matter(seed: int) -> None:
    case = random_case(seed)
    program = spaseq.compile(case.query, names=["q"])
    run = program.start(kb=knowledge(case))
    results: list[Match] = []
    for event in case.merged:
        results += run.push_batch([event])
        run = program.resume(run.save(), kb=knowledge(case))
    results += run.finish()
    found = Reference(parse(case.query), case.streams, case.kb).objection(comparable(results))
    assert not found, report(case, found)


def test_one_stream_answers_at_the_last_event() -> None:
    """With one stream and `EMIT ALL` a match comes out as its last event is pushed, not later."""
    for seed in range(SEED, SEED + EXAMPLES):
        case = random_case(seed)
        query = parse(case.query)
        ordinary = not (query.emit or query.after_match or query.limit)
        if len(case.streams) > 1 or not ordinary or "ASK" in case.query or "DISTINCT" in case.query:
            continue
        wanted = evaluate(case.query, case.streams, case.kb)
        for event, answer in zip(case.merged, pushed(case), strict=False):
            due = [m for m in wanted if m.moment == (event.instant[0], 0, event.instant[1])]
            now = [m for m in answer if m.events[-1].time.micros == m.end.micros]
            late = Counter(comparable(due)) - Counter(comparable(now))
            assert not late, report(case, f"not yet at {event.instant}: {late}")


def test_a_query_reads_what_another_registers() -> None:
    for seed in range(SEED, SEED + EXAMPLES):
        first, case = random_chain(seed)
        run = spaseq.compile([first, case.query], names=["q1", "q2"]).start(kb=knowledge(case))
        matches = [*run.push_batch(case.merged), *run.finish()]
        made = [match for match in matches if match.query == "q1"]
        read = [match for match in matches if match.query == "q2"]
        wrong = Reference(parse(first), case.streams, case.kb, "q1").objection(comparable(made))
        assert not wrong, f"seed {seed}: {wrong}\n{first}\n{case}"
        streams = {**case.streams, EXAMPLE + "D": registered(made, EXAMPLE + "D")}
        wrong = Reference(parse(case.query), streams, case.kb, "q2").objection(comparable(read))
        assert not wrong, f"seed {seed}: {wrong}\n{first}\n{case}"


@pytest.mark.parametrize("first", range(SEED, SEED + max(1, EXAMPLES // 5), CHUNK))
def test_chains_of_queries_equal_the_reference(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEED + max(1, EXAMPLES // 5))):
        queries, case = registered_chain(seed)
        program = spaseq.compile(list(queries))
        run = program.start(kb=knowledge(case))
        matches = [*run.push_batch(case.merged), *run.finish()]
        streams = {iri: case.streams.get(iri, ()) for iri in program.streams}
        for query, text in zip(program.queries, queries, strict=True):
            name, written = query.plan.name, query.plan.registers_stream
            made = [match for match in matches if match.query == name]
            if any(len(events) > 24 for events in streams.values()):
                break  # too many for the reference
            wrong = Reference(parse(text), streams, case.kb, name).objection(comparable(made))
            assert not wrong, f"seed {seed}, {name}: {wrong}\n{queries}\n{case}"
            if written is not None:
                streams[written] = registered(made, written)


def registered(matches: Sequence[Match], stream: str) -> list[Event]:
    """A CONSTRUCT's results, in the order in which they came, as the events they are."""
    events: list[Event] = []
    for match in matches:
        assert match.graph is not None
        ordinal = sum(event.time == match.end for event in events)
        events.append(Event(stream, match.end, ordinal, match.graph))
    return events


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, CHUNK))
def test_corners_equal_the_reference(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES)):
        case = random_case(seed, corners=True)
        found = objection(case)
        assert not found, report(case, found)


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, CHUNK))
def test_bounds_equal_the_reference(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES)):
        case = bounded(seed)
        found = objection(case)
        assert not found, f"seed {seed}: {report(case, found)}"


@pytest.mark.parametrize("seed", range(SEED, SEED + max(1, EXAMPLES // 5)))
def test_bounds_survive_saving_and_resuming(seed: int) -> None:
    assert not resumed(bounded(seed)), f"seed {seed}"


def resumed(case: Case) -> str:
    """The objection to the results if the run is saved and resumed after each event."""
    program = spaseq.compile(case.query, names=["q"])
    kb = knowledge(case)
    run = program.start(kb=kb)
    results: list[Match] = []
    for event in case.merged:
        results += run.push_batch([event])
        run = program.resume(run.save(), kb)
    results += run.finish()
    found = Reference(parse(case.query), case.streams, case.kb).objection(comparable(results))
    return report(case, found) if found else ""


@pytest.mark.parametrize("draw", [timed, strict, ending_apart])
@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, CHUNK))
def test_deadlines_equal_the_reference(first: int, draw: Callable[[int], Case]) -> None:
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES)):
        case = draw(seed)
        found = objection(case)
        assert not found, f"seed {seed}: {report(case, found)}"


@pytest.mark.parametrize("draw", [timed, strict, ending_apart])
@pytest.mark.parametrize("seed", range(SEED, SEED + max(1, EXAMPLES // 5)))
def test_deadlines_survive_saving_and_resuming(seed: int, draw: Callable[[int], Case]) -> None:
    assert not resumed(draw(seed)), f"seed {seed}"


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, CHUNK))
def test_skips_to_a_start_equal_the_reference(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES)):
        case = skip_to(seed)
        found = objection(case)
        assert not found, f"seed {seed}: {report(case, found)}"


@pytest.mark.parametrize("first", range(SEED, SEED + max(1, EXAMPLES // 4), CHUNK))
def test_clauses_together_equal_the_reference(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES // 4)):
        case = combined(seed)
        if case is not None:
            found = (resumed(case) if seed % 4 == 0 else "") or objection(case)
            assert not found, f"seed {seed}: {report(case, found)}"


@pytest.mark.parametrize("seed", range(SEED, SEED + max(1, EXAMPLES // 5)))
def test_skips_to_a_start_survive_saving_and_resuming(seed: int) -> None:
    assert not resumed(skip_to(seed)), f"seed {seed}"

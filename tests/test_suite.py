"""The hand-made suite on every implementation of the language.

Each case of `tests/suite` runs on every adapter: the reference semantics, and the engine with every
way of feeding events. An adapter converts a case into its `Result`s; a case can `skip` an adapter,
with a reason.
"""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from operator import methodcaller
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from cases import (
    EXAMPLE,
    XSD,
    Arrival,
    Case,
    Result,
    Witness,
    differences,
    is_date,
    load,
    micros_of,
)
from driven_server import DrivenServer
from driven_session import DrivenSession, Step
from entailed import closed_kb, entailed
from json_matches import json_graph, json_term
from oracle import evaluate

import spaseq
from spaseq.cli import main
from spaseq.errors import NOWHERE
from spaseq.io.lines import Lines
from spaseq.io.merge import merge
from spaseq.io.source import Source
from spaseq.parser import format_query, parse
from spaseq.pipeline import matches
from spaseq.rdf.event import Event, Fact, n_triples
from spaseq.results import Match

CASES = load()
RUNNABLE = [case for case in CASES if case.error is None]
SEEDS = 2
GENERATED_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"


# ------------------------------------------------------------------ the reference


def oracle(case: Case, tmp_path: Path) -> list[Result]:
    single = len(case.queries) == 1
    queries = case.queries[0] if single else list(case.queries)
    results = []
    for match in evaluate(queries, *_materialised(case), "q1" if single else "q"):
        witnesses = [Witness(*chosen[:4]) for chosen in match.witnesses]
        group = None if match.results is None else (match.start, match.results)
        results.append(_result(case, match.query, witnesses, match.end, match.solution, group))
    return results


def _materialised(case: Case) -> tuple[Mapping[str, list[Event]], Mapping[str, Iterable[Fact]]]:
    """The events and the KB of a case, with what follows from them where it asks for that."""
    if case.entail is None:
        return case.streams, case.kb
    assert len(case.queries) == 1, "queries that see other graphs have other schemas"
    seen = {kb.iri.value for kb in parse(case.queries[0]).kbs} or case.kb.keys()
    kb = closed_kb({iri: facts for iri, facts in case.kb.items() if iri in seen}, case.entail)
    streams = {
        iri: [replace(e, facts=tuple(entailed(e.facts, kb, case.entail))) for e in events]
        for iri, events in case.streams.items()
    }
    return streams, {iri: tuple(facts) for iri, facts in kb.items()}


def _result(
    case: Case,
    query: str,
    witnesses: Sequence[Witness],
    end: int,
    solution: Any,
    group: tuple[int, int] | None = None,
) -> Result:
    number = case.names.index(query) if query in case.names else int(query.removeprefix("q")) - 1
    if solution is True:
        return Result(number, None, end, boolean=True)
    if isinstance(solution, tuple):
        return Result(number, tuple(witnesses), end, graph=frozenset(solution), group=group)
    return Result(number, tuple(witnesses), end, dict(solution), group=group)


# ------------------------------------------------------------------ the engine


def engine(case: Case, tmp_path: Path) -> list[Result]:
    """All events in one batch."""
    run = _program(case).start(kb=_knowledge(case), entail=case.entail)
    events = [case.streams[a.stream][_position(case, a)] for a in case.merged]
    return _results(case, [*run.push_batch(events), *run.finish()])


def event_by_event(case: Case, tmp_path: Path) -> list[Result]:
    """Events as N-Triples, one at a time; what needs no more events comes out at once."""
    run = _program(case).start(kb=_knowledge(case), entail=case.entail)
    seen: list[Match] = []
    for arrival in case.merged:
        found = list(run.push(arrival.stream, arrival.python_time, _n_triples(arrival.facts)))
        seen += found
        if _immediate(case):
            _check_moment(found, arrival)
    last = list(run.finish())
    if _immediate(case):
        assert not [match for match in last if _ends_with_an_event(match)]
    return _results(case, seen + last)


def _immediate(case: Case) -> bool:
    """Whether every match is due when its last event is processed (section 5).

    In a window of no length a match that waited cannot be told by its end.
    """
    words = ("EMIT", "LIMIT", "AFTER MATCH", "ASK", "DISTINCT", "EVENTS", "WITHIN 0 ")
    return case.single_stream and not any(word in case.queries[0] for word in words)


def _ends_with_an_event(match: Match) -> bool:
    return match.end.micros == match.events[-1].time.micros


def _check_moment(found: Iterable[Match], arrival: Arrival) -> None:
    for match in found:
        if _ends_with_an_event(match):
            last = match.events[-1]
            assert (last.time.micros, last.ordinal) == (arrival.micros, arrival.ordinal)
        else:
            assert match.end.micros <= arrival.micros


def interleavings(case: Case, tmp_path: Path) -> list[Result]:
    """Simultaneous events of different streams in several orders: the results are the same."""
    program = _program(case)
    orders = []
    for seed in range(SEEDS):
        run = program.start(kb=_knowledge(case), entail=case.entail)
        seen: list[Match] = []
        for arrival in _shuffled(case.merged, random.Random(seed)):
            facts = [ox.Triple(*fact) for fact in arrival.facts]  # type: ignore[arg-type]
            seen += run.push(arrival.stream, arrival.python_time, facts)
        orders.append(_results(case, [*seen, *run.finish()]))
    for other in orders[1:]:
        assert not differences(orders[0], other), "the order of arrival shows in the results"
    return orders[0]


def _shuffled(arrivals: Sequence[Arrival], chance: random.Random) -> Iterator[Arrival]:
    """The events with the streams of each timestamp interleaved at random."""
    times = sorted({arrival.micros for arrival in arrivals})
    for micros in times:
        queues: dict[str, list[Arrival]] = {}
        for arrival in arrivals:
            if arrival.micros == micros:
                queues.setdefault(arrival.stream, []).append(arrival)
        while queues:
            stream = chance.choice(sorted(queues))
            yield queues[stream].pop(0)
            queues = {name: queue for name, queue in queues.items() if queue}


def save_and_resume(case: Case, tmp_path: Path) -> list[Result]:
    """The state put down and taken up by a copy of the program after each event."""
    program = pickle.loads(pickle.dumps(_program(case)))
    run = program.start(kb=_knowledge(case), entail=case.entail)
    seen: list[Match] = []
    for arrival in case.merged:
        run = program.resume(run.save(), kb=_knowledge(case))
        seen += run.push(arrival.stream, arrival.python_time, _n_triples(arrival.facts))
    run = program.resume(run.save(), kb=_knowledge(case))
    return _results(case, [*seen, *run.finish()])


def _program(case: Case) -> spaseq.Program:
    return _compiled(case.queries)


@cache
def _compiled(queries: tuple[str, ...]) -> spaseq.Program:
    """A program does not change when it runs, so all adapters can share one."""
    names = [f"q{number}" for number in range(1, len(queries) + 1)]
    return spaseq.compile(list(queries), names=names)


def _knowledge(case: Case) -> dict[str, list[ox.Triple]]:
    return {
        iri: [ox.Triple(*fact) for fact in facts]  # type: ignore[arg-type]
        for iri, facts in case.kb.items()
    }


def _position(case: Case, arrival: Arrival) -> int:
    ordered = [a for a in case.arrivals if a.stream == arrival.stream]
    return ordered.index(arrival)


def _n_triples(facts: Iterable[Fact]) -> bytes:
    return "".join(f"{s} {p} {n_triples(o)} .\n" for s, p, o in facts).encode()


def _results(case: Case, matches: Iterable[Match]) -> list[Result]:
    results = []
    for match in matches:
        assert match.to_json() == json.dumps(match.to_dict(), ensure_ascii=False)
        witnesses = [
            Witness(event.gpm, event.stream, event.time.micros, event.ordinal)
            for event in match.events
        ]
        group = None if match.results is None else (match.start.micros, match.results)
        if match.boolean is None and group is None:
            assert match.start.micros == witnesses[0].micros
        solution: Any = match.boolean or match.graph
        if match.boolean is None and match.graph is None:
            solution = match.bindings
        results.append(_result(case, match.query, witnesses, match.end.micros, solution, group))
    return results


def reading_ahead(case: Case, tmp_path: Path) -> list[Result]:
    """Files that threads read ahead, in batches of an event or two."""
    run = _program(case).start(kb=_knowledge(case), entail=case.entail)
    sources = []
    for number, iri in enumerate(run.program.streams):
        path = tmp_path / f"s{number}.nq"
        path.write_text("".join(_n_quads(case, iri)), encoding="utf-8")
        source = Source(iri, [str(path)], number=number, relevance=run.relevance)
        source.open_lines = lambda path: Lines(path, block=200)
        sources.append(source)
    return _results(case, matches(run, merge(sources)))


# ------------------------------------------------------------------ the command line


def command_line(case: Case, tmp_path: Path) -> list[Result]:
    """Files in, JSON lines out."""
    arguments = ["run"]
    for number, query in enumerate(case.queries, 1):
        path = tmp_path / f"q{number}.rq"
        path.write_text(query, encoding="utf-8")
        arguments.append(str(path))
    for number, iri in enumerate(_program(case).streams):
        path = tmp_path / f"s{number}.nq"
        path.write_text("".join(_n_quads(case, iri)), encoding="utf-8")
        arguments += ["--stream", f"{iri}={path}"]
    for number, (iri, facts) in enumerate(case.kb.items()):
        path = tmp_path / f"kb{number}.nt"
        path.write_bytes(_n_triples(facts))
        arguments += ["--kb", f"{iri}={path}"]
    if case.entail is not None:
        arguments += ["--entail", case.entail]
    output = tmp_path / "matches.jsonl"
    assert main([*arguments, "--output", str(output)]) == 0
    lines = output.read_text(encoding="utf-8").splitlines()
    return [_from_json(case, json.loads(line, parse_float=Decimal)) for line in lines]


def _n_quads(case: Case, stream: str) -> Iterator[str]:
    """The stream as a file: a timestamp triple in front of each event's graph."""
    for arrival in case.arrivals:
        if arrival.stream == stream:
            yield from _event(case, arrival)


def _event(case: Case, arrival: Arrival) -> Iterator[str]:
    graph = f"<{EXAMPLE}graph/{case.arrivals.index(arrival)}>"
    kind = "dateTime" if is_date(arrival.text) else "decimal"
    kind = "date" if is_date(arrival.text) and len(arrival.text) == 10 else kind
    if kind == "decimal" and "." not in arrival.text:
        kind = "integer"
    yield f'{graph} {GENERATED_AT} "{arrival.text}"^^<{XSD}{kind}> .\n'
    for subject, predicate, object_ in arrival.facts:
        yield f"{subject} {predicate} {n_triples(object_)} {graph} .\n"


def _from_json(case: Case, line: dict[str, Any]) -> Result:
    end = micros_of(str(line["end"]))
    if "boolean" in line:
        return _result(case, line["query"], [], end, line["boolean"])
    witnesses = [
        Witness(e["gpm"], e["stream"], micros_of(str(e["time"])), e["ordinal"])
        for e in line["events"]
    ]
    solution: Any = {name: json_term(term) for name, term in line.get("bindings", {}).items()}
    if "graph" in line:
        triples = json_graph(line["graph"])
        solution = tuple((t.subject, t.predicate, t.object) for t in triples)
    group = (micros_of(str(line["start"])), line["results"]) if "results" in line else None
    return _result(case, line["query"], witnesses, end, solution, group)


# ------------------------------------------------------------------ live and served


def live(case: Case, tmp_path: Path) -> list[Result]:
    """Growing documents, whose events are complete as soon as their stream is quiet."""
    program = _program(case)
    session = DrivenSession(program, tmp_path, kb=_knowledge(case), entail=case.entail)
    numbers = {iri: number for number, iri in enumerate(session.iris)}
    steps: list[Step] = []
    for arrival in case.merged:
        if arrival.stream in numbers:
            number, text = numbers[arrival.stream], "".join(_event(case, arrival)).encode()
            steps += [methodcaller("arrive", number, text), methodcaller("quiet", number)]
    session.go([*steps, *(methodcaller("end", number) for number in numbers.values())])
    return [_from_json(case, line) for line in session.matches]


def served(case: Case, tmp_path: Path) -> list[Result]:
    """A server whose clients push each event, and at last that there will be no others."""
    server = DrivenServer(tmp_path)
    try:
        for iri, facts in case.kb.items():
            server.put_kb(iri, _n_triples(facts))
        for name, query in _writers_first(case):
            server.put_query(name, query, case.entail)
        known = server.engine.machine.streams
        for arrival in case.merged:
            if arrival.stream in known:
                taken = server.push(arrival.stream, "".join(_event(case, arrival)).encode())
                assert (taken.accepted, taken.late) == (1, [])
        dates = bool(case.arrivals) and is_date(case.arrivals[0].text)
        for iri in list(known):
            server.watermark(iri, "9999-12-31T00:00:00Z" if dates else 10**12)
        found = [line for name in server.engine.board.channels for line in server.lines(name)]
        return [_from_json(case, line) for line in found]
    finally:
        server.close()


def _writers_first(case: Case) -> Iterator[tuple[str, str]]:
    """The queries with their names, each after those whose streams it reads."""
    texts = {
        f"q{number}" if name.startswith(EXAMPLE) else name: query
        for number, (name, query) in enumerate(zip(case.names, case.queries, strict=True), 1)
    }
    for query in _program(case).queries:
        yield query.plan.name, texts[query.plan.name]


ADAPTERS: dict[str, Callable[[Case, Path], list[Result]]] = {
    "oracle": oracle,
    "engine": engine,
    "event-by-event": event_by_event,
    "interleavings": interleavings,
    "save-resume": save_and_resume,
    "command-line": command_line,
    "reading-ahead": reading_ahead,
    "live": live,
    "served": served,
}


# ------------------------------------------------------------------ the tests


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("case", RUNNABLE, ids=str)
def test_matches(case: Case, adapter: str, tmp_path: Path) -> None:
    if adapter in case.skip:
        pytest.skip(case.skip[adapter])
    seen = ADAPTERS[adapter](case, tmp_path)
    found = [differences(wanted, seen) for wanted in case.alternatives]
    assert not all(found), f"{case}\n{found[0]}"


@pytest.mark.parametrize("case", RUNNABLE, ids=str)
def test_warnings(case: Case) -> None:
    """What a case says is warned of, and nothing else, with places and hints."""
    findings = _program(case).warnings
    messages = [finding.message for finding in findings]
    assert len(messages) == len(case.warnings), messages
    for part in case.warnings:
        assert any(part in message for message in messages), (part, messages)
    assert all(finding.hint and finding.span != NOWHERE for finding in findings)


@pytest.mark.parametrize("case", [case for case in CASES if case.error is not None], ids=str)
def test_errors(case: Case) -> None:
    with pytest.raises(spaseq.QueryError) as caught:
        _program(case)
    error = caught.value
    assert case.error is not None
    assert case.error in error.diagnostics[0].message
    if case.line is not None:
        assert error.line == case.line
    if case.column is not None:
        assert error.column == case.column
    assert all(finding.hint and finding.span != NOWHERE for finding in error.diagnostics)


@pytest.mark.parametrize("case", RUNNABLE, ids=str)
def test_formatting_keeps_the_query(case: Case) -> None:
    for text in case.queries:
        query = parse(text)
        assert parse(format_query(query)) == query


def test_every_adapter_named_by_a_skip_exists() -> None:
    named = {adapter for case in CASES for adapter in case.skip}
    assert named <= set(ADAPTERS)


def test_events_of_a_case_stand_in_order() -> None:
    """Inside a stream the lines of a case go forwards in time, as a stream does."""
    for case in CASES:
        for events in case.streams.values():
            instants = [event.instant for event in events]
            assert instants == sorted(instants), str(case)
            assert all(isinstance(event, Event) for event in events)

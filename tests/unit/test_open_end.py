"""Several streams with an open end: what can a stream that has ended still deliver?

An event with ordinal 0 is processed once earlier timestamps are closed. One with a greater ordinal,
and results that need all matches of an instant, wait until every stream is past that instant. A
stream that has ended is past its last instant, and no other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from deadlines import timed
from oracle import OracleMatch, Reference, comparable, difference
from strategies import EXAMPLE, Case, random_case

import spaseq
from spaseq.io.merge import merge
from spaseq.io.source import Source
from spaseq.parser import parse
from spaseq.pipeline import matches, merged
from spaseq.rdf.event import Event, n_triples
from spaseq.results import Match
from spaseq.runs import Run

CASES = 40
GENERATED_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
S, T = EXAMPLE + "S", EXAMPLE + "T"


def cases() -> Iterator[tuple[int, Case]]:
    """Drawn cases of several streams, some of which end early."""
    seed = found = 0
    while found < CASES:
        seed += 1
        case = (timed if seed % 4 else random_case)(seed)
        if len(case.streams) < 2 or case.kb or any(w in case.query for w in (" LIMIT ", " ANY")):
            continue
        chance = random.Random(seed)
        streams = {
            iri: events[: len(events) - chance.choice((0, 0, 1, 2))]
            for iri, events in case.streams.items()
        }
        found += 1
        yield seed, replace(case, streams=streams)


def certain(case: Case, match: OracleMatch) -> bool:
    """Whether a result comes out although the streams may go on."""
    lasts = [
        max((e.instant for e in some), default=(-(2**63), -1)) for some in case.streams.values()
    ]
    micros, phase, ordinal = match.moment
    if phase == 0:
        return all(last >= (micros, ordinal) for last in lasts)
    return all(time > micros or (time == micros and phase < 0) for time, _ in lasts)


def wanted(case: Case) -> tuple[list[object], list[object]]:
    """The results with an open end, and all results."""
    output = Reference(parse(case.query), case.streams, case.kb).output
    return comparable([m for m in output if certain(case, m)]), comparable(output)


def check(case: Case, seed: int, found: list[Match], expected: list[object]) -> None:
    wrong = difference(expected, comparable(found))
    assert not wrong, f"seed {seed}: {wrong}\n{case.entry()}"


def test_python_and_what_its_saved_run_goes_on_with() -> None:
    for seed, case in cases():
        open_end, everything = wanted(case)
        program = spaseq.compile(case.query, names=["q"])
        result = spaseq.run(program, case.streams, at_end="open")
        found = list(result)
        check(case, seed, found, open_end)
        run = program.resume(result.run.save())
        check(case, seed, [*found, *run.finish()], everything)


def test_a_resumed_run_takes_the_rest_of_its_streams() -> None:
    for seed, case in cases():
        chance = random.Random(seed)
        everything = wanted(case)[1]
        program = spaseq.compile(case.query, names=["q"])
        cut = {iri: chance.randint(0, len(events)) for iri, events in case.streams.items()}
        first = {iri: events[: cut[iri]] for iri, events in case.streams.items()}
        result = spaseq.run(program, first, at_end="open")
        found = list(result)
        run = program.resume(result.run.save())
        rest = [e for e in case.merged if e not in case.streams[e.stream][: cut[e.stream]]]
        waiting = {event.stream for event in run.evaluation.ahead}
        if any(event.stream in waiting for event in rest):
            # What waits is older than the rest of its stream, and the rest closes its time.
            rest = [e for e in rest if e.stream not in waiting] + [
                e for e in rest if e.stream in waiting
            ]
            if rest != sorted(rest, key=lambda e: (e.instant, e.stream)):
                continue
        for event in rest:
            found += run.push_batch([event])
            run = program.resume(run.save())
        check(case, seed, [*found, *run.finish()], everything)


def test_pushed_events_and_promises() -> None:
    """Events in order of time, as far as all streams have come; then what the others promise."""
    for seed, case in cases():
        open_end = wanted(case)[0]
        until = min(
            max((e.time.micros for e in some), default=-(2**63)) for some in case.streams.values()
        )
        run = spaseq.compile(case.query, names=["q"]).start()
        found: list[Match] = []
        chance, now = random.Random(seed), [e for e in case.merged if e.time.micros <= until]
        for event in _interleaved(now, chance):
            found += run.push_batch([event])
        reached = {
            iri: min(later)
            for iri, some in case.streams.items()
            if (later := [e.time.micros for e in some if e.time.micros > until])
        }
        if now and not reached.keys() >= case.streams.keys():
            found += run.pass_streams(reached)
        found += run.finish(close=False)
        check(case, seed, found, open_end)


def _interleaved(events: list[Event], chance: random.Random) -> Iterator[Event]:
    """The events in an order in which they may arrive: any order of streams at a timestamp."""
    queues: dict[tuple[int, str], list[Event]] = {}
    for event in events:
        queues.setdefault((event.time.micros, event.stream), []).append(event)
    for micros in sorted({event.time.micros for event in events}):
        own = [queue for (time, _), queue in queues.items() if time == micros]
        while own:
            queue = chance.choice(own)
            yield queue.pop(0)
            own = [queue for queue in own if queue]


def test_files(tmp_path: Path) -> None:
    for seed, case in cases():
        open_end, everything = wanted(case)
        for keeps in (False, True):
            program = spaseq.compile(case.query, names=["q"])
            run = program.start()
            sources = _files(case, run, tmp_path)
            streams = list(run.program.streams)
            events = merged(run, streams, sources, "open", keeps)
            found = list(matches(run, events, close=False))
            check(case, seed, found, open_end)
            if keeps:
                run = program.resume(run.save())
                check(case, seed, [*found, *run.finish()], everything)
        run = spaseq.compile(case.query, names=["q"]).start()
        check(case, seed, list(matches(run, merge(_files(case, run, tmp_path)))), everything)


def _files(case: Case, run: Run, folder: Path) -> list[Source]:
    """A source for each stream of a run: N-Quads with an event in each graph."""
    sources = []
    for number, iri in enumerate(run.program.streams):
        lines = []
        for place, event in enumerate(case.streams.get(iri, ())):
            graph = f"<{EXAMPLE}{number}/{place}>"
            lines.append(f"{graph} {GENERATED_AT} {event.time.term} .")
            lines += [f"{s} {p} {n_triples(o)} {graph} ." for s, p, o in event.facts]
        path = folder / f"{number}.nq"
        path.write_text("\n".join([*lines, ""]))
        sources.append(Source(iri, [str(path)], number=number, relevance=run.relevance))
    return sources


HEAD = "PREFIX : <http://example.org/> SELECT ?a FROM STREAM S :S FROM STREAM T :T WITHIN 9 SECONDS"
ONE = HEAD + " { SEQ(A) DEFINE GPM A ON S { [] :a ?a } }"
A = b'<http://example.org/e> <http://example.org/a> "1" .'
Item = tuple[float, bytes]


@pytest.mark.parametrize(
    ("s", "t", "count"),
    [
        ([8, 8, 8], [4, 9], 3),  # T has passed 8, and S itself has no second event at (8, 2)
        ([8, 8, 8], [4, 8], 1),  # T may still have its second event at 8
        ([8, 8, 8], [8, 8], 2),
        ([8, 8, 8], [4], 0),
        ([15, 15], [15], 1),
        ([15, 15], [15, 15], 2),
        ([1, 15, 16], [15, 15], 2),
    ],
)
def test_the_last_instants(s: list[float], t: list[float], count: int) -> None:
    streams = {S: [(time, A) for time in s], T: [(time, A) for time in t]}
    result = spaseq.run(ONE, streams, at_end="open")
    assert len(list(result)) == count
    assert len(result.run.program.resume(result.run.save()).finish()) == len(s) - count


def test_an_iterator_is_not_read_to_its_end() -> None:
    endless = ((time, A) for time in range(10**9))
    result = spaseq.run(ONE, {S: endless, T: [(3, A)]}, at_end="open")
    assert len(list(result)) == 4
    assert next(endless)[0] == 5
    run = result.run.program.resume(result.run.save())
    assert [match.end.micros for match in run.push("T", 9, A)] == [4_000_000]


def test_a_second_event_waits_for_the_other_streams() -> None:
    run = spaseq.compile(ONE).start()
    assert len(run.push("S", 5, A)) == 1
    assert run.push("S", 5, A) == []
    assert run.push("T", 5, A) == []
    assert len(run.push("T", 5, A)) == 1
    assert run.push("S", 5, A) == []
    assert len(run.pass_streams({T: 6_000_000})) == 1
    assert len(run.push("S", 5, A)) == 1
    with pytest.raises(spaseq.EventError, match="is late"):
        run.push("T", 5, A)
    run = run.program.resume(run.save())
    with pytest.raises(spaseq.EventError, match="is late"):
        run.push("T", 5, A)
    assert len(run.push("S", 5, A)) == 1
    assert run.push("T", 6, A) == []

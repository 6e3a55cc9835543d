"""The loop over readers, run and sink; and the whole package in one call."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyoxigraph as ox
import pytest

from spaseq import pipeline
from spaseq.errors import EventError, InputError, SpaseqError
from spaseq.execute import run
from spaseq.io.read_options import ReadOptions
from spaseq.program import compile_queries
from spaseq.rdf.event import NUMBER, Event
from spaseq.rdf.time import from_micros
from spaseq.results import Match

QUERY = """PREFIX : <http://example.org/>
SELECT ?x ?y WITHIN 10 SECONDS FROM STREAM s :s FROM STREAM t :t WHERE {
  SEQ(A; B)
  DEFINE GPM A ON s { [] :a ?x }
  DEFINE GPM B ON t { [] :b ?y }
}"""
S, T = "http://example.org/s", "http://example.org/t"


def event(stream: str, second: int, ordinal: int = 0, prop: str = "a") -> Event:
    fact = (ox.BlankNode(), ox.NamedNode(f"http://example.org/{prop}"), ox.Literal(second))
    return Event(stream, from_micros(second * 10**6, NUMBER), ordinal, (fact,))


class Recorder:
    """A run that yields one match per event, and writes down what it was asked."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.finished = False

    def push_batch(self, events: Iterable[Event]) -> Iterator[Match]:
        given = list(events)
        self.batches.append(len(given))
        for one in given:
            yield Match("q", one.time, one.time, {}, ())

    def finish(self, close: bool = True) -> list[Match]:
        self.finished = True
        now = from_micros(99, NUMBER)
        return [Match("q", now, now, {}, ())]


class Written:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.matches: list[Match] = []

    @property
    def written(self) -> int:
        return len(self.matches)

    def write(self, match: Match) -> None:
        self.matches.append(match)

    def write_block(self) -> None:
        """There is none: the matches are objects."""


def broken(count: int) -> Iterator[Event]:
    yield from (event(S, second) for second in range(count))
    raise InputError("broken", "FILE", 7)


def test_batches_and_progress() -> None:
    run, seen = Recorder(), list[pipeline.Progress]()
    found = list(pipeline.matches(run, [event(S, n) for n in range(10)], 4, seen.append))
    assert (run.batches, len(found), run.finished) == ([4, 4, 2], 11, True)
    assert [(p.events, p.matches, p.last.time.micros // 10**6) for p in seen] == [
        (4, 4, 3), (8, 8, 7), (10, 10, 9),
    ]  # fmt: skip


def test_nothing_at_all_still_finishes() -> None:
    run = Recorder()
    assert len(list(pipeline.matches(run, []))) == 1
    assert run.finished


@pytest.mark.parametrize("count", [0, 3, 4, 5])
def test_an_input_error_comes_after_the_matches_before_it(count: int) -> None:
    run, sink = Recorder(), Written()
    with pytest.raises(InputError, match="FILE:7: broken"):
        pipeline.pump(run, broken(count), sink, batch=4)  # type: ignore[arg-type]
    assert len(sink.matches) == count
    assert not run.finished


def test_limit_stops_reading() -> None:
    run, sink = Recorder(), Written()
    pipeline.pump(run, broken(100), sink, batch=4, limit=6)  # type: ignore[arg-type]
    assert (len(sink.matches), run.batches, run.finished) == (6, [4, 4], False)


def test_one_by_one_never_reads_ahead() -> None:
    read: list[int] = []

    def source() -> Iterator[Event]:
        for second in range(3):
            read.append(second)
            yield event(S, second)

    found = pipeline.matches(Recorder(), source(), batch=1)
    for expected in range(3):
        assert next(found).end.micros == expected * 10**6
        assert read == list(range(expected + 1))


def test_shapes() -> None:
    ask = QUERY.replace("SELECT ?x ?y", "ASK")
    build = QUERY.replace("SELECT ?x ?y", "CONSTRUCT { ?x :p ?y }")
    program = compile_queries([QUERY, ask, build], names=["a", "b", "c"])
    assert [(s.query, s.form, s.columns) for s in pipeline.shapes(program)] == [
        ("a", "select", ("x", "y")), ("b", "ask", ()), ("c", "construct", ()),
    ]  # fmt: skip


def texts(found: Iterable[Match]) -> list[tuple[str, str]]:
    return [(m.bindings["x"].value, m.bindings["y"].value) for m in found]  # type: ignore[union-attr]


def test_run_over_iterables() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    triples = b'_:b <http://example.org/a> "1" .'
    result = run(
        QUERY,
        {
            "s": [(begin, triples), (begin, triples.replace(b"1", b"2"), "http://example.org/e")],
            T: iter([(begin + timedelta(seconds=5), b'_:b <http://example.org/b> "3" .')]),
        },
    )
    found = list(result)
    assert sorted(texts(found)) == [("1", "3"), ("2", "3")]
    assert {str(m.events[0].graph) for m in found} == {"None", "<http://example.org/e>"}


def test_run_over_events_and_files(tmp_path: Path) -> None:
    path = tmp_path / "t.ttl"
    path.write_text("<e:s> <http://example.org/b> 7 .\n" * 2)
    options = ReadOptions(framing=pipeline_framing("triples:1"))
    streams = {S: [event(S, 0)], T: [path, str(path)]}
    program = compile_queries(QUERY)
    # Events of the files are at 0, 1, 2 and 3 seconds; only the first to follow is taken.
    assert texts(run(program, streams, options=options)) == [("0", "7")]
    assert texts(run(program, streams, options=options, workers=1)) == [("0", "7")]
    with pytest.raises(SpaseqError, match="workers 0"):
        run(program, streams, options=options, workers=0)
    fixed = run(program, streams, bind={"x": 5}, options=options)
    assert list(fixed) == []


def pipeline_framing(text: str):  # type: ignore[no-untyped-def]
    from spaseq.io.read_options import Framing

    return Framing.parse(text)


def test_streams_that_do_not_fit() -> None:
    with pytest.raises(SpaseqError, match=r"no query reads the stream urn:x; .* <.*/s> \(s\)"):
        run(QUERY, {"urn:x": []})
    with pytest.raises(SpaseqError, match=r"the stream <.*/t> was not given"):
        run(QUERY, {S: []})
    both = [QUERY, QUERY.replace(":s ", ":u ")]
    with pytest.raises(
        SpaseqError, match=r"use the name s for both <.*/s> and <.*/u>; use the IRI"
    ):
        run(both, {"s": []})


def test_events_that_do_not_fit() -> None:
    back = [event(S, 2), event(S, 1)]
    with pytest.raises(EventError, match="time runs backwards"):
        list(run(QUERY, {S: back, T: []}))
    with pytest.raises(EventError, match="is not an event"):
        list(run(QUERY, {S: [7], T: []}))

"""Batches of events: their contents, their sizes and their memory."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import resource
import threading
from pathlib import Path

import pyoxigraph as ox
import pytest
from reading import GENERATED, INTEGER, STREAM, Reading, at, options, quad

from spaseq.io.source import Source
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.event import Event
from spaseq.rdf.native._terms import Dictionary, EventBatch, Relevance

TEXT = at("a", 1) + quad("a") * 2 + at("b", "2026-01-01T00:00:00+01:00") + quad("b", '"x"@en')


def encoded(path: Path, uses: list[tuple[ox.NamedNode, None]] | None = None, **given: object):
    relevance = Relevance(Dictionary(), uses)
    return Source(STREAM, [str(path)], options(**given), relevance=relevance)


@pytest.mark.parametrize("name", ["s.nq", "s.trig"])
def test_an_encoded_event_is_an_event(tmp_path: Path, name: str) -> None:
    text = at("a", 1) + quad("a") * 2 + at("b", 2) + quad("b", '"x"@en')
    if name == "s.trig":
        text = f'<e:a> {GENERATED} "1"^^{INTEGER} . <e:a> {{ <e:s> <e:p> <e:o> }}\n' + (
            f'<e:b> {GENERATED} "2"^^{INTEGER} .\n\n<e:b> {{ <e:s> <e:p> "x"@en }}\n'
        )
    plain = Reading(tmp_path, text, name).events
    events = list(encoded(tmp_path / name))
    assert all(isinstance(event, EncodedEvent) for event in events)
    assert events == plain
    assert list(map(hash, events)) == list(map(hash, plain))
    assert [event.origin for event in events] == [event.origin for event in plain]
    assert events[0] != events[1]
    assert events[0] != 7
    for event, known in zip(events, plain, strict=True):
        assert isinstance(event, EncodedEvent)
        assert event.facts is event.facts
        assert event.instant == known.instant
        assert event.bare() == Event(STREAM, known.time, 0, (), known.name)
        again = pickle.loads(pickle.dumps(copy.copy(event)))
        assert (type(again), again, again.origin) == (Event, known, known.origin)
        with pytest.raises(AttributeError, match="no colour"):
            _ = event.colour
        with pytest.raises(AttributeError):
            event.ordinal = 3  # type: ignore[misc]


def test_dates_are_canonical_and_numbers_as_written(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_text(at("b", "2026-01-01T00:00:00.50+01:00") + quad("b"))
    (event,) = encoded(path)
    assert event.time.term.value == "2025-12-31T23:00:00.5Z"
    path.write_text(at("b", 7).replace("7", "007") + quad("b"))
    (event,) = encoded(path)
    assert (event.time.term.value, event.time.micros) == ("007", 7_000_000)


def test_batches_count_what_they_leave_out(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_text(at("a", 1) + quad("a") * 2 + at("b", 1) + quad("b") + at("c", 2))
    source = encoded(path, [])
    first, last = source.batches()  # the last event is complete where the file ends
    assert [(len(b), b.statements, b.total()) for b in (first, last)] == [(2, 0, 3), (1, 0, 0)]
    assert [first.size(index) for index in range(2)] == [2, 1]
    assert [first.ordinal(0), first.ordinal(1), last.ordinal(0)] == [0, 1, 0]
    assert (first.stream, last.file) == (STREAM, str(path))
    assert (source.counters.events, source.counters.statements) == (3, 3)


@pytest.mark.parametrize("name", ["s.nq", "s.trig"])
def test_a_named_pipe_is_read_as_it_is_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    opened = threading.Event()
    texts = iter(at(f"g{i}", i) + quad(f"g{i}") + at(f"g{i}", i) for i in range(3))
    if name == "s.trig":
        texts = iter(f"<e:g{i}> {{ <e:s> <e:p> 1 }}\n" + at(f"g{i}", i) for i in range(3))

    def write() -> None:
        with open(path, "w") as out:
            for text in texts:
                out.write(text)
                out.flush()
                opened.wait(10)
                opened.clear()

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0
    for batch in encoded(path).batches():
        assert len(batch) == 1  # the next is not written before this one is seen
        seen += 1
        opened.set()
    writer.join()
    assert seen == 3


def living() -> int:
    """How many batches there are."""
    return sum(1 for thing in gc.get_objects() if type(thing) is EventBatch)


def megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def junk(path: Path) -> int:
    """Nothing but triples of no event."""
    with path.open("w") as out:
        for number in range(60_000):
            out.write(f'<http://example.org/{number}> <e:p> "{"x" * 200}{number}" .\n')
    return 0


def distinct(path: Path) -> int:
    with path.open("w") as out:
        for number in range(60_000):
            out.write(at(f"g{number}", number))
            line = quad(f"g{number}", f'"{"x" * 500}{number}"', f"<e:s{number}>")
            if path.suffix == ".trig":
                body, _, _ = line.rpartition("<")
                line = f"<e:g{number}> {{ {body} }}\n"
            out.write(line)
    return 60_000


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="tells memory by /proc")
@pytest.mark.parametrize("write", [distinct, junk])
@pytest.mark.parametrize("suffix", ["nq", "trig"])
def test_memory_does_not_grow_with_the_stream(tmp_path: Path, write, suffix: str) -> None:
    path = tmp_path / f"s.{suffix}"
    expected = write(path)
    source = encoded(path, on_error="skip")
    gc.collect()
    gc.freeze()  # `living` then visits only what is created from here on
    seen, most, size = 0, 0, 0.0
    try:
        iterator = source.batches()
        while batch := next(iterator, None):
            if not seen:
                size = megabytes()
            seen += len(batch)
            most = max(most, living())
    finally:
        gc.unfreeze()
    assert seen == expected
    assert most <= 8
    if size:
        assert megabytes() - size < 24  # of 38: some blocks are read ahead


def test_an_event_of_many_blocks(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    lines = [quad("g", f'"{number}"', "_:b") for number in range(30_000)]
    path.write_text(at("f", 1) + quad("f", "_:b") + "".join(lines) + at("g", 2) + at("h", 3))
    events = list(encoded(path))
    assert [len(event.facts) for event in events] == [1, 30_000, 0]
    assert {str(fact[0]) for fact in events[1].facts} == {"_:s0e2b0"}
    assert [fact[2].value for fact in events[1].facts] == [str(n) for n in range(30_000)]

"""Events written in every syntax: the same events when they are read again; `spaseq convert`."""

from __future__ import annotations

import io
import random
import re
import subprocess
import sys
from pathlib import Path

import pyoxigraph as ox
import pytest
from reading import options
from test_match_blocks import drawn_events

import spaseq
from spaseq.cli import main
from spaseq.errors import SpaseqError
from spaseq.io.event_writers import GENERATED_AT, write_events
from spaseq.io.formats import EVENT_FORMATS, event_format
from spaseq.io.source import Source
from spaseq.rdf.event import DATE_TIME, Event, Fact
from spaseq.rdf.native._terms import Dictionary, EventBatch
from spaseq.rdf.time import from_micros

NAMED = {"nq", "trig", "jsonld"}
"""The syntaxes in which an event keeps its name; in the others its time is one of its triples."""


def batches(events: list[Event]) -> list[EventBatch]:
    batch = EventBatch(Dictionary(), "urn:s", "drawn")
    for event in events:
        stamp = None if event.time.domain == DATE_TIME else event.time.term
        batch.add(
            event.facts, event.time.micros, event.ordinal, event.name, stamp,
            event.time.domain == DATE_TIME,
        )  # fmt: skip
    return [batch]


def converted(events: list[Event], name: str, folder: Path) -> list[Event]:
    """The events after they are written and read again."""
    out = io.BytesIO()
    writer = EVENT_FORMATS[name].open(out)
    assert write_events(batches(events), writer, out, live=False) == len(events)
    writer.close()
    data, extension = out.getvalue(), "nq" if name == "messages" else name
    if name == "jsonld":
        quads = ox.parse(data, format=ox.RdfFormat.JSON_LD)
        data, extension = "".join(f"{quad} .\n" for quad in quads).encode(), "nq"
    path = folder / f"out.{extension}"
    path.write_bytes(data)
    return list(Source("urn:s", [str(path)], options()))


def shown(fact: Fact) -> str:
    return " ".join("_:" if isinstance(term, ox.BlankNode) else str(term) for term in fact)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", EVENT_FORMATS)
def test_events_are_the_same_when_they_are_read_again(name: str, seed: int, tmp_path: Path) -> None:
    events = drawn_events(random.Random(seed), 20)
    # A name is used once in a stream, and Jelly has no base direction.
    plain = [
        Event(e.stream, e.time, e.ordinal, [
            fact for fact in e.facts if not (isinstance(fact[2], ox.Literal) and fact[2].direction)
        ], e.name and ox.NamedNode(f"urn:e:{i}"))
        for i, e in enumerate(events)
    ]  # fmt: skip
    again = converted(plain, name, tmp_path)
    assert [event.instant for event in again] == [event.instant for event in plain]
    assert {event.time.domain for event in again} == {plain[0].time.domain}
    for number, (event, copy) in enumerate(zip(plain, again, strict=True), 1):
        facts = sorted(shown(fact) for fact in copy.facts)
        if name in NAMED:
            assert copy.name == (event.name or ox.NamedNode(f"urn:spaseq:event:{number}"))
        else:
            stamps = [fact for fact in copy.facts if fact[1] == GENERATED_AT]
            assert len(stamps) == 1
            facts.remove(shown(stamps[0]))
        assert facts == sorted(shown(fact) for fact in event.facts)


RESULT_TIME = ox.NamedNode("http://www.w3.org/ns/sosa/resultTime")
AT = from_micros(1_767_225_600_000_000, DATE_TIME)


@pytest.mark.parametrize("name", sorted(EVENT_FORMATS.keys() - NAMED))
def test_a_time_in_the_event_is_not_added_again(name: str, tmp_path: Path) -> None:
    node, other = ox.NamedNode("urn:o"), ox.Literal("2020-01-01T00:00:00Z", datatype=XSD_DATE)
    for predicate, value, added in (
        (RESULT_TIME, AT.term, 0), (GENERATED_AT, AT.term, 0), (RESULT_TIME, other, 1),
        (RESULT_TIME, node, 1),
    ):  # fmt: skip
        event = Event("urn:s", AT, 0, ((node, predicate, value),))
        (again,) = converted([event], name, tmp_path)
        assert again.time == AT
        assert len(again.facts) == 1 + added
    with pytest.raises(SpaseqError, match="cannot be a message: its graph has another"):
        converted([Event("urn:s", AT, 0, ((node, GENERATED_AT, other),))], name, tmp_path)


XSD_DATE = ox.NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")
STAMP = '<urn:t%d> <http://www.w3.org/ns/prov#generatedAtTime> "%d"^^<%sinteger> .\n'
LINES = "".join(
    STAMP % (i, i, "http://www.w3.org/2001/XMLSchema#") + f'<urn:a> <urn:p> "x" <urn:t{i}> .\n'
    for i in (1, 2)
)


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.nq").write_text(LINES)
    assert main(["convert", "a.nq", "b.trig"]) == 0
    assert main(["convert", "b.trig", "c.jelly"]) == 0
    assert main(["convert", "c.jelly", "d.nt"]) == 0
    assert main(["convert", "d.nt", "-", "--to", "nq"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "<urn:spaseq:event:1>", "<urn:t1>", "<urn:a>", "<urn:spaseq:event:2>", "<urn:t2>", "<urn:a>"
    ]  # fmt: skip
    assert main(["convert", "a.nq", "e.nq", "--time-unit", "ms"]) == 0
    assert '"0.001"^^<http://www.w3.org/2001/XMLSchema#decimal>' in Path("e.nq").read_text()
    Path("broken.nq").write_text(LINES + "<urn:a> <urn:p> oops <urn:t3> .\n")
    assert main(["convert", "broken.nq", "f.nq"]) == 2
    # The line that is no statement could belong to the second event.
    assert Path("f.nq").read_text() == "".join(LINES.splitlines(keepends=True)[:2])
    assert main(["convert", "broken.nq", "f.nq", "--on-error", "skip"]) == 0
    assert "1 error skipped" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.nq", "b.trig"], "none.nq: there is no such file"),
        (["a.nq", "b.txt"], "b.txt: the extension must be .nq, .nt, .*or .jelly; .* --to"),
        (["a.nq", "-"], "name the syntax with --to"),
        (["a.nq", "a.nq"], "is the same file as the input"),
        (["a.nq", "none/b.nq"], "none/b.nq: cannot be written"),
    ],
)
def test_unusable_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    arguments: list[str], said: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("a.nq").write_text(LINES)
    assert main(["convert", *arguments]) == 2
    output = capfd.readouterr().err
    assert re.search(said, output), output
    assert Path("a.nq").read_text() == LINES


def test_events_of_a_pipe_are_written_as_they_arrive() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "spaseq", "convert", "-", "-", "--input-format", "nt", "--to", "nt"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    message = '<urn:a> <http://www.w3.org/ns/prov#generatedAtTime> "%d"^^<%s> .\nMESSAGE\n'
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    process.stdin.write(b'VERSION "1.1-messages"\n')
    for second in range(2):
        process.stdin.write((message % (second, integer)).encode())
        process.stdin.flush()
        lines = [process.stdout.readline() for _ in range(3 if second == 0 else 2)]
        assert lines[-2:] == (message % (second, integer)).encode().splitlines(keepends=True)
    process.stdin.close()
    assert process.wait(20) == 0
    process.stdout.close()


def test_a_missing_package_and_an_unknown_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spaseq.io.jelly_writer", None)
    with pytest.raises(SpaseqError, match=r"pip install 'spaseq\[jelly\]'"):
        EVENT_FORMATS["jelly"].open(io.BytesIO())
    with pytest.raises(SpaseqError, match="'rdf' is not a syntax of events; use nq"):
        event_format("a.nq", "rdf")
    assert event_format("a.NQ", None).name == "nq"


def test_a_closed_output_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.nq").write_text(LINES)
    monkeypatch.setattr("sys.stdout", None)
    assert main(["convert", str(tmp_path / "a.nq"), "-", "--to", "nq"]) == 2
    assert "standard output is closed" in capfd.readouterr().err


BINDS = """PREFIX : <http://example.org/>
SELECT ?t WITHIN 1 SECONDS FROM STREAM s :s
WHERE { SEQ(A) DEFINE GPM A ON s AT ?t { :a :p ?x } }"""
XSD = "http://www.w3.org/2001/XMLSchema#"
NUMBERS = [
    f'"{number}"^^<{XSD}{kind}>'
    for number, kind in (
        ("0", "integer"), ("001", "integer"), ("1.50", "decimal"), ("2.0e0", "double"),
        ("3", "unsignedByte"), ("4", "integer"),
    )
]  # fmt: skip
DATES = {
    f'"2024-01-01T00:00:00Z"^^<{XSD}dateTime>': "2024-01-01T00:00:00Z",
    f'"2024-01-01T02:00:00+02:00"^^<{XSD}dateTime>': "2024-01-01T00:00:00Z",
    f'"2024-01-01T00:00:00.500Z"^^<{XSD}dateTimeStamp>': "2024-01-01T00:00:00.5Z",
    f'"2024-01-01T00:00:01.0"^^<{XSD}dateTime>': "2024-01-01T00:00:01Z",
    f'"2024-01-02"^^<{XSD}date>': "2024-01-02T00:00:00Z",
}


def stamped(stamps: list[str], path: Path) -> str:
    """A stream of an event for each time."""
    path.write_text(
        "".join(
            f"<urn:e:{n}> {GENERATED_AT} {stamp} .\n"
            f'<http://example.org/a> <http://example.org/p> "{n}" <urn:e:{n}> .\n'
            for n, stamp in enumerate(stamps)
        )
    )
    return str(path)


def bound(path: str) -> list[str]:
    """What AT binds for each event."""
    return [str(match.bindings["t"]) for match in spaseq.run(BINDS, {"s": path})]


@pytest.mark.parametrize("name", EVENT_FORMATS)
def test_at_binds_the_same_after_a_conversion(name: str, tmp_path: Path) -> None:
    extension = "nq" if name == "messages" else name
    out = str(tmp_path / f"out.{extension}")
    to = ["--to", name]
    source = stamped(NUMBERS, tmp_path / "numbers.nq")
    assert main(["convert", source, out, *to]) == 0
    assert bound(out) == bound(source) == NUMBERS
    source = stamped(list(DATES), tmp_path / "dates.nq")
    assert main(["convert", source, out, *to]) == 0
    assert bound(out) == bound(source) == [f'"{d}"^^<{XSD}dateTime>' for d in DATES.values()]
    # With another unit, numbers are written in seconds.
    source = stamped(NUMBERS[-1:], tmp_path / "millis.nq")
    assert main(["convert", source, out, *to, "--time-unit", "ms"]) == 0
    assert bound(out) == [f'"0.004"^^<{XSD}decimal>']

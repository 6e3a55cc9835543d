"""Jelly has the events of the same statements in the text formats."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import pyoxigraph as ox
import pytest
from jelly_writing import delimited, jelly_frames, parsed, written
from pyjelly import jelly
from pyjelly.integrations.generic import generic_sink as generic
from pyjelly.options import LookupPreset
from reading import INTEGER, STREAM, Reading, at, options, quad, shown

import spaseq
from spaseq.errors import InputError
from spaseq.io.source import Source
from spaseq.rdf.event import Event
from spaseq.rdf.native._terms import Dictionary, Relevance

DATA = os.environ.get("SPASEQ_DATA", "")
RESULT_TIME = "http://www.w3.org/ns/sosa/resultTime"
S, P, X = ox.NamedNode("e:s"), ox.NamedNode("e:p"), ox.NamedNode("e:o")
DEFAULT = ox.DefaultGraph()
TAGGED = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
NO_RDF: list[tuple[tuple[object, ...], str]] = [
    ((generic.IRI("no iri"), P, X, DEFAULT), "'no iri' is not an IRI: Invalid IRI code point"),
    ((S, generic.IRI("no"), X, DEFAULT), "'no' is not an IRI: No scheme found"),
    ((S, P, generic.Literal("x", "e_n"), DEFAULT), "'e_n' is not a language tag"),
    ((S, P, generic.Literal("x", None, "d t"), DEFAULT), "'d t' is not an IRI"),
    ((S, P, generic.Literal("x", None, TAGGED), DEFAULT), f"a literal of datatype <{TAGGED}>"),
    ((ox.Literal("x"), P, X, DEFAULT), "the subject of a triple must be an IRI or a blank node"),
    ((ox.Triple(S, P, X), P, X, DEFAULT), "the subject of a triple must be an IRI or a blank"),
    ((S, ox.BlankNode("b"), X, DEFAULT), "the predicate of a triple must be an IRI, not _:b"),
    ((S, P, X, ox.Literal("g")), 'the name of a graph must be an IRI or a blank node, not "g"'),
    ((S, P, generic.Triple(S, generic.IRI("x"), X), DEFAULT), "'x' is not an IRI"),
]
ODD = (
    '_:b <e:p> "tab\\tq\\"\\u00E9\\U0001F600"@en-GB <e:{0}> .\n'
    '_:b <e:q> "1.50"^^<http://www.w3.org/2001/XMLSchema#decimal> <e:{0}> .\n'
    '<http://example.org/a#b> <e:q> "" <e:{0}> .\n'
    "<http://example.org/a#b> <e:q> _:b <e:{0}> .\n"
    "<http://example.org/a/c> <e:q> <urn:x> <e:{0}> .\n"
)


def graphs(count: int) -> list[str]:
    """The texts of some named graphs, each with its time."""
    return [at(f"g{i}", i) + ODD.format(f"g{i}") + quad(f"g{i}", f'"{i}"') for i in range(count)]


def plain(events: list[Event]) -> list[tuple[object, ...]]:
    """All there is to an event but the place where it was read."""
    return [(e.time, e.ordinal, e.name, frozenset(e.facts)) for e in events]


def timed(seconds: int) -> str:
    return quad("x", f'"{seconds}"^^{INTEGER}').replace("<e:p>", f"<{RESULT_TIME}>")


# ------------------------------------------------------------ graphs as events


@pytest.mark.parametrize("physical", ["quads", "graphs"])
@pytest.mark.parametrize("per_frame", [1, 3, 7, 1000])
def test_named_graphs_across_frames(tmp_path: Path, physical: str, per_frame: int) -> None:
    text = "".join(graphs(6))
    quads = parsed(text)
    frames = [quads[i : i + per_frame] for i in range(0, len(quads), per_frame)]
    read = Reading(tmp_path, written(frames, physical), "s.jelly", "graph")
    assert plain(read.events) == plain(Reading(tmp_path, text).events)
    assert len(read.events) == 6
    assert not read.error


def test_a_graph_that_begins_in_one_frame_and_ends_in_another(tmp_path: Path) -> None:
    quads = parsed("".join(graphs(2)))
    [whole] = jelly_frames([quads], "graphs")
    frames = [jelly.RdfStreamFrame(rows=whole.rows[i : i + 1]) for i in range(len(whole.rows))]
    read = Reading(tmp_path, delimited(frames), "s.jelly", "graph")
    assert plain(read.events) == plain(Reading(tmp_path, "".join(graphs(2))).events)


def test_triples_have_no_named_graphs(tmp_path: Path) -> None:
    read = Reading(tmp_path, written([parsed(timed(1))], "triples"), "s.jelly", "graph")
    assert read.error.startswith("FILE, frame 1: no event in this file: it has no named graphs")


def test_n_triples_an_event(tmp_path: Path) -> None:
    triples = "".join(f"<e:s> <e:p> <e:{i}> .\n" for i in range(6))
    data = written([parsed(triples)[:4], parsed(triples)[4:]], "triples")
    read = Reading(tmp_path, data, "s.jelly", "triples:3")
    assert plain(read.events) == plain(Reading(tmp_path, triples, "s.nt", "triples:3").events)
    assert len(read.events) == 2
    read = Reading(tmp_path, written([parsed(quad("g"))]), "s.jelly", "triples:3")
    assert read.error == "FILE, frame 1: a graph name among the triples of --events triples:N"


# ------------------------------------------------------------ frames as events


@pytest.mark.parametrize("physical", ["triples", "quads", "graphs"])
@pytest.mark.parametrize("events", ["auto", "message"])
def test_a_frame_is_a_message(tmp_path: Path, physical: str, events: str) -> None:
    texts = [ODD.format("g") + timed(1), "", timed(2) + quad("h", "_:b"), timed(2)]
    data = written([parsed(text) for text in texts], physical)
    log = 'VERSION "1.1-messages"\n' + "MESSAGE\n".join(texts)
    read = Reading(tmp_path, data, "s.jelly", events)
    assert plain(read.events) == plain(Reading(tmp_path, log).events)
    assert shown(read.events) == ["s@1.0", "s@2.0", "s@2.1"]
    assert read.lines == [1, 3, 4]
    blanks = [
        {part for fact in event.facts for part in fact if isinstance(part, ox.BlankNode)}
        for event in read.events[:2]
    ]
    assert all(blanks)
    assert not blanks[0] & blanks[1]


def test_timestamps_of_messages(tmp_path: Path) -> None:
    published = "https://www.w3.org/ns/activitystreams#published"
    text = timed(3).replace(RESULT_TIME, published)
    assert Reading(tmp_path, written([parsed(text)]), "s.jelly").times == [3]
    assert Reading(tmp_path, written([parsed(at("g", 4) + text)]), "s.jelly").times == [4]
    both = written([parsed(at("g", 4) + text)])
    assert Reading(tmp_path, both, "s.jelly", time_predicate=published).times == [3]
    read = Reading(tmp_path, written([parsed(quad("g"))]), "s.jelly")
    assert read.error.startswith("FILE, frame 1: a message without a timestamp")


def test_compressed(tmp_path: Path) -> None:
    data = written([parsed(timed(i)) for i in range(3)])
    assert Reading(tmp_path, data, "s.jelly.gz").times == [0, 1, 2]
    path = tmp_path / "torn.jelly.gz"
    path.write_bytes(gzip.compress(data)[:-30])
    with pytest.raises(
        InputError, match=r"torn\.jelly\.gz: cannot be read: the gzip data ends before"
    ):
        list(Source(STREAM, [str(path)]))


def test_a_file_of_one_frame_without_its_length(tmp_path: Path) -> None:
    [frame] = jelly_frames([parsed(timed(1) + quad("g"))])
    read = Reading(tmp_path, frame.SerializeToString(), "s.jelly")
    assert (read.times, read.sizes, read.lines, read.error) == ([1], [2], [1], "")


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\0"])
def test_nothing_at_all(tmp_path: Path, data: bytes) -> None:
    read = Reading(tmp_path, data, "s.jelly")
    assert (read.events, read.error) == ([], "")


def test_namespace_declarations_move_the_tables_on(tmp_path: Path) -> None:
    quads = parsed(graphs(1)[0])
    frames = jelly_frames([quads], namespaces={"ex": "http://example.org/a#", "u": "urn:x"})
    assert {row.WhichOneof("row") for row in frames[0].rows} >= {"namespace"}
    read = Reading(tmp_path, delimited(frames), "s.jelly", "graph")
    assert plain(read.events) == plain(Reading(tmp_path, graphs(1)[0]).events)


def test_frame_metadata_and_repeated_options(tmp_path: Path) -> None:
    texts = [timed(1), timed(2)]
    frames = jelly_frames([parsed(t) for t in texts], metadata={"key": b"\0\xff"})
    frames[1].rows.insert(0, frames[0].rows[0])
    assert Reading(tmp_path, delimited(frames), "s.jelly").times == [1, 2]
    frames[1].rows[0].options.stream_name = "another"
    read = Reading(tmp_path, delimited(frames), "s.jelly")
    assert read.times == [1]
    assert "FILE, frame 2: not Jelly: the options of the stream change" in read.error


@pytest.mark.parametrize(
    ("physical", "logical"),
    [
        ("triples", jelly.LOGICAL_STREAM_TYPE_GRAPHS),
        ("triples", jelly.LOGICAL_STREAM_TYPE_SUBJECT_GRAPHS),
        ("quads", jelly.LOGICAL_STREAM_TYPE_DATASETS),
        ("quads", jelly.LOGICAL_STREAM_TYPE_NAMED_GRAPHS),
        ("graphs", jelly.LOGICAL_STREAM_TYPE_TIMESTAMPED_NAMED_GRAPHS),
    ],
)
def test_logical_types_change_nothing(tmp_path: Path, physical: str, logical: int) -> None:
    frames = jelly_frames([parsed(timed(1))], physical, logical=logical)
    assert Reading(tmp_path, delimited(frames), "s.jelly").times == [1]


def test_small_tables_are_written_over(tmp_path: Path) -> None:
    text = "".join(quad("g", f"<http://example.org/{i % 40}/n{i}>") for i in range(300))
    small = LookupPreset(max_names=8, max_prefixes=4, max_datatypes=2)
    frames = jelly_frames([parsed(at("g", 1) + text)], lookup=small)
    read = Reading(tmp_path, delimited(frames), "s.jelly", "graph")
    assert plain(read.events) == plain(Reading(tmp_path, at("g", 1) + text).events)


def test_blank_nodes_may_have_any_label(tmp_path: Path) -> None:
    p, when = ox.NamedNode("e:p"), ox.NamedNode(RESULT_TIME)
    time = ox.Literal("1", datatype=ox.NamedNode(INTEGER[1:-1]))
    hexed = ox.BlankNode("jelly-612062")  # what "a b" is written as
    triples = [(ox.BlankNode("x"), when, time, ox.DefaultGraph())]
    frames = jelly_frames([[*triples, (hexed, p, ox.BlankNode("x"), ox.DefaultGraph())] * 2])
    for row in frames[0].rows:
        if row.WhichOneof("row") == "quad" and row.quad.o_bnode:
            row.quad.o_bnode = "a b"
    [event] = Reading(tmp_path, delimited(frames), "s.jelly").events
    assert len({part for fact in event.facts for part in fact if type(part) is ox.BlankNode}) == 3


# ------------------------------------------------------------ encoded, live, from a pipe


def test_events_are_left_encoded_without_what_no_query_uses(tmp_path: Path) -> None:
    path = tmp_path / "s.jelly"
    path.write_bytes(written([parsed(text) for text in graphs(300)]))
    relevance = Relevance(Dictionary(), [(ox.NamedNode("e:q"), None)])
    source = Source(STREAM, [str(path)], options("graph"), relevance=relevance)
    batches = list(source.batches())
    assert sum(len(batch) for batch in batches) == 300
    assert {batch.size(i) for batch in batches for i in range(len(batch))} == {6}
    assert {len(batch.facts(i)) for batch in batches for i in range(len(batch))} == {4}


RISE = """
PREFIX e: <e:>
SELECT ?one ?two WITHIN 9 SECONDS FROM STREAM s <http://example.org/s> WHERE {
  SEQ(A , B)
  DEFINE GPM A ON s { ?x e:p ?one }
  DEFINE GPM B ON s { ?x e:p ?two FILTER(?two > ?one) }
}"""


def test_a_query_finds_what_it_finds_in_n_quads(tmp_path: Path) -> None:
    values = (1, 3, 2, 5)
    texts = [at(f"g{i}", i) + quad(f"g{i}", str(ox.Literal(v))) for i, v in enumerate(values)]
    files = {"s.nq": "".join(texts).encode(), "s.jelly": written([parsed(t) for t in texts])}
    found = {}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        streams = {STREAM: str(tmp_path / name)}
        found[name] = [
            (match.start, match.end, match.bindings["one"].value, match.bindings["two"].value)
            for match in spaseq.run(RISE, streams=streams)
        ]
    assert [row[2:] for row in found["s.nq"]] == [("1", "3"), ("2", "5")]
    assert found["s.jelly"] == found["s.nq"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    data = written([parsed(timed(i)) for i in range(3)])
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert len(list(Source(STREAM, ["-"], options(syntax="jelly")))) == 3
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data[:-1])))
    with pytest.raises(InputError, match="<stdin>, frame 3: not Jelly: the file ends 1 bytes"):
        list(Source(STREAM, ["-"], options(syntax="jelly")))


def test_a_pipe_gives_events_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "pipe.jelly"
    os.mkfifo(path)
    frames = [delimited([frame]) for frame in jelly_frames([parsed(timed(i)) for i in range(3)])]
    read: list[int] = []
    go = [threading.Event() for _ in frames]

    def write() -> None:
        with open(path, "wb", buffering=0) as pipe:
            for frame, event in zip(frames, go, strict=True):
                pipe.write(frame)
                event.wait(10)

    writer = threading.Thread(target=write)
    writer.start()
    for event, said in zip(Source(STREAM, [str(path)]), go, strict=True):
        read.append(event.time.micros // 10**6)
        said.set()  # the next frame is written only when this one has been seen
    writer.join()
    assert read == [0, 1, 2]


# ------------------------------------------------------------ what goes wrong


def read_torn(tmp_path: Path, data: bytes, **given: object) -> Reading:
    return Reading(tmp_path, data, "s.jelly", syntax="jelly", **given)  # type: ignore[arg-type]


def test_a_file_that_breaks_off_anywhere(tmp_path: Path) -> None:
    frames = [delimited([frame]) for frame in jelly_frames([parsed(timed(i)) for i in range(3)])]
    data = b"".join(frames)
    ends = [len(b"".join(frames[:i])) for i in range(4)]
    for size in range(1, len(data)):
        read = read_torn(tmp_path, data[:size])
        whole = sum(end <= size for end in ends[1:])
        assert read.times == list(range(whole)), size
        assert bool(read.error) == (size not in ends), size
        if read.error:
            assert read.error.startswith(f"FILE, frame {whole + 1}: not Jelly: "), size


def test_a_broken_frame_ends_the_file_and_no_more(tmp_path: Path) -> None:
    data = written([parsed(timed(i)) for i in range(3)])
    read = read_torn(tmp_path, data[:-1], on_error="skip")
    assert (read.times, read.error, read.source.counters.skipped) == ([0, 1], "", 1)
    assert "frame 3" in read.log[0]
    assert read.log[0].endswith("nothing can be read from here on")
    whole, torn = tmp_path / "whole.jelly", tmp_path / "torn.jelly"
    torn.write_bytes(data[:-1])
    whole.write_bytes(written([parsed(timed(7))]))
    log: list[str] = []
    files = [str(torn), str(whole)]
    events = list(Source(STREAM, files, options(on_error="skip"), log=log.append))
    assert [event.time.micros // 10**6 for event in events] == [0, 1, 7]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<e:s> <e:p> <e:o> .\n" * 9, "the frame is not a valid protobuf message"),
        (b"\n" + b"<e:s> <e:p> <e:o> .\n" * 9, "the frame is not a valid protobuf message"),
        (gzip.compress(b"x" * 99, mtime=0), ""),
        (b"\xff\xff\xff\xff\xff\xff\xff", "the frame's length is more than 2147483647 bytes"),
        (b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", "the frame's length is more than"),
        (b"\xff\xff\xff", "the file ends in the length of the frame"),
        (b"\x09\xff", "the file ends 8 bytes before the frame's 9 do"),
    ],
)
def test_what_is_not_jelly(tmp_path: Path, data: bytes, said: str) -> None:
    read = read_torn(tmp_path, data)
    assert read.events == []
    assert read.error.startswith("FILE, frame 1: not Jelly: " + said)


def options_of(frames: list[jelly.RdfStreamFrame]) -> jelly.RdfStreamOptions:
    return frames[0].rows[0].options


def test_streams_that_cannot_be_read(tmp_path: Path) -> None:
    def said(change: str, value: int) -> str:
        frames = jelly_frames([parsed(timed(1))])
        setattr(options_of(frames), change, value)
        return read_torn(tmp_path, delimited(frames)).error

    assert "version 3 is not supported (1 and 2 are)" in said("version", 3)
    assert "version 0 is not supported" in said("version", 0)
    assert "does not say whether it is of triples, quads or graphs" in said("physical_type", 0)
    assert "does not say whether it is of" in said("physical_type", 9)
    assert "a quad in a stream of triples" in said("physical_type", 1)
    assert "a quad in a stream of graphs" in said("physical_type", 3)
    assert "lookup size cannot be larger than 4096" in said("max_prefix_table_size", 5000)
    assert "name lookup size must be at least 8" in said("max_name_table_size", 1)


def test_rows_that_do_not_fit(tmp_path: Path) -> None:
    def said(rows: list[jelly.RdfStreamRow]) -> str:
        return read_torn(tmp_path, delimited([jelly.RdfStreamFrame(rows=rows)])).error

    def rows(physical: str) -> list[jelly.RdfStreamRow]:
        return list(jelly_frames([parsed(timed(1))], physical)[0].rows)

    good = rows("quads")
    assert "the first row does not give the options" in said(good[1:])
    assert "a row of an unknown kind in a stream of quads" in said([*good, jelly.RdfStreamRow()])
    entries = {"name", "prefix", "datatype"}
    without = [row for row in good if row.WhichOneof("row") not in entries]
    assert "an entry of a table that is not there" in said(without)
    bare = jelly.RdfStreamRow(quad=jelly.RdfQuad(s_bnode="b"))
    assert "repeats the predicate of the statement before it" in said([good[0], bare])
    start = jelly.RdfStreamRow(graph_start=jelly.RdfGraphStart(g_bnode="g"))
    end = jelly.RdfStreamRow(graph_end=jelly.RdfGraphEnd())
    assert "a graph begins in a stream that is not of graphs" in said([*good, start])
    assert "a graph ends that has not begun" in said([*rows("graphs"), end])
    outside = [row for row in rows("graphs") if row.WhichOneof("row") != "graph_start"]
    assert "a triple outside of graphs" in said(outside)
    nameless = jelly.RdfStreamRow(graph_start=jelly.RdfGraphStart())
    assert "a graph without a name" in said([*rows("graphs"), nameless])


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_statement_that_is_no_rdf_is_left_out_alone(tmp_path: Path, on_error: str) -> None:
    text = timed(1) + quad("g")
    good = parsed(text)
    [known] = Reading(tmp_path, 'VERSION "1.1-messages"\n' + text).events
    for statement, said in NO_RDF:
        # What is behind the bad statement repeats terms of it, or leaves them out.
        frames = [[good[0], statement, good[1]], parsed(timed(2))]
        read = read_torn(tmp_path, written(frames), on_error=on_error)
        if on_error == "stop":
            assert read.error.startswith(f"FILE, frame 1: {said}")
            assert read.events == []
        else:
            assert read.times == [1, 2]
            assert plain(read.events)[:1] == plain([known])
            [logged] = read.log
            assert logged.replace(read.path, "FILE").startswith(f"skipped: FILE, frame 1: {said}")


def test_triple_terms_are_terms(tmp_path: Path) -> None:
    node = ox.BlankNode("x")
    term = ox.Triple(node, P, ox.Triple(S, P, node))
    read = read_torn(tmp_path, written([[*parsed(timed(1)), (S, P, term, DEFAULT)]]))
    (found,) = (fact[2] for fact in read.events[0].facts if isinstance(fact[2], ox.Triple))
    assert found.subject == found.object.object != node
    assert (found.predicate, found.object.subject) == (P, S)


def test_events_that_do_not_fit_name_their_frames(tmp_path: Path) -> None:
    read = read_torn(tmp_path, written([parsed(timed(2)), parsed(timed(1))]))
    assert read.error.startswith("FILE, frame 2: time runs backwards: 1 after 2")
    date = parsed(at("g", "2026-01-01T00:00:00Z"))
    read = read_torn(tmp_path, written([parsed(timed(2)), date]))
    said = "FILE, frame 2: the timestamp is a date, but that at FILE, frame 1 is a number"
    assert read.error.startswith(said)
    read = read_torn(tmp_path, written([parsed(timed(i)) for i in (5, 1)]), lateness=10**6)
    assert "s.jelly, frame 2: its time is 1" in read.log[0]


def test_without_pyjelly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "spaseq.io.jelly", raising=False)
    monkeypatch.setitem(sys.modules, "pyjelly", None)
    data = written([parsed(timed(1))])
    assert read_torn(tmp_path, data).times == [1]
    read = Reading(tmp_path, data, "s.jelly", "subject")
    assert "read Jelly with the package pyjelly: pip install 'spaseq[jelly]'" in read.error


@pytest.mark.parametrize("events", ["subject", "dataset", "member"])
def test_framings_that_read_statements(tmp_path: Path, events: str) -> None:
    text = at("g", 1) + quad("g", "_:b") + "<e:c> <https://w3id.org/tree#member> <e:g> .\n"
    read = Reading(tmp_path, written([parsed(text)]), "s.jelly", events, on_error="skip")
    known = Reading(tmp_path, text, "s.nq", events, on_error="skip")
    assert plain(read.events) == plain(known.events)
    assert read.times == [1]


# ------------------------------------------------------------ published streams


needs_data = pytest.mark.skipif(not DATA, reason="SPASEQ_DATA does not name the data folder")


@needs_data
@pytest.mark.parametrize("physical", ["quads", "graphs"])
def test_weather_as_frames_and_as_graphs(tmp_path: Path, physical: str) -> None:
    path = Path(DATA) / "rdf-streams" / "assist-iot-weather.nq.gz"
    lines = gzip.decompress(path.read_bytes()).split(b"\n")[: 115 * 100]
    text = b"\n".join(lines) + b"\n"
    quads = list(ox.parse(text, format=ox.RdfFormat.N_QUADS))
    groups = [list(group) for _, group in groupby(quads, lambda quad: quad.graph_name)]
    data = written(groups, physical)
    expected = Reading(tmp_path, text, time_predicate=RESULT_TIME).events
    assert len(expected) == 100
    grouped = Reading(tmp_path, data, "s.jelly", "graph", time_predicate=RESULT_TIME).events
    assert plain(grouped) == plain(expected)
    messages = Reading(tmp_path, data, "s.jelly").events
    assert [row[:2] + row[3:] for row in plain(messages)] == [
        row[:2] + row[3:] for row in plain(expected)
    ]


@needs_data
@pytest.mark.parametrize(
    "name",
    ["riverbench_nanopubs.trig", "weather-graphs.trig", "weather-quads.nq", "nq-syntax-tests.nq"],
)
@pytest.mark.parametrize("physical", ["quads", "graphs"])
def test_published_samples(tmp_path: Path, name: str, physical: str) -> None:
    path = Path(DATA) / "rdf-streams" / "jelly-samples" / name
    quads = list(ox.parse(path=str(path)))
    data = written([quads], physical)
    clock = {"arrival_time": True, "clock": lambda: 0}
    [event] = Reading(tmp_path, data, "s.jelly", **clock).events  # type: ignore[arg-type]
    text = ox.serialize(quads, format=ox.RdfFormat.N_QUADS) or b""
    [known] = Reading(tmp_path, text, "s.nq", "message", **clock).events  # type: ignore[arg-type]
    assert plain([event]) == plain([known])
    assert event.facts


# ------------------------------------------------------------ what tables make of few bytes


def _row(**fields: object) -> jelly.RdfStreamRow:
    return jelly.RdfStreamRow(**fields)  # type: ignore[arg-type]


def expanding(prefix_bytes: int, count: int) -> bytes:
    """Triples whose IRIs have one of two long prefixes in turn, so that each is made again."""
    (frame,) = jelly_frames([parsed(timed(1))], "triples")
    for front, number in (("u:a", 7), ("u:b", 8)):
        entry = jelly.RdfPrefixEntry(id=number, value=front + "x" * (prefix_bytes - 3))
        frame.rows.append(_row(prefix=entry))
    frame.rows.append(_row(name=jelly.RdfNameEntry(id=1, value="n")))
    for i in range(count):
        iris = [jelly.RdfIri(prefix_id=7 + (i + part) % 2, name_id=1) for part in range(3)]
        triple = jelly.RdfTriple(s_iri=iris[0], p_iri=iris[1], o_iri=iris[2])
        frame.rows.append(_row(triple=triple))
    return delimited([frame])


@pytest.mark.parametrize("events", ["message", "subject"])
def test_entries_of_tables_make_terms_in_proportion(tmp_path: Path, events: str) -> None:
    keywords = {"events": events, "arrival_time": True, "on_error": "skip"}
    short = read_torn(tmp_path, expanding(250, 5000), **keywords)
    assert len(short.events) == (3 if events == "subject" else 1)
    long = read_torn(tmp_path, expanding(60_000, 5000), **keywords)
    assert long.events == []
    assert long.log[0].endswith(
        "s.jelly, frame 1: not Jelly: the entries of its tables are too long for the number of its "
        "terms; nothing can be read from here on"
    )
    longer = read_torn(tmp_path, expanding(70_000, 1), **keywords)
    assert "frame 1: not Jelly: an IRI of more than 65,536 bytes" in longer.log[0]


def test_a_long_timestamp_is_not_read_again_and_again(tmp_path: Path) -> None:
    literal = ox.Literal(" " * 4096 + "1", datatype=ox.NamedNode(INTEGER.strip("<>")))
    statement = ox.Quad(S, ox.NamedNode(RESULT_TIME), literal)
    read = read_torn(tmp_path, written([[statement]] * 3), on_error="skip")
    assert read.source.counters.skipped == 3
    assert "a timestamp of more than 4,096 bytes" in read.log[0]


def test_a_timestamp_that_is_repeated_is_one(tmp_path: Path) -> None:
    read = Reading(tmp_path, written([parsed(timed(1)) * 3]), "s.jelly", "message")
    assert [event.time.micros for event in read.events] == [10**6]

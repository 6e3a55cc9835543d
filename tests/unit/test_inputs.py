"""What a stream of `spaseq.run` may be, the keywords that say how it is read, and its errors."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
import rdflib

import spaseq
from spaseq.errors import ArgumentError, EventError, InputError, SpaseqError
from spaseq.io.python_words import python_text
from spaseq.io.read_options import ReadOptions

QUERY = """PREFIX : <http://example.org/>
SELECT ?v WITHIN 1 HOUR FROM STREAM s :s WHERE {
  SEQ(A) DEFINE GPM A ON s { ?n :v ?v }
}"""
EX = "http://example.org/"
PROV = "http://www.w3.org/ns/prov#generatedAtTime"
DATE_TIME = ox.NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def quads(*places: int) -> list[ox.Quad]:
    """An event at each second, as a named graph and its time, in the order given."""
    found = []
    for place in places:
        graph = ox.NamedNode(f"urn:e{place}")
        time = ox.Literal((NOON + timedelta(seconds=place)).isoformat(), datatype=DATE_TIME)
        found.append(ox.Quad(graph, ox.NamedNode(PROV), time))
        found.append(ox.Quad(ox.BlankNode("n"), ox.NamedNode(EX + "v"), ox.Literal(place), graph))
    return found


def text(*places: int) -> bytes:
    return ox.serialize(quads(*places), format=ox.RdfFormat.N_QUADS)


def event(place: int, time: Any = None) -> tuple[Any, bytes]:
    stamp = NOON + timedelta(seconds=place) if time is None else time
    return stamp, f'_:n <{EX}v> "{place}"^^<{INTEGER}> .'.encode()


def found(stream: Any, **options: Any) -> list[Any]:
    return [match["v"] for match in spaseq.run(QUERY, {"s": stream}, **options)]


def rdflib_dataset() -> rdflib.Dataset:
    data = rdflib.Dataset()
    for place in (3, 1, 2):
        name, time = rdflib.URIRef(f"urn:e{place}"), rdflib.Literal(NOON + timedelta(seconds=place))
        data.add((name, rdflib.URIRef(PROV), time))
        data.graph(name).add((rdflib.BNode(), rdflib.URIRef(EX + "v"), rdflib.Literal(place)))
    return data


def store() -> ox.Store:
    made = ox.Store()
    made.extend(quads(3, 1, 2))
    return made


@pytest.mark.filterwarnings("ignore:Dataset.default_context is deprecated")  # rdflib's own use
@pytest.mark.parametrize(
    "stream",
    [
        store,
        rdflib_dataset,
        lambda: ox.Dataset(quads(3, 1, 2)),
        lambda: quads(1, 2, 3),
        lambda: iter(quads(1, 2, 3)),
        lambda: (quad for quad in quads(1, 2, 3)),
        lambda: [(*quad.triple, quad.graph_name) for quad in quads(1, 2, 3)],
        lambda: io.BytesIO(text(1, 2, 3)),
        lambda: io.StringIO(text(1, 2, 3).decode()),
        lambda: [io.BytesIO(text(1)), io.BytesIO(text(2, 3))],
        lambda: iter([event(1), event(2), event(3)]),
    ],
)
def test_streams_in_memory(stream: Any) -> None:
    assert found(stream()) == [1, 2, 3]


def test_files_by_path_pattern_and_handle(tmp_path: Path) -> None:
    for place in (1, 2):
        (tmp_path / f"{place}.nq").write_bytes(text(place))
    assert found(tmp_path / "1.nq") == [1]
    assert found(str(tmp_path / "*.nq")) == [1, 2]
    assert found(tmp_path / "[12].nq") == [1, 2]
    assert found([tmp_path / "1.nq", str(tmp_path / "2.nq")]) == [1, 2]
    with open(tmp_path / "1.nq", "rb") as first, open(tmp_path / "2.nq", encoding="utf-8") as last:
        assert found([first, last]) == [1, 2]
        assert not first.closed
    with open(tmp_path / "2.nq", "rb", buffering=0) as raw:
        assert found(raw) == [2]
    with pytest.raises(SpaseqError, match=r"no file matches .*\*\.ttl"):
        found(str(tmp_path / "*.ttl"))
    (tmp_path / "odd[1].nq").write_bytes(text(7))
    assert found(str(tmp_path / "odd[1].nq")) == [7]


def test_an_open_file_twice() -> None:
    file = io.BytesIO(text(1))
    with pytest.raises(ArgumentError, match="the same open file twice"):
        found([file, file])


def test_compressed_and_other_syntaxes_of_open_files(tmp_path: Path) -> None:
    import gzip

    packed = io.BytesIO(gzip.compress(text(1, 2)))
    assert found(packed) == [1, 2]
    trig = ox.serialize(quads(1, 2), format=ox.RdfFormat.TRIG)
    assert found(io.BytesIO(trig), syntax="trig") == [1, 2]

    class Readable:
        """A file with nothing but `read`, as some clients of object stores return."""

        def __init__(self, data: bytes) -> None:
            self._data = io.BytesIO(data)

        def read(self, size: int) -> bytes:
            return self._data.read(min(size, 10))

    assert found(Readable(text(1, 2))) == [1, 2]


def test_an_error_in_an_open_file_names_it() -> None:
    with pytest.raises(InputError, match=r"<BytesIO>:2: "):
        found(io.BytesIO(text(1).splitlines()[0] + b"\nbroken\n"))


def test_iterables_of_quads_are_read_as_they_come() -> None:
    read: list[int] = []

    def given() -> Iterator[ox.Quad]:
        for place in range(3000):
            read.append(place)
            yield from quads(place)

    matches = spaseq.run(QUERY, {"s": given()})
    assert not read
    assert next(matches)["v"] == 0
    assert len(read) <= 1024


def test_a_graph_is_no_stream_without_a_framing() -> None:
    graph = rdflib.Graph()
    graph.parse(
        data=f'<urn:e1> <{PROV}> "2026-01-05T12:00:00Z"^^<{DATE_TIME.value}> ; <{EX}v> 1 .',
        format="turtle",
    )
    with pytest.raises(ArgumentError, match="a named graph for each event, or a framing"):
        found(graph)
    assert found(graph, framing="subject") == [1]


def test_rows_of_pandas_polars_arrow_and_duckdb() -> None:
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    mapping = f"CONSTRUCT {{ [] <{EX}v> ?price }} WHERE {{ }}"
    columns = {"at": [NOON, NOON + timedelta(seconds=3)], "price": [14, 15]}
    table = pa.table(columns)
    relation = duckdb.from_arrow(table)
    for frame in (
        pd.DataFrame(columns),
        pl.DataFrame(columns),
        table,
        table.to_reader(),
        table.to_batches()[0],
        relation,
        [table.slice(0, 1), table.slice(1)],
    ):
        assert found(frame, map={"s": mapping}, time_column="at") == [14, 15], type(frame)


# ------------------------------------------------------------------ times


@pytest.mark.parametrize(
    "time",
    [
        "2026-01-05T12:00:00Z",
        "2026-01-05T14:00:00+02:00",
        "2026-01-05 12:00:00",
        "2026-01-05T12:00:00.000",
        rdflib.Literal(NOON),
        ox.Literal("2026-01-05T12:00:00Z", datatype=DATE_TIME),
        datetime(2026, 1, 5, 12),
    ],
)
def test_times(time: Any) -> None:
    run = spaseq.compile(QUERY).start()
    (match,) = run.push("s", *event(1, time))
    assert match.end.datetime == NOON


def test_times_of_numpy_and_dates() -> None:
    np = pytest.importorskip("numpy")
    run = spaseq.compile(QUERY).start()
    (match,) = run.push("s", *event(1, np.datetime64("2026-01-05T12:00:00")))
    assert match.end.datetime == NOON
    (match,) = spaseq.compile(QUERY).start().push("s", *event(1, "2026-01-05"))
    assert match.end.datetime == NOON.replace(hour=0)


@pytest.mark.parametrize("time", ["noon", "2026-13-05", "12", "", None, [], True, "2026-01-05T25"])
def test_what_is_no_time(time: Any) -> None:
    run = spaseq.compile(QUERY).start()
    with pytest.raises(EventError, match="is not a timestamp"):
        run.push("s", time, b"")
    assert run.stats["events"] == 0


# ------------------------------------------------------------------ names


def test_streams_and_graphs_by_name_and_iri() -> None:
    run = spaseq.compile(QUERY).start()
    assert len(run.push("s", *event(1))) == 1
    assert len(run.push(EX + "s", *event(2))) == 1
    assert len(run.push(ox.NamedNode(EX + "s"), *event(3))) == 1
    assert len(run.push(rdflib.URIRef(EX + "s"), *event(4))) == 1
    assert len(run.push("s", *event(5), ox.NamedNode("urn:e"))) == 1
    assert len(run.push("s", *event(6), rdflib.URIRef("urn:e"))) == 1
    assert found([event(1)]) == [1]
    assert len(list(spaseq.run(QUERY, {ox.NamedNode(EX + "s"): [event(1)]}))) == 1  # type: ignore[dict-item]
    with pytest.raises(EventError, match="no query reads the stream <t>"):
        run.push("t", *event(7))
    with pytest.raises(ArgumentError, match="a stream is named by a str or an IRI, not by 7"):
        run.push(7, *event(7))  # type: ignore[arg-type]
    run.add("other", spaseq.compile(QUERY.replace("s :s", "t :t").replace("ON s", "ON t")),
            new_streams=True)  # fmt: skip
    assert len(run.push("t", *event(7))) == 1
    assert "1 event" in run.why_not(events=[("t", *event(8))]) or run.stats["events"] == 7


def test_a_name_that_means_two_streams() -> None:
    both = spaseq.compile([QUERY, QUERY.replace("s :s", "s :t")])
    run = both.start()
    with pytest.raises(EventError, match="no query reads the stream <s>"):
        run.push("s", *event(1))
    assert len(run.push(EX + "t", *event(1))) == 1


def test_graphs_of_a_knowledge_base_by_iri() -> None:
    query = QUERY.replace("{ ?n :v ?v }", "{ ?n :v ?v GRAPH :kb { ?v :is :good } }")
    good = [ox.Triple(*map(ox.NamedNode, (EX + "x", EX + "is", EX + "good")))]
    node = f"<{EX}n> <{EX}v> <{EX}x> .".encode()
    for name in (EX + "kb", ox.NamedNode(EX + "kb"), rdflib.URIRef(EX + "kb")):
        kb: Any = {name: good}
        (match,) = spaseq.run(query, {"s": [(NOON, node)]}, kb=kb)
        assert match["v"] == EX + "x"


# ------------------------------------------------------------------ how streams are read


@pytest.mark.parametrize("lateness", [timedelta(seconds=2), "2s", "PT2S", 2, 2.0])
def test_lateness_of_iterables_and_files(lateness: Any, tmp_path: Path) -> None:
    places = (1, 3, 2, 6, 3, 5, 4)
    path = tmp_path / "events.nq"
    path.write_bytes(b"".join(map(text, places)).replace(b"_:n", b"<urn:n>"))
    wanted = [1, 2, 3, 4, 5, 6]
    assert found(map(event, places), lateness=lateness) == wanted
    assert found(str(path), lateness=lateness, reuse_graph_names=True) == wanted


def test_without_lateness_the_order_is_checked() -> None:
    with pytest.raises(EventError, match=r"time runs backwards .* or name a lateness"):
        found(map(event, (1, 3, 2)))
    assert found(map(event, (1, 3, 2, 4)), on_error="skip") == [1, 3, 4]


def test_entailment_without_a_knowledge_base_is_a_warning() -> None:
    with pytest.warns(spaseq.QueryWarning, match="entail='rdfs' adds nothing without a knowledge"):
        spaseq.run(QUERY, {"s": []}, entail="rdfs")


@pytest.mark.parametrize("lateness", [None, "1h"])
def test_dates_and_numbers_in_one_iterable_are_an_error(lateness: str | None) -> None:
    given = [event(1), (2, event(2)[1]), event(3)]
    with pytest.raises(EventError, match=r"event 2 of .* has a number as its timestamp, but"):
        found(given, lateness=lateness)
    assert found(given, lateness=lateness, on_error="skip") == [1, 3]


def test_malformed_events_of_iterables_can_be_skipped(caplog: pytest.LogCaptureFixture) -> None:
    given = [event(1), (NOON, b"broken"), ("no time", b""), 7, event(2)]
    assert found(given, on_error="skip") == [1, 2]
    assert "event 2 of <http://example.org/s>" in caplog.text
    with pytest.raises(EventError, match="neither N-Triples nor N-Quads"):
        found(given)


def test_keywords_are_the_fields_of_read_options() -> None:
    numbers = [(1500, event(1)[1])]
    (match,) = spaseq.run(QUERY, {"s": numbers}, unit="ms")
    assert match.end.seconds == 1.5
    (match,) = spaseq.run(QUERY, {"s": numbers}, options=ReadOptions(unit="ms"))
    assert match.end.seconds == 1.5
    fine = [("2026-01-05T12:00:00.1234567Z", event(1)[1])]
    with pytest.raises(EventError):
        found(fine)
    assert found(fine, time_precision="truncate") == [1]
    micros = int(NOON.timestamp() * 10**6)
    (match,) = spaseq.run(QUERY, {"s": numbers}, arrival_time=True, clock=lambda: micros)
    assert match.end.datetime == NOON
    triples = io.BytesIO(f"<urn:n> <{EX}v> 1 .\n".encode() * 2)
    assert len(found(triples, framing="triples:1", syntax="ttl", arrival_time=True)) == 2


# ------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"program": 7}, "a query is a text .* not an int"),
        ({"program": [QUERY, None]}, "not None"),
        ({"program": []}, "a query is needed, and the list is empty"),
        (
            {"streams": "s.nq"},
            r'streams: a dict is needed, as in streams=\{"trades": "trades.nq"\}',
        ),
        ({"streams": [("s", [])]}, "streams: a dict is needed"),
        (
            {"streams": {"s": 7}},
            r"streams: the stream <http://example.org/s> is an int \(7\); give",
        ),
        ({"streams": {"s": {"a": 1}}}, "is a dict"),
        ({"streams": {7: []}}, "a stream is named by a str or an IRI, not by 7"),
        ({"streams": {"s": None}}, "the stream <http://example.org/s> is None; give a path"),
        ({"kb": "house.ttl"}, r"kb: a dict is needed, as in kb=\{.*not a str"),
        ({"kb": {"urn:g": 7}}, "kb: the graph <urn:g> is a path, .* not an int"),
        ({"kb": {7: []}}, "kb: a graph is named by an IRI, not by an int"),
        ({"bind": "v"}, r'bind: a dict is needed, as in bind=\{"threshold": 20\}, not a str'),
        ({"map": "m.rq"}, r'map: a dict is needed, as in map=\{"trades": "trades.rq"\}'),
        ({"options": {"unit": "ms"}}, "options: ReadOptions are needed, not a dict"),
        ({"streams": None}, "streams: a dict is needed"),
        ({"streams": {"s": b"<urn:a> <urn:b> 1 ."}}, "is a bytes .*an open file"),
        ({"program": b"SELECT"}, "not a bytes"),
        ({"map": {"s": 7}}, "map: a mapping is a text or the path of a file, not an int"),
        ({"unit": "h"}, "unit: one of 's', 'ms', 'us' is needed, not 'h'"),
        ({"on_error": "ignore"}, "on_error: one of 'stop', 'skip' is needed"),
        ({"time_precision": "x"}, "time_precision: one of"),
        ({"framing": 3}, "framing: an int is not accepted"),
        ({"workers": "2"}, "workers: a str is not accepted"),
        ({"time_column": 5}, "time_column: an int is not accepted"),
        ({"contexts": 5}, "contexts: an int is not accepted"),
        ({"max_groups": "5"}, "max_groups: a whole number is needed, not a str"),
        ({"lateness": []}, "lateness: a timedelta, a text such as '10s' or a number"),
    ],
)
def test_arguments_of_the_wrong_type(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"program": QUERY, "streams": {"s": []}} | arguments
    with pytest.raises(ArgumentError, match=message) as failure:
        spaseq.run(**given)
    assert isinstance(failure.value, TypeError)
    assert "--" not in str(failure.value)


def test_arguments_of_programs_and_runs() -> None:
    call: Any
    program = spaseq.compile(QUERY)
    for call, message in [
        (lambda: program.bind("v"), "bind: a dict is needed, .* not a str"),
        (lambda: program.start(bind="v"), "bind: a dict is needed"),
        (lambda: program.resume("state"), "blob: the bytes of Run.save are needed, not a str"),
        (lambda: list(program.start().push_batch([7])), "push_batch takes Events, and 7 is an int"),
        (lambda: spaseq.Endpoint(7), "url: the URL of an endpoint is a str, not an int"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            call()
    with pytest.raises(SpaseqError, match="framing: 'x' is not a framing of events"):
        found([], framing="x")
    with pytest.raises(SpaseqError, match="is not the URL of a finished file"):
        found("https://example.org/stream")


def test_a_negative_lateness_and_a_bad_text() -> None:
    with pytest.raises(SpaseqError, match="lateness: a duration is not negative"):
        found([], lateness=-1)
    with pytest.raises(SpaseqError, match="is not a duration"):
        found([], lateness="soon")


def test_queries_by_path(tmp_path: Path) -> None:
    path = tmp_path / "rise.rq"
    path.write_text("\ufeff" + QUERY, encoding="utf-8")
    for given in (path, str(path)):
        (match,) = spaseq.run(given, {"s": [event(1)]})
        assert match.query == "rise"
    program = spaseq.compile([path, QUERY, path])
    assert program.names == ("rise", "query2", "rise-2")
    with pytest.raises(SpaseqError, match=r"the query .*none.rq cannot be read: No such file"):
        spaseq.compile(tmp_path / "none.rq")
    path.write_text("SELECT {")
    with pytest.raises(spaseq.QueryError, match=r"^rise:1:"):
        spaseq.compile(path)
    with pytest.raises(ArgumentError, match="names that are not empty"):
        spaseq.compile(QUERY, names=[" "])
    with pytest.raises(ArgumentError, match="names: different names are needed"):
        spaseq.compile([QUERY, QUERY], names=["a", "a"])
    with pytest.raises(SpaseqError, match="names has 2 names for 1 queries"):
        spaseq.compile(QUERY, names=["a", "b"])
    with pytest.raises(ArgumentError, match=r"names: a sequence of names is needed, as in \['a'\]"):
        spaseq.compile(QUERY, names="a")


def test_what_dir_shows() -> None:
    run = spaseq.compile(QUERY).start()
    assert {"push", "advance", "finish", "save", "stats", "why_not"} <= set(dir(run))
    assert not {"clock", "rows", "queries", "evaluation", "alone"} & set(dir(run))
    assert all(hasattr(run, name) for name in dir(run))
    assert "to_polars" in dir(spaseq.run(QUERY, {"s": []}))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("leave out --lateness", "leave out lateness"),
        ("(--lateness DURATION reorders late events)", "(lateness reorders late events)"),
        ("--max-groups (max_groups=); with --on-limit shed", 'max_groups; with on_limit="shed"'),
        ("--time-column NAME (time_column= in Python), or use --arrival-time",
         "time_column, or use arrival_time"),
        ("needs: --map NAME=MAPPING.rq (map= in Python); spaseq map --suggest f writes one",
         "needs: map; spaseq map --suggest f writes one"),
        ("--events dataset reads all, --events triples:N cuts",
         'framing="dataset" reads all, framing="triples:N" cuts'),
        ("as in --kb 'urn:g=FILE'", 'as in kb={"urn:g": "FILE"}'),
        ("for it: --kb 'urn:g=FILE' (kb= in Python)", 'for it: kb={"urn:g": "FILE"}'),
        ("--time-precision truncate or round (time_precision= in Python) accepts it",
         'time_precision="truncate" or "round" accepts it'),
        ("a--b, x -- y", "a--b, x -- y"),
    ],
)  # fmt: skip
def test_messages_name_arguments(text: str, wanted: str) -> None:
    assert python_text(text) == wanted


def test_errors_of_a_run_name_arguments(tmp_path: Path) -> None:
    path = tmp_path / "events.nq"
    path.write_bytes(text(2, 1))
    with pytest.raises(InputError, match=r"\(lateness reorders late events") as failure:
        found(str(path))
    assert "--" not in failure.value.message
    with pytest.raises(SpaseqError, match="workers 0: a run has at least one thread"):
        found([], workers=0)


@pytest.mark.parametrize("copied", [copy.deepcopy, pickle.dumps])
def test_a_run_is_not_copied(copied: Callable[[object], object]) -> None:
    run = spaseq.compile(QUERY).start()
    with pytest.raises(TypeError, match=r"a run can be neither copied nor pickled; its state can"):
        copied(run)


def test_frames_need_no_import_of_their_own() -> None:
    code = "import spaseq; print(spaseq.frames.match.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"match"

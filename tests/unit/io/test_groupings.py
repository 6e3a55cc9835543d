"""Framings of files as they are in the world: subjects, data sets, members, paths, metadata."""

from __future__ import annotations

import random
from pathlib import Path

import pyoxigraph as ox
import pytest
from reading import GENERATED, INTEGER, STREAM, Reading, at, options, quad
from subject_model import by_subject

from spaseq.errors import InputError, SpaseqError
from spaseq.io.grouping import Runs
from spaseq.io.read_options import ReadOptions
from spaseq.io.source import Source
from spaseq.io.time_path import time_path
from spaseq.rdf.native._framing import EventReader
from spaseq.rdf.native._terms import Dictionary, Relevance

SOSA = "http://www.w3.org/ns/sosa/"
TIME = "http://www.w3.org/2006/time#"
PREFIXES = f"@prefix : <e:> . @prefix sosa: <{SOSA}> . @prefix time: <{TIME}> .\n"


def plain(events: list) -> list[tuple[object, ...]]:  # type: ignore[type-arg]
    return [(e.time, e.ordinal, e.name, frozenset(e.facts)) for e in events]


# ------------------------------------------------------------ subjects


def observation(name: str, second: int, more: str = "") -> str:
    return f":{name} :value {second} ; {more} sosa:resultTime {second} .\n"


def test_a_subject_is_an_event_with_its_blank_nodes(tmp_path: Path) -> None:
    text = PREFIXES + (
        observation("a", 1, ":in [ :room [ :floor 2 ] ] ; :of [ :x 1 ] ;")
        + observation("b", 2)
        + "[] :value 3 ; sosa:resultTime 3 ; :in [ :floor 3 ] .\n"
        + observation("c", 4, ":list (1 2) ;")
    )
    read = Reading(tmp_path, text, "s.ttl", "subject")
    assert read.error == ""
    assert (read.times, read.sizes) == ([1, 2, 3, 4], [7, 2, 4, 7])
    assert read.names[:2] + read.names[3:] == ["e:a", "e:b", "e:c"]
    assert isinstance(read.events[2].name, ox.BlankNode)
    first = read.events[0]
    values = {o.value for _, p, o in first.facts if p.value == "e:floor"}
    assert values == {"2"}


def test_statements_about_blank_nodes_may_follow(tmp_path: Path) -> None:
    text = (
        f'<e:a> <{SOSA}resultTime> "1"^^{INTEGER} .\n<e:a> <e:in> _:x .\n_:x <e:p> _:y .\n'
        f'_:y <e:q> "1" .\n<e:a> <e:z> "1" .\n_:y <e:q> "2" .\n'
        f'<e:b> <{SOSA}resultTime> "2"^^{INTEGER} .\n_:o <e:p> _:p .\n'
        f'_:o <{SOSA}resultTime> "3"^^{INTEGER} .\n'
    )
    read = Reading(tmp_path, text, "s.nt", "subject")
    assert (read.times, read.sizes, read.lines) == ([1, 2, 3], [6, 1, 2], [1, 7, 8])
    kept = Source(STREAM, [read.path], options("subject"))
    kept.relevance = Relevance(Dictionary(), [(ox.NamedNode("e:q"), None)])
    batches = list(kept.batches())
    assert [b.kept(i) for b in batches for i in range(len(b))] == [2, 0, 0]
    assert [b.size(i) for b in batches for i in range(len(b))] == [6, 1, 2]


def test_a_subject_that_comes_again(tmp_path: Path) -> None:
    text = PREFIXES + observation("a", 1) + observation("b", 2) + ":a :value 7 .\n"
    read = Reading(tmp_path, text, "s.ttl", "subject")
    assert read.error.startswith(
        "FILE:4: a statement of the subject <e:a>, which began at line 2 and"
    )
    assert "blank nodes must be consecutive" in read.error
    read = Reading(tmp_path, PREFIXES + ":a :value 1 .\n", "s.ttl", "subject")
    assert read.error.startswith("FILE:2: the subject <e:a> has no timestamp: no <http")


def pending(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Let at most so many statements wait for their subject."""

    def reader(*given: object) -> EventReader:
        events = EventReader(*given)  # type: ignore[arg-type]
        events.most_pending = most
        return events

    monkeypatch.setattr("spaseq.io.source.EventReader", reader)


def test_many_roots_without_a_subject(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pending(monkeypatch, 7)
    text = PREFIXES + "".join(
        f"[] sosa:resultTime {i} ; :in [ :floor {i} ; :of [ :x 1 ] ] .\n" for i in range(30)
    )
    read = Reading(tmp_path, text, "s.ttl", "subject")
    assert (read.times, set(read.sizes)) == (list(range(30)), {5})


def test_the_model_of_subjects() -> None:
    """Trees of blank nodes below IRIs, written as a parser yields them or from the top."""
    draw = random.Random(3)
    p = ox.NamedNode("e:p")
    for _ in range(200):
        expected, statements = [], []
        for number in range(draw.randrange(1, 5)):
            root = ox.NamedNode(f"e:{number}")
            if draw.random() < 0.2:
                root = ox.BlankNode()
            own = _tree(draw, root, draw.choice(["up", "down"]), 0) or [(root, p, p)]
            expected.append((root, own))
            statements += own
        quads = [(ox.Quad(*triple), i) for i, triple in enumerate(statements)]
        found: dict[object, list[object]] = {}
        for one, _ in by_subject(quads):
            assert one is not None
            found.setdefault(one.graph_name, []).append((one.subject, one.predicate, one.object))
        assert {key: set(own) for key, own in found.items()} == {k: set(v) for k, v in expected}


def _any_statements(draw: random.Random) -> str:
    """N-Triples about a few nodes, in no order or as trees."""
    if draw.random() < 0.3:
        roots = [ox.NamedNode(f"e:{i}") for i in range(4)] + [ox.BlankNode(), ox.BlankNode()]
        draw.shuffle(roots)
        trees = [t for root in roots for t in _tree(draw, root, draw.choice(["up", "down"]), 0)]
        return "".join(f"{s} {p} {o} .\n" for s, p, o in trees)
    nodes = [f"<e:{i}>" for i in range(draw.randrange(1, 4))]
    nodes += [f"_:n{i}" for i in range(draw.randrange(8))]
    lines = []
    for _ in range(draw.randrange(60)):
        value = draw.choice([*nodes, '"a"', '"1"^^<e:t>', "<e:o>", "<<( <e:a> <e:b> _:n1 )>>"])
        lines.append(f"{draw.choice(nodes)} <e:{draw.choice('pq')}> {value} .\n")
    return "".join(sorted(lines) if draw.random() < 0.5 else lines)


@pytest.mark.parametrize("most", [10_000, 5, 1])
def test_subjects_drawn_at_random(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most: int
) -> None:
    """The compiled reader agrees with the model, read in blocks of any size."""
    draw = random.Random(most)
    for _ in range(150):
        text = _any_statements(draw)
        quads = [(quad, i) for i, quad in enumerate(ox.parse(text, format=ox.RdfFormat.N_TRIPLES))]
        graphs = "".join(f"{quad} .\n" for quad, _ in by_subject(quads, most))
        given = {"arrival_time": True, "on_error": "skip"}
        model = Reading(tmp_path, graphs, "model.nq", "graph", **given)
        with monkeypatch.context() as context:
            pending(context, most)
            context.setattr("spaseq.io.lines._FILE_BLOCK", draw.choice([1, 40, 200, 1 << 20]))
            name = draw.choice(["s.nt", "s.ttl", "s.trig", "s.nq"])
            read = Reading(tmp_path, text, name, "subject", **given)
        assert [(e.name, e.facts) for e in read.events] == [
            (e.name, e.facts) for e in model.events
        ], text
        assert len(read.log) == len(model.log), text


def test_an_error_leaves_out_what_waits_for_its_subject(tmp_path: Path) -> None:
    text = "<e:a> <e:p> <e:o> .\n_:x <e:p> <e:o> .\n<e:b> <http://www.w3.org/ns/prov#gen"
    read = Reading(tmp_path, text, "s.nt", "subject", arrival_time=True)
    assert read.error.startswith("FILE:3: not N-Triples")
    assert read.names == ["e:a"]


def _tree(draw: random.Random, root, way: str, depth: int) -> list:  # type: ignore[no-untyped-def, type-arg]
    statements = []
    for _ in range(draw.randrange(1, 4)):
        if depth < 3 and draw.random() < 0.4:
            child = ox.BlankNode()
            below = _tree(draw, child, way, depth + 1)
            link = (root, ox.NamedNode("e:q"), child)
            statements += [*below, link] if way == "up" else [link, *below]
        else:
            value = ox.Literal(str(draw.randrange(99)))
            statements.append((root, ox.NamedNode("e:p"), value))
    return statements


# ------------------------------------------------------------ data sets


def graphs(count: int) -> list[str]:
    return [
        line + "\n"
        for i in range(count)
        for line in (
            at(f"g{i}", i // 2)
            + quad(f"g{i}", f'"{i}"')
            + quad(f"g{i}", "_:b")
            + quad(f"g{i}", "_:c")
        ).splitlines()
    ]


@pytest.mark.parametrize("max_memory", [None, 1, 5000, 20_000])
@pytest.mark.parametrize("seed", range(3))
def test_a_data_set_in_any_order(tmp_path: Path, max_memory: int | None, seed: int) -> None:
    lines = graphs(60)
    expected = {key[0:1] + key[2:] for key in plain(Reading(tmp_path, "".join(lines)).events)}
    random.Random(seed).shuffle(lines)
    read = Reading(tmp_path, "".join(lines), "s.nq", "dataset", max_memory=max_memory)
    assert read.error == ""
    assert read.times == [i // 2 for i in range(60)]
    assert [event.ordinal for event in read.events] == [0, 1] * 30
    blank = {f.value for e in read.events for s, _, f in e.facts if isinstance(f, ox.BlankNode)}
    assert len(blank) == 120
    named = {(e.time, e.name, len(e.facts)) for e in read.events}
    assert named == {(t, name, len(facts)) for t, name, facts in expected}
    firsts = {}
    for number, line in enumerate(lines, 1):
        firsts.setdefault(line.split()[3 if "e:p" in line else 0].strip("<>"), number)
    assert all(line == firsts[name] for line, name in zip(read.lines, read.names, strict=True))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("format", ["nquads", "trig"])
def test_data_sets_written_by_rdflib(tmp_path: Path, format: str) -> None:
    import rdflib

    text = "".join(graphs(14)).replace("e:", "http://e.org/").replace("_:b", "_:x")
    data = rdflib.Dataset()
    data.parse(data=text, format="nquads")
    name = {"nquads": "s.nq", "trig": "s.trig"}[format]
    read = Reading(tmp_path, data.serialize(format=format), name, "dataset")
    known = Reading(tmp_path, text, "known.nq")
    assert (read.error, read.times) == ("", known.times)
    shape = [{(e.time, e.name, len(e.facts)) for e in one.events} for one in (read, known)]
    assert shape[0] == shape[1]


def test_the_files_of_a_stream_are_one_data_set(tmp_path: Path) -> None:
    (tmp_path / "a.nq").write_text(quad("g", "_:x") + at("h", 2) + "<e:s> <e:p> _:x _:n .\n")
    (tmp_path / "b.nq").write_text(
        at("g", 1) + quad("g", "_:x") + quad("h") + f'_:n {at("x", 3).split(" ", 1)[1]}'
        + "<e:s> <e:q> <e:o> _:n .\n"
    )  # fmt: skip
    files = [str(tmp_path / name) for name in ("a.nq", "b.nq")]
    with pytest.raises(InputError, match=r"a\.nq:3: the graph _:f0-n has no timestamp"):
        list(Source(STREAM, files, options("dataset")))
    events = list(Source(STREAM, files, options("dataset", on_error="skip")))
    assert [e.time.micros // 10**6 for e in events] == [1, 2, 3]
    assert [len(e.facts) for e in events] == [2, 1, 1]


def test_timestamps_inside_and_two_of_them(tmp_path: Path) -> None:
    inside = f'<e:s> <{SOSA}resultTime> "{{}}"^^{INTEGER} <e:{{}}> .\n'
    text = quad("a") + quad("b") + inside.format(2, "a") + inside.format(1, "b")
    read = Reading(tmp_path, text, "s.nq", "dataset", time_predicate=SOSA + "resultTime")
    assert (read.names, read.times, read.sizes) == (["e:b", "e:a"], [1, 2], [2, 2])
    read = Reading(tmp_path, quad("b") + text, "s.nq", "dataset")
    assert read.error.startswith(
        "FILE:1: the graph <e:b> has no timestamp: no triple <graph> <http"
    )
    two = quad("a") + at("a", 1) + at("b", 1) + at("a", 2)
    read = Reading(tmp_path, two, "s.nq", "dataset", on_error="skip")
    assert (read.names, len(read.log)) == (["e:b"], 1)
    assert "s.nq:1: an event with two timestamps" in read.log[0]
    terms = "_:b <e:p> <<( _:b <e:b> <<( _:c <e:p> _:b )>> )>> <e:g> .\n" + at("g", 1)
    ((node, _, term),) = Reading(tmp_path, terms, "s.nq", "dataset").events[0].facts
    assert term.subject == term.object.object == node != term.object.subject
    assert "no event in this file" in Reading(tmp_path, "<e:a> <e:b> 1 .", "s.ttl", "dataset").error


def test_graph_framing_hints_at_data_sets(tmp_path: Path) -> None:
    text = quad("a") + quad("b") + quad("a")
    for given in ({}, {"time_predicate": SOSA + "resultTime"}):
        read = Reading(tmp_path, text, **given)  # type: ignore[arg-type]
        assert "--events dataset" in read.error


def test_runs_on_disk_are_merged_in_order() -> None:
    runs = Runs()
    for run in range(150):  # more than are merged at once
        runs.write([(b"%d" % name, b"%d" % run) for name in range(run % 7, 9, 3)])
    merged = list(runs.merged())
    assert [name for name, _ in merged] == sorted(name for name, _ in merged)
    for name in range(9):
        order = [int(blob) for key, blob in merged if key == b"%d" % name]
        assert order == [run for run in range(150) if name in range(run % 7, 9, 3)]
    runs.close()


def _any_data_set(draw: random.Random) -> str:
    """N-Quads in no order; some graphs have no time, two times, or none that can be read."""
    nodes = ["<e:a>", "<e:b>", "_:x", "_:y", "<e:g1>", "_:g"]
    graphs = [f"<e:g{i}>" for i in range(6)] + ["_:g", "_:h"]
    lines = []
    for graph in graphs:
        for _ in range(draw.choice([0, 1, 1, 1, 2])):
            strange = draw.random() < 0.1
            time = "<<( <e:a> <e:b> <e:c> )>>" if strange else f'"{draw.randrange(4)}"^^{INTEGER}'
            lines.append(f"{graph} {GENERATED} {time} .\n")
    for _ in range(draw.randrange(40)):
        literals = ['"a\\"\\n"@en', '"1.5"^^<e:t>', f'"{draw.randrange(4)}"^^{INTEGER}']
        value = draw.choice([*nodes, *literals])
        if draw.random() < 0.2:
            lines.append(f"{draw.choice(graphs)} <e:p> {value} .\n")
            continue
        predicate = draw.choice(["<e:p>", "<e:q>", GENERATED, f"<{SOSA}resultTime>"])
        lines.append(f"{draw.choice(nodes)} {predicate} {value} {draw.choice(graphs)} .\n")
    draw.shuffle(lines)
    return "".join(lines)


def _graphs_alone(text: str, timing: set[str], metadata: bool) -> dict[object, str]:
    """The quads of each graph, after those of the default graph about it that matter."""
    about: dict[object, list[str]] = {}
    inside: dict[object, list[str]] = {}
    for s, p, o, g in ox.parse(text, format=ox.RdfFormat.N_QUADS):
        line = f"{ox.Quad(s, p, o, g)} .\n"
        if g != ox.DefaultGraph():
            inside.setdefault(g, []).append(line)
        elif metadata or str(p) in timing:
            about.setdefault(s, []).append(line)
    return {
        name: "".join(about.get(name, []) + inside.get(name, []))
        for name in dict.fromkeys([*about, *inside])
    }


@pytest.mark.parametrize(
    "given",
    [{}, {"event_metadata": True}, {"time_predicate": SOSA + "resultTime"},
     {"time_predicate": f"<e:q>/<{SOSA}resultTime>"}],
    ids=["plain", "metadata", "predicate", "path"],
)  # fmt: skip
def test_data_sets_drawn_at_random(tmp_path: Path, given: dict[str, object]) -> None:
    """Each graph alone, under `graph`, gives the same event; on disk and in memory."""
    draw = random.Random(len(given))
    named = given.get("time_predicate", GENERATED[1:-1])
    for _ in range(60):
        text = _any_data_set(draw)
        path = tmp_path / "s.nq"
        path.write_text(text)
        kept = draw.choice([None, [(ox.NamedNode("e:q"), None)], []])
        shown = []
        for max_memory in (None, 1, 4000):
            source = Source(
                STREAM, [str(path)],
                options("dataset", on_error="skip", max_memory=max_memory, **given),
                log=lambda _: None, relevance=kept and Relevance(Dictionary(), kept),
            )  # fmt: skip
            shown.append([(e.time, e.ordinal, e.name, e.origin, tuple(e.facts)) for e in source])
        assert shown[0] == shown[1] == shown[2], text
        if kept is not None:
            continue
        expected = []
        for quads in _graphs_alone(text, {f"<{named}>"}, "event_metadata" in given).values():
            alone = Reading(tmp_path, quads, "alone.nq", "graph", on_error="skip", **given)
            expected += [(e.time.micros, len(e.facts)) for e in alone.events]
        assert sorted(expected) == sorted((e[0].micros, len(e[4])) for e in shown[0]), text
        times = [event[0].micros for event in shown[0]]
        assert times == sorted(times)


# ------------------------------------------------------------ members

LDES = PREFIXES + (
    "@prefix tree: <https://w3id.org/tree#> . @prefix ldes: <https://w3id.org/ldes#> .\n"
    "@prefix prov: <http://www.w3.org/ns/prov#> .\n"
    ":c a ldes:EventStream ; ldes:timestampPath :at ; tree:member :m2, :m1, [ :at 3 ; :v 3 ] .\n"
    ":m1 :at 1 ; :v [ :w [ :x 1 ] ] ; :next :m2 . :other :at 9 .\n"
    ":m2 :at 2 ; :v _:shared ; prov:generatedAtTime 7 . _:shared :x 1 .\n"
)


@pytest.mark.parametrize("name", ["s.ttl", "s.trig"])
def test_members(tmp_path: Path, name: str) -> None:
    more = ":m1 { :m1 :y 5 . :s :y 6 }\n" if name == "s.trig" else ""
    read = Reading(tmp_path, LDES + more, name, "member")
    assert read.error == ""
    assert (read.times, read.lines) == ([1, 2, 3], [4, 4, 4])
    assert read.sizes == [5 + 2 * bool(more), 4, 2]
    assert read.names[:2] == ["e:m1", "e:m2"]
    assert read.source.counters.unused == 3
    prov = Reading(tmp_path, LDES, "s.ttl", "member", on_error="skip",
                   time_predicate="prov:generatedAtTime")  # fmt: skip
    assert (prov.times, len(prov.log)) == ([7], 2)


def test_members_that_cannot_be_read(tmp_path: Path) -> None:
    missing = Reading(tmp_path, LDES + ":c tree:member :gone .\n", "s.ttl", "member")
    assert missing.error == "FILE:7: the member <e:gone> has no statements in the files"
    assert (
        "is not an IRI" in Reading(tmp_path, LDES + ":c tree:member 1 .", "s.ttl", "member").error
    )
    read = Reading(tmp_path, LDES, "s.ttl", "member", max_memory=500)
    assert "take more than 500 bytes (--max-memory)" in read.error
    assert (
        "it has no tree:member"
        in Reading(tmp_path, PREFIXES + ":a :b 1 .", "s.ttl", "member").error
    )


# ------------------------------------------------------------ paths to the time


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("http://e.org/a/b", [("http://e.org/a/b", False)]),
        ("<http://e.org/a/b>", [("http://e.org/a/b", False)]),
        ("prov:generatedAtTime", [("http://www.w3.org/ns/prov#generatedAtTime", False)]),
        ("urn:x:y", [("urn:x:y", False)]),
        ("sosa:a/time:b", [(SOSA + "a", False), (TIME + "b", False)]),
        ("^<e:a>/sosa:b/^time:c", [("e:a", True), (SOSA + "b", False), (TIME + "c", True)]),
    ],
)
def test_the_text_of_a_path(text: str, steps: list[tuple[str, bool]]) -> None:
    assert list(time_path(text)) == steps


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a b", "is not an IRI"),
        ("<e:a>/", "is not a path of predicates: at ''"),
        ("<e:a>|<e:b>", "is not a path of predicates: at '|<e:b>'"),
        ("^foo:a", "the prefix foo: is not known"),
        ("/".join(["<e:a>"] * 9), "more than 8 steps"),
    ],
)
def test_texts_that_are_no_path(text: str, said: str) -> None:
    with pytest.raises(SpaseqError, match="--time-predicate: ") as error:
        ReadOptions(time_predicate=text)
    assert said in str(error.value)


PATH = "sosa:phenomenonTime/time:inXSDDateTimeStamp"


def timed(graph: str, second: int, open: str = "") -> str:
    return (
        f"<e:o{graph}> <{SOSA}phenomenonTime> _:t <e:{graph}> .\n"
        f'<e:o{graph}> <e:v> "{second}" <e:{graph}> .\n'
        f'_:t <{TIME}inXSDDateTimeStamp> "{second}"^^{INTEGER} <e:{graph}> .\n'
        f'<e:x> <{TIME}inXSDDateTimeStamp> "99"^^{INTEGER} <e:{graph}> .\n'
    )


@pytest.mark.parametrize("kept", [None, "e:v", "e:none"])
@pytest.mark.parametrize("events", ["graph", "dataset"])
def test_a_time_at_the_end_of_a_path(tmp_path: Path, events: str, kept: str | None) -> None:
    text = "".join(timed(f"g{i}", i) for i in range(9))
    read = Reading(tmp_path, text, "s.nq", events, time_predicate=PATH)
    assert (read.times, read.sizes, read.error) == (list(range(9)), [4] * 9, "")
    source = Source(STREAM, [read.path], options(events, time_predicate=PATH))
    used = None if kept is None else [(ox.NamedNode(kept), None)]
    source.relevance = Relevance(Dictionary(), used)
    batches = list(source.batches())
    assert [b.micros(i) for b in batches for i in range(len(b))] == [i * 10**6 for i in range(9)]
    counts = [b.kept(i) for b in batches for i in range(len(b))]
    assert counts == [{None: 4, "e:v": 1, "e:none": 0}[kept]] * 9
    assert source.counters.statements == 36


def test_inverse_steps_messages_and_subjects(tmp_path: Path) -> None:
    path = f"^<e:about>/<{TIME}at>"
    text = "".join(
        f'_:m <e:about> <e:x> .\n_:m <{TIME}at> "{i}"^^{INTEGER} .\nMESSAGE\n' for i in range(5)
    )
    read = Reading(tmp_path, 'VERSION "1.1-messages"\n' + text, time_predicate=path)
    assert (read.times, read.error) == ([0, 1, 2, 3, 4], "")
    text = PREFIXES + ":a sosa:phenomenonTime [ time:inXSDDateTimeStamp 4 ] ; :v 1 .\n"
    read = Reading(tmp_path, text, "s.ttl", "subject", time_predicate=PATH)
    assert (read.times, read.sizes) == ([4], [3])
    triples = timed("g", 3).replace(" <e:g> .", " .")
    assert Reading(tmp_path, triples, "s.nt", "triples:4", time_predicate=PATH).times == [3]


def test_paths_that_lead_nowhere_or_to_two_times(tmp_path: Path) -> None:
    read = Reading(tmp_path, quad("g"), time_predicate=PATH)
    assert f"no <{SOSA}phenomenonTime>/<{TIME}inXSDDateTimeStamp> among its triples" in read.error
    two = timed("g", 1) + timed("g", 2)
    assert "an event with two timestamps" in Reading(tmp_path, two, time_predicate=PATH).error
    for events, text in (("triples:1", "<e:a> <e:b> <e:c> .\n"), ("message", quad("g"))):
        read = Reading(tmp_path, text, "s.nq", events, time_predicate=PATH)
        assert "without a timestamp" in read.error


def test_long_paths_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.io.lines._FILE_BLOCK", 64)
    text = "".join(timed(f"g{i}", i) for i in range(20))
    assert Reading(tmp_path, text, time_predicate=PATH).times == list(range(20))


# ------------------------------------------------------------ names again, metadata


def test_graph_names_that_are_used_again(tmp_path: Path) -> None:
    before = at("g", 1) + quad("g") + at("g", 2) + quad("g") + quad("g", "<e:x>") + at("h", 2)
    after = quad("g") + at("g", 1) + quad("g") + quad("g", "<e:x>") + at("g", 2) + at("h", 2)
    for text in (before, after):
        read = Reading(tmp_path, text, reuse_graph_names=True)
        assert (read.times, read.sizes, read.names) == ([1, 2, 2], [1, 2, 0], ["e:g", "e:g", "e:h"])
        assert Reading(tmp_path, text).error
    both = at("g", 1) + quad("g") + at("g", 1) + quad("g")
    assert "has no timestamp" in Reading(tmp_path, both, reuse_graph_names=True).error
    for name in ("mon.nq", "tue.nq"):
        (tmp_path / name).write_text(at("g", 1 if name == "mon.nq" else 11) + quad("g"))
    files = [str(tmp_path / name) for name in ("mon.nq", "tue.nq")]
    assert len(list(Source(STREAM, files, options(reuse_graph_names=True)))) == 2
    blank = at("g", 1).replace("<e:g>", "_:g") + "<e:s> <e:p> <e:o> _:g .\n"
    text = blank + at("h", 1) + blank.replace('"1"', '"2"')
    assert "already complete" in Reading(tmp_path, text, reuse_graph_names=True).error


def about(graph: str, value: str) -> str:
    return f'<e:{graph}> <e:quality> "{value}" .\n'


def test_metadata_is_part_of_the_event(tmp_path: Path) -> None:
    orders = [
        about("a", "1") + at("a", 1) + quad("a"),
        at("a", 1) + about("a", "1") + quad("a"),
        quad("a") + at("a", 1) + about("a", "1"),
        quad("a") + about("a", "1") + at("a", 1),
    ]
    other = "<e:sensor> <e:label> <e:o> .\n"
    for text in orders:
        text += (
            other + at("b", 2) + quad("b") + about("b", "2") + other + at("c", 3) + about("c", "3")
        )
        for events in ("graph", "dataset"):
            read = Reading(tmp_path, text, "s.nq", events, event_metadata=True)
            assert read.error == ""
            assert (read.times, read.sizes) == ([1, 2, 3], [2, 2, 1])
            values = [o.value for e in read.events for _, p, o in e.facts if p.value == "e:quality"]
            assert values == ["1", "2", "3"]
            assert read.source.counters.unused == 2
        assert Reading(tmp_path, text).sizes == [1, 1, 0]


def test_metadata_across_blocks_and_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.io.lines._FILE_BLOCK", 64)
    text = "".join(about(f"g{i}", str(i)) + at(f"g{i}", i) + quad(f"g{i}") for i in range(20))
    read = Reading(tmp_path, text, event_metadata=True)
    assert read.sizes == [2] * 20
    source = Source(STREAM, [read.path], options(event_metadata=True))
    source.relevance = Relevance(Dictionary(), [(ox.NamedNode("e:quality"), None)])
    kept = [b.facts(i) for b in source.batches() for i in range(len(b))]
    assert [[str(o) for _, _, o in facts] for facts in kept] == [[f'"{i}"'] for i in range(20)]


def test_options_that_exclude_each_other() -> None:
    for given, said in (
        ({"reuse_graph_names": True, "event_metadata": True}, "cannot be used together"),
        ({"events": "subject", "reuse_graph_names": True}, "is for --events graph"),
        ({"events": "message", "event_metadata": True}, "is for --events graph and dataset"),
        ({"events": "dataset", "lateness": 1}, "leave out --lateness"),
    ):
        with pytest.raises(SpaseqError, match=said):
            options(**given)  # type: ignore[arg-type]

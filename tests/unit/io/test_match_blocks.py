"""Compiled writers of matches: the bytes of the writers in Python, and delivery without delay."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pyoxigraph as ox
import pytest

from spaseq.io.native._match_blocks import BlockMaker
from spaseq.io.sinks import Sink, open_sink
from spaseq.io.source import Source
from spaseq.pipeline import merged, pump, shapes
from spaseq.plan import templates
from spaseq.program import Program, compile_queries
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Term
from spaseq.rdf.time import from_micros

XSD = "http://www.w3.org/2001/XMLSchema#"
SPASEQ = "http://w3id.org/spaseq/ontology#"
STREAM = "http://example.org/s"
FORMATS = ("jsonl", "csv", "tsv", "srj", "nquads", "trig", "messages")
PATTERNS = {
    "A": "DEFINE GPM A ON s { ?a :p ?x } ",
    "B": "DEFINE GPM B ON s { ?b :q ?y OPTIONAL { ?b :r ?z } } ",
}


def query(select: str, sequence: str, tail: str = "", form: str = "SELECT") -> str:
    gpms = "".join(text for name, text in PATTERNS.items() if name in sequence)
    window = "" if "WITHIN" in tail else "WITHIN 100 SECONDS "
    return (
        f"PREFIX : <http://example.org/> {form} {select} {window}"
        f"FROM STREAM s <{STREAM}> WHERE {{ SEQ({sequence}) {gpms} }} {tail}"
    )


QUERIES = (
    query("?a ?x ?y ?z", "A : B"),
    query("?z ?b", "B"),
    query("?x ?y", "A ; B? ; A"),
    query("?x ?a", "A ; !B", "WITHIN 2 SECONDS"),
    query("?x ?z", "A ; B?", "WITHIN 2 SECONDS"),
    query("?a ?x", "A ; !B WITHIN 1 SECOND"),
    query("?x ?y ?z", "(A AND B)", "WITHIN 3 SECONDS"),
    query("?b ?x", "A : B", "EMIT LAST"),
    query("?b ?x", "A : B+", "EMIT MAX WITHIN 5 SECONDS"),
    query("?b ?x", "A : B", "LIMIT 2"),
    query("DISTINCT ?z ?x", "A : B"),
    query("?b ?x", "A : B", "LIMIT 2 PER ?x EVERY 1 SECOND"),
    query("?y (COALESCE(?z, ?b) AS ?v) (STRLEN(?x) AS ?n)", "A : B"),
    query("?a (COUNT(B) AS ?n) (GROUP_CONCAT(?y) AS ?v)", "A : B+", "WITHIN 1 SECOND"),
)
GRAPHS = (
    query("{ ?a :of ?x . _:one :z ?z ; :y ?y }", "A : B", form="CONSTRUCT"),
    query("{ ?z :of ?x }", "A : B", "LIMIT 1 PER ?a", form="CONSTRUCT"),
    query("", "A : B", form="ASK"),
    query("", "A ; !B", "WITHIN 2 SECONDS LIMIT 1 EVERY 2 SECONDS", form="ASK"),
)
"""Queries whose matches are no rows."""
LETTERS = [chr(i) for i in range(0x21)] + list('"\\,;<>&\x7fab\u0085é\u2028\ufeff\ufffe\uffff😀')


def lexical(draw: random.Random) -> str:
    some = draw.choices(LETTERS, k=draw.choice((0, 1, 3, 20)))
    return "".join(some) + "plain, and long enough" * draw.randrange(2)


def term(draw: random.Random) -> Term:
    kind = draw.randrange(9)
    if kind == 0:
        return ox.Literal(lexical(draw))
    if kind == 1:
        direction = draw.choice((None, ox.BaseDirection.RTL))
        return ox.Literal(lexical(draw), language=draw.choice(("en", "de-ch")), direction=direction)
    if kind == 2:
        return ox.Literal(draw.choice(("7", "-12", "007", "123456789012")), datatype=xsd("integer"))
    if kind == 3:
        return ox.Literal(draw.choice(("1.50", "-0.25")), datatype=xsd("decimal"))
    if kind == 4:
        name = draw.choice((XSD + "date", XSD, XSD + "a-b", XSD + "é", "urn:t", SPASEQ + "Match"))
        return ox.Literal(lexical(draw), datatype=ox.NamedNode(name))
    if kind == 5:
        local = draw.choice(("", "Match", "x1", "é", "a/b"))
        return ox.NamedNode(SPASEQ + local)
    if kind == 6:
        return ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    return ox.BlankNode() if kind == 7 else ox.NamedNode(f"http://example.org/{draw.random()}")


def xsd(name: str) -> ox.NamedNode:
    return ox.NamedNode(XSD + name)


def drawn_events(draw: random.Random, count: int) -> list[Event]:
    """Events in order, of one domain of time, with values of every kind."""
    domain = draw.choice((NUMBER, DATE_TIME))
    micros = draw.choice((-5_000_000, 0, 1_767_225_600_123_456, -62_200_000_000_000_000))
    events, ordinal = [], -1
    for _ in range(count):
        step = draw.choice((0, 1, 1_000_000, 250_000))
        micros, ordinal = micros + step, 0 if step else ordinal + 1
        facts = []
        for name in draw.sample("pqr", k=draw.randrange(1, 4)):
            subject = draw.choice((ox.BlankNode("b"), ox.NamedNode(SPASEQ + "graph")))
            facts.append((subject, ox.NamedNode(f"http://example.org/{name}"), term(draw)))
        name = draw.choice((None, ox.NamedNode(f"urn:e:{micros}"), ox.NamedNode(SPASEQ + "e")))
        events.append(Event(STREAM, from_micros(micros, domain), ordinal, tuple(facts), name))
    return events


def written(
    program: Program, events: Sequence[Event], format: str, limit: int | None, natively: bool
) -> tuple[bytes, bool]:
    """What a sink wrote, and whether compiled code formatted it."""
    run = program.start()
    file = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", SimpleNamespace(buffer=file))
        if not natively:
            patch.setattr(Sink, "format_natively", lambda *_: None)
        with open_sink(format, shapes(program)) as sink:
            pump(run, events, sink, batch=7, limit=limit)
    return file.getvalue(), all(isinstance(q.native.matches, BlockMaker) for q in run.queries)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("format", FORMATS)
def test_both_writers_write_the_same_bytes(format: str, seed: int) -> None:
    draw = random.Random(f"{format} {seed}")
    tables = format in ("csv", "tsv", "srj")
    chosen = draw.sample(QUERIES if tables else QUERIES + GRAPHS, k=1 if tables else 3)
    program = compile_queries(chosen, names=[f'q {i}é"' for i, _ in enumerate(chosen)])
    events = drawn_events(draw, 30)
    limit = draw.choice((None, None, 1, 10))
    native, was_native = written(program, events, format, limit, True)
    plain, was_plain = written(program, events, format, limit, False)
    assert (was_native, was_plain) == (True, False)
    assert native == plain


OTHER = "http://example.org/r"


def over_both(select: str, sequence: str, tail: str = "") -> str:
    """A query over two streams, whose simultaneous events wait for each other."""
    text = query(select, sequence, tail).replace(" ON s ", " ON s, r ")
    return text.replace(" WHERE ", f" FROM STREAM r <{OTHER}> WHERE ", 1)


MANY = (
    *QUERIES,
    query("DISTINCT ?x", "A"),
    query("?x", "A", "LIMIT 1"),
    query("(STR(?x) AS ?v)", "A"),
    query("?x ?y", "A : B", "AFTER MATCH SKIP PAST LAST EVENT"),
    over_both("?x ?y", "A ; B"),
    over_both("?x ?z", "B : A", "AFTER MATCH SKIP PAST LAST EVENT"),
    over_both("DISTINCT ?x", "A"),
    query("?x", "A ; !B", "EMIT ANY WITHIN 2 SECONDS"),
    over_both("?x", "A | A"),
    query("?x", "A ; !B", "AFTER MATCH SKIP TO NEXT WITHIN 2 SECONDS"),
    over_both("?x", "A ; !B", "AFTER MATCH SKIP PAST LAST EVENT WITHIN 2 SECONDS"),
)

OF_OBJECTS = MANY[-2:]


def written_file(path: Path, draw: random.Random, events: Sequence[Event]) -> Path:
    """Some of the events as N-Quads, each with a graph of its own."""
    quads = []
    time = ox.NamedNode("http://www.w3.org/ns/prov#generatedAtTime")
    for number, one in enumerate(events):
        if draw.random() < 0.4:
            continue
        graph = ox.NamedNode(f"urn:g:{path.stem}:{number}")
        quads.append(ox.Quad(graph, time, one.time.term))
        quads += [ox.Quad(s, p, o, graph) for s, p, o in one.facts]
    path.write_bytes(ox.serialize(quads, format=ox.RdfFormat.N_QUADS) or b"")
    return path


def written_from_files(
    program: Program, paths: Sequence[Path], format: str, limit: int | None, natively: bool
) -> tuple[bytes, bool]:
    """What a sink wrote of the matches of files, and whether compiled code formatted some."""
    run = program.start()
    file = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", SimpleNamespace(buffer=file))
        if not natively:
            patch.setattr(Sink, "format_natively", lambda *_: None)
        sources = [
            Source(iri, [str(path)], number=number, relevance=run.relevance)
            for number, (iri, path) in enumerate(zip(program.streams, paths, strict=False))
        ]
        with open_sink(format, shapes(program)) as sink:
            pump(run, merged(run, program.streams, sources, "close"), sink, limit=limit)
    return file.getvalue(), any(isinstance(q.native.matches, BlockMaker) for q in run.queries)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("format", FORMATS)
def test_several_queries_are_written_in_the_order_of_their_matches(
    format: str, seed: int, tmp_path: Path
) -> None:
    draw = random.Random(f"several {format} {seed}")
    most = 1 if format in ("csv", "tsv", "srj") else 5
    chosen = draw.choices(MANY, k=draw.randint(min(most, 2), most))  # with equal ones
    program = compile_queries(chosen, names=[f'q {i}é"' for i, _ in enumerate(chosen)])
    events = drawn_events(draw, 60)
    paths = [written_file(tmp_path / f"{iri[-1]}.nq", draw, events) for iri in program.streams]
    limit = draw.choice((None, None, 1, 10, 25))
    native, was_native = written_from_files(program, paths, format, limit, True)
    plain, was_plain = written_from_files(program, paths, format, limit, False)
    assert was_native == any(one in chosen for one in set(MANY) - set(OF_OBJECTS))
    assert not was_plain
    assert native == plain


SHARED = (
    ("?x", "?x ?y", "?y ?a", "?b ?x ?y ?a"),  # what they select
    tuple(f"FILTER(?x > {n})" for n in range(0, 12, 2)),
    tuple(f"FILTER(?x > {n} && ?x <= {20 - n})" for n in range(5)),
    tuple(f"FILTER(?a = :s{n} && ?x > 3)" for n in range(3)),
)
"""Sets of queries that are evaluated as one, by what differs."""


def of_set(differs: str, draw: random.Random) -> str:
    if differs.startswith("?"):
        return query(differs, "A : B")
    text = query(draw.choice(("?x ?y", "?a ?y")), "A : B").replace(":p ?x", f":p ?x {differs}")
    subject = differs.partition("=")[2].partition("&&")[0] if "?a =" in differs else "?b"
    return text.replace("?b :q ?y", f"?b :q ?y FILTER(?b = {subject})")


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("format", [f for f in FORMATS if f not in ("csv", "tsv", "srj")])
def test_queries_that_are_evaluated_as_one_are_written_in_the_order_of_their_matches(
    format: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(templates, "LEAST", 2)
    draw = random.Random(f"shared {format} {seed}")
    sets = draw.sample(SHARED, 2)
    chosen = [of_set(differs, draw) for some in sets for differs in some]
    chosen += draw.sample(QUERIES, 1)
    draw.shuffle(chosen)
    events, micros = [], 0
    for _ in range(30):
        step = draw.choice((0, 1_000_000))
        ordinal, micros = 0 if step or not events else events[-1].ordinal + 1, micros + step
        facts = [
            (
                ox.NamedNode(f"http://example.org/s{draw.randrange(3)}"),
                ox.NamedNode(f"http://example.org/{draw.choice('pq')}"),
                ox.Literal(draw.randrange(16)),
            )
            for _ in range(draw.randrange(1, 5))
        ]
        events.append(Event(STREAM, from_micros(micros, NUMBER), ordinal, tuple(set(facts))))
    program = compile_queries(chosen, names=[f'q {i}é"' for i, _ in enumerate(chosen)])
    divisions = program.start().evaluation.listed.divisions
    assert divisions
    paths = [written_file(tmp_path / "s.nq", draw, events)]
    limit = draw.choice((None, None, 10, 25))
    native, _ = written_from_files(program, paths, format, limit, True)
    plain, _ = written_from_files(program, paths, format, limit, False)
    assert native == plain
    assert native


def test_makers_write_the_matches_of_queries_that_are_evaluated_as_one(tmp_path: Path) -> None:
    texts = [query(columns, "A : B") for columns in ("?x", "?y")]
    program = compile_queries(texts, names=["one", "two"])
    run = program.start()
    path = written_file(tmp_path / "s.nq", random.Random(1), [event(n) for n in range(20)])
    made: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", SimpleNamespace(buffer=io.BytesIO()))
        patch.setattr(Sink, "write", lambda _, match: made.append(match))
        sources = [Source(STREAM, [str(path)], number=0, relevance=run.relevance)]
        with open_sink("jsonl", shapes(program)) as sink:
            pump(run, merged(run, program.streams, sources, "close"), sink)
    assert list(run.evaluation.listed.divisions) == [0]
    events = run.stats["events"]
    assert made == []
    assert sink.written == run.stats["matches"] == events * (events - 1)


def event(second: int) -> Event:
    facts = tuple(
        (ox.NamedNode("urn:a"), ox.NamedNode(f"http://example.org/{name}"), ox.Literal(second))
        for name in "pq"
    )
    return Event(STREAM, from_micros(second * 10**6, NUMBER), 0, facts)


@pytest.mark.parametrize("format", FORMATS)
def test_a_match_is_written_before_the_next_batch_is_read(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compile_queries(query("?x", "A ; B"))
    file = io.BytesIO()
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=file))
    sizes: list[int] = []

    def live() -> Iterator[Event]:
        for second in range(4):
            sizes.append(len(file.getvalue()))
            yield event(second)

    with open_sink(format, shapes(program), live=True) as sink:
        pump(program.start(), live(), sink, batch=1)
        assert sink.written == 3
    assert sizes[0] == sizes[1] < sizes[2] < sizes[3] < len(file.getvalue())


def test_large_results_are_written_in_blocks_of_bounded_size() -> None:
    sizes: list[int] = []

    class File(io.BytesIO):
        def write(self, data: bytes) -> int:  # type: ignore[override]
            sizes.append(len(data))
            return len(data)

    program = compile_queries(query("?x ?y", "A : B"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", SimpleNamespace(buffer=File()))
        with open_sink("nquads", shapes(program)) as sink:
            pump(program.start(), [event(second) for second in range(60)], sink)
    assert sink.written == 60 * 59 // 2
    assert len(sizes) > 10
    assert max(sizes) < 60 * 10_000


@pytest.mark.parametrize(
    ("text", "native"),
    [
        (query("?x", "A"), True),
        (query("DISTINCT ?x", "A"), True),
        (query("?x", "A", "LIMIT 1"), True),
        (query("?x", "A", "LIMIT 1 PER ?a EVERY 2 SECONDS"), True),
        (query("?x", "A ; !B"), True),
        (query("?x", "A ; !B", "EMIT ANY"), True),
        (query("?x", "A ; !B", "AFTER MATCH SKIP TO NEXT"), False),
        (query("?x", "A | A"), True),
        (query("?x (COUNT(*) AS ?n)", "A", "GROUP BY ?x"), False),
        (query("(?x + 1 AS ?v)", "A"), True),
        (query("", "A", form="ASK"), True),
        (query("{ ?a :is ?x }", "A", form="CONSTRUCT"), True),
    ],
)
def test_which_queries_are_written_from_objects(text: str, native: bool) -> None:
    data, was_native = written(compile_queries(text), [event(1), event(2)], "jsonl", None, True)
    assert was_native == native
    assert data.count(b"\n") >= 1


def test_queries_of_both_kinds_are_written_in_their_order() -> None:
    program = compile_queries([QUERIES[0], query("?x", "A ; !B", "AFTER MATCH SKIP TO NEXT")])
    events = [event(second) for second in range(5)]
    native, _ = written(program, events, "jsonl", None, True)
    plain, _ = written(program, events, "jsonl", None, False)
    assert native == plain
    assert native.count(b"\n") > 5


NUMERALS = (
    "1", "+1", "-07", "", "+", "1.5", ".5", "-.5", "1.", ".", "1e3", "1E-3", "1.e5", ".5e+0", "e5",
    "1e", "1e+", "1.5.5", "NaN", "INF", " 1", "1\n", "1٣",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["integer", "decimal", "double", "float", "int", "integers", ""])
def test_tsv_has_the_numbers_of_turtle_without_quotes(kind: str) -> None:
    terms = [ox.Literal(text, datatype=xsd(kind)) for text in NUMERALS]
    facts = [(ox.BlankNode("a"), ox.NamedNode("http://example.org/p"), term) for term in terms]
    events = [Event(STREAM, from_micros(i, NUMBER), 0, (fact,)) for i, fact in enumerate(facts)]
    program = compile_queries(query("?x", "A"))
    native, was_native = written(program, events, "tsv", None, True)
    assert was_native
    assert native == written(program, events, "tsv", None, False)[0]
    solutions = ox.parse_query_results(native, format=ox.QueryResultsFormat.TSV)
    assert isinstance(solutions, ox.QuerySolutions)
    assert [solution["x"] for solution in solutions] == terms
    plain = sum(not row.startswith(b'"') for row in native.splitlines()[1:])
    assert plain == {"integer": 3, "decimal": 3, "double": 4}.get(kind, 0)


@pytest.mark.parametrize("format", ["csv", "tsv", "srj"])
def test_the_first_value_can_be_empty(format: str) -> None:
    fact = (ox.NamedNode("urn:a"), ox.NamedNode("http://example.org/p"), ox.Literal(""))
    events = [Event(STREAM, from_micros(second, NUMBER), 0, (fact,)) for second in range(2)]
    program = compile_queries(query("?x", "A"))
    native, was_native = written(program, events, format, None, True)
    assert was_native
    assert native == written(program, events, format, None, False)[0]
    assert native.count(b"\n") > 2

"""Entailment over a knowledge base that changes, and over one that is not held here."""

from __future__ import annotations

import pickle
from pathlib import Path
from urllib.parse import unquote

import pyoxigraph as ox
import pytest
from endpoints import RealServer

import spaseq
from spaseq.errors import KbError, LimitExceeded
from spaseq.io.source import Source
from spaseq.kb import closure
from spaseq.kb.snapshot import open_kb

EX = "http://example.org/"
KB, STREAM = EX + "kb", EX + "S"
PREFIXES = f"PREFIX : <{EX}> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
HEAD = f"{PREFIXES} SELECT * WITHIN 1 HOUR FROM STREAM S :S "
OF_CLASS = HEAD + "WHERE { SEQ(A) DEFINE GPM A ON S { ?x a :Source } }"
TWO_STEPS = (
    f"{HEAD} WHERE {{ SEQ(A ; B) DEFINE GPM A ON S {{ ?x a :Source }} "
    "DEFINE GPM B ON S { ?x :feeds ?y GRAPH :kb { ?y a ?c } } }"
)
PLAIN = TWO_STEPS.replace("?x :feeds ?y", "?x :feeds ?y FILTER EXISTS { ?x :feeds|:none ?y }")
"""`EXISTS` at the top reads the events themselves; a path runs in Python."""
PANELS = ":Panel rdfs:subClassOf :Source . :feedsNow rdfs:subPropertyOf :feeds . :g a :Grid ."
PLANTS = ":Plant rdfs:subClassOf :Source . :feeds2 rdfs:subPropertyOf :feeds . :g a :Net ."
BAD_CHAIN = ":p <http://www.w3.org/2002/07/owl#propertyChainAxiom> (:a :b :c) ."


def triples(text: str) -> list[ox.Triple]:
    return [quad.triple for quad in ox.parse(PREFIXES + text, format=ox.RdfFormat.TURTLE)]


def push(run: spaseq.Run, time: int, text: str) -> list[str]:
    """What one event completes, in short."""
    return [
        " ".join(f"{name}={term.value.removeprefix(EX)}" for name, term in m.bindings.items())
        for m in run.push(STREAM, time, triples(text + " ."))
    ]


# ------------------------------------------------------------------ another version


@pytest.mark.parametrize("query", [TWO_STEPS, PLAIN], ids=["compiled", "plain"])
def test_a_new_schema_is_in_force_from_the_next_event_on(query: str) -> None:
    run = spaseq.compile(query).start(kb={KB: triples(PANELS)}, entail="rdfs")
    push(run, 1, ":p a :Panel")
    assert push(run, 2, ":q a :Plant ; :feedsNow :g") == []
    assert run.kb.replace({KB: triples(PLANTS)}) == 2
    assert run.kb.version == 1
    assert push(run, 3, ":q a :Plant") == []
    assert run.kb.version == 2
    # What matched under the version before waits on; what is new must match now.
    assert push(run, 4, ":p :feedsNow :g") == []
    assert sorted(push(run, 5, ":p :feeds2 :g . :q :feeds2 :g")) == [
        "c=Net x=p y=g",
        "c=Net x=q y=g",
    ]
    assert "(also by 1 class)" in run.explain()


def test_counters_go_on_over_a_new_version() -> None:
    run = spaseq.compile(OF_CLASS).start(kb={KB: triples(PANELS)}, entail="rdfs")
    push(run, 1, ":p a :Panel")
    push(run, 2, ":p a :Other")
    run.kb.replace({KB: triples(PLANTS)})
    push(run, 3, ":p a :Plant")
    matchers = run.rows.matchers
    assert (matchers.tried(0), matchers.row_count(0)) == (3, 2)


def test_graphs_are_loaded_and_reloaded(tmp_path: Path) -> None:
    path = tmp_path / "kb.ttl"
    path.write_text(PREFIXES + PANELS)
    run = spaseq.compile(OF_CLASS).start(kb={KB: path}, entail="rdfs")
    assert push(run, 1, ":q a :Plant") == []
    run.kb.load({EX + "more": triples(PLANTS)})
    assert push(run, 2, ":q a :Plant") == ["x=q"]
    path.write_text(PREFIXES + ":Mill rdfs:subClassOf :Plant .")
    run.kb.reload(KB)
    assert push(run, 3, ":m a :Mill") == ["x=m"]
    assert push(run, 4, ":p a :Panel") == []


def test_a_graph_that_no_query_sees_closes_nothing_anew() -> None:
    query = OF_CLASS.replace("FROM STREAM", f"FROM <{KB}> FROM STREAM")
    kb = {KB: triples(PANELS), EX + "other": triples(PLANTS)}
    run = spaseq.compile(query).start(kb=kb, entail="rdfs")
    matchers = run.rows.matchers
    run.kb.replace({EX + "other": []})
    assert push(run, 1, ":p a :Panel") == ["x=p"]
    assert run.kb.version == 2
    assert run.rows.matchers is matchers
    run.kb.replace({KB: triples(PLANTS)})
    assert push(run, 2, ":q a :Plant") == ["x=q"]
    assert run.rows.matchers is not matchers


def test_what_cannot_be_closed_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = spaseq.compile(OF_CLASS).start(kb={KB: triples(PANELS)}, entail="owl-ql")
    with pytest.raises(KbError, match="chain"):
        run.kb.replace({KB: triples(BAD_CHAIN)})
    assert push(run, 1, ":p a :Panel") == ["x=p"]
    monkeypatch.setattr(closure, "MOST_DERIVED", 2)
    same = ":a <http://www.w3.org/2002/07/owl#sameAs> :b . :a :p :a ."
    with pytest.raises(LimitExceeded, match="MOST_DERIVED"):
        run.kb.replace({KB: triples(same)})
    assert push(run, 2, ":p a :Panel") == ["x=p"]
    assert run.kb.version == 1
    monkeypatch.undo()
    assert run.kb.replace({KB: triples(PLANTS)}) == 2
    assert push(run, 3, ":p a :Plant") == ["x=p"]


def test_a_reader_that_left_out_what_matters_now(tmp_path: Path) -> None:
    """Events have lost those triples already; versions that need no others are taken up."""
    path = tmp_path / "s.nq"
    kinds = ("Panel", "Plant", "Panel")
    lines = []
    for number, kind in enumerate(kinds):
        time = f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        lines.append(f"<urn:e{number}> <http://www.w3.org/ns/prov#generatedAtTime> {time} .")
        type_ = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
        lines.append(f"<{EX}x{number}> {type_} <{EX}{kind}> <urn:e{number}> .")
    path.write_text("\n".join(lines) + "\n")
    both = triples(PANELS + PLANTS)
    program = spaseq.compile(OF_CLASS)

    run = program.start(kb={KB: triples(PANELS)}, entail="rdfs")
    batches = list(Source(STREAM, [str(path)], relevance=run.relevance).batches())
    with pytest.raises(KbError, match=f"{EX}Plant>.* which readers of this run leave out"):
        run.kb.replace({KB: both})
    found = [match for batch in batches for match in run.push_batch(batch)]
    assert [match.bindings["x"].value for match in found] == [EX + "x0", EX + "x2"]

    run = program.start(kb={KB: both}, entail="rdfs")
    batches = list(Source(STREAM, [str(path)], relevance=run.relevance).batches())
    run.kb.replace({KB: triples(PLANTS)})
    found = [match for batch in batches for match in run.push_batch(batch)]
    assert [match.bindings["x"].value for match in found] == [EX + "x1"]
    run.kb.replace({KB: both})
    assert push(run, 9, ":p a :Panel") == ["x=p"]


def test_a_reader_keeps_what_mattered_before(tmp_path: Path) -> None:
    run = spaseq.compile(OF_CLASS).start(kb={KB: triples(PANELS + PLANTS)}, entail="rdfs")
    run.kb.replace({KB: triples(PLANTS)})
    push(run, 1, ":p a :Panel")
    path = tmp_path / "s.nq"
    time = '"2"^^<http://www.w3.org/2001/XMLSchema#integer>'
    path.write_text(
        f"<urn:e> <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n"
        f"<{EX}x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{EX}Panel> <urn:e> .\n"
    )
    batches = list(Source(STREAM, [str(path)], relevance=run.relevance).batches())
    run.kb.replace({KB: triples(PANELS + PLANTS)})
    found = [match for batch in batches for match in run.push_batch(batch)]
    assert [match.bindings["x"].value for match in found] == [EX + "x"]


def test_a_reader_made_between_a_change_and_the_next_event() -> None:
    run = spaseq.compile(OF_CLASS).start(kb={KB: triples(PANELS)}, entail="rdfs")
    run.kb.replace({KB: triples(PLANTS)})
    assert run.relevance is not None
    with pytest.raises(KbError, match="leave out"):
        push(run, 1, ":p a :Panel")
    assert run.kb.version == 1
    assert push(run, 1, ":p a :Panel") == ["x=p"]


# ------------------------------------------------------------------ kept by a snapshot


def test_runs_over_one_snapshot_share_its_closure(monkeypatch: pytest.MonkeyPatch) -> None:
    kb = open_kb({KB: triples(PANELS)})
    program = spaseq.compile(OF_CLASS)
    first = program.start(kb=kb, entail="rdfs")
    second = program.start(kb=kb, entail="rdfs")
    assert first.evaluation.entailed[None].rules is second.evaluation.entailed[None].rules
    copy = pickle.loads(pickle.dumps(kb))
    assert copy.derived == {}
    third = pickle.loads(pickle.dumps(program)).start(kb=copy, entail="rdfs")
    for run in (first, second, third):
        assert push(run, 1, ":p a :Panel") == ["x=p"]


def test_saved_after_a_change_and_resumed_over_it() -> None:
    program = spaseq.compile(TWO_STEPS)
    run = program.start(kb={KB: triples(PANELS)}, entail="rdfs")
    push(run, 1, ":p a :Panel")
    run.kb.replace({KB: triples(PLANTS)})
    push(run, 2, ":q a :Plant")
    again = program.resume(run.save(), kb={KB: triples(PLANTS)})
    assert again.evaluation.entail == "rdfs"
    last = ":p :feeds2 :g . :q :feeds2 :g"
    assert sorted(push(again, 3, last)) == sorted(push(run, 3, last)) != []


# ------------------------------------------------------------------ not held here


def test_a_graph_behind_an_endpoint_cannot_be_closed(sparql_server: RealServer) -> None:
    url = sparql_server.graph(triples(PANELS))
    program = spaseq.compile(OF_CLASS)
    with pytest.raises(KbError, match=f"graph <{EX}far> is asked .*rdfs download it .*--entail"):
        program.start(kb={KB: triples(PANELS), EX + "far": url}, entail="rdfs")
    assert program.start(kb={EX + "far": url}).evaluation.entail is None
    with pytest.raises(KbError, match="download it"):
        program.explain({EX + "far": url}, "rdfs")
    run = program.start(kb={KB: triples(PANELS)}, entail="rdfs")
    with pytest.raises(KbError, match="download it"):
        run.kb.replace({KB: url})
    assert push(run, 1, ":p a :Panel") == ["x=p"]


def test_nor_one_in_a_store_on_disk(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = ox.Store(str(folder))
    store.extend(ox.Quad(*triple) for triple in triples(PANELS))
    store.flush()
    del store
    with pytest.raises(KbError, match=f"graph <{KB}> is asked at .*download it"):
        spaseq.compile(OF_CLASS).start(kb={KB: folder}, entail="owl-ql")


def test_a_remote_graph_that_no_query_sees_is_no_matter(sparql_server: RealServer) -> None:
    url = sparql_server.graph(triples(PLANTS))
    query = OF_CLASS.replace("FROM STREAM", f"FROM <{KB}> FROM STREAM")
    kb = {KB: triples(PANELS), EX + "far": url}
    run = spaseq.compile(query).start(kb=kb, entail="rdfs")
    assert push(run, 1, ":p a :Panel . :q a :Plant") == ["x=p"]


@pytest.mark.parametrize("join", ["materialise", "bind"])
def test_a_service_answers_as_it_is(sparql_server: RealServer, join: str) -> None:
    """Its keys come from what follows; its rows are what it says outright."""
    url = sparql_server.graph(triples(":p :near :h . :p :nearby :g ."))
    schema = triples(PANELS + ":nearby rdfs:subPropertyOf :near .")
    pattern = f"?x a :Source SERVICE <{url}> {{ ?x :near ?y }}"
    query = f"{HEAD} FROM <{KB}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {pattern} }} }}"
    endpoint = spaseq.Endpoint(url, join=join)  # type: ignore[arg-type]
    run = spaseq.compile(query).start(kb={KB: schema, unquote(url): endpoint}, entail="rdfs")
    assert push(run, 1, ":p a :Panel") == ["x=p y=h"]
    assert push(run, 2, ":q a :Panel") == []
    run.kb.replace({KB: triples(PLANTS)})
    assert push(run, 3, ":p a :Panel") == []
    assert push(run, 4, ":p a :Plant") == ["x=p y=h"]

"""Runs under entailment: the graphs of queries, `explain`, saved state and errors."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.io.source import Source
from spaseq.pipeline import matches

EXAMPLE = "http://example.org/"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
PREFIXES = (
    f"PREFIX : <{EXAMPLE}> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
    "PREFIX owl: <http://www.w3.org/2002/07/owl#> "
)
SCHEMA = ":Panel rdfs:subClassOf :Source . :feedsNow rdfs:subPropertyOf :feeds"


def triples(text: str) -> list[ox.Triple]:
    return [quad.triple for quad in ox.parse(f"{PREFIXES} {text} .", format=ox.RdfFormat.TURTLE)]


def query(
    where: str, head: str = "SELECT *", kbs: str = "", streams: str = "FROM STREAM S :S"
) -> str:
    return f"{PREFIXES} {head} WITHIN 1 HOUR {streams} {kbs} WHERE {{ {where} }}"


def one(pattern: str, kbs: str = "") -> str:
    return query(f"SEQ(A) DEFINE GPM A ON S {{ {pattern} }}", kbs=kbs)


def found(run: spaseq.Run, *events: str) -> list[tuple[str, dict[str, str]]]:
    pushed = [
        match
        for time, text in enumerate(events, 1)
        for match in run.push(EXAMPLE + "S", time, triples(text))
    ]
    return [
        (m.query, {name: term.value.removeprefix(EXAMPLE) for name, term in m.bindings.items()})
        for m in [*pushed, *run.finish()]
    ]


def test_queries_see_the_schema_of_their_own_graphs() -> None:
    kb = {EXAMPLE + "a": triples(SCHEMA), EXAMPLE + "b": triples(":Plant rdfs:subClassOf :Source")}
    texts = [one("?x a :Source", "FROM :a"), one("?x a :Source", "FROM :b"), one("?x a :Source")]
    run = spaseq.compile(texts).start(kb=kb, entail="rdfs")
    assert found(run, ":p a :Panel", ":q a :Plant") == [
        ("query1", {"x": "p"}),
        ("query3", {"x": "p"}),
        ("query2", {"x": "q"}),
        ("query3", {"x": "q"}),
    ]


def test_what_a_query_writes_is_read_with_what_follows() -> None:
    writer = query(
        "SEQ(A) DEFINE GPM A ON S { ?x :raw ?y }",
        head="REGISTER STREAM :T AS CONSTRUCT { ?x :feedsNow ?y }",
    )
    reader = query("SEQ(A) DEFINE GPM A ON T { ?x :feeds ?y }", streams="FROM STREAM T :T")
    run = spaseq.compile([writer, reader]).start(kb={EXAMPLE + "k": triples(SCHEMA)}, entail="rdfs")
    assert found(run, ":p :raw :g") == [("query1", {}), ("query2", {"x": "p", "y": "g"})]


def test_a_filter_across_events_sees_what_follows() -> None:
    """`EXISTS` at the top of a GPM is asked with the bindings of the partial match."""
    text = query(
        "SEQ(A ; B) DEFINE GPM A ON S { ?x :a ?s } "
        "DEFINE GPM B ON S { ?y :b 1 FILTER EXISTS { ?y :feeds ?s } }"
    )
    kb = {EXAMPLE + "k": triples(SCHEMA)}
    events = (":p :a :g", ":q :b 1 ; :feedsNow :g", ":r :b 1 ; :feedsNow :h")
    program = spaseq.compile(text)
    assert found(program.start(kb=kb), *events) == []
    assert found(program.start(kb=kb, entail="rdfs"), *events) == [
        ("query", {"x": "p", "y": "q", "s": "g"})
    ]


def test_readers_keep_what_something_follows_from(tmp_path: Path) -> None:
    """And nothing else: the run cannot be read for without it."""
    path = tmp_path / "s.nq"
    lines = [f'<urn:e> <http://www.w3.org/ns/prov#generatedAtTime> "1"^^<{INTEGER}> .']
    lines += [
        f"<{EXAMPLE}p> <{RDF_TYPE}> <{EXAMPLE}{name}> <urn:e> ." for name in ("Panel", "Other")
    ]
    lines += [
        f"<{EXAMPLE}p> <{EXAMPLE}{name}> <{EXAMPLE}g> <urn:e> ." for name in ("feedsNow", "x")
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    program = spaseq.compile(one("?x a :Source ; :feeds ?y"))
    run = program.start(kb={EXAMPLE + "k": triples(SCHEMA)}, entail="rdfs")
    source = Source(EXAMPLE + "S", [str(path)], relevance=run.relevance)
    (batch,) = source.batches()
    assert (batch.kept(0), batch.size(0)) == (2, 4)
    run = program.start(kb={EXAMPLE + "k": triples(SCHEMA)}, entail="rdfs")
    source = Source(EXAMPLE + "S", [str(path)], relevance=run.relevance)
    assert len(list(matches(run, source))) == 1


def test_a_run_is_resumed_under_its_entailment() -> None:
    text = query("SEQ(A ; B) DEFINE GPM A ON S { ?x a :Source } DEFINE GPM B ON S { ?x :feeds ?y }")
    program, kb = spaseq.compile(text), {EXAMPLE + "k": triples(SCHEMA)}
    run = program.start(kb=kb, entail="rdfs")
    run.push(EXAMPLE + "S", 1, triples(":p a :Panel"))
    resumed = program.resume(run.save(), kb=kb)
    assert resumed.evaluation.entail == "rdfs"
    (match,) = resumed.push(EXAMPLE + "S", 2, triples(":p :feedsNow :g"))
    assert match.bindings["y"].value == EXAMPLE + "g"


def test_a_plan_says_what_a_pattern_was_widened_to() -> None:
    schema = (
        ":Panel rdfs:subClassOf :Source . :Roof rdfs:subClassOf :Panel . "
        ":feeds rdfs:domain :Source ; owl:inverseOf :fedBy . :feedsNow rdfs:subPropertyOf :feeds . "
        ":near a owl:SymmetricProperty . :in owl:propertyChainAxiom (:in :partOf)"
    )
    kb = {EXAMPLE + "k": triples(schema)}
    program = spaseq.compile(one("?x a :Source ; :feeds ?y ; :near ?z ; :in ?w ; :v ?v"))
    data = program.to_dict(kb, "owl-ql")
    (gpm,) = data["queries"][0]["gpms"]
    shown = {each.pop("triple").split("> ")[0].split("/")[-1]: each for each in gpm["entailed"]}
    assert shown == {
        "22-rdf-syntax-ns#type": {"class": 2, "domain": 2, "range": 1},
        "feeds": {"subproperty": 1, "inverse": 1},
        "near": {"inverse": 1},
        "in": {"chain": 1},
    }
    text = program.explain(kb, "owl-ql")
    assert "entailed ?x :feeds ?y  (also by 1 subproperty, 1 inverse)" in text
    assert "2 classes" in text
    assert "entailed" not in program.explain()
    assert "entailed" in program.start(kb=kb, entail="owl-ql").explain()


def test_there_is_no_other_entailment() -> None:
    program = spaseq.compile(one("?x a :Source"))
    with pytest.raises(ValueError, match="no entailment 'owl'; choose from rdfs, owl-ql"):
        program.start(entail="owl")

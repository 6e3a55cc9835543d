"""Patterns over the knowledge base: the same rows, wherever the graphs are.

Each pattern runs over graphs held here, over stores on disk, over a real server fetched whole
and asked by key, and, `GRAPH` read as `SERVICE`, without any knowledge base.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import endpoints as server
import pyoxigraph as ox
import pytest
from endpoints import RealServer, misbehaving

import spaseq
from spaseq.errors import KbError, QueryError
from spaseq.rdf.time import from_value

EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}> "
GRAPHS = {
    "kb": ':a :in :r1 . :b :in :r2 . :c :in :r1 . :a :old true . :b :name "B" . [] :in :r3 .',
    "limits": ":r1 :limit 10 . :r2 :limit 20 . :r3 :limit 5 . :high :is 3 . :a :in :r9 .",
}
EVENTS = [
    (1, ":a :v 12 ."),
    (2, ":b :v 12 ."),
    (3, ":d :v 1 ."),
    (4, ":c :v 3 ."),
    (5, "[] :v 7 ."),
]
PATTERNS = {
    "one graph": "?s :v ?v GRAPH :kb { ?s :in ?r }",
    "the graph first": "GRAPH :kb { ?s :in ?r } ?s :v ?v",
    "two graphs, the second by the first": (
        "?s :v ?v GRAPH :kb { ?s :in ?r } GRAPH :limits { ?r :limit ?l }"
    ),
    "two graphs in an inner group": (
        "?s :v ?v { GRAPH :kb { ?s :in ?r } GRAPH :limits { ?r :limit ?l } }"
    ),
    "a filter in the graph": "?s :v ?v GRAPH :kb { ?s :in ?r FILTER(?r != :r2) }",
    "a filter over both": (
        "?s :v ?v GRAPH :kb { ?s :in ?r } GRAPH :limits { ?r :limit ?l } FILTER(?v > ?l)"
    ),
    "optional": "?s :v ?v OPTIONAL { GRAPH :kb { ?s :name ?n } }",
    "optional with a condition": (
        "?s :v ?v OPTIONAL { GRAPH :kb { ?s :in ?r } FILTER(?r = :r1 && ?v > 5) }"
    ),
    "optional inside": "?s :v ?v GRAPH :kb { ?s :in ?r OPTIONAL { ?s :name ?n } }",
    "minus": "?s :v ?v MINUS { GRAPH :kb { ?s :old true } }",
    "union": "?s :v ?v { GRAPH :kb { ?s :in ?x } } UNION { GRAPH :limits { ?s :in ?x } }",
    "exists": "?s :v ?v FILTER NOT EXISTS { GRAPH :kb { ?s :old true } }",
    "exists with a filter": (
        "?s :v ?v FILTER EXISTS { GRAPH :kb { ?s :in ?r FILTER(?r = :r1) } }"
    ),
    "exists beside an optional": (
        "?s :v ?v { ?s :v ?w OPTIONAL { GRAPH :kb { ?s :name ?n } } "
        "FILTER NOT EXISTS { GRAPH :kb { ?s :old ?n } } }"
    ),
    "exists in an optional": (
        "?s :v ?v OPTIONAL { GRAPH :kb { ?s :in ?r } "
        "FILTER EXISTS { GRAPH :limits { ?r :limit 10 } } }"
    ),
    "exists in an inner group": (
        "?s :v ?v { ?s :v ?w FILTER NOT EXISTS { GRAPH :kb { ?s :old true } } }"
    ),
    "exists with the event's own": (
        "?s :v ?v FILTER EXISTS { ?s :v ?w GRAPH :kb { ?s :in ?r } }"
    ),
    "two exists": (
        "?s :v ?v FILTER EXISTS { GRAPH :kb { ?s :in ?r } } "
        "FILTER NOT EXISTS { GRAPH :kb { ?s :old true } }"
    ),
    "the same exists twice": (
        "?s :v ?v FILTER(?v > 5 && EXISTS { GRAPH :kb { ?s :in ?r } }) "
        "FILTER(?v > 6 && EXISTS { GRAPH :kb { ?s :in ?r } })"
    ),
    "any graph": "?s :v ?v GRAPH ?g { ?s :in ?r }",
    "no shared variable": "?s :v ?v GRAPH :limits { :high :is ?h }",
    "no variable": "?s :v ?v GRAPH :limits { :high :is 3 }",
    "no variable, and no such triple": "?s :v ?v OPTIONAL { GRAPH :limits { :high :is 4 } }",
    "a path": "?s :v ?v GRAPH :kb { ?s (:in|:old)/^:in ?t }",
    "a sub-query": "?s :v ?v GRAPH :kb { SELECT ?s (COUNT(?r) AS ?n) { ?s :in ?r } GROUP BY ?s }",
    "a sub-query beside": (
        "?s :v ?v { SELECT ?s ?r { ?s :v ?w GRAPH :kb { ?s :in ?r } } }"
    ),
    "bind and values": (
        "?s :v ?v GRAPH :kb { ?s :in ?r BIND(STR(?r) AS ?n) VALUES ?r { :r1 } } BIND(?v + 1 AS ?w)"
    ),
}  # fmt: skip
WHOLE = {"exists with a filter", "the same exists twice", "any graph", "a sub-query beside"}
"""What cannot be asked by key …"""
WHOLE |= {"no shared variable", "no variable", "no variable, and no such triple"}
"""… and what has none."""


def query(pattern: str) -> str:
    return (
        f"{PREFIX} SELECT * WITHIN 1 MINUTE FROM STREAM S :S "
        f"WHERE {{ SEQ(A) DEFINE GPM A ON S {{ {pattern} }} }}"
    )


def turtle(text: str) -> list[ox.Triple]:
    return [
        quad.triple for quad in ox.parse(f"@prefix : <{EX}> . {text}", format=ox.RdfFormat.TURTLE)
    ]


def events(some: Iterable[tuple[int, str]] = EVENTS) -> list[tuple[int, list[ox.Triple]]]:
    return [(time, turtle(text)) for time, text in some]


def solutions(text: str, kb: dict[str, object], name: str = "S") -> list[tuple[int, str]]:
    """Each match: its time, and what it binds, blank nodes alike."""
    found = []
    for match in spaseq.run(text, {name: events()}, kb=kb):
        bound = {n: re.sub(r"_:\S+", "_:b", str(t)) for n, t in match.bindings.items()}
        found.append((match.end.micros, str(sorted(bound.items()))))
    return sorted(found)


def held(_: RealServer, folder: Path) -> dict[str, object]:
    return {EX + name: turtle(text) for name, text in GRAPHS.items()}


def stored(_: RealServer, folder: Path) -> dict[str, object]:
    for name, text in GRAPHS.items():
        store = ox.Store(str(folder / name))
        store.extend([ox.Quad(*triple) for triple in turtle(text)])
        store.flush()
    return {EX + name: str(folder / name) for name in GRAPHS}


def served(**options: object) -> Callable[[RealServer, Path], dict[str, object]]:
    def made(sparql_server: RealServer, folder: Path) -> dict[str, object]:
        return {
            EX + name: spaseq.Endpoint(
                sparql_server.graph(f"@prefix : <{EX}> . {text}"),
                **options,  # type: ignore[arg-type]
            )
            for name, text in GRAPHS.items()
        }

    return made


WAYS = {
    "stored": stored,
    "fetched": served(join="materialise"),
    "asked": served(join="bind"),
    "asked one by one": served(join="bind", batch=1, cache=1),
    "too large": served(rows=2),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_wherever_the_graphs_are(
    pattern: str, way: str, sparql_server: RealServer, tmp_path: Path
) -> None:
    text = query(PATTERNS[pattern])
    expected = solutions(text, held(sparql_server, tmp_path))
    assert expected
    kb = WAYS[way](sparql_server, tmp_path)
    try:
        seen = solutions(text, kb)
    except KbError as error:
        refused = str(error)
    else:
        assert seen == expected
        return
    assert pattern in WHOLE
    assert "would have to be fetched as a whole" in refused or "one value has more" in refused


@pytest.mark.parametrize("pattern", PATTERNS)
def test_services(pattern: str, sparql_server: RealServer, tmp_path: Path) -> None:
    if pattern == "any graph":
        return  # there is no SERVICE that is any service
    text = query(PATTERNS[pattern])
    expected = solutions(text, held(sparql_server, tmp_path))
    asked = served()(sparql_server, tmp_path)
    for name in GRAPHS:
        endpoint = asked[EX + name]
        assert isinstance(endpoint, spaseq.Endpoint)
        text = text.replace(f"GRAPH :{name}", f"SERVICE <{endpoint.url}>")
    assert "GRAPH" not in text
    assert solutions(text, {}) == expected
    silent = text.replace("SERVICE", "SERVICE SILENT")
    assert solutions(silent, {}) == expected


def test_a_silent_service_that_fails_binds_nothing() -> None:
    with server.nobody() as gone:
        pattern = f"?s :v ?v SERVICE SILENT <{gone}> {{ ?s :in ?r }}"
        kb: dict[str, object] = {gone: spaseq.Endpoint(gone, attempts=1)}
        every = solutions(query("?s :v ?v"), {})
        assert solutions(query(pattern), kb) == every
        kb = {gone: spaseq.Endpoint(gone, attempts=1, join="bind")}
        named = [solution for solution in every if "_:b" not in solution[1]]
        assert solutions(query(pattern), kb) == named, "nobody else knows an event's blank nodes"
        with pytest.raises(KbError, match="cannot be reached"):
            spaseq.compile(query(pattern.replace("SILENT ", ""))).start()


def test_an_endpoint_says_how_a_service_is_asked(sparql_server: RealServer) -> None:
    with misbehaving(sparql_server.graph(f"@prefix : <{EX}> . {GRAPHS['kb']}")) as proxy:
        text = query(f"?s :v ?v SERVICE <{proxy.url}> {{ ?s :in ?r }}")
        kb: dict[str, object] = {proxy.url: spaseq.Endpoint(proxy.url, join="bind", token="t")}
        run = spaseq.compile(text).start(kb=kb)
        batch = [
            spaseq.Event(EX + "S", from_value(time), 0, [tuple(t) for t in facts])
            for time, facts in events()
        ]
        assert len(list(run.push_batch(batch))) == 3
        run.finish()
        assert proxy.seen[0]["Authorization"] == "Bearer t"
        (asked,) = proxy.queries
        assert f"VALUES (?s) {{ (<{EX}a>) (<{EX}b>) (<{EX}d>) (<{EX}c>) }}" in asked


def test_a_service_in_exists_must_not_depend_on_the_row_outside() -> None:
    pattern = "?s :v ?v FILTER EXISTS { SERVICE <http://e.org/> { ?s :in ?r FILTER(?r > ?v) } }"
    with pytest.raises(QueryError, match="SERVICE in EXISTS may contain only triples"):
        spaseq.compile(query(pattern))


def test_a_remote_graph_does_not_know_the_others(sparql_server: RealServer, tmp_path: Path) -> None:
    text = query("?s :v ?v GRAPH :kb { ?s :in ?r GRAPH :limits { ?r :limit ?l } }")
    with pytest.raises(KbError, match="does not have the other graphs"):
        spaseq.compile(text).start(kb=served()(sparql_server, tmp_path))


def test_a_pattern_that_is_too_large_says_so(sparql_server: RealServer, tmp_path: Path) -> None:
    kb = served(join="materialise", rows=2)(sparql_server, tmp_path)
    with pytest.raises(KbError, match=r"more than 2 solutions; raise the `rows`"):
        spaseq.compile(query(PATTERNS["one graph"])).start(kb=kb)
    kb = served(rows=2)(sparql_server, tmp_path)
    with pytest.raises(KbError, match=r"it shares no variable with the event .*, but it has more"):
        spaseq.compile(query("?s :v ?v GRAPH :limits { ?r :limit ?l }")).start(kb=kb)


def test_a_folder_that_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(KbError, match="the folder is not a pyoxigraph store"):
        spaseq.compile(query("?s :v ?v")).start(kb={EX + "kb": str(tmp_path)})


def test_the_graph_of_a_store_that_bears_the_name(tmp_path: Path) -> None:
    a, p = ox.NamedNode(EX + "a"), ox.NamedNode(EX + "in")
    store = ox.Store(str(tmp_path))
    store.add(ox.Quad(a, p, ox.NamedNode(EX + "r1"), ox.NamedNode(EX + "kb")))
    store.add(ox.Quad(a, p, ox.NamedNode(EX + "r2"), ox.NamedNode(EX + "other")))
    store.flush()
    del store
    for name, rooms in (("kb", 1), ("all", 2)):
        text = query(f"?s :v ?v GRAPH :{name} {{ ?s :in ?r }}")
        assert len(solutions(text, {EX + name: tmp_path})) == rooms

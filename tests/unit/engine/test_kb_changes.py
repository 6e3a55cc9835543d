"""A knowledge base that changes during a run: as a whole, between two events."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread
from urllib.parse import unquote

import endpoints as server
import pyoxigraph as ox
import pytest
from endpoints import Misbehaving, RealServer, misbehaving
from kb_runs import EX, ONE_STEP, STREAM, TWO_STEPS, batch_of, one, readings, rooms, shown

import spaseq
from spaseq.errors import KbError
from spaseq.io.source import Source
from spaseq.rdf.graph import Graph
from spaseq.results import Match

KB = EX + "kb"
PLAIN = TWO_STEPS.replace("?t != ?s", "?t != ?s && ?w >= COUNT(A)")
"""A count of witnesses, which the compiled automaton does not support."""


def triples(text: str) -> list[ox.Triple]:
    return [quad.triple for quad in ox.parse(text, format=ox.RdfFormat.TURTLE)]


@pytest.fixture
def proxy(sparql_server: RealServer) -> Iterator[Misbehaving]:
    with misbehaving(sparql_server.graph(rooms(4))) as found:
        yield found


@pytest.mark.parametrize("query", [TWO_STEPS, PLAIN], ids=["compiled", "plain"])
def test_replaced_between_two_events(query: str) -> None:
    run = spaseq.compile(query).start(kb={KB: triples(rooms(4))})
    one(run, 1, 2)
    assert run.kb.replace({KB: triples(rooms(4, offset=1, each=4))}) == 2
    assert run.kb.version == 1, "it takes effect with the next event"
    # s2 was in r1 when it came, and s1 is there now; s3 has moved there too.
    (match,) = one(run, 2, 1)
    assert shown([match]) == ["s=s2 t=s1 r=r1"]
    assert (match.kb_version, run.kb.version) == (2, 2)
    assert match.to_dict()["kb"] == 2
    assert shown(one(run, 3, 3)) == ["s=s1 t=s3 r=r1"]


@pytest.mark.parametrize("query", [TWO_STEPS, PLAIN], ids=["compiled", "plain"])
def test_terms_that_become_permanent_are_still_the_same(query: str, tmp_path: Path) -> None:
    """A term that partial matches and a batch know becomes one of the KB's."""
    query = query.replace("GRAPH :kb { ?s :in ?r }", "").replace("{ ?t :in ?r }", "{ ?t :near ?s }")
    run = spaseq.compile(query.replace(" ?r ", " ")).start(kb={KB: []})
    path = readings(tmp_path / "s.nq", [4, 3, 1, 2])
    source = Source(STREAM, [str(path)], relevance=run.relevance)
    batches = list(source.batches())
    one(run, -1, 5)
    near = "".join(f"<{EX}s{n}> <{EX}near> <{EX}s{m}> .\n" for n, m in ((3, 5), (2, 3), (2, 1)))
    assert run.kb.replace({KB: triples(near)}) == 2
    found = [match for batch in batches for match in run.push_batch(batch)]
    assert sorted(shown(found)) == ["s=s1 t=s2", "s=s3 t=s2", "s=s5 t=s3"]


def test_a_change_in_the_midst_of_a_batch(tmp_path: Path) -> None:
    run = spaseq.compile(ONE_STEP).start(kb={KB: triples(rooms(4))})
    path = readings(tmp_path / "s.nq", [0, 1, 2, 3])
    seen = []
    for batch in Source(STREAM, [str(path)], relevance=run.relevance).batches():
        for match in run.push_batch(batch):
            seen.append((match.kb_version, *shown([match])))
            if match.bindings["s"].value == EX + "s1":
                run.kb.replace({KB: triples(rooms(4, offset=7))})
    assert seen == [(1, "s=s0 r=r0"), (1, "s=s1 r=r0"), (2, "s=s2 r=r8"), (2, "s=s3 r=r8")]


MIXED = [
    f"PREFIX : <{EX}> REGISTER STREAM :U AS CONSTRUCT {{ ?s :high ?v }} WITHIN 1 MINUTE "
    "FROM STREAM S :S WHERE { SEQ(A) DEFINE GPM A ON S { ?s :v ?v FILTER(?v = 2) } }",
    f"PREFIX : <{EX}> SELECT ?s ?r WITHIN 1 MINUTE FROM STREAM S :S FROM STREAM U :U "
    "WHERE { SEQ(A | B) DEFINE GPM A ON S { ?s :v ?v GRAPH :kb { ?s :in ?r } } "
    "DEFINE GPM B ON U { ?s :high ?v GRAPH :kb { ?s :in ?r } } }",
]
"""The second query has a delayed event at every time: those of its input stream."""


@pytest.mark.parametrize("batches", [True, False], ids=["batches", "pushed"])
def test_delayed_events_do_not_put_a_change_off(batches: bool) -> None:
    """They are matched before it, when the next event closes their timestamp."""

    def read(sensors: Sequence[int], first: int = 0) -> list[Match]:
        if batches:
            return list(run.push_batch(batch_of(run, sensors, first)))
        return [match for time, n in enumerate(sensors, first) for match in one(run, time, n)]

    def versions(matches: list[Match]) -> list[tuple[int | None, str]]:
        return [(m.kb_version, *shown([m])) for m in matches if m.variables]

    run = spaseq.compile(MIXED).start(kb={KB: triples(rooms(4))})
    assert versions(read([0, 1, 2])) == [(1, "s=s0 r=r0"), (1, "s=s1 r=r0")]
    run.kb.replace({KB: triples(rooms(4, offset=7))})
    assert versions(read([3, 2], 3)) == [(1, "s=s2 r=r1"), (1, "s=s2 r=r1"), (2, "s=s3 r=r8")]
    run.kb.replace({KB: triples(rooms(4, offset=2))})
    assert versions(run.finish()) == [(2, "s=s2 r=r8"), (2, "s=s2 r=r8")]


def test_taken_up_by_an_event_in_the_midst_of_a_batch() -> None:
    """What the batch and partial matches call it becomes a term of the KB."""
    run = spaseq.compile(TWO_STEPS).start(kb={KB: triples(rooms(2))})
    one(run, -1, 1)
    found = run.push_batch(batch_of(run, [0, 9, 1, 9]))
    assert shown([next(found)]) == ["s=s1 t=s0 r=r0"]
    run.kb.replace({KB: triples(rooms(12, each=12))})
    assert one(run, 0, 5) == []
    assert shown(list(found)) == ["s=s5 t=s9 r=r0", "s=s9 t=s1 r=r0", "s=s1 t=s9 r=r0"]


def test_a_batch_asks_again_for_what_an_event_in_its_midst_has_put_away(
    sparql_server: RealServer,
) -> None:
    endpoint = spaseq.Endpoint(sparql_server.graph(rooms(8)), join="bind")
    run = spaseq.compile(ONE_STEP).start(kb={KB: endpoint})
    found = run.push_batch(batch_of(run, [0, 1, 2, 3]))
    assert shown([next(found)]) == ["s=s0 r=r0"]
    assert shown(one(run, 0, 7)) == ["s=s7 r=r3"]
    assert shown(list(found)) == ["s=s1 r=r0", "s=s2 r=r1", "s=s3 r=r1"]


def test_a_match_from_before_any_change_says_nothing() -> None:
    run = spaseq.compile(ONE_STEP).start(kb={KB: triples(rooms(4))})
    (match,) = one(run, 1, 2)
    assert match.kb_version == 1
    assert "kb" not in match.to_dict()


def test_several_graphs_at_once_and_new_ones() -> None:
    query = ONE_STEP.replace("GRAPH :kb", "GRAPH ?g").replace("?s ?r", "?s ?r ?g")
    run = spaseq.compile(query).start(kb={KB: triples(rooms(4))})
    with pytest.raises(KbError, match="exists already: use replace"):
        run.kb.load({KB: triples(rooms(4))})
    with pytest.raises(KbError, match=f"there is no KB graph <{EX}l>; the graphs are <{KB}>"):
        run.kb.replace({EX + "l": []})
    run.kb.load({EX + "l": triples(rooms(4, offset=5))})
    run.kb.replace({KB: triples(rooms(4, offset=1)), EX + "l": triples(rooms(4, offset=6))})
    assert shown(one(run, 1, 2)) == ["s=s2 r=r2 g=kb", "s=s2 r=r7 g=l"]
    assert run.kb.version == 3
    assert run.kb.graphs == (KB, EX + "l")


def test_reloading_a_file(tmp_path: Path) -> None:
    path = tmp_path / "kb.ttl"
    path.write_text(rooms(4))
    other = iter(triples(rooms(1)))
    run = spaseq.compile(ONE_STEP).start(kb={KB: path, EX + "once": other})
    assert shown(one(run, 1, 2)) == ["s=s2 r=r1"]
    path.write_text(rooms(4, offset=1))
    assert shown(one(run, 2, 2)) == ["s=s2 r=r1"]
    run.kb.reload()
    assert shown(one(run, 3, 2)) == ["s=s2 r=r2"]
    with pytest.raises(KbError, match="cannot be read again: its source was an iterator"):
        run.kb.reload(EX + "once")
    path.write_text("oops")
    with pytest.raises(KbError, match=r"kb\.ttl:1"):
        run.kb.reload(KB)
    assert shown(one(run, 4, 2)) == ["s=s2 r=r2"], "what fails to load changes nothing"


def test_reloading_an_endpoint(sparql_server: RealServer) -> None:
    url = sparql_server.graph(rooms(4))
    name = unquote(url.partition("=")[2])
    for join in ("materialise", "bind"):
        sparql_server.put(name, rooms(4))
        endpoint = spaseq.Endpoint(url, join=join)  # type: ignore[arg-type]
        run = spaseq.compile(ONE_STEP).start(kb={KB: endpoint})
        assert shown(one(run, 1, 2)) == ["s=s2 r=r1"]
        sparql_server.put(name, rooms(4, offset=1))
        assert shown(one(run, 2, 2)) == ["s=s2 r=r1"]
        run.kb.reload(KB)
        assert shown(one(run, 3, 2)) == ["s=s2 r=r2"]


def test_reloading_an_endpoint_that_fails(proxy: Misbehaving) -> None:
    endpoint = spaseq.Endpoint(proxy.url, attempts=1)
    run = spaseq.compile(ONE_STEP).start(kb={KB: endpoint})
    proxy.otherwise = server.killed
    with pytest.raises(KbError, match="disconnected"):
        run.kb.reload(KB)
    assert shown(one(run, 1, 2)) == ["s=s2 r=r1"]
    assert run.kb.version == 1


def test_a_version_that_the_queries_cannot_run_on(proxy: Misbehaving) -> None:
    query = ONE_STEP.replace("?s :in ?r", "?x :in ?r")
    run = spaseq.compile(query).start(kb={KB: triples(rooms(1))})
    assert shown(one(run, 1, 2)) == ["s=s2 r=r0"]
    run.kb.replace({KB: spaseq.Endpoint(proxy.url, rows=1)})
    with pytest.raises(KbError, match="shares no variable with the event"):
        one(run, 2, 2)
    assert shown(one(run, 2, 2)) == ["s=s2 r=r0"]
    assert run.kb.version == 1


def test_refreshing_from_time_to_time(proxy: Misbehaving) -> None:
    run = spaseq.compile(ONE_STEP).start(kb={KB: spaseq.Endpoint(proxy.url, refresh=0.01)})
    until(lambda: run.kb.changes)
    (match,) = one(run, 1, 2)
    assert match.kb_version > 1
    proxy.otherwise = server.rubbish
    run.kb.refresh(KB)
    assert run.stats["kb"]["failed_refreshes"] >= 1
    assert shown(one(run, 2, 2)) == ["s=s2 r=r1"], "a refresh that fails changes nothing"
    run.finish()
    asked = len(proxy.queries)
    time.sleep(0.05)
    assert len(proxy.queries) <= asked + 1, "the end of the run is that of refreshing"


def until(happened: object) -> None:
    for _ in range(500):
        if happened():  # type: ignore[operator]
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def test_changed_by_another_thread() -> None:
    """Each event sees one version, all of it: the two graphs always agree."""
    query = ONE_STEP.replace(
        "GRAPH :kb { ?s :in ?r }", "GRAPH :kb { ?s :in ?r } GRAPH :l { ?s :in ?q }"
    ).replace("?s ?r", "?s ?r ?q")
    run = spaseq.compile(query).start(kb={KB: triples(rooms(1)), EX + "l": triples(rooms(1))})

    def change() -> None:
        for offset in range(1, 40):
            graph = triples(rooms(1, offset=offset))
            run.kb.replace({KB: graph, EX + "l": graph})

    changing = Thread(target=change)
    changing.start()
    seen = []
    for moment in range(400):
        (match,) = one(run, moment, 0)
        assert match.bindings["r"] == match.bindings["q"]
        seen.append(match.kb_version)
    changing.join()
    assert seen == sorted(seen)
    assert one(run, 400, 0)[0].bindings["r"] == ox.NamedNode(EX + "r39")


def test_a_run_that_is_saved_starts_with_the_kb_it_is_given() -> None:
    program = spaseq.compile(TWO_STEPS)
    run = program.start(kb={KB: triples(rooms(4))})
    one(run, 1, 2)
    run.kb.replace({KB: triples(rooms(4, offset=1, each=4))})
    one(run, 2, 3)
    again = program.resume(run.save(), kb={KB: triples(rooms(4, offset=1, each=4))})
    assert again.kb.version == 1
    assert isinstance(again.kb.graph(ox.NamedNode(KB)), Graph)
    assert shown(one(again, 3, 1)) == shown(one(run, 3, 1)) != []

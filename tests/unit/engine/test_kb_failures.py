"""A knowledge base that is asked by key: how often, and what happens when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import endpoints as server
import pytest
from endpoints import Misbehaving, RealServer, misbehaving
from kb_runs import EX, ONE_STEP, STREAM, STRICT, TWO_STEPS, one, read, readings, rooms, shown

import spaseq
from spaseq.errors import EndpointError, KbError
from spaseq.io.source import Source
from spaseq.kb.cache import KeyCache
from spaseq.rdf.event import NUMBER, Event, Timestamp

SENSORS = [0, 1, 2, 3, 99, 1, 0, 3]


@pytest.fixture
def proxy(sparql_server: RealServer) -> Iterator[Misbehaving]:
    with misbehaving(sparql_server.graph(rooms(40))) as found:
        yield found


def started(url: str, query: str = ONE_STEP, **options: object) -> spaseq.Run:
    quick = {"join": "bind", "attempts": 1, "timeout": 5.0} | options
    endpoint = spaseq.Endpoint(url, **quick)  # type: ignore[arg-type]
    return spaseq.compile(query).start(kb={EX + "kb": endpoint})


def local(query: str, path: Path) -> list[str]:
    return shown(read(_held(query), path))


def _held(query: str) -> spaseq.Run:
    facts = server.ox.parse(rooms(40), format=server.ox.RdfFormat.TURTLE)
    return spaseq.compile(query).start(kb={EX + "kb": [quad.triple for quad in facts]})


# ------------------------------------------------------------------ requests


@pytest.mark.parametrize("query", [ONE_STEP, TWO_STEPS, STRICT])
def test_one_request_for_a_batch(proxy: Misbehaving, tmp_path: Path, query: str) -> None:
    path = readings(tmp_path / "s.nq", SENSORS * 5)
    run = started(proxy.url, query)
    assert shown(read(run, path)) == local(query, path) != []
    steps = query.count("DEFINE")
    assert len(proxy.queries) == steps
    assert all(text.count(f"(<{EX}s") >= 4 for text in proxy.queries)
    source = run.stats["kb"]["sources"][EX + "kb"]
    assert source["requests"] == steps
    assert source["failures"] == 0


def test_a_local_filter_spares_keys(proxy: Misbehaving, tmp_path: Path) -> None:
    path = readings(tmp_path / "s.nq", SENSORS)
    query = ONE_STEP.replace("?r } }", "?r } FILTER(?v > 2) }")
    assert shown(read(started(proxy.url, query), path)) == ["s=s3 r=r1", "s=s3 r=r1"]
    (asked,) = proxy.queries
    assert "(<http://example.org/s3>) (<http://example.org/s99>)" in asked
    assert "s2>" not in asked


def test_a_list_of_events_is_one_request_too(proxy: Misbehaving) -> None:
    run = started(proxy.url)
    name, v = server.ox.NamedNode, server.ox.NamedNode(EX + "v")
    events = [
        Event(
            STREAM,
            Timestamp(n * 1_000_000, NUMBER),
            0,
            [(name(f"{EX}s{n}"), v, server.ox.Literal(n))],
        )
        for n in range(8)
    ]
    assert len(list(run.push_batch(events))) == 8
    assert len(proxy.queries) == 1


def test_what_is_known_is_not_asked_again(proxy: Misbehaving) -> None:
    run = started(proxy.url)
    for time, sensor in enumerate([1, 99, 1, 99, 2]):
        one(run, time, sensor)
    assert len(proxy.queries) == 3
    counters = run.stats["kb"]["sources"][EX + "kb"]
    assert (counters["asked"], counters["known"]) == (5, 2)


def test_a_batch_with_more_keys_than_fit(proxy: Misbehaving, tmp_path: Path) -> None:
    path = readings(tmp_path / "s.nq", list(range(20)))
    run = started(proxy.url, batch=6, cache=2)
    assert len(read(run, path)) == 20
    sizes = [text.count(f"(<{EX}s") for text in proxy.queries]
    assert sum(sizes) == 20
    assert max(sizes) == 6


def test_more_solutions_than_fit_are_asked_for_in_parts(proxy: Misbehaving, tmp_path: Path) -> None:
    path = readings(tmp_path / "s.nq", list(range(8)))
    run = started(proxy.url, rows=3)
    assert len(read(run, path)) == 8
    sizes = [text.count(f"(<{EX}s") for text in proxy.queries]
    assert sizes[:2] == [sizes[0], sizes[0] // 2]
    assert sum(size for size in sizes if size <= 3) == 8


def test_how_long_answers_are_kept(proxy: Misbehaving) -> None:
    for options, expected in (
        ({"keep": 0.0, "keep_absent": 1000.0}, [1, 1, 99]),
        ({"keep": 1000.0, "keep_absent": 0.0}, [1, 99, 99]),
    ):
        proxy.queries.clear()
        run = started(proxy.url, **options)
        for time, sensor in enumerate([1, 1, 99, 99]):
            one(run, time, sensor)
        assert [int(text.split("/s")[1].split(">")[0]) for text in proxy.queries] == expected


def test_the_cache_forgets() -> None:
    now = [0.0]
    cache = KeyCache(2, 10.0, 1.0, lambda: now[0])
    keys = [(server.ox.Literal(n),) for n in range(3)]
    row = (server.ox.Literal("x"),)
    cache.put(keys[0], [row])
    cache.put(keys[1], [])
    assert cache.get(keys[0]) == [row]
    assert cache.get(keys[1]) == []
    now[0] = 5.0
    assert cache.get(keys[1]) is None, "that there was nothing is believed for a shorter time"
    assert cache.get(keys[0]) == [row]
    now[0] = 11.0
    assert cache.get(keys[0]) is None
    cache.put(keys[0], [row])
    cache.put(keys[1], [row])
    cache.get(keys[0])
    cache.put(keys[2], [row])
    assert cache.get(keys[1]) is None, "the one that was not used for longest goes"
    assert len(cache) == 2


# ------------------------------------------------------------------ failures


def test_an_event_is_never_half_applied(proxy: Misbehaving) -> None:
    run = started(proxy.url, TWO_STEPS)
    one(run, 1, 2)
    before = run.save(), run.stats["events"]
    proxy.otherwise = server.busy
    with pytest.raises(EndpointError, match="503"):
        one(run, 2, 3)
    assert (run.save(), run.stats["events"]) == before
    proxy.otherwise = server.passed_on
    assert shown(one(run, 2, 3)) == ["s=s2 t=s3 r=r1"]


def test_a_failure_stops_at_its_event(proxy: Misbehaving, tmp_path: Path) -> None:
    """The events in front of it have been processed, and their matches are out."""
    path = readings(tmp_path / "s.nq", SENSORS)
    run = started(proxy.url, batch=1)
    proxy.todo, proxy.otherwise = [server.passed_on] * 3, server.busy
    source = Source(STREAM, [str(path)], relevance=run.relevance)
    matches = run.push_batch(next(iter(source.batches())))
    found = [next(matches) for _ in range(3)]
    with pytest.raises(EndpointError, match="503"):
        next(matches)
    assert shown(found) == ["s=s0 r=r0", "s=s1 r=r0", "s=s2 r=r1"]
    assert run.stats["events"] == 3


def test_what_fails_is_skipped_and_counted(proxy: Misbehaving, tmp_path: Path) -> None:
    path = readings(tmp_path / "s.nq", SENSORS)
    run = started(proxy.url, batch=1, on_failure="skip", pause=60.0)
    proxy.todo = [server.passed_on] * 2 + [server.killed]
    assert shown(read(run, path)) == ["s=s0 r=r0", "s=s1 r=r0", "s=s1 r=r0", "s=s0 r=r0"]
    assert run.stats["events"] == len(SENSORS)
    assert run.stats["kb"]["skipped_events"] == 4
    assert len(proxy.queries) == 3, "one that failed is left alone for a while"


def test_a_skipped_event_counts_for_contiguity(proxy: Misbehaving) -> None:
    run = started(proxy.url, STRICT, on_failure="skip", pause=0.0)
    one(run, 1, 2)
    proxy.otherwise = server.killed
    assert not one(run, 2, 3)
    proxy.otherwise = server.passed_on
    assert not one(run, 3, 3), "an event lies between"
    assert shown(one(run, 4, 2)) == ["s=s3 t=s2 r=r1"]


def test_unenriched_is_like_optional(proxy: Misbehaving, tmp_path: Path) -> None:
    path = readings(tmp_path / "s.nq", SENSORS[:5])
    run = started(proxy.url, batch=1, on_failure="unenriched", pause=60.0)
    proxy.todo = [server.passed_on] * 2 + [server.killed]
    assert shown(read(run, path)) == ["s=s0 r=r0", "s=s1 r=r0", "s=s2", "s=s3", "s=s99"]
    assert run.stats["kb"]["sources"][EX + "kb"]["unenriched"] == 3


def test_a_server_that_comes_back(proxy: Misbehaving) -> None:
    run = started(proxy.url, attempts=3, backoff=0.001)
    proxy.todo = [server.busy, server.truncated]
    assert shown(one(run, 1, 2)) == ["s=s2 r=r1"]
    assert run.stats["kb"]["sources"][EX + "kb"]["retries"] == 2


def test_without_an_endpoint_at_the_start(proxy: Misbehaving) -> None:
    """A pattern that would be fetched whole stops the start, or is asked by key."""
    proxy.todo = [server.busy] * 2
    with pytest.raises(EndpointError):
        started(proxy.url, join="auto")
    run = started(proxy.url, join="auto", on_failure="skip")
    assert shown(one(run, 1, 2)) == ["s=s2 r=r1"]
    assert "VALUES" in proxy.queries[-1]


def test_a_query_over_registered_streams_is_not_asked_by_key(proxy: Misbehaving) -> None:
    writer = (
        f"PREFIX : <{EX}> REGISTER STREAM :out AS CONSTRUCT {{ ?s :w ?v }} WITHIN 1 MINUTE "
        "FROM STREAM S :S WHERE { SEQ(A) DEFINE GPM A ON S { ?s :v ?v } }"
    )
    reader = ONE_STEP.replace("STREAM S :S", "STREAM S :out").replace(":v ?v", ":w ?v")
    program = spaseq.compile([writer, reader])
    with pytest.raises(KbError, match="a query that reads what another registers"):
        program.start(kb={EX + "kb": spaseq.Endpoint(proxy.url, join="bind")})
    run = program.start(kb={EX + "kb": spaseq.Endpoint(proxy.url)})
    one(run, 1, 2)
    assert shown(run.finish()) == ["s=s2 r=r1"]


def test_events_that_wait_keep_what_they_were_given(proxy: Misbehaving) -> None:
    """The second event of an instant waits for the other stream; its answer waits with it."""
    query = ONE_STEP.replace("FROM STREAM S :S", "FROM STREAM S :S FROM STREAM T :T").replace(
        "ON S", "ON S, T"
    )
    run = started(proxy.url, query, cache=1)
    assert shown(one(run, 1, 2)) == ["s=s2 r=r1"]
    assert not one(run, 1, 4)
    assert not one(run, 1, 6)
    proxy.otherwise = server.killed
    assert shown(run.finish()) == ["s=s4 r=r2", "s=s6 r=r3"]

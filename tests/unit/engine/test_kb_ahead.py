"""The values that partial matches hold are requested with the keys of events, in advance."""

from __future__ import annotations

import re
from collections.abc import Iterator

import endpoints as server
import pytest
from core_runs import encoded
from endpoints import Misbehaving, RealServer, misbehaving
from kb_runs import EX, INTEGER, STREAM, rooms, shown

import spaseq
from spaseq.errors import EndpointError, KbError
from spaseq.kb.cache import KeyCache
from spaseq.rdf.event import Event
from spaseq.rdf.time import from_value
from spaseq.results import Match

QUERY = (
    f"PREFIX : <{EX}> SELECT ?s ?r WITHIN 1 MINUTE FROM STREAM S :S WHERE {{ SEQ(A ; B) "
    "DEFINE GPM A ON S { ?s :v ?v } DEFINE GPM B ON S { ?s :w ?w GRAPH :kb { ?s :in ?r } } }"
)
WAYS = {"compiled": "", "asked": ' BIND(REPLACE(STR(?v), "a|^$", "b") AS ?z)'}
"""A BIND over two steps that has no bytecode is asked of Python."""


@pytest.fixture
def proxy(sparql_server: RealServer) -> Iterator[Misbehaving]:
    """A server that takes its time."""
    with misbehaving(sparql_server.graph(rooms(40))) as found:
        found.otherwise = server.slow(0.02)
        yield found


@pytest.fixture(params=WAYS)
def query(request: pytest.FixtureRequest) -> str:
    return QUERY.replace("?s :w ?w", f"?s :w ?w {WAYS[request.param]}")


def started(url: str, query: str, **options: object) -> spaseq.Run:
    return spaseq.compile(query).start(kb={EX + "kb": endpoint(url, **options)})


def endpoint(url: str, **options: object) -> spaseq.Endpoint:
    quick = {"join": "bind", "attempts": 1, "timeout": 5.0} | options
    return spaseq.Endpoint(url, **quick)  # type: ignore[arg-type]


def event(run: spaseq.Run, time: float, sensor: int | str, step: str) -> list[Match]:
    subject = f"<{EX}s{sensor}>" if isinstance(sensor, int) else sensor
    return run.push(STREAM, time, f'{subject} <{EX}{step}> "1"^^<{INTEGER}> .'.encode())


def waiting(run: spaseq.Run, sensors: range) -> spaseq.Run:
    """The run, with a partial match for each sensor, one a second."""
    for sensor in sensors:
        event(run, sensor, sensor, "v")
    return run


def finished(run: spaseq.Run, sensors: range, time: float = 40.0) -> list[str]:
    """The matches of an event a second for each sensor."""
    return [s for n in sensors for s in shown(event(run, time + n / 1000, n, "w"))]


def asked(proxy: Misbehaving) -> list[list[int]]:
    """The sensors each request asks for, in order."""
    return [[int(n) for n in re.findall(r"\(<\S+/s(\d+)>\)", text)] for text in proxy.queries]


def counted(run: spaseq.Run) -> tuple[int, int]:
    counters = run.stats["kb"]["sources"][EX + "kb"]
    return counters["prefetched"], counters["prefetched_used"]


def rooms_of(sensors: range) -> list[str]:
    return [f"s=s{n} r=r{n // 2}" for n in sensors]


# ------------------------------------------------------------------ how often, and for what


def test_one_request_for_all_that_wait(proxy: Misbehaving, query: str) -> None:
    run = waiting(started(proxy.url, query), range(10))
    assert not proxy.queries, "no event has needed anything"
    assert finished(run, range(10)) == rooms_of(range(10))
    assert [sorted(some) for some in asked(proxy)] == [list(range(10))]
    assert counted(run) == (9, 9)


def test_without_it_there_is_one_for_each(proxy: Misbehaving, query: str) -> None:
    run = waiting(started(proxy.url, query, prefetch=0), range(10))
    assert finished(run, range(10)) == rooms_of(range(10))
    assert asked(proxy) == [[n] for n in range(10)]
    assert counted(run) == (0, 0)


def test_no_more_than_the_bounds_allow(proxy: Misbehaving, query: str) -> None:
    run = waiting(started(proxy.url, query, prefetch=3), range(10))
    assert finished(run, range(10)) == rooms_of(range(10))
    some = asked(proxy)
    assert some[0] == [0, 9, 8, 7], "the newest go first"
    assert max(map(len, some)) == 4
    assert sorted(n for keys in some for n in keys) == list(range(10)), "each once"
    proxy.queries.clear()
    run = waiting(started(proxy.url, query, batch=2, cache=3), range(4))
    assert finished(run, range(4)) == rooms_of(range(4))
    assert max(map(len, asked(proxy))) == 2


def test_only_what_came_since_is_looked_at(proxy: Misbehaving, query: str) -> None:
    run = waiting(started(proxy.url, query), range(5))
    event(run, 30, 0, "w")
    waiting_more = [event(run, 30 + n / 1000, n, "v") for n in range(10, 13)]
    assert not any(waiting_more)
    event(run, 31, 20, "w")
    assert asked(proxy)[1] == [20, 12, 11, 10]
    assert counted(run) == (7, 0)
    assert shown(event(run, 32, 11, "w")) == ["s=s11 r=r5"]
    assert counted(run) == (7, 1)
    assert len(proxy.queries) == 2


def test_what_the_window_has_passed_over_is_left_out(proxy: Misbehaving) -> None:
    run = waiting(started(proxy.url, QUERY), range(3))
    event(run, 61.4, 9, "other")
    event(run, 61.5, 9, "w")
    assert asked(proxy) == [[9, 2]]


def test_blank_nodes_are_nobody_elses(proxy: Misbehaving, query: str) -> None:
    run = started(proxy.url, query)
    event(run, 1, "_:a", "v")
    event(run, 2, 3, "v")
    event(run, 3, 4, "w")
    assert asked(proxy) == [[4, 3]]


def test_a_key_of_two_steps(proxy: Misbehaving, query: str) -> None:
    """Who waits for the last step holds what the first two have bound."""
    longer = query.replace("A ; B", "A : C : B").replace(
        "DEFINE GPM B", "DEFINE GPM C ON S { ?t :u ?u } DEFINE GPM B"
    )
    longer = longer.replace("?s :w ?w", "?s :w ?t").replace("?s :in ?r", "?s :in ?r . ?t :in ?q")
    longer = longer.replace("SELECT ?s ?r", "SELECT ?s ?t ?r ?q")
    run = started(proxy.url, longer)
    for time, sensor, step in ((1, 0, "v"), (2, 5, "u"), (3, 1, "v"), (4, 6, "u")):
        event(run, time, sensor, step)
    found = []
    for time, first, second in ((5, 0, 5), (6, 0, 6), (7, 1, 6)):
        facts = f"<{EX}s{first}> <{EX}w> <{EX}s{second}> ."
        found += shown(run.push(STREAM, time, facts.encode()))
    assert found == ["s=s0 t=s5 r=r0 q=r2", "s=s0 t=s6 r=r0 q=r3", "s=s1 t=s6 r=r0 q=r3"]
    (all_at_once,) = proxy.queries
    assert all_at_once.count(f"(<{EX}s") == 3
    assert counted(run) == (2, 2)


def test_a_key_that_no_step_before_binds(proxy: Misbehaving, query: str) -> None:
    apart = query.replace("GPM A ON S { ?s :v ?v }", "GPM A ON S { ?t :v ?v }")
    run = waiting(started(proxy.url, apart), range(5))
    assert finished(run, range(2))
    assert asked(proxy) == [[0], [1]]


@pytest.mark.parametrize("read", [False, True])
def test_in_batches(proxy: Misbehaving, query: str, read: bool) -> None:
    """What came to wait in one batch is asked for with the next."""
    run = started(proxy.url, query)
    subjects = [server.ox.NamedNode(f"{EX}s{n}") for n in range(12)]
    steps = [server.ox.NamedNode(EX + step) for step in "vw"]
    events = [
        Event(
            STREAM, from_value(12 * step + n), 0, [(subjects[n], steps[step], server.ox.Literal(1))]
        )
        for step in range(2)
        for n in range(12)
    ]
    found: list[Match] = []
    for some in (events[:14], events[14:]):
        found += run.push_batch(encoded(run, some) if read else some)
    assert shown(found) == rooms_of(range(12))
    # The first two events come with those they follow, before which nobody waits.
    assert [len(keys) for keys in asked(proxy)] == [2, 10]
    assert counted(run) == (0, 0)
    run = waiting(started(proxy.url, query), range(4))
    proxy.queries.clear()
    for some in (events[12:13], events[13:16]):
        found += run.push_batch(encoded(run, some) if read else some)
    assert [len(keys) for keys in asked(proxy)] == [4]
    assert counted(run) == (3, 3)


def test_a_resumed_run_asks_for_what_it_had_waiting(proxy: Misbehaving, query: str) -> None:
    program = spaseq.compile(query)
    blob = waiting(program.start(kb={EX + "kb": endpoint(proxy.url)}), range(4)).save()
    run = program.resume(blob, kb={EX + "kb": endpoint(proxy.url)})
    assert finished(run, range(4)) == rooms_of(range(4))
    assert [sorted(some) for some in asked(proxy)] == [[0, 1, 2, 3]]


def test_another_version_is_asked_too(
    proxy: Misbehaving, query: str, sparql_server: RealServer
) -> None:
    run = waiting(started(proxy.url, query), range(4))
    with misbehaving(sparql_server.graph(rooms(40, offset=100))) as other:
        run.kb.replace({EX + "kb": endpoint(other.url)})
        assert finished(run, range(4)) == [f"s=s{n} r=r{n // 2 + 100}" for n in range(4)]
        assert [sorted(some) for some in asked(other)] == [[0, 1, 2, 3]]
        run.finish()
    assert not proxy.queries


def test_the_plan_of_a_run_says_so(proxy: Misbehaving, query: str) -> None:
    text = started(proxy.url, query).explain()
    assert "the KB is asked by ?s, ahead of events those that partial matches hold" in text
    apart = started(proxy.url, query.replace("{ ?s :v ?v }", "{ ?t :v ?v }")).explain()
    assert "the KB is asked by ?s\n" in apart


# ------------------------------------------------------------------ failures


def test_what_nobody_needs_yet_fails_nothing(proxy: Misbehaving, query: str) -> None:
    """An answer that is refused as it stands is asked for again without the rest."""
    run = waiting(started(proxy.url, query), range(4))
    proxy.todo = [server.refused(413)]
    assert finished(run, range(1)) == rooms_of(range(1))
    assert [sorted(some) for some in asked(proxy)] == [[0, 1, 2, 3], [0]]
    assert finished(run, range(1, 3), 41) == rooms_of(range(1, 3)), "they are asked for as needed"
    assert counted(run) == (0, 0)


def test_too_many_solutions_for_what_nobody_needs_yet(proxy: Misbehaving, query: str) -> None:
    run = waiting(started(proxy.url, query, rows=2), range(4))
    assert finished(run, range(1)) == rooms_of(range(1))
    assert [len(some) for some in asked(proxy)] == [4, 1]


def test_an_endpoint_that_is_down_is_asked_once(proxy: Misbehaving, query: str) -> None:
    run = waiting(started(proxy.url, query, attempts=2, backoff=0.001), range(4))
    proxy.otherwise = server.busy
    with pytest.raises(EndpointError, match=r"2 attempts.*503"):
        finished(run, range(1))
    assert len(proxy.queries) == 2
    proxy.otherwise = server.passed_on
    assert finished(run, range(4)) == rooms_of(range(4))


def test_the_bound_is_a_number() -> None:
    with pytest.raises(KbError, match="prefetch must be 0 or more"):
        spaseq.Endpoint("http://example.org/", prefetch=-1)


def test_the_cache_counts_what_came_of_use() -> None:
    now = [0.0]
    cache = KeyCache(2, 10.0, 1.0, lambda: now[0])
    keys = [(server.ox.Literal(n),) for n in range(3)]
    row = (server.ox.Literal("x"),)
    cache.put(keys[0], [row], ahead=True)
    assert cache.has(keys[0])
    assert cache.used == 0
    cache.get(keys[0])
    cache.get(keys[0])
    assert cache.used == 1, "once for each"
    cache.put(keys[1], [row], ahead=True)
    now[0] = 11.0
    assert not cache.has(keys[1])
    cache.get(keys[1])
    assert cache.used == 1, "too late"
    for key in keys:
        cache.put(key, [row], ahead=True)
    cache.put(keys[0], [row])
    cache.get(keys[0])
    assert cache.used == 1, "the first had gone, and came again when it was needed"

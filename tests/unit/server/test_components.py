"""Time by component: streams that no query connects have nothing to do with each other."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from driven_server import DrivenServer
from served import RISE, SPARQL, TRIG, Served, served

from spaseq.errors import ChangeError, StateError
from spaseq.server.inputs import Accepted
from spaseq.server.machine import Machine
from spaseq.server.recovery import upgraded

TRADES, NEWS, ALARMS = (f"http://example.org/{name}" for name in ("trades", "news", "alarms"))


def rise(stream: str) -> str:
    """The query of `served.RISE` over another stream."""
    return RISE.replace("trades", stream)


def both(first: str, second: str) -> str:
    """A query whose first event is of one stream, and whose second one is of another."""
    return (
        f"PREFIX : <http://example.org/>\nSELECT ?c ?p1 ?p2 WITHIN 10 SECONDS\n"
        f"FROM STREAM {first} :{first}\nFROM STREAM {second} :{second}\n"
        f"WHERE {{ SEQ(A : B) DEFINE GPM A ON {first} {{ ?c :price ?p1 }}\n"
        f"  DEFINE GPM B ON {second} {{ ?c :price ?p2 }} }}"
    )


def writer(name: str, read: str, written: str) -> str:
    """A query that registers a stream with the prices of another one."""
    return (
        f"PREFIX : <http://example.org/>\nREGISTER STREAM :{written} AS\n"
        f"CONSTRUCT {{ ?c :price ?p1 }} WITHIN 10 SECONDS FROM STREAM {read} :{read}\n"
        f"WHERE {{ SEQ(A) DEFINE GPM A ON {read} {{ ?c :price ?p1 }} }}"
    )


def event(at: Any, price: int, name: str = "") -> bytes:
    """An event at a time: a number, or a date as a text."""
    stamp = str(at) if isinstance(at, int) else f'"{at}"^^xsd:dateTime'
    return (
        "@prefix : <http://example.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"
        f"@prefix prov: <http://www.w3.org/ns/prov#> .\n:t{name}{price}-{abs(hash(at))} "
        f"prov:generatedAtTime {stamp} . :t{name}{price}-{abs(hash(at))} {{ :eBay :price {price} }}"
    ).encode()


def push(server: Served, stream: str, *pairs: tuple[Any, int]) -> dict[str, Any]:
    """The answer to a body of events."""
    answer = server.http.post(
        f"/v1/streams/{stream}/events", content=b"\n".join(event(*p) for p in pairs), headers=TRIG
    )
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


def streams(server: Served) -> dict[str, dict[str, Any]]:
    """What the server says about each stream."""
    return {one["iri"]: one for one in server.http.get("/v1/streams").json()["items"]}


def crashed(server: Served, tmp_path: Path) -> Path:
    """The state as a crash would leave it now."""
    import shutil

    copy = tmp_path.with_name(f"{tmp_path.name}-copy")
    shutil.copytree(server.folder, copy)
    return copy


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        yield running


# ---------------------------------------------------------------- nothing in common


@pytest.mark.parametrize("ending", ["none", "stop", "crash"])
def test_a_clock_in_the_future_mutes_nobody_else(tmp_path: Path, ending: str) -> None:
    with served(tmp_path, idle=0.1) as server:
        server.put("trades", rise("trades"))
        server.put("badclock", rise("badclock"))
        push(server, "trades", (100, 10))
        push(server, "badclock", (4_000_000_000, 1))
        time.sleep(0.3)  # as long as a silent stream holds back others
        state = crashed(server, tmp_path) if ending == "crash" else tmp_path
        if ending == "none":
            assert push(server, "trades", (101, 11))["accepted"] == 1
            assert server.found("trades") == [(10, 11)]
    if ending != "none":
        with served(state) as server:
            assert push(server, "trades", (101, 11))["accepted"] == 1
            assert server.found("trades") == [(10, 11)]
            assert server.http.get("/readyz").json()["ready"]


def test_a_slow_stream_starves_nobody_else(server: Served) -> None:
    server.put("mine", rise("mine"))
    server.put("theirs", rise("theirs"))
    push(server, "theirs", (1, 1))
    push(server, "mine", (1_000_000, 1), (1_000_001, 2))
    assert server.found("mine") == [(1, 2)]
    shown = streams(server)
    assert all(one["waiting"] == 0 and not one["holds_back"] for one in shown.values())
    assert shown["http://example.org/mine"]["component"] == ["http://example.org/mine"]


def test_numbers_and_dates_side_by_side(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.put("numbers", rise("numbers"))
        server.put("dates", rise("dates"))
        push(server, "numbers", (1, 1))
        push(server, "dates", ("2026-01-01T00:00:00Z", 1))
        push(server, "numbers", (2, 2))
    with served(tmp_path) as server:
        push(server, "dates", ("2026-01-01T00:00:01Z", 2))
        push(server, "numbers", (3, 3))
        assert server.found("dates") == [(1, 2)]
        assert server.found("numbers") == [(1, 2), (1, 3), (2, 3)]
        refused = server.put("both", both("numbers", "dates"))
        assert refused.status_code == 409
        assert "whose times are numbers" in refused.json()["detail"]
        wrong = server.http.post(
            "/v1/streams/numbers/events", content=event("2026-01-01T00:00:00Z", 1), headers=TRIG
        )
        assert wrong.status_code == 400
        assert "that at <http://example.org/numbers> is a number" in wrong.json()["detail"]


def test_a_new_query_has_a_time_of_its_own(server: Served) -> None:
    server.put("old", rise("old"))
    push(server, "old", (1000, 1))
    server.put("new", rise("new"))
    assert push(server, "new", (1, 1), (2, 2)) | {"token": 0} == {
        "accepted": 2, "late": 0, "rejected": 0, "token": 0,
    }  # fmt: skip
    assert server.found("new") == [(1, 2)]


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_arrival_between_components_is_of_no_effect(tmp_path: Path, seed: int) -> None:
    """Two components give what each gives alone, however their bodies and restarts interleave."""
    draw = random.Random(seed)
    names = ["a", "b"]
    sent: dict[str, list[tuple[int, int]]] = {}
    for name in names:
        at, sent[name] = draw.choice((0, 10**6)), []
        for _ in range(12):
            at += draw.randrange(6)
            sent[name].append((at, draw.randrange(100)))
    found = {}
    order = [name for name in names for _ in range(12)]
    draw.shuffle(order)
    server: Served
    place = {"a": 0, "b": 0}
    halves = order[:11], order[11:]
    for half, some in enumerate(halves):
        with served(tmp_path) as server:
            if half == 0:
                for name in names:
                    server.put(name, rise(name))
            for name in some:
                answer = push(server, name, sent[name][place[name]])
                assert answer["accepted"] == 1
                place[name] += 1
            found = {name: server.found(name) for name in names}
    for name in names:
        expected = [
            (p1, p2)
            for n, (t2, p2) in enumerate(sent[name])
            for t1, p1 in sent[name][:n]
            if t2 <= t1 + 10 and p2 > p1
        ]
        assert sorted(found[name]) == sorted(expected)


# ---------------------------------------------------------------- connected


def test_streams_of_one_query_wait_for_each_other_and_say_so(server: Served) -> None:
    server.put("both", both("trades", "news"))
    server.put("alone", rise("alarms"))
    push(server, "trades", (1, 10))
    push(server, "alarms", (50, 1), (51, 2))
    assert server.found("alone") == [(1, 2)]
    shown = streams(server)
    assert shown[NEWS]["holds_back"]
    assert shown[TRADES]["held_back_by"] == NEWS
    assert shown[TRADES]["component"] == [TRADES, NEWS] == shown[NEWS]["component"]
    assert not shown[ALARMS]["holds_back"]
    deadline = time.monotonic() + 10
    while (ready := server.http.get("/readyz").json())["ready"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert any(
        text.startswith(f"stream <{NEWS}>: quiet for") and f"holds back <{TRADES}>" in text
        for text in ready["not_ready"]
    )
    push(server, "news", (2, 20))
    push(server, "trades", (3, 30))
    assert server.found("both") == [(10, 20)]


@pytest.mark.parametrize("restart", [False, True])
def test_a_registered_stream_connects(tmp_path: Path, restart: bool) -> None:
    with served(tmp_path) as server:
        server.put("writer", writer("writer", "trades", "prices"))
        server.put("alone", rise("news"))
        push(server, "news", (10**6, 1))
        server.put("reader", both("prices", "alarms"))
        push(server, "trades", (1, 10))
        assert streams(server)[TRADES]["component"] == [TRADES, ALARMS]
        if not restart:
            push(server, "alarms", (2, 5))
            push(server, "trades", (3, 11))
            push(server, "alarms", (4, 5))
            assert server.found("reader") == [(10, 5)]
    if restart:
        with served(tmp_path) as server:
            push(server, "alarms", (2, 5))
            push(server, "trades", (3, 11))
            push(server, "alarms", (4, 5))
            assert server.found("reader") == [(10, 5)]
            assert streams(server)[NEWS]["component"] == [NEWS]


@pytest.mark.parametrize("restart", [False, True])
def test_a_query_that_connects_two_components(tmp_path: Path, restart: bool) -> None:
    """Nothing becomes late, and nothing that was matched is matched again."""
    with served(tmp_path) as server:
        server.put("a", rise("trades"))
        server.put("b", rise("news"))
        push(server, "trades", (100, 1))
        push(server, "news", (200, 1))
        assert server.put("ab", both("trades", "news")).status_code == 201
        if restart:
            folder = crashed(server, tmp_path)
    with served(folder if restart else tmp_path) as server:
        assert push(server, "trades", (101, 2))["accepted"] == 1
        assert server.found("a") == [(1, 2)]
        assert push(server, "news", (201, 3))["accepted"] == 1
        assert push(server, "news", (199, 3))["late"] == 1
        assert push(server, "trades", (195, 4))["accepted"] == 1
        assert push(server, "trades", (203, 5))["accepted"] == 1
        assert server.found("b") == [(1, 3)]
        assert server.found("ab") == [(4, 3)]
        # Without the query, the streams are on their own again.
        assert server.http.delete("/v1/queries/ab").status_code == 204
        push(server, "news", (1000, 1), (1001, 2))
        assert server.found("b") == [(1, 3), (1, 2)]
        assert push(server, "trades", (204, 6))["accepted"] == 1
        assert server.found("a")[-1] == (5, 6)


def test_a_replacement_that_connects(server: Served) -> None:
    server.put("a", rise("trades"))
    server.put("b", rise("news"))
    push(server, "trades", (100, 1))
    push(server, "news", (1, 1))
    assert server.put("b", both("trades", "news")).status_code == 200
    assert streams(server)[TRADES]["component"] == [TRADES, NEWS]
    push(server, "trades", (101, 2))
    assert push(server, "news", (2, 2))["accepted"] == 1
    assert server.found("a") == []
    push(server, "news", (105, 5))
    assert server.found("a") == [(1, 2)]
    push(server, "trades", (106, 0))
    assert server.found("b") == [(2, 5)]
    server.put("b", rise("news"))
    assert streams(server)[TRADES]["component"] == [TRADES]


@pytest.mark.parametrize("ending", ["none", "stop", "crash"])
def test_a_reader_of_two_registered_streams_joins_their_runs(tmp_path: Path, ending: str) -> None:
    with served(tmp_path) as server:
        server.put("wa", writer("wa", "trades", "x"))
        server.put("rise", rise("trades"))
        server.put("wb", writer("wb", "news", "y"))
        push(server, "trades", (100, 1))
        push(server, "news", (105, 1))
        assert len(server.context.engine.machine.runs) == 2
        assert server.put("reader", both("x", "y")).status_code == 201
        assert len(server.context.engine.machine.runs) == 1
        folder = tmp_path
        if ending == "crash":
            folder = crashed(server, tmp_path)
        if ending == "none":
            _check_joined(server)
    if ending != "none":
        with served(folder) as server:
            _check_joined(server)


@pytest.mark.parametrize("restart", [False, True])
def test_runs_that_were_joined_in_vain_are_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restart: bool
) -> None:
    def refuse(*_: Any) -> None:
        raise ChangeError("not now")

    with served(tmp_path) as server:
        server.put("wa", writer("wa", "trades", "x"))
        server.put("rise", rise("trades"))
        server.put("wb", writer("wb", "news", "y"))
        push(server, "trades", (100, 1))
        push(server, "news", (5, 1))
        monkeypatch.setattr(Machine, "_enter", refuse)
        assert server.put("reader", both("x", "y")).status_code == 409
        monkeypatch.undo()
        folder = crashed(server, tmp_path) if restart else tmp_path
    with served(folder) as server:
        assert len(server.context.engine.machine.runs) == 2
        assert push(server, "trades", (101, 2), (10**6, 0))["accepted"] == 2
        assert push(server, "news", (200, 2))["accepted"] == 1
        assert server.found("rise") == [(1, 2)]
        assert server.put("reader", both("x", "y")).status_code == 201


def _check_joined(server: Served) -> None:
    # The run is at the later time, and nothing is lost of what was before.
    assert push(server, "trades", (104, 7))["late"] == 1
    assert push(server, "trades", (106, 8))["accepted"] == 1
    assert push(server, "news", (108, 9))["accepted"] == 1
    assert push(server, "trades", (110, 10))["accepted"] == 1
    assert push(server, "news", (111, 10))["accepted"] == 1
    assert server.found("rise") == [(1, 8), (1, 10), (8, 10)]
    assert server.found("reader") == [(8, 9)]
    assert server.http.delete("/v1/queries/reader").status_code == 204
    assert len(server.context.engine.machine.runs) == 2
    push(server, "news", (500, 10))
    push(server, "trades", (112, 11))
    assert (10, 11) in server.found("rise")


def test_a_draining_version_moves_with_its_run(server: Served) -> None:
    server.put("ab", both("trades", "news"))
    server.put("a", rise("trades"))
    server.put("b", rise("news"))
    push(server, "news", (1, 1))
    push(server, "trades", (1, 1))
    fall = rise("trades").replace("?p2 > ?p1", "?p2 < ?p1")
    assert server.put("a", fall, params={"state": "drain"}).status_code == 200
    assert server.http.delete("/v1/queries/ab").status_code == 204
    push(server, "news", (9000, 1))
    push(server, "trades", (2, 3), (3, 2), (40, 1), (41, 1))
    assert sorted(server.found("a")) == [(1, 2), (1, 3), (3, 2)]
    deadline = time.monotonic() + 10
    while server.http.get("/v1/queries/a").json().get("draining"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert server.found("b") == []


# ---------------------------------------------------------------- too far ahead


def test_events_far_ahead_are_set_aside(tmp_path: Path) -> None:
    with served(tmp_path, max_ahead=60_000_000) as server:
        server.put("rise")
        assert push(server, "trades", (100, 1), (101, 2), (10**9, 3), (102, 4))["ahead"] == 1
        assert server.found() == [(1, 2), (1, 4), (2, 4)]
        answer = push(server, "trades", (10**9, 3))
        assert (answer["accepted"], answer["late"], answer["ahead"]) == (0, 0, 1)
        (aside,) = answer["late_events"]
        assert aside["reason"] == "ahead"
        assert aside["ahead"] > 10**8
        assert streams(server)[TRADES]["ahead"] == 2
        text = server.http.get("/metrics").text
        assert f'spaseq_ahead_events_total{{stream="{TRADES}"}} 2.0' in text
        # A watermark says that the time has come.
        server.http.post("/v1/streams/trades/watermark", json={"time": 10**9 - 5})
        assert push(server, "trades", (10**9, 5), (10**9 + 1, 6))["accepted"] == 2
    with served(tmp_path, max_ahead=60_000_000) as server:
        assert push(server, "trades", (10**9 + 2, 7), (2 * 10**9, 7))["ahead"] == 1
        assert server.found()[-3:] == [(5, 6), (5, 7), (6, 7)]


def test_the_first_date_is_compared_with_the_clock_of_the_machine(tmp_path: Path) -> None:
    with served(tmp_path, max_ahead=3_600_000_000) as server:
        server.put("rise")
        assert push(server, "trades", ("2999-01-01T00:00:00Z", 1))["ahead"] == 1
        assert push(server, "trades", ("2020-01-01T00:00:00Z", 1))["accepted"] == 1
        assert push(server, "trades", ("2020-01-01T02:00:00Z", 1))["ahead"] == 1
        assert push(server, "trades", ("2020-01-01T00:59:00Z", 1))["accepted"] == 1


# ---------------------------------------------------------------- streams that no query reads


def test_a_stream_that_no_query_reads_can_be_removed(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        remove: Any = server.http.delete
        server.put("rise")
        push(server, "trades", (100, 1))
        assert remove("/v1/streams/trades").status_code == 409
        server.put("other", rise("news"))
        server.http.delete("/v1/queries/rise")
        assert streams(server)[TRADES]["component"] is None
        assert remove("/v1/streams/http%3A%2F%2Fexample.org%2Ftrades").status_code == 204
        assert remove("/v1/streams/trades").status_code == 404
        assert list(streams(server)) == [NEWS]
        server.put("paused", rise("alarms"), headers=SPARQL)
        server.http.patch("/v1/queries/paused", json={"paused": True})
        assert remove("/v1/streams/alarms").status_code == 409
    with served(tmp_path) as server:
        assert list(streams(server)) == [NEWS, ALARMS]
        server.put("rise")
        assert push(server, "trades", (1, 1), (2, 2))["accepted"] == 2
        assert server.found() == [(1, 2)]


# ---------------------------------------------------------------- states of an earlier version


def _downgraded(saved: dict[str, Any]) -> dict[str, Any]:
    """The state of a machine as the first version wrote it, with one time for all."""
    return {
        "queries": [data[:8] for data in saved["queries"]],
        "draining": [[record, data[:8]] for record, data in saved["draining"]],
        "runs": [run[:4] for run in saved["runs"]],
        "streams": [
            {key: value for key, value in one.items() if key not in ("reached", "domain")}
            | {"counts": one["counts"][:4]}
            for one in saved["streams"]
        ],
        "feeds": saved["feeds"],
        "kb": saved["kb"],
        "domain": saved["streams"][0]["domain"],
    }


def test_the_state_of_the_first_version_is_read_and_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All queries are in one run, as they were, since nothing divides it when `ab` leaves.
    monkeypatch.setattr("spaseq.server.places.QueryPlaces._divide", lambda self, standing: None)
    monkeypatch.setattr("spaseq.server.machine.Machine.state", _state_of_first(Machine.state))
    with served(tmp_path) as server:
        server.put("ab", both("trades", "news"))
        server.put("a", rise("trades"))
        server.put("b", rise("news"))
        server.put("w", writer("w", "trades", "prices"))
        server.http.delete("/v1/queries/ab")
        push(server, "trades", (100, 1))
        push(server, "news", (101, 1))
        assert len(server.context.engine.machine.runs) == 1
    monkeypatch.undo()
    with served(tmp_path) as server:
        assert len(server.context.engine.machine.runs) == 2
        assert streams(server)[TRADES]["component"] == [TRADES]
        push(server, "news", (105, 7), (10**6, 8))
        assert server.found("b") == [(1, 7)]
        push(server, "trades", (106, 7))
        assert server.found("a") == [(1, 7)]
        assert server.put("r", both("prices", "alarms")).status_code == 201


def _state_of_first(state: Any) -> Any:
    return lambda machine: _downgraded(state(machine))


def test_a_state_of_a_later_version_is_refused() -> None:
    with pytest.raises(StateError, match="version 9, and this spaseq reads versions up to 2"):
        upgraded({"version": 9})


# ---------------------------------------------------------------- drawn changes


@pytest.mark.parametrize("seed", range(8))
def test_queries_of_one_stream_keep_their_results_whatever_connects_them(
    tmp_path: Path, seed: int
) -> None:
    """Queries over one stream find what they find alone, while others connect and leave."""
    draw = random.Random(seed)
    names = ["trades", "news", "alarms"]
    server = DrivenServer(tmp_path, durable=True)
    sent: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    seen: dict[str, int] = {}
    at, others, has_joined = dict.fromkeys(names, 0), set[str](), False
    try:
        for number in range(40):
            action, name = draw.randrange(10), draw.choice(names)
            other = draw.choice([one for one in names if one != name])
            if action == 0 and name not in seen:
                server.put_query(name, rise(name))
                seen[name] = len(sent[name])
            elif action == 1:
                server.put_query(f"both{number}", both(name, other))
                others.add(f"both{number}")
            elif action == 2 and not any(one.startswith("w") for one in others):
                for one, text in (
                    ("w1", writer("w1", name, f"x{number}")),
                    ("w2", writer("w2", other, f"y{number}")),
                    ("reader", both(f"x{number}", f"y{number}")),
                ):
                    server.put_query(one, text)
                    others.add(one)
                has_joined = True
            elif action == 3 and others:
                leaving = ("reader", "w1", "w2") if "reader" in others else (min(others),)
                for one in leaving:
                    server.do(partial(server.engine.remove_query, one))
                    others.discard(one)
            elif action == 4:
                draw.choice((server.restart, server.crash, server.checkpoint))()
            elif seen:
                name = draw.choice(sorted(seen))
                at[name] += draw.randrange(4)
                taken = _push_quads(server, name, at[name], len(sent[name]))
                if taken.late:
                    assert has_joined
                else:
                    sent[name].append((at[name], len(sent[name])))
        for one in sorted(others):
            server.do(partial(server.engine.remove_query, one))
        for name, first in seen.items():
            at[name] += 100
            _push_quads(server, name, at[name], -1)
            events = sent[name][first:]
            expected = [
                (p1, p2) for t1, p1 in events for t2, p2 in events if p1 < p2 and t2 <= t1 + 10
            ]
            found = [
                tuple(int(one["bindings"][variable]["value"]) for variable in ("p1", "p2"))
                for one in server.lines(name)
            ]
            assert sorted(found) == sorted(expected), name
    finally:
        server.close()


def _push_quads(server: DrivenServer, stream: str, at: int, price: int) -> Accepted:
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    graph = f"<http://e/{stream}{price}>"
    text = (
        f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{at}"^^{integer} .\n'
        f'<http://e/c> <http://example.org/price> "{price}"^^{integer} {graph} .\n'
    )
    return server.push(f"http://example.org/{stream}", text.encode())


def of_one(read: str, silent: str) -> str:
    """A query whose events are of one stream, beside one that no step reads."""
    return (
        f"PREFIX : <http://example.org/>\nSELECT ?c ?p WITHIN TUMBLING 17 SECONDS\n"
        f"FROM STREAM {read} :{read}\nFROM STREAM {silent} :{silent}\n"
        f"WHERE {{ SEQ(A) DEFINE GPM A ON {read} {{ ?c :price ?p }} }}"
    )


@pytest.mark.parametrize("restarts", [False, True])
def test_events_of_one_time_wait_for_the_other_streams_alone(
    tmp_path: Path, restarts: bool
) -> None:
    """Not for a further event of their own stream at this time, which would follow them."""

    def prices(server: Served) -> list[int]:
        return [int(line["bindings"]["p"]["value"]) for line in found(server)]

    def found(server: Served) -> list[Any]:
        return [line for line in server.lines("own") if "bindings" in line]

    with served(tmp_path, idle=None) as server:
        server.put("own", of_one("trades", "news"))
        push(server, "news", (8, 0))
        push(server, "trades", (4, 2), (8, 3), (8, 4), (8, 5))
        # News may have another event at 8, which is no earlier than the second one of trades.
        assert prices(server) == [2, 3]
        if not restarts:
            push(server, "news", (9, 0))
            assert prices(server) == [2, 3, 4, 5]
    if restarts:
        with served(tmp_path, idle=None) as server:
            assert prices(server) == [2, 3]
            push(server, "news", (9, 0))
            assert prices(server) == [2, 3, 4, 5]

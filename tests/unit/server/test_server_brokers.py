"""Brokers as the sources and the sinks of a server: crashes, and brokers that come back."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served import RISE, Served, served, trade

from spaseq.io.read_options import ReadOptions

sys.path.insert(0, str(Path(__file__).parents[1] / "live"))

from servers import Server, mosquitto, needs, redis_server, tansu

SINKS = {"sinks": ["out"]}
TYPE = "application/trig"
TIMED = ReadOptions(time_predicate="http://www.w3.org/ns/prov#generatedAtTime")
"""The times are in the messages, not those of the broker."""


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _put(server: Served) -> None:
    assert server.http.put("/v1/queries/rise", json={"text": RISE, **SINKS}).status_code == 201


def _crash(server: Served, copy: Path) -> None:
    """Copy the state, between two turns of the engine."""
    server.context.engine.call(lambda: shutil.copytree(server.folder, copy)).result()


def _has(server: Served, count: int) -> Callable[[], bool]:
    return lambda: len(server.found()) == count


def _delivered(server: Served, count: int) -> Callable[[], bool]:
    def holds() -> bool:
        [delivery] = server.http.get("/v1/queries/rise").json()["deliveries"]
        return bool(delivery["delivered"] == count)

    return holds


def _prices(texts: Iterator[bytes] | list[bytes]) -> list[tuple[int, int]]:
    found = [json.loads(text)["bindings"] for text in texts]
    return [(int(one["p1"]["value"]), int(one["p2"]["value"])) for one in found]


# ------------------------------------------------------------------ Redis


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Server]:
    with redis_server(tmp_path / "redis") as started:
        yield started


def _client(server: Server) -> Any:
    from redis import Redis

    return Redis(port=server.port)


def _add(server: Server, *pairs: tuple[float, int]) -> None:
    with _client(server) as client:
        for pair in pairs:
            client.xadd("trades", {"data": trade(*pair), "content-type": TYPE})


def _entries(server: Server) -> list[tuple[str, bytes]]:
    with _client(server) as client:
        return [(fields[b"id"].decode(), fields[b"data"]) for _, fields in client.xrange("out")]


def _urls(server: Server, options: str = "") -> dict[str, Any]:
    base = f"redis://127.0.0.1:{server.port}"
    return {
        "sources": {"trades": [f"{base}/trades{options}"]},
        "sinks": {"out": f"{base}/out"},
        "reading": TIMED,
    }


@pytest.mark.parametrize("options", ["", "?group=server"])
def test_redis_to_redis_over_a_crash(tmp_path: Path, redis: Server, options: str) -> None:
    urls = _urls(redis, options)
    with served(tmp_path / "state", **urls) as server:
        _put(server)
        _add(redis, (1, 10), (2, 12))
        _until(_has(server, 1))
        assert server.http.post("/v1/checkpoints").status_code == 201
        _add(redis, (3, 11))
        _until(_has(server, 2))
        _crash(server, tmp_path / "crash")
    _add(redis, (4, 20))
    with served(tmp_path / "crash", **urls) as server:
        expected = [(10, 12), (10, 11), (10, 20), (12, 20), (11, 20)]
        _until(_has(server, 5))
        assert sorted(server.found()) == sorted(expected)
        _until(_delivered(server, 5))
        shown = {one["id"] for one in server.lines("rise") if "id" in one}
    entries = _entries(redis)
    assert {name for name, _ in entries} == shown  # at least once, with the same identifiers
    assert set(_prices([data for _, data in entries])) == set(expected)


def test_a_redis_server_that_comes_back(tmp_path: Path, redis: Server) -> None:
    with served(tmp_path / "state", **_urls(redis)) as server:
        _put(server)
        _add(redis, (1, 10))
        _until(lambda: server.http.get("/v1/streams/trades").json()["events"] == 1)
        redis.stop()
        server.push((2, 12))
        _until(lambda: server.http.get("/readyz").status_code == 503)
        not_ready = " ".join(server.http.get("/readyz").json()["not_ready"])
        assert "trades" in not_ready
        redis.start()
        _add(redis, (3, 15))
        _until(_delivered(server, 3))
        _until(lambda: server.http.get("/readyz").status_code == 200)
        assert sorted(server.found()) == [(10, 12), (10, 15), (12, 15)]
    assert len({name for name, _ in _entries(redis)}) == 3


# ------------------------------------------------------------------ MQTT


def test_mqtt_to_mqtt(tmp_path: Path) -> None:
    needs("paho")
    from test_mqtt import Peer

    with mosquitto(tmp_path / "mosquitto") as broker:
        base = f"mqtt://127.0.0.1:{broker.port}"
        urls: dict[str, Any] = {
            "sources": {"trades": [f"{base}/market/trades"]},
            "sinks": {"out": f"{base}/rises"},
            "reading": TIMED,
        }
        peer = Peer(broker.port, "rises")
        with served(tmp_path / "state", **urls) as server:
            _put(server)
            reader = next(iter(server.context.engine.sources))
            _until(lambda: reader.status == "reading" and reader.source._client.is_connected())  # type: ignore[attr-defined]
            time.sleep(0.2)
            peer.publish(
                [trade(at, 10 + at).decode() for at in (1, 2, 3)], "market/trades", 1, TYPE
            )
            _until(_has(server, 3))
            _until(lambda: len(peer.taken) == 3)
            identifiers = {one["id"] for one in server.lines("rise") if "id" in one}
        peer.close()
        assert sorted(_prices([one.payload for one in peer.taken])) == [
            (11, 12),
            (11, 13),
            (12, 13),
        ]
        assert {one.properties.UserProperty[0][1] for one in peer.taken} == identifiers


# ------------------------------------------------------------------ Kafka


def test_kafka_to_kafka_exactly_once_over_a_crash(tmp_path: Path) -> None:
    needs("confluent_kafka")
    from kafka_log import committed
    from test_kafka import Writer, make

    with tansu(tmp_path / "tansu") as address:
        urls: dict[str, Any] = {
            "sources": {"trades": [f"kafka://{address}/trades"]},
            "sinks": {"out": f"kafka://{address}/out"},
            "reading": TIMED,
        }
        for topic in ("trades", "out"):
            make(address, topic)
        writer = Writer(address, "trades")
        writer.write([trade(at, price).decode() for at, price in ((1, 10), (2, 12))], kind=TYPE)
        with served(tmp_path / "state", **urls) as server:
            _put(server)
            _until(_delivered(server, 1))
            _crash(server, tmp_path / "crash")
        writer.write([trade(3, 15).decode()], kind=TYPE)
        with served(tmp_path / "crash", **urls) as server:
            _until(_delivered(server, 3))
        assert sorted(_prices(committed(address, "out")[0])) == [(10, 12), (10, 15), (12, 15)]

"""Connections with TLS, whose certificates an authority of the tests has signed."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
from servers import (
    Certificates,
    certificates,
    mosquitto,
    nats_server,
    redis_server,
)
from session_runs import Running, values
from test_following import event
from test_kafka import timed

from spaseq.errors import SpaseqError
from spaseq.live.session import LiveOptions


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return certificates(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Of an authority that has signed nothing here."""
    return certificates(tmp_path_factory.mktemp("others"))


def source(folder: Path) -> str:
    (folder / "s.nq").write_text(event(1) + event(2), "utf-8")
    return str(folder / "s.nq")


def written(folder: Path, url: str) -> None:
    """Write two matches to a URL."""
    with Running(folder, source(folder), options=LiveOptions(follow=True), output=url) as run:
        run.wait_for(lambda: run.session.written == 2)


def read(folder: Path, url: str) -> list[str]:
    """The first two events of a URL."""
    with Running(folder, url, reading=timed()) as run:
        run.wait_for_matches(2)
    return values(run.found)


def refused(folder: Path, url: str) -> list[str]:
    """What a run says that cannot trust the server."""
    said: list[str] = []
    try:
        with Running(folder, url, reading=timed()) as run:
            until = time.monotonic() + 20.0
            while not said and run.failure is None and time.monotonic() < until:
                time.sleep(0.02)
                said = [text for text in run.said if "connection" in text or "ertific" in text]
            assert run.found == []
    except SpaseqError as error:
        said.append(str(error))
    return said


def test_redis(tmp_path: Path, tls: Certificates, others: Certificates) -> None:
    with redis_server(tmp_path / "redis", tls) as server:
        url = f"rediss://localhost:{server.port}/"
        written(tmp_path, f"{url}rises?ca={tls.ca}")
        from redis import Redis

        with Redis(
            "localhost", server.port, ssl=True, ssl_ca_certs=str(tls.ca), decode_responses=True
        ) as client:
            assert client.xlen("rises") == 2
            for number in (1, 2):
                client.xadd("readings", {"data": event(number)})
        assert read(tmp_path, f"{url}readings?ca={tls.ca}") == ["1", "2"]
        assert "certificate verify failed" in str(
            refused(tmp_path, f"{url}readings?ca={others.ca}")
        )


# The client leaves the socket of a failed handshake to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_mqtt(tmp_path: Path, tls: Certificates, others: Certificates) -> None:
    with mosquitto(tmp_path / "mosquitto", tls=tls) as server:
        from paho.mqtt.client import CallbackAPIVersion, Client, MQTTv5

        url = f"mqtts://localhost:{server.port}/"
        client: Any = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        client.tls_set(ca_certs=str(tls.ca))
        client.connect("localhost", server.port)
        client.loop_start()
        for number in (1, 2):
            client.publish(f"readings/{number}", event(number), 2, retain=True).wait_for_publish(20)
        assert sorted(read(tmp_path, f"{url}readings/+?ca={tls.ca}")) == ["1", "2"]
        written(tmp_path, f"{url}rises?ca={tls.ca}")
        client.disconnect()
        client.loop_stop()
        assert refused(tmp_path, f"{url}readings/+?ca={others.ca}")


def test_nats(tmp_path: Path, tls: Certificates, others: Certificates) -> None:
    with nats_server(tmp_path / "nats", tls) as server:

        async def fill() -> None:
            import nats

            trusted = ssl.create_default_context(cafile=str(tls.ca))
            connection = await nats.connect(f"nats://localhost:{server.port}", tls=trusted)
            jetstream = connection.jetstream()
            await jetstream.add_stream(name="READINGS", subjects=["readings"])
            for number in (1, 2):
                await jetstream.publish("readings", event(number).encode())
            await connection.close()

        asyncio.run(fill())
        url = f"nats://localhost:{server.port}/readings"
        assert read(tmp_path, f"{url}?ca={tls.ca}") == ["1", "2"]
        assert "certificate verify failed" in str(refused(tmp_path, f"{url}?ca={others.ca}"))

"""Connections with TLS, whose certificates an authority of the tests has signed.

Each server is used with its own authority, and refused with another one.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from followed import PATIENCE, ROOT
from kafka_log import committed
from servers import (
    Certificates,
    certificates,
    free_port,
    mosquitto,
    nats_server,
    needs,
    postgresql,
    redis_server,
    tansu_server,
    tls_relay,
)
from session_runs import EACH, Running, values
from test_following import event
from test_kafka import Writer, make, timed
from web_servers import (
    EventFeed,
    EventStream,
    Sockets,
    answer,
    event_feed,
    http_server,
    websocket_server,
)

from spaseq.errors import InputError, SpaseqError
from spaseq.live.registry import open_source
from spaseq.live.session import LiveOptions

UNTRUSTED = (
    r"the certificate of the server is not trusted.*\(the option ca=FILE names the authority"
)


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


def source_refuses(folder: Path, url: str, said: str = UNTRUSTED) -> None:
    with pytest.raises(InputError, match=said), Running(folder, url, reading=timed()) as run:
        run.join()


def sink_refuses(folder: Path, url: str, said: str = UNTRUSTED) -> None:
    said = f"cannot be written: .*{said}"
    with (
        pytest.raises(SpaseqError, match=said),
        Running(folder, source(folder), output=url) as run,
    ):
        run.join()


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
        source_refuses(tmp_path, f"{url}readings?ca={others.ca}")
        sink_refuses(tmp_path, f"{url}rises?ca={others.ca}")


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
        source_refuses(tmp_path, f"{url}readings/+?ca={others.ca}")
        sink_refuses(tmp_path, f"{url}rises?ca={others.ca}")


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
        source_refuses(tmp_path, f"{url}?ca={others.ca}")


def test_kafka(tmp_path: Path, tls: Certificates, others: Certificates) -> None:
    port = free_port()
    secure = f"127.0.0.1:{port}"
    with (
        tansu_server(tmp_path / "tansu", advertised=secure) as (server, _, _),
        tls_relay(server.port, port, tls),
    ):
        options = {"security.protocol": "SSL", "ssl.ca.location": str(tls.ca)}
        for topic in ("readings", "rises"):
            make(secure, topic, options=options)
        Writer(secure, "readings", options).write([event(1), event(2)])
        url = f"kafka://{secure}/"
        assert read(tmp_path, f"{url}readings?ca={tls.ca}") == ["1", "2"]
        written(tmp_path, f"{url}rises?ca={tls.ca}")
        assert len(committed(f"127.0.0.1:{server.port}", "rises")[0]) == 2
        source_refuses(tmp_path, f"{url}readings?ca={others.ca}")
        sink_refuses(tmp_path, f"{url}rises?ca={others.ca}")


def test_postgresql(tmp_path: Path, tls: Certificates, others: Certificates) -> None:
    with postgresql(tmp_path / "postgresql", tls) as server:
        url = f"postgresql://postgres@localhost:{server.port}/postgres?sslmode=verify-full"
        written(tmp_path, f"{url}&table=rises&sslrootcert={tls.ca}")
        sink_refuses(
            tmp_path,
            f"{url}&sslrootcert={others.ca}",
            r"certificate verify failed \(the option sslrootcert=FILE names the authority",
        )


def test_events(tmp_path: Path, tls: Certificates, others: Certificates) -> None:
    feed = EventFeed()
    feed.add([event(1).encode(), event(2).encode()])
    with event_feed(feed, tls) as url:
        assert read(tmp_path, f"{url}#ca={tls.ca}") == ["1", "2"]
        source_refuses(tmp_path, f"{url}#ca={others.ca}")


def test_websocket(tmp_path: Path, tls: Certificates, others: Certificates) -> None:
    sockets = Sockets()
    with websocket_server(sockets, tls) as url:
        with Running(tmp_path, f"{url}#ca={tls.ca}", reading=timed()) as run:
            sockets.wait_for_connection()
            sockets.send([event(1), event(2)])
            run.wait_for_matches(2)
        assert values(run.found) == ["1", "2"]
        source_refuses(tmp_path, f"{url}#ca={others.ca}")


def test_event_stream(tmp_path: Path, tls: Certificates, others: Certificates) -> None:
    stream = EventStream()
    for second in (1, 2):
        stream.add(second, f":value {second}")
    with http_server(stream.handle, tls) as url:
        with Running(tmp_path, f"ldes+{url}/stream#ca={tls.ca}") as run:
            run.wait_for_matches(2)
        assert values(run.found) == ["1", "2"]
        source_refuses(tmp_path, f"ldes+{url}/stream#ca={others.ca}")


def test_webhook(tmp_path: Path, tls: Certificates, others: Certificates) -> None:
    received: list[bytes] = []

    def take(request: BaseHTTPRequestHandler) -> None:
        received.append(request.rfile.read(int(request.headers["Content-Length"])))
        answer(request, 204)

    with http_server(take, tls) as url:
        written(tmp_path, f"{url}/rises#ca={tls.ca}")
        assert len(received) == 2
        sink_refuses(tmp_path, f"{url}/rises#ca={others.ca}")


def test_finished_file(tmp_path: Path, tls: Certificates) -> None:
    """The client of files has no option; the variable of OpenSSL says whom it trusts."""
    needs("aiohttp", "fsspec")
    (tmp_path / "query.rq").write_text(EACH, "utf-8")

    def serve(request: BaseHTTPRequestHandler) -> None:
        answer(request, 200, event(1).encode())

    with http_server(serve, tls) as url:
        done = subprocess.run(
            [sys.executable, "-m", "spaseq", "run", "query.rq", "--stream",
             f"readings={url}/s.nq", "--format", "csv"],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), "SSL_CERT_FILE": str(tls.ca)},
            capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
    assert done.stdout == "value\n1\n", done.stderr


def test_another_host(tmp_path: Path) -> None:
    """If the certificate is that of another host, the authority is not to blame."""
    tls = certificates(tmp_path / "authority", "DNS:elsewhere.example")
    with http_server(lambda request: answer(request, 500), tls) as url:
        said = r"not trusted: IP address mismatch.*'127.0.0.1'\.$"
        source_refuses(tmp_path, f"{url}/events#ca={tls.ca}", said)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://h/events#ca=ca.pem", "ca is for connections with TLS: write https://"),
        ("ldes+http://h/s#ca=ca.pem", "ca is for connections with TLS: write https://"),
        ("mqtt://h/t?ca=ca.pem", "ca is for connections with TLS: write mqtts://"),
        ("redis://h/s?ca=ca.pem", "ca is for connections with TLS: write rediss://"),
        ("kafka://h/t?ca=/dev/null&security=PLAINTEXT", "ca is .* not for PLAINTEXT"),
        ("wss://h/feed#ca=no/such.pem", "ca=no/such.pem cannot be read: No such file"),
        ("mqtts://h/t?ca=/dev/null", "ca=/dev/null cannot be read: it has no certificates"),
        ("kafka://h/t?ca=no/such.pem", "ca=no/such.pem cannot be read: No such file"),
    ],
)
def test_options_are_checked(url: str, said: str) -> None:
    needs("paho", "redis", "confluent_kafka", "websockets")
    with pytest.raises(SpaseqError, match=said):
        open_source(url, str)

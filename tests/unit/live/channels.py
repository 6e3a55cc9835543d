"""A server of each scheme with a stream of trades and a place for rises, for the documents."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from kafka_log import committed
from servers import (
    PATIENCE,
    mosquitto,
    nats_server,
    postgresql,
    postgresql_url,
    redis_server,
    tansu,
)
from web_servers import EventFeed, EventStream, Sockets, answer, http_server, websocket_server

TRADES = [(1, 10), (2, 12), (9, 15)]
"""(time, price) of the trades that the documents name first."""


def trade(time_: int, price: int) -> bytes:
    """A trade as one message."""
    name = f"<http://example.org/t{time_}>"
    number = "http://www.w3.org/2001/XMLSchema#integer"
    return (
        f'{name} <http://www.w3.org/ns/prov#generatedAtTime> "{time_}"^^<{number}> {name} .\n'
        f'<http://example.org/eBay> <http://example.org/price> "{price}"^^<{number}> {name} .\n'
    ).encode()


@dataclass
class Channel:
    """A server that is ready; `names` replaces the addresses of the document."""

    names: dict[str, str]
    taken: Callable[[], Sequence[str]] = lambda: ()
    """The matches that a sink has written, as JSON."""
    after_start: Callable[[], None] | None = None
    """Writes the trades once the run listens, where a channel keeps nothing."""
    environment: dict[str, str] = field(default_factory=dict)


def wait_for(condition: Callable[[], Any]) -> None:
    """Wait until something holds."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@contextmanager
def kafka(folder: Path) -> Iterator[Channel]:
    with tansu(folder) as address:
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        topics = [NewTopic(name, 1, 1) for name in ("trades", "rises")]
        for made in admin.create_topics(topics).values():
            made.result(PATIENCE)
        producer: Any = Producer({"bootstrap.servers": address, "log_level": 0})
        for each in TRADES:
            producer.produce("trades", trade(*each))
        assert producer.flush(PATIENCE) == 0

        def taken() -> list[str]:
            return [value.decode() for value in committed(address, "rises")[0]]

        yield Channel({"localhost:9092": address}, taken)


@contextmanager
def https(folder: Path) -> Iterator[Channel]:
    """A stream of events, and a receiver of webhooks."""
    feed, posted = EventFeed(), list[bytes]()
    feed.add([trade(*each) for each in TRADES])

    def handle(request: BaseHTTPRequestHandler) -> None:
        if request.command == "GET":
            feed.handle(request)
            return
        posted.append(request.rfile.read(int(request.headers["Content-Length"])))
        answer(request, 200 if "webhook-signature" in request.headers else 401)

    with http_server(handle) as address:
        try:
            yield Channel(
                {"https://feeds.example": address, "https://hooks.example": address},
                lambda: [body.decode() for body in posted],
                environment={"HOOK_SECRET": "key"},
            )
        finally:
            feed.close()


@contextmanager
def wss(folder: Path) -> Iterator[Channel]:
    sockets = Sockets()
    with websocket_server(sockets) as url:

        def send() -> None:
            sockets.wait_for_connection()
            sockets.send([trade(*each) for each in TRADES])

        yield Channel({"wss://feeds.example/trades": url}, after_start=send)


@contextmanager
def mqtt(folder: Path) -> Iterator[Channel]:
    with mosquitto(folder) as server:
        from paho.mqtt.client import CallbackAPIVersion, Client, MQTTv5

        received: list[str] = []
        client: Any = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        client.on_message = lambda client, data, message: received.append(message.payload.decode())
        subscribed = threading.Event()
        client.on_subscribe = lambda *_: subscribed.set()
        client.connect("127.0.0.1", server.port)
        client.loop_start()
        client.subscribe("rises", 1)
        assert subscribed.wait(PATIENCE)

        def send() -> None:
            # The broker sends retained messages to later subscribers, too.
            for number, each in enumerate(TRADES):
                name = f"markets/{number}/trades"
                client.publish(name, trade(*each), 2, retain=True).wait_for_publish(PATIENCE)

        send()
        yield Channel({"localhost": f"127.0.0.1:{server.port}"}, lambda: received)
        client.disconnect()
        client.loop_stop()


@contextmanager
def redis(folder: Path) -> Iterator[Channel]:
    with redis_server(folder) as server:
        from redis import Redis

        with Redis(port=server.port, decode_responses=True) as client:
            for each in TRADES:
                client.xadd("trades", {"data": trade(*each)})

            def taken() -> list[str]:
                entries: Any = client.xrange("rises")
                return [fields["data"] for _, fields in entries]

            yield Channel({"localhost": f"127.0.0.1:{server.port}"}, taken)


@contextmanager
def nats(folder: Path) -> Iterator[Channel]:
    with nats_server(folder) as server:

        async def fill() -> None:
            import nats as client

            connection = await client.connect(f"nats://127.0.0.1:{server.port}")
            jetstream = connection.jetstream()
            await jetstream.add_stream(name="TRADES", subjects=["trades.>"])
            for each in TRADES:
                await jetstream.publish("trades.eBay", trade(*each))
            await connection.close()

        asyncio.run(fill())
        yield Channel({"localhost": f"127.0.0.1:{server.port}"})


@contextmanager
def postgresql_channel(folder: Path) -> Iterator[Channel]:
    with postgresql(folder) as server:
        import psycopg

        url = postgresql_url(server.port)

        def taken() -> list[str]:
            with psycopg.connect(url) as db:
                return [row for (row,) in db.execute("SELECT match::text FROM rises")]

        shown = "postgresql://me@localhost/market"
        yield Channel({f"{shown}?": f"{url}?"}, taken, environment={"PGPASSWORD_MARKET": "unused"})


@contextmanager
def ldes(folder: Path) -> Iterator[Channel]:
    stream = EventStream(2)
    for number, (_, price) in enumerate(TRADES, 1):
        stream.add(number, f":price {price} ; :company :eBay")
    with http_server(stream.handle) as address:
        yield Channel({"ldes+https://data.example": f"ldes+{address}"})


CHANNELS: dict[str, Callable[[Path], AbstractContextManager[Channel]]] = {
    "https": https,
    "kafka": kafka,
    "ldes+https": ldes,
    "mqtt": mqtt,
    "nats": nats,
    "postgresql": postgresql_channel,
    "redis": redis,
    "wss": wss,
}

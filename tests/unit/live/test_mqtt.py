"""MQTT as a source and as a sink: sessions, content types, shared subscriptions, restarts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from followed import PATIENCE, newest
from servers import Server, mosquitto, needs
from session_runs import Running, values
from test_following import event

from spaseq.errors import InputError, SpaseqError
from spaseq.io.read_options import ReadOptions
from spaseq.live.mqtt_sink import MqttSink
from spaseq.live.mqtt_source import MqttSource
from spaseq.live.session import LiveOptions

TIMED = ReadOptions(time_predicate="http://www.w3.org/ns/prov#generatedAtTime")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Server]:
    with mosquitto(tmp_path / "mosquitto") as server:
        yield server


class Peer:
    """A client of the tests, which publishes and receives."""

    def __init__(self, port: int, topic: str | None = None):
        from paho.mqtt.client import CallbackAPIVersion, Client, MQTTv5

        self.taken: list[Any] = []
        self._client: Any = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        self._client.on_message = lambda client, data, message: self.taken.append(message)
        ready = threading.Event()
        self._client.on_subscribe = lambda *_: ready.set()
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        if topic is not None:
            self._client.subscribe(topic, 2)
            assert ready.wait(PATIENCE)

    def publish(
        self, texts: Sequence[str], topic: str = "a/readings", qos: int = 2, kind: str | None = None
    ) -> None:
        """Publish messages, and wait for the broker."""
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties: Any = Properties(PacketTypes.PUBLISH)
        if kind is not None:
            properties.ContentType = kind
        made = [self._client.publish(topic, text, qos, properties=properties) for text in texts]
        for each in made:
            each.wait_for_publish(PATIENCE)
            assert each.is_published()

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def peer(broker: Server) -> Iterator[Peer]:
    made = Peer(broker.port)
    yield made
    made.close()


def listening(run: Running, broker: Server) -> None:
    """Wait until a run has subscribed, by messages that are no events of the query."""
    watcher = Peer(broker.port, "$SYS/broker/subscriptions/count")
    watcher.close()
    run.wait_for(lambda: run.session.coordinator.inputs[0].source._client.is_connected())  # type: ignore[attr-defined]
    time.sleep(0.3)


def test_each_message_is_an_event(tmp_path: Path, broker: Server, peer: Peer) -> None:
    url = f"mqtt://127.0.0.1:{broker.port}/+/readings"
    with Running(tmp_path, url, reading=TIMED) as run:
        listening(run, broker)
        peer.publish([event(number) for number in range(1, 200)])
        run.wait_for_matches(199)
        peer.publish([event(200)], "b/readings", qos=0)
        peer.publish([event(300)], "b/others")
        turtle = "@prefix : <http://example.org/> .\n@prefix prov: <http://www.w3.org/ns/prov#> ."
        turtle += "\n:e prov:generatedAtTime 201 . :s :value 201 ."
        peer.publish([turtle], qos=1, kind="text/turtle")
        run.wait_for_matches(201)
    assert values(run.found) == [str(number) for number in range(1, 202)]


@pytest.mark.parametrize("qos", [1, 2])
def test_a_broken_connection_loses_and_doubles_nothing(
    tmp_path: Path, broker: Server, qos: int
) -> None:
    """The broker ends in the middle of messages, and starts again with its sessions."""
    url = f"mqtt://127.0.0.1:{broker.port}/a/readings?client=run&qos={qos}"
    with Running(tmp_path, url, reading=TIMED) as run:
        listening(run, broker)
        peer = Peer(broker.port)
        peer.publish([event(number) for number in range(1, 100)], qos=qos)
        run.wait_for_matches(99)
        time.sleep(2.0)  # the broker stores its sessions each second
        broker.stop()
        run.wait_for(lambda: any("connecting again" in text for text in run.said))
        broker.start()
        again = Peer(broker.port)
        again.publish([event(number) for number in range(100, 200)], qos=qos)
        run.wait_for_matches(199)
        peer.close()
        again.close()
    assert values(run.found) == [str(number) for number in range(1, 200)]


def test_a_session_outlives_the_process(tmp_path: Path, broker: Server, peer: Peer) -> None:
    url = f"mqtt://127.0.0.1:{broker.port}/a/readings?client=run"
    options = LiveOptions(follow=True, state=str(tmp_path / "state"))
    with Running(tmp_path, url, options=options, reading=TIMED) as run:
        listening(run, broker)
        peer.publish([event(1)])
        run.wait_for_matches(1)
        run.wait_for(lambda: newest(tmp_path) > 0)
    peer.publish([event(2), event(3)])
    with Running(tmp_path, url, options=options, reading=TIMED) as run:
        run.wait_for_matches(3)
    assert values(run.found) == ["1", "2", "3"]
    assert any("cannot be read again" in text for text in run.said)


def test_a_shared_subscription_divides_the_messages(
    tmp_path: Path, broker: Server, peer: Peer
) -> None:
    url = f"mqtt://127.0.0.1:{broker.port}/a/readings?share=group"
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    with (
        Running(folders[0], url, reading=TIMED) as one,
        Running(folders[1], url, reading=TIMED) as two,
    ):
        listening(one, broker)
        listening(two, broker)
        peer.publish([event(number) for number in range(1, 101)])
        one.wait_for(lambda: len(one.found) + len(two.found) == 100)
        assert one.found
        assert two.found
    assert sorted(map(int, values([*one.found, *two.found]))) == list(range(1, 101))


def test_blank_nodes_of_a_later_run_are_others(tmp_path: Path, broker: Server, peer: Peer) -> None:
    """A source that cannot be read again goes on with the numbers of its events."""
    query = """
    PREFIX : <http://example.org/>
    SELECT ?a ?b WITHIN 100 SECONDS FROM STREAM readings <http://example.org/readings>
    WHERE {
      SEQ(A ; B)
      DEFINE GPM A ON readings { ?s :value ?a }
      DEFINE GPM B ON readings { ?s :value ?b }
    }
    """
    url = f"mqtt://127.0.0.1:{broker.port}/a/readings?client=run"
    options = LiveOptions(follow=True, state=str(tmp_path / "state"))
    text = "_:b <http://example.org/value> 1 .\n_:e <http://www.w3.org/ns/prov#generatedAtTime> "
    for time_ in (1, 2):
        with Running(tmp_path, url, query, options, TIMED) as run:
            listening(run, broker)
            peer.publish([f"{text}{time_} ."], kind="text/turtle")
            run.wait_for(lambda at=time_: run.session.run.clock.events == at)  # type: ignore[misc]
    assert run.found == []


def test_a_broker_that_refuses_ends_the_run(tmp_path: Path) -> None:
    with mosquitto(tmp_path / "closed", "someone:$7$101$AAAA$BBBB==\n") as server:
        url = f"mqtt://me:very-secret@127.0.0.1:{server.port}/t"
        with pytest.raises(InputError, match=r"me:\*\*\*@.*the broker refuses: Not authorized"):
            Running(tmp_path, url, reading=TIMED).join()
        sink = MqttSink(url, False)
        with pytest.raises(SpaseqError, match="the broker refuses: Not authorized"):
            sink.resume("", {})
        sink.close()


def test_matches_are_messages(tmp_path: Path, broker: Server) -> None:
    receiver = Peer(broker.port, "rises")
    path = tmp_path / "s.nq"
    path.write_text("".join(event(number) for number in range(1, 4)), "utf-8")
    options = LiveOptions(follow=True, state=str(tmp_path / "state"))
    output = f"mqtt://127.0.0.1:{broker.port}/rises"
    with Running(tmp_path, str(path), options=options, output=output) as run:
        run.wait_for(lambda: len(receiver.taken) == 3)
    receiver.close()
    first = receiver.taken[0]
    assert json.loads(first.payload)["bindings"]["value"]["value"] == "1"
    assert first.qos == 1
    assert first.properties.ContentType == "application/json"
    ((name, identifier),) = first.properties.UserProperty
    assert (name, len(identifier)) == ("spaseq-id", 24)


def test_a_sink_waits_for_a_broker_that_comes_back(tmp_path: Path, broker: Server) -> None:
    path = tmp_path / "s.nq"
    path.write_text(event(1), "utf-8")
    output = f"mqtt://127.0.0.1:{broker.port}/rises"
    with Running(tmp_path, str(path), output=output) as run:
        run.wait_for(lambda: run.session.written == 1)
        broker.stop()
        path.write_text(event(1) + event(2), "utf-8")
        run.wait_for(lambda: run.session.written == 2)
        run.wait_for(lambda: any("trying again" in text for text in run.said))
        broker.start()
        receiver = Peer(broker.port, "rises")
        run.wait_for(lambda: len(receiver.taken) >= 1)
    receiver.close()
    found = [json.loads(each.payload)["bindings"]["value"]["value"] for each in receiver.taken]
    assert "2" in found
    assert any("written again" in text for text in run.said)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mqtt://h", "write mqtt://HOST:PORT/TOPIC"),
        ("mqtt://h/t?qos=3", "qos is 2 or 1 or 0, not '3'"),
        ("mqtt://h/t?topic=x", "there is no option topic"),
    ],
)
def test_urls_are_checked(url: str, said: str) -> None:
    needs("paho")
    with pytest.raises(SpaseqError, match=said):
        MqttSource(url, str)
    with pytest.raises(SpaseqError, match="has no wildcard"):
        MqttSink("mqtt://h/a/#", False)

"""Matches → an MQTT topic.

Each match is a message of QoS 1 with its JSON, the content type `application/json` and the user
property `spaseq-id`. The client resends messages that the broker has not acknowledged, even after a
broken connection. A checkpoint waits for all acknowledgements, so each match is delivered at least
once, with the same id.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from spaseq.errors import SpaseqError
from spaseq.live.addresses import client
from spaseq.live.mqtt import REFUSED, begin, mqtt_address, mqtt_client
from spaseq.live.waiting import Waiting
from spaseq.results import Match
from spaseq.runs import Run

MAX_IN_FLIGHT = 1000
SILENCE_SECONDS = 60.0
"""Seconds for which the broker may acknowledge nothing."""


class MqttSink:
    """Publishes messages.

    Args:
        url: `mqtt:` or `mqtts:`, with the options `qos` (1, 0 or 2), `retain` (`no` or `yes`),
            `timeout` (seconds without an acknowledgement after which the run fails, 60) and `ca`.
        keeps: Whether there will be checkpoints.

    Raises:
        SpaseqError: for a wrong URL, or without the client.
    """

    def __init__(self, url: str, keeps: bool):
        self._address = mqtt_address(url, ("qos", "retain", "timeout"))
        self._topic = self._address.path
        if "+" in self._topic or "#" in self._topic:
            raise SpaseqError(f"{self._address.shown}: the topic of an output has no wildcard")
        self._qos = int(self._address.choice("qos", ("1", "0", "2")))
        self._retain = self._address.choice("retain", ("no", "yes")) == "yes"
        self._patience = self._address.number("timeout", SILENCE_SECONDS, 0.1)
        self._client = mqtt_client(self._address, None)
        self._open = 0
        """Messages without an acknowledgement."""
        self._changed = threading.Condition()
        self._heard = time.monotonic()
        self._failure: str | None = None
        self._ready = threading.Event()
        self.waiting = Waiting(self._address.shown)
        self.written = 0

    def resume(self, state: str, tokens: Mapping[int, Any]) -> int:
        made = self._client
        made.on_connect = self._connected
        made.on_connect_fail = self._not_connected
        made.on_disconnect = self._disconnected
        made.on_publish = self._published
        made.max_inflight_messages_set(MAX_IN_FLIGHT)
        mqtt = client("paho.mqtt.client", "paho-mqtt", "mqtt", "mqtt")
        begin(made, self._address, 3600, mqtt.MQTT_CLEAN_START_FIRST_ONLY)
        made.loop_start()
        if not self._ready.wait(self._patience):
            made.loop_stop()
            raise SpaseqError(f"{self._address.shown}: cannot be reached")
        self._raise_failure()
        return max(tokens, default=0)

    def attach(self, run: Run) -> None:
        """Do nothing, since messages are made from match objects."""

    def write(self, match: Match) -> None:
        properties = client("paho.mqtt.properties", "paho-mqtt", "mqtt", "mqtt")
        types = client("paho.mqtt.packettypes", "paho-mqtt", "mqtt", "mqtt")
        own = properties.Properties(types.PacketTypes.PUBLISH)
        own.ContentType = "application/json"
        own.UserProperty = ("spaseq-id", match.id)
        self._wait(MAX_IN_FLIGHT)
        with self._changed:
            if not self._open:
                self._heard = time.monotonic()
            self._open += 1
        self._client.publish(
            self._topic, match.to_json().encode(), self._qos, self._retain, properties=own
        )
        self.written += 1

    def write_block(self) -> None:
        self._raise_failure()

    def prepare(self) -> Any:
        self._wait(1)
        return {}

    def commit(self, number: int) -> None:
        """Do nothing, since the broker already has all messages."""

    def close(self) -> None:
        try:
            if self._ready.is_set() and self._failure is None:
                self._wait(1)
        finally:
            self._client.disconnect()
            self._client.loop_stop()

    def _wait(self, below: int) -> None:
        """Wait until fewer messages are without an acknowledgement."""
        with self._changed:
            while self._open >= below and self._failure is None:
                if time.monotonic() - self._heard > self._patience:
                    raise SpaseqError(
                        f"{self._address.shown}: cannot be written: no acknowledgement for "
                        f"{self._patience:g} s"
                    )
                self._changed.wait(0.1)
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise SpaseqError(f"{self._address.shown}: cannot be written: {self._failure}")

    def _connected(
        self, made: Any, data: Any, flags: Any, reason: Any, properties: Any = None
    ) -> None:
        if not reason.is_failure:
            self.waiting.end()
            self._ready.set()
        elif str(reason) in REFUSED:
            self._failure = f"the broker refuses: {reason}"
            self._ready.set()

    def _not_connected(self, made: Any, data: Any) -> None:
        if made.refused is None:
            self.waiting.begin("no connection")
        else:
            self._failure = made.refused
            self._ready.set()

    def _disconnected(
        self, made: Any, data: Any, flags: Any, reason: Any, properties: Any = None
    ) -> None:
        if reason.is_failure:
            self.waiting.begin(reason)

    def _published(self, made: Any, data: Any, mid: int, reason: Any, properties: Any) -> None:
        with self._changed:
            self._open -= 1
            self._heard = time.monotonic()
            if reason.is_failure:
                self._failure = f"the broker refuses a message: {reason}"
            self._changed.notify_all()

"""MQTT topics → messages.

The broker keeps the session while the connection is broken, and then sends the missing messages:
exactly once with QoS 2, the default. With QoS 1 it may send a message twice; a message with the
flag DUP that was already received is dropped. A message is acknowledged when it is received,
because brokers keep few unacknowledged messages (20 for Mosquitto). The source therefore cannot
read messages again: after a crash, those since the last checkpoint are missing.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

from spaseq.errors import InputError
from spaseq.live.addresses import client
from spaseq.live.mqtt import REFUSED, begin, mqtt_address, mqtt_client
from spaseq.live.protocols import Chunk, Position
from spaseq.live.receiving import Background

SESSION_SECONDS = 3600.0
REMEMBERED = 4096
"""The number of messages of QoS 1 that are remembered, to recognise repetitions."""


class MqttSource:
    """Reads the messages of topics.

    Args:
        url: `mqtt:` or `mqtts:`, with the options `qos` (2, 1 or 0), `client` (the name of a
            session that outlives the process), `session` (seconds for which the broker keeps it,
            3600), `share` (the group of a shared subscription), `type` (the media type of messages
            without one) and `ca`.
        log: Reports what happens to the connection.

    Raises:
        SpaseqError: for a wrong URL, or without the client.
    """

    messages = True
    replays = False

    def __init__(self, url: str, log: Callable[[str], None]):
        self._address = mqtt_address(url, ("qos", "client", "session", "share", "type"))
        options = self._address.options
        self._qos = int(self._address.choice("qos", ("2", "1", "0")))
        self._name = options.get("client")
        self._session = self._address.number("session", SESSION_SECONDS)
        self._type = options.get("type")
        share = options.get("share")
        topic = self._address.path
        self._topic = topic if share is None else f"$share/{share}/{topic}"
        self._mqtt = client("paho.mqtt.client", "paho-mqtt", "mqtt", "mqtt")
        self._client = mqtt_client(self._address, self._name)
        self._log = log
        self._background: Background | None = None
        self._failure: str | None = None
        self._is_down = False
        self._count = 0
        self._seen: OrderedDict[int, bytes] = OrderedDict()
        """Packet identifier → digest of the last message of QoS 1."""

    def open(self, position: Position | None) -> None:
        self._count = 0 if position is None else position["count"]
        made = self._client
        made.on_connect = self._connected
        made.on_connect_fail = self._not_connected
        made.on_disconnect = self._disconnected
        made.on_subscribe = self._subscribed
        made.on_message = self._received
        clean = self._mqtt.MQTT_CLEAN_START_FIRST_ONLY if self._name is None else False
        begin(made, self._address, self._session, clean)
        self._background = Background(self._receive, "mqtt")

    def _receive(self, background: Background) -> None:
        """The loop of the client, which reconnects whenever necessary."""
        self._client.loop_forever(retry_first_connection=True)
        if self._failure is not None:
            raise InputError(self._failure, self._address.shown)

    # ------------------------------------------------------------ called by the client

    def _connected(
        self, made: Any, data: Any, flags: Any, reason: Any, properties: Any = None
    ) -> None:
        if reason.is_failure:
            if str(reason) in REFUSED:
                self._fail(f"the broker refuses: {reason}")
            else:
                self._lost(str(reason))
            return
        if self._is_down:
            self._is_down = False
            lost = "" if flags.session_present else "; the broker has lost the session"
            self._log(f"{self._address.shown}: connected again{lost}")
        if not flags.session_present:
            self._seen.clear()
        options = client("paho.mqtt.subscribeoptions", "paho-mqtt", "mqtt", "mqtt")
        # Retained messages arrive only with a new subscription.
        wanted = options.SubscribeOptions(qos=self._qos, retainHandling=1)
        made.subscribe(self._topic, options=wanted)

    def _not_connected(self, made: Any, data: Any) -> None:
        if made.refused is None:
            self._lost("no connection")
        else:
            self._fail(made.refused)

    def _subscribed(
        self, made: Any, data: Any, mid: int, reasons: Sequence[Any], properties: Any = None
    ) -> None:
        for reason in reasons:
            if reason.is_failure:
                self._fail(f"the broker refuses the subscription: {reason}")

    def _disconnected(
        self, made: Any, data: Any, flags: Any, reason: Any, properties: Any = None
    ) -> None:
        if self._failure is None and self._background and not self._background.stopped.is_set():
            self._lost(str(reason))

    def _received(self, made: Any, data: Any, message: Any) -> None:
        background = self._background
        while background is None:  # `open` is about to set it
            time.sleep(0.001)
            background = self._background
        if message.qos == 1 and self._is_repeated(message):
            return
        self._count += 1
        kind = getattr(message.properties, "ContentType", None) or self._type
        background.emit(Chunk(message.payload, {"count": self._count}, media_type=kind))

    def _is_repeated(self, message: Any) -> bool:
        """Whether a message was already received before the connection broke."""
        digest = blake2b(message.payload, digest_size=16, key=b"mqtt")
        digest.update(message.topic.encode())
        before = self._seen.pop(message.mid, None)
        self._seen[message.mid] = digest.digest()
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return bool(message.dup) and before == digest.digest()

    def _fail(self, said: str) -> None:
        self._failure = said
        self._client.disconnect()

    def _lost(self, said: str) -> None:
        if not self._is_down:
            self._is_down = True
            self._log(f"{self._address.shown}: {said}; connecting again")

    # ------------------------------------------------------------ source

    @property
    def problem(self) -> str | None:
        """The problem that prevents reading, or None."""
        return "there is no connection" if self._is_down else None

    def poll(self, timeout: float) -> Sequence[Chunk] | None:
        assert self._background is not None
        return self._background.take(timeout)

    def acknowledge(self, position: Position) -> None:
        """Do nothing, since messages are acknowledged when they are received."""

    def close(self) -> None:
        if self._background is not None:
            self._background.stopped.set()
            self._client.disconnect()
            self._background.stop()

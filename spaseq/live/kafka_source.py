"""A Kafka topic → messages.

The source assigns all partitions to itself and belongs to no consumer group: the offsets are in the
state. Only committed messages are read.

**Order.** Kafka orders the messages of one partition only. The source merges the partitions by the
times of their records: it waits until each partition has a message or has been read to its end, for
at most `MOST_WAIT` seconds. If the topic has several partitions, events may still be out of order,
so a run needs a lateness.

**Replay.** After a restart, the messages must arrive in the same order again, because a checkpoint
counts them. The source therefore remembers the partition of each message since the last checkpoint,
and `order_after` adds these to a position. Memory: a few bytes for each such message.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from spaseq.errors import InputError, StateError
from spaseq.live.kafka import (
    CONNECT_SECONDS,
    configuration,
    final,
    kafka_address,
    kafka_client,
    wait_for_broker,
)
from spaseq.live.order_log import OrderLog
from spaseq.live.protocols import Chunk, Message, Position

AT_ONCE = 1000
"""Messages taken from the client at once."""
MOST_HELD = 10_000
"""The most messages of a partition that wait for other partitions; then it is paused."""
MOST_WAIT = 1.0
"""Seconds for which a partition without an answer may hold back the others."""
LOOK_SECONDS = 30.0
"""Seconds between two searches for new partitions."""
_TYPE_HEADERS = ("content-type", "rdf-message-content-type")


class KafkaSource:
    """Reads one topic.

    Args:
        url: `kafka://HOST:PORT/TOPIC`, with the options `start` (`earliest` or `latest`, for a run
            without a saved position), `group` (a consumer group whose offsets show the checkpoints
            to Kafka's tools; they are never read), `type` (the media type of messages without
            one), `security`, `mechanism` and `ca`.
        log: Reports what happens to the connection.

    Raises:
        SpaseqError: for a wrong URL, or without the client.
    """

    messages = True
    replays = True

    def __init__(self, url: str, log: Callable[[str], None]):
        self._address = kafka_address(url, ("start", "group", "type"))
        self._latest = self._address.choice("start", ("earliest", "latest")) == "latest"
        self._group = self._address.options.get("group")
        self._type = self._address.options.get("type")
        self._topic = self._address.path
        self._kafka = kafka_client()
        self._log = log
        self._consumer: Any = None
        self._failure: str | None = None
        self._is_down = False
        self._to_commit: dict[str, int] | None = None
        """The offsets of a checkpoint that have not been written to the group yet."""
        self._offsets: dict[str, int] = {}
        """Partition → the offset after its last message that was passed on."""
        self._held: dict[int, deque[Any]] = {}
        self._at_end: set[int] = set()
        self._paused: set[int] = set()
        self._since = 0.0
        """The time when the last message was passed on, or all partitions had been read."""
        self._looked = 0.0
        self._fresh = False
        self._is_open = False
        """Whether the position of an earlier run is known; checkpoints may be made before."""
        self._passed: OrderLog[int] = OrderLog()
        """The partitions of the last messages passed on."""
        self._replay: deque[int] = deque()
        """The partitions of the messages to be passed on again, in their order."""

    # ------------------------------------------------------------ connection

    def open(self, position: Position | None) -> None:
        kafka, shown = self._kafka, self._address.shown
        made = configuration(self._address, self._trouble)
        made |= {
            "group.id": self._group or "spaseq",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 100,
        }
        try:
            self._consumer = kafka.Consumer(made)
            wait_for_broker(self._consumer, lambda: self._failure is not None)
            partitions = self._partitions(CONNECT_SECONDS)
            if not partitions:
                raise InputError(f"there is no topic {self._topic}", shown)
            if position is not None:
                self._passed.count = position["count"]
                self._offsets = dict(position["offsets"])
                for partition, count in position.get("order", ()):
                    self._replay.extend([partition] * count)
            self._assign(partitions, position is not None, self._latest)
        except kafka.KafkaException as error:
            raise self._unreachable(error) from error
        if len(partitions) > 1:
            self._log(
                f"{shown}: the topic has {len(partitions)} partitions, whose messages may come out "
                "of order: --lateness sorts their events"
            )
        self._fresh = self._is_open = True
        self._since = self._looked = time.monotonic()

    def _unreachable(self, error: Any) -> InputError:
        said = self._failure or str(error.args[0].str())
        return InputError(f"cannot be read: {said}", self._address.shown)

    def _partitions(self, timeout: float) -> list[int]:
        """The partitions of the topic."""
        found = self._consumer.list_topics(self._topic, timeout=timeout).topics.get(self._topic)
        if found is None or (found.error is not None and not found.partitions):
            return []
        return sorted(found.partitions)

    def _assign(self, partitions: Sequence[int], resumes: bool, latest: bool) -> None:
        """Begin to read partitions, at their offsets or at an end."""
        kafka, wanted = self._kafka, []
        for partition in partitions:
            place = kafka.TopicPartition(self._topic, partition)
            low, high = self._consumer.get_watermark_offsets(place, timeout=CONNECT_SECONDS)
            offset = self._offsets.get(str(partition))
            if offset is None:
                # A partition that is new since the checkpoint is read from its beginning.
                offset = high if latest and not resumes else low
            elif not low <= offset <= high:
                raise StateError(
                    f"{self._address.shown}: the saved state continues at offset {offset} of "
                    f"partition {partition}, which has {low} to {high}: the messages between are "
                    "gone; begin with another state folder"
                )
            self._offsets[str(partition)] = offset
            self._held[partition] = deque()
            if offset == high:
                self._at_end.add(partition)
            wanted.append(kafka.TopicPartition(self._topic, partition, offset))
        self._consumer.incremental_assign(wanted)

    def _trouble(self, error: Any) -> None:
        """An error of the connection, from the client."""
        kafka_error = self._kafka.KafkaError
        self._failure = self._failure or final(error)
        if (
            self._failure is None
            and not self._is_down
            and error.code()
            in (
                kafka_error._ALL_BROKERS_DOWN,
                kafka_error._TRANSPORT,
                kafka_error._RESOLVE,
            )
        ):
            self._is_down = True
            self._log(f"{self._address.shown}: no connection ({error.str()}); trying again")

    # ------------------------------------------------------------ reading

    def poll(self, timeout: float) -> Sequence[Chunk] | None:
        if self._fresh:
            # The position at which the run begins, before the first message.
            self._fresh = False
            return [Chunk(b"", self._position(), mark=True)]
        self._commit_to_group()
        alone: Sequence[Any] | None = None
        try:
            if len(self._held) == 1 and not self._replay and not any(self._held.values()):
                alone = self._received(timeout)
            else:
                self._receive(timeout)
            self._look_for_partitions()
        except self._kafka.KafkaException as error:
            raise self._unreachable(error) from error
        if self._failure is not None:
            raise InputError(f"cannot be read: {self._failure}", self._address.shown)
        with self._passed.lock:
            found = self._merged() if alone is None else self._all_of_one(alone)
            return [Chunk(b"", self._position(), together=found)] if found else ()

    def _received(self, timeout: float) -> list[Any]:
        """The messages that have arrived: waits for the first, then takes those available."""
        first = self._consumer.poll(timeout)
        return [] if first is None else [first, *self._consumer.consume(AT_ONCE, timeout=0)]

    def _all_of_one(self, messages: Sequence[Any]) -> list[Message]:
        """The messages of the only partition, as they are to be passed on.

        Equals `_keep` and `_pass_on`, without a queue and without a call for each message.
        """
        found: list[Message] = []
        append, last, count = found.append, None, 0
        for message in messages:
            if message.error() is not None:
                self._keep(message)
                continue
            last, count = message, count + 1
            value = message.value()
            if value is None:
                continue  # the marker of a deleted key in a compacted topic
            kind, millis = message.timestamp()
            headers = message.headers()
            named = _media_type(headers) or self._type if headers else self._type
            append((value, named, millis * 1000 if kind else None))
        if last is not None:
            self._at_end.clear()
            self._has_come_back()
            self._offsets[str(last.partition())] = last.offset() + 1
            self._passed.count += count
            self._since = time.monotonic()
        return found

    def _receive(self, timeout: float) -> None:
        """Take messages from the client: waits for the first, then takes those available."""
        first = self._consumer.poll(0.0 if any(self._held.values()) else timeout)
        if first is None:
            # Some messages wait for another partition, so poll only briefly.
            if any(self._held.values()):
                first = self._consumer.poll(min(timeout, 0.005))
            if first is None:
                return
        self._keep(first)
        for message in self._consumer.consume(AT_ONCE, timeout=0):
            self._keep(message)
        for partition, held in self._held.items():
            if len(held) > MOST_HELD and partition not in self._paused:
                self._paused.add(partition)
                self._consumer.pause([self._kafka.TopicPartition(self._topic, partition)])

    def _keep(self, message: Any) -> None:
        error = message.error()
        if error is None:
            partition = message.partition()
            self._at_end.discard(partition)
            self._held[partition].append(message)
            self._has_come_back()
        elif error.code() == self._kafka.KafkaError._PARTITION_EOF:
            self._at_end.add(message.partition())
        elif error.code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:
            raise InputError(
                f"the next messages of partition {message.partition()} are gone: {error.str()}",
                self._address.shown,
            )
        elif not error.retriable():
            raise InputError(f"cannot be read: {error.str()}", self._address.shown)

    def _has_come_back(self) -> None:
        if self._is_down:
            self._is_down = False
            self._log(f"{self._address.shown}: connected again")

    def _look_for_partitions(self) -> None:
        """Read partitions that were added, from their beginning."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS or self._is_down:
            return
        self._looked = now
        try:
            partitions = self._partitions(1.0)
        except self._kafka.KafkaException:
            return  # the next attempt may succeed
        added = [partition for partition in partitions if partition not in self._held]
        if added:
            self._log(f"{self._address.shown}: the topic has {len(added)} more partitions")
            self._assign(added, True, False)

    # ------------------------------------------------------------ order

    def _merged(self) -> list[Message]:
        """The messages that are next in order."""
        found: list[Message] = []
        while self._replay:
            held = self._held[self._replay[0]]
            if not held:
                self._check_replay(self._replay[0])
                return found
            self._pass_on(self._replay.popleft(), held.popleft(), found)
        self._merge(found)
        return found

    def _check_replay(self, partition: int) -> None:
        """Check that the messages to be passed on again still exist."""
        if partition in self._at_end:
            raise StateError(
                f"{self._address.shown}: messages of partition {partition} that the saved state "
                "has read are gone; begin with another state folder"
            )

    def _merge(self, found: list[Message]) -> None:
        if len(self._held) == 1:
            ((partition, held),) = self._held.items()
            while held:
                self._pass_on(partition, held.popleft(), found)
            return
        while any(self._held.values()):
            silent = [p for p, held in self._held.items() if not held and p not in self._at_end]
            if silent and time.monotonic() - self._since < MOST_WAIT:
                return
            full = [partition for partition, held in self._held.items() if held]
            least = min(full, key=lambda partition: (_time(self._held[partition][0]), partition))
            self._pass_on(least, self._held[least].popleft(), found)
            if not silent:
                self._since = time.monotonic()
        self._since = time.monotonic()

    def _pass_on(self, partition: int, message: Any, found: list[Message]) -> None:
        """Append a message to those that are passed on."""
        if partition in self._paused and len(self._held[partition]) < MOST_HELD // 2:
            self._paused.discard(partition)
            self._consumer.resume([self._kafka.TopicPartition(self._topic, partition)])
        self._offsets[str(partition)] = message.offset() + 1
        self._passed.append(partition if len(self._held) > 1 else None)
        value = message.value()
        if value is None:
            return  # the marker of a deleted key in a compacted topic
        kind, millis = message.timestamp()
        time = None if kind == self._kafka.TIMESTAMP_NOT_AVAILABLE else millis * 1000
        found.append((value, _media_type(message.headers()) or self._type, time))

    # ------------------------------------------------------------ positions

    def _position(self) -> dict[str, Any]:
        return {"offsets": dict(self._offsets), "count": self._passed.count}

    def order_after(self, position: Position) -> Position:
        """A position with the partitions of the messages that were passed on after it."""
        if not self._is_open:
            return position
        with self._passed.lock:
            # While the topic had one partition, there was nothing to remember.
            alone, known = self._passed.after(position["count"])
            order = [*[next(iter(self._held), 0)] * alone, *known, *self._replay]
        if len(self._offsets) == 1:
            return position
        runs = [[partition, len(list(same))] for partition, same in groupby(order)]
        return {**position, "order": runs}

    def acknowledge(self, position: Position) -> None:
        if not self._is_open:
            return
        self._passed.forget(position["count"])
        if self._group is None:
            return
        self._to_commit = dict(position["offsets"])

    def _commit_to_group(self) -> None:
        """Write the offsets of the last checkpoint to the group.

        The thread of the source does this, since a call concurrent with `poll` can block forever.
        """
        wanted, self._to_commit = self._to_commit, None
        if wanted is None:
            return
        offsets = [
            self._kafka.TopicPartition(self._topic, int(partition), offset)
            for partition, offset in wanted.items()
        ]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except (self._kafka.KafkaException, RuntimeError) as error:
            self._log(f"{self._address.shown}: the group {self._group} is not updated: {error}")

    def close(self) -> None:
        if self._consumer is not None:
            self._commit_to_group()
            self._consumer.close()
            self._consumer = None


def _time(message: Any) -> int:
    return int(message.timestamp()[1])


def _media_type(headers: Sequence[tuple[str, Any]] | None) -> str | None:
    """The media type of a record, from its headers."""
    for name, value in headers or ():
        if name.lower() in _TYPE_HEADERS and value:
            return value.decode("latin-1") if isinstance(value, bytes) else str(value)
    return None

"""Matches → a Kafka topic.

Each record is the match as JSON, with the headers `content-type` and `spaseq-id`. Its key is the
match's partition (the values of the variables of `PARTITION BY`, if the query projects them), or
the variables that the option `key` names.

With state, the records of a checkpoint are one transaction. The transaction also contains the
number of the checkpoint, as the committed offset of a consumer group named after the state folder.
At the start, the client ends any transaction that a killed process has left open. Consumers that
read only committed records therefore see each match exactly once, after the checkpoint. A
checkpoint without records needs no transaction: its token has the number of the last one. Brokers
forget the offsets of unused groups after `offsets.retention.minutes` (a week), so the number is
written again each hour.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from spaseq.errors import SpaseqError
from spaseq.io.identity import plain
from spaseq.live.commits import agreed
from spaseq.live.kafka import (
    CONNECT_SECONDS,
    configuration,
    final,
    kafka_address,
    kafka_client,
    wait_for_broker,
)
from spaseq.live.waiting import Waiting
from spaseq.results import Match
from spaseq.runs import Run

TRANSACTION_SECONDS = 300.0
"""Seconds that a transaction may be open before the broker ends it."""
REFRESH_SECONDS = 3600.0
"""Seconds after which the number of the last transaction is written again."""


class KafkaSink:
    """Writes records.

    Args:
        url: `kafka://HOST:PORT/TOPIC`, with the options `key` (names of variables, with commas),
            `transaction-timeout` (seconds; longer than two checkpoints), `security`, `mechanism`
            and `ca`.
        keeps: Whether there will be checkpoints; without, records are written at once.

    Raises:
        SpaseqError: for a wrong URL, without the client, or if the topic cannot be reached.
    """

    def __init__(self, url: str, keeps: bool):
        self._address = kafka_address(url, ("key", "transaction-timeout"))
        self._topic = self._address.path
        named = self._address.options.get("key")
        self._key: tuple[str, ...] | None = None if named is None else tuple(named.split(","))
        self._open_for = self._address.number("transaction-timeout", TRANSACTION_SECONDS, 1.0)
        self._kafka = kafka_client()
        self._keeps = keeps
        self._keys: dict[str, tuple[str, ...]] = {}
        """Query → the variables of its key."""
        self._failure: str | None = None
        self._in_transaction = False
        self._last = 0
        """The number of the checkpoint of the last transaction."""
        self._due = time.monotonic() + REFRESH_SECONDS
        self._producer: Any = None
        self._consumer: Any = None
        self.waiting = Waiting(self._address.shown)
        self.written = 0

    def resume(self, state: str, tokens: Mapping[int, Any]) -> int:
        made = configuration(self._address, self._trouble)
        made |= {"enable.idempotence": True, "linger.ms": 2}
        if self._keeps:
            made["transactional.id"] = f"spaseq-{state}-{self._topic}"
            made["transaction.timeout.ms"] = int(self._open_for * 1000)
        kafka = self._kafka
        try:
            self._producer = kafka.Producer(made)
            wait_for_broker(self._producer, lambda: self._failure is not None)
            found = self._producer.list_topics(self._topic, timeout=CONNECT_SECONDS).topics
            if not found[self._topic].partitions:
                raise SpaseqError(f"{self._address.shown}: there is no topic {self._topic}")
            if not self._keeps:
                return 0
            self._producer.init_transactions(CONNECT_SECONDS)
            group = configuration(self._address, self._trouble)
            group |= {"group.id": f"spaseq-{state}", "enable.auto.commit": False}
            self._consumer = kafka.Consumer(group)
            place = kafka.TopicPartition(self._topic, 0)
            (committed,) = self._consumer.committed([place], CONNECT_SECONDS)
        except kafka.KafkaException as error:
            raise self._refused(error) from error
        self._last = max(committed.offset, 0)
        for number in sorted(tokens, reverse=True):
            token = tokens[number]
            if self._last == (number if token["records"] else token["last"]):
                return number
        return agreed(self._address.shown, self._last, tokens)

    def attach(self, run: Run) -> None:
        """Find the variables of the keys."""
        for query in run.program.queries:
            own = tuple(query.plan.partition)
            # The old version of a query that drains comes after the new one.
            self._keys.setdefault(query.plan.shown, own if self._key is None else self._key)

    def write(self, match: Match) -> None:
        names = self._keys.get(match.query, ())
        bound = [match.bindings.get(name) for name in names]
        key = [None if term is None else plain(term) for term in bound]
        text = None
        if any(part is not None for part in key):
            text = key[0] if len(key) == 1 else json.dumps(key, ensure_ascii=False)
        headers = [("content-type", b"application/json"), ("spaseq-id", match.id.encode())]
        self._begin()
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    match.to_json().encode(),
                    key=text,
                    headers=headers,
                    on_delivery=self._delivered,
                )
                break
            except BufferError:
                self._producer.poll(0.1)  # wait until the broker has taken some records
                self._raise_failure()
            except self._kafka.KafkaException as error:
                raise self._refused(error) from error
        self.written += 1

    def write_block(self) -> None:
        self._producer.poll(0)
        self._raise_failure()

    def prepare(self) -> Any:
        self._flush()
        return {"records": self._in_transaction, "last": self._last}

    def commit(self, number: int) -> None:
        if self._in_transaction:
            self._last = number
        elif not self._last or time.monotonic() < self._due:
            return
        self._begin()
        kafka = self._kafka
        # The offset is the number of the checkpoint: the group belongs to the state folder.
        place = kafka.TopicPartition(self._topic, 0, self._last)
        group = self._consumer.consumer_group_metadata()
        try:
            self._again(
                lambda: self._producer.send_offsets_to_transaction([place], group, CONNECT_SECONDS)
            )
            self._again(lambda: self._producer.commit_transaction(CONNECT_SECONDS))
        except kafka.KafkaException as error:
            raise self._refused(error) from error
        self._in_transaction = False
        self._due = time.monotonic() + REFRESH_SECONDS

    def _again(self, call: Any) -> None:
        """Make a call, and repeat it as long as the client asks for it."""
        until = time.monotonic() + 4 * CONNECT_SECONDS
        while True:
            try:
                call()
                return
            except self._kafka.KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > until:
                    raise

    def close(self) -> None:
        if self._producer is None:
            return
        try:
            if self._in_transaction:
                self._producer.purge()
                self._producer.abort_transaction(CONNECT_SECONDS)
            elif not self._keeps:
                self._flush()
        except self._kafka.KafkaException:
            pass  # the next start ends the transaction
        finally:
            if self._consumer is not None:
                self._consumer.close()
            self._producer = self._consumer = None

    # ------------------------------------------------------------ parts

    def _begin(self) -> None:
        if self._keeps and not self._in_transaction:
            self._producer.begin_transaction()
            self._in_transaction = True

    def _flush(self) -> None:
        """Wait until the broker has all records."""
        until = time.monotonic() + 4 * CONNECT_SECONDS
        while self._producer.flush(1.0):
            self._raise_failure()
            if time.monotonic() > until:
                raise SpaseqError(f"{self._address.shown}: cannot be written: no answer in time")
        self._raise_failure()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.waiting.end()
        elif self._failure is None:
            self._failure = error.str()

    def _trouble(self, error: Any) -> None:
        self._failure = self._failure or final(error)
        if self._failure is None and error.code() in (
            self._kafka.KafkaError._ALL_BROKERS_DOWN,
            self._kafka.KafkaError._TRANSPORT,
        ):
            self.waiting.begin(error.str())

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise SpaseqError(f"{self._address.shown}: cannot be written: {self._failure}")

    def _refused(self, error: Any) -> SpaseqError:
        said = self._failure or error.args[0].str()
        return SpaseqError(f"{self._address.shown}: cannot be written: {said}")

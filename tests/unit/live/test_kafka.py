"""Kafka as a source and as a sink: order, positions, transactions, kills."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from followed import PATIENCE, QUERY, Live, events, finished_run, lines, newest
from kafka_log import committed
from servers import mock_kafka, needs, tansu, tansu_server
from session_runs import Running, values
from test_following import event

from spaseq.errors import InputError, SpaseqError, StateError
from spaseq.io.read_options import ReadOptions
from spaseq.live.kafka_source import KafkaSource
from spaseq.live.session import LiveOptions

GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    with tansu(tmp_path / "tansu") as address:
        yield address


def make(
    address: str, topic: str, partitions: int = 1, options: Mapping[str, Any] | None = None
) -> None:
    """Make a topic; `options` of the client."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address, "log_level": 0, **(options or {})})
    for made in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        made.result(PATIENCE)


class Writer:
    """A producer of the tests."""

    def __init__(self, address: str, topic: str, options: Mapping[str, Any] | None = None):
        from confluent_kafka import Producer

        made = {"bootstrap.servers": address, "log_level": 0, **(options or {})}
        self._producer: Any = Producer(made)
        self._topic = topic

    def write(
        self, texts: Sequence[str], partition: int = 0, micros: int | None = None, kind: str = ""
    ) -> None:
        """Write records, and wait for the broker."""
        for text in texts:
            self._producer.produce(
                self._topic,
                text.encode(),
                partition=partition,
                headers=[("Content-Type", kind.encode())] if kind else None,
                **({} if micros is None else {"timestamp": micros // 1000}),
            )
            self._producer.poll(0)
        assert self._producer.flush(PATIENCE) == 0


def kept(folder: Path) -> LiveOptions:
    return LiveOptions(follow=True, state=str(folder / "state"))


def timed() -> ReadOptions:
    """The times of events are in their messages."""
    return ReadOptions(time_predicate=GENERATED)


# ------------------------------------------------------------------ source


def test_each_record_is_an_event(tmp_path: Path, broker: str) -> None:
    make(broker, "readings")
    writer = Writer(broker, "readings")
    writer.write([event(1), event(2)])
    with Running(tmp_path, f"kafka://{broker}/readings", reading=timed()) as run:
        run.wait_for_matches(2)
        writer.write([event(3)])
        run.wait_for_matches(3)
    assert values(run.found) == ["1", "2", "3"]


def test_the_time_of_the_record_counts_and_the_header_says_the_syntax(
    tmp_path: Path, broker: str
) -> None:
    make(broker, "readings")
    turtle = "@prefix : <http://example.org/> . :s :value 7 ."
    Writer(broker, "readings").write([turtle], micros=1_700_000_000_000_000, kind="text/turtle")
    with Running(tmp_path, f"kafka://{broker}/readings") as run:
        run.wait_for_matches(1)
    (match,) = map(json.loads, run.found)
    assert match["end"] == "2023-11-14T22:13:20Z"
    assert match["bindings"]["value"]["value"] == "7"


def test_the_address_names_the_syntax_of_records_without_one(tmp_path: Path, broker: str) -> None:
    make(broker, "readings")
    writer = Writer(broker, "readings")
    turtle = "@prefix : <http://example.org/> . :s :value 7 ."
    writer.write([turtle], micros=1_700_000_000_000_000)
    writer.write([event(8)], micros=1_700_000_001_000_000, kind="application/n-quads")
    with Running(tmp_path, f"kafka://{broker}/readings?type=text/turtle") as run:
        run.wait_for_matches(2)
    assert values(run.found) == ["7", "8"]


def test_an_unknown_media_type_names_the_message(tmp_path: Path, broker: str) -> None:
    make(broker, "readings")
    Writer(broker, "readings").write(["a,b"], kind="text/csv")
    with (
        pytest.raises(InputError, match=r"/readings, message 1: the media type text/csv names no"),
        Running(tmp_path, f"kafka://{broker}/readings") as run,
    ):
        run.join()


def test_only_new_messages_are_read_and_none_is_lost_over_a_restart(
    tmp_path: Path, broker: str
) -> None:
    """`start=latest` counts once: the position is in the state before the first message."""
    make(broker, "readings")
    writer = Writer(broker, "readings")
    writer.write([event(1)])
    url = f"kafka://{broker}/readings?start=latest"
    with Running(tmp_path, url, options=kept(tmp_path), reading=timed()) as run:
        run.wait_for(lambda: newest(tmp_path) > 1)
        time.sleep(0.3)
        assert run.found == []
    writer.write([event(2), event(3)])
    with Running(tmp_path, url, options=kept(tmp_path), reading=timed()) as run:
        run.wait_for_matches(2)
    assert values(run.found) == ["2", "3"]


def test_a_run_continues_at_its_offsets(tmp_path: Path, broker: str) -> None:
    make(broker, "readings")
    writer, url = Writer(broker, "readings"), f"kafka://{broker}/readings"
    text = list(events(300, seed=5))
    expected = finished_run(tmp_path_query(tmp_path), "".join(text))
    for at in range(0, 300, 60):
        writer.write(text[at : at + 60])
        with Running(tmp_path, url, QUERY, kept(tmp_path), timed()) as run:
            run.wait_for(lambda at=at: run.session.run.clock.events == at + 60)  # type: ignore[misc]
    assert plain(run.found) == plain(expected)


def tmp_path_query(folder: Path) -> Path:
    (folder / "query.rq").write_text(QUERY, "utf-8")
    return folder


def plain(found: Sequence[str]) -> list[tuple[str, ...]]:
    """The matches without what differs between files and channels."""
    shown = []
    for line in found:
        match = json.loads(line)
        bound = match["bindings"]
        shown.append((match["start"], match["end"], *(bound[v]["value"] for v in sorted(bound))))
    return shown


def test_partitions_are_merged_and_repeat_their_order(tmp_path: Path) -> None:
    """Stops at every moment, with events that wait for late ones."""
    with mock_kafka(["readings"]) as broker:
        writer, url = Writer(broker, "readings"), f"kafka://{broker}/readings"
        text = list(events(400, seed=6))
        expected = finished_run(tmp_path_query(tmp_path), "".join(text))
        drawn = random.Random(3)
        reading = ReadOptions(time_predicate=GENERATED, lateness=20_000_000)
        state, read = kept(tmp_path), 0
        for at in range(0, 400, 50):
            for number in range(at, at + 50):
                writer.write([text[number]], drawn.randrange(4), 1_000_000 * (number + 1))
            with Running(tmp_path, url, QUERY, state, reading) as run:
                counters = run.session.sources[0].counters
                # What an earlier run has read without processing it is read again.
                run.wait_for(lambda counters=counters: counters.events >= 50)  # type: ignore[misc]
                time.sleep(drawn.uniform(0.0, 0.1))
                read += counters.events
        for partition in range(4):  # later than everything
            writer.write([event(10_000, f"end{partition}")], partition, 2_000_000_000)
        with Running(tmp_path, url, QUERY, state, reading) as run:
            run.wait_for(lambda: len(run.found) >= len(expected))
    assert read > 400
    assert sorted(plain(run.found)) == sorted(plain(expected))
    assert any("--lateness" in text for text in run.said)


def test_the_order_of_a_position_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four partitions without useful times: only the position says the order."""
    monkeypatch.setattr("spaseq.live.kafka_source.AT_ONCE", 7)
    with mock_kafka(["t"]) as address:
        writer = Writer(address, "t")
        for number in range(200):
            writer.write([str(number)], number * number % 7 % 4, 1_000_000)
        first = KafkaSource(f"kafka://{address}/t", str)
        first.open(None)
        early = {"offsets": {"0": 1, "1": 0}, "count": 1, "order": [[1, 1]]}
        assert KafkaSource(f"kafka://{address}/t", str).order_after(early) == early
        before, position = read(first, 1)
        after, _ = read(first, 100)
        saved = json.loads(json.dumps(first.order_after(position)))
        first.close()
        assert sum(count for _, count in saved["order"]) == len(after)
        second = KafkaSource(f"kafka://{address}/t", str)
        second.open(saved)
        again, _ = read(second, 200 - len(before))
        assert again[: len(after)] == after
        assert len({*before, *again}) == 200
        second.close()
        # Stopped before everything has been repeated.
        third = KafkaSource(f"kafka://{address}/t", str)
        third.open(saved)
        few, place = read(third, 1)
        twice = json.loads(json.dumps(third.order_after(place)))
        third.close()
        fourth = KafkaSource(f"kafka://{address}/t", str)
        fourth.open(twice)
        rest, _ = read(fourth, len(after) - len(few))
        assert [*few, *rest][: len(after)] == after
        fourth.close()


def read(source: KafkaSource, count: int) -> tuple[list[bytes], Any]:
    """At least so many messages of a source, and its position."""
    found: list[bytes] = []
    position: Any = None
    until = time.monotonic() + PATIENCE
    while len(found) < count:
        assert time.monotonic() < until, len(found)
        for chunk in source.poll(0.1) or ():
            found += [message[0] for message in chunk.together]
            position = chunk.position
    return found, position


def test_a_consumer_group_shows_the_checkpoints(tmp_path: Path) -> None:
    """Its offsets are those of the last checkpoint; the run does not read them."""
    from confluent_kafka import Consumer, TopicPartition

    with mock_kafka(["readings"]) as broker:
        writer = Writer(broker, "readings")
        for number in range(1, 8):
            writer.write([event(number)], number % 4, 1_000_000 * number)
        url = f"kafka://{broker}/readings?group=monitored"
        reading = ReadOptions(time_predicate=GENERATED, lateness=60_000_000)
        watcher: Any = Consumer(
            {"bootstrap.servers": broker, "group.id": "monitored", "log_level": 0}
        )
        places = [TopicPartition("readings", partition) for partition in range(4)]

        def lags() -> list[int]:
            return [max(each.offset, 0) for each in watcher.committed(places, PATIENCE)]

        with Running(tmp_path, url, options=kept(tmp_path), reading=reading) as run:
            # Events that wait for late ones are not read yet, as far as the state is concerned.
            run.wait_for(lambda: run.session.sources[0].counters.events == 7)
            writer.write([event(600, f"end{n}") for n in range(4)], 0, 600_000_000)
            run.wait_for(lambda: len(run.found) >= 7)
            run.wait_for(lambda: sum(lags()) >= 7)
        # Another position in the group changes nothing.
        watcher.commit(offsets=[TopicPartition("readings", 1, 0)], asynchronous=False)
        writer.write([event(700, "last")], 1, 700_000_000)
        with Running(tmp_path, url, options=kept(tmp_path), reading=reading) as run:
            run.wait_for(lambda: len(run.found) >= 11)
        watcher.close()
    assert values(run.found)[:7] == [str(number) for number in range(1, 8)]
    assert values(run.found)[7:] == ["600"] * 4


def test_messages_that_are_gone_are_an_error(tmp_path: Path, broker: str) -> None:
    make(broker, "readings")
    source = KafkaSource(f"kafka://{broker}/readings", str)
    with pytest.raises(StateError, match=r"continues at offset 9 of partition 0, which has 0 to 0"):
        source.open({"offsets": {"0": 9}, "count": 9})
    source.close()


def test_a_topic_or_broker_that_is_not_there(tmp_path: Path, broker: str) -> None:
    with (
        pytest.raises(InputError, match="there is no topic absent"),
        Running(tmp_path, f"kafka://{broker}/absent") as run,
    ):
        run.join()
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("kafka://localhost", "write kafka://HOST:PORT/TOPIC"),
        ("kafka:///topic", "it names no host"),
        ("kafka://h/t?start=now", "start is earliest or latest, not 'now'"),
        ("kafka://u:pw@h/t?begin=1", r"u:\*\*\*@h/t\?begin=1: there is no option begin"),
        ("kafka://u@h/t?password-env=NO_SUCH", "the environment variable NO_SUCH is not set"),
    ],
)
def test_urls_are_checked(url: str, said: str) -> None:
    needs("confluent_kafka")
    with pytest.raises(SpaseqError, match=said) as caught:
        KafkaSource(url, str)
    assert "pw" not in str(caught.value)


# ------------------------------------------------------------------ sink


def test_matches_are_records(tmp_path: Path, broker: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    for topic in ("readings", "matches"):
        make(broker, topic)
    Writer(broker, "readings").write([event(1), event(2)])
    url, output = f"kafka://{broker}/readings", f"kafka://{broker}/matches?key=value"
    with Running(tmp_path, url, reading=timed(), output=output) as run:
        run.wait_for(lambda: run.session.written == 2)
    reader = Consumer({"bootstrap.servers": broker, "group.id": "test", "log_level": 0})
    reader.assign([TopicPartition("matches", 0, 0)])
    records = [reader.poll(PATIENCE), reader.poll(PATIENCE)]
    reader.close()
    assert [record.key() for record in records] == [b"1", b"2"]
    first = dict(records[0].headers())
    assert first["content-type"] == b"application/json"
    assert len(first["spaseq-id"]) == 24
    assert json.loads(records[1].value())["bindings"]["value"]["value"] == "2"


def test_the_key_is_the_partition_of_the_query(tmp_path: Path, broker: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    for topic in ("readings", "matches"):
        make(broker, topic)
    Writer(broker, "readings").write([event(1)])
    query = """
    PREFIX : <http://example.org/>
    SELECT * WITHIN 10 SECONDS FROM STREAM readings <http://example.org/readings>
    PARTITION BY ?s
    WHERE { SEQ(A) DEFINE GPM A ON readings { ?s :value ?value } }
    """
    url, output = f"kafka://{broker}/readings", f"kafka://{broker}/matches"
    with Running(tmp_path, url, query, reading=timed(), output=output) as run:
        run.wait_for(lambda: run.session.written == 1)
    reader = Consumer({"bootstrap.servers": broker, "group.id": "test", "log_level": 0})
    reader.assign([TopicPartition("matches", 0, 0)])
    assert reader.poll(PATIENCE).key() == b"http://example.org/s"
    reader.close()


def test_records_count_after_the_checkpoint(tmp_path: Path, broker: str) -> None:
    for topic in ("readings", "matches"):
        make(broker, topic)
    Writer(broker, "readings").write([event(1), event(2)])
    url, output = f"kafka://{broker}/readings", f"kafka://{broker}/matches"
    with Running(tmp_path, url, options=kept(tmp_path), reading=timed(), output=output) as run:
        run.wait_for(lambda: len(committed(broker, "matches")[0]) == 2)
    found, aborted = committed(broker, "matches")
    assert (len(found), aborted) == (2, 0)
    # Another state folder does not belong to the output.
    # The stop made one more checkpoint, without records.
    assert newest(tmp_path) > 1
    for path in (tmp_path / "state").glob("checkpoint-*"):
        path.unlink()
    with pytest.raises(StateError, match="the output is at checkpoint"):
        Running(tmp_path, url, options=kept(tmp_path), reading=timed(), output=output)


def test_the_number_is_written_again(
    tmp_path: Path, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints without records, whose number would be forgotten by the broker in time."""
    monkeypatch.setattr("spaseq.live.kafka_sink.REFRESH_SECONDS", 0.0)
    for topic in ("readings", "matches"):
        make(broker, topic)
    writer = Writer(broker, "readings")
    url, output = f"kafka://{broker}/readings", f"kafka://{broker}/matches"
    for number in (1, 2):
        writer.write([event(number)])
        with Running(tmp_path, url, options=kept(tmp_path), reading=timed(), output=output) as run:
            run.wait_for(lambda at=number: len(committed(broker, "matches")[0]) == at)  # type: ignore[misc]
            after = newest(tmp_path)
            run.wait_for(lambda at=after: newest(tmp_path) > at + 3)  # type: ignore[misc]
    assert len(committed(broker, "matches")[0]) == 2


def test_a_broker_that_is_restarted(tmp_path: Path) -> None:
    """Connections are cut within a transaction; nothing is lost, and nothing is there twice."""
    with tansu_server(tmp_path / "tansu", relayed=True) as (_, plain, relay):
        assert relay is not None
        for topic in ("readings", "matches"):
            make(relay.address, topic)
        writer = Writer(relay.address, "readings")
        url = f"kafka://{relay.address}/"
        with Running(
            tmp_path, f"{url}readings", options=kept(tmp_path), reading=timed(),
            output=f"{url}matches",
        ) as run:  # fmt: skip
            for first in (1, 101, 201):
                writer.write([event(number) for number in range(first, first + 100)])
                run.wait_for(lambda at=first: run.session.written > at)  # type: ignore[misc]
                if first < 201:
                    relay.cut()
                    time.sleep(0.5)
                    relay.restore()
            run.wait_for(lambda: len(committed(plain, "matches")[0]) >= 300)
        records = committed(plain, "matches")[0]
    found = [json.loads(value)["bindings"]["value"]["value"] for value in records]
    assert found == [str(number) for number in range(1, 301)]
    assert any("connected again" in text for text in run.said)


def test_kills_change_no_record(tmp_path: Path, broker: str) -> None:
    """Kafka to Kafka, killed at random moments and started again."""
    kills, count, seed = 4, 3000, int(os.environ.get("SPASEQ_SEED", "1"))
    drawn = random.Random(seed)
    text = list(events(count, seed))
    expected = finished_run(tmp_path_query(tmp_path), "".join(text))
    for topic in ("readings", "matches"):
        make(broker, topic)
    writer = Writer(broker, "readings")
    command = [
        "query.rq", "--stream", f"readings=kafka://{broker}/readings", "--follow",
        "--output", f"kafka://{broker}/matches", "--time-predicate", GENERATED,
        "--state", "state", "--checkpoint-every", "200ms",
    ]  # fmt: skip
    at = 0
    for number in range(kills + 1):
        live = Live(command, tmp_path)
        lock = tmp_path / "state" / "lock"
        live.wait_for(lambda: lines(lock) == [str(live.process.pid)])  # noqa: B023
        share = len(text) if number == kills else (number + 1) * len(text) // (kills + 1)
        before = newest(tmp_path)
        while at < share:
            writer.write(text[at : min(at + 50, share)])
            at = min(at + 50, share)
        if number < kills:
            live.wait_for(lambda: newest(tmp_path) > before)  # noqa: B023
            time.sleep(drawn.uniform(0.0, 0.4))
            live.end(signal.SIGKILL)
            continue
        until = time.monotonic() + PATIENCE
        while len(committed(broker, "matches")[0]) < len(expected):
            assert live.process.poll() is None, live.said
            assert time.monotonic() < until, live.said
            time.sleep(0.1)
        assert live.end() == 0, live.said
    found, aborted = committed(broker, "matches")
    assert len(expected) > 100
    assert plain([value.decode() for value in found]) == plain(expected)
    print(f"{aborted} records were aborted")

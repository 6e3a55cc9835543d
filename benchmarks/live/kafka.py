"""Throughput of a Kafka source beside a consumer loop that only reads.

    python benchmarks/live/kafka.py [--events 100000] [--repeats 3]

Starts a broker (Tansu) on loopback, and fills a topic with events of two quads. A loop of `poll`, a
loop of `consume(1000)`, and a live run with a query of two steps, without and with state, read the
topic. Prints events per second of elapsed and of processor time, and the ratio to the first loop.
All counts must agree.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "unit" / "live"))

from followed import QUERY, STREAM, events  # noqa: E402
from servers import tansu  # noqa: E402

from spaseq.io.read_options import ReadOptions  # noqa: E402
from spaseq.live.coordinator import Timing  # noqa: E402
from spaseq.live.session import LiveOptions, Session  # noqa: E402
from spaseq.program import compile_queries  # noqa: E402

GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"


def fill(broker: str, count: int) -> None:
    """Write the events to the topic."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker})
    for made in admin.create_topics([NewTopic("readings", 1, 1)]).values():
        made.result(30)
    producer: Any = Producer({"bootstrap.servers": broker, "linger.ms": 50})
    for text in events(count):
        while True:
            try:
                producer.produce("readings", text.encode())
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0


def bare(broker: str, count: int, at_once: int) -> int:
    """Read the topic and count."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker, "group.id": "bare"})
    consumer.assign([TopicPartition("readings", 0, 0)])
    read = 0
    while read < count:
        if at_once == 1:
            read += consumer.poll(1.0) is not None
        else:
            read += len(consumer.consume(at_once, 1.0))
    consumer.close()
    return read


def live(broker: str, count: int, folder: Path, state: bool) -> int:
    """Read the topic by a live run."""
    options = LiveOptions(
        follow=True,
        output=str(folder / f"out-{time.monotonic_ns()}.jsonl"),
        state=str(folder / f"state-{time.monotonic_ns()}") if state else None,
        timing=Timing(checkpoint=10.0),
    )
    session = Session(
        compile_queries(QUERY),
        {STREAM: [f"kafka://{broker}/readings"]},
        ReadOptions(time_predicate=GENERATED),
        options,
    )
    done = threading.Event()

    def observe(progress: Any) -> None:
        if progress.events >= count:
            session.stop()
            done.set()

    session.go(observe)
    assert done.is_set()
    session.close()
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    wanted = parser.parse_args()
    count = wanted.events
    with tempfile.TemporaryDirectory() as name, tansu(Path(name) / "tansu") as broker:
        folder = Path(name)
        fill(broker, count)
        ways: dict[str, Callable[[], int]] = {
            "poll loop": lambda: bare(broker, count, 1),
            "consume(1000) loop": lambda: bare(broker, count, 1000),
            "spaseq": lambda: live(broker, count, folder, False),
            "spaseq, with state": lambda: live(broker, count, folder, True),
        }
        elapsed: dict[str, list[float]] = {name: [] for name in ways}
        spent: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(wanted.repeats):
            for name, way in ways.items():
                begun, cpu = time.perf_counter(), time.process_time()
                assert way() == count
                elapsed[name].append(time.perf_counter() - begun)
                spent[name].append(time.process_time() - cpu)
        base = statistics.median(elapsed["poll loop"])
        for name in ways:
            took, cpu = statistics.median(elapsed[name]), statistics.median(spent[name])
            least, most = count / max(elapsed[name]), count / min(elapsed[name])
            print(
                f"{name:20} {count / took:10,.0f} events/s ({least:,.0f} to {most:,.0f}), "
                f"{count / cpu:,.0f} per processor second, {base / took:.2f} of the poll loop"
            )


if __name__ == "__main__":
    main()

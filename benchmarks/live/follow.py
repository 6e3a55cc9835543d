"""A followed file against a finished one: events per second, and the ratio.

The same file is read by `spaseq run` without live options in one thread and in two (the default),
and by a live session that follows it, without and with a state folder. Each pass ends when the last
event has been processed. Elapsed and processor time; the ratio is that of the medians of passes
which alternate. All ways must find the same matches.

    python benchmarks/live/follow.py --events 300000 --repeat 5
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

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "unit" / "live"))

from followed import QUERY, STREAM, events  # noqa: E402

import spaseq  # noqa: E402
from spaseq.io.read_options import ReadOptions  # noqa: E402
from spaseq.io.sinks import open_sink  # noqa: E402
from spaseq.live.session import LiveOptions, Session  # noqa: E402
from spaseq.pipeline import BATCH, file_sources, merged, pump, shapes  # noqa: E402


def finished(program: spaseq.Program, path: Path, out: Path, workers: int) -> int:
    """The matches of a run that reads a file to its end."""
    run = program.start()
    sources = file_sources({STREAM: [str(path)]}, ReadOptions(workers=workers))
    for source in sources:
        source.relevance = run.relevance
    with open_sink("jsonl", shapes(program), str(out), False) as sink:
        pump(run, merged(run, [STREAM], sources, "open"), sink, BATCH, None, None, False)
    return sink.written


def followed(program: spaseq.Program, path: Path, out: Path, count: int, state: str | None) -> int:
    """The matches of a session that is stopped after so many events."""
    options = LiveOptions(follow=True, output=str(out), state=state)
    session = Session(program, {STREAM: [str(path)]}, ReadOptions(), options)
    done = threading.Event()

    def observe(progress: object) -> None:
        if session.coordinator.events >= count - 1:
            session.stop()
            done.set()

    try:
        session.go(observe)
        written = session.written
    finally:
        session.close()
    assert done.is_set()
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description="A followed file against a finished one.")
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    program = spaseq.compile(QUERY)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        path = folder / "stream.nq"
        path.write_text("".join(events(options.events, 1)), "utf-8")
        numbers = iter(range(10**6))

        def out() -> Path:
            return folder / f"out{next(numbers)}.jsonl"

        ways: dict[str, Callable[[], int]] = {
            "finished, one thread": lambda: finished(program, path, out(), 1),
            "finished, two threads": lambda: finished(program, path, out(), 2),
            "followed": lambda: followed(program, path, out(), options.events, None),
            "followed, with state": lambda: followed(
                program, path, out(), options.events, str(folder / f"state{next(numbers)}")
            ),
        }
        elapsed: dict[str, list[float]] = {name: [] for name in ways}
        used: dict[str, list[float]] = {name: [] for name in ways}
        found: dict[str, int] = {}
        for _ in range(options.repeat):
            for name, way in ways.items():
                begun, processor = time.perf_counter(), time.process_time()
                found[name] = way()
                elapsed[name].append(time.perf_counter() - begun)
                used[name].append(time.process_time() - processor)
    base = {kind: statistics.median(times["finished, one thread"])
            for kind, times in (("elapsed", elapsed), ("used", used))}  # fmt: skip
    print(f"{options.events:,} events, median of {options.repeat}")
    print(f"{'':22} {'events/s':>12} {'ratio':>6} {'per processor s':>16} {'ratio':>6}  matches")
    for name in ways:
        one, two = statistics.median(elapsed[name]), statistics.median(used[name])
        print(
            f"{name:22} {options.events / one:12,.0f} {base['elapsed'] / one:6.2f} "
            f"{options.events / two:16,.0f} {base['used'] / two:6.2f}  {found[name]:,}"
        )


if __name__ == "__main__":
    main()

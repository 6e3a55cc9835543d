"""A day of event time, faster than the clock: memory and checkpoints must not grow.

    python benchmarks/live/day.py [--hours 24] [--rate 200]
    python benchmarks/live/day.py --rate 20000 --minutes 5

Writes events with rotating keys to the standard input of `spaseq run --follow --state`: each key is
used for two minutes of event time, then never again, and every event has its own graph name. The
window is 30 seconds. After each sixteenth of the time, the script prints the resident memory of the
run and the size of its newest checkpoint. At the end it compares the maximum values of the second
half with those of the first half without its first sixteenth. The number of matches must equal a
count by this script.

24 hours at 20,000 events/s are 1.7e9 events, for which few machines have time. Choose a lower rate,
or stop after some minutes of the clock (`--minutes`): the first part of the day at its full rate.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "unit" / "live"))

from followed import QUERY as PERCENTS  # noqa: E402
from followed import newest  # noqa: E402

QUERY = PERCENTS.replace("?high > 90", "?high > 989")
"""The values are per mille here."""
WINDOW, PERIOD, KEYS, PARTS = 30, 120, 500, 16
DECIMAL = "http://www.w3.org/2001/XMLSchema#decimal"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


class Events:
    """Events in N-Quads, and the number of matches that they have."""

    def __init__(self, rate: int, seconds: int):
        self._rate, self._seconds = rate, seconds
        self._drawn = random.Random(1)
        self.matches = self.written = 0
        self.second = 0

    def __iter__(self) -> Iterator[bytes]:
        """The events of each second of event time."""
        draw, rate, values = self._drawn.random, self._rate, range(1000)
        lows: dict[int, deque[float]] = defaultdict(deque)
        heads = [f'"^^<{INTEGER}> ' for _ in values]
        number = 0
        for second in range(self._seconds):
            self.second = second
            if second % PERIOD == 0:
                lows.clear()  # the keys that follow are new
            name = f"<http://example.org/s/{second // PERIOD}/"
            lines = []
            for place in range(rate):
                at = second + place / rate
                key, value = int(draw() * KEYS), int(draw() * 1000)
                graph = f"<http://example.org/e/{number}>"
                lines.append(
                    f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{at:.6f}"^^<{DECIMAL}> '
                    f'.\n{name}{key}> <http://example.org/value> "{value}{heads[value]}{graph} .\n'
                )
                number += 1
                if value < 10:
                    lows[key].append(round(at, 6))
                elif value > 989 and key in lows:
                    waiting = lows[key]
                    while waiting and waiting[0] < round(at, 6) - WINDOW:
                        waiting.popleft()
                    self.matches += len(waiting)
            self.written = number
            yield "".join(lines).encode()


def resident(process: int) -> int:
    """The resident memory of a process in bytes."""
    text = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+([0-9]+) kB", text)
    return 0 if found is None else int(found[1]) * 1024


def newest_size(folder: Path) -> int:
    """The size of the newest checkpoint."""
    number = newest(folder)
    found = list((folder / "state").glob(f"checkpoint-{number}"))
    return found[0].stat().st_size if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--rate", type=int, default=200, help="events per second of event time")
    parser.add_argument("--minutes", type=float, help="of the clock, after which it stops")
    options = parser.parse_args()
    seconds = round(options.hours * 3600)
    events = Events(options.rate, seconds)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "query.rq").write_text(QUERY, "utf-8")
        begun = time.monotonic()
        with open(folder / "log", "wb") as log:
            run = subprocess.Popen(
                [sys.executable, "-m", "spaseq", "run", str(folder / "query.rq"), "--follow",
                 "--stream", "readings=-", "--state", str(folder / "state"), "--checkpoint-every",
                 "1s", "--output", str(folder / "out.jsonl")],
                stdin=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        samples: list[tuple[int, int]] = []
        part: list[tuple[int, int]] = []
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.2):
                if run.poll() is None:
                    part.append((resident(run.pid), newest_size(folder)))

        watcher = threading.Thread(target=watch)
        watcher.start()
        assert run.stdin is not None
        print("event time        events  matches        memory  checkpoint")
        for block in events:
            run.stdin.write(block)
            done = (events.second + 1) / seconds
            if options.minutes is not None:
                done = max(done, (time.monotonic() - begun) / (60 * options.minutes))
            if int(done * PARTS) > len(samples) and part:
                memory, size = max(one for one, _ in part), max(two for _, two in part)
                part.clear()
                samples.append((memory, size))
                print(
                    f"{(events.second + 1) / 3600:8.2f} h {events.written:13,} {events.matches:8,} "
                    f"{memory / 1e6:10.1f} MB {size / 1e3:8.1f} kB",
                    flush=True,
                )
            if done >= 1:
                break
        run.stdin.close()
        status = run.wait(600)
        over.set()
        watcher.join()
        with open(folder / "out.jsonl", "rb") as file:
            found = sum(1 for _ in file)
        if status:
            print((folder / "log").read_text("utf-8"), file=sys.stderr)
    took = time.monotonic() - begun
    middle = len(samples) // 2
    for name, place in (("memory", 0), ("checkpoints", 1)):
        before = max(sample[place] for sample in samples[1:middle])
        after = max(sample[place] for sample in samples[middle:])
        print(f"{name}: the second half has {after / before:.3f} of the first")
    same = "as counted" if found == events.matches else f"NOT {events.matches:,}"
    print(f"{found:,} matches, {same}; {events.written / took:,.0f} events/s, status {status}")
    return 0 if status == 0 and found == events.matches else 1


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())

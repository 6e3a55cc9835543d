"""Other engines on the same streams, through external drivers.

A folder of drivers contains a script run.py with the arguments ENGINE WORKLOAD POLICY EVENTS,
`--data` (a folder of comma-separated streams), `--python` (the interpreter of the engine's
environment) and `--classes` (a folder for compiled classes). The script prints the processor
seconds of the run, the number of matches, and whether that agrees with its own count. The seconds
exclude the start of a virtual machine, but include the start of a Flink job. So each engine also
runs on half of the events, and the rate is that of the second half, in which the code is compiled
and the job is running.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import feeding
from streams import Happening
from workloads import Workload

import spaseq

EVENTS = {"siddhi": 200_000, "flinkcep": 40_000}
FEWER = {
    ("siddhi", "w2_10000", "next"): 40_000,
    ("flinkcep", "w2_10000", "next"): 3_000,
    ("flinkcep", "w2_10000", "all"): 600,
}
"""The numbers of events that an engine processes in some seconds."""
DIFFERENT = {
    ("siddhi", "w4v"): "some of its matches are longer than the window; the others are as many",
}
"""The reason why an engine reports more matches than exist."""
LIMIT = 120
"""The timeout of a run of another engine, in seconds."""
PRINTED = re.compile(r"events/s, \S+ s, (\S+) CPU s.*\nmatches (\d+), reference (\d+)")


@dataclass
class Runs:
    """The runs of one engine over a number of events."""

    events: int
    seconds: list[float] = field(default_factory=list)
    matches: int = -1

    def note(self, seconds: float, matches: int) -> None:
        if self.matches not in (-1, matches):
            raise SystemExit(f"{matches} matches where there were {self.matches} before")
        self.matches = matches
        self.seconds.append(seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def written(folder: Path, name: str, events: Sequence[Happening]) -> None:
    """A stream in the drivers' format: position and kind, for W4 also name and price."""
    with (folder / f"{name}.csv").open("w", encoding="ascii") as out:
        for place, (kind, key, value) in enumerate(events):
            more = f",S{key},{value}" if name == "w4" else ""
            out.write(f"{place},{kind}{more}\n")


def asked(
    engine: str, workload: tuple[str, str], events: int, data: Path, folder: Path, python: str
) -> tuple[float, int] | None:
    """Processor seconds and matches of one run; None after the timeout."""
    command = [sys.executable, str(folder / "run.py"), engine, *workload, str(events)]
    command += ["--data", str(data), "--classes", str(data / "classes"), "--python", python]
    command += ["--reps", "1", "--limit", str(LIMIT)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    shown = PRINTED.search(result.stdout)
    if shown is None:
        return None
    if shown[2] != shown[3] and (engine, workload[0]) not in DIFFERENT:
        raise SystemExit(f"{engine} finds {shown[2]} matches where {shown[3]} are expected")
    return float(shown[1]), int(shown[2])


def compared(
    workload: Workload, most: int, folder: Path, pythons: Mapping[str, str | None], repeat: int
) -> Iterator[str]:
    """A row for each engine, this one first."""
    assert workload.peer is not None
    name, policy = workload.peer
    program = spaseq.compile(workload.query)
    for engine, python in pythons.items():
        if python is None or (engine == "siddhi" and policy != "next"):
            continue
        count = min(most, FEWER.get((engine, name, policy), EVENTS[engine]))
        ours, whole, half = Runs(count), Runs(count), Runs(count // 2)
        with tempfile.TemporaryDirectory() as scratch:
            # All queries of W2 share a stream, and all of W4; each length of W1 has its own.
            stream = name if name.startswith("w1") else name[:2]
            written(Path(scratch), stream, workload.events(count))
            finished = True
            for _ in range(repeat):
                fed = feeding.tallied(program, workload.events(count))
                ours.note(fed.seconds, fed.found)
                for runs in (half, whole):
                    answer = asked(
                        engine, workload.peer, runs.events, Path(scratch), folder, python
                    )
                    finished &= answer is not None
                    if answer is not None:
                        runs.note(*answer)
                if not finished:
                    break
        yield from _rows(
            workload.name,
            engine,
            ours,
            whole,
            half if finished else None,
            DIFFERENT.get((engine, name)),
        )


def _rows(
    name: str, engine: str, ours: Runs, whole: Runs, half: Runs | None, why: str | None
) -> Iterator[str]:
    rate = ours.events / ours.median
    yield _row(name, "spaseq", ours, rate, 1)
    if half is None:
        yield f"{'':22}{ours.events:>9,}{engine:>10}  does not end within {LIMIT} s"
        return
    other = (whole.events - half.events) / max(whole.median - half.median, 1e-3)
    yield _row("", engine, whole, other, rate / other)
    if whole.matches != ours.matches:
        if why is None:
            raise SystemExit(f"{name}: {engine} finds {whole.matches} matches, not {ours.matches}")
        yield f"{'':22}{engine}: {why}"


def _row(name: str, engine: str, runs: Runs, rate: float, ratio: float) -> str:
    spread = f"{min(runs.seconds):.3f}–{max(runs.seconds):.3f}"
    times = f"{ratio:,.0f} x" if ratio != 1 else ""
    return (
        f"{name:22}{runs.events:>9,}{engine:>10}{runs.median:>9.3f}{spread:>15}"
        f"{rate:>12,.0f}{times:>11}{runs.matches:>11,}"
    )

"""Checkpoints of a live run: how long they stop it, and what saving and loading cost.

A run of `A : B` receives events of different companies, none of which completes a match, so every
event is a group of partial matches. Then a copy of the process writes checkpoints, as in a live
run. The script measures the time until the run can continue. The baseline is copying the state in
memory: no method that copies the state can stop the run for a shorter time.

    python benchmarks/live/checkpoints.py --groups 100000 --repeat 5
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import spaseq
from spaseq.live.checkpoints import Checkpoints
from spaseq.live.file_sink import FileSink
from spaseq.live.process_copy import IS_SUPPORTED
from spaseq.live.state import StateFolder
from spaseq.pipeline import shapes

STREAM = "http://example.org/trades"
QUERY = f"""
PREFIX : <http://example.org/>
SELECT ?company ?low ?high WITHIN 1000000 SECONDS FROM STREAM trades <{STREAM}>
WHERE {{ SEQ(A : B)
  DEFINE GPM A ON trades {{ ?company :bid ?low }}
  DEFINE GPM B ON trades {{ ?company :ask ?high FILTER(?high > ?low) }} }}
"""
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def filled(program: spaseq.Program, groups: int) -> spaseq.Run:
    """A run with so many groups."""
    run = program.start()
    for number in range(groups):
        run.push(
            STREAM,
            number,
            f"<http://example.org/company/{number}> <http://example.org/bid> "
            f'"{number % 1000}"^^<{INTEGER}> .\n'.encode(),
        )
    return run


def resident_bytes() -> int:
    """The memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def pauses(program: spaseq.Program, run: spaseq.Run, folder: Path, repeat: int) -> list[float]:
    """The seconds for which each checkpoint stops a run."""
    results = shapes(program)
    sink = FileSink(str(folder / "out.jsonl"), "jsonl", results, True, lambda run: False)
    sink.resume("", {})
    state = StateFolder(str(folder / "state"), print)
    made = Checkpoints(state, sink, run.save, dict, dict, lambda positions: None, 0, 0.0, print)
    found = []
    for number in range(1, repeat + 1):
        made.turn(time.monotonic())
        while made.number < number:
            time.sleep(0.01)
            made.turn(time.monotonic() if made.number < number - 1 else 0.0)
        found.append(made.pause)
    made.cancel()
    sink.close()
    state.close()
    return found


def copied(size: int, repeat: int) -> list[float]:
    """The seconds for which copying so many bytes takes."""
    data, found = bytearray(size), []
    for _ in range(repeat):
        begun = time.perf_counter()
        bytes(data)
        found.append(time.perf_counter() - begun)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Checkpoints of a live run.")
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    program = spaseq.compile(QUERY)
    run = filled(program, options.groups)
    memory = resident_bytes()
    rows = []
    if IS_SUPPORTED:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(("run stopped", pauses(program, run, Path(folder), options.repeat)))
    held = run.stats["bytes"]
    rows.append(("copy in memory", copied(held, options.repeat)))
    print(
        f"{options.groups:,} groups: {held / 1e6:,.1f} MB of state, {memory / 1e6:,.0f} MB resident"
    )
    for name, found in rows:
        middle, most = statistics.median(found) * 1e3, max(found) * 1e3
        share = middle * 1e8 / held
        print(f"{name:15} {middle:10.2f} ms, at most {most:.2f} ({share:.2f} per 100 MB)")
    begun = time.process_time()
    blob = run.save()
    save = time.process_time() - begun
    begun = time.process_time()
    loaded = program.resume(blob)
    load = time.process_time() - begun
    assert loaded.stats["groups"] == run.stats["groups"]
    print(f"saved state     {len(blob) / 1e6:10,.1f} MB")
    print(f"save            {save:10.3f} s of processor time")
    print(f"load            {load:10.3f} s of processor time")


if __name__ == "__main__":
    main()

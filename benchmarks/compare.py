"""Compares the speed of the automaton in two checkouts, or records the speed of one.

Runs the workloads of `automaton/throughput.py` in both checkouts. The passes alternate, so that
other load on the machine affects both. Prints for each workload the median, minimum and maximum of
the ratios new/base of neighbouring passes, in processor time per event: 1.03 is 3 % slower. Fails
if a number of matches differs.

    python benchmarks/compare.py ../base . --passes 7 --only W1 W4
    python benchmarks/compare.py . --record benchmarks/record/2026-11-25.json
    python benchmarks/compare.py benchmarks/record/2026-11-25.json .

The checkouts must be built in place. `--record FILE` writes the passes of the last checkout as
JSON, with the machine and the command. A file in place of a checkout is such a record.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

SCRIPT = Path("benchmarks/automaton/throughput.py")


class Row(TypedDict):
    """One workload; `seconds` has the processor time of each pass."""

    events: int
    matches: int
    seconds: list[float]


class Record(TypedDict):
    """The passes of one checkout, with the circumstances under which they were measured."""

    date: str
    commit: str
    machine: dict[str, str | int | float]
    command: list[str]
    figures: dict[str, Row]


def one_pass(checkout: Path, only: Sequence[str], events: int) -> dict[str, Row]:
    """One pass over the workloads, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder, "figures.json")
        command = [sys.executable, str(checkout / SCRIPT), "--repeat", "1", "--sample", "100"]
        command += ["--events", str(events), "--record", str(figures)]
        if only:
            command += ["--only", *only]
        environment = os.environ | {"PYTHONPATH": str(checkout.resolve())}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        return dict(json.loads(figures.read_text("utf-8")))


def measured(
    sides: Sequence[Path], only: Sequence[str], events: int, passes: int
) -> list[dict[str, Row]]:
    """The figures of each side: passes of checkouts, interleaved, or the figures of a record.

    The order of the checkouts alternates from pass to pass.
    """
    figures = [read(side) if side.is_file() else {} for side in sides]
    checkouts = [number for number, side in enumerate(sides) if not side.is_file()]
    for number in range(passes):
        for side in checkouts if number % 2 == 0 else reversed(checkouts):
            for title, row in one_pass(sides[side], only, events).items():
                if title in figures[side]:
                    figures[side][title]["seconds"] += row["seconds"]
                else:
                    figures[side][title] = row
    return figures


def read(path: Path) -> dict[str, Row]:
    """The figures of a record."""
    return dict(json.loads(path.read_text("utf-8"))["figures"])


def record(checkout: Path, figures: dict[str, Row], command: list[str]) -> Record:
    """The figures of a checkout with its commit, the machine and the command."""
    commit = subprocess.run(
        ["git", "-C", str(checkout), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
    ).stdout.strip()
    return {
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "commit": commit or "unknown",
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count() or 1,
            "load": round(os.getloadavg()[0], 2),
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
        },
        "command": ["python", *command],
        "figures": figures,
    }


def _processor() -> str:
    """The model of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def compared(base: dict[str, Row], new: dict[str, Row]) -> tuple[list[str], bool]:
    """A line per workload of both sides, and whether all numbers of matches agree."""
    lines = [f"{'new / base, time per event':36}{'median':>8}{'min–max':>14}{'matches':>12}"]
    equal = True
    medians = []
    for title in (title for title in base if title in new):
        one, other = base[title], new[title]
        ratios = [
            (b / other["events"]) / (a / one["events"])
            for a, b in zip(one["seconds"], other["seconds"], strict=False)
            if a
        ]
        if not ratios:
            continue
        medians.append(statistics.median(ratios))
        spread = f"{min(ratios):.2f}–{max(ratios):.2f}"
        same = one["events"] != other["events"] or one["matches"] == other["matches"]
        equal &= same
        matches = f"{other['matches']:,}" if same else f"{one['matches']:,} ≠ {other['matches']:,}"
        lines.append(f"{title:36}{medians[-1]:>8.2f}{spread:>14}{matches:>12}")
    if medians:
        lines.append(f"{'geometric mean':36}{statistics.geometric_mean(medians):>8.3f}")
    return lines, equal


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare two checkouts or records, or record one.")
    parser.add_argument("base", type=Path, help="a checkout, or the JSON file of a record")
    parser.add_argument("new", type=Path, nargs="?", help="the same; not needed with --record")
    parser.add_argument("--only", nargs="*", default=[], help="workloads whose names begin so")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--record", type=Path, help="write the passes of the last checkout as JSON")
    given = parser.parse_args()
    sides = [given.base] if given.new is None else [given.base, given.new]
    if given.new is None and not given.record:
        parser.error("name a second checkout to compare with, or --record FILE")
    if given.record and sides[-1].is_file():
        parser.error(f"{sides[-1]} is a record already; --record needs a checkout")
    figures = measured(sides, given.only, given.events, given.passes)
    if given.record:
        data = record(sides[-1], figures[-1], sys.argv)
        given.record.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    if given.new is None:
        return
    lines, equal = compared(figures[0], figures[1])
    print("\n".join(lines))
    if not equal:
        sys.exit("the numbers of matches differ")


if __name__ == "__main__":
    main()

"""Two checkouts, or two records, side by side: is the automaton as fast as it was?

Runs the workloads of `automaton/throughput.py` in both checkouts, a pass of one after a pass of the
other, so that a disturbance of the machine meets both. Prints for each workload the median of the
ratios new/base of neighbouring passes in processor time per event, with least and greatest: 1.03
is 3 % slower. Fails if a number of matches differs.

    python benchmarks/compare.py ../base . --passes 7 --only W1 W4
    python benchmarks/compare.py a.json b.json

Both checkouts must be built in place. A record is what `throughput.py --record FILE` writes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

SCRIPT = Path("benchmarks/automaton/throughput.py")


class Row(TypedDict):
    """One workload: `seconds` of the processor, one number for each pass."""

    events: int
    matches: int
    seconds: list[float]


def one_pass(checkout: Path, only: list[str], events: int) -> dict[str, Row]:
    """One pass over the workloads in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "record.json")
        command = [sys.executable, str(checkout / SCRIPT), "--repeat", "1", "--sample", "100"]
        command += ["--events", str(events), "--record", str(record)]
        if only:
            command += ["--only", *only]
        environment = os.environ | {"PYTHONPATH": str(checkout.resolve())}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        return dict(json.loads(record.read_text("utf-8")))


def collected(
    base: Path, new: Path, only: list[str], events: int, passes: int
) -> list[dict[str, Row]]:
    """All passes of both checkouts, interleaved; the order within a pair alternates."""
    sides: list[dict[str, Row]] = [{}, {}]
    for number in range(passes):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            for title, row in one_pass((base, new)[side], only, events).items():
                if title in sides[side]:
                    sides[side][title]["seconds"] += row["seconds"]
                else:
                    sides[side][title] = row
    return sides


def compared(base: dict[str, Row], new: dict[str, Row]) -> tuple[list[str], bool]:
    """A line for each workload that both have, and whether all numbers of matches agree."""
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
    parser = argparse.ArgumentParser(description="Two checkouts or two records, side by side.")
    parser.add_argument("base", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="workloads that begin so")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--passes", type=int, default=5)
    given = parser.parse_args()
    if given.base.is_file():
        base, new = (json.loads(path.read_text("utf-8")) for path in (given.base, given.new))
    else:
        base, new = collected(given.base, given.new, given.only, given.events, given.passes)
    lines, equal = compared(base, new)
    print("\n".join(lines))
    if not equal:
        sys.exit("the numbers of matches differ")


if __name__ == "__main__":
    main()

"""Ten ratios of the experiments, compared with the last record of them.

    python benchmarks/papers/history.py             # measure, and compare
    python benchmarks/papers/history.py --record    # measure, and record

A ratio of two rates of one run depends little on the machine and its load; each is the median of
several short runs. Records are files of `benchmarks/record/papers/`, by date. A difference is
printed and is not an error.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from figure import Figure
from report import circumstances, measured

FOLDER = Path(__file__).parents[1] / "record" / "papers"
RUNS = 3
NOISE = 1.5
"""A ratio that has changed by a greater factor is marked."""
FIRST, LAST = 0, -1
Place = tuple[str, int]
"""A line, and which of its points."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median at one place of a figure divided by that at another."""

    script: str
    figure: str
    name: str
    above: Place
    below: Place

    def of(self, figures: Mapping[str, Figure]) -> float:
        above, below = (
            figures[self.figure].line(line).points[number].median
            for line, number in (self.above, self.below)
        )
        return above / below


def _along(script: str, figure: str, line: str, name: str) -> Ratio:
    """From the first to the last point of a line."""
    return Ratio(script, figure, name, (line, LAST), (line, FIRST))


RATIOS = (
    _along("core/lengths", "core-lengths", "skip till any", "n = 9 beside n = 3"),
    _along("core/unfinished", "core-unfinished", "skip till any", "longest window beside shortest"),
    Ratio("core/operators", "core-operators", "K3 beside the sequence",
          ("window of 100 s", 2), ("window of 100 s", 0)),
    Ratio("core/strategies", "core-strategies", "NEXT beside ALL", ("NEXT", LAST), ("ALL", LAST)),
    _along("registers/distinct_values", "registers-distinct-values", "partial matches, 10 keys",
           "most partial matches beside fewest"),
    _along("cel/outputs", "cel-outputs", "enumerated and counted",
           "time of a result, most beside fewest"),
    Ratio("lazy/rare_end", "lazy-rare-end", "lazily beside eagerly",
          ("lazily", LAST), ("eagerly", LAST)),
    Ratio("lazy/adaptive", "lazy-adaptive", "as chosen beside eagerly, C rare",
          ("as the engine chooses", LAST), ("eagerly", LAST)),
    Ratio("spaseq_2019/indexes", "spaseq-indexes", "all indexes beside none",
          ("all indexes", LAST), ("neither", LAST)),
    _along("spaseq_2019/clauses", "spaseq-clauses", "skip till next", "seven clauses beside three"),
)  # fmt: skip
"""All from scripts whose short form takes a second or two."""


def last_record(folder: Path) -> tuple[str, Mapping[str, float]] | None:
    """The newest record by its name: where and when, and its ratios."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        return None
    data = json.loads(paths[-1].read_text("utf-8"))
    return data["circumstances"], data["ratios"]


def compared(now: Mapping[str, float], before: Mapping[str, float]) -> list[str]:
    """A row for each ratio, with the one before and how many times it is."""
    rows = []
    for name, ratio in now.items():
        known = before.get(name)
        change = "" if known is None else f"{known:>12.3g}{ratio / known:>8.2f} x"
        far = known is not None and not 1 / NOISE < ratio / known < NOISE
        rows.append(f"{name:65}{ratio:>12.3g}{change}{'  changed' if far else ''}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--record", action="store_true", help="write a record of today")
    parser.add_argument("--runs", type=int, default=RUNS, help="of which medians are taken")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the records are")
    options = parser.parse_args()
    scripts = dict.fromkeys(ratio.script for ratio in RATIOS)
    runs = []
    for _ in range(options.runs):
        figures = {figure.name: figure for figure in map(measured, scripts)}
        runs.append([ratio.of(figures) for ratio in RATIOS])
    now = {
        f"{ratio.figure}: {ratio.name}": statistics.median(some)
        for ratio, some in zip(RATIOS, zip(*runs, strict=True), strict=True)
    }
    record = last_record(options.folder)
    print("ten ratios of the papers' experiments, short form" + (record is not None) * ", beside")
    if record is not None:
        print(record[0])
    print("\n".join(compared(now, record[1] if record else {})))
    if options.record:
        options.folder.mkdir(parents=True, exist_ok=True)
        path = options.folder / f"{datetime.now(UTC):%Y-%m-%d}.json"
        data = {"circumstances": circumstances(), "ratios": now}
        path.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

"""A figure: a question and its measured answer, beside the published claims.

A script of this folder defines `figure(short)`, which measures and returns a `Figure`, and calls
`main(figure)`. `report.py` runs all of them and draws the page.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

sys.path.append(str(Path(__file__).parents[1] / "automaton"))

import feeding
from driving import chosen
from streams import Happening

import spaseq
from spaseq.rdf.limits import NO_LIMIT
from spaseq.rules import VARIABLE

Kind = Literal["ours", "other", "claim"]
"""Who a line is of: this engine, one that ran beside it, or the publication."""


class LeftOut(Exception):
    """A figure cannot be measured here; says why."""


@dataclass(slots=True)
class Point:
    """One place of the abscissa.

    Args:
        x: The place.
        values: A value for each pass; their median is drawn, with the least and the greatest.
        counts: What was counted: matches, groups, evaluations. They do not vary.
    """

    x: float
    values: list[float]
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def median(self) -> float:
        return statistics.median(self.values)


@dataclass(slots=True)
class Line:
    """The points of one engine, strategy or window."""

    name: str
    points: list[Point]
    kind: Kind = "ours"


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis shows, in which unit."""

    label: str
    unit: str = ""
    log: bool = False
    places: tuple[str, ...] = ()
    """Names of the places 0, 1, …: bars are drawn, not lines."""
    base: float = 0.0
    """Where bars begin."""

    @property
    def title(self) -> str:
        return f"{self.label} ({self.unit})" if self.unit else self.label

    def place(self, x: float) -> str:
        """A place of the abscissa in a table."""
        return f"{self.places[int(x)]:<33}" if self.places else f"{x:>12,g} {self.label:<20}"


@dataclass(slots=True)
class Figure:
    """What was asked, and what came out.

    Args:
        name: For files: lower case and hyphens.
        question: One sentence.
        source: The publication and its figure or section.
        data: What the events are, and how many.
        query: One of the queries.
        others: What the publication or other engines report.
        x, y: The axes.
        lines: The measured lines.
        answer: One sentence with the ratios of this run.
    """

    name: str
    question: str
    source: str
    data: str
    query: str
    others: str
    x: Axis
    y: Axis
    lines: list[Line]
    answer: str = ""

    def line(self, name: str) -> Line:
        return next(line for line in self.lines if line.name == name)

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(slots=True)
class Case:
    """One query over one stream, to be measured pass by pass.

    Args:
        query: The text.
        events: The stream.
        expected: The number of matches that an independent count gives; None: not checked.
        most: The matches of an event that are enumerated at most.
        chosen: Whether a clause such as EMIT chooses among the matches. They are then counted as
            objects; otherwise they are counted where the automaton enumerates them.
    """

    query: str
    events: Sequence[Happening]
    expected: int | None = None
    most: int = NO_LIMIT
    chosen: bool = False


def rates(cases: Mapping[float, Case], passes: int) -> list[Point]:
    """Events per second of the automaton alone, by the place of each case.

    The passes of the cases are interleaved, so that other load on the machine affects all of them.

    Raises:
        SystemExit: if a number of matches is not the expected one.
    """
    programs = {x: spaseq.compile(case.query) for x, case in cases.items()}
    points = {x: Point(x, []) for x in cases}
    for _ in range(passes):
        for x, case in cases.items():
            if case.chosen:
                fed = feeding.first_of_each(programs[x], case.events, case.most)
            else:
                fed = feeding.tallied(programs[x], case.events, most=case.most)
            if case.expected is not None and fed.found != case.expected:
                raise SystemExit(f"{case.query}: {fed.found} matches, not {case.expected}")
            points[x].values.append(len(case.events) / fed.seconds)
            points[x].counts = {"events": len(case.events), "matches": fed.found}
            if not case.chosen:
                points[x].counts["evaluations"] = fed.evaluations
    return list(points.values())


@contextmanager
def without(rules: str) -> Iterator[None]:
    """Compile and run without these optimisation rules, as `SPASEQ_DISABLE` lists them."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = rules
    try:
        yield
    finally:
        os.environ.pop(VARIABLE)
        if before is not None:
            os.environ[VARIABLE] = before


def spread(points: Iterable[Point]) -> float:
    """The greatest median divided by the least."""
    medians = [point.median for point in points]
    return max(medians) / min(medians)


def beside(point: Point) -> str:
    """The median of ratios with its spread, for an answer."""
    low, high = min(point.values), max(point.values)
    return f"{point.median:,.3g} ({low:,.3g} to {high:,.3g})"


def text(figure: Figure) -> str:
    """The figure as a table with its question and its answer."""
    head = [figure.question, f"  {figure.source}", f"  {figure.data}", ""]
    return "\n".join([*head, rows(figure), "", figure.answer])


def rows(figure: Figure) -> str:
    """The figure as a table: medians, with the least and the greatest value, and counts."""
    lines = []
    for line in figure.lines:
        lines.append(f"{line.name}")
        for point in line.points:
            counts = "  ".join(f"{count:,} {name}" for name, count in point.counts.items())
            low, high = min(point.values), max(point.values)
            lines.append(
                f"  {figure.x.place(point.x)} {point.median:>14,.6g} {figure.y.unit}"
                f"  ({low:,.6g} to {high:,.6g})  {counts}"
            )
    return "\n".join(lines)


def add_peers(parser: argparse.ArgumentParser) -> None:
    """The option that names other engines."""
    parser.add_argument(
        "--peers", nargs="*", metavar="PEER",
        help="other engines: names of peers/README.md, or NAME=COMMAND; all that are there",
    )  # fmt: skip


def main(measure: Callable[..., Figure], peers: bool = False) -> None:
    """The command line of a figure's script.

    Args:
        measure: Called with whether it shall be short and, if `peers`, with the chosen ones.
    """
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--short", action="store_true", help="few events and one pass")
    parser.add_argument("--json", metavar="FILE", help="write the figure as JSON")
    parser.add_argument("--svg", metavar="FILE", help="draw the figure")
    if peers:
        add_peers(parser)
    arguments = parser.parse_args()
    more = [chosen(arguments.peers or [])] if peers else []
    try:
        figure = measure(arguments.short, *more)
    except LeftOut as why:
        raise SystemExit(f"left out: {why}") from None
    print(text(figure))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figure.to_dict(), indent=1), "utf-8")
    if arguments.svg:
        from plot import svg

        Path(arguments.svg).write_text(svg(figure), "utf-8")

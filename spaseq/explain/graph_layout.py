"""A directed graph → coordinates: a small layered drawing, left to right.

The steps follow Sugiyama, Tagawa and Toda (*Methods for visual understanding of
hierarchical system structures*, 1981): back edges are reversed, the column of a node is the
length of its longest path from a start, edges across several columns pass through a point in
each column, and the nodes of a column are ordered by the mean position of their neighbours. The
first of these points of an edge has room for its label.

Invariant: the layout is deterministic. Cost: quadratic in the graph, which has as many nodes as
the pattern has places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from spaseq.records import dataclass

GAP = 34.0
"""The vertical distance between nodes of one column, in pixels."""
SWEEPS = 8


@dataclass(frozen=True, slots=True)
class Box:
    """The size of a node."""

    width: float
    height: float


PASSAGE = Box(0.0, 18.0)
"""The space that an edge occupies in a column it passes."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge between two nodes, and the size of its label."""

    source: int
    target: int
    label: Box


@dataclass(frozen=True, slots=True)
class Route:
    """The path of an arrow, from left to right between the boxes of the columns it passes.

    `points` are the centres of the two ends, and between them the two sides of each passage.
    `back` means that the arrow's target is the left end. A loop has its node at both ends.
    """

    points: tuple[tuple[float, float], ...]
    left: int
    right: int
    back: bool = False

    @property
    def loop(self) -> bool:
        return self.left == self.right


@dataclass(frozen=True, slots=True)
class Layout:
    centres: tuple[tuple[float, float], ...]
    routes: tuple[Route, ...]
    width: float
    height: float
    columns: tuple[int, ...]
    """The column of each node."""
    spans: tuple[tuple[float, float], ...]
    """The left and right side of each column."""


class _Point:
    """A node, or the passage of an edge through a column."""

    __slots__ = ("box", "column", "left", "right", "y")

    def __init__(self, column: int, box: Box):
        self.column = column
        self.box = box
        self.y = 0.0
        self.left: list[_Point] = []
        self.right: list[_Point] = []


def arrange(boxes: Sequence[Box], arrows: Sequence[Arrow], starts: Sequence[int]) -> Layout:
    """The layout of a graph; every node must be reachable from the starts."""
    back = _leading_back(len(boxes), arrows, starts)
    straight = [
        replace(arrow, source=arrow.target, target=arrow.source) if number in back else arrow
        for number, arrow in enumerate(arrows)
    ]
    forward = [arrow for arrow in straight if arrow.source != arrow.target]
    columns = _columns(len(boxes), forward)
    nodes = [_Point(columns[n], box) for n, box in enumerate(boxes)]
    ways = [
        _way(nodes[arrow.source], nodes[arrow.target], arrow.label)
        if arrow.source != arrow.target
        else [nodes[arrow.source]] * 2
        for arrow in straight
    ]
    grid: list[list[_Point]] = [[] for _ in range(max(columns) + 1)]
    points = dict.fromkeys([*nodes, *(point for way in ways for point in way)])
    for point in points:
        grid[point.column].append(point)
    _order(grid)
    xs, widths = _abscissae(grid, columns, forward)
    top = min(point.y - point.box.height / 2 for point in points)
    for point in points:
        point.y -= top
    centres = tuple((xs[node.column], node.y) for node in nodes)
    routes = []
    for number, (arrow, way) in enumerate(zip(straight, ways, strict=True)):
        through = [
            (xs[point.column] + side * widths[point.column] / 2, point.y)
            for point in way[1:-1]
            for side in (-1, 1)
        ]
        ends = centres[arrow.source], centres[arrow.target]
        along = (ends[0], *through, ends[1])
        routes.append(Route(along, arrow.source, arrow.target, number in back))
    bottom = max(point.y + point.box.height / 2 for point in points)
    spans = tuple((x - width / 2, x + width / 2) for x, width in zip(xs, widths, strict=True))
    return Layout(centres, tuple(routes), spans[-1][1], bottom, tuple(columns), spans)


def _leading_back(size: int, arrows: Sequence[Arrow], starts: Sequence[int]) -> frozenset[int]:
    """The back edges of a depth-first search from the starts."""
    onward: list[list[int]] = [[] for _ in range(size)]
    for number, arrow in enumerate(arrows):
        onward[arrow.source].append(number)
    state = [0] * size
    back: set[int] = set()
    for start in starts:
        if state[start]:
            continue
        state[start] = 1
        stack = [(start, iter(onward[start]))]
        while stack:
            node, rest = stack[-1]
            for number in rest:
                target = arrows[number].target
                if state[target] == 1 and target != node:
                    back.add(number)
                elif state[target] == 0:
                    state[target] = 1
                    stack.append((target, iter(onward[target])))
                    break
            else:
                state[node] = 2
                stack.pop()
    return frozenset(back)


def _columns(size: int, forward: Sequence[Arrow]) -> list[int]:
    """For each node the length of its longest path from a start."""
    columns = [0] * size
    changed = True
    while changed:
        changed = False
        for arrow in forward:
            if columns[arrow.target] <= columns[arrow.source]:
                columns[arrow.target] = columns[arrow.source] + 1
                changed = True
    return columns


def _way(source: _Point, target: _Point, label: Box) -> list[_Point]:
    """Source, one passage in each column between, target."""
    room = [label, *(PASSAGE for _ in range(source.column + 2, target.column))]
    between = range(source.column + 1, target.column)
    passages = [_Point(column, box) for column, box in zip(between, room, strict=False)]
    way = [source, *passages, target]
    for one, other in pairwise(way):
        one.right.append(other)
        other.left.append(one)
    return way


def _order(grid: Sequence[list[_Point]]) -> None:
    """Order each column by the mean position of its neighbours, and assign ordinates."""
    for column in grid:
        _stack(column)
    for sweep in range(SWEEPS):
        leftwards = bool(sweep % 2)
        for column in reversed(grid) if leftwards else grid:
            wanted: Mapping[_Point, float] = {
                point: _mean(point.right if leftwards else point.left, point.y) for point in column
            }
            column.sort(key=lambda point: wanted[point])
            _stack(column)
            _pull(column, wanted)


def _mean(neighbours: Sequence[_Point], otherwise: float) -> float:
    if not neighbours:
        return otherwise
    return sum(point.y for point in neighbours) / len(neighbours)


def _stack(column: Sequence[_Point]) -> None:
    """Stack the points of a column, centred at zero."""
    total = sum(point.box.height for point in column) + GAP * (len(column) - 1)
    y = -total / 2
    for point in column:
        point.y = y + point.box.height / 2
        y += point.box.height + GAP


def _pull(column: Sequence[_Point], wanted: Mapping[_Point, float]) -> None:
    """Move a column as a whole, then each point, towards the wanted ordinates."""
    offset = sum(wanted[point] - point.y for point in column) / len(column)
    for point in column:
        point.y += offset
    for position, point in enumerate(column):
        low, high = float("-inf"), float("inf")
        if position:
            above = column[position - 1]
            low = above.y + (above.box.height + point.box.height) / 2 + GAP
        if position + 1 < len(column):
            below = column[position + 1]
            high = below.y - (below.box.height + point.box.height) / 2 - GAP
        if low <= high:
            point.y = min(max(wanted[point], low), high)


def _abscissae(
    grid: Sequence[Sequence[_Point]], columns: Sequence[int], forward: Sequence[Arrow]
) -> tuple[list[float], list[float]]:
    """The centre and width of each column; gaps have room for labels."""
    widths = [max(point.box.width for point in column) for column in grid]
    gaps = [46.0] * len(grid)
    needed: dict[tuple[int, int], float] = {}
    for arrow in forward:
        ends, column = (arrow.source, arrow.target), columns[arrow.source]
        if columns[arrow.target] == column + 1:
            needed[ends] = needed.get(ends, 40.0) + arrow.label.width + 8.0
            gaps[column] = max(gaps[column], needed[ends])
    xs = []
    x = 0.0
    for width, gap in zip(widths, gaps, strict=True):
        xs.append(x + width / 2)
        x += width + gap
    return xs, widths

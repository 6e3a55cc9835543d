"""A layout → rows of columns that fit a width; arrows between rows run around them.

A row ends where the next column would exceed the width. An arrow from one row to another leaves its
row on the right, runs below it, and enters the other row on the left. Each such arrow has its own
lane. Cost: linear in the layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spaseq.explain.graph_layout import Box, Layout, Route
from spaseq.records import dataclass

LANE = 9.0
"""The distance between two lanes, in pixels."""
_GAP = 26.0
"""The space between rows without lanes."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rows:
    """A layout in rows, and for each route its points around the rows; none within a row."""

    layout: Layout
    around: tuple[tuple[Point, ...], ...]
    lefts: tuple[int, ...]
    """For each route the number of its points that are in the row of its left end."""


def in_rows(layout: Layout, boxes: Sequence[Box], width: float) -> Rows:
    """The layout with at most `width` pixels in a row, if no single column is wider.

    Args:
        layout: The layout in one row.
        boxes: The sizes of its nodes.
        width: The width of a row, without the lanes.
    """
    firsts = _firsts(layout, width)
    row_of = [sum(column >= first for first in firsts) - 1 for column in range(len(layout.spans))]
    rows = [row_of[column] for column in layout.columns]
    crossing = [rows[route.left] != rows[route.right] for route in layout.routes]
    lanes = sum(crossing) * LANE
    tops, heights = _extents(layout, boxes, rows, crossing, len(firsts))
    offsets, y = [], 0.0
    for row, first in enumerate(firsts):
        left = layout.spans[first][0] - (lanes + 2 * LANE if len(firsts) > 1 else 0.0)
        offsets.append((-left, y - tops[row]))
        y += heights[row] + _GAP + lanes
    centres = tuple(
        _moved(point, offsets[row]) for point, row in zip(layout.centres, rows, strict=True)
    )
    routes: list[Route] = []
    around: list[tuple[Point, ...]] = []
    lefts: list[int] = []
    right_side = max(
        layout.spans[_last(firsts, row, layout)][1] + offsets[row][0] for row in range(len(firsts))
    )
    lane = 0
    for route, crosses in zip(layout.routes, crossing, strict=True):
        if not crosses:
            moved = tuple(_moved(point, offsets[rows[route.left]]) for point in route.points)
            routes.append(replace(route, points=moved))
            around.append(())
            lefts.append(len(moved))
            continue
        lane += 1
        one, other = rows[route.left], rows[route.right]
        begin, end = _halves(route, layout, row_of, one, other)
        before = [_moved(point, offsets[one]) for point in begin]
        after = [_moved(point, offsets[other]) for point in end]
        right = right_side + _stub(layout, firsts, one) + lane * LANE
        below = tops[one] + offsets[one][1] + heights[one] + _GAP / 2 + (lane - 1) * LANE
        left = lanes + LANE - lane * LANE
        around.append(((right, before[-1][1]), (right, below), (left, below), (left, after[0][1])))
        routes.append(replace(route, points=(*before, *after)))
        lefts.append(len(before))
    bottom = y - _GAP - lanes
    extent = right_side + (lanes + 2 * LANE if any(crossing) else 0.0)
    extent += max((_stub(layout, firsts, row) for row in range(len(firsts) - 1)), default=0.0)
    wrapped = replace(layout, centres=centres, routes=tuple(routes), width=extent, height=bottom)
    return Rows(wrapped, tuple(around), tuple(lefts))


def _firsts(layout: Layout, width: float) -> list[int]:
    """The first column of each row."""
    firsts = [0]
    for column, (_, right) in enumerate(layout.spans):
        if column > firsts[-1] and right - layout.spans[firsts[-1]][0] > width:
            firsts.append(column)
    return firsts


def _last(firsts: Sequence[int], row: int, layout: Layout) -> int:
    return (firsts[row + 1] if row + 1 < len(firsts) else len(layout.spans)) - 1


def _stub(layout: Layout, firsts: Sequence[int], row: int) -> float:
    """The room on the right of a row for the labels of the arrows that leave it."""
    last = _last(firsts, row, layout)
    if last + 1 == len(layout.spans):
        return 0.0
    return layout.spans[last + 1][0] - layout.spans[last][1]


def _extents(
    layout: Layout, boxes: Sequence[Box], rows: Sequence[int], crossing: Sequence[bool], count: int
) -> tuple[list[float], list[float]]:
    """The top and the height of each row."""
    tops, bottoms = [float("inf")] * count, [float("-inf")] * count
    for (_, y), box, row in zip(layout.centres, boxes, rows, strict=True):
        tops[row] = min(tops[row], y - box.height / 2)
        bottoms[row] = max(bottoms[row], y + box.height / 2)
    for route, crosses in zip(layout.routes, crossing, strict=True):
        for row in {rows[route.left], rows[route.right]}:
            for _, y in () if crosses else route.points:
                tops[row], bottoms[row] = min(tops[row], y - 12), max(bottoms[row], y + 12)
    return tops, [bottom - top for top, bottom in zip(tops, bottoms, strict=True)]


def _halves(
    route: Route, layout: Layout, row_of: Sequence[int], one: int, other: int
) -> tuple[list[Point], list[Point]]:
    """The points of an arrow in the row of its left end, and in the row of its right end."""
    begin: list[Point] = [route.points[0]]
    end: list[Point] = []
    column = layout.columns[route.left]
    for place in range(1, len(route.points) - 1, 2):
        column += 1
        if row_of[column] == one:
            begin += route.points[place : place + 2]
        elif row_of[column] == other:
            end += route.points[place : place + 2]
    return begin, [*end, route.points[-1]]


def _moved(point: Point, offset: Point) -> Point:
    return point[0] + offset[0], point[1] + offset[1]

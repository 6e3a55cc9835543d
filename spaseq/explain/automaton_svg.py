"""The automata of a program as SVG.

A box is a place where partial matches wait, an arrow a step of the pattern, the double circle
acceptance; guards are red, and boxes where matches begin are green. Below the automaton are the
streams and filters of its graph patterns. A long automaton is broken into rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from spaseq.engine.compiled import CompiledQueries
from spaseq.explain.automaton_picture import Edge, Line, LiveCounts, Node, Picture, pictures
from spaseq.explain.graph_layout import Arrow, Box, Route, arrange
from spaseq.explain.rows import Point, Rows, in_rows
from spaseq.explain.svg import LINE, escaped, image, text_at, text_width
from spaseq.records import dataclass

MARGIN = 28.0
ROW_WIDTH = 980.0
"""The width at which an automaton is broken into rows, in pixels."""
LOOP = 34.0
"""Height of the arc of a loop."""
LABEL_MAX_CHARACTERS = 36
HEAD_MAX_CHARACTERS = 110
_SAMPLES = 12
"""Points of a curve whose distance to labels is examined."""
_TIP = (
    '<defs><marker id="spaseq-tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
    'markerHeight="7" orient="auto-start-reverse"><path class="tip" d="M0 0 10 5 0 10z"/></marker>'
    "</defs>"
)


@dataclass(frozen=True, slots=True)
class _Curve:
    """The path of an arrow, points along it, and how many of these are suitable for a label."""

    path: str
    points: tuple[Point, ...]
    labelled: int


@dataclass(frozen=True, slots=True)
class _Area:
    """A rectangle by its centre and size."""

    x: float
    y: float
    width: float
    height: float

    def overlap(self, other: _Area) -> float:
        across = (self.width + other.width) / 2 - abs(self.x - other.x)
        down = (self.height + other.height) / 2 - abs(self.y - other.y)
        return max(across, 0.0) * max(down, 0.0)

    def contains(self, point: Point) -> bool:
        across, down = abs(self.x - point[0]), abs(self.y - point[1])
        return across < self.width / 2 and down < self.height / 2


def to_svg(program: CompiledQueries, counts: Sequence[LiveCounts] | None = None) -> str:
    """The automata as one SVG image, one below the other.

    With the counts of a run, one for each query, places show how many groups wait there, and
    arrows how often they were passed. The elements have these as attributes too: `data-query`, and
    in it `data-place`, `data-waiting`, `data-edge` (two places; `0` is acceptance), `data-passed`.
    """
    parts, titles = [_TIP], []
    y, width = MARGIN, 0.0
    for picture in pictures(program, counts):
        drawn, size = _draw(picture)
        name = "" if counts is None else f' data-query="{escaped(picture.title)}"'
        parts.append(f'<g transform="translate({MARGIN:g} {y:g})"{name}>{drawn}</g>')
        titles.append(f"{picture.title}: {picture.subtitle}")
        y += size[1] + 2 * MARGIN
        width = max(width, size[0])
    return image("\n".join(titles), parts, width + 2 * MARGIN, y - MARGIN)


def _draw(picture: Picture) -> tuple[str, Point]:
    """One automaton and its size."""
    sizes = [_size(node) for node in picture.nodes]
    rows = _placed(picture, sizes)
    layout = rows.layout
    areas = [_Area(*centre, *size) for centre, size in zip(layout.centres, sizes, strict=True)]
    curves = [
        _curve(route, ports, sizes, around, lefts)
        for route, ports, around, lefts in zip(
            layout.routes, _ports(layout.routes, sizes), rows.around, rows.lefts, strict=True
        )
    ]
    labels = _labels(picture.edges, layout.routes, curves, areas)
    head = _head(picture)
    left, top, right, bottom = _bounds([*areas, *labels], curves)
    down = len(head) * LINE + 18.0 - top
    body = [
        f'<path class="way" d="{curve.path}" '
        f'marker-{"start" if route.back else "end"}="url(#spaseq-tip)"{_marks(picture, edge)}/>'
        for edge, curve, route in zip(picture.edges, curves, layout.routes, strict=True)
    ]
    body += map(_box, picture.nodes, areas)
    for edge, area in zip(picture.edges, labels, strict=True):
        body += _texts(edge.lines, area.x, area.y - area.height / 2)
    texts = [text_at(text, 0.0, 4 + n * LINE, style) for n, (text, style) in enumerate(head)]
    y = down + bottom + LINE + 8.0
    name_width = max(text_width(name, "name") for name, _ in picture.steps) + 10.0
    wide = max((text_width(text, "note") for text, _ in head), default=0.0)
    for name, text in picture.steps:
        for number, line in enumerate(_wrapped(text.split("  "), HEAD_MAX_CHARACTERS)):
            if not number:
                texts.append(text_at(name, 0.0, y, "name left"))
            texts.append(text_at(line, name_width, y, "note left"))
            wide = max(wide, name_width + text_width(line, "note"))
            y += LINE
    body_text = f'<g transform="translate({-left:g} {down:g})">{"".join(body)}</g>'
    return "".join(texts) + body_text, (max(right - left, wide), y - LINE + 4.0)


def _marks(picture: Picture, edge: Edge) -> str:
    """The attributes of an arrow, in the picture of a run."""
    if edge.passed is None:
        return ""
    ends = f"{picture.nodes[edge.source].number}-{picture.nodes[edge.target].number}"
    return f' data-edge="{ends}" data-passed="{edge.passed}"'


def _head(picture: Picture) -> list[Line]:
    """The name of the query, its sequence and its window."""
    lines = _wrapped(picture.subtitle.split(" "), HEAD_MAX_CHARACTERS)
    return [(picture.title, "name left"), *((line, "note left") for line in lines)]


def _wrapped(words: Iterable[str], most: int) -> list[str]:
    """Lines of at most `most` characters; a longer word is cut."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) < most:
            lines[-1] += f" {word}"
        else:
            lines.append(_short(word, most))
    return lines


def _placed(picture: Picture, sizes: Sequence[Point]) -> Rows:
    above = [0.0] * len(sizes)
    for edge in picture.edges:
        if edge.source == edge.target:
            above[edge.source] = LOOP + len(edge.lines) * LINE
    boxes = [Box(w, h + 2 * room) for (w, h), room in zip(sizes, above, strict=True)]
    arrows = [
        Arrow(edge.source, edge.target, Box(_width(edge.lines) + 12, 2 * len(edge.lines) * LINE))
        for edge in picture.edges
    ]
    starts = [number for number, node in enumerate(picture.nodes) if node.start]
    return in_rows(arrange(boxes, arrows, starts), boxes, ROW_WIDTH)


def _size(node: Node) -> Point:
    if node.accept:
        return (70.0, 70.0)
    return (max(92.0, _width(node.lines) + 22.0), len(node.lines) * LINE + 14.0)


def _width(lines: Iterable[Line]) -> float:
    return max((text_width(_short(text), style) for text, style in lines), default=0.0)


def _short(text: str, most: int = LABEL_MAX_CHARACTERS) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _bounds(areas: Iterable[_Area], curves: Iterable[_Curve]) -> tuple[float, float, float, float]:
    """The left, top, right and bottom of everything."""
    xs, ys = [0.0], [0.0]
    for area in areas:
        xs += (area.x - area.width / 2, area.x + area.width / 2)
        ys += (area.y - area.height / 2, area.y + area.height / 2)
    for curve in curves:
        xs += (x for x, _ in curve.points)
        ys += (y for _, y in curve.points)
    return min(xs), min(ys), max(xs), max(ys)


# ------------------------------------------------------------------ arrows


def _ports(routes: Sequence[Route], sizes: Sequence[Point]) -> list[Point]:
    """For each arrow, the vertical offsets at which it meets its left and right end."""
    offsets = [[0.0, 0.0] for _ in routes]
    for node, size in enumerate(sizes):
        for end, beside in ((0, 1), (1, -2)):
            touching = [
                number
                for number, route in enumerate(routes)
                if not route.loop and (route.left, route.right)[end] == node
            ]
            touching.sort(key=lambda number: routes[number].points[beside][1])
            step = min(20.0, size[1] * 0.7 / max(len(touching), 1))
            for position, number in enumerate(touching):
                offsets[number][end] = (position - (len(touching) - 1) / 2) * step
    return [(left, right) for left, right in offsets]


def _curve(
    route: Route, ports: Point, sizes: Sequence[Point], around: Sequence[Point], lefts: int
) -> _Curve:
    """The path of an arrow from its left to its right end."""
    (x, y), (end_x, end_y) = route.points[0], route.points[-1]
    if route.loop:
        return _loop(x, y - sizes[route.left][1] / 2)
    points = [
        (x + sizes[route.left][0] / 2, y + ports[0]),
        *route.points[1:-1],
        (end_x - sizes[route.right][0] / 2, end_y + ports[1]),
    ]
    if not around:
        return _through(points)
    # Around the rows the arrow continues at the height at which it leaves its row.
    before, after = points[:lefts], points[lefts:]
    first, last = (around[0][0], before[-1][1]), (around[-1][0], after[0][1])
    turns = [first, *around[1:-1], last]
    begin, end = _through(before), _through(after)
    middle = "".join(f"L{px:.1f} {py:.1f}" for px, py in (*turns, after[0]))
    rest = end.path.partition(" ")[2].lstrip("0123456789.-") if len(after) > 1 else ""
    stubs = _between(before[-1], first), _between(last, after[0])
    return _Curve(
        begin.path + middle + rest,
        (*begin.points, *stubs[0], *turns, *stubs[1], *end.points),
        len(begin.points) + len(stubs[0]),
    )


def _loop(x: float, top: float) -> _Curve:
    path = f"M{x - 16:.1f} {top:.1f}C{x - 40:.1f} {top - 44:.1f} "
    path += f"{x + 40:.1f} {top - 44:.1f} {x + 16:.1f} {top:.1f}"
    arc = ((x - 16, top), (x - 20, top - 20), (x, top - LOOP), (x + 20, top - 20))
    return _Curve(path, arc, len(arc))


def _through(points: Sequence[Point]) -> _Curve:
    """Curves between columns, straight lines through them."""
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    passed: list[Point] = [points[0]]
    for number, (one, other) in enumerate(pairwise(points)):
        if number % 2:  # through a column, past its boxes
            path += f"L{other[0]:.1f} {other[1]:.1f}"
            passed += _between(one, other)
        else:
            bend = (one[0] + other[0]) / 2
            path += f"C{bend:.1f} {one[1]:.1f} {bend:.1f} {other[1]:.1f} "
            path += f"{other[0]:.1f} {other[1]:.1f}"
            passed += [_on_curve(one, other, step / _SAMPLES) for step in range(1, _SAMPLES + 1)]
    return _Curve(path, tuple(passed), len(passed))


def _between(one: Point, other: Point) -> list[Point]:
    """Points of a straight line."""
    return [
        (
            one[0] + (other[0] - one[0]) * step / _SAMPLES,
            one[1] + (other[1] - one[1]) * step / _SAMPLES,
        )
        for step in range(_SAMPLES + 1)
    ]


def _on_curve(one: Point, other: Point, t: float) -> Point:
    """A point of the curve between two ends, which is horizontal at both."""
    bend = 3 * t * (1 - t)
    start, end = (1 - t) ** 3, t**3
    middle = (one[0] + other[0]) / 2
    rise = end + bend * t
    return (
        start * one[0] + bend * middle + end * other[0],
        one[1] + (other[1] - one[1]) * rise,
    )


# ------------------------------------------------------------------ labels and boxes


def _labels(
    edges: Sequence[Edge], routes: Sequence[Route], curves: Sequence[_Curve], boxes: list[_Area]
) -> list[_Area]:
    """The area of each label: beside its arrow, where it covers as little as possible."""
    placed: list[_Area] = []
    dots = [point for curve in curves for point in curve.points]
    for edge, route, curve in zip(edges, routes, curves, strict=True):
        width, height = _width(edge.lines) + 4.0, len(edge.lines) * LINE
        if route.loop:
            x, top = route.points[0][0], min(y for _, y in curve.points)
            placed.append(_Area(x, top - height / 2 - 3.0, width, height))
            continue
        along = curve.points[: curve.labelled]
        middle = len(along) // 2
        candidates = [
            (
                _Area(x, y + side * (height / 2 + 4.0 + away), width, height),
                abs(number - middle) + away / 2 + (side > 0) * 2,
            )
            for number, (x, y) in enumerate(along)
            for side in (-1, 1)
            for away in (0.0, 8.0, 16.0, 26.0, 38.0)
        ]

        def cost(candidate: tuple[_Area, float]) -> float:
            area, distance = candidate
            covered = sum(map(area.overlap, (*boxes, *placed)))
            return 5 * covered + 40 * sum(map(area.contains, dots)) + distance

        placed.append(min(candidates, key=cost)[0])
    return placed


def _box(node: Node, area: _Area) -> str:
    if node.accept:
        rings = "".join(
            f'<circle class="box" cx="{area.x:.1f}" cy="{area.y:.1f}" r="{r:g}"/>' for r in (34, 29)
        )
        return rings + "".join(_texts(node.lines, area.x, area.y - LINE / 2))
    left, top = area.x - area.width / 2, area.y - area.height / 2
    box = (
        f'<rect class="box{" start" if node.start else ""}" x="{left:.1f}" y="{top:.1f}" '
        f'width="{area.width:.1f}" height="{area.height:.1f}" rx="10"/>'
    )
    drawn = box + "".join(_texts(node.lines, area.x, top + 6.0))
    if node.waiting is None:
        return drawn
    return f'<g data-place="{node.number}" data-waiting="{node.waiting}">{drawn}</g>'


def _texts(lines: Sequence[Line], x: float, top: float) -> list[str]:
    """Lines one below the other, centred at x, the first one below `top`."""
    return [
        text_at(_short(text), x, top + (number + 0.75) * LINE, style)
        for number, (text, style) in enumerate(lines)
    ]

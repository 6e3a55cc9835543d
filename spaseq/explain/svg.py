"""The automata of a program as pictures: Graphviz's language (`to_dot`), or SVG (`to_svg`).

A box is a place where partial matches wait, with its number, its strategy, the registers that
distinguish its groups, and in red its guards. An arrow is a step of the pattern; the double
circle is acceptance. The SVG is generated without external programs, and refers to no external
fonts, scripts or styles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from spaseq.engine.compiled import CompiledQueries
from spaseq.engine.place_names import STRATEGIES, Notation
from spaseq.explain.graph_layout import Arrow, Box, Layout, Route, arrange
from spaseq.explain.report import to_dict
from spaseq.nfa.automaton import ACCEPT

INK, SOFT, RED, BLUE, FILL, START = (
    "#1f2937", "#6b7280", "#c0262d", "#3b6ea5", "#eef4fb", "#e6f4ea",
)  # fmt: skip
MARGIN = 28.0
LINE = 17.0
LOOP = 34.0
"""Height of the arc of a loop."""
LABEL_MAX_CHARACTERS = 36
_UNPRINTABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Line = tuple[str, str]
"""Text and its style: `name`, `note`, `red` or `live`."""
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class LiveCounts:
    """What a run has at the places of one query, for its drawing.

    Args:
        waiting: Place → the groups of partial matches that wait there.
        entered: Place → the partial matches that have entered it.
        matches: The matches found.
    """

    waiting: Mapping[int, int]
    entered: Mapping[int, int]
    matches: int


@dataclass(frozen=True, slots=True)
class _Node:
    lines: tuple[Line, ...]
    start: bool = False
    accept: bool = False
    number: int = 0
    """The place as `explain` numbers it; 0: acceptance."""
    waiting: int | None = None
    """The groups that wait there, in the drawing of a run."""


@dataclass(frozen=True, slots=True)
class _Edge:
    source: int
    target: int
    lines: tuple[Line, ...]
    passed: int | None = None
    """How often something came to its target, in the drawing of a run."""


@dataclass(frozen=True, slots=True)
class _Picture:
    title: str
    subtitle: str
    nodes: tuple[_Node, ...]
    edges: tuple[_Edge, ...]


def _pictures(
    program: CompiledQueries, counts: Sequence[LiveCounts] | None = None
) -> Iterator[_Picture]:
    described = to_dict(program)["queries"]
    for number, (query, data) in enumerate(zip(program.queries, described, strict=True)):
        notation = Notation(query)
        count = None if counts is None else counts[number]
        nodes = [_node(notation, place, count) for place in notation.order]
        found = [] if count is None else [(f"{count.matches:,}", "note")]
        nodes.append(_Node((("match", "name"), *found), accept=True))
        subtitle = f"{data['sequence']}   {data['window']['text']}"
        if data["partition"]:
            subtitle += " PARTITION BY " + " ".join(f"?{name}" for name in data["partition"])
        yield _Picture(data["name"], subtitle, tuple(nodes), tuple(_edges(notation, count)))


def _node(notation: Notation, number: int, counts: LiveCounts | None) -> _Node:
    place = notation.automaton.places[number]
    lines = [(str(notation.numbers[number]), "name"), (STRATEGIES[place.operator], "note")]
    if place.live:
        kept = (notation.register(notation.plan.registers[register]) for register in place.live)
        lines += [(line, "note") for line in _wrapped(kept)]
    where = "before" if place.start else "in between"
    lines += [(f"{text} {where}", "red") for text in _guards(notation, place.guards)]
    waiting = None if counts is None or place.start else counts.waiting.get(number, 0)
    if waiting is not None:
        lines.append((f"{waiting:,} waiting", "live"))
    shown = notation.numbers[number]
    return _Node(tuple(lines), start=place.start, number=shown, waiting=waiting)


def _guards(notation: Notation, guards: Iterable[int]) -> list[str]:
    return list(dict.fromkeys(map(notation.guard, guards)))


def _wrapped(words: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) < 26:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _edges(notation: Notation, counts: LiveCounts | None) -> Iterator[_Edge]:
    """One arrow between two places, whatever the number of ways to go."""
    accept = len(notation.order)
    names: dict[tuple[int, int], dict[str, None]] = {}
    notes: dict[tuple[int, int], dict[Line, None]] = {}
    for number in notation.order:
        for edge in notation.automaton.places[number].edges:
            for link in notation.ways(edge):
                end = accept if link.target == ACCEPT else notation.numbers[link.target] - 1
                ends = (notation.numbers[number] - 1, end)
                names.setdefault(ends, {})[notation.atom(edge.atom)] = None
                lines = notes.setdefault(ends, {})
                if link.bounds:
                    lines[(f"if {notation.conditions(link)}", "note")] = None
                for guard in _guards(notation, link.guards):
                    lines[(f"{guard} until the window closes", "red")] = None
    for (source, end), found in names.items():
        lines = dict.fromkeys(((" | ".join(found), "name"), *notes[source, end]))
        passed = None
        if counts is not None:
            target = -1 if end == accept else notation.order[end]
            passed = counts.matches if end == accept else counts.entered.get(target, 0)
            # What came by one of several arrows to a place is not counted apart.
            if sum(other == end for _, other in names) == 1:
                lines[(f"{passed:,} times", "live")] = None
        yield _Edge(source, end, tuple(lines), passed)


# ------------------------------------------------------------------ Graphviz


def to_dot(program: CompiledQueries) -> str:
    """The automata as one Graphviz graph, a cluster for each query."""
    lines = [
        "digraph spaseq {",
        "  rankdir=LR;",
        f'  node [shape=box, style="rounded,filled", fillcolor="{FILL}", color="{BLUE}", '
        'fontname="Helvetica"];',
        f'  edge [color="{BLUE}", fontname="Helvetica"];',
    ]
    for number, picture in enumerate(_pictures(program)):
        title = _markup([(picture.title, "name"), (picture.subtitle, "note")])
        lines += [
            f"  subgraph cluster_{number} {{",
            f'    label={title}; labeljust=l; color="{SOFT}"; fontname="Helvetica";',
        ]
        for position, node in enumerate(picture.nodes):
            look = ', shape=doublecircle, style=""' if node.accept else ""
            look += f', fillcolor="{START}"' if node.start else ""
            lines.append(f"    q{number}n{position} [label={_markup(node.lines)}{look}];")
        for edge in picture.edges:
            ends = f"q{number}n{edge.source} -> q{number}n{edge.target}"
            lines.append(f"    {ends} [label={_markup(edge.lines)}];")
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _markup(lines: Sequence[Line]) -> str:
    """An HTML-like label: escaped text, each line in its colour."""
    colours = {"name": INK, "note": SOFT, "red": RED, "live": BLUE}
    parts = [
        f'<FONT COLOR="{colours[style]}"{"" if style == "name" else " POINT-SIZE=" + _TEN}>'
        f"{_text(text)}</FONT>"
        for text, style in lines
    ]
    return f"<{'<BR/>'.join(parts)}>"


_TEN = '"10"'


def _text(text: str) -> str:
    return escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text))


# ------------------------------------------------------------------ SVG


def to_svg(program: CompiledQueries, counts: Sequence[LiveCounts] | None = None) -> str:
    """The automata as one SVG image, one below the other.

    With the counts of a run, one for each query, places show how many groups wait there, and
    arrows how often they were passed. The elements have these as attributes too: `data-query`, and
    in it `data-place`, `data-waiting`, `data-edge` (two places; `0` is acceptance), `data-passed`.
    """
    parts: list[str] = []
    y, width = MARGIN, 0.0
    for picture in _pictures(program, counts):
        drawn, size = _draw(picture)
        name = "" if counts is None else f' data-query="{escape(picture.title)}"'
        parts.append(f'<g transform="translate({MARGIN:g} {y:g})"{name}>{drawn}</g>')
        y += size[1] + 2 * MARGIN
        width = max(width, size[0])
    width, height = width + 2 * MARGIN, y - MARGIN
    style = (
        "text{font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;text-anchor:middle}"
        f".name{{font-size:14px;font-weight:bold;fill:{INK}}}"
        f".note{{font-size:11.5px;fill:{SOFT}}}"
        f".red{{font-size:11.5px;font-weight:bold;fill:{RED}}}"
        f".live{{font-size:11.5px;font-weight:bold;fill:{BLUE}}}"
        f".way{{fill:none;stroke:{BLUE};stroke-width:1.6}}"
        ".left{text-anchor:start}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">\n<style>{style}</style>\n'
        f'<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        f'markerHeight="7" orient="auto-start-reverse">'
        f'<path d="M0 0 10 5 0 10z" fill="{BLUE}"/></marker></defs>\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _draw(picture: _Picture) -> tuple[str, Point]:
    """One automaton and its size."""
    sizes = [_size(node) for node in picture.nodes]
    # The first line of a label is centred on the arrow, the others are below it.
    labels = [
        Box(_width(edge.lines) + 4, (2 * len(edge.lines) - 1) * LINE) for edge in picture.edges
    ]
    above = [0.0] * len(sizes)
    for edge in picture.edges:
        if edge.source == edge.target:
            above[edge.source] = LOOP + len(edge.lines) * LINE
    boxes = [Box(w, h + 2 * room) for (w, h), room in zip(sizes, above, strict=True)]
    arrows = [
        Arrow(edge.source, edge.target, label)
        for edge, label in zip(picture.edges, labels, strict=True)
    ]
    layout = arrange(boxes, arrows, [n for n, node in enumerate(picture.nodes) if node.start])
    head = _lines([(picture.title, "name left"), (picture.subtitle, "note left")], (0.0, 4.0))
    ways, names = [], []
    taken: list[tuple[Point, Box]] = []
    for route, ports, edge, label in zip(
        layout.routes, _ports(layout, sizes), picture.edges, labels, strict=True
    ):
        path, candidates = _path(route, ports, sizes, len(edge.lines))
        end = "start" if route.back else "end"
        marks = ""
        if edge.passed is not None:
            between = f"{picture.nodes[edge.source].number}-{picture.nodes[edge.target].number}"
            marks = f' data-edge="{between}" data-passed="{edge.passed}"'
        ways.append(f'<path class="way" d="{path}" marker-{end}="url(#tip)"{marks}/>')
        middle = min(candidates, key=lambda place: _overlap(place, label, taken))
        taken.append((middle, label))
        names.append(_label(edge.lines, middle))
    nodes = [
        _box(node, centre, size)
        for node, centre, size in zip(picture.nodes, layout.centres, sizes, strict=True)
    ]
    top = 2 * LINE + 26.0
    body = f'<g transform="translate(0 {top:g})">{"".join([*ways, *nodes, *names])}</g>'
    width = max(layout.width, _width([(picture.subtitle, "note")]))
    ends = [y + height / 2 for (_, y), (_, height) in zip(layout.centres, sizes, strict=True)]
    ends += [y + label.height / 2 for (_, y), label in taken]
    return head + body, (width, max(ends) + top)


def _size(node: _Node) -> Point:
    if node.accept:
        return (70.0, 70.0)
    return (max(92.0, _width(node.lines) + 22.0), len(node.lines) * LINE + 14.0)


def _width(lines: Iterable[Line]) -> float:
    """An upper estimate of the width of the lines in any sans-serif font."""
    sizes = {"name": 14 * 0.72, "note": 11.5 * 0.62, "red": 11.5 * 0.68, "live": 11.5 * 0.68}
    return max((len(_short(text)) * sizes[style] for text, style in lines), default=0.0)


def _short(text: str) -> str:
    return text if len(text) <= LABEL_MAX_CHARACTERS else text[: LABEL_MAX_CHARACTERS - 1] + "…"


def _overlap(middle: Point, label: Box, taken: Iterable[tuple[Point, Box]]) -> float:
    """The area of a label at this position that overlaps other labels."""
    area = 0.0
    for (x, y), other in taken:
        across = (label.width + other.width) / 2 - abs(middle[0] - x)
        down = (label.height + other.height) / 2 - abs(middle[1] - y)
        area += max(across, 0.0) * max(down, 0.0)
    return area


def _ports(layout: Layout, sizes: Sequence[Point]) -> list[Point]:
    """For each arrow, the vertical offsets at which it meets its left and right end."""
    offsets = [[0.0, 0.0] for _ in layout.routes]
    for node, size in enumerate(sizes):
        for end, beside in ((0, 1), (1, -2)):
            touching = [
                number
                for number, route in enumerate(layout.routes)
                if not route.loop and (route.left, route.right)[end] == node
            ]
            touching.sort(key=lambda number: layout.routes[number].points[beside][1])
            step = min(20.0, size[1] * 0.7 / max(len(touching), 1))
            for position, number in enumerate(touching):
                offsets[number][end] = (position - (len(touching) - 1) / 2) * step
    return [(left, right) for left, right in offsets]


def _path(
    route: Route, ports: Point, sizes: Sequence[Point], lines: int
) -> tuple[str, list[Point]]:
    """The path of an arrow from left to right, and possible label positions, best first."""
    (x, y), (end_x, end_y) = route.points[0], route.points[-1]
    if route.loop:
        top = y - sizes[route.left][1] / 2
        path = f"M{x - 16:.1f} {top:.1f}C{x - 40:.1f} {top - 44:.1f} "
        path += f"{x + 40:.1f} {top - 44:.1f} {x + 16:.1f} {top:.1f}"
        return path, [(x, top - LOOP + LINE - lines * LINE)]
    points = [
        (x + sizes[route.left][0] / 2, y + ports[0]),
        *route.points[1:-1],
        (end_x - sizes[route.right][0] / 2, end_y + ports[1]),
    ]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for number, (one, other) in enumerate(pairwise(points)):
        if number % 2:  # through a column, past its boxes
            path += f"L{other[0]:.1f} {other[1]:.1f}"
        else:
            bend = (one[0] + other[0]) / 2
            path += f"C{bend:.1f} {one[1]:.1f} {bend:.1f} {other[1]:.1f} "
            path += f"{other[0]:.1f} {other[1]:.1f}"
    one, other = points[1:3] if len(points) > 2 else points
    if len(points) > 2:
        return path, [((one[0] + other[0]) / 2, one[1])]
    return path, [_on_curve(one, other, t) for t in (0.5, 0.4, 0.6, 0.32, 0.68, 0.25, 0.75)]


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


def _label(lines: Sequence[Line], first: Point) -> str:
    """Lines one below the other, each on an opaque background."""
    x, y = first
    grounds = []
    for number, line in enumerate(lines):
        width = _width([line]) + 4
        grounds.append(
            f'<rect x="{x - width / 2:.1f}" y="{y + (number - 0.5) * LINE:.1f}" '
            f'width="{width:.1f}" height="{LINE:g}" fill="#ffffff"/>'
        )
    return "".join(grounds) + _lines(lines, (x, y + LINE * 0.25))


def _box(node: _Node, centre: Point, size: Point) -> str:
    x, y = centre
    if node.accept:
        rings = "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:g}" fill="#ffffff" stroke="{BLUE}" '
            'stroke-width="1.6"/>'
            for r in (34, 29)
        )
        return rings + _lines(node.lines, (x, y + 5))
    box = (
        f'<rect x="{x - size[0] / 2:.1f}" y="{y - size[1] / 2:.1f}" width="{size[0]:.1f}" '
        f'height="{size[1]:.1f}" rx="10" fill="{START if node.start else FILL}" '
        f'stroke="{BLUE}" stroke-width="1.4"/>'
    )
    drawn = box + _lines(node.lines, (x, y - size[1] / 2 + LINE + 2))
    if node.waiting is None:
        return drawn
    return f'<g data-place="{node.number}" data-waiting="{node.waiting}">{drawn}</g>'


def _lines(lines: Sequence[Line], first: Point) -> str:
    return "".join(
        f'<text class="{style}" x="{first[0]:.1f}" y="{first[1] + n * LINE:.1f}">'
        f"{_text(text if 'left' in style else _short(text))}</text>"
        for n, (text, style) in enumerate(lines)
    )

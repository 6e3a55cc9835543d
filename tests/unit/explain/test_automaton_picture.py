"""Pictures: well formed, safely quoted, and laid out without collisions."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from engine_runs import program, text
from hypothesis import given
from hypothesis import strategies as st

import spaseq
from spaseq.explain.graph_layout import Arrow, Box, arrange

SVG = "{http://www.w3.org/2000/svg}"
QUERIES = sorted((Path(__file__).parents[2] / "golden" / "explain").glob("*.rq"))
ABCD = " ".join(f"DEFINE GPM {c} ON s {{ [] :{c.lower()} ?{c.lower()} }}" for c in "ABCD")


def texts(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_the_svg_is_well_formed_and_stands_alone(path: Path) -> None:
    svg = spaseq.compile(path.read_text("utf-8"), names=[path.stem]).to_svg()
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert path.stem in texts(svg)
    for word in ("href", "url(http", "<script", "@import"):
        assert word not in svg


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_everything_is_inside_the_picture(path: Path) -> None:
    root = ElementTree.fromstring(spaseq.compile(path.read_text("utf-8")).to_svg())
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    down = sum(shift(group)[1] for group in root.iter(f"{SVG}g"))
    across = sum(shift(group)[0] for group in root.iter(f"{SVG}g"))
    (body,) = root.findall(f"{SVG}g/{SVG}g")
    corners = [
        (float(box.attrib["x"]) + right, float(box.attrib["y"]) + low)
        for box in body.iter(f"{SVG}rect")
        for right in (0.0, float(box.attrib["width"]))
        for low in (0.0, float(box.attrib["height"]))
    ]
    corners += [
        (float(x), float(y))
        for path in body.iter(f"{SVG}path")
        for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path.attrib["d"])
    ]
    for x, y in corners:
        assert 0 <= x + across <= width
        assert 0 <= y + down <= height


def shift(group: ElementTree.Element) -> tuple[float, float]:
    x, y = group.attrib["transform"].removeprefix("translate(").rstrip(")").split()
    return float(x), float(y)


LONG = "ABCDEFGHIJKL"
LONG_QUERY = text(
    seq=f"SEQ({' ; '.join(LONG)})",
    gpms=" ".join(f"DEFINE GPM {c} ON s {{ [] :{c.lower()} ?{c} FILTER(?{c} > 7) }}" for c in LONG),
)


def test_a_long_automaton_is_broken_into_rows() -> None:
    root = ElementTree.fromstring(spaseq.compile(LONG_QUERY).to_svg())
    tops = [float(box.attrib["y"]) for box in root.iter(f"{SVG}rect")]
    assert len({round(top / 100) for top in tops}) > 2
    assert float(root.attrib["width"]) < 1200
    assert sum(node.attrib.get("class") == "way" for node in root.iter(f"{SVG}path")) == len(LONG)


def test_streams_and_filters_are_shown() -> None:
    shown = texts(spaseq.compile(LONG_QUERY).to_svg())
    assert shown.count("on s FILTER(?F > 7)") == 1


def test_colours_are_those_of_the_page() -> None:
    svg = program().to_svg()
    style = svg[svg.index("<style>") : svg.index("</style>")]
    assert "prefers-color-scheme:dark" in style
    rules = [line for line in style.splitlines()[1:] if line and not line.startswith("@media")]
    assert all(line.startswith((".spaseq ", "svg.spaseq:root")) for line in rules)
    # Outside of the rules for an image alone, no text or line has a colour of a light page.
    fixed = re.findall(r"(?:fill|stroke):(#\w+)", style)
    assert set(fixed) == {"#d9434b", "#2f9e44", "#3b82c4"}


def test_an_image_has_a_title() -> None:
    root = ElementTree.fromstring(spaseq.compile(text(), names=["rising"]).to_svg())
    title = root.findtext(f"{SVG}title")
    assert title is not None
    assert title.startswith("rising: SEQ(")
    assert root.attrib["aria-label"] == title


# ------------------------------------------------------------------ Mermaid


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_mermaid_has_the_nodes_and_arrows_of_the_dot(path: Path) -> None:
    one = spaseq.compile(path.read_text("utf-8"))
    nodes, arrows = statements(one.to_dot())
    chart = one.to_mermaid()
    assert chart.startswith("flowchart LR\n")
    assert set(re.findall(r"^    (q\d+n\d+)\(", chart, re.MULTILINE)) == nodes
    ends = re.findall(r'^    (q\d+n\d+) -->\|"[^"]*"\| (q\d+n\d+)$', chart, re.MULTILINE)
    assert ends == arrows


def test_names_are_quoted_for_mermaid() -> None:
    chart = spaseq.compile(text(), names=[NASTY]).to_mermaid()
    first = chart.splitlines()[1]
    assert first.startswith('  subgraph q0 ["a#34;b#60;c#62;#38;d#92;e')
    assert "\x01" not in chart


def test_guards_are_red_and_the_match_has_two_circles() -> None:
    svg = program("SEQ(A ; !B ; C : !D)", ABCD).to_svg()
    red = [
        node.text
        for node in ElementTree.fromstring(svg).iter(f"{SVG}text")
        if node.attrib["class"] == "red"
    ]
    assert red == ["!B in between", "!D until the window closes"]
    assert len(list(ElementTree.fromstring(svg).iter(f"{SVG}circle"))) == 2


def test_every_query_has_its_picture() -> None:
    both = spaseq.compile([text(), text(seq="SEQ(B : A)")], names=["first one", "second one"])
    assert {"first one", "second one"} <= set(texts(both.to_svg()))
    assert both.to_dot().count("subgraph cluster_") == 2


NASTY = 'a"b<c>&d\\e\x01\n-->]]>'


def test_names_are_quoted() -> None:
    one = spaseq.compile(text(), names=[NASTY])
    assert any('a"b<c>&d\\e' in shown for shown in texts(one.to_svg()))
    dot = one.to_dot()
    assert 'a"b' not in dot
    assert "&lt;c&gt;" in dot
    assert "\x01" not in dot


def statements(dot: str) -> tuple[set[str], list[tuple[str, str]]]:
    nodes = set(re.findall(r"^\s+(q\d+n\d+) \[", dot, re.MULTILINE))
    return nodes, re.findall(r"^\s+(q\d+n\d+) -> (q\d+n\d+) \[", dot, re.MULTILINE)


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_dot_is_balanced_and_its_arrows_have_ends(path: Path) -> None:
    dot = spaseq.compile(path.read_text("utf-8")).to_dot()
    assert dot.startswith("digraph")
    assert dot.count("{") - len(re.findall(r"\w\{\d", dot)) == dot.count("}") - len(
        re.findall(r"\w\{[\d,]+\}", dot)
    )
    for line in dot.splitlines():
        labels = re.findall(r"label=<(.*?)>(?:[;,\]]|$)", line)
        for label in labels:
            ElementTree.fromstring(f"<x>{label}</x>")
    nodes, arrows = statements(dot)
    assert {end for arrow in arrows for end in arrow} == nodes


def test_both_drawings_show_the_same_automaton() -> None:
    one = program("SEQ(A ; B+ : C)", ABCD.rpartition("DEFINE")[0])
    nodes, arrows = statements(one.to_dot())
    assert len(nodes) == 5
    assert len(arrows) == 6
    root = ElementTree.fromstring(one.to_svg())
    assert sum(node.attrib.get("class") == "way" for node in root.iter(f"{SVG}path")) == 6


def test_drawings_are_stable() -> None:
    assert program().to_svg() == program().to_svg()
    assert program().to_dot() == program().to_dot()


# ------------------------------------------------------------------ the layout


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Box], list[Arrow]]:
    """Graphs whose every node can be reached from node 0."""
    size = draw(st.integers(1, 9))
    sides = st.floats(20, 200)
    boxes = [Box(draw(sides), draw(sides)) for _ in range(size)]
    ends = [(draw(st.integers(0, node - 1)), node) for node in range(1, size)]
    node = st.integers(0, size - 1)
    ends += draw(st.lists(st.tuples(node, node), max_size=8))
    return boxes, [Arrow(a, b, Box(draw(sides), 17.0)) for a, b in dict.fromkeys(ends)]


@given(graphs())
def test_boxes_and_passages_do_not_overlap(graph: tuple[list[Box], list[Arrow]]) -> None:
    boxes, arrows = graph
    layout = arrange(boxes, arrows, [0])
    placed = list(zip(layout.centres, boxes, strict=True))
    for ((x, y), one), ((other_x, other_y), other) in combinations(placed, 2):
        apart = abs(x - other_x) >= (one.width + other.width) / 2 - 1e-6
        assert apart or abs(y - other_y) >= (one.height + other.height) / 2 - 1e-6
    for route in layout.routes:
        for left, right in zip(route.points[1:-1:2], route.points[2:-1:2], strict=True):
            middle = (left[0] + right[0]) / 2
            for number, ((x, y), box) in enumerate(placed):
                if number not in (route.left, route.right) and abs(x - middle) < 1:
                    assert abs(y - left[1]) >= box.height / 2 - 1e-6


@given(graphs())
def test_arrows_run_from_left_to_right_through_every_column(
    graph: tuple[list[Box], list[Arrow]],
) -> None:
    boxes, arrows = graph
    layout = arrange(boxes, arrows, [0])
    assert len(layout.routes) == len(arrows)
    for route, arrow in zip(layout.routes, arrows, strict=True):
        ends = (route.right, route.left) if route.back else (route.left, route.right)
        assert ends == (arrow.source, arrow.target)
        xs = [x for x, _ in route.points]
        assert xs == sorted(xs)
        assert route.loop or xs[0] < xs[-1]


@given(graphs())
def test_the_layout_tells_its_size(graph: tuple[list[Box], list[Arrow]]) -> None:
    boxes, arrows = graph
    layout = arrange(boxes, arrows, [0])
    for (x, y), box in zip(layout.centres, boxes, strict=True):
        assert box.width / 2 - 1e-6 <= x <= layout.width - box.width / 2 + 1e-6
        assert box.height / 2 - 1e-6 <= y <= layout.height - box.height / 2 + 1e-6

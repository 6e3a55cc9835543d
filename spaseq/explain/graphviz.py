"""The automata of a program in the DOT language of Graphviz."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.engine.compiled import CompiledQueries
from spaseq.explain.automaton_picture import Line, pictures
from spaseq.explain.svg import escaped

INK, SOFT, RED, BLUE, FILL, START = (
    "#1f2937", "#6b7280", "#c0262d", "#3b6ea5", "#eef4fb", "#e6f4ea",
)  # fmt: skip


def to_dot(program: CompiledQueries) -> str:
    """The automata as one Graphviz graph, a cluster for each query."""
    lines = [
        "digraph spaseq {",
        "  rankdir=LR;",
        f'  node [shape=box, style="rounded,filled", fillcolor="{FILL}", color="{BLUE}", '
        'fontname="Helvetica"];',
        f'  edge [color="{BLUE}", fontname="Helvetica"];',
    ]
    for number, picture in enumerate(pictures(program)):
        lines_of = [(f"{name} {text}", "note") for name, text in picture.steps]
        title = _markup([(picture.title, "name"), (picture.subtitle, "note"), *lines_of])
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
    colours = {"name": INK, "note": SOFT, "red": RED}
    parts = [
        f'<FONT COLOR="{colours[style]}"{"" if style == "name" else " POINT-SIZE=" + _TEN}>'
        f"{escaped(text)}</FONT>"
        for text, style in lines
    ]
    return f"<{'<BR/>'.join(parts)}>"


_TEN = '"10"'

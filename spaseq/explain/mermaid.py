"""The automata of a program as a flow chart of Mermaid, which GitHub and many notebooks draw."""

from __future__ import annotations

from collections.abc import Iterable

from spaseq.engine.compiled import CompiledQueries
from spaseq.explain.automaton_picture import Line, pictures
from spaseq.explain.svg import printable

_ENTITIES = str.maketrans({letter: f"#{ord(letter)};" for letter in '"#&<>;`[]{}()|\\'})


def to_mermaid(program: CompiledQueries) -> str:
    """The automata as one flow chart, a subgraph for each query."""
    lines = ["flowchart LR"]
    for number, picture in enumerate(pictures(program)):
        # A title of several lines would overlap the first nodes.
        title = _label([(picture.title, "name")])
        lines += [f"  subgraph q{number} [{title}]", "    direction LR"]
        for position, node in enumerate(picture.nodes):
            left, right = ("(((", ")))") if node.accept else ("(", ")")
            lines.append(f"    q{number}n{position}{left}{_label(node.lines)}{right}")
        for edge in picture.edges:
            ends = f"q{number}n{edge.source}", f"q{number}n{edge.target}"
            lines.append(f"    {ends[0]} -->|{_label(edge.lines)}| {ends[1]}")
        steps = [(f"{name} {text}", "note") for name, text in picture.steps]
        steps_label = _label([(picture.subtitle, "note"), *steps])
        lines += [
            f"    q{number}steps[{steps_label}]",
            f"    style q{number}steps fill:none,stroke:none",
        ]
        starts = [n for n, node in enumerate(picture.nodes) if node.start]
        lines += [f"    style q{number}n{n} stroke-width:3px" for n in starts]
        lines.append("  end")
    return "\n".join(lines) + "\n"


def _label(lines: Iterable[Line]) -> str:
    """Text in quotes, with entities for every character that Mermaid reads as syntax."""
    return '"' + "<br/>".join(printable(text).translate(_ENTITIES) for text, _ in lines) + '"'

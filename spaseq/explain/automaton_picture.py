"""The automata of a program as graphs: the content of their pictures, for any picture format.

A node is a place where partial matches wait, with its number, its strategy, the registers that
distinguish its groups, and its guards. An edge is a step of the pattern; the last node is
acceptance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from spaseq.engine.compiled import CompiledQueries
from spaseq.engine.place_names import STRATEGIES, Notation
from spaseq.explain.report import to_dict
from spaseq.gpm.expression_errors import prefixes_of
from spaseq.nfa.automaton import ACCEPT
from spaseq.parser import ast, parse
from spaseq.parser.format import expression_line
from spaseq.records import dataclass

Line = tuple[str, str]
"""Text and its style: `name`, `note`, `red` or `live`."""


@dataclass(frozen=True, slots=True)
class LiveCounts:
    """The counts of a run at the places of one query, for its picture.

    Args:
        waiting: Place → the groups of partial matches that wait there.
        entered: Place → the partial matches that have entered it.
        matches: The matches found.
    """

    waiting: Mapping[int, int]
    entered: Mapping[int, int]
    matches: int


@dataclass(frozen=True, slots=True)
class Node:
    lines: tuple[Line, ...]
    start: bool = False
    accept: bool = False
    number: int = 0
    """The number of the place in `explain`; 0: acceptance."""
    waiting: int | None = None
    """The groups that wait at the place, in the picture of a run."""


@dataclass(frozen=True, slots=True)
class Edge:
    source: int
    target: int
    lines: tuple[Line, ...]
    passed: int | None = None
    """The number of times that the target was reached, in the picture of a run."""


@dataclass(frozen=True, slots=True)
class Picture:
    title: str
    subtitle: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    steps: tuple[tuple[str, str], ...]
    """For each graph pattern its name, and its streams and filters."""


def pictures(
    program: CompiledQueries, counts: Sequence[LiveCounts] | None = None
) -> Iterator[Picture]:
    """The graph of each query.

    Args:
        program: The queries.
        counts: The counts of a run at their places.
    """
    described = to_dict(program)["queries"]
    for number, (query, data) in enumerate(zip(program.queries, described, strict=True)):
        notation = Notation(query)
        count = None if counts is None else counts[number]
        nodes = [_node(notation, place, count) for place in notation.order]
        found = [] if count is None else [(f"{count.matches:,}", "live")]
        nodes.append(Node((("match", "name"), *found), accept=True))
        subtitle = f"{data['sequence']}   {data['window']['text']}"
        if data["partition"]:
            subtitle += " PARTITION BY " + " ".join(f"?{name}" for name in data["partition"])
        steps = tuple(_steps(parse(query.plan.source)))
        yield Picture(data["name"], subtitle, tuple(nodes), tuple(_edges(notation, count)), steps)


def _steps(query: ast.Query) -> Iterator[tuple[str, str]]:
    prefixes = prefixes_of(query)
    for define in query.defines:
        filters = [
            f"FILTER({expression_line(element.condition, prefixes)})"
            for element in define.pattern.elements
            if isinstance(element, ast.Filter)
        ]
        yield define.name, "  ".join([f"on {', '.join(define.streams)}", *filters])


def _node(notation: Notation, number: int, counts: LiveCounts | None) -> Node:
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
    return Node(tuple(lines), start=place.start, number=shown, waiting=waiting)


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


def _edges(notation: Notation, counts: LiveCounts | None) -> Iterator[Edge]:
    """The single arrow between two places, however many transitions connect them."""
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
            # Arrivals by one of several arrows to a place are not counted separately.
            if sum(other == end for _, other in names) == 1:
                lines[(f"{passed:,} times", "live")] = None
        yield Edge(source, end, tuple(lines), passed)

"""Patterns as text for `explain`: views, the order of joins and their cost, line by line.

Estimates are rows per event, from guessed sizes of views. The figures of a run are shown beside
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from spaseq.gpm import algebra
from spaseq.gpm.native.order import Step, fan_out, guessed
from spaseq.gpm.pattern import Pattern
from spaseq.gpm.program import triple_text
from spaseq.gpm.python.evaluator import Evaluator
from spaseq.gpm.python.row_operators import indent
from spaseq.parser import ast
from spaseq.parser.format import expression_line
from spaseq.records import dataclass

# A question mark inside a string or an IRI begins no variable.
_VARIABLE = re.compile(r'"(?:[^"\\]|\\.)*"|<[^\s>]*>|\?(\w+)')


@dataclass(frozen=True, slots=True)
class Observed:
    """The counters of a pattern in a run.

    `steps` has, for each triple as text, (rows that the step extended, rows that it made) since the
    order of the steps last changed; triples with equal text are counted together.
    """

    events: int
    rows: int
    passed: int
    """Rows that passed the local filters."""
    steps: Mapping[str, tuple[int, int]]
    asked: tuple[str, ...] = ()
    """A description of the requests to the knowledge base by key."""


def plan_lines(pattern: Pattern, observed: Observed | None = None) -> tuple[str, ...]:
    """The plan of a pattern, one line for each operator."""
    if pattern.native is None:
        return Evaluator(pattern.program, None).plan
    steps = {} if observed is None else observed.steps
    lines = _Describing(pattern.native.slots, steps).lines(pattern.native.root)
    return tuple(lines) or ("any event with a fact",)


def renamed(lines: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """The lines of a pattern with its variables renamed."""

    def changed(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else f"?{names.get(found[1], found[1])}"

    return tuple(_VARIABLE.sub(changed, line) for line in lines)


def views(pattern: Pattern) -> tuple[str, ...]:
    """The predicates whose triples the pattern reads; `?` means all triples."""
    if pattern.native is None:
        return ()
    found = {
        "?" if isinstance(step.predicate, int) else str(step.predicate): None
        for root in (pattern.native.root, *pattern.native.exists.values())
        for node in algebra.walk(root)
        for step in algebra.steps_of(node)
    }
    return tuple(found)


class _Describing:
    """Describes the operators of one pattern."""

    def __init__(self, slots: Sequence[str], observed: Mapping[str, tuple[int, int]]):
        self._slots = slots
        self._observed = observed

    def lines(self, node: algebra.Node) -> list[str]:
        """The lines of an operator, after the lines of the operators that it reads."""
        match node:
            case algebra.Basic(left, steps, bound):
                return [*self.lines(left), *self._basic(steps, bound)]
            case algebra.Alternatives(left, chains, bound):
                found = [*self.lines(left), "alternatives"]
                for chain in chains:
                    found += ["  alternative", *indent(indent(tuple(self._basic(chain, bound))))]
                return found
            case algebra.Reach(left, text=text):
                return [*self.lines(left), f"search {text}{self._searched(text)}"]
            case algebra.Join(left, right, keys):
                return self._pair("join", left, right, keys)
            case algebra.Minus(left, right, keys):
                return self._pair("minus", left, right, keys)
            case algebra.LeftJoin(left, right, keys, conditions, seeded):
                name = "optional, for each row" if seeded else "optional"
                found = self._pair(name, left, right, () if seeded else keys)
                tests = (f"if {expression_line(condition)}" for condition in conditions)
                return [*found, *indent(tuple(tests))]
            case algebra.Union(parts):
                found = ["union"]
                for part in parts:
                    found += ["  alternative", *indent(indent(tuple(self.lines(part))))]
                return found
            case algebra.Filter(child, condition):
                return [*self.lines(child), f"filter {expression_line(condition)}"]
            case algebra.Extend(child, slot, expression):
                text = f"bind ?{self._slots[slot]} := {expression_line(expression)}"
                return [*self.lines(child), text]
            case algebra.Group(child, keys, columns):
                by = f" by {self._names(keys)}" if keys else ""
                computed = ", ".join(column.text for column in columns)
                return [*self.lines(child), f"group{by}" + (f": {computed}" if computed else "")]
            case algebra.Table(slots, rows):
                return [f"values of {self._names(slots)} ({len(rows)})"]
            case algebra.KbTable(slots, _, part):
                return list(self._kb(slots, part))
            case algebra.Seed():
                return []
            case _:
                assert_never(node)

    def _pair(
        self, name: str, left: algebra.Node, right: algebra.Node, keys: Sequence[int]
    ) -> list[str]:
        on = f" on {self._names(keys)}" if keys else ""
        return [*self.lines(left), f"{name}{on}", *indent(tuple(self.lines(right)))]

    def _basic(self, steps: Sequence[Step], bound: frozenset[int]) -> Iterator[str]:
        rows, known = 1.0, bound
        if self._observed:
            # The order may have changed since the query was compiled.
            place = {text: number for number, text in enumerate(self._observed)}
            steps = sorted(steps, key=lambda step: place[step.text])
        for step in steps:
            rows *= fan_out(step, known, guessed(step))
            seen = self._observed.get(step.text)
            shown = f"about {rows:.3g}"
            if seen is not None and seen[0]:
                shown += f", seen {seen[1]} from {seen[0]}"
            yield f"match {step.text}  ({self._access(step, known)}; {shown})"
            known |= step.slots

    def _searched(self, text: str) -> str:
        """What a search along a path has found so far."""
        seen = self._observed.get(text)
        return f"  (seen {seen[1]} from {seen[0]})" if seen is not None and seen[0] else ""

    def _access(self, step: Step, known: frozenset[int]) -> str:
        """The ends by which the matcher looks up the triples of a step."""
        if step.whole is not None:
            return f"by {self._names((step.whole,))}"
        ends = dict.fromkeys((step.subject, step.object))
        by = [self._names((end,)) for end in ends if isinstance(end, int) and end in known]
        if any(not isinstance(end, int) for end in ends):
            by.append("constant")
        return "by " + " and ".join(by) if by else "scan"

    def _names(self, slots: Sequence[int]) -> str:
        names = (self._slots[slot] for slot in slots)
        return " ".join(name if name.startswith("_:") else f"?{name}" for name in names)

    def _kb(self, slots: Sequence[int], part: ast.Graph | ast.Service) -> Iterator[str]:
        name = part.name
        where = f"?{name.name}" if isinstance(name, ast.Var) else f"<{name.value}>"
        if isinstance(part, ast.Service):
            found = "found once, or asked for by batches of events"
            yield f"rows of the service {where}: {self._names(slots)}  ({found})"
        else:
            found = "found once, or asked for by key"
            yield f"rows of the KB graph {where}: {self._names(slots)}  ({found})"
        for element in part.group.elements:
            if isinstance(element, ast.Triple):
                yield f"  match {triple_text(element)}"
            elif isinstance(element, ast.Filter):
                yield f"  filter {expression_line(element.condition)}"

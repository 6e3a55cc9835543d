"""Filters and BINDs over a partial match → what the compiled core asks where a row meets one.

Bytecode where an expression has it. A filter with EXISTS is a local filter of a pattern that
matches anything, over the registers it names: that is compiled as any other, and native if its
patterns are. What is left, and a BIND with EXISTS, is a question for Python, given those registers
as terms. EXISTS looks at the event whose row is tested, which is not the one at hand where rows of
the window are looked back at. Cost: bytecode takes some nanoseconds, a question some microseconds,
and what a pattern costs comes on top.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from spaseq.engine.native._looking import GraphTest
from spaseq.gpm.matchers import Matchers
from spaseq.gpm.native.bytecode import ExpressionCode, NotNative, compile_code
from spaseq.gpm.pattern import Pattern, compile_pattern
from spaseq.gpm.program import GpmProgram
from spaseq.nfa.registers import Environment
from spaseq.nfa.replay import LinkedOccurrence
from spaseq.parser import ast
from spaseq.rdf.event import Event, Term


@dataclass(frozen=True, slots=True)
class Question:
    """A filter or a BIND that Python evaluates."""

    answer: Callable[[Environment, Event | None], bool | Term | None]
    """Whether it is true of an environment, or its value, at an event where it looks at one."""
    cells: tuple[int, ...]
    """Those of an environment that it reads."""
    looks: bool


ResidualTest: TypeAlias = ExpressionCode | GraphTest | Question
Valuation: TypeAlias = ExpressionCode | Question


def looks_at_graphs(expression: ast.Expr) -> bool:
    """Whether the value of an expression depends on graphs, that of the event or the KB's."""
    return any(isinstance(node, ast.Exists) for node in ast.walk(expression))


def pattern_of(
    expression: ast.Expr, slots: Mapping[str, int], kb_graphs: tuple[str, ...] | None
) -> Pattern:
    """A filter that looks at graphs as the local filter of a pattern without triples."""
    names = tuple(name for name in _names(expression) if name in slots)
    nothing = ast.GroupGraphPattern(())
    return compile_pattern(GpmProgram(nothing, names, frozenset(), None, kb_graphs), [expression])


def _names(expression: ast.Expr) -> Sequence[str]:
    return sorted({node.name for node in ast.walk(expression) if isinstance(node, ast.Var)})


def left_to_python(expression: ast.Expr, pattern: Pattern | None) -> str | None:
    """Why a filter is a question; None for one that is not. `pattern`: of one with EXISTS."""
    if pattern is not None:
        return next(iter(pattern.left_to_python), None)
    try:
        compile_code(expression, {})
    except NotNative as reason:
        return str(reason)
    return None


def valued_in_python(expression: ast.Expr) -> str | None:
    """Why the value of a BIND is a question; None where it is not."""
    if looks_at_graphs(expression):
        return "EXISTS in a BIND that needs a partial match"
    return left_to_python(expression, None)


def valuations(occurrence: LinkedOccurrence, slots: Mapping[str, int]) -> Sequence[Valuation]:
    """The stateful BINDs of an occurrence, over environments with these cells."""
    found: list[Valuation] = []
    for position, assignment in enumerate(occurrence.assigned):
        expression = assignment.value.expression
        if valued_in_python(expression) is None:
            found.append(compile_code(expression, slots).code)
        else:
            cells = tuple(slots[name] for name in _names(expression) if name in slots)
            looks_at = looks_at_graphs(expression)
            found.append(Question(occurrence.valuation(position), cells, looks_at))
    return found


def tests(
    occurrence: LinkedOccurrence, asked: Sequence[int], slots: Mapping[str, int], matchers: Matchers
) -> Sequence[ResidualTest]:
    """The residual filters of an occurrence, over environments with these cells.

    `asked` has the numbers of the patterns of those that look at graphs, -1 for the others.
    """
    found: list[ResidualTest] = []
    for position, (condition, number) in enumerate(zip(occurrence.residual, asked, strict=True)):
        expression = condition.expression
        pattern = None if number < 0 else matchers.patterns[number]
        if left_to_python(expression, pattern) is not None:
            cells = tuple(slots[name] for name in _names(expression) if name in slots)
            found.append(Question(occurrence.question(position), cells, pattern is not None))
        elif pattern is None:
            found.append(compile_code(expression, slots).code)
        else:
            cells = tuple(slots[name] for name in pattern.program.variables)
            found.append(GraphTest(matchers.native(number), cells))
    return found


def looks(test: ResidualTest) -> bool:
    """Whether a filter or a BIND looks at the event of its row."""
    return isinstance(test, GraphTest) or (isinstance(test, Question) and test.looks)

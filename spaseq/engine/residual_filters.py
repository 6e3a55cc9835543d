"""Filters and BINDs over a partial match → tests that the compiled core evaluates.

There are three forms:

- bytecode, for every expression that has a native form;
- `GraphTest`, for a filter with EXISTS whose patterns are native. The filter becomes the local
  filter of a pattern without triples, over the registers that it names;
- `Question`, for all other filters and for a BIND with EXISTS: Python evaluates the expression
  over the registers as terms.

EXISTS reads the event of the row under test. That event is an earlier one if a guard or a
conjunction tests rows of the window.

Cost: nanoseconds for bytecode, microseconds for a question, plus the cost of the patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias, TypeVar

from spaseq.engine.native._driver import GraphTest
from spaseq.gpm.matchers import Matchers
from spaseq.gpm.named_graphs import NamedGraphs
from spaseq.gpm.native.bytecode import ExpressionCode, NotNative, compile_code
from spaseq.gpm.pattern import Pattern, compile_pattern
from spaseq.gpm.program import GpmProgram
from spaseq.gpm.python.calls import Calls
from spaseq.gpm.python.entry import Scope, compile_expression, compile_truth
from spaseq.nfa.registers import Environment, RegisterFile
from spaseq.nfa.replay import Compiled, LinkedOccurrence
from spaseq.parser import ast
from spaseq.plan.logical import Occurrence, QueryPlan
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.event import Event, Term
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """A filter or a BIND that Python evaluates."""

    answer: Callable[[Environment, Event | None], bool | Term | None]
    """(environment, event) → truth or value, None for an error; the event is None if `reads_event`
    is false."""
    cells: tuple[int, ...]
    """The cells of the environment that the expression reads."""
    reads_event: bool
    errors: ErrorCount = field(default_factory=ErrorCount, compare=False)


ResidualTest: TypeAlias = ExpressionCode | GraphTest | Question
Valuation: TypeAlias = ExpressionCode | Question
Linked = TypeVar("Linked", bound=LinkedOccurrence)


def linked(
    plan: QueryPlan,
    registers: RegisterFile,
    kb: NamedGraphs,
    calls: Calls,
    kind: Callable[..., Linked],
) -> list[Linked]:
    """The occurrences of a plan with compiled expressions, linked to its registers.

    `kind` is a class of linked occurrences; the result has the order of `plan.occurrences`.
    """
    slots = registers.slots()
    return [
        kind(
            plan,
            occurrence,
            registers,
            Compiled(
                tuple(
                    compile_expression(a.value.expression, slots) for a in occurrence.assignments
                ),
                tuple(compile_truth(c.expression, slots) for c in occurrence.residual),
            ),
            _scopes(occurrence, kb, plan.kb_graphs, calls),
        )
        for occurrence in plan.occurrences
    ]


def _scopes(
    occurrence: Occurrence, kb: NamedGraphs, kb_graphs: tuple[str, ...] | None, calls: Calls
) -> Callable[[Event], Scope]:
    """Event → the scope of the occurrence's expressions; only EXISTS reads the event."""
    if not any(looks_at_graphs(condition.expression) for condition in occurrence.conditions):
        constant = Scope(None, kb, kb_graphs, calls)
        return lambda event: constant
    return lambda event: Scope(event, kb, kb_graphs, calls)


def looks_at_graphs(expression: ast.Expr) -> bool:
    """Whether the value of an expression depends on the event's graph or on the KB."""
    return any(isinstance(node, ast.Exists) for node in ast.walk(expression))


def pattern_of(
    expression: ast.Expr, slots: Mapping[str, int], kb_graphs: tuple[str, ...] | None
) -> Pattern:
    """A filter that reads graphs, as the local filter of a pattern without triples."""
    names = tuple(name for name in _names(expression) if name in slots)
    nothing = ast.GroupGraphPattern(())
    return compile_pattern(GpmProgram(nothing, names, frozenset(), None, kb_graphs), [expression])


def _names(expression: ast.Expr) -> Sequence[str]:
    return sorted({node.name for node in ast.walk(expression) if isinstance(node, ast.Var)})


def left_to_python(expression: ast.Expr, pattern: Pattern | None) -> str | None:
    """Why Python evaluates a filter; None if its form is native.

    `pattern` is the pattern of a filter with EXISTS, else None.
    """
    if pattern is not None:
        return next(iter(pattern.left_to_python), None)
    try:
        compile_code(expression, {})
    except NotNative as reason:
        return str(reason)
    return None


def valued_in_python(expression: ast.Expr) -> str | None:
    """Why Python evaluates a BIND; None if its form is native."""
    if looks_at_graphs(expression):
        return "EXISTS in a BIND that needs a partial match"
    return left_to_python(expression, None)


def valuations(occurrence: LinkedOccurrence, slots: Mapping[str, int]) -> Sequence[Valuation]:
    """The BINDs of an occurrence over a partial match; `slots` maps names to cells."""
    found: list[Valuation] = []
    for position, assignment in enumerate(occurrence.assigned):
        expression = assignment.value.expression
        if valued_in_python(expression) is None:
            found.append(compile_code(expression, slots).code)
        else:
            cells = tuple(slots[name] for name in _names(expression) if name in slots)
            reads_event = looks_at_graphs(expression)
            found.append(Question(occurrence.valuation(position), cells, reads_event))
    return found


def tests(
    occurrence: LinkedOccurrence, asked: Sequence[int], slots: Mapping[str, int], matchers: Matchers
) -> Sequence[ResidualTest]:
    """The residual filters of an occurrence; `slots` maps names to cells.

    `asked` has one number per filter: its pattern if the filter reads graphs, else -1.
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


def reads_event(test: ResidualTest) -> bool:
    """Whether a filter or a BIND reads the event of its row."""
    return isinstance(test, GraphTest) or (isinstance(test, Question) and test.reads_event)

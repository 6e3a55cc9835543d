"""Filters that need a partial match → what the compiled core asks where a row meets one.

Bytecode where an expression has it; else a question that Python answers, given as terms the
registers that the expression names. EXISTS looks at the event whose row is tested, which is
not the one at hand where rows of the window are looked back at.
Cost: a question takes some microseconds, and what its pattern costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spaseq.gpm.bytecode import ExpressionCode, NotNative, compile_code
from spaseq.nfa.acceptor import Acceptor
from spaseq.nfa.registers import Environment
from spaseq.parser import ast
from spaseq.rdf.event import Event


@dataclass(frozen=True, slots=True)
class Question:
    """A filter that Python evaluates."""

    answer: Callable[[Environment, Event | None], bool]
    """Whether it is true of an environment, at an event where it looks at one."""
    cells: tuple[int, ...]
    """Those of an environment that it reads."""
    looks: bool


def looks_at_graphs(expression: ast.Expr) -> bool:
    """Whether the value of an expression depends on graphs, that of the event or the KB's."""
    return any(isinstance(node, ast.Exists) for node in ast.walk(expression))


def left_to_python(expression: ast.Expr) -> str | None:
    """Why a filter that needs a partial match is a question; None for one that is bytecode."""
    if looks_at_graphs(expression):
        return "EXISTS in a filter that needs a partial match"
    try:
        compile_code(expression, {})
    except NotNative as reason:
        return str(reason)
    return None


def tests(acceptor: Acceptor, slots: Mapping[str, int]) -> Sequence[ExpressionCode | Question]:
    """The residual filters of an occurrence, over environments with these cells."""
    found: list[ExpressionCode | Question] = []
    for number, condition in enumerate(acceptor.residual):
        expression = condition.expression
        if left_to_python(expression) is None:
            found.append(compile_code(expression, slots).code)
            continue
        names = {node.name for node in ast.walk(expression) if isinstance(node, ast.Var)}
        cells = tuple(sorted(slots[name] for name in names if name in slots))
        question = Question(acceptor.question(number), cells, looks_at_graphs(expression))
        found.append(question)
    return found

"""Expressions outside graph patterns, in Python: filters, projections, stateful BINDs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from spaseq.gpm.python.algebra import compile_exists
from spaseq.gpm.python.expression import ExpressionCompiler
from spaseq.gpm.python.scope import Scope
from spaseq.parser import ast
from spaseq.rdf.event import Term

__all__ = [
    "Evaluate",
    "Scope",
    "Test",
    "Truth",
    "compile_expression",
    "compile_filter",
    "compile_truth",
]

Evaluate: TypeAlias = Callable[[Sequence[Term | None], Scope], Term | None]
Test: TypeAlias = Callable[[Sequence[Term | None], Scope], bool]
Truth: TypeAlias = Callable[[Sequence[Term | None], Scope], bool | None]


def compile_expression(expr: ast.Expr, slots: Mapping[str, int]) -> Evaluate:
    """The value of an expression over rows with these columns; None: an error, or unbound.

    A variable without a slot is unbound.
    """
    return ExpressionCompiler(slots, frozenset(), compile_exists).term(expr)


def compile_filter(expr: ast.Expr, slots: Mapping[str, int]) -> Test:
    """Whether the effective boolean value is true; an error is false."""
    truth = compile_truth(expr, slots)

    def test(env: Sequence[Term | None], scope: Scope) -> bool:
        return truth(env, scope) is True

    return test


def compile_truth(expr: ast.Expr, slots: Mapping[str, int]) -> Truth:
    """The effective boolean value; None: an error."""
    return ExpressionCompiler(slots, frozenset(), compile_exists).truth(expr)

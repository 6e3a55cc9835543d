"""The bounds of steps (`WITHIN d` after a step) → errors, each with its place and a hint.

docs/language.md, section 4, "Bounds of steps" and "Absence with a deadline", defines their meaning.
Cost: linear in the sequence.
"""

from __future__ import annotations

from dataclasses import replace

from spaseq.errors import Diagnostic
from spaseq.parser import ast
from spaseq.records import dataclass


def check_bounds(query: ast.Query, sequence: ast.Sequence) -> list[Diagnostic]:
    """The findings about bounds; `sequence` is without parentheses around single steps."""
    walk = _Walk(query.within)
    walk.sequence(sequence, _Where())
    return walk.findings


@dataclass(frozen=True, slots=True)
class _Where:
    """The position of a unit."""

    first: bool = True
    """No step of the SEQ and no earlier iteration can precede it."""
    may_begin: bool = True
    """Only negations and optional steps precede it in the SEQ."""
    last: bool = True
    """The match may end with it."""


class _Walk:
    def __init__(self, window: ast.Within | None):
        self._window = window
        self._timed = window is None or window.kind.is_of_time
        self.findings: list[Diagnostic] = []

    def _error(self, message: str, bound: ast.Bound, hint: str) -> None:
        self.findings.append(Diagnostic(message, bound.span, hint))

    def sequence(self, sequence: ast.Sequence, where: _Where) -> None:
        steps = sequence.steps
        first, may_begin = where.first, where.may_begin
        for position, step in enumerate(steps):
            here = replace(
                where,
                first=first,
                may_begin=may_begin,
                last=where.last and all(map(_may_be_absent, steps[position + 1 :])),
            )
            self._step(step, here)
            if not step.negated:
                first = False
                may_begin = may_begin and _may_be_absent(step)

    def _step(self, step: ast.Step, where: _Where) -> None:
        quantifier = step.quantifier
        inside = where
        if quantifier is not None and not quantifier.optional and not step.negated:
            again = quantifier.most is None or quantifier.most > 1
            inside = replace(where, first=where.first and not again)
        if step.bound is not None:
            if step.negated:
                self._absence(step.bound, where)
            else:
                self._positive(step, step.bound, inside)
        self._unit(step.unit, inside)

    def _unit(self, unit: ast.Unit, where: _Where) -> None:
        if isinstance(unit, ast.Sequence):
            self.sequence(unit, where)
        elif isinstance(unit, ast.Disjunction):
            for side in unit.operands:
                self._unit(side, where)

    def _absence(self, bound: ast.Bound, where: _Where) -> None:
        if not where.may_begin:
            self._deadline(bound)

    def _deadline(self, bound: ast.Bound) -> None:
        """Warn of a deadline that lies after the close of every window."""
        window = self._window
        if window is not None and self._timed and window.microseconds < bound.microseconds:
            self.findings.append(
                Diagnostic(
                    "the window closes before this deadline, so it is never reached",
                    bound.span,
                    "write a longer window, or a shorter deadline",
                    window.span,
                    "the window",
                    "warning",
                )
            )

    def _positive(self, step: ast.Step, bound: ast.Bound, where: _Where) -> None:
        if where.first and _is_one_event(step.unit):
            self._error(
                "no step precedes this one, so there is nothing that its bound could count from",
                bound,
                "drop the bound, or write it after a later step: `A; B WITHIN 5 SECONDS`",
            )
        elif where.last and _may_be_absent(step):
            self._deadline(bound)
        else:
            self._idle(bound)

    def _idle(self, bound: ast.Bound) -> None:
        """Warn of a bound that the window always guarantees."""
        window = self._window
        if window is not None and self._timed and window.microseconds < bound.microseconds:
            self.findings.append(
                Diagnostic(
                    "the window is shorter than this bound, so the bound never decides",
                    bound.span,
                    "write a longer window, a shorter bound, or no bound",
                    window.span,
                    "the window",
                    "warning",
                )
            )


def _may_be_absent(step: ast.Step) -> bool:
    quantifier = step.quantifier
    return step.negated or (quantifier is not None and quantifier.least == 0)


def _is_one_event(unit: ast.Unit) -> bool:
    """Whether the unit is one event, or an optional or disjunction of such."""
    match unit:
        case ast.GpmRef():
            return True
        case ast.Disjunction():
            return all(map(_is_one_event, unit.operands))
        case ast.Sequence():
            return len(unit.steps) == 1 and _is_one_event(unit.steps[0].unit)
    return False

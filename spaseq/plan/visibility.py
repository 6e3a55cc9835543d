"""A sequence and its GPMs' scopes → the variables visible at each place, and its successors.

At a place the variables of its own GPM, of the steps before it, and of the other operands of
enclosing `&` and `AND` groups are visible. At a place of a negated or optional step, variables of
the steps that may follow are visible too, since the absence of the step is tested in the context
of both sides (docs/language.md, section 4, "Negation" and "Optional steps"). An absence with a
deadline is decided before the next step, unless the pattern begins with it. Cost: places times
steps around them.

Invariant: a variable outside `Sight.bound` is unbound whenever the place is tested in the
first iteration of every unit around it; outside `bound | again`, always.
"""

from __future__ import annotations

from collections.abc import Mapping

from spaseq.parser import ast
from spaseq.plan.places import SequencePlaces, is_iterating
from spaseq.plan.scope import GpmScope
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class Sight:
    """The variables visible at one place."""

    bound: frozenset[str]
    """The variables that its own GPM, the steps before it and its sibling operands can bind; if
    the step may be absent, also the variables of the steps after it."""
    again: frozenset[str]
    """Further variables that an earlier iteration of an enclosing unit can bind."""


@dataclass(frozen=True, slots=True)
class NegatedStep:
    """A negated step, and the operators of the steps that may follow it.

    None among the operators means that the whole pattern may end here.
    """

    step: ast.Step
    operators: frozenset[str | None]
    in_front: bool = False
    """Whether it may look back from the first step of a match."""


@dataclass(frozen=True, slots=True)
class Visibility:
    sights: tuple[Sight, ...]
    """One for each place, by its index."""
    negated: tuple[NegatedStep, ...]
    """One for each negated step, in the order of the text."""


def visibility(
    sequence: ast.Sequence,
    places: SequencePlaces,
    scopes: Mapping[str, GpmScope],
    group_variables: Mapping[str, int],
) -> Visibility:
    """Compute the visible variables of every place of the sequence."""
    walk = _Walk(places, scopes, group_variables)
    walk.sequence(sequence, frozenset(), (_Next(None, None),), ";")
    return Visibility(tuple(walk.sights), tuple(walk.negated))


@dataclass(frozen=True, slots=True)
class _Next:
    """One possible continuation: the operator and the unit it joins; None is the end."""

    operator: str | None
    unit: ast.Unit | None


class _Walk:
    def __init__(
        self,
        places: SequencePlaces,
        scopes: Mapping[str, GpmScope],
        group_variables: Mapping[str, int],
    ):
        self.places = places
        self.scopes = scopes
        self.group_variables = group_variables
        self.sights: list[Sight] = []
        self.negated: list[NegatedStep] = []
        self.in_front = True
        """Whether the steps so far are negations at the start of the whole expression."""
        self.begun = False
        """Whether some step so far cannot be absent."""

    def binds(self, unit: ast.Unit | None) -> frozenset[str]:
        """The variables that the places of a unit that are not negated can bind."""
        match unit:
            case ast.GpmRef():
                scope = self.scopes.get(unit.name)
                return scope.binds if scope is not None else frozenset()
            case ast.Sequence():
                parts = (self.binds(s.unit) for s in unit.steps if not s.negated)
                return frozenset().union(*parts)
            case ast.Conjunction() | ast.Disjunction() | ast.AnyOrder():
                return frozenset().union(*map(self.binds, unit.operands))
            case None:
                return frozenset()

    def sequence(
        self,
        sequence: ast.Sequence,
        before: frozenset[str],
        after: tuple[_Next, ...],
        reaching: str,
    ) -> None:
        bound = before
        for position, step in enumerate(sequence.steps):
            optional = step.quantifier is not None and step.quantifier.least == 0
            begun = self.begun or not (step.negated or optional)
            following = _following(sequence.steps[position + 1 :], after, begun)
            operator = step.operator if position and step.operator else reaching
            if step.negated:
                if step.bound is not None and self.begun:
                    following = (_DEADLINE,)
                seen = bound.union(*(self.binds(way.unit) for way in following))
                operators = frozenset(way.operator for way in following)
                in_front = self.in_front
                self.negated.append(NegatedStep(step, operators, in_front))
                self.unit(step.unit, seen, following, ";")
                self.in_front, self.begun = in_front, begun
                continue
            seen = bound
            if optional:
                seen = bound.union(*(self.binds(way.unit) for way in following))
            if is_iterating(step.quantifier):
                following = (_Next(operator, step.unit), *following)
            self.unit(step.unit, seen, following, operator)
            self.begun = begun
            bound |= self.binds(step.unit)

    def unit(
        self,
        unit: ast.Unit,
        before: frozenset[str],
        after: tuple[_Next, ...],
        reaching: str,
    ) -> None:
        match unit:
            case ast.GpmRef():
                self._place(unit, before)
            case ast.Sequence():
                self.sequence(unit, before, after, reaching)
            case ast.Disjunction():
                for side in unit.operands:
                    self.unit(side, before, after, reaching)
            case ast.Conjunction() | ast.AnyOrder():
                for operand in unit.operands:
                    self.unit(operand, before | self.binds(unit), after, reaching)

    def _place(self, reference: ast.GpmRef, before: frozenset[str]) -> None:
        self.in_front = False
        place = self.places.occurrences[len(self.sights)]
        again = frozenset().union(
            *(self.binds(self.places.iterated_steps[unit].unit) for unit in place.units)
        )
        bound = before | self.binds(reference)
        # Each iteration rebinds group variables; only join variables persist.
        self.sights.append(Sight(bound, again - bound - self.group_variables.keys()))


_DEADLINE = _Next(":", None)
"""The continuation after an absence with a deadline, in which no variable is bound."""


def _following(
    steps: tuple[ast.Step, ...], after: tuple[_Next, ...], begun: bool
) -> tuple[_Next, ...]:
    """The possible continuations: the next mandatory step, and optional steps before it.

    `begun`: some step before them cannot be absent.
    """
    ways: list[_Next] = []
    for step in steps:
        if step.negated and step.bound is not None and begun:
            return (*ways, _DEADLINE)
        if step.negated:
            continue
        ways.append(_Next(step.operator, step.unit))
        if step.quantifier is None or step.quantifier.least > 0:
            return tuple(ways)
    return (*ways, *after)

"""The `SEQ` expression → its places, its iterated units, and the group variables.

A place is one occurrence of a GPM's name; a GPM may have several. Iterated units are identified
by the position of their step in the text, not by equality, since the same text may occur twice.
The places that bind a variable decide whether it is a group variable (docs/language.md,
section 4, "Iteration"). Cost: one walk over the sequence, then places times variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from spaseq.errors import Span
from spaseq.parser import ast
from spaseq.plan.scope import GpmScope
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place: an occurrence of a GPM's name."""

    index: int
    """Its position among all places, in text order."""
    name: str
    negated: bool
    """Whether it is under a negation, at any depth."""
    units: tuple[int, ...]
    """The enclosing iterated units, outermost first."""
    groups: tuple[int, ...]
    """The enclosing `&` and `AND` groups, outermost first."""
    negations: tuple[int, ...]
    """The enclosing negated steps, outermost first."""
    reference: ast.GpmRef


@dataclass(frozen=True, slots=True)
class SequencePlaces:
    """All places of a sequence and the constructs that enclose them, each in text order."""

    occurrences: tuple[Occurrence, ...]
    iterated_steps: tuple[ast.Step, ...]
    """The iterated units: the steps with a quantifier other than `?`."""
    unit_parents: tuple[int | None, ...]
    """For each iterated unit, the innermost one that encloses it."""
    unit_negations: tuple[tuple[int, ...], ...]
    """For each iterated unit, the enclosing negated steps."""
    groups: tuple[ast.Conjunction | ast.AnyOrder, ...]
    negations: tuple[ast.Step, ...]

    def positive_names(self) -> frozenset[str]:
        """The GPMs with at least one place that is not negated."""
        return frozenset(place.name for place in self.occurrences if not place.negated)


def is_iterating(quantifier: ast.Quantifier | None) -> bool:
    """Whether a step with this quantifier is an iteration; every quantifier but `?` is."""
    return quantifier is not None and not quantifier.optional


@dataclass(slots=True)
class _Walk:
    """The tables under construction, and the constructs that enclose the current node."""

    occurrences: list[Occurrence] = field(default_factory=list)
    iterated: list[ast.Step] = field(default_factory=list)
    parents: list[int | None] = field(default_factory=list)
    unit_negations: list[tuple[int, ...]] = field(default_factory=list)
    groups: list[ast.Conjunction | ast.AnyOrder] = field(default_factory=list)
    negations: list[ast.Step] = field(default_factory=list)
    units_around: tuple[int, ...] = ()
    groups_around: tuple[int, ...] = ()
    negations_around: tuple[int, ...] = ()

    def sequence(self, sequence: ast.Sequence) -> None:
        for step in sequence.steps:
            units, negations = self.units_around, self.negations_around
            if step.negated:
                self.negations_around = (*negations, len(self.negations))
                self.negations.append(step)
            if is_iterating(step.quantifier):
                self.parents.append(units[-1] if units else None)
                self.unit_negations.append(self.negations_around)
                self.units_around = (*units, len(self.iterated))
                self.iterated.append(step)
            self.unit(step.unit)
            self.units_around, self.negations_around = units, negations

    def unit(self, unit: ast.Unit) -> None:
        match unit:
            case ast.GpmRef():
                self.occurrences.append(
                    Occurrence(
                        index=len(self.occurrences),
                        name=unit.name,
                        negated=bool(self.negations_around),
                        units=self.units_around,
                        groups=self.groups_around,
                        negations=self.negations_around,
                        reference=unit,
                    )
                )
            case ast.Sequence():
                self.sequence(unit)
            case ast.Disjunction():
                for operand in unit.operands:
                    self.unit(operand)
            case ast.Conjunction() | ast.AnyOrder():
                around = self.groups_around
                self.groups_around = (*around, len(self.groups))
                self.groups.append(unit)
                for operand in unit.operands:
                    self.unit(operand)
                self.groups_around = around


def sequence_places(sequence: ast.Sequence) -> SequencePlaces:
    """Number the places and iterated units of a sequence."""
    walk = _Walk()
    walk.sequence(sequence)
    return SequencePlaces(
        occurrences=tuple(walk.occurrences),
        iterated_steps=tuple(walk.iterated),
        unit_parents=tuple(walk.parents),
        unit_negations=tuple(walk.unit_negations),
        groups=tuple(walk.groups),
        negations=tuple(walk.negations),
    )


def group_variables(
    query: ast.Query, scopes: Mapping[str, GpmScope], places: SequencePlaces
) -> dict[str, int]:
    """Each group variable with its iterated unit, as an index into `iterated_steps`.

    The unit is the smallest that contains every place that binds the variable, negated places
    included. A variable that only negated places bind is a group variable only if the iteration
    itself is inside the negation, since no other iteration ever binds it.
    """
    keys = {v.name for v in query.partition.variables} if query.partition else set()
    binding: dict[str, list[Occurrence]] = {}
    for place in places.occurrences:
        scope = scopes.get(place.name)
        for name in scope.binds if scope is not None else ():
            binding.setdefault(name, []).append(place)
    units: dict[str, int] = {}
    for name, binders in sorted(binding.items()):
        shared = _common_prefix([place.units for place in binders])
        if name in keys or not shared:
            continue
        depth = len(places.unit_negations[shared[-1]])
        if any(len(place.negations) == depth for place in binders):
            units[name] = shared[-1]
    return units


def _common_prefix(paths: list[tuple[int, ...]]) -> tuple[int, ...]:
    shared = paths[0]
    for path in paths[1:]:
        length = 0
        while length < min(len(shared), len(path)) and shared[length] == path[length]:
            length += 1
        shared = shared[:length]
    return shared


def bounded_units(sequence: ast.Sequence) -> dict[Span, int]:
    """The number of each bounded unit of several steps, by the place of its bound in the text."""
    spans = (
        step.bound.span
        for step in ast.walk(sequence)
        if isinstance(step, ast.Step)
        and step.bound is not None
        and not (step.negated or is_one_step(step.unit))
    )
    return {span: number for number, span in enumerate(spans)}


def is_one_step(unit: ast.Unit) -> bool:
    """Whether each way through the unit is one event, or one group under `&` or `AND`."""
    match unit:
        case ast.Disjunction():
            return all(map(is_one_step, unit.operands))
        case ast.Sequence():
            step = unit.steps[0]
            plain = step.quantifier is None and not step.negated
            return len(unit.steps) == 1 and plain and is_one_step(step.unit)
    return True


def without_parentheses(sequence: ast.Sequence) -> ast.Sequence:
    """The same sequence without parentheses around single steps.

    `(B?)` becomes `B?`, `((A; B))+` becomes `(A; B)+`; two quantifiers are never merged.
    The numbers of places and iterated units do not change.
    """
    return replace(sequence, steps=tuple(_bare_step(step) for step in sequence.steps))


def _bare_step(step: ast.Step) -> ast.Step:
    unit = _bare_unit(step.unit)
    if isinstance(unit, ast.Sequence) and len(unit.steps) == 1:
        inner = unit.steps[0]
        if step.quantifier is None and step.bound is None and not step.negated:
            return replace(
                inner,
                operator=step.operator,
                operator_span=step.operator_span,
                span=step.span,
            )
    return replace(step, unit=unit)


def _is_bare(step: ast.Step) -> bool:
    """Whether a step is just its unit; a step with an operator begins a template's branch."""
    return (
        step.operator is None
        and step.quantifier is None
        and step.bound is None
        and not step.negated
    )


def _bare_unit(unit: ast.Unit) -> ast.Unit:
    match unit:
        case ast.GpmRef():
            return unit
        case ast.Sequence():
            steps = tuple(_bare_step(step) for step in unit.steps)
            if len(steps) == 1 and _is_bare(steps[0]):
                return steps[0].unit
            return replace(unit, steps=steps)
        case ast.Conjunction() | ast.Disjunction() | ast.AnyOrder():
            return replace(unit, operands=tuple(map(_bare_unit, unit.operands)))

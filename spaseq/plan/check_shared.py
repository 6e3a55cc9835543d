"""Variables that several steps share → warnings where each event is likely to have its own value.

Two cases are reported:

- `AT` binds a variable to the time of the event in two steps that follow each other. Only events of
  one timestamp agree on the variable.
- Two steps, one of them iterated or negated, share both a subject and an object of that subject
  under one predicate: `?r :sensor ?s` in both. The subject determines the object, so sharing the
  object would be pointless if the subject were an entity that several events describe. It is likely
  the event's own node.

The second is a guess, so it is a warning. Cost: GPMs times the triples of their patterns.
"""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.errors import Diagnostic
from spaseq.parser import ast
from spaseq.plan.check_variables import Context
from spaseq.plan.wording import quoted, variable


def check_shared(context: Context, sequence: ast.Sequence) -> Iterator[Diagnostic]:
    """The warnings about variables that steps share; `sequence` is without parentheses."""
    if context.incomplete:
        return
    yield from _times(context, sequence)
    yield from _event_nodes(context)


def _times(context: Context, sequence: ast.Sequence) -> Iterator[Diagnostic]:
    defined = {define.name: define for define in context.query.defines}
    first: dict[str, ast.Define] = {}
    for step in sequence.steps:
        taken = step.quantifier is None or step.quantifier.least > 0
        if step.negated or not taken or not isinstance(step.unit, ast.GpmRef):
            continue
        define = defined[step.unit.name]
        if define.at is None or define.at.name in context.group_variables:
            continue
        before = first.setdefault(define.at.name, define)
        if before is not define and before.at is not None:
            yield Diagnostic(
                f"{variable(define.at.name)} is the time of the event of {quoted(before.name)} and "
                f"of {quoted(define.name)}: only events with the same timestamp agree on it",
                define.at.span,
                "use another variable in one of them",
                before.at.span,
                "the other time",
                "warning",
            )


def _event_nodes(context: Context) -> Iterator[Diagnostic]:
    iterated = {place.name for place in context.places.occurrences if place.units}
    positive = context.places.positive_names()
    keys = context.query.partition.variables if context.query.partition is not None else ()
    free = {key.name for key in keys} | context.group_variables.keys()
    excluded = free | _elsewhere(context)
    known: dict[tuple[str, str, str], str] = {}
    reported: set[str] = set()
    for name, scope in context.scopes.items():
        for triple in scope.pattern.elements:
            match triple:
                case ast.Triple(ast.Var() as subject, ast.Iri() as predicate, ast.Var() as object):
                    shared = subject.name, predicate.value, object.name
                    other = known.setdefault(shared, name)
                    negated = {name, other} - positive
                    if (
                        other != name
                        and (len(negated) == 1 or (not negated and iterated & {name, other}))
                        and object.name not in free
                        and subject.name not in excluded | reported
                    ):
                        reported.add(subject.name)
                        first, second = sorted((other, name), key=lambda each: each in negated)
                        yield _own_node(subject, object, first, second, bool(negated))


def _own_node(
    subject: ast.Var, object: ast.Var, first: str, second: str, is_negated: bool
) -> Diagnostic:
    same = f"{variable(subject.name)}, although {variable(object.name)} relates them already"
    return Diagnostic(
        f"{quoted(second)} forbids only events that have the same {same}"
        if is_negated
        else f"all events of {quoted(first)} and {quoted(second)} must have the same {same}",
        subject.span,
        f"if each event has its own node, write [] in place of ?{subject.name} in both",
        severity="warning",
    )


def _elsewhere(context: Context) -> set[str]:
    """The variables that occur beyond the subjects of triples at the top of their patterns."""
    found: set[str] = set()
    for scope in context.scopes.values():
        for element in scope.pattern.elements:
            for node in ast.walk(element):
                if isinstance(node, ast.Var) and not (
                    isinstance(element, ast.Triple) and node is element.subject
                ):
                    found.add(node.name)
    return found

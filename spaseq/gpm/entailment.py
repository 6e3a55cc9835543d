"""Patterns and rules of entailment → patterns over views that hold what is entailed.

`targets` collects what patterns match in events, `spaseq.rdf.entailment` makes the rules for these
targets, and `widened` assigns a separate view to each triple pattern whose target the rules widen:
the triples of the event that match it, and the triples that the event entails. The operators are
unchanged: a class with 10,000 subclasses is one table of classes, not a union of as many patterns.
Only triples that some pattern matches are derived. Cost: that of the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from spaseq.gpm import algebra
from spaseq.gpm.native.order import Step
from spaseq.gpm.pattern import NativePattern, Pattern
from spaseq.gpm.program import triple_text
from spaseq.gpm.relevance import Uses, uses
from spaseq.parser import ast
from spaseq.rdf.entailment import EVERYTHING, Part, Rules, Target, View
from spaseq.rdf.event import Term
from spaseq.rdf.schema import TYPE
from spaseq.records import dataclass

_VOCABULARIES = ("<http://www.w3.org/2000/01/rdf-schema#", "<http://www.w3.org/2002/07/owl#")
"""Rules about these vocabularies are part of every regime, and not counted."""


def targets(nodes: Iterable[ast.Node]) -> tuple[Target, ...]:
    """The distinct targets of patterns and expressions in events."""
    found: dict[Target, None] = {}
    for node in nodes:
        for triple in _triples(node):
            found |= dict.fromkeys(_of_triple(triple))
    return tuple(found)


def _triples(node: ast.Node) -> Iterator[ast.Triple]:
    """The triple patterns that are matched against events; excludes the patterns of the KB."""
    nothing = ast.GroupGraphPattern(())

    def emptied(part: ast.Node) -> ast.Node | None:
        return replace(part, group=nothing) if isinstance(part, ast.Graph | ast.Service) else None

    return (part for part in ast.walk(ast.rebuilt(node, emptied)) if isinstance(part, ast.Triple))


def _of_triple(triple: ast.Triple) -> Iterator[Target]:
    named = uses((triple,))
    if named is None:
        yield EVERYTHING
    for predicate, object in sorted(named or (), key=str):
        if predicate == TYPE and object is not None:
            yield predicate, object
        else:
            yield predicate, None


def target_of(step: Step, rules: Rules) -> Target:
    """The target of a step."""
    if isinstance(step.predicate, int):
        return EVERYTHING
    if not isinstance(step.object, int) and (step.predicate, step.object) in rules.targets:
        return step.predicate, step.object
    return step.predicate, None


def widened(pattern: Pattern, rules: Rules) -> Pattern:
    """The pattern over widened views; the Python operators read the entailed graph instead."""
    native = pattern.native
    if native is None:
        return pattern
    wide = rules.widened

    def change(step: Step) -> Step:
        if step.whole is not None:
            return step
        target = target_of(step, rules)
        return replace(step, view=View(rules, target)) if target in wide else step

    changed = NativePattern(
        _rebuilt(native.root, change),
        native.slots,
        {asked: _rebuilt(root, change) for asked, root in native.exists.items()},
        native.filters,
        native.codes,
    )
    return replace(pattern, native=changed)


def _rebuilt(node: algebra.Node, change: Callable[[Step], Step]) -> algebra.Node:
    """The tree with every step changed."""
    match node:
        case algebra.Basic(left, steps):
            return replace(node, left=_rebuilt(left, change), steps=tuple(map(change, steps)))
        case algebra.Alternatives(left, chains):
            changed = tuple(tuple(map(change, chain)) for chain in chains)
            return replace(node, left=_rebuilt(left, change), chains=changed)
        case algebra.Reach(left):
            return replace(
                node,
                left=_rebuilt(left, change),
                ahead=node.ahead.with_steps(change),
                back=node.back.with_steps(change),
                nodes=None if node.nodes is None else change(node.nodes),
            )
        case algebra.Join(left, right) | algebra.LeftJoin(left, right) | algebra.Minus(left, right):
            return replace(node, left=_rebuilt(left, change), right=_rebuilt(right, change))
        case algebra.Union(parts):
            return algebra.Union(tuple(_rebuilt(part, change) for part in parts))
        case algebra.Filter(child) | algebra.Extend(child) | algebra.Group(child):
            return replace(node, child=_rebuilt(child, change))
        case algebra.Seed() | algebra.Table() | algebra.KbTable():
            return node
        case _:
            assert_never(node)


def inputs(several: Iterable[Rules]) -> Uses:
    """The triples that some rules read, as `Rules.inputs` describes them."""
    found: set[tuple[Term, Term | None]] = set()
    for rules in several:
        some = rules.inputs()
        if some is None:
            return None
        found |= some
    return frozenset(found)


# ------------------------------------------------------------------ in words


@dataclass(frozen=True, slots=True)
class Widening:
    """A triple pattern, and the number of classes, properties … of each kind that widen it."""

    text: str
    counts: Mapping[str, int]


def widenings(pattern: ast.Node, rules: Rules) -> tuple[Widening, ...]:
    """The triple patterns that entailment widens."""
    wide = rules.widened
    counts = _counts(rules)
    found: dict[str, Widening] = {}
    for triple in _triples(pattern):
        total: Counter[str] = Counter()
        for target in dict.fromkeys(_of_triple(triple)):
            if target in wide:
                total += counts[target]
        if total:
            text = triple_text(triple)
            found[text] = Widening(text, dict(total))
    return tuple(found.values())


def _counts(rules: Rules) -> Mapping[Target, Counter[str]]:
    sources: dict[Target, dict[tuple[str, object], None]]
    sources = {target: {} for target in rules.targets}
    for where, end, (number, *symbols, _) in rules.emissions():
        if number < len(rules.targets):
            target = rules.targets[number]
            kind = _kind(where, end, symbols)
            if kind and not str(where).startswith(_VOCABULARIES):
                sources[target][kind, end or where] = None
            results = (
                join
                for join in rules.joins
                if join.result == where and not str(join.result).startswith(_VOCABULARIES)
            )
            sources[target] |= {("chain", join): None for join in results}
    return {target: Counter(kind for kind, _ in found) for target, found in sources.items()}


def _kind(where: Term, end: Term | None, symbols: Sequence[object]) -> str | None:
    """How a rule widens a target; None if it only copies the triple."""
    subject, predicate, object = symbols
    if end is not None:
        return None if object == end else "class"
    if predicate == TYPE and not isinstance(object, Part):
        return "domain" if subject is Part.SUBJECT else "range"
    if subject is Part.OBJECT:
        return "inverse"
    return None if predicate == where else "subproperty"

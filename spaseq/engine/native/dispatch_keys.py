"""The keys by which events are dispatched to the queries of a run (`_query_index`).

A key is something that a triple must have: a predicate, or a predicate with a constant object or
subject, or with a number in an interval as its object. The constants come from the triple patterns,
and from filters that compare a variable with a constant (`constant_conditions`). The requirement of
a graph pattern is a disjunction of keys: the pattern has no row that passes its local filters over
an event with none of these keys. A pattern can have several requirements. The rarest one is chosen,
whose keys occur in the fewest other patterns, since it tells these patterns apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import TypeAlias, assert_never

from spaseq.engine.native.constant_conditions import Demand, Demands, Interval, both, demands
from spaseq.gpm import algebra
from spaseq.gpm.native.order import Step
from spaseq.gpm.pattern import Pattern
from spaseq.gpm.python.evaluator import required_predicates
from spaseq.parser import ast
from spaseq.rdf.event import Term
from spaseq.rdf.native._terms import Dictionary
from spaseq.rules import enabled

BY_PREDICATE, BY_VALUE, BY_OWNER, BY_RANGE = 1, 2, 4, 8
"""The kinds of keys, as in `_query_index`: a predicate alone, with an object, with a subject, with
a number in an interval as its object."""
Key: TypeAlias = tuple[Term, int, Term | Interval | None]
"""A predicate, the kind, and the constant or interval."""
Requirement: TypeAlias = frozenset[Key]
"""An event without any of these keys has no row. If the set is empty, no event has a row."""
NumberedKey: TypeAlias = tuple[int, int, int | Interval]

OPEN_SHARE = 0.5
"""The expected share of events with a value in an interval without a lower or an upper end."""


class KeyChoice:
    """The keys of the patterns of a run, which remembers their requirements.

    The constants of all requirements become permanent, even of those that are not chosen, because
    the choice changes with the patterns.
    """

    def __init__(self, dictionary: Dictionary):
        self._dictionary = dictionary
        self._known: dict[int, tuple[Pattern, list[Requirement]]] = {}

    def of(self, patterns: Sequence[Pattern]) -> list[Sequence[NumberedKey] | None]:
        """Per pattern, the keys of the rarest requirement, in numbers; None if it has none."""
        self.learn(patterns, range(len(patterns)))
        chosen = _rarest([self._known[number][1] for number in range(len(patterns))])
        return [None if one is None else list(map(self._numbered, one)) for one in chosen]

    def learn(self, patterns: Sequence[Pattern], changed: Iterable[int]) -> None:
        """Make the constants of requirements permanent.

        Args:
            patterns: All patterns.
            changed: The numbers of those that may have changed since the last call.
        """
        for number in {*changed, *range(len(self._known), len(patterns))}:
            pattern = patterns[number]
            if number not in self._known or self._known[number][0] is not pattern:
                requirements = list(_requirements(pattern, filters=True))
                self._known[number] = pattern, requirements
                for key in frozenset[Key]().union(*requirements):
                    self._numbered(key)

    def _numbered(self, key: Key) -> NumberedKey:
        predicate, kind, value = key
        return self._dictionary.intern(predicate), kind, _number(value, self._dictionary)


def rarest(patterns: Sequence[Pattern]) -> list[Requirement | None]:
    """Per pattern, its rarest requirement; None if it has none."""
    return _rarest([list(_requirements(pattern, filters=True)) for pattern in patterns])


def _rarest(found: Sequence[Sequence[Requirement]]) -> list[Requirement | None]:
    """Per pattern, the rarest of its requirements; None if it has none."""
    uses = Counter(key for some in found for key in frozenset[Key]().union(*some))
    ranges = Counter(key[0] for key in uses.elements() if key[1] == BY_RANGE)
    return [min(some, key=lambda one: _cost(one, uses, ranges), default=None) for some in found]


def reads_filters(pattern: Pattern, requirement: Requirement | None) -> bool:
    """Whether the requirement of a pattern comes from its filters and not from its triples."""
    return requirement is not None and requirement not in _requirements(pattern, filters=False)


def requirement_text(requirement: Requirement) -> str:
    """A requirement in words, for `explain`."""
    return " or ".join(sorted(map(_key_text, requirement))) or "no event"


def _key_text(key: Key) -> str:
    predicate, kind, value = key
    if isinstance(value, Interval):
        if value.low == value.high:
            return f"{predicate} = {value.low:.15g}"
        low = "" if value.low == -inf else f"{value.low:.15g} <= "
        return f"{low}{predicate}" + ("" if value.high == inf else f" <= {value.high:.15g}")
    if kind == BY_OWNER:
        return f"{predicate} of {value}"
    return str(predicate) if value is None else f"{predicate} {value}"


def _number(value: Term | Interval | None, dictionary: Dictionary) -> int | Interval:
    if value is None or isinstance(value, Interval):
        return value or 0
    return dictionary.intern(value)


def _cost(
    requirement: Requirement, uses: Mapping[Key, int], ranges: Mapping[Term, int]
) -> tuple[float, int]:
    """The number of patterns that an event with one of the keys concerns, and their generality.

    A value in an interval that is open at one end also lies in many other intervals of its
    predicate.
    """
    concerned = 0.0
    general = 0
    for key in requirement:
        predicate, _, value = key
        if isinstance(value, Interval) and (value.low == -inf or value.high == inf):
            concerned += OPEN_SHARE * ranges[predicate]
            general += 1
        else:
            concerned += uses[key]
            general += 2 * (value is None)
    return concerned, general


def _requirements(pattern: Pattern, *, filters: bool) -> Iterator[Requirement]:
    """The requirements of a pattern: with `filters`, also those of its filters."""
    if pattern.native is not None:
        named = enumerate(pattern.native.slots if filters else ())
        slots = {name: slot for slot, name in named}
        known: list[Demands] = []
        for condition in pattern.filters:
            known = both(known, _demands(condition, slots))
        yield from _of_node(pattern.native.root, slots, known)
    else:
        for predicate in required_predicates(pattern.program.pattern):
            yield frozenset({(predicate, BY_PREDICATE, None)})


def _demands(condition: ast.Expr, slots: Mapping[str, int]) -> Sequence[Demands]:
    return demands(condition, slots) if enabled("constant_dispatch") else ()


def _of_node(
    node: algebra.Node, slots: Mapping[str, int], known: Sequence[Demands]
) -> Iterator[Requirement]:
    """The requirements of an operator; it has no row over an event that lacks one of them.

    Only rows that satisfy `known` count. Operators below this one bind its slots to the same terms,
    except the slots that a `Group` does not group by.
    """
    match node:
        case algebra.Basic(left, steps):
            yield from _of_node(left, slots, known)
            yield from _of_steps(steps, known)
        case algebra.Alternatives(left, chains):
            yield from _of_node(left, slots, known)
            yield from _of_parts([_of_steps(chain, known) for chain in chains])
        case algebra.Reach(left):
            # The steps have the ends of the path, not those of its links.
            yield from _of_node(left, slots, known)
            for step in node.ahead.required:
                if not isinstance(step.predicate, int) and step.view is None:
                    yield frozenset({(step.predicate, BY_PREDICATE, None)})
        case algebra.Group(child, keys):
            if keys:  # without keys, it has a row for an event without rows
                kept = [some for some in known if all(one.slot in keys for one in some)]
                yield from _of_node(child, slots, kept)
        case algebra.Join(left, right):
            yield from _of_node(left, slots, known)
            yield from _of_node(right, slots, known)
        case algebra.LeftJoin(left) | algebra.Minus(left):
            yield from _of_node(left, slots, known)
        case algebra.Union(parts):
            yield from _of_parts([_of_node(part, slots, known) for part in parts])
        case algebra.Filter(child, condition):
            yield from _of_node(child, slots, both(known, _demands(condition, slots)))
        case algebra.Extend(child):
            yield from _of_node(child, slots, known)
        case algebra.Seed() | algebra.Table() | algebra.KbTable():
            pass
        case _:
            assert_never(node)


def _of_parts(parts: Iterable[Iterable[Requirement]]) -> Iterator[Requirement]:
    """The disjunction of one requirement of each part, the one with the most constants."""
    chosen = []
    for part in parts:
        one = min(part, key=lambda keys: sum(value is None for _, _, value in keys), default=None)
        if one is None:
            return
        chosen.append(one)
    yield frozenset[Key]().union(*chosen)


def _of_steps(steps: Iterable[Step], known: Sequence[Demands]) -> Iterator[Requirement]:
    """The key of each triple pattern with a constant predicate, and those of what is known."""
    objects: dict[int, Term] = {}
    subjects: dict[int, Term] = {}
    for step in steps:
        if isinstance(step.predicate, int) or step.view is not None or step.whole is not None:
            continue
        if isinstance(step.object, int):
            objects.setdefault(step.object, step.predicate)
        if isinstance(step.subject, int):
            subjects.setdefault(step.subject, step.predicate)
        if not isinstance(step.object, int):
            yield frozenset({(step.predicate, BY_VALUE, step.object)})
        elif not isinstance(step.subject, int):
            yield frozenset({(step.predicate, BY_OWNER, step.subject)})
        else:
            yield frozenset({(step.predicate, BY_PREDICATE, None)})
    for some in known:
        keys = [_key_of(demand, objects, subjects) for demand in some]
        if None not in keys:
            yield frozenset(key for key in keys if key is not None and not _is_empty(key))


def _key_of(
    demand: Demand, objects: Mapping[int, Term], subjects: Mapping[int, Term]
) -> Key | None:
    """The key of a triple whose object or subject is in a slot; None if no triple binds it."""
    if demand.slot in objects:
        kind = BY_RANGE if isinstance(demand.value, Interval) else BY_VALUE
        return objects[demand.slot], kind, demand.value
    if demand.slot in subjects and not isinstance(demand.value, Interval):
        return subjects[demand.slot], BY_OWNER, demand.value
    return None


def _is_empty(key: Key) -> bool:
    return isinstance(key[2], Interval) and key[2].low > key[2].high

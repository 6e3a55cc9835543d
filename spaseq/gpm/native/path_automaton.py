"""Property paths of no fixed length → automata over the triples of an event.

The construction of Glushkov: one state for each link of the path, and state 0 before the first.
A link is a triple with one predicate, or with any predicate except some, followed forwards or
backwards. The native matcher searches an event for the nodes that such an automaton reaches
(`spaseq/gpm/native/matcher/path_search.pxi`). A search finds each pair of nodes once, however many
ways lead from one to the other: rows of a graph pattern are distinct.

Cost: quadratic in the number of links.
Source: SPARQL 1.1 section 9; Glushkov, *The abstract theory of automata* (1961).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TypeAlias, assert_never

from spaseq.gpm.native.order import Step
from spaseq.gpm.program import constant
from spaseq.parser import ast
from spaseq.rdf.event import Term
from spaseq.records import dataclass

StepOf: TypeAlias = Callable[[Term | None], Step]
"""The step over the triples of a predicate; None: of any predicate."""


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a path: a triple from its subject to its object, or backwards."""

    step: Step
    forward: bool
    excluded: tuple[Term, ...] = ()
    """The predicates that a link over any predicate must not have."""


@dataclass(frozen=True, slots=True)
class PathAutomaton:
    """State 0 is the start; link i leads to state i + 1."""

    links: tuple[Link, ...]
    follow: tuple[tuple[int, ...], ...]
    """Per state, the links that may be next."""
    accepting: frozenset[int]

    @property
    def nullable(self) -> bool:
        """Whether the path may have length zero."""
        return 0 in self.accepting

    @property
    def required(self) -> tuple[Step, ...]:
        """Steps without which nothing is reached: a first or last link without alternative."""
        if self.nullable:
            return ()
        last = [state - 1 for state in self.accepting]
        return tuple(self.links[ends[0]].step for ends in (self.follow[0], last) if len(ends) == 1)

    def with_steps(self, change: Callable[[Step], Step]) -> PathAutomaton:
        """The automaton with every step changed."""
        return replace(
            self, links=tuple(replace(link, step=change(link.step)) for link in self.links)
        )


def path_automaton(path: ast.Path, step_of: StepOf) -> PathAutomaton:
    """The automaton that follows a path from its subject."""
    building = _Building(step_of)
    part = building.part(path, inverse=False)
    follow = [building.follow[i] for i in range(len(building.links))]
    accepting = frozenset(link + 1 for link in part.last) | ({0} if part.nullable else set())
    return PathAutomaton(
        tuple(building.links),
        tuple(tuple(dict.fromkeys(links)) for links in (part.first, *follow)),
        accepting,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a path: its first and last links, and whether it may be empty."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    nullable: bool


@dataclass(slots=True)
class _Building:
    """The links of an automaton so far, and per link those that may follow it."""

    step_of: StepOf
    links: list[Link] = field(default_factory=list)
    follow: list[list[int]] = field(default_factory=list)

    def part(self, path: ast.Path, inverse: bool) -> _Part:
        match path:
            case ast.Iri():
                return self._link(self.step_of(constant(path)), not inverse)
            case ast.InversePath(inner):
                return self.part(inner, not inverse)
            case ast.SequencePath(paths):
                order = reversed(paths) if inverse else paths
                return self._sequence([self.part(inner, inverse) for inner in order])
            case ast.AlternativePath(paths):
                return _either([self.part(inner, inverse) for inner in paths])
            case ast.RepeatPath(inner, modifier):
                part = self.part(inner, inverse)
                if modifier != "?":
                    self._join(part, part)
                return replace(part, nullable=part.nullable or modifier != "+")
            case ast.NegatedPath(forward, backward):
                # `!(^a)` alone looks only backwards; `!(a)` and `!()` only forwards.
                ways = [(True, forward)] if forward or not backward else []
                ways += [(False, backward)] if backward else []
                return _either(
                    [
                        self._link(
                            self.step_of(None), ahead != inverse, tuple(map(constant, excluded))
                        )
                        for ahead, excluded in ways
                    ]
                )
            case _:
                assert_never(path)

    def _link(self, step: Step, forward: bool, excluded: tuple[Term, ...] = ()) -> _Part:
        self.links.append(Link(step, forward, excluded))
        self.follow.append([])
        ends = (len(self.links) - 1,)
        return _Part(ends, ends, False)

    def _join(self, left: _Part, right: _Part) -> None:
        for link in left.last:
            self.follow[link] += right.first

    def _sequence(self, parts: Sequence[_Part]) -> _Part:
        whole = parts[0]
        for part in parts[1:]:
            self._join(whole, part)
            whole = _Part(
                whole.first + part.first if whole.nullable else whole.first,
                whole.last + part.last if part.nullable else part.last,
                whole.nullable and part.nullable,
            )
        return whole


def _either(parts: Sequence[_Part]) -> _Part:
    return _Part(
        tuple(link for part in parts for link in part.first),
        tuple(link for part in parts for link in part.last),
        any(part.nullable for part in parts),
    )

"""Places at run time: groups of partial matches that no later event can distinguish.

A group is keyed by the values of its place's live registers and holds one tECS union of the partial
matches that wait there. Additions of an event become visible when its instant closes, because no
event follows another event of the same instant.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from dataclasses import fields
from itertools import islice, takewhile

from model.tecs import Chain, Node, chained, members_since, nodes
from spaseq.nfa.automaton import Automaton, Place
from spaseq.nfa.counters import PlaceCounters
from spaseq.nfa.match_path import Row
from spaseq.nfa.registers import Environment
from spaseq.rdf.equality import equality_key
from spaseq.rdf.event import Term

Values = tuple[object, ...]
IndexColumns = tuple[tuple[int, ...], tuple[int, ...]]
"""The columns of a row that an edge's index reads: as terms, and by value."""


_COUNTED = [each.name for each in fields(PlaceCounters)][3:]


class Group:
    """All partial matches of one place with the same live registers."""

    __slots__ = ("chain", "env", "oldest", "serial", "taken", "taken_first", "values")

    def __init__(self, values: Values, env: Environment):
        self.values = values
        self.env = env
        self.serial = 0
        """A number that no other group of the place ever has."""
        self.chain: Chain | None = None
        self.oldest = 0
        """A lower bound of the last instants of the members."""
        self.taken: list[tuple[int, int, bool]] = []
        """What a `;` place consumed at this timestamp: first and last instant, whether an `&`."""
        self.taken_first = -1
        """The maximum first instant of what a `;` place consumed at this timestamp."""

    def add(self, node: Node) -> None:
        self.oldest = node.last if self.chain is None else min(self.oldest, node.last)
        self.chain = Chain(node, self.chain)

    def taken_before(self, instant: int, together: bool) -> int:
        """The latest first instant of what was consumed entirely before `instant`; -1: nothing.

        Two conjunctions (`together`) of one timestamp are not ordered.
        """
        return max(
            (
                first
                for first, last, conjoined in self.taken
                if last < instant and not (together and conjoined)
            ),
            default=-1,
        )

    def keep(self, members: Iterable[Node]) -> None:
        kept = list(members)
        kept.reverse()
        self.chain = chained(kept)
        self.oldest = min((node.last for node in kept), default=0)


class PlaceState:
    """The groups that wait in one place, and the indexes over them."""

    def __init__(self, number: int, place: Place, automaton: Automaton, blank: Environment):
        self.number = number
        self.place = place
        kinds = {automaton.atoms[edge.atom].kind for edge in place.edges}
        self.takes_at_once = place.operator == ";" and kinds == {"single"}
        """A `;` place whose consumed groups are removed when the instant closes."""
        self.looks_back = place.operator == ";" and "any-order" in kinds
        """A `;` place that decides by searching the buffers."""
        self.guards = tuple(g for g in place.guards if not automaton.guards[g].relative)
        """The guards that forbid a group's members by the age of their last event."""
        self.relative_guards = tuple(g for g in place.guards if automaton.guards[g].relative)
        """The guards that must be decided for each member."""
        self.strict = place.operator == ","
        self.conjoined = kinds != {"single"}
        self.groups: dict[Values, Group] = {}
        self.made = 0
        """The number of groups ever created."""
        # Counters since the run started or resumed, only for reports.
        self.reached = 0
        """Nodes that were added."""
        self.unkeyed = 0
        """Rows that leave a partition variable unbound."""
        self.early = 0
        """Events that arrived while no group was waiting."""
        self.unjoined = 0
        """Rows that no waiting group agrees with on the index."""
        self.visited = 0
        """Groups that rows were compared with."""
        self.joined = 0
        """Candidates that were joined."""
        self.passed_over = 0
        """Candidates that the operator kept from every partial match."""
        self.forbidden = 0
        """Candidates that a guard kept from every partial match."""
        self.outside = 0
        """Candidates that arrived after the window had closed."""
        self.expired = 0
        """Groups that left the window."""
        self.ended = 0
        """Groups that a guard ended, if it is decided when its event arrives."""
        self.shed = 0
        """Groups that were dropped because there were too many."""
        self._blank = blank
        self._indexes: list[dict[Values, dict[Values, Group]] | None] = [
            {} if keys or equal else None
            for keys, equal in zip(place.keys, place.equal, strict=True)
        ]
        if place.start:
            start = Group((), blank.copy())
            self.groups[()] = start

    def group(self, env: Environment) -> Group:
        """The group of an environment, which is created if there is none."""
        values = tuple(env[number] for number in self.place.live)
        known = self.groups.get(values)
        if known is None:
            kept = self._blank.copy()
            for number, value in zip(self.place.live, values, strict=True):
                kept[number] = value
            known = Group(values, kept)
            self.made += 1
            known.serial = self.made
            self.groups[values] = known
            for edge, index in enumerate(self._indexes):
                if index is not None:
                    index.setdefault(self._entry(edge, kept), {})[values] = known
        return known

    def counters(self) -> PlaceCounters:
        """The counters, with the names that the core uses."""
        counts = {name: getattr(self, name) for name in _COUNTED}
        groups = 0 if self.place.start else len(self.groups)
        return PlaceCounters(self.number, self.place, groups, **counts)

    def arrived(self, since: int, most: int) -> list[Values]:
        """The registers of up to `most` groups after the first `since`, the newest first."""
        newest = islice(reversed(self.groups.values()), most)
        return [group.values for group in takewhile(lambda g: g.serial > since, newest)]

    def drop(self, group: Group) -> None:
        del self.groups[group.values]
        for edge, index in enumerate(self._indexes):
            if index is not None:
                entry = self._entry(edge, group.env)
                same = index[entry]
                del same[group.values]
                if not same:
                    del index[entry]

    def keep_since(self, instant: int) -> None:
        """Drop the members whose last instant is before `instant`, and empty groups."""
        for group in list(self.groups.values()):
            recent = list(members_since(group.chain, instant, 0))
            if recent:
                group.keep(recent)
            else:
                self.drop(group)

    def settle(self, group: Group) -> None:
        """Close the timestamp: remove what a `;` place consumed, and retain what it could not."""
        members = [n for n in nodes(group.chain, 0) if n.last >= group.taken_first]
        if members:
            group.keep(members)
            group.taken, group.taken_first = [], -1
        elif self.groups.get(group.values) is group:
            self.drop(group)

    def matching(self, edge: int, row: Row, columns: IndexColumns) -> Collection[Group]:
        """The groups that agree with a row on the index of an edge."""
        index = self._indexes[edge]
        if index is None:
            return self.groups.values()
        same, equal = columns
        entry: list[Hashable] = [row[column] for column in same]
        entry += [_value_key(row[column]) for column in equal]
        return index.get(tuple(entry), {}).values()

    def _entry(self, edge: int, env: Environment) -> Values:
        """The key of a group in the index of an edge."""
        entry: list[Hashable] = [env[number] for number, _ in self.place.keys[edge]]
        entry += [_value_key(env[number]) for number, _ in self.place.equal[edge]]
        return tuple(entry)

    def sweep(self, bound: int) -> None:
        """Drop the partial matches that started before `bound` and can no longer match."""
        if self.place.start:
            return
        for group in list(self.groups.values()):
            if group.chain is None or group.chain.latest < bound:
                self.drop(group)
                self.expired += 1
            else:
                group.keep(nodes(group.chain, bound))


def _value_key(term: Term | None) -> Hashable:
    # Indexed registers and columns are bound, because the index has no others.
    assert term is not None
    return equality_key(term)

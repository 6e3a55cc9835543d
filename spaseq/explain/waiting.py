"""The groups of partial matches that wait at each place, as data: registers, start, end.

A group consists of the partial matches at a place whose registers are equal. Its earliest start and
its end concern the members that are in the window. Cost: linear in the groups listed, and in up to
`MAX_MEMBERS` members of each group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from spaseq.engine.evaluation import Evaluation
from spaseq.engine.instants import QueryRun
from spaseq.engine.native.snapshot import LiveRegisters
from spaseq.engine.part_states import Part
from spaseq.engine.place_names import Notation
from spaseq.nfa.native.register_tables import FAILED, NEVER_BOUND, OPENED
from spaseq.nfa.state import NOTHING, AutomatonState, NodeState
from spaseq.rdf.event import Term, Timestamp
from spaseq.rdf.time import from_micros
from spaseq.records import dataclass

_OF_TERMS = frozenset(("value", "previous", "first", "last"))
"""The kinds of registers that hold a term."""
_NO_TERMS = frozenset((0, OPENED, NEVER_BOUND, FAILED))
MAX_MEMBERS = 1000
"""The number of nodes of a group that are examined for its earliest start."""


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """One group.

    Args:
        number: The place in the automaton.
        place: Its number and label, as `explain` shows it.
        registers: Name → term; a register without a term is omitted.
        earliest: The first event of its oldest member.
        latest: The first event of its youngest member.
        until: When its youngest member leaves the window; None if no window ends.
        is_exact: Whether all members were examined for `earliest`.
    """

    number: int
    place: str
    registers: Mapping[str, Term]
    earliest: Timestamp
    latest: Timestamp
    until: Timestamp | None
    is_exact: bool


def waiting_groups(run: Evaluation, number: int) -> Iterator[WaitingGroup]:
    """The groups of query `number` of a run whose counters are in step (`Evaluation.sync`).

    If several queries are evaluated as one, the common state is read to find the query's groups.
    """
    asked = run.listed.queries[number]
    query, domain, notation = asked.state, run.clock.domain, Notation(asked.compiled)
    if domain is None:
        return
    division = asked.executor.division
    found = _own(query) if division is None else _of_part(division.parts()[asked.serial])
    parts, clock = query.native.parts, query.native.clock
    has_end = query.plan.window.is_of_time
    for place, named, (first, last, is_exact) in found:
        if place not in notation.numbers:
            continue
        until = None
        if has_end:
            until = from_micros(clock.closing(parts.time_of(last)), domain)
        yield WaitingGroup(
            place,
            notation.title(place),
            named,
            from_micros(parts.time_of(first), domain),
            from_micros(parts.time_of(last), domain),
            until,
            is_exact,
        )


_Starts: TypeAlias = tuple[int, int, bool]
"""The instants of the first and of the last start, and whether all members were examined."""


def _own(query: QueryRun) -> Iterator[tuple[int, dict[str, Term], _Starts]]:
    """Place, registers and starts of the groups of a query with its own automaton."""
    parts, registers = query.native.parts, LiveRegisters(query.native)
    for place, values, members, *_ in parts.groups(query.time is None):
        named: dict[str, Term] = {}
        for register, value in zip(registers.of(place), values, strict=False):
            if register.kind in _OF_TERMS:
                term = None if value in _NO_TERMS else parts.term(value)
                if term is not None:
                    named[register.name] = term
        yield place, named, _starts(query, members)


def _of_part(part: Part) -> Iterator[tuple[int, dict[str, Term], _Starts]]:
    """Like `_own`, for a query that is evaluated with others."""
    plan, places, state = part.compiled.plan, part.compiled.automaton.places, part.state()
    for group in state.groups:
        named: dict[str, Term] = {}
        for number, cell in zip(places[group.place].live, group.values, strict=True):
            register = plan.registers[number]
            if register.kind in _OF_TERMS and isinstance(cell, int) and cell > 0:
                named[register.name] = state.terms[cell - 1]
        yield group.place, named, _starts_in(state, group.members)


def _starts_in(state: AutomatonState, members: int) -> _Starts:
    """Like `_starts`, for state as data."""

    def latest_of(position: int) -> int:
        item = state.graph[position]
        return item.start if isinstance(item, NodeState) else item.latest

    earliest, todo, examined = latest_of(members), [members], 0
    while todo and examined < MAX_MEMBERS:
        examined += 1
        item = state.graph[todo.pop()]
        earliest = min(earliest, item.start if isinstance(item, NodeState) else item.latest)
        behind = (item.before,) if isinstance(item, NodeState) else item[1:]
        todo += [each for each in behind if each != NOTHING]
    return earliest, latest_of(members), not todo


def _starts(query: QueryRun, members: int) -> _Starts:
    """The minimum and maximum start of the members of a union, and whether both are exact."""
    parts = query.native.parts
    latest = parts.union(members)[0]
    earliest, todo, examined = latest, [members], 0
    while todo and examined < MAX_MEMBERS:
        examined += 1
        start, node, left, right = parts.union(todo.pop())
        earliest = min(earliest, start)
        if node:
            earliest = min(earliest, parts.node(node)[2])
            before = parts.node(node)[1]
            if before:
                todo.append(before)
        todo += [each for each in (left, right) if each]
    return earliest, latest, not todo

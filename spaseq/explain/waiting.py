"""The groups of partial matches that wait at each place, as data: registers, start, end.

A group is the partial matches at a place whose registers are equal. Its earliest start and its end
are those of its members that are in the window. Cost: linear in the groups listed, and in the
members of each up to `MAX_MEMBERS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spaseq.engine.evaluation import Evaluation
from spaseq.engine.instants import QueryRun
from spaseq.engine.native.snapshot import LiveRegisters
from spaseq.engine.place_names import Notation
from spaseq.nfa.native.register_tables import FAILED, NEVER_BOUND, OPENED
from spaseq.rdf.event import Term, Timestamp
from spaseq.rdf.time import from_micros
from spaseq.records import dataclass

_NO_TERMS = frozenset((0, OPENED, NEVER_BOUND, FAILED))
MAX_MEMBERS = 1000
"""The nodes of a group that are examined for its earliest start."""


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
    """The groups of query `number` of a run whose counters are in step (`Evaluation.sync`)."""
    query, notation = run.queries[number], Notation(run.program.queries[number])
    native, parts = query.native, query.native.parts
    registers = LiveRegisters(native)
    domain = run.clock.domain
    if domain is None:
        return
    has_end = query.plan.window.kind in ("span", "tumbling")
    for place, values, members, *_ in parts.groups(query.time is None):
        if place not in notation.numbers:
            continue
        named: dict[str, Term] = {}
        for register, value in zip(registers.of(place), values, strict=False):
            if register.kind in ("value", "previous", "first", "last"):
                term = None if value in _NO_TERMS else parts.term(value)
                if term is not None:
                    named[register.name] = term
        first, last, is_exact = _starts(query, members)
        until = None
        if has_end:
            until = from_micros(native.clock.closing(parts.time_of(last)), domain)
        yield WaitingGroup(
            place,
            notation.title(place),
            named,
            from_micros(parts.time_of(first), domain),
            from_micros(parts.time_of(last), domain),
            until,
            is_exact,
        )


def _starts(query: QueryRun, members: int) -> tuple[int, int, bool]:
    """The least and the greatest start of the members of a union, and whether both are exact."""
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

"""The candidates of an edge: every way in which rows of buffered events satisfy its atom.

`candidates` finds them between two instants, for guards and for places that look back;
`completions` finds those that the current event completes, for the run itself. Conjunctions are
lazy: nothing is joined before every operand has an event, and the operand with the fewest events is
joined first (Kolchinsky, Sharfman, Schuster: *Lazy evaluation methods for detecting complex
events*, DEBS 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from model.acceptor import Acceptor
from model.buffer import Buffer, Entry
from model.meter import Meter
from model.registers import Registers
from spaseq.nfa.automaton import Atom, Edge
from spaseq.nfa.match_path import Row, Step, Witnessed
from spaseq.nfa.registers import Environment
from spaseq.rdf.limits import NO_LIMITS

Meeting = tuple[tuple[int, Entry, Row], ...]
"""(occurrence, entry, row) for each occurrence of an alternative."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to take an edge: the environment after it, and the instants of its events."""

    edge: Edge
    env: Environment
    step: Step
    first: int
    last: int
    meetings: tuple[Meeting, ...]
    """One for each operand of the atom."""


class CandidateFinder:
    """Finds candidates over the buffers of one run."""

    def __init__(
        self,
        atoms: Sequence[Atom],
        acceptors: Sequence[Acceptor],
        registers: Registers,
        buffers: Sequence[Buffer],
        is_positive: Callable[[int, Row], bool],
    ):
        self._atoms = atoms
        self._acceptors = acceptors
        self._registers = registers
        self._buffers = buffers
        self.is_positive = is_positive
        self.meter = Meter(NO_LIMITS)
        """Counts each candidate that is tried as a step."""

    def entered(self, env: Environment, edge: Edge) -> Environment:
        """A copy of the environment in which the iterations of the edge have begun."""
        copy = env.copy()
        for action in edge.actions:
            self._registers.enter(copy, action.unit, action.again)
        return copy

    def candidates(
        self, edge: Edge, env: Environment, low: int, high: int, negated: bool
    ) -> Iterator[Candidate]:
        """Every candidate whose events all lie strictly between two instants."""
        atom = self._atoms[edge.atom]
        start = self.entered(env, edge)
        options = [self._operand(operand, low, high, negated) for operand in atom.operands]
        yield from self._combined(edge, start, options)

    def completions(
        self, edge: Edge, env: Environment, fresh: Entry, fresh_gpm: int, low: int, first: int
    ) -> Iterator[Candidate]:
        """Candidates of a conjunction that the event of `fresh` completes.

        Their other events follow instant `low`. The events of an alternative share a timestamp,
        whose first instant is `first` for the alternative of `fresh`.
        """
        atom = self._atoms[edge.atom]
        high = fresh.instant + 1
        for place in range(len(atom.operands)):
            own = list(self._fresh(atom.operands[place], fresh, fresh_gpm, max(low, first - 1)))
            if not own:
                continue
            options: list[Iterable[Meeting]] = []
            for number, operand in enumerate(atom.operands):
                if number == place:
                    options.append(own)
                else:
                    options.append(
                        [
                            meeting
                            for meeting in self._operand(operand, low, high, False)
                            if all(entry.event is not fresh.event for _, entry, _ in meeting)
                        ]
                    )
            if all(options):
                yield from self._combined(edge, self.entered(env, edge), options)

    def _fresh(
        self, operand: tuple[tuple[int, ...], ...], fresh: Entry, gpm: int, low: int
    ) -> Iterator[Meeting]:
        """The operand's alternatives with the current event."""
        high = fresh.instant + 1
        for alternative in operand:
            for place, occurrence in enumerate(alternative):
                if self._acceptors[occurrence].gpm != gpm:
                    continue
                others = [o for n, o in enumerate(alternative) if n != place]
                columns = [[(occurrence, fresh, row) for row in self._rows(fresh, occurrence)]]
                for other in others:
                    columns.append(
                        [
                            (other, entry, row)
                            for entry in self._entries(other, low, high)
                            if entry.event is not fresh.event
                            for row in self._rows(entry, other)
                        ]
                    )
                for meeting in _distinct_product(columns):
                    yield tuple(sorted(meeting, key=lambda item: alternative.index(item[0])))

    def _operand(
        self, operand: tuple[tuple[int, ...], ...], low: int, high: int, negated: bool
    ) -> list[Meeting]:
        found: list[Meeting] = []
        for alternative in operand:
            if len(alternative) == 1:
                occurrence = alternative[0]
                found += [
                    ((occurrence, entry, row),)
                    for entry in self._entries(occurrence, low, high)
                    for row in self._rows(entry, occurrence, negated)
                ]
            else:
                found += self._simultaneous(alternative, low, high, negated)
        return found

    def _simultaneous(
        self, alternative: tuple[int, ...], low: int, high: int, negated: bool
    ) -> Iterator[Meeting]:
        by_time: list[dict[int, list[tuple[int, Entry, Row]]]] = []
        for occurrence in alternative:
            grouped: dict[int, list[tuple[int, Entry, Row]]] = {}
            entries = self._entries(occurrence, low, high)
            for micros, same in groupby(entries, key=lambda entry: entry.event.time.micros):
                grouped[micros] = [
                    (occurrence, entry, row)
                    for entry in same
                    for row in self._rows(entry, occurrence, negated)
                ]
            by_time.append(grouped)
        for micros in by_time[0]:
            if all(micros in grouped for grouped in by_time):
                yield from _distinct_product([grouped[micros] for grouped in by_time])

    def _entries(self, occurrence: int, low: int, high: int) -> Iterator[Entry]:
        return self._buffers[self._acceptors[occurrence].gpm].between(low, high)

    def _rows(self, entry: Entry, occurrence: int, negated: bool = False) -> Iterator[Row]:
        gpm = self._acceptors[occurrence].gpm
        for row in entry.rows:
            if negated or self.is_positive(gpm, row):
                yield row

    def _combined(
        self, edge: Edge, start: Environment, options: Sequence[Iterable[Meeting]]
    ) -> Iterator[Candidate]:
        sized = [list(option) for option in options]
        if not all(sized):
            return
        order = sorted(range(len(sized)), key=lambda number: len(sized[number]))
        chosen: list[Meeting | None] = [None] * len(sized)
        yield from self._extend(edge, start, sized, order, 0, chosen)

    def _extend(
        self,
        edge: Edge,
        env: Environment,
        options: Sequence[list[Meeting]],
        order: Sequence[int],
        depth: int,
        chosen: list[Meeting | None],
    ) -> Iterator[Candidate]:
        if depth == len(order):
            found = self._finish(edge, env, tuple(m for m in chosen if m is not None))
            if found is not None:
                yield found
            return
        for meeting in options[order[depth]]:
            self.meter.take(1)
            if depth and _shares_event(meeting, chosen):
                continue
            joined = env.copy()
            if all(self._acceptors[o].join(joined, row) for o, _, row in meeting):
                chosen[order[depth]] = meeting
                yield from self._extend(edge, joined, options, order, depth + 1, chosen)
                chosen[order[depth]] = None

    def _finish(
        self, edge: Edge, env: Environment, meetings: tuple[Meeting, ...]
    ) -> Candidate | None:
        """Stateful BINDs in the order of the text, then all filters."""
        parts = sorted((part for meeting in meetings for part in meeting), key=lambda p: p[0])
        witnesses = []
        for occurrence, entry, row in parts:
            extended = self._acceptors[occurrence].assign(env, row, entry.event)
            if extended is None:
                return None
            witnesses.append(Witnessed(occurrence, entry.event, extended, entry.instant))
        if not all(self._acceptors[o].test(env, entry.event) for o, entry, _ in parts):
            return None
        instants = [witness.instant for witness in witnesses]
        return Candidate(
            edge, env, Step(edge, tuple(witnesses)), min(instants), max(instants), meetings
        )

    def latest_acceptable(
        self,
        edge: Edge,
        env: Environment,
        chosen: Candidate,
        operand: int,
        low: int,
    ) -> int:
        """The latest earlier event after `low` that the operand would have accepted.

        That event is earlier than the operand's own, differs from the other operands' events, and
        would be accepted in their context. -1: there is none.
        """
        atom = self._atoms[edge.atom]
        own = chosen.meetings[operand]
        others = [m for number, m in enumerate(chosen.meetings) if number != operand]
        taken = {id(entry.event) for meeting in others for _, entry, _ in meeting}
        base = self.entered(env, edge)
        for meeting in others:
            for occurrence, _, row in meeting:
                self._acceptors[occurrence].join(base, row)
        high = min(entry.instant for _, entry, _ in own)
        best = -1
        for meeting in self._operand(atom.operands[operand], low, high, False):
            first = min(entry.instant for _, entry, _ in meeting)
            if first > best and not any(id(entry.event) in taken for _, entry, _ in meeting):
                trial = base.copy()
                if self._accepts_alone(trial, meeting):
                    best = first
        return best

    def first_step_acceptable(self, edge: Edge, env: Environment, low: int, high: int) -> int:
        """The latest instant in between at which one operand alone accepts an event.

        An `AND` group thus represents its side of a disjunction. -1: there is none.
        """
        base = self.entered(env, edge)
        best = -1
        for operand in self._atoms[edge.atom].operands:
            for meeting in self._operand(operand, low, high, False):
                first = min(entry.instant for _, entry, _ in meeting)
                if first > best and self._accepts_alone(base.copy(), meeting):
                    best = first
        return best

    def _accepts_alone(self, env: Environment, meeting: Meeting) -> bool:
        if not all(self._acceptors[o].join(env, row) for o, _, row in meeting):
            return False
        for occurrence, entry, row in meeting:
            if self._acceptors[occurrence].assign(env, row, entry.event) is None:
                return False
        return all(self._acceptors[o].test(env, entry.event) for o, entry, _ in meeting)


def _distinct_product(columns: Sequence[Sequence[tuple[int, Entry, Row]]]) -> Iterator[Meeting]:
    """Every choice of one item from each column such that the events differ."""
    if not columns:
        yield ()
        return
    for rest in _distinct_product(columns[1:]):
        taken: set[int] = {id(entry.event) for _, entry, _ in rest}
        for item in columns[0]:
            if id(item[1].event) not in taken:
                yield (item, *rest)


def _shares_event(meeting: Meeting, chosen: Sequence[Meeting | None]) -> bool:
    events: set[int] = {id(e.event) for m in chosen if m is not None for _, e, _ in m}
    return any(id(entry.event) in events for _, entry, _ in meeting)

"""Whether a unit occurs where it must not: negations, and optional steps that were skipped.

A guard is decided when the step after it has arrived (post-processing negation). The rows of the
window are still in the buffers, so filters may name variables of both sides. The answer is the
latest instant at which an occurrence begins: it forbids the partial matches of a group whose last
event is older, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from model.acceptor import Acceptor
from model.buffer import Buffer
from model.candidates import Candidate, CandidateFinder
from model.contiguity import Contiguity
from model.registers import Registers
from model.window import WindowClock
from spaseq.nfa.automaton import DONE, Automaton, Edge, Guard, Place
from spaseq.nfa.registers import Environment

NEVER = -1


class GuardKeeper:
    """Decides guards, and which earlier candidates forbid a later one under `;`."""

    def __init__(
        self,
        automaton: Automaton,
        acceptors: Sequence[Acceptor],
        registers: Registers,
        buffers: Sequence[Buffer],
        finder: CandidateFinder,
        contiguity: Contiguity,
        clock: WindowClock,
    ):
        self._automaton = automaton
        self._acceptors = acceptors
        self._registers = registers
        self._buffers = buffers
        self._finder = finder
        self._contiguity = contiguity
        self._clock = clock

    def latest(
        self,
        number: int,
        before: Environment,
        after: Environment,
        edge: Edge | None,
        low: int,
        high: int,
        *,
        at_start: bool = False,
    ) -> int:
        """The latest start of an occurrence strictly between two instants, or NEVER.

        `before` is the environment of the partial match, and `after` the one after joining `edge`.
        A guard inside an iterated unit that the edge enters again still sees its own iteration.
        `at_start`: the guard precedes the first step of a match; a step skipped at the start of the
        guarded unit then looks back by another window.
        """
        guard = self._automaton.guards[number]
        env = self._context(guard, before, after, edge)
        if guard.occurrence is None:
            return self._latest_unit(guard, env, low, high, at_start)
        acceptor = self._acceptors[guard.occurrence]
        for entry in self._buffers[acceptor.gpm].between(low, high):
            for row in entry.rows:
                if not guard.negated and not self._finder.is_positive(acceptor.gpm, row):
                    continue
                if acceptor.accept(env.copy(), row, entry.event) is not None:
                    return entry.instant
        return NEVER

    def forbidden_until(
        self,
        guards: Sequence[int],
        before: Environment,
        candidate: Candidate,
        low: int,
        *,
        at_start: bool = False,
    ) -> int:
        """The latest start of any guarded unit between `low` and the candidate."""
        return max(
            (
                self.latest(
                    guard,
                    before,
                    candidate.env,
                    candidate.edge,
                    low,
                    candidate.first,
                    at_start=at_start,
                )
                for guard in guards
            ),
            default=NEVER,
        )

    def forbids(
        self, guards: Sequence[int], before: Environment, candidate: Candidate, last: int
    ) -> bool:
        """Whether any of these guards forbids a partial match that ends at `last`."""
        return any(
            self.latest(guard, before, candidate.env, candidate.edge, last, candidate.first)
            != NEVER
            for guard in guards
        )

    def earlier_acceptable(
        self, place: Place, before: Environment, candidate: Candidate, low: int
    ) -> int:
        """The latest instant at which a `;` place would have consumed an earlier candidate.

        Partial matches whose last event is older than that do not reach the candidate.
        """
        finder, latest = self._finder, NEVER
        micros = _micros(candidate)
        together = self._automaton.atoms[candidate.edge.atom].kind == "together"
        for edge in place.edges:
            kind = self._automaton.atoms[edge.atom].kind
            if kind == "any-order" and edge is candidate.edge:
                for operand in range(len(candidate.meetings)):
                    found = finder.latest_acceptable(edge, before, candidate, operand, low)
                    latest = max(latest, found)
                if len(place.edges) > 1:
                    found = finder.first_step_acceptable(edge, before, low, candidate.first)
                    latest = max(latest, found)
            elif kind == "any-order":
                found = finder.first_step_acceptable(edge, before, low, candidate.first)
                latest = max(latest, found)
            else:
                for other in finder.candidates(edge, before, low, candidate.first, False):
                    # Two conjunctions of one timestamp are not ordered.
                    if kind == "single" or not together or _micros(other) < micros:
                        latest = max(latest, other.first)
        return latest

    def taken(
        self, place: Place, before: Environment, low: int, high: int
    ) -> list[tuple[int, int, bool]]:
        """What a `;` place consumes between two instants; see `Group.taken`."""
        return [
            (candidate.first, candidate.last, self._automaton.atoms[edge.atom].kind == "together")
            for edge in place.edges
            for candidate in self._finder.candidates(edge, before, low, high, False)
        ]

    def _context(
        self, guard: Guard, before: Environment, after: Environment, edge: Edge | None
    ) -> Environment:
        restarted = {action.unit for action in edge.actions} if edge is not None else set()
        restarted &= set(guard.units)
        env = after.copy()
        if restarted:
            for number, register in enumerate(self._registers.registers):
                if register.unit in restarted or register.scope in restarted:
                    env[number] = before[number]
        return env

    def _latest_unit(
        self, guard: Guard, env: Environment, low: int, high: int, at_start: bool
    ) -> int:
        found = [
            (place, candidate)
            for place in (self._automaton.places[start] for start in guard.starts)
            for edge in place.edges
            for candidate in self._finder.candidates(edge, env, low, high, guard.negated)
        ]
        for place, candidate in sorted(found, key=lambda item: -item[1].first):
            floor = self._clock.bound_at(candidate.first) - 1 if at_start else low
            obliged = place.operator == ";" and not at_start
            if obliged and self.earlier_acceptable(place, env, candidate, low) > low:
                continue
            forbidden = self.forbidden_until(place.guards, env, candidate, floor, at_start=at_start)
            if forbidden == NEVER and self._completes(candidate, high, guard.negated):
                return candidate.first
        return NEVER

    def _completes(self, begun: Candidate, high: int, negated: bool) -> bool:
        """Whether the guarded unit, after this beginning, is complete before `high`.

        Two derivations that wait in one place since one instant with equal registers continue in
        the same ways. Only the first is followed, so iterations inside the unit cost no more than
        pairs.
        """
        todo, seen = [begun], set()
        while todo:
            candidate = todo.pop()
            env, last = candidate.env, candidate.last
            for link in self._automaton.atoms[candidate.edge.atom].links:
                if not self._registers.within(link.bounds, env):
                    continue
                if link.target == DONE:
                    if all(
                        self.latest(guard, env, env, None, last, high) == NEVER
                        for guard in link.guards
                    ):
                        return True
                    continue
                place = self._automaton.places[link.target]
                state = (link.target, last, *(env[number] for number in place.live))
                if state not in seen:
                    seen.add(state)
                    todo += self._following(place, candidate, high, negated)
        return False

    def _following(
        self, place: Place, so_far: Candidate, high: int, negated: bool
    ) -> Iterator[Candidate]:
        """What a place inside the guarded unit consumes next."""
        env, last = so_far.env, so_far.last
        for edge in place.edges:
            for candidate in self._finder.candidates(edge, env, last, high, negated):
                needed = self.forbidden_until(place.guards, env, candidate, last)
                if place.operator == ",":
                    needed = max(needed, self._contiguity.threshold(candidate))
                elif place.operator == ";":
                    needed = max(needed, self.earlier_acceptable(place, env, candidate, last))
                if needed <= last:
                    yield candidate


def _micros(candidate: Candidate) -> int:
    return min(witness.event.time.micros for witness in candidate.step.witnesses)

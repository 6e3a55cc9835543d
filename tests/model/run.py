"""The run of one automaton in plain Python: rows of events in, complete matches out.

Queries run on the compiled core, which tests compare with this run (`tests/model/queries.py`).

`open_instant`, `feed`, `close_instant` (and `close_timestamp`) follow the instants of the streams;
`due` yields the matches that had to wait for their window to close. Additions of `feed` become
visible when the instant closes. Cost: linear in the groups that the rows of an event reach.

Invariants: every node in a group has `last` < the open instant; buffers hold the rows since the
window's first instant.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from model.acceptor import Acceptor
from model.buffer import Buffer, Entry
from model.candidates import Candidate, CandidateFinder
from model.contiguity import Contiguity
from model.group import Group, PlaceState
from model.guards import NEVER, GuardKeeper
from model.meter import Meter
from model.partition import Partitioning
from model.registers import Registers
from model.shedding import held, relieve
from model.tecs import Accepted, Chain, Node, Waiting, chained, members_since, paths, prune
from model.window import WindowClock
from model.wiring import buffered_gpms, index_columns
from spaseq.nfa.automaton import ACCEPT, Automaton, Edge, Link
from spaseq.nfa.match_path import Key, Path, Row, Step, Witnessed
from spaseq.nfa.registers import Environment
from spaseq.nfa.wiring import dispatch, fragment_places, windows_back
from spaseq.plan.logical import QueryPlan
from spaseq.rdf.event import Event
from spaseq.rdf.limits import NO_LIMITS, Limits


class AutomatonRun:
    """The state of one automaton over its streams."""

    def __init__(
        self,
        plan: QueryPlan,
        automaton: Automaton,
        registers: Registers,
        acceptors: Sequence[Acceptor],
        limits: Limits = NO_LIMITS,
    ):
        self.plan = plan
        self.automaton = automaton
        self.registers = registers
        self.acceptors = acceptors
        self.clock = WindowClock(plan.window, windows_back(automaton))
        self.buffers = [Buffer() for _ in plan.gpms]
        self.contiguity = Contiguity(registers)
        self._partitioning = Partitioning(plan)
        self._finder = CandidateFinder(
            automaton.atoms, acceptors, registers, self.buffers, self._partitioning.positive
        )
        self.guards = GuardKeeper(
            automaton,
            acceptors,
            registers,
            self.buffers,
            self._finder,
            self.contiguity,
            self.clock,
        )
        blank = registers.blank()
        fragment = fragment_places(automaton)
        self.places = [
            PlaceState(number, place, automaton, blank)
            for number, place in enumerate(automaton.places)
        ]
        self._dispatch = dispatch(plan, automaton, fragment)
        self._columns = index_columns(plan, automaton)
        self._buffered = buffered_gpms(plan, automaton)
        self.pending: dict[tuple[int, tuple[object, ...]], tuple[Environment, list[Node]]] = {}
        self.touched: dict[int, tuple[int, Group]] = {}
        """By id, (place, group): groups of `;` places that consumed something at this timestamp,
        and groups of other places that a guard ends when its event arrives."""
        self.accepted: list[Accepted] = []
        self.waiting: list[tuple[int, int, Waiting]] = []
        self.waited = 0
        self.forbidden = 0
        """Matches that a trailing guard forbade; only for reports."""
        self.skipped: dict[Key, int] = {}
        self.beginnings: list[tuple[PlaceState, Group, Candidate]] = []
        """Starts that can be decided only when all events of the instant are counted."""
        self._meter = self._finder.meter = Meter(limits)
        self._sweep_at = min(256, limits.most_groups)
        self.shed_matches = 0
        """Waiting matches that were dropped because too many waited."""
        self._made = self._kept = 0
        """Nodes created since the last pruning, plus the links that it left."""

    # ------------------------------------------------------------------ instants

    def open_instant(self, micros: int) -> None:
        """Begin the next instant, at a timestamp not before that of the last one."""
        self.clock.open(micros)

    def waits_for(self, gpm: int) -> bool:
        """Whether the rows of a GPM can matter now: to a place, a look-back, a partition."""
        states = [self.places[number] for number, _, _ in self._dispatch[gpm]]
        if self.registers.partition or gpm in self._buffered or any(s.groups for s in states):
            return True
        for state in states:
            state.early += 1
        return False

    def feed(
        self, event: Event, unfiltered: Mapping[int, Sequence[Row]], rows: Mapping[int, list[Row]]
    ) -> None:
        """One event of the open instant: its rows per GPM, before and after local filters."""
        clock = self.clock
        clock.count()
        self._meter.begin()
        if self.registers.partition:
            self.contiguity.add(clock.now, self._partitioning.keys(unfiltered))
        entries = {}
        for gpm, found in rows.items():
            if found:
                entry = Entry(clock.now, event, tuple(found))
                entries[gpm] = entry
                if gpm in self._buffered:
                    self.buffers[gpm].append(entry)
        for gpm, entry in entries.items():
            for number, position, edge in self._dispatch[gpm]:
                state = self.places[number]
                if self.automaton.atoms[edge.atom].kind == "single":
                    self._feed_single(state, position, edge, entry)
                else:
                    self._feed_conjunction(state, edge, entry, gpm)

    def close_instant(self) -> None:
        """Close the open instant: its additions become visible."""
        for state, group, candidate in self.beginnings:
            self._begin(state, group, candidate)
        self.beginnings.clear()
        for number, group in list(self.touched.values()):
            state = self.places[number]
            if state.takes_at_once or state.place.operator != ";":
                if state.groups.get(group.values) is group:
                    state.drop(group)
                del self.touched[id(group)]
        for state in self.places:
            if state.strict and not self.registers.partition and state.groups:
                state.keep_since(self.clock.timestamp_start - 1)
        for (number, _), (env, members) in self.pending.items():
            self.places[number].reached += len(members)
            group = self.places[number].group(env)
            for node in members:
                group.add(node)
        self.pending.clear()
        if held(self.places, self.waiting) > self._sweep_at or self.clock.now % 1024 == 1023:
            self.sweep()
            left, gone = relieve(self.places, self.waiting, self._meter.limits)
            self.shed_matches += gone
            self._sweep_at = min(2 * left + 256, self._meter.limits.most_groups)

    def close_timestamp(self) -> None:
        """Close the current timestamp."""
        for number, group in self.touched.values():
            self.places[number].settle(group)
        self.touched.clear()

    def sweep(self) -> None:
        """Remove what has left the window; called between instants."""
        bound = self.clock.bound
        for state in self.places:
            state.sweep(bound)
        if self._made >= self._kept:
            groups = (group for state in self.places for group in state.groups.values())
            self._made, self._kept = 0, prune((group.chain for group in groups), bound)
        for buffer in self.buffers:
            buffer.evict(self.clock.looked_back_to())
        self.contiguity.evict(self.clock.looked_back_to())
        self.skipped = {key: b for key, b in self.skipped.items() if b > bound}

    # ------------------------------------------------------------------ matches

    @property
    def lists_cut(self) -> int:
        """How often matches beyond a bound were dropped."""
        return self._meter.cut

    def take(self, *, one: bool = False) -> Iterator[Path]:
        """The matches accepted since the last call; with `one`, only one for each last step."""
        accepted, self.accepted = self.accepted, []
        self._meter.begin_list()
        for item in accepted:
            found = paths(item.node, self.bound(item.key))
            for start, steps in islice(found, 1) if one else found:
                if not self._meter.list_one():
                    return
                yield Path(start, item.key, steps)

    def due(self, before: int | None) -> Iterator[tuple[int, list[Path]]]:
        """(closing time, matches) of the windows closed before timestamp `before`.

        Tumbling windows that close exactly then are included; None closes all windows.
        """
        inclusive = self.plan.window.kind == "tumbling"
        while self.waiting:
            closing = self.waiting[0][0]
            if before is not None and not (closing < before or (inclusive and closing == before)):
                return
            found = []
            self._meter.begin_list()
            while self.waiting and self.waiting[0][0] == closing:
                waiting = heapq.heappop(self.waiting)[2]
                if (
                    waiting.path.start >= self.skipped.get(waiting.path.key, 0)
                    and not any(self._forbids(guard, waiting) for guard in waiting.guards)
                    and self._meter.list_one()
                ):
                    found.append(waiting.path)
            if found:
                yield closing, found

    def skip(self, path: Path) -> None:
        """AFTER MATCH SKIP PAST LAST EVENT: later matches must start after this match."""
        self.skipped[path.key] = max(self.skipped.get(path.key, 0), path.last + 1)

    def bound(self, key: Key) -> int:  # the least start of a match of this partition that ends now
        return max(self.clock.bound, self.skipped.get(key, 0))

    # ------------------------------------------------------------------ one event

    def _feed_single(self, state: PlaceState, position: int, edge: Edge, entry: Entry) -> None:
        occurrence = self.automaton.atoms[edge.atom].operands[0][0][0]
        acceptor = self.acceptors[occurrence]
        columns = self._columns[state.number][position]
        for row in entry.rows:
            if not self._partitioning.positive(acceptor.gpm, row):
                state.unkeyed += 1
                continue
            groups = state.matching(position, row, columns)
            if not groups and state.groups:
                state.unjoined += 1
            if state.strict and self.registers.partition and not state.conjoined:
                groups = self.contiguity.still_followed(state, groups, self.clock.now)
            state.visited += len(groups)
            if not state.place.start:
                self._meter.take(len(groups), state.number)
            for group in groups:
                env = self._finder.entered(group.env, edge)
                extended = acceptor.accept(env, row, entry.event)
                if extended is None:
                    continue
                witness = Witnessed(occurrence, entry.event, extended, entry.instant)
                meeting = ((occurrence, entry, row),)
                candidate = Candidate(
                    edge, env, Step(edge, (witness,)), entry.instant, entry.instant, (meeting,)
                )
                self._hit(state, group, candidate)

    def _feed_conjunction(self, state: PlaceState, edge: Edge, entry: Entry, gpm: int) -> None:
        if not self._every_operand_met(edge):
            return
        state.visited += len(state.groups)
        if not state.place.start:
            self._meter.take(len(state.groups), state.number)
        for group in list(state.groups.values()):
            low = self.clock.bound - 1 if state.place.start else group.oldest
            candidates = self._finder.completions(
                edge, group.env, entry, gpm, low, self.clock.timestamp_start
            )
            for candidate in candidates:
                self._hit(state, group, candidate)

    def _every_operand_met(self, edge: Edge) -> bool:
        return all(
            any(
                all(self.buffers[self.acceptors[o].gpm].entries for o in alternative)
                for alternative in operand
            )
            for operand in self.automaton.atoms[edge.atom].operands
        )

    def _hit(self, state: PlaceState, group: Group, candidate: Candidate) -> None:
        """Join a candidate to a group, if the place of the group may consume it."""
        place = state.place
        if place.start:
            if place.guards and self.plan.window.kind == "events":
                self.beginnings.append((state, group, candidate))
            else:
                self._begin(state, group, candidate)
            return
        needed = forbidden = NEVER
        if place.operator == ";":
            needed = self._next_threshold(state, group, candidate)
        elif state.strict:
            needed = self.contiguity.threshold(candidate)
        if state.guards:
            forbidden = self.guards.forbidden_until(
                state.guards, group.env, candidate, group.oldest
            )
            needed = max(needed, forbidden)
        before = self._followed(state, group, needed, candidate)
        if before is not None:
            state.joined += 1
            node = Node(candidate.step, before, candidate.last, before.latest)
            self._complete(candidate, node)
        elif group.chain is None or group.chain.latest < self.bound(
            self.registers.key(candidate.env)
        ):
            state.outside += 1
        elif forbidden != NEVER:
            state.forbidden += 1
        else:
            state.passed_over += 1

    def _next_threshold(self, state: PlaceState, group: Group, candidate: Candidate) -> int:
        if state.looks_back:
            return self.guards.earlier_acceptable(state.place, group.env, candidate, group.oldest)
        together = self.automaton.atoms[candidate.edge.atom].kind == "together"
        needed = group.taken_before(candidate.first, together)
        took = (candidate.first, candidate.last, together)
        if not state.takes_at_once and took not in group.taken:
            group.taken.append(took)
        group.taken_first = max(group.taken_first, candidate.first)
        self.touched[id(group)] = (state.number, group)
        return needed

    def _followed(
        self, state: PlaceState, group: Group, needed: int, candidate: Candidate
    ) -> Chain | None:
        """The members of the group that the candidate may be joined to."""
        chain, bound = group.chain, self.bound(self.registers.key(candidate.env))
        if chain is None or chain.latest < bound:
            return None
        asked = state.relative_guards
        if needed <= group.oldest and candidate.first == self.clock.now and not asked:
            return chain
        members = [
            node
            for node in members_since(chain, needed, bound)
            if node.last < candidate.first
            and not self.guards.forbids(asked, group.env, candidate, node.last)
        ]
        members.reverse()
        return chained(members)

    def _begin(self, state: PlaceState, group: Group, candidate: Candidate) -> None:
        if candidate.first < self.bound(self.registers.key(candidate.env)):
            return
        if state.place.guards:
            low = self.clock.bound_at(candidate.first) - 1
            forbidden = self.guards.forbidden_until(
                state.place.guards, group.env, candidate, low, at_start=True
            )
            if forbidden != NEVER:
                state.forbidden += 1
                return
        state.joined += 1
        self._complete(candidate, Node(candidate.step, None, candidate.last, candidate.first))

    def _complete(self, candidate: Candidate, node: Node) -> None:
        self._made += 1
        for link in self.automaton.atoms[candidate.edge.atom].links:
            if link.bounds and not self.registers.within(link.bounds, candidate.env):
                continue
            if link.target != ACCEPT:
                live = self.places[link.target].place.live
                values = tuple(candidate.env[number] for number in live)
                waiting = self.pending.setdefault((link.target, values), (candidate.env, []))
                waiting[1].append(node)
            elif link.guards:
                self._wait(link, candidate, node)
            else:
                self.accepted.append(Accepted(node, self.registers.key(candidate.env)))

    def _wait(self, link: Link, candidate: Candidate, node: Node) -> None:
        key = self.registers.key(candidate.env)
        for start, steps in paths(node, self.bound(key)):
            if not self._meter.list_one():
                return
            first = min(w.event.time.micros for w in steps[0].witnesses)
            waiting = Waiting(Path(start, key, steps), candidate.env, link.guards, candidate.last)
            self.waited += 1
            heapq.heappush(self.waiting, (self.clock.closing(first), self.waited, waiting))

    def _forbids(self, guard: int, waiting: Waiting) -> bool:
        env, high = waiting.env, self.clock.now + 1
        forbids = self.guards.latest(guard, env, env, None, waiting.last, high) != NEVER
        self.forbidden += forbids
        return forbids

"""One query's automaton on the compiled core, and its state as the Python one has it.

Where the core can run an automaton (`spaseq.nfa.native`), events go from their encoded form
to complete matches without becoming Python objects; steps, events and rows are decoded only
for the matches that are complete. The state can be taken out as an `AutomatonRun` and put
back, which is how it is saved, resumed, counted and explained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from spaseq.engine._step import NativeStep
from spaseq.engine.compiled import CompiledQuery
from spaseq.engine.fitness import filter_codes
from spaseq.gpm.match import Matchers
from spaseq.nfa import native
from spaseq.nfa._core import AutomatonCore
from spaseq.nfa._parts import CoreParts
from spaseq.nfa.contiguity import Contiguity
from spaseq.nfa.registers import FALSE, TRUE, RegisterFile
from spaseq.nfa.run import AutomatonRun
from spaseq.nfa.tecs import Accepted, Chain, Key, Node, Path, Step, Witnessed, chained
from spaseq.nfa.window import WindowClock
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Timestamp

if TYPE_CHECKING:
    from spaseq.nfa._parts import Label

Plain = Callable[[], AutomatonRun]

EVENTS_REMEMBERED = 4096
"""Events of matches that are kept as objects, for the next match they may be part of."""


def native_run(
    compiled: CompiledQuery, registers: RegisterFile, matchers: Matchers, plain: Plain
) -> NativeRun:
    """The compiled run of a query that is fit for it (`spaseq.engine.fitness`)."""
    plan = compiled.plan
    filters = filter_codes(plan, registers)
    core = AutomatonCore(
        native.tables(plan, compiled.automaton, registers),
        matchers.window,
        matchers.dictionary.intern(TRUE),
        matchers.dictionary.intern(FALSE),
    )
    step = NativeStep(
        core,
        matchers.graph,
        matchers.window,
        [matchers.native(task) for task in compiled.tasks],
        [[code.code for code in some] for some in filters],
    )
    return NativeRun(compiled, registers, matchers, step, plain)


class NativeRun:
    """The automaton of one query: what `AutomatonRun` is, for encoded events."""

    def __init__(
        self,
        compiled: CompiledQuery,
        registers: RegisterFile,
        matchers: Matchers,
        step: NativeStep,
        plain: Plain,
    ):
        self._compiled = compiled
        self._plan = compiled.plan
        self._registers = registers
        self._matchers = matchers
        self._step = step
        self._plain = plain
        self._streams = {iri: number for number, iri in enumerate(self._plan.streams)}
        self._files: dict[str, int] = {}
        self._events: dict[tuple[int, int], Event] = {}
        """By instant and stream."""
        self.core = step.core
        self.parts = CoreParts(step.core, matchers.dictionary)
        self.contiguity = Contiguity(registers)

    # ------------------------------------------------------------------ events

    def open_instant(self, micros: int) -> None:
        """The next instant begins, at a timestamp not before the last one's."""
        self.core.open_instant(micros)

    def feed(self, event: Event, gpms: Sequence[int]) -> None:
        """One event of the open instant."""
        batch, index = self._matchers.encoded(event)
        place = self._streams[event.stream], self._file(batch.file)
        self._step.feed(batch, index, *place, gpms)

    def run(self, batch: EventBatch, first: int, gpms: Sequence[int], position: int) -> int:
        """The events of a batch from `first` on, until one completes a match; the next one.

        `position` is how many events the run had before.
        """
        place = self._streams[batch.stream], self._file(batch.file)
        return self._step.run(batch, first, *place, gpms, position)

    def close_instant(self) -> None:
        """Nothing more comes at the open instant: what it brought becomes visible."""
        self.core.close_instant()

    def take(self, *, one: bool = False) -> Iterator[Path]:
        """The matches accepted since the last call; `one` for each last step is enough."""
        if not self.core.complete:
            return
        if len(self._events) > EVENTS_REMEMBERED:
            self._events.clear()
        for start, steps in self.core.take(self._step_of, one):
            yield Path(start, self._key(steps[0]), steps)

    def _key(self, step: Step) -> Key:
        """The partition of a match: every row of it binds the partition variables."""
        (witness,) = step.witnesses
        gpm = self._plan.occurrences[witness.occurrence].gpm
        variables = self._plan.gpms[gpm].variables
        return tuple(witness.row[variables.index(name)] for name in self._plan.partition)

    def skip(self, key: Key) -> None:
        """AFTER MATCH SKIP PAST LAST EVENT: only what starts later may still match."""
        assert not key, "the core skips in all partitions alike"
        self.core.skip()

    def _file(self, name: str) -> int:
        return self._files.setdefault(name, len(self._files))

    @property
    def clock(self) -> WindowClock:
        """When windows open and close."""
        return WindowClock(self._plan.window)

    # ------------------------------------------------------------------ decoding

    def _step_of(self, address: int) -> Step:
        label = self.parts.label(address)
        place, position, instant = label[:3]
        edge = self._compiled.automaton.places[place].edges[position]
        (occurrence,) = self._compiled.automaton.atoms[edge.atom].occurrences
        return Step(edge, (Witnessed(occurrence, self._event(label), label[-1], instant),))

    def _event(self, label: Label) -> Event:
        _, _, instant, micros, dated, line, stream, file, ordinal, name, stamp, _ = label
        known = self._events.get((instant, stream))
        if known is None:
            time = Timestamp(micros, DATE_TIME if dated else NUMBER, stamp)
            origin = f"{list(self._files)[file]}:{line}" if line else ""
            known = Event(self._plan.streams[stream], time, ordinal, (), name, origin)
            self._events[instant, stream] = known
        return known

    # ------------------------------------------------------------------ the state

    def snapshot(self) -> AutomatonRun:
        """The state as that of a run in Python; changing one leaves the other as it is."""
        run = self._plain()
        core = self.core
        now, bound, start, micros, times = self.parts.clock()
        if now >= 0:
            inside = [[instant, time] for instant, time in times]
            bounds = [[instant, bound] for instant, _ in times]
            total = sum(events for _, events in times) if core.counted else 0
            run.clock.restore([now, bound, start, micros, inside, total, bounds])
        reading = _Reading(self, run)
        for place, values, union, taken in self.parts.waiting():
            env = reading.environment(place, values)
            group = run.places[place].group(env)
            group.chain = reading.chain(union)
            group.oldest = min(
                (reading.nodes[node].last for node in self.parts.members(union)), default=0
            )
            if taken:
                run.touched[id(group)] = place, group
        for place, values, node in self.parts.pended():
            env = reading.environment(place, values)
            kept = tuple(env[number] for number in run.places[place].place.live)
            run.pending.setdefault((place, kept), (env, []))[1].append(reading.node(node))
        if core.skipped:
            run.skipped[()] = core.skipped
        for address in self.parts.completed():
            end = first = reading.node(address)
            while first.before is not None:
                first = first.before.node
            run.accepted.append(Accepted(end, self._key(first.step)))
        self._count(run)
        return run

    def _count(self, run: AutomatonRun) -> None:
        for number, state in enumerate(run.places):
            for name, value in self.core.counters(number).items():
                setattr(state, name, value)
        for occurrence, acceptor in enumerate(run.acceptors):
            acceptor.disagreed = self.core.disagreed(occurrence)
            acceptor.untrue = self._step.untrue_counts(occurrence)

    def adopt(self, run: AutomatonRun, opened: bool) -> None:
        """Go on from the state of a run in Python; `opened`: in the midst of an instant."""
        clock = run.clock
        if clock.now >= 0:
            inside = cast(Sequence[Sequence[int]], clock.state()[4])
            assert clock.micros is not None
            start = clock.timestamp_start
            self.parts.set_clock(clock.now, clock.bound, start, clock.micros, inside)
        self.core.skipped = run.skipped.get((), 0)
        writing = _Writing(self)
        for state in run.places:
            if state.place.start:
                continue
            # There, a `,` place keeps what it has passed over until the timestamp closes.
            since = clock.now - opened if state.strict else 0
            for group in state.groups.values():
                nodes = writing.union(group.chain, clock.bound, since)
                taken = id(group) in run.touched
                values = writing.values(state.place.live, group.env)
                self.parts.put_waiting(state.number, values, nodes, taken, False)
        for (place, _), (env, members) in run.pending.items():
            values = writing.values(run.places[place].place.live, env)
            nodes = [writing.node(node) for node in members]
            self.parts.put_waiting(place, values, nodes, False, True)
        for accepted in run.accepted:
            self.parts.put_complete(writing.node(accepted.node))

    def counted(self, register: int) -> bool:
        """Whether a register holds a count of iterations, and no term."""
        return self._plan.registers[register].kind == "iterations"


class _Reading:
    """Parts of the core's state as Python objects, shared as they are shared there."""

    def __init__(self, native_run: NativeRun, run: AutomatonRun):
        self._native = native_run
        self._run = run
        self._steps: dict[int, Step] = {}
        self._chains: dict[int, Chain | None] = {}
        self.nodes: dict[int, Node] = {}

    def environment(self, place: int, values: Sequence[int]) -> list[Any]:
        env = self._native._registers.blank()
        for register, value in zip(self._run.places[place].place.live, values, strict=True):
            counted = self._native.counted(register)
            env[register] = value if counted else self._native.parts.term(value)
        return env

    def chain(self, union: int) -> Chain | None:
        """A union, and all below it, deepest first and without recursion."""
        todo = [union]
        while todo:
            top = todo[-1]
            if top in self._chains:
                todo.pop()
                continue
            members = self._native.parts.members(top)
            below = [before for m in members if (before := self._native.parts.node(m)[1])]
            missing = [before for before in below if before not in self._chains]
            if missing:
                todo += missing
                continue
            self._chains[top] = chained([self._node(member) for member in members])
            todo.pop()
        return self._chains[union]

    def node(self, address: int) -> Node:
        before = self._native.parts.node(address)[1]
        if before:
            self.chain(before)
        return self._node(address)

    def _node(self, address: int) -> Node:
        known = self.nodes.get(address)
        if known is None:
            label, before, latest = self._native.parts.node(address)
            step = self._steps.get(label)
            if step is None:
                step = self._steps[label] = self._native._step_of(label)
            chain = self._chains[before] if before else None
            known = Node(step, chain, step.witnesses[0].instant, latest)
            self.nodes[address] = known
        return known


class _Writing:
    """Python objects as parts of the core's state."""

    def __init__(self, native_run: NativeRun):
        self._native = native_run
        self._batch = EventBatch(native_run._matchers.dictionary)
        self._nodes: dict[int, int] = {}
        self._unions: dict[int, int] = {}
        self._labels: dict[int, int] = {}
        places = native_run._compiled.automaton.places
        self._edges = {
            edge: (number, position)
            for number, place in enumerate(places)
            for position, edge in enumerate(place.edges)
        }

    def _number(self, term: Any) -> int:
        if term is None:
            return 0
        number = self._batch.number(term)
        return self._native._matchers.window.hold(self._batch, number)

    def values(self, live: Sequence[int], env: Sequence[Any]) -> list[int]:
        return [
            env[register] if self._native.counted(register) else self._number(env[register])
            for register in live
        ]

    def union(self, chain: Chain | None, bound: int, since: int) -> list[int]:
        """The members of a group whose last event came at the instant `since` or later."""
        members = reversed(list(_members(chain, bound)))
        return [self.node(node) for node in members if node.last >= since]

    def node(self, top: Node) -> int:
        """A node and all below it, deepest first and without recursion."""
        bound = self._native.core.bound
        todo = [top]
        while todo:
            node = todo[-1]
            if id(node) in self._nodes:
                todo.pop()
                continue
            missing = [m for m in _members(node.before, bound) if id(m) not in self._nodes]
            if missing:
                todo += missing
                continue
            union = 0
            if node.before is not None:
                union = self._unions.get(id(node.before), 0)
                if not union:
                    members = reversed(list(_members(node.before, bound)))
                    union = self._native.parts.put_union([self._nodes[id(m)] for m in members])
                    self._unions[id(node.before)] = union
            self._nodes[id(node)] = self._native.parts.put_node(
                self._label(node.step), union, node.latest
            )
            todo.pop()
        return self._nodes[id(top)]

    def _label(self, step: Step) -> int:
        known = self._labels.get(id(step))
        if known is None:
            (witness,) = step.witnesses
            event = witness.event
            file, _, line = event.origin.rpartition(":")
            dated = event.time.domain == DATE_TIME
            known = self._labels[id(step)] = self._native.parts.put_label(
                *self._edges[step.edge],
                witness.instant,
                event.time.micros,
                dated,
                int(line) if line.isdigit() else 0,
                self._native._streams[event.stream],
                self._native._file(file),
                event.ordinal,
                self._number(event.name),
                0 if dated else self._number(event.time.term),
                list(map(self._number, witness.row)),
            )
        return known


def _members(chain: Chain | None, bound: int) -> Iterator[Node]:
    while chain is not None and chain.latest >= bound:
        if chain.node.latest >= bound:
            yield chain.node
        chain = chain.rest

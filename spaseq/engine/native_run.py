"""One query's automaton on the compiled core.

Events go from their encoded form to complete matches without becoming Python objects; steps,
events and rows are decoded only for the matches that are complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from spaseq.engine._matches import MatchMaker
from spaseq.engine._step import NativeStep
from spaseq.engine.compiled import CompiledQuery
from spaseq.engine.fitness import choosing, filter_codes
from spaseq.gpm.match import Matchers
from spaseq.nfa import native
from spaseq.nfa._best import Best
from spaseq.nfa._complete import due, take
from spaseq.nfa._core import AutomatonCore
from spaseq.nfa._parts import CoreParts
from spaseq.nfa.automaton import Link
from spaseq.nfa.contiguity import Contiguity
from spaseq.nfa.limits import NO_LIMITS, Limits
from spaseq.nfa.registers import FALSE, TRUE, RegisterFile
from spaseq.nfa.tecs import Key, Path, Step, Witnessed
from spaseq.nfa.window import WindowClock
from spaseq.parser import ast
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Timestamp

if TYPE_CHECKING:
    from spaseq.nfa._parts import Label

EVENTS_REMEMBERED = 4096
"""Events of matches that are kept as objects, for the next match they may be part of."""


def native_run(
    compiled: CompiledQuery,
    registers: RegisterFile,
    matchers: Matchers,
    limits: Limits = NO_LIMITS,
) -> NativeRun:
    """The compiled run of a query that is fit for it (`spaseq.engine.fitness`)."""
    plan = compiled.plan
    filters = filter_codes(plan, registers)
    tables = native.tables(plan, compiled.automaton, registers)
    core = AutomatonCore(
        tables,
        matchers.window,
        matchers.dictionary,
        matchers.dictionary.intern(TRUE),
        matchers.dictionary.intern(FALSE),
    )
    core.limit(limits.most_groups, limits.kept, limits.most_steps, limits.shed)
    step = NativeStep(
        core,
        matchers.graph,
        matchers.window,
        [matchers.native(task) for task in compiled.tasks],
        [[code.code for code in some] for some in filters],
    )
    return NativeRun(compiled, registers, matchers, step, tables.closing)


class NativeRun:
    """The automaton of one query: what `AutomatonRun` is, for encoded events."""

    def __init__(
        self,
        compiled: CompiledQuery,
        registers: RegisterFile,
        matchers: Matchers,
        step: NativeStep,
        closing: Sequence[Link],
    ):
        self.compiled = compiled
        self.matchers = matchers
        self.step = step
        self.closing = closing
        """The links to the places, after the automaton's own, where matches wait to the end."""
        self._plan = compiled.plan
        self.streams = {iri: number for number, iri in enumerate(self._plan.streams)}
        self._files: dict[str, int] = {}
        self._events: dict[tuple[int, int], Event] = {}
        """By instant and stream."""
        self._labels: dict[Key, int] = {}
        """A label of each partition that the matches taken last have."""
        self.core = step.core
        self.parts = CoreParts(step.core, matchers.dictionary)
        self.matches = self._maker(_projected(compiled, registers))
        """What makes matches one by one, where the query lets it."""
        mode, limit = choosing(compiled), compiled.plan.output.limit or 1
        self.best = Best(step.core, mode, limit, len(self.streams)) if mode else None
        """What chooses among the matches of an instant without listing them, where it may."""
        self.contiguity = Contiguity(registers)

    # ------------------------------------------------------------------ events

    def open_instant(self, micros: int) -> None:
        """The next instant begins, at a timestamp not before the last one's."""
        self.core.open(micros)

    def feed(self, event: Event, gpms: Sequence[int]) -> None:
        """One event of the open instant."""
        batch, index = self.matchers.encoded(event)
        place = self.streams[event.stream], self.file_number(batch.file)
        self.step.feed(batch, index, *place, gpms)

    def run(self, batch: EventBatch, first: int, gpms: Sequence[int], position: int) -> int:
        """The events of a batch from `first` on, until one completes a match; the next one.

        `position` is how many events the run had before.
        """
        place = self.streams[batch.stream], self.file_number(batch.file)
        return self.step.run(batch, first, *place, gpms, position)

    def close_instant(self) -> None:
        """Nothing more comes at the open instant: what it brought becomes visible."""
        self.core.close()

    def take(self, *, one: bool = False) -> Iterator[Path]:
        """The matches accepted since the last call; `one` for each last step is enough."""
        if not self.core.complete:
            return
        self._labels.clear()
        if len(self._events) > EVENTS_REMEMBERED:
            self._events.clear()
        if self.best is None or one:
            for start, steps, label in take(self.core, self.step_of, one):
                yield self._path(start, steps, label)
            return
        known: dict[int, Step] = {}
        for start, labels in self.best.take():
            for label in labels:
                if label not in known:
                    known[label] = self.step_of(label)
            yield self._path(start, tuple(known[label] for label in labels), labels[-1])

    def due(self, before: int | None) -> Iterator[tuple[int, list[Path]]]:
        """(closing time, matches) of the windows closed before timestamp `before`, or of all."""
        closed: dict[int, list[Path]] = {}
        self._labels.clear()
        for micros, matches in due(self.core, before, self.step_of):
            paths = [self._path(start, steps, label) for start, steps, label in matches]
            closed.setdefault(self.clock.closing(micros), []).extend(paths)
        for closing, paths in closed.items():
            # What is emitted at one closing time may skip what closes at the next.
            yield closing, [path for path in paths if path.start >= self._since(path.key)]

    def _path(self, start: int, steps: tuple[Step, ...], label: int) -> Path:
        key = self.key_of(steps[0])
        self._labels[key] = label
        return Path(start, key, steps)

    def _since(self, key: Key) -> int:
        """The least start of a match that is not skipped."""
        partitions = self.core.partitions
        if partitions is not None and partitions.apart:
            return partitions.since_label(self._labels[key])
        return self.core.skipped

    def key_of(self, step: Step) -> Key:
        """The partition of a match: every row of it binds the partition variables."""
        (witness,) = step.witnesses
        gpm = self._plan.occurrences[witness.occurrence].gpm
        variables = self._plan.gpms[gpm].variables
        return tuple(witness.row[variables.index(name)] for name in self._plan.partition)

    def skip(self, key: Key) -> None:
        """AFTER MATCH SKIP PAST LAST EVENT: only what starts later may still match."""
        if key:
            assert self.core.partitions is not None
            self.core.partitions.skip(self._labels[key])
        else:
            self.core.skip()

    def closing_place(self, guards: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        """The place where matches with these guards wait for the end, and its registers."""
        automaton = self.compiled.automaton
        position = [link.guards for link in self.closing].index(guards)
        registers = native.closing_registers(automaton, self.closing[position])
        return len(automaton.places) + position, registers

    def file_number(self, name: str) -> int:
        """What labels call a file."""
        return self._files.setdefault(name, len(self._files))

    @property
    def clock(self) -> WindowClock:
        """When windows open and close."""
        return WindowClock(self._plan.window)

    # ------------------------------------------------------------------ decoding

    def step_of(self, address: int) -> Step:
        """The step that the label at an address stands for."""
        label = self.parts.label(address)
        place, position, instant = label[:3]
        edge = self.compiled.automaton.places[place].edges[position]
        (occurrence,) = self.compiled.automaton.atoms[edge.atom].occurrences
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

    def _maker(self, columns: Sequence[tuple[str, int]] | None) -> MatchMaker | None:
        """What makes matches of the columns of a SELECT."""
        if columns is None:
            return None
        automaton, plan = self.compiled.automaton, self._plan
        taken = [
            plan.gpms[plan.occurrences[automaton.atoms[edge.atom].occurrences[0]].gpm]
            for place in automaton.places
            for edge in place.edges
        ]
        steps = [(gpm.name, gpm.variables) for gpm in taken]
        return MatchMaker(self.core, self.parts, plan.name, columns, steps, plan.streams)


def _projected(compiled: CompiledQuery, registers: RegisterFile) -> list[tuple[str, int]] | None:
    """The columns of a SELECT with their registers; None where matches need more than that.

    They do where results depend on one another, columns are computed, or duplicates may come.
    """
    plan = compiled.plan
    output = plan.output
    if output.form != "select" or output.distinct or output.limit is not None:
        return None
    if (
        compiled.automaton.waits
        or plan.registers_stream is not None
        or plan.emit not in ("ALL", "STRICT")
        or compiled.automaton.ambiguous
    ):
        return None
    columns = []
    for column in output.columns:
        expression = column.value.expression
        if not isinstance(expression, ast.Var) or expression.name in registers.views:
            return None
        number = registers.number.get(expression.name)
        if number is None or plan.registers[number].kind not in ("value", "last"):
            return None
        columns.append((column.name, number))
    return columns

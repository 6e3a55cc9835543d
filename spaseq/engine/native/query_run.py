"""One query's automaton on the compiled core.

Events go from their encoded form to complete matches without becoming Python objects; steps,
events and rows are decoded only for the matches that are complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeVar

from spaseq.engine._alone import Alone
from spaseq.engine.compiled import CompiledQuery, shared_selection
from spaseq.engine.native._aggregates import NativeAggregates
from spaseq.engine.native._decode import Reading
from spaseq.engine.native._driver import NativeStep
from spaseq.engine.native._matches import MatchMaker
from spaseq.engine.native._push import Pushing
from spaseq.engine.residual_filters import reads_event, tests, valuations
from spaseq.engine.stream_clock import StreamClock
from spaseq.gpm.matchers import Matchers
from spaseq.kb.knowledge import Knowledge
from spaseq.nfa.automaton import Link
from spaseq.nfa.match_path import Key, Path, Step, Witnessed
from spaseq.nfa.native import tables as automaton_tables
from spaseq.nfa.native._automaton import AutomatonCore
from spaseq.nfa.native._complete import due, take
from spaseq.nfa.native._earliest import Earliest
from spaseq.nfa.native._selection import Best
from spaseq.nfa.native._snapshot import CoreParts
from spaseq.nfa.native.register_tables import bound_by
from spaseq.nfa.native.table_types import CoreTables
from spaseq.nfa.registers import FALSE, TRUE, RegisterFile
from spaseq.nfa.replay import LinkedOccurrence
from spaseq.nfa.window import WindowTimes
from spaseq.parser import ast
from spaseq.plan.logical import QueryPlan
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._relevance import Relevance
from spaseq.rdf._window_terms import WindowTerms
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Timestamp
from spaseq.rdf.limits import NO_LIMITS, Limits

if TYPE_CHECKING:
    from spaseq.nfa.native._snapshot import Label

Maker = TypeVar("Maker", bound=MatchMaker)

_MOST = 2**31
"""Of what `LIMIT` keeps; there is no memory for so many."""
EVENTS_REMEMBERED = 4096
"""Events of matches that are kept as objects, for the next match they may be part of."""


def native_run(
    compiled: CompiledQuery,
    registers: RegisterFile,
    occurrences: Sequence[LinkedOccurrence],
    matchers: Matchers,
    limits: Limits = NO_LIMITS,
) -> NativeRun:
    """The compiled run of a query."""
    plan = compiled.plan
    slots = registers.slots()
    filters = [
        tests(occurrence, asked, slots, matchers)
        for occurrence, asked in zip(occurrences, compiled.asked, strict=True)
    ]
    assigned = [valuations(occurrence, slots) for occurrence in occurrences]
    tables = automaton_tables.tables(plan, compiled.automaton, registers)
    looking = {
        occurrence.gpm
        for occurrence, *some in zip(occurrences, filters, assigned, strict=True)
        if any(map(reads_event, chain(*some)))
    }
    recalled = [
        gpm in looking and columns is not None for gpm, columns in enumerate(tables.search.kept)
    ]
    window = matchers.window
    if plan.window.kind == "events" and not matchers.counted:
        # Where it lies among the events is counted for this query alone.
        window = WindowTerms(plan.window.size * tables.windows)
    core = AutomatonCore(
        tables,
        window,
        matchers.dictionary,
        matchers.dictionary.intern(TRUE),
        matchers.dictionary.intern(FALSE),
    )
    core.limit(limits.most_groups, limits.kept, limits.most_steps, limits.shed)
    step = NativeStep(
        core,
        matchers,
        compiled.tasks,
        filters,
        assigned,
        _views(plan, registers),
        NativeAggregates(window, matchers.dictionary, plan.registers),
        [
            [number for number, gpm in enumerate(plan.gpms) if iri in gpm.streams]
            for iri in plan.streams
        ],
        recalled,
        window,
    )
    return NativeRun(compiled, registers, matchers, step, tables, recalled)


def _views(plan: QueryPlan, registers: RegisterFile) -> Sequence[Sequence[tuple[int, int, str]]]:
    """What the filters of each occurrence, and then each BIND, see of registers."""
    filters = [
        frozenset[str]().union(*(condition.reads for condition in occurrence.residual))
        for occurrence in plan.occurrences
    ]
    assigned = [
        assignment.value.reads
        for occurrence in plan.occurrences
        for assignment in occurrence.assignments
    ]
    return [registers.needed_views(reads) for reads in (*filters, *assigned)]


class NativeRun:
    """The automaton of one query on its core: events in, complete matches out."""

    def __init__(
        self,
        compiled: CompiledQuery,
        registers: RegisterFile,
        matchers: Matchers,
        step: NativeStep,
        tables: CoreTables,
        recalled: Sequence[bool],
    ):
        self.compiled = compiled
        self.matchers = matchers
        self.step = step
        self.recalled = recalled
        """For each GPM whether filters look at its events when others are at hand."""
        self.closing: Sequence[Link] = tables.closing
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
        self.tables = tables
        self.kept_registers = tables.kept
        """The registers that the core keeps; the others are for output, which works them out."""
        self._projected = _projected(compiled, registers)
        order = compiled.plan.output.order
        self._order = [(name, registers.number[register]) for name, register in order]
        self.best = self._chooser(shared_selection(compiled))
        """What chooses among the matches of an instant without listing them, where it may."""
        self._earliest = self.best if isinstance(self.best, Earliest) else None
        self.matches: MatchMaker | None = self.made_by(MatchMaker)
        """What makes matches one by one, where the query lets it."""

    def _chooser(self, mode: str) -> Best | Earliest | None:
        if mode == "LIMIT":
            return Earliest(self.core, min(self._plan.output.limit or 1, _MOST), False)
        if mode == "ANY":
            return Earliest(self.core, 1, True)
        return Best(self.core, mode, len(self.streams)) if mode else None

    # ------------------------------------------------------------------ events

    def open_instant(self, micros: int) -> None:
        """The next instant begins, at a timestamp not before the last one's."""
        self.step.at_rest()
        self.core.open(micros)

    def feed(self, event: Event) -> None:
        """One event of the open instant."""
        batch, index = self.matchers.encoded(event)
        self.step.feed(batch, index, *self.numbers_of(event.stream, batch.file))

    def tally(self, batch: EventBatch, position: int, most: int) -> tuple[int, int, int]:
        """A whole batch: events, matches (`most` of each event), witnesses; no object is made."""
        place, skip = self.numbers_of(batch.stream, batch.file), self._plan.skip_past_last
        earliest = None if self.matches is None else self._earliest
        return self.step.tally(batch, 0, *place, position, skip, earliest, most)

    def pushing(
        self, alone: Alone, clock: StreamClock, relevance: Relevance, kb: Knowledge
    ) -> Pushing | None:
        """A batch that pushed events are appended to; None if the query has no match maker."""
        if self.matches is None or clock.time is None or clock.closed is None:
            return None
        (stream,) = self._plan.streams
        return Pushing(
            alone,
            self.matches,
            EventBatch(self.matchers.dictionary, stream),
            relevance,
            kb,
            self._plan.skip_past_last,
            *self.numbers_of(stream, ""),
            clock.events,
            clock.domain == DATE_TIME,
            clock.time.micros,
            clock.ordinals.get(stream, 0),
            clock.closed,
            clock.time_precision,
        )

    def numbers_of(self, stream: str, file: str) -> tuple[int, int]:
        """The numbers by which the core identifies a stream and a file."""
        return self.streams[stream], self.file_number(file)

    def close_instant(self) -> None:
        """Nothing more comes at the open instant: what it brought becomes visible."""
        self.step.at_rest()
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
                    known[label] = self.step_of((label,))
            yield self._path(start, tuple(known[label] for label in labels), labels[-1])

    def due(self, before: int | None) -> Iterator[tuple[int, list[Path]]]:
        """(closing time, matches) of the windows closed before timestamp `before`, or of all."""
        self.step.at_rest()
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
        return self.core.window.skipped

    def key_of(self, step: Step) -> Key:
        """The partition of a match: every row of it binds the partition variables."""
        witness = step.witnesses[0]
        gpm = self._plan.occurrences[witness.occurrence].gpm
        variables = self._plan.gpms[gpm].variables
        return tuple(witness.row[variables.index(name)] for name in self._plan.partition)

    @property
    def contiguity(self) -> NativeRun:
        """Who knows which instants hold events."""
        return self

    def contiguous(self, key: Key, instants: list[int]) -> bool:
        """Whether no other instant with an event lies between successive ones of a match."""
        if not key:
            return all(later - earlier <= 1 for earlier, later in pairwise(instants))
        assert self.core.partitions is not None
        return self.core.partitions.contiguous(self._labels[key], instants)

    def skip(self, path: Path) -> None:
        """AFTER MATCH SKIP PAST LAST EVENT: only what starts after a match may still match."""
        if path.key:
            assert self.core.partitions is not None
            self.core.partitions.skip(self._labels[path.key], path.last + 1)
        else:
            self.core.skip(path.last + 1)

    @property
    def files(self) -> list[str]:
        """What labels call by their positions."""
        return list(self._files)

    def file_number(self, name: str) -> int:
        """What labels call a file."""
        return self._files.setdefault(name, len(self._files))

    @property
    def clock(self) -> WindowTimes:
        """When windows open and close."""
        return WindowTimes(self._plan.window)

    # ------------------------------------------------------------------ decoding

    def step_of(self, addresses: tuple[int, ...]) -> Step:
        """The step that the labels at some addresses stand for."""
        labels = [self.parts.label(address) for address in addresses]
        place, position = labels[0][:2]
        edge = self.compiled.automaton.places[place].edges[position]
        occurrences = self.compiled.automaton.atoms[edge.atom].occurrences
        witnesses = [
            Witnessed(occurrences[label[-2]], self.event_of(label), label[-1], label[2])
            for label in labels
        ]
        return Step(edge, tuple(sorted(witnesses, key=lambda witness: witness.occurrence)))

    def event_of(self, label: Label, *, whole: bool = True) -> Event:
        """The event of a label; of one that is not `whole`, without its name."""
        _, _, instant, micros, dated, line, stream, file, ordinal, name, stamp, _, _ = label
        known = self._events.get((instant, stream)) if whole else None
        if known is None:
            time = Timestamp(micros, DATE_TIME if dated else NUMBER, stamp)
            origin = f"{list(self._files)[file]}:{line}" if line else ""
            known = Event(self._plan.streams[stream], time, ordinal, (), name, origin)
            if whole:
                self._events[instant, stream] = known
        return known

    def made_by(self, kind: type[Maker]) -> Maker | None:
        """A maker of matches of the columns of a SELECT; None where they need more than that."""
        if self._projected is None:
            return None
        automaton, plan = self.compiled.automaton, self._plan
        taken = [
            plan.occurrences[automaton.atoms[edge.atom].occurrences[0]]
            for place in automaton.places
            for edge in place.edges
        ]
        steps = [(plan.gpms[o.gpm].name, bound_by(plan, o)) for o in taken]
        reading = Reading(plan.name, self.tables, self._projected, steps, plan.streams)
        ordering = Reading(plan.name, self.tables, self._order, steps, plan.streams)
        return kind(self.step, self.matchers.dictionary, reading, self._earliest, ordering)


def _projected(compiled: CompiledQuery, registers: RegisterFile) -> list[tuple[str, int]] | None:
    """The columns of a SELECT with their registers; None where matches need more than that.

    They do where results depend on one another, but for `LIMIT`, columns are computed, or
    duplicates may come.
    """
    plan = compiled.plan
    output = plan.output
    if output.form != "select" or output.distinct:
        return None
    if output.limit is not None and (plan.skip_past_last or shared_selection(compiled) != "LIMIT"):
        return None
    if (
        compiled.automaton.waits
        or plan.registers_stream is not None
        or not (plan.emit == "ALL" or automaton_tables.joins_strictly(plan, compiled.automaton))
        or compiled.automaton.ambiguous
        or any(atom.kind != "single" for atom in compiled.automaton.atoms)
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

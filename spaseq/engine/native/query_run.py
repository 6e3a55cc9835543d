"""`NativeRun`: the automaton of one query in the compiled core.

Encoded events lead to complete matches without Python objects. Steps, events and rows are decoded
for complete matches only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import pyoxigraph as ox

from spaseq.engine.compiled import CompiledQuery, shared_selection
from spaseq.engine.native._driver import NativeAggregates, NativeStep
from spaseq.engine.native._groups import (
    GatheredGroupMaker,
    GroupColumns,
    GroupGathering,
    SolutionMaker,
)
from spaseq.engine.native._matches import Gathering, MatchDecoder, MatchMaker
from spaseq.engine.native._push import Alone, Pushing
from spaseq.engine.projection import projection
from spaseq.engine.residual_filters import reads_event, tests, valuations
from spaseq.engine.stream_clock import StreamClock
from spaseq.engine.tracing import Tracer, traced
from spaseq.gpm.matchers import Matchers
from spaseq.kb.knowledge import Knowledge
from spaseq.nfa.automaton import Link
from spaseq.nfa.ended_starts import EndedStarts
from spaseq.nfa.match_path import Key, Path, Step, Witnessed
from spaseq.nfa.native import tables as automaton_tables
from spaseq.nfa.native._automaton import AutomatonCore, CoreParts
from spaseq.nfa.native._selection import Closing, Selection, pop_complete
from spaseq.nfa.native.register_tables import bound_by
from spaseq.nfa.native.table_types import CoreTables
from spaseq.nfa.registers import FALSE, TRUE, RegisterFile
from spaseq.nfa.replay import LinkedOccurrence
from spaseq.nfa.window import WindowTimes
from spaseq.plan.logical import QueryPlan
from spaseq.plan.templates import is_hidden, shown_name
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Term, Timestamp
from spaseq.rdf.limits import NO_LIMITS, Limits
from spaseq.rdf.native._terms import EventBatch, Relevance, WindowTerms

if TYPE_CHECKING:
    from spaseq.engine.native._groups import NativeGroups
    from spaseq.engine.output import OutputStage
    from spaseq.nfa.native._automaton import Label

Maker = TypeVar("Maker", bound=MatchMaker)
Gatherer = TypeVar("Gatherer", bound=Gathering)
_Shown: TypeAlias = tuple[int, int, int, int, int, int, int, int, Sequence[Term | None]]
"""An event of a match, see `ResultReader.shown`."""

_LIMIT_MAX = 2**31
"""The greatest number of matches that `LIMIT` retains; more would not fit in memory."""
EVENTS_REMEMBERED = 4096
"""The number of decoded events that are cached for further matches."""


def native_run(
    compiled: CompiledQuery,
    registers: RegisterFile,
    occurrences: Sequence[LinkedOccurrence],
    matchers: Matchers,
    limits: Limits = NO_LIMITS,
    files: dict[str, int] | None = None,
) -> NativeRun:
    """The compiled run of a query; `files` has the numbers of files, which queries may share."""
    plan = compiled.plan
    slots = registers.slots()
    filters = [
        tests(occurrence, asked, slots, matchers)
        for occurrence, asked in zip(occurrences, compiled.asked, strict=True)
    ]
    assigned = [valuations(occurrence, slots) for occurrence in occurrences]
    tables = automaton_tables.tables(plan, compiled.automaton, registers)
    readers = {
        occurrence.gpm
        for occurrence, *some in zip(occurrences, filters, assigned, strict=True)
        if any(map(reads_event, chain(*some)))
    }
    recalled = [
        gpm in readers and columns is not None for gpm, columns in enumerate(tables.search.kept)
    ]
    window = matchers.window
    if plan.window.counts_events and not matchers.counted:
        # The query counts its own events.
        window = WindowTerms(plan.window.size * tables.windows)
    core = AutomatonCore(
        tables,
        window,
        matchers.dictionary,
        matchers.dictionary.intern(TRUE),
        matchers.dictionary.intern(FALSE),
    )
    core.limit(limits.most_groups, limits.kept, limits.most_steps, limits.shed)
    core.limit_matches(limits.most_matches)
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
    return NativeRun(
        compiled, registers, matchers, step, tables, recalled, {} if files is None else files
    )


def _views(plan: QueryPlan, registers: RegisterFile) -> Sequence[Sequence[tuple[int, int, str]]]:
    """The register views that the filters of each occurrence read, then those of each BIND."""
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
    """The automaton of one query: consumes events, returns complete matches."""

    def __init__(
        self,
        compiled: CompiledQuery,
        registers: RegisterFile,
        matchers: Matchers,
        step: NativeStep,
        tables: CoreTables,
        recalled: Sequence[bool],
        files: dict[str, int],
    ):
        self.compiled = compiled
        self.matchers = matchers
        self.step = step
        self.recalled = recalled
        """Per GPM: whether filters read its events after their instant."""
        self.closing: Sequence[Link] = tables.closing
        """The links to the closing places, in which matches wait for the end of their window."""
        self._plan = compiled.plan
        self.streams = {iri: number for number, iri in enumerate(self._plan.streams)}
        self._files = files
        self._events: dict[tuple[int, int], Event] = {}
        """By instant and stream."""
        self._labels: dict[Key, int] = {}
        """A label of each partition among the last matches."""
        self._decoder: MatchDecoder | None = None
        """What the decoders of all queries that share the automaton have in common."""
        self.core = step.core
        self.parts = CoreParts(step.core, matchers.dictionary)
        self.tables = tables
        self.kept_registers = tables.kept
        """The registers that the core stores; the output stage computes the others."""
        self._projection = projection(compiled, registers)
        self._projected = (
            None if self._projection is None else self._projection.registers(tables.cells)
        )
        order = compiled.plan.output.order
        self._order = [(name, registers.number[register]) for name, register in order]
        mode = shared_selection(compiled)
        limit = min(compiled.plan.output.limit or 1, _LIMIT_MAX) if mode == "LIMIT" else 1
        self.selection = Selection(step.core, mode, limit) if mode else None
        """Selects among the matches of an instant without listing them, if possible."""
        skip_to = compiled.plan.skip_to
        self.ended = None if skip_to is None else EndedStarts(skip_to)
        """The starts from which `AFTER MATCH SKIP TO` lets no further match come."""
        self.gathering = self._gathering()
        """Gathers the matches of an instant, if results depend on each other or are computed."""
        self.last_start: tuple[int, int] | None = None
        """(instant, microseconds) after which no match may start; None: there is no such bound."""
        self.matches: MatchMaker | None = self.made_by(MatchMaker)
        """Makes matches one by one; None if the query does not allow it (`projection`)."""
        if traced():
            self.core.lazy_join.join(False)
            self.core.instant.trace(Tracer(self))

    # ------------------------------------------------------------------ events

    def open_instant(self, micros: int) -> None:
        """Begin the next instant; its timestamp is not less than the last one."""
        self.step.check_exclusive()
        self.core.open(micros)

    def feed(self, event: Event) -> None:
        """Process one event of the open instant."""
        batch, index = self.matchers.encoded(event)
        self.step.feed(batch, index, *self.numbers_of(event.stream, batch.file))

    def tally(self, batch: EventBatch, position: int, most: int) -> tuple[int, int, int]:
        """Count a batch without making objects: (events, matches, witnesses).

        At most `most` matches of each event are counted. No run calls this: it enumerates the
        matches of the automaton alone, as benchmarks measure them and tests of the core count them.
        """
        place, skip = self.numbers_of(batch.stream, batch.file), self._plan.skip_past_last
        selection = None if self.matches is None else self.selection
        return self.step.tally(batch, 0, *place, position, skip, selection, most)

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

    def start_until(self, instant: int, micros: int) -> None:
        """Let no match start after an instant, whose time is at most `micros`."""
        self.last_start = instant, micros
        self.core.window.last_start = instant

    def close_instant(self) -> None:
        """End the open instant; its partial matches become visible to later events."""
        self.step.check_exclusive()
        self.core.close()

    def take(self, *, one: bool = False) -> Iterator[Path]:
        """The matches accepted since the last call; with `one`, one match per last step."""
        if not self.core.complete:
            return
        self._labels.clear()
        if len(self._events) > EVENTS_REMEMBERED:
            self._events.clear()
        if self.selection is None or one:
            for start, steps, label in pop_complete(self.core, self.step_of, one):
                yield self._path(start, steps, label)
            return
        known: dict[int, Step] = {}
        for start, labels in self.selection.pop_selected():
            for label in labels:
                if label not in known:
                    known[label] = self.step_of((label,))
            yield self._path(start, tuple(known[label] for label in labels), labels[-1])

    def due(self, before: int | None) -> Iterator[tuple[int, bool, list[Path]]]:
        """The matches of the windows and deadlines before `before`, or of all.

        Yields (time, whether the matches precede the events of that time, matches) in the order of
        times. The matches of a deadline and those of the windows that close at its time come
        together.
        """
        self.step.check_exclusive()
        early = self._plan.window.tumbles
        closing = Closing(self.core, before)
        while closing.advance():
            self._labels.clear()
            paths = list(self.take()) if closing.is_deadline else []
            for start, steps, label in closing.pop_waiting(self.step_of):
                path = self._path(start, steps, label)
                # Matches of one closing time may cause AFTER MATCH to skip matches of the next.
                if path.start >= self._since(path.key):
                    paths.append(path)
            yield closing.micros, early and not closing.is_deadline, paths

    def _path(self, start: int, steps: tuple[Step, ...], label: int) -> Path:
        key = self.key_of(steps[0])
        self._labels[key] = label
        return Path(start, key, steps)

    def _since(self, key: Key) -> int:
        """The least start of a match of a partition that AFTER MATCH does not skip."""
        partitions = self.core.partitions
        if partitions is not None and partitions.apart:
            return partitions.since_label(self._labels[key])
        return self.core.window.skipped

    def key_of(self, step: Step) -> Key:
        """The partition of a match, from one step; every row binds the partition variables."""
        witness = step.witnesses[0]
        gpm = self._plan.occurrences[witness.occurrence].gpm
        variables = self._plan.gpms[gpm].variables
        return tuple(witness.row[variables.index(name)] for name in self._plan.partition)

    @property
    def contiguity(self) -> NativeRun:
        """The object that tests contiguity: the run itself."""
        return self

    def contiguous(self, key: Key, instants: list[int]) -> bool:
        """Whether no other instant with an event lies between successive ones of a match."""
        if not key:
            return all(later - earlier <= 1 for earlier, later in pairwise(instants))
        assert self.core.partitions is not None
        return self.core.partitions.contiguous(self._labels[key], instants)

    def skip(self, path: Path) -> None:
        """AFTER MATCH SKIP PAST LAST EVENT: later matches start after the end of a match."""
        if path.key:
            assert self.core.partitions is not None
            self.core.partitions.skip(self._labels[path.key], path.last + 1)
        else:
            self.core.skip(path.last + 1)

    @property
    def files(self) -> list[str]:
        """The file names, indexed by the file numbers of labels."""
        return list(self._files)

    def file_number(self, name: str) -> int:
        """The number of a file in labels."""
        return self._files.setdefault(name, len(self._files))

    @property
    def clock(self) -> WindowTimes:
        """The opening and closing times of windows."""
        return WindowTimes(self._plan.window)

    # ------------------------------------------------------------------ decoding

    def step_of(self, addresses: tuple[int, ...]) -> Step:
        """The step with the labels at some addresses."""
        labels = [self.parts.label(address) for address in addresses]
        place, position = labels[0][:2]
        edge = self.compiled.automaton.places[place].edges[position]
        occurrences = self.compiled.automaton.atoms[edge.atom].occurrences
        if not occurrences:
            return Step(edge, ())  # a deadline that begins an iteration
        witnesses = [
            Witnessed(occurrences[label[-2]], self.event_of(label), label[-1], label[2])
            for label in labels
        ]
        return Step(edge, tuple(sorted(witnesses, key=lambda witness: witness.occurrence)))

    def event_of(self, label: Label, *, whole: bool = True) -> Event:
        """The event of a label, without its name unless `whole`."""
        _, _, instant, micros, dated, line, stream, file, ordinal, name, stamp, _, _ = label
        known = self._events.get((instant, stream)) if whole else None
        if known is None:
            time = Timestamp(micros, DATE_TIME if dated else NUMBER, stamp)
            origin = f"{list(self._files)[file]}:{line}" if line else ""
            known = Event(self._plan.streams[stream], time, ordinal, (), name, origin)
            if whole:
                self._events[instant, stream] = known
        return known

    def maker_of_events(self, kind: type[Maker]) -> Maker:
        """A maker of matches without bindings."""
        return self._maker(kind, [], self._plan.shown)

    def made_by(
        self, kind: type[Maker], name: str | None = None, columns: Sequence[str] | None = None
    ) -> Maker | None:
        """A maker of matches; None if Python lists them, or if it cannot write their form.

        Args:
            kind: The class of the maker.
            name: The name of the query in the matches, if it is not the plan's.
            columns: Those of this query's columns that it selects; None for all.
        """
        if self._projected is None or self._plan.output.form not in kind.forms:
            return None
        selected = self._projected if columns is None else self._selected(columns)
        shown = self._plan.shown if name is None else name
        return self._maker(kind, selected, shown, self.gathering)

    def maker_of_groups(
        self, groups: NativeGroups | None, columns: GroupColumns, stage: OutputStage
    ) -> GatheredGroupMaker:
        """A maker of the matches of sliding groups, which gathers their results.

        Args:
            groups: The groups in the core; None if Python keeps them.
            columns: The columns of the query.
            stage: Its output stage.
        """
        gathering = self._gathering_by(GroupGathering, ())
        gathering.arrange_with(stage)
        gathering.solve_with(SolutionMaker(groups, self.decoder([]), columns, stage))
        return self._maker(GatheredGroupMaker, [], self._plan.shown, gathering)

    def _gathering(self) -> Gathering | None:
        if self._projection is None or not self._projection.gathers:
            return None
        return self._gathering_by(Gathering, self._projection.template or self._projected or ())

    def _gathering_by(self, kind: type[Gatherer], solving: Sequence[tuple[str, int]]) -> Gatherer:
        selection, plan = self.selection, self._plan
        if plan.emit == "ALL" and plan.skip_past_last:
            selection = None  # matches that LIMIT drops end partial matches too
        return kind(self.core, selection, self.decoder(solving), self.decoder(self._order))

    def _selected(self, columns: Sequence[str]) -> list[tuple[str, int]]:
        registers = dict(self._projected or ())
        return [(column, registers[column]) for column in columns]

    def reader(self, name: str, columns: Sequence[str]) -> MatchDecoder:
        """Decodes matches as those of a query that shares the automaton.

        Args:
            name: The name of the query.
            columns: Those of this query's columns that it selects.
        """
        return self.decoder(self._selected(columns), name)

    def decoder(self, columns: Sequence[tuple[str, int]], name: str = "") -> MatchDecoder:
        """What decodes matches with some columns, each with its register."""
        if self._decoder is None:
            self._decoder = self._first_decoder()
        return MatchDecoder(name or self._plan.shown, self.tables, columns, (), (), self._decoder)

    def _first_decoder(self) -> MatchDecoder:
        automaton, plan = self.compiled.automaton, self._plan
        patterns = [
            (
                number,
                shown_name(plan.gpms[occurrence.gpm].name),
                tuple(None if is_hidden(bound) else bound for bound in bound_by(plan, occurrence)),
            )
            for number, occurrence in enumerate(plan.occurrences)
        ]
        steps = [
            # A deadline takes no event; its place in the list is never read.
            [patterns[number] for number in automaton.atoms[edge.atom].occurrences or (0,)]
            for place in automaton.places
            for edge in place.edges
        ]
        return MatchDecoder(plan.shown, self.tables, (), steps, plan.streams)

    def _maker(
        self,
        kind: type[Maker],
        projected: list[tuple[str, int]],
        name: str,
        gathering: Gathering | None = None,
    ) -> Maker:
        reading, ordering = self.decoder(projected, name), self.decoder(self._order)
        maker = kind(
            self.step,
            self.matchers.dictionary,
            reading,
            self.selection,
            ordering,
            gathering,
        )
        if self.ended is not None:
            maker.end_starts(self.ended)
        return maker

    def witnesses_of(self, events: Iterable[_Shown]) -> list[Witnessed]:
        """The witnesses of a match that `ResultReader.shown` describes."""
        edges = [edge for place in self.compiled.automaton.places for edge in place.edges]
        files, found = self.files, []
        for edge, micros, dated, line, stream, file, ordinal, instant, terms in events:
            (occurrence,) = self.compiled.automaton.atoms[edges[edge].atom].occurrences
            stamp, name, *row = terms
            event = self._events.get((instant, stream))
            if event is None:
                time = Timestamp(micros, DATE_TIME if dated else NUMBER, cast("ox.Literal", stamp))
                origin = f"{files[file]}:{line}" if line else ""
                event = Event(
                    self._plan.streams[stream],
                    time,
                    ordinal,
                    (),
                    cast("ox.NamedNode", name),
                    origin,
                )
                self._events[instant, stream] = event
            found.append(Witnessed(occurrence, event, tuple(row), instant))
        return found

"""The matchers of all queries of a run, and the requests that they need from remote KBs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from spaseq.engine.compiled import CompiledQueries, CompiledQuery, counts_events
from spaseq.engine.entailment import Closure, Entailed, Seen
from spaseq.engine.kb_prefetch import Holder, add_sources
from spaseq.errors import ChangeError, KbError
from spaseq.gpm.bind_join import BindJoin
from spaseq.gpm.matchers import Matchers
from spaseq.gpm.named_graphs import NamedGraphs
from spaseq.gpm.pattern import Pattern
from spaseq.gpm.relevance import Uses, outside, uses
from spaseq.kb.knowledge import Knowledge
from spaseq.nfa.window import LAST_MOMENT
from spaseq.nfa.wiring import time_back, windows_back
from spaseq.parser import ast
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.entailment import Rules
from spaseq.rdf.event import Event
from spaseq.rdf.limits import Limits
from spaseq.rdf.native._terms import EventBatch

_WHOLE = "a query that reads what another registers"
"""Why the KB relations of a pattern must be fetched whole."""


class EventRows:
    """The matchers of a run; queries with equal GPMs share one."""

    def __init__(self, program: CompiledQueries, kb: Knowledge, entailed: Entailed, limits: Limits):
        self._limits = limits
        self._programs: Callable[[], CompiledQueries] = lambda: program
        self._kb = kb
        self._entailed = entailed
        self.matchers = self._matchers(None)
        self._known_joins: dict[str, list[BindJoin]] | None = self._by_stream()
        self._holders: Callable[[], Iterable[Holder]] = tuple

    @property
    def _program(self) -> CompiledQueries:
        return self._programs()

    def _matchers(self, before: Matchers | None, new: Collection[int] = ()) -> Matchers:
        """New matchers for the present graphs; `before` did not have the patterns `new`."""
        program = self._program
        counted = counts_events(program.queries) and (before is None or before.counted)
        return Matchers(
            program.patterns,
            self._kb,
            expressions_of(program.queries),
            _horizon(program.queries, counted),
            counted,
            dict.fromkeys(_derived_patterns(program), _WHOLE),
            self._entailed,
            before,
            self._limits,
            new,
        )

    # ------------------------------------------------------------------ the KB

    @property
    def _joins(self) -> dict[str, list[BindJoin]]:
        """Stream → the bind joins with remote graphs that its events may need."""
        if self._known_joins is None:
            self._known_joins = self._by_stream()
            self._prefetch()
        return self._known_joins

    def _by_stream(self) -> dict[str, list[BindJoin]]:
        joins: dict[str, list[BindJoin]] = {}
        for query in self._program.queries:
            self._enter_joins(query, joins)
        return joins

    def _enter_joins(self, query: CompiledQuery, joins: dict[str, list[BindJoin]]) -> None:
        for gpm, task in zip(query.plan.gpms, query.tasks, strict=True):
            for join in self.matchers.joins(task):
                for stream in gpm.streams:
                    some = joins.setdefault(stream, [])
                    if not any(join is other for other in some):
                        some.append(join)

    def rebuild(self, program: CompiledQueries, new: Collection[int]) -> None:
        """Have new matchers for a changed program; automata that use the former are rebuilt.

        Args:
            program: The program.
            new: The numbers of the patterns that it did not have, or that nothing used.

        Raises:
            KbError: if the KB cannot supply what the patterns need; `parts` undoes the change.
        """
        self._programs = lambda: program
        self.matchers = self._matchers(self.matchers, new)
        self._known_joins = None

    @property
    def parts(self) -> tuple[Any, ...]:
        """The parts that `rebuild` replaces; set them to undo a change that has failed."""
        return self._programs, self.matchers, self._known_joins

    @parts.setter
    def parts(self, parts: tuple[Any, ...]) -> None:
        self._programs, self.matchers, self._known_joins = parts

    def add(
        self,
        queries: Sequence[CompiledQuery],
        other: CompiledQuery | None,
        new: Mapping[int, Pattern],
        derived: Collection[int],
    ) -> bool:
        """Match the patterns of new queries, before `follow`.

        Cost: that of these queries, whatever the number of the others.

        Args:
            queries: The new queries.
            other: Another query of the run afterwards, if there is one.
            new: Their patterns that the run does not have, or that nothing uses, by number.
            derived: The patterns of those that read registered streams.

        Returns:
            False if there must be new matchers (`rebuild`).

        Raises:
            KbError: if the KB cannot supply what the patterns need.
        """
        matchers = self.matchers
        if matchers.counted and not counts_events(queries if other is None else (*queries, other)):
            return False
        for number, pattern in sorted(new.items()):
            if not matchers.put(number, pattern, _WHOLE if number in derived else ""):
                return False
        matchers.use(list(new.values()), expressions_of(queries))
        matchers.widen(_horizon(queries, matchers.counted))
        return True

    def follow(self, program: Callable[[], CompiledQueries], *, left: bool) -> None:
        """Continue with a program for which `add` has matched the patterns of new queries.

        Args:
            program: Gives the program.
            left: Whether a query has left the run.
        """
        self._programs = program
        if left and self._known_joins:
            self._known_joins = None  # they are listed when they are needed

    def prefetch(self, holders: Callable[[], Iterable[Holder]]) -> None:
        """Add the keys that partial matches of queries hold to the requests of the KB.

        Args:
            holders: Lists the queries.
        """
        self._holders = holders
        self._prefetch()

    def _prefetch(self) -> None:
        for joins in self._joins.values():
            for join in joins:
                join.ahead = tuple
        if self._joins:
            add_sources(self._holders(), self.matchers.joins)

    def prefetch_also(self, query: Holder) -> None:
        """As `prefetch`, also for a query that is added."""
        if self._known_joins is None:
            return  # they are listed when they are needed
        self._enter_joins(query.compiled, self._known_joins)
        if self._known_joins:
            add_sources([query], self.matchers.joins)

    def renew(self, closures: Mapping[Seen, Closure]) -> None:
        """Adopt the present KB. New rules of entailment require new matchers.

        Raises:
            KbError: if the patterns cannot be matched over the KB.
        """
        after = {seen: (closure.kb, closure.rules) for seen, closure in closures.items()}
        before = {seen: (graphs.closed, graphs.rules) for seen, graphs in self._entailed.items()}
        if any(after[seen][1] is not rules for seen, (_, rules) in before.items()):
            try:
                self._set_closures(after)
                self.matchers = self._matchers(self.matchers)
            except BaseException:
                self._set_closures(before)
                raise
        else:
            self.matchers.fill(expressions_of(self._program.queries))
        self._known_joins = self._by_stream()
        add_sources(self._holders(), self.matchers.joins)

    def _set_closures(self, closures: Mapping[Seen, tuple[NamedGraphs, Rules]]) -> None:
        for seen, (closed, rules) in closures.items():
            self._entailed[seen].replace(closed, rules)

    def prepare(self, batch: EventBatch, hold: bool) -> bool:
        """Request what the events of a batch need from the KB; False if a request failed.

        Vectorized functions are called for the events of the batch.
        """
        self.matchers.collect([batch])
        joins = self._joins.get(batch.stream)
        if not joins:
            return True
        errors = [join.prepare(batch, hold) for join in joins]
        return not any(errors)

    def asks(self, stream: str) -> bool:
        """Whether events of a stream may need requests of a remote KB."""
        return bool(self._joins.get(stream))

    def ask(self, events: Sequence[Event]) -> None:
        """Request what some events need from the KB, in few requests."""
        for stream, joins in self._joins.items():
            some = [e for e in events if e.stream == stream and not isinstance(e, EncodedEvent)]
            if len(some) > 1:
                batch = self.matchers.encode(some)
                for join in joins:
                    join.request(batch)

    def refusal(self, event: Event, hold: bool) -> tuple[KbError, bool] | None:
        """(error of the KB, whether the run skips the event); None if the event is ready."""
        joins = self._joins.get(event.stream)
        if not joins or not event.size:
            return None
        batch, index = self.matchers.encoded(event)
        for join in joins:
            error = join.prepare_one(batch, index, hold)
            if error is not None:
                return error, join.relation.skips
        return None

    def ready(self, event: Event) -> None:
        """Fill the tables of the matchers for an event that `refusal` has passed."""
        refused = self.refusal(event, True)
        if refused is not None:
            raise refused[0]

    def evaluated(self) -> int:
        """The number of evaluations of a GPM over an event so far."""
        return sum(map(self.matchers.tried, range(len(self.matchers.patterns))))


def check_graphs(program: CompiledQueries, graphs: Sequence[str]) -> None:
    """Check that the KB has every graph that a query names.

    Raises:
        KbError: if a graph is missing.
    """
    absent = [iri for iri in program.kb_graphs if iri not in graphs]
    if absent:
        given = ", ".join(f"<{iri}>" for iri in graphs) or "none"
        raise KbError(
            f"the query reads the KB graph <{absent[0]}> (FROM), but it was not given; "
            f"graphs given: {given}. Name a file for it: --kb '{absent[0]}=FILE' (kb= in Python)"
        )


def check_uses(queries: Iterable[CompiledQuery], patterns: Iterable[Pattern], known: Uses) -> None:
    """Check that readers keep the triples that some queries and new patterns use.

    Args:
        queries: The queries.
        patterns: The new patterns.
        known: The uses of the triples that the readers keep.

    Raises:
        ChangeError: if they drop some.
    """
    nodes = [node for each in patterns for node in (each.program.pattern, *each.filters)]
    missing = outside(uses((*nodes, *expressions_of(queries))), known)
    if missing is not None:
        predicate, value = missing
        what = "any triple" if predicate is None else f"triples of {predicate}"
        what += "" if value is None else f" with {value}"
        raise ChangeError(
            f"a query needs {what}, which readers of this run drop (`relevance`), since no "
            "query used them when it began: start the run with prune=False"
        )


def expressions_of(queries: Iterable[CompiledQuery]) -> tuple[ast.Node, ...]:
    """The expressions over several events, and those of the results."""
    plans = [query.plan for query in queries]
    conditions = [
        condition.expression
        for plan in plans
        for occurrence in plan.occurrences
        for condition in occurrence.conditions
    ]
    shown = [column.value for plan in plans for column in plan.output.columns]
    return (*conditions, *shown)


def _derived_patterns(program: CompiledQueries) -> set[int]:
    """The patterns of queries that read registered streams."""
    written = program.written
    readers = [query for query in program.queries if not written.isdisjoint(query.plan.streams)]
    return {task for query in readers for task in query.tasks}


def _horizon(queries: Sequence[CompiledQuery], counted: bool) -> int:
    """The greatest distance to an event that the run still reads, in microseconds or events."""
    if any(query.plan.window.is_endless for query in queries):
        return LAST_MOMENT
    reached = (
        query.plan.window.size * windows_back(query.automaton)
        # The number of events per time is known only when they arrive; see
        # `NativeStep._keep_terms`.
        + (0 if counted else max(time_back(query.plan, query.automaton), 0))
        for query in queries
        if (query.plan.window.counts_events if counted else query.plan.window.is_of_time)
    )
    return min(max(reached, default=0), LAST_MOMENT)

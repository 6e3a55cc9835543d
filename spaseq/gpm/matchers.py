"""The graph patterns of a run, matched against one event after the other.

All patterns share one dictionary and one summary graph: an event is encoded and split into views
once, and each pattern is matched at most once per event. Patterns that have no native form, and
filters from the first that has none, run on operators in Python.

Invariant: every permanent term is in the dictionary before the first batch is created, so a
`Matchers` is complete when it is constructed, or after `put` and `use`. A reader that uses
`relevance` drops triples that no pattern can use. Cost: see `_match_event` of the native matcher
and `spaseq.gpm.python.evaluator`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

from spaseq.errors import EventError
from spaseq.gpm import algebra
from spaseq.gpm.bind_join import BindJoin, KbTables
from spaseq.gpm.entailment import inputs, widened
from spaseq.gpm.named_graphs import EntailedGraphs, NamedGraphs
from spaseq.gpm.native._matcher import Deriver, NativeMatcher, SummaryGraph
from spaseq.gpm.native.flatten import FlatPattern, flatten
from spaseq.gpm.pattern import NativePattern, Pattern
from spaseq.gpm.plan_text import Observed
from spaseq.gpm.program import GpmProgram
from spaseq.gpm.python.calls import Calls
from spaseq.gpm.python.entry import Truth, compile_truth
from spaseq.gpm.python.evaluator import Evaluator
from spaseq.gpm.python.remote import fetch
from spaseq.gpm.python.row_operators import Row
from spaseq.gpm.python.scope import Errors, Scope
from spaseq.gpm.python.work import Work
from spaseq.gpm.relevance import Uses, outside, uses
from spaseq.parser import ast
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.entailment import View
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.event import DATE_TIME, Event, Term
from spaseq.rdf.limits import NO_LIMITS, LimitReached, Limits
from spaseq.rdf.native._terms import Dictionary, EventBatch, Relevance, WindowTerms
from spaseq.rules import enabled

_MOST_VIEWS = 0xFFFE
"""The greatest number of views of a summary graph."""
_PLAIN: Mapping[tuple[str, ...] | None, EntailedGraphs] = {}


class Matchers:
    """Evaluates patterns over events.

    Args:
        patterns: numbered by their position.
        kb: the background graphs.
        others: further expressions over events (EXISTS in conditions across events).
        horizon: the age of the oldest event whose terms are still needed.
        counted: whether the horizon is a number of events; otherwise it is in microseconds.
        whole: patterns whose KB relations must be fetched whole, with the reason.
        entailed: by the KB graphs that a pattern sees, those graphs under entailment.
        before: the matchers of the same patterns over earlier graphs, which these ones continue.
            If the positions differ, their window is not continued.
        limits: the bounds on steps and memory, for each pattern separately.
        new: the patterns that `before` did not have.

    Raises:
        KbError: if the KB cannot supply what the patterns need.
    """

    def __init__(
        self,
        patterns: Sequence[Pattern],
        kb: NamedGraphs | None,
        others: Iterable[ast.Node] = (),
        horizon: int = 0,
        counted: bool = False,
        whole: Mapping[int, str] | None = None,
        entailed: Mapping[tuple[str, ...] | None, EntailedGraphs] = _PLAIN,
        before: Matchers | None = None,
        limits: Limits = NO_LIMITS,
        new: Collection[int] = (),
    ):
        self._limits = limits
        self.calls: Calls = Calls() if before is None else before.calls
        """The registered functions that the run calls."""
        self._kb = kb
        self._entailed = entailed
        self.patterns = [
            widened(pattern, entailed[pattern.program.kb_graphs].rules) if entailed else pattern
            for pattern in patterns
        ]
        self.dictionary: Dictionary = Dictionary() if before is None else before.dictionary
        self._horizon = horizon
        self.counted: bool = counted
        self.window: WindowTerms = (
            WindowTerms(horizon) if before is None or before.counted != counted else before.window
        )
        self.window.widen(horizon)
        self.graph, self._views = self._summary()
        self._native: list[NativeMatcher | None] = []
        self._tables: dict[int, KbTables] = {}
        self._collectors: list[NativeMatcher] = []
        """More matchers of the patterns that call vectorized functions; see `Calls.collect`."""
        self._collected: tuple[int, ...] = ()
        for number, pattern in enumerate(self.patterns):
            self._native.append(self._matcher(number, pattern, (whole or {}).get(number, "")))
        self._evaluators = [self._evaluator(n, p) for n, p in enumerate(self.patterns)]
        self._required = list(map(self._predicates, self._evaluators))
        self._tests = [_tests(pattern) for pattern in self.patterns]
        others = tuple(others)
        asking = (*(p.program.pattern for p in patterns), *_conditions(patterns), *others)
        used: Uses = None
        if enabled("pruning"):
            used = inputs(g.rules for g in entailed.values()) if entailed else uses(asking)
        known = before if before is not None and outside(used, before.used) is None else None
        self.used: Uses = used if known is None else known.used
        self._relevance: Relevance | None = (
            Relevance(self.dictionary, used) if known is None else known.relevance
        )
        self._useful: tuple[Uses, frozenset[Term] | None] = self.used, _predicates_of(used)
        """`used`, and the predicates of the triples to keep."""
        self._batch = EventBatch(self.dictionary)
        self._alone: Event | None = None
        """The event in that batch."""
        self._loaded: tuple[EventBatch, int] | None = None
        self._event: Event | None = None
        self._evaluated: tuple[Event | None, dict[int, tuple[list[Row], list[Row]]]] = None, {}
        """The last event that Python evaluated, and its rows, by pattern."""
        earlier = [None if n in new else before for n in range(len(patterns))]
        self._tried = [0 if e is None else e.tried(n) for n, e in enumerate(earlier)]
        self._found = [0 if e is None else e.row_count(n) for n, e in enumerate(earlier)]
        self._untrue = [[0] * len(tests) for tests in self._tests]
        self._untrue_before = [[] if e is None else e.untrue(n) for n, e in enumerate(earlier)]
        self._errors = [_no_errors(tests) for tests in self._tests]
        self._errors_before: list[Errors] = [
            {} if e is None else e.errors(n) for n, e in enumerate(earlier)
        ]
        self.fill(others)

    # ------------------------------------------------------------------ changes

    def put(self, number: int, pattern: Pattern, whole: str = "") -> bool:
        """Match another pattern: the next one, or one in place of a pattern that nothing uses.

        Batches that were encoded before need `EventBatch.refit`.

        Args:
            number: Its number.
            pattern: The pattern.
            whole: Why its KB relations must be fetched whole; None if they need not be.

        Returns:
            False if new matchers are required: under entailment, for the first pattern with a
            variable as predicate, and beyond the number of views. In this case nothing has changed.

        Raises:
            KbError: if the KB cannot supply what the pattern needs.
        """
        keys = _keys_of([pattern])
        more = [key for key in keys if not isinstance(key, int) and key not in self._views]
        if (
            self._entailed
            or (not self.graph.whole and any(map(_is_open, keys)))
            or self.graph.view_count + len(more) > _MOST_VIEWS
        ):
            return False
        first = self.graph.view_count
        self.graph.extend(more)
        self._views.update({key: view for view, key in enumerate(more, first)})
        self._tables.pop(number, None)
        matcher = self._matcher(number, pattern, whole)
        evaluator = self._evaluator(number, pattern)
        tests = _tests(pattern)
        lists: Sequence[tuple[list[Any], Any]] = (
            (self.patterns, pattern),
            (self._native, matcher),
            (self._evaluators, evaluator),
            (self._required, self._predicates(evaluator)),
            (self._tests, tests),
            (self._tried, 0),
            (self._found, 0),
            (self._untrue, [0] * len(tests)),
            (self._untrue_before, []),
            (self._errors, _no_errors(tests)),
            (self._errors_before, {}),
        )
        for values, value in lists:
            if number < len(values):
                values[number] = value
            else:
                values.append(value)
        self._fill(number)
        self._event = None
        self._evaluated = None, {}
        return True

    def use(self, patterns: Sequence[Pattern], more: Sequence[ast.Node]) -> None:
        """Keep the triples that further patterns and expressions over events use.

        Args:
            patterns: The patterns.
            more: The expressions.
        """
        asking = (*(p.program.pattern for p in patterns), *_conditions(patterns), *more)
        if self.used is not None:
            wanted = uses(asking)
            if outside(wanted, self.used) is not None:
                self.used = None if wanted is None else self.used | wanted
                self._relevance = None
                for term in chain.from_iterable(wanted or ()):
                    if term is not None:
                        self.dictionary.intern(term)
        fetch(self._kb, more)

    @property
    def relevance(self) -> Relevance:
        """The triples that the patterns use, for readers; built when it is first read."""
        if self._relevance is None:
            self._relevance = Relevance(self.dictionary, self.used)
        return self._relevance

    def widen(self, horizon: int) -> None:
        """Keep the terms of later events for this long, if that is longer than before."""
        self._horizon = max(self._horizon, horizon)
        self.window.widen(horizon)

    # ------------------------------------------------------------------ linking

    def _graphs_of(self, program: GpmProgram) -> NamedGraphs | None:
        """The background graphs as a program sees them."""
        return self._entailed.get(program.kb_graphs, self._kb)

    def _evaluator(self, number: int, pattern: Pattern) -> Evaluator | None:
        """The evaluator of a pattern in Python; None for a native pattern."""
        program = pattern.program
        if pattern.native is not None:
            return None
        return Evaluator(program, self._graphs_of(program), number, self._limits, self.calls)

    def _predicates(self, evaluator: Evaluator | None) -> tuple[int, ...]:
        """The predicates without which a pattern in Python has no row.

        Entailed triples may have predicates that no triple of the event has.
        """
        if evaluator is None or self._entailed:
            return ()
        return tuple(map(self.dictionary.intern, evaluator.required))

    def _summary(self) -> tuple[SummaryGraph, dict[Term | View, int]]:
        keys = _keys_of(self.patterns)
        named = [key for key in keys if not isinstance(key, int | View)]
        derived = [key for key in keys if isinstance(key, View)]
        views = {key: view for view, key in enumerate((*named, *derived), 1)}
        deriver = None
        if derived:
            groups = [graphs.rules for graphs in self._entailed.values()]
            deriver = Deriver(self.dictionary, groups, views)
        whole = any(isinstance(key, int) for key in keys)
        return SummaryGraph(self.dictionary, named, whole, deriver, len(derived)), views

    def _matcher(self, number: int, pattern: Pattern, whole: str) -> NativeMatcher | None:
        program, native = pattern.program, pattern.native
        if native is None:
            return None
        flat = flatten(native.root, native.exists)
        columns = len(program.variables)
        matcher = self._linked(number, program, native, flat, native.filters, columns)
        if self.calls.has_vectorized and not flat.kb_tables and _vectorizes(native, self.calls):
            self._collectors.append(
                self._linked(number, program, native, flat, native.filters, columns)
            )
        if flat.kb_tables:
            self._tables[number] = KbTables(
                self.calls,
                program,
                native,
                matcher,
                flat,
                lambda below, filters: self._linked(
                    number, program, native, below, filters, len(native.slots)
                ),
                whole,
                self._limits,
            )
        return matcher

    def _linked(
        self,
        number: int,
        program: GpmProgram,
        native: NativePattern,
        flat: FlatPattern,
        filters: Sequence[ast.Expr],
        columns: int,
    ) -> NativeMatcher:
        return NativeMatcher(
            self.graph,
            self._views,
            flat,
            [native.codes[expression] for expression in (*flat.expressions, *filters)],
            len(filters),
            len(native.slots),
            columns,
            -1 if program.at is None else program.variables.index(program.at),
            number,
            self._limits.most_steps,
            self._limits.most_memory,
            self.calls,
        )

    # ------------------------------------------------------------------ the KB

    def fill(self, others: Sequence[ast.Node]) -> None:
        """Fill the tables that the KB decides from the current graphs.

        Batches that were encoded before need `EventBatch.refit`.

        Args:
            others: All expressions over events besides the patterns.

        Raises:
            KbError: if a source fails.
        """
        for number in range(len(self.patterns)):
            self._fill(number)
        # Under entailment all graphs are local, so this fetches services only.
        fetch(next(iter(self._entailed.values()), self._kb), others)
        self._event = None
        self._evaluated = None, {}

    def _fill(self, number: int) -> None:
        """Fill the tables of one pattern."""
        pattern = self.patterns[number]
        kb = self._graphs_of(pattern.program)
        if number in self._tables:
            self._tables[number].fill(kb)
        if pattern.native is None:
            fetch(kb, pattern.program.pattern)
            fetch(kb, pattern.filters)
        else:
            fetch(kb, pattern.filters[len(pattern.native.filters) :])

    def joins(self, number: int) -> list[BindJoin]:
        """The bind-joins of a pattern with the KB."""
        tables = self._tables.get(number)
        return [] if tables is None else tables.joins

    def encode_into(self, batch: EventBatch, event: Event) -> None:
        """Replace the contents of a batch by one event."""
        batch.clear()
        self.add(batch, event)

    def encode(self, events: Iterable[Event]) -> EventBatch:
        """A batch of events, for one request to the KB for all of them."""
        batch = EventBatch(self.dictionary)
        for event in events:
            self.add(batch, event)
        return batch

    def collect(self, batches: Sequence[EventBatch]) -> None:
        """Call vectorized functions once for all events of some batches."""
        serials = tuple([batch.serial for batch in batches])
        if not self._collectors or serials == self._collected:
            return
        self._collected = serials

        def match() -> None:
            for batch in batches:
                for matcher in self._collectors:
                    matcher.count(batch)

        # The event that exceeds a limit reports it when it is processed.
        with suppress(LimitReached):
            self.calls.collect(match)

    # ------------------------------------------------------------------ events

    def rows(self, event: Event, number: int) -> tuple[list[Row], list[Row]]:
        """The rows of a pattern over an event: all, and the rows that pass its local filters."""
        native = self._native[number]
        if native is not None and not self._tests[number]:
            return self._matched(event, native)
        if event is not self._evaluated[0]:
            self._evaluated = event, {}
        known = self._evaluated[1]
        if number not in known:
            known[number] = self._evaluate(event, number)
        return known[number]

    def _evaluate(self, event: Event, number: int) -> tuple[list[Row], list[Row]]:
        """The rows of a pattern that runs in Python, or that has filters that do."""
        native, evaluator = self._native[number], self._evaluators[number]
        if native is not None:
            rows, kept = self._matched(event, native)
        else:
            assert evaluator is not None
            rows = kept = evaluator.rows(event) if self._may_match(event, number) else []
            self._tried[number] += 1
            self._found[number] += len(rows)
        if kept:
            program = self.patterns[number].program
            scope = Scope(event, self._graphs_of(program), program.kb_graphs, self.calls)
            if self._limits.steps is not None:
                scope.work = Work(number, self._limits)
            for place, test in enumerate(self._tests[number]):
                count = self._errors[number][place]
                passed = []
                for row in kept:
                    truth = test(row, scope)
                    count.see(truth, partial(dict, enumerate(row)))
                    if truth:
                        passed.append(row)
                self._untrue[number][place] += len(kept) - len(passed)
                kept = passed
        return rows, kept

    def _may_match(self, event: Event, number: int) -> bool:
        """Whether an encoded event has the predicates that a pattern in Python requires."""
        if event is not self._event or self._loaded is None:
            return True
        batch, index = self._loaded
        return batch.size(index) > 0 and batch.has(index, self._required[number])

    def count(self, batch: EventBatch, number: int) -> int:
        """The number of rows of a native pattern over a batch, without creating objects.

        Local filters that run in Python are not tested.
        """
        return self.native(number).count(batch)

    def _matched(self, event: Event, native: NativeMatcher) -> tuple[list[Row], list[Row]]:
        batch, index = self.encoded(event)
        self.graph.fill(batch, index)
        count = native.match(batch, index)
        if not count:
            return [], []
        term = self.window.intern_term
        rows: list[Row] = []
        kept: list[Row] = []
        for i in range(count):
            row = tuple([term(batch, n) if n else None for n in native.row(i)])
            rows.append(row)
            if native.passed_filters(i):
                kept.append(row)
        return rows, kept

    def encoded(self, event: Event, own: bool = False) -> tuple[EventBatch, int]:
        """The batch that holds an event, and its index there.

        An event of terms is encoded, alone, into a batch that the next such event reuses; `own`
        prevents that.

        Raises:
            EventError: for an event that was read for another run, which dropped some triples.
        """
        loaded = None if event is not self._event else self._loaded
        if loaded is not None and not (own and loaded[0] is self._batch):
            return loaded
        self._event = None
        if isinstance(event, EncodedEvent) and event.batch.dictionary is self.dictionary:
            event.batch.refit()
            self._loaded = event.batch, event.index
        else:
            if isinstance(event, EncodedEvent) and event.is_pruned:
                raise EventError(
                    "the event was read for another run, without what that one cannot use: "
                    "give its reader the `relevance` of this run"
                )
            batch = EventBatch(self.dictionary) if own else self._batch
            if not own:
                self._alone = event
            batch.clear()
            batch.stream = event.stream
            batch.file, _, line = event.origin.rpartition(":")
            self.add(batch, event, int(line) if line.isdigit() else 0)
            self._loaded = batch, 0
        self._event = event
        return self._loaded

    def event(self, batch: EventBatch, index: int) -> Event:
        """An event of a batch as an object: the event that was encoded, or a view of the batch."""
        if batch is self._batch and self._alone is not None:
            return self._alone  # a view would show the next event that uses the batch
        if self._event is None or self._loaded != (batch, index):
            self._event, self._loaded = EncodedEvent(batch, index), (batch, index)
        return self._event

    def add(self, batch: EventBatch, event: Event, line: int = 0) -> None:
        """Append an event of terms to a batch, without the triples that no query can use."""
        if self._useful[0] is not self.used:
            self._useful = self.used, _predicates_of(self.used)
        _, useful = self._useful
        facts = event.facts
        if useful is not None:
            facts = tuple(fact for fact in facts if fact[1] in useful)
        at, dated = event.time, event.time.domain == DATE_TIME
        batch.add(facts, at.micros, event.ordinal, event.name, at.term, dated, event.size, line)

    def advance(self, position: int) -> None:
        """Advance the window of terms to a time, or a number of events."""
        self.window.advance(position)

    def forget_terms(self) -> None:
        """Start a new window of terms; callers must renew all numbers of window terms."""
        self.window = WindowTerms(self._horizon)

    # ------------------------------------------------------------------ native matchers

    def native(self, number: int) -> NativeMatcher:
        """The native matcher of a pattern that has one."""
        found = self._native[number]
        if found is None:
            raise ValueError("the pattern runs on operators in Python")
        return found

    def wholly_native(self, number: int) -> NativeMatcher | None:
        """The native matcher of a pattern that runs entirely in native code; otherwise None."""
        return None if self._tests[number] else self._native[number]

    # ------------------------------------------------------------------ counters

    def tried(self, number: int) -> int:
        """The number of events that a pattern was matched against so far."""
        native = self._native[number]
        return self._tried[number] + (0 if native is None else native.tried)

    def row_count(self, number: int) -> int:
        """The number of rows of a pattern so far."""
        native = self._native[number]
        return self._found[number] + (0 if native is None else native.found)

    def observed(self, number: int) -> Observed:
        """The counters of a pattern in this run."""
        native = self._native[number]
        steps: dict[str, tuple[int, int]] = {}
        for text, given, made in [] if native is None else native.observed:
            before = steps.get(text, (0, 0))
            steps[text] = before[0] + given, before[1] + made
        return Observed(
            self.tried(number),
            self.row_count(number),
            self.row_count(number) - sum(self.untrue(number)),
            steps,
            tuple(join.text for join in self.joins(number)),
        )

    def untrue(self, number: int) -> Sequence[int]:
        """Per local filter of a pattern: the rows for which it was the first that was not true."""
        native = self._native[number]
        here = [*([] if native is None else native.untrue_counts), *self._untrue[number]]
        before = self._untrue_before[number]
        return [a + b for a, b in zip(here, before, strict=True)] if before else here

    def errors(self, number: int) -> Errors:
        """How often the filters and BINDs of a pattern erred, in its names of variables.

        The keys are the positions of local filters, and the expressions within the pattern.
        """
        pattern, native = self.patterns[number], self._native[number]
        evaluator = self._evaluators[number]
        here: Errors = {}
        local: Sequence[ErrorCount] = self._errors[number]
        names: Sequence[str] = pattern.program.variables
        if evaluator is not None:
            here.update(evaluator.errors)
        if native is not None and pattern.native is not None:
            names = pattern.native.slots
            inner, filters = native.errors
            here.update(inner)
            local = [*filters, *local]
        here.update(enumerate(local))
        found = {place: count.named(names) for place, count in here.items()}
        for place, count in self._errors_before[number].items():
            found[place] = count + found.get(place, ErrorCount())
        return found

    def has_erred(self, number: int) -> bool:
        """Whether a filter or BIND of a pattern has erred; needs no hash of large expressions."""
        native, evaluator = self._native[number], self._evaluators[number]
        return (
            (native is not None and native.has_erred)
            or (evaluator is not None and any(evaluator.errors.values()))
            or any(self._errors[number])
            or any(self._errors_before[number].values())
        )

    def count_on(self, other: Matchers) -> None:
        """Add the counters of matchers of the same patterns."""
        for number in range(len(self.patterns)):
            untrue = [a + b for a, b in zip(self.untrue(number), other.untrue(number), strict=True)]
            self._tried[number] += other.tried(number)
            self._found[number] += other.row_count(number)
            native = self._native[number]
            here = [*([] if native is None else native.untrue_counts), *self._untrue[number]]
            self._untrue_before[number] = [a - b for a, b in zip(untrue, here, strict=True)]
            before = self._errors_before[number]
            for place, count in other.errors(number).items():
                before[place] = before.get(place, ErrorCount()) + count


def _keys_of(patterns: Iterable[Pattern]) -> dict[Term | View | int, None]:
    """The views that native patterns need; a number for that of all triples."""
    return dict.fromkeys(
        step.key
        for pattern in patterns
        if pattern.native is not None
        for root in (pattern.native.root, *pattern.native.exists.values())
        for node in algebra.walk(root)
        for step in algebra.steps_of(node)
    )


def _predicates_of(used: Uses) -> frozenset[Term] | None:
    return None if used is None else frozenset(predicate for predicate, _ in used)


def _is_open(key: Term | View | int) -> bool:
    return isinstance(key, int)


def _tests(pattern: Pattern) -> list[Truth]:
    """The local filters that run in Python."""
    slots = {name: column for column, name in enumerate(pattern.program.variables)}
    native = 0 if pattern.native is None else len(pattern.native.filters)
    return [compile_truth(condition, slots) for condition in pattern.filters[native:]]


def _no_errors(tests: Sequence[Truth]) -> list[ErrorCount]:
    return [ErrorCount() for _ in tests]


def _conditions(patterns: Sequence[Pattern]) -> Iterable[ast.Expr]:
    return (condition for pattern in patterns for condition in pattern.filters)


def _vectorizes(native: NativePattern, calls: Calls) -> bool:
    """Whether an expression of a pattern calls a vectorized function."""
    names = (name for code in native.codes.values() for name, _ in code.code.functions)
    return any(map(calls.is_vectorized, names))

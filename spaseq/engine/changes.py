"""Changes to the queries of a run between two events: adding, replacing and removing them.

Most changes of one query are made by `spaseq.engine.single_changes`, which visits no other query. A
change that does not fit raises an error and leaves the run unchanged. All other queries keep their
automata: the change adds patterns, predicates and constants to the matchers in place, and rebuilds
the dispatch of the compiled loop. A constant that becomes permanent gets another number, so queries
with that constant in their state are rebuilt from their state. All queries are rebuilt if new
matchers are needed: under entailment, when a predicate is a variable for the first time, and when a
window of another kind is added to windows that count events.

Cost: linear in the queries, a few microseconds for each, plus the compilation of new queries.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Literal, Protocol, TypeAlias, cast, get_args

from spaseq.engine.compiled import (
    CompiledQueries,
    CompiledQuery,
    in_order,
    shown_name,
    with_patterns,
)
from spaseq.engine.continuing import difference
from spaseq.engine.evaluation import Begin, Evaluation
from spaseq.engine.instants import QueryRun
from spaseq.engine.listing import Entry, Listed, Listing
from spaseq.engine.parameters import parameter_terms, variables_of
from spaseq.engine.part_states import Part
from spaseq.engine.pattern_numbers import PatternNumbers
from spaseq.errors import ArgumentError, ChangeError, kind_of
from spaseq.parser import ast
from spaseq.plan.logical import QueryPlan
from spaseq.rdf.accepted import Bindable

StatePolicy: TypeAlias = Literal["keep", "drain", "fresh"]
"""What happens to the partial matches of a query that is replaced."""
INSTEAD = 'state="fresh" drops it'
"""For messages: what a caller can do if a new query cannot continue the state of the old one."""


def entries_of(run: Evaluation) -> list[Entry]:
    """The queries of a run, in the order of its program.

    Each query of a template begins separately, with its part of the state. Queries that have left a
    template are not among them.
    """
    program = run.public
    runs: dict[int, tuple[CompiledQuery, QueryRun | Part]] = {}
    for number, (compiled, query) in enumerate(zip(run.program.queries, run.queries, strict=True)):
        division = run.divisions.get(number)
        if division is None:
            runs[run.shared.places[number]] = compiled, query
        else:
            runs |= {each: (program.queries[each], part) for each, part in division.parts()}
    found = []
    for number, i in enumerate(program.positions):
        compiled, state = runs[number]
        if isinstance(state, Part) and compiled.plan.name in run.listed.silent:
            continue
        found.append(
            Entry(
                program.sources[i],
                program.names[i],
                run.unbound[i],
                compiled,
                None if isinstance(state, Part) else state,
                state if isinstance(state, Part) else None,
            )
        )
    return found


def _executed(run: Evaluation) -> list[Entry]:
    """The queries of a run as it evaluates them, each template as one."""
    program = run.program
    return [
        Entry(source, name, source, compiled, query, template=run.shared.templates.get(number))
        for number, (source, name, compiled, query) in enumerate(
            zip(program.sources, program.names, program.queries, run.queries, strict=True)
        )
    ]


def _named(program: CompiledQueries) -> list[tuple[ast.Query, str]]:
    return list(zip(program.sources, program.names, strict=True))


def draining_name(shown: str, taken: Container[str]) -> str:
    """A name for a query that drains, beside queries with some names."""
    return free_name(shown, "draining", taken)


def free_name(shown: str, what: str, taken: Container[str]) -> str:
    """A name for what has become of a query: its name, and `what` in parentheses."""
    names = (f"{shown} ({what}{'' if n == 1 else f' {n}'})" for n in count(1))
    return next(name for name in names if name not in taken)


def unregistered(source: ast.Query) -> ast.Query:
    """A query without the name that it registers for itself."""
    register = source.register
    if register is None or register.kind != "QUERY":
        return source
    return replace(source, register=None)


def added(
    run: Evaluation, name: str, program: CompiledQueries, unbound: ast.Query, new_streams: bool
) -> Change:
    """The run with another query after the others.

    Raises:
        ArgumentError: if the name is empty.
        ChangeError: if the query does not fit the run.
    """
    check_new_name(run, name)
    registers = any(query.plan.registers_stream for query in program.queries)
    change = apart(run) if registers else beside_templates(run)
    entry = change.entry(name, program, unbound)
    change.entries.append(entry)
    if change.listing is not None:
        compiled = change.listing.compiled(program, name)
        change.listing.queries.append(Listed(entry.source, name, unbound, compiled, entry))
    change.check_streams(new_streams)
    return change


def check_new_name(run: Evaluation, name: str) -> None:
    """Refuse an empty name, and the name of a query that the run has."""
    if not (isinstance(name, str) and name.strip()):
        raise ArgumentError(f"name: a name that is not empty is needed, not {name!r}")
    if name in run.listed.names:
        raise ChangeError(f"the run has a query {name} already: replace it, or choose another name")


def only_query(program: CompiledQueries, name: str) -> CompiledQuery:
    """The query of a program of one query, with the name that it has in the run.

    Raises:
        ChangeError: if there are several, or the query registers another name.
    """
    if len(program.queries) != 1:
        raise ChangeError(
            f"the program has {len(program.queries)} queries: add or replace them one by one"
        )
    (compiled,), (source,) = program.queries, program.sources
    if shown_name(source, name) != name:
        raise ChangeError(f"the query registers the name {compiled.plan.name}, not {name}")
    return replace(compiled, plan=replace(compiled.plan, name=name))


def check_known(run: Evaluation, plan: QueryPlan, written: Container[str]) -> None:
    """Check that a run has the streams that a query reads.

    Args:
        run: The run.
        plan: The plan of the query.
        written: The streams that its queries register.

    Raises:
        ChangeError: if it lacks one.
    """
    for iri in plan.streams:
        if iri not in written and iri not in run.clock.per_stream:
            streams = ", ".join(f"<{other}>" for other in run.clock.streams)
            raise ChangeError(
                f"the query {plan.name} reads the stream <{iri}>, which the run does not "
                f"have; its streams are {streams}. If its events will be pushed from now "
                "on, say so: new_streams=True"
            )


def check_continues(
    name: str, before: CompiledQuery, after: CompiledQuery, instead: str = INSTEAD
) -> None:
    """Check that a query can continue the state of the query that it replaces.

    Args:
        name: The name of both.
        before: The former query.
        after: The new query.
        instead: For the message: what the caller can do if it cannot.

    Raises:
        ChangeError: if it cannot.
    """
    differs = difference(before, after)
    if differs:
        raise ChangeError(
            f"the state of the query {name} does not fit the new one: {differs}; {instead}"
        )


def check_begins(query: QueryRun) -> None:
    """Check that a query does not drain yet.

    Raises:
        ChangeError: if it does.
    """
    if query.drains:
        raise ChangeError(f"the query {query.plan.name} drains already")


def replaced(
    run: Evaluation,
    programs: Mapping[str, tuple[CompiledQueries, ast.Query]],
    state: StatePolicy,
    new_streams: bool,
    instead: str = INSTEAD,
) -> Change:
    """The run with other queries under some names, in place of the former ones.

    Args:
        instead: For messages: what the caller can do if a new query cannot continue the old state.

    Raises:
        ChangeError: if there is no query of a name, if a new query does not fit the run, or if it
            cannot continue the state of the old one.
    """
    if state not in get_args(StatePolicy):
        raise ValueError(f"state is one of {', '.join(get_args(StatePolicy))}, not {state!r}")
    registers = any(
        query.plan.registers_stream for program, _ in programs.values() for query in program.queries
    )
    change = apart(run) if registers else beside_templates(run, programs)
    listing = change.listing
    for name, (program, unbound) in programs.items():
        place = change.place(name)
        before, after = change.entries[place], change.entry(name, program, unbound)
        if state == "drain":
            change.drain(before, name)
        elif state == "keep":
            check_continues(name, before.compiled, after.compiled, instead)
            after = replace(after, kept=before.run or before.kept)
        change.entries[place] = after
        if listing is not None:
            one = listing.of(name)
            assert one is not None
            one.compiled = listing.compiled(program, name)
            one.source, one.name, one.unbound = after.source, name, unbound
            one.entry, one.before = after, None
    change.check_streams(new_streams)
    return change


def removed(run: Evaluation, name: str, drain: bool = False) -> Change:
    """The run without a query; with `drain`, the query remains until its partial matches end.

    Raises:
        ChangeError: if there is no such query, if another query reads the stream that it registers,
            or if it is the only query and does not drain.
    """
    change = beside_templates(run, [name])
    entry = change.entries.pop(change.place(name))
    if drain:
        change.drain(entry, name)
    if change.listing is not None:
        change.listing.queries = [one for one in change.listing.queries if one.entry is not entry]
    if not change.entries:
        raise ChangeError(f"{name} is the only query of the run, which needs one")
    change.check_streams(False)
    return change


def apart(run: Evaluation) -> Change:
    """The run with a separate automaton for each query of a template."""
    run.catch_up()
    return Change(run, entries_of(run))


def beside_templates(run: Evaluation, names: Iterable[str] = ()) -> Change:
    """A change that leaves the templates of a run as they are.

    Args:
        run: The run.
        names: The queries that change; if one is part of a template, no template stays.
    """
    known = {query.plan.name: number for number, query in enumerate(run.public.queries)}
    executors = run.shared.executors
    evaluated = [executors[known[name]] if name in known else None for name in names]
    if not run.divisions or any(n is None or n in run.divisions for n in evaluated):
        return apart(run)
    run.catch_up()
    change = Change(run, _executed(run))
    change.keep_templates()
    return change


class Change:
    """A change of one run: the entries after it, and the patterns that it adds.

    `apply` makes it.
    """

    def __init__(self, run: Evaluation, entries: list[Entry]):
        self._run = run
        self.listing: Listing | None = None
        """The queries as they were written, if there are templates after the change."""
        used = _used(entry for entry in entries if entry.run is not None)
        total = len(run.program.patterns)
        unused = [n for n in range(total - 1, -1, -1) if n not in used]
        self._numbers = PatternNumbers(run, total, unused)
        self.entries = [entry if entry.run is not None else self.part(entry) for entry in entries]

    def keep_templates(self) -> Listing:
        """Leave the templates as they are; the entries are what the run evaluates."""
        self.listing = self.listing or Listing(self._run, self.entries)
        return self.listing

    def place(self, name: str) -> int:
        """The place of a query among the entries."""
        if self.listing is not None:
            one = self.listing.of(name)
            assert one is not None
            return next(n for n, entry in enumerate(self.entries) if entry is one.entry)
        for place, entry in enumerate(self.entries):
            if entry.compiled.plan.name == name:
                return place
        known = ", ".join(entry.compiled.plan.name for entry in self.entries)
        raise ChangeError(f"the run has no query {name}; it has {known}")

    def entry(self, name: str, program: CompiledQueries, unbound: ast.Query) -> Entry:
        """The entry of a program of one query, whose patterns get numbers of the run."""
        compiled = only_query(program, name)
        derived = not {q.registers_stream for q in self._plans()}.isdisjoint(compiled.plan.streams)
        numbered = self.numbered(compiled, program, derived)
        return Entry(program.sources[0], name, unbound, numbered, None)

    def part(self, entry: Entry) -> Entry:
        """The entry of a query of a template, with the numbers of patterns of its own."""
        numbered = self.numbered(entry.compiled, self._run.public, False)
        return replace(entry, compiled=numbered)

    def numbered(
        self, compiled: CompiledQuery, program: CompiledQueries, derived: bool
    ) -> CompiledQuery:
        """A query of a program with the numbers that its patterns have in the run.

        `derived`: it reads registered streams.
        """
        return self._numbers.numbered(compiled, program, derived)

    def drain(self, before: Entry, shown: str) -> None:
        """Let a query begin no further partial matches, under a name of its own.

        Args:
            before: Its entry.
            shown: Its name.

        Raises:
            ChangeError: if the query registers a stream or reads a registered one.
        """
        plan = before.compiled.plan
        if before.run is not None:
            check_begins(before.run)
        written = {each.registers_stream for each in self._plans()} - {None}
        if plan.registers_stream is not None or not written.isdisjoint(plan.streams):
            raise ChangeError(
                f"the query {plan.name} cannot drain, since it registers a stream or reads a "
                "registered one"
            )
        taken = {entry.compiled.plan.name for entry in self.entries}
        if self.listing is not None:
            taken |= self.listing.names
        name = draining_name(plan.shown, taken)
        entry = replace(
            before,
            source=unregistered(before.source),
            name=name,
            unbound=unregistered(before.unbound),
            compiled=replace(before.compiled, plan=replace(plan, name=name, shown_as=plan.shown)),
            run=None,
            kept=before.run or before.kept,
            drains=True,
        )
        self.entries.append(entry)
        if self.listing is not None:
            self.listing.drain(shown, entry)

    def _plans(self) -> list[QueryPlan]:
        return [entry.compiled.plan for entry in self.entries]

    # ------------------------------------------------------------------ checks

    def check_streams(self, new_streams: bool) -> None:
        """Check which streams the queries read and register.

        Raises:
            ChangeError: if a query reads a stream that the run does not have (unless
                `new_streams`), or if the streams that are registered do not fit.
        """
        plans = [entry.compiled.plan for entry in self.entries]
        before = {q.plan.registers_stream for q in self._run.queries} - {None}
        written: dict[str, str] = {}
        for plan in plans:
            iri = plan.registers_stream
            if iri is None:
                continue
            if iri in written:
                raise ChangeError(f"{plan.name} and {written[iri]} both register <{iri}>")
            if iri in self._run.clock.streams:
                raise ChangeError(
                    f"the query {plan.name} registers <{iri}>, which is an input stream of the run"
                )
            written[iri] = plan.name
        for plan in plans:
            for iri in plan.streams:
                if iri in before and iri not in written:
                    raise ChangeError(
                        f"the query {plan.name} reads <{iri}>, which no query registers then: "
                        f"remove {plan.name} first"
                    )
            if not new_streams:
                check_known(self._run, plan, written)
        if self.listing is None:
            self._check_order(plans)

    def _check_order(self, plans: Sequence[QueryPlan]) -> None:
        """Put writers of streams before their readers, as in a newly compiled program."""
        expected = [plan.name for plan in in_order(e.compiled.plan for e in self._by_text())]
        if expected != [plan.name for plan in plans]:
            raise ChangeError(
                "a query would read a stream before the query that registers it: remove the reader "
                "and add it again"
            )

    def _by_text(self) -> list[Entry]:
        """The entries in the order of the sources; new ones come last."""
        names = [shown_name(source, name) for source, name in _named(self._run.public)]
        place = {name: number for number, name in enumerate(names)}
        return sorted(
            self.entries, key=lambda entry: place.get(entry.compiled.plan.name, len(place))
        )

    # ------------------------------------------------------------------ the change

    def apply(self) -> None:
        """Make the change.

        Raises:
            KbError, LimitExceeded: if the run cannot have a query; nothing has changed.
            ChangeError: if a reader drops triples that a query needs, or a state does not fit.
        """
        run, listing = self._run, self.listing
        if listing is None:
            program, shared, matched = self._program(self._by_text()), None, {}
            unbound = [entry.unbound for entry in self._by_text()]
        else:
            self.entries = listing.arranged(self.entries)
            program = self._program(self.entries)
            shared, matched = listing.shared(self.entries, program), listing.matched
            unbound = [one.unbound for one in listing.queries]
        run.change(program, unbound, self._numbers.new, self._queries, shared, matched)
        states = zip(self.entries, run.queries, strict=True)
        run.drain([query for entry, query in states if entry.drains])

    def _queries(self, begin: Begin) -> list[QueryRun]:
        """The states of the queries."""
        found: list[QueryRun] = []
        renamed: dict[QueryRun, QueryRun] = {}
        for entry in self.entries:
            query = entry.run
            if query is None:
                query = begin(entry.compiled, entry.kept)
            elif query in renamed:
                query = renamed[query]
            elif query.plan.name != entry.compiled.plan.name and query not in found:
                # The shared state has the name of the first of the equal queries, which is removed.
                renamed[query] = begin(entry.compiled, query)
                query = renamed[query]
            found.append(query)
        return found

    def _program(self, ordered: Sequence[Entry]) -> CompiledQueries:
        """The changed program, with the numbers of patterns that the run has.

        Args:
            ordered: The entries in the order of the sources.
        """
        return CompiledQueries(
            tuple(entry.compiled for entry in self.entries),
            with_patterns(self._run.program.patterns, self._numbers.new),
            (),
            tuple(entry.source for entry in ordered),
            tuple(entry.name for entry in ordered),
        )


class Joining(Change):
    """The run with the queries of another one, which go on with their states.

    Both runs must be at the same time, with no timestamp open, and have the same knowledge base.
    The other run must not be used afterwards.

    Raises:
        ChangeError: if a query does not fit the run.
    """

    def __init__(self, run: Evaluation, other: Evaluation):
        run.catch_up()
        other.catch_up()
        super().__init__(run, entries_of(run))
        self._other = other
        written = {query.plan.registers_stream for query in other.queries}
        for entry in entries_of(other):
            check_new_name(run, entry.compiled.plan.name)
            program = other.program if entry.run is not None else other.public
            derived = not written.isdisjoint(entry.compiled.plan.streams)
            compiled = self.numbered(entry.compiled, program, derived)
            kept = entry.run or entry.kept
            self.entries.append(replace(entry, compiled=compiled, run=None, kept=kept))
        self.check_streams(True)

    def apply(self) -> None:
        """Take over the queries, as `Change.apply`, and what the clock of their run knows."""
        run, other = self._run, self._other
        super().apply()
        run.clock.join(other.clock)
        run.registered.times |= other.registered.times
        run.registered.ordinals |= other.registered.ordinals


def _used(entries: Iterable[Entry]) -> set[int]:
    """The numbers of the patterns that queries have."""
    return {n for entry in entries for n in (*entry.compiled.tasks, *entry.compiled.asked_patterns)}


class _Bindable(Protocol):
    """The part of `Program` that compiles a query with other values for its variables."""

    def bind(self, values: Mapping[str, Bindable]) -> CompiledQueries: ...


def bound_program(
    evaluation: Evaluation, program: CompiledQueries
) -> tuple[CompiledQueries, ast.Query]:
    """A program of one query in which the run's bound variables are replaced by their values.

    Also returns the source without this replacement.

    Raises:
        ArgumentError: for anything but a program.
    """
    if not isinstance(program, CompiledQueries):
        raise ArgumentError(f"{kind_of(program)} is not a program: spaseq.compile makes one")
    (source, *_) = program.sources
    used = variables_of(program.sources)
    values = {name: term for name, term in evaluation.bound.items() if name in used}
    if values or not program.queries:
        program = cast(_Bindable, program).bind(values)
    return program, source


def rebound(
    evaluation: Evaluation, like: CompiledQueries, values: Mapping[str, Bindable]
) -> Change:
    """The change that gives bound variables other values, which the run stores.

    Args:
        evaluation: The run; the caller restores `bound` if the change fails.
        like: A program, of the class of those to compile.
        values: Variable name → term or plain Python value.

    Raises:
        ValueError: if no query uses a name as a free variable.
        ChangeError: as for `replaced`.
    """
    known = variables_of(evaluation.unbound)
    for name in values:
        if name not in known:
            shown = ", ".join(f"?{each}" for each in sorted(known)) or "none"
            raise ValueError(f"no query uses the variable ?{name}; their variables are {shown}")
    evaluation.bound = evaluation.bound | parameter_terms(values)
    programs = {}
    for entry in entries_of(evaluation):
        if entry.run is not None and entry.run.drains:
            continue
        if not values.keys().isdisjoint(variables_of([entry.unbound])):
            alone = replace(
                like, queries=(), tasks=(), asked=(), sources=(entry.unbound,), names=(entry.name,)
            )
            programs[entry.compiled.plan.name] = bound_program(evaluation, alone)
    instead = "bind the variable where the query is compiled, and replace the query"
    return replaced(evaluation, programs, "keep", False, instead)

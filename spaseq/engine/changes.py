"""Changes to the queries of a run between two events: adding, replacing and removing them.

A change visits the queries that it adds, replaces or removes, and no others, except where queries
register streams. A change that does not fit raises an error and leaves the run unchanged. All other
queries keep their automata: the change adds patterns, predicates and constants to the matchers in
place. What all queries share is built again when the next event comes, once for all changes before
it: the tables of the compiled loop, the triples that readers keep, states with terms that have
become permanent, and states whose name is that of an equal query that has left. All queries are
rebuilt if new matchers are needed: under entailment, when a predicate is a variable for the first
time, and when a window of another kind is added to windows that count events.

Cost: that of the queries, and of their states if these continue.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from operator import attrgetter
from typing import Literal, Protocol, TypeAlias, cast, get_args

from spaseq.engine.compiled import CompiledQueries, CompiledQuery, in_order, shown_name
from spaseq.engine.continuing import difference
from spaseq.engine.evaluation import Evaluation
from spaseq.engine.parameters import parameter_terms, variables_of
from spaseq.engine.part_states import Part
from spaseq.engine.pattern_numbers import PatternNumbers
from spaseq.engine.run_query import Beginning, Edit, Executor, RunQuery
from spaseq.engine.sharing import Fitting
from spaseq.errors import ArgumentError, ChangeError, kind_of
from spaseq.gpm.pattern import Pattern
from spaseq.parser import ast
from spaseq.rdf.accepted import Bindable

StatePolicy: TypeAlias = Literal["keep", "drain", "fresh"]
"""What happens to the partial matches of a query that is replaced."""
INSTEAD = 'state="fresh" drops it'
"""For messages: what a caller can do if a new query cannot continue the state of the old one."""


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


def added(run: Evaluation, name: str, program: CompiledQueries, new_streams: bool) -> Change:
    """The run with another query after the others.

    Args:
        run: The run.
        name: The name of the query.
        program: A program of one query, in which the variables of the run are not bound yet.
        new_streams: Whether it may read streams that the run does not have.

    Raises:
        ArgumentError: if the name is empty, and for anything but a program.
        ChangeError: if the query does not fit the run.
    """
    program, unbound = bound_program(run, program)
    check_new_name(run, name)
    change = Change(run)
    change.add(name, program, unbound)
    change.check_streams(new_streams)
    return change


def check_new_name(run: Evaluation, name: str) -> None:
    """Refuse an empty name, and the name of a query that the run has."""
    if not (isinstance(name, str) and name.strip()):
        raise ArgumentError(f"name: a name that is not empty is needed, not {name!r}")
    if name in run.listed.by_name:
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


def replaced(
    run: Evaluation,
    name: str,
    program: CompiledQueries,
    state: StatePolicy,
    new_streams: bool,
) -> Change:
    """The run in which a query replaces the one of a name.

    Args:
        run: The run.
        name: The name of both.
        program: A program of one query, in which the variables of the run are not bound yet.
        state: What happens to the partial matches of the former query.
        new_streams: As for `added`.

    Raises:
        ArgumentError: for anything but a program.
        ChangeError: if there is no query of the name, if the new query does not fit the run, or if
            it cannot continue the state of the old one.
    """
    program, unbound = bound_program(run, program)
    if state not in get_args(StatePolicy):
        raise ValueError(f"state is one of {', '.join(get_args(StatePolicy))}, not {state!r}")
    change = Change(run)
    change.replace(name, program, unbound, state)
    change.check_streams(new_streams)
    return change


def removed(run: Evaluation, name: str, drain: bool = False) -> Change:
    """The run without a query; with `drain`, the query remains until its partial matches end.

    Raises:
        ChangeError: if there is no such query, if another query reads the stream that it registers,
            or if it is the only query and does not drain.
    """
    change = Change(run)
    query = change.alone(name)
    if drain:
        change.drain(query)
    elif len(run.listed.by_name) == 1:
        raise ChangeError(f"{name} is the only query of the run, which needs one")
    change.drop(name)
    change.check_streams(False)
    return change


def apart(run: Evaluation) -> Change:
    """The run with a separate automaton for each query of a template."""
    change = Change(run)
    change.divide_all()
    return change


class Change:
    """A change of some queries of one run; `apply` makes it."""

    def __init__(self, run: Evaluation):
        self.run = run
        uses = run.listed.pattern_uses
        self._numbers = PatternNumbers(run, uses.total, uses.unused)
        self._put: dict[str, RunQuery] = {}
        """Queries that come, by name, in place of those of the same names."""
        self._dropped: set[str] = set()
        """The names of other queries that leave."""
        self._begins: dict[Executor, Beginning] = {}
        """What evaluates queries that come."""
        self._next_serial = run.listed.next_serial

    def serial(self) -> int:
        """The serial number of a query after all others."""
        self._next_serial += 1
        return self._next_serial - 1

    def query(self, name: str) -> RunQuery:
        """The query of a name, after the change.

        Raises:
            ChangeError: if there is none.
        """
        query = self._put.get(name) or self.run.listed.by_name.get(name)
        if query is None or name in self._dropped:
            known = ", ".join(query.plan.name for query in self.run.listed.queries)
            raise ChangeError(f"the run has no query {name}; it has {known}")
        return query

    def alone(self, name: str) -> RunQuery:
        """As `query`; if a template evaluates the query, all queries of the template leave it."""
        query = self.query(name)
        if query.executor.template is not None:
            self.divide(query.executor)
            query = self.query(name)
        return query

    @property
    def names(self) -> Container[str]:
        """The names that queries have."""
        return ChainMap(self._put, self.run.listed.by_name)

    # ------------------------------------------------------------------ parts of a change

    def put(self, query: RunQuery) -> None:
        """Have a query, in place of one of the same name, if there is one."""
        self._dropped.discard(query.plan.name)
        self._put[query.plan.name] = query

    def drop(self, name: str) -> None:
        """Remove a query."""
        self._put.pop(name, None)
        if name in self.run.listed.by_name:
            self._dropped.add(name)

    def begin(
        self, executor: Executor, kept: Executor | Part | None = None, drains: bool = False
    ) -> Executor:
        """Let an executor begin, from a state that it continues."""
        self._begins[executor] = Beginning(executor, kept, drains)
        return executor

    def add(
        self,
        name: str,
        program: CompiledQueries,
        unbound: ast.Query,
        former: RunQuery | None = None,
    ) -> RunQuery:
        """Add the query of a program of one query, or put it in place of a former one."""
        compiled = only_query(program, name)
        plan = compiled.plan
        if plan.registers_stream is not None:
            self.divide_all()
        direct = self._written.isdisjoint(plan.streams)
        compiled = self._numbers.numbered(compiled, program.patterns, not direct)
        source = program.sources[0]
        executor = self.begin(Executor(source, compiled, direct))
        serial = self.serial() if former is None else former.serial
        query = RunQuery(serial, source, name, unbound, compiled, executor)
        self.put(query)
        return query

    def replace(
        self,
        name: str,
        program: CompiledQueries,
        unbound: ast.Query,
        state: StatePolicy,
        instead: str = INSTEAD,
    ) -> None:
        """Replace a query.

        Args:
            name: Its name.
            program: A program of the new query.
            unbound: The source before variables were bound.
            state: What happens to the partial matches of the former query.
            instead: For messages: what the caller can do if the new query cannot continue them.
        """
        before = self.alone(name)
        after = self.add(name, program, unbound, before)
        if state == "drain":
            self.drain(before)
        elif state == "keep":
            differs = difference(before.compiled, after.compiled)
            if differs:
                raise ChangeError(
                    f"the state of the query {name} does not fit the new one: {differs}; {instead}"
                )
            self.begin(after.executor, self._kept(before))

    def drain(self, before: RunQuery) -> None:
        """Let a query begin no further partial matches, under a name of its own.

        Raises:
            ChangeError: if the query registers a stream or reads a registered one.
        """
        plan = before.plan
        kept = self._kept(before)
        if isinstance(kept, Executor) and kept.state.drains:
            raise ChangeError(f"the query {plan.name} drains already")
        if plan.registers_stream is not None or not self._written.isdisjoint(plan.streams):
            raise ChangeError(
                f"the query {plan.name} cannot drain, since it registers a stream or reads a "
                "registered one"
            )
        query = self._renamed(before, free_name(plan.shown, "draining", self.names), self.serial())
        query.executor = self.begin(Executor(query.source, query.compiled), kept, drains=True)
        self.put(query)

    def rename(self, before: RunQuery, what: str) -> str:
        """Give a query a free name that says what has become of it; returns the name."""
        name = free_name(before.plan.shown, what, self.names)
        self.drop(before.plan.name)
        self.put(self._renamed(before, name, before.serial))
        return name

    @staticmethod
    def _renamed(query: RunQuery, name: str, serial: int) -> RunQuery:
        compiled, shown = query.compiled, query.plan.shown
        return replace(
            query,
            serial=serial,
            source=unregistered(query.source),
            name=name,
            unbound=unregistered(query.unbound),
            compiled=replace(compiled, plan=replace(compiled.plan, name=name, shown_as=shown)),
        )

    def _kept(self, query: RunQuery) -> Executor | Part | None:
        """What has the state of a query."""
        executor = query.executor
        return self._begins[executor].kept if executor in self._begins else executor

    # ------------------------------------------------------------------ templates

    def divide_all(self) -> None:
        """Evaluate each query of a template separately."""
        for number in self.run.listed.divisions:
            self.divide(self.run.listed.executors[number])

    def divide(self, executor: Executor) -> None:
        """Evaluate each query of a template separately; those that have left it are dropped."""
        division = executor.division
        assert division is not None
        parts = division.parts()
        for query in executor.queries:
            if query.serial in division.silent:
                self.drop(query.plan.name)
            else:
                self.separate(query, parts[query.serial])

    def separate(self, query: RunQuery, kept: Part | None, serial: int | None = None) -> None:
        """Evaluate a query of a template by an automaton of its own.

        Args:
            query: The query.
            kept: Its part of the state, if it keeps that.
            serial: A new serial number.
        """
        patterns = query.patterns
        assert patterns is not None
        compiled = self._numbers.numbered(query.compiled, patterns, False)
        executor = self.begin(Executor(query.source, compiled), kept)
        serial = query.serial if serial is None else serial
        self.put(replace(query, serial=serial, compiled=compiled, executor=executor, patterns=None))

    def combine(
        self, queries: Sequence[RunQuery], fit: Fitting, patterns: Sequence[Pattern]
    ) -> None:
        """Evaluate idle queries as one.

        Args:
            queries: The queries of the run in the order of evaluation.
            fit: The template; its members are numbers of these queries.
            patterns: The patterns of its query.
        """
        serials = {number: queries[number].serial for number in fit.template.queries}
        template = fit.template.renumbered(serials)
        compiled = self._numbers.numbered(fit.compiled, patterns, False)
        embeddings = {serials[number]: each for number, each in fit.embeddings.items()}
        executor = self.begin(Executor(template.query, compiled, True, template, embeddings))
        for number in serials:
            query = queries[number]
            executor.matched[query.serial] = query.matched
            self.put(replace(query, executor=executor, patterns=query.patterns or self._known))

    @cached_property
    def _known(self) -> Sequence[Pattern]:
        """The patterns of the run before the change."""
        return tuple(self.run.listed.patterns)

    # ------------------------------------------------------------------ checks

    @property
    def _written(self) -> set[str]:
        """The streams that queries register after the change."""
        listed = self.run.listed
        written = set(listed.written)
        for name in (*self._dropped, *self._put):
            before = listed.by_name.get(name)
            if before is not None:
                written.discard(before.plan.registers_stream or "")
        registered = (query.plan.registers_stream for query in self._put.values())
        return written.union(iri for iri in registered if iri is not None)

    def check_streams(self, new_streams: bool) -> None:
        """Check which streams the queries read and register.

        Raises:
            ChangeError: if a query reads a stream that the run does not have (unless
                `new_streams`), or if the streams that are registered do not fit.
        """
        if self.run.listed.written or self._written:
            self._check_registered()
        if new_streams:
            return
        written, clock = self._written, self.run.clock
        for plan in (query.plan for query in self._put.values()):
            for iri in plan.streams:
                if iri not in written and iri not in clock.per_stream:
                    streams = ", ".join(f"<{other}>" for other in clock.streams)
                    raise ChangeError(
                        f"the query {plan.name} reads the stream <{iri}>, which the run does not "
                        f"have; its streams are {streams}. If its events will be pushed from now "
                        "on, say so: new_streams=True"
                    )

    def _check_registered(self) -> None:
        """Check the streams that are registered, and the order of the queries; visits all."""
        listed = self.run.listed
        before = listed.written
        known = {q.plan.name: q for q in listed.queries if q.plan.name not in self._dropped}
        queries = list((known | self._put).values())
        plans = [query.plan for query in queries]
        written: dict[str, str] = {}
        for plan in plans:
            iri = plan.registers_stream
            if iri is None:
                continue
            if iri in written:
                raise ChangeError(f"{plan.name} and {written[iri]} both register <{iri}>")
            if iri in self.run.clock.streams:
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
        queries.sort(key=attrgetter("serial"))
        if [plan.name for plan in in_order(q.plan for q in queries)] != [p.name for p in plans]:
            raise ChangeError(
                "a query would read a stream before the query that registers it: remove the reader "
                "and add it again"
            )

    # ------------------------------------------------------------------ the change

    def apply(self) -> None:
        """Make the change.

        Raises:
            KbError, LimitExceeded: if the run cannot have a query; nothing has changed.
            ChangeError: if a reader drops triples that a query needs, or a state does not fit.
        """
        executors = {query.executor for query in self._put.values()}
        begins = [each for each in self._begins.values() if each.executor in executors]
        self.run.change(Edit(self._put, self._dropped, begins, self._numbers.new))


class Joining(Change):
    """The run with the queries of another one, which go on with their states.

    Both runs must be at the same time, with no timestamp open, and have the same knowledge base.
    The other run must not be used afterwards.

    Raises:
        ChangeError: if a query does not fit the run.
    """

    def __init__(self, run: Evaluation, other: Evaluation):
        super().__init__(run)
        self.divide_all()
        self._other = other
        other.catch_up()
        written, own = other.listed.written, other.listed.patterns
        parts: dict[Executor, dict[int, Part]] = {}
        for query in other.listed.queries:
            kept: Executor | Part = query.executor
            division = query.executor.division
            if division is not None:
                if query.serial in division.silent:
                    continue
                if query.executor not in parts:
                    parts[query.executor] = division.parts()
                kept = parts[query.executor][query.serial]
            check_new_name(run, query.plan.name)
            direct = written.isdisjoint(query.plan.streams)
            patterns = own if query.patterns is None else query.patterns
            compiled = self._numbers.numbered(query.compiled, patterns, not direct)
            executor = self.begin(Executor(query.source, compiled, direct), kept)
            self.put(
                replace(
                    query,
                    serial=self.serial(),
                    compiled=compiled,
                    executor=executor,
                    patterns=None,
                )
            )
        self.check_streams(True)

    def apply(self) -> None:
        """Take over the queries, as `Change.apply`, and what the clock of their run knows."""
        run, other = self.run, self._other
        super().apply()
        run.clock.join(other.clock)
        run.registered.times |= other.registered.times
        run.registered.ordinals |= other.registered.ordinals


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
    queries = evaluation.listed.queries
    known = variables_of(query.unbound for query in queries)
    for name in values:
        if name not in known:
            shown = ", ".join(f"?{each}" for each in sorted(known)) or "none"
            raise ValueError(f"no query uses the variable ?{name}; their variables are {shown}")
    evaluation.bound = evaluation.bound | parameter_terms(values)
    change = Change(evaluation)
    for query in queries:
        division = query.executor.division
        leaves = query.state.drains if division is None else query.serial in division.silent
        if not leaves and not values.keys().isdisjoint(variables_of([query.unbound])):
            alone = replace(
                like, queries=(), tasks=(), asked=(), sources=(query.unbound,), names=(query.name,)
            )
            change.replace(
                query.plan.name,
                *bound_program(evaluation, alone),
                "keep",
                "bind the variable where the query is compiled, and replace the query",
            )
    change.check_streams(False)
    return change

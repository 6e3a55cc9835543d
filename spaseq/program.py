"""Query texts → a `Program`, which holds everything that can be decided before the first event.

A program is immutable, picklable and can be shared; `start` creates the mutable `Run` of one
evaluation. GPMs that are equal except for the names of their variables, in one query or several,
are one task, evaluated once per event. A query that reads a registered stream runs after the
query that registers it. `explain` and the drawings import their modules when they are called, so
that a run starts without them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from os import PathLike
from types import MappingProxyType
from typing import Any, TypeAlias

from spaseq.async_runs import AsyncRun
from spaseq.engine.aggregates import RunningAggregates
from spaseq.engine.changes import unregistered
from spaseq.engine.checkpoint import SavedState, without_collection
from spaseq.engine.compiled import CompiledQueries, CompiledQuery, in_order, in_short
from spaseq.engine.entailment import Entailment, widened_patterns
from spaseq.engine.limit_errors import OnLimit, limits_of
from spaseq.engine.parameters import bind_parameters, parameter_terms
from spaseq.engine.residual_filters import looks_at_graphs, pattern_of
from spaseq.engine.sharing import SharedProgram, assembled, templates_of, unshared
from spaseq.engine.tracing import traced
from spaseq.errors import ArgumentError, QueryError, QueryWarning, SpaseqError, StateError, kind_of
from spaseq.gpm.pattern import Pattern, canonical, compile_pattern
from spaseq.gpm.program import compile_gpm
from spaseq.gpm.python.geometry import check_installed
from spaseq.kb.coverage import unread_warnings
from spaseq.kb.snapshot import Kb, open_kb
from spaseq.nfa.compile import MAX_TRANSITIONS, compile_automaton
from spaseq.nfa.registers import RegisterFile
from spaseq.parser import ast
from spaseq.plan.examine import plan_queries, read_queries
from spaseq.plan.logical import QueryPlan
from spaseq.plan.planner import plan_checked
from spaseq.plan.templates import Template
from spaseq.rdf.accepted import Bindable
from spaseq.rdf.limits import NO_LIMITS, Limits
from spaseq.rdf.time import TimePrecision
from spaseq.rules import enabled
from spaseq.runs import Run

AnyQuery: TypeAlias = str | PathLike[str]
"""The text of a query, or the path of a file."""


class Program(CompiledQueries):
    """One or several compiled queries, from which runs are started."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Program of {in_short(self)}>"

    def _repr_html_(self) -> str:
        from spaseq.explain.notebook import program_html

        return program_html(self)

    def bind(self, values: Mapping[str, Bindable]) -> Program:
        """The program with query variables fixed to values.

        Args:
            values: Variable name → term or plain Python value.

        Raises:
            ValueError: if no query uses a name as a free variable.

        Example:
            >>> program.bind({"threshold": 20})
        """
        if not values:
            return self
        return _compile(bind_parameters(self.sources, values), self.names)

    def beside(self, versions: Mapping[str, tuple[str, ast.Query]]) -> Program:
        """The program with old versions of queries after its own queries.

        Args:
            versions: The name of each old version → its name in matches, and its syntax tree.

        Example:
            >>> program.beside({"hot (draining)": ("hot", spaseq.compile(before).sources[0])})
        """
        if not versions:
            return self
        sources = [unregistered(source) for _, source in versions.values()]
        program = _compile((*self.sources, *sources), (*self.names, *versions))
        return program._shown_as({name: shown for name, (shown, _) in versions.items()})

    def _shown_as(self, shown: Mapping[str, str]) -> Program:
        """The program whose queries have other names in their matches: name → name in matches."""
        queries = [
            replace(one, plan=replace(one.plan, shown_as=shown.get(one.plan.name)))
            for one in self.queries
        ]
        return replace(self, queries=tuple(queries))

    def start(
        self,
        kb: Mapping[str, Any] | Any = None,
        bind: Mapping[str, Bindable] | None = None,
        entail: str | None = None,
        max_groups: int | None = None,
        max_steps: int | None = None,
        max_memory: int | None = None,
        on_limit: OnLimit = "stop",
        time_precision: TimePrecision = "error",
        prune: bool = True,
        share: bool = True,
        max_matches: int | None = None,
    ) -> Run:
        """Start a run.

        Args:
            kb: The knowledge base: graph IRI → path, URL, store, graph, `Endpoint` or iterable of
                triples; or an opened `Kb`.
            bind: Query variable → term or plain Python value.
            entail: `rdfs` or `owl-ql`, to match also triples entailed by the KB's schema.
            max_groups: The maximum number of groups of partial matches of each query.
            max_steps: The maximum number of steps of one event, in each graph pattern and in the
                automaton of each query (see `spaseq.rdf.limits`).
            max_memory: The maximum number of bytes of the rows of one event in each graph pattern.
            on_limit: Beyond a limit, raise `LimitExceeded` (`stop`) or drop the oldest groups
                (`shed`).
            time_precision: How to treat a pushed time finer than a microsecond: as an error
                (`error`), by rounding down (`truncate`) or to the nearest microsecond (`round`).
            prune: Whether readers drop the triples that no query can use. False: they keep all, so
                that queries about any triples can be added to the run.
            share: Whether queries that differ in constants, in their last steps, or in what they
                select, are evaluated as one (see `explain`) until one of them is replaced, removed
                or bound. With `entail` or limits other than `max_matches`, they are evaluated
                separately.
            max_matches: The maximum number of matches of each query that one event completes, or
                that come out at one time because windows close.

        Raises:
            KbError: if the knowledge base cannot be read.
            ValueError: if `bind` names a variable that no query uses.

        Example:
            >>> run = program.start(kb={"http://example.org/house": "house.ttl"})
        """
        limits = limits_of(max_groups, max_steps, max_matches, max_memory, on_limit)
        with without_collection():
            program, shared = self.bind(bind or {}), None
            if share and _can_share(limits) and entail is None:
                shared = program._shared(templates_of(program))
            terms = parameter_terms(bind or {})
            run = Run(program, kb, terms, entail, limits, prune, shared, self.sources)
        run.clock.time_precision = time_precision
        for text in unread_warnings(self.sources, run.kb.graphs):
            warnings.warn(text, QueryWarning, stacklevel=2)
        return run

    def astart(self, **options: Any) -> AsyncRun:
        """A run for asyncio: `async with program.astart() as run: await run.push(…)`.

        Args:
            options: The arguments of `start`.

        Example:
            >>> async with program.astart() as run:
            ...     await run.push("sensors", now, triples)
        """
        return AsyncRun(lambda: self.start(**options))

    def resume(
        self,
        blob: bytes,
        kb: Mapping[str, Any] | Any = None,
        max_groups: int | None = None,
        max_steps: int | None = None,
        max_memory: int | None = None,
        on_limit: OnLimit = "stop",
        time_precision: TimePrecision = "error",
        prune: bool = True,
        share: bool = True,
        max_matches: int | None = None,
    ) -> Run:
        """Continue a run from a blob of `Run.save`.

        The blob includes bound variables and entailment. The knowledge base, the limits,
        `time_precision`, `prune` and `share` are not part of it; the arguments are those of
        `start`. If the queries of the saved run were changed, the program must have them in the
        order of `Run.program`: added queries come last.

        Args:
            blob: What `Run.save` returned.
            kb: As for `start`.
            max_groups: As for `start`.
            max_steps: As for `start`.
            max_memory: As for `start`.
            on_limit: As for `start`.
            time_precision: As for `start`.
            prune: As for `start`.
            share: As for `start`.
            max_matches: As for `start`.

        Raises:
            StateError: if the blob is damaged, or of another version or program.

        Example:
            >>> run = program.resume(Path("run.state").read_bytes())
        """
        saved = SavedState(blob)
        program = self if saved.fits(self) else self._as_bound(saved)
        limits = limits_of(max_groups, max_steps, max_matches, max_memory, on_limit)
        shared = program._shared(saved.templates(program))
        if len(shared.templates) < len(saved.shares):
            raise StateError("the saved state has queries as one that this program cannot share")
        shared = saved.with_own_states(shared)
        run = Run(program, kb, saved.bound, saved.entail, limits, prune, shared, self.sources)
        saved.restore(run.evaluation)
        if shared.templates and not (share and _can_share(limits)):
            run.divide()
        run.clock.time_precision = time_precision
        return run

    def _shared(self, chosen: Sequence[Template]) -> SharedProgram:
        """The program with some templates, as far as their automata allow it."""
        if not chosen:
            return unshared(self)
        names = [self.queries[template.queries[0]].plan.name for template in chosen]
        return assembled(self, chosen, self.compile_templates(chosen, names))

    @staticmethod
    def compile_templates(chosen: Sequence[Template], names: Sequence[str]) -> Program:
        """The program of some templates, for the package itself.

        Args:
            chosen: The templates.
            names: A name for each.

        Example:
            >>> program.compile_templates(templates_of(program), ["alerts"])
        """
        # Their queries have been checked, and templates have parts that no text can express.
        plans = [plan_checked(t.query, name, ()) for t, name in zip(chosen, names, strict=True)]
        return _compiled(plans, [template.query for template in chosen], names)

    def _together(self, entail: str | None) -> Sequence[Template] | None:
        """The templates of a run without limits."""
        return None if entail else list(self._shared(templates_of(self)).templates.values())

    def _widened(self, kb: Any, entail: str | None) -> list[list[dict[str, Any]]]:
        opened = kb if isinstance(kb, Kb) else open_kb(kb or {})
        closures = Entailment(self, entail).closures(opened)
        return widened_patterns(self, {seen: each.rules for seen, each in closures.items()})

    def _as_bound(self, saved: SavedState) -> Program:
        try:
            program = self.bind(saved.bound)
        except (ValueError, QueryError) as error:
            raise StateError(f"the saved state belongs to another program: {error}") from error
        if not saved.fits(program):
            raise StateError(
                f"the saved state belongs to another program: {saved.difference(program)}. "
                "Resume it with the queries (and bound variables) that it was saved with"
            )
        return program

    def explain(self, kb: Mapping[str, Any] | Any = None, entail: str | None = None) -> str:
        """The plan as text: GPMs, places, registers, indexes.

        With `entail`, it also shows how the schema of `kb` widens patterns.

        Args:
            kb: As for `start`; read only with `entail`.
            entail: As for `start`.

        Example:
            >>> print(program.explain())
        """
        from spaseq.explain.report import explain

        return explain(self, widened=self._widened(kb, entail), templates=self._together(entail))

    def to_dict(
        self, kb: Mapping[str, Any] | Any = None, entail: str | None = None
    ) -> dict[str, Any]:
        """The plan as plain data; the arguments are those of `explain`.

        Args:
            kb: As for `explain`.
            entail: As for `explain`.

        Example:
            >>> program.to_dict()["queries"]
        """
        from spaseq.explain.report import to_dict

        return to_dict(self, widened=self._widened(kb, entail), templates=self._together(entail))

    def to_dot(self) -> str:
        """The automata in Graphviz's DOT language.

        Example:
            >>> Path("query.dot").write_text(program.to_dot())
        """
        from spaseq.explain.graphviz import to_dot

        return to_dot(self)

    def to_mermaid(self) -> str:
        """The automata as a Mermaid flow chart.

        Example:
            >>> print(program.to_mermaid())
        """
        from spaseq.explain.mermaid import to_mermaid

        return to_mermaid(self)

    def to_svg(self) -> str:
        """The automata as an SVG image, whose colours follow the page around it.

        Example:
            >>> Path("query.svg").write_text(program.to_svg())
        """
        from spaseq.explain.automaton_svg import to_svg

        return to_svg(self)


def _can_share(limits: Limits) -> bool:
    """Whether a run can evaluate queries as one.

    Traces and limits are separate for each query, but the matches of each are counted even so.
    """
    return replace(limits, matches=None) == NO_LIMITS and not traced() and enabled("templates")


def compile_queries(
    texts: AnyQuery | Sequence[AnyQuery],
    *,
    names: Sequence[str] | None = None,
    bind: Mapping[str, Bindable] | None = None,
) -> Program:
    """Compile one query, or several queries that share work.

    Args:
        texts: A query, or several: each a text, or the path of a file. A `str` without a brace that
            ends in `.rq` or `.sparql` is a path as well.
        names: Names for queries that register none. The default is the stem of the query's file.
            For a text it is `query`, or, if there are several queries, `query1` and so on.
        bind: Query variable → term or plain Python value.

    Raises:
        ArgumentError: for a query that is neither text nor path, and for no query.
        QueryError: with every error of the first invalid text; `others` has the errors of the
            other texts.
        ValueError: if `bind` names a variable that no query uses.
        SpaseqError: if a file cannot be read, or a function needs a library that is not installed.

    Example:
        >>> program = spaseq.compile(Path("rise.rq"), bind={"threshold": 20})
    """
    given = [texts] if isinstance(texts, str | PathLike) else _listed(texts)
    if not given:
        raise ArgumentError("a query is needed, and the list is empty")
    paths = [_query_path(each) for each in given]
    listed = [
        _read(path) if path is not None else str(each)
        for each, path in zip(given, paths, strict=True)
    ]
    if names is None:
        names = _names(paths)
    elif isinstance(names, str):
        raise ArgumentError(f"names: a sequence of names is needed, as in [{names!r}]")
    elif len(names) != len(listed):
        raise SpaseqError(f"names has {len(names)} names for {len(listed)} queries")
    elif not all(isinstance(name, str) and name.strip() for name in names):
        raise ArgumentError(f"names: names that are not empty are needed, not {list(names)!r}")
    elif len(set(names)) < len(names):
        raise ArgumentError(f"names: different names are needed, not {list(names)!r}")
    with without_collection():
        parsed = read_queries(listed, names)
        if bind:
            parsed = bind_parameters(parsed, bind)
        return _compile(parsed, tuple(names))


def compile_each(
    queries: Sequence[tuple[str, str, Mapping[str, Bindable]]],
    shown: Mapping[str, str] = MappingProxyType({}),
) -> Program:
    """Compile several queries that share work, each with values of its own variables.

    Args:
        queries: For each query, its name (if it registers none), its text, and the values of its
            variables, as for `compile_queries`.
        shown: The name of a query that drains, which it does not register → its name in matches.

    Raises:
        QueryError, ValueError, SpaseqError: as for `compile_queries`.
    """
    names = [name for name, _, _ in queries]
    parsed = read_queries([text for _, text, _ in queries], names)
    bound = [
        bind_parameters([one], values)[0] if values else one
        for one, (_, _, values) in zip(parsed, queries, strict=True)
    ]
    if not shown:
        return _compile(bound, tuple(names))
    bound = [
        unregistered(one) if name in shown else one for one, name in zip(bound, names, strict=True)
    ]
    return _compile(bound, tuple(names))._shown_as(shown)


def _listed(texts: object) -> list[AnyQuery]:
    listed = list(texts) if isinstance(texts, list | tuple) else None
    if listed is None or not all(isinstance(each, str | PathLike) for each in listed):
        wrong = (
            texts
            if listed is None
            else next(each for each in listed if not isinstance(each, str | PathLike))
        )
        raise ArgumentError(
            "a query is a text (str) or the path of a file, or several of them are a list, not "
            f"{kind_of(wrong)}"
        )
    return listed


def _query_path(given: AnyQuery) -> str | None:
    """The path of a query, if the query is given as a path."""
    if isinstance(given, str):
        return given if "{" not in given and given.endswith((".rq", ".sparql")) else None
    return os.fspath(given)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read()
    except OSError as error:
        raise SpaseqError(f"the query {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SpaseqError(f"the query {path} is not UTF-8: {error.reason}") from error


def _names(paths: Sequence[str | None]) -> list[str]:
    """The default names of queries, all different."""
    names: list[str] = []
    for number, path in enumerate(paths, 1):
        alone = "query" if len(paths) == 1 else f"query{number}"
        stem = alone if path is None else os.path.splitext(os.path.basename(path))[0]
        numbered = (f"{stem}-{n}" for n in count(2))
        names.append(next(name for name in chain([stem], numbered) if name not in names))
    return names


def _compile(parsed: Sequence[ast.Query], names: Sequence[str]) -> Program:
    plans = plan_queries(parsed, names)
    calls = (node for node in ast.walk(tuple(parsed)) if isinstance(node, ast.FunctionCall))
    check_installed(call.function.value for call in calls)
    return _compiled(plans, parsed, names, MAX_TRANSITIONS)


def _compiled(
    plans: Sequence[QueryPlan],
    parsed: Sequence[ast.Query],
    names: Sequence[str],
    most_transitions: int | None = None,
) -> Program:
    tasks: list[Pattern] = []
    known: dict[Pattern, int] = {}
    compiled = []
    for one in in_order(plans):
        numbers = []
        for gpm in one.gpms:
            program = compile_gpm(gpm.pattern, gpm.at, one.kb_graphs)
            if program.variables != gpm.variables:
                raise AssertionError(f"columns of {gpm.name} differ between plan and program")
            task = compile_pattern(program, [c.expression for c in gpm.local])
            numbers.append(known.setdefault(canonical(task), len(tasks)))
            if numbers[-1] == len(tasks):
                tasks.append(task)
        compiled.append((one, tuple(numbers)))
    asked: dict[Pattern, int] = {}
    queries = tuple(
        CompiledQuery(
            one,
            compile_automaton(one, most_transitions),
            numbers,
            _graph_filters(one, asked, len(tasks)),
        )
        for one, numbers in compiled
    )
    return Program(queries, tuple(tasks), tuple(asked), tuple(parsed), tuple(names))


def _graph_filters(
    one: QueryPlan, known: dict[Pattern, int], first: int
) -> tuple[tuple[int, ...], ...]:
    """The patterns of residual filters that read graphs, numbered from `first`.

    There is one number per residual filter of each occurrence, -1 if it reads no graph.
    """
    slots = RegisterFile(one, RunningAggregates()).slots()
    numbered = []
    for occurrence in one.occurrences:
        numbers = []
        for condition in occurrence.residual:
            number = -1
            if looks_at_graphs(condition.expression):
                pattern = pattern_of(condition.expression, slots, one.kb_graphs)
                number = first + known.setdefault(pattern, len(known))
            numbers.append(number)
        numbered.append(tuple(numbers))
    return tuple(numbered)

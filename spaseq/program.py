"""Query texts → a `Program`: everything that can be decided before the first event.

A program is immutable, picklable and shared; `start` makes the mutable `Run` of one
evaluation. GPMs that are the same but for the names of their variables, in one query or in several,
are one task, evaluated once per event. Queries that read what another registers come after it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spaseq.engine.aggregates import RunningAggregates
from spaseq.engine.checkpoint import SavedState
from spaseq.engine.compiled import CompiledQueries, CompiledQuery
from spaseq.engine.entailment import Entailment, widened_patterns
from spaseq.engine.limit_errors import OnLimit, limits_of
from spaseq.engine.parameters import bind_parameters, parameter_terms
from spaseq.engine.residual_filters import looks_at_graphs, pattern_of
from spaseq.errors import QueryError, QueryWarning, StateError
from spaseq.explain import report as explanation
from spaseq.explain import svg
from spaseq.gpm.pattern import Pattern, alike, compile_pattern
from spaseq.gpm.program import compile_gpm
from spaseq.kb.coverage import unread_warnings
from spaseq.kb.snapshot import Kb, open_kb
from spaseq.nfa.compile import compile_automaton
from spaseq.nfa.registers import RegisterFile
from spaseq.parser import ast
from spaseq.plan.examine import plan_queries, read_queries
from spaseq.plan.logical import QueryPlan
from spaseq.rdf.event import Term
from spaseq.rdf.time import TimePrecision
from spaseq.runs import Run


class Program(CompiledQueries):
    """One or several compiled queries: makes runs, and says how they will go."""

    __slots__ = ()

    def bind(self, values: Mapping[str, object]) -> Program:
        """The program with query variables fixed to values.

        Raises:
            ValueError: for a name that no query uses as a free variable.
        """
        if not values:
            return self
        return _compile(bind_parameters(self.sources, values), self.names)

    def start(
        self,
        kb: Mapping[str, Any] | Any = None,
        bind: Mapping[str, object] | None = None,
        entail: str | None = None,
        max_groups: int | None = None,
        max_steps: int | None = None,
        max_memory: int | None = None,
        on_limit: OnLimit = "stop",
        time_precision: TimePrecision = "error",
    ) -> Run:
        """A new run over a knowledge base.

        `kb` maps graph IRIs to paths, stores, graphs or iterables of triples, or is an
        opened `Kb`; `bind` fixes query variables to terms or plain Python values; `entail`
        is `rdfs` or `owl-ql` where patterns shall match what follows from the KB's schema.

        `max_groups` bounds the groups of partial matches of each query, `max_steps` the steps
        that one event may take, `max_memory` the bytes of the rows that a graph pattern may have
        for one event (see `spaseq.rdf.limits`). Beyond a bound the run stops with
        `LimitExceeded`; with `on_limit="shed"` it drops the oldest groups where it can.

        `time_precision` is what a pushed time finer than a microsecond becomes: an error, the
        microsecond at or before it ("truncate"), or the nearest one ("round").
        """
        limits = limits_of(max_groups, max_steps, max_memory, on_limit)
        run = Run(self.bind(bind or {}), kb, parameter_terms(bind or {}), entail, limits)
        run.time_precision = time_precision
        for text in unread_warnings(self.sources, run.kb.graphs):
            warnings.warn(text, QueryWarning, stacklevel=2)
        return run

    def resume(
        self,
        blob: bytes,
        kb: Mapping[str, Any] | Any = None,
        max_groups: int | None = None,
        max_steps: int | None = None,
        max_memory: int | None = None,
        on_limit: OnLimit = "stop",
        time_precision: TimePrecision = "error",
    ) -> Run:
        """The run that `Run.save` put down, its bound variables and entailment included.

        Bounds and `time_precision` are given again, as the knowledge base is.

        Raises:
            StateError: if the blob is damaged, of another version, or of another program.
        """
        saved = SavedState(blob)
        program = self if saved.fits(self) else self._as_bound(saved)
        limits = limits_of(max_groups, max_steps, max_memory, on_limit)
        run = Run(program, kb, saved.bound, saved.entail, limits)
        saved.restore(run)
        run.time_precision = time_precision
        return run

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
                "Resume it with the very queries (and bound variables) that it was saved with"
            )
        return program

    def explain(self, kb: Mapping[str, Any] | Any = None, entail: str | None = None) -> str:
        """The plan as text: GPMs, places, registers, indexes.

        With `entail`, also what patterns are widened to by the schema of the KB.
        """
        return explanation.explain(self, widened=self._widened(kb, entail))

    def to_dict(
        self, kb: Mapping[str, Any] | Any = None, entail: str | None = None
    ) -> dict[str, Any]:
        """The plan as plain data; the arguments are those of `explain`."""
        return explanation.to_dict(self, widened=self._widened(kb, entail))

    def to_dot(self) -> str:
        """The automata in Graphviz's language."""
        return svg.to_dot(self)

    def to_svg(self) -> str:
        """The automata as a picture."""
        return svg.to_svg(self)


def compile_queries(
    texts: str | Sequence[str],
    *,
    names: Sequence[str] | None = None,
    bind: Mapping[str, Term | object] | None = None,
) -> Program:
    """Compile one query or several that share the work.

    `names` stand in for queries that register none; by default `query`, or `query1`, …

    Raises:
        QueryError: with every error found in the first text that has any; `others` has the
            errors of the other texts.
    """
    listed = [texts] if isinstance(texts, str) else list(texts)
    if names is None:
        names = ["query"] if len(listed) == 1 else [f"query{n + 1}" for n in range(len(listed))]
    parsed = read_queries(listed, names)
    if bind:
        parsed = bind_parameters(parsed, bind)
    return _compile(parsed, tuple(names))


def _compile(parsed: Sequence[ast.Query], names: Sequence[str]) -> Program:
    plans = plan_queries(parsed, names)
    tasks: list[Pattern] = []
    known: dict[Pattern, int] = {}
    compiled = []
    for one in _in_order(plans):
        numbers = []
        for gpm in one.gpms:
            program = compile_gpm(gpm.pattern, gpm.at, one.kb_graphs)
            if program.variables != gpm.variables:
                raise AssertionError(f"columns of {gpm.name} differ between plan and program")
            task = compile_pattern(program, [c.expression for c in gpm.local])
            numbers.append(known.setdefault(alike(task), len(tasks)))
            if numbers[-1] == len(tasks):
                tasks.append(task)
        compiled.append((one, tuple(numbers)))
    asked: dict[Pattern, int] = {}
    queries = tuple(
        CompiledQuery(one, compile_automaton(one), numbers, _asked(one, asked, len(tasks)))
        for one, numbers in compiled
    )
    return Program(queries, tuple(tasks), tuple(asked), tuple(parsed), tuple(names))


def _asked(one: QueryPlan, known: dict[Pattern, int], first: int) -> tuple[tuple[int, ...], ...]:
    """The patterns of the filters that look at graphs, numbered from `first` on."""
    slots = RegisterFile(one, RunningAggregates()).slots()
    found = []
    for occurrence in one.occurrences:
        numbers = []
        for condition in occurrence.residual:
            number = -1
            if looks_at_graphs(condition.expression):
                pattern = pattern_of(condition.expression, slots, one.kb_graphs)
                number = first + known.setdefault(pattern, len(known))
            numbers.append(number)
        found.append(tuple(numbers))
    return tuple(found)


def _in_order(plans: Iterable[QueryPlan]) -> list[QueryPlan]:
    """Writers of streams before their readers; otherwise as given (cycles are errors)."""
    left = list(plans)
    ordered: list[QueryPlan] = []
    while left:
        for one in left:
            unwritten = {other.registers_stream for other in left if other is not one}
            if not unwritten & set(one.streams):
                ordered.append(one)
                left.remove(one)
                break
        else:
            raise AssertionError("registered streams form a cycle")
    return ordered

"""Query texts → a `Program`: everything that can be decided before the first event.

A program is immutable, picklable and shared; `start` makes the mutable `Run` of one
evaluation. GPMs that are the same in several queries are one task, evaluated once per
event. Queries that read what another registers come after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spaseq.engine.parameters import bind_parameters, parameter_terms
from spaseq.errors import Diagnostic, QuerySemanticError
from spaseq.gpm.program import GpmProgram, compile_gpm
from spaseq.nfa.automaton import Automaton
from spaseq.nfa.compile import compile_automaton
from spaseq.parser import ast, parse
from spaseq.plan.check import check_program
from spaseq.plan.logical import Condition, QueryPlan
from spaseq.plan.planner import plan
from spaseq.rdf.event import Term

if TYPE_CHECKING:
    from spaseq.engine.run import Run


@dataclass(frozen=True, slots=True)
class GpmTask:
    """One graph pattern with its local filters; queries share equal tasks."""

    program: GpmProgram
    local: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """One query: its plan, its automaton, and the task of each of its GPMs."""

    plan: QueryPlan
    automaton: Automaton
    tasks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """One or several compiled queries."""

    queries: tuple[CompiledQuery, ...]
    """In an order in which every registered stream is written before it is read."""
    tasks: tuple[GpmTask, ...]
    sources: tuple[ast.Query, ...]
    names: tuple[str, ...]

    @property
    def streams(self) -> tuple[str, ...]:
        """The IRIs of the streams that come from outside."""
        written = {query.plan.registers_stream for query in self.queries}
        read = dict.fromkeys(iri for query in self.queries for iri in query.plan.streams)
        return tuple(iri for iri in read if iri not in written)

    @property
    def stream_names(self) -> Mapping[str, str]:
        """The names that the queries give their streams, with their IRIs."""
        return {s.name: s.iri.value for query in self.sources for s in query.streams}

    @property
    def kb_graphs(self) -> tuple[str, ...]:
        """The KB graphs that `FROM` and `FROM NAMED` ask for."""
        named = dict.fromkeys(kb.iri.value for query in self.sources for kb in query.kbs)
        return tuple(named)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(finding for query in self.queries for finding in query.plan.warnings)

    def bind(self, values: Mapping[str, object]) -> Program:
        """The program with query variables fixed to values.

        Raises:
            ValueError: for a name that no query uses as a free variable.
        """
        if not values:
            return self
        return _compile(bind_parameters(self.sources, values), self.names)

    def start(
        self, kb: Mapping[str, Any] | Any = None, bind: Mapping[str, object] | None = None
    ) -> Run:
        """A new run over a knowledge base.

        `kb` maps graph IRIs to paths, stores, graphs or iterables of triples, or is an
        opened `Kb`; `bind` fixes query variables to terms or plain Python values.
        """
        from spaseq.engine.run import Run

        return Run(self.bind(bind or {}), kb, parameter_terms(bind or {}))

    def resume(self, blob: bytes, kb: Mapping[str, Any] | Any = None) -> Run:
        """The run that `Run.save` put down, its bound variables included.

        Raises:
            StateError: if the blob is damaged, of another version, or of another program.
        """
        from spaseq.engine.state import resumed

        return resumed(self, blob, kb)

    def explain(self) -> str:
        """The plan as text: GPMs, places, registers, indexes."""
        from spaseq.engine.explain import explain

        return explain(self)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        from spaseq.engine.explain import to_dict

        return to_dict(self)

    def to_dot(self) -> str:
        """The automata in Graphviz's language."""
        from spaseq.engine.draw import to_dot

        return to_dot(self)

    def to_svg(self) -> str:
        """The automata as a picture."""
        from spaseq.engine.draw import to_svg

        return to_svg(self)


def compile_queries(
    texts: str | Sequence[str],
    *,
    names: Sequence[str] | None = None,
    bind: Mapping[str, Term | object] | None = None,
) -> Program:
    """Compile one query or several that share the work.

    `names` stand in for queries that register none; by default `query`, or `query1`, …

    Raises:
        QueryError: with every error found in the first text that has any.
    """
    listed = [texts] if isinstance(texts, str) else list(texts)
    if names is None:
        names = ["query"] if len(listed) == 1 else [f"query{n + 1}" for n in range(len(listed))]
    parsed = tuple(parse(text, name) for text, name in zip(listed, names, strict=True))
    if bind:
        parsed = bind_parameters(parsed, bind)
    return _compile(parsed, tuple(names))


def _compile(parsed: Sequence[ast.Query], names: Sequence[str]) -> Program:
    plans = [plan(query, name) for query, name in zip(parsed, names, strict=True)]
    _check_together(parsed, names)
    tasks: dict[GpmTask, int] = {}
    compiled = []
    for one in _in_order(plans):
        numbers = []
        for gpm in one.gpms:
            program = compile_gpm(gpm.pattern, gpm.at, one.kb_graphs)
            if program.variables != gpm.variables:
                raise AssertionError(f"columns of {gpm.name} differ between plan and program")
            task = GpmTask(program, gpm.local)
            numbers.append(tasks.setdefault(task, len(tasks)))
        compiled.append(CompiledQuery(one, compile_automaton(one), tuple(numbers)))
    return Program(tuple(compiled), tuple(tasks), tuple(parsed), tuple(names))


def _check_together(parsed: Sequence[ast.Query], names: Sequence[str]) -> None:
    findings: dict[int, list[Diagnostic]] = {}
    for number, finding in check_program(list(parsed)):
        if finding.severity == "error":
            findings.setdefault(number, []).append(finding)
    for number, found in findings.items():
        raise QuerySemanticError(found, parsed[number].text, names[number])


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

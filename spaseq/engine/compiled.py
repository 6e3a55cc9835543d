"""What compiling queries gives: plans, automata and shared tasks, as frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spaseq.errors import Diagnostic
from spaseq.gpm.pattern import Pattern
from spaseq.nfa.automaton import Automaton
from spaseq.parser import ast
from spaseq.plan.logical import QueryPlan


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """One query: its plan, its automaton, and the task of each of its GPMs."""

    plan: QueryPlan
    automaton: Automaton
    tasks: tuple[int, ...]
    asked: tuple[tuple[int, ...], ...]
    """For each occurrence and residual filter the number, after the tasks, of its pattern, where
    it looks at graphs; else -1."""


@dataclass(frozen=True, slots=True)
class CompiledQueries:
    """One or several compiled queries, and what they need from outside."""

    queries: tuple[CompiledQuery, ...]
    """In an order in which every registered stream is written before it is read."""
    tasks: tuple[Pattern, ...]
    """The graph patterns with their local filters; queries share equal ones."""
    asked: tuple[Pattern, ...]
    """The filters over partial matches that look at graphs, each as a pattern; like the tasks."""
    sources: tuple[ast.Query, ...]
    names: tuple[str, ...]

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """All that events are matched against: the tasks, then what filters ask."""
        return (*self.tasks, *self.asked)

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

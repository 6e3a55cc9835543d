"""The context in which an expression or a pattern is evaluated: graphs and outer bindings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TypeAlias, TypeGuard

import pyoxigraph as ox

from spaseq.gpm.named_graphs import NamedGraphs, event_graph
from spaseq.gpm.python.calls import Calls
from spaseq.gpm.python.work import CHUNK, R, Work
from spaseq.parser import ast
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.event import Event, Term
from spaseq.rdf.graph import EMPTY, Graph
from spaseq.rdf.native._terms import check

_NOTHING: Mapping[str, Term] = {}

Errors: TypeAlias = dict[int | ast.Expr, ErrorCount]
"""By the positions of local filters, and by the expressions within a pattern."""


class Scope:
    """The context of one evaluation.

    event      the event that EXISTS reads; None: none
    kb         the KB that EXISTS and GRAPH read; None: none
    kb_graphs  the KB graphs that GRAPH ranges over; None: all
    calls      the registered functions of the run; None: they are counted for no run
    graph      the active graph: that of the event, inside GRAPH one of the KB
    outer      the bindings that EXISTS substitutes, and the `AT` variable for BINDs of a pattern
    """

    __slots__ = ("_calls", "_now", "errors", "event", "graph", "kb", "kb_graphs", "outer", "work")

    def __init__(
        self,
        event: Event | None = None,
        kb: NamedGraphs | None = None,
        kb_graphs: tuple[str, ...] | None = None,
        calls: Calls | None = None,
    ):
        self._calls = calls
        self.event = event
        self.kb = kb
        self.kb_graphs = kb_graphs
        self.graph: Graph = EMPTY if event is None else event_graph(event, kb)
        self.outer = _NOTHING
        self.work: Work | None = None
        """The bounds on the work of the operators, if there are any."""
        self.errors: Errors | None = None
        """The errors of a pattern's filters and BINDs, if they are counted."""
        self._now: list[ox.Literal] = []

    def _copy(self) -> Scope:
        other = Scope.__new__(Scope)
        other._calls = self._calls
        other.event = self.event
        other.kb = self.kb
        other.kb_graphs = self.kb_graphs
        other.graph = self.graph
        other.outer = self.outer
        other.work = self.work
        other.errors = self.errors
        other._now = self._now
        return other

    def over(self, graph: Graph) -> Scope:
        """A copy with another active graph."""
        other = self._copy()
        other.graph = graph
        return other

    def under(self, outer: Mapping[str, Term]) -> Scope:
        """A copy with other outer bindings."""
        other = self._copy()
        other.outer = outer
        return other

    def collect(self, rows: Iterable[R]) -> Sequence[R]:
        """The rows that a join makes, listed within the bounds.

        Raises:
            LimitReached: if they exceed the bounds.
        """
        if self.work is not None:
            return self.work.collect(rows)
        if isinstance(rows, Sequence):
            return rows
        source, listed = iter(rows), list[R]()
        while chunk := list(islice(source, CHUNK)):
            check()
            listed += chunk
        return listed

    def take(self, steps: int) -> None:
        """Count steps that make no rows, within the bounds.

        Raises:
            LimitReached: if they exceed the bounds.
        """
        check()
        if self.work is not None:
            self.work.take(steps)

    @property
    def snapshot(self) -> object:
        """An object that is the same as long as the KB is the same."""
        return None if self.kb is None else self.kb.snapshot

    def named(self) -> list[tuple[ox.NamedNode, Graph]]:
        """The KB graphs that GRAPH ranges over, each with its index."""
        if self.kb is None:
            return []
        wanted = self.kb_graphs
        return [
            (name, self.kb.graph(name))
            for name in self.kb.names
            if wanted is None or name.value in wanted
        ]

    def find(self, name: Term) -> Graph | None:
        """The index of a KB graph; None if GRAPH does not range over it."""
        return None if self.kb is None or not self._is_in_scope(name) else self.kb.graph(name)

    def is_remote(self, name: Term) -> TypeGuard[ox.NamedNode]:
        """Whether GRAPH ranges over a graph that is remote."""
        return self._is_in_scope(name) and self.kb is not None and self.kb.is_remote(name)

    def _is_in_scope(self, name: Term) -> TypeGuard[ox.NamedNode]:
        if self.kb is None or not isinstance(name, ox.NamedNode) or name not in self.kb.names:
            return False
        return self.kb_graphs is None or name.value in self.kb_graphs

    @property
    def calls(self) -> Calls:
        """The registered functions that expressions call."""
        if self._calls is None:
            self._calls = Calls()
        return self._calls

    @property
    def now(self) -> ox.Literal:
        """NOW(): one time for all evaluations in this scope."""
        if not self._now:
            text = datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")
            kind = ox.NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")
            self._now.append(ox.Literal(text + "Z", datatype=kind))
        return self._now[0]

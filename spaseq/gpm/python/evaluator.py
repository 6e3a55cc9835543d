"""One event (and the KB) → the rows of a graph pattern, by operators in Python.

For patterns that have no native form. An `Evaluator` evaluates one program over successive events.
It holds the plan and the relations that depend on the KB only, but no data of events. Rows are
distinct (docs/language.md, section 3); an event without facts has none.

Cost: that of the plan (see `plan`), with a Python object per row and term; an event that lacks a
predicate that every solution needs costs one look-up per required predicate.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyoxigraph as ox

from spaseq.gpm.named_graphs import NamedGraphs, event_graph
from spaseq.gpm.program import GpmProgram
from spaseq.gpm.python.algebra import compile_group
from spaseq.gpm.python.calls import Calls
from spaseq.gpm.python.row_operators import Row, picker
from spaseq.gpm.python.scope import Errors, Scope
from spaseq.gpm.python.work import Work
from spaseq.parser import ast
from spaseq.rdf.event import Event
from spaseq.rdf.limits import NO_LIMITS, Limits


class Evaluator:
    """Evaluates one `GpmProgram`, number `number` of the run, within the bounds `limits`.

    `plan` is the order of evaluation, one line for each operator, for `explain`.
    """

    def __init__(
        self,
        program: GpmProgram,
        kb: NamedGraphs | None,
        number: int = 0,
        limits: Limits = NO_LIMITS,
        calls: Calls | None = None,
    ):
        self._calls = calls
        bounded = limits.steps is not None or limits.memory is not None
        self._work = Work(number, limits) if bounded else None
        self.program = program
        self._kb = kb
        at = program.at
        seen_by_binds = frozenset() if at is None else frozenset((at,))
        self.errors: Errors = {}
        """The number of errors of its filters and BINDs."""
        node = compile_group(program.pattern, bind_parameters=seen_by_binds)
        self.plan = (
            *(node.lines or ("any event with a fact",)),
            *(f"{name}: computed by pyoxigraph" for name in program.left_to_pyoxigraph),
        )
        self._run = node.run
        self._distinct = node.distinct
        self._at_column = node.schema.index(at) if at in node.schema else None
        columns = [node.schema.index(name) for name in program.variables if name != at]
        kept = columns == list(range(len(node.schema)))
        self._pick = None if kept else picker(columns)
        # Dropping a blank node's column can make two rows one.
        self._distinct &= kept or len(columns) >= len(node.schema) - (at in node.schema)
        self.required = frozenset(required_predicates(program.pattern))
        """Predicates that an event must have."""

    def relevant(self, event: Event) -> bool:
        """Whether the event has every predicate that a row needs."""
        if not event.size:
            return False
        present = event_graph(event, self._kb).predicates
        return all(predicate in present for predicate in self.required)

    def rows(self, event: Event) -> list[Row]:
        """The distinct solutions, over the program's variables.

        Raises:
            LimitReached: if they take more steps or memory than the bounds allow.
        """
        if not self.relevant(event):
            return []
        scope = Scope(event, self._kb, self.program.kb_graphs, self._calls)
        scope.errors = self.errors
        if self._work is not None:
            self._work.begin()
            scope.work = self._work
        at = self.program.at
        time = event.time.term
        if at is not None:
            scope.outer = {at: time}
        rows = self._run(scope)
        column = self._at_column
        if column is not None:
            rows = [row for row in rows if row[column] is None or row[column] == time]
        if self._pick is not None:
            rows = list(map(self._pick, rows))
        if at is not None:
            rows = [(*row, time) for row in rows]
        if self._distinct or len(rows) < 2:
            return list(rows)
        return list(dict.fromkeys(rows))


def required_predicates(group: ast.GroupGraphPattern) -> Iterator[ox.NamedNode]:
    """Predicates of the event's graph that every solution of the group needs."""
    for element in group.elements:
        match element:
            case ast.Triple(_, ast.Iri(value), _):
                yield ox.NamedNode(value)
            case ast.SubGroup(inner):
                yield from required_predicates(inner)

"""The parts of patterns that depend on the knowledge base only → rows in tables of the matchers.

A relation that is fetched whole is entered once, with permanent terms. A relation that is requested
by key is a *bind-join*: before the events of a batch are matched, the operator on the other side of
the join is matched alone over the batch, the run requests the solutions for its distinct bindings
of the shared variables, and the answers fill the table for this batch. There is thus one request
per batch, and the matcher never waits.

Invariant: no request is made while an event is matched; whether an event's keys have answers is
known before it is matched. Answers are held (`hold`) as long as a prepared event waits to be
matched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import pyoxigraph as ox

from spaseq.errors import KbError, LimitExceeded
from spaseq.gpm import algebra
from spaseq.gpm.named_graphs import KbKey, KbRow, NamedGraphs, Relation
from spaseq.gpm.native._matcher import NativeMatcher
from spaseq.gpm.native.existence import uses, within
from spaseq.gpm.native.flatten import FlatPattern, flatten
from spaseq.gpm.pattern import NativePattern
from spaseq.gpm.program import GpmProgram
from spaseq.gpm.python.algebra import compile_group
from spaseq.gpm.python.calls import Calls
from spaseq.gpm.python.scope import Scope
from spaseq.gpm.python.work import SearchWork
from spaseq.parser import ast
from spaseq.plan.scope import certain_variables, expression_variables
from spaseq.rdf.event import nodes_of
from spaseq.rdf.limits import LimitReached, Limits
from spaseq.rdf.native._terms import EventBatch

BATCHES_REMEMBERED = 16
_NO_KEY = "it shares no variable with the event (let a step look it up whose events bind one)"
Table = tuple[NativeMatcher, int]
"""An operator of a matcher, by its number."""


@dataclass(slots=True)
class BindJoin:
    """One relation that is requested by key; `slots` are those of `names` in the probe's rows."""

    relation: Relation
    names: tuple[str, ...]
    slots: tuple[int, ...]
    probe: NativeMatcher
    tables: list[Table]
    ahead: Callable[[], Iterable[KbKey]] = tuple
    """Keys that later events may have; requests with room for more keys include them."""
    _filled: tuple[int, int, int] = (0, 0, 0)
    """The serial of a batch, and the range of its events for which the tables are filled."""
    _error: KbError | None = None
    _asked: dict[int, None] = field(default_factory=dict)
    """The serials of batches whose keys have all been requested, so that the answers are cached."""
    _held: dict[KbKey, Sequence[KbRow]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """A description of the keys of the requests, for `explain`."""
        by = " ".join(f"?{name}" for name in self.names)
        also = "" if self.ahead is tuple else ", ahead of events those that partial matches hold"
        return f"the KB is asked by {by}{also}"

    def prepare(self, batch: EventBatch, hold: bool) -> KbError | None:
        """Fill the tables for all events of a batch; returns the error of the first failed key."""
        return self._fill(batch, 0, len(batch), hold)

    def prepare_one(self, batch: EventBatch, event: int, hold: bool) -> KbError | None:
        """Fill the tables for one event; returns the error of the first failed key."""
        if self._filled == (batch.serial, 0, len(batch)) and self._error is None:
            return None
        if len(batch) > 1 and batch.serial not in self._asked:
            self._asked[batch.serial] = None
            if len(self._asked) > BATCHES_REMEMBERED:
                del self._asked[next(iter(self._asked))]
            self.request(batch)
        return self._fill(batch, event, event + 1, hold)

    def request(self, batch: EventBatch) -> None:
        """Request the keys of all events of a batch, so that the answers are cached."""
        keys = self._keys(batch, 0, len(batch))
        if keys:
            self.relation.of(self.names, keys, self.ahead)

    def _keys(self, batch: EventBatch, first: int, end: int) -> list[KbKey]:
        """The distinct keys of events; a blank node is local to the event and never a key."""
        keys = []
        for numbers in self.probe.bindings(batch, first, end, self.slots):
            key = tuple(map(batch.term, numbers))
            if not any(True for term in key for _ in nodes_of(term)):
                keys.append(key)
        return keys

    def _fill(self, batch: EventBatch, first: int, end: int, hold: bool) -> KbError | None:
        if self._filled == (batch.serial, first, end):
            return self._error
        if not hold:
            self._held.clear()
        keys = self._keys(batch, first, end)
        wanted = [key for key in keys if key not in self._held]
        found, failed = self.relation.of(self.names, wanted, self.ahead) if wanted else ({}, {})
        self._held.update(found)
        rows = [row for key in keys for row in self._held.get(key, ())]
        for matcher, number in self.tables:
            matcher.fill(number, rows, batch)
        self._filled = batch.serial, first, end
        self._error = next(iter(failed.values()), None)
        return self._error


class KbTables:
    """The tables of one native matcher that depend on the KB only.

    Args:
        calls: the registered functions of the run.
        linked: creates a matcher of an operator, with filters on its rows.
        whole: the reason why its relations must be fetched whole; empty if they need not be.
        limits: the bounds of the query; searches of paths over the KB count steps.
    """

    def __init__(
        self,
        calls: Calls,
        program: GpmProgram,
        native: NativePattern,
        matcher: NativeMatcher,
        flat: FlatPattern,
        linked: Callable[[FlatPattern, Sequence[ast.Expr]], NativeMatcher],
        whole: str,
        limits: Limits,
    ):
        self._calls = calls
        self._limits = limits
        self._program = program
        self._native = native
        self._matcher = matcher
        self._tables = flat.kb_tables
        self._linked = linked
        self._whole = whole
        self._feeders = {id(table): some for table, some in algebra.fed(native.root)}
        for part, given in uses(native.root, native.exists, native.filters).items():
            # A part with several uses would need requests for the rows of each.
            feeders = tuple(given) if len(given) == 1 else ()
            for table, some in algebra.fed(native.exists[part], feeders):
                self._feeders[id(table)] = some
        self._settled: dict[int, Sequence[KbRow] | BindJoin] = {}

    @property
    def joins(self) -> list[BindJoin]:
        """the relations that are requested by key, each after the suppliers of its keys."""
        return [found for found in self._settled.values() if isinstance(found, BindJoin)]

    def fill(self, kb: NamedGraphs | None) -> None:
        """Fill the tables from the current KB.

        Raises:
            KbError: if a source fails, or a relation that must be fetched whole is too large.
        """
        self._settled = {}
        self._enter(kb, self._matcher, self._tables)
        for number, rows in self._settled.items():
            if not isinstance(rows, BindJoin):
                self._settled[number] = ()  # the matchers already have them

    def _enter(
        self,
        kb: NamedGraphs | None,
        matcher: NativeMatcher,
        tables: Iterable[tuple[int, algebra.KbTable]],
    ) -> None:
        """Fill some tables of a matcher; the tables of a probe are settled before its join."""
        for number, table in tables:
            found = self._settled.get(id(table))
            if found is None:
                found = self._settled[id(table)] = self._resolve(kb, table)
            if isinstance(found, BindJoin):
                found.tables.append((matcher, number))
            else:
                matcher.fill(number, found)

    def _resolve(
        self, kb: NamedGraphs | None, table: algebra.KbTable
    ) -> Sequence[KbRow] | BindJoin:
        relation = self._relation(kb, table)
        if relation is None:
            return self._rows(kb, table)
        rows = relation.all()
        if rows is not None:
            return rows
        chosen = self._chosen(table)
        if chosen is None or self._whole:
            return relation.complete(self._whole or _NO_KEY)
        join, below = self._joined(relation, table, *chosen)
        self._enter(kb, join.probe, below)
        return join

    def _relation(self, kb: NamedGraphs | None, table: algebra.KbTable) -> Relation | None:
        """The remote relation of a table's pattern; None: the pattern is evaluated here."""
        part = table.pattern
        if kb is None:
            return None
        if isinstance(part, ast.Service):
            assert isinstance(part.name, ast.Iri)
            return kb.service(part.name.value, part.group, table.variables, part.silent)
        scope = Scope(None, kb, self._program.kb_graphs)
        if isinstance(part.name, ast.Iri) and scope.is_remote(
            name := ox.NamedNode(part.name.value)
        ):
            return kb.relation(name, part.group, table.variables)
        return None

    def _rows(self, kb: NamedGraphs | None, table: algebra.KbTable) -> Sequence[KbRow]:
        """The distinct rows of a pattern over local graphs.

        Raises:
            LimitExceeded: if searches of paths take too many steps.
        """
        node = compile_group(ast.GroupGraphPattern((table.pattern,)))
        columns = [node.schema.index(name) for name in table.variables]
        scope = Scope(None, kb, self._program.kb_graphs, self._calls)
        if self._limits.steps is not None:
            scope.work = SearchWork(0, self._limits)
        try:
            rows = node.run(scope)
        except LimitReached:
            raise LimitExceeded(
                f"property paths over the knowledge base take more than "
                f"{self._limits.most_steps:,} steps (--max-steps): let an end of the path be a "
                "constant, or raise --max-steps (max_steps=)"
            ) from None
        if columns == list(range(len(node.schema))):
            return list(dict.fromkeys(rows))
        return list(dict.fromkeys(tuple([row[column] for column in columns]) for row in rows))

    def _chosen(self, table: algebra.KbTable) -> tuple[algebra.Node, frozenset[int]] | None:
        """The nearest feeder that binds slots a key can consist of, and these slots."""
        sure = certain_variables(table.pattern.group)
        can = {s for s, n in zip(table.slots, table.variables, strict=True) if n in sure}
        for feeder in self._feeders.get(id(table), ()):
            slots = algebra.certain(feeder) & can
            if slots:
                return feeder, frozenset(slots)
        return None

    def _joined(
        self,
        relation: Relation,
        table: algebra.KbTable,
        feeder: algebra.Node,
        slots: frozenset[int],
    ) -> tuple[BindJoin, list[tuple[int, algebra.KbTable]]]:
        """The bind-join of a table with a feeder, and the KB tables of its probe."""
        native = self._native
        named = [
            (name, slot)
            for slot, name in zip(table.slots, table.variables, strict=True)
            if slot in slots
        ]
        flat = flatten(feeder, within(feeder, native.exists))
        bound = {native.slots[slot] for slot in algebra.certain(feeder)}
        filters = [
            condition
            for condition in native.filters
            if expression_variables(condition) <= bound
            and not any(isinstance(node, ast.Exists) for node in ast.walk(condition))
        ]
        probe = self._linked(flat, filters)
        names, places = tuple(n for n, _ in named), tuple(s for _, s in named)
        return BindJoin(relation, names, places, probe, []), flat.kb_tables

"""A mapping and the columns of a table → the plan that the compiled reader runs.

A row of the plan has a slot for each column that is read, for `?_row`, and for each BIND that is
computed. BINDs and columns that no filter, time, name or useful triple needs are omitted, and such
columns are not read from the file (projection pushdown). A triple whose predicate no query uses is
only counted, and only if the columns of its terms are read anyway, or if it may be the only triple
of an event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.errors import Diagnostic
from spaseq.gpm.native.bytecode import ExpressionCode, NotNative, compile_code
from spaseq.gpm.program import constant
from spaseq.gpm.python.entry import Evaluate, compile_expression
from spaseq.io.rows.columns import Column
from spaseq.io.rows.mapping import (
    GRAPH,
    ORDINAL,
    ROW,
    TIME,
    RowMapping,
    optional_variables,
    variables,
)
from spaseq.parser import ast
from spaseq.plan.scope import expression_variables
from spaseq.plan.wording import did_you_mean, listing, question_or
from spaseq.rdf.event import Parameter, Term
from spaseq.records import dataclass
from spaseq.sparql.builtins import BUILTINS

Place: TypeAlias = "int | Term"
"""A slot of the row, a constant, or a blank node of the template."""
IsOfUse: TypeAlias = "Callable[[ox.NamedNode, Parameter | None], bool]"
"""Whether a query can use triples with this predicate, and this object if it is known."""

_SHOWN_COLUMNS = 12


@dataclass(frozen=True, slots=True)
class Step:
    """A BIND, which writes `target`, or a FILTER, whose `target` is -1.

    `code` or `evaluate` computes the expression. `inputs` are the slots that it reads, `names`
    their variables; `cached` says whether equal inputs have equal results.
    """

    element: ast.Bind | ast.Filter

    code: ExpressionCode | None
    evaluate: Evaluate | None
    inputs: tuple[int, ...]
    names: tuple[str, ...]
    target: int
    cached: bool


@dataclass(frozen=True, slots=True)
class RowPlan:
    """A mapping that is bound to the columns of one table; slots are numbered from 0."""

    columns: tuple[Column, ...]
    """The columns that are read, in the order of their slots."""
    computed: tuple[bool, ...]
    """Per column: whether its terms are computed; a column may be read for its times only."""
    width: int
    row_slot: int
    """The slot of `?_row`; -1 if it is not used. This also applies to the slots below."""
    time_slot: int
    column_time_slot: int
    graph_slot: int
    ordinal_slot: int
    steps: tuple[Step, ...]
    triples: tuple[tuple[Place, Place, Place], ...]
    template: tuple[ast.Triple, ...]
    """The same triples, as the mapping has them."""


def bind_mapping(
    mapping: RowMapping,
    columns: Sequence[Column],
    time_column: str | None,
    is_of_use: IsOfUse,
    ordered: bool = False,
) -> RowPlan:
    """Bind a mapping to the columns of a table. With `ordered`, the plan computes `?_ordinal`.

    Raises:
        QuerySemanticError: if a variable of the mapping is not a column, or is a column of lists.
        LookupError: if there is no column `time_column`.
    """
    named, time = checked_columns(mapping, columns, time_column)
    return _Binder(mapping, named, time, is_of_use, ordered).plan()


def checked_columns(
    mapping: RowMapping, columns: Sequence[Column], time_column: str | None
) -> tuple[dict[str, list[Column]], Column | None]:
    """The columns by variable, and the column of times; raises as `bind_mapping`."""
    named: dict[str, list[Column]] = {}
    for column in columns:
        if column.variable != ROW:
            named.setdefault(column.variable, []).append(column)
    findings = list(_findings(mapping, named))
    if findings:
        raise mapping.fail(findings)
    return named, _column_of_time(columns, time_column)


def _column_of_time(columns: Sequence[Column], name: str | None) -> Column | None:
    if name is None:
        return None
    found = [c for c in columns if c.name == name] or [c for c in columns if c.variable == name]
    if found and found[0].unsupported:
        raise LookupError(f"the column {name} of times holds {found[0].unsupported}")
    if found:
        return found[0]
    hint = did_you_mean(name, [c.name for c in columns]) or f"the columns are {_shown(columns)}"
    raise LookupError(f"there is no column {name} for the time of events; {hint}")


def _shown(columns: Sequence[Column]) -> str:
    names = [column.name for column in columns[:_SHOWN_COLUMNS]]
    return ", ".join(names) + (", …" if len(columns) > _SHOWN_COLUMNS else "")


def _findings(mapping: RowMapping, named: dict[str, list[Column]]) -> Iterator[Diagnostic]:
    """Variables that are neither columns nor assigned, and columns without a value."""
    tree = mapping.tree
    assigned = {e.variable.name: e for e in tree.where.elements if isinstance(e, ast.Bind)}
    may_be_absent = {ROW, TIME, GRAPH, ORDINAL, *optional_variables(tree)}
    seen: set[str] = set()
    for part in sorted(variables(tree), key=lambda each: each.span.start):
        name = part.name
        if name in seen:
            continue
        seen.add(name)
        found = named.get(name, [])
        if name in assigned:
            if found:
                yield Diagnostic(
                    f"BIND assigns ?{name}, which is already a column",
                    assigned[name].variable.span,
                    "use a new name after AS; to compare two values write FILTER(… = …)",
                )
        elif len(found) > 1:
            yield Diagnostic(
                f"the columns {listing(each.name for each in found)} are both ?{name}",
                part.span,
                "rename one of them",
            )
        elif found and found[0].unsupported:
            yield Diagnostic(
                f"the column {found[0].name} holds {found[0].unsupported}, not one value",
                part.span,
                "write one row for each element, or a column with one value",
            )
        elif not found and name not in may_be_absent:
            yield _unknown(part, named)


def _unknown(part: ast.Var, named: dict[str, list[Column]]) -> Diagnostic:
    fields = [other for other in named if other.startswith(part.name + "_")]
    if fields:
        hint = f"its fields are {listing('?' + other for other in fields)}"
        return Diagnostic(f"the column {part.name} has fields", part.span, hint)
    shown = ", ".join(f"?{name}" for name in list(named)[:_SHOWN_COLUMNS])
    others = f"the columns are {shown}{', …' if len(named) > _SHOWN_COLUMNS else ''}"
    question = did_you_mean(part.name, named, "?")
    return Diagnostic(
        f"?{part.name} is not a column, and no BIND assigns it",
        part.span,
        question_or(question, others + "; COALESCE or BOUND around it allows that it is absent")
        if named
        else "the table has no columns",
    )


class _Binder:
    """Numbers the slots of one plan."""

    def __init__(
        self,
        mapping: RowMapping,
        named: dict[str, list[Column]],
        column_of_time: Column | None,
        is_of_use: IsOfUse,
        ordered: bool,
    ):
        self._tree = mapping.tree
        self._named = {name: found[0] for name, found in named.items()}
        self._time = column_of_time
        self._is_of_use = is_of_use
        self._about = {TIME, GRAPH, ORDINAL} if ordered else {TIME, GRAPH}
        """The variables about the event itself."""
        elements = self._tree.where.elements
        self._binds = {e.variable.name: e for e in elements if isinstance(e, ast.Bind)}
        self._filters = [each for each in elements if isinstance(each, ast.Filter)]

    def plan(self) -> RowPlan:
        triples = self._useful_triples()
        needed = self._closure(self._about).union(
            *(self._closure(expression_variables(each.condition)) for each in self._filters),
            *map(self._of_triple, triples),
        )
        read = [self._named[name] for name in sorted(needed) if name in self._named]
        if self._time is not None and self._time not in read:
            read.append(self._time)
        slots, width = self._slots(read, needed)
        steps = tuple(self._steps(slots))
        placed = tuple(_placed(triple, slots) for triple in triples)
        computed = {slot for step in steps for slot in step.inputs}
        computed.update(place for triple in placed for place in triple if isinstance(place, int))
        computed.update(slots.get(name, -1) for name in self._about - {TIME})
        return RowPlan(
            tuple(read),
            tuple(slot in computed for slot in range(len(read))),
            width,
            slots.get(ROW, -1),
            slots.get(TIME, -1),
            -1 if self._time is None else read.index(self._time),
            slots.get(GRAPH, -1),
            slots.get(ORDINAL, -1),
            steps,
            placed,
            tuple(triples),
        )

    def _slots(self, read: list[Column], needed: set[str]) -> tuple[dict[str, int], int]:
        """The slot of each variable, and their number; `BIND(?x AS ?y)` shares the slot of ?x."""
        slots = {
            column.variable: slot
            for slot, column in enumerate(read)
            if self._named.get(column.variable) is column
        }
        width = len(read)
        for name in (ROW, *self._binds):
            if name in needed and name not in slots:
                same = self._alias(name)
                slots[name] = slots.get(same, width)
                width += slots[name] == width
        return slots, width

    def _alias(self, name: str) -> str:
        """The variable whose value a BIND copies; empty: it computes another value."""
        bind = self._binds.get(name)
        if bind is None or not isinstance(bind.expression, ast.Var):
            return ""
        return bind.expression.name

    # ---------------------------------------------------------------- what is needed

    def _closure(self, names: set[str] | frozenset[str]) -> set[str]:
        """The variables, and all that their BINDs read, transitively."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                if name in self._binds:
                    waiting += expression_variables(self._binds[name].expression)
        return found

    def _of_triple(self, triple: ast.Triple) -> set[str]:
        return self._closure({part.name for part in variables(triple)})

    def _useful_triples(self) -> list[ast.Triple]:
        """The triples that queries can use or that decide whether an event has triples."""
        wanted: list[tuple[ast.Triple, frozenset[str], bool]] = []
        for triple in self._tree.template:
            names = frozenset(part.name for part in variables(triple))
            wanted.append((triple, names, self._of_use(triple)))
        read = set().union(*(self._of_triple(triple) for triple, _, of_use in wanted if of_use))
        return [
            triple
            for triple, names, of_use in wanted
            if of_use
            or self._of_triple(triple) <= read
            or not any(others < names for _, others, _ in wanted)
        ]

    def _of_use(self, triple: ast.Triple) -> bool:
        if not isinstance(triple.predicate, ast.Iri):
            return True
        value = triple.object
        return self._is_of_use(
            ox.NamedNode(triple.predicate.value),
            constant(value) if isinstance(value, ast.Constant) else None,
        )

    # ---------------------------------------------------------------- steps

    def _steps(self, slots: dict[str, int]) -> Iterator[Step]:
        """The BINDs in text order; each filter as soon as its variables are bound."""
        filters = list(self._filters)
        waiting = [name for name in self._binds if name in slots and self._alias(name) not in slots]
        while filters or waiting:
            unbound = {slots[name] for name in waiting}
            for each in list(filters):
                names = expression_variables(each.condition) & slots.keys()
                if unbound.isdisjoint(slots[name] for name in names):
                    filters.remove(each)
                    yield _step(each, each.condition, slots, -1)
            if waiting:
                name = waiting.pop(0)
                bind = self._binds[name]
                yield _step(bind, bind.expression, slots, slots[name])


def _step(
    element: ast.Bind | ast.Filter, expression: ast.Expr, slots: dict[str, int], target: int
) -> Step:
    code, evaluate = None, None
    try:
        code = compile_code(expression, slots).code
    except NotNative:
        evaluate = compile_expression(_as_value(expression, target), slots)
    volatile = any(
        isinstance(part, ast.Call) and BUILTINS[part.name].volatile for part in ast.walk(expression)
    )
    names = sorted({part.name for part in variables(expression)} & slots.keys())
    inputs = tuple(slots[name] for name in names)
    return Step(element, code, evaluate, inputs, tuple(names), target, not volatile)


def _as_value(expression: ast.Expr, target: int) -> ast.Expr:
    """The expression itself, or for a filter its effective boolean value."""
    if target >= 0:
        return expression
    return ast.Unary("!", ast.Unary("!", expression))


def _placed(triple: ast.Triple, slots: dict[str, int]) -> tuple[Place, Place, Place]:
    predicate = triple.predicate
    assert isinstance(predicate, ast.Var | ast.Iri)
    return _place(triple.subject, slots), _place(predicate, slots), _place(triple.object, slots)


def _place(term: ast.Term, slots: dict[str, int]) -> Place:
    if isinstance(term, ast.Var):
        return slots.get(term.name, -1)
    if isinstance(term, ast.BlankNode):
        return ox.BlankNode(term.label)
    return constant(term)

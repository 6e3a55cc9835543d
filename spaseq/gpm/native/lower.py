"""Graph patterns → the operators of the native matcher, if it has all of them.

The translation of SPARQL 1.1 section 18.2.2. A basic pattern joins the operator before it by
extending that operator's rows, so basic patterns and OPTIONALs of triples need no tables of their
own. `NotNative` names the part of a pattern that has no native operator; the Python operators
evaluate such a pattern as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain, count, groupby, product
from math import prod
from typing import TypeAlias, assert_never

from spaseq.gpm import algebra
from spaseq.gpm.native.bytecode import NotNative
from spaseq.gpm.native.order import (
    GUESSED_EVENT,
    GUESSED_VIEW,
    End,
    Step,
    guessed,
    ordered,
    positions,
)
from spaseq.gpm.native.path_automaton import path_automaton
from spaseq.gpm.program import constant, triple_text
from spaseq.gpm.python.functions import volatile
from spaseq.gpm.python.property_path import nullable
from spaseq.gpm.python.subselect import aggregate_column, lift_aggregates, select_names
from spaseq.parser import ast
from spaseq.parser.format import expression_line
from spaseq.plan.scope import certain_variables, possible_variables
from spaseq.rdf.event import Term
from spaseq.rdf.schema import TYPE
from spaseq.records import dataclass

MAX_CHAINS = 64
"""The limit of chains of triples to which a path of alternatives expands; beyond it, a search is
used."""
_KB_PARTS = ast.Graph | ast.Service
Existences: TypeAlias = Mapping[ast.Exists, algebra.Node]
"""The operator of each EXISTS, which starts from the row of the expression."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A pattern as operators.

    `slots` names the slots: the variables of the pattern first, then blank nodes, as `_:label`.
    """

    root: algebra.Node
    slots: tuple[str, ...]
    exists: Existences


def lower(
    pattern: ast.GroupGraphPattern, variables: Sequence[str], filters: Sequence[ast.Expr] = ()
) -> Lowered:
    """The operators of a pattern and of the EXISTS in its `filters`.

    `variables` have the first slots, which `filters` read.

    Raises:
        NotNative: if some part needs the Python operators.
    """
    slots = {name: slot for slot, name in enumerate(variables)}
    exists: dict[ast.Exists, algebra.Node] = {}
    root = _Lowering(slots, exists).pattern(pattern)
    for condition in filters:
        _Lowering(slots, exists, mark="/").expression(condition)
    return Lowered(root, tuple(slots), exists)


@dataclass(frozen=True, slots=True)
class _Fork:
    """A path of alternatives: one of `chains` must match. `step` is its position in the order."""

    step: Step
    chains: tuple[tuple[Step, ...], ...]

    @property
    def size(self) -> float:
        return sum(guessed(chain[0]) for chain in self.chains)


@dataclass(frozen=True, slots=True)
class _Search:
    """A path of no fixed length. `step` is its position in the order."""

    step: Step
    path: ast.Path

    @property
    def size(self) -> float:
        return GUESSED_EVENT if nullable(self.path) else 2 * GUESSED_VIEW


_Unit: TypeAlias = Step | _Fork | _Search


@dataclass(slots=True)
class _Bound:
    """An operator, the slots that every row binds, and the slots that some row may bind."""

    node: algebra.Node
    certain: frozenset[int] = frozenset()
    possible: frozenset[int] = frozenset()
    keyed: frozenset[int] = frozenset()
    """The slots that every row binds unless a silent service has failed, which leaves one row."""


@dataclass(slots=True)
class _Lowering:
    """Lowers one pattern with its parts, or, if `outer` is not None, the pattern of an EXISTS.

    `outer` are the slots that the outer row may bind. `mark` distinguishes the blank nodes of
    filters from those of the pattern, which have the same labels.
    """

    slots: dict[str, int]
    exists: dict[ast.Exists, algebra.Node]
    outer: frozenset[int] | None = None
    mark: str = ""
    depth: int = 0
    counting: bool = False
    """Whether aggregates count the rows, so that each must occur as often as SPARQL says."""
    selects: Iterator[int] = field(default_factory=count)
    """Numbers that make the hidden variables of sub-queries unique."""

    def pattern(self, group: ast.GroupGraphPattern) -> algebra.Node:
        return self._group(group).node

    def expression(self, expression: ast.Expr) -> ast.Expr:
        """Lower the EXISTS of an expression; returns the expression."""
        for part in ast.walk(expression):
            if isinstance(part, ast.Exists) and part not in self.exists:
                outer = frozenset(self.slots.values())
                inner = _Lowering(self.slots, self.exists, outer, self.mark)
                self.exists[part] = inner.pattern(part.group)
        return expression

    # -------------------------------------------------------------- groups

    def _group(self, group: ast.GroupGraphPattern) -> _Bound:
        self.depth += 1
        bound, conditions = self._elements(group)
        self.depth -= 1
        for condition in conditions:
            bound.node = algebra.Filter(bound.node, self.expression(condition))
        return bound

    def _elements(self, group: ast.GroupGraphPattern) -> tuple[_Bound, list[ast.Expr]]:
        conditions = [e.condition for e in group.elements if isinstance(e, ast.Filter)]
        elements = _event_first([e for e in group.elements if not isinstance(e, ast.Filter)])
        bound = _Bound(algebra.Seed())
        for is_triple, run in groupby(elements, lambda element: isinstance(element, ast.Triple)):
            if is_triple:
                self._triples(bound, [e for e in run if isinstance(e, ast.Triple)])
            else:
                for element in run:
                    self._element(bound, element)
        return bound, conditions

    def _triples(self, bound: _Bound, triples: Sequence[ast.Triple]) -> None:
        units = [unit for triple in triples for unit in self._units(triple)]
        steps = [unit if isinstance(unit, Step) else unit.step for unit in units]
        sizes = [guessed(unit) if isinstance(unit, Step) else unit.size for unit in units]
        chain: list[Step] = []
        for place in positions(steps, self._known(bound), sizes):
            unit = units[place]
            if isinstance(unit, Step):
                chain.append(unit)
                continue
            self._extend(bound, chain)
            chain = []
            if isinstance(unit, _Search):
                bound.node = self._reach(bound.node, unit)
                bound.certain |= unit.step.slots
                continue
            known = self._known(bound)
            chains = tuple(ordered(steps, known) for steps in unit.chains)
            bound.node = algebra.Alternatives(bound.node, chains, known)
            bound.certain |= unit.step.slots
        self._extend(bound, chain)
        bound.possible |= bound.certain

    def _extend(self, bound: _Bound, steps: Sequence[Step]) -> None:
        """Extend the rows by steps in this order."""
        if steps:
            bound.node = algebra.Basic(bound.node, tuple(steps), self._known(bound))
            bound.certain |= frozenset().union(*(step.slots for step in steps))

    def _known(self, bound: _Bound) -> frozenset[int]:
        """The slots that rows usually bind before the next triple."""
        return bound.certain | (self.outer or frozenset())

    def _reach(self, left: algebra.Node, search: _Search) -> algebra.Reach:
        """The operator that extends rows along a path of no fixed length."""
        if self.counting and not isinstance(search.path, ast.RepeatPath):
            raise NotNative("an aggregate over a property path that connects nodes several times")
        subject, value, text = search.step.subject, search.step.object, search.step.text
        any_predicate = self._slot("_:any predicate")

        def step_of(predicate: Term | None) -> Step:
            return Step(subject, any_predicate if predicate is None else predicate, value, text)

        return algebra.Reach(
            left,
            subject,
            value,
            path_automaton(search.path, step_of),
            path_automaton(ast.InversePath(search.path), step_of),
            step_of(None) if nullable(search.path) else None,
            text,
        )

    def _units(self, triple: ast.Triple) -> Sequence[_Unit]:
        """The triple, or the triples, forks and searches to which its path expands."""
        subject, value = self._end(triple.subject), self._end(triple.object)
        predicate = triple.predicate
        if isinstance(predicate, ast.Var | ast.Iri):
            link = self._end(predicate)
            whole = None if triple.of is None else self._slot(f"_:{self.mark}{triple.of.label}")
            return [Step(subject, link, value, triple_text(triple), whole=whole)]
        units = self._path(subject, predicate, value) if fixed_length(predicate) else None
        if units is None:
            # Only the ends of this step matter, so any predicate will do.
            return [_Search(Step(subject, TYPE, value, triple_text(triple)), predicate)]
        return units

    def _path(self, subject: End, path: ast.Path, value: End) -> Sequence[Step | _Fork] | None:
        """The triples and forks to which a path of fixed length expands; None if too many."""
        match path:
            case ast.Iri():
                link = constant(path)
                text = f"{self._shown(subject)} {link} {self._shown(value)}"
                return [Step(subject, link, value, text)]
            case ast.InversePath(inner):
                return self._path(value, inner, subject)
            case ast.SequencePath(paths):
                units: list[Step | _Fork] = []
                for number, inner in enumerate(paths, 1):
                    last = number == len(paths)
                    end = value if last else self._slot(f"_:path{len(self.slots)}")
                    some = self._path(subject, inner, end)
                    if some is None:
                        return None
                    units += some
                    subject = end
                return units
            case ast.AlternativePath(paths):
                return self._fork(subject, paths, value)
            case ast.RepeatPath() | ast.NegatedPath():
                raise TypeError(f"a {type(path).__name__} has no fixed length")
            case _:
                assert_never(path)

    def _fork(self, subject: End, paths: Sequence[ast.Path], value: End) -> list[_Fork] | None:
        """The fork of a path of alternatives, its chains multiplied out."""
        chains: list[tuple[Step, ...]] = []
        for path in paths:
            some = self._path(subject, path, value)
            if some is None:
                return None
            choices = [unit.chains if isinstance(unit, _Fork) else ((unit,),) for unit in some]
            if len(chains) + prod(map(len, choices)) > MAX_CHAINS:
                return None
            chains += (tuple(chain.from_iterable(way)) for way in product(*choices))
        first = chains[0][0]
        return [_Fork(Step(subject, first.predicate, value, first.text), tuple(chains))]

    def _shown(self, end: End) -> str:
        """An end of a triple, as text."""
        if not isinstance(end, int):
            return str(end)
        name = next(name for name, slot in self.slots.items() if slot == end)
        return name if name.startswith("_:") else f"?{name}"

    def _end(self, term: ast.Term) -> End:
        if isinstance(term, ast.Var):
            return self._slot(term.name)
        if isinstance(term, ast.BlankNode):
            return self._slot(f"_:{self.mark}{term.label}")
        return constant(term)

    def _slot(self, name: str) -> int:
        return self.slots.setdefault(name, len(self.slots))

    # -------------------------------------------------------------- elements

    def _element(self, bound: _Bound, element: ast.Element) -> None:
        match element:
            case ast.Optional(group):
                self._optional(bound, group)
            case ast.Minus(group):
                self._minus(bound, group)
            case ast.Bind(expression, variable):
                slot = self._slot(variable.name)
                if self.outer is not None:
                    raise NotNative("BIND inside EXISTS")
                value = self.expression(expression)
                bound.node = algebra.Extend(bound.node, slot, value, timed=self.depth == 1)
                bound.possible |= {slot}
            case _:
                self._join(bound, self._operand(element))

    def _operand(self, element: ast.Element) -> _Bound:
        match element:
            case ast.SubGroup(group):
                return self._group(group)
            case ast.Union(alternatives):
                parts = [self._group(group) for group in alternatives]
                return _Bound(
                    algebra.Union(tuple(part.node for part in parts)),
                    frozenset.intersection(*(part.certain for part in parts)),
                    frozenset().union(*(part.possible for part in parts)),
                )
            case ast.Values():
                return self._values(element)
            case ast.Graph():
                return self._graph(element)
            case ast.Service():
                return self._service(element)
            case ast.SubSelect():
                return self._select(element)
        raise TypeError(f"{type(element).__name__} does not stand alone")

    def _join(self, left: _Bound, right: _Bound) -> None:
        if isinstance(left.node, algebra.Seed) and self.outer is None:
            left.node = right.node
        else:
            keys = tuple(sorted(left.certain & (right.certain | right.keyed)))
            left.node = algebra.Join(left.node, right.node, keys)
        left.certain |= right.certain
        left.possible |= right.possible

    def _optional(self, left: _Bound, group: ast.GroupGraphPattern) -> None:
        right, conditions = self._elements(group)
        triples = sum(isinstance(e, ast.Triple) for e in group.elements)
        seeded = triples + len(conditions) == len(group.elements)
        left.node = algebra.LeftJoin(
            left.node,
            right.node,
            tuple(sorted(left.certain & right.certain)),
            tuple(map(self.expression, conditions)),
            seeded,
        )
        left.possible |= right.possible

    def _minus(self, left: _Bound, group: ast.GroupGraphPattern) -> None:
        if self.outer is not None:
            raise NotNative("MINUS inside EXISTS")
        right = self._group(group)
        if left.possible & right.possible:
            keys = tuple(sorted(left.certain & right.certain))
            left.node = algebra.Minus(left.node, right.node, keys)

    def _values(self, values: ast.Values) -> _Bound:
        slots = tuple(self._slot(variable.name) for variable in values.variables)
        rows = tuple(
            tuple(None if cell is None else constant(cell) for cell in row) for row in values.rows
        )
        columns = range(len(slots))
        certain = frozenset(slots[c] for c in columns if all(row[c] is not None for row in rows))
        return _Bound(algebra.Table(slots, rows), certain, frozenset(slots))

    def _select(self, query: ast.SubSelect) -> _Bound:
        """A sub-query: its rows, with unique names for the variables that it does not project.

        DISTINCT and the order have no effect, since rows of a graph pattern are distinct unless an
        outer aggregate counts them.
        """
        if self.outer is not None:
            raise NotNative("a sub-query inside EXISTS")
        if query.limit is not None or query.offset:
            raise NotNative("LIMIT or OFFSET in a sub-query")
        if self.counting and (query.distinct or query.reduced):
            raise NotNative("an aggregate over the DISTINCT rows of a sub-query")
        number = next(self.selects)
        query, aggregates = _hidden(query, number)
        counting = self.counting
        self.counting |= bool(aggregates)
        bound = self._group(query.where)
        if query.values is not None:
            self._join(bound, self._values(query.values))
        if aggregates or query.group_by:
            self._grouped(bound, query.group_by, aggregates, number)
        self.counting = counting
        for condition in query.having:
            bound.node = algebra.Filter(bound.node, _without_exists(condition))
        for item in query.items or ():
            if item.alias is not None:
                self._bind(bound, item.alias.name, item.expression)
        return bound

    def _grouped(
        self,
        bound: _Bound,
        by: Sequence[ast.Projection],
        aggregates: Sequence[ast.Aggregate],
        number: int,
    ) -> None:
        keys: list[int] = []
        for place, key in enumerate(by):
            if isinstance(key.expression, ast.Var) and key.alias is None:
                keys.append(self._slot(key.expression.name))
                continue
            name = _own(f"key {place}", number) if key.alias is None else key.alias.name
            keys.append(self._bind(bound, name, key.expression))
        value = self._slot("aggregated value")
        columns = tuple(
            self._aggregate(_own(aggregate_column(place), number), call)
            for place, call in enumerate(aggregates)
        )
        bound.node = algebra.Group(bound.node, tuple(keys), columns, value)
        bound.certain &= frozenset(keys)
        bound.possible = frozenset(keys) | {column.slot for column in columns}

    def _bind(self, bound: _Bound, name: str, expression: ast.Expr) -> int:
        """Bind a variable of a sub-query to the value of an expression; returns its slot."""
        slot = self._slot(name)
        value = _without_exists(expression)
        bound.node = algebra.Extend(bound.node, slot, value, timed=False)
        bound.possible |= {slot}
        return slot

    def _aggregate(self, result: str, call: ast.Aggregate) -> algebra.AggregateColumn:
        """One aggregate of a sub-query; `result` names its slot."""
        name, argument = call.name, call.argument
        if argument is None and call.distinct:
            raise NotNative("COUNT(DISTINCT *)")
        if isinstance(argument, ast.GpmName):
            raise TypeError("the name of a GPM cannot be an argument of a SPARQL aggregate")
        so_far, value = ast.Var(result), ast.Var("aggregated value")
        column = algebra.AggregateColumn(
            name, call.distinct, self._slot(result), expression_line(call)
        )
        if isinstance(argument, ast.Var):
            column = replace(column, argument_slot=self._slot(argument.name))
        elif argument is not None:
            column = replace(column, argument=_without_exists(argument))
        match name:
            case "SUM":
                return replace(column, fold=ast.Binary("+", so_far, value))
            case "AVG":
                mean = ast.Binary("/", so_far, value)
                return replace(column, fold=ast.Binary("+", so_far, value), final=mean)
            case "MIN" | "MAX":
                tests = ast.Binary("<", value, so_far), ast.Binary("<", so_far, value)
                fold, other = tests if name == "MIN" else tests[::-1]
                return replace(column, fold=fold, other=other)
            case "GROUP_CONCAT":
                text = ast.Call("STR", (value,))
                separator = ast.Literal(" " if call.separator is None else call.separator)
                return replace(
                    column, fold=ast.Call("CONCAT", (so_far, separator, text)), other=text
                )
            case "COUNT" | "SAMPLE":
                return column
        raise NotNative(f"the aggregate {name}")

    def _graph(self, graph: ast.Graph) -> _Bound:
        """The table of a GRAPH part; inside EXISTS only a part that commutes with a join."""
        if self.counting:
            raise NotNative("an aggregate over rows of the KB")
        if volatile(graph.group):
            raise NotNative("a KB pattern that gives other results each time")
        plain = all(isinstance(element, ast.Triple) for element in graph.group.elements)
        if self.outer is not None and not (plain and isinstance(graph.name, ast.Iri)):
            raise NotNative("a KB pattern with more than triples inside EXISTS")
        if any(isinstance(node, ast.Exists) for node in ast.walk(graph.group)):
            raise NotNative("EXISTS in a KB pattern")
        return self._kb_table(graph, certain_variables(ast.GroupGraphPattern((graph,))))

    def _service(self, service: ast.Service) -> _Bound:
        """The table of a SERVICE part; a silent one may bind nothing."""
        if self.counting:
            raise NotNative("an aggregate over rows of a service")
        plain = all(isinstance(element, ast.Triple) for element in service.group.elements)
        if self.outer is not None and not plain:
            raise NotNative("SERVICE with more than triples inside EXISTS")
        bound = self._kb_table(service, certain_variables(service.group))
        if service.silent:
            bound.keyed, bound.certain = bound.certain, frozenset()
        return bound

    def _kb_table(self, part: ast.Graph | ast.Service, certain: frozenset[str]) -> _Bound:
        names = tuple(sorted(possible_variables(ast.GroupGraphPattern((part,)))))
        slots = tuple(map(self._slot, names))
        always = frozenset(slot for slot, name in zip(slots, names, strict=True) if name in certain)
        return _Bound(algebra.KbTable(slots, names, part, always), always, frozenset(slots))


def _own(name: str, number: int) -> str:
    """The name of a variable that belongs to one sub-query; no variable of the text has it."""
    return f"{name} {number}"


def _hidden(query: ast.SubSelect, number: int) -> tuple[ast.SubSelect, tuple[ast.Aggregate, ...]]:
    """A sub-query with a variable in place of each aggregate, and the aggregates.

    Variables that the sub-query does not project get unique names.
    """
    visible = frozenset(select_names(query))

    def change(node: ast.Node) -> ast.Node | None:
        if isinstance(node, ast.Var) and node.name not in visible:
            return replace(node, name=_own(node.name, number))
        return None

    lifted, aggregates = lift_aggregates(query)
    return ast.rebuilt(lifted, change), ast.rebuilt(tuple(aggregates), change)


def _without_exists(expression: ast.Expr) -> ast.Expr:
    """An expression over the groups of a sub-query, which must not have EXISTS."""
    if any(isinstance(part, ast.Exists) for part in ast.walk(expression)):
        raise NotNative("EXISTS over the groups of a sub-query")
    return expression


def fixed_length(path: ast.Path) -> bool:
    """Whether a path expands to chains of triples, each of one predicate."""
    return not any(isinstance(part, ast.RepeatPath | ast.NegatedPath) for part in ast.walk(path))


def _event_first(elements: Sequence[ast.Element]) -> list[ast.Element]:
    """The elements, with triples before the parts that only the KB decides.

    The rows of an event are few, and the KB is queried for their bindings. Only joins are
    reordered: they commute, unlike BIND, OPTIONAL and MINUS.
    """
    out: list[ast.Element] = []
    for joined, run in groupby(elements, lambda e: isinstance(e, ast.Triple | _KB_PARTS)):
        some = list(run)
        if joined:
            some.sort(key=lambda e: not isinstance(e, ast.Triple))
        out += some
    return out

"""Syntax tree → logical plan, after the checks have passed.

Later stages read the plan and not the tree. Cost: linear in the query's text, except for the
group variables (places × variables).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from typing import Literal

from spaseq.errors import Diagnostic, QuerySemanticError
from spaseq.parser import ast
from spaseq.parser.format import expression_line
from spaseq.plan.check import check
from spaseq.plan.grouping import grouped_output
from spaseq.plan.logical import (
    Assignment,
    Condition,
    GpmPlan,
    IteratedUnit,
    Occurrence,
    Output,
    Projected,
    QueryPlan,
    SkipTo,
    Window,
)
from spaseq.plan.places import (
    bounded_units,
    group_variables,
    sequence_places,
    without_parentheses,
)
from spaseq.plan.references import IS_FIRST, Resolver
from spaseq.plan.scope import GpmScope, expression_variables, gpm_scopes
from spaseq.plan.tags import tags_without_case


def plan(query: ast.Query, name: str = "query") -> QueryPlan:
    """Check a query and plan it.

    Raises:
        QuerySemanticError: with all static errors and warnings, if there is an error.
    """
    findings = check(query)
    if any(finding.severity == "error" for finding in findings):
        raise QuerySemanticError(findings, query.text, name)
    return plan_checked(query, name, findings)


def plan_checked(query: ast.Query, name: str, warnings: Sequence[Diagnostic]) -> QueryPlan:
    """The plan of a query for which the checks reported only `warnings`."""
    return _Planner(tags_without_case(query), name).plan(tuple(warnings))


class _Planner:
    def __init__(self, query: ast.Query, name: str):
        self.query = query
        self.name = name
        self.scopes = gpm_scopes(query)
        self._floors = {each.name: each.floor for each in query.defines}
        self.sequence = without_parentheses(query.sequence)
        self.places = sequence_places(self.sequence)
        self._positive = self.places.positive_names()
        self.partition = (
            tuple(dict.fromkeys(v.name for v in query.partition.variables))
            if query.partition
            else ()
        )
        self.group = group_variables(query, self.scopes, self.places)
        self.units = tuple(
            IteratedUnit(parent, max(step.quantifier.least, 1), step.quantifier.most)
            for step, parent in zip(
                self.places.iterated_steps, self.places.unit_parents, strict=True
            )
            if step.quantifier is not None
        )
        self.resolver = Resolver(self.units, self.group, self._units_shared_by_gpm())
        for scope in self.scopes.values():
            for variable in sorted(scope.binds):
                self.resolver.value(variable)
        for number, unit in enumerate(self.units):
            if unit.least > 1 or unit.most is not None:
                self.resolver.iterations(number, max(unit.least, unit.most or 0))
        for number in bounded_units(self.sequence).values():
            self.resolver.mark(number)

    def plan(self, warnings: tuple[object, ...]) -> QueryPlan:
        query = self.query
        iris = {stream.name: stream.iri.value for stream in query.streams}
        names = list(self.scopes)
        gpms = tuple(self._gpm(scope, iris) for scope in self.scopes.values())
        drafts = [
            self._occurrence(place.name, names.index(place.name), place.units)
            for place in self.places.occurrences
        ]
        output = self._output()
        counts = [r for r in self.resolver.registers.values() if r.kind == "count"]
        occurrences = tuple(
            Occurrence(
                index,
                gpm,
                place.units,
                place.negated,
                assignments,
                residual,
                tuple(r.name for r in counts if r.variable == place.name),
                tuple(self._equalities(self.scopes[place.name], residual)),
                tuple(self._comparisons(self.scopes[place.name], residual)),
            )
            for index, (place, (gpm, assignments, residual)) in enumerate(
                zip(self.places.occurrences, drafts, strict=True)
            )
        )
        return QueryPlan(
            name=(
                query.register.name
                if query.register and query.register.kind == "QUERY"
                else self.name
            ),
            source=query.text,
            streams=tuple(dict.fromkeys(iris.values())),
            kb_graphs=tuple(kb.iri.value for kb in query.kbs) or None,
            gpms=gpms,
            occurrences=occurrences,
            units=self.units,
            registers=tuple(self.resolver.registers.values()),
            partition=self.partition,
            sequence=self.sequence,
            window=_window(query.within),
            emit=query.emit.mode if query.emit else "ALL",
            skip_past_last=bool(
                query.after_match and query.after_match.mode == "SKIP PAST LAST EVENT"
            ),
            skip_to=self._skip_to(),
            output=output,
            registers_stream=(
                query.register.name if query.register and query.register.kind == "STREAM" else None
            ),
            warnings=warnings,  # type: ignore[arg-type]
        )

    def _skip_to(self) -> SkipTo | None:
        after = self.query.after_match
        if after is None or after.mode in ("KEEP ALL", "SKIP PAST LAST EVENT"):
            return None
        if after.mode == "SKIP TO NEXT":
            return SkipTo("next")
        taken = (p.index for p in self.places.occurrences if p.name == after.name and not p.negated)
        target: Literal["first", "last"] = "first" if after.mode == "SKIP TO FIRST" else "last"
        return SkipTo(target, frozenset(taken), after.name)

    def _units_shared_by_gpm(self) -> Mapping[str, tuple[int, ...]]:
        """For each GPM, the iterated units that enclose all of its places, outermost first."""
        shared: dict[str, tuple[int, ...]] = {}
        for place in self.places.occurrences:
            known = shared.get(place.name, place.units)
            shared[place.name] = tuple(unit for unit in known if unit in place.units)
        return shared

    def _gpm(self, scope: GpmScope, iris: Mapping[str, str]) -> GpmPlan:
        variables = sorted(scope.possible - {scope.at})
        if scope.at:
            variables.append(scope.at)
        local = tuple(
            Condition(
                condition, frozenset(expression_variables(condition)), expression_line(condition)
            )
            for condition in self._split(scope)[0]
        )
        return GpmPlan(
            scope.name,
            tuple(dict.fromkeys(iris[stream] for stream in scope.streams)),
            scope.pattern,
            scope.at,
            tuple(variables),
            scope.certain,
            local,
            scope.name in self._positive,
            self._floors.get(scope.name),
        )

    def _split(self, scope: GpmScope) -> tuple[list[ast.Expr], list[ast.Expr]]:
        """The local filters of a GPM, and the others.

        The parts of a conjunction are filters of their own where only some are local: it is true
        iff all of them are.
        """
        local: list[ast.Expr] = []
        residual: list[ast.Expr] = []
        for item in scope.filters:
            if self._is_local(item.condition, scope):
                local.append(item.condition)
                continue
            parts = list(_conjuncts(item.condition))
            here = [part for part in parts if self._is_local(part, scope)]
            rest = [part for part in parts if part not in here]
            local += here
            residual.append(
                reduce(lambda left, right: ast.Binary("&&", left, right), rest)
                if here
                else item.condition
            )
        return local, residual

    def _is_local(self, condition: ast.Expr, scope: GpmScope) -> bool:
        """Whether a row of this GPM alone decides the filter.

        That is so if each of its variables is bound in every row of the GPM, or by nothing in the
        whole query (such a variable inside EXISTS is local to the EXISTS).
        """
        if any(isinstance(node, ast.Prev | ast.Aggregate) for node in ast.walk(condition)):
            return False
        bound = set().union(*(other.binds for other in self.scopes.values()))
        return (expression_variables(condition) & bound) <= scope.certain

    def _occurrence(
        self, name: str, gpm: int, units: tuple[int, ...]
    ) -> tuple[int, tuple[Assignment, ...], tuple[Condition, ...]]:
        scope = self.scopes[name]
        assignments = tuple(
            Assignment(
                bind.variable.name,
                self.resolver.condition(bind.expression, units, expression_line(bind.expression)),
            )
            for bind in scope.stateful
        )
        residual = tuple(
            self.resolver.condition(condition, units, expression_line(condition))
            for condition in self._split(scope)[1]
        )
        return gpm, assignments, residual

    def _equalities(
        self, scope: GpmScope, residual: tuple[Condition, ...]
    ) -> Iterator[tuple[str, str]]:
        """Filters `?own = ?other` that an index can serve."""
        for left, right in chain.from_iterable(_equated(c.expression) for c in residual):
            for own, other in ((left, right), (right, left)):
                register = self.resolver.registers.get(other)
                if (
                    own in scope.certain
                    and other not in scope.binds
                    and register is not None
                    and register.kind == "value"
                ):
                    yield own, other

    def _comparisons(
        self, scope: GpmScope, residual: tuple[Condition, ...]
    ) -> Iterator[tuple[str, bool, str, int | None]]:
        """Filters `?own > ?other` and the like that an index can serve."""
        for less, greater in chain.from_iterable(_compared(c.expression) for c in residual):
            for own, others, more in ((less, greater, False), (greater, less, True)):
                if not isinstance(own, ast.Var) or own.name not in scope.certain:
                    continue
                for other, unit in _alternatives(others):
                    register = self.resolver.registers.get(other)
                    if (
                        other not in scope.binds
                        and register is not None
                        and register.kind in ("value", "previous")
                    ):
                        yield own.name, more, other, unit

    def _output(self) -> Output:
        if self.query.groups is not None:
            order = tuple((name, self.resolver.bare(name, ())) for name in self._bound())
            output = self._limited(grouped_output(self.query, self.resolver))
            return replace(output, order=order)
        output = self._limited(self._form())
        if output.form == "ask" or not (
            output.limit is not None
            or output.distinct
            or (self.query.register and self.query.register.kind == "STREAM")
        ):
            return output
        order = tuple((name, self.resolver.bare(name, ())) for name in self._bound())
        return replace(output, order=order)

    def _limited(self, output: Output) -> Output:
        limit = self.query.limit
        if limit is None:
            return output
        return replace(
            output,
            limit=limit.count,
            per=tuple(dict.fromkeys(name.name for name in limit.per)),
            every=None if limit.every is None else limit.every.microseconds,
        )

    def _bound(self) -> list[str]:
        """The variables of positive GPMs, sorted by name."""
        positive = {p.name for p in self.places.occurrences if not p.negated}
        return sorted(set().union(*(self.scopes[name].binds for name in positive)))

    def _form(self) -> Output:
        form = self.query.form
        if isinstance(form, ast.Ask):
            return Output("ask")
        if isinstance(form, ast.Construct):
            names = dict.fromkeys(
                node.name for node in ast.walk(form.template) if isinstance(node, ast.Var)
            )
            registers = tuple((name, self.resolver.bare(name, ())) for name in names)
            return Output("construct", template=form.template, template_registers=registers)
        items = form.items
        if items is None:
            items = tuple(ast.Projection(ast.Var(name)) for name in self._bound())
        columns = tuple(
            Projected(
                item.alias.name if item.alias else item.expression.name,  # type: ignore[union-attr]
                self.resolver.condition(item.expression, ()),
            )
            for item in items
        )
        return Output("select", columns, distinct=form.distinct)


def _conjuncts(expression: ast.Expr) -> Iterator[ast.Expr]:
    """The parts of a conjunction, in order."""
    if isinstance(expression, ast.Binary) and expression.operator == "&&":
        yield from _conjuncts(expression.left)
        yield from _conjuncts(expression.right)
    else:
        yield expression


def _equated(expression: ast.Expr) -> Iterator[tuple[str, str]]:
    """Pairs of variables that must be equal for the expression to be true."""
    if isinstance(expression, ast.Binary) and expression.operator == "&&":
        yield from _equated(expression.left)
        yield from _equated(expression.right)
    elif (
        isinstance(expression, ast.Binary)
        and expression.operator == "="
        and isinstance(expression.left, ast.Var)
        and isinstance(expression.right, ast.Var)
    ):
        yield expression.left.name, expression.right.name


def _window(within: ast.Within | None) -> Window:
    assert within is not None
    size = within.microseconds if within.kind.is_of_time else within.events
    return Window(within.kind, size)


def _compared(expression: ast.Expr) -> Iterator[tuple[ast.Expr, ast.Expr]]:
    """Pairs (a, b) of expressions such that a <= b if the condition is true."""
    if not isinstance(expression, ast.Binary):
        return
    if expression.operator == "&&":
        yield from _compared(expression.left)
        yield from _compared(expression.right)
    elif expression.operator in ("<", "<="):
        yield expression.left, expression.right
    elif expression.operator in (">", ">="):
        yield expression.right, expression.left


def _alternatives(expression: ast.Expr) -> Iterator[tuple[str, int | None]]:
    """The variables whose value the expression may have.

    Each is paired with None, or with a unit if the expression has that value only in the unit's
    first iteration: `PREV(?v, ?default)` is `?default` there.
    """
    if isinstance(expression, ast.Var):
        yield expression.name, None
    elif (
        isinstance(expression, ast.Call)
        and expression.name == "IF"
        and isinstance(first := expression.arguments[0], ast.Var)
        and first.name.startswith(IS_FIRST)
    ):
        _, default, previous = expression.arguments
        if isinstance(default, ast.Var):
            yield default.name, int(first.name.removeprefix(IS_FIRST))
        if isinstance(previous, ast.Var):
            yield previous.name, None

"""Graph patterns → operators in Python.

The translation of SPARQL 1.1 section 18.2.2: the elements of a group are joined in the order of the
text, and its filters apply to the whole group. Adjacent triples form one basic pattern, which
starts from the rows of the elements before it if these bind all shared variables. Parts that depend
only on the KB are evaluated once per KB.

`parameters` are variables whose values EXISTS substitutes (section 18.6): they have no columns,
triples use them as constants, and expressions read them from the scope's `outer`. A sub-query,
VALUES and BIND cannot have a constant in place of a variable: they are evaluated unchanged, and
their rows must agree with the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

import pyoxigraph as ox

from spaseq.gpm.program import constant
from spaseq.gpm.python.basic_pattern import BasicPattern, basic_node, column_name
from spaseq.gpm.python.expression import Env, ExpressionCompiler, TruthOf
from spaseq.gpm.python.functions import volatile
from spaseq.gpm.python.remote import graph_rows, service_node
from spaseq.gpm.python.row_operators import (
    UNIT,
    Node,
    Row,
    Rows,
    align,
    extend,
    indent,
    join,
    left_join,
    minus,
    remembered,
    select,
    union,
    values_node,
    without_parameters,
)
from spaseq.gpm.python.scope import Scope
from spaseq.gpm.python.subselect import subselect_node
from spaseq.parser import ast
from spaseq.parser.format import expression_line
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.graph import Graph

NO_PARAMETERS: frozenset[str] = frozenset()
T = TypeVar("T")


def compile_group(
    group: ast.GroupGraphPattern,
    parameters: frozenset[str] = NO_PARAMETERS,
    bind_parameters: frozenset[str] = NO_PARAMETERS,
) -> Node:
    """The operator of a group; only its own BINDs read `bind_parameters`."""
    node, conditions = _compile_elements(group, parameters, bind_parameters)
    for condition in conditions:
        node = _select(node, condition, parameters)
    return node


def expressions(
    schema: Sequence[str],
    parameters: frozenset[str] = NO_PARAMETERS,
    solution: int | None = None,
) -> ExpressionCompiler:
    """A compiler of expressions over rows of the schema."""
    slots = {name: column for column, name in enumerate(schema)}
    return ExpressionCompiler(slots, parameters, compile_exists, solution)


def _select_expressions(schema: Sequence[str], solution: int | None) -> ExpressionCompiler:
    return expressions(schema, solution=solution)


def compile_exists(
    expr: ast.Exists, slots: Mapping[str, int], parameters: frozenset[str]
) -> TruthOf:
    """EXISTS by substitution of the bindings of the row; one plan for each set of bound names."""
    named = {node.name for node in ast.walk(expr.group) if isinstance(node, ast.Var)}
    columns = [(name, slots[name]) for name in sorted(named - parameters) if name in slots]
    inherited = sorted(named & parameters)
    plans: dict[frozenset[str], Node] = {}
    negated, group = expr.negated, expr.group
    # An error in the pattern is raised at compile time, not at an event.
    compile_group(group, frozenset(name for name, _ in columns))

    def exists(env: Env, scope: Scope) -> bool | None:
        outer = {name: scope.outer[name] for name in inherited if name in scope.outer}
        for name, column in columns:
            value = env[column]
            if value is not None:
                outer[name] = value
        bound = frozenset(outer)
        plan = plans.get(bound)
        if plan is None:
            plan = plans[bound] = compile_group(group, bound)
        return bool(plan.run(scope.under(outer))) is not negated

    return exists


# ------------------------------------------------------------------ groups


def _compile_elements(
    group: ast.GroupGraphPattern, parameters: frozenset[str], bind_parameters: frozenset[str]
) -> tuple[Node, list[ast.Expr]]:
    """The group without its filters, and the filters."""
    conditions = [e.condition for e in group.elements if isinstance(e, ast.Filter)]
    elements = [e for e in group.elements if not isinstance(e, ast.Filter)]
    node = UNIT
    for is_triple, run in groupby(elements, lambda element: isinstance(element, ast.Triple)):
        if is_triple:
            triples = [element for element in run if isinstance(element, ast.Triple)]
            node = _join_triples(node, triples, parameters)
        else:
            for element in run:
                node = _join_element(node, element, parameters, bind_parameters)
    return node, conditions


def _join_triples(left: Node, triples: Sequence[ast.Triple], parameters: frozenset[str]) -> Node:
    if _startable(left, triples):
        return basic_node(left, triples, parameters)
    return join(left, basic_node(UNIT, triples, parameters))


def _startable(left: Node, triples: Sequence[ast.Triple]) -> bool:
    names = {
        column_name(term)
        for triple in triples
        for term in (triple.subject, triple.predicate, triple.object)
        if isinstance(term, ast.Var | ast.BlankNode)
    }
    shared = names & set(left.schema)
    return shared <= left.certain and (bool(shared) or left is UNIT)


def _join_element(
    node: Node,
    element: ast.Element,
    parameters: frozenset[str],
    bind_parameters: frozenset[str],
) -> Node:
    match element:
        case ast.Optional(group):
            return _optional(node, group, parameters)
        case ast.Minus(group):
            return minus(node, compile_group(group, parameters))
        case ast.Bind():
            return _bind(node, element, parameters, bind_parameters)
        case ast.Graph(name, group):
            direct = _lookup_in_kb(node, name, group, parameters)
            return direct or join(node, _graph(name, group, parameters))
        case _:
            return join(node, _standalone(element, parameters))


def _standalone(element: ast.Element, parameters: frozenset[str]) -> Node:
    match element:
        case ast.Union(alternatives):
            return union([compile_group(group, parameters) for group in alternatives])
        case ast.SubGroup(group):
            return compile_group(group, parameters)
        case ast.Values():
            return without_parameters(values_node(element), parameters)
        case ast.SubSelect():
            node = subselect_node(element, compile_group, _select_expressions)
            return without_parameters(node, parameters)
        case ast.Service():
            return service_node(element, parameters)
    raise TypeError(f"{type(element).__name__} does not stand alone")


def _select(node: Node, condition: ast.Expr, parameters: frozenset[str]) -> Node:
    truth = expressions(node.schema, parameters).truth(condition)
    test = _counted(truth, condition, node.schema)
    title = f"filter {expression_line(condition)}"
    return select(node, test, title)


def _bind(
    node: Node, bind: ast.Bind, parameters: frozenset[str], bind_parameters: frozenset[str]
) -> Node:
    value = expressions(node.schema, parameters | bind_parameters).term(bind.expression)
    term = _counted(value, bind.expression, node.schema)
    name = bind.variable.name
    title = f"bind ?{name} := {expression_line(bind.expression)}"
    return without_parameters(extend(node, name, term, title), parameters & {name})


def _optional(left: Node, group: ast.GroupGraphPattern, parameters: frozenset[str]) -> Node:
    right, conditions = _compile_elements(group, parameters, NO_PARAMETERS)
    triples = [e for e in group.elements if isinstance(e, ast.Triple)]
    direct = None
    if len(triples) + len(conditions) == len(group.elements) and _startable(left, triples):
        pattern = BasicPattern(triples, left.schema, parameters)
        direct = pattern.extend
        shared = tuple(n for n in right.schema if n in left.schema)
        added = tuple(n for n in pattern.schema if n not in left.schema)
        right = replace(right, schema=shared + added, lines=pattern.lines)
    condition = None
    if conditions:
        schema = (*left.schema, *(n for n in right.schema if n not in left.schema))
        compiler = expressions(schema, parameters)
        tests = [_counted(compiler.truth(expr), expr, schema) for expr in conditions]
        condition = _all_true(tests)
    return left_join(left, right, condition, direct)


def _counted(
    evaluate: Callable[[Env, Scope], T], expr: ast.Expr, schema: Sequence[str]
) -> Callable[[Env, Scope], T]:
    """A test or a value whose errors are counted in its scope."""

    def counted(env: Env, scope: Scope) -> T:
        found = evaluate(env, scope)
        if scope.errors is not None:
            count = scope.errors.setdefault(expr, ErrorCount())
            count.see(found, lambda: {**scope.outer, **dict(zip(schema, env, strict=True))})
        return found

    return counted


def _all_true(tests: Sequence[TruthOf]) -> TruthOf:
    if len(tests) == 1:
        return tests[0]
    return lambda env, scope: all(test(env, scope) for test in tests)


# ------------------------------------------------------------------ the KB


def _lookup_in_kb(
    left: Node, name: ast.Var | ast.Iri, group: ast.GroupGraphPattern, parameters: frozenset[str]
) -> Node | None:
    """`GRAPH <iri> { triples }` after rows that share variables: look-ups in the graph's index."""
    triples = [e for e in group.elements if isinstance(e, ast.Triple)]
    if not isinstance(name, ast.Iri) or not triples or len(triples) < len(group.elements):
        return None
    if left is UNIT or not _startable(left, triples):
        return None
    pattern = BasicPattern(triples, left.schema, parameters)
    graph = constant(name)
    rows_of = left.run
    elsewhere = align(join(left, _graph(name, group, parameters)), pattern.schema).run

    def run(scope: Scope) -> Rows:
        if scope.is_remote(graph):
            return elsewhere(scope)
        rows = rows_of(scope)
        found = scope.find(graph) if rows else None
        return [] if found is None else pattern.extend(scope.over(found), rows)

    certain = left.certain | frozenset(pattern.schema).difference(left.schema)
    lines = (*left.lines, f"look up in the KB graph {graph}", *indent(pattern.lines))
    return Node(pattern.schema, certain, run, lines)


def _graph(
    name: ast.Var | ast.Iri, group: ast.GroupGraphPattern, parameters: frozenset[str]
) -> Node:
    inner = compile_group(group, parameters)
    where = f"?{name.name}" if isinstance(name, ast.Var) else f"<{name.value}>"
    if isinstance(name, ast.Var) and name.name not in parameters:
        node = _any_graph(name.name, group, inner, parameters)
    else:
        node = _one_graph(name, group, inner, parameters)
    lines = (f"in the KB graph {where}", *indent(inner.lines))
    if parameters or volatile(group):
        return replace(node, lines=lines)
    return replace(
        node, run=remembered(node.run), lines=(*lines, "  (once for each KB)"), static=True
    )


def _one_graph(
    name: ast.Var | ast.Iri,
    group: ast.GroupGraphPattern,
    inner: Node,
    parameters: frozenset[str],
) -> Node:
    fixed = constant(name) if isinstance(name, ast.Iri) else None
    variable = name.name if isinstance(name, ast.Var) else ""

    def run(scope: Scope) -> Rows:
        chosen = scope.outer[variable] if fixed is None else fixed
        if scope.is_remote(chosen):
            return graph_rows(scope, chosen, group, inner.schema, parameters)
        graph = scope.find(chosen)
        return [] if graph is None else inner.run(scope.over(graph))

    return Node(inner.schema, inner.certain, run)


def _any_graph(
    name: str, group: ast.GroupGraphPattern, inner: Node, parameters: frozenset[str]
) -> Node:
    own = inner.schema
    schema = inner.schema if name in inner.schema else (*inner.schema, name)
    column = schema.index(name)
    rows_of = align(inner, schema).run

    def rows_in(scope: Scope, named: ox.NamedNode, graph: Graph) -> Rows:
        if not scope.is_remote(named):
            return rows_of(scope.over(graph))
        rows = graph_rows(scope, named, group, own, parameters)
        return rows if own == schema else [(*row, None) for row in rows]

    def run(scope: Scope) -> Rows:
        out: list[Row] = []
        for named, graph in scope.named():
            for row in rows_in(scope, named, graph):
                if row[column] is None or row[column] == named:
                    out.append((*row[:column], named, *row[column + 1 :]))
        return out

    return Node(schema, inner.certain | {name}, run)

"""Patterns over remote graphs and `SERVICE` → rows.

The operators in Python do not request by key, so all solutions are fetched once. Inside EXISTS such
a pattern is evaluated unchanged and must agree with the outer row; a pattern whose solutions would
depend on the substitution, for example by a filter over outer variables, is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyoxigraph as ox

from spaseq.errors import KbError
from spaseq.gpm.named_graphs import NamedGraphs, kb_parts
from spaseq.gpm.python.row_operators import Node, Row, Rows, without_parameters
from spaseq.gpm.python.scope import Scope
from spaseq.parser import ast
from spaseq.plan.scope import certain_variables, commutes, possible_variables


def graph_rows(
    scope: Scope,
    name: ox.NamedNode,
    group: ast.GroupGraphPattern,
    schema: Sequence[str],
    parameters: frozenset[str],
) -> Rows:
    """The solutions over a remote graph, with the columns of `schema`.

    Raises:
        KbError: if the source fails, or the solutions depend on outer variables.
    """
    if parameters and not commutes(group):
        raise KbError(
            f"a pattern over the remote graph {name} stands in EXISTS and holds more than triples "
            "and filters over their variables: it would have to be asked for each event; load "
            "the graph from a file"
        )
    variables = tuple(sorted(possible_variables(group)))
    assert scope.kb is not None
    rows = scope.kb.relation(name, group, variables).complete("an operator in Python")
    bound = [(c, scope.outer[n]) for c, n in enumerate(variables) if n in parameters]
    if bound:
        rows = [row for row in rows if all(row[c] in (None, value) for c, value in bound)]
    place = {name: column for column, name in enumerate(variables)}
    columns = [place.get(name) for name in schema]  # blank nodes have no column
    return [tuple([None if c is None else row[c] for c in columns]) for row in rows]


def fetch(kb: NamedGraphs | None, node: object) -> None:
    """Fetch solutions before operators in Python read them, since an event must not wait.

    Raises:
        KbError: if a source fails.
    """
    if kb is None:
        return
    for part in kb_parts(node, kb):
        variables = tuple(sorted(possible_variables(part.group)))
        if isinstance(part, ast.Service):
            assert isinstance(part.name, ast.Iri)
            found = kb.service(part.name.value, part.group, variables, part.silent)
            found.complete("an operator in Python")
            continue
        of_all = isinstance(part.name, ast.Var)
        names = kb.names if of_all else [ox.NamedNode(part.name.value)]  # type: ignore[union-attr]
        for name in names:
            if kb.is_remote(name):
                kb.relation(name, part.group, variables).complete("an operator in Python")


def service_node(service: ast.Service, parameters: frozenset[str]) -> Node:
    """`SERVICE <iri> { … }`, fetched once."""
    group, name = service.group, service.name
    assert isinstance(name, ast.Iri), "the check rejects other names"
    iri = name.value
    variables = tuple(sorted(possible_variables(group)))
    certain = frozenset() if service.silent else certain_variables(group)

    def run(scope: Scope) -> Sequence[Row]:
        if scope.kb is None:
            return []
        relation = scope.kb.service(iri, group, variables, service.silent)
        return relation.complete("an operator in Python")

    line = f"fetch from the service <{iri}>  (once for each KB)"
    node = Node(variables, certain, run, (line,))
    return without_parameters(node, parameters)

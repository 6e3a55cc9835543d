"""`VALUES`: inline data as a node. Cost: none at run time."""

from __future__ import annotations

from spaseq.gpm.python.row_operators import Node, Rows
from spaseq.gpm.terms import constant
from spaseq.parser import ast


def values_node(values: ast.Values) -> Node:
    """The rows of the block; a column is certain if no row leaves it `UNDEF`."""
    names = tuple(variable.name for variable in values.variables)
    rows: Rows = [
        tuple(None if cell is None else constant(cell) for cell in row) for row in values.rows
    ]
    certain = frozenset(
        name for column, name in enumerate(names) if all(row[column] is not None for row in rows)
    )
    title = f"values of {' '.join('?' + name for name in names)}"
    return Node(names, certain, lambda scope: rows, (title,), static=True)

"""Graph patterns → the text of one SELECT, for whoever holds the graph.

The text is plain SPARQL 1.1 with absolute IRIs. Values to join with come in front, as `VALUES`:
beside the triples of a pattern that has nothing else, so that a server starts from them; outside
the braces of any other, so that they mean a join and nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spaseq.parser import ast
from spaseq.parser.format import format_pattern
from spaseq.rdf.event import Term

ANY = "spaseq_any"
"""The column of a query whose pattern has no variables."""


def select_text(
    group: ast.GroupGraphPattern,
    variables: Sequence[str],
    limit: int | None = None,
    names: Sequence[str] = (),
    values: Iterable[Sequence[Term]] = (),
) -> str:
    """The SELECT of a pattern's variables, joined with `values` for `names`."""
    head = " ".join(f"?{name}" for name in variables) or f"(1 AS ?{ANY})"
    where = format_pattern(group)
    if names:
        listed = " ".join(f"?{name}" for name in names)
        rows = " ".join("(" + " ".join(map(str, row)) + ")" for row in values)
        block = f"VALUES ({listed}) {{ {rows} }}"
        plain = all(isinstance(element, ast.Triple) for element in group.elements)
        inner = where[where.index("{") + 1 :] if plain else f" {where} }}"
        where = f"{{ {block}{inner}"
    text = f"SELECT {head} WHERE {where}"
    return text if limit is None else f"{text} LIMIT {limit}"

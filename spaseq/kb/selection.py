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
_STRING = "^^<http://www.w3.org/2001/XMLSchema#string>"


def select_text(
    group: ast.GroupGraphPattern,
    variables: Sequence[str],
    limit: int | None = None,
    names: Sequence[str] = (),
    values: Iterable[Sequence[Term]] = (),
) -> str:
    """The SELECT of a pattern's variables, joined with `values` for `names`.

    To some servers (rdflib's) a string with its datatype is another term than one without: they
    are asked for both, and every solution is wanted once.
    """
    head = " ".join(f"?{name}" for name in variables) or f"(1 AS ?{ANY})"
    where = format_pattern(group)
    select = "SELECT"
    if names:
        listed = " ".join(f"?{name}" for name in names)
        once = [tuple(map(str, row)) for row in values]
        twice = [typed for row in once if (typed := tuple(map(_typed, row))) != row]
        if twice:
            select = "SELECT DISTINCT"
        rows = " ".join(f"({' '.join(row)})" for row in once + twice)
        block = f"VALUES ({listed}) {{ {rows} }}"
        plain = all(isinstance(element, ast.Triple) for element in group.elements)
        inner = where[where.index("{") + 1 :] if plain else f" {where} }}"
        where = f"{{ {block}{inner}"
    text = f"{select} {head} WHERE {where}"
    return text if limit is None else f"{text} LIMIT {limit}"


def _typed(term: str) -> str:
    """A term with the datatype that is left out for strings."""
    return term + _STRING if term.endswith('"') else term

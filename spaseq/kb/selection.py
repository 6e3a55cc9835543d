"""Graph patterns → the text of a SELECT for a remote source.

The text is plain SPARQL 1.1 with absolute IRIs. Values to join with precede the pattern as
`VALUES`: inside the braces if the pattern has only triples, so that the server starts from the
values; otherwise outside the braces, so that they are only joined with the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spaseq.parser import ast
from spaseq.parser.format import format_pattern
from spaseq.rdf.event import Term, n_triples

ANY = "spaseq_any"
"""The result column for patterns without variables."""
_STRING = "^^<http://www.w3.org/2001/XMLSchema#string>"


def select_text(
    group: ast.GroupGraphPattern,
    variables: Sequence[str],
    limit: int | None = None,
    names: Sequence[str] = (),
    values: Iterable[Sequence[Term]] = (),
) -> str:
    """The SELECT of a pattern's variables, joined with the rows `values` of the variables `names`.

    Some servers (rdflib's) distinguish a string with an explicit `xsd:string` from one without.
    The query therefore lists both forms, and eliminates duplicate solutions.
    """
    head = " ".join(f"?{name}" for name in variables) or f"(1 AS ?{ANY})"
    where = format_pattern(group)
    select = "SELECT"
    if names:
        listed = " ".join(f"?{name}" for name in names)
        once = [tuple(map(n_triples, row)) for row in values]
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
    """The term, with an explicit `xsd:string` if it is a plain string."""
    return term + _STRING if term.endswith('"') else term

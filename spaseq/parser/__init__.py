"""Query text → syntax tree, and back.

`parse` reads a SPAseq query (docs/language.md section 2), `parse_pattern` a SPARQL group graph
pattern and `parse_expression` a SPARQL expression; all raise `QuerySyntaxError` with every
mistake they could tell apart. `examine` gives these beside the tree. Syntax only: what a name or
a variable means is for `plan`.
"""

from __future__ import annotations

from spaseq.parser.format import format_expression, format_pattern, format_query
from spaseq.parser.read import examine, parse, parse_expression, parse_pattern

__all__ = [
    "examine",
    "format_expression",
    "format_pattern",
    "format_query",
    "parse",
    "parse_expression",
    "parse_pattern",
]

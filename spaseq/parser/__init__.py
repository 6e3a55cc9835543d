"""Query text → syntax tree, and back.

`parse` reads a SPAseq query (docs/language.md section 2), `parse_mapping` a `CONSTRUCT` that maps
rows to events, `parse_pattern` a SPARQL group graph pattern and `parse_expression` a SPARQL
expression. All raise one `QuerySyntaxError` that lists
every mistake found; `examine` returns the mistakes beside the tree instead. Only syntax is
checked here: `plan` checks what names and variables refer to.
"""

from __future__ import annotations

from spaseq.parser.format import format_expression, format_pattern, format_query
from spaseq.parser.read import (
    examine,
    parse,
    parse_expression,
    parse_mapping,
    parse_pattern,
)

__all__ = [
    "examine",
    "format_expression",
    "format_pattern",
    "format_query",
    "parse",
    "parse_expression",
    "parse_mapping",
    "parse_pattern",
]

"""The words of the language that come in families, with what the grammar cannot say of them.

A word may belong to several families (`LAST` is an aggregate and an `EMIT` mode, `DAY` a
built-in and a unit of time); the lexer picks by context.
"""

from __future__ import annotations

MICROSECONDS = {
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
}

EMIT_MODES = ("ALL", "ANY", "NEXT", "LAST", "MAX", "STRICT")

SEQUENCE_AGGREGATES = ("FIRST", "LAST")
SPARQL_AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")

# SPARQL 1.1, production [121]: the least and greatest number of arguments, None for no bound.
ARITY: dict[str, tuple[int, int | None]] = {
    "ABS": (1, 1),
    "BNODE": (0, 1),
    "BOUND": (1, 1),
    "CEIL": (1, 1),
    "COALESCE": (0, None),
    "CONCAT": (0, None),
    "CONTAINS": (2, 2),
    "DATATYPE": (1, 1),
    "DAY": (1, 1),
    "ENCODE_FOR_URI": (1, 1),
    "FLOOR": (1, 1),
    "HOURS": (1, 1),
    "IF": (3, 3),
    "IRI": (1, 1),
    "ISBLANK": (1, 1),
    "ISIRI": (1, 1),
    "ISLITERAL": (1, 1),
    "ISNUMERIC": (1, 1),
    "LANG": (1, 1),
    "LANGMATCHES": (2, 2),
    "LCASE": (1, 1),
    "MD5": (1, 1),
    "MINUTES": (1, 1),
    "MONTH": (1, 1),
    "NOW": (0, 0),
    "RAND": (0, 0),
    "REGEX": (2, 3),
    "REPLACE": (3, 4),
    "ROUND": (1, 1),
    "SAMETERM": (2, 2),
    "SECONDS": (1, 1),
    "SHA1": (1, 1),
    "SHA256": (1, 1),
    "SHA384": (1, 1),
    "SHA512": (1, 1),
    "STR": (1, 1),
    "STRAFTER": (2, 2),
    "STRBEFORE": (2, 2),
    "STRDT": (2, 2),
    "STRENDS": (2, 2),
    "STRLANG": (2, 2),
    "STRLEN": (1, 1),
    "STRSTARTS": (2, 2),
    "STRUUID": (0, 0),
    "SUBSTR": (2, 3),
    "TIMEZONE": (1, 1),
    "TZ": (1, 1),
    "UCASE": (1, 1),
    "UUID": (0, 0),
    "YEAR": (1, 1),
}

# Two names of one function: the tree holds the second.
SYNONYMS = {"URI": "IRI", "ISURI": "ISIRI"}

FAMILIES: dict[str, frozenset[str]] = {
    "AGGREGATE": frozenset((*SPARQL_AGGREGATES, *SEQUENCE_AGGREGATES)),
    "BOOLEAN": frozenset(("TRUE", "FALSE")),
    "BUILTIN": frozenset((*ARITY, *SYNONYMS)),
    "EMIT_MODE": frozenset(EMIT_MODES),
    "TIME_UNIT": frozenset((*MICROSECONDS, *(f"{unit}S" for unit in MICROSECONDS))),
}

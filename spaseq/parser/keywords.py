"""Families of keywords: aggregates, built-ins, units of time, `EMIT` modes.

A word may belong to several families (`LAST` is an aggregate and an `EMIT` mode, `DAY` a
built-in and a unit of time); the lexer chooses by context.
"""

from __future__ import annotations

from typing import get_args

from spaseq.parser.ast import EmitMode
from spaseq.sparql.builtins import AGGREGATES, BUILTINS, SYNONYMS

MICROSECONDS = {
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}

EMIT_MODES: tuple[str, ...] = get_args(EmitMode)

FAMILIES: dict[str, frozenset[str]] = {
    "AGGREGATE": frozenset(AGGREGATES),
    "BOOLEAN": frozenset(("TRUE", "FALSE")),
    "BUILTIN": frozenset((*BUILTINS, *SYNONYMS)),
    "EMIT_MODE": frozenset(EMIT_MODES),
    "TIME_UNIT": frozenset((*MICROSECONDS, *(f"{unit}S" for unit in MICROSECONDS))),
}

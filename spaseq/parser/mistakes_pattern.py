"""Common mistakes in graph patterns and expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from spaseq.parser.error_context import TERM_STARTS, Slip, Stuck
from spaseq.parser.keywords import FAMILIES


def _triples(stuck: Stuck) -> Slip | None:
    starts = stuck.kind in TERM_STARTS
    if starts and {"DOT", "RBRACE"} <= stuck.expected and "UNION" not in stuck.expected:
        return Slip(
            "a dot is missing between two triples",
            "write a dot in front of this, or ; to say more about the same subject",
        )
    if starts and stuck.previous == "FILTER":
        return Slip("FILTER needs parentheses around its condition", "write FILTER ( … )")
    at_start = {"FILTER", "RBRACE"} <= stuck.expected and "DOT" not in stuck.expected
    if stuck.kind in ("SEMICOLON", "COMMA") and at_start:
        return Slip(f"a {stuck.text} without a triple in front", _TRIPLE)
    if stuck.kind in ("DOT", "RBRACE", "SEMICOLON", "COMMA"):
        if "A" in stuck.expected:
            return Slip("a triple without a predicate", _TRIPLE)
        if stuck.expected >= TERM_STARTS and not at_start:
            return Slip("a triple without an object", _TRIPLE)
    return None


_TRIPLE = "a triple is: subject predicate object; ; goes on with its subject, , with both"


def _groups(stuck: Stuck) -> Slip | None:
    if stuck.kind == "UNION":
        return Slip("UNION stands between groups", "write { … } UNION { … }")
    if stuck.kind == "LIMIT" and stuck.inside("DEFINE"):
        return Slip("LIMIT inside a graph pattern", "LIMIT comes at the end of the query")
    if stuck.kind == "QMARK" and "VAR" in stuck.expected:
        return Slip("a ? without a name", "write the variable's name right after it: ?name")
    return None


_SYNONYMS = {
    "AVERAGE": "AVG",
    "CEILING": "CEIL",
    "INSTR": "CONTAINS",
    "ISNULL": "!BOUND",
    "LEN": "STRLEN",
    "LENGTH": "STRLEN",
    "LOWER": "LCASE",
    "MATCHES": "REGEX",
    "MEAN": "AVG",
    "PREVIOUS": "PREV",
    "SUBSTRING": "SUBSTR",
    "TOLOWER": "LCASE",
    "TOUPPER": "UCASE",
    "UPPER": "UCASE",
}


def _expression(stuck: Stuck) -> Slip | None:
    if stuck.kind == "EQUAL" and stuck.previous in ("=", "=="):
        return Slip("== is no operator", "SPARQL compares with one =")
    if stuck.previous == "NOT" and stuck.expected <= {"EXISTS", "IN"}:
        return Slip("NOT in front of an expression", "write !( … ); NOT goes with EXISTS and IN")
    if {"STAR", "SLASH"} <= stuck.expected:
        words = {"AND": "&&", "OR": "||", "IS": "=", "LIKE": "REGEX(text, pattern)"}
        sign = words.get(stuck.text.upper()) or {"&": "&&", "|": "||"}.get(stuck.text)
        if sign:
            return Slip(f"{stuck.text} is no operator of an expression", f"write {sign}")
    if stuck.previous == "IN" and stuck.expected == {"LPAR"}:
        return Slip("IN without a list", "write IN ( …, … )")
    if stuck.kind == "RPAR" and "BUILTIN" in stuck.expected:
        what = (
            "an empty condition" if stuck.previous == "(" else f"nothing follows {stuck.previous}"
        )
        return Slip(what, "write an expression, such as ?a > 3")
    return None


def _call(stuck: Stuck) -> Slip | None:
    if "BUILTIN" not in stuck.expected or not re.match(r"[^\W\d]\w*\s*\(", stuck.rest):
        return None
    word = stuck.text.upper()
    known = FAMILIES["BUILTIN"] | FAMILIES["AGGREGATE"] | {"PREV", "EXISTS"}
    close = [_SYNONYMS[word]] if word in _SYNONYMS else get_close_matches(word, known, 1, 0.7)
    hint = f"did you mean {close[0]}? " if close else ""
    return Slip(
        f"there is no function {stuck.text}",
        hint + "A function of your own is named by an IRI: <http://…>(…) or prefix:name(…)",
    )


PATTERN_SLIPS: tuple[Callable[[Stuck], Slip | None], ...] = (_triples, _groups, _expression, _call)

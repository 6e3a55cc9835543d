"""Common mistakes in graph patterns and expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from spaseq.parser.error_context import TERM_STARTS, ErrorContext, Mistake
from spaseq.parser.keywords import FAMILIES


def _triples(context: ErrorContext) -> Mistake | None:
    starts = context.kind in TERM_STARTS
    if starts and {"DOT", "RBRACE"} <= context.expected and "UNION" not in context.expected:
        return Mistake(
            "a dot is missing between two triples",
            "write a dot before this, or ; to continue with the same subject",
        )
    if starts and context.previous == "FILTER":
        return Mistake("FILTER needs parentheses around its condition", "write FILTER ( … )")
    at_start = {"FILTER", "RBRACE"} <= context.expected and "DOT" not in context.expected
    if context.kind in ("SEMICOLON", "COMMA") and at_start:
        return Mistake(f"a {context.text} without a triple before it", _TRIPLE)
    if context.kind in ("DOT", "RBRACE", "SEMICOLON", "COMMA"):
        if "A" in context.expected:
            return Mistake("a triple without a predicate", _TRIPLE)
        if context.expected >= TERM_STARTS and not at_start:
            return Mistake("a triple without an object", _TRIPLE)
    return None


_TRIPLE = (
    "a triple is: subject predicate object; after it, ; repeats the subject, and , repeats the "
    "subject and predicate"
)


def _triple_terms(context: ErrorContext) -> Mistake | None:
    """What a triple term, or a reified triple, cannot hold."""
    whole = next((t for t in reversed(context.before) if t.kind in _TRIPLE_TERMS), None)
    if whole is None:
        return None
    what = _TRIPLE_TERMS[whole.kind]
    if context.text in tuple("/|*+?^!"):
        return Mistake(f"a property path in {what}", "its predicate is an IRI or a variable")
    if context.kind == "VAR" and "IRIREF" in context.expected:
        return Mistake(
            f"a variable in {what} of VALUES",
            "VALUES holds constants; BIND(TRIPLE(?s, ?p, ?o) AS ?t) makes one of variables",
        )
    if context.text == "(":
        return Mistake(f"a list in {what}", "its parts are single terms")
    return None


_TRIPLE_TERMS = {"TERM_OPEN": "a triple term", "REIFIED_OPEN": "a reified triple"}


def _groups(context: ErrorContext) -> Mistake | None:
    if context.kind == "UNION":
        return Mistake("UNION needs a group on either side", "write { … } UNION { … }")
    if context.kind == "LIMIT" and context.inside("DEFINE"):
        return Mistake("LIMIT inside a graph pattern", "LIMIT comes at the end of the query")
    if context.kind == "QMARK" and "VAR" in context.expected:
        return Mistake("a ? without a name", "write the variable's name right after it: ?name")
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


def _expression(context: ErrorContext) -> Mistake | None:
    if context.kind == "EQUAL" and context.previous in ("=", "=="):
        return Mistake("== is not an operator", "SPARQL compares with one =")
    if context.previous == "NOT" and context.expected <= {"EXISTS", "IN"}:
        return Mistake(
            "NOT before an expression", "write !( … ); NOT occurs only in NOT EXISTS and NOT IN"
        )
    if {"STAR", "SLASH"} <= context.expected:
        words = {"AND": "&&", "OR": "||", "IS": "=", "LIKE": "REGEX(text, pattern)"}
        sign = words.get(context.text.upper()) or {"&": "&&", "|": "||"}.get(context.text)
        if sign:
            return Mistake(f"{context.text} is not an operator of expressions", f"write {sign}")
    if context.previous == "IN" and context.expected == {"LPAR"}:
        return Mistake("IN without a list", "write IN ( …, … )")
    if context.kind == "RPAR" and "BUILTIN" in context.expected:
        what = (
            "an empty condition"
            if context.previous == "("
            else f"nothing follows {context.previous}"
        )
        return Mistake(what, "write an expression, such as ?a > 3")
    return None


def _call(context: ErrorContext) -> Mistake | None:
    if "BUILTIN" not in context.expected or not re.match(r"[^\W\d]\w*\s*\(", context.rest):
        return None
    word = context.text.upper()
    known = FAMILIES["BUILTIN"] | FAMILIES["AGGREGATE"] | {"PREV", "EXISTS"}
    close = [_SYNONYMS[word]] if word in _SYNONYMS else get_close_matches(word, known, 1, 0.7)
    hint = f"did you mean {close[0]}? " if close else ""
    return Mistake(
        f"there is no function {context.text}",
        hint + "Other functions are called by their IRI: <http://…>(…) or prefix:name(…)",
    )


PATTERN_MISTAKES: tuple[Callable[[ErrorContext], Mistake | None], ...] = (
    _triple_terms,
    _triples,
    _groups,
    _expression,
    _call,
)

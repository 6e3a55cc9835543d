"""Syntax of other languages: comments, SQL's `BETWEEN` and `IS NULL`, lists of bare names.

Each entry reads the text around the offending token, so that its hint shows the text to write.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from spaseq.parser.error_context import ErrorContext, Mistake
from spaseq.parser.keywords import MICROSECONDS

_VARIABLE = re.compile(r"[?$]\w+(?=\s*$)")


def _comment(context: ErrorContext) -> Mistake | None:
    """A comment of another language, whose first `/` or `--` may already be read as operators."""
    text, start = context.source.lexed, context.start
    mark = re.match(r"//|/\*|--(?!-*>)", context.rest)
    if mark is None and context.kind in ("SLASH", "STAR") and text[start - 2 : start - 1].isspace():
        start -= 1
        mark = re.compile(r"//|/\*").match(text, start)
    elif mark is None and context.kind == "NAME":
        dashes = re.search(r"\s--[ \t]+$", text[: context.start])
        if dashes is not None:
            start = dashes.start() + 1
            mark = re.compile("--").match(text, start)
    if mark is None or re.search(r"[A-Za-z]:$", text[:start]):
        return None
    return Mistake(
        f"{mark[0]} does not begin a comment",
        "a comment begins with # and ends with its line",
        context.span(start, start + 2),
    )


# ------------------------------------------------------------------ expressions


def _operand(context: ErrorContext, before: int) -> str:
    """The variable that ends before an offset, or `?x` in place of a longer operand."""
    match = _VARIABLE.search(context.source.lexed, 0, before)
    return match[0] if match is not None else "?x"


def _null(context: ErrorContext) -> Mistake | None:
    compared = re.match(r"(IS)(\s+NOT)?\s+NULL\b", context.rest, re.IGNORECASE)
    start = context.start
    if compared is None and context.text.upper() == "NULL":
        sign = re.search(r"(!)?=\s*$", context.source.lexed[:start])
        if sign is None:
            return None
        start, negated, end = sign.start(), sign[1], context.end
    elif compared is not None and {"STAR", "SLASH"} <= context.expected:
        negated, end = compared[2], start + compared.end()
    else:
        return None
    variable = _operand(context, start)
    return Mistake(
        "there is no NULL: a variable has a value or is unbound",
        f"write {'' if negated else '!'}BOUND({variable})",
        context.span(start, end),
    )


def _between(context: ErrorContext) -> Mistake | None:
    bounds = re.match(r"BETWEEN\s+([^\s()]+)\s+AND\s+([^\s()]+)", context.rest, re.IGNORECASE)
    if context.text.upper() != "BETWEEN" or not {"STAR", "IN"} & context.expected:
        return None
    low, high = (bounds[1], bounds[2]) if bounds is not None else ("3", "5")
    outside = re.search(r"\bNOT\s*$", context.source.lexed[: context.start], re.IGNORECASE)
    operand = _operand(context, outside.start() if outside is not None else context.start)
    test = f"{operand} < {low} || {operand} > {high}"
    if outside is None:
        test = f"{operand} >= {low} && {operand} <= {high}"
    return Mistake("BETWEEN is not an operator", f"write {test}")


def _turned_sign(context: ErrorContext) -> Mistake | None:
    text, start = context.source.lexed, context.start
    sign = {"=>": ">=", "=<": "<="}.get(text[start - 1 : start + 1] if start else "")
    if sign is None or "BUILTIN" not in context.expected:
        return None
    return Mistake(
        f"{text[start - 1 : start + 1]} is not an operator",
        f"write {sign}",
        context.span(start - 1, start + 1),
    )


# ------------------------------------------------------------------ SELECT


def _bare_item(context: ErrorContext) -> Mistake | None:
    """`SELECT room, low`."""
    last = context.before[-1].kind if context.before else ""
    in_list = last in ("SELECT", "DISTINCT", "REDUCED") or context.previous == ","
    if not in_list or not context.inside("SELECT") or not {"VAR", "LPAR"} <= context.expected:
        return None
    if context.open is not None and context.open.text == "(":
        return None
    called = re.match(r"\w+\s*\(", context.rest)
    if context.kind not in ("NAME", "BUILTIN", "AGGREGATE") or called is not None:
        return None
    if get_close_matches(context.text.upper(), ("DISTINCT", "REDUCED"), 1, 0.7):
        return None
    return Mistake(
        f"{context.text} is not a variable", f"variables begin with ?: write ?{context.text}"
    )


def _bare_expression(context: ErrorContext) -> Mistake | None:
    """`SELECT ?a AS ?b`, `SELECT ?a - ?b AS ?c`."""
    select = next((token for token in context.before if token.kind == "SELECT"), None)
    if select is None or not {"VAR", "LPAR", "WHERE"} <= context.expected:
        return None
    if context.kind not in ("AS", "PLUS", "MINUS", "STAR", "SLASH", "SIGNED"):
        return None
    operand = _VARIABLE.search(context.source.lexed, select.end, context.start)
    item = re.match(r"([^\n,]*?)\s*\bAS\s+[?$]?(\w+)", context.rest, re.IGNORECASE)
    example = "write ( … AS ?name)"
    if operand is not None and item is not None:
        words = context.source.lexed[operand.start() : context.start] + item[1]
        example = f"write ({words.strip()} AS ?{item[2]})"
    return Mistake("an expression in SELECT without parentheses", example)


# ------------------------------------------------------------------ clauses, DEFINE

_UNITS = "|".join(MICROSECONDS)
_DURATION = rf"([0-9]{{1,9}})\s*({_UNITS})S?\b"
_FIRST_DURATION = re.compile(rf"\bWITHIN\s+(?:TUMBLING\s+)?{_DURATION}\s*$", re.IGNORECASE)
_MORE_DURATIONS = re.compile(rf"(?:(?:,|AND\b)?\s*{_DURATION}\s*)+", re.IGNORECASE)


def _duration(context: ErrorContext) -> Mistake | None:
    """`WITHIN 1 HOUR 30 MINUTES`."""
    more = _MORE_DURATIONS.match(context.rest)
    first = (
        _FIRST_DURATION.search(context.source.lexed[: context.start]) if more is not None else None
    )
    if more is None or first is None:
        return None
    parts = re.findall(_DURATION, first[0] + more[0], re.IGNORECASE)
    total = sum(int(number) * MICROSECONDS[unit.upper()] for number, unit in parts)
    unit = min((unit.upper() for _, unit in parts), key=MICROSECONDS.__getitem__)
    return Mistake(
        "WITHIN takes one number and one unit",
        f"write WITHIN {total // MICROSECONDS[unit]} {unit}S",
        context.span(context.start, context.start + len(more[0].rstrip())),
    )


def _stream_by_iri(context: ErrorContext) -> Mistake | None:
    """`ON :sensors`: `ON` takes the name declared in `FROM STREAM`, not the stream's IRI."""
    if context.expected != {"NAME"} or not context.inside("GPM") or not context.inside("ON"):
        return None
    if context.kind not in ("IRIREF", "PNAME_LN", "PNAME_NS", "STRING", "VAR"):
        return None
    names = re.findall(r"\bFROM\s+STREAM\s+(\w+)", context.source.lexed, re.IGNORECASE)
    declared = " or ".join(f"ON {name}" for name in dict.fromkeys(names))
    declaration = context.text if context.kind not in ("STRING", "VAR") else "<…>"
    return Mistake(
        f"ON takes the name of a stream, not {context.text}",
        f"use the name declared in FROM STREAM: {declared}"
        if declared
        else f"declare the stream with FROM STREAM S1 {declaration}, and write ON S1",
    )


OTHER_LANGUAGE_MISTAKES: tuple[Callable[[ErrorContext], Mistake | None], ...] = (
    _comment,
    _null,
    _between,
    _turned_sign,
    _bare_item,
    _bare_expression,
    _duration,
    _stream_by_iri,
)

"""Habits from other languages: comments, SQL's `BETWEEN` and `IS NULL`, lists of bare names.

Each entry reads the text around the stuck token, so that its advice is what to write there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from spaseq.parser.error_context import Slip, Stuck
from spaseq.parser.keywords import MICROSECONDS

_VARIABLE = re.compile(r"[?$]\w+(?=\s*$)")


def _comment(stuck: Stuck) -> Slip | None:
    """A comment of another language; an expression or a path takes its first `/` or `--`."""
    text, start = stuck.source.lexed, stuck.start
    mark = re.match(r"//|/\*|--(?!-*>)", stuck.rest)
    if mark is None and stuck.kind in ("SLASH", "STAR") and text[start - 2 : start - 1].isspace():
        start -= 1
        mark = re.compile(r"//|/\*").match(text, start)
    elif mark is None and stuck.kind == "NAME":
        taken = re.search(r"\s--[ \t]+$", text[: stuck.start])
        if taken is not None:
            start = taken.start() + 1
            mark = re.compile("--").match(text, start)
    if mark is None or re.search(r"[A-Za-z]:$", text[:start]):
        return None
    return Slip(
        f"{mark[0]} begins no comment",
        "comments begin with #, and end with their line",
        stuck.span(start, start + 2),
    )


# ------------------------------------------------------------------ expressions


def _operand(stuck: Stuck, before: int) -> str:
    """The variable that ends in front of an offset, or one that stands for any operand."""
    found = _VARIABLE.search(stuck.source.lexed, 0, before)
    return found[0] if found is not None else "?x"


def _null(stuck: Stuck) -> Slip | None:
    compared = re.match(r"(IS)(\s+NOT)?\s+NULL\b", stuck.rest, re.IGNORECASE)
    start = stuck.start
    if compared is None and stuck.text.upper() == "NULL":
        sign = re.search(r"(!)?=\s*$", stuck.source.lexed[:start])
        if sign is None:
            return None
        start, negated, end = sign.start(), sign[1], stuck.end
    elif compared is not None and {"STAR", "SLASH"} <= stuck.expected:
        negated, end = compared[2], start + compared.end()
    else:
        return None
    variable = _operand(stuck, start)
    return Slip(
        "there is no NULL: a variable has a value, or is not bound",
        f"write {'' if negated else '!'}BOUND({variable})",
        stuck.span(start, end),
    )


def _between(stuck: Stuck) -> Slip | None:
    bounds = re.match(r"BETWEEN\s+([^\s()]+)\s+AND\s+([^\s()]+)", stuck.rest, re.IGNORECASE)
    if stuck.text.upper() != "BETWEEN" or not {"STAR", "IN"} & stuck.expected:
        return None
    low, high = (bounds[1], bounds[2]) if bounds is not None else ("3", "5")
    outside = re.search(r"\bNOT\s*$", stuck.source.lexed[: stuck.start], re.IGNORECASE)
    operand = _operand(stuck, outside.start() if outside is not None else stuck.start)
    test = f"{operand} < {low} || {operand} > {high}"
    if outside is None:
        test = f"{operand} >= {low} && {operand} <= {high}"
    return Slip("BETWEEN is no operator of an expression", f"write {test}")


def _turned_sign(stuck: Stuck) -> Slip | None:
    text, start = stuck.source.lexed, stuck.start
    sign = {"=>": ">=", "=<": "<="}.get(text[start - 1 : start + 1] if start else "")
    if sign is None or "BUILTIN" not in stuck.expected:
        return None
    return Slip(
        f"{text[start - 1 : start + 1]} is no operator",
        f"write {sign}",
        stuck.span(start - 1, start + 1),
    )


# ------------------------------------------------------------------ SELECT


def _bare_item(stuck: Stuck) -> Slip | None:
    """`SELECT room, low`."""
    last = stuck.before[-1].kind if stuck.before else ""
    in_list = last in ("SELECT", "DISTINCT", "REDUCED") or stuck.previous == ","
    if not in_list or not stuck.inside("SELECT") or not {"VAR", "LPAR"} <= stuck.expected:
        return None
    if stuck.open is not None and stuck.open.text == "(":
        return None
    called = re.match(r"\w+\s*\(", stuck.rest)
    if stuck.kind not in ("NAME", "BUILTIN", "AGGREGATE") or called is not None:
        return None
    if get_close_matches(stuck.text.upper(), ("DISTINCT", "REDUCED"), 1, 0.7):
        return None
    return Slip(f"{stuck.text} is no variable", f"a variable has a ? in front: write ?{stuck.text}")


def _bare_expression(stuck: Stuck) -> Slip | None:
    """`SELECT ?a AS ?b`, `SELECT ?a - ?b AS ?c`."""
    select = next((token for token in stuck.before if token.kind == "SELECT"), None)
    if select is None or not {"VAR", "LPAR", "WHERE"} <= stuck.expected:
        return None
    if stuck.kind not in ("AS", "PLUS", "MINUS", "STAR", "SLASH", "SIGNED"):
        return None
    operand = _VARIABLE.search(stuck.source.lexed, select.end, stuck.start)
    item = re.match(r"([^\n,]*?)\s*\bAS\s+[?$]?(\w+)", stuck.rest, re.IGNORECASE)
    example = "write ( … AS ?name)"
    if operand is not None and item is not None:
        words = stuck.source.lexed[operand.start() : stuck.start] + item[1]
        example = f"write ({words.strip()} AS ?{item[2]})"
    return Slip("an expression in SELECT without parentheses", example)


# ------------------------------------------------------------------ clauses, DEFINE

_UNITS = "|".join(MICROSECONDS)
_DURATION = rf"([0-9]{{1,9}})\s*({_UNITS})S?\b"
_FIRST_DURATION = re.compile(rf"\bWITHIN\s+(?:TUMBLING\s+)?{_DURATION}\s*$", re.IGNORECASE)
_MORE_DURATIONS = re.compile(rf"(?:(?:,|AND\b)?\s*{_DURATION}\s*)+", re.IGNORECASE)


def _duration(stuck: Stuck) -> Slip | None:
    """`WITHIN 1 HOUR 30 MINUTES`."""
    more = _MORE_DURATIONS.match(stuck.rest)
    first = _FIRST_DURATION.search(stuck.source.lexed[: stuck.start]) if more is not None else None
    if more is None or first is None:
        return None
    parts = re.findall(_DURATION, first[0] + more[0], re.IGNORECASE)
    total = sum(int(number) * MICROSECONDS[unit.upper()] for number, unit in parts)
    unit = min((unit.upper() for _, unit in parts), key=MICROSECONDS.__getitem__)
    return Slip(
        "WITHIN takes one number and one unit",
        f"write WITHIN {total // MICROSECONDS[unit]} {unit}S",
        stuck.span(stuck.start, stuck.start + len(more[0].rstrip())),
    )


def _stream_by_iri(stuck: Stuck) -> Slip | None:
    """`ON :sensors`: a stream goes by the name that its `FROM STREAM` gives it."""
    if stuck.expected != {"NAME"} or not stuck.inside("GPM") or not stuck.inside("ON"):
        return None
    if stuck.kind not in ("IRIREF", "PNAME_LN", "PNAME_NS", "STRING", "VAR"):
        return None
    names = re.findall(r"\bFROM\s+STREAM\s+(\w+)", stuck.source.lexed, re.IGNORECASE)
    declared = " or ".join(f"ON {name}" for name in dict.fromkeys(names))
    declaration = stuck.text if stuck.kind not in ("STRING", "VAR") else "<…>"
    return Slip(
        f"ON takes the name of a stream, not {stuck.text}",
        f"use the name declared in FROM STREAM: {declared}"
        if declared
        else f"declare the stream with FROM STREAM S1 {declaration}, and write ON S1",
    )


HABIT_SLIPS: tuple[Callable[[Stuck], Slip | None], ...] = (
    _comment,
    _null,
    _between,
    _turned_sign,
    _bare_item,
    _bare_expression,
    _duration,
    _stream_by_iri,
)

"""Common mistakes in what is SPAseq's own: the prologue, clauses, `DEFINE` and `SEQ`."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from spaseq.parser.error_context import TERM_STARTS, Slip, Stuck
from spaseq.parser.keywords import FAMILIES, MICROSECONDS


def _prologue(stuck: Stuck) -> Slip | None:
    if stuck.kind == "LANGTAG" and stuck.text.lower() in ("@prefix", "@base"):
        return Slip(
            f"{stuck.text} is Turtle",
            f"write {stuck.text[1:].upper()} without @, and no dot at the end of the line",
        )
    if stuck.previous == "PREFIX" and "PNAME_NS" in stuck.expected:
        name = stuck.text.partition(":")[0]
        return Slip(
            "a prefix is a name with a colon at its end, in front of an IRI",
            f"such as: PREFIX {name if name.isalnum() else 'ex'}: <http://example.org/>",
        )
    if stuck.kind == "DOT" and "PREFIX" in stuck.expected:
        return Slip("a dot after a declaration", "remove it; only Turtle has one here")
    return None


def _address(stuck: Stuck) -> Slip | None:
    """`http://example.org` is a prefixed name `http:` and two slashes to the lexer."""
    start = stuck.start
    # A path takes the first of the two slashes.
    scheme = re.search(r"[A-Za-z]+:/?$", stuck.source.lexed[: stuck.previous_end])
    if scheme is not None and stuck.source.lexed.startswith(
        "//", scheme.end() - scheme[0].count("/")
    ):
        start = scheme.start()
    address = re.match(r"[A-Za-z]+://[^\s;,<>()]+", stuck.source.lexed[start:])
    if address is None:
        return None
    return Slip(
        "an IRI without its brackets",
        f"write <{address[0]}>",
        stuck.span(start, start + address.end()),
    )


def _select(stuck: Stuck) -> Slip | None:
    last = stuck.before[-1].kind if stuck.before else ""
    in_items = last in ("SELECT", "DISTINCT", "REDUCED") or "SEQ" in stuck.expected
    if stuck.kind in ("BUILTIN", "AGGREGATE") and in_items:
        return Slip(
            "an expression in SELECT without parentheses",
            f"write ({stuck.text}(…) AS ?name)",
        )
    if "AS" in stuck.expected and stuck.kind == "RPAR":
        return Slip("an expression needs a name here", "write ( … AS ?name)")
    if "AS" in stuck.expected and stuck.kind in ("VAR", "COMMA"):
        return Slip("AS is missing", "an expression gets its name so: ( … AS ?name)")
    if last == "SELECT" and stuck.kind in ("INTEGER", "DECIMAL", "DOUBLE", "SIGNED", "STRING"):
        return Slip("an expression in SELECT without parentheses", "write ( … AS ?name)")
    if last == "SELECT" and stuck.kind not in ("NAME", "RPAR"):
        return Slip("SELECT without variables", "name some, as in SELECT ?a ?b, or write SELECT *")
    if last == "CONSTRUCT" and stuck.kind == "WHERE":
        return Slip(
            "CONSTRUCT without a template",
            "write CONSTRUCT { … } with the triples to make, then the clauses and WHERE",
        )
    if stuck.kind in ("ORDER", "GROUP", "HAVING", "OFFSET") and stuck.open is None:
        return Slip(
            f"a SPAseq query has no {stuck.text.upper()}",
            "matches come in the order of time; sort or group the results afterwards",
        )
    return None


def _clauses(stuck: Stuck) -> Slip | None:
    named = stuck.kind not in ("IRIREF", "PNAME_LN", "PNAME_NS")
    if stuck.previous == "STREAM" and "NAME" in stuck.expected and not named:
        return Slip(
            "FROM STREAM without a name for the stream",
            f"write FROM STREAM S1 {stuck.text}, and ON S1 in DEFINE",
        )
    if "TIME_UNIT" in stuck.expected and stuck.kind == "EVENTS":
        return Slip(
            "EVENTS takes a whole number",
            "write it without a fraction or an exponent, such as WITHIN 10 EVENTS",
            stuck.place(stuck.before[-1]),
        )
    if "TUMBLING" in stuck.expected and stuck.kind == "SIGNED":
        return Slip("WITHIN takes a number without a sign", f"write WITHIN {stuck.text[1:]}")
    if "TIME_UNIT" in stuck.expected:
        return Slip(
            "WITHIN needs a unit of time, or EVENTS",
            f"one of {', '.join(unit + 'S' for unit in MICROSECONDS)}, EVENTS",
        )
    if stuck.kind == "TIME_UNIT" and stuck.previous.isdigit():
        return Slip("EVENTS or a unit of time, not both", "remove one of the two")
    if stuck.previous == "EMIT" and "EMIT_MODE" in stuck.expected:
        return Slip(
            f"EMIT cannot be {stuck.text}",
            f"one of {', '.join(sorted(FAMILIES['EMIT_MODE']))}",
        )
    closed = stuck.expected <= {"$END"}
    if closed and stuck.kind in ("WITHIN", "PARTITION", "EMIT", "AFTER", "FROM"):
        return Slip(f"{stuck.text} after LIMIT", "LIMIT comes last: move it to the end")
    return None


def _define(stuck: Stuck) -> Slip | None:
    if stuck.kind == "GPM" and "DEFINE" in stuck.expected:
        return Slip("DEFINE is missing", "write DEFINE GPM name ON stream { … }")
    if stuck.previous == "DEFINE" and "GPM" in stuck.expected and stuck.kind == "NAME":
        following = re.match(r"\w+\s+(?!ON\b)([^\W\d]\w*)", stuck.rest, re.IGNORECASE)
        if following is not None:
            close = get_close_matches(stuck.text.upper(), ("GPM",), 1, 0.6)
            hint = (
                "did you mean GPM?"
                if close
                else f"write DEFINE GPM {following[1]} ON stream {{ … }}"
            )
            return Slip(f"unknown word {stuck.text}", hint)
        return Slip("GPM is missing", f"write DEFINE GPM {stuck.text} ON stream {{ … }}")
    if "ON" in stuck.expected and stuck.inside("GPM") and stuck.kind == "LBRACE":
        return Slip(
            "the stream of the graph pattern is missing",
            f"write DEFINE GPM {stuck.before[-1].text} ON S1 {{ … }}; S1 names a FROM STREAM",
        )
    if "LBRACE" in stuck.expected and _in_heading(stuck):
        return Slip(
            "a { is missing", "the graph pattern stands in braces: DEFINE GPM A ON S1 { … }"
        )
    if "DEFINE" in stuck.expected and "RBRACE" not in stuck.expected:
        return Slip(
            "a graph pattern must be defined here",
            "after SEQ(…) and { comes DEFINE GPM name ON stream { … }",
        )
    if stuck.kind == "DEFINE" and "SEQ" in stuck.expected:
        return Slip("SEQ is missing", "say in which order the patterns follow, such as SEQ (A; B)")
    if stuck.kind == "DEFINE" and "LBRACE" in stuck.expected:
        return Slip("a { is missing before DEFINE", "the definitions stand in braces after SEQ(…)")
    if "SEQ" in stuck.expected and stuck.kind in TERM_STARTS and stuck.open is not None:
        return Slip(
            "SEQ is missing",
            "a SPAseq query has WHERE { SEQ (A; B) DEFINE GPM A ON S1 { … } … }; "
            "triples stand inside DEFINE",
        )
    return None


def _in_heading(stuck: Stuck) -> bool:
    """Whether the parser is between `DEFINE` and the brace of its graph pattern."""
    defines = [token for token in stuck.before if token.kind == "DEFINE"]
    bracket = stuck.open
    return bool(defines) and (bracket is None or bracket.start < defines[-1].start)


def _sequence(stuck: Stuck) -> Slip | None:
    if stuck.previous == "SEQ" and "LPAR" in stuck.expected:
        return Slip("SEQ without parentheses", "write SEQ (A; B)")
    if not stuck.inside("SEQ"):
        return None
    if stuck.kind in ("BANG", "NOT") and stuck.previous in ("!", "NOT"):
        return Slip("a second negation", "one is enough: !B")
    if not {"NAME", "BANG"} <= stuck.expected and not {"COLON", "RPAR"} <= stuck.expected:
        return None
    if stuck.kind == "RPAR":
        if stuck.previous == "(":
            return Slip("nothing between the parentheses", "name the graph patterns: SEQ (A; B)")
        return Slip(
            f"nothing follows {stuck.previous}", "name the next graph pattern, or remove the sign"
        )
    if re.match(r"-+>|=>|→", stuck.rest):
        return Slip("an arrow between steps", _STEPS)
    if stuck.kind == "NAME" and "COLON" in stuck.expected:
        return Slip(f"no operator in front of {stuck.text}", _STEPS)
    if stuck.text in ("&", "|") and stuck.previous in ("&", "|"):
        return Slip(f"{stuck.text * 2} is no operator of SEQ", f"write {stuck.text}")
    if stuck.kind == "BANG":
        return Slip("a second negation", "one is enough: !B")
    return None


_STEPS = (
    "steps are joined by , (the very next event), ; (the next that matches) or : (any later one), "
    "and grouped as (A & B), (A | B), (A AND B)"
)

QUERY_SLIPS: tuple[Callable[[Stuck], Slip | None], ...] = (
    _prologue,
    _address,
    _select,
    _clauses,
    _sequence,
    _define,
)

"""Common mistakes in the SPAseq part of a query: prologue, clauses, `DEFINE` and `SEQ`."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from spaseq.parser.error_context import TERM_STARTS, ErrorContext, Mistake
from spaseq.parser.keywords import FAMILIES, MICROSECONDS


def _prologue(context: ErrorContext) -> Mistake | None:
    if context.kind == "LANGTAG" and context.text.lower() in ("@prefix", "@base"):
        return Mistake(
            f"{context.text} is Turtle",
            f"write {context.text[1:].upper()} without @, and no dot at the end of the line",
        )
    if context.previous == "PREFIX" and "PNAME_NS" in context.expected:
        name = context.text.partition(":")[0]
        return Mistake(
            "PREFIX takes a name that ends in a colon, and an IRI",
            f"such as: PREFIX {name if name.isalnum() else 'ex'}: <http://example.org/>",
        )
    if "CONSTRUCT" in context.expected and context.kind in ("SELECT", "ASK", "REGISTER"):
        return Mistake(
            "a mapping of rows begins with CONSTRUCT",
            "write CONSTRUCT { … } WHERE { BIND(…) … }; this looks like a query",
        )
    if context.kind == "DOT" and "PREFIX" in context.expected:
        return Mistake("a dot after a declaration", "remove it; only Turtle writes one here")
    return None


def _address(context: ErrorContext) -> Mistake | None:
    """`http://example.org`, which the lexer reads as a prefixed name `http:` and two slashes."""
    start = context.start
    # A path may already include the first of the two slashes.
    scheme = re.search(r"[A-Za-z]+:/?$", context.source.lexed[: context.previous_end])
    if scheme is not None and context.source.lexed.startswith(
        "//", scheme.end() - scheme[0].count("/")
    ):
        start = scheme.start()
    address = re.match(r"[A-Za-z]+://[^\s;,<>()]+", context.source.lexed[start:])
    if address is None:
        return None
    return Mistake(
        "an IRI without angle brackets",
        f"write <{address[0]}>",
        context.span(start, start + address.end()),
    )


def _select(context: ErrorContext) -> Mistake | None:
    last = context.before[-1].kind if context.before else ""
    in_items = last in ("SELECT", "DISTINCT", "REDUCED") or "SEQ" in context.expected
    if context.kind in ("BUILTIN", "AGGREGATE") and in_items:
        return Mistake(
            "an expression in SELECT without parentheses",
            f"write ({context.text}(…) AS ?name)",
        )
    if "AS" in context.expected and context.kind == "RPAR":
        return Mistake("an expression needs a name here", "write ( … AS ?name)")
    if "AS" in context.expected and context.kind in ("VAR", "COMMA"):
        return Mistake("AS is missing", "name the expression: ( … AS ?name)")
    if last == "SELECT" and context.kind in ("INTEGER", "DECIMAL", "DOUBLE", "SIGNED", "STRING"):
        return Mistake("an expression in SELECT without parentheses", "write ( … AS ?name)")
    if last == "SELECT" and context.kind not in ("NAME", "RPAR"):
        return Mistake("SELECT without variables", "name them: SELECT ?a ?b, or write SELECT *")
    if last == "CONSTRUCT" and context.kind == "WHERE":
        return Mistake(
            "CONSTRUCT without a template",
            "write CONSTRUCT { … } with the triples to create, then the clauses and WHERE",
        )
    if context.kind in ("ORDER", "OFFSET") and context.open is None:
        return Mistake(
            f"a SPAseq query has no {context.text.upper()}",
            "results are emitted in time order; sort them afterwards",
        )
    return None


_GROUP_ORDER = "GROUP BY ?k OVER 5 MINUTES LET (… AS ?x) HAVING (…) LIMIT 3"


def _groups(context: ErrorContext) -> Mistake | None:
    """`GROUP BY … OVER … LET … HAVING` over results."""
    inside = context.inside("GROUP")
    if context.open is None and context.kind in ("GROUP", "OVER", "LET", "HAVING"):
        word = context.text.upper()
        if not inside and context.kind != "GROUP" and "GROUP" in context.expected:
            return Mistake(
                f"{word} without GROUP",
                f"write GROUP BY ?k {word} …, or GROUP {word} … for one group of all results",
            )
        if (not inside and "DEFINE" in context.expected) or "SEQ" in context.expected:
            return Mistake(
                f"{word} before the patterns", "GROUP comes after the last }, before LIMIT"
            )
        return Mistake(f"{word} is out of place", f"the order is {_GROUP_ORDER}")
    if not inside or "SELECT" in {token.kind for token in context.before if context.open}:
        return None
    if context.previous == "GROUP" and context.kind in ("VAR", "LPAR"):
        return Mistake("BY is missing", f"write GROUP BY {context.text}")
    if context.kind == "COMMA" and "VAR" in context.expected:
        return Mistake("a comma between keys", "separate them by spaces: GROUP BY ?a ?b")
    by_name = context.previous == "BY" or "OVER" in context.expected
    if by_name and context.kind in ("AGGREGATE", "BUILTIN", "IRIREF", "PNAME_LN"):
        return Mistake(
            "a key that is an expression needs a name", f"write ({context.text}(…) AS ?name)"
        )
    signs = ("PLUS", "MINUS", "STAR", "SLASH", "SIGNED", "LESS", "MORE", "EQUAL", "NOT_EQUAL")
    after_key = context.before[-1].kind == "VAR" and {"OVER", "VAR"} <= context.expected
    if after_key and context.kind in signs:
        return Mistake(
            "a key that is an expression needs a name",
            f"write ({context.before[-1].text} {context.text} … AS ?name)",
        )
    if "AS" in context.expected and context.kind == "RPAR":
        what = "a value of LET" if context.inside("LET") else "a key that is an expression"
        return Mistake(f"{what} needs a name", "write ( … AS ?name)")
    if context.previous == "LET" and "LPAR" in context.expected:
        return Mistake("LET without parentheses", "write LET (AVG(?v) AS ?mean)")
    if context.inside("OVER") and context.kind in ("EVENTS", "UNBOUNDED"):
        return Mistake(
            f"OVER takes a length of time, not {context.text.upper()}",
            "write the length of a group, such as OVER 5 MINUTES",
        )
    if context.inside("OVER") and "TIME_UNIT" in context.expected:
        return Mistake(
            "OVER needs a unit of time",
            f"one of {', '.join(unit + 'S' for unit in MICROSECONDS)}",
        )
    operators = ("LESS", "MORE", "EQUAL", "NOT_EQUAL", "LESS_EQUAL", "MORE_EQUAL")
    if context.inside("HAVING") and (context.kind == "VAR" or context.kind in operators):
        return Mistake("HAVING without parentheses", "write HAVING (COUNT(*) > 2)")
    return None


_LIMIT_ORDER = "LIMIT 3 PER ?k EVERY 10 MINUTES"


def _limit(context: ErrorContext) -> Mistake | None:
    """`LIMIT n PER ?k EVERY d`."""
    if context.open is not None:
        return None
    if not context.inside("LIMIT"):
        if context.kind in ("PER", "EVERY") and "$END" in context.expected:
            return Mistake(
                f"{context.text.upper()} without LIMIT",
                f"write LIMIT and a number before it: {_LIMIT_ORDER}",
            )
        return None
    if context.previous == "LIMIT" and context.kind in ("PER", "EVERY", "VAR", "$END"):
        return Mistake("LIMIT without a number", f"write how many results to emit: {_LIMIT_ORDER}")
    if context.previous == "PER" and "VAR" in context.expected:
        if context.kind == "BY":
            return Mistake("PER takes no BY", "write PER ?k")
        if context.kind in ("TIME_UNIT", "INTEGER", "DECIMAL", "DOUBLE"):
            return Mistake(
                "PER takes variables, not a length of time",
                "write EVERY for a length of time: LIMIT 3 EVERY 10 MINUTES",
            )
        return Mistake("PER without a variable", "name the variable to count by: LIMIT 3 PER ?k")
    if context.kind == "COMMA" and "VAR" in context.expected:
        return Mistake("a comma between variables", "separate them by spaces: PER ?a ?b")
    if context.kind in ("PER", "EVERY"):
        return Mistake(f"{context.text.upper()} is out of place", f"the order is {_LIMIT_ORDER}")
    if context.inside("EVERY"):
        if context.kind in ("EVENTS", "UNBOUNDED", "TUMBLING"):
            return Mistake(
                f"EVERY takes a length of time, not {context.text.upper()}",
                "write how long the limit applies, such as EVERY 10 MINUTES",
            )
        if "TIME_UNIT" in context.expected:
            return Mistake(
                "EVERY needs a unit of time",
                f"one of {', '.join(unit + 'S' for unit in MICROSECONDS)}",
            )
        if context.previous == "EVERY":
            return Mistake(
                "EVERY without a length of time",
                "write how long the limit applies, such as EVERY 10 MINUTES",
            )
    return None


def _bound(context: ErrorContext) -> Mistake | None:
    """`B WITHIN 5 SECONDS` in SEQ."""
    bracket = context.open
    if bracket is None or bracket.text != "(" or context.inside("DEFINE"):
        return None
    tokens = [token.kind for token in context.before]
    if "SEQ" not in tokens or "WITHIN" not in tokens[tokens.index("SEQ") :]:
        return None
    if context.previous == "WITHIN" and context.kind == "SIGNED":
        return Mistake("a bound has no sign", f"write WITHIN {context.text[1:]}")
    if context.kind in ("EVENTS", "UNBOUNDED", "TUMBLING"):
        return Mistake(
            f"the bound of a step takes a length of time, not {context.text.upper()}",
            "write the longest time after the previous step, such as B WITHIN 5 SECONDS",
        )
    if "TIME_UNIT" in context.expected:
        return Mistake(
            "a bound needs a unit of time",
            f"one of {', '.join(unit + 'S' for unit in MICROSECONDS)}",
        )
    return None


def _clauses(context: ErrorContext) -> Mistake | None:
    named = context.kind not in ("IRIREF", "PNAME_LN", "PNAME_NS")
    if context.previous == "STREAM" and "NAME" in context.expected and not named:
        return Mistake(
            "FROM STREAM without a name for the stream",
            f"write FROM STREAM S1 {context.text}, and ON S1 in DEFINE",
        )
    if "TIME_UNIT" in context.expected and context.kind == "EVENTS":
        return Mistake(
            "EVENTS takes a whole number",
            "write it without a fraction or an exponent, such as WITHIN 10 EVENTS",
            context.place(context.before[-1]),
        )
    if "TUMBLING" in context.expected and context.kind == "SIGNED":
        return Mistake("WITHIN takes a number without a sign", f"write WITHIN {context.text[1:]}")
    if "TIME_UNIT" in context.expected:
        return Mistake(
            "WITHIN needs a unit of time, or EVENTS",
            f"one of {', '.join(unit + 'S' for unit in MICROSECONDS)}, EVENTS",
        )
    if context.kind == "TIME_UNIT" and context.previous.isdigit():
        return Mistake("EVENTS or a unit of time, not both", "remove one of the two")
    if context.previous == "EMIT" and "EMIT_MODE" in context.expected:
        return Mistake(
            f"EMIT cannot be {context.text}",
            f"one of {', '.join(sorted(FAMILIES['EMIT_MODE']))}",
        )
    closed = context.inside("LIMIT") and "$END" in context.expected
    clauses = ("WITHIN", "PARTITION", "EMIT", "AFTER", "FROM")
    if closed and context.kind in (*clauses, "GROUP", "OVER", "LET", "HAVING"):
        return Mistake(f"{context.text} after LIMIT", "LIMIT comes last: move it to the end")
    if context.open is None and context.inside("GROUP") and context.kind in clauses:
        return Mistake(
            f"{context.text} after GROUP", "move it before WHERE, or directly after the last }"
        )
    return None


def _define(context: ErrorContext) -> Mistake | None:
    if context.kind == "GPM" and "DEFINE" in context.expected:
        return Mistake("DEFINE is missing", "write DEFINE GPM name ON stream { … }")
    if context.previous == "DEFINE" and "GPM" in context.expected and context.kind == "NAME":
        following = re.match(r"\w+\s+(?!ON\b)([^\W\d]\w*)", context.rest, re.IGNORECASE)
        if following is not None:
            close = get_close_matches(context.text.upper(), ("GPM",), 1, 0.6)
            hint = (
                "did you mean GPM?"
                if close
                else f"write DEFINE GPM {following[1]} ON stream {{ … }}"
            )
            return Mistake(f"unknown word {context.text}", hint)
        return Mistake("GPM is missing", f"write DEFINE GPM {context.text} ON stream {{ … }}")
    if "ON" in context.expected and context.inside("GPM") and context.kind == "LBRACE":
        return Mistake(
            "the stream of the graph pattern is missing",
            f"write DEFINE GPM {context.before[-1].text} ON S1 {{ … }}; S1 names a FROM STREAM",
        )
    if "LBRACE" in context.expected and _in_heading(context):
        return Mistake(
            "a { is missing", "enclose the graph pattern in braces: DEFINE GPM A ON S1 { … }"
        )
    if "DEFINE" in context.expected and "RBRACE" not in context.expected:
        return Mistake(
            "a graph pattern must be defined here",
            "write DEFINE GPM name ON stream { … } after SEQ(…) and {",
        )
    if context.kind == "DEFINE" and "SEQ" in context.expected:
        return Mistake("SEQ is missing", "state the order of the patterns, such as SEQ (A; B)")
    if context.kind == "DEFINE" and "LBRACE" in context.expected:
        return Mistake(
            "a { is missing before DEFINE", "enclose the definitions after SEQ(…) in braces"
        )
    if context.expected == {"SEQ"} and context.inside("CONSTRUCT") and context.kind in _MAPPED:
        return Mistake(
            "SEQ is missing",
            "a query has WHERE { SEQ (A; B) DEFINE GPM A ON S1 { … } … }; if this is a mapping of "
            "rows, give it by --map (map= in Python)",
        )
    begins = context.kind in TERM_STARTS or context.expected == {"SEQ"}
    if "SEQ" in context.expected and begins and context.open is not None:
        return Mistake(
            "SEQ is missing",
            "a SPAseq query has WHERE { SEQ (A; B) DEFINE GPM A ON S1 { … } … }; "
            "triples belong inside DEFINE",
        )
    return None


_MAPPED = ("BIND", "FILTER", "RBRACE")
"""What begins the group of a mapping, or ends an empty one."""


def _in_heading(context: ErrorContext) -> bool:
    """Whether the parser is between `DEFINE` and the `{` of its graph pattern."""
    defines = [token for token in context.before if token.kind == "DEFINE"]
    bracket = context.open
    return bool(defines) and (bracket is None or bracket.start < defines[-1].start)


def _sequence(context: ErrorContext) -> Mistake | None:
    if context.previous == "SEQ" and "LPAR" in context.expected:
        return Mistake("SEQ without parentheses", "write SEQ (A; B)")
    if not context.inside("SEQ"):
        return None
    if context.kind in ("BANG", "NOT") and context.previous in ("!", "NOT"):
        return Mistake("a second negation", "one is enough: !B")
    if not {"NAME", "BANG"} <= context.expected and not {"COLON", "RPAR"} <= context.expected:
        return None
    if context.kind == "RPAR":
        if context.previous == "(":
            return Mistake("nothing between the parentheses", "name the graph patterns: SEQ (A; B)")
        return Mistake(
            f"nothing follows {context.previous}", "name the next graph pattern, or remove the sign"
        )
    if re.match(r"-+>|=>|→", context.rest):
        return Mistake("an arrow between steps", _STEPS)
    if context.kind == "NAME" and "COLON" in context.expected:
        return Mistake(f"no operator before {context.text}", _STEPS)
    if context.text in ("&", "|") and context.previous in ("&", "|"):
        return Mistake(f"{context.text * 2} is not an operator of SEQ", f"write {context.text}")
    if context.kind == "BANG":
        return Mistake("a second negation", "one is enough: !B")
    return None


_STEPS = (
    "steps are joined by , (the very next event), ; (the next that matches) or : (any later one), "
    "and grouped as (A & B), (A | B), (A AND B)"
)

QUERY_MISTAKES: tuple[Callable[[ErrorContext], Mistake | None], ...] = (
    _prologue,
    _address,
    _select,
    _groups,
    _limit,
    _bound,
    _clauses,
    _sequence,
    _define,
)

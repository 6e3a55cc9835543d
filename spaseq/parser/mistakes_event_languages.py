"""Words of other languages for event patterns and streams, with their equivalents.

The languages are SQL's `MATCH_RECOGNIZE` (also in Flink), EPL of Esper, SiddhiQL, SASE+, RSP-QL,
C-SPARQL and CQELS. A hint shows the text to write, with the names and durations of the query.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from spaseq.errors import EventError
from spaseq.parser.error_context import ErrorContext, Mistake
from spaseq.parser.format import duration_text
from spaseq.parser.keywords import MICROSECONDS
from spaseq.rdf.time import duration_micros

_SHAPE = (
    "a query is SELECT ?x WITHIN 1 HOUR FROM STREAM s <…> WHERE { SEQ(A ; B) "
    "DEFINE GPM A ON s { … } DEFINE GPM B ON s { … } }"
)

# ------------------------------------------------------------------ lengths of time

_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,6})?"
_LENGTH = re.compile(
    rf"(?:INTERVAL\s+)?(?P<quote>['\"]?)(?:(?P<iso>P[0-9DTHMS.]+)|(?P<number>{_NUMBER}))"
    r"(?P=quote)(?:\s*(?P<unit>[A-Za-z]+))?['\"]?",
    re.IGNORECASE,
)
_CLAUSE = re.compile(rf"\b(WITHIN|OVER|EVERY)(\s+TUMBLING)?(?:\s+({_NUMBER}))?\s*$", re.IGNORECASE)


class _Length(NamedTuple):
    """A length of time as the language writes it, and the offset of its end."""

    text: str
    end: int


def _length(text: str) -> _Length | None:
    """The length of time at the beginning of a text, in the words of any of the languages."""
    found = _LENGTH.match(text)
    if found is None:
        return None
    if found["iso"] is not None:
        shown, end = _converted(found["iso"].upper()), found.end("iso") + len(found["quote"])
    else:
        shown, end = _converted(f"{found['number']} {found['unit'] or ''}"), found.end()
    return None if shown is None else _Length(shown, end)


def _converted(text: str) -> str | None:
    """A length such as `10 sec`, `2 hours` or `PT1H` as the language writes it."""
    number, _, unit = text.upper().partition(" ")
    if unit.removesuffix("S") in MICROSECONDS:
        return f"{number} {unit.removesuffix('S')}{'S' * (number != '1')}"
    try:
        return duration_text(duration_micros(text))
    except EventError:
        return None


def _duration(context: ErrorContext) -> Mistake | None:
    """`WITHIN INTERVAL '1' HOUR`, `WITHIN PT1H`, `WITHIN 10s`, `WITHIN RANGE 1 HOUR`."""
    clause = _CLAUSE.search(context.source.lexed[: context.start])
    if clause is None:
        return None
    words = f"{clause[1].upper()}{' TUMBLING' if clause[2] else ''}"
    if clause[3] is not None:
        shown = _converted(f"{clause[3]} {context.text}")
        if shown is None or "TIME_UNIT" not in context.expected:
            return None
        return Mistake(f"{context.text} is not a unit of time", f"write {words} {shown}")
    ahead = re.match(r"RANGE\s+", context.rest, re.IGNORECASE)
    skipped = ahead.end() if ahead is not None else 0
    length = _length(context.rest[skipped:])
    if length is None:
        return None
    end = context.start + skipped + length.end
    return Mistake(
        "a length of time is a number and a unit",
        f"write {words} {length.text}",
        context.span(context.start, end),
    )


def _absence(context: ErrorContext) -> Mistake | None:
    """`not B for 5 sec`."""
    if context.text.upper() != "FOR" or not context.inside("SEQ"):
        return None
    length = _length(context.rest[3:].lstrip())
    shown = length.text if length is not None else "5 SECONDS"
    return Mistake(
        "FOR does not bound a negation",
        f"write !{_name_before(context)} WITHIN {shown}",
    )


def _name_before(context: ErrorContext) -> str:
    name = re.search(r"(\w+)\s*$", context.source.lexed[: context.start])
    return name[1] if name is not None else "B"


# ------------------------------------------------------------------ windows over streams

_BRACKETS = re.compile(
    r"\[\s*(?:(?:RANGE|TRIPLES)\s+)?([^\]]*?)(?:\s*(?:STEP|SLIDE|TUMBLING)\b\s*([^\]]*?))?\s*\]",
    re.IGNORECASE,
)
_NAMED_WINDOW = re.compile(
    r"WINDOW\s+(\S+)\s+ON\s+(?:STREAM\s+)?(\S+)\s*(\[[^\]]*\])?", re.IGNORECASE
)


def _within(brackets: str) -> str:
    """The clause for `[RANGE PT1H STEP PT1H]`."""
    found = _BRACKETS.match(brackets)
    length = _length(found[1]) if found is not None else None
    if found is None or length is None:
        return "WITHIN 1 HOUR"
    step = _length(found[2]) if found[2] else None
    tumbles = (step is not None and step.text == length.text) or "TUMBLING" in brackets.upper()
    return f"WITHIN {'TUMBLING ' if tumbles else ''}{length.text}"


def _local(name: str) -> str:
    """A name for the stream of a window `:w` or `<http://example.org/w>`."""
    word = re.search(r"([A-Za-z]\w*)>?$", name)
    return word[1] if word is not None else "s"


def _window(context: ErrorContext) -> Mistake | None:
    """`FROM NAMED WINDOW :w ON :s [RANGE PT1H STEP PT10M]`, and `[RANGE 10s]` behind a stream."""
    named = _NAMED_WINDOW.match(context.rest)
    if named is not None:
        clauses = f"FROM STREAM {_local(named[1])} {named[2]} {_within(named[3] or '')}"
        return Mistake(
            "FROM does not declare a window",
            f"write {clauses}; a match is reported as soon as it is certain, so there is no STEP",
            context.span(context.start, context.start + named.end()),
        )
    brackets = _BRACKETS.match(context.rest)
    if brackets is None or context.open is not None or "WITHIN" not in context.expected:
        return None
    return Mistake(
        "a window is a separate clause",
        f"write {_within(brackets[0])}",
        context.span(context.start, context.start + brackets.end()),
    )


def _window_as_pattern(context: ErrorContext) -> Mistake | None:
    """`WHERE { WINDOW :w { … } }`, `WHERE { STREAM <…> [RANGE 10s] { … } }`."""
    kind = re.match(r"(WINDOW|STREAM)\s+(\S+)\s*(\[[^\]]*\])?", context.rest, re.IGNORECASE)
    if kind is None or "SEQ" not in context.expected or context.open is None:
        return None
    name, declared = _local(kind[2]), ""
    if kind[1].upper() == "STREAM":
        declared = f"declare FROM STREAM {name} {kind[2]} {_within(kind[3] or '')}, and "
    return Mistake(
        f"{kind[1].upper()} does not begin a graph pattern",
        f"{declared}write SEQ(A) DEFINE GPM A ON {name} {{ … }}",
    )


# ------------------------------------------------------------------ clauses

_SQL_CLAUSES = {
    "MEASURES": (
        "MEASURES is not a clause",
        "name what a match returns in SELECT: SELECT ?x (?y - ?x AS ?difference)",
    ),
    "ONE": ("ONE ROW PER MATCH is not a clause", "remove it: each match is one result"),
    "ALL": (
        "ALL ROWS PER MATCH is not a clause",
        "remove it: each match is one result, which lists its events",
    ),
    "SUBSET": (
        "SUBSET is not a clause",
        "use one variable in both graph patterns, and join them in SEQ by |: (A | B)",
    ),
    **{
        word: (
            f"{word} is not a clause",
            "remove it: a match is reported as soon as it is certain; WITHIN TUMBLING divides time "
            "into windows, and GROUP BY ?k OVER 5 MINUTES aggregates results",
        )
        for word in ("SLIDE", "STEP", "HOP")
    },
    "INSERT": (
        "INSERT INTO is not a clause",
        "to create events of another stream, begin with REGISTER STREAM <…> AS CONSTRUCT { … }",
    ),
}


def _sql_clause(context: ErrorContext) -> Mistake | None:
    word = context.text.upper()
    if word not in _SQL_CLAUSES or not {"WITHIN", "WHERE"} & context.expected:
        return None
    rows = re.match(r"(ONE|ALL)\s+ROWS?\s+PER\s+MATCH", context.rest, re.IGNORECASE)
    if word in ("ONE", "ALL") and rows is None:
        return None
    end = context.end if rows is None else context.start + rows.end()
    return Mistake(*_SQL_CLAUSES[word], context.span(context.start, end))


def _row(context: ErrorContext) -> Mistake | None:
    """`AFTER MATCH SKIP PAST LAST ROW`, `SKIP TO NEXT ROW`."""
    if context.text.upper() != "ROW":
        return None
    if "EVENT" in context.expected:
        return Mistake("events are not rows", "write AFTER MATCH SKIP PAST LAST EVENT")
    if re.search(r"\bSKIP\s+TO\s+NEXT\s*$", context.source.lexed[: context.start], re.IGNORECASE):
        return Mistake("events are not rows", "write AFTER MATCH SKIP TO NEXT")
    return None


def _pattern(context: ErrorContext) -> Mistake | None:
    """`PATTERN (A B+)`."""
    steps = re.match(r"PATTERN\s*(?:SEQ\s*)?\(([^()]*)\)", context.rest, re.IGNORECASE)
    if context.text.upper() != "PATTERN" or not {"SEQ", "WHERE", "SELECT"} & context.expected:
        return None
    if "SELECT" in context.expected:
        return Mistake("a query does not begin with PATTERN", _SHAPE)
    names = re.findall(r"[A-Za-z_]\w*(?:[+*?]|\{[0-9, ]*\})?", steps[1]) if steps else ["A", "B+"]
    first, remark = _direct(names[0])
    direct, later = ", ".join([first, *names[1:]]), " ; ".join(names)
    inside = "" if context.open is not None else "WHERE { "
    return Mistake(
        "PATTERN is not a clause",
        f"write {inside}SEQ({direct}) for events in direct succession{remark}, or "
        f"{inside}SEQ({later}) if others may come in between",
    )


def _direct(step: str) -> tuple[str, str]:
    """A first step whose iterations are in direct succession, and a remark on it.

    The iterations of `A+` as the first step may have other events between them.
    """
    found = re.fullmatch(r"(\w+)(?:([+*])|\{(\d+)(?:(,)(\d*))?\})", step.replace(" ", ""))
    if found is None:
        return step, ""
    name, sign, least, comma, most = found.groups()
    first = f"{name}1"
    remark = f" ({first} is {name} with variables of its own: a repeated first step skips events)"
    if sign is not None:
        return (f"{first}, {name}*" if sign == "+" else f"({first}, {name}*)?"), remark
    if int(least) < 2:
        return step, ""
    rest = f"{int(least) - 1}{comma or ''}{int(most) - 1 if most else ''}"
    return f"{first}, {name}{{{rest}}}", remark


def _table(context: ErrorContext) -> Mistake | None:
    """`FROM trades MATCH_RECOGNIZE ( … )`, `FROM pattern [ … ]`."""
    if context.previous != "FROM" or context.kind != "NAME" or context.open is not None:
        return None
    recognized = re.match(r"(pattern\s*\[|\w+\s+MATCH_RECOGNIZE\b)", context.rest, re.IGNORECASE)
    if recognized is not None:
        return Mistake("this is a pattern of another language", _SHAPE)
    return Mistake(
        f"FROM takes an IRI, not {context.text}",
        f"write FROM STREAM {context.text} <http://example.org/{context.text}>, "
        f"and ON {context.text} in DEFINE",
    )


def _beginning(context: ErrorContext) -> Mistake | None:
    """`from every e1=Trade …`, `define stream …`, `create …`, `insert …`."""
    words = ("FROM", "DEFINE", "CREATE", "INSERT", "EVENT", "EVERY")
    if context.text.upper() not in words or "SELECT" not in context.expected:
        return None
    return Mistake(f"a query does not begin with {context.text}", _SHAPE)


def _register(context: ErrorContext) -> Mistake | None:
    """`REGISTER RSTREAM <out> AS`."""
    if context.text.upper() not in ("RSTREAM", "ISTREAM", "DSTREAM"):
        return None
    if context.previous == "REGISTER":
        return Mistake(
            f"{context.text} is not a kind of query",
            "write REGISTER STREAM <…> AS CONSTRUCT { … }; each match is written once, when found",
        )
    return Mistake(f"{context.text} is not a clause", "remove it: each match is reported once")


def _misplaced_clause(context: ErrorContext) -> Mistake | None:
    """`WITHIN 1 HOUR` between the last `DEFINE` and the brace that ends `WHERE`."""
    clauses = ("WITHIN", "PARTITION", "EMIT", "AFTER", "FROM", "GROUP", "LIMIT")
    if context.kind not in clauses or not {"DEFINE", "RBRACE"} <= context.expected:
        return None
    where = "after" if context.kind in ("GROUP", "LIMIT") else "before WHERE, or after"
    return Mistake(
        f"{context.text} inside the braces of WHERE", f"move it {where} the closing brace"
    )


def _key(context: ErrorContext) -> Mistake | None:
    """`PARTITION BY sym`."""
    if context.previous != "BY" or not context.inside("PARTITION") or context.kind != "NAME":
        return None
    return Mistake(
        f"{context.text} is not a variable",
        f"variables begin with ?: write PARTITION BY ?{context.text}, and bind it in each pattern",
    )


def _condition(context: ErrorContext) -> Mistake | None:
    """`DEFINE A AS A.price > 3`."""
    named = re.match(r"(\w+)\s+AS\b", context.rest, re.IGNORECASE)
    if named is None or context.previous != "DEFINE" or "GPM" not in context.expected:
        return None
    return Mistake(
        f"{named[1]} is defined by a graph pattern, not by AS",
        f"write DEFINE GPM {named[1]} ON stream {{ … FILTER(…) }}",
        context.span(context.start, context.start + named.end()),
    )


def _attribute(context: ErrorContext) -> Mistake | None:
    """`B.price`, `e1.price`."""
    dotted = re.match(r"([^\W\d]\w*)(?:\[\w*\])?\.([^\W\d]\w*)(?!\w*[:(])", context.rest)
    if dotted is None or "VAR" not in context.expected:
        return None
    last = context.before[-1].kind if context.before else ""
    in_select = last in ("SELECT", "DISTINCT", "REDUCED")
    if "IRIREF" not in context.expected and not in_select:
        return None
    return Mistake(
        f"{dotted[0]} is not a variable",
        f"bind the value in the graph pattern, such as {{ ?e :{dotted[2]} ?{dotted[2]} }}, and "
        f"write ?{dotted[2]}",
        context.span(context.start, context.start + dotted.end()),
    )


# ------------------------------------------------------------------ steps


def _step(context: ErrorContext) -> Mistake | None:
    """Inside `SEQ`: `every A`, `A followed by B`, `PERMUTE(A, B)`, `B+?`, `^ A`, `{- B -}`."""
    if not context.inside("SEQ") or context.inside("DEFINE") or context.open is None:
        return None
    previous, rest = context.previous, context.rest
    if previous == "EVERY" and context.kind in ("NAME", "LPAR"):
        return Mistake(
            "every is not an operator of SEQ",
            "remove it: each event that fits the first step begins a partial match",
        )
    words = re.match(r"(followed|then|next)(?:\s*by)?\s+(\w+)", rest, re.IGNORECASE)
    if words is not None and context.kind == "NAME" and "SEMICOLON" in context.expected:
        return Mistake(
            f"no operator before {words[2]}",
            f"write ; {words[2]} for the next matching event, or , {words[2]} for the very next "
            "event",
            context.span(context.start, context.start + words.start(2) - 1),
        )
    if previous == "PERMUTE" and context.kind == "LPAR":
        inner = re.match(r"\(([^()]*)\)", rest)
        steps = " AND ".join(re.split(r"\s*,\s*", inner[1].strip())) if inner else "A AND B"
        return Mistake("PERMUTE is not an operator of SEQ", f"write ({steps})")
    if context.text == "?" and previous in ("+", "*", "?", "}"):
        return Mistake(
            "quantifiers have no reluctant form",
            "remove the ?; EMIT selects among the matches that end together",
        )
    if context.text in ("^", "$") or context.text.startswith("$"):
        return Mistake(
            "patterns have no anchors",
            "remove it: a match begins at any event that fits the first step",
        )
    if rest.startswith("{-"):
        return Mistake(
            "steps cannot be excluded from a match",
            "write the step without {- and -}; SELECT names what a match returns",
            context.span(context.start, context.start + 2),
        )
    if context.kind == "A" and "SEMICOLON" in context.expected:
        return Mistake(
            "steps have no variables",
            "name the step by its graph pattern alone, such as SEQ(A ; B)",
        )
    return None


EVENT_LANGUAGE_MISTAKES: tuple[Callable[[ErrorContext], Mistake | None], ...] = (
    _duration,
    _absence,
    _window,
    _window_as_pattern,
    _sql_clause,
    _row,
    _pattern,
    _table,
    _beginning,
    _register,
    _misplaced_clause,
    _key,
    _condition,
    _attribute,
    _step,
)

"""Common mistakes, each with what to tell the one who made it.

Every entry of `SLIPS` is a function of the `Stuck` parser that gives a `Slip`, or None where
the mistake is another one. An entry may move the finding's span and point at a second place.
To teach the parser a mistake: write a function, put it into the table, and add a golden file
under `tests/golden/errors`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from spaseq.parser.lexer import UNREADABLE
from spaseq.parser.stuck import CLOSING, OPENING, Slip, Stuck, expectation
from spaseq.parser.words import FAMILIES, MICROSECONDS

_TERM_STARTS = frozenset(
    (
        "BLANK_NODE_LABEL",
        "BOOLEAN",
        "DECIMAL",
        "DOUBLE",
        "INTEGER",
        "IRIREF",
        "LPAR",
        "LSQB",
        "PNAME_LN",
        "PNAME_NS",
        "SIGNED",
        "STRING",
        "VAR",
    )
)

# ------------------------------------------------------------------ characters


_CHARACTERS = {
    "\u00a0": ("a non-breaking space", "write an ordinary space"),
    "“": ("a typographic quote", 'quote strings with " or \''),
    "”": ("a typographic quote", 'quote strings with " or \''),
    "‘": ("a typographic quote", 'quote strings with " or \''),
    "’": ("a typographic quote", 'quote strings with " or \''),
    "–": ("a dash in place of a minus sign", "write -"),
    "−": ("a typographic minus sign", "write -"),
    "≤": ("≤", "write <="),
    "≥": ("≥", "write >="),
    "≠": ("≠", "write !="),
    "∧": ("∧", "write && in an expression, & or AND in a SEQ"),
    "∨": ("∨", "write || in an expression, | or OR in a SEQ"),
    "¬": ("¬", "write !"),
    "\\": ("a backslash outside a string", "escapes such as \\n stand inside quotes"),
}


def _unreadable(stuck: Stuck) -> Slip | None:
    if stuck.kind != UNREADABLE:
        return None
    first = stuck.text[0]
    one = stuck.span(stuck.start, stuck.start + 1)
    if first in "\"'":
        quote = first * 3 if stuck.text.startswith(first * 3) else first
        line = stuck.text.splitlines()[0]
        end = stuck.start + (len(quote) if len(quote) == 3 else len(line))
        hint = f"end it with {quote}"
        if len(quote) == 1:
            hint += f"; a string of several lines stands between {first * 3} and {first * 3}"
        return Slip("this string is never closed", hint, stuck.span(stuck.start, end))
    if first in _CHARACTERS:
        message, hint = _CHARACTERS[first]
        return Slip(message, hint, one)
    return Slip(f"the character {first!r} cannot stand here", expectation(stuck), one)


def _bad_iri(stuck: Stuck) -> Slip | None:
    if not stuck.rest.startswith("<") or stuck.kind == "IRIREF":
        return None
    if stuck.rest.startswith("<<"):
        return Slip(
            "triples inside << >> (RDF-star) are not supported",
            "describe the statement with triples of its own",
            stuck.span(stuck.start, stuck.start + 2),
        )
    iri = re.match(r"<([A-Za-z][^<>\n]*)>", stuck.rest)
    if iri is None or "IRIREF" not in stuck.expected:
        return None
    bad = re.search(r"[\x00-\x20\"{}|^`\\]", iri[1])
    if bad is None:
        return None
    at = stuck.start + 1 + bad.start()
    shown = "a space" if bad[0] == " " else repr(bad[0])
    return Slip(
        f"an IRI cannot hold {shown}",
        f"write it as %{ord(bad[0]):02X}, or close the IRI with > before it",
        stuck.span(at, at + 1),
    )


def _iri_for_less(stuck: Stuck) -> Slip | None:
    if stuck.kind != "IRIREF" or "LESS" not in stuck.expected:
        return None
    if stuck.text == "<>":
        return Slip("<> does not compare values", "'not equal' is written !=")
    return Slip(
        f"{stuck.text} is read as an IRI, but an operator must stand here",
        "put a space after < where it means 'less than'",
    )


# ------------------------------------------------------------------ brackets


def _closed_wrongly(stuck: Stuck) -> Slip | None:
    opening = OPENING.get(stuck.text)
    if opening is None:
        return None
    last = stuck.open
    if last is None:
        return Slip(f"this {stuck.text} closes nothing", f"remove it, or open a {opening} before")
    if last.value == opening:
        return None
    return Slip(
        f"a {CLOSING[last.value]} is missing before this {stuck.text}",
        f"close the {last.value} first",
        other=stuck.place(last),
        other_label=f"the {last.value} that is still open",
    )


def _ends_early(stuck: Stuck) -> Slip | None:
    if stuck.kind != "$END":
        return None
    last = stuck.open
    if last is None:
        return Slip("the query ends here, but it is not complete", expectation(stuck))
    return Slip(
        f"the text ends, and a {CLOSING[last.value]} is missing",
        f"close the {last.value}",
        other=stuck.place(last),
        other_label=f"the {last.value} that is still open",
    )


def _unclosed_group(stuck: Stuck) -> Slip | None:
    """`DEFINE` or a clause inside a graph pattern whose brace is still open."""
    clauses = ("DEFINE", "WITHIN", "PARTITION", "EMIT", "AFTER", "FROM", "LIMIT")
    last = stuck.open
    if stuck.kind not in clauses or last is None or not stuck.inside("DEFINE"):
        return None
    braces = [token for token in stuck.before if token.value in CLOSING]
    if len(braces) < 2:
        return None
    return Slip(
        f"a {CLOSING[last.value]} is missing before {stuck.text}",
        f"close the {last.value} of the graph pattern first",
        other=stuck.place(last),
        other_label=f"the {last.value} that is still open",
    )


# ------------------------------------------------------------------ the query


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
    if stuck.kind in ("PNAME_LN", "PNAME_NS") and re.match(r"\w+://", stuck.rest):
        address = re.match(r"[^\s;,<>()]+", stuck.rest)
        assert address is not None  # it begins with a letter
        return Slip(
            "an IRI without its brackets",
            f"write <{address[0]}>",
            stuck.span(stuck.start, stuck.start + address.end()),
        )
    return None


def _select(stuck: Stuck) -> Slip | None:
    last = stuck.before[-1].type if stuck.before else ""
    if stuck.kind in ("BUILTIN", "AGGREGATE") and last in ("SELECT", "DISTINCT", "REDUCED"):
        return Slip(
            "an expression in SELECT without parentheses",
            f"write ({stuck.text}(…) AS ?name)",
        )
    if stuck.kind in ("BUILTIN", "AGGREGATE") and "SEQ" in stuck.expected:
        return Slip(
            "an expression in SELECT without parentheses",
            f"write ({stuck.text}(…) AS ?name)",
        )
    if stuck.kind == "RPAR" and "AS" in stuck.expected:
        return Slip("an expression needs a name here", "write ( … AS ?name)")
    if last == "SELECT" and stuck.kind not in ("NAME", "RPAR"):
        return Slip("SELECT without variables", "name some, such as SELECT ?a ?b, or write SELECT *")
    if last == "CONSTRUCT" and stuck.kind == "WHERE":
        return Slip(
            "CONSTRUCT without a template",
            "write CONSTRUCT { … } with the triples to make, then the clauses and WHERE",
        )
    if stuck.kind in ("ORDER", "GROUP", "HAVING", "OFFSET"):
        if not stuck.inside("GPM") and stuck.open is None:
            return Slip(
                f"a SPAseq query has no {stuck.text.upper()}",
                "matches come in the order of time; sort or group the results afterwards",
            )
    return None


def _clauses(stuck: Stuck) -> Slip | None:
    if stuck.previous == "STREAM" and stuck.kind in ("IRIREF", "PNAME_LN", "PNAME_NS"):
        if "NAME" in stuck.expected:
            return Slip(
                "FROM STREAM without a name for the stream",
                f"write FROM STREAM S1 {stuck.text}, and ON S1 in DEFINE",
            )
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
        return Slip("GPM is missing", f"write DEFINE GPM {stuck.text} ON stream {{ … }}")
    if "ON" in stuck.expected and stuck.inside("GPM") and stuck.kind == "LBRACE":
        return Slip(
            "the stream of the graph pattern is missing",
            f"write DEFINE GPM {stuck.before[-1]} ON S1 {{ … }} with the name of a FROM STREAM",
        )
    if "DEFINE" in stuck.expected and "RBRACE" not in stuck.expected:
        return Slip(
            "a graph pattern must be defined here",
            "after SEQ(…) and { comes DEFINE GPM name ON stream { … }",
        )
    if stuck.kind == "DEFINE" and "SEQ" in stuck.expected:
        return Slip(
            "SEQ is missing", "say in which order the patterns follow, such as SEQ (A; B)"
        )
    if stuck.kind == "DEFINE" and "LBRACE" in stuck.expected:
        return Slip("a { is missing before DEFINE", "the definitions stand in braces after SEQ(…)")
    if "SEQ" in stuck.expected and stuck.kind in _TERM_STARTS and stuck.open is not None:
        return Slip(
            "SEQ is missing",
            "a SPAseq query has WHERE { SEQ (A; B) DEFINE GPM A ON S1 { … } … }; "
            "triples stand inside DEFINE",
        )
    return None


def _sequence(stuck: Stuck) -> Slip | None:
    if stuck.previous == "SEQ" and "LPAR" in stuck.expected:
        return Slip("SEQ without parentheses", "write SEQ (A; B)")
    if not {"NAME", "BANG"} <= stuck.expected and not {"COLON", "RPAR"} <= stuck.expected:
        return None
    if not stuck.inside("SEQ"):
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

# ------------------------------------------------------------------ graph patterns


def _triples(stuck: Stuck) -> Slip | None:
    starts = stuck.kind in _TERM_STARTS
    if starts and {"DOT", "RBRACE"} <= stuck.expected and "UNION" not in stuck.expected:
        return Slip(
            "a dot is missing between two triples",
            "write a dot in front of this, or ; to say more about the same subject",
        )
    if starts and stuck.previous == "FILTER":
        return Slip(
            "FILTER needs parentheses around its condition", "write FILTER ( … )"
        )
    if stuck.kind in ("DOT", "RBRACE", "SEMICOLON", "COMMA") and "A" in stuck.expected:
        return Slip("a triple without a predicate", "a triple is: subject predicate object")
    if stuck.kind in ("DOT", "RBRACE", "SEMICOLON", "COMMA") and _TERM_STARTS <= stuck.expected:
        return Slip(
            f"nothing follows {stuck.previous}" if stuck.previous == "," else "an object is missing",
            "a triple is: subject predicate object",
        )
    if stuck.kind == "SEMICOLON" and stuck.open is not None and "DOT" not in stuck.expected:
        if {"FILTER", "RBRACE"} <= stuck.expected:
            return Slip("a ; without a triple in front", "a ; goes on with the triple's subject")
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
    if {"STAR", "EQUAL"} <= stuck.expected or {"LESS", "EQUAL"} <= stuck.expected:
        words = {"AND": "&&", "OR": "||", "NOT": "!", "IS": "=", "LIKE": "REGEX(text, pattern)"}
        sign = words.get(stuck.text.upper()) or {"&": "&&", "|": "||"}.get(stuck.text)
        if sign:
            return Slip(f"{stuck.text} is no operator of an expression", f"write {sign}")
    if "BUILTIN" not in stuck.expected or stuck.kind != "NAME":
        return None
    word = stuck.text.upper()
    if re.match(r"\w+\s*\(", stuck.rest):
        known = FAMILIES["BUILTIN"] | FAMILIES["AGGREGATE"] | {"PREV", "EXISTS"}
        close = [_SYNONYMS[word]] if word in _SYNONYMS else get_close_matches(word, known, 1, 0.7)
        hint = f"did you mean {close[0]}? " if close else ""
        return Slip(
            f"there is no function {stuck.text}",
            hint + "A function of your own is named by an IRI: <http://…>(…) or prefix:name(…)",
        )
    return None


# ------------------------------------------------------------------ words, and the rest


def _misspelt(stuck: Stuck) -> Slip | None:
    if not re.match(r"[^\W\d]", stuck.text):
        return None
    words = {stuck.shown.get(name, "").upper() for name in stuck.expected}
    for name in stuck.expected & FAMILIES.keys():
        words |= FAMILIES[name]
    close = get_close_matches(stuck.text.upper(), sorted(words), 1, 0.7)
    if not close or close[0] == stuck.text.upper():
        return None
    return Slip(f"unknown word {stuck.text}", f"did you mean {close[0]}?")


def _bare_word(stuck: Stuck) -> Slip | None:
    if stuck.kind != "NAME" or not {"VAR", "IRIREF"} <= stuck.expected:
        return None
    return Slip(
        f"the word {stuck.text} stands alone",
        f'a variable is ?{stuck.text}, a string "{stuck.text}", '
        f"an IRI <…> or prefix:{stuck.text}",
    )


def _anything(stuck: Stuck) -> Slip | None:
    shown = stuck.text if len(stuck.text) <= 30 else stuck.text[:29] + "…"
    return Slip(f"{shown} cannot stand here", expectation(stuck))




SLIPS: tuple[Callable[[Stuck], Slip | None], ...] = (
    # What cannot be read comes first, then what a bracket explains; the words of a
    # construct before misspellings, since a right word may stand at a wrong place.
    _unreadable,
    _bad_iri,
    _iri_for_less,
    _ends_early,
    _unclosed_group,
    _prologue,
    _select,
    _clauses,
    _sequence,
    _closed_wrongly,
    _define,
    _triples,
    _expression,
    _misspelt,
    _bare_word,
    _anything,
)

"""Common mistakes: a table of functions that recognise a syntax error and word its message.

Each entry of `MISTAKES` maps an `ErrorContext` to a `Mistake`, or to None if it does not
recognise the error. An entry may move the error's span and point at a second place. To add a
mistake, write a function, put it into the table, and add a golden file under
`tests/golden/errors`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from spaseq.parser.error_context import CLOSING, OPENING, ErrorContext, Mistake, expectation
from spaseq.parser.keywords import FAMILIES
from spaseq.parser.lexer import UNREADABLE
from spaseq.parser.mistakes_event_languages import EVENT_LANGUAGE_MISTAKES
from spaseq.parser.mistakes_other_languages import OTHER_LANGUAGE_MISTAKES
from spaseq.parser.mistakes_pattern import PATTERN_MISTAKES
from spaseq.parser.mistakes_query import QUERY_MISTAKES

# ------------------------------------------------------------------ characters


_CHARACTERS = {
    "\u00a0": ("a non-breaking space", "write an ordinary space"),
    "“": ("a typographic quote", "quote strings with \" or '"),
    "”": ("a typographic quote", "quote strings with \" or '"),
    "‘": ("a typographic quote", "quote strings with \" or '"),
    "’": ("a typographic quote", "quote strings with \" or '"),
    "–": ("a dash in place of a minus sign", "write -"),
    "−": ("a typographic minus sign", "write -"),
    "≤": ("≤", "write <="),
    "≥": ("≥", "write >="),
    "≠": ("≠", "write !="),
    "∧": ("∧", "write && in an expression, & or AND in a SEQ"),
    "∨": ("∨", "write || in an expression, | or OR in a SEQ"),
    "¬": ("¬", "write !"),
    "\\": ("a backslash outside a string", "escapes such as \\n belong inside quotes"),
}


def _unreadable(context: ErrorContext) -> Mistake | None:
    if context.kind != UNREADABLE:
        return None
    first = context.text[0]
    one = context.span(context.start, context.start + 1)
    if first in "\"'":
        quote = first * 3 if context.text.startswith(first * 3) else first
        line = context.text.splitlines()[0]
        end = context.start + (len(quote) if len(quote) == 3 else len(line))
        hint = f"end it with {quote}"
        if len(quote) == 1:
            hint += f"; a string of several lines is enclosed in {first * 3} and {first * 3}"
        return Mistake("this string is never closed", hint, context.span(context.start, end))
    if first in _CHARACTERS:
        what, hint = _CHARACTERS[first]
        return Mistake(f"{what} is not allowed here", hint, one)
    return Mistake(f"unexpected character {first!r}", expectation(context), one)


def _triple_in_brackets(context: ErrorContext) -> Mistake:
    """A triple term or a reified triple at a position where none is allowed."""
    if context.rest.startswith("<<("):
        what, size = "a triple term <<( … )>>", 3
        hint = "it may be an object, a value of VALUES, or part of an expression"
    else:
        what, size = "a reified triple << … >>", 2
        hint = "it may be a subject or an object; in expressions and VALUES write <<( … )>>"
    span = context.span(context.start, context.start + size)
    return Mistake(f"{what} is not allowed here", hint, span)


def _bad_iri(context: ErrorContext) -> Mistake | None:
    if not context.rest.startswith("<") or context.kind == "IRIREF":
        return None
    if context.rest.startswith("<<"):
        return _triple_in_brackets(context)
    if "IRIREF" not in context.expected:
        return None
    iri = re.match(r"<([A-Za-z][^<>\n]*)>", context.rest)
    # If the text looks like an IRI with a variable in it, its `>` means 'more than'.
    if iri is None or re.search(r"\s[?$]\w", iri[1]):
        return _unclosed_iri(context)
    bad = re.search(r"[\x00-\x20\"{}|^`\\]", iri[1])
    if bad is None:
        return None
    at = context.start + 1 + bad.start()
    shown = "a space" if bad[0] == " " else repr(bad[0])
    return Mistake(
        f"an IRI cannot contain {shown}",
        f"write it as %{ord(bad[0]):02X}, or close the IRI with > before it",
        context.span(at, at + 1),
    )


def _unclosed_iri(context: ErrorContext) -> Mistake | None:
    iri = re.match(r"<[^\x00-\x20<>\"{}|^`\\]+", context.rest)
    if iri is None:
        return None
    return Mistake(
        "this IRI is never closed with >",
        f"write {iri[0]}>",
        context.span(context.start, context.start + iri.end()),
    )


def _iri_for_less(context: ErrorContext) -> Mistake | None:
    if context.kind != "IRIREF" or "LESS" not in context.expected:
        return None
    if context.text == "<>":
        return Mistake("<> does not compare values", "'not equal' is written !=")
    return Mistake(
        f"{context.text} is read as an IRI, but an operator is expected here",
        "put a space after < if it means 'less than'",
    )


# ------------------------------------------------------------------ brackets


def _closes_nothing(context: ErrorContext) -> Mistake | None:
    opening = OPENING.get(context.text)
    if opening is None or any(bracket.text == opening for bracket in context.brackets):
        return None
    last = context.open
    if last is None:
        return Mistake(f"unmatched {context.text}", f"remove it, or open a {opening} before it")
    # After a ( or a [ the bracket is more likely of the wrong kind: `_closed_wrongly`.
    return Mistake(f"unmatched {context.text}", "remove it") if last.text == "{" else None


def _closed_wrongly(context: ErrorContext) -> Mistake | None:
    opening, last = OPENING.get(context.text), context.open
    if opening is None or last is None or last.text == opening:
        return None
    return Mistake(
        f"a {CLOSING[last.text]} is missing before this {context.text}",
        f"close the {last.text} first",
        other=context.place(last),
        other_label=f"the {last.text} that is still open",
    )


def _ends_early(context: ErrorContext) -> Mistake | None:
    if context.kind != "$END":
        return None
    last = context.open
    if last is None:
        return Mistake("the query ends here, but it is not complete", expectation(context))
    return Mistake(
        f"the text ends, and a {CLOSING[last.text]} is missing",
        f"close the {last.text}",
        other=context.place(last),
        other_label=f"the {last.text} that is still open",
    )


def _unclosed_group(context: ErrorContext) -> Mistake | None:
    """`DEFINE` or a clause inside a `SEQ` or a graph pattern that is still open."""
    clauses = ("DEFINE", "WITHIN", "PARTITION", "EMIT", "AFTER", "FROM", "LIMIT", "LBRACE")
    last = context.open
    if context.kind not in clauses or last is None:
        return None
    in_sequence = last.text == "(" and context.inside("SEQ") and not context.inside("DEFINE")
    in_pattern = context.kind != "LBRACE" and context.inside("DEFINE") and len(context.brackets) > 1
    if not in_sequence and not in_pattern:
        return None
    return Mistake(
        f"a {CLOSING[last.text]} is missing before {context.text}",
        f"close the {last.text} first",
        other=context.place(last),
        other_label=f"the {last.text} that is still open",
    )


# ------------------------------------------------------------------ words, and the rest


def _misspelt(context: ErrorContext) -> Mistake | None:
    if not re.match(r"[^\W\d]", context.text):
        return None
    words = {context.shown.get(name, "").upper() for name in context.expected}
    for name in context.expected & FAMILIES.keys():
        words |= FAMILIES[name]
    close = get_close_matches(context.text.upper(), sorted(words), 1, 0.7)
    if not close or close[0] == context.text.upper():
        return None
    return Mistake(f"unknown word {context.text}", f"did you mean {close[0]}?")


def _bare_word(context: ErrorContext) -> Mistake | None:
    if context.kind != "NAME" or not {"VAR", "IRIREF"} <= context.expected:
        return None
    return Mistake(
        f"unexpected word {context.text}",
        f'a variable is ?{context.text}, a string "{context.text}", an IRI <…> or '
        f"prefix:{context.text}",
    )


def _anything(context: ErrorContext) -> Mistake | None:
    shown = context.text if len(context.text) <= 30 else context.text[:29] + "…"
    return Mistake(f"unexpected {shown}", expectation(context))


MISTAKES: tuple[Callable[[ErrorContext], Mistake | None], ...] = (
    # Unreadable text comes first, then brackets, which often explain the rest. The words of a
    # construct precede misspellings, since a word may be right and only its position wrong.
    _unreadable,
    _bad_iri,
    _iri_for_less,
    *EVENT_LANGUAGE_MISTAKES,
    _ends_early,
    _unclosed_group,
    _closes_nothing,
    *OTHER_LANGUAGE_MISTAKES,
    *QUERY_MISTAKES,
    _closed_wrongly,
    *PATTERN_MISTAKES,
    _misspelt,
    _bare_word,
    _anything,
)

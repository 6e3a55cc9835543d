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

from spaseq.parser.error_context import CLOSING, OPENING, Slip, Stuck, expectation
from spaseq.parser.keywords import FAMILIES
from spaseq.parser.lexer import UNREADABLE
from spaseq.parser.mistakes_other_languages import HABIT_SLIPS
from spaseq.parser.mistakes_pattern import PATTERN_SLIPS
from spaseq.parser.mistakes_query import QUERY_SLIPS

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
        what, hint = _CHARACTERS[first]
        return Slip(f"{what} means nothing here", hint, one)
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
    if "IRIREF" not in stuck.expected:
        return None
    iri = re.match(r"<([A-Za-z][^<>\n]*)>", stuck.rest)
    # What looks like an IRI with a variable in it ends in a `>` that means 'more than'.
    if iri is None or re.search(r"\s[?$]\w", iri[1]):
        return _unclosed_iri(stuck)
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


def _unclosed_iri(stuck: Stuck) -> Slip | None:
    iri = re.match(r"<[^\x00-\x20<>\"{}|^`\\]+", stuck.rest)
    if iri is None:
        return None
    return Slip(
        "this IRI is never closed with >",
        f"write {iri[0]}>",
        stuck.span(stuck.start, stuck.start + iri.end()),
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


def _closes_nothing(stuck: Stuck) -> Slip | None:
    opening = OPENING.get(stuck.text)
    if opening is None or any(bracket.text == opening for bracket in stuck.brackets):
        return None
    last = stuck.open
    if last is None:
        return Slip(f"this {stuck.text} closes nothing", f"remove it, or open a {opening} before")
    # After a ( or a [ it is more likely the wrong one of the closing brackets.
    return Slip(f"this {stuck.text} closes nothing", "remove it") if last.text == "{" else None


def _closed_wrongly(stuck: Stuck) -> Slip | None:
    opening, last = OPENING.get(stuck.text), stuck.open
    if opening is None or last is None or last.text == opening:
        return None
    return Slip(
        f"a {CLOSING[last.text]} is missing before this {stuck.text}",
        f"close the {last.text} first",
        other=stuck.place(last),
        other_label=f"the {last.text} that is still open",
    )


def _ends_early(stuck: Stuck) -> Slip | None:
    if stuck.kind != "$END":
        return None
    last = stuck.open
    if last is None:
        return Slip("the query ends here, but it is not complete", expectation(stuck))
    return Slip(
        f"the text ends, and a {CLOSING[last.text]} is missing",
        f"close the {last.text}",
        other=stuck.place(last),
        other_label=f"the {last.text} that is still open",
    )


def _unclosed_group(stuck: Stuck) -> Slip | None:
    """`DEFINE` or a clause inside a `SEQ` or a graph pattern that is still open."""
    clauses = ("DEFINE", "WITHIN", "PARTITION", "EMIT", "AFTER", "FROM", "LIMIT", "LBRACE")
    last = stuck.open
    if stuck.kind not in clauses or last is None:
        return None
    in_sequence = last.text == "(" and stuck.inside("SEQ") and not stuck.inside("DEFINE")
    in_pattern = stuck.kind != "LBRACE" and stuck.inside("DEFINE") and len(stuck.brackets) > 1
    if not in_sequence and not in_pattern:
        return None
    return Slip(
        f"a {CLOSING[last.text]} is missing before {stuck.text}",
        f"close the {last.text} first",
        other=stuck.place(last),
        other_label=f"the {last.text} that is still open",
    )


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
        f'a variable is ?{stuck.text}, a string "{stuck.text}", an IRI <…> or prefix:{stuck.text}',
    )


def _anything(stuck: Stuck) -> Slip | None:
    shown = stuck.text if len(stuck.text) <= 30 else stuck.text[:29] + "…"
    return Slip(f"{shown} cannot stand here", expectation(stuck))


SLIPS: tuple[Callable[[Stuck], Slip | None], ...] = (
    # What cannot be read comes first, then brackets that explain the rest; the words of a
    # construct before misspellings, since a right word may stand at a wrong place.
    _unreadable,
    _bad_iri,
    _iri_for_less,
    _ends_early,
    _unclosed_group,
    _closes_nothing,
    *HABIT_SLIPS,
    *QUERY_SLIPS,
    _closed_wrongly,
    *PATTERN_SLIPS,
    _misspelt,
    _bare_word,
    _anything,
)

"""Text → tokens, chosen by what the automaton accepts at each position.

The lexer joins the terminals of `grammar.lark` into one regular expression in the order of
their priorities (SPARQL's longest-token rule). If the automaton does not accept a token, the
lexer tries a shorter reading: `A:B` as three tokens inside `SEQ`, `-1` as a minus sign and a
number after an operand, `count` as a name where a graph pattern is named. Text without any
reading becomes one token of the kind `UNREADABLE`, which no rule accepts, so that the automaton
reports every error. Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from spaseq.parser.keywords import FAMILIES
from spaseq.parser.lalr import Automaton, Token, tables

UNREADABLE = "UNREADABLE"

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_CALL = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*\(")
_CALLS = ("AGGREGATE", "BUILTIN")
_REREAD = frozenset(("IRIREF", "PNAME_LN", "PNAME_NS", "SIGNED"))
_SHORTER_SIGNS = frozenset(("COLON", "MINUS", "PLUS", "SIMULTANEOUS"))
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f](?:-[^\x00-\x7f])?")


@cache
def _expressions(ascii_only: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The regular expressions of any token (signs have no group) and of a name.

    Compiling SPARQL's ranges of non-ASCII letters takes longer than parsing most queries. For an
    ASCII text the ranges match nothing and are omitted.
    """
    known = tables()
    patterns = dict(known.patterns)
    if ascii_only:
        patterns = {name: _BEYOND_ASCII.sub("", text) for name, text in patterns.items()}
    parts = [f"(?P<{name}>{text})" for name, text in patterns.items()]
    parts += map(re.escape, sorted(known.signs, key=len, reverse=True))
    return re.compile("|".join(parts)), re.compile(patterns["NAME"])


@cache
def _kinds_of(word: str) -> tuple[str, ...]:
    """The kinds of token a word can be: keyword, member of a family of words, `a`, name."""
    keywords = tables().keywords
    upper = word.upper()
    kinds = [keywords[upper]] if upper in keywords else []
    kinds += [family for family, words in FAMILIES.items() if upper in words]
    if word == "a":
        kinds.append("A")
    kinds.append("NAME")
    return tuple(kinds)


class Lexer:
    """The tokens of one text, for an automaton that is fed each before the next is read."""

    def __init__(self, text: str, automaton: Automaton):
        self._text = text
        self._accepts = automaton.accepts
        self._token, self._name = _expressions(text.isascii())
        self._signs = tables().signs

    def __iter__(self) -> Iterator[Token]:
        text = self._text
        position = 1 if text.startswith("\ufeff") else 0
        while True:
            blank = _BLANK.match(text, position)
            assert blank is not None  # it matches the empty text
            position = blank.end()
            if position == len(text):
                return
            kind, end = self._read(position)
            yield Token(kind, text[position:end], position, end)
            position = end

    def _read(self, position: int) -> tuple[str, int]:
        match = self._token.match(self._text, position)
        if match is None:
            return UNREADABLE, len(self._text)
        kind = match.lastgroup
        if kind == "NAME":
            return self._word(match), match.end()
        if kind is None:
            return self._sign(match)
        if kind in _REREAD and not self._accepts(kind):
            return self._shorter(match, kind)
        return kind, match.end()

    def _word(self, match: re.Match[str]) -> str:
        """The first kind of the word that the automaton accepts, else the first kind."""
        kinds = _kinds_of(match[0])
        for kind in kinds:
            if self._accepts(kind):
                called = kind not in _CALLS or _CALL.match(self._text, match.end())
                return kind if called or not self._accepts("NAME") else "NAME"
        return kinds[0]

    def _sign(self, match: re.Match[str]) -> tuple[str, int]:
        """The longest prefix that the automaton accepts as a sign, else the longest sign."""
        longest = match[0]
        for length in range(len(longest), 0, -1):
            kind = self._signs.get(longest[:length])
            if kind is not None and self._accepts(kind):
                return kind, match.start() + length
        return self._signs[longest], match.end()

    def _shorter(self, match: re.Match[str], kind: str) -> tuple[str, int]:
        """A shorter reading of a token that the automaton rejects, or the token itself."""
        start = match.start()
        name = self._name.match(self._text, start)
        if name is not None:
            word = self._word(name)
            if self._accepts(word):
                return word, name.end()
        for length in (2, 1):
            sign = self._signs.get(self._text[start : start + length])
            if sign in _SHORTER_SIGNS and self._accepts(sign):
                return sign, start + length
        return kind, match.end()

"""Text → tokens, read by what the parser can take at each place.

The terminals are those of `grammar.lark`, joined into one regular expression in the order of
their priorities (SPARQL's longest-token rule). A token the parser cannot take is read again as
something shorter: `A:B` as three tokens inside `SEQ`, `-1` as a minus sign and a number after
an operand, `count` as a name where a graph pattern is named. What can be read in no way
becomes one token of the type `UNREADABLE`, which no rule takes: every error is the parser's.

Lark's own contextual lexer compiles one regular expression per set of acceptable terminals,
which costs a one-shot process more than parsing; and it knows the union of all contexts that
share a parser state. `accepts` runs the pending reductions and so knows the truth.
Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lark.lexer import Lexer, LexerState, PatternStr, Token
from lark.parsers.lalr_analysis import Shift

from spaseq.parser.words import FAMILIES

UNREADABLE = "UNREADABLE"

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_CALL = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*\(")
_CALLS = ("AGGREGATE", "BUILTIN")


def accepts(parser_state: Any, terminal: str) -> bool:
    """Whether the parser can shift `terminal` next, after the reductions that it asks for."""
    states = parser_state.parse_conf.states
    stack = parser_state.state_stack
    depth = len(stack)
    pushed: list[Any] = []  # the simulated stack is stack[:depth] + pushed
    while True:
        found = states[pushed[-1] if pushed else stack[depth - 1]].get(terminal)
        if found is None:
            return False
        action, argument = found
        if action is Shift:
            return True
        size = len(argument.expansion)
        kept = max(len(pushed) - size, 0)
        depth -= size - (len(pushed) - kept)
        del pushed[kept:]
        below = pushed[-1] if pushed else stack[depth - 1]
        pushed.append(states[below][argument.origin.name][1])
        if pushed[-1] == parser_state.parse_conf.end_state:
            return terminal == "$END"


class ContextLexer(Lexer):
    """Lark's interface for a lexer that sees the parser's state."""

    __future_interface__ = 1

    def __init__(self, lexer_conf: Any):
        patterns = []
        self._keywords: dict[str, str] = {}
        self._signs: dict[str, str] = {}
        for terminal in lexer_conf.terminals:
            pattern = terminal.pattern
            if not isinstance(pattern, PatternStr):
                patterns.append(terminal)
            elif "i" in pattern.flags:
                self._keywords[pattern.value.upper()] = terminal.name
            elif pattern.value != "a":
                self._signs[pattern.value] = terminal.name
        patterns.sort(key=lambda terminal: -terminal.priority)
        regexps = [f"(?P<{each.name}>{each.pattern.value})" for each in patterns]
        signs = sorted(self._signs, key=len, reverse=True)
        regexps.append("|".join(re.escape(sign) for sign in signs))
        self._token = re.compile("|".join(regexps))
        self._name = re.compile(
            next(each.pattern.value for each in patterns if each.name == "NAME")
        )
        self._kinds: dict[str, tuple[str, ...]] = {}

    def lex(self, lexer_state: LexerState, parser_state: Any) -> Iterator[Token]:
        text: Any = lexer_state.text
        if not isinstance(text, str):
            text = text.text
        skip = _BLANK.match
        position = 1 if text.startswith("\ufeff") else 0
        while True:
            blank = skip(text, position)
            assert blank is not None  # it matches the empty text, too
            position = blank.end()
            if position == len(text):
                return
            kind, end = self._read(text, position, parser_state)
            yield Token(kind, text[position:end], position, 1, 1, 1, 1, end)
            position = end

    def _read(self, text: str, position: int, parser_state: Any) -> tuple[str, int]:
        match = self._token.match(text, position)
        if match is None:
            return UNREADABLE, len(text)
        kind = match.lastgroup
        if kind == "NAME":
            return self._word(text, match, parser_state), match.end()
        if kind is None:
            return self._sign(text, match, parser_state)
        if kind in ("IRIREF", "PNAME_LN", "PNAME_NS", "SIGNED") and not accepts(parser_state, kind):
            return self._shorter(text, match, parser_state)
        return kind, match.end()

    def _word(self, text: str, match: re.Match[str], parser_state: Any) -> str:
        """The kind of a word: the first one the parser takes, else the first one there is."""
        word = match[0]
        kinds = self._kinds.get(word)
        if kinds is None:
            kinds = self._kinds[word] = self._kinds_of(word)
        for kind in kinds:
            if accepts(parser_state, kind):
                if (
                    kind in _CALLS
                    and accepts(parser_state, "NAME")
                    and not _CALL.match(text, match.end())
                ):
                    return "NAME"
                return kind
        return kinds[0]

    def _kinds_of(self, word: str) -> tuple[str, ...]:
        upper = word.upper()
        kinds = [self._keywords[upper]] if upper in self._keywords else []
        kinds += [family for family, words in FAMILIES.items() if upper in words]
        if word == "a":
            kinds.append("A")
        kinds.append("NAME")
        return tuple(kinds)

    def _sign(self, text: str, match: re.Match[str], parser_state: Any) -> tuple[str, int]:
        """The longest sign, or a shorter one that the parser takes (`B+)` but also `!=`)."""
        longest = match[0]
        for length in range(len(longest), 0, -1):
            kind = self._signs.get(longest[:length])
            if kind is not None and accepts(parser_state, kind):
                return kind, match.start() + length
        return self._signs[longest], match.end()

    def _shorter(self, text: str, match: re.Match[str], parser_state: Any) -> tuple[str, int]:
        """Another reading of a token that the parser cannot take, or the token itself."""
        start = match.start()
        name = self._name.match(text, start)
        if name is not None:
            kind = self._word(text, name, parser_state)
            if accepts(parser_state, kind):
                return kind, name.end()
        for length in (2, 1):
            sign = self._signs.get(text[start : start + length])
            if sign in ("SIMULTANEOUS", "COLON", "PLUS", "MINUS") and accepts(parser_state, sign):
                return sign, start + length
        return match.lastgroup or UNREADABLE, match.end()

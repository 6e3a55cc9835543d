"""The parser's state at a syntax error, in the form that the table of mistakes reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from spaseq.errors import Span
from spaseq.parser.lalr import Token
from spaseq.parser.source import Source

CLOSING = {"(": ")", "{": "}", "[": "]"}
OPENING = {closing: opening for opening, closing in CLOSING.items()}


@dataclass
class Mistake:
    """A message and a hint; `span` replaces the offending token's, `other` is a second place."""

    message: str
    hint: str
    span: Span | None = None
    other: Span | None = None
    other_label: str = ""


@dataclass
class ErrorContext:
    """The parser's state at the token it cannot accept."""

    source: Source
    token: Token
    expected: frozenset[str]
    shown: Mapping[str, str]
    """How each keyword and sign is written, by terminal."""
    before: tuple[Token, ...]
    """The tokens of unfinished constructs, including open brackets."""
    start: int = 0
    end: int = 0
    previous_end: int = 0
    previous: str = field(default="", init=False)

    def __post_init__(self) -> None:
        text = self.source.lexed[: self.previous_end]
        match = re.search(r"(?:[\w]+|[^\w\s]{1,2})$", text)
        self.previous = match[0].upper() if match else ""

    @property
    def kind(self) -> str:
        return self.token.kind

    @property
    def text(self) -> str:
        return self.token.text

    @property
    def rest(self) -> str:
        """The text from the start of the offending token."""
        return self.source.lexed[self.start :]

    @property
    def open(self) -> Token | None:
        """The innermost bracket still open."""
        brackets = self.brackets
        return brackets[-1] if brackets else None

    @property
    def brackets(self) -> list[Token]:
        """All brackets still open, the outermost first."""
        unclosed: list[Token] = []
        for token in self.before:
            if token.text in CLOSING:
                unclosed.append(token)
            elif token.text in OPENING and unclosed:
                unclosed.pop()
        return unclosed

    def span(self, start: int, end: int) -> Span:
        return self.source.span(start, end)

    def place(self, token: Token) -> Span:
        return self.source.span(token.start, token.end)

    def inside(self, keyword: str) -> bool:
        """Whether a construct that begins with the keyword is not finished."""
        return any(token.kind == keyword for token in self.before)


_WORDING = {
    "$END": "the end of the text",
    "A": "the keyword a",
    "AGGREGATE": "an aggregate",
    "BLANK_NODE_LABEL": "a blank node",
    "BOOLEAN": "true or false",
    "BUILTIN": "a function",
    "DECIMAL": "a number",
    "DOUBLE": "a number",
    "EMIT_MODE": "ALL, ANY, NEXT, LAST, MAX or STRICT",
    "INTEGER": "a number",
    "IRIREF": "an IRI",
    "LANGTAG": "a language tag",
    "NAME": "a name",
    "PNAME_LN": "an IRI",
    "PNAME_NS": "an IRI",
    "SIGNED": "a number",
    "STRING": "a string",
    "TIME_UNIT": "a unit of time",
    "VAR": "a variable",
}
_ALTERNATIVE_SPELLINGS = frozenset(("PARTITON", "PATITION"))


def expectation(context: ErrorContext) -> str:
    """A hint that lists the signs and words allowed at this position."""
    words = set()
    for name in context.expected - _ALTERNATIVE_SPELLINGS:
        word = context.shown.get(name, name).upper()
        words.add(_WORDING.get(name) or (word if word[0].isalpha() else f"'{word}'"))
    ordered = sorted(words, key=lambda word: (not word[0].islower(), not word[0].isalpha(), word))
    if len(ordered) > 9:
        ordered = [*ordered[:9], "…"]
    return f"expected here: {', '.join(ordered)}" if ordered else ""


TERM_STARTS = frozenset(
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

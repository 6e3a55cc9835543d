"""Formats query text: line breaks, indentation, blanks and the case of keywords.

`format.py` writes a tree, which has neither comments nor abbreviations such as `[]` and `;`. This
module leaves the tokens unchanged. Clauses and definitions begin lines, braces indent by two, a
line that continues a statement keeps its indentation relative to the statement's first line, and
there is at most one blank between two tokens. All other line breaks are those of the author.

Invariant: the result has the same tree as the text, comments keep their order, and a second pass
has no effect. Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from spaseq.errors import QuerySyntaxError
from spaseq.parser import ast
from spaseq.parser.lalr import Automaton, Token, tables
from spaseq.parser.lexer import Lexer
from spaseq.parser.read import parse, parse_mapping
from spaseq.parser.source import Source

_INDENT = 2
_COMMENT = re.compile(r"#[^\r\n]*")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_CLAUSES = frozenset(
    (
        "AFTER", "ASK", "BASE", "CONSTRUCT", "EMIT", "FROM", "GROUP", "LIMIT", "PARTITION",
        "PREFIX", "REGISTER", "SELECT", "VERSION", "WHERE", "WITHIN",
    )
)  # fmt: skip
_STATEMENTS = _CLAUSES | {
    "BIND", "DEFINE", "FILTER", "GRAPH", "MINUS", "OPTIONAL", "SEQ", "SERVICE", "VALUES",
}  # fmt: skip
_SPACED_BEFORE_BRACKET = frozenset(("AS", "BY", "HAVING", "IN", "LET", "SELECT", "DISTINCT"))
_WORDS_IN_CAPITALS = frozenset(("AGGREGATE", "EMIT_MODE", "TIME_UNIT"))


@dataclass(slots=True)
class _Piece:
    """A token or a comment, with the blanks and line breaks before it."""

    kind: str
    text: str
    gap: str

    @property
    def breaks(self) -> int:
        return self.gap.count("\n")


@dataclass(slots=True)
class _State:
    """The brackets that are open, and where the statement of the last line began."""

    brackets: list[str] = field(default_factory=list)
    """`WHERE` stands for the brace of the whole body."""
    token: _Piece | None = None
    """The last token."""
    in_steps: int = 0
    """The number of brackets that were open when the `(` of `SEQ` was read, or 0."""
    statement: int = 0
    """The author's indentation of the first line of the statement."""
    indentation: int = 0
    """The new indentation of the current line."""


def laid_out(text: str, name: str = "query") -> str:
    """A query, or a mapping of rows, laid out.

    Args:
        text: The query or mapping.
        name: Prefix of positions in error messages, such as the name of the file.

    Raises:
        QuerySyntaxError: if the text is neither a query nor a mapping.
    """
    start = "query"
    try:
        tree = _read(start, text, name)
    except QuerySyntaxError as error:
        start = "mapping"
        try:
            tree = _read(start, text, name)
        except QuerySyntaxError:
            raise error from None
    pieces = list(_pieces(text, start))
    result = _Layout(pieces).text()
    if _read(start, result, name) != tree or _comments(_pieces(result, start)) != _comments(pieces):
        raise AssertionError("the layout has changed the meaning of the query")
    return result


def _read(start: str, text: str, name: str) -> ast.Query | ast.Mapping:
    return parse(text, name) if start == "query" else parse_mapping(text, name)


def _comments(pieces: Iterable[_Piece]) -> list[str]:
    return [piece.text for piece in pieces if piece.kind == "#"]


def _pieces(text: str, start: str) -> Iterator[_Piece]:
    """The tokens and comments of a text that parses."""
    source, automaton = Source(text), Automaton(start)
    done = 1 if text.startswith("\ufeff") else 0
    for token in Lexer(source.lexed, automaton):
        span = source.span(token.start, token.end)
        gap, end = text[done : span.start], done
        for comment in _COMMENT.finditer(gap):
            yield _Piece("#", comment[0].rstrip(), text[end : done + comment.start()])
            end = done + comment.end()
        yield _Piece(
            token.kind, _written(token, text[span.start : span.end]), text[end : span.start]
        )
        done = span.end
        automaton.feed(token)
    end = done
    for comment in _COMMENT.finditer(text, done):
        yield _Piece("#", comment[0].rstrip(), text[end : comment.start()])
        end = comment.end()


def _written(token: Token, text: str) -> str:
    known = tables().keywords
    is_word = token.kind in _WORDS_IN_CAPITALS or known.get(token.text.upper()) == token.kind
    return text.upper() if is_word and token.kind != "A" else text


class _Layout:
    def __init__(self, pieces: Sequence[_Piece]):
        self._pieces = pieces
        self._state = _State()

    def text(self) -> str:
        lines: list[str] = []
        line: list[str] = []
        before: _Piece | None = None
        for position, piece in enumerate(self._pieces):
            breaks = 0 if before is None else self._breaks(before, piece)
            if before is None or breaks:
                if line:
                    lines += ["".join(line), *[""] * (breaks - 1)]
                line = [" " * self._indent(position)]
            else:
                line.append(self._blank(before, piece))
            line.append(piece.text)
            self._follow(piece)
            before = piece
        return "\n".join([*lines, "".join(line)]) + "\n"

    # ------------------------------------------------------------------ lines

    def _breaks(self, before: _Piece, piece: _Piece) -> int:
        """The number of line breaks before a piece: two leave a blank line."""
        given = min(piece.breaks, 2)
        if before.kind == "#":
            return max(given, 1)
        if given == 2 and (before.text == "{" or piece.text == "}"):
            return 1
        brackets = self._state.brackets
        if piece.kind != "#" and self._begins_line(before, piece, brackets):
            return max(given, 1)
        return given

    def _begins_line(self, before: _Piece, piece: _Piece, brackets: Sequence[str]) -> bool:
        if not brackets:
            return piece.kind in _CLAUSES
        in_where = brackets == ["WHERE"]
        return in_where and (
            piece.kind in ("SEQ", "DEFINE") or piece.text == "}" or before.text == "{"
        )

    def _indent(self, position: int) -> int:
        """The indentation of a line that begins with a piece."""
        state, piece = self._state, self._pieces[position]
        braces = sum(bracket in ("{", "WHERE") for bracket in state.brackets)
        base = _INDENT * (braces - (piece.text == "}" and not state.in_steps))
        given = len(piece.gap.rpartition("\n")[2].expandtabs()) if piece.breaks else 0
        following = self._after_comments(position)
        if following is None or self._begins_statement(following):
            state.statement, state.indentation = given, base
            return base
        distance = max(given - state.statement, _INDENT) if piece.breaks else _INDENT
        return state.indentation + distance

    def _after_comments(self, position: int) -> _Piece | None:
        """The piece itself, or the token that follows a comment."""
        while position < len(self._pieces) and self._pieces[position].kind == "#":
            position += 1
        return self._pieces[position] if position < len(self._pieces) else None

    def _begins_statement(self, piece: _Piece) -> bool:
        last, brackets = self._state.token, self._state.brackets
        if last is None or piece.text == "}":
            return True
        if brackets and brackets[-1] in ("(", "["):
            return False
        return last.text in ("{", "}", ".") or piece.kind in _STATEMENTS

    def _follow(self, piece: _Piece) -> None:
        """Update the open brackets."""
        if piece.kind == "#":
            return
        state, last = self._state, self._state.token
        if piece.text in _OPENING:
            is_body = piece.text == "{" and not state.brackets
            is_body &= last is not None and last.kind != "CONSTRUCT"
            state.brackets.append("WHERE" if is_body else piece.text)
            if last is not None and last.kind == "SEQ":
                state.in_steps = len(state.brackets)
        elif piece.text in _CLOSING:
            if len(state.brackets) == state.in_steps:
                state.in_steps = 0
            state.brackets.pop()
        state.token = piece

    # ------------------------------------------------------------------ blanks

    def _blank(self, before: _Piece, piece: _Piece) -> str:
        """The text between two pieces of one line."""
        if piece.kind == "#":
            return "  "
        given = " " if piece.gap else ""
        left, right = before.text, piece.text
        if self._state.in_steps:
            in_quantifier = self._state.brackets[-1] == "{"
            if in_quantifier or right == "{":
                return ""
            if right in (",", ";"):
                return " "
            if left == "}":
                return given
        if left == "(" or right == ")" or right == ",":
            return ""
        if left == "[" or right == "]":
            return "" if (left, right) == ("[", "]") else given
        if (left, right) == ("{", "}"):
            return ""
        if left in ("{", ",", ";") or right in ("{", "}", ";", ".") or left == "}":
            return " "
        if right == "(":
            if before.kind in _SPACED_BEFORE_BRACKET:
                return " "
            if before.kind in ("SEQ", "FILTER", "BIND", "BUILTIN", "AGGREGATE"):
                return ""
        return given

"""Query text as the lexer reads it, with a mapping from its offsets to the user's text.

SPARQL 1.1 (section 19.2) allows `\\u0041` and `\\U00000041` in place of any character of a
query, replaced before any other rule applies; `Source.lexed` is the text after replacement.
Escapes for a quote, a backslash or a line break are not replaced: inside a string they denote
that character, elsewhere they are errors, and replacing them would make the two indistinguishable.

Invariant: `span(i, j)` refers to characters of `text`, whatever replacements `lexed` has.
A `Source` also collects the errors found in the text, so that one pass reports several.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from spaseq.errors import Diagnostic, QuerySyntaxError, Span

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|.)", re.DOTALL)
_NOT_REPLACED = frozenset("\"'\\\n\r")


class Source:
    """One query text, the errors found in it, and the positions of its characters."""

    def __init__(self, text: str, name: str = "query"):
        self.text = text
        self.name = name
        self.findings: list[Diagnostic] = []
        self.incomplete = False
        """Whether an error removed a part of the tree, so that other checks would mislead."""
        self._line_starts = [0]
        for line in text.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        # Parallel lists: the characters of `lexed` from `_lexed_at[i]` to the next entry
        # correspond one to one to the characters of `text` from `_text_at[i]`.
        self._lexed_at = [0]
        self._text_at = [0]
        self.lexed = self._replace_escapes(text) if "\\u" in text or "\\U" in text else text

    def span(self, start: int, end: int) -> Span:
        """The span in `text` of `lexed[start:end]`."""
        first, last = self._offset(start), self._offset(end)
        line, column = self._place(first)
        end_line, end_column = self._place(last)
        return Span(first, last, line, column, end_line, end_column)

    def report(
        self,
        message: str,
        span: Span,
        hint: str = "",
        other: Span | None = None,
        other_label: str = "",
        incomplete: bool = False,
    ) -> None:
        """Record an error; `raise_findings` raises all of them together."""
        self.findings.append(Diagnostic(message, span, hint, other, other_label))
        self.incomplete |= incomplete

    def raise_findings(self) -> None:
        """Raise `QuerySyntaxError` with the reported errors, if there are any."""
        if self.findings:
            raise QuerySyntaxError(self.ordered_findings(), self.text, self.name)

    def ordered_findings(self) -> list[Diagnostic]:
        """The reported errors, in text order."""
        return sorted(self.findings, key=lambda finding: finding.span.start)

    def _offset(self, position: int) -> int:
        entry = bisect_right(self._lexed_at, position) - 1
        return self._text_at[entry] + position - self._lexed_at[entry]

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, offset)
        if line == len(self._line_starts) and line > 1 and not self._ends_in_line_break():
            line -= 1
        return line, offset - self._line_starts[line - 1] + 1

    def _ends_in_line_break(self) -> bool:
        return self.text[-1:].splitlines() == [""]

    def _replace_escapes(self, text: str) -> str:
        pieces: list[str] = []
        done = length = 0
        for match in _ESCAPE.finditer(text):
            digits = match[1] or match[2]
            if digits is None:
                continue
            code = int(digits, 16)
            character = "\ufffd" if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else chr(code)
            if character in _NOT_REPLACED:
                continue
            pieces += (text[done : match.start()], character)
            length += match.start() - done + 1
            done = match.end()
            self._lexed_at += (length - 1, length)
            self._text_at += (match.start(), done)
            if character == "\ufffd" and code != 0xFFFD:
                self.report(
                    f"{match[0]} is not the code point of a Unicode character",
                    self.span(length - 1, length),
                    "write the character itself, or \\U and the eight digits of its code point",
                )
        pieces.append(text[done:])
        return "".join(pieces)

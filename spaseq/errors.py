"""The exceptions of the package: one root class, and one class for each kind of failure.

An error about a query is a list of `Diagnostic`s: a position in the text, a message, a hint and
optionally a second position. Tools read these fields; people read the text that `render` writes
for them, with carets under the position.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Literal, TypeAlias

from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a query's text.

    Offsets count characters from 0; lines and columns count from 1. `end`, `end_line` and
    `end_column` are exclusive.
    """

    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """The range from the start of this span to the end of `other`."""
        return Span(self.start, other.end, self.line, self.column, other.end_line, other.end_column)


NOWHERE = Span(0, 0, 1, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a query: an error, which prevents it from running, or a warning."""

    message: str
    span: Span
    hint: str = ""
    other: Span | None = None
    other_label: str = ""
    severity: Literal["error", "warning", "note"] = "error"


class SpaseqError(Exception):
    """The base class of all exceptions that the package raises deliberately."""


class ArgumentError(SpaseqError, TypeError):
    """An argument has a type that is not accepted; names the argument and the accepted types."""


def kind_of(value: object) -> str:
    """The type of a value in a sentence: `an int`; `None` for None."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


class QueryError(SpaseqError):
    """A query cannot run; holds its text and all findings about it.

    `line`, `column` and `hint` belong to the first finding. `others` are the errors of other
    queries compiled together with this one; `str()` includes them.
    """

    def __init__(
        self,
        diagnostics: Sequence[Diagnostic],
        source: str,
        name: str = "query",
        others: Sequence[QueryError] = (),
    ):
        if not diagnostics:
            raise ValueError("a QueryError needs at least one diagnostic")
        self.diagnostics = tuple(diagnostics)
        self.source = source
        self.name = name
        self.others = tuple(others)
        own = render(self.diagnostics, source, name)
        super().__init__("\n".join([own, *map(str, self.others)]))

    def __reduce__(self) -> tuple[type[QueryError], tuple[object, ...]]:
        return type(self), (self.diagnostics, self.source, self.name, self.others)

    @property
    def line(self) -> int:
        """The line of the first finding, from 1."""
        return self.diagnostics[0].span.line

    @property
    def column(self) -> int:
        """The column of the first finding, from 1."""
        return self.diagnostics[0].span.column

    @property
    def hint(self) -> str:
        """What to do about the first finding; empty if there is no advice."""
        return self.diagnostics[0].hint


class QuerySyntaxError(QueryError):
    """The text is not a SPAseq query."""


class QuerySemanticError(QueryError):
    """The text is a SPAseq query, but it has no meaning or the engine cannot execute it."""


class EventError(SpaseqError):
    """An event cannot be accepted: it is late, out of order, or has no usable timestamp."""


InputUnit: TypeAlias = Literal["line", "frame", "row"]
"""The unit of positions in an input file: lines, frames of a binary format, or rows of a table."""


class InputError(SpaseqError):
    """A source cannot be read; the error names the file, the line and the problem.

    `line` counts in the unit `unit`, since binary formats have frames instead of lines.
    """

    def __init__(
        self, message: str, file: str = "", line: int | None = None, unit: InputUnit = "line"
    ):
        self.message = message
        self.file = file
        self.line = line
        self.unit: InputUnit = unit
        where = f"{input_place(file, line, unit)}: " if file and line else f"{file}: "
        super().__init__((where if file else "") + message)

    def __reduce__(self) -> tuple[type[InputError], tuple[object, ...]]:
        return type(self), (self.message, self.file, self.line, self.unit)


def input_place(file: str, line: int, unit: InputUnit) -> str:
    """A position in a file, for messages."""
    return f"{file}:{line}" if unit == "line" else f"{file}, {unit} {line}"


class KbError(SpaseqError):
    """A knowledge base cannot be read, or the query needs one that was not given."""


class QueryWarning(UserWarning):
    """A valid query that will probably match nothing."""


class EndpointError(KbError):
    """A SPARQL endpoint returned no usable answer; names the endpoint, the query and the cause.

    `attempts` is the number of requests sent. `final` means that a retry would fail too.
    """

    def __init__(
        self, endpoint: str, query: str, cause: str, attempts: int = 1, final: bool = False
    ):
        self.endpoint = endpoint
        self.query = query
        self.cause = cause
        self.attempts = attempts
        self.final = final
        tried = f" ({attempts} attempts)" if attempts > 1 else ""
        shown = query if len(query) <= 600 else f"{query[:600]}… ({len(query):,} characters)"
        super().__init__(f"the endpoint {endpoint} failed{tried}: {cause}\nthe query was: {shown}")

    def __reduce__(self) -> tuple[type[EndpointError], tuple[object, ...]]:
        return type(self), (self.endpoint, self.query, self.cause, self.attempts, self.final)


class LimitExceeded(SpaseqError):
    """A limit set by the user or by the machine was reached; the message names it.

    `diagnostic` gives the position in the query that reached it, if there is one.
    """

    def __init__(
        self,
        message: str,
        diagnostic: Diagnostic | None = None,
        source: str = "",
        name: str = "query",
    ):
        self.message = message
        self.diagnostic = diagnostic
        self.source = source
        self.name = name
        super().__init__(message if diagnostic is None else render([diagnostic], source, name))

    def __reduce__(self) -> tuple[type[LimitExceeded], tuple[object, ...]]:
        return type(self), (self.message, self.diagnostic, self.source, self.name)


class ChangeError(SpaseqError):
    """A query cannot be added to a run, replaced or removed; the run is unchanged."""


class RunFailed(SpaseqError):
    """A run was used after an error had stopped it in the middle of an event."""


class StateError(SpaseqError):
    """Saved state is damaged, or belongs to another version or another program."""


LINE_MAX_CHARACTERS = 200
"""The most characters of a line that a message quotes."""
_CONTEXT_CHARACTERS = 80
"""The characters of a longer line that a message quotes before the position."""


def render(diagnostics: Sequence[Diagnostic], source: str, name: str = "query") -> str:
    """The findings as text: `name:line:column: message`, the line with carets, the hint."""
    lines = source.splitlines() or [""]
    return "\n".join(_render_one(finding, lines, name) for finding in diagnostics)


def _render_one(finding: Diagnostic, lines: Sequence[str], name: str) -> str:
    out = [
        f"{name}:{finding.span.line}:{finding.span.column}: {finding.severity}: {finding.message}"
    ]
    out += _picture(finding.span, lines)
    if finding.other is not None:
        label = finding.other_label or "the other place"
        out.append(f"  {label}, line {finding.other.line}, column {finding.other.column}:")
        out += _picture(finding.other, lines)
    if finding.hint:
        out.append(f"  hint: {finding.hint}")
    return "\n".join(out)


def _picture(span: Span, lines: Sequence[str]) -> list[str]:
    number = min(max(span.line, 1), len(lines))
    text = lines[number - 1].expandtabs(1)
    start = min(span.column, len(text) + 1) - 1
    end = span.end_column - 1 if span.end_line == span.line else len(text)
    text, start, end = _clipped(text, start, end)
    carets = "^" * max(1, _display_width(text[start:end]))
    gutter = f"{number:>5} | "
    return [gutter + text, " " * (len(gutter) + _display_width(text[:start])) + carets]


def _clipped(text: str, start: int, end: int) -> tuple[str, int, int]:
    """The part of a long line around a span, with the offsets of the span in it."""
    if len(text) <= LINE_MAX_CHARACTERS:
        return text, start, end
    first = min(max(0, start - _CONTEXT_CHARACTERS), len(text) - LINE_MAX_CHARACTERS)
    last = first + LINE_MAX_CHARACTERS
    before, after = "…" * (first > 0), "…" * (last < len(text))
    shift = len(before) - first
    return before + text[first:last] + after, start + shift, min(end, last) + shift


def _display_width(text: str) -> int:
    """The number of terminal columns of the text; East Asian wide characters count two."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(character) in ("Mn", "Me")
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )

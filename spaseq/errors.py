"""Everything that can go wrong, as types: one root, one class for each stage.

Every error about a query is a list of `Diagnostic`s (a place in the text, what is
wrong there, what to do about it, and a second place where two of them disagree), so
that tools read fields and people read the caret picture. `render` is the only
function that draws it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a query's text: offsets count characters, lines and columns from 1.

    `end`, `end_line` and `end_column` are exclusive.
    """

    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """The stretch from the start of this span to the end of `other`."""
        return Span(self.start, other.end, self.line, self.column, other.end_line, other.end_column)


NOWHERE = Span(0, 0, 1, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a query: an error stops it, a warning does not."""

    message: str
    span: Span
    hint: str = ""
    other: Span | None = None
    other_label: str = ""
    severity: Literal["error", "warning"] = "error"


class SpaseqError(Exception):
    """The root of every error this package raises on purpose."""


class QueryError(SpaseqError):
    """A query that cannot be run: its text, and all that was found wrong with it.

    `line`, `column` and `hint` are those of the first finding. `others` are the errors of the
    other queries that were compiled together with this one; `str()` shows them too.
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
        return self.diagnostics[0].span.line

    @property
    def column(self) -> int:
        return self.diagnostics[0].span.column

    @property
    def hint(self) -> str:
        return self.diagnostics[0].hint


class QuerySyntaxError(QueryError):
    """The text is not a SPAseq query."""


class QuerySemanticError(QueryError):
    """The text is a SPAseq query that has no meaning, or none this engine can compute."""


class EventError(SpaseqError):
    """An event that cannot be taken: late, going back in time, without a usable timestamp."""


InputUnit: TypeAlias = Literal["line", "frame"]
"""What a place in an input file is counted in: lines, or frames of a binary format."""


class InputError(SpaseqError):
    """A source that cannot be read on: file and line, and what is wrong there.

    In a format without lines, `line` counts what `unit` says.
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
    """A place in a file, as messages name it."""
    return f"{file}:{line}" if unit == "line" else f"{file}, {unit} {line}"


class KbError(SpaseqError):
    """A knowledge base that cannot be read, or that the query needs and nobody gave."""


class QueryWarning(UserWarning):
    """A query that is right, and will probably match nothing."""


class EndpointError(KbError):
    """A SPARQL endpoint that gave no usable answer: which one, to what query, and why not.

    `final`: the same query would be refused again, however often it were sent.
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
    """A bound set by the user or the machine was reached; the message names it.

    Where it has to do with a place of a query, `diagnostic` says which, as for a `QueryError`.
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


class RunFailed(SpaseqError):
    """A run that an error stopped in the midst of an event, asked for more."""


class StateError(SpaseqError):
    """Saved state that does not fit: another version, or another program."""


def render(diagnostics: Sequence[Diagnostic], source: str, name: str = "query") -> str:
    """The findings as text: `name:line:column: what`, the line, a caret, the hint."""
    return "\n".join(_render_one(finding, source, name) for finding in diagnostics)


def _render_one(finding: Diagnostic, source: str, name: str) -> str:
    lines = source.splitlines() or [""]
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
    start = min(span.column, len(text) + 1)
    end = span.end_column if span.end_line == span.line else len(text) + 1
    carets = "^" * max(1, _display_width(text[start - 1 : end - 1]))
    gutter = f"{number:>5} | "
    return [gutter + text, " " * (len(gutter) + _display_width(text[: start - 1])) + carets]


def _display_width(text: str) -> int:
    """The columns a terminal gives the text: East Asian wide characters take two."""
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

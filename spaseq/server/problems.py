"""Errors of the API: RFC 9457 problem details.

Every error that reaches a client is one of these. An unexpected error is logged, and the client is
told only that it occurred.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from spaseq.errors import Diagnostic, InputError, QueryError, SpaseqError

MEDIA_TYPE = "application/problem+json"

_TITLES = {
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
}
"""Names of RFC 9110, section 15, for which Python has older ones before 3.13."""


class Problem(Exception):
    """An answer other than success.

    Args:
        status: The HTTP status.
        detail: What is wrong, for people.
        kind: What is wrong, for programs: the last part of the problem's type.
        headers: Further headers of the answer.
        members: Further members of the problem.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        kind: str = "",
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ):
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.kind = kind
        self.headers = dict(headers or {})
        self.members = members

    def to_dict(self) -> dict[str, Any]:
        """The problem as JSON."""
        return {
            "type": f"urn:spaseq:problem:{self.kind}" if self.kind else "about:blank",
            "title": _TITLES.get(self.status) or HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            **self.members,
        }


def not_found(what: str) -> Problem:
    return Problem(404, what, "not-found")


def query_problem(error: QueryError) -> Problem:
    """A query that does not compile, with its diagnostics."""
    return Problem(
        422, error.diagnostics[0].message, "query", diagnostics=diagnostics(error), text=str(error)
    )


def diagnostics(error: QueryError) -> list[dict[str, Any]]:
    """The findings about a query as JSON; lines and columns count from 1."""
    return [diagnostic(found) for found in error.diagnostics]


def diagnostic(found: Diagnostic) -> dict[str, Any]:
    """One finding about a query as JSON."""
    span = found.span
    shown: dict[str, Any] = {
        "severity": found.severity,
        "message": found.message,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "start": span.start,
        "end": span.end,
    }
    if found.hint:
        shown["hint"] = found.hint
    return shown


def input_problem(error: InputError) -> Problem:
    """A body that cannot be read."""
    place: dict[str, Any] = {} if error.line is None else {error.unit: error.line}
    return Problem(400, error.message, "input", **place)


def problem_of(error: SpaseqError | ValueError) -> Problem:
    """The problem for an error of the package."""
    if isinstance(error, QueryError):
        return query_problem(error)
    if isinstance(error, InputError):
        return input_problem(error)
    return Problem(422, str(error), "refused")

"""The answers of a server: errors, results of pushes, matches and notices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias, cast

import httpx

from spaseq.client.requests import Json
from spaseq.errors import SpaseqError
from spaseq.records import dataclass

BUSY = (429, 503)
"""The statuses of a server that is busy: the request can be repeated later."""


class ServerError(SpaseqError):
    """The server refused a request.

    `status` is the HTTP status, and `problem` the whole answer (RFC 9457). `diagnostics` has the
    findings about a query that does not compile.
    """

    def __init__(self, status: int, problem: Json):
        self.status = status
        self.problem = problem
        super().__init__(str(problem.get("text") or problem.get("detail") or f"status {status}"))

    @property
    def diagnostics(self) -> list[Json]:
        return list(self.problem.get("diagnostics", ()))


@dataclass(frozen=True, slots=True)
class Accepted:
    """The result of a push; `token` is the position of the body in the server's journal.

    `ahead` counts events that were too far ahead of the clock.
    """

    accepted: int
    late: int
    rejected: int
    token: int
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class ServedMatch:
    """A match: its id, which is always the same, and its JSON (docs/formats.md)."""

    id: str
    data: Mapping[str, Any] = field(repr=False)

    @property
    def query(self) -> str:
        return str(self.data["query"])

    @property
    def start(self) -> str | int | float | None:
        return cast("str | int | float | None", self.data.get("start"))

    @property
    def end(self) -> str | int | float:
        return cast("str | int | float", self.data["end"])

    @property
    def bindings(self) -> Mapping[str, Json]:
        """Variable → term, as in SPARQL JSON results."""
        return cast("Mapping[str, Json]", self.data.get("bindings", {}))

    @property
    def events(self) -> list[Json]:
        return list(self.data.get("events", ()))


@dataclass(frozen=True, slots=True)
class Notice:
    """A message of a subscription that is not a match: `progress`, `late` or `error`.

    `reconnecting` is a notice of the client itself: the connection is broken, for the `reason` in
    its data, and the client tries again.
    """

    kind: Literal["progress", "late", "error", "reconnecting"]
    data: Mapping[str, Any]


Item: TypeAlias = ServedMatch | Notice


def error_of(answer: httpx.Response) -> ServerError:
    try:
        problem = answer.json()
    except ValueError:
        problem = {"detail": answer.text[:500]}
    return ServerError(answer.status_code, problem if isinstance(problem, dict) else {})


def checked(answer: httpx.Response) -> httpx.Response:
    if answer.status_code >= 400:
        raise error_of(answer)
    return answer


def object_of(answer: httpx.Response, *keys: str) -> Json:
    """The JSON object of an answer, which has some keys.

    Raises:
        SpaseqError: if it is something else, as the answers of other servers are.
    """
    try:
        found = answer.json()
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found.keys() >= set(keys):
        raise foreign(answer)
    return found


def foreign(answer: httpx.Response) -> SpaseqError:
    return SpaseqError(
        f"{answer.url}: the answer (status {answer.status_code}) is not that of spaseq serve"
    )

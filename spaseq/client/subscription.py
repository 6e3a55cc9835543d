"""A subscription of a client across all of its connections."""

from __future__ import annotations

import json

import httpx

from spaseq.client.answers import BUSY, Item, Notice, ServedMatch, ServerError, foreign
from spaseq.client.requests import Request, Start, query_path

ANSWER_SECONDS = 30.0
"""How long a request waits for its answer by default."""
QUIET_SECONDS = 60.0
"""A subscription that receives nothing for so long, not even a heartbeat, is broken."""
EVENT_STREAM = "text/event-stream"


class _Events:
    """The lines of an SSE answer → items."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def take(self, line: str) -> Item | None:
        """The item that a line completes."""
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        kind = fields.get("event")
        if kind == "match":
            return ServedMatch(fields["id"], json.loads(fields["data"]))
        if kind == "problem":
            return Notice("error", json.loads(fields["data"]))
        if kind in ("progress", "late"):
            return Notice(kind, json.loads(fields["data"]))  # type: ignore[arg-type]
        return None


class Subscription:
    """The position of a subscription, across all of its connections.

    Args:
        query: The query.
        start: `now` or `oldest`.
        after: The id of the last match received.
        limit: The number of matches after which it ends.
        timeout: How many seconds the first answer may take; None: the default.
    """

    def __init__(
        self, query: str, start: Start, after: str, limit: int | None, timeout: float | None
    ):
        self._query, self._start = query, start
        self._patience = timeout or ANSWER_SECONDS
        self._last, self._left = after, limit
        self._events = _Events()
        self._has_connected = False
        self._is_retrying = False
        self.has_ended = False

    def request(self) -> Request:
        """The request that continues it."""
        self._events = _Events()
        headers = {"Accept": EVENT_STREAM}
        if self._last:
            headers["Last-Event-ID"] = self._last
        parameters: dict[str, str] = {"from": self._start}
        if self._left is not None:
            parameters["limit"] = str(self._left)
        timeout = httpx.Timeout(min(self._patience, 10), read=max(self._patience, QUIET_SECONDS))
        options = {"headers": headers, "params": parameters, "timeout": timeout}
        return Request("GET", query_path(self._query, "/matches"), options)

    @property
    def removed(self) -> Notice:
        """What the status 204 says."""
        return Notice("error", {"removed": self._query})

    def take(self, line: str) -> Item | None:
        """The item that a line completes."""
        item = self._events.take(line)
        if isinstance(item, ServedMatch):
            self._last = item.id
            if self._left is not None:
                self._left -= 1
        elif item is not None and item.kind == "error" and "removed" in item.data:
            self.has_ended = True
        self.has_ended = self.has_ended or self._left == 0
        return item

    def connected(self, answer: httpx.Response) -> None:
        """Note that the server has answered.

        Raises:
            SpaseqError: if the answer is no stream of events.
        """
        if not answer.headers.get("Content-Type", "").startswith(EVENT_STREAM):
            raise foreign(answer)
        self._has_connected, self._is_retrying = True, False

    def can_continue(self, error: ServerError | httpx.TransportError) -> bool:
        """Whether another connection can continue after an error without losing a match.

        A first connection that fails does not: the address is probably wrong.
        """
        if isinstance(error, ServerError):
            return error.status in BUSY
        return self._has_connected and (bool(self._last) or self._start != "now")

    def reconnecting(self, error: ServerError | httpx.TransportError) -> Notice | None:
        """What to say about a broken connection: only the first failure of a row is news."""
        if self._is_retrying:
            return None
        self._is_retrying = True
        return Notice("reconnecting", {"reason": str(error) or type(error).__name__})

"""SELECT queries → rows, over HTTP.

There is one client per endpoint; it reuses connections, and threads may share it. A failed request
is retried with exponential backoff, except after client errors (4xx). A call returns a complete
answer or raises an error that names the endpoint, the query and the cause. Requests are form
POSTs, which every server accepts for queries of any length.

httpx is imported by the first client, since it takes longer to import than this package.
"""

from __future__ import annotations

import itertools
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from spaseq.errors import EndpointError
from spaseq.kb.answer import (
    ACCEPT,
    AnswerTooLarge,
    Body,
    QuirkyAnswer,
    Row,
    UnreadableAnswer,
    read_rows,
)
from spaseq.kb.authorities import default_trust
from spaseq.kb.endpoint import Endpoint

if TYPE_CHECKING:
    import httpx

_DATASET = ("default-graph-uri", "named-graph-uri")
_AGAIN = (408, 425, 429)
MAX_WAIT_SECONDS = 30.0
"""The maximum wait between two attempts, even if the server asks for more."""
_numbers = itertools.count()


class _Final(Exception):
    """A failure that a retry would repeat."""


class _Failed(Exception):
    """A failed attempt; `wait` is the server's `Retry-After`, in seconds."""

    def __init__(self, cause: str, wait: float = 0.0):
        super().__init__(cause)
        self.wait = wait


@dataclass(slots=True)
class Counters:
    """Statistics of the requests to one source."""

    requests: int = 0
    retries: int = 0
    failures: int = 0
    rows: int = 0
    asked: int = 0
    """Values whose solutions events needed."""
    known: int = 0
    """Those of `asked` that the cache held."""
    prefetched: int = 0
    """Values requested ahead, because partial matches held them."""
    prefetched_used: int = 0
    """Those of `prefetched` that events needed later."""
    unenriched: int = 0
    """Values whose solutions were unavailable, so that events were processed without them."""

    def to_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True, weakref_slot=True)
class Client:
    """Sends queries to one endpoint."""

    endpoint: Endpoint
    counters: Counters = field(default_factory=Counters)
    _http: httpx.Client = field(init=False)
    _url: str = field(init=False)
    _form: list[tuple[str, str]] = field(init=False)
    _closed: Event = field(default_factory=Event)
    _lenient: bool = False

    def __post_init__(self) -> None:
        import httpx

        endpoint = self.endpoint
        parts = urlsplit(endpoint.url)
        given = parse_qsl(parts.query, keep_blank_values=True)
        self._form = [(name, value) for name, value in given if name in _DATASET]
        others = urlencode([(name, value) for name, value in given if name not in _DATASET])
        auth = None if endpoint.user is None else (endpoint.user, endpoint.password or "")
        self._url = urlunsplit(parts._replace(query=others, fragment=""))
        self._http = httpx.Client(
            headers={"Accept": ACCEPT, "User-Agent": "spaseq", **endpoint.request_headers()},
            auth=auth,
            timeout=endpoint.timeout,
            verify=default_trust(),
            transport=_public_transport() if endpoint.public else None,
        )
        weakref.finalize(self, self._http.close)

    def __reduce__(self) -> tuple[type[Client], tuple[Endpoint]]:
        return Client, (self.endpoint,)

    @property
    def name(self) -> str:
        """The name of the endpoint in messages."""
        return self.endpoint.url

    def close(self) -> None:
        """Close the connections, stop waiting and refuse further requests."""
        self._closed.set()
        self._http.close()

    def rows(self, text: str, variables: Sequence[str], bound: int) -> list[Row]:
        """The solutions of the SELECT `text`, with columns in the order of `variables`.

        Raises:
            TooManyRows: if there are more than `bound`.
            EndpointError: if the endpoint returns no answer, or no readable one.
        """
        import httpx

        attempts = 0
        while True:
            attempts += 1
            try:
                answer = self._attempt(text, variables, bound)
            except QuirkyAnswer:
                self._lenient = True
                attempts -= 1
                continue
            except (_Final, RuntimeError) as error:
                if isinstance(error, RuntimeError) and not self._closed.is_set():
                    raise
                raise self._error(str(error), text, attempts, final=True) from None
            except (_Failed, httpx.HTTPError, UnreadableAnswer, OSError) as error:
                if attempts >= self.endpoint.attempts or self._closed.is_set():
                    raise self._error(_cause(error), text, attempts) from None
                self.counters.retries += 1
                wait = self.endpoint.backoff * 2.0 ** (attempts - 1)
                asked = error.wait if isinstance(error, _Failed) else 0.0
                self._closed.wait(min(max(wait, asked), MAX_WAIT_SECONDS))
                continue
            self.counters.rows += len(answer)
            return answer

    def _attempt(self, text: str, variables: Sequence[str], bound: int) -> list[Row]:
        endpoint = self.endpoint
        self.counters.requests += 1
        deadline = time.monotonic() + endpoint.timeout
        form = urlencode([("query", text), *self._form])
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        with self._http.stream("POST", self._url, content=form, headers=kind) as response:
            if response.status_code != 200:
                raise _refusal(response)
            body = Body(response.iter_bytes(), endpoint.size, deadline)
            kind_of_answer = response.headers.get("content-type", "")
            prefix = f"kbr{next(_numbers)}"
            try:
                return read_rows(body, kind_of_answer, variables, bound, prefix, self._lenient)
            except AnswerTooLarge:
                raise _Final(
                    f"its answer is larger than {endpoint.size:,} bytes; raise the `size` of the "
                    "Endpoint, or narrow the pattern"
                ) from None

    def _error(self, cause: str, text: str, attempts: int, *, final: bool = False) -> EndpointError:
        self.counters.failures += 1
        return EndpointError(self.endpoint.url, text, cause, attempts, final=final)


def _public_transport() -> httpx.BaseTransport:
    from spaseq.kb.public_transport import PublicTransport

    return PublicTransport()


def _refusal(response: httpx.Response) -> Exception:
    """The failure of a response whose status is not 200."""
    status = response.status_code
    said = f"it answered {status} {response.reason_phrase}"
    if 300 <= status < 400:
        where = response.headers.get("location", "elsewhere")
        return _Final(f"{said}, a redirection to {where}; use that URL")
    start = b""
    for chunk in response.iter_bytes():
        start += chunk
        if len(start) > 300:
            break
    text = " ".join(start[:300].decode("utf-8", "replace").split())
    if text:
        said += f": {text}"
    if status < 500 and status not in _AGAIN:
        return _Final(said)
    after = response.headers.get("retry-after", "")
    return _Failed(said, float(after) if after.isdigit() else 0.0)


def _cause(error: Exception) -> str:
    import httpx

    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return "it did not answer in time"
    if isinstance(error, httpx.ConnectError):
        return f"it cannot be reached: {error}"
    if isinstance(error, UnreadableAnswer):
        return f"its answer cannot be read: {error}"
    return str(error) or type(error).__name__

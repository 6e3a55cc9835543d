"""The configuration of a SPARQL endpoint: its URL, limits, join strategy and failure handling.

An `Endpoint` is plain data: frozen, compared by value, and printed without its credentials.
Credentials come from its fields or from the environment (`authorisation`), never from a URL.
Source for `default-graph-uri`: SPARQL 1.1 Protocol, section 2.1.4.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

# Not the decorator of `spaseq.records`, because the API reference reads the signature from this
# one.
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from spaseq.errors import ArgumentError, KbError, kind_of

Join: TypeAlias = Literal["auto", "materialise", "bind"]
OnFailure: TypeAlias = Literal["stop", "skip", "unenriched"]

VARIABLE = "SPASEQ_KB_AUTH"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A remote SPARQL 1.1 endpoint as a graph of the knowledge base, or for `SERVICE`.

    Args:
        url: The URL of the query service; its `default-graph-uri` parameters choose the graph.
        join: `materialise` fetches all solutions of a pattern once; `bind` requests the solutions
            for the values in events; `auto` materialises up to `rows` solutions, else binds.
        rows: The maximum number of solutions in one answer.
        size: The maximum number of bytes in one answer.
        batch: The maximum number of values in one request.
        prefetch: The maximum number of values in one request that come from partial matches and
            that no event needs yet; 0 disables prefetching.
        cache: The maximum number of values whose solutions are cached.
        keep: Seconds until cached solutions expire.
        keep_absent: Seconds until the cached absence of solutions expires.
        timeout: Seconds for one request, from its first byte to the last byte of the answer.
        attempts: The maximum number of attempts per request.
        backoff: Seconds to wait after the first failed attempt; each further wait doubles.
        on_failure: What happens if an event needs solutions that are unavailable: `stop` the run,
            `skip` the event, or process it `unenriched`, as if the pattern were optional.
        pause: Seconds without requests by key after a failure, if the run continues.
        refresh: Seconds between two fetches of materialised solutions; None: fetch once.
        token: A bearer token.
        user: The user name for basic authentication.
        password: The password for basic authentication.
        headers: Further headers sent with every request.
        public: Whether a name in the URL may only have public addresses; each request then goes to
            an address that was checked. A URL with an address is not restricted.

    Raises:
        KbError: if an argument is invalid.
    """

    url: str
    join: Join = "auto"
    rows: int = 200_000
    size: int = 256_000_000
    batch: int = 500
    prefetch: int = 250
    cache: int = 100_000
    keep: float = 300.0
    keep_absent: float = 60.0
    timeout: float = 30.0
    attempts: int = 3
    backoff: float = 0.2
    on_failure: OnFailure = "stop"
    pause: float = 1.0
    refresh: float | None = None
    token: str | None = field(default=None, repr=False)
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    public: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.url, str):
            raise ArgumentError(f"url: the URL of an endpoint is a str, not {kind_of(self.url)}")
        check_url(self.url)
        for name, choices in (
            ("join", ("auto", "materialise", "bind")),
            ("on_failure", ("stop", "skip", "unenriched")),
        ):
            if getattr(self, name) not in choices:
                raise KbError(
                    f"the endpoint's {name} is {getattr(self, name)!r}; "
                    f"it must be one of {', '.join(choices)}"
                )
        for name in ("rows", "size", "batch", "cache", "timeout", "attempts"):
            if getattr(self, name) <= 0:
                raise KbError(f"the endpoint's {name} must be more than 0")
        if self.prefetch < 0:
            raise KbError("the endpoint's prefetch must be 0 or more")
        if self.refresh is not None and self.refresh <= 0:
            raise KbError("the endpoint's refresh must be more than 0 seconds")

    def request_headers(self) -> dict[str, str]:
        """The HTTP headers, with authorisation from the endpoint or else from the environment.

        Example:
            >>> spaseq.Endpoint("https://example.org/sparql").request_headers()
            {}
        """
        given = dict(self.headers)
        if self.token is not None:
            given["Authorization"] = f"Bearer {self.token}"
        named = {name.lower() for name in given}
        if "authorization" not in named and self.user is None:
            value = authorisation(self.url, os.environ.get(VARIABLE, ""))
            if value is not None:
                given["Authorization"] = value
        return given


def is_url(text: str) -> bool:
    """Whether a source is the URL of an endpoint."""
    return text.lower().startswith(("http://", "https://"))


def check_url(url: str) -> None:
    """Check that a text is the URL of an endpoint and contains no credentials.

    Raises:
        KbError: if not.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise KbError(f"an endpoint's URL cannot be read: {error}") from None
    if parts.scheme.lower() not in _PORTS or not parts.hostname:
        raise KbError(
            f"{url!r} is not the URL of an endpoint: it must begin with http:// or https://"
        )
    if parts.username is not None or parts.password is not None:
        raise KbError(
            f"the URL of the endpoint at {parts.hostname} contains credentials, which logs and "
            f"process lists would show; put them into the environment variable {VARIABLE}, as in "
            f"'{parts.scheme}://{parts.hostname} Basic …'"
        )


def authorisation(url: str, listed: str) -> str | None:
    """The `Authorization` header for a URL, from the value of `SPASEQ_KB_AUTH`.

    Line ends or semicolons separate its entries. An entry is the prefix of a URL, a space, and the
    header's value. It applies to URLs with the same scheme, host and port whose path equals the
    entry's path or lies below it; the entry with the longest path counts.

    Raises:
        KbError: if an entry is malformed.
    """
    best: tuple[int, str] | None = None
    place = _place(url)
    for entry in listed.replace("\n", ";").split(";"):
        start, _, value = entry.strip().partition(" ")
        if not start:
            continue
        if not value.strip() or not is_url(start):
            raise KbError(
                f"{VARIABLE} has an entry that is not of the form 'URL Basic …' or 'URL Bearer …'"
            )
        origin, path = _place(start)
        path = path.rstrip("/")
        below = not path or place[1] == path or place[1].startswith(path + "/")
        if origin == place[0] and below and (best is None or len(path) > best[0]):
            best = len(path), value.strip()
    return None if best is None else best[1]


def _place(url: str) -> tuple[tuple[str, str, int], str]:
    """(scheme, host, port) of a URL, and its path."""
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    return (scheme, parts.hostname or "", parts.port or _PORTS[scheme]), parts.path

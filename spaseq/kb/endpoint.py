"""How a SPARQL endpoint is asked: where it is, how much of it is taken, and what a failure does.

An `Endpoint` is data: frozen, compared by value, and shown without its credentials. These come
from its own fields or from the environment (`authorisation`), never from a URL. Source of the
`default-graph-uri` of a URL: SPARQL 1.1 Protocol, section 2.1.4.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from spaseq.errors import KbError

Join: TypeAlias = Literal["auto", "materialise", "bind"]
OnFailure: TypeAlias = Literal["stop", "skip", "unenriched"]

VARIABLE = "SPASEQ_KB_AUTH"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A remote SPARQL 1.1 endpoint as a graph of the knowledge base, or for `SERVICE`.

    Args:
        url: of the query service; its `default-graph-uri` parameters choose the graph.
        join: `materialise` fetches a pattern's solutions once, `bind` asks for those of the
            values that events bring; `auto` fetches them if they are at most `rows`.
        rows: how many solutions one answer may have.
        size: how many bytes one answer may have.
        batch: how many values are asked for in one request.
        prefetch: how many of these may be values that no event needs yet, but partial matches
            hold whose next step may; 0: none.
        cache: how many values' answers are kept, each for `keep` seconds, or for
            `keep_absent` where there was none.
        timeout: seconds for one request, from its first byte to the last of its answer.
        attempts: how often a request is tried; the n-th wait in between takes
            `backoff` * 2**(n-1) seconds.
        on_failure: what an event does that needs what could not be had: `stop` the run, be
            `skip`ped, or stay `unenriched` as if the pattern were optional.
        pause: seconds for which an endpoint that failed is not asked by key again, where the
            run goes on without it.
        refresh: fetch materialised solutions again every so many seconds.
        token: a bearer token; `user` and `password`: basic authentication.
        headers: sent with every request.
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

    def __post_init__(self) -> None:
        check_url(self.url)
        for name, choices in (
            ("join", ("auto", "materialise", "bind")),
            ("on_failure", ("stop", "skip", "unenriched")),
        ):
            if getattr(self, name) not in choices:
                raise KbError(
                    f"the endpoint's {name} is {getattr(self, name)!r}; "
                    f"it is one of {', '.join(choices)}"
                )
        for name in ("rows", "size", "batch", "cache", "timeout", "attempts"):
            if getattr(self, name) <= 0:
                raise KbError(f"the endpoint's {name} must be more than 0")
        if self.prefetch < 0:
            raise KbError("the endpoint's prefetch must be 0 or more")
        if self.refresh is not None and self.refresh <= 0:
            raise KbError("the endpoint's refresh must be more than 0 seconds")

    def request_headers(self) -> dict[str, str]:
        """The headers that say who asks: the endpoint's own, else those of the environment."""
        given = dict(self.headers)
        if self.token is not None:
            given["Authorization"] = f"Bearer {self.token}"
        named = {name.lower() for name in given}
        if "authorization" not in named and self.user is None:
            found = authorisation(self.url, os.environ.get(VARIABLE, ""))
            if found is not None:
                given["Authorization"] = found
        return given


def is_url(text: str) -> bool:
    """Whether a source is told by the URL of an endpoint."""
    return text.lower().startswith(("http://", "https://"))


def check_url(url: str) -> None:
    """Refuse what is no URL of an endpoint, or would show credentials.

    Raises:
        KbError: saying which.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise KbError(f"an endpoint's URL cannot be read: {error}") from None
    if parts.scheme.lower() not in _PORTS or not parts.hostname:
        raise KbError(f"{url!r} is no URL of an endpoint: it must begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise KbError(
            f"the URL of the endpoint at {parts.hostname} holds credentials, which others can "
            f"read there; put them into the environment variable {VARIABLE}, as in "
            f"'{parts.scheme}://{parts.hostname} Basic …'"
        )


def authorisation(url: str, listed: str) -> str | None:
    """The `Authorization` header for a URL, from a list as `SPASEQ_KB_AUTH` holds it.

    Its entries are parted by line ends or semicolons; each is the beginning of a URL, a space,
    and the header's value. Scheme, host and port must agree, and the path must be the URL's or
    lead to it; the longest such path counts.
    """
    best: tuple[int, str] | None = None
    place = _place(url)
    for entry in listed.replace("\n", ";").split(";"):
        start, _, value = entry.strip().partition(" ")
        if not start:
            continue
        if not value.strip() or not is_url(start):
            raise KbError(
                f"{VARIABLE} has an entry that does not read 'URL Basic …' or 'URL Bearer …'"
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

"""The URLs that queries and knowledge bases may name.

An operator allows a URL by its beginning: `--allow-url https://data.example/sparql`. A URL is
allowed if its scheme, host and port are those of an entry, and its path is that of the entry or
below it. A query therefore cannot make the server read data that only this machine can reach.

The host of an entry may be an address of a private network if it is written as one. A name that
resolves to a private or a loopback address is refused unless `--allow-private` is given: when the
query is registered, and again for each request, which is sent to the address that was checked
(`spaseq.kb.public_transport`). Only `http:` and `https:` are allowed, and redirections of endpoints
are not followed (`spaseq.kb.client`).
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from spaseq.kb.public_hosts import is_address, public_address
from spaseq.live.addresses import redacted
from spaseq.records import dataclass
from spaseq.server.problems import Problem

_PORTS = {"http": 80, "https": 443}
_Place: TypeAlias = tuple[str, str, int, str]
"""(scheme, host, port, path)."""


@dataclass(frozen=True, slots=True)
class AllowedUrls:
    """An allow-list.

    Args:
        entries: The beginnings of URLs.
        private: Whether names may resolve to private addresses.

    Raises:
        ValueError: for an entry that is not an http or https URL.
    """

    entries: Sequence[str] = ()
    private: bool = False

    def __post_init__(self) -> None:
        for entry in self.entries:
            if _place(entry) is None:
                raise ValueError(f"{redacted(entry)}: write the beginning of an http(s) URL")

    def check(self, url: str) -> None:
        """Refuse a URL that is not allowed.

        Raises:
            Problem: with the reason.
        """
        place = _place(url)
        if place is None or not any(_covers(_place(entry), place) for entry in self.entries):
            raise Problem(
                422,
                f"{redacted(url)}: the URL is not in the allow-list of the server (--allow-url)",
                "url",
            )
        if not self.private and not is_address(place[1]) and public_address(place[1]) is None:
            raise Problem(
                422,
                f"{redacted(url)}: the name resolves to a private address, or to none "
                "(--allow-private)",
                "url",
            )


def _place(url: str) -> _Place | None:
    """The parts of a URL that are compared; None if it is not a plain http or https URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return None
    host = (parts.hostname or "").rstrip(".").lower()
    strange = any(c <= " " or c == "\\" for c in url) or "@" in parts.netloc
    if parts.scheme not in _PORTS or not host or strange:
        return None
    path = unquote(parts.path) or "/"
    if "\\" in path or ".." in path.split("/"):
        return None
    normal = posixpath.normpath(path)
    return parts.scheme, host, port, "/" + normal.lstrip("/")


def _covers(entry: _Place | None, place: _Place) -> bool:
    if entry is None or entry[:3] != place[:3]:
        return False
    below = entry[3].rstrip("/") + "/"
    return place[3] == entry[3] or place[3].startswith(below)

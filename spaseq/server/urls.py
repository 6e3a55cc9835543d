"""Which URLs queries and knowledge bases may name.

An operator allows a URL by its beginning: `--allow-url https://data.example/sparql`. A URL is
allowed if its scheme, host and port are those of an entry, and its path is that of the entry or
below it. So no query can make the server read what only this machine can reach.

The host of an entry may be an address of a private network if it is written as one. A name that
resolves to a private or a loopback address is refused unless `--allow-private` is given. Only
`http:` and `https:` are allowed, and clients follow no redirections to other hosts
(`spaseq.kb.client`, `spaseq.live.web`).
"""

from __future__ import annotations

import ipaddress
import posixpath
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from spaseq.live.addresses import redacted
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
        ValueError: for an entry that is no http or https URL.
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
        if not self.private and not _is_literal(place[1]) and not _is_public(place[1]):
            raise Problem(
                422,
                f"{redacted(url)}: the name resolves to a private address, or to none "
                "(--allow-private)",
                "url",
            )


def _place(url: str) -> _Place | None:
    """The parts of a URL that are compared; None if it is no plain http or https URL."""
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


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_public(host: str) -> bool:
    """Whether all addresses of a host are public."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(ipaddress.ip_address(str(each[4][0]).split("%")[0]).is_global for each in found)

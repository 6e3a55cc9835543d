"""Whether the addresses of a host are public."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable


def public_address(host: str) -> str | None:
    """An address of a host whose addresses are all public; None if there is none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return None
    places = [str(each[4][0]).split("%")[0] for each in found]
    return places[0] if places and are_public(places) else None


def are_public(places: Iterable[str]) -> bool:
    """Whether all addresses are public."""
    return all(ipaddress.ip_address(place).is_global for place in places)


def is_address(host: str) -> bool:
    """Whether a host is written as an address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

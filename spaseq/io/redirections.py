"""Whether redirections of HTTP servers, and links between their pages, are followed.

They are followed to the same host, or to a host whose addresses are all public, so a server cannot
make the run read from the network of its machine.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from spaseq.errors import InputError
from spaseq.kb.public_hosts import public_address


def check_redirection(url: str, there: str) -> str | None:
    """Refuse a redirection to a private address, or away from HTTPS.

    Returns:
        The address to connect to, since the host name could resolve to another address when it is
        looked up again; None: the host is the same.

    Raises:
        InputError: if it must not be followed.
    """
    before, after = urlsplit(url), urlsplit(there)
    if after.scheme not in ("http", "https") or (before.scheme, after.scheme) == ("https", "http"):
        raise InputError(
            f"it redirects to {shown_url(there)}, which is not followed", shown_url(url)
        )
    if (before.hostname, before.port) == (after.hostname, after.port):
        return None
    place = public_address(after.hostname or "")
    if place is None:
        raise InputError(
            f"it redirects to {shown_url(there)}, a private address, which is not followed; use "
            "that URL",
            shown_url(url),
        )
    return place


def shown_url(url: str) -> str:
    """A URL for messages, without its parts that may be secret: the user and the query."""
    scheme, colon, rest = url.partition("#")[0].partition("?")[0].partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{colon}{place.rpartition('@')[2]}{slash}{path}"

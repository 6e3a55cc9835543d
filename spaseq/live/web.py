"""HTTP for sources: addresses, authorization and redirections.

A redirection is followed only to the same host, or to a host whose addresses are all public: a
server must not make the run read data that only this machine can reach. Credentials are sent only
to the host of the URL.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit, urlunsplit

from spaseq.errors import InputError
from spaseq.io.redirections import check_redirection
from spaseq.kb.authorities import default_trust
from spaseq.live.addresses import Address, address, redacted, secret
from spaseq.live.tls import trusted
from spaseq.records import dataclass

if TYPE_CHECKING:
    import httpx

TIMEOUT = 30.0
MAX_REDIRECTIONS = 5
RETRIED = (408, 425, 429)
"""Statuses below 500 after which a request is repeated."""
_REDIRECTED = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class WebAddress:
    """An HTTP or WebSocket URL in parts."""

    url: str
    """The URL that is requested, without user, password and options."""
    parts: Address
    headers: Mapping[str, str]
    """The authorization, if there is one."""
    trusted: ssl.SSLContext | None
    """A context that trusts the authorities of the option `ca`; None without it."""

    @property
    def shown(self) -> str:
        """The URL in messages."""
        return redacted(self.url)


def web_address(url: str, options: Sequence[str]) -> WebAddress:
    """The parts of a URL whose options are in its fragment; all have `token-env` and `ca`.

    Raises:
        SpaseqError: for a URL without a host, an unknown option, a missing variable or file.
    """
    found = address(url, (*options, "token-env", "ca"), in_fragment=True)
    parts = urlsplit(url)
    _, _, host = parts.netloc.rpartition("@")
    headers: dict[str, str] = {}
    variable = found.options.get("token-env")
    if variable is not None:
        headers["Authorization"] = f"Bearer {secret(found.shown, variable)}"
    elif found.user is not None:
        from base64 import b64encode

        pair = f"{found.user}:{found.password or ''}".encode()
        headers["Authorization"] = f"Basic {b64encode(pair).decode()}"
    plain = urlunsplit(parts._replace(netloc=host, fragment=""))
    return WebAddress(plain, found, headers, trusted(found))


def http_client(
    found: WebAddress, timeout: float = TIMEOUT, read: float | None = None
) -> httpx.Client:
    """A client that follows no redirection by itself; `read`: seconds between two reads."""
    import httpx

    return httpx.Client(
        verify=found.trusted or default_trust(),
        timeout=httpx.Timeout(timeout, read=read or timeout),
        follow_redirects=False,
        headers={"User-Agent": "spaseq"},
    )


@contextmanager
def opened(
    http: Any,
    url: str,
    headers: Mapping[str, str],
    authorization: Mapping[str, str],
    linked: str | None = None,
) -> Iterator[tuple[httpx.Response, str]]:
    """The response to a GET, after redirections, and its URL; its body has not been read.

    Args:
        http: The client.
        url: The URL.
        headers: Headers for every host.
        authorization: Headers for the host of the URL only.
        linked: The URL of the page that led to this one; it is treated as a redirection from there.

    Raises:
        InputError: for a redirection that is not followed.
        httpx.HTTPError: if there is no response.
    """
    at, place = url, None if linked is None else check_redirection(linked, url)
    for _ in range(MAX_REDIRECTIONS + 1):
        own = authorization if _origin(at) == _origin(url) else {}
        request = _request(http, at, place, {**headers, **own})
        response = http.send(request, stream=True)
        try:
            target = response.headers.get("location")
            if response.status_code not in _REDIRECTED or target is None:
                yield response, at
                return
            there = urljoin(at, target)
        finally:
            response.close()
        place = check_redirection(at, there) or (place if _origin(at) == _origin(there) else None)
        at = there
    raise InputError(f"more than {MAX_REDIRECTIONS} redirections", redacted(url))


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _request(http: Any, url: str, place: str | None, headers: Mapping[str, str]) -> httpx.Request:
    """A GET of a URL, sent to an address if one is given.

    The host name is that of the URL, also when the server's certificate is checked.
    """
    parts = urlsplit(url)
    if place is None or parts.hostname is None:
        return http.build_request("GET", url, headers=headers)  # type: ignore[no-any-return]
    host = f"[{place}]" if ":" in place else place
    netloc = host if parts.port is None else f"{host}:{parts.port}"
    return http.build_request(  # type: ignore[no-any-return]
        "GET",
        urlunsplit(parts._replace(netloc=netloc)),
        headers={**headers, "Host": parts.netloc.rpartition("@")[2]},
        extensions={"sni_hostname": parts.hostname},
    )


def refusal(response: Any, shown: str) -> InputError | None:
    """The error of a response after which a retry is useless."""
    status = response.status_code
    if status < 400 or status >= 500 or status in RETRIED:
        return None
    return InputError(f"it answered {status} {response.reason_phrase}", shown)

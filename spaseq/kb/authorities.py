"""The authorities whose certificates connections trust unless an address names others."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


def default_trust() -> ssl.SSLContext:
    """A context that trusts the default authorities of httpx; all clients share it.

    Reading the authorities takes tens of milliseconds. httpx would spend them for each client, even
    of a server without TLS. The environment variables are those that httpx reads.
    """
    return _read(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _read(file: str | None, folder: str | None) -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()

"""HTTP to public addresses only, whatever a host name resolves to.

A name is resolved once for each request, and the connection is made to an address that was checked.
If the name were resolved again, the result could be different (DNS rebinding).
"""

from __future__ import annotations

import httpx

from spaseq.kb.authorities import default_trust
from spaseq.kb.public_hosts import is_address, public_address


class PublicTransport(httpx.BaseTransport):
    """Sends requests to hosts with public addresses, and to hosts that are written as an address.

    The request keeps the name of the host, and the server's certificate is checked against this
    name.
    """

    def __init__(self) -> None:
        self._inner = httpx.HTTPTransport(verify=default_trust())

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        if not is_address(host):
            place = public_address(host)
            if place is None:
                raise httpx.ConnectError(f"{host} has no address, or a private one")
            request = httpx.Request(
                request.method,
                request.url.copy_with(host=place),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()

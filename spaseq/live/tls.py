"""TLS: the authorities that a connection trusts, and the message for an untrusted certificate.

The option `ca` of a URL names a file with the certificates of the authorities. Without it, the
client library's authorities are used, which are usually those of the system. A certificate that is
not trusted ends the run, because reconnecting would not help.
"""

from __future__ import annotations

import ssl

from spaseq.errors import SpaseqError
from spaseq.live.addresses import Address

SECURE_SCHEMES = ("https", "wss", "mqtts", "rediss", "nats", "kafka")
"""Schemes that take `ca`; NATS and Kafka have one scheme for connections with and without TLS."""
AUTHORITY = "the option ca=FILE names the authority that has signed it"
_NOT_THE_AUTHORITY = (9, 10, 62, 64)
"""OpenSSL's codes for a certificate with another validity period, host name or address."""


def trusted(found: Address) -> ssl.SSLContext | None:
    """A context that trusts the authorities of `ca`; None without this option.

    Raises:
        SpaseqError: if the file has no certificates, or if the connection is one without TLS.
    """
    path = found.options.get("ca")
    if path is None:
        return None
    if found.scheme not in SECURE_SCHEMES:
        raise SpaseqError(
            f"{found.shown}: ca is for connections with TLS: write {found.scheme}s://"
        )
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:  # errors of TLS are of this class, too
        said = "it has no certificates" if isinstance(error, ssl.SSLError) else error.strerror
        raise SpaseqError(f"{found.shown}: ca={path} cannot be read: {said}") from error


def untrusted(error: BaseException | None) -> str | None:
    """The message for an error whose cause is an untrusted certificate; None for other errors."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            said = f"the certificate of the server is not trusted: {error.verify_message}"
            if error.verify_code in _NOT_THE_AUTHORITY:
                return said
            return f"{said} ({AUTHORITY})"
        error = error.__cause__ or error.__context__
    return None

"""URLs of brokers and channels: their options, secrets and clients.

A URL may contain a password. `redacted` removes it, and its result is used wherever a URL occurs in
a message, a log or the state. A password may also be in an environment variable, which the option
`password-env` names.

The options of brokers and databases are in the query of the URL. The query of an HTTP or WebSocket
URL belongs to its server, so the options of such a URL are in the fragment, which is never sent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from spaseq.errors import SpaseqError
from spaseq.records import dataclass

_USERINFO = re.compile(r"(?<![a-z0-9+.-])([a-z][a-z0-9+.-]*://)([^/?#\s]*)@", re.IGNORECASE)
_SECRET = re.compile(
    r"([?&#;][^=&#;]*(?:password|passwd|secret|token|signature|api[-_]?key|access[-_]?key|auth"
    r"|(?<=[?&#;])key(?==))(?!-env)[^=&#;]*=)([^&#;\s]+)",
    re.IGNORECASE,
)


def redacted(text: str, placeholder: str = "") -> str:
    """A text whose URLs have no passwords and no values of parameters that name secrets.

    Args:
        text: A URL, or a text with URLs.
        placeholder: The prefix of the names of variables, which remain; empty: there are none.
    """

    def stays(value: str) -> bool:
        return bool(placeholder) and placeholder in value

    def without_password(found: re.Match[str]) -> str:
        user, colon, password = found[2].partition(":")
        return found[0] if stays(password) else f"{found[1]}{user}{colon and ':***'}@"

    def without_value(found: re.Match[str]) -> str:
        name = found[1][1:].lower()
        # The key of a Kafka record is made of variables of the query.
        is_plain = name.endswith("-env=") or (name == "key=" and "kafka:" in text.lower())
        return found[0] if is_plain or stays(found[2]) else f"{found[1]}***"

    return _SECRET.sub(without_value, _USERINFO.sub(without_password, text))


@dataclass(frozen=True, slots=True)
class Address:
    """A URL of a broker, channel or database, in parts."""

    shown: str
    """The URL without secrets, for messages."""
    scheme: str
    hosts: str
    """`host:port`, or several with commas."""
    path: str
    """The decoded path without its first slash."""
    user: str | None
    password: str | None
    options: Mapping[str, str]

    def choice(self, name: str, known: Sequence[str]) -> str:
        """The value of an option that is one of `known`; the first is the default.

        Raises:
            SpaseqError: for another value.
        """
        value = self.options.get(name, known[0])
        if value not in known:
            raise SpaseqError(f"{self.shown}: {name} is {' or '.join(known)}, not {value!r}")
        return value

    def number(self, name: str, default: float, least: float = 0.0) -> float:
        """The value of an option that is a number.

        Raises:
            SpaseqError: if it is not a number, or is less than `least`.
        """
        text = self.options.get(name)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not least <= value < float("inf"):
            raise SpaseqError(f"{self.shown}: {name} is a number from {least:g}, not {text!r}")
        return value


def address(url: str, options: Sequence[str], in_fragment: bool = False) -> Address:
    """The parts of a URL.

    Args:
        url: The URL.
        options: The names of its options; all have `password-env`.
        in_fragment: Whether the options are in the fragment.

    Raises:
        SpaseqError: for a URL without a host, an unknown option or a missing variable.
    """
    shown = redacted(url)
    try:
        parts = urlsplit(url)
        given = dict(
            parse_qsl(
                parts.fragment if in_fragment else parts.query,
                keep_blank_values=True,
                strict_parsing=bool(parts.fragment if in_fragment else parts.query),
            )
        )
    except ValueError as error:
        raise SpaseqError(f"{shown}: it is not a URL: {error}") from error
    userinfo, _, hosts = parts.netloc.rpartition("@")
    user, _, password = userinfo.partition(":")
    if not hosts:
        raise SpaseqError(f"{shown}: it names no host")
    unknown = given.keys() - {*options, "password-env"}
    if unknown:
        known = ", ".join(sorted({*options, "password-env"}))
        raise SpaseqError(f"{shown}: there is no option {min(unknown)} (known are {known})")
    variable = given.pop("password-env", None)
    return Address(
        shown,
        parts.scheme.lower(),
        hosts,
        unquote(parts.path.lstrip("/")),
        unquote(user) or None,
        (unquote(password) or None) if variable is None else secret(shown, variable),
        given,
    )


def secret(shown: str, variable: str) -> str:
    """The value of an environment variable that a URL names.

    Raises:
        SpaseqError: if it is not set.
    """
    value = os.environ.get(variable)
    if not value:
        raise SpaseqError(f"{shown}: the environment variable {variable} is not set")
    return value


def client(module: str, package: str, extra: str, scheme: str) -> Any:
    """The module of a client library.

    Raises:
        SpaseqError: if it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise SpaseqError(
            f"{scheme}: URLs need the package {package}: pip install 'spaseq[{extra}]' ({error})"
        ) from error

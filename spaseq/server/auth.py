"""Authorization: tokens with roles, origins, and the names that the server answers to.

A role is `read`, `ingest` (push events and watermarks) or `manage` (everything). Without tokens,
the server listens on loopback only, and every client there has all roles. Changes to queries and to
the knowledge base, and checkpoints, need `--manage` in any case.

A page of another origin that is open in a browser on this machine must not reach the server.
Without tokens, the `Host` must therefore be a loopback name (so the name of another site that
resolves to 127.0.0.1 is refused), and an `Origin` must be that of the server or an allowed one.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from hashlib import sha256
from typing import Literal, TypeAlias, cast, get_args
from urllib.parse import urlsplit

from spaseq.errors import SpaseqError
from spaseq.records import dataclass
from spaseq.server.problems import Problem

Role: TypeAlias = Literal["read", "ingest", "manage"]
VARIABLE = "SPASEQ_TOKENS"
MIN_TOKEN = 16
"""The shortest token: 16 characters."""
PROTOCOL = "spaseq-bearer."
"""The prefix of the WebSocket subprotocol that contains the token of a browser."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token as its digest."""

    name: str
    roles: frozenset[Role]
    digest: bytes


@dataclass(frozen=True, slots=True)
class Access:
    """The rules.

    Args:
        tokens: The tokens; if there are none, every client that can connect has all roles.
        manages: Whether changing verbs are allowed (`--manage`).
        origins: Further origins whose pages may use the server.
        hosts: The names that the server answers to; None: any.
    """

    tokens: Sequence[Token] = ()
    manages: bool = False
    origins: frozenset[str] = frozenset()
    hosts: frozenset[str] | None = field(default=None)

    def check(self, role: Role, headers: Mapping[str, str]) -> str:
        """Allow a request; returns the name of its token, or `anonymous`.

        Raises:
            Problem: 401 or 403 with the reason.
        """
        self.check_origin(headers)
        name = "anonymous"
        if self.tokens:
            token = self._known(_presented(headers))
            if token is None:
                raise Problem(
                    401, "a bearer token is needed", "token", {"WWW-Authenticate": "Bearer"}
                )
            if role not in token.roles:
                raise Problem(403, f"the token has no role {role}", "role")
            name = token.name
        if role == "manage" and not self.manages:
            raise Problem(403, "the server was started without --manage", "manage")
        return name

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Refuse pages of other sites, and host names that are not the server's."""
        host = headers.get("host", "")
        if self.hosts is not None and _name(host) not in self.hosts:
            raise Problem(403, "the server does not answer to this Host", "host")
        origin = headers.get("origin")
        if origin is None or origin in self.origins:
            return
        if urlsplit(origin).netloc.lower() != host.lower():
            raise Problem(403, "pages of other origins are not allowed (--allow-origin)", "origin")

    def _known(self, presented: str) -> Token | None:
        digest = sha256(presented.encode("utf-8", "surrogateescape")).digest()
        found = None
        for token in self.tokens:  # compare all, so that the time does not reveal a similar token
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found


def _presented(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    for protocol in headers.get("sec-websocket-protocol", "").split(","):
        if protocol.strip().startswith(PROTOCOL):
            return protocol.strip().removeprefix(PROTOCOL)
    return ""


def _name(host: str) -> str:
    """The name in a Host header, without the port."""
    return host.rsplit(":", 1)[0].lower() if not host.endswith("]") else host.lower()


def read_tokens(file: str | None, environment: Mapping[str, str] | None = None) -> list[Token]:
    """The tokens of a file and of the environment variable `SPASEQ_TOKENS`.

    A line is `NAME ROLE[,ROLE] TOKEN`; in the variable, `;` also ends a line.

    Raises:
        SpaseqError: for a file that cannot be read or that others can read, and for a wrong line.
    """
    environment = os.environ if environment is None else environment
    found = _parsed(environment.get(VARIABLE, "").replace(";", "\n").splitlines(), VARIABLE)
    if file is not None:
        try:
            with open(file, encoding="utf-8") as lines:
                others = os.fstat(lines.fileno()).st_mode & _bits_of_others(file, environment)
                if os.name == "posix" and others:
                    raise SpaseqError(f"{file}: others can read it: chmod 600 {file}")
                found += _parsed(lines, file)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SpaseqError(f"{file}: cannot be read: {reason}") from error
    return found


def _bits_of_others(file: str, environment: Mapping[str, str]) -> int:
    """The bits of a file's mode that let others read it.

    A credential of systemd belongs to root, and an access control list lets the service read it;
    the mode shows that as a right of the group.
    """
    folder = environment.get("CREDENTIALS_DIRECTORY")
    return 0o037 if folder is not None and os.path.dirname(file) == folder else 0o077


def _parsed(lines: Iterable[str], where: str) -> list[Token]:
    found = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        place = f"{where}, line {number}"
        if len(words) != 3:
            raise SpaseqError(f"{place}: write NAME ROLE[,ROLE] TOKEN")
        name, roles, token = words
        unknown = set(roles.split(",")) - set(get_args(Role))
        if unknown:
            raise SpaseqError(f"{place}: a role is read, ingest or manage, not {min(unknown)}")
        if len(token) < MIN_TOKEN:
            raise SpaseqError(f"{place}: the token has less than {MIN_TOKEN} characters")
        granted = set(roles.split(","))
        if "manage" in granted:
            granted = set(get_args(Role))
        digest = sha256(token.encode()).digest()
        found.append(Token(name, frozenset(cast("set[Role]", granted)), digest))
    return found


LOOPBACK_NAMES = frozenset(("localhost", "127.0.0.1", "[::1]"))
"""The names of a server that listens on loopback."""

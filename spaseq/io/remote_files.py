"""Finished files by URL: `s3:`, `gs:`, `az:`, `hdfs:`, `http:` and `https:`, through fsspec.

Files are read from beginning to end, and written as new files. An HTTP URL is a finished file if
the extension of its path names a syntax; otherwise the live stage reads it as a stream of events.
Credentials and endpoints come from the configuration of the file systems, for example
`AWS_PROFILE`, or `FSSPEC_S3_ENDPOINT_URL`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from datetime import datetime
from importlib import import_module
from typing import IO, Any, BinaryIO, cast
from urllib.parse import urljoin, urlsplit

from spaseq.errors import InputError, SpaseqError
from spaseq.io.redirections import shown_url
from spaseq.kb.public_hosts import are_public

_EXTRAS = {
    "s3": ("s3fs", "s3"),
    "s3a": ("s3fs", "s3"),
    "gs": ("gcsfs", "gs"),
    "gcs": ("gcsfs", "gs"),
    "az": ("adlfs", "azure"),
    "abfs": ("adlfs", "azure"),
    "abfss": ("adlfs", "azure"),
    "hdfs": ("pyarrow", "hdfs"),
    "http": ("aiohttp", "http"),
    "https": ("aiohttp", "http"),
}
"""Scheme → (the module that fsspec needs, the extra that installs it)."""
_SCHEME = re.compile(r"([a-z][a-z0-9]+)://", re.IGNORECASE)
_BUFFER = 1 << 20


def is_remote_file(path: str) -> bool:
    """Whether a path is the URL of a finished file."""
    scheme = _scheme(path)
    if scheme not in ("http", "https"):
        return scheme in _EXTRAS
    from spaseq.io.recognition import extension_syntax

    return extension_syntax(urlsplit(path).path) is not None


def _scheme(path: str) -> str:
    found = _SCHEME.match(path)
    return "" if found is None else found[1].lower()


def open_remote(path: str) -> IO[bytes]:
    """A file to be read once, from its beginning.

    Raises:
        InputError: if it cannot be opened.
        SpaseqError: without the package of its file system.
    """
    shown = shown_url(path)
    system, name = file_system(path)
    try:
        if _scheme(path) in ("http", "https"):
            return _Buffered(system.open(name, "rb", block_size=0))
        return _Buffered(system.open(name, "rb", cache_type="readahead"))
    except Exception as error:  # each file system raises different errors
        if isinstance(error.__cause__, InputError):
            raise error.__cause__ from error
        raise InputError(f"cannot be read: {_said(error)}", shown) from error


def list_remote(path: str, recursive: bool = False) -> dict[str, float]:
    """The URLs of the files at a URL: the file itself, those in a folder, or those of a pattern.

    Each comes with the time of its last change in seconds, which is 0 if it is not known.

    Raises:
        InputError: if the file system does not answer.
        SpaseqError: without the package of the file system.
    """
    system, name = file_system(path)
    try:
        system.invalidate_cache()
        if any(mark in name for mark in "*?["):
            known = name.partition("*")[0].partition("?")[0].partition("[")[0].rpartition("/")[0]
            found = system.glob(name, detail=True)
        elif _scheme(path) in ("http", "https") or system.isfile(name):
            return {path: 0.0}
        else:
            known = name.rstrip("/")
            if recursive:
                found = system.find(name, detail=True)
            else:
                found = {info["name"]: info for info in system.ls(name, detail=True)}
    except FileNotFoundError:
        return {}
    except Exception as error:  # each file system raises different errors
        raise InputError(f"cannot be read: {_said(error)}", shown_url(path)) from error
    # A name lacks other parts of the URL, such as the account.
    base = path.rstrip("/")[: len(path.rstrip("/")) - len(name.rstrip("/")) + len(known)]
    return {
        base + other[len(known) :]: _changed(info)
        for other, info in found.items()
        if info.get("type") == "file"
    }


def _changed(info: dict[str, Any]) -> float:
    """The time when a file was last changed, under the names that file systems use for it."""
    for name in ("mtime", "LastModified", "last_modified", "updated"):
        value = info.get(name)
        if isinstance(value, int | float):
            return float(value)
        if isinstance(value, datetime):
            return value.timestamp()
    return 0.0


def create_remote(path: str) -> BinaryIO:
    """A file to be written, which exists when it is closed.

    Raises:
        SpaseqError: if it cannot be written, or without the package of its file system.
    """
    system, name = file_system(path)
    try:
        return cast(BinaryIO, system.open(name, "wb"))
    except Exception as error:  # each file system raises different errors
        raise SpaseqError(f"{shown_url(path)}: cannot be written: {_said(error)}") from error


def file_system(path: str) -> tuple[Any, str]:
    """The file system of a URL, and the name that the file has there.

    Raises:
        SpaseqError: without the package of the file system.
    """
    scheme = _scheme(path)
    module, extra = _EXTRAS[scheme]
    try:
        core = import_module("fsspec.core")
        import_module(module)
    except ImportError as error:
        raise SpaseqError(
            f"{scheme}: URLs of files need the packages fsspec and {module}: pip install "
            f"'spaseq[{extra}]' ({error})"
        ) from error
    options: dict[str, Any] = {}
    if scheme in ("http", "https"):
        options["client_kwargs"] = {"trace_configs": [_watched_redirections()]}
        options["get_client"] = _client_for(urlsplit(path).hostname or "")
    try:
        system, name = core.url_to_fs(path, **options)
    except Exception as error:  # each file system raises different errors
        raise SpaseqError(f"{shown_url(path)}: {_said(error)}") from error
    return system, name


def _watched_redirections() -> Any:
    """Refuses the redirections that sources of events do not follow either."""
    from aiohttp import TraceConfig

    from spaseq.io.redirections import check_redirection

    async def check(session: Any, context: Any, parameters: Any) -> None:
        url = str(parameters.url)
        check_redirection(url, urljoin(url, parameters.response.headers.get("Location", "")))

    config = TraceConfig()
    config.on_request_redirect.append(check)
    return config


def _client_for(own: str) -> Callable[..., Any]:
    """Makes the sessions of a file on the host `own`. Other hosts, which redirections name, are
    reached at the addresses checked here.
    """
    from aiohttp import ClientSession, DefaultResolver, TCPConnector
    from aiohttp.abc import AbstractResolver

    class PublicResolver(AbstractResolver):
        """Resolves the names of other hosts to public addresses only."""

        def __init__(self) -> None:
            self._inner = DefaultResolver()

        async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[Any]:
            found = await self._inner.resolve(host, port, family)
            if host != own and not are_public(place["host"] for place in found):
                raise OSError(None, f"{host} has a private address")
            return found

        async def close(self) -> None:
            await self._inner.close()

    async def session(**options: Any) -> Any:
        return ClientSession(connector=TCPConnector(resolver=PublicResolver()), **options)

    return session


def _said(error: BaseException) -> str:
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and (
        hasattr(cause, "status") or isinstance(cause, OSError)
    ):
        return _said(cast(BaseException, cause))  # fsspec's message for any failure of HTTP
    status = getattr(error, "status", None)
    if isinstance(error, FileNotFoundError) or status in (404, 410):
        return "there is no such file"
    if isinstance(status, int):
        return f"the server answers with status {status}"
    if isinstance(error, PermissionError):
        return "the access is denied"
    return " ".join(str(error).split()) or type(error).__name__


class _Raw(io.RawIOBase):
    """A file of fsspec, whose errors become those of the operating system."""

    def __init__(self, file: Any):
        self._file = file
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except Exception as error:  # each file system raises different errors
            raise OSError(5, _said(error)) from error
        buffer[: len(data)] = data
        self._read += len(data)
        return len(data)

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        """How many bytes have been read."""
        return self._read

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _Buffered(io.BufferedReader):
    """A file of fsspec with a buffer, so that its first bytes can be inspected."""

    is_finished = True
    """The file does not grow, so readers need not pass on its bytes before the next ones arrive."""

    def __init__(self, file: Any):
        super().__init__(_Raw(file), _BUFFER)

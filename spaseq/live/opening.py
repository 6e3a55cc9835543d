"""Paths and URLs of one stream → its source."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from spaseq.errors import SpaseqError
from spaseq.io.remote_files import is_remote_file
from spaseq.live import registry
from spaseq.live.addresses import redacted
from spaseq.live.follow import Folder, FollowedFiles, Listed, Pipe
from spaseq.live.protocols import Source
from spaseq.live.remote_file import RemoteFile


def opened_source(
    stream: str, urls: Sequence[str], log: Callable[[str], None], follows: bool
) -> Source:
    """The source of a stream, which `Source.open` connects.

    Args:
        stream: The stream, for messages.
        urls: Its paths or URLs; several are possible for files only.
        log: Reports what happens to the source.
        follows: Whether files and folders may grow.

    Raises:
        SpaseqError: if the source cannot be opened, or several cannot be used together.
    """
    special = [url for url in urls if _is_special(url)]
    if special and len(urls) > 1:
        raise SpaseqError(
            f"the stream <{stream}> has {redacted(special[0])} and other sources; only files can "
            "be read one after the other"
        )
    url = urls[0]
    if registry.is_url(url, "sources"):
        return registry.open_source(url, log)
    if is_remote_file(url):
        return RemoteFile(url)
    if url == "-" or _is_pipe(url):
        return Pipe(url)
    if os.path.isdir(url):
        return FollowedFiles(Folder(url), log, follows)
    return FollowedFiles(Listed(urls), log, follows)


def _is_special(url: str) -> bool:
    return (
        url == "-"
        or registry.is_url(url, "sources")
        or is_remote_file(url)
        or _is_pipe(url)
        or os.path.isdir(url)
    )


def _is_pipe(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)

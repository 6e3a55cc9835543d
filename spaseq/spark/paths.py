"""The files of the data sources: paths, folders, patterns, and URLs of file systems.

A local path is valid on every worker. Other file systems (`s3:`, `s3a:`, `gs:`, `abfss:`, `hdfs:`)
are reached through fsspec (spaseq/io/remote_files.py).
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable
from typing import IO, Any, cast

from spaseq.errors import SpaseqError
from spaseq.io.remote_files import file_system, is_remote_file, list_remote


def given_path(path: str) -> str:
    """A path or URL in the form used internally; `file:` is a local path.

    Raises:
        SpaseqError: for a URL of an unknown scheme.
    """
    if path.startswith("file:"):
        return path.removeprefix("file:").replace("///", "/", 1)
    if "://" in path and not is_remote_file(path):
        raise SpaseqError(
            f"{path} is neither a path nor a URL of a known file system: s3, s3a, gs, gcs, az, "
            "abfs, abfss or hdfs"
        )
    return path


def files_at(
    paths: Iterable[str], recursive: bool, is_data: Callable[[str], bool]
) -> tuple[str, ...]:
    """The files at paths, by the time of their last change and then by name.

    The path of a file is that file, whatever its name. In a folder or pattern, hidden files (`.`,
    `_`) and files that `is_data` does not accept are omitted.
    """
    found: dict[str, float] = {}
    for path in paths:
        listed = list_remote(path, recursive) if "://" in path else _local(path, recursive)
        if list(listed) == [path]:
            found |= listed
        else:
            found |= {name: changed for name, changed in listed.items() if _is_shown(path, name)}
            found = {name: changed for name, changed in found.items() if is_data(name)}
    return tuple(sorted(found, key=lambda name: (found[name], name)))


def _local(path: str, recursive: bool) -> dict[str, float]:
    if os.path.isfile(path):
        names = [path]
    elif not os.path.isdir(path):
        names = [name for name in glob.glob(path) if os.path.isfile(name)]
    elif recursive:
        names = [os.path.join(where, name) for where, _, some in os.walk(path) for name in some]
    else:
        names = [entry.path for entry in os.scandir(path) if entry.is_file()]
    return {name: os.stat(name).st_mtime_ns / 1e9 for name in names}


def _is_shown(path: str, name: str) -> bool:
    """Whether no part of a name below a folder is hidden."""
    below = name[len(path) :] if name.startswith(path) else os.path.basename(name)
    return not any(part.startswith((".", "_")) for part in below.split("/"))


def size_of(path: str) -> int:
    """The size of a local file in bytes; 0 for other files, which are read as a whole."""
    return 0 if "://" in path else os.path.getsize(path)


class Folder:
    """A folder that files are written to, local or by URL."""

    def __init__(self, path: str):
        self.path = path
        self._is_remote = "://" in path

    def create(self) -> None:
        """Create the folder, if it does not exist."""
        if self._is_remote:
            system, name = file_system(self.path)
            system.makedirs(name, exist_ok=True)
        else:
            os.makedirs(self.path, exist_ok=True)

    def open(self, name: str) -> IO[bytes]:
        """A new file of the folder."""
        if self._is_remote:
            system, where = self._at(name)
            return cast(IO[bytes], system.open(where, "wb"))
        return open(os.path.join(self.path, name), "wb")

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, and replace a file of that name."""
        if self._is_remote:
            system, source = self._at(old)
            system.mv(source, self._at(new)[1])
        else:
            os.replace(os.path.join(self.path, old), os.path.join(self.path, new))

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        try:
            if self._is_remote:
                system, where = self._at(name)
                system.rm_file(where)
            else:
                os.remove(os.path.join(self.path, name))
        except FileNotFoundError:
            pass

    def names(self) -> list[str]:
        """The names in the folder."""
        if self._is_remote:
            system, name = file_system(self.path)
            system.invalidate_cache()
            return [found.rpartition("/")[2] for found in system.ls(name, detail=False)]
        return os.listdir(self.path)

    def _at(self, name: str) -> tuple[Any, str]:
        system, folder = file_system(self.path)
        return system, f"{folder.rstrip('/')}/{name}"

"""The features of the operating system that live runs need, and the error if they are missing."""

from __future__ import annotations

import os

from spaseq.errors import SpaseqError


def require_posix(what: str) -> None:
    """Raise an error if files cannot be read by position, as on Windows.

    Live runs also lock and sync folders and open pipes without waiting, which Windows lacks too.

    Raises:
        SpaseqError: if the operating system is not a POSIX system.
    """
    if not hasattr(os, "pread"):
        raise SpaseqError(f"{what} needs Linux or macOS; on Windows, use WSL")

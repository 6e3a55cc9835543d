"""RDF files → quads, with errors that name file and line."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import pyoxigraph as ox

from spaseq.errors import KbError


def read_quads(path: Path) -> Iterator[ox.Quad]:
    """The quads of a file, by its extension; `.gz` is unpacked on the way."""
    packed = path.suffix == ".gz"
    extension = (path.with_suffix("") if packed else path).suffix.removeprefix(".")
    form = ox.RdfFormat.from_extension(extension)
    if form is None:
        raise KbError(
            f"{path}: no RDF format has the extension {extension!r}; name the file "
            ".ttl, .nt, .nq, .trig, .rdf, .jsonld or .n3, with .gz after it if it is packed"
        )
    try:
        with _open(path, packed) as file:
            yield from ox.parse(file, format=form, base_iri=path.resolve().as_uri())
    except SyntaxError as error:
        where = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise KbError(f"{where}: {error.msg}") from None
    except (OSError, EOFError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise KbError(f"{path}: cannot be read: {reason}") from None


def _open(path: Path, packed: bool) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if packed else path.open("rb")

"""The bytes of saved state: a header, compressed JSON and a checksum.

A blob is, in this order: `MAGIC`; the version of the format (2 bytes, big-endian, as all numbers
here); the text, which is JSON, as one zlib stream; the size of the text in bytes (8); BLAKE2b-128
of all that (16).

The checksum detects damage, not malice; readers check the content. The size of the text bounds
memory before unpacking: it may be at most `MAX_EXPANSION` times the compressed size, and unpacking
stops at the declared size.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from spaseq.errors import StateError

MAGIC = b"spaseq-run\0"
VERSION = 6
MAX_EXPANSION = 32
"""The greatest ratio of text to compressed bytes; a text with a greater one is stored."""
_LEVEL = 1
"""A third of the time of the default level, for a few percent more bytes."""
_SIZE, _DIGEST = 8, 16
_HEAD, _TAIL = len(MAGIC) + 2, _SIZE + _DIGEST


def seal(data: Any) -> bytes:
    """A blob with JSON-able data."""
    written = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    # Names of files may contain surrogates.
    text = written.encode("utf-8", "surrogatepass")
    body = zlib.compress(text, _LEVEL)
    if len(text) > MAX_EXPANSION * len(body):
        body = zlib.compress(text, 0)
    blob = MAGIC + VERSION.to_bytes(2, "big") + body + len(text).to_bytes(_SIZE, "big")
    return blob + _checksum(blob)


def unseal(blob: bytes) -> Any:
    """The data of a blob.

    Raises:
        StateError: if it is damaged, or of another version.
    """
    if blob[: len(MAGIC)] != MAGIC:
        raise StateError("this is not the saved state of a run")
    version = int.from_bytes(blob[len(MAGIC) : _HEAD], "big")
    if version != VERSION:
        raise StateError(
            f"the saved state has format version {version}, this spaseq reads {VERSION}: "
            "resume it with the version that saved it, or replay the window"
        )
    view = memoryview(blob)
    if len(blob) < _HEAD + _TAIL or _checksum(view[:-_DIGEST]) != blob[-_DIGEST:]:
        raise StateError(
            "the saved state is damaged: it is cut off or its bytes have changed, for its "
            "checksum is another one. Resume an earlier state, or replay the window"
        )
    size = int.from_bytes(view[-_TAIL:-_DIGEST], "big")
    try:
        return json.loads(_unpacked(view[_HEAD:-_TAIL], size))
    except (zlib.error, ValueError, RecursionError) as error:
        raise StateError(f"the saved state is damaged: {error}") from error


def _checksum(data: bytes | memoryview) -> bytes:
    from hashlib import blake2b  # imported here, since it loads OpenSSL

    return blake2b(data, digest_size=_DIGEST).digest()


def _unpacked(body: memoryview, size: int) -> bytes:
    """The text of a body; unpacks at most `size` bytes.

    Raises:
        ValueError, zlib.error: if the body is damaged or has another size.
    """
    if size > MAX_EXPANSION * len(body):
        raise ValueError(f"{len(body)} bytes are too few for a text of {size}")
    unpacking = zlib.decompressobj()
    # One byte more than declared: 0 would mean no bound.
    text = unpacking.decompress(body, size + 1)
    if len(text) != size or not unpacking.eof or unpacking.unused_data:
        raise ValueError(f"its text does not have the {size} bytes that it should have")
    return text

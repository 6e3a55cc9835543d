"""The syntax of a file: from an option, otherwise from its content, otherwise from its extension.

The content decides if it is unambiguous: `StreamSyntax.begins` matches the beginning of no other
syntax. It then overrules an extension that it contradicts. Otherwise the extension decides; a file
without a known extension must look like TriG, which includes Turtle.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from spaseq.errors import InputError
from spaseq.io.formats import STREAM_SYNTAXES, StreamSyntax, stream_syntax
from spaseq.rdf.compression import COMPRESSIONS, without_compression
from spaseq.rdf.formats import TRIG, one_of
from spaseq.records import dataclass

if TYPE_CHECKING:
    from spaseq.io.lines import Lines

START_BYTES = 4096
"""The bytes at the beginning of a file that are compared."""
GENERIC_EXTENSIONS = frozenset({"json", "txt", "xml"})
"""Extensions that several formats have, which do not decide."""
_SKIPPED = re.compile(
    rb"(?:\s+|#[^\n]*(?:\n|\Z)|(?:VERSION|@version)\b[^\n]*\n|MESSAGE\s*\n)*", re.I
)
_TURTLE = re.compile(
    rb"(?:<[^<>\"{}|^`\\\s]*>|_:\w|[^\W\d_][\w.-]*:|:\w*\s|[\[({]"
    rb"|(?:@version|version|graph|message)\b)",
    re.IGNORECASE,
)
_OTHERS = (
    (re.compile(rb"<!DOCTYPE\s+html|<html\b", re.IGNORECASE), "HTML"),
    (re.compile(rb"PK\x03\x04"), "a zip archive"),
    (re.compile(rb"%PDF-"), "PDF"),
    (re.compile(rb"\xd0\xcf\x11\xe0"), "an office document"),
    (re.compile(rb"[^\n]*\x00"), "binary data"),
)


@dataclass(frozen=True, slots=True)
class Recognised:
    """The syntax of a file, and a text for messages on how it was recognised."""

    syntax: StreamSyntax
    note: str = ""
    """Empty if an option or the extension names the syntax."""


def extension_syntax(path: str) -> StreamSyntax | None:
    """The syntax that a file's extension names; None if the extension names no syntax."""
    if "://" in path:
        path = urlsplit(path).path
    name = without_compression(os.path.basename(path))
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    if extension in GENERIC_EXTENSIONS:
        return None
    for known in STREAM_SYNTAXES.values():
        if extension in known.syntax.extensions:
            return known
    return None


def recognised(lines: Lines, path: str, named: str | None = None) -> Recognised:
    """The syntax of an open file; `named` is the name that an option gives.

    Raises:
        InputError: for a file that is in no known syntax.
        SpaseqError: for an unknown name.
    """
    if named is not None:
        return Recognised(stream_syntax(named))
    by_name = extension_syntax(path)
    start = lines.start(START_BYTES)
    by_content = content_syntax(start, lines.is_live)
    is_text = not any(known is not None and known.binary for known in (by_name, by_content))
    if is_text and is_undecided(start):
        # The first statement follows a long comment, or not enough has been written to a pipe.
        head = b"".join(lines.head())
        behind = b"" if lines.is_live else lines.start(START_BYTES)
        by_content = content_syntax(head + behind, lines.is_live)
    if by_name is not None:
        agrees = by_content is None or by_content.syntax.name in (
            by_name.syntax.name,
            *by_name.also,
        )
        return Recognised(by_name) if agrees else _by_content(by_content, lines, by_name)
    if by_content is None:
        by_content = _fallback(b"".join(lines.head()), path)
    return _by_content(by_content, lines, None)


def content_syntax(start: bytes, live: bool = False) -> StreamSyntax | None:
    """The syntax that the first bytes of a file certainly have, or None.

    `live`: the file may continue after `start` even if that is short.
    """
    text = start[_skipped(start) :]
    if live and text.startswith(b"{") and text.endswith(b"\n"):
        text += b"{"  # a pipe that has been written up to the end of a line is read line by line
    for known in STREAM_SYNTAXES.values():
        if known.begins is not None and known.begins.match(start if known.binary else text):
            return known
    return None


def _skipped(start: bytes) -> int:
    """The length of blanks, comments and declarations of versions."""
    found = _SKIPPED.match(start)
    return found.end() if found else 0


def is_undecided(start: bytes) -> bool:
    """Whether the first statement is not complete in these bytes."""
    return start.find(b"\n", _skipped(start)) < 0


def _by_content(
    syntax: StreamSyntax | None, lines: Lines, by_name: StreamSyntax | None
) -> Recognised:
    assert syntax is not None
    against = f", against its extension for {by_name.syntax.title}" if by_name else ""
    shown = "the input" if lines.is_standard else "the file"
    return Recognised(
        syntax,
        f"by its content{against}, {shown} was taken for {syntax.syntax.title} "
        "(--input-format names another syntax)",
    )


def _fallback(head: bytes, path: str) -> StreamSyntax:
    """TriG for content that may be TriG.

    Raises:
        InputError: for other content.
    """
    text = head[_skipped(head) :]
    if not text or (_TURTLE.match(text) and not any(form.match(text) for form, _ in _OTHERS)):
        return STREAM_SYNTAXES[TRIG.name]
    other = next((what for form, what in _OTHERS if form.match(text)), "")
    known = one_of([known.syntax.title for known in STREAM_SYNTAXES.values()])
    packed = one_of(list(COMPRESSIONS))
    reason = f" (its content looks like {other})" if other else ""
    raise InputError(
        f"neither the extension nor the content shows an RDF syntax{reason}; known are "
        f"{known}, also compressed with {packed} (--input-format names one)",
        path,
    )

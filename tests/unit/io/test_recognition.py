"""Files are recognised by content: compression, syntax, byte order mark. The name is second."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from jelly_writing import parsed, written
from reading import Reading, at, options, quad

from spaseq.errors import InputError
from spaseq.io.formats import STREAM_SYNTAXES
from spaseq.io.lines import Lines
from spaseq.io.recognition import content_syntax, extension_syntax, recognised
from spaseq.io.source import Source
from spaseq.rdf.compression import (
    COMPRESSIONS,
    Decompressed,
    DecompressionError,
    compression_of,
    decompressed,
    without_compression,
)

zstd = pytest.importorskip("backports.zstd" if sys.version_info < (3, 14) else "compression.zstd")
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstd.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}
TEXT = "".join(at(f"g{i}", i) + quad(f"g{i}", f'"{i:0900}"') for i in range(1000))


def test_each_compression_is_tested() -> None:
    assert PACK.keys() == COMPRESSIONS.keys()


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("name", ["s.nq", "s.nq.gz", "s.trig.xz", "s", "s.dat"])
def test_compressed_whatever_the_name(tmp_path: Path, kind: str, name: str) -> None:
    if name.startswith("s.trig"):
        text = "@prefix e: <e:> .\n" + at("a", 1) + "e:a { e:s e:p e:o }\n"
    else:
        text = at("a", 1) + quad("a")
    path = tmp_path / name
    path.write_bytes(PACK[kind](text.encode()))
    [event] = Source("urn:s", [str(path)], options())
    assert event.time.micros == 10**6


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("cut", [1, 7, 100, 1000])
def test_several_members_anywhere(kind: str, cut: int) -> None:
    """Members, of which some are empty, in reads of few bytes and of many."""
    data = TEXT.encode()[:5000]
    parts = [data[i : i + cut] for i in range(0, len(data), cut)] if cut > 7 else [data[:cut], data]
    packed = b"".join(PACK[kind](part) for part in (b"", *parts, b""))
    content = b"".join(parts)
    for size in (1, 3, 4096):
        file = Small(packed, size)
        read = Decompressed(file, COMPRESSIONS[kind], live=True)  # type: ignore[arg-type]
        assert read.read(len(content) + 1) == content
        assert read.read1(9) == b""


class Small(io.BytesIO):
    """A file whose reads return few bytes."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self.most = most

    def read1(self, size: int | None = -1) -> bytes:
        return super().read(self.most)


@pytest.mark.parametrize("kind", PACK)
def test_lines_and_blocks_of_compressed_files(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "s"
    data = TEXT.encode()
    path.write_bytes(
        b"".join(PACK[kind](data[i : i + 400_000]) for i in range(0, len(data), 400_000))
    )
    lines = Lines(str(path))
    assert (lines.compression, lines.is_live) == (kind, False)
    assert lines.head() == [data[: data.index(b"\n") + 1]]
    assert b"".join(block[a:b] for some in lines.pieces() for block, a, b in some) == data
    assert lines.position() == path.stat().st_size
    lines.close()
    lines = Lines(str(path))
    assert b"".join(iter(lines.readline, b"")) == data
    lines.close()
    events = list(Source("urn:s", [str(path)], options()))
    assert [event.time.micros for event in events] == [i * 10**6 for i in range(1000)]


@pytest.mark.parametrize("kind", PACK)
def test_damaged_files_give_what_they_have(tmp_path: Path, kind: str) -> None:
    packed = PACK[kind](TEXT.encode())
    path = tmp_path / "s.nq"
    for data, said in (
        (packed[: len(packed) // 2], f"the {kind} data ends before its end marker"),
        (packed[:-1], f"the {kind} data ends before its end marker"),
        (packed + b"more bytes", f"the {kind} data is followed by other bytes"),
        (packed[:99] + bytes(len(packed) - 99), f"the {kind} data is damaged"),
    ):
        path.write_bytes(data)
        with pytest.raises(InputError, match=rf"s\.nq.*cannot be read.*{said}"):
            list(Source("urn:s", [str(path)], options()))


def test_padding_behind_the_last_member() -> None:
    for kind, data in (
        ("gzip", gzip.compress(b"a") + bytes(999)),
        ("xz", lzma.compress(b"a") + bytes(4)),
    ):
        file, name = decompressed(io.BytesIO(data))
        assert (name, file.read(9)) == (kind, b"a")
    file, _ = decompressed(io.BytesIO(bz2.compress(b"a") + bytes(9)))
    with pytest.raises(DecompressionError, match="followed by other bytes"):
        file.read(9)


def test_names_and_magic() -> None:
    assert without_compression("a.nq.GZ") == "a.nq"
    assert without_compression("a.ttl.zst") == "a.ttl"
    assert without_compression("gz") == "gz"
    assert compression_of(b"<e:s> <e:p>") is None
    assert compression_of(b"BZh:a BZh:b BZh:c") is None


def test_zstd_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    path = tmp_path / "s.nq"
    path.write_bytes(zstd.compress(b"x"))
    with pytest.raises(
        InputError, match=r"s\.nq: zstd is read with .* pip install 'spaseq\[zstd\]'"
    ):
        list(Source("urn:s", [str(path)], options()))


def test_a_compressed_pipe_is_read_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    import zlib

    packer = zlib.compressobj(wbits=31)
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as reader, os.fdopen(write_end, "wb") as writer:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=reader))
        events = iter(Source("urn:s", ["-"], options()))
        for i in range(3):
            text = quad(f"g{i}") + at(f"g{i}", i)
            writer.write(packer.compress(text.encode()) + packer.flush(zlib.Z_SYNC_FLUSH))
            writer.flush()
            assert next(events).time.micros == i * 10**6
        writer.write(packer.flush())
        threading.Timer(0.02, writer.close).start()
        assert list(events) == []


# ------------------------------------------------------------ syntaxes


@pytest.mark.parametrize(
    ("name", "syntax"),
    [("a.nq", "nq"), ("a.nt.gz", "nt"), ("b/A.TRIG", "trig"), ("x.ttl.GZ", "ttl"),
     ("a.jelly", "jelly"), ("a.jelly.zst", "jelly"), ("-", None), ("a.csv", None), ("nq", None),
     ("a.gz", None), ("a.txt.bz2", None), ("a.owl.bz2", "rdf")],
)  # fmt: skip
def test_syntax_by_extension(name: str, syntax: str | None) -> None:
    known = extension_syntax(name)
    assert (known and known.syntax.name) == syntax


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ("<a:b> <a:c> <a:d> <a:e> .", "nq"),
        ('# x\n\n_:b <a:c> "x" . # y', "nq"),
        ('VERSION "1.1-messages"\nMESSAGE\n<a:b> <a:c> "x"@en .', "nq"),
        ('<a:b> <a:c> "\\"."^^<a:d> .\r\n', "nq"),
        ("#" + "x" * 9000 + "\n<a:b> <a:c> <a:d> .", "nq"),
        ('<a:b> <a:c> "' + "x" * 9000 + '" .', "nq"),
        ("@prefix a: <b:> .\n<a:b> <a:c> <a:d> .", "trig"),
        ("PREFIX a: <b:>\n<a:b> <a:c> <a:d> .", "trig"),
        ("<a:g> {", "trig"),
        ("<a:b> <a:c> <a:d> ;", "trig"),
        ('<a:b> <a:c> "x", "y" .', "trig"),
        ("[] a <a:b> .", "trig"),
        ("{ <a:b> a <a:c> }", "trig"),
        ('{"a" <a:b> <a:c> }', "trig"),
        ('{ "a" : 1 }', "jsonld"),
        ("", "trig"),
        ("# nothing", "trig"),
    ],
)
def test_syntax_by_content(text: str, syntax: str, mark: bytes) -> None:
    lines = Lines("-", io.BytesIO(mark + text.encode()))
    assert recognised(lines, "-").syntax.syntax.name == syntax


def test_jelly_by_content(tmp_path: Path) -> None:
    for physical in ("triples", "quads", "graphs"):
        data = written([parsed(quad("g"))], physical)
        known = content_syntax(data)
        assert known is STREAM_SYNTAXES["jelly"]
    text = at("a", 1) + quad("a")
    assert Reading(tmp_path, written([parsed(text)]), "s.nq").times == [1]
    assert Reading(tmp_path, written([parsed(text)]), "s").times == [1]
    assert content_syntax(b"\n\n\n\n\n\n\n<e:s> <e:p> <e:o> .\n") is STREAM_SYNTAXES["nq"]


def test_content_overrules_an_extension_that_it_contradicts(tmp_path: Path) -> None:
    trig = "@prefix e: <e:> .\n" + at("a", 1) + "e:a { e:s e:p e:o, }\n"
    read = Reading(tmp_path, trig, "s.nq")
    assert read.error.startswith("FILE:3: not TriG, column ")
    assert read.error.endswith(
        "; by its content, against its extension for N-Quads, the file was taken for TriG "
        "(--input-format names another syntax)"
    )
    # A line of N-Quads may begin a file in TriG, and a malformed one shows nothing.
    assert Reading(tmp_path, at("a", 1) + "<e:a> { <e:s> <e:p> 1 }", "s.trig").times == [1]
    assert "not N-Quads, column" in Reading(tmp_path, "<e:s> <e:p> oops .\n", "s.nq").error
    named = Reading(tmp_path, trig, "s.dat", syntax="nq")
    assert named.error.startswith("FILE:1: not N-Quads")
    assert "taken for" not in named.error


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<!DOCTYPE html>\n<html>", "its content looks like HTML"),
        (b"PK\x03\x04zip", "its content looks like a zip archive"),
        (b"time,price\n1,2\n", "RDF syntax; known are"),
        (b"2026 1 2 3\n", "RDF syntax; known are"),
        (b"\x00\x01\x02", "its content looks like binary data"),
    ],
)
def test_what_is_no_rdf_is_refused_by_name(tmp_path: Path, data: bytes, said: str) -> None:
    read = Reading(tmp_path, data, "s.data")
    assert read.error.startswith("FILE: neither the extension nor the content shows an RDF syntax")
    assert said in read.error
    assert "N-Quads, " in read.error
    assert "also compressed with gzip, zstd, bzip2 or xz" in read.error


@pytest.mark.parametrize("name", ["s.trig", "s.dat"])
@pytest.mark.parametrize("first", ["{ }", "{ <e:s> <e:p> <e:o> }", "# {\n{ }"])
def test_a_block_of_trig_is_not_json(tmp_path: Path, name: str, first: str) -> None:
    blocks = f"{first}\n{{ }}\n" + at("a", 1) + "<e:a> { <e:s> <e:p> 1 }"
    read = Reading(tmp_path, blocks, name)
    assert (read.error, read.times) == ("", [1])

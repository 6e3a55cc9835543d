"""Opening files, telling their syntax, and reading pipes as they are written."""

import gzip
import io
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from reading import Reading, at, options, quad, shown

from spaseq.errors import InputError
from spaseq.io.lines import Lines, announces_messages
from spaseq.io.source import Source


def test_the_syntax_can_be_said(tmp_path: Path) -> None:
    assert Reading(tmp_path, at("a", 1) + quad("a"), "s.data", syntax="nq").names == ["e:a"]


@pytest.mark.parametrize(
    ("text", "announced"),
    [
        ('VERSION "1.1-messages"', True),
        ("PREFIX a: <b:>\n@version '1.2-basic-messages' .", True),
        ('VERSION "1.2"', False),
        ('<a:b> <a:c> <a:d> .\nVERSION "1.1-messages"', False),
    ],
)
def test_announcement(text: str, announced: bool) -> None:
    assert announces_messages(Lines("-", io.BytesIO(text.encode())).head()) == announced


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (
        at("a", 1) + quad("a"),
        "@prefix : <e:> .\n:a <http://www.w3.org/ns/prov#generatedAtTime> 1 .\n:a { :s :p :o }",
        'VERSION "1.1-messages"\n<e:s> <http://www.w3.org/ns/prov#generatedAtTime> '
        '"1"^^<http://www.w3.org/2001/XMLSchema#int> .\n',
    ):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        (event,) = Source("urn:s", ["-"], options())
        assert (event.time.micros, len(event.facts)) == (1_000_000, 1)
        assert event.origin.startswith("<stdin>:")


@pytest.mark.parametrize("turtle", [False, True])
def test_a_pipe_is_read_as_it_is_written(monkeypatch: pytest.MonkeyPatch, turtle: bool) -> None:
    read_end, write_end = os.pipe()
    writer = os.fdopen(write_end, "w")
    with os.fdopen(read_end, "rb") as reader:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=reader))
        events = iter(Source("urn:s", ["-"], options(syntax="trig" if turtle else "nq")))
        statement = "<e:a> { <e:s> <e:p> <e:o> . }\n" if turtle else quad("a")
        writer.write(statement + at("a", 1))
        writer.flush()
        assert shown([next(events)]) == ["s@1.0"]
        timer = threading.Timer(0.02, writer.close)
        timer.start()
        assert list(events) == []
        timer.join()


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.nq: cannot be read: No such file"):
        list(Source("urn:s", [str(tmp_path / "none.nq")], options()))
    with pytest.raises(InputError, match="cannot be read"):
        list(Source("urn:s", [str(tmp_path)], options(syntax="nq")))
    (tmp_path / "s.nq.gz").write_bytes(gzip.compress(b"x")[:-9] + b"y" * 9)
    with pytest.raises(InputError, match=r"cannot be read.*: the gzip data is damaged"):
        list(Source("urn:s", [str(tmp_path / "s.nq.gz")], options()))


def test_a_truncated_archive_gives_what_it_has(tmp_path: Path) -> None:
    text = "".join(quad(f"g{i}") + at(f"g{i}", i) for i in range(20_000))
    (tmp_path / "s.nq.gz").write_bytes(gzip.compress(text.encode())[:-20_000])
    source = Source("urn:s", [str(tmp_path / "s.nq.gz")], options())
    with pytest.raises(InputError, match=r"s\.nq\.gz:\d+: cannot be read"):
        list(source)
    assert source.counters.events > 1000


@pytest.mark.parametrize("head", [False, True])
def test_what_is_in_memory_is_not_copied(monkeypatch: pytest.MonkeyPatch, head: bool) -> None:
    monkeypatch.setattr("spaseq.io.lines._FILE_BLOCK", 8)
    data = b"\xef\xbb\xbf# a\nbb\n" + b"c" * 20 + b"\n\nd"
    lines = Lines("s.nq", io.BytesIO(data))
    if head:
        assert lines.head() == [b"# a\n", b"bb\n"]
    pieces = [piece for some in lines.pieces() for piece in some]
    assert b"".join(block[start:end] for block, start, end in pieces) == data[3:]
    assert len(pieces) > 2
    assert all(block is data for block, _, _ in pieces[head:])
    assert all(block[end - 1 : end] == b"\n" for block, _, end in pieces[:-1])
    assert lines.position() == len(data)


def test_long_lines_and_long_files_keep_their_numbers(tmp_path: Path) -> None:
    long = '"' + "é" * 100_000 + '"'
    text = "".join(at(f"g{i}", i) + quad(f"g{i}", long if i == 7 else '"x"') for i in range(2000))
    for name in ("s.nq", "s.trig"):
        written = text if name == "s.nq" else _as_trig(text)
        read = Reading(tmp_path, written, name)
        assert (len(read.events), read.lines) == (2000, list(range(1, 4000, 2)))
        assert len(read.events[7].facts[0][2].value) == 100_000


def _as_trig(quads: str) -> str:
    lines = []
    for line in quads.splitlines():
        if line.startswith("<e:s>"):
            body, _, graph = line.removesuffix(" .").rpartition(" ")
            lines.append(f"{graph} {{ {body} }}")
        else:
            lines.append(line)
    return "\n".join(lines)


def test_closed_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        Lines("-")
    (tmp_path / "a.nq").write_bytes(b"# one\n")
    lines = Lines(str(tmp_path / "a.nq"))
    assert lines.readline() == b"# one\n"
    lines.close()

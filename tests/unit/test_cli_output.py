"""Where `spaseq run` writes, and in which format if none is named."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spaseq.cli.reports import use_utf8

QUERY = """PREFIX : <http://example.org/>
SELECT ?a ?v WITHIN 1 MINUTE FROM STREAM s :s WHERE { SEQ(A) DEFINE GPM A ON s { ?a :v ?v } }"""
DECIMAL = "http://www.w3.org/2001/XMLSchema#decimal"
EVENTS = "".join(
    f'<urn:t{i}> <http://www.w3.org/ns/prov#generatedAtTime> "{i}"^^<{DECIMAL}> .\n'
    f'<http://example.org/x> <http://example.org/v> "{i}.5"^^<{DECIMAL}> <urn:t{i}> .\n'
    for i in range(3)
)
ROOT = Path(__file__).parent.parent.parent


def spaseq(folder: Path, *options: str, output: int = subprocess.PIPE) -> bytes:
    (folder / "q.rq").write_text(QUERY)
    (folder / "s.nq").write_text(EVENTS)
    command = [sys.executable, "-m", "spaseq", "run", "q.rq", "--stream", "s=s.nq", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "40", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, stdout=output, check=True)
    return done.stdout or b""


@pytest.mark.parametrize(
    ("options", "begins"),
    [
        ((), b'{"query": "q"'),
        (("--output", "-"), b'{"query": "q"'),
        (("--format", "table"), b"a     v\n"),
        (("--format", "csv", "--limit", "1"), b"a,v\r\nhttp://example.org/x,0.5\r\n"),
    ],
)
def test_a_pipe(tmp_path: Path, options: tuple[str, ...], begins: bytes) -> None:
    assert spaseq(tmp_path, *options).startswith(begins)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("out.tsv", b"?a\t?v\n"),
        ("out.srx", b"<?xml"),
        ("out.parquet", b"PAR1"),
        ("out", b'{"query": "q"'),
    ],
)
def test_a_file(tmp_path: Path, name: str, begins: bytes) -> None:
    assert spaseq(tmp_path, "--output", name) == b""
    assert (tmp_path / name).read_bytes().startswith(begins)


@pytest.mark.skipif(os.name == "nt", reason="no pseudo terminals")
def test_a_terminal(tmp_path: Path) -> None:
    master, slave = os.openpty()
    spaseq(tmp_path, output=slave)
    os.close(slave)
    shown = os.read(master, 10_000).decode()
    os.close(master)
    assert shown.splitlines() == ["a     v", "──  ───", ":x  0.5", ":x  1.5", ":x  2.5"]


def test_an_extension_of_another_format(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        spaseq(tmp_path, "--output", "matches.xlsx")
    assert not (tmp_path / "matches.xlsx").exists()
    assert spaseq(tmp_path, "--output", "matches.xlsx", "--format", "csv") == b""
    assert (tmp_path / "matches.xlsx").read_bytes().startswith(b"a,v")


def test_files_and_pipes_of_windows_are_written_as_elsewhere() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="cp1252", newline="\r\n")
    use_utf8(stream, None)
    stream.write("ü → x\n")
    stream.flush()
    assert written.getvalue() == "ü → x\n".encode()

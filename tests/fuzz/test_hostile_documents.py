"""Hostile documents: the shapes of `hostile_documents.py` in small, and some drawn ones.

Each is read in a child process with bounds of time and memory. `SPASEQ_HOSTILE_BYTES` is the size
of the shapes (default 10,000), `SPASEQ_HOSTILE_SECONDS` the time for drawn documents (default 2).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_documents import DOORS, END, PROV, SHAPES, XML, doors_of, tried

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the bounds of a process are those of Linux"
)

SCRIPT = Path(__file__).with_name("hostile_documents.py")


def test_hostile_documents_cost_time_and_memory_in_proportion() -> None:
    options = {
        "--size": os.environ.get("SPASEQ_HOSTILE_BYTES", "10000"),
        "--seconds": os.environ.get("SPASEQ_HOSTILE_SECONDS", "2"),
        "--seed": os.environ.get("SPASEQ_SEED", "0"),
    }
    command = [sys.executable, str(SCRIPT), *(part for pair in options.items() for part in pair)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    # Otherwise nothing is read, or nothing is refused.
    assert "'read': " in done.stdout
    assert "'refused': " in done.stdout


@pytest.mark.parametrize(
    ("deed", "said"),
    [
        ("lambda path: 'a' * (1 << 31)", "MemoryError"),
        ("lambda path: [None for _ in iter(int, 1)]", "SIG|MemoryError"),
        ("lambda path: __import__('os').abort()", "SIGABRT"),
        ("lambda path: {}[path]", "KeyError"),
    ],
    ids=["memory", "time", "signal", "traceback"],
)
def test_a_child_that_exceeds_a_bound_is_a_fault(deed: str, said: str) -> None:
    code = (
        "import hostile_documents as h; h.CPU_SECONDS = 1; "
        f"h.DOORS['request'] = ({deed}, ('json',)); "
        "print(h.tried('request', 'json', b'1', 0.01)[0])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=SCRIPT.parent, capture_output=True, text=True)
    assert done.stdout.startswith("FAULT")
    assert any(part in done.stdout for part in said.split("|"))


HARMLESS = {
    "json": b"{}", "sse": b"data: a\n\n", "jsonl": b'{"t":1,"v":"a"}\n', "csv": b"t,v\n1,a\n",
    "nq": f'<u:g> <{PROV}> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    "<u:a> <u:b> <u:c> <u:g> .\n".encode(),
    "rdf": f"{XML}<rdf:Description rdf:about='u:a' xmlns:p='{PROV[:-15]}'><p:generatedAtTime "
    "rdf:datatype='http://www.w3.org/2001/XMLSchema#integer'>1</p:generatedAtTime>"
    f"</rdf:Description>{END}".encode(),
    "ngsild": b'{"id":"u:a","type":"T","x":{"type":"Property","value":1,'
    b'"observedAt":"2026-01-01T00:00:00Z"}}',
}  # fmt: skip


@pytest.mark.parametrize("door", [door for door in DOORS if door not in ("subjects", "page")])
def test_every_door_reads_what_is_harmless(door: str) -> None:
    extension = next(each for each in DOORS[door][1] if each in HARMLESS)
    said, _, _ = tried(door, extension, HARMLESS[extension], 0.1)
    assert said == "read"


def test_every_door_has_shapes() -> None:
    read = {door for extension, _ in SHAPES.values() for door in doors_of(extension)}
    assert read == set(DOORS)
    assert all(doors_of(extension) for extension, _ in SHAPES.values())

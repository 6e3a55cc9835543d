"""A result in a forked process, which has neither the threads of its parent nor its own files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NUMBER = "http://www.w3.org/2001/XMLSchema#integer"
EVENTS = 30_000
"""Enough for a thread that reads ahead."""
SCRIPT = """
import os, signal, sys, warnings
import spaseq, spaseq.keyed_runs
warnings.simplefilter("ignore")
spaseq.keyed_runs.LEAST_BYTES = 0
query = '''PREFIX : <e:> SELECT ?k ?x WITHIN 9 SECONDS FROM STREAM s <e:s>
  WHERE { SEQ(A) DEFINE GPM A ON s { ?k :p ?x } }'''
way, source, workers, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
result = spaseq.run(query, {"s": source}, workers=workers)
found = result if way == "matches" else result.to_batches(10)
count = 0
def read(items):
    return sum(1 if way == "matches" else batch.num_rows for batch in items)
if wanted:
    first = next(found)
    count = 1 if way == "matches" else first.num_rows
process = os.fork()
if process == 0:
    signal.alarm(60)
    try:
        print("child:", count + read(found), flush=True)
    except spaseq.SpaseqError as error:
        print("child:", error, flush=True)
        with result:
            pass    # closes nothing of the parent
    os._exit(0)
_, status = os.waitpid(process, 0)
assert status == 0, status
print("parent:", count + read(found))
"""


def run(tmp_path: Path, way: str, workers: int, read: bool, events: int = EVENTS) -> list[str]:
    source = tmp_path / "s.nq"
    source.write_text(
        "".join(
            f'<e:g{n}> <http://www.w3.org/ns/prov#generatedAtTime> "{n}"^^<{NUMBER}> .\n'
            f'<e:k{n % 7}> <e:p> "{n}"^^<{NUMBER}> <e:g{n}> .\n'
            for n in range(events)
        )
    )
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, way, str(source), str(workers), str(int(read))],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


@pytest.mark.parametrize(
    ("way", "workers", "events"),
    [("matches", 1, 20), ("matches", 1, EVENTS), ("matches", 2, EVENTS), ("batches", 1, EVENTS)],
)
def test_a_forked_process_refuses_what_its_parent_has_begun_to_read(
    tmp_path: Path, way: str, workers: int, events: int
) -> None:
    child, parent = run(tmp_path, way, workers, True, events)
    assert child.startswith("child: this process is a fork of the process that reads the events")
    assert parent == f"parent: {events}"


def test_a_forked_process_reads_a_result_that_has_not_been_begun(tmp_path: Path) -> None:
    assert run(tmp_path, "matches", 1, False) == [f"child: {EVENTS}", f"parent: {EVENTS}"]

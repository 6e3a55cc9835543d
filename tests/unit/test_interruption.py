"""Ctrl-C and SIGTERM within one event end the run after the earlier matches are written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
WORK = 1.0
"""Seconds of processor time: twice what starting takes."""

# Each of these would run for hours: four free triples of one event, the same in a pattern that
# Python evaluates, conjunctions and a chain that no index serves, and all ways to repeat a step.
PRODUCT = "SEQ(A) DEFINE GPM A ON S {{ ?a :p ?x . ?b :p ?y . ?c :p ?z . ?d :p ?w {} }}"
QUERIES = {
    "product": PRODUCT.format("FILTER(?x + ?y + ?z + ?w < 0)"),
    "python": "SEQ(A) DEFINE GPM A ON S { ?a :p* ?x . ?b :p* ?y . ?c :p* ?z . ?d :p* ?w }",
    "conjunction": "SEQ((A AND B AND C AND D)) "
    + " ".join(f"DEFINE GPM {n} ON S {{ ?{n} :p ?{n}x }}" for n in "ABC")
    + " DEFINE GPM D ON S { ?D :p ?Dx FILTER(?Ax + ?Bx + ?Cx + ?Dx < 0) }",
    "any order": "SEQ(A & B & C & D) "
    + " ".join(f"DEFINE GPM {n} ON S {{ ?{n} :p ?{n}x }}" for n in "ABC")
    + " DEFINE GPM D ON S { ?D :p ?Dx FILTER(ABS(?Ax + ?Bx * ?Cx) + ?Dx < 0) }",
    "iteration": "SEQ(A : B+ : C) DEFINE GPM A ON S { ?A :p ?x } DEFINE GPM B ON S { ?b :p ?y } "
    "DEFINE GPM C ON S { ?c :q ?z }",
    "chain": "SEQ(A : B : C : D) "
    + " ".join(f"DEFINE GPM {n} ON S {{ ?{n} :p ?{n}x }}" for n in "ABC")
    + " DEFINE GPM D ON S { ?D :p ?Dx FILTER(?Ax * ?Bx + ?Cx * ?Dx < 0) }",
}


def events(name: str) -> str:
    """One event that matches the other query, then those that are too much work."""
    lines = [
        f'<urn:f> {PROV} "0"^^{INTEGER} .',
        f'<urn:s> <http://example.org/first> "1"^^{INTEGER} <urn:f> .',
    ]
    at_once = name in ("product", "python")
    for number in range(1500):
        graph = "<urn:g>" if at_once else f"<urn:g{number}>"
        if not at_once or number == 0:
            lines.append(f'{graph} {PROV} "{1 if at_once else number // 100 + 1}"^^{INTEGER} .')
        value = f"<urn:s{number + 1}>" if name == "python" else f'"{number}"^^{INTEGER}'
        lines.append(f"<urn:s{number}> <http://example.org/p> {value} {graph} .")
    if name == "iteration":
        lines.append(f'<urn:last> {PROV} "99"^^{INTEGER} .')
        lines.append(f'<urn:s> <http://example.org/q> "1"^^{INTEGER} <urn:last> .')
    return "\n".join(lines) + "\n"


def wait_for_work(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process has worked longer than it takes to start, on however busy a machine."""
    until = time.monotonic() + 60
    while process.poll() is None and sum(psutil.Process(process.pid).cpu_times()[:2]) < WORK:
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.skipif(os.name == "nt", reason="no POSIX signals")
@pytest.mark.parametrize(
    ("name", "number", "status"),
    [
        (name, *((signal.SIGINT, 130) if place % 2 else (signal.SIGTERM, 143)))
        for place, name in enumerate((*QUERIES, "python"))
    ],
)
def test_the_work_of_one_event_can_be_stopped(
    tmp_path: Path, name: str, number: int, status: int
) -> None:
    head = "PREFIX : <http://example.org/>\nSELECT * WITHIN 1 HOUR FROM STREAM S :S WHERE { "
    heavy = head.replace("*", "DISTINCT ?A") if name == "iteration" else head
    (tmp_path / "heavy.rq").write_text(heavy + QUERIES[name] + " }")
    (tmp_path / "first.rq").write_text(head + "SEQ(F) DEFINE GPM F ON S { ?s :first ?x } }")
    (tmp_path / "s.nq").write_text(events(name))
    command = [sys.executable, "-m", "spaseq", "run", "first.rq", "heavy.rq", "--stream", "S=s.nq"]
    with (tmp_path / "out").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=output,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        wait_for_work(process)
        assert process.poll() is None, "the work should have taken hours"
        process.send_signal(number)
        _, said = process.communicate(timeout=20)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == status, said
    assert said.decode().strip().endswith("interrupted" if status == 130 else "terminated")
    lines = (tmp_path / "out").read_text().splitlines()
    assert [line for line in lines if '"query": "first"' in line]
    assert all(line.endswith("}") for line in lines)

"""The number of Python functions of the package that run per event, per batch and per match.

The profiler reports calls of Python functions only, not of compiled ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import spaseq
from spaseq.io.source import Source
from spaseq.rdf.native._terms import EventBatch
from spaseq.runs import Run

PACKAGE = str(Path(spaseq.__file__).parent)
STREAM = "http://example.org/S"
AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
QUERY = """PREFIX : <http://example.org/>
SELECT ?x WITHIN 10 SECONDS FROM STREAM S :S
WHERE { SEQ(A ; B) DEFINE GPM A ON S { ?s :a ?x } DEFINE GPM B ON S { ?s :b ?y } }"""


def calls(function: Callable[[], Any]) -> tuple[Any, list[str]]:
    """The result of a function, and the names of the package's functions that it called."""
    names: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            names.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        result = function()
    finally:
        sys.setprofile(None)
    return result, names


def batches(run: Run, tmp_path: Path, predicates: str) -> Iterator[EventBatch]:
    """The events of a file, one per letter: a triple with that predicate."""
    lines = []
    for number, predicate in enumerate(predicates):
        name = f"<urn:e{number}>"
        lines.append(f'{name} {AT} "{number}"^^{INTEGER} .\n')
        lines.append(f'<urn:s> <http://example.org/{predicate}> "{number}"^^{INTEGER} {name} .\n')
    path = tmp_path / "s.nq"
    path.write_text("".join(lines))
    return Source(STREAM, [str(path)], relevance=run.relevance).batches()


@pytest.mark.parametrize("pattern", ["x", "ax", "xb"])
def test_events_without_a_match_cost_no_python_call(pattern: str, tmp_path: Path) -> None:
    run = spaseq.compile(QUERY).start()
    read = list(batches(run, tmp_path, pattern * 400))
    for batch in read:
        found, names = calls(lambda batch=batch: list(run.push_batch(batch)))
        assert found == []
        assert len(names) <= 30, names
    assert max(map(len, read)) > 100


def test_a_match_costs_three_python_calls_and_its_json_none(tmp_path: Path) -> None:
    run = spaseq.compile(QUERY).start()
    batch, *_ = batches(run, tmp_path, "ab" * 20)
    matches = iter(run.push_batch(batch))
    first = next(matches)
    _, names = calls(lambda: next(matches))
    assert len(names) <= 3, names
    for read in (first.to_json, lambda: first.bindings, lambda: first.events):
        assert calls(read)[1] == []


def test_a_file_is_read_without_a_python_call_per_event(tmp_path: Path) -> None:
    run = spaseq.compile(QUERY).start()
    counts = []
    for repeats in (50, 250):
        source = batches(run, tmp_path, "ax" * repeats)
        read, names = calls(lambda source=source: list(source))
        assert sum(map(len, read)) == 2 * repeats
        counts.append(len(names))
    assert counts[1] <= counts[0] + 5

"""A run accepts batches that were encoded for it, and refuses batches of another run."""

from __future__ import annotations

from pathlib import Path

import pytest

import spaseq
from spaseq.io.source import Source
from spaseq.rdf.native._terms import Dictionary, EventBatch, Relevance

STREAM = "http://example.org/s"
AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
QUERY = """PREFIX : <http://example.org/>
SELECT ?v WITHIN 1 MINUTE FROM STREAM s <http://example.org/s>
WHERE { SEQ(A) DEFINE GPM A ON s { ?x :%s ?v } }"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    lines = []
    for second in range(5):
        graph = f"<http://example.org/e/{second}>"
        lines.append(f'{graph} {AT} "{second}"^^<http://www.w3.org/2001/XMLSchema#integer> .')
        lines += [
            f'<http://example.org/x> <http://example.org/{name}> "{name}{second}" {graph} .'
            for name in ("p", "q")
        ]
    file = tmp_path / "s.nq"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


def batches(path: Path, relevance: Relevance) -> list[EventBatch]:
    return list(Source(STREAM, [str(path)], relevance=relevance).batches())


def values(run: spaseq.Run, some: list[EventBatch]) -> list[str]:
    return [match.bindings["v"].value for batch in some for match in run.push_batch(batch)]


def test_batches_of_the_run(path: Path) -> None:
    run = spaseq.compile(QUERY % "p").start()
    assert values(run, batches(path, run.relevance)) == [f"p{n}" for n in range(5)]
    assert run.stats["triples"] == 10


def test_whole_batches_of_somebody_else(path: Path) -> None:
    run = spaseq.compile(QUERY % "q").start()
    assert values(run, batches(path, Relevance(Dictionary()))) == [f"q{n}" for n in range(5)]


def test_batches_pruned_for_another_run(path: Path) -> None:
    other = spaseq.compile(QUERY % "p").start()
    run = spaseq.compile(QUERY % "q").start()
    with pytest.raises(spaseq.EventError, match="read for another run"):
        values(run, batches(path, other.relevance))

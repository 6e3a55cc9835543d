"""Rows built by compiled code equal rows built from `Match` objects, to the byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import spaseq
from spaseq.io.arrow_columns import columns_of, select_columns
from spaseq.io.arrow_rows import batches
from spaseq.io.source import Source
from spaseq.kb.snapshot import open_kb
from spaseq.plan.key_division import ByKey
from spaseq.spark.distribution import distribution
from spaseq.spark.division import Division, Own
from spaseq.spark.tasks import Job, rows_of

STREAM = "http://example.org/s"
AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = [
    *('"plain"', '"tab\\tquote\\" back\\\\slash\\nline\\r"', '"bell\\u0007 del\\u007F"', '""'),
    *('"caf\\u00E9 \\U0001F600 \\uFFFE"', '"two"@en-GB', f'"01"^^<{XSD}integer>', "_:node"),
    *("<http://example.org/caf\\u00E9>", f'"x"^^<{XSD}string>', '"a\\\\"@de', "<urn:x>"),
    *(f'"<\\u{code:04X}>"' for code in (*range(32), 0x80, 0xFFFD, 0xFFFF)),
]
QUERY = """PREFIX : <http://example.org/>
SELECT ?k ?a ?b ?o WITHIN 30 SECONDS {} FROM STREAM s :s WHERE {{ SEQ(A : B)
  DEFINE GPM A ON s {{ ?k :first ?a OPTIONAL {{ ?k :other ?o }} }}
  DEFINE GPM B ON s {{ ?k :second ?b }} }}"""

EVERYTHING = Own(-(2**63), 2**63 - 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    lines = []
    for number, term in enumerate(TERMS * 3):
        name = f"<urn:e{number}>" if number % 3 else f"_:e{number}"
        key = f"<http://example.org/k{number % 4}>" if number % 5 else "_:k"
        lines.append(f'{name} {AT} "{number // 2 - 6}"^^<{XSD}integer> .\n')
        for predicate in ("first", "second", *(["other"] if number % 2 else [])):
            lines.append(f"{key} <http://example.org/{predicate}> {term} {name} .\n")
    path = tmp_path / "s.nq"
    path.write_text("".join(lines))
    return path


def table(job: Job, path: Path, own: Own, direct: bool) -> pa.Table:
    run = job.start()
    source = Source(STREAM, [str(path)], relevance=run.relevance)
    matches = (match for batch in source.batches() for match in run.push_batch(batch))
    if direct:
        return pa.Table.from_batches(rows_of(job, run, matches, own), job.columns.schema())
    made = batches(job.columns, filter(own.has, matches))
    return pa.Table.from_batches(made, job.columns.schema())


@pytest.mark.parametrize("partition", ["", "PARTITION BY ?k"])
def test_compiled_rows_are_those_of_matches(partition: str, path: Path) -> None:
    program = spaseq.compile(QUERY.format(partition))
    columns = columns_of(program, "decimal")
    how = distribution(program)
    assert isinstance(how, ByKey)
    for parts in (1, 3):
        division = Division(how.variables, ((10_000_000,),) * parts)
        job = Job(program, open_kb({}), columns, division)
        count = 0
        for task in range(division.tasks):
            own = division.own(task)
            wanted = table(job, path, own, direct=False)
            assert table(job, path, own, direct=True).to_pylist() == wanted.to_pylist()
            count += len(wanted)
        assert count == len(table(job, path, EVERYTHING, direct=True)) > 50


def pairs(path: Path, values: list[str]) -> Path:
    """Events of which every two are a match, with the values of both."""
    lines = []
    for number, value in enumerate(values):
        lines.append(f'<urn:e{number}> {AT} "{number // 4}"^^<{XSD}integer> .\n')
        for predicate in ("first", "second"):
            lines.append(f'<urn:k> <http://example.org/{predicate}> "{value}" <urn:e{number}> .\n')
    path.write_text("".join(lines))
    return path


def test_many_rows_come_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.io.arrow_rows.COMPILED_ROWS_AT_ONCE", 1000)
    path = pairs(tmp_path / "s.nq", ["x" * number for number in range(80)])
    program = spaseq.compile(QUERY.format(""))
    job = Job(program, open_kb({}), columns_of(program, "decimal"), Division((), ((),)))
    made = table(job, path, EVERYTHING, direct=True)
    assert [len(batch) >= 1000 for batch in made.to_batches()] == [True, True, True, False]
    assert made.to_pylist() == table(job, path, EVERYTHING, direct=False).to_pylist()


@pytest.mark.parametrize("made", [["events"], ["bindings"], ["a", "b"]], ids=" ".join)
def test_rows_with_long_texts_come_in_small_batches(made: list[str], tmp_path: Path) -> None:
    path = pairs(tmp_path / "s.nq", ["x" * 1_000_000] * 8)
    program = spaseq.compile(QUERY.format(""))
    (columns,) = select_columns([columns_of(program, "decimal")], made)
    job = Job(program, open_kb({}), columns, Division((), ((),)))
    found = table(job, path, EVERYTHING, direct=True)
    assert len(found) == 28
    assert max(batch.nbytes for batch in found.to_batches()) < 20_000_000
    assert found.to_pylist() == table(job, path, EVERYTHING, direct=False).to_pylist()


MADE = ["id"], ["events"], ["end", "bindings"], ["o", "k"], ["query", "b", "start"]


@pytest.mark.parametrize("made", MADE, ids=" ".join)
def test_columns_that_are_wanted_are_made_alone(made: list[str], path: Path) -> None:
    program = spaseq.compile(QUERY.format(""))
    columns = columns_of(program, "decimal")
    whole = Job(program, open_kb({}), columns, Division((), ((),)))
    (own,) = select_columns([columns], made)
    some = replace(whole, columns=own)
    wanted = table(whole, path, EVERYTHING, direct=True).select(made)
    for direct in (True, False):
        found = table(some, path, EVERYTHING, direct)
        assert found.schema == wanted.schema
        assert found.to_pylist() == wanted.to_pylist()
    assert len(wanted) > 50


def test_columns_that_are_not_there() -> None:
    columns = columns_of(spaseq.compile(QUERY.format("")), "decimal")
    with pytest.raises(ValueError, match="there is no column c; there are id, query, start, end"):
        select_columns([columns], ["a", "c"])
    with pytest.raises(ValueError, match="columns is empty"):
        select_columns([columns], [])

"""Labels and graph names across files, times finer than a microsecond, files without events."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spaseq
from spaseq.errors import EventError, InputError
from spaseq.io.read_options import ReadOptions
from spaseq.io.source import Source
from spaseq.rdf.native._terms import Dictionary, Relevance
from spaseq.rdf.time import TimePrecision, from_value

PROV = "<http://www.w3.org/ns/prov#generatedAtTime>"
XSD = "http://www.w3.org/2001/XMLSchema#"
QUERY = """
PREFIX : <http://example.org/>
SELECT ?x WITHIN 1 HOUR FROM STREAM S :S WHERE { SEQ(A) DEFINE GPM A ON S { ?s :a ?x } }"""


def quads(graph: str, time: str, value: int, kind: str = "integer") -> str:
    stamp = f'{graph} {PROV} "{time}"^^<{XSD}{kind}> .\n'
    return stamp + f'<urn:s> <http://example.org/a> "{value}"^^<{XSD}integer> {graph} .\n'


def read(*paths: Path, **options: object) -> list[str]:
    source = Source("urn:S", [str(path) for path in paths], ReadOptions(**options))  # type: ignore
    return [value.value for event in source for _, _, value in event.facts]


@pytest.mark.parametrize("suffix", ["nq", "trig"])
def test_labels_of_graphs_belong_to_their_file(tmp_path: Path, suffix: str) -> None:
    one, two = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
    one.write_text(quads("_:g", "1", 10) + quads("<urn:g>", "2", 11))
    two.write_text(quads("_:g", "3", 12))
    for path in (one, two):
        path.write_text(in_syntax(suffix, path.read_text()))
    assert read(one, two) == ["10", "11", "12"]
    names = [str(event.name) for event in Source("urn:S", [str(one), str(two)])]
    assert len(set(names)) == 3


def in_syntax(suffix: str, text: str) -> str:
    """N-Quads as they are, or as TriG."""
    if suffix == "nq":
        return text
    statements = [line.removesuffix(" .").split(" ") for line in text.splitlines()]
    return "".join(
        " ".join(terms) + " .\n" if len(terms) == 3 else f"{terms[3]} {{ {' '.join(terms[:3])} }}\n"
        for terms in statements
    )


def test_a_graph_that_is_used_again_names_both_places(tmp_path: Path) -> None:
    one, two = tmp_path / "one.nq", tmp_path / "two.nq"
    one.write_text(quads("<urn:g>", "1", 10) + quads("<urn:h>", "2", 11))
    two.write_text(quads("<urn:g>", "3", 12))
    with pytest.raises(InputError) as error:
        read(one, two)
    assert str(error.value).startswith(
        f"{two}:1: a timestamp of <urn:g>, which began at {one}:1 and is already complete"
    )
    two.write_text(quads("_:b", "3", 12) + quads("_:c", "4", 13) + quads("_:b", "5", 14))
    with pytest.raises(InputError, match=r"two.nq:5: .*_:\S+, which began at line 1 "):
        read(two)


# ------------------------------------------------------------------ finer than a microsecond

FINE = "2022-05-10T06:17:02.6851045Z"


@pytest.mark.parametrize("suffix", ["nq", "trig"])
@pytest.mark.parametrize(
    ("text", "kind", "cut", "near"),
    [
        (FINE, "dateTime", 4, 5),
        ("1969-12-31T23:59:59.9999995Z", "dateTimeStamp", 9, 0),
        ("0.0000095", "decimal", 9, 10),
        ("-0.0000015", "double", -2, -1),
        ("1e-30", "double", 0, 0),
        ("-1e-30", "double", -1, 0),
    ],
)
def test_a_finer_time_is_an_error_or_cut_or_rounded(
    tmp_path: Path, suffix: str, text: str, kind: str, cut: int, near: int
) -> None:
    path = tmp_path / f"s.{suffix}"
    path.write_text(in_syntax(suffix, quads("<urn:g>", text, 1, kind)))
    with pytest.raises(InputError, match=r"1: .* is finer than a microsecond.*--time-precision"):
        read(path)
    for precision, micros in (("truncate", cut), ("round", near)):
        options = ReadOptions(time_precision=precision)  # type: ignore[arg-type]
        (event,) = Source("urn:S", [str(path)], options)
        assert event.time.micros % 10 == micros % 10
        again = Source("urn:S", [str(path)], options)
        assert [one.time.term for one in again] == [event.time.term]


@pytest.mark.parametrize(
    "value",
    [np.datetime64(FINE[:-1]), pd.Timestamp(FINE), pd.Timestamp(FINE).tz_convert("Asia/Tokyo")],
)
def test_times_of_numpy_and_pandas_are_treated_alike(value: object) -> None:
    with pytest.raises(EventError, match="finer than a microsecond"):
        from_value(value)
    cut = dt.datetime(2022, 5, 10, 6, 17, 2, 685104, tzinfo=dt.UTC)
    assert from_value(value, "s", "truncate") == from_value(cut)
    assert from_value(value, "s", "round") == from_value(cut + dt.timedelta(microseconds=1))


@pytest.mark.parametrize("value", [np.datetime64("NaT", "s"), pd.NaT])
@pytest.mark.parametrize("precision", ["error", "truncate", "round"])
def test_no_time_is_an_error(value: object, precision: TimePrecision) -> None:
    with pytest.raises(EventError, match="is not a timestamp"):
        from_value(value, "s", precision)


@pytest.mark.parametrize("text", ["400000-01-01", "-400000-01-01"])
def test_times_of_numpy_out_of_range_are_errors(text: str) -> None:
    with pytest.raises(EventError, match="out of range"):
        from_value(np.datetime64(text, "Y"))
    with pytest.raises(EventError, match="out of range"):
        from_value(np.datetime64(2**62, "s"))


@pytest.mark.parametrize("unit", ["ns", "ps", "fs", "as"])
@pytest.mark.parametrize("number", [1, -1])
def test_the_least_unit_of_numpy_is_finer_than_a_microsecond(unit: str, number: int) -> None:
    with pytest.raises(EventError, match="finer than a microsecond"):
        from_value(np.datetime64(number, unit))
    assert from_value(np.datetime64(number, unit), "s", "round").micros == 0
    assert from_value(np.datetime64(number, unit), "s", "truncate").micros == min(number, 0)


def test_numbers_and_dates_of_numpy() -> None:
    assert from_value(np.datetime64("2022-05-10")) == from_value(dt.date(2022, 5, 10))
    assert from_value(np.int64(3)) == from_value(3)
    assert from_value(np.float32(0.1)).micros == from_value(np.float64(0.1)).micros == 100_000
    with pytest.raises(EventError, match="is not a timestamp"):
        from_value(np.bool_(True))


@pytest.mark.parametrize(("precision", "micros"), [("truncate", 1), ("round", 2)])
def test_pushed_times_too(precision: TimePrecision, micros: int) -> None:
    program = spaseq.compile(QUERY)
    event = b"<urn:s> <http://example.org/a> <urn:x> ."
    with pytest.raises(EventError, match="time_precision="):
        program.start().push("http://example.org/S", 0.0000015, event)
    run = program.start(time_precision=precision)
    run.push("http://example.org/S", 0.0000005, event)
    (match,) = run.push("http://example.org/S", 0.0000015, event)
    assert match.end.micros == micros
    options = ReadOptions(time_precision=precision)
    (match,) = spaseq.run(QUERY, streams={"S": [(0.0000015, event)]}, options=options)
    assert match.end.micros == micros


# ------------------------------------------------------------------ no event, no use


@pytest.mark.parametrize("predicate", ["http://www.w3.org/ns/prov#generatedAtTime", "urn:time"])
def test_a_file_whose_triples_are_of_no_event_is_an_error(tmp_path: Path, predicate: str) -> None:
    path = tmp_path / "s.nt"
    path.write_text(f'<urn:o> <urn:a> "1" .\n<urn:o> <{predicate}> "2026-01-01"^^<{XSD}date> .\n')
    with pytest.raises(InputError, match="no event in this file: it has no named graphs"):
        read(path, time_predicate=predicate)


def test_heartbeats_alone_are_events(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_text(f'<urn:g> {PROV} "1"^^<{XSD}integer> .\n')
    assert [event.facts for event in Source("urn:S", [str(path)])] == [()]


@pytest.mark.parametrize("suffix", ["nq", "trig"])
def test_triples_that_no_query_can_use_are_counted(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"s.{suffix}"
    text = quads("<urn:g>", "1", 1) + '<urn:s> <urn:other> "x" <urn:g> .\n'
    path.write_text(in_syntax(suffix, text))
    for iri, pruned in (("http://example.org/a", 1), ("https://example.org/a", 2)):
        relevance = spaseq.compile(QUERY.replace("?s :a", f"?s <{iri}>")).start().relevance
        assert isinstance(relevance, Relevance)
        source = Source("http://example.org/S", [str(path)], relevance=relevance)
        assert sum(map(len, source.batches())) == 1
        assert (source.counters.statements, source.counters.pruned) == (2, pruned)
    whole = Source("urn:S", [str(path)], relevance=Relevance(Dictionary()))
    assert [len(batch) for batch in whole.batches()] == [1]
    assert whole.counters.without_use() == 0

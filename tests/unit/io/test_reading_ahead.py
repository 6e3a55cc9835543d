"""A source that a thread reads ahead gives what it gives without one: events, messages, counts."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import pyoxigraph as ox
import pytest
from reading import STREAM, at, options, quad

import spaseq
from spaseq.errors import InputError, SpaseqError
from spaseq.io.lines import Lines
from spaseq.io.merge import merge
from spaseq.io.read_options import ReadOptions, TimeDomain
from spaseq.io.rows.mapping import read_mapping
from spaseq.io.rows.source import RowSource
from spaseq.io.source import Source
from spaseq.pipeline import matches
from spaseq.rdf.native._terms import Dictionary, Relevance

ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
OTHER = "http://example.org/t"
QUERY = f"""
SELECT ?a ?b WITHIN 10 SECONDS FROM STREAM S <{STREAM}> FROM STREAM T <{OTHER}> WHERE {{
  SEQ(A ; B) DEFINE GPM A ON S {{ ?a <e:p> ?x }} DEFINE GPM B ON T {{ ?b <e:p> ?x }} }}
"""


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name == "spaseq-ahead"]


def small(path: str) -> Lines:
    """A file that is read in many blocks, so that a few lines are several batches."""
    return Lines(path, block=150)


def seen(
    path: Path | list[Path], given: ReadOptions, opened: Callable[[str], Lines] = small
) -> list[object]:
    """All that a consumer can tell of a source: events and messages in their order, counters."""
    paths = path if isinstance(path, list) else [path]
    found: list[object] = []
    source = Source(STREAM, [str(one) for one in paths], given, log=found.append)
    source.open_lines = opened
    source.relevance = Relevance(Dictionary(), [(ox.NamedNode("e:p"), None)])
    try:
        for batch in source.batches():
            for index in range(len(batch)):
                place = batch.file, batch.line(index), batch.ordinal(index)
                found.append((batch.time(index), batch.name(index), batch.facts(index), place))
            counters = replace(source.counters)
            found.append((counters, source.lines and source.lines.position()))
    except SpaseqError as error:
        found.append(str(error))
    found.append(source.counters)
    return found


def told_apart(path: Path | list[Path], given: ReadOptions, **more: object) -> list[object]:
    """What is seen with a thread, which must be what is seen without one."""
    ahead = seen(path, replace(given, workers=2), **more)  # type: ignore[arg-type]
    assert ahead == seen(path, replace(given, workers=1), **more)  # type: ignore[arg-type]
    assert threads() == []
    return ahead


def stream(events: int, seed: int = 1) -> str:
    draw = random.Random(seed)
    return "".join(
        at(f"g{number}", number)
        + "".join(
            quad(f"g{number}", draw.choice(["<e:o>", '"x"', "_:b", f"<e:o{number}>"]))
            for _ in range(draw.randrange(4))
        )
        for number in range(events)
    )


TRIG = "".join(
    f'<e:g{n}> {{ <e:s> <e:p> {n}, "x{n}", _:b }}\n'
    f"<e:g{n}> <http://www.w3.org/ns/prov#generatedAtTime> {n} .\n"
    for n in range(200)
)


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize("spoilt", ["", "middle", "end"])
def test_events_messages_and_counters_arrive_in_order(
    tmp_path: Path, spoilt: str, on_error: str
) -> None:
    lines = stream(100).splitlines(keepends=True)
    if spoilt == "middle":
        for place in range(20, len(lines), 9):
            lines[place] = "<e:s> <e:p> oops .\n"
    if spoilt == "end":
        lines.append("<e:s> <e:p> oops .\n")
    path = tmp_path / "s.nq"
    path.write_text("".join(lines))
    found = told_apart(path, options(on_error=on_error))
    assert sum(isinstance(one, tuple) for one in found) > 50 or on_error == "stop"
    assert any(isinstance(one, str) for one in found) == bool(spoilt)


def test_late_events_are_reported_in_order(tmp_path: Path) -> None:
    draw = random.Random(3)
    times = [number + draw.randrange(12) for number in range(150)]
    path = tmp_path / "s.nq"
    path.write_text("".join(at(f"g{n}", time) + quad(f"g{n}") for n, time in enumerate(times)))
    found = told_apart(path, options(lateness=5_000_000))
    assert sum("late" in one for one in found if isinstance(one, str)) > 5


@pytest.mark.parametrize("framing", ["graph", "dataset"])
def test_documents_and_several_files(tmp_path: Path, framing: str) -> None:
    (tmp_path / "a.trig").write_text(TRIG)
    later = TRIG.replace("<e:g", "<e:h").replace("#generatedAtTime> ", "#generatedAtTime> 1")
    (tmp_path / "b.trig").write_text(later)
    told_apart([tmp_path / "a.trig", tmp_path / "b.trig"], options(framing))
    (tmp_path / "c.trig").write_text(TRIG.replace("150", "<oops"))
    assert any("c.trig" in str(one) for one in told_apart(tmp_path / "c.trig", options(framing)))


@pytest.mark.parametrize("kind", ["gz", "zst", "bz2", "xz"])
@pytest.mark.parametrize("torn", [False, True])
def test_compressed_files_are_decompressed_ahead(tmp_path: Path, kind: str, torn: bool) -> None:
    pack: Callable[[bytes], bytes] = {
        "gz": partial(gzip.compress, compresslevel=1),
        "bz2": partial(bz2.compress, compresslevel=1),
        "xz": partial(lzma.compress, preset=0),
    }.get(kind) or import_module(ZSTD).compress
    draw = random.Random(7)
    text = "".join(
        at(f"g{n}", n) + quad(f"g{n}", f'"{draw.randbytes(400).hex()}"') for n in range(3600)
    )
    # Several members, and more text than a part has.
    data = b"".join(pack(text[i : i + 1_000_000].encode()) for i in range(0, len(text), 1_000_000))
    path = tmp_path / f"s.nq.{kind}"
    path.write_bytes(data[:-3000] if torn else data)
    found = told_apart(path, options(), opened=Lines)
    assert isinstance(found[-2], str) == torn
    plain = tmp_path / "s.nq"
    plain.write_text(text)
    if not torn:
        events = [one[:3] for one in found if isinstance(one, tuple) and len(one) == 4]
        others = seen(plain, options(), Lines)
        assert events == [one[:3] for one in others if isinstance(one, tuple) and len(one) == 4]


def test_the_thread_ends_with_its_consumer(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_text(stream(300))
    source = Source(STREAM, [str(path)], open_lines=small)
    for batches in (source.batches(), iter(source)):
        next(batches)
        assert threads() == ["spaseq-ahead"]
        batches.close()  # type: ignore[attr-defined]
        assert threads() == []
    batches = source.batches()
    next(batches)
    del batches
    assert threads() == []


def test_the_thread_ends_where_the_run_fails(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_text("".join(at(f"g{n}", n) + quad(f"g{n}", f'"{n}"') for n in range(300)))
    run = spaseq.compile(
        QUERY.replace(f"FROM STREAM T <{OTHER}> ", "").replace("ON T", "ON S")
    ).start()
    run.advance(150)
    source = Source(STREAM, [str(path)], open_lines=small, relevance=run.relevance)
    with pytest.raises(spaseq.EventError) as raised:
        list(matches(run, source))
    assert raised.traceback  # which would keep the generators
    assert threads() == []


def test_the_thread_ends_where_no_event_comes(tmp_path: Path) -> None:
    """Between two batches it may read any number of statements."""
    path = tmp_path / "s.nq"
    path.write_text(at("a", 1) + quad("a") + at("b", 2) + "<e:s> <e:p> <e:o> .\n" * 400_000)
    batches = Source(STREAM, [str(path)], open_lines=small).batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert threads() == []


def test_short_files_and_live_ones_have_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(*args: object, **given: object) -> None:
        raise AssertionError("a thread was started")

    path = tmp_path / "s.nq"
    path.write_text(stream(300))
    monkeypatch.setattr("spaseq.rdf.ahead.threading.Thread", no_thread)
    assert list(Source(STREAM, [str(path)]).batches())
    assert list(Source(STREAM, [str(path)], options(arrival_time=True), open_lines=small))
    assert list(Source(STREAM, [str(path)], options(workers=1), open_lines=small))
    with pytest.raises(AssertionError, match="a thread was started"):
        list(Source(STREAM, [str(path)], open_lines=small))


def test_workers_are_at_least_one() -> None:
    with pytest.raises(SpaseqError, match="--workers 0"):
        options(workers=0)


# ------------------------------------------------------------------ several streams


def both(tmp_path: Path, texts: tuple[str, str], workers: int) -> list[object]:
    """The matches of two streams, or the error."""
    run, domain = spaseq.compile(QUERY).start(), TimeDomain()
    sources = []
    for number, (iri, text) in enumerate(zip((STREAM, OTHER), texts, strict=True)):
        path = tmp_path / f"{number}.nq"
        path.write_text(text)
        source = Source(iri, [str(path)], options(workers=workers), number, domain)
        source.open_lines, source.relevance = small, run.relevance
        sources.append(source)
    found: list[object] = []
    try:
        found += [match.to_json() for match in matches(run, merge(sources))]
    except InputError as error:
        found.append(str(error))
    assert threads() == []
    return found


def test_two_streams_are_read_ahead(tmp_path: Path) -> None:
    texts = stream(200, 1), stream(200, 2)
    found = both(tmp_path, texts, 2)
    assert found == both(tmp_path, texts, 1)
    assert len(found) > 100
    dated = at("d", "2026-01-01T00:00:00Z") + quad("d")
    for wrong in ((texts[0], dated), (dated, texts[1]), (texts[0], texts[1] + dated)):
        assert both(tmp_path, wrong, 2) == both(tmp_path, wrong, 1)


# ------------------------------------------------------------------ the dictionary


def test_terms_become_permanent_while_a_thread_reads(tmp_path: Path) -> None:
    """The consumer enters terms that the thread looks up, and many more, so that tables grow."""
    path = tmp_path / "s.nq"
    path.write_text(
        "".join(at(f"g{n}", n) + quad(f"g{n}", f"<e:o{n % 5000}>") for n in range(60_000))
    )

    def facts(workers: int) -> list[object]:
        dictionary = Dictionary()
        source = Source(STREAM, [str(path)], options(workers=workers))
        source.open_lines = lambda path: Lines(path, block=60_000)
        source.relevance = Relevance(dictionary, [(ox.NamedNode("e:p"), None)])
        found: list[object] = []
        entered = 0
        for batch in source.batches():
            for number in range(entered, entered + 400):
                dictionary.intern(ox.NamedNode(f"e:o{number}"))
                dictionary.intern(ox.Literal(number))
            entered += 400
            batch.refit()
            for index in range(len(batch)):
                (fact,) = batch.facts(index)
                found.append((batch.time(index).term.value, *map(str, fact)))
                # An equal permanent term has the permanent number.
                assert batch.number(fact[2]) == dictionary.intern(fact[2]) or entered < 5000
        assert entered > 20_000
        return found

    assert facts(2) == facts(1)
    assert threads() == []


# ------------------------------------------------------------------ rows


MAPPING = "CONSTRUCT { <e:s> <e:p> ?value } WHERE { BIND(xsd:integer(?time) AS ?_time) }"


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_rows_are_read_ahead(tmp_path: Path, on_error: str) -> None:
    lines = [f"{number},value {number} {'x' * 40}\n" for number in range(60_000)]
    for place in range(20_000, 60_000, 9000):
        lines[place] = "1,2,3\n"
    path = tmp_path / "s.csv"
    path.write_text("time,value\n" + "".join(lines))

    def rows(workers: int) -> list[object]:
        found: list[object] = []
        given = options(on_error=on_error, workers=workers)
        mapping = read_mapping(MAPPING)
        source = RowSource(STREAM, [str(path)], given, log=found.append, mapping=mapping)
        try:
            for batch in source.batches():
                found += [(batch.time(i), *batch.facts(i)) for i in range(len(batch))]
        except InputError as error:
            found.append(str(error))
        return [*found, source.counters]

    ahead = rows(2)
    assert ahead == rows(1)
    assert len(ahead) > (59_000 if on_error == "skip" else 20_000)
    assert threads() == []

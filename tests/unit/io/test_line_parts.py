"""A file whose parts several threads read gives what one thread gives, errors included."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pyoxigraph as ox
import pytest
from reading import INTEGER, STREAM, at, options, quad

from spaseq.errors import SpaseqError
from spaseq.io import line_parts
from spaseq.io.lines import Lines
from spaseq.io.read_options import ReadOptions
from spaseq.io.source import Source
from spaseq.rdf.native._terms import Dictionary, Relevance

BLOCK = 1 << 13
"""Bytes; an event has some hundred, so most parts begin in the sixteenth that is searched."""
USES = [(ox.NamedNode("e:p"), None), (ox.NamedNode("e:q"), ox.NamedNode("e:o1"))]


@pytest.fixture
def adopted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each part that was read without an error was adopted."""
    answers: list[bool] = []

    def adopt(*given: object) -> bool:
        answers.append(line_parts_adopt(*given))  # type: ignore[arg-type]
        return answers[-1]

    line_parts_adopt = line_parts.adopt
    monkeypatch.setattr(line_parts, "adopt", adopt)
    return answers


def seen(paths: list[Path], given: ReadOptions, uses: object = USES) -> list[object]:
    """The events of files, then the messages, the error that ends them, and the counters.

    A message arrives before the batch of its place, and where a batch ends is not compared.
    """
    found: list[object] = []
    messages: list[object] = []
    source = Source(STREAM, [str(path) for path in paths], given, number=3, log=messages.append)
    source.open_lines = lambda path: Lines(path, block=BLOCK)
    source.relevance = Relevance(Dictionary(), uses)  # type: ignore[arg-type]
    try:
        for batch in source.batches():
            for index in range(len(batch)):
                place = batch.file, batch.line(index), batch.ordinal(index), batch.size(index)
                found.append((batch.time(index), batch.name(index), batch.facts(index), place))
    except SpaseqError as error:
        messages.append(str(error))
    return [*found, *messages, source.counters]


def told_apart(paths: list[Path], uses: object = USES, **given: object) -> list[object]:
    """What is seen with threads, which must be what is seen without them."""
    alone = seen(paths, options(workers=1, **given), uses)  # type: ignore[arg-type]
    several = seen(paths, options(workers=3, **given), uses)  # type: ignore[arg-type]
    assert several == alone
    assert not [one.name for one in threading.enumerate() if one.name.startswith("spaseq")]
    return alone


def events(count: int, draw: random.Random, name: str = "g", first: int = 0) -> list[str]:
    """Lines of events from a time on, each with the timestamp before or after its quads."""
    lines = []
    for number in range(count):
        graph = f"{name}{number}"
        quads = [
            quad(graph, draw.choice(["<e:o>", '"x"', "_:b", "_:c", f'"é{number}"']))
            for _ in range(draw.randrange(1, 5))
        ]
        stamp = at(graph, first + number // 2)
        lines += [stamp, *quads] if draw.random() < 0.7 else [*quads, stamp]
    return lines


def written(path: Path, lines: list[str]) -> Path:
    path.write_bytes("".join(lines).encode())
    return path


def test_parts_are_adopted(tmp_path: Path, adopted: list[bool]) -> None:
    path = written(tmp_path / "s.nq", events(1200, random.Random(1)))
    found = told_apart([path])
    assert len(found) == 1201
    assert len(adopted) > path.stat().st_size // BLOCK // 2 > 10
    assert all(adopted)


def test_several_files_and_every_triple(tmp_path: Path, adopted: list[bool]) -> None:
    paths = [
        written(tmp_path / f"{name}.nq", events(600, random.Random(name), name, first))
        for name, first in [("a", 0), ("b", 400)]
    ]
    told_apart(paths, uses=None)
    assert adopted.count(True) > 20


def test_short_files_start_no_threads(tmp_path: Path, adopted: list[bool]) -> None:
    told_apart([written(tmp_path / "s.nq", events(50, random.Random(2)))])
    assert adopted == []


def again(lines: list[str], draw: random.Random) -> None:
    """A graph that is complete occurs again."""
    lines.insert(draw.randrange(len(lines)), quad(f"g{draw.randrange(100)}"))


def backwards(lines: list[str], draw: random.Random) -> None:
    """Time runs backwards."""
    place = draw.randrange(len(lines) // 2, len(lines))
    lines[place:place] = [at("late", 5), quad("late")]


def malformed(lines: list[str], draw: random.Random) -> None:
    """A line is no statement."""
    broken = draw.choice(
        ["<e:s> <e:p> oops .\n", '<e:s> <e:p> "x .\n', "<e:s> <e:p> <e:o> <e:g>\n", "\xff\n"]
    )
    lines.insert(draw.randrange(len(lines)), broken)


def untimed(lines: list[str], draw: random.Random) -> None:
    """A graph has no timestamp."""
    lines.insert(draw.randrange(len(lines)), quad("untimed"))


def dated(lines: list[str], draw: random.Random) -> None:
    """A timestamp is of another domain."""
    stamp = '<e:dated> <http://www.w3.org/ns/prov#generatedAtTime> "2020-01-01T00:00:00Z"'
    date = f"{stamp}^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n"
    lines.insert(draw.randrange(len(lines)), date)


def long(lines: list[str], draw: random.Random) -> None:
    """A line is longer than a block."""
    place = draw.randrange(len(lines))
    lines[place:place] = [at("long", 1), quad("long", f'"{"x" * draw.randrange(9000)}"')]


def huge(lines: list[str], draw: random.Random) -> None:
    """An event is longer than several blocks."""
    lines += [at("huge", 10**6), *[quad("huge", f'"{n}"') for n in range(800)]]
    lines += events(200, draw, "h", 10**6)


def plain(lines: list[str], draw: random.Random) -> None:
    """Lines that pyoxigraph parses, comments, and statements of no event."""
    for some in (
        ["<e:s> <e:\\u0070> <e:o> <e:g1> .\n"],
        ["# no statement\n"],
        ["<e:s> <e:z> 1 .\n"],
        ["\n"],
    ):
        for _ in range(3):
            place = draw.randrange(len(lines))
            lines[place:place] = some


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize(
    "spoil",
    [again, backwards, malformed, untimed, dated, long, huge, plain],
    ids=lambda f: f.__name__,
)
def test_errors_are_those_of_one_thread(
    tmp_path: Path,
    adopted: list[bool],
    spoil: Callable[[list[str], random.Random], None],
    on_error: str,
) -> None:
    for seed in range(6):
        draw = random.Random(seed)
        lines = events(400, draw)
        for _ in range(1 if on_error == "stop" else 3):
            spoil(lines, draw)
        told_apart([written(tmp_path / f"{seed}.nq", lines)], on_error=on_error)
    assert any(adopted)


@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_other_line_ends(tmp_path: Path, ends: str) -> None:
    lines = events(300, random.Random(5))
    told_apart([written(tmp_path / "s.nq", [line.replace("\n", ends) for line in lines])])
    mixed = [line.replace("\n", ends) if n % 7 == 0 else line for n, line in enumerate(lines)]
    told_apart([written(tmp_path / "mixed.nq", [*mixed, "oops\n", *mixed])], on_error="skip")


@pytest.mark.parametrize("blank", [False, True])
def test_names_and_orders(tmp_path: Path, adopted: list[bool], blank: bool) -> None:
    """Blank nodes as names, names that occur again, late events, a path to the time."""
    lines = events(500, random.Random(6))
    if blank:
        lines = [re.sub(r"<e:(g\d+)>", r"_:\1", line) for line in lines]
    draw = random.Random(7)
    path = written(tmp_path / "s.nq", lines)
    told_apart([path])
    told_apart([path], reuse_graph_names=True)
    told_apart([path], time_predicate="<http://www.w3.org/ns/prov#generatedAtTime>")
    late = []
    for n in range(400):
        late += [at(f"g{n}", n + draw.randrange(9)), quad(f"g{n}", "_:b"), quad(f"g{n}")]
    told_apart([written(tmp_path / "late.nq", late)], lateness=4_000_000)
    inside = []
    for n in range(400):
        inside += [quad(f"g{n}"), f'<e:s> <e:t> "{n}"^^{INTEGER} <e:g{n}> .\n']
    told_apart([written(tmp_path / "inside.nq", inside)], time_predicate="^<e:p>/<e:t>")
    told_apart([written(tmp_path / "inside.nq", inside)], time_predicate="e:t")
    assert adopted.count(True) > 20


def test_messages(tmp_path: Path, adopted: list[bool]) -> None:
    draw = random.Random(8)
    lines = ['VERSION "1.1-messages"\n']
    for n in range(1200):
        lines.append(f'_:o <http://www.w3.org/ns/sosa/resultTime> "{n // 3}"^^{INTEGER} .\n')
        lines += [f'_:o <e:p> "{draw.randrange(9)}" .\n' for _ in range(draw.randrange(3))]
        lines.append("MESSAGE\n" if draw.random() < 0.97 else "MESSAGE\nMESSAGE\n")
    found = told_apart([written(tmp_path / "s.nq", lines)])
    assert len(found) > 1000
    assert adopted.count(True) > 10
    lines[700] = "oops\n"
    told_apart([written(tmp_path / "s.nq", lines)], on_error="skip")
    told_apart([written(tmp_path / "s.nq", lines)])


def test_a_consumer_may_stop(tmp_path: Path) -> None:
    path = written(tmp_path / "s.nq", events(2000, random.Random(9)))
    source = Source(STREAM, [str(path)], options(workers=3))
    source.open_lines = lambda path: Lines(path, block=BLOCK)
    batches = source.batches()
    for _ in range(6):
        next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert not [one.name for one in threading.enumerate() if one.name.startswith("spaseq")]


def test_a_file_that_shrinks(tmp_path: Path) -> None:
    path = written(tmp_path / "s.nq", events(2000, random.Random(9)))
    source = Source(STREAM, [str(path)], options(workers=3, on_error="skip"), log=lambda text: None)
    source.open_lines = lambda path: Lines(path, block=BLOCK)
    batches = source.batches()
    read = sum(len(next(batches)) for _ in range(3))
    with path.open("r+b") as file:
        file.truncate(20 * BLOCK)
    read += sum(map(len, batches))
    assert 50 < read < 2000

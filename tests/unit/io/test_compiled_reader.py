"""The compiled reader against the plain one: random streams, whole and damaged.

Events, times, ordinals, labels, lines, errors, the log and all counters must be the same,
whatever is wrong with the input, however it is cut into blocks, and for every way of
reading. What pruning leaves out is told by the patterns.
"""

from __future__ import annotations

import gzip
import io
import random
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from outcome import Outcome, assert_same
from reading import DATE_TIME, GENERATED, INTEGER, STREAM, options

import spaseq.io.lines
from spaseq.io.lines import Lines
from spaseq.io.source import Source
from spaseq.rdf.native._terms import Dictionary, Relevance

XSD = "http://www.w3.org/2001/XMLSchema#"
IRIS = [
    "<e:s>", "<e:p>", "<e:q>", "<http://example.org/a#b>", "<http://h:80/x?y=%41>", "<e:é>",
    "<urn:x:1>", "<e:\\u00e9>", "<http://[::1]/>", "<http://u@h/>", "<e:long/" + "x" * 40 + ">",
]  # fmt: skip
PREDICATES = [*IRIS[:4], GENERATED, "<e:t>", "<http://www.w3.org/ns/sosa/resultTime>"]
BLANKS = ["_:x", "_:y", "_:x1", "_:a.b", "_:é", "_:0"]
LITERALS = [
    '"a"', '""', '"a b"@en', '"x"@EN-us', '"x"@en-Latn-DE', '"x"@en--ltr', f'"1"^^<{XSD}integer>',
    f'"1.5"^^<{XSD}double>', f'"s"^^<{XSD}string>', '"tab\\t\\"quote\\" \\u00e9 \\U0001F600 é"',
    '"x"^^<e:\\u00e9>', '"x" ^^ <e:d>', '"x" @en', '"\\\\"', '"' + "y" * 50 + '"',
]  # fmt: skip
ODD = [
    "<e:s> <e:p> <e:o>", "rubbish", '<e:s> <e:p> "open .', "<e:s> <e:p> <e o> <e:g1> .", "<e:s>",
    "<e:s> <e:p> <<( <e:a> <e:b> <e:c> )>> <e:g1> .", "MESSAGE", ' VERSION "1.2" # x', "# comment",
    "", "  \t", "<e:s> <e:p> <relative> .", '<e:s> <e:p> "x"@e .', '<e:s> <e:p> "\\ud800" .',
    '<e:s> <e:p> "x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> <e:g1> .',
    "MESSAGE .", "MESSAGE # now", f"<e:g9> {GENERATED} <<( <e:a> <e:b> <e:c> )>> .",
    "<e:s> <e:p> <e:o> <e:g1> . <e:s> <e:p> <e:o> .", "_:a. <e:p> <e:o> .",
]  # fmt: skip


def stamp(draw: random.Random, second: int) -> str:
    return draw.choice(
        [
            f'"{second}"^^{INTEGER}', f'"{second}.50"^^<{XSD}decimal>',
            f'"{second}e0"^^<{XSD}double>',
            f'"{second}"^^<{XSD}short>', f'" {second} "^^<{XSD}integer>', f'"{second}"^^{INTEGER}',
        ]
    )  # fmt: skip


def date(draw: random.Random, second: int) -> str:
    return draw.choice(
        [
            f'"2026-01-01T00:00:{second % 60:02}Z"^^{DATE_TIME}',
            f'"2026-01-01T01:00:{second % 60:02}.250+01:00"^^{DATE_TIME}',
            f'"2026-01-01T00:00:{second % 60:02}"^^{DATE_TIME}',
            f'"2026-01-01T00:00:{second % 60:02}.5Z"^^<{XSD}dateTimeStamp>',
        ]
    )


def graph_stream(draw: random.Random) -> list[str]:
    """Lines of a stream of named graphs, mostly well-formed."""
    lines: list[str] = []
    second = 0
    write = date if draw.random() < 0.3 else stamp
    for place in range(draw.randrange(1, 12)):
        name = draw.choice(["<e:g%d>", "_:g%d"]) % (
            place if draw.random() < 0.95 else draw.randrange(12)
        )
        second += draw.choice([0, 0, 1, 1, 5, -3] if draw.random() < 0.1 else [0, 1, 2])
        time = write(draw, max(second, 0))
        quads = [
            f"{draw.choice(IRIS + BLANKS)} {draw.choice(PREDICATES)} "
            f"{draw.choice(IRIS + BLANKS + LITERALS)} {name} ."
            for _ in range(draw.randrange(5))
        ]
        if draw.random() < 0.2:
            quads.append(f"<e:s> <e:t> {time} {name} .")
        said = f"{name} {draw.choice([GENERATED] * 9 + ['<e:t>'])} {time} ."
        before = draw.random() < 0.6
        lines += [said, *quads] if before else [*quads, said]
        if draw.random() < 0.05:
            lines.append(said)
    for _ in range(draw.choice([0, 0, 1, 2])):
        lines.insert(draw.randrange(len(lines) + 1), draw.choice(ODD))
    return lines


COLUMNS = [
    ("<http://example.org/stock/type>", ["<http://example.org/stock/Trade>"]),
    ("<http://example.org/stock/company>", [f"<http://example.org/{n}>" for n in "abc"]),
    ("<http://example.org/stock/price>", [f'"{n}.5"^^<{XSD}double>' for n in range(9)]),
    ("<http://example.org/stock/volume>", [f'"{n}0"^^{INTEGER}' for n in range(9)]),
    ("<http://example.org/stock/note>", ['"a note"', '"a b"@en', f'"s"^^<{XSD}string>']),
    ("<http://example.org/stock/says>", [f'"{n}"^^<{XSD}string>' for n in range(3)]),
    ("<e:p>", [*IRIS, '"x"', '"é"', *BLANKS]),
    ("<e:q>", ["<e:s>", '"a b"@en', "<e:o>", '"\\t"']),
]  # fmt: skip


def steady_stream(draw: random.Random) -> list[str]:
    """Events that are alike: the same predicates in the same order, of one subject each."""
    columns = draw.sample(COLUMNS, draw.randrange(1, len(COLUMNS)))
    lines = []
    for second in range(draw.randrange(2, 30)):
        name = draw.choice(["<http://example.org/stock/graph/%03d>"] * 9 + ["_:g%d"]) % second
        lines.append(f'{name} {GENERATED} "{second}"^^{INTEGER} .')
        trade = draw.choice(["<http://example.org/stock/trade/%03d>"] * 9 + ["_:b%d"]) % second
        lines += [f"{trade} {p} {draw.choice(some)} {name} ." for p, some in columns]
        if draw.random() < 0.05:
            lines.insert(draw.randrange(len(lines)), draw.choice(ODD))
    return lines


def message_stream(draw: random.Random) -> list[str]:
    lines = ['VERSION "1.1-messages"'] if draw.random() < 0.7 else []
    for second in range(draw.randrange(1, 8)):
        for _ in range(draw.randrange(4)):
            lines.append(f"{draw.choice(IRIS + BLANKS)} <e:p> {draw.choice(LITERALS + BLANKS)} .")
        if draw.random() < 0.9:
            lines.append(f"_:x {draw.choice(PREDICATES[-3:])} {stamp(draw, second)} .")
        lines.append("MESSAGE")
    if draw.random() < 0.3:
        lines.insert(draw.randrange(len(lines) + 1), draw.choice(ODD))
    return lines


def damaged(draw: random.Random, lines: list[str]) -> bytes:
    """The lines as bytes, with odd white space, line ends and a few bytes gone wrong."""
    if draw.random() < 0.2:
        lines = [line.replace(" ", draw.choice(["\t", "  ", " \t "])) for line in lines]
    end = draw.choice(["\n", "\n", "\n", "\n", "\r\n", "\r", "\n\n"])
    data = bytearray((end.join(lines) + draw.choice([end, ""])).encode())
    for _ in range(draw.choice([0, 0, 0, 1, 3])):
        place = draw.randrange(len(data)) if data else 0
        change = draw.randrange(4)
        if change == 0:
            data[place : place + 1] = b""
        elif change == 1:
            data[place:place] = bytes([draw.choice(b'<>"\\_:.@^# \t\n\r\0\xff\xc3abc%[]{|')])
        elif change == 2:
            data[place : place + 1] = bytes([draw.randrange(256)])
        else:
            del data[place:]
    return bytes(data)


USES = [
    (ox.NamedNode("e:p"), None),
    (ox.NamedNode("e:q"), ox.NamedNode("e:s")),
    (ox.NamedNode("e:q"), ox.Literal("a b", language="en")),
]


def pruned(shown: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What is left of events when nothing is kept but what `USES` names."""
    kept = {str(predicate): {None if o is None else str(o) for p, o in USES if p == predicate}
            for predicate, _ in USES}  # fmt: skip
    return [
        (*event[:6],
         [f for f in event[6] if f[1] in kept and kept[f[1]] & {None, f[2]}], event[7])
        for event in shown
    ]  # fmt: skip


WAYS: list[dict[str, object]] = [
    {},
    {"on_error": "skip"},
    {"on_error": "skip", "lateness": 2_000_000},
    {"lateness": 2_000_000},
    {"on_error": "skip", "time_predicate": "e:t"},
    {"on_error": "skip", "arrival_time": True},
    {"events": "triples:2", "on_error": "skip"},
    {"events": "triples:2", "time_predicate": "e:t", "on_error": "skip"},
    {"events": "message", "on_error": "skip"},
    {"unit": "ms", "on_error": "skip"},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("name", ["s.nq", "s.nt", "s.nq.gz", "s.trig"])
def test_the_same_as_the_plain_reader(tmp_path: Path, way: dict[str, object], name: str) -> None:
    draw = random.Random(f"{way} {name}")
    relevance = Relevance(Dictionary())
    for number in range(60):
        lines = message_stream(draw) if draw.random() < 0.3 else graph_stream(draw)
        data = damaged(draw, lines)
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        model = Outcome(path, True, **way)
        assert_same(
            Outcome(path, False, relevance if number % 2 else None, **way),
            model,
            data,
            "lateness" in way,
        )


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize("uses", [None, "some"])
def test_streams_of_like_lines(tmp_path: Path, on_error: str, uses: str | None) -> None:
    """From a file and from memory, in blocks of the usual size."""
    draw = random.Random(f"{on_error} {uses}")
    path = tmp_path / "s.nq"
    for _ in range(150):
        lines = steady_stream(draw)
        if uses is not None:
            # Nodes are numbered among what is kept.
            lines = [line for line in lines if "_:" not in line]
        data = damaged(draw, lines)
        path.write_bytes(data)
        model = Outcome(path, True, on_error=on_error)
        if uses is not None:
            model.shown = pruned(model.shown)
        for opened in (Lines, lambda path, data=data: Lines(path, io.BytesIO(data))):
            relevance = None if uses is None else Relevance(Dictionary(), USES)
            read = Outcome(path, False, relevance, opened, on_error=on_error)
            assert_same(read, model, data)


@pytest.mark.parametrize("size", [1, 7, 40, 200, 1000])
def test_blocks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    draw = random.Random(size)
    path = tmp_path / "s.nq"
    for _ in range(60):
        data = damaged(draw, graph_stream(draw))
        path.write_bytes(data)
        for way in ({"on_error": "skip"}, {"on_error": "skip", "lateness": 1_000_000}):
            model = Outcome(path, True, **way)
            monkeypatch.setattr(spaseq.io.lines, "_FILE_BLOCK", size)
            assert_same(Outcome(path, False, **way), model, data, placed=False)
            monkeypatch.undo()


def test_a_large_stream_with_errors_here_and_there(tmp_path: Path) -> None:
    draw = random.Random(1)
    lines = []
    for second in range(6000):
        name = f"<e:g{second}>"
        said = f"{name} {GENERATED} {stamp(draw, second)} ."
        lines += [said] + [
            f"{draw.choice(IRIS + BLANKS)} <e:p> {draw.choice(LITERALS)} {name} ." for _ in "ab"
        ]
        if draw.random() < 0.02:
            lines.append(draw.choice(ODD))
    path = tmp_path / "s.nq"
    data = "\n".join(lines).encode()
    path.write_bytes(data)
    assert_same(Outcome(path, False, on_error="skip"), Outcome(path, True, on_error="skip"), b"")
    path.write_bytes(data + b"\n<e:s> <e:p> <e:o> <e:g0> .\n")
    model = Outcome(path, True)
    assert_same(Outcome(path, False), model, b"")


@pytest.mark.parametrize("way", WAYS[:6], ids=str)
@pytest.mark.parametrize("name", ["s.nq", "s.trig"])
def test_pruning_leaves_out_what_no_pattern_has(
    tmp_path: Path, way: dict[str, object], name: str
) -> None:
    draw = random.Random(str(way))
    path = tmp_path / name
    for _ in range(60):
        lines = [line for line in graph_stream(draw) if "_:" not in line]
        data = damaged(draw, lines)
        path.write_bytes(data)
        model = Outcome(path, True, **way)
        read = Outcome(path, False, Relevance(Dictionary(), USES), **way)
        model.shown = pruned(model.shown)
        assert_same(read, model, data, "lateness" in way)


def test_labels_are_the_events_own_when_pruned(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_text(
        f'_:g {GENERATED} "1"^^{INTEGER} .\n_:a <e:r> _:b _:g .\n_:a <e:p> _:c _:g .\n'
        f'_:c <e:p> _:g _:g .\n<e:h> {GENERATED} "2"^^{INTEGER} .\n_:c <e:p> "x" <e:h> .\n'
    )
    source = Source(STREAM, [str(path)], options(), 2, relevance=Relevance(Dictionary(), USES))
    one, two = source
    assert [" ".join(map(str, fact)) for fact in one.facts] == [
        "_:s2e1b0 <e:p> _:s2e1b1", "_:s2e1b1 <e:p> _:s2e1b2",
    ]  # fmt: skip
    assert str(one.name) == "_:s2e1b2"
    assert [str(fact[0]) for fact in two.facts] == ["_:s2e2b0"]
    assert source.counters.statements == 4

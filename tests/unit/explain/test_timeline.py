"""Time lines of matches: one bar per match, in lanes that do not collide, and faulty input."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from engine_runs import program

import spaseq
from spaseq import cli
from spaseq.errors import InputError
from spaseq.explain.timeline import read_matches

SVG = "{http://www.w3.org/2000/svg}"
EX = "http://example.org/"


def match(start: float | str, end: float | str, query: str = "q") -> dict[str, object]:
    return {
        "query": query,
        "start": start,
        "end": end,
        "bindings": {"x": {"type": "literal", "value": "a<b&c"}},
        "events": [{"gpm": "A", "time": start}, {"gpm": "B", "time": end}],
    }


def bars(svg: str) -> list[tuple[float, float, float]]:
    """The left side, right side and ordinate of each bar."""
    rects = [group.find(f"{SVG}rect") for group in ElementTree.fromstring(svg).iter(f"{SVG}g")]
    return [
        (
            float(rect.attrib["x"]),
            float(rect.attrib["x"]) + float(rect.attrib["width"]),
            float(rect.attrib["y"]),
        )
        for rect in rects
        if rect is not None
    ]


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_bars_do_not_collide() -> None:
    given = [match(start, start + length) for start in range(20) for length in (0, 3, 7)]
    found = bars(str(spaseq.plot(given)))
    assert len(found) == 60
    for (left, right, y), (other_left, other_right, other_y) in combinations(found, 2):
        assert y != other_y or right <= other_left + 1 or other_right <= left + 1


def test_queries_are_apart_and_counted() -> None:
    svg = str(spaseq.plot([match(1, 2), match(1, 2, "r"), match(3, 4, "r")]))
    assert {"q: 1 match", "r: 2 matches", "A", "B"} <= set(texts(svg))
    titles = [ElementTree.fromstring(str(spaseq.plot([match(1, 2)] * n))) for n in (1, 2)]
    shown = [title.findtext(f"{SVG}title") or "" for title in titles]
    assert [text.split(" from")[0] for text in shown] == ["1 match", "2 matches"]


def test_tooltips_have_times_and_bindings() -> None:
    svg = str(spaseq.plot([match("2026-01-05T08:00:00Z", "2026-01-05T08:30:00Z")]))
    tip = ElementTree.fromstring(svg).findtext(f"{SVG}g/{SVG}title")
    assert tip is not None
    assert "?x = a<b&c" in tip.splitlines()
    assert "01-05 08:15" in texts(svg)


def test_simultaneous_events_are_all_visible() -> None:
    svg = str(spaseq.plot([match(5, 5)]))
    (group,) = ElementTree.fromstring(svg).iter(f"{SVG}g")
    sizes = [float(dot.attrib["r"]) for dot in group.iter(f"{SVG}circle")]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 2


def test_more_matches_than_shown_are_counted() -> None:
    svg = str(spaseq.plot((match(n, n + 1) for n in range(7)), most=3))
    assert len(bars(svg)) == 3
    assert "4 more matches are not shown" in texts(svg)


def test_no_matches() -> None:
    assert texts(str(spaseq.plot([]))) == ["no matches"]


@pytest.mark.parametrize("times", [(0, 1e-6), (0, 0.25), (0, 3e9), (-5, 5), (7, 7)])
def test_axes_of_any_length(times: tuple[float, float]) -> None:
    ticks = texts(str(spaseq.plot([match(*times)])))
    assert 1 <= len(ticks) < 20


def test_matches_of_a_run(tmp_path: Path) -> None:
    run = program().start()
    fact = "<{0}x> <{0}{1}> 1 ."
    run.push(EX + "s", 1, fact.format(EX, "a").replace(" 1 ", ' "1" ').encode())
    matches = run.push(EX + "s", 3, fact.format(EX, "b").replace(" 1 ", ' "1" ').encode())
    picture = spaseq.plot([*matches, *run.finish()])
    assert len(bars(str(picture))) == 1
    assert picture._repr_svg_() == str(picture)
    picture.save(tmp_path / "one.svg")
    assert (tmp_path / "one.svg").read_text("utf-8") == str(picture)


@pytest.mark.parametrize(
    "wrong", [{"query": "q"}, {"query": "q", "end": []}, {"query": "q", "end": "x"}]
)
def test_objects_that_are_no_matches(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match="this is not a match"):
        spaseq.plot([wrong])


def test_times_of_two_kinds() -> None:
    with pytest.raises(InputError, match="dates for times, and others numbers"):
        spaseq.plot([match(1, 2), match("2026-01-05T08:00:00Z", "2026-01-05T08:00:00Z")])


@pytest.mark.parametrize("line", ["{", "[]", '{"query": "q"}'])
def test_lines_that_are_no_matches(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps(match(1, 2)) + "\n\n" + line + "\n")
    assert cli.main(["plot", str(path)]) == 2
    assert f"{path}, line 3: not " in capsys.readouterr().err


def test_the_command_writes_an_image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text("".join(json.dumps(match(n, n + 1)) + "\n" for n in range(5)))
    assert cli.main(["plot", str(path), "--limit", "4"]) == 0
    shown = capsys.readouterr().out
    assert len(bars(shown)) == 4
    assert cli.main(["plot", str(path), "--limit", "4", "-o", str(tmp_path / "m.svg")]) == 0
    assert (tmp_path / "m.svg").read_text("utf-8") == shown
    assert cli.main(["plot", str(path), "-o", str(path)]) == 2


@pytest.mark.parametrize(
    "line",
    [
        b'{"query": 1, "end": NaN}',
        b'{"query": 1, "end": 1e999}',
        b'{"query": 1, "end": [1]}',
        b'{"query": 1, "end": "x"}',
        b'{"query": 1, "end": 1, "bindings": [1]}',
        b'{"query": 1, "end": 1, "bindings": 5}',
        b'{"query": 1, "end": 1, "events": 5}',
        b'{"query": 1, "end": 1, "events": [5]}',
        b'{"query": 1, "end": 1, "events": [{"gpm": 1, "time": null}]}',
        b"[" * 100_000,
        b"\xff",
        b"5",
    ],
    ids=range(12),
)
def test_a_line_that_is_no_match_is_named(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_bytes(line + b"\n")
    with (tmp_path / "m.jsonl").open("rb") as lines, pytest.raises(InputError):
        spaseq.plot(read_matches(lines, "m.jsonl"))

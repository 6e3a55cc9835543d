"""The experiments of the papers on small inputs: matches, counters, pictures and the page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from itertools import combinations, pairwise
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
from oracle import evaluate, timestamp
from scripts import ROOT, printed

import spaseq
from spaseq.io.source import Source
from spaseq.rdf.event import NUMBER, Event

FOLDER = ROOT / "benchmarks" / "papers"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "automaton"))
    monkeypatch.syspath_prepend(str(FOLDER))
    import report

    return report


def test_no_folder_hides_the_package() -> None:
    """Beside a script, Python would import such a folder in place of an editable install."""
    assert not [path for path in ROOT.glob("benchmarks/**/spaseq") if path.is_dir()]


def test_the_page_has_every_figure(report: ModuleType, tmp_path: Path) -> None:
    """The scripts compare their matches with independent counts, and fail if one differs."""
    options = ["--short", "--output", str(tmp_path), "--record", str(tmp_path / "record.json")]
    printed(FOLDER / "report.py", *options, "--peers", "duckdb", "polars")
    page = (tmp_path / "index.html").read_text("utf-8")
    record = json.loads((tmp_path / "record.json").read_text("utf-8"))["figures"]
    scripts = list(FOLDER.glob("*/*.py"))
    of_data = {"spaseq-published", "spaseq-stocks", "spaseq-traffic", "spaseq-smart-home"}
    published = of_data if "SPASEQ_DATA" in os.environ else set()
    assert {"duckdb", "polars"} == set(record["peers-sequences"]["lines"])
    assert len(record) == len(scripts) - len(of_data - published)
    assert of_data & set(record) == published
    for name, shown in record.items():
        assert f'id="{name}"' in page
        assert shown["answer"] in page
        picture = ElementTree.parse(tmp_path / f"{name}.svg").getroot()
        figure = json.loads((tmp_path / f"{name}.json").read_text("utf-8"))
        points = [point for line in figure["lines"] for point in line["points"]]
        shape = "rect[@height]" if figure["x"]["places"] else "circle"
        keys = len(figure["lines"]) * bool(figure["x"]["places"])
        assert len(picture.findall(f".//{{*}}{shape}")) == len(points) + keys
        assert all(point["counts"] for point in points)
    import history

    for ratio in history.RATIOS:
        for line, _ in (ratio.above, ratio.below):
            assert len(record[ratio.figure]["lines"][line]) > 1
        assert (FOLDER / f"{ratio.script}.py") in scripts
    for script in scripts:
        readme = (script.parent / "README.md").read_text("utf-8")
        assert f"python benchmarks/papers/{script.relative_to(FOLDER).as_posix()}" in readme


@pytest.mark.parametrize("name", ["clauses", "windows"])
def test_the_queries_over_trades(report: ModuleType, name: str) -> None:
    """The figures' matches are those of the reference."""
    import feeds

    script = report.module_of(FOLDER / "spaseq_2019" / f"{name}.py")
    ways = script.OPERATORS if name == "clauses" else script.SEQUENCES
    total = 0
    with feeds.trades(150) as feed:
        events = list(Source(feed.iri, [str(feed.path)]))
        for text in (script.query(3, way) for way in ways.values()):
            (point,) = feeds.rates({1.0: text}, [feed], 1)
            assert point.counts["matches"] == len(evaluate(text, {feed.iri: events}))
            total += point.counts["matches"]
    assert total


def test_evaluations_are_counted(report: ModuleType) -> None:
    """Eagerly, each B is compared with all different values of an A before it in the window."""
    import counts
    import feeding
    import streams
    from workloads import LEAST, RARE_END

    every, window = streams.rarely("AB", "C", 20_000), 300
    end = next(place for place, (kind, _, _) in enumerate(every) if kind == "C")
    events = every[end - 500 : end + 100]
    program = spaseq.compile(RARE_END.query.replace("WITHIN 1000 ", f"WITHIN {window} "))
    eager, lazy = (feeding.tallied(program, events, lazily) for lazily in (False, True))
    assert eager.found == lazy.found == counts.products(events, window, LEAST)
    assert eager.evaluations == sum(
        len({value for other, _, value in events[max(0, place - window) : place] if other == "A"})
        for place, (kind, _, _) in enumerate(events)
        if kind == "B"
    )
    assert 0 < lazy.evaluations < eager.evaluations / 100


@pytest.mark.parametrize("sequence", ["A : B : C", "A AND B AND C", "A : !D : B : C"])
def test_the_rules_of_the_lazy_figures_save_evaluations(report: ModuleType, sequence: str) -> None:
    operators = report.module_of(FOLDER / "lazy" / "operators.py")
    ((lazy, eager),) = operators.compared(sequence, 5, operators.histories(1_600)[-800:], 1)
    assert lazy.matches == eager.matches > 0
    assert lazy.evaluations < eager.evaluations
    assert lazy.groups <= eager.groups


@pytest.mark.parametrize(
    "name", ["duckdb", "polars", "pyoxigraph", "siddhi", "flink", "comunica", "rsp-js"]
)
def test_a_driver_answers_as_documented(report: ModuleType, name: str) -> None:
    """Every question it can ask, twice, over events that it has not seen before."""
    import counts
    import streams
    from driving import KNOWN, Driver, Unable

    steps = ["A1", "A2", "A3"]
    sizes = {"comunica": 12, "rsp-js": 9, "pyoxigraph": 60}
    some, keyed = streams.steps(3, sizes.get(name, 300)), streams.keyed(3, sizes.get(name, 300))
    asked = [
        ("next", 20, steps, some, counts.nearest(some, steps, 20)),
        ("all", 20, steps, some, sum(counts.endings(some, steps, 20))),
        ("key", 30, "AB", keyed, counts.joined(keyed, 30)),
    ]
    answered = 0
    try:
        with Driver(KNOWN[name]) as driver:
            for question, window, kinds, events, expected in asked:
                lines = [f"{time},{kind},{key}" for time, (kind, key, _) in enumerate(events)]
                if (name, question) == ("siddhi", "all"):
                    with pytest.raises(Unable, match="no way to ask for all"):
                        driver.ask(question, window, kinds, lines)
                    continue
                driver.ask(question, window, kinds, lines)
                for _ in range(2):
                    found, seconds = driver.run()
                    assert found == expected
                    assert seconds >= 0
                answered += 1
    except Unable as why:
        if name in ("duckdb", "polars", "pyoxigraph"):
            raise
        pytest.skip(str(why))
    assert answered == 3 - (name == "siddhi")


def test_a_driver_of_its_own_that_miscounts_is_refused(tmp_path: Path) -> None:
    driver = tmp_path / "driver.py"
    driver.write_text(
        "import sys\n"
        "for line in sys.stdin:\n"
        "    if line.startswith('question'): print('ready', flush=True)\n"
        "    elif line == 'run\\n': print(7, 0.5, flush=True)\n"
    )
    script = FOLDER / "peers" / "sequences.py"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def asked(peer: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(script), "--short", "--peers", peer]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    assert "mine, next: 7 matches where 214 are" in asked(f"mine={sys.executable} {driver}").stderr
    assert "core: no such peer" in asked("core").stderr


def test_ratios_are_compared_with_the_newest_record(report: ModuleType, tmp_path: Path) -> None:
    import history

    assert history.last_record(tmp_path) is None
    for day, ratio in (("2026-01-02", 2.0), ("2026-01-01", 1.0)):
        data = {"circumstances": day, "ratios": {"a: b": ratio, "a: c": 1.0}}
        (tmp_path / f"{day}.json").write_text(json.dumps(data), "utf-8")
    found = history.last_record(tmp_path)
    assert found is not None
    assert found[0] == "2026-01-02"
    kept, changed, new = history.compared({"a: c": 1.1, "a: b": 4.0, "a: d": 1.0}, found[1])
    assert kept.endswith("1.10 x")
    assert changed.endswith("2.00 x  changed")
    assert new.split() == ["a:", "d", "1"]
    folder = ROOT / "benchmarks" / "record" / "papers"
    newest = history.last_record(folder)
    assert newest is not None
    assert set(newest[1]) == {f"{ratio.figure}: {ratio.name}" for ratio in history.RATIOS}


def happened(events: list[tuple[str, int, float]]) -> list[Event]:
    """Events of the benchmarks, one a second, for the reference."""
    from streams import SECOND, STREAM, Triples

    triples = Triples()
    return [
        Event(STREAM, timestamp(place * SECOND, NUMBER), 0, [triples.of(event)])
        for place, event in enumerate(events)
    ]


@pytest.mark.parametrize(
    ("script", "name"),
    [("core/stocks", f"Q{number}") for number in range(1, 8)]
    + [("core/operators", shape) for shape in ("K3", "D3", "K5", "D5")]
    + [("cel/formulas", f"φ{number}") for number in range(1, 7)],
)
def test_the_queries_over_generated_events(report: ModuleType, script: str, name: str) -> None:
    """The automaton's matches are those of the reference, where all of them are enumerated."""
    import feeding
    import streams

    module = report.module_of(FOLDER / f"{script}.py")
    if script == "core/stocks":
        # Few names, so that there are matches among few events.
        events = list(streams.dealing(4, 60))
    elif script == "core/operators":
        steps = streams.steps(int(name[1]), 200)
        events = [event for event in steps if event[0] not in ("B1", "B3", "B4", "B5", "B6")][:50]
    else:
        events = list(module.readings(40))
    text = module.text(name, 25 if script.startswith("core") else 8)
    expected = len(evaluate(text, {streams.STREAM: happened(events)}))
    assert feeding.tallied(spaseq.compile(text), events).found == expected
    assert expected or name == "Q2"


def of_cel(events: str, selector: str) -> set[tuple[int, ...]]:
    """`A ; B+ ; C` of CEL with a selector, from its definition, over one letter for each event.

    The sets of positions that end at one position are compared in the selector's order.
    """
    places = range(len(events))
    found = [
        some
        for size in range(3, len(events) + 1)
        for some in combinations(places, size)
        if events[some[0]] == "A"
        and events[some[-1]] == "C"
        and all(events[place] == "B" for place in some[1:-1])
    ]

    def keeps(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        apart = set(one) ^ set(other)
        if one[-1] != other[-1] or not apart:
            return True
        if selector == "NEXT":
            return min(apart) in one
        if selector == "LAST":
            return max(apart) in one
        return not set(one) < set(other)

    if selector == "STRICT":
        return {some for some in found if all(b == a + 1 for a, b in pairwise(some))}
    return {some for some in found if all(keeps(some, other) for other in found)}


@pytest.mark.parametrize("selector", ["NEXT", "LAST", "MAX", "STRICT"])
def test_emit_selects_as_cel_does(report: ModuleType, selector: str) -> None:
    """CEL's selectors compare sets of positions with the same greatest one.

    The greatest position is the event that ends the match. So the matches that CEL compares are
    those that end at one instant, which are the ones that EMIT compares.
    """
    from streams import STREAM, Triples
    from workloads import query

    triples = Triples()
    patterns = {kind: f"[] :{kind} []" for kind in "ABC"}
    program = spaseq.compile(query("A : B+ : C", patterns, 100, f"EMIT {selector}"))
    total = 0
    for seed in range(12):
        chance = Random(seed)
        events = "".join(chance.choice("AABBBC") for _ in range(9)) + "C"
        run = program.start()
        found = {
            tuple(int(witness.time.seconds) for witness in match.events)
            for place, kind in enumerate(events)
            for match in run.push(STREAM, place, [triples.of((kind, 0, 0))])
        }
        assert found == of_cel(events, selector)
        total += len(found)
    assert total

"""The benchmarks run on small inputs, and count the matches of the reference."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from oracle import evaluate, timestamp
from scripts import ROOT, printed, printed_alone

from spaseq.generate import write
from spaseq.io.source import Source
from spaseq.rdf.event import NUMBER, Event

FOLDER = ROOT / "benchmarks" / "query"
MICRO = ROOT / "benchmarks" / "micro"
KB = ROOT / "benchmarks" / "kb"
AUTOMATON = ROOT / "benchmarks" / "automaton"


def test_three_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    import three_steps

    text = printed(FOLDER / "three_steps.py", "--events", "400")
    shown = re.search(r"^reading and matching .* (\d+)$", text, re.MULTILINE)
    assert shown
    trades = write("stock", 400, 1, tmp_path)[0]
    events = list(Source(three_steps.STREAM, [str(trades)]))
    query = three_steps.QUERY.replace("?many", "500")
    assert int(shown[1]) == len(evaluate(query, {three_steps.STREAM: events})) > 0
    three_steps.widen(trades, tmp_path / "wider.nq", 7)
    (wider,) = {
        len(event.facts) for event in Source(three_steps.STREAM, [str(tmp_path / "wider.nq")])
    }
    assert wider == 7
    assert len(text.splitlines()[-1].split(":")[1].split()) == three_steps.SAMPLES


def test_overlapped() -> None:
    """The script itself compares the matches of several threads with those of one."""
    text = printed(FOLDER / "overlapped.py", "--events", "8000", "--repeat", "1")
    found = re.findall(r"^(\S.*), ([\d,]+) matches$", text, re.MULTILINE)
    counts = {name: int(count.replace(",", "")) for name, count in found}
    assert list(counts) == ["N-Quads", "gzip", "zstd", "TriG", "four queries", "two streams"]
    assert len({counts[name] for name in ("N-Quads", "gzip", "zstd", "TriG")}) == 1
    assert all(counts.values())


def test_threads() -> None:
    """The script itself compares the matches of the runs."""
    text = printed(ROOT / "benchmarks" / "push" / "threads.py", "--events", "1500", "--repeat", "1")
    assert len({int(n) for n in re.findall(r"(\d+) matches each", text)} - {0}) == 1
    assert text.count(" at once ") == text.count(" in turn ") == 2


def test_parts() -> None:
    """The script itself compares the matches of several threads with those of one."""
    text = printed(FOLDER / "parts.py", "--events", "12000", "--repeat", "1")
    assert text.count(" events\n") == text.count(" matches\n") == 2
    assert text.count("  parts   elapsed") == 4


def test_live_checkpoints() -> None:
    text = printed(
        ROOT / "benchmarks" / "live" / "checkpoints.py", "--groups", "2000", "--repeat", "2"
    )
    assert text.startswith("2,000 groups: ")
    lines = [line.partition("  ")[0] for line in text.splitlines()[1:]]
    assert lines[-4:] == ["copy in memory", "saved state", "save", "load"]


def test_deadlines() -> None:
    text = printed(FOLDER / "deadlines.py", "--events", "3000", "--repeat", "1", "--keys", "30")
    rows = re.findall(r"([\d,]+) matches  ([\d,]+) groups", text)
    assert len(rows) == 18
    assert all(int(found.replace(",", "")) for found, _ in rows)


def test_skipping() -> None:
    text = printed(FOLDER / "skipping.py", "--events", "1000", "--repeat", "1")
    counts = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) matches", text)]
    assert len(counts) == 20
    for first in range(0, 20, 5):
        assert counts[first] == max(counts[first : first + 5]) > 0


def test_sliding() -> None:
    """The core and Python find the same solutions."""
    text = printed(
        FOLDER / "sliding.py",
        "--events",
        "3000",
        "--repeat",
        "1",
        "--above",
        "21",
        "--sensors",
        "9",
        "--part",
        "1",
    )
    rows = {line[:24].strip(): line.split()[-2:] for line in text.splitlines()[2:]}
    counts = {name: int(matches.replace(",", "")) for name, (matches, _) in rows.items()}
    assert counts["no GROUP"] == counts["AVG, every solution"] == 3000
    assert 0 < counts["AVG"] == counts["AVG, in Python"] < 3000
    assert rows["AVG"][1] == rows["AVG, in Python"][1] == "3,000"


def test_live_follow() -> None:
    text = printed(ROOT / "benchmarks" / "live" / "follow.py", "--events", "3000", "--repeat", "1")
    rows = [line.split() for line in text.splitlines()[2:]]
    assert len(rows) == 4
    assert len({row[-1] for row in rows}) == 1
    assert int(rows[0][-1]) > 100


def test_live_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    """A locked table and kills at any moment; `tests/unit/live/test_state.py` has more kills."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    script = ROOT / "benchmarks" / "live" / "kills.py"
    command = [sys.executable, str(script), "--events", "3000", "--kills", "4", "--refuse", "1"]
    command += ["--only", "file", "table"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("the same") == 2
    assert result.stdout.count("killed: 2") == 2


def test_a_server_under_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills amid registration, replacement and ingest; it starts three processes."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    script = ROOT / "benchmarks" / "server" / "kills.py"
    command = [sys.executable, str(script), "--kills", "2", "--most", "0.4"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.startswith("2 kills: ")
    assert result.stdout.rstrip().endswith("all there")


@pytest.mark.parametrize(
    ("script", "arguments", "expected"),
    [
        ("start.py", ("--queries", "5"), "from the state: 5 queries"),
        ("ingest.py", ("--events", "2000", "--body", "500"), "the engine alone"),
        ("standing.py", ("--queries", "20", "--events", "6000", "--only", "threshold"),
         "20 queries apart"),
        ("subscribers.py", ("--subscribers", "3", "--rate", "50", "--seconds", "1"),
         "each got 50 to 50"),
        ("flood.py", ("--connections", "20", "--seconds", "1.2"), "each with its match"),
    ],
)  # fmt: skip
def test_servers(
    script: str, arguments: tuple[str, ...], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = [sys.executable, str(ROOT / "benchmarks" / "server" / script), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    assert expected in result.stdout


def test_written_matches_of_constructs() -> None:
    script = ROOT / "benchmarks" / "writing" / "constructs.py"
    text = printed(script, "--events", "400", "--repeat", "1")
    counts = dict(re.findall(r"^(\S.*?)  +([\d,]+) matches", text, re.MULTILINE))
    assert int(counts["A : B, EMIT NEXT"]) == int(counts["A : B, EMIT ANY"]) > 0
    assert len(counts) == len(text.splitlines())


def test_writing_matches() -> None:
    text = printed(
        ROOT / "benchmarks" / "writing" / "matches.py",
        "--matches",
        "80",
        "--costs",
        "4",
        "--repeat",
        "1",
        "--formats",
        "csv",
        "nquads",
        "srx",
    )
    rows = {line[:24].strip(): line.split() for line in text.splitlines()[2:]}
    assert list(rows) == [
        "counting alone", "objects", "objects, bindings read", "csv", "nquads",
        "csv in Python", "nquads in Python", "srx in Python",
    ]  # fmt: skip
    # 20 readings, and one in Python; each is joined with its four costs.
    assert rows["csv"][1] == rows["nquads"][1] == "80"
    assert rows["srx in Python"][3] == "4"


def test_tables() -> None:
    script = ROOT / "benchmarks" / "writing" / "tables.py"
    lines = printed(script, "--matches", "50", "--repeat", "1").splitlines()
    assert [line[:12].strip() for line in lines] == ["", "to_arrow", "objects", "by hand"]
    assert all(line.split()[-5] == "50" for line in lines[1:])


def test_changes_of_queries() -> None:
    text = printed(ROOT / "benchmarks" / "many" / "changes.py", "--queries", "10", "--repeat", "2")
    assert len(re.findall(r"^  (add|remove)", text, re.MULTILINE)) == 8
    assert re.search(r"^  [1-9]\d* matches$", text, re.MULTILINE)


def test_keys_on_threads() -> None:
    """The script itself compares the matches of several threads with those of one."""
    text = printed(ROOT / "benchmarks" / "many" / "keys.py", "--events", "3000", "--repeat", "1")
    assert re.search(r" [1-9]\d* matches", text)
    assert "spaseq-part-1" in text


def test_read_nquads() -> None:
    text = printed_alone(MICRO / "read_nquads.py", "--quads", "4000", "--repeats", "2")
    assert text.startswith("4,000 quads of 500 events")
    rows = [row for row in text.splitlines()[1:] if not row.startswith("from ")]
    assert len(rows) >= 6
    assert all(row.endswith("4,000      500") for row in rows)


def test_start() -> None:
    """Every row loads more modules than the interpreter, and the run has matches."""
    text = printed_alone(MICRO / "start.py", "--events", "200", "--repeats", "1")
    first, _, python, *rows = text.splitlines()
    assert first.startswith("200 events")
    assert python.split()[0] == "python"
    assert [row[:18].strip() for row in rows] == [
        "spaseq run", "spaseq --version", "import; compile", "compile", "compile again",
    ]  # fmt: skip
    alone = int(python.split()[-1])
    assert all(int(row[54:63]) > alone for row in rows)
    assert int(rows[0].split()[-1]) > 0


def test_read_rows() -> None:
    pytest.importorskip("pyarrow")
    text = printed(MICRO / "read_rows.py", "--rows", "20000", "--repeats", "1")
    rows = text.splitlines()[2:]
    assert len(rows) == 22
    assert {row.split()[-2] for row in rows} == {"20,000"}
    found = {row.split()[-1] for row in rows if ": matched" in row}
    assert len(found) == 1
    assert int(found.pop()) > 0


def test_read_documents() -> None:
    """It compares the events and the matches of all files itself."""
    text = printed(MICRO / "read_documents.py", "--events", "3000", "--repeats", "1")
    first, _, *rows = text.splitlines()
    assert first.startswith("3,000 events of 7 quads")
    assert len(rows) == 6
    assert {row.split()[-2] for row in rows} == {"3,000"}
    assert int(rows[0].split()[-1]) > 0


def test_read_framings() -> None:
    """It compares the events and the matches of all framings itself."""
    text = printed(MICRO / "read_framings.py", "--events", "8000", "--repeats", "1")
    _, _, *rows = text.splitlines()
    assert len(rows) == 8
    assert {row.split()[-2] for row in rows} == {"8,000"}
    assert int(rows[0].split()[-1]) > 0


def test_read_compressed() -> None:
    text = printed(MICRO / "read_compressed.py", "--quads", "800", "--repeats", "1")
    assert text.startswith("800 quads in 100 events")
    assert text.count("lines / decompressor") == 4


def test_read_jelly() -> None:
    text = printed(MICRO / "read_jelly.py", "--events", "300", "--repeats", "1")
    assert text.count("300 events, ") == 2
    assert text.count("x N-Quads") == 4


def test_match_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(MICRO))
    import match_events

    text = printed(MICRO / "match_events.py", "--events", "300", "--sample", "20", "--repeat", "1")
    high = [
        sum(float(o.value) > 20 for _, p, o in event if p.value.endswith("/price"))
        for event in match_events.trades(300, 1)
    ]
    shown = text.splitlines()
    assert shown[0] == f"trades: 300 events of 7 triples, {sum(high)} solutions"
    assert [line.split()[-1] for line in shown[2:5]] == [
        str(sum(high)),
        *[str(sum(high[:20]))] * 2,
    ]
    if "SPASEQ_DATA" not in os.environ:
        assert shown[5:] == ["weather: left out, SPASEQ_DATA is not set"]
    else:
        assert len(shown) == 10


def test_registered_streams() -> None:
    """The script itself compares the matches with those of Python."""
    text = printed(
        ROOT / "benchmarks" / "many" / "registered.py", "--events", "2000", "--repeat", "1",
        "--bounds", "90",
    )  # fmt: skip
    counts = r"[1-9]\d* registered; matches of the reader: [1-9]\d*, mixed [1-9]\d*"
    assert re.search(rf"^above 90.0: {counts}$", text, re.MULTILINE)


def test_many_queries() -> None:
    """The script itself compares the matches with runs of one query each; 16 share a template."""
    text = printed(
        ROOT / "benchmarks" / "many" / "queries.py",
        *("--events", "1000", "--queries", "20", "--repeat", "1", "--check"),
    )
    title, _, *rows = text.splitlines()
    assert title.startswith("1,000 events")
    assert len(rows) == 19
    assert rows[0].startswith("1 query, wants 1 event in 10 ")
    found = {row[:38].strip(): int(row.split()[-3].replace(",", "")) for row in rows}
    assert found["20 queries equal to it"] == 20 * found["1 query, few matches"]
    assert found["20 queries of a sensor each"] > found["1 query of one sensor"]
    assert found["20 queries with its prefix"] > found["1 query with a prefix"]


def test_window_memory() -> None:
    text = printed_alone(MICRO / "window_memory.py", "--iris", "30000", "--per-event", "5")
    shown = text.splitlines()
    assert shown[0] == "30,000 IRIs in 6,000 events, a window of 600 of them"
    samples = [line.split() for line in shown[2:-1]]
    assert [sample[0] for sample in samples] == [f"{n * 600:,}" for n in range(1, 11)]
    live = [int(sample[1].replace(",", "")) for sample in samples]
    # 3,000 IRIs are in the window at any time, and at most half as many more wait to go.
    assert all(3_000 <= count <= 5_000 for count in live)
    assert shown[-1].startswith("30,000 rows, ")


def test_entailment(monkeypatch: pytest.MonkeyPatch) -> None:
    """All ways find as many matches, and some."""
    monkeypatch.syspath_prepend(str(KB))
    import entailment

    text = printed(KB / "entailment.py", "--events", "5000", "--classes", "50", "--repeat", "1")
    rows = text.splitlines()[2:]
    assert [row.split("  ")[0] for row in rows] == [
        "no entailment",
        "entailed",
        "explicit types",
        "all types in the file",
        "materialised by hand",
    ]
    (found,) = {int(row.split()[-1]) for row in rows}
    assert found > 0
    assert entailment.above(49) == ["C49", "C4", "Root"]


def test_remote_kb() -> None:
    text = printed_alone(
        KB / "remote.py", "--keys", "60", "--delay", "1", "--sample", "20", "--repeat", "1"
    )
    rows = [line.split() for line in text.splitlines()[2:]]
    assert rows[0][-2:] == ["20", "20"]
    assert int(rows[1][-2]) <= 3
    assert rows[1][-1] == "60"
    assert rows[2][-2:] == ["1", "20"]


def test_local_kb() -> None:
    text = printed(
        KB / "local.py",
        "--events",
        "300",
        "--triples",
        "500",
        "2000",
        "--sample",
        "10",
        "--repeat",
        "1",
    )
    shown = text.splitlines()
    assert [line.split(":")[0] for line in (shown[0], shown[6])] == ["stock", "cards"]
    for block in (shown[2:5], shown[8:11]):
        rows = {line.split()[-1] for line in block}
        assert len(rows) == 1
        assert 0 < int(rows.pop()) <= 300


def test_the_state_of_a_stream_on_spark() -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed (pip install .[dev])")
    script = ROOT / "benchmarks" / "spark" / "state.py"
    text = printed(script, "--keys", "200", "--touched", "5", "--batches", "1")
    rows = [line.split() for line in text.splitlines()[2:]]
    assert [int(row[0]) for row in rows] == [4, 16, 64, 256, 1024]
    # Each of the two batches ends the matches of its keys, whatever the number of groups.
    assert len({row[-1] for row in rows}) == 1
    assert int(rows[0][-1]) >= 5


def test_partitioned_on_spark() -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed (pip install .[dev])")
    text = printed(
        ROOT / "benchmarks" / "spark" / "partitioned.py",
        "--events",
        "3000",
        "--keys",
        "40",
        "--query",
        "negation",
    )
    shown = [line.split()[-1] for line in text.splitlines()[2:8]]
    assert len(set(shown)) == 1
    assert int(shown[0].replace(",", "")) > 10


def automaton(script: str, *options: str) -> list[str]:
    """What a benchmark of the automaton prints."""
    return printed(AUTOMATON / script, *options).splitlines()


def test_automaton_throughput() -> None:
    """The script ends where the engine finds others than another way of counting does."""
    shown = automaton("throughput.py", "--events", "300", "--sample", "150", "--repeat", "1")
    (single,) = (number for number, line in enumerate(shown) if line.startswith("event by event"))
    shown, latencies = shown[:single], shown[single + 1 :]
    found = {line[:28].strip(): line[28:].split() for line in shown}
    assert found["W1 n=3 all"][0] == "300"
    assert int(found["W1 n=3 all"][4].replace(",", "")) > 1000
    assert found["W2 10,000 all"][4] == "0"
    assert found["V A ; B+ ; C 500, LIMIT 1"][-3] != "0"
    (first,) = (number for number, line in enumerate(shown) if line.startswith("lazily"))
    assert [line[:34].strip() for line in shown[first + 1 :]] == [
        "A : B : C, C rare 1,000, eagerly",
        "the same lazily",
        "the same as observed",
        "AND of 4, all orders, eagerly",
        "AND of 4, D rare 300, lazily",
    ]
    assert len(latencies) > 40
    for line in latencies:
        events, middle, late, slowest, place, _ = line[32:].replace(",", "").split()
        assert 0 < float(middle) <= float(late) <= float(slowest)
        assert 0 <= int(place) < int(events) <= 300


def test_automaton_endurance() -> None:
    options = ("--events", "20000", "--window", "300", "--single", "1000")
    shown = printed_alone(AUTOMATON / "endurance.py", *options).splitlines()
    assert shown[0] == "20,000 events, each of a new key, a window of 300"
    held = [line.split() for line in shown[2:12]]
    assert [row[0] for row in held] == [f"{tenth * 2000:,}" for tenth in range(1, 11)]
    # 200 of a window's events are an A; what has expired is swept when it is as much again.
    assert all(200 <= int(row[1]) <= 800 for row in held)
    assert shown[12].endswith("0 matches")
    assert shown[13].startswith("1,000 events one by one: ")


COUNTED = {"W1 n=3 skip": 200, "W1 n=3 next": 200, "W3 A : B+ : C skip": 80}
COUNTED |= {"W4 V all, 10 names": 90, "W4 V next, 10 names": 150, "stock A ; B ; C 100": 60}
COUNTED |= {"V A ; B+ ; C 500": 60, "B+ ; C about the mean 100": 60}


@pytest.mark.parametrize("name", COUNTED)
def test_automaton_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the benchmarks count without an engine is what the reference finds."""
    monkeypatch.syspath_prepend(str(AUTOMATON))
    import workloads
    from streams import SECOND, STREAM, Triples

    (workload,) = (some for some in workloads.TALLIED if some.name == name)
    some = workload.events(COUNTED[name])
    triples = Triples()
    events = [
        Event(STREAM, timestamp(place * SECOND, NUMBER), 0, [triples.of(event)])
        for place, event in enumerate(some)
    ]
    assert workload.count(some) == len(evaluate(workload.query, {STREAM: events})) > 0


def test_automaton_counts_where_one_step_is_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not, and with a lower bound: the same as trying all."""
    monkeypatch.syspath_prepend(str(AUTOMATON))
    import counts
    import streams

    some, window, least = streams.rarely("ABCD", "D", 60), 20, 500_000
    places = {kind: [p for p, event in enumerate(some) if event[0] == kind] for kind in "ABCD"}

    def high(one: int, other: int) -> bool:
        return some[one][2] * some[other][2] > least

    chains = [
        (a, b, c)
        for a, b, c in product(places["A"], places["B"], places["C"])
        if a < b < c <= a + window and high(a, b)
    ]
    assert counts.products(some, window, least) == len(chains) > 20
    sets = [
        found
        for found in product(*places.values())
        if max(found) - min(found) <= window and high(*found[:2]) and high(*found[1:3])
    ]
    assert counts.gathered(some, window, least) == len(sets) > 100


def test_two_checkouts_are_compared(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "compare.py"), str(ROOT), str(ROOT)]
    command += ["--events", "300", "--passes", "2", "--only", "W2 100 all"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [line.split("  ")[0] for line in shown.splitlines()[1:]] == [
        "nothing to find",
        "W2 100 all",
        "geometric mean",
    ]


def test_a_record_names_the_machine_and_compares_with_its_checkout(tmp_path: Path) -> None:
    command = [sys.executable, "benchmarks/compare.py", "--only", "W2 100 all", "--passes", "1"]
    record = tmp_path / "record.json"
    subprocess.run(
        [*command, ".", "--events", "300", "--record", str(record)], cwd=ROOT, check=True
    )
    data = json.loads(record.read_text("utf-8"))
    assert list(data) == ["date", "commit", "machine", "command", "figures"]
    assert data["machine"]["cores"] >= 1
    assert data["command"][:2] == ["python", "benchmarks/compare.py"]
    row = data["figures"]["W2 100 all"]
    assert (row["events"], row["matches"], len(row["seconds"])) == (300, 0, 1)
    again = [*command, str(record), "."]
    shown = subprocess.run(again, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "W2 100 all" in shown


def test_the_records_hold_all_workloads_of_a_run() -> None:
    records = sorted((ROOT / "benchmarks" / "record").glob("????-??-??.json"))
    assert records
    for path in records:
        data = json.loads(path.read_text("utf-8"))
        assert "benchmarks/compare.py" in data["command"]
        assert all(row["events"] and min(row["seconds"]) > 0 for row in data["figures"].values())


def test_records_with_other_matches_are_refused(tmp_path: Path) -> None:
    for name, matches in (("one.json", 3), ("two.json", 4)):
        figures = {"W": {"events": 10, "matches": matches, "seconds": [0.5, 0.5]}}
        record = {"figures": figures}
        (tmp_path / name).write_text(json.dumps(record), "utf-8")
    command = [sys.executable, str(ROOT / "benchmarks" / "compare.py")]
    command += [str(tmp_path / "one.json"), str(tmp_path / "two.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "3 ≠ 4" in done.stdout
    assert "the numbers of matches differ" in done.stderr

"""Why nothing matched: each silent cause is named, by the package and by the command."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import spaseq
from spaseq import cli
from spaseq.cli.reports import meanings
from spaseq.explain.alternatives import nearest_iri
from spaseq.explain.diagnosis import sampled
from spaseq.explain.why_not import first_obstacle

S = "http://example.org/s"
E = "http://example.org/"
PRICE = "?x :price ?p"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def query(a: str, b: str = "?y :price ?q", seq: str = "A ; B", clauses: str = "") -> str:
    return f"""PREFIX : <{E}>
SELECT * WITHIN 10 SECONDS FROM STREAM s :s {clauses} WHERE {{
  SEQ({seq})
  DEFINE GPM A ON s {{ {a} }}
  DEFINE GPM B ON s {{ {b} }}
}}"""


def graph(*triples: str) -> bytes:
    """N-Triples of triples such as `a price "12"`."""
    lines = []
    for triple in triples:
        subject, predicate, value = triple.split(" ", 2)
        if value.isdigit():
            value = f'"{value}"^^<{INTEGER}>'
        lines.append(f"<{E}{subject}> <{E}{predicate}> {value} .")
    return "\n".join(lines).encode()


STRINGS = ['a price "12"', 'b price "13"']
NUMBERS = ["a price 12", "b price 13"]


def cause(text: str, events: list[str], kb: dict[str, object] | None = None) -> str:
    """The first obstacle of a run over events of one triple each."""
    run = spaseq.compile(text).start(kb=kb)
    given = [(S, at, graph(*each.split(" ; "))) for at, each in enumerate(events)]
    for stream, at, triples in given:
        assert not run.push(stream, at, triples)
    assert not run.finish()
    found = first_obstacle(run.evaluation, sampled(given, str, run.clock))
    assert found is not None
    # The report says all that the line says.
    assert found in run.why_not(events=given)
    return found


CAUSES = {
    "another-capital": (
        query("?x :Price ?p"), STRINGS,
        "A: no event has the predicate :Price; did you mean :price?",
    ),
    "another-scheme": (
        query("?x <https://example.org/price> ?p"), STRINGS,
        "A: no event has the predicate <https://example.org/price>; did you mean :price?",
    ),
    "another-namespace": (
        query("?x <http://example.org/terms#price> ?p"), STRINGS,
        "A: no event has the predicate <http://example.org/terms#price>; did you mean :price?",
    ),
    "a-number-in-quotes": (
        query('?x :price "12"'), NUMBERS,
        'A: no event has ?x :price "12"; they have 12, a number instead of a string',
    ),
    "a-number-of-another-type": (
        query("?x :price 12.0"), NUMBERS,
        "A: no event has ?x :price 12.0; they have 12, which equals 12.0 in a FILTER but is "
        "another term",
    ),
    "a-resource-for-a-string": (
        query("?x :of :ann"), ['a of "Ann"', 'b of "Bob"'],
        'A: no event has ?x :of :ann; they have "Ann", "Bob" there, a string instead of an IRI',
    ),
    "a-string-compared-with-a-resource": (
        query("?x :of ?who FILTER(?who = :ann)"), ['a of "ann"'],
        'A: FILTER(?who = :ann) was not true for the only solution, for '
        'example with ?who = "ann": a string and an IRI are never equal',
    ),
    "steps-in-the-wrong-order": (
        query("?x :price 13", "?y :price 12"), NUMBERS,
        "B: its graph pattern has a solution in 1 event, but no partial match was waiting then",
    ),
    "no-value-in-the-first-iteration": (
        query("?x :price ?p FILTER(?p > PREV(?p))", seq="A+ ; B"), NUMBERS,
        "A: FILTER(?p > PREV(?p)) erred on all 2 pairs: PREV(?p) is unbound, as in every first "
        "iteration; a default gives it a value there",
    ),
    "a-condition-on-groups": (
        query("?x :price ?p", seq="A ; B").replace("SELECT *", "SELECT (COUNT(*) AS ?n)")
        + " GROUP HAVING (COUNT(*) > 10)", NUMBERS,
        "every step was matched, but HAVING was true for no group of results",
    ),
    "a-string-against-a-number": (
        query("?x :price ?p FILTER(?p > 5)"), STRINGS,
        'A: FILTER(?p > 5) erred on all 2 solutions: "12" > 5: a string and a number',
    ),
    "a-threshold-out-of-reach": (
        query("?x :price ?p FILTER(?p > 50)"), NUMBERS,
        "A: FILTER(?p > 50) was not true for any of 2 solutions, for example with ?p = 13",
    ),
    "another-class": (
        query("?x :is :Sensors"), ["a is <http://example.org/Sensor>"],
        "A: no event has ?x :is :Sensors; did you mean :Sensor?",
    ),
    "triples-that-do-not-meet": (
        query("?x :price ?p ; :volume ?v"), ["a price 1 ; b volume 2"],
        "A: no event has a solution of ?x :volume ?v that fits the pattern before it",
    ),
    "a-bind-that-errs": (
        query("?x :price ?p BIND(?p + 1 AS ?more) FILTER(?more > 5)"), STRINGS,
        "A: FILTER(?more > 5) erred on all 2 solutions: ?more is unbound, because its BIND erred: "
        '"12" + 1: a string and a number',
    ),
    "the-node-of-the-event": (
        query("?e :price ?p", "?e :price ?q"), NUMBERS,
        "each event has its own ?e (:a, :b), but A and B must agree on it: use another variable "
        "in one of them",
    ),
    "the-node-of-the-event-in-iterations": (
        query("?e :price ?p", "?e :price ?q FILTER(?q > 12)", "A+ ; B+"), NUMBERS,
        "each event has its own ?e (:a, :b), but A and B, and all iterations, must agree on it: "
        "use another variable in one of them",
    ),
    "another-kind-of-term": (
        query("?x :of ?k", "?y :by ?k"), ['a of "7"', "b by 7", 'c of "7"'],
        '?k has the same text in A and B, but is a different term: "7" (a string) and '
        "7 (a number)",
    ),
    "a-filter-across-steps": (
        query("?x :price ?p", "?y :bid ?q FILTER(?q > ?p)"), ["a price 12", 'b bid "13"'],
        'B: FILTER(?q > ?p) erred on the only pair: "13" > 12: a string and a number',
    ),
    "no-solution-of-a-group": (
        query("?x :price ?p . { ?x :of ?a } UNION { ?x :by ?b }"), NUMBERS,
        "A: no event has a solution of { ?x :of ?a . } UNION { ?x :by ?b . } that fits the pattern "
        "before it",
    ),
    "no-graph-of-the-kb": (
        query(f"{PRICE} GRAPH :shops {{ ?x :in ?c }}"), NUMBERS,
        "A: the knowledge base has no graph :shops",
    ),
}  # fmt: skip


def test_a_negation_is_named_before_the_step_it_prevented() -> None:
    text = query("?x :price 12", "?y :price 11", "A ; !N ; B")
    text = text[:-1] + "DEFINE GPM N ON s { ?z :price 13 } }"
    run = spaseq.compile(text).start()
    events = [(S, at, graph(each)) for at, each in enumerate([*NUMBERS, "c price 11"])]
    for event in events:
        assert not run.push(*event)
    found = first_obstacle(run.evaluation, sampled(events, str, run.clock))
    assert found == "2: A !N ; B never advanced: !N removed 1 group waiting here"


@pytest.mark.filterwarnings("ignore::spaseq.QueryWarning")
@pytest.mark.parametrize("name", CAUSES)
def test_a_silent_cause_is_named(name: str) -> None:
    text, events, expected = CAUSES[name]
    assert cause(text, events) == expected


def test_an_empty_graph_and_another_name() -> None:
    text = query(f"{PRICE} GRAPH :shops {{ ?x :in ?c }}")
    empty = {f"{E}shops": []}
    assert cause(text, NUMBERS, kb=empty) == "A: the graph :shops of the knowledge base is empty"


def test_a_part_of_the_events_is_said_to_be_a_part() -> None:
    run = spaseq.compile(query("?x :Price ?p")).start()
    for at in range(3):
        run.push(S, at, graph("a price 1"))
    told = run.why_not(events=[(S, 0, graph("a price 1"))])
    assert "A: none of the 1 events examined has the predicate :Price" in told


def test_events_to_examine_are_checked() -> None:
    run = spaseq.compile(query(PRICE)).start()
    with pytest.raises(spaseq.EventError, match="no query reads the stream"):
        run.why_not(events=[("http://example.org/other", 0, b"")])
    with pytest.raises(spaseq.EventError, match="is not an event"):
        run.why_not(events=[7])


@pytest.mark.parametrize(
    ("a", "b", "line"),
    [
        ("?x :price ?p FILTER(?x = :y)", "?y :price ?q", "A: FILTER(?x = :y) was"),
        (
            "?x :price ?p",
            "?y :price ?q FILTER(?x = :y && ?q > ?p)",
            "B: FILTER(?x = :y && ?q > ?p) was",
        ),
        ("?x :price ?p FILTER(?p < :y)", "?y :price ?q", "A: FILTER(?p < :y) erred on"),
        ("?x :price ?p", "?y :price ?q FILTER(?p + ?q < :y)", "B: FILTER(?p + ?q < :y) erred on"),
        (
            '?x :price ?p FILTER(STR(?x) = "<http://example.org/y>")',
            "?y :price ?q",
            'A: FILTER(STR(?x) = "<http://example.org/y>") was',
        ),
    ],
)
def test_filters_are_shown_with_the_prefixes_of_the_query(a: str, b: str, line: str) -> None:
    events = [(S, time, graph(f"x price {time}")) for time in (1, 2)]
    run = spaseq.compile(query(a, b)).start()
    for stream, time, triples in events:
        assert run.push(stream, time, triples) == []
    for report in (run.why_not(events=events), run.why_not()):
        assert line in report
    assert f"<{E}y>" not in report.replace(f'"<{E}y>"', "")


def test_a_query_with_matches_has_no_obstacle() -> None:
    run = spaseq.compile(query(PRICE)).start()
    run.push(S, 0, graph(*NUMBERS[:1]))
    assert run.push(S, 1, graph(*NUMBERS[1:]))
    assert first_obstacle(run.evaluation) is None


@pytest.mark.parametrize(
    ("iri", "known", "found"),
    [
        ("http://e/a", ["http://e/A", "http://f/a"], "http://e/A"),
        ("http://e/a", ["https://e/a"], "https://e/a"),
        ("http://e/price", ["http://f#price"], "http://f#price"),
        ("http://eprice", ["http://e/price"], "http://e/price"),
        ("http://e/prize", ["http://e/price"], "http://e/price"),
        ("http://e/prize", ["http://other/thing", "http://e/zone"], None),
        ("http://e/a", ["http://e/a"], None),
    ],
)
def test_the_nearest_iri(iri: str, known: list[str], found: str | None) -> None:
    assert nearest_iri(iri, known) == found


# ------------------------------------------------------------------ the command


def one(at: int, price: int) -> str:
    """An event of the file."""
    return (
        f'<{E}g{at}> <http://www.w3.org/ns/prov#generatedAtTime> "{at}"^^<{INTEGER}> .\n'
        f'<{E}a> <{E}price> "{price}"^^<{INTEGER}> <{E}g{at}> .\n'
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.rq").write_text(query("?x :Price ?p"))
    (tmp_path / "s.nq").write_text("".join(one(at, at) for at in range(5)))
    return tmp_path


def test_an_empty_run_says_why_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", "q.rq", "--stream", "s=s.nq"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == (
        "spaseq: no match: A: no event has the predicate :Price; did you mean :price? "
        "(--why tells more)"
    )


def test_why_reports_every_pattern(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "q.rq", "--stream", "s=s.nq", "--why"]) == 0
    err = capsys.readouterr().err
    assert "query q: 0 matches in 5 events" in err
    assert "A: no event has the predicate :Price; did you mean :price?" in err
    assert "never reached: 2: A ; B" in err


def test_statistics_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "q.rq", "--stream", "s=s.nq", "--stats-json"]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    counters = json.loads(told[0])
    assert counters["written"] == 0
    assert counters["read"][S]["events"] == 5
    assert counters["run"]["queries"]["q"]["matches"] == 0


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="the system has no such signal")
def test_a_signal_asks_a_running_command(folder: Path) -> None:
    (folder / "q.rq").write_text(query("?x :price ?p", seq="A ; B"))
    command = [sys.executable, "-m", "spaseq", "run", "q.rq", "--stream", "s=-"]
    command += ["--input-format", "nq"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write((folder / "s.nq").read_bytes())
        process.stdin.flush()
        process.stdout.readline()  # the first match: the run has begun
        process.send_signal(signal.SIGUSR1)
        first = process.stderr.readline()
        process.stdin.close()
        process.stdout.read()
        process.stderr.read()
    assert first.startswith(b"query q: ")
    assert process.returncode == 0


def test_queries_that_differ_in_a_threshold_are_explained_one_by_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [f"q{least}.rq" for least in range(100, 120)]
    for least, name in enumerate(files, 100):
        (folder / name).write_text(query(f"{PRICE} FILTER(?p > {least})", seq="A : B"))
    events = [one(at, 105) for at in range(3)]
    (folder / "s.nq").write_text("".join(events))
    assert cli.main(["run", *files, "--stream", "s=s.nq", "--why"]) == 0
    told = capsys.readouterr().err.partition("query q110:")[2].partition("query q111:")[0]
    assert "A: FILTER(?p > 110) was not true for any of 3 solutions" in told
    assert "evaluated as one" not in told


def test_statistics_say_what_they_count(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "q.rq", "--stream", "s=s.nq", "--stats", "--why"]) == 0
    shown = " ".join(capsys.readouterr().err.split())
    assert "unused triples: triples outside of events, and triples that no query can use" in shown
    counters = json_statistics(folder, capsys)
    named = [name for name, value in counters.items() if isinstance(value, int)]
    assert set(named) < set(meanings())


def json_statistics(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert cli.main(["run", "q.rq", "--stream", "s=s.nq", "--stats-json"]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    counters: dict[str, object] = json.loads(told[0])["run"]
    return counters


def test_an_empty_live_run_says_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "q.rq", "--stream", "s=s.nq", "--state", "kept"]) == 0
    assert "no match: A: its graph pattern has no solution in 5 events" in capsys.readouterr().err


@pytest.mark.parametrize(
    "group",
    [
        "OPTIONAL { ?x :Currency ?c }",
        "{ ?x :Currency ?c } UNION { ?x :price 12 }",
        "OPTIONAL { ?x :price ?c OPTIONAL { ?x :Currency ?d } }",
    ],
)
def test_matches_do_not_hide_what_is_never_there(group: str) -> None:
    run = spaseq.compile(query(f"?x :price ?p {group}", seq="A ; B")).start()
    events = [(S, at, graph(f"a{at} price 12", f"a{at} currency 1")) for at in range(3)]
    for event in events:
        run.push(*event)
    told = run.why_not(events=events)
    assert "0 matches" not in told
    assert "A: in OPTIONAL or UNION, " in told
    assert "has the predicate :Currency; did you mean :currency?" in told
    assert "in OPTIONAL or UNION" not in run.why_not(events=[])


def test_a_result_reads_its_files_again_to_say_why(folder: Path) -> None:
    result = spaseq.run(Path("q.rq").read_text(), {"s": "s.nq"})
    assert list(result) == []
    assert repr(result).endswith("0 matches read, finished; why_not() says why>")
    cause = "A: no event has the predicate :Price; did you mean :price?"
    assert cause in result.why_not()
    assert f"no match: {cause}" in result._repr_html_()


def test_events_that_are_gone_are_not_said_to_be_all() -> None:
    events = [(at, graph("a price 1")) for at in range(3)]
    result = spaseq.run(query("?x :Price ?p"), {"s": iter(events)})
    assert list(result) == []
    assert "A: its graph pattern has no solution in 3 events" in result.why_not()
    assert "did you mean" not in result.why_not()

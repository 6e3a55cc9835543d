"""The texts of `explain`, compared with golden files, and its data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from engine_runs import GPMS, program, text

import spaseq
from spaseq.cli.commands import check

GOLDEN = Path(__file__).parents[2] / "golden" / "explain"
QUERIES = sorted(GOLDEN.glob("*.rq"))


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_plans_read_as_before(path: Path, update_golden: bool) -> None:
    shown = spaseq.compile(path.read_text("utf-8"), names=[path.stem]).explain()
    expected = path.with_suffix(".txt")
    if update_golden:
        expected.write_text(shown, "utf-8")
    assert shown == expected.read_text("utf-8")


def test_several_queries_read_as_before(update_golden: bool) -> None:
    texts = [path.read_text("utf-8") for path in QUERIES[:1] * 2 + QUERIES[-1:]]
    shown = spaseq.compile(texts, names=["one", "same", "other"]).explain()
    expected = GOLDEN / "shared.txt"
    if update_golden:
        expected.write_text(shown, "utf-8")
    assert shown == expected.read_text("utf-8")


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_the_data_is_plain(path: Path) -> None:
    data = spaseq.compile(path.read_text("utf-8")).to_dict()
    assert json.loads(json.dumps(data)) == data


def kind(*args: str, **kwargs: str) -> str:
    (query,) = program(*args, **kwargs).to_dict()["queries"]
    return str(query["guarantee"]["kind"])


PLAIN = "DEFINE GPM A ON s { [] :a ?x } DEFINE GPM B ON s { [] :b ?y }"


@pytest.mark.parametrize(
    ("seq", "gpms", "clauses", "expected"),
    [
        ("A : B", PLAIN, "", "constant"),
        ("A ; B+ , A", PLAIN.replace("?x", "[]"), "", "constant"),
        ("A{2,3} : B", PLAIN.replace("?x", "[]"), "", "constant"),
        ("A ; B", GPMS, "", "indexed"),
        ("A ; B+", GPMS, "PARTITION BY ?k", "indexed"),
        ("A ; B", PLAIN.replace("?y }", "?y FILTER(?y = ?x) }"), "", "ordered"),
        ("A ; B", PLAIN.replace("?y }", "?y FILTER(?y > ?x) }"), "", "ordered"),
        ("A ; B", PLAIN.replace("?y }", "?y FILTER(?y > ?x + 1) }"), "", "groups"),
        ("A ; B+", PLAIN.replace("?y }", "?y FILTER(?y > PREV(?y, 0)) }"), "", "ordered"),
        ("A : B : A", GPMS, "", "groups"),
        ("A & B", GPMS, "", "looks back"),
        ("A AND B", GPMS, "", "looks back"),
        ("A ; !B", GPMS, "", "looks back"),
        ("A ; !B ; A", PLAIN.replace("?x", "[]"), "", "constant"),
        ("A ; !(B : B) ; A", PLAIN.replace("?x", "[]"), "", "looks back"),
        ("A ; !B ; A", GPMS.replace("?x", "[]").replace("?y", "[]"), "", "indexed"),
        ("A ; B?", GPMS, "", "looks back"),
    ],
)
def test_guarantees(seq: str, gpms: str, clauses: str, expected: str) -> None:
    found = kind(f"SEQ({seq})", gpms, head="ASK", clauses=f"WITHIN 10 SECONDS {clauses}")
    assert found == expected


def test_the_reason_is_the_filter_that_makes_it_so() -> None:
    gpms = PLAIN.replace("?y }", "?y FILTER(?y > ?x) }")
    (query,) = program("SEQ(A : B)", gpms).to_dict()["queries"]
    (edge,) = query["guarantee"]["edges"]
    assert edge == {
        "place": 2,
        "gpm": "B",
        "kind": "summed",
        "because": [
            "unions of those whose ?x is less than ?y, and the equal",
            "FILTER(?y > ?x) of B",
        ],
    }
    assert query["guarantee"]["sentence"].startswith("logarithmic in the waiting groups, however")


def test_what_is_kept_for_later_makes_it_visit_those_that_fit() -> None:
    gpms = PLAIN.replace("?y }", "?y FILTER(?y > ?x) }") + " DEFINE GPM C ON s { [] :c ?x }"
    (query,) = program("SEQ(A : B : C)", gpms).to_dict()["queries"]
    (edge,) = query["guarantee"]["edges"]
    assert edge == {
        "place": 2,
        "gpm": "B",
        "kind": "ordered",
        "because": ["all of them whose ?x is no greater than ?y", "FILTER(?y > ?x) of B"],
    }


def test_or_the_step_that_a_value_is_kept_for() -> None:
    gpms = PLAIN + " DEFINE GPM C ON s { [] :c ?x }"
    (query,) = program("SEQ(A : B : C)", gpms).to_dict()["queries"]
    (edge,) = query["guarantee"]["edges"]
    assert (edge["place"], edge["because"]) == (2, ["all of them", "?x is kept for C"])


def test_places_are_numbered_as_a_match_reaches_them() -> None:
    gpms = GPMS + " DEFINE GPM C ON s { ?k :c ?z }"
    (query,) = program("SEQ(A ; B+ : C)", gpms).to_dict()["queries"]
    assert [(p["place"], p["label"]) for p in query["places"]] == [
        (1, "^ A"),
        (2, "A ; B"),
        (3, "B ; B"),
        (4, "B : C"),
    ]
    assert [edge["targets"] for edge in query["places"][2]["edges"]] == [["3", "4"]]


def test_shared_graph_patterns_are_named() -> None:
    both = spaseq.compile([text(), text(seq="SEQ(B : A)")], names=["one", "two"]).to_dict()
    assert (both["gpms"], both["evaluations_per_event"]) == (4, 2)
    first = both["queries"][0]["gpms"][0]
    assert (first["name"], first["shared_with"]) == ("A", ["two.A"])


def test_comments_in_a_sequence_are_left_out() -> None:
    (query,) = program("SEQ(A # the first\n ;  B)").to_dict()["queries"]
    assert query["sequence"] == "SEQ(A ; B)"


@pytest.mark.parametrize(
    ("window", "shown"),
    [
        ("90 SECONDS", "WITHIN 90 SECONDS"),
        ("1 MINUTE", "WITHIN 1 MINUTE"),
        ("TUMBLING 36 HOURS", "WITHIN TUMBLING 36 HOURS"),
        ("0.25 SECONDS", "WITHIN 250 MILLISECONDS"),
        ("0.5 MILLISECONDS", "WITHIN 0.5 MILLISECONDS"),
        ("7 EVENTS", "WITHIN 7 EVENTS"),
        ("UNBOUNDED", "WITHIN UNBOUNDED"),
    ],
)
def test_windows(window: str, shown: str) -> None:
    (query,) = program(clauses=f"WITHIN {window}").to_dict()["queries"]
    assert query["window"]["text"] == shown


def test_a_run_says_what_its_patterns_cost_and_found() -> None:
    query = """PREFIX : <http://example.org/>
    SELECT * WITHIN 1 MINUTE FROM STREAM s <http://example.org/s>
    WHERE { SEQ(A) DEFINE GPM A ON s { ?x :many ?y . ?x :few ?z FILTER(?z > 1) } }"""
    run = spaseq.compile(query).start()
    number = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    for second in range(100):
        lines = [f"<urn:{n}> <http://example.org/many> <urn:y> ." for n in range(9)]
        lines.append(f'<urn:3> <http://example.org/few> "{second % 4}"{number} .')
        run.push("http://example.org/s", second, "\n".join(lines).encode())
    shown = run.explain()
    assert "seen: 100 events, 100 rows, 50 passed the local filters" in shown
    # The text has the greater view first; what was seen has put the smaller one there.
    assert shown.index(":few ?z  (scan") < shown.index("?y  (by ?x")
    assert spaseq.compile(query).explain().index("many") < spaseq.compile(query).explain().index(
        "few"
    )


def test_iris_are_shown_as_the_query_writes_them() -> None:
    texts = [
        f"""PREFIX {name}: <http://example.org/> SELECT * WITHIN 1 SECOND FROM STREAM s {name}:s
        WHERE {{ SEQ(A ; B)
          DEFINE GPM A ON s {{ ?k {name}:p ?x FILTER(?x != {name}:no && "<{name}:no>" != ?x) }}
          DEFINE GPM B ON s {{ ?k {name}:p ?y FILTER(?y != ?x && ?y != <urn:other>)
            GRAPH {name}:kb {{ ?k {name}:in/{name}:of ?z FILTER(?z != {name}:no) }} }} }}"""
        for name in ("ex", "other")
    ]
    for name, shown in zip(("ex", "other"), texts, strict=True):
        plan = spaseq.compile(shown).explain()
        for line in (
            f"match ?k {name}:p ?x",
            f'local FILTER(?x != {name}:no && "<{name}:no>" != ?x)',
            f"rows of the KB graph {name}:kb",
            f"match ?k {name}:in/{name}:of ?z",
            f"filter ?z != {name}:no",
        ):
            assert line in plan
        assert plan.count("<http://example.org/") == 1  # the stream
        assert "<urn:other>" in plan
    both = spaseq.compile(texts).explain()
    assert both.count("match ?k ex:p ?x") == both.count("match ?k other:p ?x") == 1


DOUBLING = "the number of matches of one event can double with each earlier event"


@pytest.mark.parametrize(
    ("seq", "head", "doubles"),
    [
        ("A : B+ : C", "SELECT ?k", True),
        ("A : B+ : C", "SELECT DISTINCT ?k", True),
        ("A : B+ : C", "CONSTRUCT { ?k :d ?x }", True),
        ("A : (B ; C)+", "SELECT ?k", True),
        ("A ; (B ; C+)+", "SELECT ?k", True),
        ("A ; (B : C)+", "SELECT ?k", True),
        ("A : B{2,} : C", "SELECT ?k", True),
        ("A : B{1,3} : C", "SELECT ?k", False),
        ("A ; B+ ; C", "SELECT ?k", False),
        ("A ; (B | C)+", "SELECT ?k", False),
        ("A , B+ , C", "SELECT ?k", False),
        ("A : B : C", "SELECT ?k", False),
        ("A : B+ : C", "SELECT ?k EMIT MAX", False),
        ("A : B+ : C : !A", "SELECT ?k EMIT MAX", True),
        ("A : B+ : C", "ASK", False),
    ],
)
def test_queries_whose_matches_can_double_are_named(
    seq: str, head: str, doubles: bool, tmp_path: Path
) -> None:
    gpms = " ".join(f"DEFINE GPM {name} ON s {{ ?k :{name} ?x{name} }}" for name in "ABC")
    query = (
        f"PREFIX : <http://example.org/> {head.replace('?x', '?xA')} WITHIN 1 HOUR "
        f"FROM STREAM s :s WHERE {{ SEQ({seq}) {gpms} }}"
    )
    if "C" not in seq:
        query = query.partition("DEFINE GPM C")[0] + "}"
    explained = str(spaseq.compile(query).explain())
    assert (DOUBLING in explained) == doubles
    assert ("besides its matches" in explained) == doubles
    (tmp_path / "q.rq").write_text(query)
    checked = CliRunner().invoke(check, [str(tmp_path / "q.rq")])
    assert (checked.exit_code, checked.stdout) == (0, "ok\n")
    assert (f"note: {DOUBLING}" in checked.stderr) == doubles
    if doubles:
        assert "--max-matches" in checked.stderr
        assert "^\n" in checked.stderr

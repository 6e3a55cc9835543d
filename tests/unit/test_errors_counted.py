"""Filters and BINDs that err are counted, with the first error, however they are evaluated."""

from __future__ import annotations

import re
from pathlib import Path

import pyoxigraph as ox
import pytest

import spaseq
from spaseq import cli

E = "http://example.org/"
S = E + "s"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def query(a: str, b: str = "[] :q ?q", seq: str = "A : B") -> str:
    return f"""PREFIX : <{E}>
SELECT * WITHIN 100 SECONDS FROM STREAM s :s WHERE {{
  SEQ({seq})
  DEFINE GPM A ON s {{ {a} }}
  DEFINE GPM B ON s {{ {b} }}
}}"""


def run_over(text: str, *events: str) -> spaseq.Run:
    """A run after events of one triple each, such as `p "12"`."""
    run = spaseq.compile(text).start()
    for at, event in enumerate(events):
        predicate, value = event.split(" ")
        term = f'"{value}"^^<{INTEGER}>' if value.isdigit() else value
        run.push(S, at, f"<{E}e{at}> <{E}{predicate}> {term} .".encode())
    return run


def select(columns: str, rest: str = "", where: str = "") -> str:
    """A query over ?p and then ?q, with columns and clauses after the patterns."""
    return f"""PREFIX : <{E}>
{columns} WITHIN 100 SECONDS FROM STREAM s :s WHERE {{
  SEQ(A : B)
  DEFINE GPM A ON s {{ [] :p ?p {where} }}
  DEFINE GPM B ON s {{ [] :q ?q }}
}} {rest}"""


def errors_of(run: spaseq.Run) -> dict[str, tuple[int, bool, str]]:
    """Expression → (errors, whether it only erred, the first error)."""
    found = run.stats["queries"]["query"].get("errors", [])
    return {e["expression"]: (e["errors"], e["always"], e["example"]) for e in found}


ONLY = (2, True, '"12" < 15: a string and a number')
BOTH = ('p "12"', 'p "13"')


@pytest.mark.parametrize(
    ("pattern", "expression", "counted"),
    [
        ("[] :p ?p FILTER(?p < 15)", "FILTER(?p < 15)", ONLY),
        # Without the shortcut for one comparison, and without that for numbers.
        ("[] :p ?p FILTER(?p < 15 || ?p < 14)", "FILTER(?p < 15 || ?p < 14)", ONLY),
        ("[] :p ?p FILTER(?p * 2 < 15)", "FILTER(?p * 2 < 15)",
         (2, True, '"12" * 2: a string and a number')),
        ("[] :p ?p { ?x :p ?y FILTER(?y < 15) }", "FILTER(?y < 15)", ONLY),
        ("[] :p ?p OPTIONAL { ?x :p ?y FILTER(?y < 15) }", "FILTER(?y < 15)", ONLY),
        ("[] :p ?p BIND(?p + 1 AS ?m)", "BIND(?p + 1 AS ?m)",
         (2, True, '"12" + 1: a string and a number')),
        # Evaluated by operators in Python.
        ("[] :p ?p FILTER(?p < 15 + 0 * RAND())", "FILTER(?p < 15 + 0 * RAND())", None),
        ("[] :p ?p BIND(?p + 1 AS ?m) BIND(RAND() AS ?r)", "BIND(?p + 1 AS ?m)",
         (2, True, '"12" + 1: a string and a number')),
        ("[] :p ?p { SELECT ?y { ?x :p ?y } LIMIT 1 } FILTER(?y < 15)", "FILTER(?y < 15)", ONLY),
        ("[] :p ?p { ?x :p ?y FILTER(?y < 15) } { SELECT ?z { [] :p ?z } LIMIT 1 }",
         "FILTER(?y < 15)", ONLY),
    ],
)  # fmt: skip
def test_errors_within_a_pattern(
    pattern: str, expression: str, counted: tuple[int, bool, str] | None
) -> None:
    found = errors_of(run_over(query(pattern), *BOTH))
    count, always, example = found.pop(expression)
    if counted is None:
        assert (count, always) == (2, True)
        assert example.startswith('"12" < ')
    else:
        assert (count, always, example) == counted
    assert not found


@pytest.mark.parametrize(
    ("pattern", "expression", "example"),
    [
        ("[] :q ?q FILTER(?q > ?p + 1)", "FILTER(?q > ?p + 1)", '"12" + 1: a string and a number'),
        ("[] :q ?q BIND(?q + ?p AS ?m)", "BIND(?q + ?p AS ?m)",
         '1 + "12": a number and a string'),
        # Answered by Python, and by a pattern: the event of the row is gone, so there is no reason.
        ("[] :q ?q FILTER(?q > ?p + RAND())", "FILTER(?q > ?p + RAND())", '"12" + '),
        ("[] :q ?q FILTER(?q > ?p + 1 || EXISTS { ?x :r ?q })",
         "FILTER(?q > ?p + 1 || EXISTS { ?x :r ?q . })", ""),
    ],
)  # fmt: skip
def test_errors_over_partial_matches(pattern: str, expression: str, example: str) -> None:
    run = run_over(query("[] :p ?p", pattern), *BOTH, "q 1")
    (found,) = errors_of(run).items()
    assert found[0] == expression
    assert found[1][:2] == (2, True)
    assert found[1][2].startswith(example)


def test_an_expression_that_errs_now_and_then() -> None:
    run = run_over(query("[] :p ?p FILTER(?p < 15)"), 'p "12"', "p 20", "p 3", 'p "x"')
    assert errors_of(run) == {"FILTER(?p < 15)": (2, False, '"12" < 15: a string and a number')}
    line = 'A: FILTER(?p < 15) erred, 2 times: "12" < 15: a string and a number'
    assert line in run.why_not()
    assert line in run.explain()


def test_nothing_is_said_of_expressions_that_do_not_err() -> None:
    run = run_over(query("[] :p ?p FILTER(?p < 15)"), "p 1", "p 20")
    assert errors_of(run) == {}
    assert "erred" not in run.why_not() + run.explain()


def test_an_unbound_variable_is_an_error() -> None:
    text = query("[] :p ?p OPTIONAL { ?x :unit ?u } FILTER(?u = 3)")
    assert errors_of(run_over(text, "p 1")) == {"FILTER(?u = 3)": (1, True, "?u is unbound")}


def test_equal_patterns_are_named_by_each_query() -> None:
    one = query("[] :p ?p FILTER(?p * 2 < 15)")
    other = one.replace("?p", "?other")
    run = spaseq.compile([one, other], names=["one", "other"]).start()
    run.push(S, 1, f'<{E}e> <{E}p> "12" .'.encode())
    for name, expression in (
        ("one", "FILTER(?p * 2 < 15)"),
        ("other", "FILTER(?other * 2 < 15)"),
    ):
        (found,) = run.stats["queries"][name]["errors"]
        assert (found["expression"], found["errors"]) == (expression, 1)


def test_a_change_of_the_queries_keeps_the_counts() -> None:
    # No index of several queries excludes events by this filter.
    text = "FILTER(?p * 2 < 15)"
    run = run_over(query(f"[] :p ?p {text}"), *BOTH)
    count, *others = errors_of(run)[text]
    assert count == 2
    run.add("more", spaseq.compile(query("[] :r ?r ; ?any ?z")))
    run.push(S, 9, f'<{E}e> <{E}p> "14" .'.encode())
    assert errors_of(run)[text] == (3, *others)


def known(name: str) -> list[ox.Triple]:
    return [ox.Triple(*(ox.NamedNode(E + part) for part in ("k", "never", name)))]


@pytest.mark.parametrize("filters", ["?q > ?p + 1", "?q > ?p + RAND() * 0"])
def test_a_change_of_the_kb_keeps_the_counts(filters: str) -> None:
    start = "?x :p ?p FILTER NOT EXISTS { GRAPH :kb { ?any :never ?p } }"
    text = query(start, f"?x :q ?q FILTER({filters})").replace("WHERE", "FROM NAMED :kb WHERE")
    reports = []
    for changes in (False, True):
        run = spaseq.compile(text).start(kb={f"{E}kb": known("a")})
        # Partial matches with an error, a false filter, and another value of ?x.
        for at, triple in enumerate(('x p "12"', "x p 3", "y p 1", "x q 1", "x q 2", 'z p "1"')):
            subject, predicate, value = triple.split()
            term = f'"{value}"^^<{INTEGER}>' if value.isdigit() else value
            run.push(S, at, f"<{E}{subject}> <{E}{predicate}> {term} .".encode())
            if changes:
                run.kb.replace({f"{E}kb": known(f"new{at}")})  # a term that the run has not had
        found = run.stats["queries"]["query"]
        (error,) = found["errors"]
        assert error["errors"] == 2
        reports.append((found, run.why_not()))
    assert reports[0] == reports[1]


def test_threads_add_their_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.keyed_runs.LEAST_BYTES", 0)
    lines = []
    for at in range(400):
        value = f'"12"^^<{INTEGER}>' if at % 2 else '"x"'
        lines += [
            f'<{E}g{at}> <http://www.w3.org/ns/prov#generatedAtTime> "{at}"^^<{INTEGER}> .',
            f"<{E}k{at % 7}> <{E}p> {value} <{E}g{at}> .",
        ]
    (tmp_path / "s.nq").write_text("\n".join(lines))
    text = query("?k :p ?p FILTER(?p < 15)", "?k :p ?q FILTER(?q < 15)", "A ; B")
    found = []
    for workers in (1, 2):
        result = spaseq.run(text, {"s": str(tmp_path / "s.nq")}, workers=workers)
        assert any(result)
        for _ in result:
            pass
        assert (result._divided is not None) == (workers == 2)
        errors = result.stats["queries"]["query"]["errors"]
        found.append([(e["gpm"], e["errors"], e["always"]) for e in errors])
    assert found[0] == found[1]
    assert found[0][0] == ("A", 200, False)


def test_the_command_counts_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.rq").write_text(query("[] :p ?p FILTER(?p < 15)"))
    Path("s.nq").write_text(
        f'<{E}g> <http://www.w3.org/ns/prov#generatedAtTime> "1"^^<{INTEGER}> .\n'
        f'<{E}a> <{E}p> "12" <{E}g> .\n'
    )
    assert cli.main(["run", "q.rq", "--stream", "s=s.nq", "--stats"]) == 0
    shown = " ".join(capsys.readouterr().err.split())
    assert "FILTER(?p < 15)" in shown
    assert '"12" < 15: a string and a number' in shown


def test_queries_that_are_evaluated_as_one_have_their_own_texts() -> None:
    queries = [
        query(f"[] :p ?p ; :of :k{n} FILTER(?p * 2 > {n})", f"[] :q ?q ; :of :k{n}")
        for n in range(16)
    ]
    run = spaseq.compile(queries).start()
    run.push(S, 1, f'<{E}e> <{E}p> "x" .\n<{E}e> <{E}of> <{E}k3> .'.encode())
    counted = run.stats["queries"]["query4"]
    assert counted["evaluated_with"] == 15
    (found,) = counted["errors"]
    assert found["expression"] == "FILTER(?p * 2 > 3)"
    assert found["example"] == '"x" * 2: a string and a number'


# ------------------------------------------------------------------ results

TWICE = ('p "12"', "p 3", "q 1")


@pytest.mark.parametrize(
    ("text", "expression", "counted"),
    [
        (select("SELECT (?p * 2 AS ?m)"), "(?p * 2 AS ?m)",
         (1, False, '"12" * 2: a string and a number')),
        (select("SELECT ?q (?p * 2 AS ?m) (?m + ?q AS ?n)"), "(?m + ?q AS ?n)",
         (1, False, "?m is unbound")),
        (select("SELECT DISTINCT (?p * 2 AS ?m)"), "(?p * 2 AS ?m)",
         (1, False, '"12" * 2: a string and a number')),
        (select("SELECT (?p * 2 AS ?m)", "LIMIT 5"), "(?p * 2 AS ?m)",
         (1, False, '"12" * 2: a string and a number')),
        (select("SELECT ?k (SUM(?q) AS ?n)", "GROUP BY (?p * 2 AS ?k) OVER 9 SECONDS"),
         "(?p * 2 AS ?k)", (1, False, '"12" * 2: a string and a number')),
        (select("SELECT (SUM(?p * 2) AS ?n)", "GROUP BY ?q OVER 9 SECONDS"), "?p * 2",
         (1, False, '"12" * 2: a string and a number')),
        (select("SELECT ?n", "GROUP BY ?p OVER 9 SECONDS LET (?p * COUNT(*) AS ?n)"),
         "(?p * COUNT(*) AS ?n)", (1, False, '"12" * 1: a string and a number')),
        (select("SELECT ?p", "GROUP BY ?p OVER 9 SECONDS HAVING (?p * 2 > 0)"),
         "HAVING(?p * 2 > 0)", (1, False, '"12" * 2: a string and a number')),
        (select("SELECT ?p", "GROUP BY ?p OVER TUMBLING 9 SECONDS HAVING (?p * 2 > 0)"),
         "HAVING(?p * 2 > 0)", (1, False, '"12" * 2: a string and a number')),
        (select("CONSTRUCT { ?p :twice ?q }", where="OPTIONAL { ?z :none ?y }"), "?p :twice ?q",
         (2, True, "3 is a number, and a subject is an IRI or a blank node")),
        (select("CONSTRUCT { :s ?p ?q }"), ":s ?p ?q",
         (2, True, "3 is a number, and a predicate is an IRI")),
        (select("CONSTRUCT { :s :p [] . ?n :twice ?p }",
                "GROUP BY ?p OVER 9 SECONDS LET (COUNT(*) AS ?n)"),
         "?n :twice ?p", (2, True, "1 is a number, and a subject is an IRI or a blank node")),
    ],
)  # fmt: skip
def test_errors_of_results(text: str, expression: str, counted: tuple[int, bool, str]) -> None:
    run = spaseq.compile(text).start()
    found = []
    for at, event in enumerate(TWICE):
        predicate, value = event.split(" ")
        term = f'"{value}"^^<{INTEGER}>' if value.isdigit() else value
        found += run.push(S, at, f"<{E}e{at}> <{E}{predicate}> {term} .".encode())
    found += run.finish()
    for match in found:
        match.bindings  # noqa: B018 (decodes what the core has left)
        match.graph  # noqa: B018
    assert errors_of(run)[expression] == counted
    (clause,) = (
        each["gpm"]
        for each in run.stats["queries"]["query"]["errors"]
        if each["expression"] == expression
    )
    assert f"{clause}: {expression} " in run.why_not()


STRAY = 'SUM(?q) is unbound, because "n/a" is a string'
BLANK = "GROUP_CONCAT(?q) is unbound, because _:b is a blank node"
OF_ITERATIONS = [
    ("SELECT (SUM(?q) AS ?n)", "", "(SUM(?q) AS ?n)", (4, False, STRAY)),
    ("SELECT (SUM(?q) + 1 AS ?n)", "", "(SUM(?q) + 1 AS ?n)", (4, False, STRAY)),
    ("SELECT (GROUP_CONCAT(?q) AS ?n)", "", "(GROUP_CONCAT(?q) AS ?n)", (8, False, BLANK)),
    ("SELECT DISTINCT ?k (COUNT(*) AS ?n)", "GROUP BY (SUM(?q) AS ?k) OVER 9 SECONDS",
     "(SUM(?q) AS ?k)", (4, False, STRAY)),
]  # fmt: skip
OF_GROUPS = [
    ("SELECT (SUM(?q) AS ?n)", "", "(SUM(?q) AS ?n)", (2, False, STRAY)),
    ("SELECT (SUM(DISTINCT ?q) AS ?n) (COUNT(?q) AS ?m)", "", "(SUM(DISTINCT ?q) AS ?n)",
     (2, False, STRAY.replace("?q", "DISTINCT ?q"))),
    ("SELECT (AVG(?q * 2) AS ?n)", "", "(AVG(?q * 2) AS ?n)",
     (2, False, "AVG(?q * 2) is unbound")),
    ("SELECT (MIN(?q * 2) AS ?n)", "", "(MIN(?q * 2) AS ?n)",
     (2, False, "MIN(?q * 2) is unbound")),
    ("SELECT (SUM(?q) + 1 AS ?n)", "", "(SUM(?q) + 1 AS ?n)", (2, False, STRAY)),
    ("SELECT (COUNT(*) AS ?n)", "HAVING (SUM(?q) > 1)", "HAVING(SUM(?q) > 1)", (2, False, STRAY)),
    ("SELECT ?n", "LET (SUM(?q) AS ?n)", "(SUM(?q) AS ?n)", (2, False, STRAY)),
    ("SELECT (GROUP_CONCAT(?q) AS ?n)", "", "(GROUP_CONCAT(?q) AS ?n)", (1, False, BLANK)),
]  # fmt: skip


def counted_of(run: spaseq.Run, expression: str) -> tuple[int, bool, str]:
    """The errors of an expression of the result after a string, and a blank node, among numbers."""
    values = ["1", "2", '"n/a"', "3", *(["_:b"] if "CONCAT" in expression else [])]
    for at, value in enumerate(values):
        term = f'"{value}"^^<{INTEGER}>' if value.isdigit() else value
        run.push(S, at, f"<{E}e{at}> <{E}{'q' if at else 'p'}> {term} .".encode())
    run.finish()
    count, always, example = errors_of(run)[expression]
    return count, always, re.sub(r"_:\w+", "_:b", example)


@pytest.mark.parametrize(("columns", "rest", "expression", "counted"), OF_ITERATIONS)
def test_aggregates_of_iterations_without_a_value(
    columns: str, rest: str, expression: str, counted: tuple[int, bool, str]
) -> None:
    run = spaseq.compile(select(columns, rest).replace("A : B", "A : B+")).start()
    assert counted_of(run, expression) == counted


@pytest.mark.parametrize("in_core", [True, False])
@pytest.mark.parametrize(("columns", "rest", "expression", "counted"), OF_GROUPS)
def test_aggregates_of_groups_without_a_value(
    columns: str, rest: str, expression: str, counted: tuple[int, bool, str], in_core: bool
) -> None:
    for over in ("9 SECONDS", "TUMBLING 9 SECONDS"):
        run = spaseq.compile(select(columns, f"GROUP OVER {over} {rest}")).start()
        groups = run.evaluation.queries[0].grouping
        assert groups is not None
        if not in_core:
            groups.leave_core()
        once = (1, True, counted[2])
        assert counted_of(run, expression) == (once if "TUMBLING" in over else counted)


def test_aggregates_with_values_are_not_counted() -> None:
    columns = "SELECT (SUM(?q) AS ?n) (COUNT(?q) AS ?m) (MAX(?p) AS ?k) (SAMPLE(?q) AS ?s)"
    for group in ("GROUP OVER 9 SECONDS", "GROUP OVER TUMBLING 9 SECONDS"):
        assert errors_of(run_over(select(columns, group), "p 1", "q 2", "q 3")) == {}
    none = select("SELECT (SUM(?q) AS ?n) (MIN(?q) AS ?m)").replace("A : B", "A : B*")
    assert errors_of(run_over(none, "p 1", "q 2")) == {}
    words = select("SELECT (COUNT(?q) AS ?n) (MIN(?q) AS ?m)", "GROUP OVER 9 SECONDS")
    assert errors_of(run_over(words, "p 1", "q 2", 'q "n/a"')) == {}


def test_events_of_a_registered_stream_count_once() -> None:
    text = select("REGISTER STREAM :derived AS CONSTRUCT { :s :q ?q . ?p :twice ?q }")
    reader = f"""PREFIX : <{E}> SELECT ?q WITHIN 9 SECONDS FROM STREAM d :derived WHERE {{
      SEQ(A) DEFINE GPM A ON d {{ ?s :q ?q }} }}"""
    for decoded in (True, False):
        run = spaseq.compile([text, reader], names=["writes", "reads"]).start()
        found = []
        for at, (predicate, value) in enumerate((("p", '"x"'), ("q", "<e:1>"), ("q", "<e:2>"))):
            found += run.push(S, at, f"<{E}e{at}> <{E}{predicate}> {value} .".encode())
        found += run.finish()
        if decoded:
            assert [match.graph for match in found if match.query == "writes"]
        (error,) = run.stats["queries"]["writes"]["errors"]
        written = sum(match.query == "writes" for match in found)
        assert (error["expression"], error["errors"]) == ("?p :twice ?q", written)


def test_the_line_after_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    where = "OPTIONAL { ?z :none ?y }"
    Path("q.rq").write_text(select("SELECT ?q (?p * 2 AS ?m) (?y + 1 AS ?n)", where=where))
    quads = "".join(
        f'<{E}g{at}> <http://www.w3.org/ns/prov#generatedAtTime> "{at}"^^<{INTEGER}> .\n'
        f'<{E}a> <{E}{predicate}> "12" <{E}g{at}> .\n'
        for at, predicate in enumerate("pq")
    )
    Path("s.nq").write_text(quads)
    assert cli.main(["run", "q.rq", "--stream", "s=s.nq", "--format", "csv"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == ["q,m,n", "12,,"]
    expected = 'SELECT: (?p * 2 AS ?m) only erred, once: "12" * 2: a string and a number'
    assert err == f"spaseq: {expected}\n"


def test_results_without_errors_have_none() -> None:
    text = select("SELECT (?p * 2 AS ?m)")
    assert errors_of(run_over(text, "p 1", "q 2")) == {}


def test_a_change_of_the_queries_keeps_the_counts_of_results() -> None:
    for clauses in ("", "GROUP BY ?q OVER 99 SECONDS"):
        columns = "SELECT (SUM(?p * 2) AS ?m)" if clauses else "SELECT (?p * 2 AS ?m)"
        run = run_over(select(columns, clauses), 'p "12"', "q 1")
        before = errors_of(run)
        assert len(before) == (2 if clauses else 1)
        run.add("more", spaseq.compile(query("[] :r ?r ; ?any ?z")))
        assert errors_of(run) == before
        run.push(S, 9, f'<{E}e> <{E}q> "2"^^<{INTEGER}> .'.encode())
        assert all(count == before[text][0] + 1 for text, (count, *_) in errors_of(run).items())


def test_threads_add_the_counts_of_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.keyed_runs.LEAST_BYTES", 0)
    lines = []
    for at in range(400):
        value = f'"12"^^<{INTEGER}>' if at % 2 else '"x"'
        lines += [
            f'<{E}g{at}> <http://www.w3.org/ns/prov#generatedAtTime> "{at}"^^<{INTEGER}> .',
            f"<{E}k{at % 7}> <{E}p> {value} <{E}g{at}> .",
        ]
    (tmp_path / "s.nq").write_text("\n".join(lines))
    text = query("?k :p ?p", "?k :p ?q", "A ; B").replace("SELECT *", "SELECT ?k (?p * 2 AS ?m)")
    found = []
    for workers in (1, 2):
        result = spaseq.run(text, {"s": str(tmp_path / "s.nq")}, workers=workers)
        count = sum("m" not in match.bindings for match in result)
        (error,) = result.stats["queries"]["query"]["errors"]
        assert (error["errors"], error["always"]) == (count, False)
        found.append(count)
    assert found[0] == found[1] > 0


@pytest.mark.parametrize("clauses", ["", "GROUP OVER 99 SECONDS"])
def test_a_resumed_run_counts_and_names_the_errors_of_its_results(clauses: str) -> None:
    columns = "SELECT (SUM(?p) AS ?m)" if clauses else "SELECT (?p * 2 AS ?m)"
    program = spaseq.compile(select(columns, clauses))
    run = program.start()
    expected = {"(?p * 2 AS ?m)": (1, True, '"x" * 2: a string and a number')}
    if clauses:
        expected = {"(SUM(?p) AS ?m)": (1, True, 'SUM(?p) is unbound, because "x" is a string')}
    run.push(S, 1, f'<{E}e> <{E}p> "x" .'.encode())
    run.push(S, 2, f'<{E}e> <{E}q> "y" .'.encode())
    assert errors_of(run) == expected
    resumed = program.resume(run.save())
    assert errors_of(resumed) == {}, "counts are those since the run was resumed"
    resumed.push(S, 3, f'<{E}e> <{E}q> "z" .'.encode())
    assert errors_of(resumed) == expected


@pytest.mark.parametrize(
    "ways", [[], ["--state", "state"], ["--state", "state", "--format", "csv"]]
)
def test_the_line_after_a_live_run(
    ways: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.rq").write_text(select("SELECT (SUM(?q) AS ?m)", "GROUP OVER 99 SECONDS"))
    Path("s.nq").write_text(
        "".join(
            f'<{E}g{at}> <http://www.w3.org/ns/prov#generatedAtTime> "{at}"^^<{INTEGER}> .\n'
            f'<{E}a> <{E}{predicate}> "n/a" <{E}g{at}> .\n'
            for at, predicate in enumerate("pqq")
        )
    )
    assert cli.main(["run", "q.rq", "--stream", "s=s.nq", *ways]) == 0
    told = capsys.readouterr().err.splitlines()
    expected = (
        "spaseq: SELECT: (SUM(?q) AS ?m) only erred, 2 times: "
        'SUM(?q) is unbound, because "n/a" is a string'
    )
    assert expected in told

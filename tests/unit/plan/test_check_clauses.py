"""Clauses, streams, negations that forbid nothing, and queries that run together."""

from __future__ import annotations

import pytest
from plan_queries import PREFIX, findings, only, query, query_text

from spaseq.parser import ast, parse
from spaseq.plan.check import check, check_program


@pytest.mark.parametrize(
    ("clauses", "where", "fragment"),
    [
        ("EMIT ALL", "SEQ(A; B)", "no WITHIN"),
        ("WITHIN TUMBLING 0 HOURS", "WITHIN TUMBLING 0 HOURS", "length 0"),
        ("WITHIN 0 EVENTS", "WITHIN 0 EVENTS", "0 events"),
    ],
)
def test_windows(clauses: str, where: str, fragment: str) -> None:
    only(findings(query_text("A; B", clauses=clauses)), where, fragment)


def test_a_window_of_no_length_is_one_timestamp() -> None:
    assert check(query("A; B", clauses="WITHIN 0 SECONDS")) == []


def test_an_endless_window_is_a_warning() -> None:
    text = query_text("A; B", clauses="WITHIN UNBOUNDED")
    assert findings(text) == []
    only(findings(text, "warning"), "WITHIN UNBOUNDED", "memory grows")


def test_limit_zero() -> None:
    only(findings(query_text("A; B") + " LIMIT 0"), "LIMIT 0", "no match")
    assert findings(query_text("A; B") + " LIMIT 1") == []


@pytest.mark.parametrize(
    ("form", "limit", "where", "fragment"),
    [
        ("SELECT *", "LIMIT 1 EVERY 0 MINUTES", "EVERY 0 MINUTES", "spans no time"),
        ("ASK", "LIMIT 1 PER ?x", "PER", "an ASK has no PER"),
        ("SELECT *", "LIMIT 1 PER ?a ?other", "?other", "nothing binds"),
        ("SELECT ?a", "LIMIT 1 PER ?n", "?n", "only `N` binds it"),
        ("SELECT DISTINCT ?a", "LIMIT 1 PER ?b", "?b", "does not show"),
        ("SELECT ?a", "GROUP BY ?a LIMIT 1 PER ?b", "?b", "differs from result to result"),
        ("SELECT ?a", "GROUP BY ?a LIMIT 1 PER ?c", "?c", "nothing binds"),
        ("CONSTRUCT { :x :p ?a }", "LIMIT 1 PER ?c", "?c", "nothing binds"),
    ],
)
def test_limits_per_value(form: str, limit: str, where: str, fragment: str) -> None:
    only(findings(_limited(form, limit)), where, fragment)


@pytest.mark.parametrize(
    ("form", "limit"),
    [
        ("SELECT ?a", "LIMIT 1 PER ?b EVERY 0.5 SECONDS"),
        ("SELECT ?a (?b + 1 AS ?c)", "LIMIT 1 PER ?c"),
        ("SELECT DISTINCT *", "LIMIT 1 PER ?b"),
        ("SELECT DISTINCT (?b + 1 AS ?c)", "LIMIT 1 PER ?c"),
        ("CONSTRUCT { :x :p ?a }", "LIMIT 1 PER ?b"),
        ("ASK", "LIMIT 1 EVERY 2 WEEKS"),
        ("SELECT (COUNT(*) AS ?c)", "GROUP BY ?a LET (MAX(?b) AS ?m) LIMIT 2 PER ?a ?c ?m"),
    ],
)
def test_limits_per_value_that_are_valid(form: str, limit: str) -> None:
    assert findings(_limited(form, limit)) == []


def _limited(form: str, limit: str) -> str:
    return (
        PREFIX + f"{form} WITHIN 1 DAY FROM STREAM s :s {{ SEQ(A; !N; B) "
        "DEFINE GPM A ON s { [] :a ?a } DEFINE GPM B ON s { [] :b ?b } "
        f"DEFINE GPM N ON s {{ [] :n ?n }} }} {limit}"
    )


def test_streams() -> None:
    text = (
        PREFIX + "SELECT * WITHIN 1 DAY FROM STREAM s :s FROM STREAM t :t FROM STREAM s :s "
        "FROM STREAM t :u FROM STREAM idle :i { SEQ(A) DEFINE GPM A ON s, S, t { [] :p ?x } }"
    )
    found = check(parse(text))
    assert [text[f.span.start : f.span.end] for f in found] == ["FROM STREAM t :u", "S"]
    assert found[0].other is not None
    assert found[0].other.start < found[0].span.start
    assert found[1].hint.startswith("did you mean `s`?")


@pytest.mark.parametrize(
    ("seq", "vacuous"),
    [
        ("A; !N, B", ["!N"]),
        ("A, !N; B", []),
        ("A; !N; !M, B", ["!N", "!M"]),
        ("A; !N, B?; C", []),
        ("(A; !N), B", ["!N"]),
        ("A; !N", []),
    ],
)
def test_negations_that_forbid_nothing(seq: str, vacuous: list[str]) -> None:
    found = findings(query_text(seq), "warning")
    assert [where.lstrip("; ,") for where, _ in found] == vacuous
    keyed = {name: "{ [] :k ?k }" for name in "ABCMN" if name in seq}
    clauses = "WITHIN 10 SECONDS PARTITION BY ?k"
    assert findings(query_text(seq, keyed, clauses=clauses), "warning") == []


@pytest.mark.parametrize("head", ["SELECT *", "ASK"])
def test_only_constructed_graphs_make_a_stream(head: str) -> None:
    text = query_text("A", head=f"REGISTER STREAM :out AS {head}")
    only(findings(text), "REGISTER STREAM :out AS", "only a CONSTRUCT")
    allowed = query_text("A", head="REGISTER STREAM :out AS CONSTRUCT { [] :p ?a }")
    assert findings(allowed) == []


def registered(out: str, *reads: str, kind: str = "STREAM") -> ast.Query:
    streams = " ".join(f"FROM STREAM {name} :{name}" for name in reads)
    name = f":{out}" if kind == "STREAM" else out
    return parse(
        PREFIX + f"REGISTER {kind} {name} AS CONSTRUCT {{ [] :p ?x }} WITHIN 1 DAY {streams} "
        f"{{ SEQ(A) DEFINE GPM A ON {reads[0]} {{ [] :p ?x }} }}"
    )


def messages(*queries: ast.Query) -> list[tuple[int, str]]:
    return [(number, finding.message) for number, finding in check_program(queries)]


def test_names_among_queries() -> None:
    found = messages(
        registered("a", "s"),
        registered("b", "s", kind="QUERY"),
        registered("a", "s"),
        registered("b", "s", kind="QUERY"),
        query("A"),
        query("A"),
        registered("a", "s", kind="QUERY"),
    )
    assert [number for number, _ in found] == [2, 3]
    assert "<http://example.org/a>" in found[0][1]
    assert "by query 2 of 7" in found[1][1]


def test_queries_may_read_each_other_in_one_direction() -> None:
    assert messages(registered("a", "s"), registered("b", "a"), registered("c", "a", "b")) == []


def test_cycles_among_queries() -> None:
    (found,) = messages(registered("a", "s", "a"))
    assert found == (
        0,
        "the query reads its own results: <http://example.org/a> reads <http://example.org/a>",
    )
    found, other = messages(
        registered("x", "s"),
        registered("a", "c"),
        registered("b", "a"),
        registered("c", "x", "b"),
        registered("y", "y"),
    )
    assert found[0] == 1
    assert found[1].count(" reads <") == 3
    assert other[0] == 4

"""The shape of the SEQ: every rule broken once, at its place, and what stays allowed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from plan_queries import PREFIX, findings, only, query, query_text

from spaseq.parser import ast
from spaseq.plan.check import check
from spaseq.plan.places import sequence_places, without_parentheses


def many(operator: str, count: int = 256) -> str:
    return f" {operator} ".join(["A"] * (count - 2)) + f" {operator} (B | C)"


def test_a_group_of_as_many_as_there_may_be() -> None:
    assert findings(query_text(f"({many('&', 255)})")) == []


@pytest.mark.parametrize(
    "seq",
    [
        "A", "A?; B", "A; B?", "A*; B+", "A; !B", "A; !(B; C); D", "A; !(B | C)", "A; (B?)",
        "((A?)); B", "A; (B; C?)", "(A; !B); C", "A; (!B); C", "A{0,2}; B{3}; C{2,}", "A{0,}; B",
        "(A & (B | C))", "((A) & B)", "(A AND (B & C))", "(A | (B AND C))", "A; (B AND C), D",
        "A : (B AND C)", "A; (B AND C)+", "A, !(B AND C); D", "A, (B; (C AND D))", "(A & A)",
        "A, (B; C)+", "A; !(B+); C", "(A | B)?; C", "A; ((B; C))+", "(A?; B)+", "A; (B?; C)*",
        "!A; B", "NOT A; B", "A; (!B; C)", "!A; !B; C", "(!A; B)+", "!(A; B); C", "A; (!B; C)?",
        "A; B WITHIN 1 SECOND", "A; (B WITHIN 2 SECONDS)+ WITHIN 1 SECOND", "A+ WITHIN 1 SECOND",
        "A?; B WITHIN 1 SECOND", "(A & B) WITHIN 1 SECOND", "(A AND B) WITHIN 1 SECOND; C",
        "A; B? WITHIN 1 SECOND; C", "A; !(B WITHIN 1 SECOND); C", "A; (B WITHIN 1 SECOND)?",
        "!A WITHIN 1 SECOND; B", "A; (B; C WITHIN 1 SECOND)+", "(A WITHIN 1 SECOND; B)+",
        "A; !(B; (!C; D)); A", "!A; (B AND C)", "!A, (B & C)",
    ],
)  # fmt: skip
def test_sequences_that_are_right(seq: str) -> None:
    assert findings(query_text(seq)) == []


@pytest.mark.parametrize(
    ("seq", "where", "fragment"),
    [
        # negations
        ("A; (B | (!C; D))", "!C", "operand of `|` cannot start with a negation"),
        ("(A | ((!C; D)+; B))", "!C", "operand of `|` cannot start with a negation"),
        ("A; !(!B; C); D", "!B", "negated unit cannot start with a negation"),
        ("A; !((!B; C)+; D)", "!B", "negated unit cannot start with a negation"),
        ("A; !(!B); C", "(!B)", "it is never absent"),
        ("A; (!B)+; C", "(!B)", "cannot be repeated"),
        ("!A", "SEQ(!A)", "SEQ contains only negations"),
        ("!A; !B", "SEQ(!A; !B)", "SEQ contains only negations"),
        ("A; !B+", "+", "has no quantifier"),
        ("A; !B?; C", "?", "has no quantifier"),
        ("A; NOT B{2}; C", "{2}", "has no quantifier"),
        # groups
        (f"A; ({many('&')})", f"({many('&')})", "this & group names 256 GPMs; the maximum is 255"),
        (f"({many('AND')})", f"({many('AND')})", "this AND group names 256 GPMs"),
        # quantifiers
        ("A{3,2}", "{3,2}", "at least 3 iterations but at most 2"),
        ("A; B{0}", "{0}", "zero times"),
        ("A; B{0,0}", "{0,0}", "zero times"),
        ("A; B{1,0}", "{1,0}", "zero times"),
        ("A{2147483648}", "{2147483648}", "at most 2,147,483,647 iterations"),
        ("A; B{0,9000000000000000000}", "{0,9000000000000000000}", "counts at most"),
        # units that can match nothing
        ("A?", "SEQ(A?)", "match nothing at all"),
        ("A*; B?", "SEQ(A*; B?)", "match nothing at all"),
        ("A?; !B", "SEQ(A?; !B)", "match nothing at all"),
        ("(A*)+", "(A*)", "cannot be repeated"),
        ("A; (B?)?", "(B?)", "cannot be repeated"),
        ("A; !(B?)", "(B?)", "never absent"),
        ("A; !(B?; C*); D", "(B?; C*)", "never absent"),
        ("A; (B?; C?)", "(B?; C?)", "it cannot be a step"),
        ("(A?; B?)", "(A?; B?)", "it cannot be a step"),
        ("A; ((B?) | C)", "(B?)", "cannot be an operand of `|`"),
        ("A; (B | (C?; D*))+", "(C?; D*)", "cannot be an operand of `|`"),
        ("A; ((B?; C{0,3}); D)", "(B?; C{0,3})", "it cannot be a step"),
        # operands
        ("A; ((B; C) & D)", "(B; C)", "is a sequence"),
        ("A; ((B+) & C)", "(B+)", "is a step with a quantifier"),
        ("A; ((B?) AND C)", "(B?)", "is a step with a quantifier"),
        ("A; ((!B) AND C)", "(!B)", "is a negation"),
        ("A; ((B WITHIN 1 SECOND) AND C)", "(B WITHIN 1 SECOND)", "is a step with a bound"),
        ("A; ((B WITHIN 1 SECOND) & C)", "(B WITHIN 1 SECOND)", "is a step with a bound"),
        # bounds
        ("A WITHIN 1 SECOND; B", "WITHIN 1 SECOND", "no step precedes this one"),
        ("(A | B)? WITHIN 1 SECOND; C", "WITHIN 1 SECOND", "no step precedes this one"),
        ("!N; A WITHIN 1 SECOND; B", "WITHIN 1 SECOND", "no step precedes this one"),
        ("!(N WITHIN 1 SECOND); A", "WITHIN 1 SECOND", "no step precedes this one"),
        ("A{1} WITHIN 1 SECOND; B", "WITHIN 1 SECOND", "no step precedes this one"),
        ("A; (B & (C | (D; E)))", "(D; E)", "is a sequence"),
        ("A; (B & (C AND D))", "(C AND D)", "nested in `&`"),
        ("A; (B & (C | (D AND E)))", "(D AND E)", "nested in `&`"),
        ("A; (B AND (C AND D))", "(C AND D)", "nested in another AND"),
        ("A; (B AND (C | (D; E)))", "(D; E)", "is a sequence"),
        # AND groups behind a comma
        ("A, (B AND C)", ",", "cannot precede an AND group"),
        ("A, (B AND C)+", ",", "cannot precede an AND group"),
        ("A, ((B AND C); D)", ",", "cannot precede an AND group"),
        ("A, (((B AND C): D); E)+", ",", "cannot precede an AND group"),
        ("A, (B | (C AND D))", ",", "cannot precede an AND group"),
        ("A; !B, (C AND D)", ",", "cannot precede an AND group"),
        ("A; !(B, (C AND D))", ",", "cannot precede an AND group"),
    ],
)
def test_sequences_that_are_wrong(seq: str, where: str, fragment: str) -> None:
    only(findings(query_text(seq)), where, fragment)


@pytest.mark.parametrize(
    "seq",
    [
        "A; B WITHIN 1 DAY",
        "A; (B; C) WITHIN 1 DAY",
        "A; !(N WITHIN 1 DAY); B",
        "A; ((B WITHIN 1 DAY) | C)",
    ],
)
def test_a_bound_that_the_window_always_keeps(seq: str) -> None:
    found = findings(query_text(seq), "warning")
    only(found, "WITHIN 1 DAY", "the window is shorter than this bound")


@pytest.mark.parametrize("seq", ["!N WITHIN 1 DAY; A", "(!N WITHIN 1 DAY; B)+"])
def test_an_absence_in_front_may_look_back_further_than_the_window(seq: str) -> None:
    windows = ("10 SECONDS", "TUMBLING 1 MINUTE", "9 EVENTS", "UNBOUNDED")
    for window in windows:
        assert findings(query_text(seq, clauses=f"WITHIN {window}")) == []


def test_several_faults_in_one_run() -> None:
    found = findings(query_text("!A+; B{2,1}; (C*)+; D, (E AND F)"))
    assert [where for where, _ in found] == ["+", "{2,1}", "(C*)", ","]


@pytest.mark.parametrize(
    ("seq", "ends"),
    [
        ("A; B", []),
        ("A; B+", []),
        ("A?; B", []),
        ("A; !B; C", []),
        ("A; !B", ["; !B"]),
        ("A; B?", ["; B?"]),
        ("A; B*", ["; B*"]),
        ("A; B{0,3}", ["; B{0,3}"]),
        ("A; (B; !C)", ["; !C"]),
        ("A; (B; C?)+", ["; C?"]),
        ("A; (B | (C; D?))", ["; D?"]),
        ("A; !B; C?", ["; C?", "; !B"]),
        ("A; B? WITHIN 1 SECOND", []),
        ("A; (B; C)? WITHIN 1 SECOND", []),
        ("A; (B; !C)?", ["; (B; !C)?", "; !C"]),
        ("A; (B; !C); D", []),
    ],
)
@pytest.mark.parametrize(
    ("window", "counted"), [("WITHIN UNBOUNDED", True), ("WITHIN 9 EVENTS", True), ("", False)]
)
def test_steps_that_end_only_with_time(
    seq: str, ends: list[str], window: str, counted: bool
) -> None:
    clauses = window or "WITHIN TUMBLING 1 MINUTE"
    found = findings(query_text(seq, clauses=clauses))
    expected = {end.lstrip("; ") for end in ends} if counted else set()
    assert {where.lstrip("; ") for where, _ in found} == expected
    assert all("window closes" in message for _, message in found)


def test_names() -> None:
    text = (
        PREFIX + "SELECT * WITHIN 1 DAY FROM STREAM main :m { SEQ(Alarm; Alrm; Other) "
        "DEFINE GPM Alarm ON main { [] :p ?x } DEFINE GPM Alarm ON mian { [] :p ?x } "
        "DEFINE GPM Unused ON lost { [] :p ?x } }"
    )
    found = findings(text)
    assert [where for where, _ in found] == ["Alrm", "Other", "Alarm", "mian", "Unused", "lost"]
    assert "defined twice" in found[2][1]
    assert "SEQ does not use it" in found[4][1]


def test_a_name_that_is_undefined_at_several_places_is_reported_once() -> None:
    only(findings(query_text("A; b; b; !b")), "b", "`b` is not defined")


def _steps(units: st.SearchStrategy[ast.Unit]) -> st.SearchStrategy[ast.Sequence]:
    counts = st.builds(ast.Quantifier, st.integers(0, 2), st.sampled_from([None, 0, 1, 2]))
    optional = st.just(ast.Quantifier(0, 1, optional=True))
    quantifiers = st.one_of(st.none(), optional, counts)
    step = st.builds(ast.Step, st.sampled_from(",;:"), units, quantifiers, st.booleans())
    return st.builds(
        lambda steps: ast.Sequence((replace(steps[0], operator=None), *steps[1:])),
        st.lists(step, min_size=1, max_size=3),
    )


def _units(inner: st.SearchStrategy[ast.Unit]) -> st.SearchStrategy[ast.Unit]:
    pair = st.tuples(inner, inner)
    groups = (ast.Conjunction, ast.Disjunction, ast.AnyOrder)
    return st.one_of(_steps(inner), *(st.builds(group, pair) for group in groups))


_UNITS = st.recursive(st.builds(ast.GpmRef, st.sampled_from("ABZ")), _units, max_leaves=6)
_WINDOWS = st.sampled_from(
    [ast.Within(ast.WindowKind.SPAN, 1), ast.Within(ast.WindowKind.EVENTS, events=3), None]
)


_NEGATED = ast.Step(None, ast.GpmRef("A"), negated=True)


@given(_steps(_UNITS), _WINDOWS)
@example(
    ast.Sequence((_NEGATED, ast.Step(",", ast.Sequence((_NEGATED,))))),
    ast.Within(ast.WindowKind.SPAN, 1),
)
def test_any_sequence_gets_its_findings(sequence: ast.Sequence, within: ast.Within | None) -> None:
    gpms = {"A": "{ [] :k ?k ; :a ?a FILTER(?a > PREV(?k)) }", "B": "{ [] :k ?k FILTER(?k > ?a) }"}
    tree = replace(query("A; B", gpms), sequence=sequence, within=within)
    severities = [finding.severity for finding in check(tree)]
    assert severities == sorted(severities)
    assert ("error" in severities) or within is not None
    bare = replace(tree, sequence=without_parentheses(sequence))
    assert [f.message for f in check(bare)] == [f.message for f in check(tree)]
    assert len(sequence_places(sequence).occurrences) == len(
        sequence_places(bare.sequence).occurrences
    )

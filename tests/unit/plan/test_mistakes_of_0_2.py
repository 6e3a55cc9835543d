"""What users will get wrong in the clauses of 0.2: each message has a place and advice."""

from __future__ import annotations

import pytest

import spaseq

WITHIN = "WITHIN 10 SECONDS"
QUERY = """PREFIX : <http://example.org/>
%s %s FROM STREAM S :S
WHERE { SEQ(%s)
 DEFINE GPM A ON S { ?k :a ?v } DEFINE GPM B ON S { ?k :b ?w }
}
%s"""
MISTAKES = [
    # (form, window, SEQ, clauses at the end, line, column, part of the message, part of the hint)
    ("SELECT ?k", WITHIN, "A WITHIN 5 SECONDS; B", "", 3, 15, "no step precedes", "later step"),
    ("SELECT ?k", WITHIN, "A; B WITHIN -5 SECONDS", "", 3, 25, "no sign", "WITHIN 5"),
    ("SELECT ?k", WITHIN, "A; B WITHIN 5", "", 3, 26, "needs a unit", "SECONDS"),
    ("SELECT ?k", WITHIN, "A; B WITHIN 5 EVENTS", "", 3, 27, "not EVENTS", "5 SECONDS"),
    ("SELECT (AVG(?v) AS ?m)", WITHIN, "A; B", "", 2, 13, "no iteration", "GROUP BY"),
    ("SELECT (COUNT(*) AS ?n)", WITHIN, "A; B", "", 2, 9, "COUNT(*)", "GROUP BY"),
    ("SELECT ?k", WITHIN, "A; B", "HAVING (COUNT(*) > 1)", 6, 1, "without GROUP", "GROUP BY"),
    ("SELECT ?k", WITHIN, "A; B", "GROUP BY ?k HAVING ?k > 1", 6, 20, "parentheses", "HAVING ("),
    ("SELECT ?k", WITHIN, "A; B", "GROUP BY ?k OVER 5 EVENTS", 6, 20, "not EVENTS", "MINUTES"),
    ("SELECT ?k", WITHIN, "A; B", "GROUP BY ?k OVER 0 DAYS", 6, 13, "OVER 0", "OVER 5 MINUTES"),
    ("SELECT ?k", "WITHIN 9 EVENTS", "A; B", "GROUP BY ?k", 6, 1, "has no length", "add OVER"),
    ("SELECT ?k", WITHIN, "A; B", "GROUP ?k", 6, 7, "BY is missing", "GROUP BY ?k"),
    ("SELECT ?k", WITHIN, "A; B", "GROUP BY ?v + 1", 6, 13, "needs a name", "(?v + … AS ?name)"),
    ("SELECT ?k", WITHIN, "A; B", "GROUP BY AVG(?v)", 6, 10, "needs a name", "AS ?name"),
    ("SELECT ?k", WITHIN, "A; B", "GROUP BY ?k LET AVG(?v) AS ?m", 6, 17, "LET", "LET ("),
    ("SELECT ?k", WITHIN, "A; B", "GROUP BY ?k LET (AVG(?v))", 6, 25, "needs a name", "AS ?name"),
    ("SELECT ?v", WITHIN, "A; B", "GROUP BY ?k", 2, 8, "differs from result to result", "SAMPLE"),
    ("SELECT *", WITHIN, "A; B", "GROUP BY ?k", 2, 1, "SELECT *", "name keys"),
    ("SELECT (AVG(SUM(?v)) AS ?x)", WITHIN, "A; B", "GROUP BY ?k", 2, 13, "inside", "nest"),
    (
        "SELECT (AVG(?m) AS ?x)", WITHIN, "A; B", "GROUP BY ?k LET (AVG(?v) AS ?m)",
        2, 13, "ranges over results", "without the aggregate",
    ),
    ("SELECT (FIRST(?v) AS ?x)", WITHIN, "A; B", "GROUP BY ?k", 2, 9, "iterations", "key"),
    ("SELECT (:fn(?v) AS ?x)", WITHIN, "A; B", "", 2, 9, "is not known", "register"),
    ("SELECT ?k", WITHIN, "A; B", "GROUP BY ?k WITHIN 5 DAYS", 6, 13, "after GROUP", "move it"),
    ("SELECT ?k", WITHIN, "A; B", "LIMIT 1 PER MINUTE", 6, 13, "a length of time", "EVERY"),
    ("SELECT ?k", WITHIN, "A; B", "LIMIT 1 EVERY 0 DAYS", 6, 9, "EVERY 0", "delete EVERY"),
    ("SELECT ?k", WITHIN, "A; B", "LIMIT 1 EVERY 5 DAYS PER ?k", 6, 22, "out of place", "order"),
    ("SELECT ?k", WITHIN, "A; B", "LIMIT 1 PER ?vv", 6, 13, "nothing binds", "did you mean"),
    ("ASK", WITHIN, "A; B", "LIMIT 1 PER ?v", 6, 9, "ASK has no PER", "EVERY"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "window", "sequence", "end", "line", "column", "message", "hint"), MISTAKES
)
def test_mistakes(
    form: str, window: str, sequence: str, end: str, line: int, column: int, message: str, hint: str
) -> None:
    with pytest.raises(spaseq.QueryError) as caught:
        spaseq.compile(QUERY % (form, window, sequence, end))
    error = caught.value
    first = error.diagnostics[0]
    assert message in first.message
    assert hint in first.hint
    assert (error.line, error.column) == (line, column)
    assert "^" in str(error)


def test_the_query_itself_is_right() -> None:
    program = spaseq.compile(QUERY % ("SELECT ?k", WITHIN, "A; B", "GROUP BY ?k"))
    assert not program.warnings

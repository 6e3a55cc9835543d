"""`stats` and `why_not`: the counters and the reasons."""

from __future__ import annotations

import json

import pytest
from engine_runs import R, S, program, push, text

import spaseq

# ------------------------------------------------------------------ statistics


def test_what_is_counted() -> None:
    run = spaseq.compile([text(), text(seq="SEQ(A : B)")], names=["next", "any"]).start()
    push(run, 1, "k a 1, j a 1")
    push(run, 2, "k b 1")
    push(run, 3, "k b 1")
    stats = run.stats
    assert json.loads(json.dumps(stats)) == stats
    assert (stats["events"], stats["triples"], stats["matches"]) == (3, 4, 3)
    assert stats["streams"] == {S: {"events": 3}}
    assert stats["queries"]["next"]["matches"] == 1
    assert stats["queries"]["any"]["matches"] == 2
    assert stats["queries"]["next"]["places"] == {"2: A ; B": 1}
    assert stats["queries"]["any"]["places"] == {"2: A : B": 2}
    assert stats["groups"] == 3
    assert stats["late_events"] == 0
    assert stats["evaluated_gpms"] == 5  # no partial match waits for B at first
    assert stats["bytes"] > 0


def test_a_fresh_run_holds_nothing() -> None:
    stats = program().start().stats
    assert {name: stats[name] for name in ("events", "matches", "groups", "nodes", "bytes")} == {
        "events": 0, "matches": 0, "groups": 0, "nodes": 0, "bytes": 0,
    }  # fmt: skip


def test_taking_statistics_changes_nothing() -> None:
    run = program(seq="SEQ(A ; B+ ; A)").start()
    for time in range(20):
        push(run, time, f"k {'ab'[time % 2]} 1")
    before = run.save()
    assert run.stats == run.stats
    assert run.save() == before


def test_bytes_follow_the_window() -> None:
    run = program(seq="SEQ(A : B)", clauses="WITHIN 50 SECONDS").start()
    sizes = []
    for time in range(3000):
        push(run, time, f"k{time % 7} a {time}")
        if time % 1000 == 999:
            sizes.append(run.stats["bytes"])
    assert max(sizes) <= 1.5 * min(sizes)


def test_waiting_matches_are_counted() -> None:
    run = program(seq="SEQ(A ; !B)").start()
    push(run, 1, "k a 1")
    query = run.stats["queries"]["query"]
    assert query["waiting_for_closing"] == 1
    assert query["bytes"] > 0


# ------------------------------------------------------------------ why there is no match

FILTERED = (
    "DEFINE GPM A ON s { ?k :a ?x FILTER(?x > 5) } DEFINE GPM B ON s { ?k :b ?y FILTER(?y > ?x) }"
)
APART = (
    "DEFINE GPM A ON s { [] :a ?x } DEFINE GPM B ON s { [] :b ?y } DEFINE GPM N ON s { [] :n ?z }"
)


def told(run: spaseq.Run) -> list[str]:
    return [line.strip() for line in run.why_not().splitlines()]


def test_nothing_came() -> None:
    lines = told(program().start())
    assert lines[0] == "query query: 0 matches in 0 events"
    assert "1: ^ A never advanced:" in lines
    assert f"A: no event of <{S}> arrived" in lines
    assert "never reached: 2: A ; B" in lines


def test_a_graph_pattern_never_had_a_solution() -> None:
    run = program().start()
    push(run, 1, "k a 1")
    push(run, 2, "k c 1")
    lines = told(run)
    assert any(line.startswith("1: ^ A") and line.endswith("started 1 time") for line in lines)
    assert "2: A ; B never advanced:" in lines
    assert "needed: B after the last event (skip till next) with the same ?k" in lines
    assert "B: its graph pattern has no solution in 1 event it was tried on" in lines


def test_a_local_filter_was_never_true() -> None:
    run = program(gpms=FILTERED).start()
    for time in range(3):
        push(run, time, f"k a {time}")
    assert "A: FILTER(?x > 5) was never true: 3 of 3 solutions" in told(run)


def test_a_residual_filter_was_never_true() -> None:
    run = program(gpms=FILTERED).start()
    push(run, 1, "k a 7")
    for time, value in enumerate((2, 3, 6, 7), 2):
        push(run, time, f"k b {value}")
    lines = told(run)
    assert "B: 4 rows in the events" in lines
    assert "4 rows did not agree with any waiting partial match on ?k, ?y > ?x" in lines


def test_an_order_that_is_not_the_whole_filter_is_told_with_equal_ones() -> None:
    run = program(gpms=FILTERED.replace("?y > ?x", "?y > ?x && ?y < ?x + 9")).start()
    push(run, 1, "k a 7")
    push(run, 2, "k b 6")
    push(run, 3, "k b 7")
    lines = told(run)
    assert "1 row did not agree with any waiting partial match on ?k, ?y >= ?x" in lines
    assert "B: FILTER(?y > ?x && ?y < ?x + 9) was not true 1 time" in lines


def test_a_residual_filter_that_no_index_serves_was_never_true() -> None:
    run = program(gpms=FILTERED.replace("> ?x", "> ?x + 0")).start()
    push(run, 1, "k a 7")
    for time in range(2, 6):
        push(run, time, f"k b {time}")
    assert "B: FILTER(?y > ?x + 0) was not true 4 times" in told(run)


def test_nobody_waited_yet() -> None:
    run = program().start()
    push(run, 1, "k b 1")
    push(run, 2, "k a 1")
    assert "2 events arrived while no partial match was waiting" in told(run)


def test_nobody_waited_for_that_value() -> None:
    run = program().start()
    push(run, 1, "k a 1")
    push(run, 2, "j b 1")
    assert "1 row did not agree with any waiting partial match on ?k" in told(run)


def test_a_value_without_an_index_disagreed() -> None:
    gpms = "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?j :b ?y OPTIONAL { ?j :is ?k } }"
    run = program(gpms=gpms).start()
    push(run, 1, "k a 1")
    push(run, 2, "j b 1, j is j")
    assert "B: disagreed with a partial match on a shared variable 1 time" in told(run)


def test_strict_contiguity_passed_over() -> None:
    run = program(seq="SEQ(A , B)", gpms=APART.partition("DEFINE GPM N")[0]).start()
    push(run, 1, "k a 1")
    push(run, 2, "")
    push(run, 3, "k b 1")
    push(run, 4, "k b 1")
    lines = told(run)
    assert "strict contiguity rejected 1 candidate" in lines
    assert "2 events arrived while no partial match was waiting" in lines


def test_a_guard_forbade() -> None:
    run = program(seq="SEQ(A ; !N ; B)", gpms=APART).start()
    push(run, 1, "k a 1")
    push(run, 2, "k n 1")
    push(run, 3, "k b 1")
    lines = told(run)
    assert "needed: B after the last event (skip till next) and !N before it" in lines
    assert "!N removed 1 group waiting here" in lines


def test_a_guard_forbade_a_candidate() -> None:
    run = program(seq="SEQ(A ; !(N : N) ; B)", gpms=APART).start()
    push(run, 1, "k a 1")
    push(run, 2, "k n 1")
    push(run, 3, "k n 1")
    push(run, 4, "k b 1")
    assert "!(N : N) forbade 1 candidate" in told(run)


def test_a_guard_forbade_the_start() -> None:
    run = program(seq="SEQ(N? ; B ; A)", gpms=APART).start()
    push(run, 1, "k n 1")
    push(run, 2, "k b 1")
    lines = told(run)
    assert "2: ^ !N B never advanced:" in lines
    assert "!N forbade 1 candidate" in lines


def test_the_window_closed_before() -> None:
    run = program(clauses="WITHIN 2 SECONDS").start()
    push(run, 1, "k a 1")
    push(run, 5, "k b 1")
    assert "1 candidate arrived after the window had closed" in told(run)


def test_a_trailing_guard_forbade() -> None:
    run = program(seq="SEQ(A ; !B)", clauses="WITHIN 5 SECONDS").start()
    push(run, 1, "k a 1")
    assert "1 match waiting for the window to close" in told(run)
    push(run, 2, "k b 1")
    assert "1 match rejected by a negation at the end" in told(run)
    run.finish()
    assert "1 match rejected by a negation at the end" in told(run)


def test_a_partition_variable_was_unbound() -> None:
    gpms = "DEFINE GPM A ON s { ?j :a ?x OPTIONAL { ?j :is ?k } }"
    run = program(seq="SEQ(A)", gpms=gpms, clauses="WITHIN 1 HOUR PARTITION BY ?k").start()
    push(run, 1, "j a 1")
    assert "1 row left a partition variable unbound" in told(run)


def test_emit_let_nothing_through() -> None:
    run = program(seq="SEQ(A : B)", gpms=APART.partition("DEFINE GPM N")[0],
                  clauses="WITHIN 10 SECONDS EMIT STRICT").start()  # fmt: skip
    push(run, 1, "k a 1")
    push(run, 2, "")
    push(run, 3, "k b 1")
    assert "EMIT STRICT rejected 1 candidate" in told(run)


def test_the_silent_stream_is_named() -> None:
    gpms = "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON r { ?k :b ?y }"
    run = program(gpms=gpms, streams="FROM STREAM s :s FROM STREAM r :r").start()
    push(run, 1, "k a 1")
    push(run, 2, "k a 1")
    assert f"B: no event of <{R}> arrived" in told(run)


def test_a_conjunction_tells_of_each_operand() -> None:
    run = program(seq="SEQ(A & B)").start()
    push(run, 1, "k a 1")
    lines = told(run)
    assert "needed: A & B" in lines
    assert "A: 1 row in the events" in lines
    assert "B: its graph pattern has no solution in 1 event it was tried on" in lines


def test_one_query_of_several() -> None:
    run = spaseq.compile([text(), text(seq="SEQ(B : A)")], names=["one", "two"]).start()
    both, one = run.why_not(), run.why_not("one")
    assert "query one" in both
    assert "query two" in both
    assert "query two" not in one
    with pytest.raises(ValueError, match="no query three; the queries are one, two"):
        run.why_not("three")


def test_patterns_that_match_say_so() -> None:
    run = program().start()
    push(run, 1, "k a 1")
    push(run, 2, "k b 1")
    lines = told(run)
    assert lines[0] == "query query: 1 match in 2 events"
    assert not any("never" in line for line in lines)

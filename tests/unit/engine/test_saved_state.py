"""`save` and `resume`: nothing is lost, and what does not fit is refused."""

from __future__ import annotations

import zlib
from hashlib import blake2b

import pytest
from engine_runs import GPMS, R, S, program, push, text, triples

import spaseq
from spaseq.engine.envelope import MAGIC, VERSION, seal, unseal
from spaseq.errors import StateError

QUERIES = {
    "next": text(),
    "plus": text(seq="SEQ(A ; B+ : A)"),
    "sums": text(
        seq="SEQ(A : B+)",
        gpms=GPMS.replace("?y }", "?y FILTER(SUM(DISTINCT ?y) < 9 && ?y >= PREV(?y, 0)) }"),
        head="SELECT ?k (SUM(?y) AS ?t) (FIRST(?y) AS ?f) (COUNT(B) AS ?n)",
    ),
    "strict": text(seq="SEQ(A , B)", clauses="WITHIN 20 SECONDS PARTITION BY ?k"),
    "negation": text(seq="SEQ(A ; !N ; B)", gpms=GPMS + " DEFINE GPM N ON s { ?k :n ?z }"),
    "trailing": text(seq="SEQ(A ; !B)", head="SELECT ?x", clauses="WITHIN 2 SECONDS"),
    "together": text(seq="SEQ(A & B)"),
    "any order": text(seq="SEQ(A AND B)", clauses="WITHIN 5 EVENTS"),
    "skip": text(clauses="WITHIN 9 SECONDS AFTER MATCH SKIP PAST LAST EVENT EMIT MAX"),
    "distinct": text(head="SELECT DISTINCT ?k", clauses="WITHIN TUMBLING 7 SECONDS"),
    "construct": text(head="CONSTRUCT { ?k :p [] }"),
    "ask": text(head="ASK"),
}
EVENTS = (
    "k a 1", "k b 1", "j a 2", "k b 4", "k n 1", "j b 3", "k a 2, j a 1", "", "k b 2, j b 5",
    "j n 1", "k a 3, k b 3", "k a 1, j b 1", "k b 5",
)  # fmt: skip


def results(run: spaseq.Run, program: spaseq.Program | None) -> list[str]:
    """Everything a run says; with a program, it is saved and resumed before every event."""
    found = []
    for number, facts in enumerate(EVENTS):
        if program is not None:
            run = program.resume(run.save())
        # Two events to a timestamp, now and then.
        time = number - (number % 3 == 2)
        found += [match.to_json() for match in run.push(S, time, triples(facts))]
    if program is not None:
        run = program.resume(run.save())
    return found + [match.to_json() for match in run.finish()]


@pytest.mark.parametrize("name", QUERIES)
def test_a_run_that_is_interrupted_all_the_time_says_the_same(name: str) -> None:
    one = spaseq.compile(QUERIES[name])
    whole = results(one.start(), None)
    assert results(one.start(), one) == whole
    assert whole


def test_all_queries_at_once() -> None:
    one = spaseq.compile(list(QUERIES.values()), names=list(QUERIES))
    assert results(one.start(), one) == results(one.start(), None)


def test_saving_changes_nothing() -> None:
    one = program(seq="SEQ(A : B+)")
    run = one.start()
    push(run, 1, "k a 1")
    push(run, 2, "k b 1")
    assert run.save() == run.save()
    assert push(run, 3, "k b 2") == ["A@1 B@2 B@3", "A@1 B@3"]


def test_saving_after_the_window_has_gone_changes_nothing() -> None:
    """What the state still names, but the window has passed over, has no terms any more."""
    query = """
    PREFIX : <http://example.org/>
    SELECT ?v WITHIN 2 SECONDS FROM STREAM s :s
    WHERE { SEQ(A+ : A) DEFINE GPM A ON s { [] :p ?v } }
    """
    answers = []
    for saves in (False, True):
        run = spaseq.compile(query).start()
        found = []
        for times in ((1, 2, 3), (5, 6), (20, 21)):
            for time in times:
                graph = f'<http://a/a> <http://example.org/p> "{time}" .\n'
                found += run.push("http://example.org/s", time, graph)
            found += run.advance(times[-1] + 2)
            if saves:
                run.save()
        answers.append([match.to_json() for match in found])
    assert answers[0] == answers[1]


def test_an_empty_run_is_saved() -> None:
    one = program()
    run = one.resume(one.start().save())
    push(run, 1, "k a 1")
    assert push(run, 2, "k b 1") == ["A@1 B@2"]


def test_events_that_wait_for_other_streams_are_saved() -> None:
    gpms = "DEFINE GPM A ON r { ?k :a ?x } DEFINE GPM B ON s { ?k :b ?y }"
    one = program(gpms=gpms, streams="FROM STREAM s :s FROM STREAM r :r")
    run = one.start()
    push(run, 1, "j b 0")
    push(run, 1, "k b 1")
    run = one.resume(run.save())
    assert push(run, 1, "k a 1", R) == []
    run = one.resume(run.save())
    assert push(run, 1, "x c 1", R) == ["A@1 B@1"]


def test_counters_and_the_end_are_saved() -> None:
    one = program()
    run = one.start()
    push(run, 1, "k a 1, k a 2")
    push(run, 2, "k b 1")
    run.finish()
    again = one.resume(run.save())
    kept = ("events", "triples", "matches", "streams")
    assert {k: again.stats[k] for k in kept} == {k: run.stats[k] for k in kept}
    assert again.stats["matches"] == 2
    assert again.finish() == []
    with pytest.raises(spaseq.EventError):
        push(again, 3, "k a 1")


def test_saved_state_follows_the_window_not_the_stream() -> None:
    one = program(seq="SEQ(A : B)", clauses="WITHIN 5 SECONDS")
    run = one.start()
    sizes = []
    for time in range(600):
        push(run, time, f"k a {time}")
        if time % 100 == 99:
            sizes.append(len(run.save()))
    assert max(sizes) < 1.3 * min(sizes)


# ------------------------------------------------------------------ what is refused


def sealed(body: bytes, size: int) -> bytes:
    """A blob with this body, and the checksum that belongs to it."""
    front = MAGIC + VERSION.to_bytes(2, "big") + body + size.to_bytes(8, "big")
    return front + blake2b(front, digest_size=16).digest()


def blob() -> bytes:
    run = program().start()
    push(run, 1, "k a 1")
    return run.save()


@pytest.mark.parametrize(
    ("damaged", "says"),
    [
        (lambda good: b"", "not the saved state"),
        (lambda good: b"something else", "not the saved state"),
        (lambda good: good[:-7], "damaged"),
        (lambda good: good[: len(MAGIC) + 2], "damaged"),
        (lambda good: good[:40] + bytes([good[40] ^ 1]) + good[41:], "damaged"),
        (lambda good: sealed(zlib.compress(b"[1"), 2), "damaged"),
    ],
    ids=["empty", "alien", "cut off", "head only", "one bit", "no JSON"],
)  # fmt: skip
def test_damaged_state_is_refused(damaged: object, says: str) -> None:
    with pytest.raises(StateError, match=says):
        program().resume(damaged(blob()))  # type: ignore[operator]


def test_another_version_is_refused_with_advice() -> None:
    newer = MAGIC + (VERSION + 1).to_bytes(2, "big") + blob()[len(MAGIC) + 2 :]
    with pytest.raises(StateError, match=f"format version {VERSION + 1}") as error:
        program().resume(newer)
    assert "replay" in str(error.value)


@pytest.mark.parametrize(
    "other",
    [
        program(seq="SEQ(A : B)"),
        program(clauses="WITHIN 11 SECONDS"),
        spaseq.compile([text(), text()]),
        spaseq.compile(text(), names=["another"]),
    ],
    ids=["sequence", "window", "more queries", "name"],
)
def test_another_program_is_refused(other: spaseq.Program) -> None:
    with pytest.raises(StateError, match="another program"):
        other.resume(blob())


def test_the_layout_of_a_query_does_not_matter() -> None:
    spaced = spaseq.compile(text().replace(" WHERE", "\n# a comment\nWHERE"))
    run = spaced.resume(blob())
    assert push(run, 2, "k b 1") == ["A@1 B@2"]


def test_other_values_of_parameters_are_another_program() -> None:
    limited = program(seq="SEQ(A)", gpms="DEFINE GPM A ON s { ?k :a ?x FILTER(?x > ?limit) }")
    saved = limited.start(bind={"limit": 1}).save()
    with pytest.raises(StateError, match="another program"):
        limited.bind({"limit": 2}).resume(saved)


@pytest.mark.parametrize("name", ["limit", "k", "x", "none", "", "limit }"])
@pytest.mark.parametrize("term", [["i", S], ["^", "x", S], ["@", "x", "en"], ["b", "x"]])
def test_changed_parameters_are_another_program(name: str, term: list[str]) -> None:
    limited = program(seq="SEQ(A)", gpms="DEFINE GPM A ON s { ?k :a ?x FILTER(?x > ?limit) }")
    data = unseal(limited.start(bind={"limit": 1}).save())
    data["tables"]["terms"].append(term)
    data["bound"] = {name: len(data["tables"]["terms"]) - 1}
    with pytest.raises(StateError):
        limited.resume(seal(data))


def test_the_queries_that_differ_are_named() -> None:
    saved = spaseq.compile([text(), text(seq="SEQ(A : B)")], names=["one", "two"]).start().save()
    others = spaseq.compile([text(), text(seq="SEQ(A , B)"), text()], names=["one", "two", "new"])
    with pytest.raises(StateError, match=r"it lacks the query new.*\n?.* of the query two differs"):
        others.resume(saved)


def test_bound_parameters_are_saved() -> None:
    limited = program(seq="SEQ(A)", gpms="DEFINE GPM A ON s { ?k :a ?x FILTER(?x > ?limit) }")
    run = limited.resume(limited.start(bind={"limit": 1}).save())
    assert push(run, 1, "k a 1") == []
    assert push(run, 2, "k a 2") == ["A@2"]

"""A run serves one thread at a time, and refuses calls of a second thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from core_runs import encoded, event
from engine_runs import EX, S, program, triples

import spaseq
from spaseq import runs
from spaseq.engine.stream_names import iris_of
from spaseq.rdf.event import Event
from spaseq.sparql.registry import registry_restored

BUSY = "a run is for one thread at a time"
USES: dict[str, Callable[[spaseq.Run], object]] = {
    "push": lambda run: run.push(S, 9, triples("k b 1")),
    "push_batch": lambda run: list(run.push_batch([event(9_000_000, "b", "k")])),
    "encoded": lambda run: list(run.push_batch(encoded(run, [event(9_000_000, "b", "k")]))),
    "advance": lambda run: run.advance(9),
    "finish": lambda run: run.finish(),
    "save": lambda run: run.save(),
    "stats": lambda run: run.stats,
    "why_not": lambda run: run.why_not(),
    "explain": lambda run: run.explain(),
}


def in_a_thread(call: Callable[[], object]) -> str:
    """What a call in another thread raises."""
    said = [""]

    def work() -> None:
        try:
            call()
        except BaseException as error:
            said[0] = f"{type(error).__name__}: {error}"

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    return said[0]


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_another_thread_is_refused_while_events_are_fetched(
    use: Callable[[spaseq.Run], object],
) -> None:
    run = program().start()
    said = []

    def events() -> Iterator[Event]:
        yield event(1, "a", "k")
        said.append(in_a_thread(lambda: use(run)))
        yield event(2, "b", "k")

    assert len(list(run.push_batch(events()))) == 1
    assert said == [f"RuntimeError: {BUSY}"]
    assert run.stats["events"] == 2


def push_many(run: spaseq.Run) -> None:
    for number in range(600):
        run.push(S, number / 100, triples(f"k{number} a 1"))


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_threads_may_take_turns(use: Callable[[spaseq.Run], object]) -> None:
    run = program().start()
    assert in_a_thread(lambda: run.push(S, 1, triples("k a 1"))) == ""
    assert in_a_thread(lambda: use(run)) == ""
    assert run.save()


def test_matches_that_are_made_as_they_are_taken_are_taken_by_one_thread_at_a_time() -> None:
    run = program(seq="SEQ(A : B)").start()
    said = []

    def events() -> Iterator[Event]:
        yield event(1, "a", "k")
        yield event(2, "b", "k")
        said.append(in_a_thread(lambda: next(matches)))
        yield event(3, "b", "k")

    matches = run.push_batch(events())
    assert next(matches)
    # The next step may be that of another thread, as long as it is the only one.
    assert in_a_thread(lambda: next(matches)) == ""
    assert said == [f"RuntimeError: {BUSY}"]


def test_what_a_run_calls_may_ask_it() -> None:
    run = program().start()
    seen = []

    def events() -> Iterator[Event]:
        for one in (event(1, "a", "k"), event(2, "b", "k")):
            seen.append(run.stats["events"])
            yield one

    assert len(list(run.push_batch(events()))) == 1
    assert seen == [0, 1]


def test_an_error_leaves_the_run_to_the_next_thread() -> None:
    run = program().start()
    run.push(S, 5, triples("k a 1"))
    run.push(S, 5, triples("k a 2"))
    with pytest.raises(spaseq.EventError):
        run.push(S, 1, triples("k a 1"))
    with pytest.raises(spaseq.EventError):
        run.push(S, "no time", triples("k a 1"))
    assert in_a_thread(lambda: run.push(S, 6, triples("k b 1"))) == ""


def test_a_run_that_failed_in_one_thread_says_so_in_another() -> None:
    run = program().start(max_groups=1)
    with pytest.raises(spaseq.SpaseqError, match="more than 1 group of"):
        push_many(run)
    assert "the run has failed" in in_a_thread(lambda: run.push(S, 9, triples("k b 1")))


def test_a_push_keeps_no_names_of_streams_from_before_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The names are looked up before a push takes the lock."""
    run = program(seq="SEQ(A)", gpms="DEFINE GPM A ON s { ?k :a ?x }").start()
    added = program(seq="SEQ(A)", gpms="DEFINE GPM A ON t { ?k :a ?x }", streams="FROM STREAM t :t")
    said = list[str]()

    def looked_up(*given: object) -> dict[str, str]:
        found = iris_of(*given)  # type: ignore[arg-type]
        monkeypatch.undo()
        said.append(in_a_thread(lambda: run.add("added", added, new_streams=True)))
        return found

    monkeypatch.setattr(runs, "iris_of", looked_up)
    run.push("s", 1, triples("k a 1"))
    assert said == [""]
    assert [match.query for match in run.push("t", 2, triples("k a 2"))] == ["added"]


def test_a_refused_push_leaves_the_event_in_progress_alone() -> None:
    said = list[str]()

    def ask(value: object) -> bool:
        said.append(in_a_thread(lambda: run.push(S, 9, triples("k a 3"))))
        return True

    with registry_restored():
        spaseq.function(EX + "ask")(ask)
        gpms = "DEFINE GPM A ON s { ?k :a ?x FILTER(:ask(?x)) }"
        run = program(seq="SEQ(A)", gpms=gpms).start()
        for number in range(4):
            assert len(run.push(S, number, triples(f"k a {number}"))) == 1
    assert said == [f"RuntimeError: {BUSY}"] * 4
    assert run.stats["events"] == 4


def test_no_event_is_lost_or_numbered_twice_by_threads_that_collide() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        run = program(seq="SEQ(A)", gpms="DEFINE GPM A ON s { ?k :a ?x }").start()
        found: list[spaseq.Match] = []
        said: list[str] = []

        def work() -> None:
            for number in range(1500):
                try:
                    found.extend(run.push(S, 1, triples(f"k a {number}")))
                except RuntimeError as error:
                    said.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert set(said) <= {BUSY}
    assert run.stats["events"] == len(found) == 6000 - len(said)
    assert len({match.events[0].ordinal for match in found}) == len(found)

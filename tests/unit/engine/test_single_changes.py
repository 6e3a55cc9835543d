"""Queries of a run changed one by one: what a change costs, and what many at once find.

`test_changes.py`, `test_templates.py` and `test_equal_changes.py` draw single changes among others;
here many queries are changed between two events. `SPASEQ_EXAMPLES` is the number of drawn cases,
`SPASEQ_SEED` the first.
"""

from __future__ import annotations

import gc
import os
import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from test_changes import POOL, Alone, Feed, S, encoded, events, query, shown, started, triple

import spaseq
from spaseq.engine.instants import QueryRun
from spaseq.engine.multi_run import MultiRun
from spaseq.errors import LimitExceeded
from spaseq.rdf.event import NUMBER, Event
from spaseq.rdf.time import from_micros

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "60")) // 6
SEED = int(os.environ.get("SPASEQ_SEED", "0"))
FEW, MANY = 10, 40
WAYS = ("push", "objects", "encoded")


def different(number: int) -> str:
    return query(
        "A ; B",
        f"DEFINE GPM A ON s {{ ?x :p{number} ?v }} DEFINE GPM B ON s {{ ?x :p{number} ?w }}",
        window="WITHIN 1000 SECONDS",
    )


def of_template(number: int) -> str:
    return query(
        "A ; B",
        f"DEFINE GPM A ON s {{ :x{number} :p ?v }} DEFINE GPM B ON s {{ :x{number} :p ?w }}",
        window="WITHIN 1000 SECONDS",
    )


def identical(number: int) -> str:
    return query(
        "A ; B",
        "DEFINE GPM A ON s { ?x :p ?v } DEFINE GPM B ON s { ?x :p ?w }",
        window="WITHIN 1000 SECONDS",
    )


def instructions(call: Callable[[], object]) -> int:
    """The bytecode instructions that a call executes: the work of Python, in whatever loop.

    No garbage is collected meanwhile: Hypothesis has a callback that runs at each collection.
    """
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count


@pytest.mark.parametrize("pushed", [0, 60])
@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("text", [different, of_template, identical])
def test_an_addition_costs_the_same_however_many_queries_there_are(
    text: Callable[[int], str], shares: bool, pushed: int
) -> None:
    """With and without a template in the run, and partial matches that hold later constants."""
    first = [of_template(n) for n in range(1000, 1016)] if shares else [identical(0)]
    run = started(*first, prune=False)
    assert bool(run.evaluation.listed.divisions) == shares
    for number in range(pushed):
        predicate = "p" if text is not different else f"p{number + MANY - pushed // 2}"
        run.push(S, number, triple(f"x{number + MANY - pushed // 2}", predicate, number))
    counts = []
    for number in range(MANY + 1):
        program = spaseq.compile(text(number))

        def add(number: int = number, program: spaseq.Program = program) -> None:
            run.add(f"n{number}", program)

        if number in (FEW, MANY):
            counts.append(instructions(add))
        else:
            add()
    few, many = counts
    assert few > 1000
    assert abs(many - few) <= few // 100
    assert len(run.program.queries) == len(first) + MANY + 1


@pytest.mark.parametrize("pushed", [0, 3])
@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("text", [different, of_template, identical])
def test_a_removal_or_replacement_costs_the_same_however_many_queries_there_are(
    text: Callable[[int], str], shares: bool, pushed: int
) -> None:
    """Also of a query before those of a template, whose numbers change then."""
    first = [identical(0).replace("1000", f"{n + 1}") for n in range(4)]
    first += [of_template(n) for n in range(1000, 1016)] if shares else []
    run = started(*first, prune=False)
    assert bool(run.evaluation.listed.divisions) == shares
    for number in range(2 * MANY):
        run.add(f"n{number}", spaseq.compile(text(number)))
    names = [f"n{number}" for number in range(2 * MANY)]
    for second in range(pushed):
        for number in (0, 1, 2, MANY):
            predicate = f"p{number}" if text is different else "p"
            run.push(S, second, triple(f"x{number}", predicate, number))

    def counted() -> list[int]:
        """The instructions of each kind of change of some query between the others."""
        counts = []
        for kind in ("remove", "drain", "fresh", "keep", "draining"):
            name = names.pop(len(names) // 2)
            program = spaseq.compile(text(int(name[1:])), names=[name])

            def change(kind: str = kind, name: str = name, program: Any = program) -> None:
                if kind == "remove":
                    run.remove(name)
                elif kind == "drain":
                    run.remove(name, drain=True)
                else:
                    run.replace(name, program, "drain" if kind == "draining" else kind)

            counts.append(instructions(change))
        return counts

    counted()  # what the first change lists for the others
    many = counted()
    while len(names) > FEW:
        run.remove(names.pop())
    few = counted()
    assert min(few) > 500
    assert all(abs(a - b) <= b // 50 for a, b in zip(many, few, strict=True)), (many, few)
    own = [instructions(lambda n=n: run.remove(f"q{n}")) for n in range(3)]  # type: ignore[misc]
    assert max(own) <= few[0] * 1.02
    run.push(S, 10, triple("x0", "p", 0))
    assert len(run.rows.matchers.patterns) <= 4 * MANY + 40


def test_numbers_of_patterns_return_while_queries_come_and_go() -> None:
    """Beside a template, the program as it was written has patterns of its own."""
    run = started(*[of_template(n) for n in range(16)], prune=False)
    before = len(run.rows.matchers.patterns)
    for number in range(300):
        run.add("a", spaseq.compile(different(number)))
        run.replace("a", spaseq.compile(different(number + 1)))
        run.remove("a")
    assert len(run.rows.matchers.patterns) <= before + 4
    assert len(run.evaluation.listed.public.patterns) <= 2 * 32 + 4
    assert len(run.evaluation.listed.divisions) == 1


def test_the_next_event_prepares_for_all_added_queries_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = started(identical(0), identical(0).replace("1000", "2000"))
    for number in range(8):
        run.push(S, number, triple(f"x{number}", "p", number))
    work = []
    for kind, name in ((QueryRun, "renew"), (MultiRun, "__init__")):
        whole = getattr(kind, name)

        def counted(self: object, *given: object, _whole: Any = whole) -> None:
            work.append(_whole.__qualname__)
            _whole(self, *given)

        monkeypatch.setattr(kind, name, counted)
    for number in range(8):
        run.add(f"n{number}", spaseq.compile(of_template(number)))
    assert work == []
    run.push(S, 9, triple("x7", "p", 9))
    # Both queries hold the constants of the others, which have got permanent numbers.
    assert sorted(work) == ["MultiRun.__init__", "QueryRun.renew", "QueryRun.renew"]
    assert [m.query for m in run.push(S, 10, triple("x7", "p", 10))].count("n7") == 1


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES))
def test_queries_added_at_once_find_what_each_finds_alone(seed: int) -> None:
    """Most of them have constants that partial matches hold already."""
    draw = random.Random(seed)
    stream = [event for event in events(draw, 30) if event.stream == S]
    pool = [text for text in POOL if ":r" not in text]
    pool += [
        query("A ; B", f"DEFINE GPM A ON s {{ {a} :p ?v }} DEFINE GPM B ON s {{ ?y :q {b} }}")
        for a in (":x0", ":x1", "?x", ":x2")
        for b in ("?w", "0", "1", "2")
    ]
    names = [f"q{n}" for n in range(draw.choice((1, 2, 18)))]
    texts = {name: draw.choice(pool) for name in names}
    if len(names) > 2:
        texts = {name: of_template(n % 3) for n, name in enumerate(names)}
    fed = Feed(spaseq.compile(list(texts.values()), names=names).start(), draw.choice(WAYS))
    alone = {name: Alone(text) for name, text in texts.items()}
    for index, event in enumerate(stream):
        for match in fed.give([event]):
            alone[match.query].found.append(shown(match))
        for each in alone.values():
            each.give(event)
        follows = stream[index + 1] if index + 1 < len(stream) else None
        if draw.random() < 0.7 or (follows is not None and follows.time == event.time):
            continue
        for number in range(draw.randrange(1, 9)):
            name, text = f"a{index}_{number}", draw.choice(pool)
            fed.run.add(name, spaseq.compile(text))
            alone[name], texts[name] = Alone(text), text
        if draw.random() < 0.4:
            fed.run.remove(name)
            del alone[name], texts[name]
        if draw.random() < 0.4:
            order = [each.plan.name for each in fed.run.program.queries]
            program = spaseq.compile([texts[each] for each in order], names=order)
            fed.run = program.resume(fed.run.save())
    for match in fed.run.finish():
        alone[match.query].found.append(shown(match))
    for name, each in alone.items():
        each.expected += map(shown, each.run.finish())
        assert sorted(each.found) == sorted(each.expected), name


def test_an_addition_that_fails_leaves_partial_matches_usable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The constant of the refused query is permanent from then on, and the run has one query."""
    run = started(query("A ; B", "DEFINE GPM A ON s { ?x :p ?v } DEFINE GPM B ON s { ?x :q ?w }"))
    run.push(S, 1, triple("x3", "p", 1))

    def refuse(self: QueryRun, clock: object, delayed: bool) -> None:
        raise LimitExceeded("refused")

    with monkeypatch.context() as patch:
        patch.setattr(QueryRun, "begin_at", refuse)
        with pytest.raises(LimitExceeded):
            run.add("n", spaseq.compile(of_template(3)))
    assert len(run.queries) == 1
    facts = tuple((each.subject, each.predicate, each.object) for each in triple("x3", "q", 2))
    event = Event(S, from_micros(2 * 10**6, NUMBER), 0, facts)
    for sequence in encoded(run, [event]):
        # A batch of the only stream goes straight to the core.
        assert len([match for batch in sequence.batches for match in run.push_batch(batch)]) == 1
    run.add("n", spaseq.compile(of_template(3)))
    run.push(S, 3, triple("x3", "p", 3))
    found = run.push(S, 4, triple("x3", "p", 4))
    assert [match.query for match in found] == ["n"]

"""Changes of some queries against changes that visit all queries.

Two runs have the same events and the same changes. One makes each change at the cost of the query.
The other lists before each change what it knows of all queries, or has new matchers and automata
for all of them. Matches and their order, the saved state, reports and errors are equal after each
step; so are the counters, unless matchers are new. `SPASEQ_EXAMPLES` is the number of drawn cases,
`SPASEQ_SEED` the first.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyoxigraph as ox
import pytest
from regrouping import regroup, separate
from test_changes import EX, POOL, A, B, Feed, Q, events, query, shown

import spaseq
from spaseq.engine.changes import Change
from spaseq.engine.envelope import unseal
from spaseq.engine.evaluation import Evaluation
from spaseq.engine.pattern_rows import EventRows
from spaseq.errors import SpaseqError
from spaseq.gpm.pattern import canonical
from spaseq.plan import templates
from spaseq.rdf.event import Timestamp

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "30"))
SEED = int(os.environ.get("SPASEQ_SEED", "0"))
KB = {EX + "kb": [ox.Triple(ox.NamedNode(f"{EX}x1"), ox.NamedNode(EX + "of"), ox.Literal(1))]}

CONSTANTS = [
    query("A ; B", f"DEFINE GPM A ON s {{ {a} :p ?v }} DEFINE GPM B ON s {{ ?y :q {b} }}")
    for a in (":x0", ":x1", "?x", ":x2")
    for b in ("?w", "0", "1", "2")
]
BOUND = [
    query("A ; B", A + f"DEFINE GPM B ON s {{ ?x :p ?w FILTER(?w > ?{name}) }}", "SELECT ?x ?v ?w")
    for name in ("least", "most")
]
KNOWING = query("A ; B", "DEFINE GPM A ON s { ?x :p ?v GRAPH :kb { ?x :of ?n } } " + B)
COUNTED = query("A ; B", A + B, window="WITHIN 4 EVENTS")
WRITER = (
    f"PREFIX : <{EX}> REGISTER STREAM :d AS CONSTRUCT {{ ?x :high ?v }} "
    f"WITHIN 8 SECONDS FROM STREAM s :s WHERE {{ SEQ(A) {A} }}"
)
READER = query("H ; A", A + "DEFINE GPM H ON d { ?x :high ?h }", streams="s d")
NAMED = f"PREFIX : <{EX}> REGISTER QUERY q1 AS SELECT ?v WITHIN 8 SECONDS FROM STREAM s :s " + (
    f"WHERE {{ SEQ(A ; Q) {A} {Q} }}"
)


KINDS = (
    *("add", "add", "remove", "remove", "drain", "fresh", "keep", "keep", "draining"),
    *("save", "bind", "join", "leave", "divide"),
)


@contextmanager
def visiting_all(patch: pytest.MonkeyPatch, rebuilds: bool) -> Iterator[None]:
    """Changes list what a run knows of all queries, or have new matchers for all."""
    begin = Change.__init__

    def begin_anew(self: Change, run: Evaluation) -> None:
        run.catch_up()
        run.listed.relist()
        run.listed._pattern_uses = run.listed._variable_uses = None
        begin(self, run)

    with patch.context() as patched:
        if rebuilds:
            patched.setattr(EventRows, "add", lambda *given: False)
        else:
            patched.setattr(Change, "__init__", begin_anew)
        yield


def outcome(call: Callable[[], object]) -> tuple[str, str]:
    """The kind of an error and its text; empty without an error."""
    try:
        call()
    except (SpaseqError, ValueError) as error:
        return type(error).__name__, str(error)
    return "", ""


def counters(stats: Any) -> Any:
    """The counters without the size of states, which depends on when they were last rebuilt."""
    if not isinstance(stats, dict):
        return stats
    return {name: counters(each) for name, each in stats.items() if name not in ("bytes", "nodes")}


def reports(run: spaseq.Run, rebuilds: bool) -> list[Any]:
    program = run.program
    counted = [] if rebuilds else [counters(run.stats), run.explain(), run.why_not()]
    return [
        *counted,
        [(q.plan.name, q.plan.shown) for q in program.queries],
        program.names,
        program.streams,
        repr(run),
        dict(run.draining),
        dict(run.evaluation.bound),
        [run.evaluation.queries.index(q.state) for q in run.evaluation.listed.queries],
    ]


def listing(run: spaseq.Run) -> spaseq.Run:
    """A run that has listed its patterns; a pattern that returns then has its former counters."""
    run.evaluation.listed.find(canonical(run.evaluation.listed.program.patterns[0]))
    return run


def saved(blob: bytes) -> dict[str, Any]:
    """A saved state, without the representation of partial matches and the order of terms."""
    data = unseal(blob)
    del data["tables"]
    for each in data["queries"]:
        automaton = each.pop("automaton")
        each["counters"] = [automaton[name] for name in ("skipped", "waited", "forbidden")]
        each["places"] = sorted(group[0] for group in automaton["groups"])
    return data


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES))
def test_changes_of_some_queries_equal_changes_that_visit_all(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(templates, "LEAST", 2)
    kind = draw.choice(("mixed", "counted", "registered", "bound", "alike", "templates"))
    pool = [*POOL, *CONSTANTS, KNOWING]
    if kind == "counted":
        pool = [COUNTED, COUNTED.replace("4", "6"), *POOL]
    elif kind == "registered":
        pool = [*draw.sample(pool, 4), WRITER, READER, READER.replace("H ;", "H :"), NAMED]
    elif kind == "bound":
        pool = [*BOUND, *draw.sample(pool, 4)]
    elif kind == "alike":
        pool = draw.sample(pool, 3)
    elif kind == "templates":
        pool = [*CONSTANTS, *draw.sample(pool, 2)]
    first = pool[: draw.choice((1, 2))] if kind == "counted" else []
    first = first or [draw.choice(pool) for _ in range(draw.choice((1, 2, 3, 6)))]
    if kind == "registered":
        first = [WRITER, *draw.sample(pool[:4], 2), READER]
        draw.shuffle(first)
    texts = {f"q{n}": text for n, text in enumerate(first)}
    shares = kind == "templates" or draw.random() < 0.5
    options: dict[str, Any] = {"share": shares, "kb": KB}
    bind = {name: 1 for name in ("least", "most") if any("?" + name in t for t in first)}
    program = spaseq.compile(first, names=list(texts))
    way, rebuilds = draw.choice(("push", "objects", "encoded")), draw.random() < 0.3
    fast = Feed(listing(program.start(bind=bind, **options)), way)
    slow = Feed(listing(program.start(bind=bind, **options)), way)
    stream = events(draw, 40)
    at, number = 0, len(texts)
    refused: set[tuple[str, Timestamp]] = set()

    def both(change: Callable[[spaseq.Run], object]) -> bool:
        one = outcome(lambda: change(fast.run))
        with visiting_all(monkeypatch, rebuilds):
            other = outcome(lambda: change(slow.run))
        assert one == other
        return one == ("", "")

    while at < len(stream):
        size = draw.choice((0, 1, 2, 5))
        some = stream[at : at + size]
        at += size
        readers = set(fast.run.clock.streams)
        # A stream that is read from now on has later ordinals at the open timestamp.
        refused |= {(event.stream, event.time) for event in some if event.stream not in readers}
        given = [event for event in some if (event.stream, event.time) not in refused]
        found = [shown(match) + match.query for match in fast.give(given)]
        with visiting_all(monkeypatch, rebuilds):
            assert found == [shown(match) + match.query for match in slow.give(given)]
        for _ in range(draw.choice((0, 1, 2, 6))):
            names = [q.plan.name for q in slow.run.program.queries]
            name = draw.choice(names) if draw.random() < 0.95 else "nothing"
            text = draw.choice(pool)
            what = draw.choice(KINDS)
            if what == "add":
                added = f"q{number}" if draw.random() < 0.8 else name
                number += draw.random() < 0.7
                if both(lambda run: run.add(added, spaseq.compile(text), new_streams=True)):  # noqa: B023
                    texts[added] = text
            elif what == "remove":
                both(lambda run: run.remove(name))  # noqa: B023
            elif what == "drain":
                both(lambda run: run.remove(name, drain=True))  # noqa: B023
            elif what in ("fresh", "keep", "draining"):
                state = "drain" if what == "draining" else what
                if what == "keep" and draw.random() < 0.8:
                    text = texts.get(name, text)
                    text = text.replace("SELECT *", "SELECT ?v") if "?v" in text else text
                again = spaseq.compile(text, names=[name])
                if both(lambda run: run.replace(name, again, state, new_streams=True)):  # noqa: B023
                    texts[name] = text
            elif what == "bind" and fast.run.evaluation.bound:
                value = draw.randrange(4)
                both(lambda run: run.bind(least=value))  # noqa: B023
            elif what == "save":
                blobs = [slow.run.save(), fast.run.save()]  # each continues as the other
                assert saved(blobs[0]) == saved(blobs[1])
                current = fast.run.program
                if set(current.streams) == set(fast.run.clock.streams):
                    share = shares and draw.random() < 0.7
                    for each, blob in zip((fast, slow), blobs, strict=True):
                        each.run = listing(current.resume(blob, kb=KB, share=share))
            elif what == "join" and shares:
                assert regroup(fast.run) == regroup(slow.run)
            elif what == "leave" and shares and name in names:
                assert separate(fast.run, name) == separate(slow.run, name)
            elif what == "divide" and draw.random() < 0.2:
                both(lambda run: run.divide())
            if draw.random() < 0.3:
                assert reports(fast.run, rebuilds) == reports(slow.run, rebuilds)
        if draw.random() < 0.4:
            assert reports(fast.run, rebuilds) == reports(slow.run, rebuilds)
        if draw.random() < 0.2:
            assert saved(fast.run.save()) == saved(slow.run.save())
    found = [shown(match) + match.query for match in fast.run.finish()]
    with visiting_all(monkeypatch, rebuilds):
        assert found == [shown(match) + match.query for match in slow.run.finish()]
    assert reports(fast.run, rebuilds) == reports(slow.run, rebuilds)

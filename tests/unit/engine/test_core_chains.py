"""Chains that are joined lazily, or as rows come, or now so and now so: the matches are the same.

Drawn chains whose steps are correlated by what no index serves, with rates that change. Each is run
event by event, in batches, in encoded batches and with its state put down and taken up after each
event, while the core turns whenever it likes. `SPASEQ_EXAMPLES` is the number of cases (default
50), `SPASEQ_SEED` the first.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest
from chain_cases import chain_case
from core_runs import batches, encoded, native
from oracle import Reference, comparable
from strategies import Case

import spaseq
from spaseq.errors import QueryError
from spaseq.nfa.native.lazy_join_tables import weighed
from spaseq.parser import parse
from spaseq.results import Match

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "50"))
SEED = int(os.environ.get("SPASEQ_SEED", "0"))
CHUNK = 50

Way = Callable[[spaseq.Program, Case, random.Random], list[Match]]
turned = 0
"""Changes that runs have made by themselves."""


def always(lazily: bool) -> Way:
    def way(program: spaseq.Program, case: Case, chance: random.Random) -> list[Match]:
        run = program.start()
        native(run).core.lazy_join.join(lazily)
        found = [match for event in case.merged for match in run.push_batch([event])]
        assert native(run).core.lazy_join.lazy == lazily
        return found + run.finish()

    way.__name__ = "lazily" if lazily else "eagerly"
    return way


def as_observed(program: spaseq.Program, case: Case, chance: random.Random) -> list[Match]:
    global turned
    run = program.start()
    native(run).core.lazy_join.min_rows = chance.choice((1, 3, 10))
    found: list[Match] = []
    for some in batches(case.merged, chance):
        found += run.push_batch(encoded(run, some))
    turned += native(run).core.lazy_join.switches
    return found + run.finish()


def pushed(program: spaseq.Program, case: Case, chance: random.Random) -> list[Match]:
    run = program.start()
    native(run).core.lazy_join.min_rows = 2
    found: list[Match] = []
    for event in case.merged:
        found += run.push(event.stream, event.time, event.facts)
        if chance.random() < 0.1:
            native(run).core.lazy_join.join(chance.choice((False, True, None)))
    return found + run.finish()


def turning(program: spaseq.Program, case: Case, chance: random.Random) -> list[Match]:
    """At any time, also between two events of one instant."""
    run = program.start()
    found: list[Match] = []
    for some in batches(case.merged, chance):
        native(run).core.lazy_join.join(chance.choice((False, True, None)))
        found += run.push_batch(some)
    return found + run.finish()


def saved_after_each(program: spaseq.Program, case: Case, chance: random.Random) -> list[Match]:
    run = program.start()
    found: list[Match] = []
    for event in case.merged:
        native(run).core.lazy_join.min_rows = chance.choice((1, 1000))
        if chance.random() < 0.5:
            native(run).core.lazy_join.join(chance.choice((False, True)))
        found += run.push_batch([event])
        lazy = native(run).core.lazy_join.lazy
        run = program.resume(run.save())
        assert native(run).core.lazy_join.lazy == lazy
    return found + run.finish()


WAYS: list[Way] = [always(True), always(False), as_observed, pushed, turning, saved_after_each]


def drawn(seed: int) -> tuple[Case, spaseq.Program] | None:
    """A case with a query that the core may run lazily."""
    case = chain_case(seed)
    try:
        program = spaseq.compile(case.query, names=["q"])
    except QueryError:
        return None
    query = program.queries[0]
    return (case, program) if weighed(query.plan, query.automaton) else None


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, CHUNK))
def test_a_chain_means_the_same_lazily_and_as_its_rows_come(first: int) -> None:
    seen = matches = 0
    before = turned
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES)):
        one = drawn(seed)
        if one is None:
            continue
        seen += 1
        case, program = one
        reference = Reference(parse(case.query), case.streams, case.kb)
        matches += bool(reference.output)
        for way in WAYS:
            wrong = reference.objection(comparable(way(program, case, random.Random(seed))))
            if wrong:
                pytest.fail(f"seed {seed}, {way.__name__}: {wrong}\n{case.entry()}")
    total = min(first + CHUNK, SEED + EXAMPLES) - first
    assert seen > 0.5 * total
    assert matches > 0.2 * seen, f"{matches} of {seen}"
    assert turned > before

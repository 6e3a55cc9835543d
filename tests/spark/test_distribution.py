"""How the work is divided changes no result: held against the engine on whole streams.

The division is acted out in plain Python, without Spark, so that thousands of cases are
cheap: each part is one run over the events it would get, with their ordinals, and keeps
the matches it owns.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Sequence

import pytest
from cases import Case, load
from divided import answers, divided
from strategies import plain_case, random_case
from test_properties import knowledge
from test_suite import _knowledge, _program

import spaseq
from spaseq.engine.program import Program
from spaseq.kb.snapshot import Kb, open_kb
from spaseq.rdf.event import Event
from spaseq.spark.distribution import ByKey, Single, distribution

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "300"))
SUITE = [case for case in load() if case.error is None]


def objection(program: Program, kb: Kb, events: Sequence[Event], seed: int) -> str:
    """How the results of a division differ from those of the whole; "" if they do not."""
    whole = answers(program, kb, events)
    chance = random.Random(seed)
    for parts in (1, 2, 7):
        found = divided(program, kb, events, parts, chance)
        missing, more = Counter(whole) - Counter(found), Counter(found) - Counter(whole)
        if missing or more:
            how = distribution(program)
            return f"{how} in {parts}\nmissing: {list(missing)}\ntoo much: {list(more)}"
    return ""


@pytest.mark.parametrize("first", range(0, 4 * EXAMPLES, 100))
def test_drawn_queries(first: int) -> None:
    for seed in range(first, first + 100):
        for case in (random_case(seed), random_case(seed, corners=True), plain_case(seed)):
            program = spaseq.compile(case.query, names=["q"])
            found = objection(program, open_kb(knowledge(case)), case.merged, seed)
            assert not found, f"seed {seed}: {found}\n{case}"


@pytest.mark.parametrize("first", range(0, 4 * EXAMPLES, 200))
def test_queries_that_share_a_variable_without_saying_so(first: int) -> None:
    divided_by_key = 0
    for seed in range(first, first + 200):
        for case in (random_case(seed), plain_case(seed)):
            if "PARTITION" not in case.query:
                continue
            query = re.sub(r"^(PARTITION|EMIT|AFTER) .*\n", "", case.query, flags=re.M)
            program = spaseq.compile(query, names=["q"])
            divided_by_key += isinstance(distribution(program), ByKey)
            found = objection(program, open_kb(knowledge(case)), case.merged, seed)
            assert not found, f"seed {seed}: {found}\n{query}\n{case}"
    assert divided_by_key > 10


@pytest.mark.parametrize("case", SUITE, ids=str)
def test_suite(case: Case) -> None:
    events = [e for stream in case.streams.values() for e in stream]
    events.sort(key=lambda e: (e.instant, e.stream))
    program = _program(case)
    if len(program.queries) > 1:
        assert isinstance(distribution(program), Single)
        return
    events = [e for e in events if e.stream in program.streams]
    found = objection(program, open_kb(_knowledge(case)), events, 1)
    assert not found, found

"""The division of the work changes no result: compared with the engine on whole streams.

What the workers run is run here without Spark, so that thousands of cases are cheap: the
events, in any order and in any batches, to the tasks that need them, and the matches each
task owns.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Sequence

import pytest
from cases import Case, load
from jobs import answered, divisions, reference
from strategies import plain_case, random_case
from test_properties import knowledge
from test_suite import _knowledge, _program

import spaseq
from spaseq.kb.snapshot import Kb, open_kb
from spaseq.plan.key_division import ByKey
from spaseq.program import Program
from spaseq.rdf.event import Event
from spaseq.spark.distribution import Single, distribution

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "50"))
SUITE = [case for case in load() if case.error is None]
SOME = SUITE if "SPASEQ_EXAMPLES" in os.environ else SUITE[::5]
"""A fifth of the suite, or all of it in a long run."""


def objection(
    program: Program, kb: Kb, events: Sequence[Event], seed: int, entail: str | None = None
) -> str:
    """How the results of a division differ from those of the whole; "" if they do not."""
    whole = reference(program, kb, events, entail)
    chance, how = random.Random(seed), distribution(program)
    for parts in (1, 7) if seed % 3 == 0 else (2, 7):
        for division in divisions(how, program, events, parts, chance):
            found = answered(program, kb, events, division, chance, entail)
            missing, more = whole - found, found - whole
            if missing or more:
                return f"{how} {division}\nmissing: {list(missing)}\ntoo much: {list(more)}"
    return ""


@pytest.mark.parametrize("first", range(0, EXAMPLES, 50))
def test_drawn_queries(first: int) -> None:
    for seed in range(first, first + 50):
        for case in (random_case(seed), random_case(seed, corners=True), plain_case(seed)):
            program = spaseq.compile(case.query, names=["q"])
            found = objection(program, open_kb(knowledge(case)), case.merged, seed)
            assert not found, f"seed {seed}: {found}\n{case}"


@pytest.mark.parametrize("first", range(0, EXAMPLES, 150))
def test_queries_that_share_a_variable_without_saying_so(first: int) -> None:
    divided_by_key = 0
    for seed in range(first, first + 150):
        for case in (random_case(seed), plain_case(seed)):
            if "PARTITION" not in case.query:
                continue
            query = re.sub(r"^(PARTITION|EMIT|AFTER) .*\n", "", case.query, flags=re.M)
            program = spaseq.compile(query, names=["q"])
            divided_by_key += isinstance(distribution(program), ByKey)
            found = objection(program, open_kb(knowledge(case)), case.merged, seed)
            assert not found, f"seed {seed}: {found}\n{query}\n{case}"
    assert divided_by_key > 10


@pytest.mark.parametrize("case", SOME, ids=str)
def test_suite(case: Case) -> None:
    events = [e for stream in case.streams.values() for e in stream]
    events.sort(key=lambda e: (e.instant, e.stream))
    program = _program(case)
    if len(program.queries) > 1:
        assert isinstance(distribution(program), Single)
        return
    events = [e for e in events if e.stream in program.streams]
    found = objection(program, open_kb(_knowledge(case)), events, 1, case.entail)
    assert not found, found

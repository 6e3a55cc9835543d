"""Optimisation rules: each can be switched off, is listed by `explain`, and changes no result."""

from __future__ import annotations

import random

import pytest
from strategies import random_case
from test_core_campaign import WAYS, failed, objections, on_the_core, plain_case

import spaseq
from spaseq.errors import SpaseqError
from spaseq.gpm.native.bytecode import compile_code
from spaseq.gpm.native.numeric_filter import numeric_code
from spaseq.parser import parse_expression
from spaseq.rules import RULES, VARIABLE, enabled

CASES = 15
HEAD = "PREFIX : <http://example.org/> SELECT * WITHIN 1 MINUTE FROM STREAM S :S WHERE { "
CHAIN = HEAD + (
    "SEQ(A : B : C) DEFINE GPM A ON S { ?a :p ?x } DEFINE GPM B ON S { ?b :q ?y } "
    "DEFINE GPM C ON S { ?a :r ?z FILTER(?z > ?y) } }"
)
RANGE = HEAD + (
    "SEQ(A : B) DEFINE GPM A ON S { [] :p ?x } DEFINE GPM B ON S { [] :q ?y FILTER(?y > ?x) } }"
)
GUARD = HEAD + (
    "SEQ(A : !N : B) DEFINE GPM A ON S { ?k :p ?x } DEFINE GPM N ON S { ?k :n ?n } "
    "DEFINE GPM B ON S { ?k :q ?y } }"
)
CONJUNCTION = HEAD + (
    "SEQ(A & B & C) DEFINE GPM A ON S { [] :p ?x } DEFINE GPM B ON S { [] :q ?y FILTER(?y > ?x) } "
    "DEFINE GPM C ON S { [] :r ?z } }"
)


@pytest.mark.parametrize("rule", RULES)
def test_results_are_equal_without_a_rule(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, rule)
    chance = random.Random(rule)
    seen = 0
    for _ in range(CASES):
        seed = chance.randrange(10**6)
        drawn = on_the_core(seed, random_case if seed % 2 else plain_case)
        if drawn is not None:
            seen += 1
            found = objections(*drawn, seed, WAYS[:3])
            if found:
                pytest.fail(failed(drawn[0], seed, found))
    assert seen > CASES / 3


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        (CHAIN, "lazy_join"),
        (CHAIN, "equality_index"),
        (CHAIN, "straight_edges"),
        (RANGE, "range_index"),
        (RANGE, "range_unions"),
        (RANGE, "decided_ranges"),
        (GUARD, "first_chance_negation"),
        (CONJUNCTION, "early_filters"),
    ],
)
def test_explain_lists_a_rule_unless_it_is_disabled(
    query: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = spaseq.compile(query)
    assert program.to_dict()["queries"][0]["rules"][rule] >= 1
    assert f"\n    {rule}: " in program.explain()
    monkeypatch.setenv(VARIABLE, f" {rule} ,")
    without = spaseq.compile(query)
    assert rule not in without.to_dict()["queries"][0]["rules"]
    assert f"disabled by {VARIABLE}: {rule}" in without.explain()


def test_a_rule_of_a_whole_run_can_be_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    code = compile_code(parse_expression("?b > ?a * 1.05"), {"a": 0, "b": 1}).code
    program = spaseq.compile(CHAIN)
    for off in (False, True):
        if off:
            monkeypatch.setenv(VARIABLE, "pruning,single_triples,numeric_filters")
        matchers = program.start().rows.matchers
        assert (matchers.used is None) == off
        assert matchers.native(0).single_step is not off
        assert (numeric_code(code) is None) == off


def test_unknown_rules_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "lazy_join,lazier_join")
    with pytest.raises(SpaseqError, match="SPASEQ_DISABLE: there is no rule lazier_join; the rul"):
        spaseq.compile(CHAIN)
    with pytest.raises(KeyError):
        enabled("lazier_join")

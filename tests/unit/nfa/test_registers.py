"""What iterations and bindings do to a partial match's registers (section 4, Iteration)."""

from __future__ import annotations

import pyoxigraph as ox
from model.registers import Registers
from nfa_queries import planned, register_file

from spaseq.engine.aggregates import RunningAggregates
from spaseq.nfa.registers import Environment, RegisterFile
from spaseq.plan.logical import QueryPlan

XSD = "http://www.w3.org/2001/XMLSchema#"


def number(value: int) -> ox.Literal:
    return ox.Literal(str(value), datatype=ox.NamedNode(XSD + "integer"))


class Sheet:
    """An environment with names for cells."""

    def __init__(self, plan: QueryPlan):
        self.file: RegisterFile = register_file(plan)
        self.env: Environment = self.file.blank()

    def bind(self, name: str, value: int) -> bool:
        return self.file.bind(self.env, self.file.number[name], number(value))

    def iterate(self, *values: int, name: str = "y", unit: int = 0) -> None:
        for count, value in enumerate(values):
            self.file.enter(self.env, unit, again=count > 0)
            self.bind(name, value)

    def read(self, name: str) -> int | str | None:
        """A register as expressions see it."""
        views = self.file.needed_views(frozenset((name,)))
        self.file.refresh(self.env, views)
        value = self.env[self.file.slots()[name]]
        if isinstance(value, ox.Literal):
            return int(value.value) if value.datatype.value == XSD + "integer" else value.value
        return value


B = "{ ?s :b ?y }"


def sheet(seq: str, head: str = "SELECT *", **gpms: str) -> Sheet:
    return Sheet(planned(seq, gpms, head))


def test_a_variable_joins_with_the_value_it_has() -> None:
    one = sheet("A ; C", A="{ [] :a ?x }", C="{ [] :c ?x }")
    assert one.bind("x", 1)
    assert one.bind("x", 1)
    assert not one.bind("x", 2)
    assert one.read("x") == 1


def test_terms_join_as_terms() -> None:
    one = sheet("A")
    assert one.bind("a", 1)
    cell = one.file.number["a"]
    padded = ox.Literal("01", datatype=ox.NamedNode(XSD + "integer"))
    assert not one.file.bind(one.env, cell, padded)


def test_each_iteration_binds_a_group_variable_anew() -> None:
    one = sheet("A : B+", B="{ [] :b ?y FILTER(?y > PREV(?y, 0)) }")
    one.iterate(3)
    assert (one.read("y"), one.read("PREV(?y)")) == (3, None)
    one.iterate(4, 5)
    assert (one.read("y"), one.read("PREV(?y)")) == (5, 4)


def test_a_new_run_of_the_unit_has_no_previous_iteration() -> None:
    one = sheet("(A : B+)+", B="{ [] :b ?y FILTER(?y > PREV(?y, 0)) }")
    inner = next(r.unit for r in one.file.registers if r.name == "y")
    assert inner is not None
    one.iterate(1, 2, unit=inner)
    assert one.read("PREV(?y)") == 1
    one.file.enter(one.env, inner, again=False)
    assert (one.read("y"), one.read("PREV(?y)")) == (None, None)


def test_first_and_last_range_over_the_iterations() -> None:
    head = "SELECT (FIRST(?y) AS ?f) (LAST(?y) AS ?l) (SUM(?y) AS ?t) (COUNT(?y) AS ?n)"
    one = sheet("A : B+", head, B=B)
    one.iterate(5, 2, 4)
    read = {name.partition("(")[0]: one.read(name) for name in one.file.number if "(" in name}
    assert read == {"FIRST": 5, "LAST": 4, "SUM": 11, "COUNT": 3}


def test_aggregates_over_no_iteration() -> None:
    head = (
        "SELECT (SUM(?y) AS ?t) (AVG(?y) AS ?v) (COUNT(?y) AS ?n) (MIN(?y) AS ?m) "
        '(GROUP_CONCAT(?y; SEPARATOR=",") AS ?g) (FIRST(?y) AS ?f)'
    )
    one = sheet("A : B*", head, B=B)
    read = {name.partition("(")[0]: one.read(name) for name in one.file.number if "(" in name}
    assert read == {
        "SUM": 0, "AVG": 0, "COUNT": 0, "MIN": None, "GROUP_CONCAT": "", "FIRST": None,
    }  # fmt: skip


def test_an_iteration_that_binds_nothing_is_skipped_by_aggregates_but_not_by_first() -> None:
    head = "SELECT (FIRST(?y) AS ?f) (COUNT(?y) AS ?n)"
    one = sheet("A : B+", head, B="{ ?s :b [] OPTIONAL { ?s :c ?y } }")
    one.file.enter(one.env, 0, again=False)
    one.file.enter(one.env, 0, again=True)
    one.bind("y", 7)
    first, count = (n for n in one.file.number if n.startswith(("FIRST", "COUNT")))
    assert (one.read(first), one.read(count)) == (None, 1)


def test_counts_of_witnesses() -> None:
    one = sheet("A : B+", "SELECT (COUNT(B) AS ?n)", B=B)
    cell = one.file.number["COUNT(B) in the match"]
    assert one.read("COUNT(B) in the match") == 0
    one.env[cell] += 2
    assert one.read("COUNT(B) in the match") == 2


def test_iterations_are_told_apart_up_to_what_the_bounds_ask() -> None:
    one = sheet("A : B{2,3}", B=B)
    name = "iteration of unit 0"
    seen = []
    for again in (False, True, True, True):
        one.file.enter(one.env, 0, again)
        seen.append(one.env[one.file.number[name]])
    assert seen == [1, 2, 3, 3]


def test_an_inner_aggregate_starts_again_with_each_outer_iteration() -> None:
    body = "{ [] :b ?y FILTER(SUM(?y) < 10) }"
    one = sheet("(A : B+)+", B=body)
    name = next(n for n in one.file.number if n.startswith("SUM"))
    outer = next(r.scope for r in one.file.registers if r.name == name)
    inner = next(r.unit for r in one.file.registers if r.name == "y")
    assert outer is not None
    assert inner is not None
    one.file.enter(one.env, outer, again=False)
    one.iterate(3, 4, unit=inner)
    assert one.read(name) == 7
    one.file.enter(one.env, outer, again=True)
    one.iterate(5, unit=inner)
    assert one.read(name) == 5


def test_the_partition_is_the_key() -> None:
    plan = planned("A ; A", {"A": "{ ?j :a ?k }"}, clauses="WITHIN 1 HOUR PARTITION BY ?k ?j")
    one = Sheet(plan)
    one.bind("j", 1)
    one.bind("k", 2)
    assert Registers(plan, RunningAggregates()).key(one.env) == (number(2), number(1))


def test_environments_are_copied_not_shared() -> None:
    file = register_file(planned("A : B+", {"B": B}, "SELECT (SUM(?y) AS ?t)"))
    one = file.blank()
    file.bind(one, file.number["y"], number(1))
    assert file.blank() != one
    assert file.blank()[file.number["y"]] is None

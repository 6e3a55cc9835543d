"""Which registers places keep, and which of them index groups."""

from __future__ import annotations

import pytest
from nfa_queries import live, names, planned

from spaseq.nfa.compile import compile_automaton
from spaseq.nfa.liveness import Flow
from spaseq.plan.logical import QueryPlan

PATTERNS = {
    "A": "{ ?s :a ?x }",
    "B": "{ ?s :b ?y }",
    "C": "{ ?s :c ?z }",
    "D": "{ ?t :d ?x }",
    "N": "{ [] :n ?x }",
}


HOUR = "WITHIN 1 HOUR"


def query(seq: str, head: str = "SELECT *", clauses: str = HOUR, **gpms: str) -> QueryPlan:
    used = {name: body for name, body in {**PATTERNS, **gpms}.items() if name in seq}
    return planned(seq, used, head, clauses)


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        # Nothing is kept where no step depends on another, whatever is selected.
        (query("A : D", A="{ [] :a ?p }", D="{ [] :d ?q }"), {"^ A": [], ": D": []}),
        # A join variable is kept until the last step that joins on it.
        (query("A : B : D"), {"^ A": [], ": B": ["s", "x"], ": D": ["x"]}),
        # What only the result needs is not kept: the steps remember it.
        (query("A : B", "SELECT ?x"), {"^ A": [], ": B": ["s"]}),
        # A filter keeps what it reads.
        (
            query("A : B", B="{ ?s :b ?y FILTER(?y > ?x) }"),
            {"^ A": [], ": B": ["s", "x"]},
        ),
        # PREV keeps the current iteration's value for the next.
        (
            query("A : B+", B="{ [] :b ?y FILTER(?y > PREV(?y)) }", A="{ [] :a [] }"),
            {"^ A": [], ": B": [], ": B again": ["y"]},
        ),
        # An iterated step without a look back keeps nothing.
        (
            query("A : B+", B="{ [] :b ?y }", A="{ [] :a [] }"),
            {"^ A": [], ": B": [], ": B again": []},
        ),
        # Bounds keep the number of the iteration.
        (
            query("B{2,3}", B="{ [] :b ?y }"),
            {"^ B": [], "; B again": ["iteration of unit 0"]},
        ),
        # An aggregate in a filter is a running one; in the result only, it is not kept.
        (
            query("B+", B="{ [] :b ?y FILTER(SUM(?y) < 9) }"),
            {"^ B": [], "; B again": ["SUM(?y) in the match"]},
        ),
        (query("B+", "SELECT (SUM(?y) AS ?t)", B="{ [] :b ?y }"), {"^ B": [], "; B again": []}),
        # The partition is kept everywhere.
        (
            query("A : C", A="{ ?s :a [] }", C="{ ?s :c [] }", clauses=f"{HOUR} PARTITION BY ?s"),
            {"^ A": [], ": C": ["s"]},
        ),
        # What a negation reads is kept up to where it is decided.
        (
            query("A : !N : C", A="{ [] :a ?x }", C="{ [] :c ?z }"),
            {"^ A": [], ": C": ["x"], ": N": []},
        ),
    ],
    ids=lambda value: value.source if isinstance(value, QueryPlan) else "",
)  # fmt: skip
def test_registers(plan: QueryPlan, expected: dict[str, list[str]]) -> None:
    assert live(plan) == expected


def keys(plan: QueryPlan) -> dict[str, list[str]]:
    """For each place and GPM that is awaited there, the variables of the index."""
    automaton = compile_automaton(plan)
    return {
        f"{place.operator} {automaton.atom_text(edge.atom, names(plan))}": [n for _, n in found]
        for place in automaton.places
        for edge, found in zip(place.edges, place.keys, strict=True)
        if not place.start
    }


def test_shared_variables_are_an_index() -> None:
    assert keys(query("A : B : D")) == {": B": ["s"], ": D": ["x"]}


def test_what_may_be_unbound_is_no_index() -> None:
    optional = "{ ?s :a [] OPTIONAL { ?s :o ?x } }"
    assert keys(query("A : D", A=optional)) == {": D": []}
    assert keys(query("A : (B | C)", B="{ ?x :b [] }", C="{ ?s :c [] }")) == {
        ": B": ["x"],
        ": C": ["s"],
    }
    either = query("(A | B) : C", A="{ [] :a ?z }", B="{ [] :b ?y }", C="{ ?y :c ?z }")
    assert keys(either) == {": C": []}


def test_a_group_variable_is_no_index_of_its_own_next_iteration() -> None:
    assert keys(query("A : B+ : C", B="{ ?s :b ?y }", C="{ ?s :c [] }")) == {
        ": B": ["s"],
        ": C": ["s"],
    }
    assert keys(query("B+", B="{ [] :b ?y }")) == {"; B": []}


def test_conjunctions_use_no_index() -> None:
    assert keys(query("A : (B & C)"))[": B & C"] == []


def test_a_disjunction_in_a_conjunction_binds_only_one_of_its_operands() -> None:
    """So neither ?y of B nor ?t of D is an index; ?x of A is."""
    gpms = {
        "A": "{ ?s :a ?x }",
        "B": "{ [] :b ?y }",
        "C": "{ ?x :c ?y . ?t :c [] }",
        "D": "{ ?t :d [] }",
    }
    for group in ("&", "AND"):
        plan = planned(f"(A {group} (B | D)) : C", gpms, "SELECT *", HOUR)
        assert keys(plan)[": C"] == ["x"]


def test_registers_that_nothing_has_met_are_not_kept() -> None:
    """?x comes from D only, and D has not been met where A waits for B."""
    plan = query("A : B : D : N", A="{ [] :a [] }", B="{ [] :b [] }", N="{ [] :n ?x }")
    assert live(plan) == {"^ A": [], ": B": [], ": D": [], ": N": ["x"]}


@pytest.mark.parametrize(
    ("operator", "suffix"), [(" ; ", ""), (" : ", "+"), (" , ", "{2,3}")], ids=["", "+", "{2,3}"]
)
def test_the_fixpoints_visit_each_place_a_few_times(operator: str, suffix: str) -> None:
    count = 200
    steps = {f"X{n}": f"{{ ?s :p ?v{n} }}" for n in range(count)}
    plan = planned(operator.join(name + suffix for name in steps), steps, "SELECT *", HOUR)
    automaton = compile_automaton(plan)
    flow = Flow(automaton, plan)
    flow.solve()
    flow.changed_on_some_way()
    flow.bound_on_every_way()
    assert flow.visits <= 12 * len(automaton.places)

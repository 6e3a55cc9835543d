"""Programs: shared work, names, parameters, pickling."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pyoxigraph as ox
import pytest
import rdflib
from engine_runs import EX, GPMS, R, S, program, push, text, triples

import spaseq
from spaseq.errors import KbError, QuerySemanticError

LIMITED = "DEFINE GPM A ON s { ?k :a ?x FILTER(?x > ?limit) }"


def test_a_program_is_pickled_with_all_it_needs() -> None:
    again = pickle.loads(pickle.dumps(program()))
    assert again == program()
    run = again.start()
    push(run, 1, "k a 1")
    assert push(run, 2, "k b 1") == ["A@1 B@2"]


def test_runs_of_one_program_share_nothing_that_changes() -> None:
    shared = program()

    def count(_: int) -> int:
        run = shared.start()
        return sum(
            len(push(run, time, f"k {'ab'[time % 2]} 1")) for time in range(60)
        )  # fmt: skip

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(count, range(8))) == {30}


def test_queries_share_equal_graph_patterns() -> None:
    both = spaseq.compile([text(), text(seq="SEQ(B : A)", clauses="WITHIN 1 HOUR")])
    assert len(both.tasks) == 2
    other = spaseq.compile([text(), text(gpms=GPMS.replace(":b ?y", ":z ?y"))])
    assert len(other.tasks) == 3


def test_names_of_variables_do_not_tell_graph_patterns_apart() -> None:
    same = (
        'DEFINE GPM A ON s { ?k :p ?x FILTER(?x > 2 && ?k != <a:/?x> && "?x" != "") }'
        'DEFINE GPM B ON s { ?k :p ?y FILTER(?y > 2 && ?k != <a:/?x> && "?x" != "") }'
    )
    others = (
        "DEFINE GPM C ON s { ?z :p ?k FILTER(?k > 2) }"  # whose columns are the other way round
        "DEFINE GPM D ON s AT ?t { ?k :p ?v FILTER(?v > 2) }"
        "DEFINE GPM E ON s { ?k :p ?w FILTER(?w < 2) }"
    )
    program = spaseq.compile(text("SEQ(A ; B : C : D : E)", same + others))
    assert program.queries[0].tasks == (0, 0, 1, 2, 3)
    shown = program.explain()
    assert "match ?k :p ?y" in shown
    assert 'local FILTER(?y > 2 && ?k != <a:/?x> && "?x" != "")' in shown
    run = spaseq.compile(text("SEQ(A ; B)", same)).start()
    assert push(run, 1, "k p 3") == []
    assert push(run, 2, "k p 4") == ["A@1 B@2"]
    assert run.stats["evaluated_gpms"] == 2


def test_a_local_filter_makes_a_task_of_its_own() -> None:
    filtered = text(gpms=GPMS.replace("?x }", "?x FILTER(?x > 3) }"))
    assert len(spaseq.compile([text(), filtered]).tasks) == 3


def test_queries_are_named_by_their_caller_or_by_register() -> None:
    assert [q.plan.name for q in program().queries] == ["query"]
    two = spaseq.compile([text(), text(head="REGISTER QUERY dips AS SELECT *")])
    assert [q.plan.name for q in two.queries] == ["query1", "dips"]
    named = spaseq.compile([text(), text()], names=["x", "y"])
    run = named.start()
    push(run, 1, "k a 1")
    assert [m.query for m in run.push(S, 2, triples("k b 1"))] == ["x", "y"]


def test_streams_are_those_that_come_from_outside() -> None:
    assert program().streams == (S,)
    assert dict(program().stream_names) == {"s": S}


def test_errors_of_several_queries_name_theirs() -> None:
    with pytest.raises(QuerySemanticError) as error:
        spaseq.compile([text(), text(seq="SEQ(A ; B ; C)")], names=["good.rq", "bad.rq"])
    assert str(error.value).startswith("bad.rq:")


def test_a_kb_graph_that_a_query_names_must_be_given() -> None:
    reading = program(streams=f"FROM STREAM s :s FROM <{EX}kb>")
    assert reading.kb_graphs == (EX + "kb",)
    with pytest.raises(KbError, match=f"<{EX}kb>"):
        reading.start()
    reading.start(kb={EX + "kb": []})


# ------------------------------------------------------------------ parameters


@pytest.mark.parametrize(
    "value",
    [20, 20.0, Decimal("20"), ox.Literal(20), rdflib.Literal(20)],
    ids=lambda value: f"{type(value).__module__}.{type(value).__name__}",
)
def test_a_variable_is_fixed_to_a_number(value: object) -> None:
    query = text(seq="SEQ(A)", gpms=LIMITED)
    for run in (
        spaseq.compile(query, bind={"limit": value}).start(),
        spaseq.compile(query).start(bind={"?limit": value}),
        spaseq.compile(query).bind({"$limit": value}).start(),
    ):
        assert push(run, 1, "k a 20") == []
        assert push(run, 2, "k a 21") == ["A@2"]


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (ox.NamedNode(EX + "k"), True),
        (rdflib.URIRef(EX + "k"), True),
        (ox.NamedNode(EX + "j"), False),
        ("k", False),
        (True, False),
    ],
)
def test_a_variable_of_a_pattern_is_fixed_to_a_term(value: object, fits: bool) -> None:
    run = program(seq="SEQ(A)", gpms="DEFINE GPM A ON s { ?k :a ?x }").start(bind={"k": value})
    assert push(run, 1, "k a 1") == ["A@1"] * fits


def test_a_fixed_variable_stays_in_the_result() -> None:
    query = text(seq="SEQ(A)", gpms="DEFINE GPM A ON s { ?k :a ?x }", head="SELECT ?k ?x")
    run = spaseq.compile(query).start(bind={"k": ox.NamedNode(EX + "k")})
    (match,) = run.push(S, 1, triples("k a 1"))
    assert match.bindings["k"] == ox.NamedNode(EX + "k")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"\?treshold; their variables are \?k, \?x, \?y"):
        program().start(bind={"treshold": 1})


@pytest.mark.parametrize(
    ("name", "gpms", "head", "clauses"),
    [
        ("z", "DEFINE GPM A ON s { ?k :a ?x BIND(?x + 1 AS ?z) }", "SELECT *", ""),
        ("t", "DEFINE GPM A ON s AT ?t { ?k :a ?x }", "SELECT *", ""),
        ("k", "DEFINE GPM A ON s { ?k :a ?x }", "SELECT *", "PARTITION BY ?k"),
        ("z", "DEFINE GPM A ON s { ?k :a ?x }", "SELECT (?x + 1 AS ?z)", ""),
    ],
)
def test_what_a_query_assigns_cannot_be_fixed(
    name: str, gpms: str, head: str, clauses: str
) -> None:
    one = program(seq="SEQ(A)", gpms=gpms, head=head, clauses=f"WITHIN 1 HOUR {clauses}")
    with pytest.raises(ValueError, match="the query itself assigns"):
        one.bind({name: 1})


@pytest.mark.parametrize("value", [None, ox.BlankNode("b"), [1]])
def test_what_is_no_constant_cannot_be_bound(value: object) -> None:
    with pytest.raises(ValueError, match="is not a term that a variable can be bound to"):
        program().bind({"x": value})


def test_binding_nothing_changes_nothing() -> None:
    one = program()
    assert one.bind({}) is one


def test_a_program_without_its_streams_says_which_it_reads() -> None:
    both = program(
        streams="FROM STREAM s :s FROM STREAM r :r", gpms=GPMS.replace("B ON s", "B ON s, r")
    )
    assert both.streams == (S, R)

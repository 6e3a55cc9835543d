"""Calls of functions: all that is wrong in a query is found, wherever it is, and nothing else.

The last test draws queries: one that the checks pass compiles and starts, and one that they
refuse has a finding at every fault that was put into it.
"""

from __future__ import annotations

import re
from random import Random

import pytest
from plan_queries import PREFIX, findings, only, query_text

import spaseq
from spaseq.errors import QueryError, QuerySyntaxError
from spaseq.plan.check_functions import nearest
from spaseq.sparql.builtins import AGGREGATES, BUILTINS, NAMED_BY_IRI, shown

SF_INSIDE = "<http://www.opengis.net/def/function/geosparql/sfInside>"

POSITIONS = {
    "select": "SELECT (§ AS ?z) | A | {?s :p ?x}",
    "local filter": "SELECT ?s | A | {?s :p ?x FILTER(§)}",
    "filter over steps": "SELECT ?s | A : B | {?s :p ?x} | {?s :q ?y FILTER(?x = ?y || §)}",
    "bind": "SELECT ?s | A | {?s :p ?x BIND(§ AS ?z)}",
    "stateful bind": "SELECT ?s | A : B | {?s :p ?x} | {?s :q ?y BIND(COALESCE(?x, §) AS ?z)}",
    "template": "CONSTRUCT {?s :z ?z} | A | {?s :p ?x BIND(§ AS ?z)}",
    "ask": "ASK | A | {?s :p ?x FILTER(§)}",
    "exists": "SELECT ?s | A | {?s :p ?x FILTER(NOT EXISTS {?s :q ?y FILTER(§)})}",
    "exists over steps": "ASK | A : B | {?s :p ?x} | {?t :q ?y FILTER EXISTS {?s :r ?t FILTER(§)}}",
    "optional": "SELECT ?s | A | {?s :p ?x OPTIONAL {?s :q ?y FILTER(§)}}",
    "union": "SELECT ?s | A | {{?s :p ?x} UNION {?s :q ?x FILTER(§)}}",
    "minus": "SELECT ?s | A | {?s :p ?x MINUS {?s :q ?x FILTER(§)}}",
    "graph": "SELECT ?s | A | {?s :p ?x GRAPH :k {?x :q ?y FILTER(§)}}",
    "service": "SELECT ?s | A | {?s :p ?x SERVICE <http://e/sparql> {?x :q ?y FILTER(§)}}",
    "group": "SELECT ?s | A | {?s :p ?x {?s :q ?y FILTER(§)}}",
    "sub-select": "SELECT ?s | A | {{SELECT ?s (§ AS ?z) {?s :p ?x}}}",
    "having": "SELECT ?s | A | {{SELECT ?s {?s :p ?x} GROUP BY ?s ?x HAVING (§)}}",
    "group by": "SELECT ?z | A | {{SELECT ?z {?s :p ?x} GROUP BY (§ AS ?z)}}",
    "order by": "SELECT ?s | A | {{SELECT ?s {?s :p ?x} ORDER BY DESC(§) LIMIT 1}}",
    "aggregate": "SELECT ?s | A | {{SELECT ?s (SUM(§) AS ?z) {?s :p ?x} GROUP BY ?s}}",
    "previous": "SELECT ?t | A+ | {?t :p ?x FILTER(?x > PREV(?x, §))}",
    "negation": "SELECT ?s | A : !B : A | {?s :p ?x} | {?s :q ?y FILTER(§)}",
    "optional step": "SELECT ?s | A ; B? | {?s :p ?x} | {?s :q ?y FILTER(§)}",
    "conjunction": "SELECT ?s | (A & B) | {?s :p ?x} | {?s :q ?y FILTER(§)}",
    "any order": "SELECT ?s | (A AND B) | {?s :p ?x} | {?s :q ?y FILTER(§)}",
    "disjunction": "SELECT ?s | (A OR B) | {?s :p ?x} | {?s :q ?x FILTER(§)}",
    "list": "SELECT ?s | A | {?s :p ?x FILTER(?x IN (1, §))}",
    "if": "SELECT ?s | A | {?s :p ?x FILTER(IF(BOUND(?x), §, false))}",
    "coalesce": "SELECT (COALESCE(1, §) AS ?z) | A | {?s :p ?x}",
    "operators": "SELECT (-(1 + (§)) * 2 AS ?z) | A | {?s :p ?x}",
    "regex": 'SELECT ?s | A | {?s :p ?x FILTER(REGEX("x", STR(§)))}',
}  # fmt: skip


def text_of(position: str, expression: str) -> str:
    head, seq, *bodies = POSITIONS[position].replace("§", expression).split(" | ")
    defines = " ".join(f"DEFINE GPM {n} ON s {b}" for n, b in zip("AB", bodies, strict=False))
    clauses = "WITHIN 10 SECONDS FROM STREAM s :s"
    return f"{PREFIX}{head}\n{clauses}\nWHERE {{\n  SEQ({seq})\n  {defines} }}"


def refused(text: str, name: str = "query") -> QueryError:
    with pytest.raises(QueryError) as caught:
        spaseq.compile(text, names=[name])
    return caught.value


# ------------------------------------------------------------------ every place


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (":own(1)", "`<http://example.org/own>` is not known"),
        (f"{SF_INSIDE}(1, 1)", "`geof:sfInside` is not known"),
        ("xsd:int(1)", "`xsd:int` is not known"),
        ("xsd:integer(1, 2)", "`xsd:integer` takes 1 argument, but has 2"),
        ("xsd:gYear()", "`xsd:gYear` takes 1 argument, but has 0"),
        ("STRLEN(1, 2)", "STRLEN takes 1 argument, but has 2"),
        ("NOW(1)", "NOW takes no arguments, but has 1"),
        ("IF(1, 2)", "IF takes 3 arguments, but has 2"),
        ("BOUND(1)", "BOUND takes a variable"),
    ],
)
def test_a_fault_is_found_wherever_it_is(position: str, call: str, fragment: str) -> None:
    text = text_of(position, call)
    error = refused(text, "q.rq")
    (found,) = [each for each in error.diagnostics if each.severity == "error"]
    assert fragment in found.message
    assert found.hint
    assert text.index(call) <= found.span.start < text.index(call) + len(call)
    line = text.count("\n", 0, found.span.start) + 1
    assert found.span.line == line
    assert str(error).startswith(f"q.rq:{line}:{found.span.column}: error: ")
    assert text.splitlines()[line - 1] in str(error)


@pytest.mark.parametrize("position", POSITIONS)
def test_the_places_themselves_are_right(position: str) -> None:
    program = spaseq.compile(text_of(position, "xsd:double(1)"))
    if position != "service":  # it would be asked at the start
        assert not program.start().finish()


def test_unknown_functions_in_select() -> None:
    only(findings(query_text("A", head="SELECT (:f(?a) AS ?x)")), ":f", "is not known")


# ------------------------------------------------------------------ all at once


def test_all_findings_of_parser_and_checks_come_together() -> None:
    text = text_of("local filter", "STRLEN(1, 2) > :own(?nobody) && geo:near(?x, :other(1))")
    error = refused(text)
    assert isinstance(error, QuerySyntaxError)
    marked = [(text[f.span.start : f.span.end], f.severity) for f in error.diagnostics]
    assert marked == [
        ("STRLEN(1, 2)", "error"),
        (":own", "error"),
        ("geo:near", "error"),
        (":other", "error"),
        ("?nobody", "warning"),
    ]


def test_what_an_error_leaves_out_is_not_missed() -> None:
    """Half of the sequence is not read, so nothing is said of the graph patterns in it."""
    error = refused(query_text("A & B, C", {"A": "{ ?s :p ?x FILTER(:own(1)) }"}))
    assert len(error.diagnostics) == 1
    assert "one pair of parentheses" in error.diagnostics[0].message


def test_an_undeclared_prefix_is_reported_once() -> None:
    error = refused(text_of("select", "no:f(no:g(1))"))
    assert ["`" in f.message or "prefix" in f.message for f in error.diagnostics] == [True]


@pytest.mark.parametrize(
    "fault",
    [
        "VALUES (?a ?b) { (1) (1 2 3) }",
        "FILTER(BOUND() || BOUND(1) || IF() || IF(1) || REGEX(1))",
        "FILTER(IRI() = 1)",
        "BIND(1 AS ?x)",
    ],
)
def test_checks_bear_what_the_parser_has_reported(fault: str) -> None:
    text = "BASE <http://e/> " + query_text("A", {"A": f"{{ ?s :p ?x {fault} FILTER(:own(1)) }}"})
    assert ":own" in [text[f.span.start : f.span.end] for f in refused(text).diagnostics]


def test_errors_of_several_queries_come_together() -> None:
    wrong, right = text_of("select", ":own(1)"), text_of("select", "1")
    unreadable = right.replace("SEQ", "SEQUENCE")
    texts = [right, wrong, unreadable, wrong.replace(":own", ":other")]
    with pytest.raises(QueryError) as caught:
        spaseq.compile(texts, names=["a", "b", "c", "d"])
    error = caught.value
    assert [each.name for each in (error, *error.others)] == ["b", "c", "d"]
    for start in ("b:1:", "c:4:", "d:1:"):
        assert f"\n{start}" in f"\n{error}"
    assert error.others[1].source == texts[3]


# ------------------------------------------------------------------ hints and warnings


@pytest.mark.parametrize(
    ("iri", "first"),
    [
        ("http://www.w3.org/2005/xpath-functions#round", "ROUND"),
        ("http://www.w3.org/2005/xpath-functions#encode-for-uri", "ENCODE_FOR_URI"),
        ("http://example.org/strlength", "STRLEN"),
        ("urn:f:ucase", "UCASE"),
        ("http://www.w3.org/2001/XMLSchema#datetime", "xsd:dateTime"),
        ("http://www.w3.org/2001/XMLSchema#interger", "xsd:integer"),
    ],
)
def test_the_nearest_names(iri: str, first: str) -> None:
    assert nearest(iri)[0] == first


@pytest.mark.parametrize(
    "cast", ['xsd:integer("abc")', 'xsd:date("2026-02-30")', 'xsd:boolean("")']
)
def test_a_cast_that_cannot_succeed_is_warned_of(cast: str) -> None:
    warned = findings(text_of("select", cast), "warning")
    only(warned, cast, "the cast always errs")
    spaseq.compile(text_of("select", cast))


@pytest.mark.parametrize(
    "cast", ['xsd:integer("99")', 'xsd:string("abc")', "xsd:integer(?x)", 'xsd:gYear("abc")']
)
def test_other_casts_are_not_warned_of(cast: str) -> None:
    assert findings(text_of("select", cast), "warning") == []


# ------------------------------------------------------------------ drawn queries


class Drawn:
    """A random expression; `§` marks the beginning of each fault in it.

    A `result` expression has a match in front of it, and no event.
    """

    def __init__(self, chance: Random, result: bool):
        self.chance = chance
        self.result = result

    def expression(self, depth: int) -> str:
        chance = self.chance
        kind = chance.randrange(9) if depth else chance.randrange(2)
        inner = lambda: self.expression(depth - 1)  # noqa: E731
        if kind == 0:
            return chance.choice(("?x",) if self.result else ("?x", "?s", "?nobody"))
        if kind == 1:
            return chance.choice(('"a"', "1", "2.5", "1e3", "true", ":iri", "9" * 30))
        if kind == 2:
            return f"({inner()} {chance.choice(('+', '*', '=', '<', '&&', '||'))} {inner()})"
        if kind == 3:
            return f"({inner()} IN ({inner()}, {inner()}))"
        if kind == 4:
            return f"(!{inner()})"
        if kind == 5 and not self.result:
            return f"EXISTS {{ ?s :p ?o{chance.randrange(99)} FILTER({inner()}) }}"
        return self.call(depth)

    def call(self, depth: int) -> str:
        chance = self.chance
        if chance.random() < 0.15:
            name = chance.choice((":own", SF_INSIDE, "xsd:int"))
            arguments = ", ".join(self.expression(depth - 1) for _ in range(chance.randrange(3)))
            return f"§{name}({arguments})"
        entry = chance.choice((*BUILTINS.values(), *NAMED_BY_IRI.values()))
        count = entry.least if chance.random() < 0.85 else chance.randrange(5)
        if entry.name == "BOUND" and count == 1:
            return "BOUND(?x)"
        mark = "" if entry.accepts(count) else "§"
        arguments = ", ".join(self.expression(depth - 1) for _ in range(count))
        name = shown(entry.name)
        if name.startswith(("math:", "geof:")):
            name = f"<{entry.name}>"  # the prefixes are not declared
        return f"{mark}{name}({arguments})"


@pytest.mark.parametrize("seed", range(400))
def test_a_query_compiles_unless_a_finding_says_why_not(seed: int) -> None:
    chance = Random(seed)
    position = chance.choice(list(POSITIONS))
    drawn = Drawn(chance, position in ("select", "coalesce", "operators")).expression(3)
    marked = text_of(position, drawn.replace("§", "\0")).replace("\0", "§")
    text = marked.replace("§", "")
    faults = {found.start() - number for number, found in enumerate(re.finditer("§", marked))}
    if not faults:
        program = spaseq.compile(text)
        if position != "service":
            program.start()
        return
    error = refused(text)
    wrong = [each for each in error.diagnostics if each.severity == "error"]
    assert {each.span.start for each in wrong} == faults
    for each in wrong:
        assert text[each.span.start : each.span.end].strip()
        assert each.span.line == text.count("\n", 0, each.span.start) + 1
        assert f"query:{each.span.line}:{each.span.column}: error: {each.message}" in str(error)


def test_the_aggregates_of_a_sub_select_compile() -> None:
    for entry in AGGREGATES.values():
        text = text_of("sub-select", f"{entry.name}(?x)").replace("}}}", "} GROUP BY ?s}}")
        if entry.of_sequence:
            assert "inside a sub-query" in str(refused(text))
        else:
            spaseq.compile(text).start()

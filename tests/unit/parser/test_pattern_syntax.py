"""Graph patterns and expressions, where the W3C's suites do not look (SPARQL 1.1 section 19)."""

from __future__ import annotations

import pytest

from spaseq.errors import QuerySyntaxError
from spaseq.parser import ast, parse, parse_expression, parse_pattern
from spaseq.sparql.builtins import BUILTINS

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
E = {"": "http://e/"}

X, Y = ast.Var("x"), ast.Var("y")
ONE, TWO, THREE = (ast.Literal(digit, XSD + "integer") for digit in "123")


def _elements(text: str) -> tuple[ast.Element, ...]:
    return parse_pattern(text, E).elements


def _object(text: str) -> object:
    (triple,) = _elements(f"{{ ?x ?y {text} }}")
    assert isinstance(triple, ast.Triple)
    return triple.object


def _path(text: str) -> object:
    (triple,) = _elements(f"{{ ?x {text} ?y }}")
    assert isinstance(triple, ast.Triple)
    return triple.predicate


# ---------------------------------------------------------------- terms


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("1", ast.Literal("1", XSD + "integer")),
        ("-01", ast.Literal("-01", XSD + "integer")),
        ("+.5", ast.Literal("+.5", XSD + "decimal")),
        ("1.e0", ast.Literal("1.e0", XSD + "double")),
        ("-1E-9", ast.Literal("-1E-9", XSD + "double")),
        ("TRUE", ast.Literal("true", XSD + "boolean")),
        ("''", ast.Literal("")),
        ('"a\'b"', ast.Literal("a'b")),
        ("'''a'b''c\n'''", ast.Literal("a'b''c\n")),
        ('"""x\\""""', ast.Literal('x"')),
        ("'\\t\\b\\n\\r\\f\\\\\\'\\\"'", ast.Literal("\t\b\n\r\f\\'\"")),
        ("'\\u0041\\U00000042\\\\u0043'", ast.Literal("AB\\u0043")),
        ("'\\u0022\\u005C'", ast.Literal('"\\')),
        ("'a'@en-GB", ast.Literal("a", RDF + "langString", "en-GB")),
        ("'a'@en-GB--ltr", ast.Literal("a", RDF + "dirLangString", "en-GB", "ltr")),
        ("'a'@AR--rtl", ast.Literal("a", RDF + "dirLangString", "AR", "rtl")),
        ("'a'^^:t", ast.Literal("a", "http://e/t")),
        ("'a'^^xsd:string", ast.Literal("a")),
        ("'P1D'^^xsd:dayTimeDuration", ast.Literal("P1D", XSD + "dayTimeDuration")),
    ],
)
def test_literals(text: str, literal: ast.Literal) -> None:
    assert _object(text) == literal


@pytest.mark.parametrize(
    ("text", "iri"),
    [
        (":a", "http://e/a"),
        (":", "http://e/"),
        (":a.b", "http://e/a.b"),
        (":a\\,\\(b\\)\\%", None),
        (":a\\,\\(b\\)", "http://e/a,(b)"),
        (":%41:0", "http://e/%41:0"),
        ("<urn:a\\u0042>", "urn:aB"),
        ("prov:Entity", "http://www.w3.org/ns/prov#Entity"),
        ("<http://e/a%zz>", None),
        ("<a>", None),
    ],
)
def test_iris(text: str, iri: str | None) -> None:
    if iri is None:
        with pytest.raises(QuerySyntaxError):
            _object(text)
    else:
        assert _object(text) == ast.Iri(iri)


def test_the_prologue_is_read_in_order() -> None:
    query = parse(
        "PREFIX a: <http://x/> BASE <http://e/d/> PREFIX b: <b#> BASE <../f/g> PREFIX a: <#>\n"
        "ASK { SEQ (A) DEFINE GPM A ON S { a:p b:p <> } }"
    )
    assert query.prologue.base == "http://e/f/g"
    assert query.prologue.prefixes == (("a", "http://e/f/g#"), ("b", "http://e/d/b#"))
    (triple,) = query.defines[0].pattern.elements
    assert triple == ast.Triple(
        ast.Iri("http://e/f/g#p"), ast.Iri("http://e/d/b#p"), ast.Iri("http://e/f/g")
    )


def test_a_prefix_may_be_declared_again() -> None:
    query = parse("PREFIX xsd: <urn:> ASK { SEQ (A) DEFINE GPM A ON S { ?s ?p xsd:a } }")
    (triple,) = query.defines[0].pattern.elements
    assert isinstance(triple, ast.Triple)
    assert triple.object == ast.Iri("urn:a")


# ---------------------------------------------------------------- triples


def test_fresh_blank_nodes_avoid_the_labels_of_the_text() -> None:
    elements = _elements("{ _:b0 :p [] ; :q [ :r _:bb1 ] }")
    labels = [
        term.label
        for triple in elements
        if isinstance(triple, ast.Triple)
        for term in (triple.subject, triple.object)
        if isinstance(term, ast.BlankNode)
    ]
    assert labels == ["b0", "bbb0", "bbb1", "bb1", "b0", "bbb1"]


def test_collections_become_lists() -> None:
    first, rest = ast.Iri(RDF + "first"), ast.Iri(RDF + "rest")
    cells = [ast.BlankNode("b0"), ast.BlankNode("b1")]
    assert _elements("{ ?x ?y (1 (2)) }") == (
        ast.Triple(cells[0], first, ONE),
        ast.Triple(cells[0], rest, cells[1]),
        ast.Triple(ast.BlankNode("b2"), first, TWO),
        ast.Triple(ast.BlankNode("b2"), rest, ast.Iri(RDF + "nil")),
        ast.Triple(cells[1], first, ast.BlankNode("b2")),
        ast.Triple(cells[1], rest, ast.Iri(RDF + "nil")),
        ast.Triple(X, Y, cells[0]),
    )
    assert _object("()") == ast.Iri(RDF + "nil")
    numbers = [
        triple.object for triple in _elements("{ ?x ?y (-1 -2) }") if triple.predicate == first
    ]
    assert numbers == [ast.Literal("-1", XSD + "integer"), ast.Literal("-2", XSD + "integer")]


def test_paths() -> None:
    p, q = ast.Iri("http://e/p"), ast.Iri("http://e/q")
    a = ast.Iri(RDF + "type")
    assert _path("a") == a
    assert _path("^:p*/:q|:p") == ast.AlternativePath(
        (ast.SequencePath((ast.InversePath(ast.RepeatPath(p, "*")), q)), p)
    )
    assert _path("(^:p)?") == ast.RepeatPath(ast.InversePath(p), "?")
    assert _path("!(a|^:q|:p)") == ast.NegatedPath((a, p), (q,))
    assert _path("!^:q") == ast.NegatedPath((), (q,))
    assert _path("!()") == ast.AlternativePath((a, ast.NegatedPath((a,), ())))
    assert _path("((:p))") == p


# ---------------------------------------------------------------- groups


def test_groups_nest_as_written() -> None:
    group = ast.GroupGraphPattern(())
    assert _elements("{ { } }") == (ast.SubGroup(group),)
    assert _elements("{ { } UNION { } UNION { } }") == (ast.Union((group, group, group)),)
    assert _elements("{ { } { } UNION { } }") == (ast.SubGroup(group), ast.Union((group, group)))
    (select,) = _elements("{ SELECT ?x ?x { } }")
    assert isinstance(select, ast.SubSelect)
    assert select.items == (ast.Projection(X),)


def test_modifiers_in_either_order() -> None:
    first, second = (
        _elements(f"{{ SELECT * {{ }} ORDER BY ?x DESC(?y) {rest} VALUES ?x {{ 1 UNDEF }} }}")
        for rest in ("LIMIT 1 OFFSET 2", "OFFSET 2 LIMIT 1")
    )
    assert first == second
    (select,) = first
    assert isinstance(select, ast.SubSelect)
    assert (select.limit, select.offset) == (1, 2)
    assert select.order_by == (ast.OrderKey(X, False), ast.OrderKey(Y, True))
    assert select.values == ast.Values((X,), ((ONE,), (None,)))


@pytest.mark.parametrize(
    ("dots", "right"),
    [
        ("?x ?y 1 . . FILTER (1)", True),
        ("FILTER (1) . . ?x ?y 1", True),
        ("FILTER (1) .. FILTER (1) ..", True),
        ("OPTIONAL { } . ?x ?y 1", True),
        ("OPTIONAL { } . . ?x ?y 1", False),
        (". FILTER (1)", False),
        ("?x ?y 1 . . ", False),
    ],
)
def test_doubled_dots_stand_around_filters_only(dots: str, right: bool) -> None:
    if right:
        _elements(f"{{ {dots} }}")
    else:
        with pytest.raises(QuerySyntaxError):
            _elements(f"{{ {dots} }}")


# ---------------------------------------------------------------- scope


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("{ ?x ?y 1 BIND (1 AS ?z) BIND (2 AS ?z) }", False),
        ("{ BIND (1 AS ?z) ?x ?y ?z }", True),
        ("{ FILTER (?z = 1) BIND (1 AS ?z) }", True),
        ("{ MINUS { ?z ?y 1 } BIND (1 AS ?z) }", True),
        ("{ OPTIONAL { ?z ?y 1 } BIND (1 AS ?z) }", False),
        ("{ GRAPH ?z { } BIND (1 AS ?z) }", False),
        ("{ VALUES ?z { 1 } BIND (1 AS ?z) }", False),
        ("{ { SELECT (1 AS ?z) { } } BIND (1 AS ?z) }", False),
        ("{ { SELECT (1 AS ?a) { ?z ?z ?z } } BIND (1 AS ?z) }", True),
        ("{ { SELECT * { ?z ?z ?z } } BIND (1 AS ?z) }", False),
        ("{ { SELECT * { } VALUES ?z { 1 } } BIND (1 AS ?z) }", False),
        ("{ FILTER EXISTS { BIND (1 AS ?z) BIND (1 AS ?z) } }", False),
        ("{ SELECT (?a AS ?b) (?b AS ?c) { } }", True),
        ("{ SELECT (?a AS ?b) { ?b ?b ?b } }", False),
        ("{ SELECT ?k (SUM(?v) AS ?s) { ?k ?k ?v } GROUP BY ?k HAVING (SUM(?v) > 1) }", True),
        ("{ SELECT ?k (?k + SUM(?v) AS ?s) (?s AS ?t) { } GROUP BY (?v + 1 AS ?k) }", True),
        ("{ SELECT (?v AS ?s) { } HAVING (COUNT(*) > 1) }", False),
        ("{ SELECT (COUNT(*) AS ?s) { } ORDER BY SUM(?v) }", True),
        ("{ SELECT (?v AS ?s) { } ORDER BY SUM(?v) }", False),
        ("{ SELECT ?k { } GROUP BY (?k AS ?k2) }", False),
        ("{ SELECT ?k { ?k ?k ?k } GROUP BY (1 AS ?k) }", False),
        ("{ SELECT ?k { } GROUP BY (SUM(?v) AS ?k) }", False),
        ("{ FILTER (SUM(?v) > PREV(?v)) }", True),
        ("{ { FILTER (FIRST(?v) > 1) } }", True),
        ("{ SELECT * { FILTER EXISTS { FILTER (SUM(?v) > 1) } } }", False),
    ],
)
def test_rules_of_scope(text: str, right: bool) -> None:
    if right:
        parse_pattern(text)
    else:
        with pytest.raises(QuerySyntaxError):
            parse_pattern(text)


def test_blank_node_labels_belong_to_one_gpm() -> None:
    with pytest.raises(QuerySyntaxError, match="already used"):
        parse("ASK { SEQ (A; B) DEFINE GPM A ON S { _:n ?p ?o } DEFINE GPM B ON S { _:n ?p ?o } }")
    parse("CONSTRUCT { _:n ?p ?o } { SEQ (A) DEFINE GPM A ON S { _:n ?p ?o } }")


# ---------------------------------------------------------------- expressions


def _binary(operator: str, left: ast.Expr, right: ast.Expr) -> ast.Binary:
    return ast.Binary(operator, left, right)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("1+2*3", _binary("+", ONE, _binary("*", TWO, THREE))),
        ("1-2-3", _binary("-", _binary("-", ONE, TWO), THREE)),
        ("?x-1", _binary("-", X, ONE)),
        ("?x -1*2", _binary("-", X, _binary("*", ONE, TWO))),
        ("?x*-1", _binary("*", X, ast.Literal("-1", XSD + "integer"))),
        ("- 1", ast.Unary("-", ONE)),
        ("!?x||?y&&?x", _binary("||", ast.Unary("!", X), _binary("&&", Y, X))),
        ("?x<?y", _binary("<", X, Y)),
        ("1<2", _binary("<", ONE, TWO)),
        ("?x IN ()", ast.In(X, (), False)),
        ("?x NOT IN (1, 2)", ast.In(X, (ONE, TWO), True)),
        ("xsd:integer(?x)", ast.FunctionCall(ast.Iri(XSD + "integer"), (X,))),
        ("uri(?x)", ast.Call("IRI", (X,))),
        ("isUri(?x)", ast.Call("ISIRI", (X,))),
        ("NOT EXISTS { }", ast.Exists(ast.GroupGraphPattern(()), True)),
        ("PREV(?x)", ast.Prev(X)),
        ("prev(?x, 1)", ast.Prev(X, ONE)),
        ("first(?x)", ast.Aggregate("FIRST", X)),
        ("COUNT(DISTINCT *)", ast.Aggregate("COUNT", None, True)),
        ("COUNT(B)", ast.Aggregate("COUNT", ast.GpmName("B"))),
        ("GROUP_CONCAT(?x;SEPARATOR='')", ast.Aggregate("GROUP_CONCAT", X, False, "")),
    ],
)
def test_expressions(text: str, tree: ast.Expr) -> None:
    assert parse_expression(text) == tree


@pytest.mark.parametrize("name", sorted(BUILTINS))
def test_arities(name: str) -> None:
    least, most = BUILTINS[name].least, BUILTINS[name].most
    for count in range(6):
        text = f"{name.lower()}({', '.join(['?x'] * count)})"
        if least <= count and (most is None or count <= most):
            assert parse_expression(text) == ast.Call(name, (X,) * count)
        else:
            with pytest.raises(QuerySyntaxError, match=f"{name} takes"):
                parse_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "?x = ?y = 1",
        "!!?x",
        "1 + ",
        "?x IN 1",
        "SUM(?x, ?y)",
        "PREV(1)",
        "COUNT()",
        "_:b",
        "?x ?y",
        "EXISTS",
    ],
)
def test_what_sparql_does_not_have(text: str) -> None:
    with pytest.raises(QuerySyntaxError):
        parse_expression(text)


def test_bounds_on_nesting() -> None:
    parse_expression("(" * 40 + "1" + ")" * 40)
    parse_expression(" || ".join(["?x"] * 250))
    for text in (
        "(" * 500 + "1" + ")" * 500,
        " + ".join(["?x"] * 300),
        "!(" * 200 + "1" + ")" * 200,
    ):
        with pytest.raises(QuerySyntaxError, match="nested too deeply"):
            parse_expression(text)
    parse_pattern("{ ?x " + "/".join(["<u:p>"] * 250) + " ?y }")
    with pytest.raises(QuerySyntaxError, match="chains too many"):
        parse_pattern("{ ?x " + "/".join(["<u:p>"] * 251) + " ?y }")
    for opening, closing in (("(", ")"), ("[ ?y ", "]"), ("{ ", "}")):
        text = f"{{ ?x ?y {opening * 300}?x {closing * 300} }}"
        with pytest.raises(QuerySyntaxError):
            parse_pattern(text)

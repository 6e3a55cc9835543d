"""The SPAseq part of the language: clauses, sequences, definitions (docs/language.md section 2)."""

from __future__ import annotations

import pytest

from spaseq.errors import QuerySyntaxError
from spaseq.parser import ast, format_query, parse

_DEFINE = "DEFINE GPM A ON S1 { ?s ?p ?o }"


def _sequence(text: str) -> ast.Sequence:
    return parse(f"ASK WHERE {{ SEQ ({text}) {_DEFINE} }}").sequence


def _one_step(unit: ast.Unit) -> ast.Sequence:
    return ast.Sequence((ast.Step(None, unit),))


A, B, C, D = (ast.GpmRef(name) for name in "ABCD")

# ---------------------------------------------------------------- the original engine's queries

_PUBLISHED_SHAPE = """
 prefix c: <http://example/company#>
   prefix pred:<http://example/>

 SELECT ?company ?p1,?p2 , ?name
   {clauses}
   FROM STREAM S1 <http://example.org/main>

 WHERE
   {sequence}
   {{
     DEFINE GPM A ON S1
     {{
       ?company pred:price ?p1.
       ?company pred:volume ?vol1.
     }}
     DEFINE GPM B ON S1
     {{
       ?company pred:price ?p2.
       {triple}
       Filter (?p2 < ?p1 && ?p2 >= '16.0'^^<http://www.w3.org/2001/XMLSchema#double> ){dot}
       GRAPH <http://www.example.com/kb>
       {{
         ?company pred:name ?name.
       }}
       Filter ( ?p2 = ?p1).
     }}
   }}"""


@pytest.mark.parametrize("dot", ["", ".", " .", "..", " . ."])
@pytest.mark.parametrize(
    "triple", ["", "?company pred:volume ?vol2.", "?company pred:volume ?v2 . ."]
)
@pytest.mark.parametrize(
    "clauses",
    [
        "WITHIN 10 SECONDS",
        "WITHIN 10 SECONDS Partition by (?company)",
        "PARTITON BY (?company) WITHIN 10 SECONDS",
        "Patition By ?company WITHIN 10 SECONDS",
    ],
)
def test_shapes_published_for_the_original_engine(clauses: str, triple: str, dot: str) -> None:
    text = _PUBLISHED_SHAPE.format(clauses=clauses, sequence="SEQ (A, B)", triple=triple, dot=dot)
    query = parse(text)
    assert query.within == ast.Within(ast.WindowKind.SPAN, 10_000_000)
    assert (query.partition is not None) == ("BY" in clauses.upper())
    kinds = [type(element).__name__ for element in query.defines[1].pattern.elements]
    assert [kind for kind in kinds if kind != "Triple"] == ["Filter", "Graph", "Filter"]
    assert parse(format_query(query)) == query


def test_seq_before_or_inside_the_braces_with_or_without_where() -> None:
    texts = [
        f"ASK WHERE SEQ (A) {{ {_DEFINE} }}",
        f"ASK SEQ (A) {{ {_DEFINE} }}",
        f"ASK WHERE {{ SEQ (A) {_DEFINE} }}",
        f"ASK {{ SEQ (A) {_DEFINE} }}",
    ]
    assert len({parse(text) for text in texts}) == 1


def test_a_dot_between_two_triples_is_needed() -> None:
    with pytest.raises(QuerySyntaxError, match="a dot is missing"):
        parse("ASK { SEQ (A) DEFINE GPM A ON S1 { ?s ?p ?o ?s ?q ?r } }")


# ---------------------------------------------------------------- sequences


def test_operators() -> None:
    assert _sequence("A, B; C : D").steps == (
        ast.Step(None, A),
        ast.Step(",", B),
        ast.Step(";", C),
        ast.Step(":", D),
    )
    assert _sequence("A:B").steps == (ast.Step(None, A), ast.Step(":", B))


@pytest.mark.parametrize("text", ["A; !B", "A; NOT B", "A; not B", "A; B!", "A;! B"])
def test_negations(text: str) -> None:
    assert _sequence(text).steps[1] == ast.Step(";", B, None, True)


@pytest.mark.parametrize(
    ("text", "least", "most", "optional"),
    [
        ("+", 1, None, False),
        ("*", 0, None, False),
        ("?", 0, 1, True),
        ("{2}", 2, 2, False),
        ("{2,}", 2, None, False),
        ("{2,5}", 2, 5, False),
        ("{ 0 , 1 }", 0, 1, False),
        ("{5,2}", 5, 2, False),
    ],
)
def test_quantifiers(text: str, least: int, most: int | None, optional: bool) -> None:
    quantifier = ast.Quantifier(least, most, optional)
    assert _sequence(f"A{text}; B").steps[0] == ast.Step(None, A, quantifier)
    grouped = ast.Sequence((ast.Step(None, A), ast.Step(",", B)))
    assert _sequence(f"(A, B) {text}").steps[0] == ast.Step(None, grouped, quantifier)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (("A & B", "A<>B", "A <> B"), ast.Conjunction),
        (("A | B", "A|B", "A OR B", "A or B"), ast.Disjunction),
        (("A AND B", "A and B"), ast.AnyOrder),
    ],
)
def test_groups(texts: tuple[str, ...], kind: type[ast.Conjunction]) -> None:
    group = kind((A, B))
    for text in texts:
        assert _sequence(text) == _one_step(group)
        assert _sequence(f"({text})") == _one_step(group)
        assert _sequence(f"C; ({text})").steps[1] == ast.Step(";", group)
    assert _sequence("A & B <> C") == _one_step(ast.Conjunction((A, B, C)))


def test_parentheses() -> None:
    optional = ast.Sequence((ast.Step(None, B, ast.Quantifier(0, 1, True)),))
    assert _sequence("A; (B?)").steps[1].unit == optional
    assert _sequence("(A)") == _one_step(_one_step(A))
    nested = ast.Disjunction((ast.Conjunction((A, B)), ast.Sequence((ast.Step(None, C),))))
    assert _sequence("(A & B) | (C)") == _one_step(nested)
    assert _sequence("A, !(B; C)").steps[1].negated


@pytest.mark.parametrize("text", ["A & B | C", "A & B, C", "A, B & C", "A AND B OR C", "(A|B;C)"])
def test_one_kind_of_operator_within_one_pair_of_parentheses(text: str) -> None:
    with pytest.raises(QuerySyntaxError, match="use parentheses"):
        _sequence(text)


@pytest.mark.parametrize(
    "name",
    ["a", "A1", "count", "Day", "LAST", "Seq", "define", "SELECT", "true", "and", "Or", "Ä", "x_1"],
)
def test_names_may_be_words_of_the_language(name: str) -> None:
    query = parse(
        f"SELECT (COUNT(B) AS ?n) FROM STREAM {name} <urn:s> "
        f"{{ SEQ ({name}; B : {name}) DEFINE GPM {name} ON {name}, B {{ }} }}"
    )
    assert query.sequence.steps[0].unit == ast.GpmRef(name)
    assert query.sequence.steps[2].unit == ast.GpmRef(name)
    assert query.streams[0].name == name
    assert query.defines[0].name == name
    assert query.defines[0].streams == (name, "B")


def test_counting_a_gpm_whose_name_is_a_function() -> None:
    for name in ("Day", "min", "STR"):
        (item,) = _items(f"(COUNT({name}) AS ?n)")
        assert item.expression == ast.Aggregate("COUNT", ast.GpmName(name))
    (item,) = _items("(COUNT(Day(?x)) AS ?n)")
    assert item.expression == ast.Aggregate("COUNT", ast.Call("DAY", (ast.Var("x"),)))


def _items(text: str) -> tuple[ast.Projection, ...]:
    form = parse(f"SELECT {text} {{ SEQ (A) {_DEFINE} }}").form
    assert isinstance(form, ast.Select)
    assert form.items is not None
    return form.items


# ---------------------------------------------------------------- clauses


@pytest.mark.parametrize(
    ("text", "within"),
    [
        ("10 SECONDS", ast.Within(ast.WindowKind.SPAN, 10_000_000)),
        ("0.5 second", ast.Within(ast.WindowKind.SPAN, 500_000)),
        ("1.5e-3 Milliseconds", None),
        ("0.001 MILLISECOND", ast.Within(ast.WindowKind.SPAN, 1)),
        ("1e3 DAYS", ast.Within(ast.WindowKind.SPAN, 86_400_000_000_000)),
        (".25 HOURS", ast.Within(ast.WindowKind.SPAN, 900_000_000)),
        ("0.0000001 DAYS", ast.Within(ast.WindowKind.SPAN, 8640)),
        ("0 SECONDS", ast.Within(ast.WindowKind.SPAN, 0)),
        ("TUMBLING 2 MINUTES", ast.Within(ast.WindowKind.TUMBLING, 120_000_000)),
        ("100 EVENTS", ast.Within(ast.WindowKind.EVENTS, events=100)),
        ("UNBOUNDED", ast.Within(ast.WindowKind.UNBOUNDED)),
        ("1e400 DAYS", None),
        ("1e-400 DAYS", None),
        ("9223372036854.775808 SECONDS", None),
    ],
)
def test_windows_are_exact_to_the_microsecond(text: str, within: ast.Within | None) -> None:
    query = f"ASK WITHIN {text} {{ SEQ (A) {_DEFINE} }}"
    if within is None:
        with pytest.raises(QuerySyntaxError):
            parse(query)
    else:
        assert parse(query).within == within


def test_clauses_in_any_order_before_and_after_the_pattern() -> None:
    clauses = [
        "WITHIN 1 HOUR",
        "PARTITION BY ?a ?b",
        "FROM STREAM S1 <urn:s1>",
        "FROM STREAM S2 <urn:s2>",
        "FROM <urn:kb>",
        "FROM NAMED <urn:named>",
        "EMIT next",
        "AFTER MATCH SKIP PAST LAST EVENT",
    ]
    first = parse(f"ASK {' '.join(clauses)} {{ SEQ (A) {_DEFINE} }} LIMIT 2")
    assert first == parse(f"ASK {{ SEQ (A) {_DEFINE} }} {' '.join(clauses)} LIMIT 2")
    assert first == parse(
        f"ASK {' '.join(clauses[4:])} WHERE {{ SEQ (A) {_DEFINE} }} {' '.join(clauses[:4])} LIMIT 2"
    )
    assert first.streams == (
        ast.FromStream("S1", ast.Iri("urn:s1")),
        ast.FromStream("S2", ast.Iri("urn:s2")),
    )
    assert first.kbs == (
        ast.FromKb(ast.Iri("urn:kb"), False),
        ast.FromKb(ast.Iri("urn:named"), True),
    )
    assert first.partition == ast.PartitionBy((ast.Var("a"), ast.Var("b")))
    assert first.emit == ast.Emit("NEXT")
    assert first.after_match == ast.AfterMatch("SKIP PAST LAST EVENT")
    assert first.limit == ast.Limit(2)


def test_registration() -> None:
    body = f"{{ SEQ (A) {_DEFINE} }}"
    assert parse(f"REGISTER QUERY falls AS ASK {body}").register == ast.Register("QUERY", "falls")
    text = f"BASE <http://e/> REGISTER STREAM <out> AS CONSTRUCT {{ }} {body}"
    assert parse(text).register == ast.Register("STREAM", "http://e/out")


def test_result_forms() -> None:
    body = f"{{ SEQ (A) {_DEFINE} }}"
    assert parse(f"ASK {body}").form == ast.Ask()
    assert parse(f"SELECT DISTINCT * {body}").form == ast.Select(None, distinct=True)
    assert parse(f"SELECT REDUCED ?s {body}").form == ast.Select(
        (ast.Projection(ast.Var("s")),), reduced=True
    )
    form = parse(f"CONSTRUCT {{ ?s a [ <urn:p> 1 ] ; <urn:q> _:x . }} {body}").form
    assert isinstance(form, ast.Construct)
    assert len(form.template) == 3


def test_define() -> None:
    text = "ASK { SEQ (A) DEFINE GPM A ON S1, S2 AT ?t { ?s ?p ?o } }"
    (define,) = parse(text).defines
    assert (define.name, define.streams, define.at) == ("A", ("S1", "S2"), ast.Var("t"))
    places = (define.span, define.name_span, *define.stream_spans)
    assert [text[place.start : place.end] for place in places] == [text[14:-2], "A", "S1", "S2"]


# ---------------------------------------------------------------- places


def test_spans_name_the_user_s_text() -> None:
    text = 'PREFIX é: <urn:>\nASK {\n SEQ (A)\n DEFINE GPM A ON S { ?s é:p "\\u00e9\\U0001F600" } }'
    (triple,) = parse(text).defines[0].pattern.elements
    assert isinstance(triple, ast.Triple)
    assert isinstance(triple.object, ast.Literal)
    assert triple.object.lexical == "é\U0001f600"
    place = triple.object.span
    assert text[place.start : place.end] == '"\\u00e9\\U0001F600"'
    assert (place.line, place.column, place.end_line, place.end_column) == (4, 29, 4, 47)
    assert text[triple.span.start : triple.span.end] == '?s é:p "\\u00e9\\U0001F600"'


def test_every_node_has_a_place() -> None:
    text = f"SELECT (?a + 1 AS ?b) WITHIN 1 DAY {{ SEQ (A; !B, (C | D)+) {_DEFINE} }}"
    for node in ast.walk(parse(text)):
        if not isinstance(node, ast.Prologue):
            span = node.span  # type: ignore[attr-defined]
            assert 0 <= span.start < span.end <= len(text), node


def test_errors_carry_the_name_of_the_text_and_all_findings() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse(f"SELECT (x:f() AS ?a) (y:g() AS ?b) {{ SEQ (A) {_DEFINE} }}", name="query.rq")
    assert str(caught.value).startswith("query.rq:1:9: error: the prefix x: is not declared")
    assert [finding.span.column for finding in caught.value.diagnostics] == [9, 23]
    assert (caught.value.line, caught.value.column) == (1, 9)


def test_a_byte_order_mark_and_comments_are_skipped() -> None:
    text = f"\ufeff# first\nASK # }} {{\r\n{{ SEQ (A#,\n) {_DEFINE} }} # end"
    assert parse(text) == parse(f"ASK {{ SEQ (A) {_DEFINE} }}")

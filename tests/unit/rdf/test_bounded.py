"""What a document may nest and repeat: refused before a parser reads it, whatever the pieces."""

from __future__ import annotations

import io
import json

import pytest

from spaseq.rdf.bounded import (
    MAX_NESTED_JSON,
    MAX_TERM_CHAIN,
    Bounded,
    check_json,
    parse_document,
    parse_json,
)
from spaseq.rdf.formats import JSON_LD, RDF_XML, TURTLE, RdfSyntax
from spaseq.rdf.native._bounds import JsonScanner, TurtleScanner
from spaseq.rdf.syntax import LimitError

RDF = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    'xmlns:x="http://example.org/"{}>{}</rdf:RDF>'
)
OWL = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [
    <!ENTITY owl "http://www.w3.org/2002/07/owl#" >
    <!ENTITY % xsd "http://www.w3.org/2001/XMLSchema#" >
    <!-- don't -->
    <!ENTITY thing "&owl;Thing" >
]>
"""
CLASS = '<rdf:Description><x:p rdf:resource="&thing;"/><x:q>&owl;a</x:q></rdf:Description>'


def bomb(levels: int, width: int = 9) -> str:
    nested = "".join(f'<!ENTITY a{level + 1} "{f"&a{level};" * width}">' for level in range(levels))
    value = f"<rdf:Description><x:p>&a{levels};</x:p></rdf:Description>"
    return f'<!DOCTYPE r [<!ENTITY a0 "{"a" * 10}">{nested}]>' + RDF.format("", value)


def outcome(text: str | bytes, syntax: RdfSyntax) -> int | str:
    """The number of statements, or the bound that was exceeded; in pieces as well as at once."""
    data = text if isinstance(text, bytes) else text.encode()
    found: list[int | str] = []
    try:
        found.append(len(list(parse_document(data, syntax, "http://base.org/"))))
    except LimitError as error:
        found.append(str(error))
    for size in (7, 64, 4096) if len(data) < 500_000 else (4096,):
        said = ""
        file = Bounded(io.BytesIO(data), syntax)
        try:
            while file.read(size):
                pass
        except LimitError as error:
            said = str(error)
        assert said == (found[0] if isinstance(found[0], str) else "")
    return found[0]


# ------------------------------------------------------------------ XML


def test_entities_as_in_ontologies_are_read() -> None:
    assert outcome(OWL + RDF.format("", CLASS * 5000), RDF_XML) == 10_000
    assert outcome(bomb(3), RDF_XML) == 1
    plain = '<!DOCTYPE rdf:RDF SYSTEM "http://example.org/a.dtd">' + RDF.format("", "")
    assert outcome(plain, RDF_XML) == 0


def test_nested_entities_are_refused_by_name() -> None:
    said = "the entity a6 expands to 7,705,890 bytes; entities may expand to 1,048,576 bytes in all"
    assert outcome(bomb(9), RDF_XML) == said
    spaced = bomb(9).replace("!ENTITY ", "!ENTITY\n% ").replace(' "', '\t\x0b"')
    assert outcome(spaced, RDF_XML) == said
    late = RDF.format("", bomb(9).partition("<rdf:RDF")[0])
    assert outcome(late, RDF_XML) == said
    hidden = bomb(9).replace("[", '["<>" ', 1)
    assert outcome(hidden, RDF_XML) == "its document type has a string or comment with < or >"
    long = bomb(2).replace("a1", "a" * 300)
    assert outcome(long, RDF_XML) == "the name of an entity has more than 256 bytes"


@pytest.mark.parametrize("use", ["<x:p>&e;</x:p>", '<x:p rdf:resource="u:&e;"/>'])
def test_references_to_a_long_entity_are_bounded(use: str) -> None:
    def text(number: int) -> str:
        declared = f'<!DOCTYPE r [<!ENTITY e "{"a" * 100_000}">]>'
        return declared + RDF.format("", f"<rdf:Description>{use * number}</rdf:Description>")

    assert outcome(text(100), RDF_XML) == 100
    said = "references to the entity e make it more than 32 times as large"
    assert outcome(text(1000), RDF_XML) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<rdf:Description><x:p>" * 600, "its elements are nested more than 1,000 deep"),
        (
            '<rdf:Description><x:p rdf:parseType="Literal">' + "<a b='/>'>" * 1100,
            "its elements are nested more than 1,000 deep",
        ),
        (
            "<rdf:Description" + "".join(f" x:a{n}='1'" for n in range(1001)) + "/>",
            "an element has more than 1,000 attributes",
        ),
        (
            "<rdf:Description" + "".join(f" xmlns:a{n}='u:1'" for n in range(501)) + "/>",
            "more than 500 namespaces are open",
        ),
        (
            f"<rdf:Description xmlns:y='http://e/{'a' * 100_000}'>"
            + "<y:p>1</y:p>" * 300
            + "</rdf:Description>",
            "its namespaces are too long for the number of its names",
        ),
        (
            f"<rdf:Description xmlns:y='http://e/{'a' * 50_000}'><x:p rdf:parseType='Literal'>"
            + "<a/>" * 1000
            + "</x:p></rdf:Description>",
            "its namespaces are too long for the number of its names",
        ),
    ],
)
def test_elements_and_namespaces_are_bounded(text: str, said: str) -> None:
    assert outcome(RDF.format("", text), RDF_XML) == said


def test_markup_that_is_no_element_is_skipped() -> None:
    inside = (
        "<!-- <a> --" + "<a>" * 2000 + "--><![CDATA[" + "<a>" * 2000 + "]] ]]]><?p "
        + "<a>" * 2000 + "?>"
    )  # fmt: skip
    body = f"<rdf:Description><x:p>{inside}</x:p></rdf:Description>"
    assert outcome(RDF.format("", body), RDF_XML) == 1
    many = "<rdf:Description x:p='/> >' ></rdf:Description><rdf:Description x:p='1'/>" * 2000
    assert outcome(RDF.format("", many), RDF_XML) == 4000


# ------------------------------------------------------------------ JSON


def test_nested_json_is_refused_before_it_is_parsed() -> None:
    assert parse_json(b"[" * MAX_NESTED_JSON + b"]" * MAX_NESTED_JSON)
    assert parse_json('{"a": "[[[\\"[[["}') == {"a": '[[["[[['}
    for opened in ("[", '{"a":'):
        with pytest.raises(ValueError, match="nested more than 500 deep"):
            parse_json(opened * 100_000)
    with pytest.raises(ValueError, match="Expecting"):
        parse_json(b"]]}{")
    lines = (json.dumps({"a": "}" * 9, "b": [{}]}) + "\n") * 5000
    check_json(lines.encode())


def test_a_scanner_begins_anew_at_each_text() -> None:
    scanner = JsonScanner(3)
    for _ in range(5):
        scanner.read(b'[["')
        scanner.begin()
    scanner.read(b'[[["')
    scanner.read(b'\\"[[[[')
    with pytest.raises(LimitError, match="nested more than 3 deep"):
        scanner.read(b'"[')
    with pytest.raises(ValueError, match="levels"):
        JsonScanner(5000)


# ------------------------------------------------------------------ JSON-LD


def terms(number: int) -> str:
    return ",".join(f'"a{n}":"http://example.org/{n}"' for n in range(number))


CONTEXT = '{{"@context":{{{}}},"@graph":[{}]}}'
TOO_LARGE = "its contexts are too large for the number of objects they apply to"


@pytest.mark.parametrize(
    "opened",
    ['{"http://e.org/a":', '{"@graph":', '{"@reverse":{"http://e.org/a":', '{"@list":[', "["],
)
def test_nested_json_ld_is_refused(opened: str) -> None:
    closed = "".join({"{": "}", "[": "]"}.get(c, "") for c in reversed(opened))
    levels = 90 // len(closed)
    inner = '{"@id":"http://e.org/x"}'
    fine = '{"http://e.org/b":' + opened * levels + inner + closed * levels + "}"
    assert isinstance(outcome(fine, JSON_LD), int)
    assert outcome(opened * 101, JSON_LD) == "its JSON is nested more than 100 deep"


def test_contexts_within_each_other_are_refused() -> None:
    scoped = '{"a":{"@id":"http://e.org/a","@context":'
    text = '{"@context":' + scoped * 3000 + "{}" + "}}" * 3000 + "}"
    assert outcome(text, JSON_LD) == "its JSON is nested more than 100 deep"


def test_contexts_that_the_parser_copies_are_bounded() -> None:
    node = '{"@context":{},"@id":"http://e.org/x","a1":1}'
    assert outcome(CONTEXT.format(terms(500), ",".join([node] * 500)), JSON_LD) == 500
    assert outcome(CONTEXT.format(terms(9000), ",".join([node] * 9000)), JSON_LD) == TOO_LARGE
    deep = '{"@context":{},"@id":"http://e.org/x","a1":' * 50 + "1" + "}" * 50
    said = "its contexts are too large for the depth of its objects"
    assert outcome(CONTEXT.format(terms(9000), deep), JSON_LD) == said


@pytest.mark.parametrize("node", ['{"s":{"a1":1}}', '{"@type":"s","a1":1}', '{"\\u0073":{}}'])
@pytest.mark.parametrize("key", ["@context", "@\\u0063ontext"])
def test_contexts_of_terms_are_bounded_by_their_uses(node: str, key: str) -> None:
    def text(size: int, uses: int) -> str:
        defined = f'"s":{{"@id":"http://e.org/s","@context":{{{terms(size)}}}}}'
        graph = ",".join([node] * uses)
        return CONTEXT.format(defined, graph).replace("@context", key, 1)

    assert isinstance(outcome(text(300, 300), JSON_LD), int)
    assert outcome(text(3000, 3000), JSON_LD) == TOO_LARGE
    last = json.loads(text(3000, 3000))
    last["@context"] = last.pop("@context")
    assert outcome(json.dumps(last), JSON_LD) == TOO_LARGE


def test_a_context_of_a_credential_is_read() -> None:
    """Many objects of types whose terms have contexts of their own."""
    types = ",".join(
        f'"T{n}":{{"@id":"http://e.org/T{n}","@context":{{"@protected":true,{terms(20)}}}}}'
        for n in range(20)
    )
    nodes = ",".join(f'{{"@type":"T{n % 20}","a{n % 20}":{n}}}' for n in range(5000))
    assert outcome(CONTEXT.format(types, nodes), JSON_LD) == 10_000


@pytest.mark.parametrize("backwards", [False, True])
def test_terms_that_define_each_other_are_bounded(backwards: bool) -> None:
    def text(number: int) -> str:
        defined = [f'"a{n + 1}":"a{n}:x"' for n in range(number)]
        order = reversed(defined) if backwards else defined
        return f'{{"@context":{{"a0":"http://e.org/",{",".join(order)}}},"a{number}:y":1}}'

    assert outcome(text(MAX_TERM_CHAIN - 1), JSON_LD) == 1
    said = f"more than {MAX_TERM_CHAIN} terms of a context define each other"
    assert outcome(text(30_000), JSON_LD) == said
    with pytest.raises(SyntaxError, match="Cyclic"):
        outcome('{"@context":{"a":"b:x","b":"a:x","c":"c:x"},"a":1}', JSON_LD)


@pytest.mark.parametrize("name", ["@vocab", "@base", "a1"])
def test_long_iris_of_a_context_are_bounded(name: str) -> None:
    def text(size: int, uses: int) -> str:
        nodes = ",".join(f'{{"@id":"x{n}","a1:{n}":1}}' for n in range(uses))
        return CONTEXT.format(f'"{name}":"http://e.org/{"x" * size}/"', nodes)

    assert isinstance(outcome(text(4000, 1000), JSON_LD), int)
    assert outcome(text(5000, 1), JSON_LD) == "an IRI of a context has more than 4,096 bytes"
    said = "the IRIs of its context are too long for the number of its terms"
    assert outcome(text(4000, 10_000), JSON_LD) == said
    grows = [{name: "http://e.org/"}, *({name: "y" * 4000} for _ in range(100))]
    if name != "a1":
        used = json.dumps({"@context": grows, "@graph": [{"@id": "x", "b": 1}] * 20_000})
        assert outcome(used, JSON_LD) == said


def test_a_context_of_a_mebibyte_is_refused() -> None:
    said = "a context has more than 1,048,576 bytes"
    assert outcome(CONTEXT.format(terms(40_000), ""), JSON_LD) == said
    assert outcome('{"@context":"' + "x" * (2 << 20), JSON_LD) == said


def test_other_syntaxes_are_bounded_by_their_triple_terms() -> None:
    text = b"<a:a> <a:b> " + b"<<( <a:c> <a:d> " * 101
    assert outcome(text, TURTLE) == "triple terms are nested more than 100 deep"
    assert outcome(b"<a:a> <a:b> <<( <a:c> <a:d> 1 )>> .", TURTLE) == 1


# ------------------------------------------------------------------ Turtle

DEEP = "its brackets are nested more than 1,000 deep"
LONG_BASE = "the base IRI has more than 8,192 characters"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<u:s> <u:p> " + "[<u:p> " * 1000 + "1" + "]" * 1000 + " .", 1001),
        ("<u:s> <u:p> " + "[<u:p> " * 1001 + "1" + "]" * 1001 + " .", DEEP),
        ("<u:s> <u:p> " + "(" * 9999, DEEP),
        ("<u:s> <u:p> [] , () . " * 2000, 4000),
        ('<u:s> <u:p> "' + "(" * 2000 + '" .', 1),
        ('<u:s> <u:p> "(\\"' + "(" * 2000 + '" .', 1),
        ('<u:s> <u:p> """(""' + "(" * 2000 + '\n"""@en .', 1),
        ("<u:s> <u:p> '" + "[" * 2000 + "' .", 1),
        ("<u:s> <u:p> '', '''" + "'[" * 2000 + "''' .", 2),
        ("# it's " + "(" * 2000 + '\n<u:s> <u:p> 1 . # "\n<u:s> <u:p> 2 .', 2),
        ("@prefix p: <u:> . <u:s> <u:p> " + "p:\\(, " * 2000 + "1 .", 2001),
        ("<u:s> <u:p#'> " + "(" * 1001, DEEP),
        ("@base <a/> .\n" * 4000 + "<s> <u:p> 1 .", 1),
        ("@base <a/> .\n" * 4200 + "<s> <u:p> 1 .", LONG_BASE),
        ("BASE<a/> \n" * 4200 + "<s> <u:p> 1 .", LONG_BASE),
        ("@base <http://a.org/> .\n" * 4200 + "<s> <u:p> 1 .", 1),
        ("@base </a/> .\n" * 4200 + "<s> <u:p> 1 .", 1),
        ("@base <a/:> .\n" * 4200 + "<s> <u:p> 1 .", LONG_BASE),
        ("@prefix : <u:> . <u:s> :base " + "<a/> , " * 9000 + "1 .", 9001),
        ("@base <u:" + "a" * 9000 + "> .", LONG_BASE),
    ],
)
def test_brackets_and_bases_of_turtle(text: str, said: int | str) -> None:
    assert outcome(text, TURTLE) == said


def test_an_iri_that_is_not_closed_is_open() -> None:
    scanner = TurtleScanner()
    for text, is_open in (("<u:a> <", False), ("u:b", True), ("\n<", True), ("> <<( '<a", False)):
        scanner.read(text.encode())
        assert scanner.in_iri is is_open

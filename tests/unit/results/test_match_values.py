"""Plain values of matches, and matches, programs and runs as one line of text."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.rdf.event import NUMBER, Timestamp

S = "http://example.org/s"
XSD = "http://www.w3.org/2001/XMLSchema#"

QUERY = """
PREFIX : <http://example.org/>
SELECT ?s ?v ?more WITHIN 1 MINUTE FROM STREAM s :s
WHERE { SEQ(A) DEFINE GPM A ON s { ?s :p ?v OPTIONAL { ?s :q ?more } } }
"""


def triple(predicate: str, value: ox.Literal | ox.NamedNode | ox.BlankNode) -> ox.Triple:
    iri = "http://example.org/"
    return ox.Triple(ox.NamedNode(iri + "x"), ox.NamedNode(iri + predicate), value)


def found(value: ox.Literal | ox.NamedNode | ox.BlankNode, query: str = QUERY) -> spaseq.Match:
    run = spaseq.compile(query, names=["q"]).start()
    (match,) = run.push(S, 5, [triple("p", value)])
    return match


def typed(text: str, kind: str) -> ox.Literal:
    return ox.Literal(text, datatype=ox.NamedNode(XSD + kind))


@pytest.mark.parametrize(
    ("term", "value"),
    [
        (typed("7", "integer"), 7),
        (typed("200", "unsignedByte"), 200),
        (typed("123456789012345678901234567890", "integer"), 123456789012345678901234567890),
        (typed("7.50", "decimal"), Decimal("7.5")),
        (typed("2.5E0", "double"), 2.5),
        (typed("0.5", "float"), 0.5),
        (typed("true", "boolean"), True),
        (typed("2026-01-02T03:04:05Z", "dateTime"), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (typed("2026-01-02T03:04:05", "dateTime"), datetime(2026, 1, 2, 3, 4, 5)),
        (typed("PT90S", "dayTimeDuration"), timedelta(seconds=90)),
        (ox.Literal("text"), "text"),
        (ox.NamedNode("urn:a"), "urn:a"),
    ],
)
def test_values_of_variables_are_those_of_python(term: Any, value: object) -> None:
    match = found(term)
    assert match["v"] == value
    assert type(match["v"]) is type(value)
    assert match.values == {"s": "http://example.org/x", "v": value, "more": None}
    assert match.bindings["v"] == term


@pytest.mark.parametrize(
    "term",
    [typed("seven", "integer"), typed("P1Y", "yearMonthDuration"), typed("2026", "gYear")],
)
def test_terms_without_a_value_in_python_stay_terms(term: ox.Literal) -> None:
    assert found(term)["v"] == term


def test_blank_nodes_stay_terms() -> None:
    assert isinstance(found(ox.BlankNode("b"))["v"], ox.BlankNode)


def test_strings_with_a_language_keep_it_and_the_direction() -> None:
    match = found(ox.Literal("chat", language="fr"))
    value = match["v"]
    assert isinstance(value, spaseq.LangString)
    assert (value, value.lang, value.direction) == ("chat", "fr", None)
    directed = found(ox.Literal("x", language="ar", direction=ox.BaseDirection("rtl")))["v"]
    assert (directed, directed.lang, directed.direction) == ("x", "ar", "rtl")
    assert repr(value) == "LangString('chat', 'fr')"
    assert repr(directed) == "LangString('x', 'ar', 'rtl')"


def test_a_lang_string_is_copied_and_pickled_with_its_tag() -> None:
    value = spaseq.LangString("x", "ar", "rtl")
    for again in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert (type(again), repr(again)) == (spaseq.LangString, repr(value))


@pytest.mark.parametrize(
    "term",
    [
        ox.Literal("x", language="ar", direction=ox.BaseDirection("rtl")),
        ox.Literal("x", language="en"),
        ox.Literal("x"),
        typed("7", "integer"),
        typed("7.50", "decimal"),
        typed("2026-01-02T03:04:05Z", "dateTime"),
        typed("2026-01-02", "date"),
        typed("PT90S", "dayTimeDuration"),
    ],
)
def test_the_value_of_a_match_binds_a_variable(term: ox.Literal) -> None:
    query = QUERY.replace("?more }", "?more } FILTER(?v = ?wanted)")
    run = spaseq.compile(query).start(bind={"wanted": found(term)["v"]})
    for time, other in enumerate(
        (term, ox.Literal("x", language="ar"), typed("PT91S", "dayTimeDuration"))
    ):
        assert len(run.push(S, time, [triple("p", other)])) == (other == term)


def test_unbound_variables_are_none_and_unknown_ones_an_error() -> None:
    match = found(ox.Literal(7))
    assert match["more"] is None
    assert "more" not in match.bindings
    assert list(match) == ["s", "v", "more"]
    assert "more" in match
    assert "other" not in match
    for name, message in {
        "other": "a match of q has no variable other; it has s, v and more",
        "mor": "a match of q has no variable mor; it has s, v and more (did you mean `more`?)",
        "?v": "a match of q has no variable ?v; it has s, v and more "
        "(names are written without a question mark)",
    }.items():
        with pytest.raises(KeyError) as caught:
            match[name]
        assert caught.value.args == (message,)
    with pytest.raises(KeyError, match="a variable is given by its name, a str, and not by 0"):
        match[0]  # type: ignore[index]


@pytest.mark.parametrize(
    ("form", "where"), [("ASK", "match.boolean"), ("CONSTRUCT { ?s :r ?v }", "match.graph")]
)
def test_other_forms_have_no_variables(form: str, where: str) -> None:
    match = found(ox.Literal(7), QUERY.replace("SELECT ?s ?v ?more", form))
    assert match.values == {}
    with pytest.raises(KeyError, match=f"is in {where}"):
        match["v"]
    assert len(repr(match).splitlines()) == 1
    expected = "True" if form == "ASK" else "1 triple"
    assert repr(match) == f"<Match of 'q' from 5 to 5: {expected}>"


def test_matches_of_every_kind_have_the_same_values() -> None:
    """Lazily decoded, decoded, copied for an equal query, unpickled, and made by hand."""
    program = spaseq.compile([QUERY, QUERY], names=["q", "r"])
    lazy, copied = program.start().push(S, 5, [triple("p", ox.Literal(7))])
    hand = spaseq.Match("q", lazy.start, lazy.end, dict(lazy.bindings), ())
    expected = {"s": "http://example.org/x", "v": 7}
    assert hand.values == expected
    for match in (lazy, copied, pickle.loads(pickle.dumps(lazy))):
        assert match.values == expected | {"more": None}


def test_results_of_groups_have_values() -> None:
    query = """
    PREFIX : <http://example.org/>
    SELECT ?s (COUNT(*) AS ?n) (AVG(?v) AS ?mean) WITHIN 1 MINUTE FROM STREAM s :s
    WHERE { SEQ(A) DEFINE GPM A ON s { ?s :p ?v } }
    GROUP BY ?s OVER 10 SECONDS
    """
    run = spaseq.compile(query).start()
    found = []
    for time, value in enumerate((1, 2)):
        found += run.push(S, time, [triple("p", ox.Literal(value))])
    match = found[-1]
    assert match.values == {"s": "http://example.org/x", "n": 2, "mean": Decimal("1.5")}


def test_each_access_makes_its_own_dict() -> None:
    match = found(ox.Literal(7))
    match.values["v"] = 8
    assert match["v"] == match.values["v"] == 7


# ------------------------------------------------------------------ as text


def test_a_match_is_one_line() -> None:
    assert repr(found(ox.Literal("a\nb\u2028c"))) == (
        "<Match of 'q' from 5 to 5: s='http://example.org/x', v='a\\nb\\u2028c', more=None>"
    )
    for term in (ox.Literal("x\n\u2028", datatype=ox.NamedNode("urn:t")), ox.BlankNode("b")):
        assert len(repr(found(term)).splitlines()) == 1


def test_long_matches_are_cut() -> None:
    long = repr(found(ox.Literal("x" * 10**6)))
    assert len(long) < 200
    assert "xxx…, more=None>" in long
    now = Timestamp(0, NUMBER)
    wide = spaseq.Match("q", now, now, {f"v{n}": ox.Literal(n) for n in range(20)}, ())
    assert repr(wide).endswith(", v11=11, … (20 variables)>")
    assert repr(spaseq.Match("q", now, now, {}, ())) == "<Match of 'q' from 0 to 0: no variables>"


class Cells(HTMLParser):
    """The texts of the elements of a document, and its tags."""

    def __init__(self, document: str):
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_notebooks_show_a_table_in_which_data_is_no_markup() -> None:
    text = "<script>alert('&amp;')</script>"
    shown = Cells(found(ox.Literal(text))._repr_html_())
    assert "script" not in shown.tags
    assert shown.tags.count("tr") == 3
    assert shown.texts == ["q, 5 to 5", "s", "http://example.org/x", "v", text, "more"]
    tagged = Cells(found(ox.Literal("chat", language="fr"))._repr_html_())
    assert "chat@fr" in tagged.texts
    built = QUERY.replace("SELECT ?s ?v ?more", "CONSTRUCT { ?s :r ?v }")
    shown = Cells(found(ox.Literal(text), built)._repr_html_())
    assert "script" not in shown.tags
    assert shown.texts[1].endswith(f'"{text}"')
    inner = ox.Triple(ox.NamedNode("urn:a"), ox.NamedNode("urn:b"), ox.Literal("c"))
    nested = ox.Triple(ox.NamedNode("urn:a"), ox.NamedNode("urn:b"), inner)
    text = '<<( <urn:a> <urn:b> <<( <urn:a> <urn:b> "c" )>> )>>'
    assert text in Cells(found(nested)._repr_html_()).texts
    assert text in repr(found(nested))
    assert Cells(found(nested, built)._repr_html_()).texts[1].endswith(f" {text}")
    asked = found(ox.Literal(7), QUERY.replace("SELECT ?s ?v ?more", "ASK"))
    assert "True" in Cells(asked._repr_html_()).texts


def test_programs_and_runs_are_one_line() -> None:
    program = spaseq.compile(QUERY, names=["q"])
    assert repr(program) == f"<Program of query 'q' over {S}>"
    run = program.start()
    assert repr(run) == f"<Run of query 'q' over {S}; 0 events>"
    for time in range(3):
        run.push(S, time, [triple("p", ox.Literal(7))])
        events = f"{time + 1} event{'s' if time else ''}"
        assert repr(run) == f"<Run of query 'q' over {S}; {events}>"
    assert run.stats["events"] == 3
    run.finish()
    assert repr(run) == f"<Run of query 'q' over {S}; 3 events, finished>"
    with program.start() as closed:
        pass
    assert repr(closed) == f"<Run of query 'q' over {S}; 0 events, stopped>"


def test_many_queries_are_cut() -> None:
    program = spaseq.compile([QUERY] * 6)
    assert repr(program) == (
        f"<Program of 6 queries {', '.join(map(repr, program.names[:4]))}, … over {S}>"
    )
    run = program.start()
    run.remove(program.names[0])
    assert repr(run).startswith(f"<Run of 5 queries {program.names[1]!r}, ")


def test_the_text_of_a_run_does_not_need_its_lock() -> None:
    from concurrent.futures import ThreadPoolExecutor

    run = spaseq.compile(QUERY).start()

    def events() -> Any:
        with ThreadPoolExecutor(1) as other:
            assert repr(run) == other.submit(repr, run).result()
        return
        yield

    assert list(run.push_batch(events())) == []

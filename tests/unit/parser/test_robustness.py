"""Every text is either parsed or refused with positions and hints."""

from __future__ import annotations

import pyoxigraph
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.errors import Diagnostic, QuerySyntaxError
from spaseq.parser import format_query, parse
from spaseq.parser.iri import flaw, is_absolute
from spaseq.parser.language_tag import is_language_tag

_QUERY = """PREFIX c: <http://e/> SELECT ?a (COUNT(B) AS ?n) WITHIN 0.5 SECONDS
PARTITION BY (?a) FROM STREAM S1 <http://e/s> EMIT LAST
WHERE { SEQ (A, (B & C)+; !D{2,} : E?)
DEFINE GPM A ON S1, S2 AT ?t { ?a c:p/^c:q*|!(a|^c:r) (1 -2 .5 "x\\u0041"@en [ c:q 'a'^^c:t ]) . .
FILTER (?x <?y+1-2*3 && ?t > PREV(?t, 0) || COUNT(DISTINCT Day) > 3) .
{ SELECT ?x (COUNT(*) AS ?k) { ?x ?y _:z } GROUP BY ?x HAVING (COUNT(*) > 3) ORDER BY DESC(?x) } }
} AFTER MATCH KEEP ALL LIMIT 5"""
_WORDS = """{ } ( ) [ ] < > " ' \\ \\u00 ? ! ; , . : && || | & = @en ^^ 1 -1 .5e SEQ DEFINE FILTER
GPM a _:b # é \x00 \u2028 << SELECT COUNT( PREV( * LIMIT WITHIN AS \\uD800 NOT IN \\U0001F600"""
_PIECES = st.sampled_from(_WORDS.split(" "))
_EDITS = st.tuples(
    st.integers(0, len(_QUERY)), st.sampled_from([0, 0, 1, 1, 2, 5, 20]), _PIECES | st.just("")
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_EDITS, min_size=1, max_size=4))
def test_edited_queries(edits: list[tuple[int, int, str]]) -> None:
    text = _QUERY
    for at, length, piece in edits:
        text = f"{text[:at]} {piece} {text[at + length :]}"
    findings: tuple[Diagnostic, ...] = ()
    try:
        query = parse(text)
        assert parse(format_query(query)) == query
    except QuerySyntaxError as error:
        findings = error.diagnostics
    for finding in findings:
        assert 0 <= finding.span.start <= finding.span.end <= len(text)
        assert finding.message
        assert finding.hint


_IRI_PARTS = """// [::1] [x] [ ] :80 :8x / ? # @ %41 %zz a é ' ( : .. $
\u200e \ue000 \uffff \U000e0001"""


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["http:", "urn:", "a+b:", "http://", "1:"]),
    st.lists(st.sampled_from(_IRI_PARTS.split()), max_size=5),
)
def test_iris_are_those_that_the_engine_s_terms_can_hold(scheme: str, parts: list[str]) -> None:
    iri = scheme + "".join(parts)
    assert (is_absolute(iri) and not flaw(iri)) == _holds(lambda: pyoxigraph.NamedNode(iri))


_SUBTAGS = "en e x i a klingon abcd abcde abc 1996 123 12 abcdefghi DE latn a1b2 GB oed"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(_SUBTAGS.split()), min_size=1, max_size=5))
def test_language_tags_are_those_that_the_engine_s_terms_can_hold(subtags: list[str]) -> None:
    tag = "-".join(subtags)
    assert is_language_tag(tag) == _holds(lambda: pyoxigraph.Literal("", language=tag))


def _holds(make: object) -> bool:
    try:
        make()  # type: ignore[operator]
    except ValueError:
        return False
    return True

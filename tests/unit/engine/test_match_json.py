"""Matches of the compiled core write the JSON that their data would give."""

from __future__ import annotations

import json

import pyoxigraph as ox
import pytest
from core_runs import encoded
from engine_runs import EX, S
from hypothesis import example, given
from hypothesis import strategies as st

import spaseq
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Fact, Term, Timestamp
from spaseq.results import Match

QUERY = f"""PREFIX : <{EX}>
SELECT ?k ?v ?w ?x WITHIN 100 SECONDS FROM STREAM s :s
WHERE {{
  SEQ(A : B+)
  DEFINE GPM A ON s {{ ?k :a ?v OPTIONAL {{ ?k :w ?w }} }}
  DEFINE GPM B ON s {{ ?k :b ?x }}
}}"""
K = ox.NamedNode(EX + "k")

values: st.SearchStrategy[Term] = st.one_of(
    st.builds(ox.Literal, st.text(st.characters(exclude_categories=["Cs"]))),
    st.builds(ox.Literal, st.text('"\\@^-\n\t\x00\x1f\x7f<>é')),
    st.builds(
        lambda text, tag: ox.Literal(text, language=tag),
        st.text('a"\\@-', max_size=4),
        st.sampled_from(["en", "de-AT", "zh-Hant-tw"]),
    ),
    st.builds(
        lambda text, way: ox.Literal(text, language="ar", direction=way),
        st.text('x"--', max_size=4),
        st.sampled_from([ox.BaseDirection.LTR, ox.BaseDirection.RTL]),
    ),
    st.builds(
        lambda text, name: ox.Literal(text, datatype=ox.NamedNode(EX + name)),
        st.text('1.5e"^^<>', max_size=6),
        st.sampled_from(["t", "é", "--ltr"]),
    ),
    st.builds(lambda number: ox.Literal(number), st.integers()),
    st.just(ox.NamedNode(EX + "ü")),
    st.just(ox.BlankNode("z")),
)
moments = st.one_of(
    st.integers(-(2**62), 2**62), st.integers(-10, 10).map(lambda n: n * 1_000_000), st.just(0)
)


def found(events: list[Event]) -> list[Match]:
    run = spaseq.compile(QUERY).start()
    matches = list(run.push_batch(encoded(run, events)))
    assert run.queries[0].native.matches is not None
    return matches


def event(micros: int, domain: str, fact: Fact, *more: Fact, name: str | None = None) -> Event:
    written = ox.Literal(micros) if domain == NUMBER else None
    graph = ox.NamedNode(EX + name) if name else None
    return Event(S, Timestamp(micros, domain, written), 0, [fact, *more], graph)


@example(K, K, False, 9_503_523_469_439_999, NUMBER)  # more than a float holds exactly
@given(values, values, st.booleans(), moments, st.sampled_from([NUMBER, DATE_TIME]))
def test_a_match_is_written_as_its_data_is(
    one: Term, other: Term, bound: bool, micros: int, domain: str
) -> None:
    first: list[Fact] = [(K, ox.NamedNode(EX + "a"), one)]
    if bound:
        first.append((K, ox.NamedNode(EX + "w"), other))
    matches = found(
        [
            event(micros, domain, *first, name="g/1"),
            event(micros + 1_500_000, domain, (K, ox.NamedNode(EX + "b"), other)),
            event(micros + 2_000_000, domain, (K, ox.NamedNode(EX + "b"), one)),
        ]
    )
    assert len(matches) == 3
    # Before anybody has looked at their terms, and when somebody has.
    written = [match.to_json() for match in matches]
    assert written == [json.dumps(m.to_dict(), ensure_ascii=False) for m in matches]
    assert written == [match.to_json() for match in matches]


@pytest.mark.parametrize("year", [-44, 1, 999, 9999, 10000, 290000])
def test_years_of_any_length(year: int) -> None:
    micros = int((year - 1970) * 365.2425 * 86_400_000_000)
    matches = found(
        [
            event(micros, DATE_TIME, (K, ox.NamedNode(EX + "a"), K)),
            event(micros + 1, DATE_TIME, (K, ox.NamedNode(EX + "b"), K)),
        ]
    )
    assert [m.to_json() for m in matches] == [
        json.dumps(m.to_dict(), ensure_ascii=False) for m in matches
    ]
    assert len(matches) == 1


@pytest.mark.parametrize("micros", [8996447894114129123, -8571721476609585565])
def test_times_that_are_no_floats_are_rounded_once(micros: int) -> None:
    for moment in range(micros, micros + 100):
        (match,) = found(
            [
                event(moment, NUMBER, (K, ox.NamedNode(EX + "a"), K)),
                event(moment + 1, NUMBER, (K, ox.NamedNode(EX + "b"), K)),
            ]
        )
        assert match.to_json() == json.dumps(match.to_dict(), ensure_ascii=False)


def test_a_version_of_the_kb_is_told() -> None:
    text = QUERY.replace("WHERE", f"FROM <{EX}kb> WHERE").replace(
        "{ ?k :b ?x }", f"{{ ?k :b ?x GRAPH <{EX}kb> {{ ?x a :Known }} }}"
    )
    a, b, x = (ox.NamedNode(EX + name) for name in "abx")
    kind = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    facts = [ox.Triple(x, kind, ox.NamedNode(EX + "Known"))]
    run = spaseq.compile(text).start(kb={EX + "kb": facts})
    run.kb.replace({EX + "kb": facts})
    events = [event(0, NUMBER, (a, a, x)), event(1_000_000, NUMBER, (a, b, x))]
    (match,) = list(run.push_batch(encoded(run, events)))
    assert match.kb_version == 2
    assert match.to_json() == json.dumps(match.to_dict(), ensure_ascii=False)

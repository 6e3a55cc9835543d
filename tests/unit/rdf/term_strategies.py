"""Random terms of every kind, with all that makes their texts hard to read."""

from __future__ import annotations

import pyoxigraph as ox
from hypothesis import strategies as st

from tests.unit.rdf.literals import TERMS, XSD

HARD = ('"', '"@en', '"^^<http://e/t>', "\\", "\n", "\0", "<", "_:b", "@", "^^", "𐀀", "\u0301", "")
"""Pieces of lexical forms that look like the syntax around them."""

DATATYPES = (XSD + "string", XSD + "integer", XSD + "dateTime", "http://e/t", "http://e/t@en")

_character = st.characters(exclude_categories=["Cs"])
forms = st.lists(st.sampled_from(HARD) | st.text(_character, max_size=6), max_size=4).map("".join)
iris = st.text("abcé𐀀/@:", max_size=24).map(lambda path: ox.NamedNode(f"http://e/{path}"))
blanks = st.text("abc019", min_size=1, max_size=20).map(ox.BlankNode)
languages = st.sampled_from(("en", "EN", "de-CH", "de-ch", "x-a-b"))
directed = st.builds(
    lambda form, language, direction: ox.Literal(form, language=language, direction=direction),
    forms,
    languages,
    st.sampled_from((ox.BaseDirection.LTR, ox.BaseDirection.RTL)),
)
literals = st.one_of(
    forms.map(ox.Literal),
    st.builds(lambda form, language: ox.Literal(form, language=language), forms, languages),
    directed,
    st.builds(
        lambda form, datatype: ox.Literal(form, datatype=ox.NamedNode(datatype)),
        forms,
        st.sampled_from(DATATYPES),
    ),
)
terms = st.one_of(iris, blanks, literals, st.sampled_from(TERMS))
facts = st.lists(st.tuples(iris | blanks, iris, terms), max_size=12)

"""Permanent terms: each is preserved, and each has one number."""

from __future__ import annotations

import gc

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.native._terms import Dictionary, EventBatch, term_of, text_of
from tests.unit.rdf.literals import TERMS
from tests.unit.rdf.term_strategies import terms


def _lexical(term: ox.NamedNode | ox.BlankNode | ox.Literal) -> int:
    return len(term.value.encode())


@given(terms)
def test_a_term_comes_back_from_its_text(term) -> None:
    assert term_of(text_of(term), _lexical(term)) == term


@given(terms, terms)
def test_terms_are_equal_exactly_when_their_texts_are(one, other) -> None:
    assert (text_of(one) == text_of(other)) == (one == other)


@given(st.lists(terms, max_size=30))
def test_equal_terms_have_equal_numbers_and_others_have_not(some) -> None:
    dictionary = Dictionary()
    numbers = [dictionary.intern(term) for term in some]
    assert 0 not in numbers
    assert len(dictionary) == len(set(numbers)) == len(set(some))
    for number, term in zip(numbers, some, strict=True):
        assert dictionary.term(number) == term
        assert dictionary.intern(term) == number
    assert len({(number, term) for number, term in zip(numbers, some, strict=True)}) == len(
        dictionary
    )


def test_every_kind_of_literal_comes_back() -> None:
    dictionary = Dictionary()
    numbers = {term: dictionary.intern(term) for term in TERMS}
    assert [dictionary.term(number) for number in numbers.values()] == list(numbers)


def test_the_text_is_n_quads_with_its_escapes_resolved() -> None:
    datatype = ox.NamedNode("http://e/t")
    assert text_of(ox.NamedNode("http://e/é")) == "<http://e/é>".encode()
    assert text_of(ox.BlankNode("b")) == b"_:b"
    assert text_of(ox.Literal('a"\n\\')) == b'"a"\n\\"'
    assert text_of(ox.Literal("a", language="EN-us")) == b'"a"@en-us'
    assert text_of(ox.Literal("1", datatype=datatype)) == b'"1"^^<http://e/t>'
    rightwards = ox.Literal("a", language="ar", direction=ox.BaseDirection.RTL)
    assert text_of(rightwards) == b'"a"@ar--rtl'


def test_a_term_is_made_once() -> None:
    dictionary = Dictionary()
    number = dictionary.intern(ox.Literal("a"))
    assert dictionary.term(number) is dictionary.term(number)


def test_numbers_stay_while_the_dictionary_grows() -> None:
    dictionary = Dictionary()
    some = [ox.Literal("x" * (n % 70) + str(n)) for n in range(5_000)]
    numbers = [dictionary.intern(term) for term in some]
    assert sorted(numbers) == list(range(1, 5_001))
    assert [dictionary.intern(term) for term in some] == numbers
    assert [dictionary.term(number) for number in numbers] == some


def test_a_term_longer_than_a_chunk_of_memory() -> None:
    dictionary = Dictionary()
    some = [ox.Literal(character * (1 << 17)) for character in "ab"]
    numbers = [dictionary.intern(term) for term in some]
    assert [dictionary.term(number) for number in numbers] == some


def test_the_version_counts_additions() -> None:
    dictionary = Dictionary()
    before = dictionary.version
    dictionary.intern(ox.Literal("a"))
    dictionary.intern(ox.Literal("a"))
    assert dictionary.version == before + 1


def test_terms_outlive_their_dictionary() -> None:
    dictionary = Dictionary()
    term = dictionary.term(dictionary.intern(ox.Literal("x" * 100)))
    del dictionary
    gc.collect()
    assert term.value == "x" * 100


@pytest.mark.parametrize("thing", ["a", None, 1, ox.DefaultGraph()])
def test_what_is_no_term_has_no_number(thing) -> None:
    dictionary = Dictionary()
    with pytest.raises((AttributeError, TypeError)):
        dictionary.intern(thing)
    assert len(dictionary) == 0


@pytest.mark.parametrize("number", [0, 3, 1 << 20, 1 << 31])
def test_a_number_of_no_term_is_an_error(number: int) -> None:
    dictionary = Dictionary()
    for term in TERMS[:2]:
        dictionary.intern(term)
    with pytest.raises(IndexError, match="no permanent term"):
        dictionary.term(number)


def test_many_terms_are_all_found_again() -> None:
    """However often the filter in front of the table grows."""
    dictionary = Dictionary()
    some = [ox.NamedNode(f"http://example.org/{n}") for n in range(20_000)]
    numbers = [dictionary.intern(term) for term in some]
    assert len(set(numbers)) == len(some)
    assert [dictionary.intern(term) for term in some] == numbers


@pytest.mark.parametrize("kinds", [1, 3, 100])
def test_a_batch_finds_the_literals_that_are_permanent_and_no_others(kinds: int) -> None:
    """However many datatypes the permanent ones have, and where theirs are the same."""
    dictionary = Dictionary()
    types = [ox.NamedNode(f"urn:t{n}") for n in range(kinds)]
    numbers = {
        (form, datatype): dictionary.intern(ox.Literal(form, datatype=datatype))
        for datatype in types
        for form in ("", "1", "long enough to be more than a few bytes")
    }
    batch = EventBatch(dictionary)
    for (form, datatype), number in numbers.items():
        assert batch.number(ox.Literal(form, datatype=datatype)) == number
        for other in (ox.Literal(form), ox.Literal(form + ">"), ox.Literal(form, language="en")):
            assert batch.number(other) > len(dictionary)
    assert batch.number(ox.Literal("1", datatype=ox.NamedNode("urn:other"))) > len(dictionary)


@given(st.lists(st.integers(0, 70), min_size=1, max_size=60), st.sampled_from(["/", "#", ":", "."]))
def test_a_term_is_found_whatever_its_namespace(sizes: list[int], mark: str) -> None:
    """Names of all lengths, of one namespace and of as many as there are names."""
    dictionary = Dictionary()
    iris = [ox.NamedNode(f"x:{'n' * size}{mark}{n}") for n, size in enumerate(sizes)]
    iris += [ox.NamedNode(f"http://e.org/{n}{mark}{'l' * size}") for n, size in enumerate(sizes)]
    numbers = [dictionary.intern(iri) for iri in iris]
    batch = EventBatch(dictionary)
    assert [batch.number(iri) for iri in iris] == numbers
    assert batch.number(ox.NamedNode("x:other")) not in numbers

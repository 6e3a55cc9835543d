"""Events in a batch: the facts are preserved, and separate from those of earlier events."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.encoded import encoded_events
from spaseq.rdf.event import DATE_TIME, NUMBER
from spaseq.rdf.native._framing import Minter
from spaseq.rdf.native._terms import Dictionary, EventBatch, requests
from tests.unit.rdf.literals import TERMS, literal
from tests.unit.rdf.term_strategies import facts, terms

LOCAL = 1 << 31
EX = "http://e/"
A, B, P = (ox.NamedNode(EX + name) for name in "abp")


def _is_numeral(number: int) -> bool:
    return number >> 29 == 0b011


def _added(dictionary: Dictionary, *events) -> EventBatch:
    batch = EventBatch(dictionary)
    for event in events:
        batch.add(event)
    return batch


@given(st.lists(facts, max_size=5), st.lists(terms, max_size=8))
def test_facts_come_out_as_they_went_in(events, permanent) -> None:
    dictionary = Dictionary()
    for term in permanent:
        dictionary.intern(term)
    size = len(dictionary)
    batch = _added(dictionary, *events)
    assert len(batch) == len(events)
    for index, event in enumerate(events):
        assert batch.facts(index) == list(dict.fromkeys(event))
        assert batch.size(index) == len(event)
    assert batch.total() == batch.statements == sum(map(len, events))
    assert len(dictionary) == size


@given(facts, st.lists(terms, max_size=8))
def test_equal_terms_have_equal_numbers_local_or_permanent(event, permanent) -> None:
    dictionary = Dictionary()
    numbers = {term: dictionary.intern(term) for term in permanent}
    batch = _added(dictionary, event, event)
    used = {term for fact in event for term in fact}
    own = {term for term in used - numbers.keys() if _is_numeral(batch.number(term))}
    assert batch.terms == len(used - numbers.keys() - own)
    for term in used:
        number = batch.number(term)
        assert batch.term(number) == term
        assert bool(number & LOCAL) == (term not in numbers and term not in own)
        assert number == numbers.get(term, number)
        assert term not in own or number == EventBatch(Dictionary()).number(term)
    assert len({batch.number(term) for term in used}) == len(used)


@given(st.lists(facts, min_size=1, max_size=4), facts)
def test_a_cleared_batch_is_like_a_new_one(before, after) -> None:
    dictionary = Dictionary()
    batch = _added(dictionary, *before)
    batch.clear()
    assert len(batch) == batch.terms == batch.statements == batch.total() == 0
    batch.add(after)
    assert batch.facts(0) == list(dict.fromkeys(after))
    assert batch.terms == _added(Dictionary(), after).terms


def test_a_cleared_batch_asks_for_no_memory() -> None:
    batch = EventBatch(Dictionary())
    events = [[(ox.NamedNode(f"{EX}{n}/{i}"), P, ox.Literal(i)) for i in range(n)] for n in (90, 9)]

    def fill() -> None:
        batch.clear()
        for _ in range(100):
            for event in events:
                batch.add(event)

    fill()
    before = requests()
    for _ in range(3):
        fill()
    assert requests() == before


@pytest.mark.parametrize("term", [A, ox.Literal(5), literal("-1.5", "decimal")])
def test_what_becomes_permanent_between_two_events_of_a_batch_is_one_term_there(term) -> None:
    dictionary = Dictionary()
    batch = _added(dictionary, [(A, P, term)])
    own = batch.number(term)
    permanent = dictionary.intern(term)
    batch.add([(A, P, term)])
    assert batch.number(term) == own != permanent
    assert batch.facts(1) == [(A, P, term)]
    batch.clear()
    assert batch.number(term) == permanent


def test_numbers_that_become_permanent_are_so_in_a_batch_that_is_made_to_fit() -> None:
    dictionary = Dictionary()
    known, other = ox.Literal(5), literal("0.25", "decimal")
    batch = EventBatch(dictionary)
    batch.add([(A, P, known), (A, P, other)], 5, stamp=known)
    before = batch.facts(0)
    permanent = dictionary.intern(known)
    batch.refit()
    assert batch.number(known) == permanent
    assert _is_numeral(batch.number(other))
    assert batch.facts(0) == before
    assert batch.time(0).term == known
    assert batch.n_triples(0).count(b'"5"^^<http://www.w3.org/2001/XMLSchema#integer>') == 1
    other_batch = EventBatch(dictionary)
    Minter(1).copy(batch, 0, other_batch)
    assert other_batch.facts(0) == before
    assert other_batch.terms == batch.terms


def test_numbers_that_become_permanent_between_two_batches_are_so_in_the_later_one() -> None:
    dictionary = Dictionary()
    number = ox.Literal(5)
    batch = _added(dictionary, [(A, P, number)])
    permanent = dictionary.intern(number)
    later = EventBatch(dictionary)
    Minter(1).copy(batch, 0, later)
    assert later.facts(0) == batch.facts(0)
    assert later.number(number) == permanent
    assert later.terms == 2


def test_an_event_that_fails_is_not_half_there() -> None:
    batch = _added(Dictionary(), [(A, P, B)])

    def broken():
        yield A, P, A
        yield B, P, ox.Literal("x")
        raise OSError

    for bad, error in (
        (broken(), OSError),
        ([(A, P, B), (A, P)], ValueError),
        ([(A, P, B), (A, P, "no term")], AttributeError),
    ):
        with pytest.raises(error):
            batch.add(bad)
        assert len(batch) == batch.statements == batch.total() == 1
    batch.add([(B, P, A)])
    assert [batch.facts(index) for index in (0, 1)] == [[(A, P, B)], [(B, P, A)]]


def test_a_name_or_stamp_that_is_no_term_leaves_the_batch_as_it_was() -> None:
    batch = _added(Dictionary(), [(A, P, B)])
    for wrong in ({"name": 7}, {"stamp": 7}):
        with pytest.raises(AttributeError):
            batch.add([(A, P, B)], **wrong)
    assert len(batch) == batch.statements == 1


def test_the_parts_of_an_event() -> None:
    batch = EventBatch(Dictionary(), "urn:s", "file")
    batch.add([(A, P, B)], micros=5, ordinal=3, name=B, statements=9)
    batch.add([], micros=-7, stamp=ox.Literal("-7.0"), name=ox.BlankNode("g"))
    assert [batch.micros(i) for i in (0, 1)] == [5, -7]
    assert [batch.ordinal(i) for i in (0, 1)] == [3, 0]
    assert [batch.name(i) for i in (0, 1)] == [B, ox.BlankNode("g")]
    assert [batch.size(i) for i in (0, 1)] == [9, 0]
    assert [batch.line(i) for i in (0, 1)] == [0, 0]
    assert batch.total() == 9
    assert batch.facts(1) == []
    assert (batch.stream, batch.file) == ("urn:s", "file")
    assert _added(Dictionary(), []).name(0) is None


def test_a_number_is_a_time_as_written_and_a_date_in_canonical_form() -> None:
    batch = EventBatch(Dictionary())
    written = literal("1.50", "decimal")
    batch.add([], micros=1_500_000, stamp=written)
    batch.add([], micros=2_000_000)
    date = literal("2020-01-01T01:00:00+01:00", "dateTime")
    batch.add([], micros=1_577_836_800_000_000, stamp=date, dated=True)
    times = [batch.time(i) for i in range(3)]
    assert [time.domain for time in times] == [NUMBER, NUMBER, DATE_TIME]
    assert times[0].term == written
    assert times[1].term.value == "2"
    assert times[2].term == literal("2020-01-01T00:00:00Z", "dateTime")


@pytest.mark.parametrize("index", [-1, 2, 1 << 40])
def test_an_event_that_is_not_there_is_an_error(index: int) -> None:
    batch = _added(Dictionary(), [], [])
    for ask in (batch.facts, batch.name, batch.time, batch.micros, batch.size, batch.line):
        with pytest.raises(IndexError, match="the batch has 2 events"):
            ask(index)


@pytest.mark.parametrize("number", [0, 2, LOCAL, LOCAL + 3, 1 << 30, 2 * LOCAL - 1])
def test_a_number_of_no_term_is_an_error(number: int) -> None:
    dictionary = Dictionary()
    dictionary.intern(A)
    batch = _added(dictionary, [(A, P, B)])
    assert batch.terms == 2
    with pytest.raises(IndexError, match="term"):
        batch.term(number)


def test_batches_grow_as_far_as_they_must() -> None:
    chosen = [(ox.NamedNode(f"{EX}{n}"), P, TERMS[n % len(TERMS)]) for n in range(3_000)]
    batch = _added(Dictionary(), *([fact] for fact in chosen), chosen)
    assert [batch.facts(i)[0] for i in range(3_000)] == chosen
    assert batch.facts(3_000) == chosen


def test_an_event_keeps_its_batch() -> None:
    events = list(encoded_events(_added(Dictionary(), [(A, P, B)], [(B, P, ox.Literal("x"))])))
    assert [event.facts for event in events] == [((A, P, B),), ((B, P, ox.Literal("x")),)]


def test_a_batch_is_made_to_fit_a_dictionary_that_has_grown() -> None:
    """Terms that became permanent have their numbers there, in triples, names and look-ups."""
    iris = [ox.NamedNode(f"http://example.org/{n}") for n in range(6)]
    dictionary = Dictionary()
    dictionary.intern(iris[1])
    batch = EventBatch(dictionary)
    batch.add([(iris[0], iris[1], iris[2]), (iris[3], iris[1], iris[0])], 5, name=iris[4])
    before, serial = batch.facts(0), batch.serial
    local = batch.number(iris[3])
    for iri in (iris[0], iris[4], iris[5]):
        dictionary.intern(iri)
    batch.refit()
    assert batch.facts(0) == before
    assert batch.name(0) == iris[4]
    assert batch.serial != serial, "what was found in it before is not known of it now"
    for iri in (iris[0], iris[4], iris[5]):
        assert batch.number(iri) == dictionary.intern(iri)
    assert batch.number(iris[3]) == local
    serial = batch.serial
    batch.refit()
    assert batch.serial == serial

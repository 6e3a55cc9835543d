"""Matches of the compiled core, decoded, against all choices of events enumerated by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import pyoxigraph as ox
import pytest
from core_runs import encoded
from engine_runs import EX, S
from hypothesis import example, given
from hypothesis import strategies as st

import spaseq
from spaseq.rdf.event import NUMBER, Event, Timestamp
from spaseq.results import term_to_json

Row = dict[str, str]
Drawn = tuple[str, Row, bool]
"""A step's letter, its row with the empty string for unbound columns, whether it has a name."""

DEFINITIONS = """
  DEFINE GPM A ON s { ?k :a ?v OPTIONAL { ?k :w ?w } }
  DEFINE GPM B ON s { ?k :b ?x OPTIONAL { ?k :l ?l } %s }
  DEFINE GPM C ON s { ?k :c ?y }
"""
PREDICATES = {"v": "a", "w": "w", "x": "b", "l": "l", "y": "c"}
COLUMNS = ("y", "k", "l", "v", "x", "w")


def query(sequence: str, condition: str = "") -> str:
    used = [line for line in DEFINITIONS.splitlines() if line and f"GPM {line[13]}" in line]
    defined = "\n".join(line for line in used if line[13] in sequence) % (
        (condition,) if "B" in sequence else ()
    )
    columns = [name for name in COLUMNS if name != "y" or "C" in sequence]
    return f"""PREFIX : <{EX}>
SELECT {" ".join("?" + name for name in columns)} WITHIN 1000 SECONDS FROM STREAM s :s
WHERE {{ SEQ({sequence}) {defined} }}"""


def iri(name: str) -> ox.NamedNode:
    return ox.NamedNode(EX + name)


def row(letter: str, number: int, optional: bool, key: str) -> Drawn:
    """The row of event `number`; a step without an optional part has one variable less."""
    names = {"A": ("v", "w"), "B": ("x", "l"), "C": ("y",)}[letter]
    values = {"k": key, names[0]: f"{names[0]}{number}"}
    if len(names) == 2:
        values[names[1]] = f"{names[1]}{number}" if optional else ""
    return letter, values, number % 2 == 0


def events_of(drawn: Sequence[Drawn]) -> list[Event]:
    """Two events in a second, so that ordinals are 0 and 1."""
    out = []
    for place, (_, values, named) in enumerate(drawn):
        facts = [
            (iri(values["k"]), iri(PREDICATES[name]), iri(value))
            for name, value in values.items()
            if name != "k" and value
        ]
        seconds = place // 2
        stamp = Timestamp(1_000_000 * seconds, NUMBER, ox.Literal(seconds))
        graph = iri(f"g{place}") if named else None
        out.append(Event(S, stamp, place % 2, facts, graph))
    return out


def solution(values: Row, order: Sequence[str]) -> dict[str, dict[str, str]]:
    return {name: term_to_json(iri(values[name])) for name in order if values.get(name)}


def chosen(drawn: Sequence[Drawn], later: str) -> Iterator[list[int]]:
    """The places of an A and of any later events with one of the letters, all of one key."""
    for first, (letter, values, _) in enumerate(drawn):
        rest = [
            place
            for place in range(first + 1, len(drawn))
            if drawn[place][0] in later and drawn[place][1]["k"] == values["k"]
        ]
        if letter == "A":
            for size in range(1, len(rest) + 1):
                yield from ([first, *some] for some in combinations(rest, size))


def expected(drawn: Sequence[Drawn], places: Sequence[int], columns: Sequence[str]) -> Any:
    """The match as data. A variable of the repeated part has the value of its last iteration."""
    witnesses = []
    for place in places:
        letter, values, named = drawn[place]
        witness = {"gpm": letter, "stream": S, "time": place // 2, "ordinal": place % 2}
        witness |= {"graph": EX + f"g{place}"} if named else {}
        witnesses.append(witness | {"bindings": solution(values, tuple(values))})
    bound = drawn[places[0]][1] | drawn[places[-1]][1]
    return {
        "query": "query",
        "start": places[0] // 2,
        "end": places[-1] // 2,
        "bindings": solution(bound, columns),
        "events": witnesses,
    }


def is_changing(drawn: Sequence[Drawn], places: Sequence[int]) -> bool:
    """Whether `l`, if bound, is bound in no two iterations next to each other."""
    some = [bool(drawn[place][1]["l"]) for place in places[1:]]
    return not any(one and other for one, other in pairwise(some))


ALL: Callable[[Sequence[Drawn], Sequence[int]], bool] = lambda drawn, places: True  # noqa: E731
NOT_AGAIN = "FILTER(!BOUND(PREV(?l)) || !BOUND(?l))"


@st.composite
def streams(draw: st.DrawFn) -> list[Drawn]:
    steps = st.tuples(st.sampled_from("ABBC"), st.booleans(), st.sampled_from(["k", "h"]))
    drawn = draw(st.lists(steps, max_size=8))
    return [row(letter, i, optional, key) for i, (letter, optional, key) in enumerate(drawn)]


@pytest.mark.parametrize(
    ("sequence", "later", "condition", "is_match"),
    [
        ("A : B+", "B", "", ALL),
        ("A : (B | C)+", "BC", "", ALL),
        ("A : B+", "B", NOT_AGAIN, is_changing),
    ],
)
@given(drawn=streams())
@example(drawn=[row(letter, i, i < 2, "k") for i, letter in enumerate("ABCBBA")])
def test_decoded_matches_are_those_enumerated(
    sequence: str,
    later: str,
    condition: str,
    is_match: Callable[[Sequence[Drawn], Sequence[int]], bool],
    drawn: list[Drawn],
) -> None:
    if not drawn:
        return
    run = spaseq.compile(query(sequence, condition)).start()
    found = list(run.push_batch(encoded(run, events_of(drawn))))
    assert run.queries[0].native.matches is not None
    columns = [name for name in COLUMNS if name != "y" or "C" in sequence]
    wanted = [
        expected(drawn, places, columns)
        for places in chosen(drawn, later)
        if is_match(drawn, places)
    ]
    # In JSON before the terms of any match are objects, and as data.
    order: Callable[[Any], str] = lambda match: json.dumps(match, sort_keys=True)  # noqa: E731
    texts = [json.loads(match.to_json()) for match in found]
    assert sorted(texts, key=order) == sorted(wanted, key=order)
    assert [match.to_dict() for match in found] == texts

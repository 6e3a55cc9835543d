"""Suggestions for unknown names among few and among many known ones."""

from __future__ import annotations

import difflib

import pytest

from spaseq.parser.nearest import COMPARED_MAX_NAMES, nearest

MANY = [f"sensor{number}" for number in range(1000)] + ["temperature", "Price", "location"]


@pytest.mark.parametrize("known", [MANY[-3:], MANY])
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("temperatur", "temperature"),
        ("temperatures", "temperature"),
        ("tempereture", "temperature"),
        ("temperatrue", "temperature"),
        ("emperature", "temperature"),
        ("price", "Price"),
        ("PRICE", "Price"),
        ("location", None),
        ("x", None),
        ("", None),
    ],
)
def test_one_place_is_wrong(known: list[str], name: str, meant: str | None) -> None:
    assert nearest(name, known) == meant


def test_few_names_are_compared_and_the_nearest_wins() -> None:
    assert nearest("tmprature", ["temperature", "temper", "nature"]) == "temperature"
    assert nearest("price3", ["price1", "price", "pricey"]) == "price"


def test_many_unknown_names_are_compared_with_few_known_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = []
    whole = difflib.get_close_matches

    def counted(name: str, some: list[str], *, n: int, cutoff: float) -> list[str]:
        compared.append(len(some))
        return whole(name, some, n=n, cutoff=cutoff)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    found = [nearest(f"sansor{number}", MANY) for number in range(1000)]
    assert found == MANY[:1000]
    assert sum(compared) < 10 * len(compared)


def test_names_of_any_length_end() -> None:
    long = "a" * 100_000
    known = [long + str(number) for number in range(COMPARED_MAX_NAMES + 10)]
    assert nearest(long, known) is None
    assert nearest(long, known[:3]) is None
    assert nearest(long.upper() + "7", known) == long + "7"

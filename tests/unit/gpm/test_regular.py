"""Regular expressions: linear time, and the meaning of pyoxigraph's engine."""

from __future__ import annotations

import random
import re

import pyoxigraph as ox
import pytest

from spaseq.gpm.python import pyoxigraph_call, regular
from spaseq.gpm.python.strings import regex, replace
from spaseq.rdf.native._values import string

SIZE = 2000
EXPLOSIVE = [
    "^" + "a?" * 25 + "a" * 25 + "$",
    "^" + "(a|a)" * 25 + "$",
    "(a+)+$",
    "(a*)*b",
    "(x+x+)+y",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    ".*.*.*.*=.*",
    "a*a*a*a*a*a*a*b",
]
ATOMS = (
    *(
        "a",
        "b",
        "A",
        "1",
        " ",
        "-",
        "_",
        ".",
        "é",
        "k",
        "]",
        "}",
        r"\.",
        r"\d",
        r"\w",
        r"\s",
        r"\D",
    ),
    *(
        r"\W",
        r"\S",
        "[ab]",
        "[^a]",
        "[a-c1]",
        r"[\d-]",
        r"[\w.]",
        r"\n",
        r"\t",
        r"\p{L}",
        r"\p{Lu}",
    ),
    *(r"\P{Nd}", "[a-]", "[-a]", r"\\", r"\-", "(?:ab)", "(a|b)", "(a)"),
)
REPETITIONS = ("", "", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?", "{2}?")
SIGNS = (*"ab1 -_.é\n\tAK", "ſ", "K")


@pytest.mark.parametrize("pattern", EXPLOSIVE)
def test_no_pattern_takes_exponential_time(pattern: str) -> None:
    """With backtracking each of these would outlive the test by far."""
    text = "a" * SIZE + "!"
    assert regex(string(text), string(pattern)) is not None


def test_python_matches_only_what_needs_no_search_for_a_split() -> None:
    assert not any(regular._is_quick(pattern, "") for pattern in EXPLOSIVE)
    for pattern in ("^abc", "foo|bar", r"^\d+$".replace(r"\d", "[0-9]"), "a.c$"):
        assert regular._is_quick(pattern, "")


@pytest.mark.parametrize("pattern", ["(a{1000}){1000}", "((a{100}){100}){100}", r"(a)\1", "(?=a)a"])
def test_a_pattern_that_is_too_large_or_not_regular_is_an_error(pattern: str) -> None:
    assert regex(string("a" * 50), string(pattern)) is None


def test_patterns_of_the_data_are_not_all_kept() -> None:
    for number in range(regular.MAX_CACHED_PATTERNS + 50):
        regex(string("a"), string(f"^(a+)+{number}$"))
    assert regular._cached.cache_info().currsize <= regular.MAX_CACHED_PATTERNS


def test_patterns_mean_what_the_reference_says() -> None:
    chance = random.Random(20)
    own = 0
    for _ in range(1500):
        parts = [chance.choice(ATOMS) + chance.choice(REPETITIONS) for _ in range(4)]
        if chance.random() < 0.3:
            parts.insert(2, "|")
        pattern = chance.choice(("", "^")) + "".join(parts) + chance.choice(("", "$"))
        flags = "".join(flag for flag in "sim" if chance.random() < 0.2)
        test = regular.compiled(*(regular.pattern_and_flags(pattern, flags) or ("", "")))
        for _ in range(2):
            text = "".join(chance.choice(SIGNS) for _ in range(chance.randrange(8)))
            arguments = (ox.Literal(text), ox.Literal(pattern), ox.Literal(flags))
            expected = pyoxigraph_call.call("REGEX", arguments)
            if test is not None:
                own += 1
                assert expected is not None, (pattern, flags)
                assert str(test(text)).lower() == expected.value, (pattern, flags, text)
    assert own > 2000


def test_flags() -> None:
    assert regular.pattern_and_flags("a b", "x") == ("ab", "")
    assert regular.pattern_and_flags("a.b", "q") == (re.escape("a.b"), "")
    assert regular.pattern_and_flags("a", "z") is None
    assert regex(string("a"), string("a"), string("z")) is None


PIECES = (
    *("a", "b", "é", "[ab]", "[^a]", "[0-9]+", "[a-z]", r"\d+", r"\w", r"\s", "(a)", "(b|é)"),
    *("(?:a)", "a*", "b+", "é?", "^", "$", ".", "|", r"\.", "x{2}", "[a-c]+", "(a+)(b)", r"\p{L}"),
    *("ß", "İ", "K", "-"),
)
REPLACEMENTS = (
    *("x", "", "$0", "$1", "[$1]", "$2-$1", "${1}x", "$1x", "$", "\\", "\\\\", r"\1", "é$0", "$10"),
    *(r"\g<0>", "$$", "$1é", "{", r"\n"),
)
REPLACED = ("", "a", "ab", "aab é", "ABé", "x1.22-ab", "éé\nb", "K k ſ s", "ßss", "aXbXé", "a b\tc")


def test_replacements_are_those_of_the_reference() -> None:
    chance, compiled = random.Random(1), 0
    for _ in range(400):
        pattern = "".join(chance.choices(PIECES, k=chance.randint(1, 4)))
        replacement = "".join(chance.choices(REPLACEMENTS, k=chance.randint(1, 2)))
        text = "".join(chance.choices(REPLACED, k=chance.randint(1, 3)))
        flags = chance.choice(["", "", "", "i", "s", "m", "x", "q", "im", "z"])
        change = regular.replacer(pattern, flags, replacement)
        if change is not None:
            compiled += 1
            explicit = regular.explicit(replacement)
            arguments = tuple(map(ox.Literal, (text, pattern, explicit, flags)))
            expected = pyoxigraph_call.call("REPLACE", arguments)
            assert expected == ox.Literal(change(text)), arguments
    assert compiled > 150


def test_letters_may_follow_the_number_of_a_group() -> None:
    assert replace(string("ab"), string("(.)(.)"), string("$2T$1_")) == string("bTa_")
    # pyoxigraph replaces matches of the empty text
    assert replace(string("ab"), string("(b*)"), string("$1T")) == string("TabT")


def test_replacements_take_linear_time() -> None:
    for pattern in ("[ab]+", "(a|b)*c", "a+b", "^(a+)+$"):
        change = regular.replacer(pattern, "", "x")
        assert change is not None
        change("ab" * 100_000 + "a")

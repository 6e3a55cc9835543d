"""The known name that an unknown one was probably meant to be.

A few known names are compared with the unknown one by `difflib`. Among many, only names that differ
in one place are found: a character that is wrong, missing or superfluous, or two that are swapped.
Two such names have a common text after removing at most one character of each, so an index over
these texts finds them without a comparison of all pairs (the deletion neighbourhood of Mor and
Fraenkel, 1982).

Cost: one step per known name and call, and the index once for successive calls with equal names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

COMPARED_MAX_NAMES = 50
"""Up to this number of known names, each is compared with the unknown one."""
COMPARED_MAX_CHARACTERS = 100
"""Longer names are found only if they differ in upper and lower case."""
_MAX_SHARING = 4
"""The names that are indexed under one text."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The nearest of some known names; None if none is near.

    Args:
        name: The unknown name.
        known: The known names; `name` itself does not count.
    """
    from difflib import get_close_matches  # imported here to keep valid queries fast

    names = frozenset(known)
    if len(names) <= COMPARED_MAX_NAMES:
        some = sorted(names - {name})
    else:
        index = _index(names)
        texts = (name.casefold(), *_shortened(name))
        some = sorted({each for text in texts for each in index.get(text, ())} - {name})
    folded = next((each for each in some if each.casefold() == name.casefold()), None)
    if folded is not None or len(name) > COMPARED_MAX_CHARACTERS:
        return folded
    short = [each for each in some if len(each) <= COMPARED_MAX_CHARACTERS]
    return next(iter(get_close_matches(name, short, n=1, cutoff=0.6)), None)


@lru_cache(maxsize=1)
def _index(names: frozenset[str]) -> dict[str, list[str]]:
    """Names by their texts in lower case, and by their texts without one character."""
    index: dict[str, list[str]] = {}

    def enter(text: str, name: str) -> None:
        sharing = index.setdefault(text, [])
        if len(sharing) < _MAX_SHARING:
            sharing.append(name)

    ordered = sorted(names)
    for name in ordered:
        enter(name.casefold(), name)
    for name in ordered:
        for text in _shortened(name):
            enter(text, name)
    return index


def _shortened(name: str) -> Iterator[str]:
    """A name, and if it is not long, each text that lacks one of its characters."""
    yield name
    if len(name) <= COMPARED_MAX_CHARACTERS:
        for place in range(len(name)):
            yield name[:place] + name[place + 1 :]

"""What every data set is: named streams, a knowledge base, and a query that fits them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Protocol


class World(Protocol):
    """The things a data set is about, and what happens to them."""

    def knowledge(self) -> Iterator[str]:
        """The knowledge base, a piece of Turtle at a time."""

    def events(self) -> Iterator[tuple[int, str]]:
        """Without end: the number of a stream, and the N-Quads of its next event.

        Each stream is chronological. Memory does not grow with the events taken.
        """


@dataclass(frozen=True, slots=True)
class Dataset:
    """`populate` makes a world whose size suits the number of events to be taken from it.

    `streams` are the names under which `query` declares the streams, in the order in which
    the world numbers them. A populated world is used once: its events drain its chance.
    """

    streams: tuple[str, ...]
    query: str
    populate: Callable[[int, Random], World]

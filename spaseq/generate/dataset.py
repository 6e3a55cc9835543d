"""The parts of a data set: named streams, a knowledge base, and a query over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Protocol

from spaseq.records import dataclass


class World(Protocol):
    """The entities of a data set, and the simulation of their events."""

    def knowledge(self) -> Iterator[str]:
        """The knowledge base, as pieces of Turtle."""

    def events(self) -> Iterator[tuple[int, str]]:
        """An endless iterator of (number of a stream, N-Quads of its next event).

        Each stream is in time order. Memory does not grow with the number of events.
        """


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set.

    `populate` makes a world, sized for the number of events to generate. `streams` are the names
    by which `query` declares the streams, in the order of their numbers in the world. A world is
    used once, since its events consume its random numbers.
    """

    streams: tuple[str, ...]
    query: str
    populate: Callable[[int, Random], World]

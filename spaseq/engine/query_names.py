"""The names of the queries of a run, and their places in lists from which queries are removed."""

from __future__ import annotations

from bisect import bisect_left

from spaseq.engine.sharing import SharedProgram


class QueryNames:
    """The names of queries, and the places of each query in three lists.

    The lists are those of the queries as they were written, of their texts, and of the queries as
    the run evaluates them. In each list, every query has a serial number. The serial numbers of the
    present queries are in ascending order, so the place of one is found by a binary search.

    Cost: binary searches, and the memory that a list moves when a query leaves it.

    Args:
        shared: The program of the run.
    """

    def __init__(self, shared: SharedProgram):
        public = shared.public
        names = [query.plan.name for query in public.queries]
        separate = {
            names[place]: number
            for number, place in enumerate(shared.places)
            if number not in shared.templates
        }
        self._serials = {
            name: (number, position, separate.get(name))
            for number, (name, position) in enumerate(zip(names, public.positions, strict=True))
        }
        self._numbers = list(range(len(names)))
        self._positions = list(range(len(names)))
        self._executed = list(range(len(shared.places)))
        self._next = len(names)

    def __contains__(self, name: object) -> bool:
        return name in self._serials

    def number(self, name: str) -> int:
        """The number of a query among those that were written."""
        return bisect_left(self._numbers, self._serials[name][0])

    def position(self, name: str) -> int:
        """The position of the text of a query."""
        return bisect_left(self._positions, self._serials[name][1])

    def executed(self, name: str) -> int | None:
        """The number of a query among those that are evaluated; None if a template evaluates it."""
        serial = self._serials[name][2]
        return None if serial is None else bisect_left(self._executed, serial)

    def append(self, name: str) -> None:
        """Enter a query after the others, which no template evaluates."""
        serial, self._next = self._next, self._next + 1
        self._serials[name] = serial, serial, serial
        for serials in (self._numbers, self._positions, self._executed):
            serials.append(serial)

    def remove(self, name: str) -> None:
        """Remove a query that no template evaluates."""
        executed = self.executed(name)
        assert executed is not None
        del self._executed[executed]
        del self._numbers[self.number(name)], self._positions[self.position(name)]
        del self._serials[name]

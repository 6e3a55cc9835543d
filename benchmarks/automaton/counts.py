"""Numbers of matches, computed without an engine.

Each function counts the matches of the query in its docstring over a list of events. The time of
an event is its position in the list; a window of ω contains a match whose last position is at most
ω after its first. The functions share no code with the automaton: some count combinations by
dynamic programming over the events before the last one, the others follow each first event.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from streams import Happening

Sells = dict[int, list[tuple[int, int]]]
"""(place, price), by name."""


def endings(
    events: Sequence[Happening],
    kinds: Sequence[str],
    window: int,
    repeated: int | None = None,
    skipping: bool = False,
) -> Iterator[int]:
    """For each event that ends matches: all ways to find the kinds in this order.

    `repeated` is a step that may come more than once. With `skipping`, a match starts after
    the end of the last one.
    """
    step = {kind: number for number, kind in enumerate(kinds)}
    if not set(kinds) <= {event[0] for event in events}:
        return
    of_use = [(place, step[kind]) for place, (kind, _, _) in enumerate(events) if kind in step]
    last = len(kinds) - 1
    first, over = 0, -1
    for position, (end, number) in enumerate(of_use):
        if number != last:
            continue
        while of_use[first][0] < max(end - window, over + 1):
            first += 1
        ways = [0] * last
        for _, at in of_use[first:position]:
            if at < last:
                ways[at] += (ways[at] if at == repeated else 0) + (ways[at - 1] if at else 1)
        if ways[-1]:
            yield ways[-1]
            if skipping:
                over = end


def nearest(events: Sequence[Happening], kinds: Sequence[str], window: int) -> int:
    """From each event of the first kind, always the next event of the following kind."""
    places = [[p for p, event in enumerate(events) if event[0] == kind] for kind in kinds]
    total = 0
    for start in places[0]:
        place = start
        for some in places[1:]:
            follower = bisect_right(some, place)
            if follower == len(some) or some[follower] > start + window:
                break
            place = some[follower]
        else:
            total += 1
    return total


def dips(events: Sequence[Happening], window: int, nearest_only: bool) -> int:
    """Three sales under one name: the second below the first price, the third above it."""
    total = 0
    for sales in _by_key(events, "SELL").values():
        for first, (start, top) in enumerate(sales):
            lower = 0
            for place, price in sales[first + 1 :]:
                if place > start + window:
                    break
                if price > top and lower:
                    total += lower
                    if nearest_only:
                        break
                elif price < top:
                    lower = 1 if nearest_only else lower + 1
    return total


def peaks(events: Sequence[Happening], window: int) -> int:
    """A price, the company's next higher price, and the next price below that."""
    total = 0
    for trades in _by_key(events, "price").values():
        for first, (start, price) in enumerate(trades):
            reached = None
            for place, other in trades[first + 1 :]:
                if place > start + window:
                    break
                if reached is None:
                    reached = other if other > price else None
                elif other < reached:
                    total += 1
                    break
    return total


def recoveries(events: Sequence[Happening], window: int) -> tuple[int, int]:
    """From each price, always the next lower price, then the next price above the first.

    From each of the lower ones there is at most one way on; and the number of places where
    any of them ends.
    """
    total, ends = 0, set()
    for trades in _by_key(events, "price").values():
        for first, (start, top) in enumerate(trades):
            lowest, falls = top, 0
            for place, price in trades[first + 1 :]:
                if place > start + window:
                    break
                if price < lowest:
                    lowest, falls = price, falls + 1
                elif price > top and falls:
                    total, falls = total + falls, 0
                    ends.add(place)
    return total, len(ends)


def means(events: Sequence[Happening], window: int) -> int:
    """From each price, always the next that is not below the mean so far, then one below it.

    However many there are, each beginning of them goes on to the next price below its own mean.
    """
    total = 0
    for trades in _by_key(events, "price").values():
        for first, (start, price) in enumerate(trades):
            count, sum_ = 1, price
            waiting = [(count, sum_)]  # the means never decrease
            for place, other in trades[first + 1 :]:
                if place > start + window:
                    break
                while waiting and other * waiting[-1][0] < waiting[-1][1]:
                    waiting.pop()
                    total += 1
                if other * count >= sum_:
                    count, sum_ = count + 1, sum_ + other
                    waiting.append((count, sum_))
    return total


def bounded_pairs(events: Sequence[Happening], window: int) -> int:
    """All A, B, C in this order where B's value is greater than A's and C's."""
    total = 0
    for end, (kind, _, value) in enumerate(events):
        if kind != "C":
            continue
        lows: list[int] = []
        for other, _, price in events[max(0, end - window) : end]:
            if other == "A":
                insort(lows, price)
            elif other == "B" and price > value:
                total += bisect_left(lows, price)
    return total


def products(events: Sequence[Happening], window: int, least: int) -> int:
    """All A, B, C in this order where the product of A's and B's values is greater than `least`."""
    total = 0
    for end, (kind, _, _) in enumerate(events):
        if kind != "C":
            continue
        values: list[int] = []
        for other, _, value in events[max(0, end - window) : end]:
            if other == "A":
                insort(values, value)
            elif other == "B":
                total += len(values) - bisect_right(values, least // value)
    return total


def gathered(events: Sequence[Happening], window: int, least: int) -> int:
    """All sets of A, B, C and D within the window.

    The products of A's and B's values, and of B's and C's, are greater than `least`.
    """
    total = 0
    places = {kind: [p for p, event in enumerate(events) if event[0] == kind] for kind in "ABC"}

    def between(kind: str, first: int, last: int) -> Sequence[int]:
        some = places[kind]
        return some[bisect_left(some, first) : bisect_right(some, last)]

    for end in (place for place, event in enumerate(events) if event[0] == "D"):
        for b in between("B", end - window, end + window):
            more = least // events[b][2]
            first, last = min(b, end), max(b, end)
            some_a, some_c = (
                [p for p in between(kind, last - window, first + window) if events[p][2] > more]
                for kind in "AC"
            )
            total += sum(
                max(a, c, last) - min(a, c, first) <= window for a in some_a for c in some_c
            )
    return total


def joined(events: Sequence[Happening], window: int) -> int:
    """All pairs of a B and an earlier A of the same key."""
    total = 0
    waiting: defaultdict[int, deque[int]] = defaultdict(deque)
    for place, (kind, key, _) in enumerate(events):
        some = waiting[key]
        while some and some[0] < place - window:
            some.popleft()
        if kind == "A":
            some.append(place)
        else:
            total += len(some)
    return total


def lows(events: Sequence[Happening], window: int) -> int:
    """Two sales under one name, without a sale between them at a lower price than the second."""
    total = 0
    for sales in _by_key(events, "SELL").values():
        for first, (start, _) in enumerate(sales):
            least = None
            for place, price in sales[first + 1 :]:
                if place > start + window:
                    break
                if least is None or price <= least:
                    total += 1
                    least = price
    return total


def paired(events: Sequence[Happening], window: int) -> int:
    """All pairs of an A and a B of one key, in any order."""
    other = [({"A": "B", "B": "A"}[kind], key, value) for kind, key, value in events]
    return joined(events, window) + joined(other, window)


def _by_key(events: Sequence[Happening], kind: str) -> Sells:
    found: Sells = defaultdict(list)
    for place, (other, key, value) in enumerate(events):
        if other == kind:
            found[key].append((place, value))
    return found

"""The workloads: a query, its stream, and how many matches there must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import counts
import streams
from streams import EX, Happening

Events = Sequence[Happening]

SKIP = "AFTER MATCH SKIP PAST LAST EVENT"
OPERATORS = {"all": ":", "next": ";", "skip": ":"}


@dataclass(frozen=True)
class Workload:
    """A query to measure.

    Attributes:
        events: the first so many events of the stream.
        count: the number of matches in events.
        most: more events than these say no more, or take too long.
    """

    name: str
    query: str
    events: Callable[[int], Events]
    count: Callable[[Events], int]
    most: int = 10**9


def query(
    sequence: str, patterns: Mapping[str, str], window: int, clause: str = "", end: str = ""
) -> str:
    """A query over the stream with the patterns of its GPMs."""
    defined = " ".join(f"DEFINE GPM {gpm} ON s {{ {text} }}" for gpm, text in patterns.items())
    return (
        f"PREFIX : <{EX}> SELECT * WITHIN {window} SECONDS FROM STREAM s :s {clause} "
        f"WHERE {{ SEQ({sequence}) {defined} }} {end}"
    )


def kinds_only(kinds: Sequence[str], operator: str, window: int, clause: str = "") -> str:
    """Sequences of these kinds of events, without conditions."""
    patterns = {kind: f"[] :{kind} []" for kind in kinds}
    return query(f" {operator} ".join(kinds), patterns, window, clause)


def _numbered(length: int) -> list[str]:
    return [f"A{number}" for number in range(1, length + 1)]


def _endings(kinds: Sequence[str], window: int, **options: object) -> Callable[[Events], int]:
    return lambda events: sum(counts.endings(events, kinds, window, **options))  # type: ignore[arg-type]


NOTHING = Workload(
    "nothing to find",
    kinds_only(["A3"], ":", 100),
    streams.unfinished,
    lambda events: 0,
)
"""The cost of an event that matches no pattern."""


def _steps() -> list[Workload]:
    found = []
    for policy, lengths in (("all", (3, 5, 7, 9)), ("skip", (3, 5, 7, 9)), ("next", (3,))):
        for length in lengths:
            kinds = _numbered(length)
            count = _endings(kinds, 100, skipping=policy == "skip")
            if policy == "next":
                count = partial(counts.nearest, kinds=kinds, window=100)
            text = kinds_only(kinds, OPERATORS[policy], 100, SKIP * (policy == "skip"))
            events = partial(streams.steps, length)
            found.append(Workload(f"W1 n={length} {policy}", text, events, count))
    return found


def _unfinished() -> list[Workload]:
    kinds = _numbered(3)
    return [
        Workload(
            f"W2 {window:,} {policy}",
            kinds_only(kinds, OPERATORS[policy], window),
            streams.unfinished,
            _endings(kinds, window),
        )
        for policy, windows in (("all", (100, 1000, 10_000, 100_000)), ("next", (100, 10_000)))
        for window in windows
    ]


def _repeated() -> Workload:
    patterns = {kind: f"[] :{kind} []" for kind in "ABC"}
    return Workload(
        "W3 A : B+ : C skip",
        query("A : B+ : C", patterns, 100, SKIP),
        streams.repeated,
        _endings("ABC", 100, repeated=1, skipping=True),
    )


def _dips(policy: str, names: int, parts: bool = False, window: int | None = None) -> Workload:
    patterns = {
        "A": "?n :SELL ?p1",
        "B": "?n :SELL ?p2 FILTER(?p2 < ?p1)",
        "C": "?n :SELL ?p3 FILTER(?p3 > ?p1)",
    }
    # Unless noted, a window holds ten events of each name, for any number of names.
    size, window = window, window or 10 * names
    return Workload(
        f"W4 V {policy}, {names:,} names" + ", decimals" * parts + (f" in {size}" if size else ""),
        query(f" {OPERATORS[policy]} ".join("ABC"), patterns, window),
        partial(streams.dealing_in_parts if parts else streams.dealing, names),
        partial(counts.dips, window=window, nearest_only=policy == "next"),
    )


def _peaks(window: int) -> Workload:
    patterns = {
        "A": "?company :price ?p1",
        "B": "?company :price ?p2 FILTER(?p2 > ?p1)",
        "C": "?company :price ?p3 FILTER(?p3 < ?p2)",
    }
    return Workload(
        f"stock A ; B ; C {window:,}",
        query("A ; B ; C", patterns, window),
        partial(streams.prices, 10),
        partial(counts.peaks, window=window),
        most=100_000,
    )


def _hard(window: int) -> Workload:
    patterns = {
        "A": "[] :A ?p1",
        "B": "[] :B ?p2 FILTER(?p2 > ?p1)",
        "C": "[] :C ?p3 FILTER(?p3 < ?p2)",
    }
    return Workload(
        f"A : B : C compared {window:,}",
        query("A : B : C", patterns, window),
        streams.rare_end,
        partial(counts.bounded_pairs, window=window),
        most=30_000 if window > 1000 else 100_000,
    )


LEAST = 990_000
FILTER = f"FILTER(?x * ?y > {LEAST})"
RARE_END = Workload(
    "A : B : C, C rare 1,000",
    query("A : B : C", {"A": "[] :A ?x", "B": f"[] :B ?y {FILTER}", "C": "[] :C []"}, 1000),
    partial(streams.rarely, "AB", "C"),
    partial(counts.products, window=1000, least=LEAST),
)
"""No index serves the correlation of A and B."""


HIGH = 950_000


def in_all_orders(
    patterns: Mapping[str, str], filters: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """`A AND B AND …` as a disjunction of all orders, which is joined eagerly.

    Args:
        patterns: Of the steps, whose names are letters, without filters on each other.
        filters: By the letters of two steps, such as AB; the later of the two has the filter.
    """
    named: dict[str, str] = {}

    def tree(left: str, seen: str) -> str:
        ways = []
        for step in left:
            before = {pair.replace(step, ""): pair for pair in filters if step in pair}
            others = [other for other in before if other in seen]
            name = step + "".join(others).lower()
            named[name] = " ".join([patterns[step], *(filters[before[one]] for one in others)])
            rest = left.replace(step, "")
            ways.append(f"({name} : {tree(rest, seen + step)})" if rest else name)
        return f"({' | '.join(ways)})" if len(ways) > 1 else "".join(ways)

    return tree("".join(patterns), ""), named


def _gathered(name: str, sequence: str, patterns: Mapping[str, str]) -> Workload:
    return Workload(
        name,
        query(sequence, patterns, 300),
        partial(streams.rarely, "ABC", "D"),
        partial(counts.gathered, window=300, least=HIGH),
        most=50_000,
    )


STEPS = {"A": "[] :A ?x", "B": "[] :B ?y", "C": "[] :C ?z", "D": "[] :D []"}
PRODUCTS = {"AB": f"FILTER(?x * ?y > {HIGH})", "BC": f"FILTER(?y * ?z > {HIGH})"}
GATHERED = _gathered(
    "AND of 4, D rare 300",
    "A AND B AND C AND D",
    STEPS | {"B": f"{STEPS['B']} {PRODUCTS['AB']}", "C": f"{STEPS['C']} {PRODUCTS['BC']}"},
)
ORDERS = _gathered("AND of 4, all orders", *in_all_orders(STEPS, PRODUCTS))
"""The same matches, by a disjunction of all orders."""

JOIN = Workload(
    "A : B of 100,000 keys",
    query("A : B", {"A": "?k :A []", "B": "?k :B []"}, 100_000),
    partial(streams.keyed, 100_000),
    partial(counts.joined, window=100_000),
)


def _lows(names: int) -> Workload:
    patterns = {
        "A": "?n :SELL ?p1",
        "N": "?n :SELL ?p FILTER(?p < ?p2)",
        "B": "?n :SELL ?p2",
    }
    window = 10 * names
    return Workload(
        f"A : !N : B, {names:,} names",
        query("A : !N : B", patterns, window),
        partial(streams.dealing, names),
        partial(counts.lows, window=window),
    )


ANY_ORDER = Workload(
    "A AND B of 100,000 keys",
    query("A AND B", {"A": "?k :A []", "B": "?k :B []"}, 100_000),
    partial(streams.keyed, 100_000),
    partial(counts.paired, window=100_000),
)

FALLING = {
    "A": "?company :price ?p1",
    "B": "?company :price ?p FILTER(?p < PREV(?p, ?p1))",
    "C": "?company :price ?p3 FILTER(?p3 > ?p1)",
}


def _recovering(companies: int, name: str = "") -> Workload:
    return Workload(
        f"V A ; B+ ; C 500{name}",
        query("A ; B+ ; C", FALLING, 500),
        partial(streams.prices, companies),
        lambda events: counts.recoveries(events, 500)[0],
        most=50_000,
    )


RECOVERIES, ALL_RECOVERIES_OF_FEW = _recovering(10), _recovering(3, " of 3")


def _limited(companies: int, name: str) -> Workload:
    return Workload(
        f"V A ; B+ ; C 500, LIMIT 1{name}",
        query("A ; B+ ; C", FALLING, 500, end="LIMIT 1"),
        partial(streams.prices, companies),
        lambda events: counts.recoveries(events, 500)[1],
        most=50_000,
    )


RECOVERIES_LIMITED = _limited(10, "")
RECOVERIES_OF_FEW, RECOVERIES_OF_MANY = _limited(3, " of 3"), _limited(100, " of 100")

MEANS = Workload(
    "B+ ; C about the mean 100",
    query(
        "B+ ; C",
        {
            "B": "?company :price ?p FILTER(?p >= AVG(?p))",
            "C": "?company :price ?p3 FILTER(?p3 < AVG(?p))",
        },
        100,
    ),
    partial(streams.prices, 10),
    partial(counts.means, window=100),
    most=50_000,
)

FIRST = 10
MANY = Workload(
    "A : B : C 1,000, first ten",
    kinds_only("ABC", ":", 1000),
    streams.dense,
    lambda events: sum(min(FIRST, found) for found in counts.endings(events, "ABC", 1000)),
    most=50_000,
)
NONE = Workload(
    "A : B : D 1,000, no D",
    kinds_only("ABD", ":", 1000),
    streams.dense,
    lambda events: 0,
    most=50_000,
)

TALLIED = [
    NOTHING,
    *_steps(),
    *_unfinished(),
    _repeated(),
    *(_dips(policy, names) for names in (10, 10_000) for policy in ("all", "next")),
    *(_dips(policy, 10_000, window=100) for policy in ("all", "next")),
    *(_dips(policy, 10, parts=True) for policy in ("all", "next")),
    *(_peaks(window) for window in (100, 1000, 10_000)),
    *(_hard(window) for window in (100, 1000, 10_000)),
    JOIN,
    *(_lows(names) for names in (10, 10_000)),
    ANY_ORDER,
    RECOVERIES,
    RECOVERIES_OF_FEW,
    RECOVERIES_OF_MANY,
    MEANS,
]
"""The workloads whose matches are counted."""

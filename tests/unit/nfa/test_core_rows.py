"""Whole automata that are fed rows: every kind of step and every selection against brute force.

No graph pattern is matched and no engine runs, so a failure lies in `spaseq/nfa/native/`.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import pyoxigraph as ox
import pytest
from core_probes import CoreProbe
from model.contiguity import Contiguity
from nfa_queries import planned, register_file

from spaseq.nfa.automaton import Edge
from spaseq.nfa.compile import compile_automaton
from spaseq.nfa.match_path import Path, Step, Witnessed
from spaseq.nfa.native._automaton import CoreParts
from spaseq.nfa.native._selection import Selection, pop_complete
from spaseq.nfa.native.tables import tables
from spaseq.nfa.selection import choose
from spaseq.rdf.event import NUMBER, Event, Timestamp
from spaseq.rdf.native._terms import Dictionary, EventBatch

WINDOW = 10
TERMS = [ox.Literal(n) for n in range(40)]
FACT = (ox.NamedNode("http://e/s"), ox.NamedNode("http://e/p"), ox.Literal("o"))

Instants = tuple[int, ...]
"""The instants of the events of a match, ascending."""


@dataclass(frozen=True)
class Row:
    """An event with one row of one GPM: variable → index of its term."""

    instant: int
    second: int
    gpm: str
    values: Mapping[str, int]
    stream: int = 0


class Automaton:
    """The automaton of a sequence over rows."""

    def __init__(
        self,
        seq: str,
        gpms: Mapping[str, str],
        test: Callable[[Mapping[str, int]], bool] | None = None,
    ):
        self.plan = planned(seq, gpms, "SELECT *", f"WITHIN {WINDOW} SECONDS")
        registers = register_file(self.plan)
        self.dictionary = Dictionary()
        numbers = {self.dictionary.intern(term): n for n, term in enumerate(TERMS)}
        self.numbers = {n: number for number, n in numbers.items()}

        def holds(cells: Sequence[int]) -> bool:
            assert test is not None
            named = enumerate(self.plan.registers)
            return test({r.name: numbers[cells[n]] for n, r in named if cells[n]})

        filters = [[holds] * len(occurrence.residual) for occurrence in self.plan.occurrences]
        self.automaton = compile_automaton(self.plan)
        written = tables(self.plan, self.automaton, registers)
        self.matched: dict[int, str] = {}
        self.probe = CoreProbe(written, self.dictionary, filters)
        self.parts = CoreParts(self.probe.core, self.dictionary)
        self.gpms = {gpm.name: number for number, gpm in enumerate(self.plan.gpms)}

    def open(self, second: int) -> None:
        self.probe.core.open(second * 1_000_000)

    def feed(self, row: Row) -> None:
        number = self.gpms[row.gpm]
        batch = EventBatch(self.dictionary)
        batch.add([FACT], row.second * 1_000_000)
        variables = self.plan.gpms[number].variables
        cells = [self.numbers[row.values[v]] if v in row.values else 0 for v in variables]
        self.probe.feed(batch, 0, row.stream, [(number, cells)])

    def matches(self) -> Iterator[list[tuple[int, int]]]:
        """(instant, stream) of the events of each match since the last call."""
        steps = pop_complete(self.probe.core, self.step, False)  # type: ignore[arg-type]
        for _, match, _ in steps:
            yield [event for step in match for event in step]  # type: ignore[attr-defined]

    def step(self, addresses: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        return tuple(self.event(address) for address in addresses)

    def event(self, address: int) -> tuple[int, int]:
        place, position, instant, _, _, _, stream, *_, part, _ = self.parts.label(address)
        edge = self.automaton.places[place].edges[position]
        occurrence = self.automaton.atoms[edge.atom].occurrences[part]
        self.matched[instant] = self.plan.gpms[self.plan.occurrences[occurrence].gpm].name
        return instant, stream

    def run(self, rows: Sequence[Row]) -> Counter[Instants]:
        """Feed rows of one instant each; all matches."""
        found: Counter[Instants] = Counter()
        for row in rows:
            self.open(row.second)
            self.feed(row)
            for match in self.matches():
                found[tuple(sorted(instant for instant, _ in match))] += 1
            self.probe.core.close()
        assert all(rows[n].gpm == name for n, name in self.matched.items())
        return found


def drawn(seed: int, gpms: Mapping[str, Sequence[str]], count: int = 70) -> list[Row]:
    """Random rows; several have the same second, and some variables are unbound in none."""
    chance = random.Random(seed)
    rows, second = [], 0
    for instant in range(count):
        second += chance.choice([0, 0, 1, 2])
        gpm = chance.choice(list(gpms))
        values = {name: chance.randrange(3) for name in gpms[gpm]}
        rows.append(Row(instant, second, gpm, values))
    return rows


def joined(rows: Sequence[Row]) -> dict[str, int] | None:
    """The bindings of some rows; None if they disagree or exceed the window."""
    bindings: dict[str, int] = {}
    seconds = [row.second for row in rows]
    if max(seconds) - min(seconds) > WINDOW:
        return None
    for row in rows:
        for name, value in row.values.items():
            if bindings.setdefault(name, value) != value:
                return None
    return bindings


def expected(
    rows: Sequence[Row], size: int, fits: Callable[[Sequence[Row]], int]
) -> Counter[Instants]:
    """All combinations of `size` rows of one window, as often as `fits` counts each."""
    found: Counter[Instants] = Counter()
    for place, first in enumerate(rows):
        later = [row for row in rows[place + 1 :] if row.second <= first.second + WINDOW]
        for others in combinations(later, size - 1):
            some = (first, *others)
            if joined(some) is not None:
                times = fits(some)
                if times:
                    found[tuple(row.instant for row in some)] = times
    return found


def kinds(rows: Sequence[Row]) -> str:
    return "".join(row.gpm for row in rows)


ABC = {"A": ("k", "x"), "B": ("k", "y"), "C": ("k", "z")}
BODIES = {name: f"{{ ?k :{name} ?{v} }}" for name, (_, v) in ABC.items()}


@pytest.mark.parametrize("lazily", [None, False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_chain_has_all_rows_in_order_that_agree(seed: int, lazily: bool | None) -> None:
    """The eager and the lazy join, with a filter that no index serves."""

    def test(env: Mapping[str, int]) -> bool:
        return env["x"] != env["y"]

    bodies = {**BODIES, "B": "{ ?k :B ?y FILTER(?y != ?x) }"}
    automaton = Automaton("A : B : C", bodies, test)
    assert automaton.plan.occurrences[1].residual
    automaton.probe.core.lazy_join.join(lazily)
    automaton.probe.core.lazy_join.min_rows = 3
    rows = drawn(seed, ABC, 200)
    found = automaton.run(rows)
    wanted = expected(rows[:200], 3, lambda some: kinds(some) == "ABC" and test(joined(some) or {}))
    assert found == wanted
    assert found
    core = automaton.probe.core
    assert (core.lazy_join.searched > 0) == bool(lazily) or lazily is None


@pytest.mark.parametrize("seed", range(5))
def test_skip_till_next_and_strict_contiguity(seed: int) -> None:
    rows = drawn(seed, {"A": ("k",), "B": ("k",)})
    bodies = {name: f"{{ ?k :{name} [] }}" for name in "AB"}

    def until_next(some: Sequence[Row]) -> int:
        between = rows[some[0].instant + 1 : some[1].instant]
        return kinds(some) == "AB" and not any(
            row.gpm == "B" and row.values == some[0].values for row in between
        )

    def strict(some: Sequence[Row]) -> int:
        return kinds(some) == "AB" and some[1].instant == some[0].instant + 1

    assert Automaton("A ; B", bodies).run(rows) == expected(rows, 2, until_next)
    assert Automaton("A , B", bodies).run(rows) == expected(rows, 2, strict)


@pytest.mark.parametrize(
    ("seq", "steps"),
    [
        ("A : (B & C)", ("ABC", "ACB")),
        ("A : (B & (C | D))", ("ABC", "ACB", "ABD", "ADB")),
        ("A : ((B | C) & D)", ("ABD", "ADB", "ACD", "ADC")),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_conjunctions_share_a_timestamp(seq: str, steps: tuple[str, ...], seed: int) -> None:
    names = {**ABC, "D": ("k", "y")}
    bodies = {**BODIES, "D": "{ ?k :D ?y }"}
    used = {name: names[name] for name in re.findall(r"\b[A-D]\b", seq)}
    rows = drawn(seed, used, 200)

    def fits(some: Sequence[Row]) -> int:
        return kinds(some) in steps and some[1].second == some[2].second

    found = Automaton(seq, {name: bodies[name] for name in used}).run(rows)
    assert found == expected(rows, 3, fits)
    assert found


@pytest.mark.parametrize(
    ("seq", "steps"),
    [
        ("A : (B AND C)", ("ABC", "ACB")),
        ("A : (B AND (C | D))", ("ABC", "ACB", "ABD", "ADB")),
        ("(A AND B) : C", ("ABC", "BAC")),
        ("((A | D) AND B) : C", ("ABC", "BAC", "DBC", "BDC")),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_any_order_groups(seq: str, steps: tuple[str, ...], seed: int) -> None:
    names = {**ABC, "D": ("k", "y")}
    bodies = {**BODIES, "D": "{ ?k :D ?y }"}
    used = {name: names[name] for name in re.findall(r"\b[A-D]\b", seq)}
    rows = drawn(seed, used, 60)
    found = Automaton(seq, {name: bodies[name] for name in used}).run(rows)
    assert found == expected(rows, 3, lambda some: kinds(some) in steps)
    assert found


@pytest.mark.parametrize("operand", ["?k :N ?x", "?k :N ?y", "?k :N ?n", "[] :N ?n"])
@pytest.mark.parametrize("seed", range(5))
def test_a_negated_row_forbids_the_partial_matches_it_agrees_with(operand: str, seed: int) -> None:
    """Decided on arrival where the first step binds all that it shares, else looking back."""
    names = [word[1:] for word in operand.split() if word.startswith("?")]
    bodies = {"A": BODIES["A"], "B": BODIES["B"], "N": f"{{ {operand} }}"}
    rows = drawn(seed, {"A": ("k", "x"), "B": ("k", "y"), "N": names}, 90)

    def fits(some: Sequence[Row]) -> int:
        if kinds(some) != "AB":
            return 0
        env = joined(some)
        assert env is not None
        return not any(
            row.gpm == "N" and all(env.get(n, v) == v for n, v in row.values.items())
            for row in rows[some[0].instant + 1 : some[1].instant]
        )

    found = Automaton("A : !N : B", bodies).run(rows)
    assert found == expected(rows, 2, fits)
    assert found


@pytest.mark.parametrize("seed", range(5))
def test_a_negated_sequence_forbids_what_lies_around_it(seed: int) -> None:
    names = {"A": ("k",), "B": ("k",), "N": ("k", "m"), "M": ("m",)}
    bodies = {
        "A": "{ ?k :A [] }", "B": "{ ?k :B [] }", "N": "{ ?k :N ?m }", "M": "{ [] :M ?m }",
    }  # fmt: skip
    rows = drawn(seed, names, 90)

    def fits(some: Sequence[Row]) -> int:
        between = rows[some[0].instant + 1 : some[1].instant]
        return kinds(some) == "AB" and not any(
            kinds(pair) == "NM" and joined([some[0], *pair]) is not None
            for pair in combinations(between, 2)
        )

    found = Automaton("A : !(N : M) : B", bodies).run(rows)
    assert found == expected(rows, 2, fits)
    assert found


@pytest.mark.parametrize("relation", ["<", "<=", ">", ">=", "="])
@pytest.mark.parametrize("seed", range(4))
def test_comparisons_with_a_register(relation: str, seed: int) -> None:
    compare = {
        "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__, "=": int.__eq__,
    }[relation]  # fmt: skip

    def test(env: Mapping[str, int]) -> bool:
        return compare(env["y"], env["x"])

    bodies = {"A": "{ [] :A ?x }", "B": f"{{ [] :B ?y FILTER(?y {relation} ?x) }}"}
    chance = random.Random(seed)
    rows = [
        Row(n, n // 8, chance.choice("AB"), {}) for n in range(400)
    ]  # fmt: skip
    rows = [
        Row(row.instant, row.second, row.gpm, {"xy"[row.gpm == "B"]: chance.randrange(40)})
        for row in rows
    ]
    found = Automaton("A : B", bodies, test).run(rows)
    assert found == expected(rows, 2, lambda some: kinds(some) == "AB" and test(joined(some) or {}))


STREAMS = {"urn:0": 0, "urn:1": 1}


@pytest.mark.parametrize("mode", ["NEXT", "LAST", "MAX", "ANY"])
@pytest.mark.parametrize("seq", ["A : B", "A : B+", "A+ : B", "A : A : B"])
@pytest.mark.parametrize("seed", range(6))
def test_selections_are_those_of_the_listed_matches(mode: str, seq: str, seed: int) -> None:
    """Events of two streams share instants, so the order of the streams decides ties."""
    bodies = {"A": "{ [] :A [] }", "B": "{ [] :B [] }"}
    listing, selecting = Automaton(seq, bodies), Automaton(seq, bodies)
    core = selecting.probe.core
    selection = Selection(core, mode)
    contiguity = Contiguity(register_file(listing.plan))
    chance = random.Random(seed)
    ties = 0
    for instant in range(14):
        streams = chance.choice([[0], [1], [0, 1], [1, 0]])
        some = [Row(instant, instant, chance.choice("AAB"), {}, stream) for stream in streams]
        for automaton in (listing, selecting):
            automaton.open(instant)
            for row in some:
                automaton.feed(row)
        paths = [_path(match) for match in listing.matches()]
        wanted = Counter(map(_events, choose(paths, mode, STREAMS, contiguity)))
        found = Counter(
            tuple(map(selecting.event, labels)) for _, labels in selection.pop_selected()
        )
        assert found == wanted
        ties += len({tuple(i for i, _ in _events(path)) for path in paths}) < len(paths)
        for automaton in (listing, selecting):
            automaton.probe.core.close()
    assert ties


def _path(match: Sequence[tuple[int, int]]) -> Path:
    steps = []
    for instant, stream in match:
        time = Timestamp(instant, NUMBER, ox.Literal(instant))
        event = Event(f"urn:{stream}", time, 0, ())
        steps.append(Step(Edge(0), (Witnessed(0, event, (), instant),)))
    return Path(match[0][0], (), tuple(steps))


def _events(path: Path) -> tuple[tuple[int, int], ...]:
    witnesses = [witness for step in path.steps for witness in step.witnesses]
    return tuple((w.instant, STREAMS[w.event.stream]) for w in witnesses)

"""The parts of short drawn queries: their definitions, clauses and events.

Events lie one second apart or less and most of them are of the steps of the query, so bounds and
deadlines of a few seconds decide many cases.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence

import pyoxigraph as ox
from oracle import timestamp
from strategies import EXAMPLE, Case, iri

from spaseq.parser import parse
from spaseq.plan.check import check
from spaseq.rdf.event import NUMBER, Event, Fact

FILTERS = {
    "B": ("?b > ?a", "?b >= PREV(?b, 0)", "?b < PREV(?b, 9)", "?b != ?d", "?b > COUNT(A)"),
    "C": ("?c > ?b", "?c > ?b", "?c = ?b", "?c != ?a", "?c < ?d"),
    "D": ("?d > ?a", "?d != ?a"),
    "E": ("?e > ?b", "?e != ?c"),
}
SIZES = ("0 SECONDS", "1 SECOND", "1 SECOND", "2 SECONDS", "2 SECONDS", "3 SECONDS", "1.5 SECONDS")
WINDOWS = (
    "20 SECONDS", "20 SECONDS", "5 SECONDS", "TUMBLING 6 SECONDS", "4 EVENTS", "UNBOUNDED",
)  # fmt: skip
EMITS = ("EMIT MAX", "EMIT NEXT", "EMIT LAST", "EMIT ANY", "EMIT STRICT", "LIMIT 1")


def streams_of(chance: random.Random) -> tuple[str, ...]:
    """The streams of a query: mostly one."""
    return chance.choice((("S",), ("S",), ("S",), ("S", "T")))


def names_in(sequence: str) -> list[str]:
    """The GPMs that a sequence names."""
    return sorted(set(re.findall(r"\b[A-E]\b", sequence)))


def definitions(
    chance: random.Random,
    names: Sequence[str],
    streams: Sequence[str],
    keyed: bool,
    previous: bool = False,
    often: Sequence[str] = (),
) -> list[str]:
    """`DEFINE` of each name, over some of the streams, some with filters.

    With `previous`, filters may read `PREV`; those of the names in `often` are more frequent.
    """
    found = []
    for name in names:
        low = name.lower()
        on = ", ".join(chance.sample(streams, chance.randint(1, len(streams))))
        pattern = f"?k :{low} ?{low}" if keyed else f"[] :{low} ?{low}"
        share = 0.4 if name in often else 0.1
        texts = [text for text in FILTERS.get(name, ()) if chance.random() < share]
        filters = "".join(
            f" FILTER({text})"
            for text in texts
            if (previous or "PREV" not in text)
            and all(v[1:].upper() in names for v in re.findall(r"\?\w", text))
        )
        found.append(f"DEFINE GPM {name} ON {on} {{ {pattern}{filters} }}")
    return found


def from_streams(streams: Sequence[str]) -> list[str]:
    """The clauses that declare the streams."""
    return [f"FROM STREAM {name} :{name}" for name in streams]


def query_text(
    clauses: Sequence[str], sequence: str, defines: Sequence[str], end: str = "", head: str = "*"
) -> str:
    """The query: `end` is what follows its body."""
    front = "\n".join(["PREFIX : <http://example.org/>", f"SELECT {head}", *clauses])
    body = "\n  ".join([f"SEQ({sequence})", *defines])
    return f"{front}\nWHERE {{\n  {body}\n}}" + (f"\n{end}" if end else "")


def in_allowed_window(
    chance: random.Random, windows: Sequence[str], query: Callable[[str], str]
) -> str:
    """The query in one of the windows; in a sliding one if the check refuses that."""
    text = query(chance.choice(windows))
    refused = any(found.severity == "error" for found in check(parse(text)))
    return query("20 SECONDS") if refused else text


def events_of(chance: random.Random, streams: Sequence[str], names: str) -> dict[str, list[Event]]:
    """A, some events of the names and others, D; in one case of three, twice."""
    inner = [name for name in names if name in "bce"] or list(names)
    letters: list[str] = []
    for _ in range(chance.choice((1, 1, 2))):
        letters += ["a", *chance.choices([*inner, *inner, "x"], k=chance.randint(2, 5)), "d"]
    if chance.random() < 0.2:
        letters.insert(chance.randint(1, len(letters) - 1), "a")
    return _events(chance, streams, letters, inner)


def mixed_events(
    chance: random.Random, streams: Sequence[str], parts: Sequence[str]
) -> dict[str, list[Event]]:
    """A few events: some of the parts, each a series of letters, in any order."""
    letters = "".join(chance.choices(parts, k=chance.randint(2, 6)))
    return _events(chance, streams, letters, sorted(set(letters)))


def framed_case(
    chance: random.Random, frames: Sequence[str], emits: Sequence[str] = (), keyed: bool = False
) -> Case:
    """A case whose sequence is one of some frames, one in five with one of the clauses `emits`.

    A frame has `{w}` and `{v}` for bounds, `{o}` and `{p}` for operators. One case in five has
    partitions; with `keyed`, all have.
    """
    streams = streams_of(chance)
    keyed = keyed or chance.random() < 0.2
    sequence = chance.choice(frames).format(
        w=f"WITHIN {chance.choice(SIZES)}",
        v=f"WITHIN {chance.choice(SIZES)}",
        o=chance.choice(";;:,"),
        p=chance.choice(";;:,"),
    )
    sequence = re.sub(r", \((\w) AND", r"; (\1 AND", sequence)
    names = names_in(sequence)
    defines = definitions(chance, names, streams, keyed)
    clauses = [*["PARTITION BY ?k"] * keyed, *from_streams(streams)]
    if chance.random() < 0.1:
        clauses.append("AFTER MATCH SKIP PAST LAST EVENT")
    end = ""
    if emits and chance.random() < 0.2:
        emit = chance.choice(emits)
        if emit.startswith("EMIT"):
            clauses.append(emit)
        else:
            end = emit

    def text(window: str) -> str:
        return query_text([f"WITHIN {window}", *clauses], sequence, defines, end)

    query = in_allowed_window(chance, WINDOWS, text)
    return Case(query, events_of(chance, streams, "".join(names).lower()))


def _events(
    chance: random.Random, streams: Sequence[str], letters: Sequence[str], inner: Sequence[str]
) -> dict[str, list[Event]]:
    """An event for each letter, some with a fact of another one of `inner`."""
    out: dict[str, list[Event]] = {EXAMPLE + name: [] for name in streams}
    now, ordinals = 0, Counter[tuple[str, int]]()
    for letter in letters:
        now += (chance.random() < 0.9) * 1_000_000
        stream = EXAMPLE + chance.choice(streams)
        more = [chance.choice(inner)] if chance.random() < 0.1 else []
        facts: list[Fact] = [
            (iri(chance.choice("mmmn")), iri(one), ox.Literal(chance.randint(0, 4)))
            for one in dict.fromkeys([letter, *more])
        ]
        time = timestamp(now, NUMBER)
        out[stream].append(Event(stream, time, ordinals[stream, now], facts))
        ordinals[stream, now] += 1
    return out


def any_clauses(seed: int) -> Case:
    """The case of a seed, with every construct of the sequence and any clauses beside it.

    The query may be one that the check refuses.
    """
    chance = random.Random(seed)
    streams = streams_of(chance)
    keyed = chance.random() < 0.25
    sequence = _Sequence(chance).text()
    names = names_in(sequence)
    clauses = [f"WITHIN {chance.choice(WINDOWS)}", *["PARTITION BY ?k"] * keyed]
    clauses += from_streams(streams)
    if chance.random() < 0.25:
        name = chance.choice(names)
        skips = ("PAST LAST EVENT", "TO NEXT", f"TO FIRST {name}", f"TO LAST {name}")
        clauses.append(f"AFTER MATCH SKIP {chance.choice(skips)}")
    if chance.random() < 0.15:
        clauses.append(chance.choice(EMITS[:-1]))
    end = ""
    if chance.random() < 0.2:
        end = f"LIMIT {chance.choice((1, 1, 2))}"
        end += f" PER ?{chance.choice(names).lower()}" * (chance.random() < 0.4)
        end += f" EVERY {chance.choice(SIZES[1:])}" * (chance.random() < 0.4)
    defines = definitions(chance, names, streams, keyed)
    query = query_text(clauses, sequence, defines, end)
    in_order = re.findall(r"\b[A-E]\b", sequence)
    letters = [name for name in in_order if chance.random() < 0.85]
    for _ in range(chance.randint(1, 4)):
        letters.insert(chance.randint(0, len(letters)), chance.choice([*names, "X"]))
    lower = [letter.lower() for letter in letters]
    return Case(query, _events(chance, streams, lower, [name.lower() for name in names]))


MOST_NAMES = 4


class _Sequence:
    """Draws the text of a sequence of about `MOST_NAMES` GPMs."""

    def __init__(self, chance: random.Random):
        self._chance = chance
        self._room = MOST_NAMES
        self._last = ""

    def text(self) -> str:
        return self._steps(0)

    def _one_in(self, number: int) -> bool:
        return self._chance.randrange(number) == 0

    def _bound(self, one_in: int) -> str:
        if self._room >= MOST_NAMES - 1 and not self._one_in(12):
            return ""  # nothing can precede a first step
        return f" WITHIN {self._chance.choice(SIZES)}" if self._one_in(one_in) else ""

    def _steps(self, depth: int, negation: bool = True) -> str:
        """Steps with their operators; the first one is a negation if that is allowed."""
        count = self._chance.choice((1, 2, 2, 3)) + (depth == 0)
        parts: list[str] = []
        positive = False
        while len(parts) < count and (self._room > 0 or not positive):
            ahead = negation or bool(parts)
            text, absent = self._step(depth, ahead and (positive or not self._one_in(2)))
            positive |= not absent
            if parts:
                parts[-1] += f" {self._chance.choice(';;;:,')} "
            parts.append(text)
        return "".join(parts)

    def _step(self, depth: int, may_be_absent: bool) -> tuple[str, bool]:
        """A step, and whether it is a negation."""
        if may_be_absent and self._one_in(4):
            return f"!{self._unit(depth, negated=True)}{self._bound(2)}", True
        unit = self._unit(depth)
        quantifier = ""
        if self._one_in(3):
            quantifier = self._chance.choice(("+", "?", "*", "{2}", "{1,2}", "?"))
        return f"{unit}{quantifier}{self._bound(3)}", False

    def _unit(self, depth: int, negated: bool = False) -> str:
        kind = self._chance.randrange(10) if depth < 2 and self._room > 1 else 9
        if kind < 2:
            return f"({self._steps(depth + 1, negation=not negated)})"
        if kind == 2:
            sides = (self._side(depth), self._side(depth))
            return f"({' | '.join(sides)})"
        if kind == 3:
            operator = self._chance.choice(("&", "AND"))
            return f"({self._name()} {operator} {self._name()})"
        if kind == 4:
            return f"({self._name()}{self._bound(1)})"
        return self._name()

    def _side(self, depth: int) -> str:
        if self._one_in(3) and self._room > 1:
            return f"({self._steps(depth + 1, negation=False)})"
        name = self._name()
        bound = self._bound(2)
        return f"({name}{bound})" if bound else name

    def _name(self) -> str:
        self._room -= 1
        self._last = self._chance.choice([n for n in "ABCDE" if n != self._last] + ["A"])
        return self._last

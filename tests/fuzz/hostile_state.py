"""Saved states that no run has saved: each is refused, or resumes as a run that works.

A shape is a program, its knowledge base and its events. For each shape, states are saved at several
points, changed at random, and resumed. Bytes are changed with or without a correct checksum. Values
are changed in the decoded data, with a correct checksum, so that only the checks of the data can
refuse them. If a state is accepted, the run is used in every possible way.

As a script it runs for some time, and prints what it has tried:

    python tests/fuzz/hostile_state.py --seconds 600 --seed 7
"""

from __future__ import annotations

import argparse
import copy
import random
import resource
import signal
import sys
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from types import FrameType
from typing import Any

import pyoxigraph as ox

sys.path.insert(0, str(Path(__file__).parent.parent))

import oracle_functions  # noqa: F401 (it registers the functions of the cases)
from cases import load

import spaseq
from spaseq.engine.envelope import MAGIC, VERSION, seal, unseal
from spaseq.errors import EventError, StateError
from spaseq.rdf.event import n_triples as term_text
from spaseq.runs import Run

EX = "http://example.org/"
HEAD = len(MAGIC) + 2
TAIL = 8 + 16
LONGEST = 20
"""The maximum number of seconds for one state, even under sanitizers."""
INTERESTING = (
    0, 1, 2, 3, 5, 7, 8, 63, 64, 65, 255, 256, 65535, 99999, 2**30, 2**31 - 1, 2**31, 2**32 - 4,
    2**32 - 3, 2**32 - 2, 2**32 - 1, 2**32, 2**53, 2**61, 2**63 - 1, 2**63, 2**64,
    10**30, 10**4000, -1, -2, -3, -4, -5, -(2**31), -(2**63), -(2**63) - 1,
)  # fmt: skip
OTHERS = (
    None, True, False, "", "x", "not an IRI", "http://example.org/k", "\ud800", "\0", "dateTime",
    "number", "t", "l", "f", 0.5, 1e308, float("nan"), float("inf"), [], {}, [[]], [0], [0, 0],
    [None], {"a": 1}, ["l", ["l", ["l", ["l", ["l", []]]]]],
)  # fmt: skip


Push = tuple[str, Any, bytes]
"""(stream, time, N-Triples) of an event."""


@dataclass
class Shape:
    """A program and its input; `prepare` is called with each new run."""

    name: str
    program: spaseq.Program
    pushes: Sequence[Push]
    kb: Mapping[str, Sequence[ox.Triple]] = field(default_factory=dict)
    entail: str | None = None
    prepare: Callable[[Run], object] = bool

    def saved(self) -> list[bytes]:
        """The states of a run of all events: before the first, after each, and after the last."""
        run = self.program.start(kb=self.kb, entail=self.entail)
        self.prepare(run)
        blobs = [run.save()]
        for push in self.pushes:
            run.push(*push)
            blobs.append(run.save())
        run.finish()
        return [*blobs, run.save()]


# ------------------------------------------------------------------ shapes


def suite_shapes() -> list[Shape]:
    """The hand-made cases of the language."""
    return [
        Shape(
            str(case),
            spaseq.compile(
                list(case.queries), names=[f"q{n}" for n in range(1, len(case.queries) + 1)]
            ),
            [(a.stream, a.python_time, n_triples(a.facts)) for a in case.merged],
            {g: [ox.Triple(*fact) for fact in facts] for g, facts in case.kb.items()},  # type: ignore[arg-type]
            case.entail,
        )
        for case in load()
        if case.error is None and case.arrivals
    ]


OWN = {
    "lazy chain": "SELECT * WITHIN 20 SECONDS {s} WHERE {{ SEQ(A : B : C) {abc} }}",
    "lazy limit": "SELECT ?x WITHIN 20 SECONDS {s} WHERE {{ SEQ(A : B : C) {abc} }} LIMIT 2",
    "range": "SELECT * WITHIN 20 SECONDS {s} WHERE {{ SEQ(A ; B) {range} }}",
    "ranges whole": "SELECT ?y WITHIN 20 SECONDS {s} WHERE {{ SEQ(A : B) {apart} }}",
    "iteration": "SELECT (SUM(?y) AS ?t) (AVG(?y) AS ?m) (COUNT(B) AS ?n) (FIRST(?y) AS ?f) "
    "WITHIN 20 SECONDS {s} WHERE {{ SEQ(A : B+ : A) {sums} }}",
    "averages": "SELECT ?k WITHIN 20 SECONDS {s} WHERE {{ SEQ(A : B+) {averages} }}",
    "concat": "SELECT ?k WITHIN 20 SECONDS {s} WHERE {{ SEQ(A : B+) {concat} }}",
    "distinct sums": "SELECT DISTINCT ?k WITHIN 20 SECONDS {s} WHERE {{ SEQ(A : B+) {distincts} }}",
    "previous": "SELECT * WITHIN 20 SECONDS {s} WHERE {{ SEQ((B : A)+ ; C) {previous} }}",
    "negation": "SELECT * WITHIN 20 SECONDS {s} WHERE {{ SEQ(A ; !(B : C) ; A) {abc} }}",
    "trailing": "SELECT * WITHIN 3 SECONDS {s} WHERE {{ SEQ(A : B+ ; !C) {abc} }}",
    "optional": "SELECT * WITHIN 20 SECONDS {s} WHERE {{ SEQ(A? ; B : C?) {abc} }}",
    "optional events": "SELECT * WITHIN 4 EVENTS {s} WHERE {{ SEQ(A? ; (B AND C)) {abc} }}",
    "together": "SELECT * WITHIN 20 SECONDS {s} WHERE {{ SEQ((A & B)+ : C) {abc} }}",
    "any order": "SELECT * WITHIN 5 EVENTS {s} WHERE {{ SEQ((A AND (B | C)) , A) {abc} }}",
    "any order guarded": "SELECT * WITHIN 9 SECONDS {s} WHERE {{ SEQ((A AND B) ; !A ; C) {abc} }}",
    "partition": "SELECT * WITHIN 20 SECONDS PARTITION BY ?k AFTER MATCH SKIP PAST LAST EVENT {s} "
    "WHERE {{ SEQ(A , B) {ab} }}",
    "partition strict": "SELECT * WITHIN 20 SECONDS PARTITION BY ?k EMIT STRICT {s} "
    "WHERE {{ SEQ(A ; !C ; B) {abc} }}",
    "partition waits": "SELECT * WITHIN 4 SECONDS PARTITION BY ?k AFTER MATCH SKIP PAST LAST EVENT "
    "{s} WHERE {{ SEQ(A , B ; !C) {abc} }}",
    "max": "SELECT * WITHIN 20 SECONDS EMIT MAX {s} WHERE {{ SEQ(A : B+ : C) {abc} }}",
    "next": "SELECT * WITHIN 20 SECONDS EMIT NEXT {s} WHERE {{ SEQ(A : B+ : C) {abc} }}",
    "limit": "SELECT ?x WITHIN 20 SECONDS {s} WHERE {{ SEQ(A : B+ : C) {abc} }} LIMIT 3",
    "groups": "SELECT ?k (AVG(?x) AS ?m) (MIN(?x) AS ?low) WITHIN 20 SECONDS {s} "
    "WHERE {{ SEQ(A) {a} }} GROUP BY ?k OVER 8 SECONDS HAVING (?m > 1)",
    "limit per": "SELECT ?x WITHIN 20 SECONDS {s} WHERE {{ SEQ(A : B) {ab} }} "
    "LIMIT 1 PER ?k ?y EVERY 5 SECONDS",
    "tumbling": "SELECT DISTINCT ?k WITHIN TUMBLING 5 SECONDS {s} WHERE {{ SEQ(A : B) {ab} }}",
    "unbounded": "SELECT ?k WITHIN UNBOUNDED {s} WHERE {{ SEQ(A : B+ ; C) {abc} }}",
    "construct": "CONSTRUCT {{ ?k :p [] }} WITHIN 4 SECONDS {s} WHERE {{ SEQ(A : B ; !C) {abc} }}",
    "ask": "ASK WITHIN 20 SECONDS {s} WHERE {{ SEQ(A : B+) {ab} }}",
    "bind": "SELECT * WITHIN 20 SECONDS {s} WHERE {{ SEQ(A : B : C) {bind} }}",
    "exists": "SELECT * WITHIN 20 SECONDS {s} WHERE {{ SEQ(A ; !B ; C) {exists} }}",
    "in python": "SELECT * WITHIN 20 SECONDS {s} WHERE {{ SEQ(A ; B) {python} }}",
    "streams": "SELECT * WITHIN 6 SECONDS {s} FROM STREAM r :r WHERE {{ SEQ(A ; B , C) {two} }}",
}  # fmt: skip
PARTS = {
    "s": "FROM STREAM s :s",
    "abc": "DEFINE GPM A ON s {{ ?k :a ?x }} DEFINE GPM B ON s {{ ?k :b ?y }} "
    "DEFINE GPM C ON s {{ ?k :c ?z }}",
    "ab": "DEFINE GPM A ON s {{ ?k :a ?x }} DEFINE GPM B ON s {{ ?k :b ?y }}",
    "a": "DEFINE GPM A ON s {{ ?k :a ?x }}",
    "range": "DEFINE GPM A ON s {{ ?k :a ?x }} DEFINE GPM B ON s {{ ?k :b ?y FILTER(?y > ?x) }}",
    "apart": "DEFINE GPM A ON s {{ ?k :a ?x }} DEFINE GPM B ON s {{ ?j :b ?y FILTER(?y > ?x) }}",
    "sums": "DEFINE GPM A ON s {{ ?k :a ?x }} "
    "DEFINE GPM B ON s {{ ?k :b ?y FILTER(SUM(?y) < 99 && ?y != PREV(?y, 77)) }}",
    "averages": "DEFINE GPM A ON s {{ ?k :a ?x }} "
    "DEFINE GPM B ON s {{ ?k :b ?y FILTER(AVG(?y) < 99 && MAX(?y) < 99 && COUNT(?y) < 9) }}",
    "concat": "DEFINE GPM A ON s {{ ?k :a ?x }} "
    'DEFINE GPM B ON s {{ ?k :b ?y FILTER(STRLEN(GROUP_CONCAT(?y; SEPARATOR = "-")) < 99) }}',
    "distincts": "DEFINE GPM A ON s {{ ?k :a ?x }} DEFINE GPM B ON s "
    "{{ ?k :b ?y FILTER(SUM(DISTINCT ?y) < 9 && AVG(DISTINCT ?y) < 9 && COUNT(DISTINCT ?y) < 9) }}",
    "previous": "DEFINE GPM A ON s {{ ?k :a ?x FILTER(?x >= PREV(?x, 0)) }} "
    "DEFINE GPM B ON s {{ ?k :b ?y }} DEFINE GPM C ON s {{ ?k :c ?z FILTER(?z > FIRST(?y)) }}",
    "bind": "DEFINE GPM A ON s {{ ?k :a ?x }} DEFINE GPM B ON s {{ ?k :b ?y BIND(?x + ?y AS ?u) }} "
    "DEFINE GPM C ON s {{ ?k :c ?z FILTER(?z < ?u) }}",
    "exists": "DEFINE GPM A ON s {{ ?k :a ?x }} "
    "DEFINE GPM B ON s {{ ?k :b ?y FILTER EXISTS {{ ?k :a ?w FILTER(?w != ?x) }} }} "
    "DEFINE GPM C ON s {{ ?k :c ?z }}",
    "python": "DEFINE GPM A ON s {{ ?k :a ?x }} "
    'DEFINE GPM B ON s {{ ?k :b ?y FILTER(REGEX(STR(?y), CONCAT("^", STR(?x)))) }}',
    "two": "DEFINE GPM A ON s {{ ?k :a ?x }} DEFINE GPM B ON r {{ ?k :b ?y }} "
    "DEFINE GPM C ON s, r {{ ?k :c ?z }}",
}  # fmt: skip
FACTS = (
    "k a 1", "k b 1, j b 2", "j a 2, k c 3", "k b 4", "k a 1, k b 2, k c 3", "j b 3", "", "k c 5",
    "k a 2, j a 1", "k b 2, j b 5", "j c 1", "k a 3, k b 3", "k a 1, j b 1", "k b 5", "k c 9",
)  # fmt: skip


def own_shapes() -> Iterator[Shape]:
    """Queries of all features over the same events, including special join strategies."""
    queries = {name: _query(text) for name, text in OWN.items()}
    for name, text in queries.items():
        prepare = _join_lazily if "lazy" in name else bool
        yield Shape(name, spaseq.compile(text), _pushes("streams" in name), prepare=prepare)
    several = [queries[n] for n in ("iteration", "trailing", "any order", "construct", "streams")]
    yield Shape("several", spaseq.compile(several), _pushes(True))


def _query(text: str) -> str:
    parts = {name: part.format() for name, part in PARTS.items()}
    return f"PREFIX : <{EX}> {text.format(**parts)}"


def _join_lazily(run: Run) -> None:
    run.queries[0].native.core.lazy_join.join(True)


def _pushes(two: bool) -> list[Push]:
    """Events on one stream, or alternating on two; some share their timestamps."""
    found = []
    for number, facts in enumerate(FACTS):
        triples = []
        for fact in filter(None, (part.split() for part in facts.split(","))):
            subject, predicate, value = fact
            terms = ox.NamedNode(EX + subject), ox.NamedNode(EX + predicate), ox.Literal(int(value))
            triples.append(terms)
        stream = EX + ("r" if two and number % 2 else "s")
        found.append((stream, number - (number % 3 == 2), n_triples(triples)))
    return found


def n_triples(facts: Iterable[Sequence[Any]]) -> bytes:
    return "".join(" ".join((*map(term_text, fact), ".\n")) for fact in facts).encode()


# ------------------------------------------------------------------ changes


def changed_bytes(blob: bytes, chance: random.Random) -> bytes:
    """A blob with some bytes changed, cut off or added; sometimes with the right checksum."""
    data = bytearray(blob)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data)) if data else 0
        way = chance.randrange(4)
        if way == 0:
            data[at : at + 1] = bytes([chance.randrange(256)])
        elif way == 1:
            del data[at : at + chance.choice((1, 2, 8, len(data)))]
        elif way == 2:
            data[at:at] = chance.randbytes(chance.choice((1, 2, 8)))
        else:
            data[-TAIL:-16] = (chance.choice(INTERESTING) % 2**64).to_bytes(8, "big")
    if chance.random() < 0.5:
        data[-16:] = blake2b(data[:-16], digest_size=16).digest()
    return bytes(data)


def changed_text(blob: bytes, chance: random.Random) -> bytes:
    """A blob whose JSON text has some bytes changed; everything around it is correct."""
    text = bytearray(zlib.decompress(blob[HEAD:-TAIL]))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(text))
        if chance.random() < 0.7:
            text[at : at + 1] = chance.choice(
                (b"0", b"9", b"-", b",", b"[", b"]", b'"', b"1e9", b"")
            )
        else:
            end = at + chance.randrange(40)
            text[at:at] = text[at:end]
    front = MAGIC + VERSION.to_bytes(2, "big") + zlib.compress(text) + len(text).to_bytes(8, "big")
    return front + blake2b(front, digest_size=16).digest()


def changed_data(blob: bytes, other: Any, chance: random.Random) -> bytes:
    """A blob whose decoded data has some values changed; `other` is the data of another state."""
    data = unseal(blob)
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 6))):
        _change(data, other, chance)
    return seal(data)


def _change(data: Any, other: Any, chance: random.Random) -> None:
    path = _path(data, chance)
    if not path:
        return
    holder, place = path[-1]
    value = holder[place]
    way = chance.random()
    if isinstance(value, list) and way < 0.6:
        _change_list(value, other, chance)
    elif isinstance(value, int) and way < 0.45:
        holder[place] = value + chance.choice((-3, -2, -1, -1, 1, 1, 2, 3, 4, 9, 99999))
    elif isinstance(value, int) and way < 0.6:
        holder[place] = chance.choice(INTERESTING)
    elif way < 0.85:
        # A value of the same kind from another part.
        like = [
            found
            for found in _some(other if chance.random() < 0.3 else data, chance)
            if type(found) is type(value)
        ]
        holder[place] = copy.deepcopy(chance.choice(like or [value]))
    elif way < 0.9 and isinstance(holder, dict):
        if chance.random() < 0.5:
            del holder[place]
        else:
            holder[chance.choice(("", "x", EX + "s"))] = value
    else:
        holder[place] = copy.deepcopy(chance.choice((*INTERESTING, *OTHERS)))


def _change_list(value: list[Any], other: Any, chance: random.Random) -> None:
    way = chance.randrange(6)
    if way == 0 and value:
        del value[chance.randrange(len(value))]
    elif way == 1 and value:
        value.insert(chance.randrange(len(value) + 1), copy.deepcopy(chance.choice(value)))
    elif way == 2 and len(value) > 1:
        one, two = chance.sample(range(len(value)), 2)
        value[one], value[two] = value[two], value[one]
    elif way == 3:
        del value[chance.randrange(len(value) + 1) :]
    elif way == 4:
        value.append(copy.deepcopy(chance.choice(list(_some(other, chance)))))
    else:
        chance.shuffle(value)


def _path(data: Any, chance: random.Random) -> list[tuple[Any, Any]]:
    """The containers and positions down to a value; all levels are equally likely."""
    path: list[tuple[Any, Any]] = []
    value = data
    while isinstance(value, list | dict) and value:
        if path and chance.random() < 0.1:
            break
        place = (
            chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
        )
        # The automaton is where most can go wrong.
        if isinstance(value, dict) and "queries" in value and chance.random() < 0.8:
            place = "queries"
        elif isinstance(value, dict) and "automaton" in value and chance.random() < 0.8:
            place = "automaton"
        path.append((value, place))
        value = value[place]
    return path


def _some(data: Any, chance: random.Random) -> Iterator[Any]:
    """Some values from all levels."""
    for _ in range(12):
        for holder, place in _path(data, chance):
            yield holder[place]


# ------------------------------------------------------------------ what must hold


def stop(signum: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {LONGEST} seconds")


def tried(shape: Shape, blob: bytes, after: int, chance: random.Random) -> str:
    """Resume a state and use the run: `refused`, or `ran`; anything else is an exception.

    `after`: the number of events before the state was saved.
    """
    try:
        run = shape.program.resume(blob, kb=shape.kb)
    except StateError:
        return "refused"
    rest = list(shape.pushes[after:]) or list(shape.pushes[-3:])
    for push in rest[: chance.randint(1, 6)]:
        way = chance.randrange(8)
        if way == 0:
            run = shape.program.resume(run.save(), kb=shape.kb)
        elif way == 1:
            assert run.stats
        elif way == 2:
            assert run.why_not()
        elif way == 3:
            assert run.explain()
        elif way == 4:
            _allowed(run.advance, push[1])
        _allowed(run.push, *push)
    _told(run)
    if run.clock.time is not None and chance.random() < 0.3:
        # When the window has passed, nothing in the state is used any more.
        _allowed(run.advance, _later(shape.pushes[-1][1]))
        assert run.why_not()
    run = shape.program.resume(run.save(), kb=shape.kb)
    _allowed(run.finish)
    shape.program.resume(run.save(), kb=shape.kb)
    return "ran"


def _told(run: Run) -> None:
    for match in run.unreturned:
        assert match.to_json()


def _later(moment: Any) -> Any:
    return moment + (timedelta(days=400) if isinstance(moment, datetime) else 10**6)


def _allowed(call: Callable[..., Sequence[spaseq.Match]], *arguments: Any) -> None:
    """A call whose events may be late, or arrive after the end; its matches can be written."""
    try:
        found = call(*arguments)
    except EventError:
        return
    for match in found[:1000]:
        assert match.to_json()


def examples(shape: Shape, number: int, seed: str) -> Counter[str]:
    """Try a number of changed states of a shape. Returns the count of each outcome."""
    chance = random.Random(f"{seed} {shape.name}")
    saved = shape.saved()
    decoded = [unseal(blob) for blob in saved]
    came: Counter[str] = Counter()
    for one in range(number):
        at = chance.randrange(len(saved))
        way = chance.random()
        if way < 0.08:
            blob = changed_bytes(saved[at], chance)
        elif way < 0.14:
            blob = changed_text(saved[at], chance)
        else:
            blob = changed_data(saved[at], chance.choice(decoded), chance)
        signal.setitimer(signal.ITIMER_REAL, LONGEST)
        try:
            came[tried(shape, blob, at, chance)] += 1
        except BaseException as error:
            raise AssertionError(
                f"{shape.name}: example {one} of seed {seed!r}: {error!r}"
            ) from error
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    return came


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--states", type=int, default=0, help="at least, whatever the time")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--shape", help="only shapes whose names contain this")
    parser.add_argument("--memory", type=int, help="megabytes that the process may take")
    arguments = parser.parse_args()
    if arguments.memory:
        resource.setrlimit(resource.RLIMIT_AS, (arguments.memory << 20,) * 2)
    signal.signal(signal.SIGALRM, stop)
    all_shapes = [
        shape for shape in (*own_shapes(), *suite_shapes()) if (arguments.shape or "") in shape.name
    ]
    end, round_, came = time.monotonic() + arguments.seconds, 0, Counter[str]()
    faults = 0
    while time.monotonic() < end or came.total() < arguments.states:
        for shape in all_shapes:
            try:
                came += examples(shape, 50, f"{arguments.seed}.{round_}")
            except AssertionError as error:
                faults += 1
                print(f"FAULT {error}", flush=True)
                traceback.print_exception(error.__cause__ or error, limit=-4)
            if time.monotonic() > end and came.total() >= arguments.states:
                break
        round_ += 1
    print(f"{came.total():,} states of {len(all_shapes)} shapes: {dict(came)}")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MB at most")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

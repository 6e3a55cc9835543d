"""Valid queries, with small streams and knowledge bases that fit them, drawn by chance.

A case is drawn in three parts: a sequence expression (a tree), one GPM for each of its
names (a pattern over few predicates, then filters, BINDs and times that refer to the
others'), the clauses around them; then events over the same few terms. Every query obeys
the static rules of docs/language.md, section 2. Decisions come from hypothesis (`cases`)
or from a seed (`random_case`, made small by `smaller`). `Case.entry()` prints a case as an
entry of the suite (`tests/suite/*.toml`).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

import pyoxigraph as ox
from drawn_groups import GroupDraw
from hypothesis import strategies as st
from oracle import OracleMatch, timestamp

from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Fact, Term

T = TypeVar("T")
EXAMPLE = "http://example.org/"
PREDICATES = ("p", "q", "p", "q", "r")
SUBJECTS = ("a", "b")
STREAMS = ("S", "T", "U")
DAY = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z in microseconds."""


FN = "http://example.org/fn#"
"""The namespace of the functions that `oracle_functions` registers."""


def iri(name: str) -> ox.NamedNode:
    return ox.NamedNode(EXAMPLE + name)


# ------------------------------------------------------------------ choosing


class Choices(Protocol):
    """Where the generators take their decisions from; the first and least is the simplest."""

    def of(self, options: Sequence[T]) -> T: ...

    def number(self, least: int, most: int) -> int: ...


class _Drawn:
    """Decisions by hypothesis."""

    def __init__(self, draw: st.DrawFn):
        self._draw = draw

    def of(self, options: Sequence[T]) -> T:
        return self._draw(st.sampled_from(options))

    def number(self, least: int, most: int) -> int:
        return self._draw(st.integers(least, most))


class _Random:
    """Decisions by chance."""

    def __init__(self, chance: random.Random):
        self._chance = chance

    def of(self, options: Sequence[T]) -> T:
        return self._chance.choice(options)

    def number(self, least: int, most: int) -> int:
        return self._chance.randint(least, most)


# ------------------------------------------------------------------ cases


@dataclass(frozen=True)
class Case:
    """One query, the events of each stream, and the knowledge base."""

    query: str
    streams: Mapping[str, Sequence[Event]]
    kb: Mapping[str, Sequence[Fact]] = field(default_factory=dict)

    @property
    def merged(self) -> list[Event]:
        """All events in an order in which they may arrive."""
        events = [event for stream in self.streams.values() for event in stream]
        return sorted(events, key=lambda event: (event.instant, event.stream))

    def entry(self, matches: Sequence[OracleMatch] = (), name: str = "found") -> str:
        """The case as an entry of the suite."""
        lines = [f'[[case]]\nname = "{name}"\nsection = "4"\nquery = """\n{self.query}\n"""']
        lines.append('events = """')
        for event in self.merged:
            facts = " . ".join(" ".join(map(short, fact)) for fact in event.facts)
            lines.append(f"{local(event.stream)} {event.time.term.value} {facts}".rstrip())
        lines.append('"""')
        for graph, kb_facts in self.kb.items():
            text = " . ".join(" ".join(map(short, fact)) for fact in kb_facts)
            lines.append(f"kb.'{graph}' = '{text}'")
        lines.append("matches = [")
        lines += [f"    '{notation(match)}'," for match in matches]
        return "\n".join([*lines, "]"])

    def __repr__(self) -> str:
        return "\n" + self.entry()


def local(name: str) -> str:
    return name.removeprefix(EXAMPLE)


def short(term: Term) -> str:
    if isinstance(term, ox.NamedNode) and term.value.startswith(EXAMPLE):
        return ":" + local(term.value)
    if isinstance(term, ox.Triple):
        return f"<<( {' '.join(map(short, term))} )>>"
    text = str(term)
    return term.value if text.endswith("#integer>") else text


def notation(match: OracleMatch) -> str:
    """A match as the suite writes it: `A@S/1 B@T/2#1 @end=3 | ?x=1`."""
    parts = []
    for gpm, stream, micros, ordinal, _ in match.witnesses:
        at = f"{gpm}@{local(stream)}/{timestamp(micros, _domain(micros)).term.value}"
        parts.append(at + (f"#{ordinal}" if ordinal else ""))
    parts.append(f"@end={timestamp(match.end, _domain(match.end)).term.value} |")
    if match.solution is True:
        parts.append("true")
    elif isinstance(match.solution, tuple):
        facts = (" ".join(map(short, fact)) for fact in match.solution)
        parts.append("{ " + " . ".join(sorted(facts)) + " }")
    elif isinstance(match.solution, Mapping):
        parts += [f"?{name}={short(term)}" for name, term in sorted(match.solution.items())]
    return " ".join(parts)


def _domain(micros: int) -> str:
    return DATE_TIME if micros > DAY // 2 else NUMBER


# ------------------------------------------------------------------ sequence expressions


@dataclass(frozen=True)
class Ref:
    name: str


@dataclass(frozen=True)
class Group:
    """Units joined by `&`, `|` or `AND`."""

    operator: str
    operands: tuple[Tree, ...]


@dataclass(frozen=True)
class Step:
    operator: str
    unit: Tree
    quantifier: str = ""
    negated: bool = False


@dataclass(frozen=True)
class Seq:
    steps: tuple[Step, ...]


Tree = Ref | Group | Seq
OPTIONAL = ("?", "*", "{0,2}")
ITERATING = ("+", "+", "*", "{2}", "{1,2}", "{1,3}", "{0,2}", "{2,}")


def text(tree: Tree, outermost: bool = False) -> str:
    match tree:
        case Ref():
            return tree.name
        case Group():
            return "(" + f" {tree.operator} ".join(map(text, tree.operands)) + ")"
        case Seq():
            parts = []
            for number, step in enumerate(tree.steps):
                mark = "!" if step.negated else ""
                front = f" {step.operator} " if number else ""
                parts.append(front + mark + text(step.unit) + step.quantifier)
            return "".join(parts) if outermost else "(" + "".join(parts) + ")"


def skippable(step: Step) -> bool:
    return step.negated or step.quantifier in OPTIONAL


def begins_with_any_order(tree: Tree) -> bool:
    match tree:
        case Ref():
            return False
        case Seq():
            return begins_with_any_order(tree.steps[0].unit)
        case Group():
            return tree.operator == "AND" or any(map(begins_with_any_order, tree.operands))


def may_wait(tree: Tree) -> bool:
    """Whether a match of the unit may end in a negation or a skipped optional."""
    match tree:
        case Ref():
            return False
        case Group():
            return any(map(may_wait, tree.operands))
        case Seq():
            for step in reversed(tree.steps):
                if skippable(step):
                    return True
                return may_wait(step.unit)
    return False


@dataclass(frozen=True)
class Place:
    name: str
    units: tuple[int, ...]
    negated: bool
    grouped: bool
    any_order: bool


def places(tree: Tree) -> list[Place]:
    """Every place with the iterated units around it."""
    found: list[Place] = []
    count = 0

    def walk(node: Tree, units: tuple[int, ...], negated: bool, groups: str) -> None:
        nonlocal count
        match node:
            case Ref():
                grouped = "&" in groups or "AND" in groups
                found.append(Place(node.name, units, negated, grouped, "AND" in groups))
            case Group():
                for operand in node.operands:
                    walk(operand, units, negated, f"{groups} {node.operator}")
            case Seq():
                for step in node.steps:
                    inside = units
                    if step.quantifier not in ("", "?"):
                        inside = (*units, count)
                        count += 1
                    walk(step.unit, inside, negated or step.negated, groups)

    walk(tree, (), False, "")
    return found


class _SequenceDraw:
    """One draw of a sequence expression, of at most `room` places."""

    def __init__(self, choose: Choices, room: int, corners: bool):
        self._choose, self._room, self._corners = choose, room, corners
        self._names: list[str] = []
        self._barred = False
        """Whether the next step begins an operand of `|` or a negated unit: no negation there."""

    def flip(self, one_in: int) -> bool:
        return self._choose.number(0, one_in - 1) == one_in - 1

    def ref(self) -> Ref:
        self._room -= 1
        if self._names and (len(self._names) == 5 or self.flip(6)):
            return Ref(self._choose.of(self._names))
        self._names.append("ABCDE"[len(self._names)])
        return Ref(self._names[-1])

    def refs(self, most: int = 2) -> tuple[Ref, ...]:
        return tuple(self.ref() for _ in range(self._choose.number(2, max(2, most))))

    def unit(self, depth: int, negated: bool = False) -> Tree:
        kinds = ["ref"] * 5
        if self._room >= 2:
            kinds += ["&", "|", "AND"]
            if depth:
                kinds += ["seq"] * 3
        kind = self._choose.of(kinds)
        match kind:
            case "ref":
                return self.ref()
            case "&":
                if self._room >= 3 and self.flip(4):
                    return Group("&", (self.ref(), Group("|", self.refs())))
                return Group("&", self.refs(min(3, self._room)))
            case "|":
                if depth and self._room >= 3:
                    self._barred = True
                    side = self.side(depth - 1, negated)
                    sides = (self.ref(), side) if self.flip(2) else (side, self.ref())
                    return Group("|", sides)
                return Group("|", self.refs())
            case "AND":
                if self._room >= 3 and self.flip(3):
                    inner = self._choose.of(("&", "|"))
                    return Group("AND", (self.ref(), Group(inner, self.refs())))
                return Group("AND", self.refs(min(3, self._room)))
        return self.sequence(depth - 1, negated)

    def side(self, depth: int, negated: bool) -> Tree:
        """A side of a disjunction."""
        side = self.unit(depth, negated)
        if isinstance(side, Ref) and self._room >= 1:
            side = self.sequence(depth, negated)
        if self._corners:
            return side
        while begins_with_any_order(side) or (isinstance(side, Seq) and skippable(side.steps[0])):
            side = self.sequence(0, True) if self._room >= 2 else self.ref()
        return side

    def sequence(self, depth: int, plain: bool, outermost: bool = False) -> Seq:
        """Steps of which one at least must match; `plain`: the first one."""
        least = 1 if outermost and (self._room < 2 or self.flip(4)) else 2
        length = self._choose.number(least, max(least, min(4, self._room)))
        required = self._choose.number(0, length - 1)
        if plain:
            required = 0
        steps: list[Step] = []
        barred = self._barred
        for number in range(length):
            solid = any(not skippable(step) for step in steps)
            self._barred = barred and number == 0
            absent = solid or (not self._barred and all(step.negated for step in steps))
            if number > max(required, least - 1) and self._room <= 0:
                break
            steps.append(self.step(number == required, absent, depth, outermost and number == 0))
        return Seq(tuple(steps))

    def step(self, required: bool, absent: bool, depth: int, first: bool) -> Step:
        """`absent`: it may be a negation."""
        kinds = ["plain"] * 4 + ["iterated"] * 2
        if not required:
            kinds += ["optional"] * 4 + (["negated"] * 4 if absent else [])
        kind = self._choose.of(kinds)
        self._barred |= kind == "negated"
        unit = self.unit(depth, kind == "negated")
        operators = ";;:" if begins_with_any_order(unit) else ";;::,"
        operator = self._choose.of(operators)
        if kind == "negated":
            return Step(operator, unit, negated=True)
        choice = {"plain": ("",), "optional": OPTIONAL, "iterated": ITERATING}[kind]
        if required:
            choice = tuple(quantifier for quantifier in choice if quantifier not in OPTIONAL)
        return Step(operator, unit, self._choose.of(choice))


class _PlainSequence(_SequenceDraw):
    """Single steps, iterations, disjunctions, single steps that must be absent."""

    def unit(self, depth: int, negated: bool = False) -> Tree:
        kinds = ["ref"] * 5 + (["|", *["seq"] * (2 * depth)] if self._room >= 2 else [])
        match self._choose.of(kinds):
            case "|" if depth and self._room >= 3:
                return Group("|", (self.ref(), self.unit(depth - 1)))
            case "|":
                return Group("|", self.refs())
            case "seq":
                return self.sequence(depth - 1, True)
        return self.ref()

    def step(self, required: bool, absent: bool, depth: int, first: bool) -> Step:
        operator = self._choose.of(";;::,")
        if absent and not required and self.flip(3):
            return Step(operator, self.ref(), negated=True)
        solid = absent and not first
        kinds = ("", "", "", "+", "+", "{2}", "{1,2}", "{1,3}", "{2,}") + ("?",) * 4 * solid
        return Step(operator, self.unit(depth), self._choose.of(kinds))


# ------------------------------------------------------------------ GPMs


@dataclass
class Gpm:
    """A GPM being written: the variables it binds, and the lines of its pattern."""

    name: str
    places: list[Place]
    streams: tuple[str, ...]
    value: str
    keys: set[str] = field(default_factory=set)
    at: str | None = None
    lines: list[str] = field(default_factory=list)
    extra: set[str] = field(default_factory=set)

    @property
    def binds(self) -> set[str]:
        return {self.value, *self.keys, *self.extra} | ({self.at} if self.at else set())


class _GpmDraw:
    """One draw of the GPMs of a sequence expression."""

    def __init__(
        self, choose: Choices, tree: Tree, streams: Sequence[str], keyed: bool, dates: bool
    ):
        self._choose, self._keyed, self._dates = choose, keyed, dates
        found = places(tree)
        self.gpms = [
            self._pattern(name, [p for p in found if p.name == name], streams)
            for name in dict.fromkeys(place.name for place in found)
        ]
        self.units = self._group_units()
        for gpm in self.gpms:
            for _ in range(choose.of((0, 1, 0, 1, 0, 2))):
                gpm.lines.append(self._condition(gpm))
            if not any(place.any_order for place in gpm.places) and self._one_in(8):
                self._assign(gpm)
        self.units = self._group_units()

    def _one_in(self, number: int) -> bool:
        return self._choose.number(0, number - 1) == number - 1

    def _pick(self, *choices: str) -> str:
        return self._choose.of(choices)

    def _pattern(self, name: str, where: list[Place], streams: Sequence[str]) -> Gpm:
        on = [self._pick(*streams)]
        if len(streams) > 1 and self._one_in(2):
            on = list(dict.fromkeys([*on, *streams]))[:2]
        low = name.lower()
        gpm = Gpm(name, where, tuple(on), f"v{low}")
        positive = any(not place.negated for place in where)
        subject = self._pick(f"?k{low}", "?k", f"?k{low}", ":a")
        if self._keyed and (positive or self._one_in(2)):
            subject = "?k"
        if subject.startswith("?"):
            gpm.keys.add(subject[1:])
        predicate = self._pick(*PREDICATES)
        value = f"?{gpm.value}"
        triple = f"{subject} :{predicate} {value} ."
        match self._choose.number(0, 13):
            case 7:
                triple = f"{subject} :{predicate}|:{self._pick(*PREDICATES)} {value} ."
            case 8:
                triple += f" VALUES {value} {{ 0 1 3 }}"
            case 0 | 1:
                other = self._pick(*PREDICATES)
                gpm.extra.add(f"o{low}")
                triple += f" OPTIONAL {{ {subject} :{other} ?o{low} }}"
            case 2:
                gpm.extra.add(f"g{low}")
                triple += f" GRAPH :kb {{ {subject} :type ?g{low} }}"
            case 3:
                gpm.extra.update(("g", f"g{low}"))
                triple += f" GRAPH ?g {{ {subject} :type ?g{low} }}"
            case 4:
                other = self._pick(*PREDICATES)
                triple = f"{{ {triple} }} UNION {{ {subject} :{other} {value} }}"
            case 5:
                triple += f" MINUS {{ {subject} :{self._pick(*PREDICATES)} 0 }}"
            case 6:
                gpm.extra.add("j")
                triple += f" {subject} :{self._pick(*PREDICATES)} ?j ."
        gpm.lines.append(triple)
        if self._one_in(4):
            gpm.at = "t" if self._one_in(8) else f"t{low}"
        return gpm

    def _group_units(self) -> dict[str, int]:
        """Each group variable that a match can hold, with its iterated unit."""
        found: dict[str, int] = {}
        positive = [g for g in self.gpms if not all(place.negated for place in g.places)]
        names = sorted(set().union(*(gpm.binds for gpm in positive)))
        for name in names:
            chains = [p.units for gpm in self.gpms if name in gpm.binds for p in gpm.places]
            shared = [unit for unit in chains[0] if all(unit in chain for chain in chains)]
            if shared and not (self._keyed and name == "k"):
                found[name] = shared[-1]
        return found

    def _values(self, gpms: Sequence[Gpm] | None = None) -> list[str]:
        gpms = self.gpms if gpms is None else gpms
        return [gpm.value for gpm in gpms] + [
            name for gpm in gpms for name in sorted(gpm.extra) if name[0] in "oj"
        ]

    def _others(self, gpm: Gpm) -> list[str]:
        """Values of other GPMs, mostly of those that are bound when this one is tested."""
        if self._one_in(6):
            return [name for name in self._values() if name != gpm.value]
        number = self.gpms.index(gpm)
        before = self.gpms[: number + 1 + any(p.negated or p.grouped for p in gpm.places)]
        positive = [g for g in before if g is not gpm and not all(p.negated for p in g.places)]
        return self._values(positive)

    def _previous(self, gpm: Gpm) -> list[str]:
        """Group variables of units that hold every place of the GPM."""
        return [
            name
            for name in self._values()
            if name in self.units and all(self.units[name] in p.units for p in gpm.places)
        ]

    def term(self, concatenated: bool = False) -> str:
        """A number (or a text) out of the iterations, for any place."""
        grouped = [name for name in self._values() if name in self.units]
        if not grouped or self._one_in(4):
            return f"COUNT({self._pick(*(gpm.name for gpm in self.gpms))})"
        if concatenated:
            separator = self._pick("", '; SEPARATOR=", "')
            return f"GROUP_CONCAT(?{self._pick(*grouped)}{separator})"
        function = self._pick("FIRST", "LAST", "COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE")
        distinct = "DISTINCT " if function in ("COUNT", "SUM") and self._one_in(4) else ""
        return f"{function}({distinct}?{self._pick(*grouped)})"

    def _condition(self, gpm: Gpm) -> str:
        own = f"?{gpm.value}"
        others = self._others(gpm)
        other = f"?{self._pick(*others)}" if others else "2"
        compare = self._pick("<=", ">=", "!=", "<", ">", "=")
        previous = self._previous(gpm)
        timed = [f"?{other.at}" for other in self.gpms if other.at]
        match self._choose.number(0, 9):
            case 0:
                return f"FILTER({own} {compare} {self._pick('0', '1', '2')})"
            case 1 | 2:
                return f"FILTER({own} {compare} {other})"
            case 3:
                guard = f"!BOUND({other}) || " if others else ""
                return f"FILTER({guard}{own} {compare} {other})"
            case 4 | 5 if previous:
                name = self._pick(*previous)
                default = self._pick("", "", ", 0", f", {own}", ", 3")
                prev = f"PREV(?{name}{default})"
                guard = self._pick("", "", "", f"!BOUND({prev}) || ", f"BOUND({prev}) && ")
                return f"FILTER({guard}{own} {compare} {prev})"
            case 6 | 7:
                return f"FILTER({self._pick(own, '1', '2')} {compare} {self.term()})"
            case 8 if gpm.at and timed:
                gap = '"PT2S"^^xsd:dayTimeDuration' if self._dates else "2"
                return f"FILTER(?{gpm.at} - {self._pick(*timed)} {compare} {gap})"
            case 9:
                mark = self._pick("", "NOT ")
                return f"FILTER {mark}EXISTS {{ ?x :{self._pick(*PREDICATES)} {other} }}"
        pair = f"{own} + {other}"
        if self._one_in(2):
            pair = self._pick(f"<{FN}sum>({own}, {other})", f"<{FN}twice>({own})")
        return f"FILTER({pair} {compare} {self._pick('2', '3')})"

    def _assign(self, gpm: Gpm) -> None:
        """A stateful BIND, of a variable of its own or of one that several BIND."""
        others = self._others(gpm)
        other = f"?{self._pick(*others)}" if others else self.term()
        name = self._pick(f"z{gpm.name.lower()}", "z")
        gpm.extra.add(name)
        gpm.lines.append(f"BIND({self._pick(f'COALESCE({other}, 0)', other + ' + 1')} AS ?{name})")

    def define(self, gpm: Gpm) -> str:
        at = f" AT ?{gpm.at}" if gpm.at else ""
        body = " ".join(gpm.lines)
        return f"DEFINE GPM {gpm.name} ON {', '.join(gpm.streams)}{at} {{ {body} }}"


class _PlainGpms(_GpmDraw):
    """Their conditions ask for values of other steps, PREV and LAST, never for aggregates."""

    def _pattern(self, name: str, where: list[Place], streams: Sequence[str]) -> Gpm:
        gpm = super()._pattern(name, where, streams)
        gpm.lines = [re.sub(r"(:[pqr])\|:[pqr]", r"\1", line) for line in gpm.lines]
        return gpm

    def term(self, concatenated: bool = False) -> str:
        names = [name for name in self._values() if name in self.units]
        return f"LAST(?{self._pick(*names)})" if names else "2"

    def _condition(self, gpm: Gpm) -> str:
        found = super()._condition(gpm)
        return self._condition(gpm) if "EXISTS" in found else found

    def _assign(self, gpm: Gpm) -> None:
        name = f"z{gpm.name.lower()}"
        gpm.extra.add(name)
        gpm.lines.append(f"BIND(?{gpm.value} + 1 AS ?{name})")


# ------------------------------------------------------------------ queries and streams


def query_of(
    choose: Choices,
    streams: Sequence[str],
    dates: bool = False,
    corners: bool = False,
    register: str = "",
) -> str:
    """A valid query over the streams; with `register`, a CONSTRUCT of that stream."""
    room = choose.of((3, 4, 5, 2, 3, 4, 5, 6, 1))
    tree = _SequenceDraw(choose, room, corners).sequence(2, False, outermost=True)
    keyed = choose.number(0, 3) == 3
    written = _GpmDraw(choose, tree, streams, keyed, dates)
    clauses = [_window(choose, may_wait(tree)), *_sources(streams, keyed)]
    emit = choose.of(("", "", "", "", "", "ANY", "NEXT", "LAST", "MAX", "STRICT"))
    if emit:
        clauses.append(f"EMIT {emit}")
    form = _registered(choose, written, register) if register else _form(choose, written)
    if choose.number(0, 5) == 5 and not (form == "ASK" and keyed):
        clauses.append("AFTER MATCH SKIP PAST LAST EVENT")
    return _query(choose, form, clauses, tree, written)


def plain_query(choose: Choices, streams: Sequence[str], dates: bool) -> str:
    """A valid query of the sort that the compiled core runs, but for rare ones."""
    keyed = choose.number(0, 3) == 3
    room = choose.of((3, 4, 5, 2, 3, 4, 5, 6, 1))
    tree = _PlainSequence(choose, room, False).sequence(2, True, outermost=True)
    written = _PlainGpms(choose, tree, streams, keyed, dates)
    window = _window(choose, choose.number(0, 3) > 0 or may_wait(tree))
    clauses = [window.replace("UNBOUNDED", "7 EVENTS"), *_sources(streams, keyed)]
    emits = ("", "", "", "", "ANY", "NEXT", "LAST", "MAX", "STRICT")
    clauses += [f"EMIT {emit}" for emit in [choose.of(emits)] if emit]
    form = _form(choose, written)
    skips = choose.number(0, 5) == 5 and not (form == "ASK" and keyed)
    clauses += ["AFTER MATCH SKIP PAST LAST EVENT"] * skips
    return _query(choose, form, clauses, tree, written)


def _sources(streams: Sequence[str], keyed: bool) -> list[str]:
    return ["PARTITION BY ?k"] * keyed + [f"FROM STREAM {name} :{name}" for name in streams]


def _query(
    choose: Choices, form: str, clauses: Sequence[str], tree: Tree, written: _GpmDraw
) -> str:
    grouped = None
    if choose.number(0, 5) == 5 and not ("ASK" in form and "PARTITION" in str(clauses)):
        grouped = GroupDraw(choose, _bound(written), written.term, clauses[0])
        form = grouped.form(form)
    names = _bound(written) if grouped is None else grouped.shown
    limit = drawn_limit(choose, form, names) if choose.number(0, 5) == 5 else ""
    if grouped is not None:
        limit = grouped.clause + limit
    defines = "\n  ".join(map(written.define, written.gpms))
    head = "\n".join(["PREFIX : <http://example.org/>", form, *clauses])
    return f"{head}\nWHERE {{\n  SEQ({text(tree, True)})\n  {defines}\n}}{limit}"


def drawn_limit(choose: Choices, form: str, names: Sequence[str]) -> str:
    """A LIMIT clause; `names` are the variables that SELECT could show."""
    words = [f" LIMIT {choose.of((1, 2, 1, 3))}"]
    aliases = re.findall(r" AS \?(\w+)\)", form)
    if "DISTINCT" in form:
        names = re.findall(r"\?(\w+)", form.partition("(")[0])  # expressions come last
    names = [*names, *aliases]
    if names and "ASK" not in form and choose.number(0, 1):
        words.append("PER " + " ".join(f"?{choose.of(names)}" for _ in range(choose.of((1, 1, 2)))))
    if choose.number(0, 1):
        words.append(f"EVERY {choose.of((2, 3, 1, 4, 0.5))} SECONDS")
    return " ".join(words)


def _window(choose: Choices, waits: bool) -> str:
    kinds = ["span"] * 3 + ["tumbling"] + ([] if waits else ["events", "unbounded"])
    match choose.of(kinds):
        case "span":
            return f"WITHIN {choose.of((4, 8, 5, 3, 2, 6, 1))} SECONDS"
        case "tumbling":
            return f"WITHIN TUMBLING {choose.number(2, 5)} SECONDS"
        case "events":
            return f"WITHIN {choose.of((5, 6, 4, 3, 2, 1))} EVENTS"
    return "WITHIN UNBOUNDED"


def _bound(written: _GpmDraw) -> list[str]:
    """The variables of positive GPMs."""
    positive = [g for g in written.gpms if any(not place.negated for place in g.places)]
    return sorted(set().union(*(gpm.binds for gpm in positive)))


def _form(choose: Choices, written: _GpmDraw) -> str:
    names = _bound(written)
    match choose.number(0, 9):
        case 9:
            return "ASK"
        case 8:
            triples = [f":m :has ?{name}" for name in names[:2]] + ["[] :of :m"]
            return f"CONSTRUCT {{ {' . '.join(triples)} }}"
        case 2:
            return f"SELECT DISTINCT ?{choose.of(names)}"
        case 3 | 4 | 5:
            return "SELECT *"
    items = [f"?{name}" for name in names if choose.number(0, 1)]
    terms = {_number(choose, written, names) for _ in range(choose.number(1, 3))}
    return f"SELECT {' '.join(items + [f'({t} AS ?x{n})' for n, t in enumerate(sorted(terms))])}"


def _registered(choose: Choices, written: _GpmDraw, register: str) -> str:
    positive = [g for g in written.gpms if any(not place.negated for place in g.places)]
    triples = {
        f"{choose.of((':a', ':b'))} :{choose.of(PREDICATES)} ?{choose.of(positive).value}"
        for _ in range(choose.number(1, 3))
    }
    return f"REGISTER STREAM :{register} AS CONSTRUCT {{ {' . '.join(sorted(triples))} }}"


def _number(choose: Choices, written: _GpmDraw, names: Sequence[str]) -> str:
    if choose.number(0, 1):
        return written.term(concatenated=choose.number(0, 4) == 4)
    value = choose.of([name for name in names if name.startswith("v")])
    return choose.of((f"?{value} + 1", f"COALESCE(?{value}, 7)", f"BOUND(?{value})"))


def _facts(choose: Choices, predicates: Sequence[str]) -> list[Fact]:
    """The facts of an event, of one of each of some predicates at least."""
    wanted = [*predicates, *(choose.of(PREDICATES) for _ in range(choose.of((0, 1, 0, 1, 2))))]
    facts = [
        (iri(choose.of(SUBJECTS)), iri(predicate), ox.Literal(choose.number(0, 3)))
        for predicate in wanted
    ]
    return list(dict.fromkeys(facts))


def events_of(
    choose: Choices, names: Sequence[str], dates: bool, query: str, most: int = 9
) -> dict[str, list[Event]]:
    """Few events at few timestamps, most of them such as the query's GPMs read, in order.

    Several events of one stream, and of different ones, share a timestamp; some are empty.
    """
    read = re.findall(r"DEFINE GPM \w+ ON ([^{]*?)(?: AT \?\w+)? {[^}]*?:([pqr]) ", query)
    out: dict[str, list[Event]] = {EXAMPLE + name: [] for name in names}
    now, turn = choose.number(-2, 4), 0
    for _ in range(choose.number(5, most)):
        now += choose.of((1, 0, 1, 0, 1, 2))
        predicates: list[str] = []
        name = choose.of(names)
        if choose.number(0, 3):
            streams, predicate = read[turn % len(read)]
            name, turn = choose.of(streams.split(", ")), turn + choose.of((1, 0, 1, 2))
            predicates = [predicate]
        micros = now * 1_000_000 + (DAY if dates else 0)
        stream = EXAMPLE + name
        ordinal = sum(event.time.micros == micros for event in out[stream])
        time = timestamp(micros, DATE_TIME if dates else NUMBER)
        out[stream].append(Event(stream, time, ordinal, _facts(choose, predicates)))
    return out


def case_of(choose: Choices, corners: bool = False, plain: bool = False) -> Case:
    """A query with streams and a knowledge base that it can say something about."""
    streams = STREAMS[: choose.of((1, 2, 1, 2, 3))]
    dates = choose.number(0, 4) == 4
    drawn = plain_query if plain else partial(query_of, corners=corners)
    query = drawn(choose, streams, dates)
    kb = dict(_kb(choose)) if "GRAPH" in query else {}
    if EXAMPLE + "kb" in kb and choose.number(0, 3) == 3:
        query = query.replace("\nFROM STREAM", "\nFROM NAMED :kb\nFROM STREAM", 1)
    return Case(query, events_of(choose, streams, dates, query), kb)


def _kb(choose: Choices) -> Iterator[tuple[str, list[Fact]]]:
    for graph in ("kb", "more"):
        rows = {(choose.of(SUBJECTS), choose.of("xy")) for _ in range(choose.number(0, 3))}
        if rows:
            yield EXAMPLE + graph, [(iri(s), iri("type"), iri(o)) for s, o in sorted(rows)]


def random_chain(seed: int) -> tuple[str, Case]:
    """A query that registers a stream `:D`, and a case of a query that reads it."""
    choose = _Random(random.Random(seed))
    streams = STREAMS[: choose.of((1, 2))]
    first = query_of(choose, streams, register="D")
    second = query_of(choose, ("D", *streams[: choose.number(0, 1)]))
    kb = dict(_kb(choose)) if "GRAPH" in first + second else {}
    return first, Case(second, events_of(choose, streams, False, first), kb)


@st.composite
def cases(draw: st.DrawFn, corners: bool = False) -> Case:
    """Cases for hypothesis, which makes a failing one small."""
    return case_of(_Drawn(draw), corners)


def random_case(seed: int, corners: bool = False) -> Case:
    """The case of a seed: evenly drawn and cheap, for long campaigns."""
    return case_of(_Random(random.Random(seed)), corners)


def plain_case(seed: int) -> Case:
    """The case of a seed, with a query of the sort that the compiled core runs."""
    return case_of(_Random(random.Random(seed)), plain=True)


# ------------------------------------------------------------------ making a case small


def smaller(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The case without the events, facts, filters and clauses that its failing can spare."""
    shrunk = True
    while shrunk:
        shrunk = False
        for candidate in _without_something(case):
            if fails(candidate):
                case, shrunk = candidate, True
                break
    return case


def _without_something(case: Case) -> Iterator[Case]:
    optional = (
        r"^(EMIT|AFTER|PARTITION) .*\n",
        r" LIMIT \d$",
        r" FILTER\([^{}]*?\)(?= FILTER| BIND| })",
        r" FILTER (NOT )?EXISTS {[^{}]*}",
        r" BIND\([^{}]*?\)(?= FILTER| BIND| })",
        r" (OPTIONAL|MINUS|GRAPH \S+) {[^{}]*}",
        r" AT \?\w+",
    )
    for pattern in optional:
        for found in re.finditer(pattern, case.query, re.M):
            yield replace(case, query=case.query[: found.start()] + case.query[found.end() :])
    for name in case.kb:
        yield replace(case, kb={graph: facts for graph, facts in case.kb.items() if graph != name})
    for stream, events in case.streams.items():
        for number, event in enumerate(events):
            rest = [*events[:number], *events[number + 1 :]]
            yield replace(case, streams={**case.streams, stream: numbered(rest)})
            for fact in event.facts:
                less = replace(event, facts=[other for other in event.facts if other != fact])
                changed = [*events[:number], less, *events[number + 1 :]]
                yield replace(case, streams={**case.streams, stream: changed})


def numbered(events: Sequence[Event]) -> list[Event]:
    seen: Counter[int] = Counter()
    out = []
    for event in events:
        out.append(replace(event, ordinal=seen[event.time.micros]))
        seen[event.time.micros] += 1
    return out

"""Sequences of the reference semantics: all matches of a SEQ over whole, finite streams.

This follows docs/language.md, sections 4 and 8, literally. Derivations are enumerated from left to
right, and each condition ("no x' acceptable to Ψ lies strictly between", "N does not occur") is
checked by searching all events for a counter-example. Nothing is shared, indexed or cached between
partial matches. Cost: exponential; meant for ten events.

A partial match is the list of its witnesses. Each witness has the number of the iteration of every
iterated unit around its place. The value of a variable, `PREV` or an aggregate at a place is
computed from that list (`Reading`). A guard (`!N`, or a skipped optional) waits in the partial
match until the next step is joined, or the window closes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from oracle_patterns import Gpm, Graphs, aggregate, rewritten, variables_of

from spaseq.parser import ast
from spaseq.rdf.event import Event, Term

Instant = tuple[int, int]
Path = tuple[tuple[int, int], ...]
"""The iterations a place is in: (unit, number of the iteration from 1), outermost first."""


# ------------------------------------------------------------------ the SEQ expression


@dataclass(frozen=True, eq=False)
class Place:
    index: int
    gpm: Gpm
    units: tuple[int, ...]
    negated: bool


@dataclass(frozen=True, eq=False)
class Together:
    """`&`."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Either:
    """`|`."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class AnyOrder:
    """`AND`."""

    operands: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Steps:
    steps: tuple[tuple[str | None, Node], ...]


@dataclass(frozen=True, eq=False)
class Repeat:
    unit: int
    node: Node
    least: int
    most: int | None


@dataclass(frozen=True, eq=False)
class Maybe:
    """An optional step; with a size, its absence at the end lasts until a deadline."""

    node: Node
    size: int | None = None


@dataclass(frozen=True, eq=False)
class Bounded:
    """A unit that must end within `size` of m, or of its first event if there is no m."""

    node: Node
    size: int


@dataclass(frozen=True, eq=False)
class Never:
    """`!N`; with a size, an absence that lasts until its deadline, or looks back by that size."""

    node: Node
    size: int | None = None


Node = Place | Together | Either | AnyOrder | Steps | Repeat | Maybe | Bounded | Never
AFTER_ALL = 2**62
"""The ordinal of a deadline, which follows all events of its timestamp."""


@dataclass
class Layout:
    """The places of a SEQ, and the iterated units around each."""

    gpms: Mapping[str, Gpm]
    places: list[Place] = field(default_factory=list)
    units: int = 0

    def steps(self, sequence: ast.Sequence, around: tuple[int, ...], negated: bool) -> Node:
        done = tuple((s.operator, self.step(s, around, negated)) for s in sequence.steps)
        return done[0][1] if len(done) == 1 else Steps(done)

    def step(self, step: ast.Step, around: tuple[int, ...], negated: bool) -> Node:
        quantifier = step.quantifier
        size = None if step.bound is None else step.bound.microseconds
        if step.negated:
            return Never(self.node(step.unit, around, True), size)
        if quantifier is None:
            return bounded(self.node(step.unit, around, negated), size)
        if quantifier.optional:
            return Maybe(bounded(self.node(step.unit, around, negated), size), size)
        unit = self.units
        self.units += 1
        node = bounded(self.node(step.unit, (*around, unit), negated), size)
        repeat = Repeat(unit, node, max(quantifier.least, 1), quantifier.most)
        return repeat if quantifier.least else Maybe(repeat, size)

    def node(self, unit: ast.Unit, around: tuple[int, ...], negated: bool) -> Node:
        if isinstance(unit, ast.GpmRef):
            place = Place(len(self.places), self.gpms[unit.name], around, negated)
            self.places.append(place)
            return place
        if isinstance(unit, ast.Sequence):
            return self.steps(unit, around, negated)
        operands = tuple(self.node(operand, around, negated) for operand in unit.operands)
        match unit:
            case ast.Conjunction():
                return Together(operands)
            case ast.Disjunction():
                return Either(operands)
            case ast.AnyOrder():
                return AnyOrder(operands)


def bounded(node: Node, size: int | None) -> Node:
    return node if size is None else Bounded(node, size)


def common(chains: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The iterated units that surround all of some places."""
    return tuple(unit for unit in chains[0] if all(unit in chain for chain in chains))


# ------------------------------------------------------------------ partial matches


@dataclass(frozen=True, eq=False)
class Entry:
    """A witness: the place that accepted the event, its iterations, and its mapping."""

    place: Place
    event: Event
    mapping: Mapping[str, Term]
    path: Path


@dataclass(frozen=True, eq=False)
class Guard:
    """`!N`, or a skipped `N?`: N must not occur before the step that is joined next.

    `operator` reaches N from the left. It is ignored in front of N as a whole, and holds
    between N's iterations and in an `AND` group at the start of N.
    """

    node: Node
    path: Path
    operator: str | None
    optional: bool
    size: int | None = None
    """How far it looks back from the first step of the match; None: over the window."""
    lasts: int | None = None
    """The duration of an absence of a bounded optional step at the end; None: the window."""


@dataclass(frozen=True, eq=False)
class Partial:
    """A partial match m. `entries` may have more context than was joined (`first`, `last`).

    `free`: the next step may be anywhere later. It is the first of a match, or of a guarded unit.
    """

    entries: tuple[Entry, ...] = ()
    first: Event | None = None
    last: Instant | None = None
    waiting: tuple[Guard, ...] = ()
    free: bool = True

    def obliges(self, operator: str | None) -> bool:
        return not self.free and operator == ";"

    def obliges_operands(self, operator: str | None) -> bool:
        """Like `obliges`, for each operand of an `AND`, which a guard does not make `free`."""
        return self.last is not None and operator == ";"


Joined = tuple[tuple[Entry, ...], ...]
"""x: the witnesses of a step, one tuple per `&` group or event."""
Within = Callable[[Partial, Event], bool]
Ends = Callable[[Instant], bool]
"""Whether a guarded unit that ends at an instant, possibly with an absence, occurred in time."""


def _before(guard: Guard, m: Partial) -> tuple[Guard, ...]:
    """The guards that wait in front of a guard."""
    return m.waiting[: m.waiting.index(guard)]


def flat(x: Joined) -> tuple[Entry, ...]:
    return tuple(entry for group in x for entry in group)


def earliest(x: Joined) -> Event:
    return min((entry.event for entry in flat(x)), key=lambda event: event.instant)


def latest(x: Joined) -> Event:
    return max((entry.event for entry in flat(x)), key=lambda event: event.instant)


@dataclass(frozen=True)
class Rival:
    """Where a step was acceptable: up to its last instant; of two `&`, their timestamps count."""

    instant: Instant
    simultaneous: bool

    def precedes(self, x: Joined) -> bool:
        first = earliest(x)
        if self.simultaneous and len(x) == 1 and len(x[0]) > 1:
            return self.instant[0] < first.time.micros
        return self.instant < first.instant


# ------------------------------------------------------------------ what names mean


class Reading:
    """Variables, `PREV` and aggregates at a place, computed from the witnesses."""

    def __init__(self, layout: Layout, partition: Sequence[str], graphs: Graphs):
        self.graphs = graphs
        self.chain: dict[str, tuple[int, ...]] = {}
        names = {name for place in layout.places for name in place.gpm.binds}
        for name in names - set(partition):
            around = common([p.units for p in layout.places if name in p.gpm.binds])
            if around:
                self.chain[name] = around
        self.gpm_chain = {
            gpm: common([p.units for p in layout.places if p.gpm.name == gpm])
            for gpm in {place.gpm.name for place in layout.places}
        }
        self._slots: dict[int, tuple[ast.Expr, ast.Expr, dict[str, Any]]] = {}

    def compatible(self, one: Entry, other: Entry) -> bool:
        """Equal on shared variables; group variables only within one iteration."""
        for name in one.mapping.keys() & other.mapping.keys():
            depth = len(self.chain.get(name, ()))
            if one.path[:depth] == other.path[:depth] and one.mapping[name] != other.mapping[name]:
                return False
        return True

    def seen(self, chain: tuple[int, ...], path: Path, entries: Sequence[Entry]) -> list[Entry]:
        """The witnesses inside a unit that a place sees; `chain`: the units around it, and itself.

        These belong to the current iteration of every unit strictly around the unit that also
        contains the place; inside the unit itself, to the current run up to this iteration.
        """
        here = dict(path)
        found = []
        for entry in entries:
            there = dict(entry.path)
            if all(unit in there for unit in chain) and all(
                there[unit] == here[unit] for unit in chain[:-1] if unit in here
            ):
                unit = chain[-1] if chain else None
                if unit not in here or there[unit] <= here[unit]:
                    found.append(entry)
        return found

    def iterations(self, name: str, path: Path, entries: Sequence[Entry]) -> list[Term | None]:
        """A group variable's value in each iteration that a place sees, in order."""
        chain = self.chain[name]
        values: dict[Path, Term | None] = {}
        for entry in self.seen(chain, path, entries):
            number = entry.path[: len(chain)]
            if values.setdefault(number) is None:
                values[number] = entry.mapping.get(name)
        return [values[number] for number in sorted(values)]

    def in_iteration(self, name: str, number: Path, entries: Sequence[Entry]) -> Term | None:
        """The value in one iteration (of the whole match, for a join variable)."""
        depth = len(self.chain.get(name, ()))
        values = (e.mapping.get(name) for e in entries if e.path[:depth] == number)
        return next((value for value in values if value is not None), None)

    def bare(self, name: str, path: Path, entries: Sequence[Entry]) -> Term | None:
        chain = self.chain.get(name, ())
        if not chain or chain[-1] in dict(path):
            return self.in_iteration(name, path[: len(chain)], entries)
        values = self.iterations(name, path, entries)
        return values[-1] if values else None

    def previous(self, node: ast.Prev, path: Path, entries: Sequence[Entry], at: Any) -> Any:
        name = node.variable.name
        depth = len(self.chain[name])
        unit, number = path[depth - 1]
        if number > 1:
            return self.in_iteration(name, (*path[: depth - 1], (unit, number - 1)), entries)
        return None if node.default is None else self.value(node.default, path, entries, at)

    def ranged(self, node: ast.Aggregate, path: Path, entries: Sequence[Entry]) -> Term | None:
        if isinstance(node.argument, ast.GpmName):
            gpm = node.argument.name
            visible = self.seen(self.gpm_chain[gpm], path, entries)
            witnesses = [e for e in visible if e.place.gpm.name == gpm]
            return aggregate(replace(node, distinct=False), [e.event.time.term for e in witnesses])
        assert isinstance(node.argument, ast.Var)
        values = self.iterations(node.argument.name, path, entries)
        if node.name in ("FIRST", "LAST"):
            end = 0 if node.name == "FIRST" else -1
            return values[end] if values else None
        return aggregate(node, [value for value in values if value is not None])

    def plain(self, expression: ast.Expr) -> tuple[ast.Expr, dict[str, Any]]:
        """The expression with a variable in place of each `PREV` and aggregate."""
        if id(expression) not in self._slots:
            slots: dict[str, Any] = {}

            def name(node: Any) -> ast.Var | None:
                if not isinstance(node, ast.Prev | ast.Aggregate):
                    return None
                slots[f"slot_{len(slots)}"] = node
                return ast.Var(f"slot_{len(slots) - 1}")

            plain = rewritten(expression, name)
            slots.update((n, None) for n in variables_of(plain) if n not in slots)
            self._slots[id(expression)] = (expression, plain, slots)
        return self._slots[id(expression)][1:]

    def values(
        self, slots: Mapping[str, Any], path: Path, entries: Sequence[Entry], at: Event | None
    ) -> dict[str, Term | None]:
        found = {}
        for name, node in slots.items():
            if isinstance(node, ast.Prev):
                found[name] = self.previous(node, path, entries, at)
            elif isinstance(node, ast.Aggregate):
                found[name] = self.ranged(node, path, entries)
            else:
                found[name] = self.bare(name, path, entries)
        return found

    def value(
        self, expression: ast.Expr, path: Path, entries: Sequence[Entry], at: Event | None
    ) -> Term | None:
        plain, slots = self.plain(expression)
        return self.graphs.value(plain, self.values(slots, path, entries, at), at)

    def holds(self, condition: ast.Expr, path: Path, entries: Sequence[Entry], at: Event) -> bool:
        plain, slots = self.plain(condition)
        return self.graphs.holds(plain, self.values(slots, path, entries, at), at)


# ------------------------------------------------------------------ windows


@dataclass(frozen=True)
class Window:
    """WITHIN; `instants` are those of all events of the declared streams."""

    clause: ast.Within
    instants: tuple[Instant, ...]

    def fits(self, first: Event, last: Event) -> bool:
        return self.holds(first, last.instant)

    def holds(self, first: Event, last: Instant) -> bool:
        """Whether a match from an event to an instant, which may be a deadline, fits."""
        size = self.clause.microseconds
        one, other = first.time.micros, last[0]
        match self.clause.kind:
            case "span":
                return other - one <= size
            case "tumbling":
                return one // size == other // size
            case "events":
                inside = [i for i in self.instants if first.instant <= i <= last]
                return len(inside) <= self.clause.events
            case "unbounded":
                return True

    def closing(self, first: Event) -> int:
        size = self.clause.microseconds
        if self.clause.kind == "tumbling":
            return (first.time.micros // size + 1) * size
        return first.time.micros + size


# ------------------------------------------------------------------ derivations


class Derivations:
    """All matches of one query; `events` are the events of its declared streams."""

    def __init__(
        self,
        root: Node,
        reading: Reading,
        events: Sequence[Event],
        window: Window,
        partition: Sequence[str],
        gpms: Sequence[Gpm],
    ):
        self.root, self.reading, self.window = root, reading, window
        self.events, self.partition = events, tuple(partition)
        self.instants = [event.instant for event in events]
        self.members = {
            id(event): {
                tuple(found[name] for name in self.partition)
                for gpm in gpms
                if event.stream in gpm.streams
                for found in reading.graphs.solutions(gpm, event)
                if all(name in found for name in self.partition)
            }
            for event in events
        }

    def matches(self) -> Iterator[tuple[Partial, int | None]]:
        """Each complete derivation, and the time of its result if that is not its last event's."""

        def within(m: Partial, event: Event) -> bool:
            return m.first is None or self.window.fits(m.first, event)

        for m in self.run(self.root, None, Partial(), (), within):
            if m.first is None or m.last is None or not self.window.holds(m.first, m.last):
                continue
            sizes = [guard.lasts for guard in m.waiting]
            if sizes and all(size is not None for size in sizes):
                deadline = m.last[0] + max(size for size in sizes if size is not None)

                def until(p: Partial, event: Event, last: int = deadline) -> bool:
                    return event.time.micros <= last

                def over(last: Instant, end: int = deadline) -> bool:
                    return last[0] <= end

                late = not self.window.holds(m.first, (deadline, AFTER_ALL))
                if not late and not any(self.occurs(g, m, None, until, over) for g in m.waiting):
                    yield m, deadline
                continue

            def inside(last: Instant, first: Event = m.first) -> bool:
                return self.window.holds(first, last)

            if not m.waiting:
                yield m, m.last[0] if m.last[1] == AFTER_ALL else None
            elif not any(self.occurs(guard, m, None, within, inside) for guard in m.waiting):
                yield m, self.window.closing(m.first)

    def group_key(self, entries: Sequence[Entry]) -> tuple[Term | None, ...]:
        return tuple(self.reading.bare(name, (), entries) for name in self.partition)

    def contiguous(self, after: Instant, before: Instant, key: tuple[Term | None, ...]) -> bool:
        """Whether no event of the declared streams (or of the partition) lies in between."""
        return not any(
            event.instant < before and (not self.partition or key in self.members[id(event)])
            for event in self.later(after)
        )

    def later(self, instant: Instant | None) -> Sequence[Event]:
        """The events after an instant; None: all."""
        return self.events[0 if instant is None else bisect_right(self.instants, instant) :]

    # -------------------------------------------------------------- one step

    def combine(
        self,
        groups: Sequence[Sequence[Place]],
        m: Partial,
        path: Path,
        within: Within,
        taken: Sequence[Event] = (),
    ) -> Iterator[Joined]:
        """Every way for the places to accept different events after m, seeing each other.

        The events of one group share a timestamp.
        """
        todo = [(number, place) for number, group in enumerate(groups) for place in group]

        def choose(chosen: tuple[Entry, ...]) -> Iterator[tuple[Entry, ...]]:
            if len(chosen) == len(todo):
                yield chosen
                return
            number, place = todo[len(chosen)]
            fellows = [e for e, (n, _) in zip(chosen, todo, strict=False) if n == number]
            used = [*taken, *(e.event for e in chosen)]
            for event in self.later(m.last):
                if (
                    event.stream in place.gpm.streams
                    and within(m, event)
                    and not any(event is other for other in used)
                    and all(e.event.time.micros == event.time.micros for e in fellows)
                ):
                    for mapping in self.reading.graphs.solutions(place.gpm, event):
                        entry = Entry(place, event, mapping, path)
                        if self._agrees(entry, (*m.entries, *chosen)):
                            yield from choose((*chosen, entry))

        for chosen in choose(()):
            settled = self._settle(chosen, m.entries)
            if settled is not None:
                yield tuple(
                    tuple(e for e, (n, _) in zip(settled, todo, strict=True) if n == number)
                    for number in range(len(groups))
                )

    def _agrees(self, entry: Entry, others: Sequence[Entry]) -> bool:
        return all(self.reading.compatible(entry, other) for other in others)

    def _settle(
        self, chosen: tuple[Entry, ...], context: tuple[Entry, ...]
    ) -> tuple[Entry, ...] | None:
        """Stateful BINDs in the order of the text, then all filters; None: not accepted."""
        entries = list(chosen)
        for number, entry in enumerate(chosen):
            for bind in entry.place.gpm.assignments:
                here, name = entries[number], bind.variable.name
                value = self.reading.value(
                    bind.expression, here.path, (*context, *entries), here.event
                )
                if value is None:
                    continue
                if here.mapping.get(name, value) != value:
                    return None
                entries[number] = replace(here, mapping={**here.mapping, name: value})
                others = [*context, *entries[:number], *entries[number + 1 :]]
                if not self._agrees(entries[number], others):
                    return None
        everything = (*context, *entries)
        for entry in entries:
            gpm = entry.place.gpm
            unbound = any(name not in entry.mapping for name in self.partition)
            if (unbound and not entry.place.negated) or not all(
                self.reading.holds(condition, entry.path, everything, entry.event)
                for condition in gpm.filters
            ):
                return None
        return tuple(entries)

    def alternatives(self, node: Node) -> list[tuple[Place, ...]]:
        """The places of a group of `&` and `|`, one list for each way through its `|`."""
        match node:
            case Place():
                return [(node,)]
            case Together():
                ways = product(*map(self.alternatives, node.operands))
                return [tuple(place for part in way for place in part) for way in ways]
            case Either():
                return [way for operand in node.operands for way in self.alternatives(operand)]
        raise AssertionError(node)

    def rivals(self, node: Node, m: Partial, path: Path, within: Within) -> list[Rival]:
        """Where the first step of a unit is acceptable in the context of m."""
        match node:
            case Place() | Together():
                return [
                    Rival(latest(x).instant, isinstance(node, Together))
                    for way in self.alternatives(node)
                    for x in self.combine([way], m, path, within)
                ]
            case Either() | AnyOrder():
                sides = [self.rivals(side, m, path, within) for side in node.operands]
                return [rival for side in sides for rival in side]
            case Steps():
                return self.rivals(node.steps[0][1], m, path, within)
            case Repeat():
                return self.rivals(node.node, m, (*path, (node.unit, 1)), within)
            case Bounded():
                return self.rivals(node.node, m, path, self._bound(node, m, within))
            case Maybe():
                return self.rivals(node.node, m, path, within)
        raise AssertionError(node)

    def join(
        self, m: Partial, x: Joined, operator: str | None, rivals: Sequence[Rival], within: Within
    ) -> Iterator[Partial]:
        first, entries = earliest(x), m.entries + flat(x)
        if m.obliges(operator) and any(rival.precedes(x) for rival in rivals):
            return
        if operator == "," and not m.free and m.last is not None:
            key = self.group_key(m.entries)
            if not self.contiguous(m.last, first.instant, key):
                return
        if any(self.occurs(guard, m, x, within) for guard in m.waiting):
            return
        last = max(entry.event.instant for entry in flat(x))
        yield Partial(entries, m.first or first, last, free=False)

    def occurs(
        self,
        guard: Guard,
        m: Partial,
        x: Joined | None,
        within: Within,
        ends: Ends = lambda _: True,
    ) -> bool:
        """Whether a guard's unit occurs strictly between m and x, or after m in its window.

        Before the first step of a match, the unit may occur anywhere in the same window as x. A
        negation after an optional that was skipped there has no m, and forbids nothing.
        """
        look_back = guard.optional or guard.size is not None
        if m.last is None and not look_back and any(g.optional for g in _before(guard, m)):
            return False
        bounds: Within = within
        if x is not None:
            first = earliest(x)
            begins = first.instant

            def ends(last: Instant) -> bool:
                return last < begins

            def bounds(_: Partial, event: Event) -> bool:
                if event.instant >= first.instant:
                    return False
                if m.last is None and guard.size is not None:
                    return first.time.micros - event.time.micros <= guard.size
                return m.last is not None or self.window.fits(event, first)

        context = Partial(m.entries + (flat(x) if x else ()), m.first, m.last)
        return any(
            (found.last is None or ends(found.last))
            and not any(self.occurs(later, found, x, within, ends) for later in found.waiting)
            for found in self.run(guard.node, guard.operator, context, guard.path, bounds)
        )

    # -------------------------------------------------------------- any unit

    def run(
        self,
        node: Node,
        operator: str | None,
        m: Partial,
        path: Path,
        within: Within,
        rivals: Sequence[Rival] | None = None,
    ) -> Iterator[Partial]:
        """Every way to join the unit to m. `rivals`: the other sides, if it is part of a `|`."""
        obliged = m.obliges(operator)
        match node:
            case Place() | Together():
                if rivals is None:
                    rivals = self.rivals(node, m, path, within) if obliged else ()
                for way in self.alternatives(node):
                    for x in self.combine([way], m, path, within):
                        yield from self.join(m, x, operator, rivals, within)
            case AnyOrder():
                for ways in product(*map(self.alternatives, node.operands)):
                    for x in self.combine(ways, m, path, within):
                        holds = m.obliges_operands(operator)
                        if not (holds and self._earlier(node, x, m, path, within)):
                            yield from self.join(m, x, operator, rivals or (), within)
            case Either():
                if rivals is None:
                    rivals = self.rivals(node, m, path, within) if obliged else ()
                for side in node.operands:
                    yield from self.run(side, operator, m, path, within, rivals)
            case Steps():
                yield from self._steps(node.steps, operator, m, path, within, rivals)
            case Repeat():
                yield from self._iterate(node, 1, operator, m, path, within, rivals)
            case Maybe():
                yield from self.run(node.node, operator, m, path, within, rivals)
                guard = Guard(node.node, path, operator, optional=True, lasts=node.size)
                yield replace(m, waiting=(*m.waiting, guard))
            case Bounded():
                inside = self._bound(node, m, within)
                for joined in self.run(node.node, operator, m, path, inside, rivals):
                    if self._ends_in_time(node, m, joined):
                        yield joined
            case Never():
                guard = Guard(node.node, path, operator, optional=False, size=node.size)
                waiting = (*m.waiting, guard)
                if node.size is None or m.last is None:
                    yield replace(m, waiting=waiting)
                    return
                deadline = (m.last[0] + node.size, AFTER_ALL)

                def until(_: Partial, event: Event) -> bool:
                    return event.instant <= deadline

                def over(last: Instant) -> bool:
                    return last <= deadline

                if not any(self.occurs(each, m, None, until, over) for each in waiting):
                    yield Partial(m.entries, m.first, deadline, free=False)

    def _bound(self, node: Bounded, m: Partial, within: Within) -> Within:
        """Which events a bounded unit may use: those within its bound of m, if there is an m."""
        if m.last is None:
            return within
        limit = m.last[0] + node.size
        return lambda p, event: within(p, event) and event.time.micros <= limit

    def _ends_in_time(self, node: Bounded, m: Partial, joined: Partial) -> bool:
        if joined.last is None or joined.first is None:
            return True
        start = joined.first.time.micros if m.last is None else m.last[0]
        return joined.last[0] - start <= node.size

    def _steps(
        self,
        steps: Sequence[tuple[str | None, Node]],
        operator: str | None,
        m: Partial,
        path: Path,
        within: Within,
        rivals: Sequence[Rival] | None,
    ) -> Iterator[Partial]:
        for joined in self.run(steps[0][1], operator, m, path, within, rivals):
            if len(steps) == 1:
                yield joined
            else:
                yield from self._steps(steps[1:], steps[1][0], joined, path, within, None)

    def _iterate(
        self,
        node: Repeat,
        number: int,
        operator: str | None,
        m: Partial,
        path: Path,
        within: Within,
        rivals: Sequence[Rival] | None,
    ) -> Iterator[Partial]:
        inside = (*path, (node.unit, number))
        for joined in self.run(node.node, operator, m, inside, within, rivals):
            if number >= node.least:
                yield joined
            if node.most is None or number < node.most:
                again = operator or ";"
                yield from self._iterate(node, number + 1, again, joined, path, within, None)

    def _earlier(self, node: AnyOrder, x: Joined, m: Partial, path: Path, within: Within) -> bool:
        """Whether some operand of an `AND` has an earlier choice beside the others' events."""
        for number, operand in enumerate(node.operands):
            others = flat(x[:number] + x[number + 1 :])
            beside = replace(m, entries=m.entries + others)
            taken = [entry.event for entry in others]
            for way in self.alternatives(operand):
                for other in self.combine([way], beside, path, within, taken):
                    rival = Rival(latest(other).instant, len(way) > 1)
                    if rival.precedes(x[number : number + 1]):
                        return True
        return False

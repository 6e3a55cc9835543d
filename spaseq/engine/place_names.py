"""Names for the parts of an automaton, for `explain`, drawings and statistics.

Places are numbered from 1 in the order in which a match can reach them. Places inside a guard have
no number; the guard has the name of its unit. Steps and units appear as the query writes them.

Cost: linear in the automaton.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from spaseq.engine.compiled import CompiledQuery
from spaseq.nfa.automaton import ACCEPT, DONE, Bound, Edge, Link, seconds_text, within_text
from spaseq.plan.logical import QueryPlan, Register, Window
from spaseq.plan.places import sequence_places

STRATEGIES = {
    None: "start",
    ",": "strict contiguity",
    ";": "skip till next",
    ":": "skip till any",
    "for": "until the deadline",
}

_UNITS = (
    ("DAY", 86_400_000_000),
    ("HOUR", 3_600_000_000),
    ("MINUTE", 60_000_000),
    ("SECOND", 1_000_000),
    ("MILLISECOND", 1_000),
)


class Notation:
    """Names for the parts of one compiled query."""

    def __init__(self, query: CompiledQuery):
        self.compiled = query
        self.plan = query.plan
        self.automaton = query.automaton
        self.tasks = query.tasks
        """The number of the graph pattern of each GPM."""
        self.names = tuple(self.plan.gpms[o.gpm].name for o in self.plan.occurrences)
        self.order = tuple(self._reading_order())
        """The places of the pattern itself, as a match reaches them."""
        self.numbers = {place: number for number, place in enumerate(self.order, 1)}
        self._steps = sequence_places(self.plan.sequence).iterated_steps
        self._before: dict[int, list[str]] = {place: [] for place in self.order}
        for place in self.order:
            for edge in self.automaton.places[place].edges:
                for link in self.ways(edge):
                    known = self._before.get(link.target)
                    if known is not None and self.atom(edge.atom) not in known:
                        known.append(self.atom(edge.atom))

    def _reading_order(self) -> Iterator[int]:
        seen = dict.fromkeys(self.automaton.starts)
        todo = list(seen)
        for place in todo:
            yield place
            for link in self.links(place):
                if link.target >= 0 and link.target not in seen:
                    seen[link.target] = None
                    todo.append(link.target)

    def links(self, place: int) -> Iterator[Link]:
        """The links of the edges of a place."""
        for edge in self.automaton.places[place].edges:
            yield from self.ways(edge)

    def ways(self, edge: Edge) -> Iterator[Link]:
        """The links of an edge, without bounds on iterations that the edge itself decides."""
        first = {action.unit for action in edge.actions if not action.again}
        for link in self.automaton.atoms[edge.atom].links:
            decided = [bound for bound in link.bounds if bound.unit in first]
            if all(bound.least <= 1 for bound in decided):
                left = tuple(bound for bound in link.bounds if bound not in decided)
                yield replace(link, bounds=left)

    # ------------------------------------------------------------------ the query's own text

    def sequence(self) -> str:
        """The whole `SEQ`."""
        text = self._source(self.plan.sequence.span.start, self.plan.sequence.span.end)
        return text if text.upper().startswith("SEQ") else f"SEQ({text})"

    def unit(self, number: int) -> str:
        """An iterated unit with its quantifier: `B+`."""
        step = self._steps[number]
        return self._source(step.span.start, step.span.end)

    def _source(self, start: int, end: int) -> str:
        without_comments = re.sub(r"#[^\n]*", " ", self.plan.source[start:end])
        return " ".join(without_comments.split())

    # ------------------------------------------------------------------ parts of the automaton

    def atom(self, number: int) -> str:
        """What an edge consumes: `B`, `A & B`, `(A | B) AND C`."""
        operands = []
        atom = self.automaton.atoms[number]
        if atom.kind == "deadline":
            return seconds_text(atom.size)
        for operand in atom.operands:
            sides = [" & ".join(self.names[o] for o in side) for side in operand]
            alone = len(atom.operands) == 1 or (len(sides) == 1 and len(operand[0]) == 1)
            text = " | ".join(sides)
            operands.append(text if alone else f"({text})")
        return " AND ".join(operands)

    def edge(self, edge: Edge) -> str:
        """The atom, its bound and the iterations it begins: `B within 5 s (again in B+)`."""
        actions = ", ".join(self.actions(edge))
        return f"{self.bounded(edge)} ({actions})" if actions else self.bounded(edge)

    def bounded(self, edge: Edge) -> str:
        """The atom with its bound."""
        text = self.atom(edge.atom)
        if edge.within is not None and len(self.automaton.atoms[edge.atom].occurrences) > 1:
            text = f"({text})"
        return text + within_text(edge.within)

    def actions(self, edge: Edge) -> list[str]:
        """The iterations that an edge begins, and the bounds of units of several steps."""
        sizes = dict(self.automaton.atoms[edge.atom].limits)
        begun = [f"begins a unit{within_text(sizes[number])}" for number in edge.marks]
        kept = [f"in a unit{within_text(size)}" for _, size in self.automaton.limits(edge)]
        return [
            f"{'again in' if action.again else 'begins'} {self.unit(action.unit)}"
            for action in edge.actions
        ] + [*begun, *kept]

    def guard(self, number: int) -> str:
        """A guard: `!N`, `!(N ; M)`; a skipped optional step is a guard as well."""
        guard = self.automaton.guards[number]
        back = within_text(guard.lookback)
        first = [self.automaton.places[start] for start in guard.starts]
        bounded = any(edge.within is not None for place in first for edge in place.edges)
        if guard.occurrence is not None and not bounded:
            return f"!{self.names[guard.occurrence]}{back}"
        unit = " | ".join(self._fragment(start, frozenset()) for start in guard.starts)
        return f"!({unit}){back}"

    def guards(self, numbers: Iterable[int]) -> str:
        """Several guards, without duplicates."""
        return " ".join(dict.fromkeys(map(self.guard, numbers)))

    def _fragment(self, number: int, seen: frozenset[int]) -> str:
        """The unit that a place inside a guard begins, cut before a repetition."""
        place = self.automaton.places[number]
        forbidden = self.guards(place.guards)
        sides = []
        for edge in place.edges:
            if self.automaton.deadline(number) is None:
                text = f"{forbidden} {self.bounded(edge)}".strip()
            else:
                text = forbidden + within_text(self.automaton.atoms[edge.atom].size)
            links = self.automaton.atoms[edge.atom].links
            onward = [link.target for link in links if link.target != DONE]
            if onward and (len(onward) < len(links) or seen & set(onward)):
                text += " …"
            elif onward:
                operator = self.automaton.places[onward[0]].operator
                operator = ";" if operator == "for" else operator
                text += f" {operator} {self._fragment(onward[0], seen | {number, *onward})}"
            sides.append(text)
        return " | ".join(sides)

    def target(self, link: Link) -> str:
        """The target of a link, with its conditions."""
        if link.target == ACCEPT:
            text = "accept"
            if link.guards:
                text += f" (at the closing of the window, {self.guards(link.guards)})"
        else:
            text = str(self.numbers[link.target])
        conditions = self.conditions(link)
        return f"{text} if {conditions}" if conditions else text

    def conditions(self, link: Link) -> str:
        """The numbers of iterations that a link requires; empty if it accepts any number."""
        return " and ".join(map(self._bound, link.bounds))

    def _bound(self, bound: Bound) -> str:
        unit = self.unit(bound.unit)
        parts = [f"at least {bound.least} of {unit}"] if bound.least else []
        parts += [f"fewer than {bound.below} of {unit}"] if bound.below is not None else []
        return " and ".join(parts)

    def waits_for(self, number: int) -> str:
        """The atoms that a place waits for: `B | C`."""
        return " | ".join(dict.fromkeys(map(self.bounded, self.automaton.places[number].edges)))

    def label(self, number: int) -> str:
        """A place with the atoms before and after it: `A !N ; B`; `^ A` for a start."""
        place = self.automaton.places[number]
        guards = self.guards(place.guards)
        after = self.waits_for(number)
        if place.start:
            return " ".join(filter(None, ("^", guards, after)))
        before = " | ".join(self._before[number])
        if len(self._before[number]) > 1:
            before = f"({before})"
        return " ".join(filter(None, (before, guards, place.operator, after)))

    def index(self, number: int, position: int) -> list[str]:
        """The keys of an edge's index: `?x`, or `?x = ?y` by value."""
        place = self.automaton.places[number]
        same = [f"?{name}" for _, name in place.shared(position)]
        equal = [
            f"?{name} = {self.register(self.plan.registers[register])}"
            for register, name in place.equal[position]
        ]
        return same + equal

    def title(self, number: int) -> str:
        """The number and the label of a place."""
        return f"{self.numbers[number]}: {self.label(number)}"

    # ------------------------------------------------------------------ registers

    def register(self, register: Register) -> str:
        """A register as an expression names it."""
        match register.kind:
            case "value":
                return f"?{register.variable}"
            case "previous":
                return f"PREV(?{register.variable})"
            case "first" | "last":
                return f"{register.kind.upper()}(?{register.variable}){self._scope(register)}"
            case "aggregate":
                distinct = "DISTINCT " if register.distinct else ""
                argument = f"({distinct}?{register.variable})"
                return f"{register.function}{argument}{self._scope(register)}"
            case "count":
                return f"COUNT({register.variable}){self._scope(register)}"
            case "iterations":
                assert register.unit is not None
                return f"iteration of {self.unit(register.unit)}"
            case "mark":
                return register.name

    def _scope(self, register: Register) -> str:
        if register.scope is None:
            return ""
        return f" in one iteration of {self.unit(register.scope)}"

    def meaning(self, register: Register) -> str:
        """The content of a register, in a few words."""
        if register.kind == "iterations":
            return f"the number of the iteration, told apart up to {register.limit}"
        if register.kind == "count":
            return "the number of witnesses so far"
        if register.kind == "mark":
            return "half of the time from which the bound counts"
        if register.unit is None:
            return "one value for the whole match"
        unit = self.unit(register.unit)
        return {
            "value": f"the current iteration's value in {unit}",
            "previous": f"the previous iteration's value in {unit}",
            "first": f"the first iteration's value in {unit}",
            "last": f"the last iteration's value in {unit}",
            "aggregate": f"running over the iterations of {unit}",
        }[register.kind]


def skip_text(plan: QueryPlan) -> str:
    """`AFTER MATCH` as a query writes it."""
    if plan.skip_to is not None:
        return f"SKIP TO {plan.skip_to.target.upper()} {plan.skip_to.name}".strip()
    return "SKIP PAST LAST EVENT" if plan.skip_past_last else "KEEP ALL"


def window_text(window: Window) -> str:
    """A window as a query writes it."""
    if not window.is_of_time:
        return f"WITHIN {window.kind.written(str(window.size))}"
    for unit, micros in _UNITS:
        if window.size % micros == 0:
            number = window.size // micros
            length = f"{number} {unit}{'S' * (number != 1)}"
            return f"WITHIN {window.kind.written(length)}"
    return f"WITHIN {window.kind.written(f'{window.size / 1000:g} MILLISECONDS')}"

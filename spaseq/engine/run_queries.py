"""The queries of a run: their programs, names and states, and where each is in these lists.

Lists and tuples of references change in place, or are copied, when one query comes, changes or
goes; nothing visits the other queries. What a change of one query leaves for all of them is done
when it is needed: the numbers of the queries of templates (`shared`, `divisions`), the numbers of
equal queries (`originals`), and the names of states whose first query has left (`misnamed`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from spaseq.engine.compiled import CompiledQueries, CompiledQuery
from spaseq.engine.division import NO_MATCHES, Division, divisions_of
from spaseq.engine.instants import QueryRun
from spaseq.engine.query_names import QueryNames
from spaseq.engine.sharing import SharedProgram, originals
from spaseq.engine.use_counts import PatternUses, VariableUses
from spaseq.gpm.pattern import Pattern, SharedPatterns
from spaseq.parser import ast
from spaseq.rdf.event import Event

if TYPE_CHECKING:
    from spaseq.engine.listing import Listed

NO_NUMBERS: Mapping[int, int] = MappingProxyType({})
_KEPT_PATTERNS = 64
"""The number of patterns of `public` up to which those that no query needs are kept."""


class RunQueries:
    """The queries of one run.

    Args:
        shared: The program.
        apart: The numbers of queries that share no state with an equal one.
        begin: Makes the state of a query.
    """

    def __init__(
        self,
        shared: SharedProgram,
        apart: Collection[int],
        begin: Callable[[CompiledQuery], QueryRun],
    ):
        program = shared.executed
        self.states: list[QueryRun] = []
        """The state of each query; equal queries share one."""
        for number, (query, first) in enumerate(
            zip(program.queries, originals(program), strict=True)
        ):
            shares = first < number and number not in apart
            self.states.append(self.states[first] if shares else begin(query))
        self.unbound: list[ast.Query] = []
        """The sources of the queries before variables were bound, by position."""
        self.direct: list[bool] = []
        """Per query: whether it reads no registered stream, and so processes events at once."""
        self.delayed: list[list[Event]] = []
        """Per query that is not direct: events of open timestamps, unless the loop has them."""
        self.silent: frozenset[str] = frozenset()
        """The names of queries that have left their template, which drops their matches."""
        self._canonical: SharedPatterns | None = None
        self.replace(shared, shared.public.sources, self.states, [[] for _ in self.states], {})

    def replace(
        self,
        shared: SharedProgram,
        unbound: Sequence[ast.Query],
        states: Sequence[QueryRun],
        delayed: Sequence[list[Event]],
        new: Mapping[int, Pattern],
        matched: Mapping[int, int] = NO_MATCHES,
    ) -> None:
        """Replace all queries.

        Args:
            shared: The program.
            unbound: Its sources before variables were bound.
            states: The states of the queries.
            delayed: The events of open timestamps that wait for each.
            new: The patterns that the program before did not have, by number.
            matched: The matches so far of the queries of templates, by their numbers.
        """
        if self._canonical is not None:
            self._canonical.replace(new)
        self._numbered, self._moved = shared, (shared, NO_NUMBERS)
        self.public, self.program = shared.public, shared.executed
        self.unbound[:], self.states[:], self.delayed[:] = unbound, states, delayed
        self._divisions = divisions_of(shared, states, self.silent, matched)
        self.has_templates = bool(self._divisions)
        """Whether some queries are evaluated as one. Changes of one query leave it as it is."""
        self.names = QueryNames(shared)
        self.written: set[str] = self.program.written
        """The streams that queries register."""
        self.direct[:] = [self.written.isdisjoint(query.plan.streams) for query in states]
        self._originals: list[int] | None = None
        self._sharers = {state: n for state, n in Counter(states).items() if n > 1}
        self.misnamed: dict[QueryRun, None] = {}
        """The states that have the name of a query that has left equal ones."""
        self._pattern_uses: PatternUses | None = None
        self._variable_uses: VariableUses | None = None
        self._most_patterns = max(_KEPT_PATTERNS, 2 * len(self.public.patterns))

    # ------------------------------------------------------------------ all queries

    @property
    def distinct(self) -> tuple[QueryRun, ...]:
        """The states, each once."""
        return tuple(dict.fromkeys(self.states))

    @property
    def originals(self) -> list[int]:
        """Per query: the number of the first query that is equal apart from its name."""
        if self._originals is None:
            first: dict[QueryRun, int] = {}
            self._originals = [first.setdefault(state, n) for n, state in enumerate(self.states)]
        return self._originals

    @property
    def shared(self) -> SharedProgram:
        """The program as the run evaluates it."""
        return self._as_moved()[0]

    def _as_moved(self) -> tuple[SharedProgram, Mapping[int, int]]:
        """`shared`, and the numbers of the queries of templates by those in `_numbered`."""
        moved, public, program = self._moved, self.public, self.program
        if moved[0].public is not public or moved[0].executed is not program:
            moved = self._moved = self._numbered.moved(public, program, self.names.number)
        return moved

    @property
    def divisions(self) -> Mapping[int, Division]:
        """Per query that is a template: what divides its matches among its queries."""
        shared, numbers = self._as_moved()
        if shared.templates is not self._numbered.templates:
            matched = {
                numbers[former]: count
                for division in self._divisions.values()
                for former, count in division.matched.items()
            }
            self._divisions = divisions_of(shared, self.states, self.silent, matched)
            self._numbered, self._moved = shared, (shared, NO_NUMBERS)
        return self._divisions

    def silence(self, names: Iterable[str]) -> None:
        """Drop the matches of some queries of templates from now on."""
        self.silent = self.silent.union(names)
        for division in self.divisions.values():
            division.silence(self.silent)

    def matched(self, number: int) -> int:
        """The number of matches of a query of `public` so far."""
        executed = self.shared.executors[number]
        division = self.divisions.get(executed)
        return self.states[executed].matched if division is None else division.matched[number]

    def rename(self, state: QueryRun, begin: Callable[[CompiledQuery], QueryRun]) -> None:
        """Replace a state by one with the name of the first query that has it.

        Args:
            state: The state.
            begin: Makes the state of a query, which continues `state`.
        """
        numbers = [number for number, each in enumerate(self.states) if each is state]
        after = begin(self.program.queries[numbers[0]])
        for number in numbers:
            self.states[number] = after
        if state in self._sharers:
            self._sharers[after] = self._sharers.pop(state)

    # ------------------------------------------------------------------ patterns, variables

    def find(self, key: Pattern) -> int | None:
        """The number of the pattern of a GPM with a `canonical` form; None if there is none."""
        if self._canonical is None:
            patterns = self.program.patterns
            used = {number for query in self.program.queries for number in query.tasks}
            self._canonical = SharedPatterns()
            self._canonical.replace({number: patterns[number] for number in sorted(used)})
        return self._canonical.find(key)

    def forget(self, numbers: Iterable[int]) -> None:
        """Share some patterns no longer, after others have failed to take their numbers."""
        if self._canonical is not None:
            self._canonical.forget(numbers)

    @property
    def pattern_uses(self) -> PatternUses:
        """How many queries use each pattern."""
        if self._pattern_uses is None:
            self._pattern_uses = PatternUses(self.program)
        return self._pattern_uses

    @property
    def variable_uses(self) -> VariableUses:
        """How many queries use each variable."""
        if self._variable_uses is None:
            self._variable_uses = VariableUses(self.unbound)
        return self._variable_uses

    # ------------------------------------------------------------------ one query

    def append(self, one: Listed, new: Mapping[int, Pattern], own: Mapping[int, Pattern]) -> None:
        """Add a query after the others, which has begun.

        Args:
            one: The query.
            new: Its patterns that `program` does not have.
            own: Its patterns that `public` does not have, if that is another program.
        """
        entry = one.entry
        program = self.program.extended(entry.compiled, entry.source, entry.name, new)
        public = program
        if self.public is not self.program:
            public = self.public.extended(one.compiled, one.source, one.name, own)
        self._enter(one, new)
        self.names.append(one.compiled.plan.name)
        self.unbound.append(one.unbound)
        self.direct.append(True)
        self.delayed.append([])
        self.states.append(entry.state)
        self._continue(public, program)

    def exchange(
        self, one: Listed, new: Mapping[int, Pattern], own: Mapping[int, Pattern]
    ) -> QueryRun | None:
        """Replace a query that no template evaluates by one of the same name that has begun.

        The arguments are those of `append`.

        Returns:
            The state of the former query, unless others have it too.
        """
        entry, name = one.entry, one.compiled.plan.name
        number, place, position = self._places(name)
        left = self._leave(name, number, position)
        at = position if self.public is self.program else number
        program = self.program.exchanged(number, at, entry.compiled, entry.source, entry.name, new)
        public = program
        if self.public is not self.program:
            public = self.public.exchanged(place, position, one.compiled, one.source, one.name, own)
        self._enter(one, new)
        self.unbound[position], self.states[number] = one.unbound, entry.state
        self._continue(public, program)
        return left

    def delete(self, name: str) -> QueryRun | None:
        """Remove a query that no template evaluates.

        Returns:
            Its state, unless others have it too.
        """
        number, place, position = self._places(name)
        left = self._leave(name, number, position)
        at = position if self.public is self.program else number
        program = self.program.without(number, at)
        public = program
        if self.public is not self.program:
            public = self.public.without(place, position)
        self.names.remove(name)
        del self.unbound[position]
        del self.direct[number], self.delayed[number], self.states[number]
        self._continue(public, program)
        return left

    def _places(self, name: str) -> tuple[int, int, int]:
        """The numbers of a query in `program` and in `public`, and the position of its text."""
        number = self.names.executed(name)
        assert number is not None
        return number, self.names.number(name), self.names.position(name)

    def _enter(self, one: Listed, new: Mapping[int, Pattern]) -> None:
        """Count a query, and let others share its patterns."""
        self.pattern_uses.add(one.entry.compiled)
        if self._variable_uses is not None:
            self._variable_uses.add(one.unbound)
        if self._canonical is not None:
            self._canonical.replace(new)

    def _leave(self, name: str, number: int, position: int) -> QueryRun | None:
        """Count a query no longer. Returns its state, unless others have it too."""
        state = self.states[number]
        self.pattern_uses.remove(self.program.queries[number])
        if self._variable_uses is not None:
            self._variable_uses.remove(self.unbound[position])
        others = self._sharers.pop(state, 1) - 1
        if not others:
            self.misnamed.pop(state, None)
            return state
        if others > 1:
            self._sharers[state] = others
        if state.plan.name == name:
            self.misnamed[state] = None
        return None

    def _continue(self, public: CompiledQueries, program: CompiledQueries) -> None:
        if public is not program and len(public.patterns) > self._most_patterns:
            public = public.plain[0]
            self._most_patterns = max(_KEPT_PATTERNS, 2 * len(public.patterns))
        self.public, self.program = public, program
        self._originals = None

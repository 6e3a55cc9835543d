"""Paths of the automaton → results: solutions, EMIT, DISTINCT, LIMIT, CONSTRUCT.

One batch holds all matches of one instant, or of one closing time. Results of a batch are ordered
by the instants of their events in provenance order, then by the streams of these events, then by
all variables of positive GPMs, compared as `ORDER BY` compares them. The stage sorts a batch only
if the order has an effect: under LIMIT, under DISTINCT, and in registered streams.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Protocol, TypeVar, cast

from spaseq.engine.compiled import CompiledQuery
from spaseq.engine.construction import Construction
from spaseq.engine.native_groups import native_groups
from spaseq.engine.projection import listing, projection
from spaseq.engine.result_errors import ResultErrors, see
from spaseq.engine.result_groups import Grouped, GroupSolution, ResultGroups
from spaseq.engine.result_limit import Key, ResultLimit
from spaseq.gpm.expression_errors import cause_of
from spaseq.gpm.named_graphs import CurrentGraphs
from spaseq.gpm.python.aggregates import REFUSING, order_key, refuses, value_key
from spaseq.gpm.python.calls import Calls
from spaseq.gpm.python.entry import Scope, compile_expression
from spaseq.nfa.match_path import Path, Row, Witnessed
from spaseq.nfa.registers import Environment, RegisterFile
from spaseq.nfa.replay import LinkedOccurrence
from spaseq.nfa.selection import Contiguous, choose, chosen
from spaseq.parser import ast
from spaseq.plan.logical import Condition, Output, Projected
from spaseq.plan.scope import expression_variables
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.event import Fact, Term, Timestamp, triple_of
from spaseq.records import dataclass
from spaseq.results import Match, Witness


class Finder(Protocol):
    """The part of the automaton that the selection of matches reads."""

    @property
    def contiguity(self) -> Contiguous: ...


Solution = tuple[Term | None, ...]
Witnesses = Sequence[Witnessed]
Newest = Witnesses | int
"""The newest result of a group: its witnesses, or its number among those of the instant."""
Identity = tuple[tuple[object, ...], frozenset[Hashable]]
"""The identity of a match: its visible solution and its witnesses."""


@dataclass(frozen=True, slots=True)
class _Result:
    path: Path
    witnesses: list[Witnessed]
    solution: Solution
    bound: Solution
    """The variables of `Output.order`."""


@dataclass(frozen=True, slots=True)
class _Gathered:
    """A match that the core has found, or a group, by its number among those of an instant."""

    number: int
    solution: Solution
    bound: Solution


S = TypeVar("S", _Result, _Gathered, GroupSolution[Newest])
R = TypeVar("R", _Result, _Gathered)


def computed_columns(output: Output) -> Sequence[Projected]:
    """The expressions of a match: its columns, or when grouped, the keys, then the arguments."""
    if output.grouping is None:
        return output.columns
    arguments = [Projected(f"argument {n}", a) for n, a in enumerate(output.grouping.arguments)]
    return (*output.grouping.keys, *arguments)


class OutputStage:
    """Turns batches of paths into matches; remembers the solutions emitted under DISTINCT."""

    def __init__(
        self,
        compiled: CompiledQuery,
        registers: RegisterFile,
        occurrences: Sequence[LinkedOccurrence],
        kb: CurrentGraphs,
        calls: Calls,
    ):
        plan, automaton = compiled.plan, compiled.automaton
        self._plan = plan
        self._registers = registers
        self._occurrences = occurrences
        self._kb = kb
        self._scope = Scope(None, kb, plan.kb_graphs, calls)
        self._streams = {iri: number for number, iri in enumerate(plan.streams)}
        self.variables = tuple(column.name for column in plan.output.columns)
        self.errors = ResultErrors(plan.output)
        """Counts the expressions of the result that err."""
        grouping = plan.output.grouping
        self.groups = (
            None
            if grouping is None
            else ResultGroups[Newest](plan.output, self._scope, native_groups(plan), self.errors)
        )
        """The groups of results, each with its newest result."""
        self._summed = {r.name: r for r in plan.registers if r.function in REFUSING}
        self._rows: Callable[[], Iterable[tuple[int, Row]]] = tuple
        """The occurrences and rows of the match whose columns are computed."""
        self._columns = self._compiled(computed_columns(plan.output))
        """Each reads an environment that ends with the values of the columns before it."""
        self._edges = [edge for place in automaton.places for edge in place.edges]
        found, listed = projection(compiled, registers), listing(compiled)
        self._computed_columns: Sequence[int] = () if found is None else found.computed
        """The places of the columns that the core does not read from registers."""
        if grouping is not None:
            self._computed_columns = range(len(self._columns))
        self.chooses = listed is not None and listed.chooses
        """Whether `EMIT` chooses among the gathered matches."""
        self.repeats = listed is not None and listed.repeats
        """Whether a gathered match can be there more than once."""
        keys = () if grouping is None else tuple(key.name for key in grouping.keys)
        self._key_count = len(keys)
        known = [name for name, _ in plan.output.order]
        # The place of each variable among the variables, then the keys, in the order of names.
        self._ordering = [n for _, n in sorted((name, n) for n, name in enumerate((*known, *keys)))]
        self.limit = None if plan.output.limit is None else ResultLimit(plan.output)
        """The `LIMIT`."""
        # The places of the variables of PER among the columns, or in `bound`.
        order = [name for name, _ in plan.output.order]
        places = {name: (False, place) for place, name in enumerate(order)}
        if plan.output.form == "select":
            places |= {name: (True, place) for place, name in enumerate(self.variables)}
        if grouping is not None:
            places = {name: (False, place) for place, name in enumerate(plan.output.per)}
        self._per = tuple(places[name] for name in plan.output.per)
        self.shown: dict[Solution, int] = {}
        """Under DISTINCT: solution → the time of its last emission."""
        self._forget_at = 1024
        self._ambiguous = automaton.ambiguous
        variables = [name for name, _ in plan.output.template_registers]
        self._construction = Construction(plan.output.template, variables, self.errors.template)
        self.constructed = 0
        output = plan.output
        self._bindings_only = all(register.kind == "value" for register in plan.registers) and (
            not plan.units
        )
        """Whether the registers hold only values that rows bind."""
        self._sorted = (
            output.limit is not None
            or output.distinct
            or plan.registers_stream is not None
            or grouping is not None
        )
        self.waits = (
            self._sorted
            or output.form == "ask"
            or plan.emit != "ALL"
            or plan.skip_past_last
            or plan.skip_to is not None
            or plan.window.counts_events
        )
        """Whether results depend on all matches of an instant."""
        self.any_will_do = (
            output.form == "ask"
            and plan.emit == "ALL"
            and not (automaton.waits or automaton.expires)
            and plan.skip_to is None
            and grouping is None
        )
        """Whether one match of an instant suffices."""

    def take_over(self, before: OutputStage, same: bool) -> None:
        """Continue from what another stage remembers, but for groups of results.

        `same`: solutions mean the same in both.
        """
        if same:
            self.shown = dict(before.shown)
        if self.limit is not None and before.limit is not None:
            self.limit.take_over(before.limit)
        self.constructed = before.constructed

    def batch(
        self, paths: Iterable[Path], end: Timestamp, run: Finder, early: bool = False
    ) -> tuple[list[Match], list[Path]]:
        """The matches of one batch, and the paths that `EMIT` selected, for `AFTER MATCH`.

        `early`: they come out before the events of the time `end`.
        """
        results = self._derived(paths)
        if self._plan.emit != "ALL":
            paths = [result.path for result in results]
            left = choose(paths, self._plan.emit, self._streams, run.contiguity)
            chosen = set(map(id, left))
            results = [result for result in results if id(result.path) in chosen]
        if not results:
            return [], []
        if self.groups is not None:
            if len(results) > 1:
                results.sort(key=self._order)
            grouped: list[tuple[Grouped, Newest]] = [
                (self._grouped(result, end), result.witnesses) for result in results
            ]
            solutions = self.groups.add(grouped, end.micros, early)
            return self._group_matches(solutions, end), [result.path for result in results]
        if self._plan.output.form == "ask":
            first = self._limited([min(results, key=self._order)], end.micros)
            return [self._ask(each, end) for each in first], [result.path for result in results]
        left = [result.path for result in results]
        if self._sorted and len(results) > 1:
            results.sort(key=self._order)
        results = self._retained(results, end.micros)
        return [self._match(result, end) for result in results], left

    def _retained(self, results: list[R], now: int) -> list[R]:
        """The results that `DISTINCT` and `LIMIT` retain of those of an instant, in order."""
        if self._plan.output.distinct:
            results = self._unseen(results, now)
        results = self._limited(results, now)
        if self._plan.output.distinct:
            self.shown.update((result.solution, now) for result in results)
        return results

    # ------------------------------------------------------------------ matches of the core

    @property
    def asks(self) -> bool:
        """Whether matches are the answers of an ASK."""
        return self._plan.output.form == "ask"

    @property
    def sorts(self) -> bool:
        """Whether the results of an instant must be in order."""
        return self._sorted or self.asks

    @property
    def retains(self) -> bool:
        """Whether a clause drops results."""
        output = self._plan.output
        return self.asks or output.distinct or output.limit is not None

    @property
    def compares(self) -> bool:
        """Whether results are retained by their values."""
        return self._plan.output.distinct or bool(self._per)

    @property
    def computes(self) -> bool:
        """Whether matches have columns that `computed` computes."""
        return bool(self._computed_columns)

    @property
    def constructs(self) -> bool:
        """Whether matches have a graph."""
        return self._plan.output.form == "construct"

    def once(self, found: Iterable[tuple[int, Solution, Iterable[Hashable]]]) -> list[int]:
        """The first derivation of each match, of those that may be there more than once.

        Args:
            found: The matches: their numbers, solutions and events.
        """
        known: dict[Identity, int] = {}
        for number, solution, events in found:
            known.setdefault((self._shown(solution, solution), frozenset(events)), number)
        return list(known.values())

    def chosen(self, found: Sequence[tuple[int, object, Sequence[tuple[int, int]]]]) -> list[int]:
        """The matches of an instant that `EMIT` chooses.

        Args:
            found: The matches: their numbers, partitions and events, as `selection.chosen` compares
                them.
        """
        places = chosen([(key, events) for _, key, events in found], self._plan.emit)
        return [found[place][0] for place in places]

    def retained(self, listed: Iterable[tuple[int, Solution, Solution]], now: int) -> list[int]:
        """The matches of an instant that the clauses retain.

        Args:
            listed: The matches in order: their numbers, solutions and variables of `Output.order`.
                For groups, the variables of `PER` take the place of the latter.
            now: The time at which they come out, in microseconds.
        """
        found = [_Gathered(*each) for each in listed]
        if self.asks:
            found = found[:1]
        return [each.number for each in self._retained(found, now)]

    def computed(self, events: Sequence[tuple[int, int, int, Row]]) -> Solution:
        """The columns of a match that are computed.

        Args:
            events: Its events in order: the number of the edge, the number of events that this edge
                takes, the occurrence, and the row.
        """
        env = self._registers.blank()
        first = len(env)
        self._rows = lambda: (event[2:] for event in events)
        if self._bindings_only:
            for _, _, occurrence, row in events:
                self._bind(env, occurrence, row)
        else:
            at = 0
            while at < len(events):
                edge, count, *_ = events[at]
                for action in self._edges[edge].actions:
                    self._registers.enter(env, action.unit, action.again)
                for _, _, occurrence, row in sorted(events[at : at + count], key=itemgetter(2)):
                    self._occurrences[occurrence].replay(env, row)
                at += count
        for column in self._columns:
            env.append(column(env))
        return tuple([env[first + place] for place in self._computed_columns])

    def graph_of(self, solution: Solution) -> tuple[Fact, ...]:
        """The graph of the next match of a CONSTRUCT; `solution` has the template's variables."""
        self.constructed += 1
        return self._construction.graph(solution, self.constructed)

    # ------------------------------------------------------------------ groups of results

    def identified(self, bound: Solution, solution: Solution) -> Solution:
        """The variables of positive GPMs, `bound`, and the keys of a result, by name."""
        values = (*bound, *solution[: self._key_count])
        return tuple([values[n] for n in self._ordering])

    def grouped(
        self, results: Iterable[tuple[int, Solution, Timestamp]], now: int
    ) -> list[GroupSolution[Newest]]:
        """Add the results of an instant to sliding groups, and return the retained solutions.

        Args:
            results: The results in order: their numbers, their keys and arguments, and their
                starts. A solution shows the number of the newest result.
            now: The time at which they come out, in microseconds.
        """
        assert self.groups is not None
        count = self._key_count
        added = [(Grouped(s[:count], s[count:], start, now), n) for n, s, start in results]
        return self._retained_solutions(self.groups.add(added, now, early=False), now)

    def _grouped(self, result: _Result, end: Timestamp) -> Grouped:
        count = self._key_count
        start = result.witnesses[0].event.time
        return Grouped(result.solution[:count], result.solution[count:], start, end.micros)

    def close_groups(self, end: Timestamp) -> list[Match]:
        """The matches of tumbling groups whose window ends at a time."""
        assert self.groups is not None
        return self._group_matches(self.groups.close(), end)

    def shown_by(self, number: int) -> tuple[Witness, ...]:
        """The events of the match of a tumbling group in the core."""
        assert self.groups is not None
        return tuple(map(self._witness, cast(Witnesses, self.groups.newest_of(number))))

    def _group_matches(self, solutions: list[GroupSolution[Newest]], end: Timestamp) -> list[Match]:
        """The matches of the solutions of one instant, which are in order."""
        return [
            self._made(each.solution, each.start, end, cast(Witnesses, each.newest), each.count)
            for each in self._retained_solutions(solutions, end.micros)
        ]

    def _retained_solutions(
        self, solutions: list[GroupSolution[Newest]], now: int
    ) -> list[GroupSolution[Newest]]:
        """The solutions that the clauses retain of those of an instant, which are in order."""
        output = self._plan.output
        if not solutions:
            return []
        if output.form == "ask":
            solutions = solutions[:1]
        if output.distinct:
            solutions = self._unseen(solutions, now)
        if self.limit is not None:
            solutions = self.limit.first(solutions, _values_of_per, now)
        if output.distinct:
            self.shown.update((each.solution, now) for each in solutions)
        return solutions

    # ------------------------------------------------------------------ results

    def _limited(self, results: list[R], now: int) -> list[R]:
        """The results of one instant, given in order, that `LIMIT` retains."""
        if self.limit is None:
            return results
        return self.limit.first(results, self._values_of_per, now)

    def _values_of_per(self, result: _Result | _Gathered) -> Key:
        return tuple(
            [
                result.solution[place] if is_column else result.bound[place]
                for is_column, place in self._per
            ]
        )

    def _derived(self, paths: Iterable[Path]) -> list[_Result]:
        """One result per match of an instant: a match is its witnesses and its solution.

        Other derivations of a match at the instant are dropped. At another instant, such as another
        deadline, the same witnesses are another match.
        """
        paths = list(paths)
        results = [_Result(path, path.witnesses(), *self._solution(path)) for path in paths]
        if len(results) < 2 or not self._ambiguous:
            return results
        found: dict[Identity, _Result] = {}
        for result in results:
            facts = frozenset(
                (a.name, w.instant, w.event.stream, tuple(_mapping(a, w).items()))
                for a, w in ((self._occurrences[w.occurrence], w) for w in result.witnesses)
            )
            found.setdefault((self._shown(result.solution, result.bound), facts), result)
        return list(found.values())

    def _order(self, result: _Result) -> tuple[object, ...]:
        """The sort key: instants, streams, variables; then values that make the order total."""
        witnesses = result.witnesses
        return (
            tuple(w.instant for w in witnesses),
            tuple(self._streams[w.event.stream] for w in witnesses),
            tuple(map(value_key, result.bound)),
            tuple(map(order_key, result.bound)),
            tuple(map(order_key, result.solution)),
            tuple(w.occurrence for w in witnesses),
            tuple(tuple(map(order_key, w.row)) for w in witnesses),
        )

    def _shown(self, solution: Solution, bound: Solution) -> tuple[object, ...]:
        """The visible part of a solution: the graph of a CONSTRUCT, nothing of an ASK.

        In a grouped query it is all variables of positive GPMs and the keys, `bound`.
        """
        if self.groups is not None:
            return bound
        if self._plan.output.form != "construct":
            return solution
        return tuple(sorted(map(str, self._construction.graph(solution, 0))))

    def cell_names(self) -> Sequence[str]:
        """The names of the registers, by number."""
        return self._registers.cell_names()

    def environment(self, path: Path) -> Environment:
        """The registers after the whole match, by replaying its steps."""
        env = self._registers.blank()
        if self._bindings_only:
            for step in path.steps:
                for witness in step.witnesses:
                    self._bind(env, witness.occurrence, witness.row)
            return env
        for step in path.steps:
            for action in step.edge.actions:
                self._registers.enter(env, action.unit, action.again)
            for witness in step.witnesses:
                self._occurrences[witness.occurrence].replay(env, witness.row)
        return env

    def _bind(self, env: Environment, occurrence: int, row: Row) -> None:
        """Set the registers that a row binds."""
        for number, value in zip(self._occurrences[occurrence].numbers, row, strict=True):
            if value is not None:
                env[number] = value

    def _solution(self, path: Path) -> tuple[Solution, Solution]:
        """The solution of a path, and the variables that order it."""
        env, output = self.environment(path), self._plan.output
        self._rows = lambda: ((w.occurrence, w.row) for w in path.witnesses())
        bound = self._read(env, output.order)
        if self.groups is not None:
            solution = self._computed(env)
            return solution, self.identified(bound, solution)
        if output.form == "construct":
            return self._read(env, output.template_registers), bound
        return self._computed(env), bound

    def _computed(self, env: Environment) -> Solution:
        for column in self._columns:
            env.append(column(env))
        return tuple(env[len(env) - len(self._columns) :])

    def _read(self, env: Environment, variables: Iterable[tuple[str, str]]) -> Solution:
        """The values of `value` and `last` registers, which hold terms."""
        return tuple(env[self._registers.number[register]] for _, register in variables)

    def _compiled(self, columns: Sequence[Projected]) -> list[Callable[[Environment], Term | None]]:
        first = len(self._registers.blank())
        known = self._registers.slots()
        earlier: dict[str, int] = {}
        compiled = []
        for number, column in enumerate(columns):
            slots = {**earlier, **known}
            compiled.append(self._column(column.value, slots, self.errors.columns[number]))
            earlier[column.name] = first + number
        return compiled

    def _column(
        self, condition: Condition, slots: Mapping[str, int], errors: ErrorCount
    ) -> Callable[[Environment], Term | None]:
        """The value of an expression over registers and the columns before it."""
        registers, scope = self._registers, self._scope
        views = registers.needed_views(condition.reads)
        reads = [name for name in expression_variables(condition.expression) if name in slots]
        if isinstance(condition.expression, ast.Var):
            may_err = any(name in self._summed for name in reads)
            cell = slots.get(condition.expression.name)

            def read(env: Environment) -> Term | None:
                registers.refresh(env, views)
                value: Term | None = None if cell is None else env[cell]
                if may_err:
                    see(errors, value, partial(self._row, env, slots, reads))
                return value

            return read
        evaluate = compile_expression(condition.expression, slots)

        def computed(env: Environment) -> Term | None:
            registers.refresh(env, views)
            value = evaluate(env, scope)
            see(errors, value, partial(self._row, env, slots, reads))
            return value

        return computed

    def _row(
        self, env: Environment, slots: Mapping[str, int], names: Sequence[str]
    ) -> dict[str, Term | None]:
        """The values that a column reads, for the message about an error.

        For an aggregate without a value, also the value of the match because of which it has none.
        """
        row = {name: env[slots[name]] for name in names}
        for name in names:
            register = self._summed.get(name)
            if register is not None and row[name] is None:
                values = (
                    value
                    for occurrence, values in self._rows()
                    for variable, value in zip(
                        self._occurrences[occurrence].variables, values, strict=True
                    )
                    if variable == register.variable and value is not None
                )
                row[cause_of(name)] = next(
                    (value for value in values if refuses(register.function, value)), None
                )
        return row

    def _unseen(self, results: Iterable[S], now: int) -> list[S]:
        window = self._plan.window
        forgets = window.is_of_time
        if forgets and len(self.shown) > self._forget_at:
            self.shown = {s: t for s, t in self.shown.items() if now - t < window.size}
            self._forget_at = 2 * len(self.shown) + 1024
        fresh: dict[Solution, S] = {}
        for result in results:
            last = self.shown.get(result.solution)
            if last is None or (forgets and now - last >= window.size):
                fresh.setdefault(result.solution, result)
        return list(fresh.values())

    def _match(self, result: _Result, end: Timestamp) -> Match:
        start = result.witnesses[0].event.time
        return self._made(result.solution, start, end, result.witnesses, None)

    def _made(
        self,
        solution: Solution,
        start: Timestamp,
        end: Timestamp,
        witnesses: Sequence[Witnessed],
        results: int | None,
    ) -> Match:
        graph = boolean = None
        bindings: Mapping[str, Term] = {}
        if self._plan.output.form == "construct":
            graph = tuple(map(triple_of, self.graph_of(solution)))
        elif self._plan.output.form == "ask":
            boolean = True
        else:
            bindings = {
                name: value
                for name, value in zip(self.variables, solution, strict=True)
                if value is not None
            }
        return Match(
            query=self._plan.shown,
            start=start,
            end=end,
            bindings=bindings,
            events=tuple(self._witness(witness) for witness in witnesses),
            variables=self.variables,
            graph=graph,
            boolean=boolean,
            kb_version=self._kb.version,
            results=results,
        )

    def _ask(self, result: _Result, end: Timestamp) -> Match:
        return self._made((), result.witnesses[0].event.time, end, result.witnesses, None)

    def _witness(self, witness: Witnessed) -> Witness:
        occurrence = self._occurrences[witness.occurrence]
        event = witness.event
        return Witness(
            gpm=occurrence.name,
            stream=event.stream,
            time=event.time,
            ordinal=event.ordinal,
            graph=event.name,
            bindings=_mapping(occurrence, witness),
        )


def _values_of_per(solution: GroupSolution[Newest]) -> Key:
    return solution.per


def _mapping(occurrence: LinkedOccurrence, witness: Witnessed) -> dict[str, Term]:
    return {
        name: value
        for name, value in zip(occurrence.variables, witness.row, strict=True)
        if value is not None
    }

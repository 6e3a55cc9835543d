"""The queries of a run by name, and what lists of them are made from it.

A change of some queries visits no others. What lists all queries, or numbers them, is built again
when it is next needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, TypeVar

from spaseq.engine.compiled import CompiledQueries, CompiledQuery, in_order, with_patterns
from spaseq.engine.instants import QueryRun
from spaseq.engine.run_query import Edit, Executor, RunQuery
from spaseq.engine.sharing import SharedProgram
from spaseq.engine.template_split import Division
from spaseq.engine.use_counts import PatternUses, VariableUses
from spaseq.gpm.pattern import Pattern, SharedPatterns
from spaseq.parser import ast
from spaseq.plan.templates import Template

_T = TypeVar("_T")


class _List(Generic[_T]):
    """What lists all queries of a run; it is built when it is needed after a change.

    What a reader without the lock of the run builds during a change belongs to the former lists.
    """

    def __init__(self, build: Callable[[RunQueries], _T]):
        self._build = build
        self._name = build.__name__
        self.__doc__ = build.__doc__

    def __get__(self, run: RunQueries, owner: type[RunQueries]) -> _T:
        lists = run.lists
        if self._name not in lists:
            lists[self._name] = self._build(run)
        found: _T = lists[self._name]
        return found


class RunQueries:
    """The queries of one run.

    Args:
        shared: The program.
        begin: Makes the state of a query.
        unbound: The sources before variables were bound; None: the sources.
    """

    def __init__(
        self,
        shared: SharedProgram,
        begin: Callable[[CompiledQuery], QueryRun],
        unbound: Sequence[ast.Query] | None = None,
    ):
        public, executed = shared.public, shared.executed
        self.by_name: dict[str, RunQuery] = {}
        self.patterns = list(executed.patterns)
        """The patterns of the run, by number."""
        self.written = executed.written
        """The streams that queries register."""
        self.misnamed: dict[Executor, None] = {}
        """The executors whose state has the name of a query that has left equal ones."""
        self.only: Executor | None = None
        """What evaluates the only query; None if there are several."""
        self._canonical: SharedPatterns | None = None
        unbound, positions = unbound or public.sources, public.positions
        executors: list[Executor] = []
        for number, (compiled, place, first) in enumerate(
            zip(executed.queries, shared.places, shared.firsts, strict=True)
        ):
            template = shared.templates.get(number)
            if first < number:
                executor = executors[first]
            else:
                source = public.sources[positions[place]] if template is None else template.query
                direct = self.written.isdisjoint(compiled.plan.streams)
                executor = Executor(source, compiled, direct, template, shared.embeddings)
                executor.state = begin(compiled)
            executors.append(executor)
            for each in [place] if template is None else template.queries:
                position = positions[each]
                query = RunQuery(
                    position,
                    public.sources[position],
                    public.names[position],
                    unbound[position],
                    compiled if template is None else public.queries[each],
                    executor,
                    None if template is None else public.patterns,
                )
                self._enter(query)
            executor.divide()
        self.next_serial = len(self.by_name)
        self.relist()
        self.lists["public"] = public
        self._pattern_uses: PatternUses | None = None
        self._variable_uses: VariableUses | None = None

    # ------------------------------------------------------------------ all queries

    @_List
    def texts(self) -> list[RunQuery]:
        """The queries in the order of their texts."""
        return sorted(self.by_name.values(), key=attrgetter("serial"))

    @_List
    def queries(self) -> list[RunQuery]:
        """The queries in the order of evaluation: the writer of a stream precedes its readers."""
        return ordered(self.texts) if self.written else self.texts

    @_List
    def executors(self) -> list[Executor]:
        """What evaluates the queries, in the order of their first ones."""
        return list(dict.fromkeys(query.executor for query in self.queries))

    @_List
    def entries(self) -> list[RunQuery]:
        """The queries in the order of evaluation; of those of a template, the first one only."""
        firsts = {query.executor: query for query in reversed(self.queries)}
        return [
            query
            for query in self.queries
            if query.executor.template is None or firsts[query.executor] is query
        ]

    @_List
    def states(self) -> list[QueryRun]:
        """The states of the executors."""
        return [executor.state for executor in self.executors]

    @_List
    def divisions(self) -> Mapping[int, Division]:
        """Per executor of a template, by number: what divides its matches among its queries."""
        divisions = ((number, each.division) for number, each in enumerate(self.executors))
        return {number: division for number, division in divisions if division is not None}

    @_List
    def templates(self) -> list[Template]:
        """The templates; their members are the numbers of queries in `public`."""
        numbers = {query.serial: number for number, query in enumerate(self.queries)}
        templates = (executor.template for executor in self.executors)
        return [template.renumbered(numbers) for template in templates if template is not None]

    @property
    def shares(self) -> bool:
        """Whether an executor evaluates several queries."""
        return len(self.executors) < len(self.by_name)

    @_List
    def program(self) -> CompiledQueries:
        """The queries as they are evaluated; its patterns are those of the run."""
        return _program(self.texts, tuple(self.patterns), self.executors)

    @_List
    def public(self) -> CompiledQueries:
        """The queries as they were written; its patterns are those that queries use."""
        tasks, asked = dict[int, Pattern](), dict[int, Pattern]()
        for query in self.queries:
            known = self._patterns_of(query)
            tasks |= {id(known[n]): known[n] for n in query.compiled.tasks}
            asked |= {id(known[n]): known[n] for n in query.compiled.asked_patterns}
        place = {each: number for number, each in enumerate((*tasks, *asked))}
        return CompiledQueries(
            tuple(
                query.compiled.renumbered(lambda n: place[id(known[n])])  # noqa: B023
                for query in self.queries
                for known in [self._patterns_of(query)]
            ),
            tuple(tasks.values()),
            tuple(asked.values()),
            tuple(query.source for query in self.texts),
            tuple(query.name for query in self.texts),
        )

    @_List
    def tasks(self) -> list[int]:
        """Per task of `public`: its number in the run; -1 if only templates have it, changed."""
        found = [-1] * len(self.public.tasks)
        for compiled, query in zip(self.public.queries, self.queries, strict=True):
            executor = query.executor
            if executor.template is None or query.serial in executor.embeddings:
                for task, own in zip(compiled.tasks, query.own_tasks, strict=True):
                    found[task] = own
        return found

    def relist(self) -> None:
        """Build what lists all queries again, when it is next needed."""
        self.lists: dict[str, Any] = {}
        """What has been built from the queries since the last change, by name."""
        queries = self.by_name.values()
        self.only = next(iter(queries)).executor if len(queries) == 1 else None

    def _patterns_of(self, query: RunQuery) -> Sequence[Pattern]:
        return self.patterns if query.patterns is None else query.patterns

    def silence(self, names: Iterable[str]) -> None:
        """Drop the matches of some queries of templates from now on."""
        for name in names:
            query = self.by_name.get(name)
            if query is not None and query.executor.division is not None:
                query.executor.division.silent.add(query.serial)

    # ------------------------------------------------------------------ patterns, variables

    def find(self, key: Pattern) -> int | None:
        """The number of the pattern of a GPM with a `canonical` form; None if there is none."""
        if self._canonical is None:
            used = {number for each in self.executors for number in each.compiled.tasks}
            self._canonical = SharedPatterns()
            self._canonical.replace({number: self.patterns[number] for number in sorted(used)})
        return self._canonical.find(key)

    def forget(self, numbers: Iterable[int]) -> None:
        """Share some patterns no longer, after others have failed to take their numbers."""
        if self._canonical is not None:
            self._canonical.forget(numbers)

    @property
    def pattern_uses(self) -> PatternUses:
        """How many executors use each pattern."""
        if self._pattern_uses is None:
            queries = (each.compiled for each in self.executors)
            self._pattern_uses = PatternUses(queries, len(self.patterns))
        return self._pattern_uses

    @property
    def variable_uses(self) -> VariableUses:
        """How many queries use each variable."""
        if self._variable_uses is None:
            self._variable_uses = VariableUses(query.unbound for query in self.by_name.values())
        return self._variable_uses

    # ------------------------------------------------------------------ some queries

    def change(self, edit: Edit) -> list[Executor]:
        """Add, replace and remove queries; returns the executors whose queries have all left.

        Cost: that of these queries, whatever the number of the others.
        """
        put, new = edit.put, edit.patterns
        uses = self.pattern_uses
        for number, pattern in sorted(new.items()):
            self.patterns[number : number + 1] = [pattern]
        former = [self.by_name[name] for name in (*edit.dropped, *put) if name in self.by_name]
        for query in former:
            self._leave(query)
        for query in put.values():
            self._enter(query)
            if self._variable_uses is not None:
                self._variable_uses.add(query.unbound)
            self.next_serial = max(self.next_serial, query.serial + 1)
        left = []
        for executor in dict.fromkeys(query.executor for query in former):
            if not executor.members:
                left.append(executor)
                uses.remove(executor.compiled)
                self.misnamed.pop(executor, None)
            elif executor.template is None:
                named = self.by_name.get(executor.state.plan.name)
                if named is None or named.executor is not executor:
                    self.misnamed[executor] = None
        uses.enter(new)
        for each in edit.begins:
            uses.add(each.executor.compiled)
            each.executor.divide()
        if self._canonical is not None:
            self._canonical.replace(new)
        self.relist()
        return left

    def after(self, edit: Edit) -> CompiledQueries:
        """What `program` is after a change."""
        known = {name: each for name, each in self.by_name.items() if name not in edit.dropped}
        queries = sorted((known | edit.put).values(), key=attrgetter("serial"))
        return _program(queries, with_patterns(self.patterns, edit.patterns))

    def _enter(self, query: RunQuery) -> None:
        self.by_name[query.plan.name] = query
        query.executor.members[query.serial] = query
        if query.plan.registers_stream is not None:
            self.written.add(query.plan.registers_stream)

    def _leave(self, query: RunQuery) -> None:
        del self.by_name[query.plan.name]
        del query.executor.members[query.serial]
        if query.plan.registers_stream is not None:
            self.written.discard(query.plan.registers_stream)
        if self._variable_uses is not None:
            self._variable_uses.remove(query.unbound)


def ordered(queries: Iterable[RunQuery]) -> list[RunQuery]:
    """The queries in the order of evaluation."""
    known = {query.plan.name: query for query in queries}
    return [known[plan.name] for plan in in_order(query.plan for query in known.values())]


def _program(
    texts: Sequence[RunQuery], patterns: tuple[Pattern, ...], executors: Iterable[Executor] = ()
) -> CompiledQueries:
    """The program of what evaluates some queries.

    Args:
        texts: The queries in the order of their texts.
        patterns: The patterns of the run.
        executors: What evaluates them; by default, in the order of evaluation.
    """
    firsts = {query.executor: query for query in reversed(texts)}
    executors = executors or dict.fromkeys(query.executor for query in ordered(texts))
    own = list(reversed(firsts.items()))
    return CompiledQueries(
        tuple(executor.compiled for executor in executors),
        patterns,
        (),
        tuple(executor.source for executor, _ in own),
        tuple(query.name for _, query in own),
    )

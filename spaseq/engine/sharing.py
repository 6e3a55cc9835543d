"""Programs in which several queries are evaluated as one (`spaseq.plan.templates`).

A `SharedProgram` has the queries of a program as a run evaluates them: one for each template, then
all others, in the order of their first members. What the run reports is in terms of the queries of
the program.

A query is left out of templates if its results depend on each other (`DISTINCT`, `LIMIT`, `GROUP`,
`EMIT`, `AFTER MATCH`) or are computed, if it has partitions, deadlines or conjunctions, waits for
its window, counts events, or reads a knowledge base or registered streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter

from spaseq.engine.aggregates import RunningAggregates
from spaseq.engine.compiled import CompiledQueries, CompiledQuery
from spaseq.engine.native.query_run import projected_registers
from spaseq.engine.part_states import corresponds
from spaseq.errors import StateError
from spaseq.nfa.registers import RegisterFile
from spaseq.parser import ast
from spaseq.plan.templates import Template, joined, templates
from spaseq.rules import enabled


def originals(program: CompiledQueries) -> list[int]:
    """Per query: the number of the first query that equals it but for its name.

    Queries that register streams, or read registered ones, count as different from all others.
    """
    numbers = range(len(program.queries))
    if any(query.plan.registers_stream is not None for query in program.queries):
        return list(numbers)
    known: dict[ast.Query, int] = {}
    return [known.setdefault(program.sources[number], number) for number in numbers]


@dataclass(frozen=True)
class SharedProgram:
    """A program as a run evaluates it."""

    public: CompiledQueries
    """The queries as they were written."""
    executed: CompiledQueries
    templates: Mapping[int, Template]
    """The number of an executed query → the template that it is."""
    places: Sequence[int]
    """Per executed query: the number of the query, or of the first one, in `public`."""

    def tasks(self) -> list[int]:
        """Per graph pattern of a GPM: its number in `executed`, -1 if only templates have it."""
        found = [-1] * len(self.public.tasks)
        for query, executed in zip(self.public.queries, self.executors, strict=True):
            if executed in self.templates:
                continue
            for task, number in zip(
                query.tasks, self.executed.queries[executed].tasks, strict=True
            ):
                found[task] = number
        return found

    def plain(self, like: CompiledQueries) -> tuple[CompiledQueries, Sequence[int]]:
        """`public` in the class of `like`, and the number of each task in `executed`."""
        plain, numbers = self.public.plain
        program = replace(
            like, queries=plain.queries, tasks=plain.tasks, asked=plain.asked,
            sources=plain.sources, names=plain.names,
        )  # fmt: skip
        tasks = self.tasks()
        return program, [tasks[number] for number in numbers[: len(program.tasks)]]

    @cached_property
    def executors(self) -> Sequence[int]:
        """Per query: the number of the executed query that gives its matches."""
        found = [0] * len(self.public.queries)
        for executed, place in enumerate(self.places):
            template = self.templates.get(executed)
            for number in [place] if template is None else template.queries:
                found[number] = executed
        return found


def unshared(program: CompiledQueries) -> SharedProgram:
    """A program whose queries are evaluated as they are."""
    return SharedProgram(program, program, {}, range(len(program.queries)))


def extended(public: CompiledQueries, program: CompiledQueries, name: str) -> CompiledQueries:
    """A program with the query of another program behind the others, under a name."""
    (query,), first = program.queries, len(public.patterns)
    query = replace(
        query,
        plan=replace(query.plan, name=name),
        tasks=tuple(first + number for number in query.tasks),
        asked=tuple(tuple(n if n < 0 else first + n for n in some) for some in query.asked),
    )
    return CompiledQueries(
        (*public.queries, query),
        (*public.patterns, *program.patterns),
        (),
        (*public.sources, *program.sources),
        (*public.names, name),
    )


def templates_of(program: CompiledQueries, least: int | None = None) -> list[Template]:
    """The templates of a program's queries; `least` as for `spaseq.plan.templates.templates`."""
    if not enabled("templates"):
        return []
    return templates(_shareable(program, range(len(program.queries))), least)


def saved_templates(
    program: CompiledQueries, shares: Sequence[Sequence[Sequence[int]]]
) -> list[Template]:
    """The templates with given members (`Template.members`).

    Raises:
        StateError: if queries cannot be part of a template, or do not fit together.
    """
    found = []
    for members in shares:
        numbers = [number for some in members for number in some]
        template = joined(_shareable(program, numbers), members)
        if template is None:
            raise StateError(
                "the saved state has queries as one that differ by more than constants"
            )
        found.append(template)
    return found


def _shareable(
    program: CompiledQueries, numbers: Iterable[int]
) -> dict[int, tuple[ast.Query, Sequence[str]]]:
    """Those of some queries that can be part of a template, with the variables they select."""
    if len(program.queries) < 2 or any(q.plan.registers_stream for q in program.queries):
        return {}
    return {
        number: (
            program.sources[number],
            [column.name for column in program.queries[number].plan.output.columns],
        )
        for number in numbers
        if hindrance(program.queries[number], program.sources[number]) is None
    }


def hindrance(query: CompiledQuery, source: ast.Query) -> str | None:
    """What keeps a query out of templates, for `explain`; None if nothing does."""
    plan = query.plan
    if source.kbs or any(isinstance(n, ast.Graph | ast.Service) for n in ast.walk(source.defines)):
        return "it reads a knowledge base"
    if plan.window.kind == "events":
        return "its window counts events"
    if plan.partition:
        return "it has partitions"
    if plan.emit != "ALL" or plan.skip_past_last or plan.skip_to is not None:
        return "it chooses among its matches"
    if plan.output.limit is not None:
        return "it has a LIMIT"
    if query.automaton.timed:
        return "it waits for deadlines"
    if any(number >= 0 for some in query.asked for number in some):
        return "a filter over several steps reads graphs"
    if not is_projected(query):
        return "its results are computed, or depend on each other or on the end of the window"
    return None


def is_projected(query: CompiledQuery) -> bool:
    """Whether matches of a query are made one by one, of what they bind."""
    return projected_registers(query, RegisterFile(query.plan, RunningAggregates())) is not None


def assembled(
    public: CompiledQueries, chosen: Sequence[Template], compiled: CompiledQueries
) -> SharedProgram:
    """A program with some templates, which are `compiled` in their order.

    Templates whose automaton is another one than that of their queries are left out.
    """
    first = len(public.patterns)
    order: list[tuple[int, CompiledQuery, Template | None]] = []
    covered: set[int] = set()
    for query, template in zip(compiled.queries, chosen, strict=True):
        numbers = template.queries
        if corresponds(query, public.queries[numbers[0]], template.numbered) and is_projected(
            query
        ):
            covered.update(numbers)
            tasks = tuple(first + number for number in query.tasks)
            order.append((numbers[0], replace(query, tasks=tasks), template))
    order += [(n, query, None) for n, query in enumerate(public.queries) if n not in covered]
    order.sort(key=itemgetter(0))
    if not covered:
        return unshared(public)
    executed, _ = CompiledQueries(
        tuple(query for _, query, _ in order),
        (*public.patterns, *compiled.tasks),
        (),
        tuple(
            public.sources[place] if template is None else template.query
            for place, _, template in order
        ),
        tuple(query.plan.name for _, query, _ in order),
    ).plain
    return SharedProgram(
        public,
        executed,
        {number: each for number, (_, _, each) in enumerate(order) if each is not None},
        [place for place, _, _ in order],
    )

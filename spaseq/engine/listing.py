"""The queries of a changed run: as the run evaluates them, and as they were written.

A run with templates (`spaseq.engine.sharing`) does not evaluate the written queries themselves. A
change of such a run does not change the templates, and records which written query each evaluated
query stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from spaseq.engine.branches import Embedding
from spaseq.engine.compiled import CompiledQueries, CompiledQuery
from spaseq.engine.evaluation import Evaluation
from spaseq.engine.instants import QueryRun
from spaseq.engine.part_states import Part
from spaseq.engine.sharing import SharedProgram
from spaseq.parser import ast
from spaseq.plan.templates import Template
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A query that a changed run evaluates: a written one or a template."""

    source: ast.Query
    name: str
    """The name given at compilation; a name in `REGISTER QUERY` overrides it."""
    unbound: ast.Query
    """The syntax tree before variables were bound."""
    compiled: CompiledQuery
    run: QueryRun | None
    """Its state; None if it begins now."""
    kept: QueryRun | Part | None = None
    """The query whose state it continues, if it begins now."""
    drains: bool = False
    """Whether it begins no further partial matches."""
    template: Template | None = None
    """The template, if it is one; the numbers of its queries are those before the change."""

    @property
    def state(self) -> QueryRun:
        """The state of a query that has begun."""
        assert self.run is not None
        return self.run


@dataclass(slots=True)
class Listed:
    """A query as it was written."""

    source: ast.Query
    name: str
    unbound: ast.Query
    """The syntax tree before variables were bound."""
    compiled: CompiledQuery
    """The compiled query; its patterns have the numbers of the listing."""
    entry: Entry
    """The entry that evaluates it."""
    before: int | None = None
    """Its number before the change; None: it is new."""


class Listing:
    """The queries of a run as they were written.

    Args:
        run: The run, which has no registered streams.
        entries: The queries that it evaluates, in its order.
    """

    def __init__(self, run: Evaluation, entries: Sequence[Entry]):
        self._run = run
        public, executors = run.public, run.shared.executors
        self.queries = [
            Listed(
                public.sources[position],
                public.names[position],
                run.unbound[position],
                public.queries[number],
                entries[executors[number]],
                number,
            )
            for number, position in enumerate(public.positions)
        ]
        self._patterns = list(public.patterns)
        self.embeddings: dict[int, Embedding] = dict(run.shared.embeddings)
        """As in `SharedProgram`, by the numbers before the change."""

    def of(self, name: str) -> Listed | None:
        """The query of a name."""
        return next((one for one in self.queries if one.compiled.plan.name == name), None)

    def compiled(self, program: CompiledQueries, name: str) -> CompiledQuery:
        """The only query of a program, with another name and pattern numbers of the listing."""
        (query,), first = program.queries, len(self._patterns)
        self._patterns += program.patterns
        return replace(query, plan=replace(query.plan, name=name)).renumbered(first.__add__)

    @property
    def names(self) -> set[str]:
        """The names of the queries."""
        return {one.compiled.plan.name for one in self.queries}

    def drain(self, name: str, entry: Entry) -> None:
        """Add the version of a query that drains, which a separate entry evaluates."""
        one = self.of(name)
        assert one is not None
        plan = replace(one.compiled.plan, name=entry.name, shown_as=entry.compiled.plan.shown_as)
        compiled = replace(one.compiled, plan=plan)
        unbound = replace(one.unbound, register=entry.source.register)
        self.queries.append(Listed(entry.source, entry.name, unbound, compiled, entry))

    # ------------------------------------------------------------------ after the change

    def arranged(self, entries: Iterable[Entry]) -> list[Entry]:
        """The entries in the order of their first queries, as in a newly compiled program."""
        first: dict[int, int] = {}
        for number, one in enumerate(self.queries):
            first.setdefault(id(one.entry), number)
        return sorted(entries, key=lambda entry: first[id(entry)])

    def shared(self, entries: Sequence[Entry], executed: CompiledQueries) -> SharedProgram:
        """The program as the run evaluates it.

        Args:
            entries: The result of `arranged`.
            executed: The program that has them as its queries.
        """
        numbers = {one.before: n for n, one in enumerate(self.queries) if one.before is not None}
        public = CompiledQueries(
            tuple(one.compiled for one in self.queries),
            tuple(self._patterns),
            (),
            tuple(one.source for one in self.queries),
            tuple(one.name for one in self.queries),
        )
        first = {id(one.entry): n for n, one in reversed(list(enumerate(self.queries)))}
        return SharedProgram(
            public.plain[0],
            executed,
            {
                number: entry.template.renumbered(numbers)
                for number, entry in enumerate(entries)
                if entry.template is not None
            },
            [first[id(entry)] for entry in entries],
            {
                numbers[number]: embedding
                for number, embedding in self.embeddings.items()
                if number in numbers and self.queries[numbers[number]].entry.template is not None
            },
        )

    @property
    def matched(self) -> dict[int, int]:
        """The number of matches so far of each query that a template evaluates."""
        return {
            number: self._run.listed.matched(one.before)
            for number, one in enumerate(self.queries)
            if one.before is not None and one.entry.template is not None
        }

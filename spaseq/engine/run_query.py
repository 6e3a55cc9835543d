"""`RunQuery`: a query of a run, and `Executor`: what evaluates it.

A query has an executor of its own, unless it shares that of equal queries or of a template
(`spaseq.engine.sharing`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from spaseq.engine import embedding
from spaseq.engine.compiled import CompiledQuery
from spaseq.engine.embedding import Embedding
from spaseq.engine.instants import QueryRun
from spaseq.engine.part_states import Part
from spaseq.engine.template_split import NO_EMBEDDINGS, Division
from spaseq.gpm.pattern import Pattern
from spaseq.nfa.counters import AutomatonCounters
from spaseq.parser import ast
from spaseq.plan.logical import QueryPlan
from spaseq.plan.templates import Template
from spaseq.rdf.event import Event
from spaseq.records import dataclass


class Executor:
    """An automaton of a run, which evaluates one or several queries.

    Args:
        source: The query that it evaluates: a written one or a template.
        compiled: The same; its patterns have the numbers of the run.
        direct: Whether it reads no registered stream, and so processes events at once.
        template: The template, if it is one; its members are serial numbers.
        embeddings: The positions of its queries in it, if it branches, by their serial numbers.
    """

    state: QueryRun
    """The state, once it has begun."""

    def __init__(
        self,
        source: ast.Query,
        compiled: CompiledQuery,
        direct: bool = True,
        template: Template | None = None,
        embeddings: Mapping[int, Embedding] = NO_EMBEDDINGS,
    ):
        self.source = source
        self.compiled = compiled
        self.direct = direct
        self.template = template
        self.embeddings = embeddings
        self.members: dict[int, RunQuery] = {}
        """The queries, by their serial numbers."""
        self.matched: dict[int, int] = {}
        """The matches of the queries of a template before it begins, by their serial numbers."""
        self.division: Division | None = None
        """What divides the matches of a template among its queries."""
        self.delayed: list[Event] = []
        """Events of open timestamps, if it is not direct, unless the loop has them."""

    @property
    def first(self) -> RunQuery:
        """The first of the queries."""
        return self.members[min(self.members)]

    @property
    def queries(self) -> list[RunQuery]:
        """The queries in their order."""
        return [self.members[serial] for serial in sorted(self.members)]

    def divide(self) -> None:
        """Divide the matches of a template among its queries, once it has begun."""
        if self.template is not None:
            queries = {serial: query.compiled for serial, query in self.members.items()}
            self.division = Division(
                self.template, queries, self.state, self.embeddings, self.matched
            )


@dataclass(slots=True, eq=False)
class RunQuery:
    """A query of a run, as it was written."""

    serial: int
    """Its place in the order of the queries; a query that replaces another one takes its place."""
    source: ast.Query
    name: str
    """The name given at compilation; a name in `REGISTER QUERY` overrides it."""
    unbound: ast.Query
    """The syntax tree before variables were bound."""
    compiled: CompiledQuery
    executor: Executor
    patterns: Sequence[Pattern] | None = None
    """What the numbers of its patterns refer to; None: the patterns of the run."""

    @property
    def plan(self) -> QueryPlan:
        return self.compiled.plan

    @property
    def state(self) -> QueryRun:
        """The state of what evaluates it."""
        return self.executor.state

    @property
    def matched(self) -> int:
        """The number of its matches so far."""
        division = self.executor.division
        return self.state.matched if division is None else division.matched[self.serial]

    @property
    def others(self) -> int:
        """How many other queries a template evaluates as one with it."""
        return 0 if self.executor.template is None else len(self.executor.members) - 1

    @property
    def embedding(self) -> Embedding:
        """The positions of its parts in the automaton that evaluates it."""
        return self.executor.embeddings.get(self.serial) or embedding.whole(self.compiled)

    @property
    def evaluated_plan(self) -> QueryPlan:
        """The plan by which it is evaluated, with its parts alone.

        The constants of a template are variables in it.
        """
        if self.serial in self.executor.embeddings:
            return self.plan
        return self.executor.compiled.plan

    @property
    def own_tasks(self) -> list[int]:
        """Per GPM: the number of its pattern in the run."""
        tasks = self.executor.compiled.tasks
        return [tasks[gpm] for gpm in self.embedding.gpms]

    def own_counters(self, whole: AutomatonCounters) -> AutomatonCounters:
        """The counters of its parts, some of which count for other queries too.

        Args:
            whole: The counters of the automaton that evaluates it.
        """
        lies = self.executor.embeddings.get(self.serial)
        if lies is None:
            return whole
        places = self.compiled.automaton.places
        return replace(
            whole,
            places=[
                replace(whole.places[there], number=here, place=place)
                for here, (there, place) in enumerate(zip(lies.places, places, strict=True))
            ],
            disagreed=[whole.disagreed[n] for n in lies.occurrences],
            untrue=[whole.untrue[n] for n in lies.occurrences],
            errors=[whole.errors[n] for n in lies.occurrences],
        )


@dataclass(frozen=True, slots=True)
class Beginning:
    """An executor that begins in a run."""

    executor: Executor
    kept: Executor | Part | None
    """What it continues."""
    drains: bool
    """Whether it begins no further partial matches."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Changes of some queries of a run, made together."""

    put: dict[str, RunQuery]
    """Queries that come, by name, in place of those of the same names."""
    dropped: Collection[str]
    """The names of other queries that leave."""
    begins: Sequence[Beginning]
    """The executors of the queries that come, but for those that the run has."""
    patterns: Mapping[int, Pattern]
    """Their patterns that the run does not have, by number."""

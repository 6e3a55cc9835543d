"""Programs in which several queries are evaluated as one (`spaseq.plan.templates`).

A `SharedProgram` has the queries of a program as a run evaluates them: one for each template, then
all others, in the order of their first members. The run reports everything in terms of the queries
of the program.

A query is not part of any template if its results depend on each other (`DISTINCT`, `LIMIT`,
`GROUP`, `EMIT`, `AFTER MATCH`) or are computed, or if it has partitions, deadlines or conjunctions,
waits for its window, counts events, or reads a knowledge base or registered streams. Templates by
constants take precedence: only queries in none of them share their first steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from spaseq.engine import embedding
from spaseq.engine.aggregates import RunningAggregates
from spaseq.engine.compiled import CompiledQueries, CompiledQuery
from spaseq.engine.embedding import Branches, Embedding
from spaseq.engine.part_states import corresponds
from spaseq.engine.projection import projected_registers
from spaseq.errors import StateError
from spaseq.nfa.native import lazy_join_tables
from spaseq.nfa.registers import RegisterFile
from spaseq.parser import ast
from spaseq.plan.prefixes import Candidate, alike, branching, prefixes
from spaseq.plan.templates import Shareable, Template, joined, may_be_absent, templates
from spaseq.rules import enabled


def originals(program: CompiledQueries) -> list[int]:
    """Per query: the number of the first query that is equal apart from its name.

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
    firsts: Sequence[int]
    """Per executed query: the number of the first equal one, whose state it shares."""
    embeddings: Mapping[int, Embedding] = field(default_factory=dict)
    """The number of a query → its position in its template, if the template branches."""


def unshared(program: CompiledQueries) -> SharedProgram:
    """A program whose queries are evaluated as they are."""
    numbers = range(len(program.queries))
    return SharedProgram(program, program, {}, numbers, originals(program))


def templates_of(
    program: CompiledQueries, least: int | None = None, numbers: Iterable[int] | None = None
) -> list[Template]:
    """The templates of a program's queries.

    Args:
        program: The program.
        least: As for `spaseq.plan.templates.templates`.
        numbers: The queries that may be part of one; None: all.
    """
    if not enabled("templates"):
        return []
    shareable = _shareable(program, range(len(program.queries)) if numbers is None else numbers)
    found = templates(shareable, least)
    varied = [each for each in found if each.numbered or each.thresholds]
    covered = {number for each in varied for number in each.queries}
    left = {n: each.query for n, each in shareable.items() if n not in covered}
    begun = prefixes(_candidates(program, alike(left, least)), least)
    covered.update(number for each in begun for number in each.queries)
    return varied + begun + [each for each in found if covered.isdisjoint(each.queries)]


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
        shareable = _shareable(program, numbers)
        template = joined(shareable, members)
        if template is None:
            template = branching(_candidates(program, list(shareable)), members)
        if template is None:
            raise StateError(
                "the saved state has queries as one that differ by more than constants"
            )
        found.append(template)
    return found


def _shareable(program: CompiledQueries, numbers: Iterable[int]) -> dict[int, Shareable]:
    """The queries among some that can be part of a template."""
    if len(program.queries) < 2 or any(q.plan.registers_stream for q in program.queries):
        return {}
    return {
        number: Shareable(
            program.sources[number],
            [column.name for column in program.queries[number].plan.output.columns],
            next_steps(program.queries[number]),
        )
        for number in numbers
        if hindrance(program.queries[number], program.sources[number]) is None
    }


def _candidates(program: CompiledQueries, numbers: Iterable[int]) -> dict[int, Candidate]:
    """The queries among some shareable ones that can share their first steps."""
    return {
        number: Candidate(
            program.sources[number],
            [column.name for column in query.plan.output.columns],
            embedding.traits(query),
            embedding.waiting(query),
        )
        for number in numbers
        for query in [program.queries[number]]
        if own_steps(query, program.sources[number]) is None
    }


def own_steps(query: CompiledQuery, source: ast.Query) -> str | None:
    """Why a query cannot share its first steps, for `explain`; None if it can."""
    if len(source.sequence.steps) < 2 or may_be_absent(source.sequence.steps[0]):
        return "its first step is its only one, or may be absent"
    if any(register.kind == "count" for register in query.plan.registers):
        return "it counts the events of a step"
    if embedding.names_unbound(query.plan):
        return "a filter names a variable that no step binds"
    if lazy_join_tables.weighed(query.plan, query.automaton):
        return "its steps may be joined lazily"
    if embedding.repeats_searched(query):
        return "a graph pattern that may be absent stands at several steps"
    return None


def hindrance(query: CompiledQuery, source: ast.Query) -> str | None:
    """Why a query cannot be part of a template, for `explain`; None if it can."""
    plan = query.plan
    if source.kbs or any(isinstance(n, ast.Graph | ast.Service) for n in ast.walk(source.defines)):
        return "it reads a knowledge base"
    if plan.window.counts_events:
        return "its window counts events"
    if plan.partition:
        return "it has partitions"
    if plan.emit != "ALL" or plan.skip_past_last or plan.skip_to is not None:
        return "it chooses among its matches"
    if plan.output.limit is not None:
        return "it has a LIMIT"
    if query.automaton.timed:
        return "it waits for deadlines"
    if query.automaton.waits:
        return "its matches wait for the end of their window"
    if any(atom.conjoined for atom in query.automaton.atoms):
        return "a step has several events"
    if any(number >= 0 for some in query.asked for number in some):
        return "a filter over several steps reads graphs"
    if query.automaton.doubling:
        return "the number of its matches can double with each event"
    if not is_projected(query):
        return "its results are computed, or depend on each other"
    return None


def next_steps(query: CompiledQuery) -> frozenset[str]:
    """The GPMs of the steps after `;` for which partial matches can wait with a floor.

    A single place waits for such a step, which occurs once, as does the first step. What the place
    accepts depends on the row and on shared variables: an event between removes no partial match,
    and no filter of the step reads earlier ones.
    """
    plan, automaton = query.plan, query.automaton
    uses = Counter(occurrence.gpm for occurrence in plan.occurrences)
    if uses[plan.occurrences[0].gpm] > 1:
        return frozenset()
    # Also the places that look for an event between two steps: an optional step has one.
    waiting = Counter(
        occurrence
        for place in automaton.places
        for edge in place.edges
        for occurrence in automaton.atoms[edge.atom].occurrences
    )
    manners = embedding.searching(query).manners
    found = []
    for number, place in enumerate(automaton.places):
        if place.operator != ";" or place.guards or len(place.edges) > 1 or manners[number]:
            continue
        (edge,) = place.edges
        atom = automaton.atoms[edge.atom]
        if atom.kind != "single" or atom.limits or edge.actions:
            continue
        (taken,) = atom.occurrences
        occurrence = plan.occurrences[taken]
        if (
            taken
            and waiting[taken] == 1
            and uses[occurrence.gpm] == 1
            and edge.within is None
            and not (
                occurrence.units or occurrence.negated or occurrence.conditions or occurrence.counts
            )
        ):
            found.append(plan.gpms[occurrence.gpm].name)
    return frozenset(found)


def is_projected(query: CompiledQuery) -> bool:
    """Whether matches of a query are made one by one from their bindings."""
    return projected_registers(query, RegisterFile(query.plan, RunningAggregates())) is not None


@dataclass(frozen=True)
class Fitting:
    """A template whose automaton is that of its queries."""

    template: Template
    compiled: CompiledQuery
    embeddings: Mapping[int, Embedding]
    """As in `SharedProgram`, for its queries."""


def fitting(
    public: CompiledQueries, chosen: Sequence[Template], compiled: CompiledQueries
) -> list[Fitting]:
    """Those of some templates, `compiled` in their order, whose automaton is that of their queries.

    The others differ from them, and cannot be used.
    """
    found = []
    for query, template in zip(compiled.queries, chosen, strict=True):
        numbers = template.queries
        embeddings: dict[int, Embedding] | None = {}
        if template.branches:
            embeddings = _embeddings(public, template, query)
            fits = embeddings is not None
        else:
            fits = corresponds(query, public.queries[numbers[0]], template.numbered)
        if fits and is_projected(query):
            found.append(Fitting(template, query, embeddings or {}))
    return found


def assembled(
    public: CompiledQueries, chosen: Sequence[Template], compiled: CompiledQueries
) -> SharedProgram:
    """A program with some templates, which are `compiled` in their order.

    Templates whose automaton differs from the automaton of their queries are omitted.
    """
    first = len(public.patterns)
    order: list[tuple[int, CompiledQuery, Template | None]] = []
    covered: set[int] = set()
    embeddings: dict[int, Embedding] = {}
    for each in fitting(public, chosen, compiled):
        numbers = each.template.queries
        covered.update(numbers)
        embeddings |= each.embeddings
        tasks = tuple(first + number for number in each.compiled.tasks)
        order.append((numbers[0], replace(each.compiled, tasks=tasks), each.template))
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
        originals(executed),
        embeddings,
    )


def _embeddings(
    public: CompiledQueries, template: Template, compiled: CompiledQuery
) -> dict[int, Embedding] | None:
    """The positions of the queries of a template that branches; None if one does not fit."""
    inside, found = Branches(compiled), {}
    for members, branch in zip(template.members, template.branches, strict=True):
        for number in members:
            position = inside.embedding(public.queries[number], branch)
            if position is None:
                return None
            found[number] = position
    return found

"""Compiled queries as frozen data: plans, automata and shared tasks.

The functions at the end determine what the compiled core does for a query besides matching:
selecting among the matches of an instant, and counting events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from spaseq.errors import Diagnostic
from spaseq.gpm.pattern import Pattern
from spaseq.nfa.automaton import Automaton
from spaseq.nfa.native import tables
from spaseq.parser import ast
from spaseq.parser.format import limit_text
from spaseq.plan.logical import Output, QueryPlan
from spaseq.records import dataclass

_SELECTED_BY_SHARING = frozenset(("ANY", "NEXT", "LAST", "MAX"))
"""The modes of EMIT that the compiled core computes from the parts that matches share."""


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """One query: its plan, its automaton, and the task of each of its GPMs."""

    plan: QueryPlan
    automaton: Automaton
    tasks: tuple[int, ...]
    asked: tuple[tuple[int, ...], ...]
    """Per occurrence and residual filter: the number of the filter's pattern in
    `CompiledQueries.patterns` if the filter reads graphs, else -1."""

    @property
    def asked_patterns(self) -> Iterator[int]:
        """The numbers of the patterns of residual filters."""
        return (number for some in self.asked for number in some if number >= 0)

    def renumbered(self, number: Callable[[int], int]) -> CompiledQuery:
        """The query with other numbers for its patterns."""
        return replace(
            self,
            tasks=tuple(map(number, self.tasks)),
            asked=tuple(tuple(n if n < 0 else number(n) for n in some) for some in self.asked),
        )


@dataclass(frozen=True, slots=True)
class CompiledQueries:
    """One or several compiled queries, with the streams and KB graphs that they read."""

    queries: tuple[CompiledQuery, ...]
    """Ordered so that the writer of a registered stream precedes its readers."""
    tasks: tuple[Pattern, ...]
    """The distinct graph patterns with their local filters; queries share equal ones."""
    asked: tuple[Pattern, ...]
    """The residual filters that read graphs, each as a pattern; queries share equal ones."""
    sources: tuple[ast.Query, ...]
    names: tuple[str, ...]

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """All patterns that events are matched against: the tasks, then the residual filters."""
        return (*self.tasks, *self.asked)

    @property
    def positions(self) -> list[int]:
        """Per query: the position of its text in `sources`."""
        shown = map(shown_name, self.sources, self.names)
        known = {name: position for position, name in enumerate(shown)}
        return [known[query.plan.name] for query in self.queries]

    def extended(
        self, query: CompiledQuery, source: ast.Query, name: str, new: Mapping[int, Pattern]
    ) -> CompiledQueries:
        """The program with another query after the others.

        Cost: a copy of a few tuples of references.

        Args:
            query: The query, which neither registers a stream nor reads a registered one.
            source: Its source.
            name: Its name as given at compilation.
            new: The patterns that the program does not have, by number.
        """
        return CompiledQueries(
            (*self.queries, query),
            with_patterns(self.patterns, new),
            (),
            (*self.sources, source),
            (*self.names, name),
        )

    def exchanged(
        self,
        number: int,
        position: int,
        query: CompiledQuery,
        source: ast.Query,
        name: str,
        new: Mapping[int, Pattern],
    ) -> CompiledQueries:
        """The program with another query in place of one; cost and arguments as for `extended`.

        Args:
            number: The place of the query among `queries`.
            position: The position of its text.
        """
        return CompiledQueries(
            (*self.queries[:number], query, *self.queries[number + 1 :]),
            with_patterns(self.patterns, new),
            (),
            (*self.sources[:position], source, *self.sources[position + 1 :]),
            (*self.names[:position], name, *self.names[position + 1 :]),
        )

    def without(self, number: int, position: int) -> CompiledQueries:
        """The program without a query; its patterns remain. Cost and arguments as above."""
        return CompiledQueries(
            self.queries[:number] + self.queries[number + 1 :],
            self.tasks,
            self.asked,
            self.sources[:position] + self.sources[position + 1 :],
            self.names[:position] + self.names[position + 1 :],
        )

    @property
    def plain(self) -> tuple[CompiledQueries, Sequence[int]]:
        """The program with its patterns in the order of use, and the former number of each.

        The program of a run whose queries have changed has patterns that no query uses.
        """
        tasks = dict.fromkeys(n for query in self.queries for n in query.tasks)
        asked = dict.fromkeys(n for query in self.queries for n in query.asked_patterns)
        after = {number: place for place, number in enumerate((*tasks, *asked))}
        patterns = self.patterns
        program = replace(
            self,
            queries=tuple(query.renumbered(after.__getitem__) for query in self.queries),
            tasks=tuple(patterns[n] for n in tasks),
            asked=tuple(patterns[n] for n in asked),
        )
        return program, tuple(after)

    @property
    def written(self) -> set[str]:
        """The IRIs of the streams that queries register."""
        registered = (query.plan.registers_stream for query in self.queries)
        return {iri for iri in registered if iri is not None}

    @property
    def streams(self) -> tuple[str, ...]:
        """The IRIs of the external streams: all but the registered ones."""
        written = self.written
        read = dict.fromkeys(iri for query in self.queries for iri in query.plan.streams)
        return tuple(iri for iri in read if iri not in written)

    @property
    def stream_names(self) -> Mapping[str, str]:
        """Stream name in the queries → IRI."""
        return {s.name: s.iri.value for query in self.sources for s in query.streams}

    @property
    def kb_graphs(self) -> tuple[str, ...]:
        """The KB graphs that `FROM` and `FROM NAMED` name."""
        named = dict.fromkeys(kb.iri.value for query in self.sources for kb in query.kbs)
        return tuple(named)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The warnings of all queries."""
        return tuple(finding for query in self.queries for finding in query.plan.warnings)


def with_patterns(patterns: Sequence[Pattern], new: Mapping[int, Pattern]) -> tuple[Pattern, ...]:
    """Some patterns, with new ones in their places or after them, by number."""
    found = list(patterns)
    for number, pattern in sorted(new.items()):
        if number < len(found):
            found[number] = pattern
        else:
            found.append(pattern)
    return tuple(found)


def shown_name(source: ast.Query, name: str) -> str:
    """The name of a query, from `REGISTER QUERY` or from its compilation."""
    register = source.register
    return register.name if register is not None and register.kind == "QUERY" else name


def in_order(plans: Iterable[QueryPlan]) -> list[QueryPlan]:
    """Order queries that register a stream before its readers, else as given.

    The checks have refused cycles.
    """
    left = list(plans)
    unwritten = {one.registers_stream: one for one in left if one.registers_stream is not None}
    ordered: list[QueryPlan] = []
    while unwritten:
        for one in left:
            if all(unwritten.get(iri, one) is one for iri in one.streams):
                break
        else:
            raise AssertionError("registered streams form a cycle")
        ordered.append(one)
        left.remove(one)
        if one.registers_stream is not None:
            del unwritten[one.registers_stream]
    return ordered + left


def in_short(program: CompiledQueries) -> str:
    """The names of the queries and the streams in one line; if there are many, the first ones."""
    names = [query.plan.name for query in program.queries]
    queries = "query" if len(names) == 1 else f"{len(names)} queries"
    return f"{queries} {_first(map(repr, names))} over {_first(program.streams)}"


def _first(texts: Iterable[str], most: int = 4) -> str:
    shown = list(texts)
    return ", ".join([*shown[:most], "…"] if len(shown) > most else shown)


def shared_selection(query: CompiledQuery) -> str:
    """The rule by which the core selects matches of an instant without listing them.

    Returns:
        A mode of EMIT, `LIMIT`, or an empty string if the core must list all matches. It must list
        them if a match may occur again when its window closes, if DISTINCT or a deferred STRICT may
        drop matches that LIMIT would retain, if matches dropped by LIMIT end partial matches of
        their partitions, if SKIP TO drops the matches of some starts, or if the query has steps of
        several events or deadlines.
    """
    plan = query.plan
    combined = any(atom.kind != "single" for atom in query.automaton.atoms)
    if query.automaton.waits or combined or plan.skip_to is not None:
        return ""
    if plan.output.grouping is not None and plan.emit in ("ALL", "STRICT"):
        return ""
    if plan.emit in _SELECTED_BY_SHARING:
        return plan.emit
    if plan.emit not in ("ALL", "STRICT"):
        return ""
    if plan.emit == "STRICT" and not tables.joins_strictly(plan, query.automaton):
        return ""
    output = plan.output
    limited = output.limits_instants and not output.distinct and output.form != "ask"
    return "LIMIT" if limited and not (plan.skip_past_last and plan.partition) else ""


def selection_clause(query: CompiledQuery) -> dict[str, str | bool] | None:
    """The clause that selects among the matches of an instant, and whether it lists all of them.

    None if the query emits every match.
    """
    emit, output = query.plan.emit, query.plan.output
    # In a grouped query the limit counts solutions of groups.
    limited = output.limit is not None and output.grouping is None
    if emit == "ALL" and not limited:
        return None
    strictly = tables.joins_strictly(query.plan, query.automaton) and not limited
    listed = not (shared_selection(query) or strictly)
    clause = limit_clause(output) if emit == "ALL" else f"EMIT {emit}"
    return {"clause": clause, "lists_all": listed}


def limit_clause(output: Output) -> str:
    """`LIMIT n PER ?k EVERY d`; the output has a limit."""
    assert output.limit is not None
    every = None if output.every is None else ast.Every(output.every)
    return limit_text(ast.Limit(output.limit, tuple(map(ast.Var, output.per)), every))


def counts_events(queries: Iterable[CompiledQuery]) -> bool:
    """Whether the windows of all these queries count events of the same streams."""
    plans = [query.plan for query in queries]
    streams = set(plans[0].streams)
    return all(plan.window.counts_events and set(plan.streams) == streams for plan in plans)

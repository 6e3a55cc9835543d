"""The progress of a run: counters (`statistics`), and how far each pattern got (`why_not`).

Events, triples and matches are counted over the whole life of a run, across saved states; places
and filters are counted since the run was started or resumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from spaseq.engine.evaluation import Evaluation
from spaseq.engine.instants import QueryRun
from spaseq.engine.place_names import STRATEGIES, Notation, skip_text
from spaseq.engine.run_query import RunQuery
from spaseq.explain.cost import conditions
from spaseq.explain.diagnosis import (
    Sample,
    events_with_rows,
    filter_causes,
    join_causes,
    optional_causes,
    pattern_causes,
)
from spaseq.explain.erred import Erred, erred
from spaseq.gpm.expression_errors import prefixes_of, with_prefixes
from spaseq.nfa.automaton import Edge
from spaseq.nfa.counters import AutomatonCounters, PlaceCounters, StateCounters
from spaseq.nfa.native.range_tables import deciding_operator
from spaseq.nfa.native.tables import joins_strictly
from spaseq.plan.logical import Condition, GpmPlan, Occurrence

_SIGNS = {"less": "<=", "equal": "=", "greater": ">="}


# ------------------------------------------------------------------ statistics


def statistics(run: Evaluation) -> dict[str, Any]:
    """The counters of a run. Cost: linear in its state.

    `groups` counts groups of partial matches, `nodes` their tECS nodes, and `buffered_rows` the
    rows stored for guards and conjunctions. `bytes` estimates the memory of these, of waiting
    matches, and of matches remembered for de-duplication. `shed_groups` counts groups dropped by
    a limit (`max_groups`, `max_steps`). Each query has these counters of its state; those of the
    run count a state that queries share once (`spaseq.nfa.counters.StateCounters`). `late_events`
    is always 0: a run refuses late events, and the readers count them. `function_errors` has the
    functions that failed: the number of failures since the run was started or resumed, and the
    first message. A query whose filters, BINDs or expressions of the result erred has `errors`, a
    list of these with their counts and the first error; `gpm` is the graph pattern, or the clause
    of the result. A query with a GROUP
    also has `result_groups`, the number of groups with results, and `grouped_results`, the number
    of results in them. A query whose LIMIT has PER or EVERY has `withheld_results`, the number of
    results that it withheld. With EVERY it has `limited_values`, the number of values of PER that
    are currently counted. A query that is evaluated as one with others (`explain`) has
    `evaluated_with`, the number of the others. Except `matches` and the counters of steps that it
    does not share, its counters are then the common counters of all of these queries.
    """
    counters_of = {query: query.counters() for query in run.queries}
    states = {
        query: StateCounters.of(counters, query.held(), query.shed)
        for query, counters in counters_of.items()
    }
    queries = {}
    for number, asked in enumerate(run.listed.queries):
        query = asked.state
        counters = asked.own_counters(counters_of[query])
        notation = Notation(asked.compiled)
        queries[asked.plan.name] = {
            "matches": asked.matched,
            **_others(asked),
            **states[query].as_data(),
            "waiting_for_closing": counters.waiting,
            **_errors(run, number, counters),
            **_result_groups(query),
            **_withheld(query),
            "places": {
                notation.title(place): counters.places[place].groups
                for place in notation.order
                if not counters.places[place].place.start
            },
        }
    return {
        "events": run.clock.events,
        "triples": run.clock.triples,
        "matches": sum(query.matched for query in run.listed.queries),
        **sum(states.values(), StateCounters()).as_data(),
        "late_events": 0,
        "evaluated_gpms": run.rows.evaluated(),
        "streams": {iri: {"events": number} for iri, number in run.clock.per_stream.items()},
        "function_errors": {
            iri: {"errors": failures.count, "first": failures.first}
            for iri, failures in run.rows.matchers.calls.failures.items()
        },
        "queries": queries,
    } | _kb_counters(run)


def _errors(run: Evaluation, number: int, counters: AutomatonCounters) -> dict[str, Any]:
    """The filters and BINDs of a query that erred, if any."""
    found = [each.as_data() for each in erred(run, number, counters)]
    return {"errors": found} if found else {}


def _others(query: RunQuery) -> dict[str, int]:
    """How many other queries are evaluated as one with a query, if any."""
    return {"evaluated_with": query.others} if query.others else {}


def _result_groups(query: QueryRun) -> dict[str, int]:
    """The sizes of the groups of results, if the query has a GROUP."""
    groups = query.output.groups
    if groups is None:
        return {}
    return {"result_groups": groups.count, "grouped_results": groups.held_count}


def _withheld(query: QueryRun) -> dict[str, int]:
    """The number of results that a LIMIT with PER or EVERY withheld."""
    limit = query.output.limit
    if limit is None or query.plan.output.limits_instants:
        return {}
    counted = {"withheld_results": limit.withheld}
    return counted if limit.every is None else counted | {"limited_values": len(limit.spans)}


def _kb_counters(run: Evaluation) -> dict[str, Any]:
    """The counters of requests for remote parts of the knowledge base, if there are any."""
    asked = run.kb.statistics
    if not asked:
        return {}
    failed = {"failed_refreshes": run.kb.failed_refreshes, "skipped_events": run.skipped}
    return {"kb": {"version": run.kb.version, **failed, "sources": asked}}


# ------------------------------------------------------------------ why there is no match


def why_not(run: Evaluation, name: str | None = None, sample: Sample | None = None) -> str:
    """How far the patterns of one query, or of all queries, got, and what stopped them.

    Args:
        run: The run; it is not changed.
        name: The name of a query; None for all.
        sample: Some whole events. With them, the report says what patterns without a solution
            were missing.

    Raises:
        ValueError: if no query has the name.
    """
    names = [query.plan.name for query in run.listed.queries]
    if name is not None and name not in names:
        raise ValueError(f"there is no query {name}; the queries are {', '.join(names)}")
    parts = [
        "\n".join(_Inquiry(run, number, sample).report())
        for number, each in enumerate(names)
        if name in (None, each)
    ]
    return "\n\n".join(parts) + "\n"


def first_obstacle(run: Evaluation, sample: Sample | None = None) -> str | None:
    """The first thing that a match needs and that never happened, for the first query without one.

    None if every query has matches.
    """
    queries = run.listed.queries
    for number, query in enumerate(queries):
        if not query.matched:
            inquiry = _Inquiry(run, number, sample)
            prefix = f"query {inquiry.name}: " if len(queries) > 1 else ""
            return prefix + inquiry.first_obstacle()
    return None


class _Inquiry:
    """One query of a run."""

    def __init__(self, run: Evaluation, number: int, sample: Sample | None = None):
        self.run = run
        self.number = number
        self.sample = sample
        asked = run.listed.queries[number]
        self.compiled = asked.compiled
        self.name = self.compiled.plan.name
        self.matched = asked.matched
        self.query: QueryRun = asked.state
        self.others = asked.others
        self.plan = asked.evaluated_plan
        self.tasks = asked.own_tasks
        self.counters = asked.own_counters(self.query.counters())
        self.notation = Notation(self.compiled)
        self.prefixes = prefixes_of(asked.source)
        self.erred = erred(run, number, self.counters)

    def report(self) -> Iterator[str]:
        lines = list(self._progress_report())
        yield from lines
        for each in self.erred:
            if not any(f"{each.text} erred" in line or "; it erred" in line for line in lines):
                yield f"  {each.gpm}: {each}"

    def _progress_report(self) -> Iterator[str]:
        matched = _counted(self.matched, "match", "matches")
        events = _counted(self.run.clock.events, "event")
        yield f"query {self.name}: {matched} in {events}"
        yield f"  {self.notation.sequence()}"
        states = self._states()
        titles = [self.notation.title(state.number) for state in states]
        width = max(map(len, titles))
        for title, state in zip(titles, states, strict=True):
            yield f"    {title:<{width}}  {self._progress(state)}"
        if self.others:
            yield f"  {self._counted_together()}"
            yield from (f"  {line}" for line in self._missing_anywhere())
            return
        lazily = self._joined_lazily()
        yield from (f"  {line}" for line in lazily)
        blocked = self._blocked()
        for state in blocked:
            yield f"  {self.notation.title(state.number)} never advanced:"
            yield from (f"    {reason}" for reason in self._reasons(state))
        never = [state for state in states if not (lazily or _reached(state))]
        if never:
            labels = ", ".join(self.notation.title(state.number) for state in never)
            yield f"  never reached: {labels}"
        yield from (f"  {line}" for line in self._unmatched_optionals())
        yield from (f"  {line}" for line in self._join_causes(blocked))
        yield from (f"  {line}" for line in self._at_the_end(bool(blocked or never)))

    def first_obstacle(self) -> str:
        """The first thing that a match needs and that never happened, in one line."""
        if not self.run.clock.events:
            return "no event arrived"
        if self.others:
            return next(self._missing_anywhere(), self._counted_together())
        blocked = self._blocked()
        if not blocked:
            held_up = bool([state for state in self._states() if not _reached(state)])
            return next(iter(self._at_the_end(held_up)), "see what each step waited for")
        state = blocked[0]
        occurrences = self._awaited(state)
        for occurrence in occurrences:
            if not self._has_rows(occurrence):
                lines = list(self._gpm(occurrence))
                if state.ended and len(lines) == 1:
                    break  # no event lacks the pattern: a negation ended the partial matches
                return [*lines, *self._untimely(occurrence)][-1]
        for line in self._join_causes([state]):
            return line
        for occurrence in occurrences:
            for each in self._always_erred(occurrence):
                return self._only_erred(each)
            for line in self._untrue(occurrence):
                return line
        *_, last = self._reasons(state)
        return f"{self.notation.title(state.number)} never advanced: {last}"

    def _states(self) -> list[PlaceCounters]:
        return [self.counters.places[place] for place in self.notation.order]

    def _blocked(self) -> list[PlaceCounters]:
        """The places that were reached but never advanced.

        Rows joined lazily reach no place before the last step has a row.
        """
        lazily = self._joined_lazily()
        return [
            state for state in self._states() if (lazily or _reached(state)) and not state.joined
        ]

    def _awaited(self, state: PlaceCounters) -> list[Occurrence]:
        """The occurrences of graph patterns whose rows the edges of a place consume."""
        atoms = (self.notation.automaton.atoms[edge.atom] for edge in state.place.edges)
        return [self.plan.occurrences[each] for atom in atoms for each in atom.occurrences]

    def _counted_together(self) -> str:
        others = _counted(self.others, "other query", "other queries")
        return (
            f"evaluated as one with {others}, so these are the counts of all of them: "
            "start(share=False), or --why with files, counts each on its own"
        )

    def _missing_anywhere(self) -> Iterator[str]:
        """What the graph patterns of the query are missing in the sample."""
        for gpm in self.compiled.plan.gpms:
            if gpm.positive:
                yield from self._missing(gpm)

    def _untrue(self, occurrence: Occurrence) -> Iterator[str]:
        """The filters across steps that are true for no events of the sample."""
        if self.sample is not None and not self._always_erred(occurrence):
            for line in filter_causes(self.run, self.number, occurrence, self.sample):
                yield f"{self.plan.gpms[occurrence.gpm].name}: {line}"

    def _conditions(self, occurrence: Occurrence) -> list[tuple[str, Condition]]:
        """The stateful BINDs and the residual filters of a place, each with its text."""
        return [
            (with_prefixes(text, self.prefixes), condition)
            for text, condition in conditions(occurrence)
        ]

    def _always_erred(self, occurrence: Occurrence) -> list[Erred]:
        """The filters over partial matches, at an occurrence, that only erred."""
        binds = len(occurrence.assignments)
        filters = {text for text, _ in self._conditions(occurrence)[binds:]}
        return [
            each
            for each in self.erred
            if each.occurrence == occurrence.index and each.always and each.text in filters
        ]

    def _only_erred(self, found: Erred) -> str:
        occurrence = self.plan.occurrences[found.occurrence]
        own = {*self.plan.gpms[occurrence.gpm].variables}
        own.update(assignment.variable for assignment in occurrence.assignments)
        reads = next(c.reads for text, c in self._conditions(occurrence) if text == found.text)
        return f"{found.gpm}: {_always_erred(found, 'solution' if reads <= own else 'pair')}"

    def _has_rows(self, occurrence: Occurrence) -> bool:
        """Whether a row of its graph pattern passed the local filters."""
        task = self.tasks[occurrence.gpm]
        matchers = self.run.rows.matchers
        return matchers.row_count(task) > sum(matchers.untrue(task))

    def _join_causes(self, blocked: Sequence[PlaceCounters]) -> list[str]:
        """The shared variables that no two events of the sample agree on."""
        joining = any(not state.place.start for state in blocked)
        if self.sample is None or not joining or self.query.matched:
            return []
        return join_causes(self.run, self.number, self.sample)

    def _joined_lazily(self) -> list[str]:
        native = self.query.native
        if not native.core.lazy_join.switches:
            return []
        last = self.notation.names[-1]
        rows = _counted(native.core.lazy_join.searched, "row")
        now = "lazily" if native.core.lazy_join.lazy else "eagerly"
        return [
            f"rows were joined lazily when {last} occurred: {rows} examined; now {now}",
        ]

    def _progress(self, state: PlaceCounters) -> str:
        if state.place.start:
            return f"started {_counted(state.joined, 'time')}"
        waiting = state.groups
        return (
            f"reached {_counted(state.reached, 'time')}, "
            f"advanced {_counted(state.joined, 'time')}, "
            f"{_counted(waiting, 'group')} of partial matches waiting"
        )

    def _reasons(self, state: PlaceCounters) -> Iterator[str]:
        for position, edge in enumerate(state.place.edges):
            yield self._needed(state, edge, self.notation.index(state.number, position))
        for occurrence in self._awaited(state):
            yield from self._gpm(occurrence)
            yield from self._untimely(occurrence)
        if state.unkeyed:
            yield f"{_counted(state.unkeyed, 'row')} left a partition variable unbound"
        if state.early:
            yield f"{_counted(state.early, 'event')} arrived while no partial match was waiting"
        if state.unjoined:
            rows = _counted(state.unjoined, "row")
            yield f"{rows} did not agree with any waiting partial match on {self._index(state)}"
        for occurrence in self._awaited(state):
            yield from self._rejections(occurrence)
        yield from self._refusals(state)
        for occurrence in self._awaited(state):
            yield from self._untrue(occurrence)

    def _index(self, state: PlaceCounters) -> str:
        edges = range(len(state.place.edges))
        names = [name for edge in edges for name in self.notation.index(state.number, edge)]
        plan, automaton = self.plan, self.notation.automaton
        for position, order in enumerate(state.place.orders):
            if order is None:
                continue
            # If the filter is not needed, the index itself may exclude equal values.
            decides = deciding_operator(plan, automaton, state.number, position)
            sign = _SIGNS[order[2]][: 1 if decides in ("<", ">") else None]
            register = self.notation.register(plan.registers[order[0]])
            names.append(f"?{order[1]} {sign} {register}")
        return ", ".join(dict.fromkeys(names))

    def _needed(self, state: PlaceCounters, edge: Edge, index: list[str]) -> str:
        parts = [f"needed: {self.notation.bounded(edge)}"]
        if not state.place.start:
            parts.append(f"after the last event ({STRATEGIES[state.place.operator]})")
        if index:
            parts.append(f"with the same {', '.join(index)}")
        if state.place.guards:
            parts.append(f"and {self.notation.guards(state.place.guards)} before it")
        return " ".join(parts)

    def _gpm(self, occurrence: Occurrence) -> Iterator[str]:
        """How many solutions its graph pattern had, and how many the local filters rejected."""
        gpm = self.plan.gpms[occurrence.gpm]
        task = self.tasks[occurrence.gpm]
        silent = [iri for iri in gpm.streams if self.run.clock.per_stream.get(iri) == 0]
        if len(silent) == len(gpm.streams):
            yield f"{gpm.name}: no event of {', '.join(f'<{iri}>' for iri in silent)} arrived"
            return
        matchers = self.run.rows.matchers
        tried, solutions = matchers.tried(task), matchers.row_count(task)
        if not tried:
            yield f"{gpm.name}: no event arrived while a partial match waited for it"
            return
        allowed = " that its constants allow" if self.run.is_narrowed(task) else ""
        if not solutions:
            events = _counted(tried, "event")
            yield (
                f"{gpm.name}: its graph pattern has no solution{allowed} in {events} it was "
                "tried on"
            )
            yield from self._missing(gpm)
            return
        for each in self.erred:
            if each.gpm == gpm.name and each.local < 0 and each.occurrence < 0:
                yield f"{gpm.name}: {each}"
        left = solutions
        is_explained = False
        untrue_counts = matchers.untrue(task)
        for position, (condition, untrue) in enumerate(zip(gpm.local, untrue_counts, strict=True)):
            text = f"FILTER({with_prefixes(condition.text, self.prefixes)})"
            found = self._error_of(gpm, position)
            if untrue and found is not None and found.always:
                yield f"{gpm.name}: {_always_erred(found, 'solution')}"
                is_explained = untrue == left
            elif untrue:
                never = "was never true" if untrue == left else "was not true"
                some = "" if found is None else f"; it erred on {found.count:,}: {found.example}"
                yield f"{gpm.name}: {text} {never}: {untrue} of {left} solutions{allowed}{some}"
            left -= untrue
        if left:
            yield f"{gpm.name}: {_counted(left, 'row')} in the events"
        elif not is_explained:
            yield from self._missing(gpm)

    def _error_of(self, gpm: GpmPlan, position: int) -> Erred | None:
        """The errors of a local filter."""
        for each in self.erred:
            if each.gpm == gpm.name and each.local == position:
                return each
        return None

    def _missing(self, gpm: GpmPlan) -> Iterator[str]:
        """What a pattern without rows was missing, as far as the sample shows it."""
        if self.sample is not None:
            for line in pattern_causes(self.run, self.number, gpm, self.sample):
                yield f"{gpm.name}: {line}"

    def _untimely(self, occurrence: Occurrence) -> Iterator[str]:
        """Whether a pattern without rows has solutions in events that arrived at another time."""
        gpm, task = self.plan.gpms[occurrence.gpm], self.tasks[occurrence.gpm]
        matchers = self.run.rows.matchers
        if (
            self.sample is not None
            and not matchers.row_count(task)
            and not self.run.is_narrowed(task)
        ):
            count = events_with_rows(self.run, self.number, gpm, self.sample)
            if count:
                events = _counted(count, "event")
                yield (
                    f"{gpm.name}: its graph pattern has a solution in {events}, but no partial "
                    "match was waiting then"
                )

    def _unmatched_optionals(self) -> Iterator[str]:
        """The triples of OPTIONAL and UNION that no event has; matches do not show them."""
        for gpm in self.plan.gpms if self.sample is not None else ():
            assert self.sample is not None
            for line in optional_causes(self.run, self.number, gpm, self.sample):
                yield f"{gpm.name}: in OPTIONAL or UNION, {line}"

    def _rejections(self, occurrence: Occurrence) -> Iterator[str]:
        """How often partial matches rejected its rows."""
        name = self.plan.gpms[occurrence.gpm].name
        disagreed = self.counters.disagreed[occurrence.index]
        if disagreed:
            times = _counted(disagreed, "time")
            yield f"{name}: disagreed with a partial match on a shared variable {times}"
        errors = {each.text: each for each in self.erred if each.occurrence == occurrence.index}
        binds = len(occurrence.assignments)
        residual = [text for text, _ in self._conditions(occurrence)[binds:]]
        for text, untrue in zip(residual, self.counters.untrue[occurrence.index], strict=True):
            found = errors.get(text)
            if found is not None and found.always:
                yield self._only_erred(found)
            elif untrue:
                some = "" if found is None else f"; it erred on {found.count:,}: {found.example}"
                yield f"{name}: {text} was not true {_counted(untrue, 'time')}{some}"

    def _refusals(self, state: PlaceCounters) -> Iterator[str]:
        """Why accepted rows were not joined."""
        if state.passed_over:
            strict = joins_strictly(self.plan, self.notation.automaton)
            strategy = "EMIT STRICT" if strict else STRATEGIES[state.place.operator]
            yield f"{strategy} rejected {_counted(state.passed_over, 'candidate')}"
        if state.forbidden:
            guards = self.notation.guards(state.place.guards)
            yield f"{guards} forbade {_counted(state.forbidden, 'candidate')}"
        if state.ended:
            guards = self.notation.guards(eager.guard for eager in state.place.eager_guards)
            yield f"{guards} removed {_counted(state.ended, 'group')} waiting here"
        if state.outside:
            limits = self.notation.automaton.limits
            bounded = any(edge.within is not None or limits(edge) for edge in state.place.edges)
            closed = "the window had closed" + " or the bound had passed" * bounded
            yield f"{_counted(state.outside, 'candidate')} arrived after {closed}"
        if state.shed:
            yield f"a limit shed {_counted(state.shed, 'group')} waiting here"
        if state.expired:
            yield f"{_counted(state.expired, 'group')} waiting here expired with the window"

    def _at_the_end(self, held_up: bool) -> Iterator[str]:
        plan = self.plan
        if not (held_up or self.query.matched or self.counters.waited or self.counters.waiting):
            clauses = [f"EMIT {plan.emit}"] * (plan.emit != "ALL")
            clauses += [f"AFTER MATCH {skip_text(plan)}"] * (skip_text(plan) != "KEEP ALL")
            cause = " and ".join(clauses) or "the bounds on iterations"
            grouping = plan.output.grouping
            if grouping is not None and grouping.having and not clauses:
                yield "every step was matched, but HAVING was true for no group of results"
            else:
                yield f"every step was matched, but {cause} rejected every match"
        if self.counters.forbidden:
            times = _counted(self.counters.forbidden, "match", "matches")
            yield f"{times} rejected by a negation at the end"
        if self.counters.waiting:
            times = _counted(self.counters.waiting, "match", "matches")
            yield f"{times} waiting for the window to close"


def _reached(state: PlaceCounters) -> bool:
    return state.place.start or bool(state.reached or state.groups)


def _always_erred(found: Erred, what: str) -> str:
    everything = f"all {found.count:,} {what}s" if found.count > 1 else f"the only {what}"
    return f"{found.text} erred on {everything}" + (f": {found.example}" if found.example else "")


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"

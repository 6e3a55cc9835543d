"""A sample of events → why a graph pattern has no solution in them.

The counters of a run (`why_not`) show how far each pattern got. They cannot show what a triple
pattern was missing, because readers drop the triples that no query uses. This module examines whole
events, one pattern at a time, in the order in which a person would:

1. each triple pattern alone: does its predicate occur, and with its constants?
2. the elements of the pattern, adding one at a time: which is the first that leaves no solution?
3. the filters, with the values on which they are false or err;
4. the variables that several steps share: is there a value that two events have in common?
5. the filters across steps, on pairs of events.

Every statement is about the sample, and says so if the sample is not the whole input.

Cost: a few evaluations in Python of each pattern over each event of the sample, within `BOUND`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any

import pyoxigraph as ox

from spaseq.engine.evaluation import Evaluation
from spaseq.engine.python_graphs import facts_of
from spaseq.engine.stream_clock import StreamClock, timestamp_of
from spaseq.errors import EventError
from spaseq.explain.alternatives import SHOWN, instead_of, nearest_iri
from spaseq.gpm.expression_errors import (
    error_text,
    kind_of,
    prefixes_of,
    shown_term,
    unlike_text,
    values_text,
    with_prefixes,
)
from spaseq.gpm.named_graphs import NamedGraphs
from spaseq.gpm.program import GpmProgram, compile_gpm, constant
from spaseq.gpm.python.entry import Scope, compile_filter
from spaseq.gpm.python.evaluator import Evaluator
from spaseq.parser import ast
from spaseq.parser.format import element_line, term_text
from spaseq.plan.logical import Condition, GpmPlan, Occurrence, QueryPlan
from spaseq.rdf.event import Event, Term
from spaseq.rdf.limits import LimitReached, Limits
from spaseq.records import dataclass

BOUND = Limits(steps=20_000, memory=1 << 24)
"""The bound on the evaluation of one event; a costlier event is not examined."""
MOST_ROWS = 1000
"""The maximum number of solutions on which filters are examined."""
MOST_PAIRS = 2000
"""The maximum number of pairs of solutions on which filters across steps are examined."""

Row = Mapping[str, Term | None]


@dataclass(frozen=True, slots=True)
class Sample:
    """Some events of the streams, with all their triples, in any order."""

    events: Sequence[Event]
    is_whole: bool = False
    """Whether these are all the events of the streams."""

    @property
    def none_of(self) -> str:
        """The subject of a statement that holds for no event."""
        return "no event" if self.is_whole else f"none of the {len(self.events):,} events examined"


def sampled(
    given: Iterable[Any] | Sample, iri_of: Callable[[Any], str], clock: StreamClock
) -> Sample | None:
    """The events that a caller gives to `Run.why_not`; None for none.

    Args:
        given: Each an `Event` or (stream, timestamp, graph).
        iri_of: The IRI of a stream that is given by a name.
        clock: The clock of the run.

    Raises:
        EventError: for an item that is not an event of a stream of the run.
    """
    if isinstance(given, Sample):
        return given
    events = []
    for number, item in enumerate(given):
        if isinstance(item, Event):
            events.append(item)
            continue
        try:
            named, timestamp, graph, *_ = item
        except (TypeError, ValueError):
            raise EventError(
                f"{item!r} is not an event; use an Event or (stream, timestamp, graph)"
            ) from None
        stream = iri_of(named)
        if stream not in clock.streams:
            raise EventError(f"no query reads the stream <{stream}>")
        time = timestamp_of(timestamp, clock.time_precision)
        events.append(Event(stream, time, number, facts_of(graph, f"w{number}")))
    return Sample(events, len(events) == clock.events) if events else None


def _prefixes(run: Evaluation, number: int) -> dict[str, str]:
    return prefixes_of(run.listed.queries[number].source)


def pattern_causes(run: Evaluation, number: int, gpm: GpmPlan, sample: Sample) -> list[str]:
    """Why a graph pattern of query `number` has no row in a sample that passes its local filters.

    Empty if it has one, if no event of the sample is of its streams, or if the cause is unknown:
    entailed triples and remote graphs are not examined.
    """
    if run.entail is not None:
        return []
    plan = run.listed.queries[number].plan
    prefixes = _prefixes(run, number)
    graphs = run.entailed.get(plan.kb_graphs, run.kb)
    return list(diagnosis_of(gpm, plan, graphs, sample, prefixes).causes())


def events_with_rows(run: Evaluation, number: int, gpm: GpmPlan, sample: Sample) -> int:
    """How many events of a sample have solutions of a pattern that pass its local filters."""
    if run.entail is not None:
        return 0
    plan = run.listed.queries[number].plan
    graphs = run.entailed.get(plan.kb_graphs, run.kb)
    diagnosis = diagnosis_of(gpm, plan, graphs, sample, _prefixes(run, number))
    return len({id(event) for event, _ in diagnosis.passed()})


def optional_causes(run: Evaluation, number: int, gpm: GpmPlan, sample: Sample) -> list[str]:
    """The triples in OPTIONAL and UNION that no event of a sample has, since they never matched."""
    if run.entail is not None or not sample.events:
        return []
    plan = run.listed.queries[number].plan
    prefixes = _prefixes(run, number)
    diagnosis = diagnosis_of(gpm, plan, run.kb, sample, prefixes)
    return list(dict.fromkeys(diagnosis.optional_causes()))


def join_causes(run: Evaluation, number: int, sample: Sample) -> list[str]:
    """The variables of query `number` whose values no two events of a sample have in common."""
    if run.entail is not None:
        return []
    plan = run.listed.queries[number].plan
    prefixes = _prefixes(run, number)
    graphs = run.entailed.get(plan.kb_graphs, run.kb)
    return list(_unshared(plan, graphs, sample, prefixes))


def filter_causes(
    run: Evaluation, number: int, occurrence: Occurrence, sample: Sample
) -> list[str]:
    """The filters across steps, at a place of query `number`, that are true for no pair of events.

    Filters that read aggregates, earlier iterations or more than one earlier step are not examined.
    """
    if run.entail is not None:
        return []
    plan = run.listed.queries[number].plan
    prefixes = _prefixes(run, number)
    graphs = run.entailed.get(plan.kb_graphs, run.kb)
    return list(_untrue_of_pairs(plan, occurrence, graphs, sample, prefixes))


# ------------------------------------------------------------------ one pattern


class PatternDiagnosis:
    def __init__(
        self,
        gpm: GpmPlan,
        plan: QueryPlan,
        graphs: NamedGraphs,
        sample: Sample,
        prefixes: Mapping[str, str],
    ):
        self._gpm = gpm
        self._kb_graphs = plan.kb_graphs
        self._graphs = graphs
        self._sample = sample
        self._prefixes = prefixes

    def causes(self) -> Iterator[str]:
        """What the pattern was missing; nothing if no event of the sample is in its streams."""
        if not self._sample.events:
            return
        missing = [line for triple in required(self._gpm.pattern) for line in self._alone(triple)]
        if missing:
            yield from dict.fromkeys(missing)
            return
        together = self._together()
        if together is not None:
            yield from together
            return
        yield from self._filters()

    def optional_causes(self) -> Iterator[str]:
        """What is missing for triples that a solution need not match."""
        for triple in optional(self._gpm.pattern):
            yield from self._alone(triple)

    # -------------------------------------------------------------- triple patterns

    @cached_property
    def _triples(self) -> dict[ox.NamedNode, list[tuple[Term, Term]]]:
        """Predicate → the subjects and objects that it has in the sample."""
        found: dict[ox.NamedNode, list[tuple[Term, Term]]] = {}
        for event in self._sample.events:
            for subject, predicate, object in event.facts:
                assert isinstance(predicate, ox.NamedNode)
                found.setdefault(predicate, []).append((subject, object))
        return found

    def _alone(self, triple: ast.Triple) -> Iterator[str]:
        """What a triple pattern is missing, whatever the rest of the pattern."""
        if not isinstance(triple.predicate, ast.Iri) or triple.of is not None:
            return
        predicate = ox.NamedNode(triple.predicate.value)
        name = term_text(triple.predicate, self._prefixes)
        pairs = self._triples.get(predicate)
        none = self._sample.none_of
        if pairs is None:
            seen = self._triples
            near = nearest_iri(predicate.value, [each.value for each in seen])
            question = "" if near is None else f"; did you mean {self._iri(near)}?"
            yield f"{none} has the predicate {name}{question}"
            return
        for node, terms in (
            (triple.subject, Counter(subject for subject, _ in pairs)),
            (triple.object, Counter(object for _, object in pairs)),
        ):
            if isinstance(node, ast.Constant) and constant(node) not in terms:
                line = _line(triple, self._prefixes)
                yield f"{none} has {line}; {instead_of(constant(node), terms, self._prefixes)}"

    def _iri(self, iri: str) -> str:
        return term_text(ast.Iri(iri), self._prefixes)

    # -------------------------------------------------------------- elements together

    def _evaluator(self, elements: Sequence[ast.Element]) -> Evaluator:
        pattern = ast.GroupGraphPattern(tuple(elements))
        return Evaluator(self._program(pattern), self._graphs, limits=BOUND)

    def _program(self, pattern: ast.GroupGraphPattern) -> GpmProgram:
        return compile_gpm(pattern, self._gpm.at, self._kb_graphs)

    def _together(self) -> list[str] | None:
        """The element that leaves no solution; an empty list if it is unknown."""
        units = _units(self._gpm.pattern.elements)
        for count in range(1, len(units) + 1):
            *terms, element = units[count - 1]
            if self._is_remote(element):
                return []
            try:
                if self._has_row([each for unit in units[:count] for each in unit]):
                    continue
            except LimitReached:
                continue
            line = _line(element, self._prefixes, terms)
            kb = self._kb_cause(element)
            if kb is not None:
                return [kb]
            if count == 1:
                return [f"{self._sample.none_of} has a solution of {line}"]
            before = (
                "the pattern before it" if count == 2 else f"the {count - 1} patterns before it"
            )
            return [f"{self._sample.none_of} has a solution of {line} that fits {before}"]
        return None

    def _has_row(self, elements: Sequence[ast.Element]) -> bool:
        evaluator = self._evaluator(elements)
        return any(evaluator.rows(event) for event in self._sample.events)

    def _is_remote(self, element: ast.Element) -> bool:
        for node in ast.walk(element):
            if isinstance(node, ast.Service):
                return True
            if isinstance(node, ast.Graph):
                names = self._graphs.names
                if not isinstance(node.name, ast.Iri):
                    return any(self._graphs.is_remote(name) for name in names)
                name = ox.NamedNode(node.name.value)
                if name in names and self._graphs.is_remote(name):
                    return True
        return False

    def _kb_cause(self, element: ast.Element) -> str | None:
        """Whether the graph of the knowledge base that the element reads is missing or empty."""
        for node in ast.walk(element):
            if not (isinstance(node, ast.Graph) and isinstance(node.name, ast.Iri)):
                continue
            name = ox.NamedNode(node.name.value)
            shown = term_text(node.name, self._prefixes)
            if name not in self._graphs.names:
                near = nearest_iri(name.value, [each.value for each in self._graphs.names])
                question = "" if near is None else f"; did you mean {self._iri(near)}?"
                return f"the knowledge base has no graph {shown}{question}"
            if not self._graphs.graph(name).facts:
                return f"the graph {shown} of the knowledge base is empty"
        return None

    # -------------------------------------------------------------- filters

    def rows(self) -> Iterator[tuple[Event, Row]]:
        """The solutions of the pattern in the sample, before its local filters."""
        evaluator = self._evaluator(self._gpm.pattern.elements)
        names = evaluator.program.variables
        for event in self._sample.events:
            try:
                found = evaluator.rows(event)
            except LimitReached:
                continue
            for row in found:
                yield event, dict(zip(names, row, strict=True))

    def passed(self) -> list[tuple[Event, Row]]:
        """The first solutions that pass the local filters."""
        found = []
        for event, row in self.rows():
            if all(self.truth(condition, event, row) is True for condition in self._gpm.local):
                found.append((event, row))
                if len(found) == MOST_ROWS:
                    break
        return found

    def _scope(self, event: Event) -> Scope:
        return Scope(event, self._graphs, self._kb_graphs)

    def truth(self, condition: Condition, event: Event, row: Row) -> bool:
        """Whether a condition is true for a row of an event."""
        slots = {name: slot for slot, name in enumerate(row)}
        return compile_filter(condition.expression, slots)(tuple(row.values()), self._scope(event))

    def _filters(self) -> Iterator[str]:
        """The local filter that no solution passed, with an example."""
        left: list[tuple[Event, Row]] = []
        for found in self.rows():
            left.append(found)
            if len(left) == MOST_ROWS:
                break
        for condition in self._gpm.local:
            passed = [found for found in left if self.truth(condition, *found)]
            if left and not passed:
                yield self.never_true(condition, left)
                return
            left = passed

    def never_true(
        self, condition: Condition, rows: Sequence[tuple[Event, Row]], what: str = "solution"
    ) -> str:
        """Why a condition is true for none of some rows."""
        errors = 0
        example = ""
        for event, row in rows:
            text = error_text(condition.expression, row, self._scope(event), self._prefixes)
            if text is not None:
                errors += 1
                example = example or self._traced(text, event, row)
        shown = f"FILTER({with_prefixes(condition.text, self._prefixes)})"
        everything = f"all {len(rows):,} {what}s" if len(rows) > 1 else f"the only {what}"
        if errors == len(rows):
            return f"{shown} erred on {everything}: {example}"
        anything = f"any of {len(rows):,} {what}s" if len(rows) > 1 else f"the only {what}"
        event, row = rows[-1]
        values = values_text(condition.expression, row, self._prefixes)
        unlike = unlike_text(condition.expression, row, self._scope(event))
        erred = f", erred on {errors:,} of them ({example})" if errors else ""
        sample = f", for example with {values}" if values else ""
        return f"{shown} was not true for {anything}{erred}{sample}{unlike}"

    def _traced(self, text: str, event: Event, row: Row) -> str:
        """The error, with the reason why a BIND left its variable unbound."""
        for element in self._gpm.pattern.elements:
            if isinstance(element, ast.Bind) and text == f"?{element.variable.name} is unbound":
                scope = self._scope(event)
                cause = error_text(element.expression, row, scope, self._prefixes)
                if cause is not None and cause != text:
                    return f"{text}, because its BIND erred: {cause}"
        return text


def _line(
    element: ast.Element, prefixes: Mapping[str, str], terms: Sequence[ast.Element] = ()
) -> str:
    """An element as the query writes it; `[]` stands for its blank nodes."""
    return re.sub(r"_:b[0-9]+\b", "[]", element_line(element, prefixes, terms))


def _units(elements: Sequence[ast.Element]) -> list[list[ast.Element]]:
    """The elements, each after the triples that describe its triple terms."""
    units: list[list[ast.Element]] = [[]]
    for element in elements:
        units[-1].append(element)
        if not isinstance(element, ast.Triple) or element.of is None:
            units.append([])
    return units[:-1]


def required(group: ast.GroupGraphPattern) -> Iterator[ast.Triple]:
    """The triple patterns that every solution of a group matches in the event's graph."""
    for element in group.elements:
        match element:
            case ast.Triple():
                yield element
            case ast.SubGroup(inner):
                yield from required(inner)


def optional(group: ast.GroupGraphPattern) -> Iterator[ast.Triple]:
    """The triple patterns of OPTIONAL and UNION in the event's graph."""
    for element in group.elements:
        match element:
            case ast.Optional(inner):
                yield from required(inner)
                yield from optional(inner)
            case ast.Union(alternatives):
                for alternative in alternatives:
                    yield from required(alternative)
                    yield from optional(alternative)
            case ast.SubGroup(inner):
                yield from optional(inner)


# ------------------------------------------------------------------ several steps


def _unshared(
    plan: QueryPlan, graphs: NamedGraphs, sample: Sample, prefixes: Mapping[str, str]
) -> Iterator[str]:
    """The join variables that have no common value in any two events of the sample."""
    joined = {
        register.variable
        for register in plan.registers
        if register.kind == "value" and register.unit is None
    }
    places: dict[str, dict[str, None]] = {}
    again: set[str] = set()
    for occurrence in plan.occurrences:
        gpm = plan.gpms[occurrence.gpm]
        for name in gpm.variables:
            if name in joined and name in gpm.certain and not occurrence.negated:
                places.setdefault(name, {})[gpm.name] = None
                if occurrence.units:
                    again.add(name)
    wanted = {name for name, gpms in places.items() if len(gpms) > 1}
    if not wanted:
        return
    events_of: dict[str, dict[Term, set[int]]] = {name: {} for name in wanted}
    values_of: dict[tuple[str, str], dict[Term, None]] = {}
    for gpm in plan.gpms:
        if not (gpm.positive and wanted & set(gpm.variables)):
            continue
        for event, row in diagnosis_of(gpm, plan, graphs, sample, prefixes).passed():
            for name in wanted & row.keys():
                term = row[name]
                if term is not None:
                    events_of[name].setdefault(term, set()).add(id(event))
                    values_of.setdefault((name, gpm.name), {})[term] = None
    for name in sorted(wanted):
        gpms = list(places[name])
        known = [values_of.get((name, gpm), {}) for gpm in gpms]
        if not all(known):
            continue
        if all(len(events) == 1 for events in events_of[name].values()):
            yield _own_value(name, gpms, list(known[0]), prefixes, name in again)
        elif not set(known[0]) & set(known[-1]):
            yield _disjoint(name, gpms[0], gpms[-1], list(known[0]), list(known[-1]), prefixes)


def _own_value(
    name: str,
    gpms: Sequence[str],
    values: Sequence[Term],
    prefixes: Mapping[str, str],
    iterated: bool,
) -> str:
    shown = ", ".join(shown_term(term, prefixes) for term in values[:SHOWN])
    iterations = ", and all iterations," if iterated else ""
    return (
        f"each event has its own ?{name} ({shown}{', …' if len(values) > SHOWN else ''}), but "
        f"{' and '.join((gpms[0], gpms[-1]))}{iterations} must agree on it: use another variable "
        f"in one of them"
    )


def _disjoint(
    name: str,
    first: str,
    last: str,
    ours: Sequence[Term],
    theirs: Sequence[Term],
    prefixes: Mapping[str, str],
) -> str:
    texts = {term.value: term for term in theirs if isinstance(term, ox.NamedNode | ox.Literal)}
    for term in ours:
        if isinstance(term, ox.NamedNode | ox.Literal) and term.value in texts:
            other = texts[term.value]
            return (
                f"?{name} has the same text in {first} and {last}, but is a different term: "
                f"{shown_term(term, prefixes)} ({kind_of(term)}) and "
                f"{shown_term(other, prefixes)} ({kind_of(other)})"
            )
    left = ", ".join(shown_term(term, prefixes) for term in ours[:SHOWN])
    right = ", ".join(shown_term(term, prefixes) for term in theirs[:SHOWN])
    return f"?{name} has no value in both {first} ({left}) and {last} ({right})"


def _untrue_of_pairs(
    plan: QueryPlan,
    occurrence: Occurrence,
    graphs: NamedGraphs,
    sample: Sample,
    prefixes: Mapping[str, str],
) -> Iterator[str]:
    """The conditions at a place that are true for no pair of a row and an earlier event's row."""
    gpm = plan.gpms[occurrence.gpm]
    own = diagnosis_of(gpm, plan, graphs, sample, prefixes)
    mine = own.passed()
    values = {register.name for register in plan.registers if register.kind == "value"}
    earlier = [plan.gpms[o.gpm] for o in plan.occurrences[: occurrence.index] if not o.negated]
    for condition in occurrence.residual:
        if any(isinstance(node, ast.Exists) for node in ast.walk(condition.expression)):
            continue
        other = condition.reads - set(gpm.variables)
        binding = [each for each in earlier if other <= set(each.variables)]
        if not other <= values or (other and not binding):
            continue
        before = diagnosis_of(binding[-1], plan, graphs, sample, prefixes).passed() if other else []
        rows = list(_pairs(mine, before, other)) if other else mine
        if rows and not any(own.truth(condition, event, row) for event, row in rows):
            yield own.never_true(condition, rows, "pair" if other else "solution")


def _pairs(
    mine: Sequence[tuple[Event, Row]], before: Sequence[tuple[Event, Row]], names: Set[str]
) -> Iterator[tuple[Event, Row]]:
    """Each row, extended by the values that earlier rows have for some names."""
    count = 0
    for event, row in mine:
        for other, values in before:
            if other.instant >= event.instant:
                continue
            yield event, {**row, **{name: values[name] for name in names}}
            count += 1
            if count == MOST_PAIRS:
                return


def diagnosis_of(
    gpm: GpmPlan,
    plan: QueryPlan,
    graphs: NamedGraphs,
    sample: Sample,
    prefixes: Mapping[str, str],
) -> PatternDiagnosis:
    events = [event for event in sample.events if event.stream in gpm.streams]
    return PatternDiagnosis(gpm, plan, graphs, Sample(events, sample.is_whole), prefixes)

"""Why one event advances a query or not: its graph patterns, its filters, the places that wait.

The event is not part of a run; it is matched as the run would match it now. For a pattern without a
solution, the report names what is missing; for a filter that is not true, its values; for a place
that waits for the pattern, how many of its groups the event fits, or why it fits none.

Filters with aggregates or earlier iterations are named and not evaluated. Cost: matching the event
in Python, and comparing its first rows with `MAX_GROUPS` groups of each place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from spaseq.engine.evaluation import Evaluation
from spaseq.engine.place_names import Notation
from spaseq.explain.diagnosis import PatternDiagnosis, Row, Sample, diagnosis_of
from spaseq.explain.waiting import WaitingGroup, waiting_groups
from spaseq.gpm.expression_errors import prefixes_of
from spaseq.plan.logical import Condition, GpmPlan, Occurrence
from spaseq.rdf.event import Event, Term, n_triples

MAX_GROUPS = 1000
"""The number of groups of a query that the event is compared with."""
MAX_ROWS = 20


@dataclass(slots=True)
class PlaceVerdict:
    """A place that waits for a pattern.

    Args:
        place: Its number and label.
        waiting: The number of groups that were compared.
        fitting: The number of these groups that the event fits.
        because: The reasons why the event does not fit others, for some of them.
    """

    place: str
    waiting: int = 0
    fitting: int = 0
    because: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "place": self.place,
            "waiting": self.waiting,
            "fitting": self.fitting,
            "because": self.because,
        }


def why_one(run: Evaluation, number: int, event: Event) -> list[dict[str, Any]]:
    """For each graph pattern of query `number`: whether the event matches it, and what follows.

    The run's counters must be in step (`Evaluation.sync`).
    """
    query = run.listed.queries[number]
    plan, notation, prefixes = query.plan, Notation(query.compiled), prefixes_of(query.source)
    graphs = run.entailed.get(plan.kb_graphs, run.kb)
    sample = Sample([event], True)
    groups = _first(waiting_groups(run, number), MAX_GROUPS)
    found = []
    for index, gpm in enumerate(plan.gpms):
        shown: dict[str, Any] = {"gpm": gpm.name, "streams": list(gpm.streams)}
        if event.stream not in gpm.streams:
            found.append(shown | {"matches": False, "because": ["it reads other streams"]})
            continue
        diagnosis = diagnosis_of(gpm, plan, graphs, sample, prefixes)
        rows = [row for _, row in diagnosis.passed()][:MAX_ROWS]
        shown["matches"] = bool(rows)
        shown["solutions"] = [
            {name: n_triples(term) for name, term in row.items() if term is not None}
            for row in rows
        ]
        shown["because"] = [] if rows else list(diagnosis.causes())
        shown["places"] = [
            verdict.to_dict()
            for verdict in _verdicts(run, notation, index, gpm, diagnosis, rows, groups, event)
        ]
        found.append(shown)
    return found


def _first(groups: Iterator[WaitingGroup], most: int) -> list[WaitingGroup]:
    return [group for group, _ in zip(groups, range(most), strict=False)]


def _verdicts(
    run: Evaluation,
    notation: Notation,
    index: int,
    gpm: GpmPlan,
    diagnosis: PatternDiagnosis,
    rows: Sequence[Row],
    groups: Sequence[WaitingGroup],
    event: Event,
) -> Iterator[PlaceVerdict]:
    """What the places that wait for a pattern do with the event."""
    plan = notation.plan
    known = {register.name for register in plan.registers if register.kind == "value"}
    for number in notation.order:
        place = notation.automaton.places[number]
        wanted = [
            plan.occurrences[occurrence]
            for edge in place.edges
            for occurrence in notation.automaton.atoms[edge.atom].occurrences
            if plan.occurrences[occurrence].gpm == index
        ]
        if not wanted:
            continue
        verdict = PlaceVerdict(notation.title(number))
        if place.start:
            verdict.waiting, verdict.fitting = 1, int(bool(rows))
            yield verdict
            continue
        for group in groups:
            if group.number != number:
                continue
            verdict.waiting += 1
            reasons = [_misfit(o, diagnosis, group, rows, event, known) for o in wanted]
            if None in reasons:
                verdict.fitting += 1
            else:
                verdict.because += [r for r in reasons if r and r not in verdict.because]
        del verdict.because[MAX_ROWS:]
        yield verdict


def _misfit(
    occurrence: Occurrence,
    diagnosis: PatternDiagnosis,
    group: WaitingGroup,
    rows: Sequence[Row],
    event: Event,
    known: set[str],
) -> str | None:
    """Why no row of the event fits a group; None if one does."""
    if not rows:
        return "the pattern has no solution"
    if event.time.micros < group.latest.micros:
        return "the event is before the first event of the group"
    if group.until is not None and event.time.micros > group.until.micros:
        return "the window of the group has closed"
    reason = ""
    for row in rows:
        other = next(
            (
                name
                for name, term in row.items()
                if term is not None and name in group.registers and group.registers[name] != term
            ),
            None,
        )
        if other is not None:
            theirs = n_triples(group.registers[other])
            ours = n_triples(cast(Term, row[other]))
            reason = f"?{other} is {ours} here, and {theirs} in a group"
            continue
        both = {**group.registers, **row}
        failing = _untrue(occurrence.residual, diagnosis, both, event, known | row.keys())
        if failing is None:
            return None
        reason = failing
    return reason


def _untrue(
    conditions: Sequence[Condition],
    diagnosis: PatternDiagnosis,
    both: Row,
    event: Event,
    known: set[str],
) -> str | None:
    """The first condition that is not true for a row and a group, with its values."""
    for condition in conditions:
        if not condition.reads <= known:
            continue
        row = {**dict.fromkeys(condition.reads), **both}
        if not diagnosis.truth(condition, event, row):
            return diagnosis.never_true(condition, [(event, row)], "pair")
    return None

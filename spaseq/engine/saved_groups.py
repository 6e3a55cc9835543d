"""The groups of results in saved state: the results they hold, oldest first.

A restored group adds its results again, so that its aggregates are what they were. Tumbling groups
also store the witnesses of their newest result, which their solution shows.
"""

from __future__ import annotations

from typing import Any

from spaseq.engine.result_groups import NEVER, Grouped, ResultGroups
from spaseq.engine.stream_clock import StreamClock
from spaseq.nfa.match_path import Witnessed
from spaseq.plan.logical import QueryPlan
from spaseq.rdf.checked import GREATEST, LEAST, listed, refuse, whole
from spaseq.rdf.codec import Reader, Writer
from spaseq.rdf.event import Timestamp

Groups = ResultGroups[Any] | None
_WHERE = "groups"


def save_groups(groups: Groups, writer: Writer) -> Any:
    """The state of the groups, as plain data; None without groups."""
    if groups is None:
        return None
    return [
        None if groups.due == NEVER else groups.due,
        [
            [
                [writer.value(term) for term in result.key],
                [writer.value(term) for term in result.arguments],
                writer.time(result.start),
                result.end,
            ]
            for result in groups.held
        ],
        [
            [
                [w.occurrence, writer.event(w.event, False), [writer.value(v) for v in w.row]]
                for w in witnesses
            ]
            for witnesses in (groups.newest if groups.tumbling else ())
        ],
    ]


def restore_groups(
    plan: QueryPlan, groups: Groups, data: Any, clock: StreamClock, reader: Reader
) -> None:
    """Restore the state of the groups.

    Raises:
        StateError: if no run of the query can have saved the data.
    """
    if groups is None:
        if data is not None:
            refuse(_WHERE, "the query has no groups of results")
        return
    grouping = plan.output.grouping
    assert grouping is not None
    due, held, newest = listed(data, _WHERE, 3)
    results = [_result(row, clock, reader) for row in listed(held, _WHERE)]
    ends = [result.end for result in results]
    if ends != sorted(ends) or any(len(r.key) != len(grouping.keys) for r in results):
        refuse(_WHERE, "the results are out of order, or have other keys than the query")
    if any(len(result.arguments) != len(grouping.arguments) for result in results):
        refuse(_WHERE, "a result has other values than the aggregates need")
    if ends and (clock.closed is None or (ends[-1] > clock.closed and not clock.finished)):
        refuse(_WHERE, "a result is ahead of the run")
    if clock.finished and groups.tumbling and results:
        refuse(_WHERE, "something waits after the end of the run")
    if not groups.tumbling:
        if due is not None or listed(newest, _WHERE):
            refuse(_WHERE, "a sliding group does not wait")
        if ends and ends[0] <= ends[-1] - grouping.size:
            refuse(_WHERE, "a result has expired")
        groups.restore(results, [()], NEVER)
        return
    if (due is None) != (not results):
        refuse(_WHERE, "a window without results has an end, or the other way round")
    end = NEVER if due is None else whole(due, _WHERE, LEAST, GREATEST)
    if results and clock.closed is not None and end <= clock.closed:
        refuse(_WHERE, "the window has ended")
    if results and not end - grouping.size <= ends[0] <= ends[-1] <= end:
        refuse(_WHERE, "a result is of another window")
    if len(listed(newest, _WHERE)) != len({result.key for result in results}):
        refuse(_WHERE, "a group has no newest result")
    groups.restore(results, [_witnesses(plan, each, reader) for each in newest], end)


def _result(row: Any, clock: StreamClock, reader: Reader) -> Grouped:
    key, arguments, start, end = listed(row, _WHERE, 4)
    time: Timestamp = reader.time(start, _WHERE)
    micros = whole(end, _WHERE, LEAST, GREATEST)
    if time.micros > micros or time.domain != clock.domain:
        refuse(_WHERE, "a result ends before it starts, or has another kind of time")
    return Grouped(_terms(key, reader), _terms(arguments, reader), time, micros)


def _terms(data: Any, reader: Reader) -> tuple[Any, ...]:
    terms = tuple(reader.value(value) for value in listed(data, _WHERE))
    if any(isinstance(term, bool | int | float | str | tuple) for term in terms):
        refuse(_WHERE, "a value is not a term")
    return terms


def _witnesses(plan: QueryPlan, data: Any, reader: Reader) -> list[Witnessed]:
    found = []
    for row in listed(data, _WHERE):
        number, event, values = listed(row, _WHERE, 3)
        occurrence = whole(number, _WHERE, 0, len(plan.occurrences) - 1)
        terms = _terms(values, reader)
        found.append(Witnessed(occurrence, reader.event(event, _WHERE), terms, 0))
    if not found:
        refuse(_WHERE, "a group has a result without events")
    return found

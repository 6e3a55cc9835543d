"""The queries that read what others register, while the compiled loop runs those others.

Such a query follows the loop: it processes events only where a match is registered, and where one
of its windows closes. The loop ends before the next event there, and the run processes that event
in Python, for all queries. So sparse matches cost the loop little; a match at every event leaves
all events to Python.

A query cannot follow if it reads an input stream too, or precedes a query of the loop in the order
of matches. A match must be registered by its last event, not by the end of its window or timestamp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spaseq.engine.instants import QueryRun
from spaseq.engine.result_groups import NEVER
from spaseq.kb.knowledge import Knowledge
from spaseq.rdf._sequence import EventSequence


class Followers:
    """The queries of a run that are not direct.

    Args:
        queries: The state of all queries.
        direct: Per query, whether it reads no registered stream.
        delays: Whether events of theirs wait for the end of a timestamp.
    """

    def __init__(
        self,
        queries: Sequence[QueryRun],
        direct: Sequence[bool],
        delays: Callable[[], bool],
    ):
        self._delays = delays
        self._queries = queries
        self._direct = direct
        self._followers = [q for q, is_direct in zip(queries, direct, strict=True) if not is_direct]
        self._due: int | None = None

    def __len__(self) -> int:
        return len(self._followers)

    def can_follow(self) -> bool:
        """Whether the compiled loop can process the other queries."""
        if not self._followers:
            return True
        written = {query.plan.registers_stream for query in self._queries}
        return (
            list(self._direct) == sorted(self._direct, reverse=True)
            and all(written.issuperset(query.plan.streams) for query in self._followers)
            and all(map(_registers_at_once, self._queries[: -len(self._followers)]))
        )

    def have_events(self) -> bool:
        """Whether registered events wait for the end of their timestamp."""
        return bool(self._followers) and self._delays()

    def moved(self) -> None:
        """Code outside the loop processes events."""
        self._due = None

    def _next_due(self) -> int:
        """The time from which the loop cannot process an event: a follower closes a window."""
        if self._due is None:
            closings = (query.next_closing() for query in self._followers)
            self._due = min((one for one in closings if one is not None), default=NEVER)
        return self._due

    def last_before(self, events: EventSequence, first: int, end: int) -> int:
        """The index after the last of the events `first:end` that the loop can process."""
        due = self._next_due()
        if due == NEVER:
            return end
        while first < end:
            middle = (first + end) // 2
            batch, index = events.position(middle)
            if batch.micros(index) < due:
                first = middle + 1
            else:
                end = middle
        return end


def _registers_at_once(query: QueryRun) -> bool:
    """Whether matches are registered by their last events, or not at all."""
    if query.plan.registers_stream is None:
        return True
    automaton = query.compiled.automaton
    is_late = automaton.waits or automaton.timed or query.output.groups is not None
    return not is_late and len(query.plan.streams) == 1


class Interruption:
    """A knowledge base that changes, for the loop, also where an event is registered."""

    def __init__(self, kb: Knowledge, followers: Followers):
        self._kb = kb
        self._followers = followers

    @property
    def version(self) -> int:
        """The version of the knowledge base."""
        return self._kb.version

    @property
    def changes(self) -> bool:
        """Whether the loop ends before the next event."""
        return self._kb.changes or self._followers.have_events()

"""Events that a program gives a run one by one.

After the first one they go straight to the compiled core where they can
(`spaseq/engine/native/_push.pyx`), until something else is done with the run.
"""

from __future__ import annotations

from typing import Any, NoReturn

from spaseq.engine._alone import alone
from spaseq.engine.evaluation import Evaluation
from spaseq.engine.native._push import Pushing
from spaseq.engine.python_graphs import facts_of, name_of
from spaseq.engine.stream_clock import timestamp_of
from spaseq.rdf.event import Event
from spaseq.results import Match


class Pushes(Evaluation):
    """An evaluation that takes single events."""

    def push(self, stream: str, timestamp: Any, graph: Any, name: Any = None) -> list[Match]:
        """One event of one stream; the matches it completes.

        `timestamp` is a datetime, a number of seconds or a `Timestamp`; `graph` an rdflib
        graph, an iterable of pyoxigraph or rdflib triples or quads, or N-Triples bytes.

        Raises:
            EventError: for an unknown stream, or an event whose timestamp is closed.
            RuntimeError: where another thread is at work with the run.
        """
        if self._ahead is not None and isinstance(self._ahead[0], Pushing):
            pushing = self._ahead[0]
            try:
                taken = pushing.push(stream, timestamp, graph, name)
            except BaseException as error:
                if pushing.failed:
                    self._stopped(error)
                raise
            if taken is not None:
                return taken
        return self._pushed(stream, timestamp, graph, name)

    @alone
    def _pushed(self, stream: str, timestamp: Any, graph: Any, name: Any) -> list[Match]:
        """As `push`, for an event that does not go straight to the core."""
        if self._ahead is not None and isinstance(self._ahead[0], Pushing):
            self._overtake()
        self.settle()
        self._check_stream(stream)
        time = self._check_time(timestamp_of(timestamp, self.time_precision), stream)
        facts = facts_of(graph, f"e{self.events}")
        ordinal = self._next_ordinal(stream, time)
        found: list[Match] = []
        self._take(Event(stream, time, ordinal, facts, name_of(name)), found)
        self._push_on(stream)
        return found

    def _stopped(self, error: BaseException) -> NoReturn:
        """An error in the midst of an event that had gone straight to the core.

        The thread is alone since the event has begun.
        """
        try:
            told = self.queries[0].told(error)
            self._overtake()
            self._fail(told)
            raise told from None
        finally:
            self.alone.leave()

    def _push_on(self, stream: str) -> None:
        """Have the events that follow go straight to the core, where they can."""
        native = self.queries[0].native
        if self._is_alone(stream) and not self.rows.asks(stream):
            pushing = native.pushing(self, self.rows.matchers.relevance, self.kb)
            if pushing is not None:
                self._ahead = pushing, pushing.batch, 0

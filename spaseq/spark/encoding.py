"""Events told by columns → encoded batches for one run, as its readers make them.

The text of a graph goes through the compiled reader of N-Triples (spaseq/io/_nquads.pyx);
lines it is not sure of are judged by pyoxigraph. What no query of the run can use is left
out. Blank nodes are named by the events the run had before, so no two events of a run share
one, also in a run that was saved and taken up again. Cost: linear in the bytes.
"""

from __future__ import annotations

import pyoxigraph as ox

from spaseq.errors import EventError
from spaseq.io._framing import EventReader
from spaseq.io._minting import Minter
from spaseq.io._nquads import LineReader
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._relevance import Relevance
from spaseq.rdf.event import Term
from spaseq.rdf.syntax import parser_message

_ANY_NUMBER = 2**32 - 1


class _Questions:
    """What the compiled reader asks: of events told from outside, only what is wrong."""

    def known_domain(self) -> int:
        return -1

    def among_triples(self, what: str, line: int) -> None:
        raise EventError(f"the graph of an event is N-Triples, and {what} is in it")

    def is_usable(self, domain: int, is_strange: bool, line: int) -> bool:
        raise EventError("triple terms (RDF 1.2) in an event are not supported by this version")


class GraphEncoder:
    """Fills one batch with events of one stream; `number` tells batches of a run apart."""

    def __init__(self, relevance: Relevance, stream: str, number: int):
        minter = Minter(number % _ANY_NUMBER)
        self._reader = EventReader(relevance, _Questions(), stream, minter, 1)
        self._reader.start_file("", "triples", _ANY_NUMBER, (), False, False)
        self._lines = LineReader(self._reader, False)

    @property
    def batch(self) -> EventBatch:
        """The events so far."""
        return self._reader.batch

    def add(
        self,
        graph: bytes,
        micros: int,
        ordinal: int,
        name: Term | None,
        stamp: Term | None,
        dated: bool,
    ) -> None:
        """One event more, its graph in N-Triples.

        Raises:
            EventError: for text that is not N-Triples.
        """
        self._reader.begin_event()
        end = len(graph)
        at = self._lines.read(graph, 0, end) if end else 0
        if at < end:
            try:
                for quad in ox.parse(graph[at:], format=ox.RdfFormat.N_TRIPLES):
                    self._reader.statement(quad, 0)
            except SyntaxError as error:
                raise EventError(
                    f"the graph of an event is not N-Triples: {parser_message(error)}"
                ) from error
        self._reader.end_event(micros, ordinal, name, stamp, dated)

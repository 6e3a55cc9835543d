"""An event that a match names, found again in the journal.

Matches name their events by stream, graph and time, but people want to see the triples. The server
does not store events for that: the bodies are in the journal until no checkpoint needs them, and
often much longer. A search scans the bytes of all bodies for parts of the graph's name and of the
time, and parses the most likely bodies, so it costs about as much as reading the journal twice.
Only pushed events are found: a part of a file is not a document, and messages have no name.
"""

from __future__ import annotations

import heapq
import re

from spaseq.errors import SpaseqError
from spaseq.io.read_options import ReadOptions, TimeDomain
from spaseq.rdf.native._terms import Dictionary, Relevance
from spaseq.rdf.time import json_value
from spaseq.server.bodies import Body, BodyReader
from spaseq.server.journal import Journal
from spaseq.server.problems import Problem

MAX_PARSED = 32
"""The most bodies that a search parses."""
MAX_PARTS = 16
"""The most parts of the graph's name and of the time that a search looks for."""
_PARTS = re.compile(r"[^/#:?&=]+")


def find_event(journal: Journal, options: ReadOptions, stream: str, graph: str, time: str) -> bytes:
    """The triples of an event as N-Triples; may be called in any thread.

    Args:
        journal: The journal of the server.
        options: How the bodies of the stream are read.
        stream: The stream of the event.
        graph: The IRI of its graph.
        time: Its time, as matches show it.

    Raises:
        Problem: 404 if the journal no longer has it.
    """
    # A body may write the IRI with a prefix or relative to a base, and the time in another zone.
    # A missing part therefore proves nothing; the parts that occur show where to look.
    named = {*_PARTS.findall(graph), *_PARTS.findall(time)}
    parts = [part.encode() for part in heapq.nlargest(MAX_PARTS, named, key=len)]
    likely: list[tuple[int, int]] = []
    for record in journal.snapshot():
        if record.says["do"] == "events" and record.says["stream"] == stream:
            score = sum(part in record.body for part in parts)
            heapq.heappush(likely, (score, record.number))
            if len(likely) > MAX_PARSED:
                heapq.heappop(likely)
    wanted = {number for _, number in likely}
    for record in journal.snapshot():
        if record.number in wanted:
            body = Body.of(record.says, record.body)
            triples = _found(body, options, stream, graph, time)
            if triples is not None:
                return triples
    raise Problem(404, "the journal does not have this event any more", "not-found")


def _found(body: Body, options: ReadOptions, stream: str, graph: str, time: str) -> bytes | None:
    """The triples of the event in one body."""
    try:
        batch = BodyReader(stream, options, TimeDomain()).read(body, Relevance(Dictionary())).batch
    except SpaseqError:  # a body that was refused when it arrived
        return None
    if batch is None:
        return None
    for index in range(len(batch)):
        name = batch.name(index)
        is_it = name is not None and name.value == graph
        if is_it and str(json_value(batch.time(index))) == time:
            return batch.n_triples(index)
    return None

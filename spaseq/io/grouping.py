"""The framings that read all files of a stream before the first event.

* `dataset`: the quads of a named graph and its timestamps, anywhere in the files.
* `member`: each object of `tree:member`, with its own statements, those of its blank nodes, and the
  graph that it names, anywhere in the files (Linked Data Event Streams).

`Dataset` holds the graphs in a compiled collector (spaseq/rdf/native/framing/collector.pxi). Beyond
its bound it sorts them on disk, first by name, to bring the parts of each graph together, and then
by time. `Members` holds N-Quads text by member.

Cost: linear in the statements, and one or two sorts. Memory: the bound, and a block of the file.
Source: TREE hypermedia specification, section on members (2024).
"""

from __future__ import annotations

import heapq
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import IO, Any, TypeAlias

import pyoxigraph as ox

from spaseq.io.read_options import Troubles
from spaseq.io.statements import RawTerm, Statement
from spaseq.rdf.event import with_nodes
from spaseq.rdf.native._framing import Collector, EventReader, Minter
from spaseq.rdf.native._terms import Dictionary, EventBatch

DEFAULT_MAX_BYTES = 1 << 30
"""The bytes that are held in memory without `max_memory`."""
_EVENTS_AT_ONCE = 256
"""The most events in a batch."""
_MOST_RUNS = 64
"""Runs that are merged at once."""
_GROUP_BYTES = 300
"""The approximate memory of a group without its text, in bytes."""
_TREE_MEMBER = ox.NamedNode("https://w3id.org/tree#member")
_TIMESTAMP_PATH = ox.NamedNode("https://w3id.org/ldes#timestampPath")
_DEFAULT = ox.DefaultGraph()

_Record: TypeAlias = tuple[Any, bytes]
"""A key, and the blob of a graph or of an event."""

# ------------------------------------------------------------------ data sets


class Runs:
    """Sorted runs of records on disk."""

    def __init__(self) -> None:
        self._files: list[IO[bytes]] = []

    def __len__(self) -> int:
        return len(self._files)

    def write(self, records: Iterable[_Record]) -> None:
        """Write a run, in the order of the keys."""
        run = tempfile.TemporaryFile(prefix="spaseq-")  # noqa: SIM115 (closed by `close`)
        self._files.append(run)
        for record in records:
            pickle.dump(record, run, protocol=5)

    def merged(self) -> Iterator[_Record]:
        """All records in the order of the keys, and for equal keys in the order of the runs."""
        while len(self._files) > _MOST_RUNS:
            # Merge neighbours, so that the runs keep their order.
            first, self._files = self._files[:_MOST_RUNS], self._files[_MOST_RUNS:]
            rest, self._files = self._files, []
            self.write(heapq.merge(*map(_read_run, first), key=itemgetter(0)))
            self._files += rest
            for run in first:
                run.close()
        return heapq.merge(*map(_read_run, self._files), key=itemgetter(0))

    def close(self) -> None:
        """Remove the runs."""
        for run in self._files:
            run.close()
        self._files.clear()


def _read_run(run: IO[bytes]) -> Iterator[_Record]:
    run.seek(0)
    while True:
        try:
            yield pickle.load(run)  # written by `write` of this process, in a file without a name
        except EOFError:
            return


class Dataset:
    """Collects the graphs of all files and yields their events in time order.

    Args:
        dictionary: That of the run.
        stream: The stream of the events.
        max_bytes: The memory of the collector; None: `DEFAULT_MAX_BYTES`.
    """

    def __init__(self, dictionary: Dictionary, stream: str, max_bytes: int | None):
        self._dictionary = dictionary
        self._stream = stream
        self._max_bytes = max_bytes or DEFAULT_MAX_BYTES
        self._files: list[str] = []
        self._scope = b""
        self._before = 0
        self._by_name = Runs()
        self._by_time = Runs()
        self._unused = 0
        self.collector = self._fresh()
        """Takes the statements of the file that is being read."""

    def _fresh(self) -> Collector:
        collector = Collector(self._dictionary, self._stream, self._files, self._before)
        collector.start_file(self._scope)
        return collector

    @property
    def unused(self) -> int:
        """The number of statements about names that do not belong to an event."""
        return self._unused + self.collector.unused

    @property
    def is_full(self) -> bool:
        """Whether some graphs are on disk."""
        return len(self._by_name) > 0

    def start_file(self, file: str, scope: str) -> None:
        """Read another file; `scope` precedes the labels of its blank nodes."""
        self._files.append(file)
        self._scope = scope.encode()
        self.collector.start_file(self._scope)

    def limit(self, events: EventReader) -> None:
        """Write the graphs to disk if they take too much memory; `events` reads the file."""
        if self.collector.size > self._max_bytes:
            events.finish()
            self._spill()
            events.collector = self.collector

    def _spill(self) -> None:
        self._by_name.write(self.collector.graphs())
        self._before += len(self.collector)
        self.collector = self._fresh()

    def make_events(self, timed: Callable[[Collector], None]) -> bool:
        """Make all events before the first is yielded; returns whether there is one.

        Errors are reported in the order of first statements, or by name if graphs are on disk.

        Args:
            timed: Makes events of the graphs of a collector.
        """
        if not self.is_full:
            timed(self.collector)
            self.collector.sort()
            return self.collector.events > 0
        self._spill()
        for name, parts in groupby(self._by_name.merged(), key=itemgetter(0)):
            if self.collector.size > self._max_bytes:
                self._order(timed)
            for _, blob in parts:
                self.collector.add_graph(name, blob)
        self._by_name.close()
        self._order(timed)
        return len(self._by_time) > 0

    def _order(self, timed: Callable[[Collector], None]) -> None:
        """Write the events of the collector to disk, in the order of time."""
        timed(self.collector)
        self.collector.sort()
        if self.collector.events:
            self._by_time.write(self.collector.blobs())
        self._unused += self.collector.unused
        self.collector = self._fresh()

    def batches(self, minter: Minter) -> Iterator[EventBatch]:
        """The events in the order of time."""
        if not self._by_time:
            yield from self._yielded(minter)
            return
        records = self._by_time.merged()
        while True:
            self.collector = self._fresh()
            for _, (_, blob) in zip(range(_EVENTS_AT_ONCE), records, strict=False):
                self.collector.add_event(blob)
            if not self.collector.events:
                return
            yield from self._yielded(minter)

    def _yielded(self, minter: Minter) -> Iterator[EventBatch]:
        first = 0
        while first < self.collector.events:
            batch = self.collector.copy(minter, first, _EVENTS_AT_ONCE)
            first += len(batch)
            yield batch

    def close(self) -> None:
        """Remove the data on disk."""
        self._by_name.close()
        self._by_time.close()


# ------------------------------------------------------------------ members


@dataclass(slots=True)
class Group:
    """The statements of one member as N-Quads, and the position of the first."""

    order: int
    file: str
    line: int
    quads: bytes = field(default=b"")


class Members:
    """Collects the members of all files, in memory.

    Raises:
        SpaseqError: beyond `max_bytes`.
    """

    def __init__(self, max_bytes: int | None):
        self._max_bytes = max_bytes or DEFAULT_MAX_BYTES
        self._bytes = 0
        self._members: dict[RawTerm, tuple[str, int]] = {}
        self._about: dict[RawTerm, list[tuple[str, RawTerm | None]]] = {}
        self._graphs: dict[RawTerm | ox.DefaultGraph, list[str]] = {}
        self._statements = 0
        self._used = 0
        self.path: str | None = None
        """The predicate that `ldes:timestampPath` names."""

    @property
    def unused(self) -> int:
        return self._statements - self._used

    def read(self, statements: Iterable[Statement], file: str, scope: str) -> None:
        """Read a file; `scope` precedes the labels of its blank nodes."""
        for quad, line in statements:
            if quad is None:
                continue
            quad = _scoped(quad, scope) if scope else quad
            self._statements += 1
            text = f"{quad.subject} {quad.predicate} {quad.object}"
            self._bytes += len(text) + _GROUP_BYTES
            if self._bytes > self._max_bytes:
                raise _too_large(self._max_bytes, file, line)
            if quad.graph_name != _DEFAULT:
                self._graphs.setdefault(quad.graph_name, []).append(text)
            if quad.predicate == _TREE_MEMBER:
                self._members.setdefault(quad.object, (file, line))
            elif quad.predicate == _TIMESTAMP_PATH and isinstance(quad.object, ox.NamedNode):
                self.path = quad.object.value
            else:
                blank = quad.object if isinstance(quad.object, ox.BlankNode) else None
                self._about.setdefault(quad.subject, []).append((text, blank))

    def groups(self, troubles: Troubles) -> Iterator[Group]:
        """A group for each member."""
        for order, (member, (file, line)) in enumerate(self._members.items()):
            if not isinstance(member, ox.NamedNode | ox.BlankNode):
                troubles.report(f"the member {member} is not an IRI or a blank node", file, line)
                continue
            lines = dict.fromkeys(self._graphs.get(member, ()))
            visited: set[RawTerm] = {member}
            ahead: list[RawTerm] = [member]
            while ahead:
                for text, blank in self._about.get(ahead.pop(), ()):
                    lines[text] = None
                    if blank is not None and blank not in visited and blank not in self._members:
                        visited.add(blank)
                        ahead.append(blank)
            self._used += len(lines) + 1
            quads = "".join(f"{text} {member} .\n" for text in lines)
            if not lines:
                troubles.report(f"the member {member} has no statements in the files", file, line)
                continue
            yield Group(order, file, line, quads.encode())


def _too_large(max_bytes: int, file: str, line: int) -> Exception:
    from spaseq.errors import InputError

    return InputError(
        f"the statements of --events member take more than {max_bytes:,} bytes (--max-memory)",
        file,
        line,
    )


def _scoped(quad: ox.Quad, scope: str) -> ox.Quad:
    """The quad with labels of blank nodes that are unique among all files."""
    subject, predicate, value, graph = quad
    terms: Any = [
        with_nodes(term, lambda node: ox.BlankNode(scope + node.value))
        for term in (subject, value, graph)
    ]
    return ox.Quad(terms[0], predicate, terms[1], terms[2])

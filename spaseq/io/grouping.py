"""Statements in the order of a file → statements of one event after the other.

Three framings that the order of statements does not show:

* `subject`: the statements of a subject and its blank nodes, consecutive in the file.
* `dataset`: the quads of a named graph and its timestamps, anywhere in the files of a stream.
* `member`: each object of `tree:member`, with its own statements, those of its blank nodes, and the
  graph that it names, anywhere in the files (Linked Data Event Streams).

`by_subject` yields statements whose graph is the subject, as they are read. The other framings read
all files first: a `Groups` object holds N-Quads text by the name of the graph. `Groups` sorts runs
of text on disk beyond its bound.

Cost: linear in the statements, and a sort. Memory: one subject, or the bound of `Groups` and some
bytes for each event. Source: TREE hypermedia specification, section on members (2024).
"""

from __future__ import annotations

import heapq
import pickle
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, TypeAlias

import pyoxigraph as ox

from spaseq.io.read_options import Troubles
from spaseq.io.statements import RawTerm, Statement

DEFAULT_MAX_BYTES = 1 << 30
"""The bytes of text that are held in memory without `max_memory`."""
_MOST_PENDING = 10_000
"""Statements about blank nodes that wait for the subject that refers to them."""
_GROUP_BYTES = 300
"""About what a group takes in memory without its text."""
_TREE_MEMBER = ox.NamedNode("https://w3id.org/tree#member")
_TIMESTAMP_PATH = ox.NamedNode("https://w3id.org/ldes#timestampPath")
_DEFAULT = ox.DefaultGraph()

_Numbered: TypeAlias = tuple[ox.Quad, int]

# ------------------------------------------------------------------ subjects


def by_subject(statements: Iterable[Statement]) -> Iterator[Statement]:
    """The statements with their event's subject as the graph; those of an event are consecutive.

    A blank node belongs to the subject whose statement refers to it: statements about the node
    follow that statement, or precede it, as parsers yield nested nodes. Statements about blank
    nodes to which no subject refers are events of their own.
    """
    subject: ox.NamedNode | None = None
    own: set[ox.BlankNode] = set()
    pending: list[_Numbered] = []
    limit = _MOST_PENDING
    for quad, line in statements:
        if quad is None:
            continue
        about, value = quad.subject, quad.object
        if isinstance(about, ox.BlankNode) and about not in own:
            pending.append((quad, line))
            if len(pending) > limit:
                complete, pending = _without_last_roots(pending)
                limit = max(_MOST_PENDING, 2 * len(pending))
                yield from complete
            continue
        claimed, rest = _claimed(pending, value)
        if isinstance(about, ox.NamedNode) and about != subject:
            yield from _roots(rest)
            rest = []
            subject = about
            own = set()
        assert subject is not None
        for other, number in (*claimed, (quad, line)):
            yield _in(other, subject), number
            own.update(
                part for part in (other.subject, other.object) if isinstance(part, ox.BlankNode)
            )
        pending = rest
    yield from _roots(pending)


def _in(quad: ox.Quad, graph: ox.NamedNode | ox.BlankNode) -> ox.Quad:
    return ox.Quad(quad.subject, quad.predicate, quad.object, graph)


def _claimed(pending: list[_Numbered], value: RawTerm) -> tuple[list[_Numbered], list[_Numbered]]:
    """The pending statements about nodes that can be reached from `value`, and the others."""
    if not pending or not isinstance(value, ox.BlankNode):
        return [], pending
    reached = {value}
    size = 0
    while size != len(reached):
        size = len(reached)
        for quad, _ in reversed(pending):
            if quad.subject in reached and isinstance(quad.object, ox.BlankNode):
                reached.add(quad.object)
    claimed = [one for one in pending if one[0].subject in reached]
    return claimed, [one for one in pending if one[0].subject not in reached]


def _components(pending: list[_Numbered]) -> list[list[_Numbered]]:
    """The statements that blank nodes connect, in the order of their first statements."""
    parents: dict[RawTerm, RawTerm] = {}

    def root(node: RawTerm) -> RawTerm:
        while parents.setdefault(node, node) != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    for quad, _ in pending:
        if isinstance(quad.object, ox.BlankNode):
            parents[root(quad.object)] = root(quad.subject)
    found: dict[RawTerm, list[_Numbered]] = {}
    for one in pending:
        found.setdefault(root(one[0].subject), []).append(one)
    return list(found.values())


def _roots(pending: list[_Numbered]) -> Iterator[Statement]:
    """The statements that no subject claims: an event for each connected part."""
    if pending:
        for part in _components(pending):
            yield from _root(part)


def _root(part: list[_Numbered]) -> Iterator[Statement]:
    """A connected part in the graph of a node to which none of its statements refers."""
    referred = {quad.object for quad, _ in part}
    subjects = [quad.subject for quad, _ in part]
    name = next((node for node in subjects if node not in referred), subjects[0])
    assert isinstance(name, ox.BlankNode)
    for quad, line in part:
        yield _in(quad, name), line


def _without_last_roots(
    pending: list[_Numbered],
) -> tuple[list[Statement], list[_Numbered]]:
    """The statements of the parts that end in the first half, and the other statements."""
    half = {id(one) for one in pending[len(pending) // 2 :]}
    parts = _components(pending)
    complete = [part for part in parts if id(part[-1]) not in half]
    done = {id(one) for part in complete for one in part}
    statements = [one for part in complete for one in _root(part)]
    return statements, [one for one in pending if id(one) not in done]


# ------------------------------------------------------------------ groups


@dataclass(slots=True)
class Group:
    """The statements of one event as N-Quads, and where the first of them is."""

    name: str
    order: int
    file: str
    line: int
    stamps: bytearray = field(default_factory=bytearray)
    """Statements of the default graph about the name."""
    quads: bytearray = field(default_factory=bytearray)
    is_event: bool = False
    """Whether there are quads or a timestamp, so that the name is that of an event."""


class Groups:
    """Groups by name, in memory up to a number of bytes, the rest in sorted runs on disk."""

    def __init__(self, max_bytes: int | None):
        self._max_bytes = max_bytes or DEFAULT_MAX_BYTES
        self._groups: dict[str, Group] = {}
        self._order = 0
        self._bytes = 0
        self._runs: list[IO[bytes]] = []
        self.is_full = False
        """Whether some text is on disk."""

    def add(
        self, name: str, text: bytes, file: str, line: int, is_stamp: bool, is_event: bool
    ) -> None:
        """Add a statement, ended by a line feed, to a group."""
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = Group(name, self._order, file, line)
            self._order += 1
            self._bytes += _GROUP_BYTES + len(name)
        target = group.stamps if is_stamp else group.quads
        target += text
        group.is_event |= is_event
        self._bytes += len(text)
        if self._bytes > self._max_bytes:
            self._spill()

    def _spill(self) -> None:
        """Write the groups in memory to disk, sorted by name."""
        self.is_full = True
        run = tempfile.TemporaryFile(prefix="spaseq-")  # noqa: SIM115 (closed by `close`)
        for name in sorted(self._groups):
            pickle.dump(self._groups[name], run, protocol=5)
        self._runs.append(run)
        self._groups.clear()
        self._bytes = 0

    def groups(self) -> Iterator[Group]:
        """All groups, once: in the order of their first statements, or by name if on disk."""
        if not self._runs:
            for name in list(self._groups):
                yield self._groups.pop(name)
            return
        if self._groups:
            self._spill()
        whole: Group | None = None
        for part in heapq.merge(*map(_read_run, self._runs), key=lambda group: group.name):
            if whole is None or whole.name != part.name:
                if whole is not None:
                    yield whole
                whole = part
                continue
            if part.order < whole.order:
                whole, part = part, whole
            whole.stamps += part.stamps
            whole.quads += part.quads
            whole.is_event |= part.is_event
        if whole is not None:
            yield whole

    def close(self) -> None:
        """Remove the runs."""
        for run in self._runs:
            run.close()


def _read_run(run: IO[bytes]) -> Iterator[Group]:
    run.seek(0)
    while True:
        try:
            yield pickle.load(run)  # written by `_spill` of this process, in a file without a name
        except EOFError:
            return


class Texts:
    """Byte strings that are read again by their numbers, in memory or on disk."""

    def __init__(self, on_disk: bool):
        self._texts: list[bytes] = []
        self._places: list[tuple[int, int]] = []
        self._file: IO[bytes] | None = None
        if on_disk:
            self._file = tempfile.TemporaryFile(prefix="spaseq-")  # noqa: SIM115

    def add(self, text: bytes) -> int:
        """Store a text. Returns its number."""
        if self._file is None:
            self._texts.append(text)
            return len(self._texts) - 1
        self._places.append((self._file.tell(), len(text)))
        self._file.write(text)
        return len(self._places) - 1

    def text(self, number: int) -> bytes:
        """The text of a number."""
        if self._file is None:
            return self._texts[number]
        start, size = self._places[number]
        self._file.seek(start)
        return self._file.read(size)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


# ------------------------------------------------------------------ files


class Dataset:
    """Collects the graphs of all files."""

    def __init__(self, predicates: Sequence[str], metadata: bool, max_bytes: int | None):
        self._groups = Groups(max_bytes)
        self._predicates = set(map(ox.NamedNode, predicates))
        self._metadata = metadata
        self.unused = 0

    def read(self, statements: Iterable[Statement], file: str, scope: str) -> None:
        """Read a file; `scope` precedes the labels of its blank nodes."""
        for quad, line in statements:
            if quad is None:
                continue
            quad = _scoped(quad, scope) if scope else quad
            text = f"{quad} .\n".encode()
            if quad.graph_name != _DEFAULT:
                self._groups.add(str(quad.graph_name), text, file, line, False, True)
                continue
            is_time = quad.predicate in self._predicates
            if is_time or self._metadata:
                self._groups.add(str(quad.subject), text, file, line, True, is_time)
            else:
                self.unused += 1

    @property
    def is_full(self) -> bool:
        return self._groups.is_full

    def groups(self, troubles: Troubles) -> Iterator[Group]:
        """The groups that are events."""
        for group in self._groups.groups():
            if group.is_event:
                yield group
            else:
                self.unused += group.stamps.count(b"\n")

    def close(self) -> None:
        self._groups.close()


class Members:
    """Collects the members of all files, in memory.

    Raises:
        SpaseqError: beyond `max_bytes`.
    """

    is_full = False

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
            yield Group(str(member), order, file, line, bytearray(), bytearray(quads, "utf-8"))

    def close(self) -> None:
        """Nothing is on disk."""


def _too_large(max_bytes: int, file: str, line: int) -> Exception:
    from spaseq.errors import InputError

    return InputError(
        f"the statements of --events member take more than {max_bytes:,} bytes (--max-memory)",
        file,
        line,
    )


def _scoped(quad: ox.Quad, scope: str) -> ox.Quad:
    """The quad with labels of blank nodes that no other file has."""
    subject, predicate, value, graph = quad
    terms = [
        ox.BlankNode(scope + term.value) if isinstance(term, ox.BlankNode) else term
        for term in (subject, value, graph)
    ]
    return ox.Quad(terms[0], predicate, terms[1], terms[2])

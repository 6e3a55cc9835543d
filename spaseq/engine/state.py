"""`Run.save` and `Program.resume`: the state of a run as a versioned, compressed blob.

The blob holds what the window still needs: live groups and their part of the tECS, rows,
registers, buffers, counters; never the KB, which is given again on resuming. A fingerprint
of the program guards against resuming another one. A resumed run gives the same matches as
one that never stopped.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any

import pyoxigraph as ox

from spaseq.engine.compiled import CompiledQueries
from spaseq.engine.evaluation import Evaluation
from spaseq.engine.query_run import QueryRun
from spaseq.errors import StateError
from spaseq.nfa import state as automata
from spaseq.parser import format_query
from spaseq.rdf.codec import Reader, Writer
from spaseq.rdf.event import Term

MAGIC = b"spaseq-run\0"
VERSION = 3


def fingerprint(program: CompiledQueries) -> str:
    """What two programs share iff their queries say the same."""
    digest = hashlib.sha256()
    for query, name in zip(program.sources, program.names, strict=True):
        digest.update(format_query(query).encode() + b"\0" + name.encode() + b"\0")
    return digest.hexdigest()


def save(run: Evaluation) -> bytes:
    """The state of a run that goes on.

    Raises:
        RunFailed: for one that has failed.
    """
    run.check_going()
    writer = Writer()
    data: dict[str, Any] = {
        "program": fingerprint(run.program),
        "entail": run.entail,
        "bound": {name: writer.term(term) for name, term in run.bound.items()},
        "time": None if run.time is None else writer.time(run.time),
        "closed": run.closed,
        "ordinals": run.ordinals,
        "derived time": run.derived_time,
        "derived ordinal": run.derived_ordinal,
        "domain": run.domain,
        "finished": run.finished,
        "events": run.events,
        "triples": run.triples,
        "per stream": run.per_stream,
        "delayed": [[writer.event(event) for event in events] for events in run.delayed],
        "queries": [_save_query(query, writer) for query in run.queries],
    }
    data["tables"] = writer.tables()
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()
    return MAGIC + VERSION.to_bytes(2, "big") + zlib.compress(text)


class SavedState:
    """An opened blob.

    Raises:
        StateError: if it is damaged, or of another version.
    """

    def __init__(self, blob: bytes):
        self._data = _opened(blob)
        self._reader = Reader(self._data["tables"])
        self.bound = {
            name: _fixed(self._reader.term(number)) for name, number in self._data["bound"].items()
        }
        """The variables that had been fixed when it was saved."""
        self.entail: str | None = self._data.get("entail")
        """The regime of entailment it was saved under."""

    def fits(self, program: CompiledQueries) -> bool:
        """Whether it was saved by a run of these very queries."""
        return bool(self._data["program"] == fingerprint(program))

    def restore(self, run: Evaluation) -> None:
        """Fill a fresh run of the same program."""
        _restore(run, self._data, self._reader)


def _fixed(term: Term) -> ox.NamedNode | ox.Literal:
    assert not isinstance(term, ox.BlankNode)
    return term


def _restore(run: Evaluation, data: dict[str, Any], reader: Reader) -> None:
    run.time = None if data["time"] is None else reader.time(data["time"])
    run.closed = data["closed"]
    run.ordinals = data["ordinals"]
    run.derived_time = data["derived time"]
    run.derived_ordinal = data["derived ordinal"]
    run.domain = data["domain"]
    run.finished = data["finished"]
    run.events = data["events"]
    run.triples = data["triples"]
    run.per_stream = data["per stream"]
    run.delayed = [[reader.event(number) for number in events] for events in data["delayed"]]
    for query, part in zip(run.queries, data["queries"], strict=True):
        _restore_query(query, part, reader)


def _opened(blob: bytes) -> dict[str, Any]:
    head = len(MAGIC) + 2
    if blob[: len(MAGIC)] != MAGIC:
        raise StateError("this is no saved state of a run")
    version = int.from_bytes(blob[len(MAGIC) : head], "big")
    if version != VERSION:
        raise StateError(
            f"the saved state has format version {version}, this spaseq reads {VERSION}: "
            "resume it with the version that saved it, or replay the window"
        )
    try:
        data: dict[str, Any] = json.loads(zlib.decompress(blob[head:]))
    except (zlib.error, ValueError) as error:
        raise StateError(f"the saved state is damaged: {error}") from error
    return data


def _save_query(query: QueryRun, writer: Writer) -> dict[str, Any]:
    shown = query.output.shown
    return {
        "time": None if query.time is None else writer.time(query.time),
        "delivered": query.delivered,
        "ordinal": query.ordinal,
        "opened": query.opened,
        "domain": query.domain,
        "matched": query.matched,
        "shed": query.shed,
        "queued": [
            [ordinal, [writer.event(event) for event in events]]
            for ordinal, events in query.queued.items()
        ],
        "shown": [[[writer.value(v) for v in s], micros] for s, micros in shown.items()],
        "complete": [
            [[writer.value(v) for v in solution], [writer.value(f) for f in facts], closing]
            for (solution, facts), closing in query.output.complete.items()
        ],
        "constructed": query.output.constructed,
        "automaton": query.state().written(writer),
    }


def _restore_query(query: QueryRun, data: dict[str, Any], reader: Reader) -> None:
    query.time = None if data["time"] is None else reader.time(data["time"])
    query.delivered = data["delivered"]
    query.ordinal = data["ordinal"]
    query.opened = data["opened"]
    query.domain = data["domain"]
    query.emitted = data["matched"]
    query.shed_before = data["shed"]
    query.queued = {
        ordinal: [reader.event(number) for number in events] for ordinal, events in data["queued"]
    }
    query.output.shown = {
        tuple(map(reader.value, solution)): micros for solution, micros in data["shown"]
    }
    query.output.complete = {
        (tuple(map(reader.value, solution)), frozenset(map(reader.value, facts))): closing
        for solution, facts, closing in data["complete"]
    }
    query.output.constructed = data["constructed"]
    query.adopt(automata.read(data["automaton"], reader))

"""`Run.save` and `Program.resume`: the state of a run as a versioned, compressed blob.

The blob holds what the window still needs: live groups and their part of the tECS, rows,
registers, buffers and counters. It does not hold the KB, which the caller passes to `resume`.
Fingerprints of the queries prevent resuming another program. A resumed run returns the same matches
as a run without interruption.

A blob is untrusted data. This module and `spaseq.rdf.codec` check its shape, and
`spaseq.engine.native.check` checks the states of automata, before anything is built from it.
"""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from spaseq.engine.compiled import CompiledQueries
from spaseq.engine.envelope import MAGIC as MAGIC
from spaseq.engine.envelope import VERSION as VERSION
from spaseq.engine.envelope import seal, unseal
from spaseq.engine.instants import QueryRun
from spaseq.engine.native.check import check
from spaseq.engine.query_state import QueryState
from spaseq.engine.saved_groups import restore_groups, save_groups
from spaseq.engine.saved_limit import restore_limit, save_limit
from spaseq.engine.sharing import SharedProgram, saved_templates
from spaseq.engine.stream_clock import StreamClock
from spaseq.errors import ArgumentError, StateError, kind_of
from spaseq.nfa import state as automata
from spaseq.parser import ast, format_query
from spaseq.plan.templates import Template
from spaseq.rdf.checked import (
    GREATEST,
    LEAST,
    MOST_ORDINAL,
    PASSED,
    counts,
    flag,
    listed,
    record,
    refuse,
    text,
    whole,
    wholes,
)
from spaseq.rdf.codec import Reader, Writer
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Parameter, Term, Timestamp, nodes_of
from spaseq.rdf.schema import REGIMES

if TYPE_CHECKING:
    from spaseq.engine.evaluation import Evaluation

_OF_RUN = (
    "program", "entail", "bound", "time", "closed", "ordinals", "derived time", "derived ordinal",
    "domain", "finished", "events", "triples", "per stream", "delayed", "order", "queries",
    "templates", "tables", "ended", "ahead",
)  # fmt: skip
_OF_QUERY = (
    *(field.name for field in fields(QueryState)),
    "shown", "constructed", "groups", "limit", "automaton",
)  # fmt: skip


_MAX_DIGESTS = 1024
_DIGESTS: dict[int, tuple[ast.Query, str]] = {}
"""The digests of queries by their identity, which an entry keeps alive. A lookup by value would
hash the tree of the query, which costs a third of the digest.
"""


def fingerprints(program: CompiledQueries) -> list[tuple[str, str]]:
    """The name and a digest of each query; equal iff two programs have the same queries.

    Cost: each query is formatted once, whatever the number of calls.
    """
    return [
        (name, _digest(query)) for query, name in zip(program.sources, program.names, strict=True)
    ]


def _digest(query: ast.Query) -> str:
    known = _DIGESTS.get(id(query))
    if known is not None:
        return known[1]
    from hashlib import sha256  # imported here, since it loads OpenSSL

    digest = sha256(format_query(query).encode()).hexdigest()
    if len(_DIGESTS) >= _MAX_DIGESTS:
        _DIGESTS.clear()
    _DIGESTS[id(query)] = query, digest
    return digest


# ------------------------------------------------------------------ saving


def save(run: Evaluation) -> bytes:
    """The state of a run, as a blob.

    Raises:
        RunFailed: if the run has failed.
    """
    run.clock.check_running()
    with without_collection():
        return _save(run)


@contextmanager
def without_collection() -> Iterator[None]:
    """Suspend cyclic garbage collection, which would visit each of the many new objects.

    It would take a third of the time of saving, of loading, and of starting many queries.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _save(run: Evaluation) -> bytes:
    clock, writer = run.clock, Writer()
    streams, registered = run.listed.program.streams, run.registered
    written = [iri for iri in registered.times if iri in run.listed.written]
    saved = {query: _save_query(query, writer) for query in run.queries}
    positions = _positions(run)
    data: dict[str, Any] = {
        "program": [(query.name, _digest(query.source)) for query in run.listed.texts],
        "entail": run.entail,
        "bound": {name: writer.term(term) for name, term in run.bound.items()},
        "time": None if clock.time is None else writer.time(clock.time),
        "closed": clock.closed,
        "ordinals": _of_streams(streams, clock.ordinals),
        "derived time": _of_streams(written, registered.times),
        "derived ordinal": _of_streams(written, registered.ordinals),
        "domain": clock.domain,
        "finished": clock.finished,
        "events": clock.events,
        "triples": clock.triples,
        "per stream": _of_streams(streams, clock.per_stream),
        "ahead": [writer.event(event) for event in run.ahead],
        "ended": _of_streams(streams, run.ended),
        "delayed": [
            [writer.event(event) for event in query.executor.delayed]
            for query in run.listed.entries
        ],
        "order": _order(run),
        "queries": [saved[query.state] for query in run.listed.entries],
        "templates": [
            [
                each.template.renumbered(positions).members,
                [each.matched[serial] for serial in each.template.queries],
            ]
            for each in run.listed.divisions.values()
        ],
    }
    data["tables"] = writer.tables()
    return seal(data)


def _order(run: Evaluation) -> list[int]:
    """Per query, as the run evaluates them: the position of its text, or of the first one."""
    positions = _positions(run)
    return [positions[query.serial] for query in run.listed.entries]


def _positions(run: Evaluation) -> dict[int, int]:
    """Serial number of a query → the position of its text."""
    return {query.serial: position for position, query in enumerate(run.listed.texts)}


def _of_streams(streams: Iterable[str], counts: Mapping[str, int]) -> dict[str, int]:
    """The counts of the streams of the queries; the run may have had other streams."""
    return {iri: counts[iri] for iri in streams if iri in counts}


def _save_query(query: QueryRun, writer: Writer) -> dict[str, Any]:
    shown, kept = query.output.shown, query.kept()
    return {
        **{field.name: getattr(kept, field.name) for field in fields(QueryState)},
        "time": None if kept.time is None else writer.time(kept.time),
        "queued": [
            [ordinal, [writer.event(event) for event in events]]
            for ordinal, events in kept.queued.items()
        ],
        "shown": [[[writer.value(v) for v in s], micros] for s, micros in shown.items()],
        "constructed": query.output.constructed,
        "groups": save_groups(query.output.groups, writer),
        "limit": save_limit(query.output.limit, writer),
        "automaton": query.state().written(writer),
    }


# ------------------------------------------------------------------ resuming


class SavedState:
    """An opened blob.

    Raises:
        StateError: if it is damaged, or of another version.
    """

    def __init__(self, blob: bytes):
        if not isinstance(blob, bytes | bytearray | memoryview):
            raise ArgumentError(f"blob: the bytes of Run.save are needed, not {kind_of(blob)}")
        with without_collection():
            self._data = record(unseal(blob), "the state", _OF_RUN)
            self._reader = Reader(self._data["tables"])
        if type(self._data["bound"]) is not dict:
            refuse("bound", "is not a record")
        self.bound = {
            name: _fixed(self._reader.term(number, "bound"))
            for name, number in self._data["bound"].items()
        }
        """The bound variables of the saved run."""
        self.entail: str | None = self._data["entail"]
        """The entailment regime of the saved run."""
        if self.entail is not None and text(self.entail, "entail") not in REGIMES:
            refuse("entail", f"there is no entailment {self.entail!r}")
        self._program = [
            (text(name, "program"), text(digest, "program"))
            for name, digest in (
                listed(query, "program", 2) for query in listed(self._data["program"], "program")
            )
        ]

    def fits(self, program: CompiledQueries) -> bool:
        """Whether the saved run had exactly these queries."""
        return self._program == fingerprints(program)

    def difference(self, program: CompiledQueries) -> str:
        """A text that says how the saved queries differ from those of a program."""
        saved, given = dict(self._program), dict(fingerprints(program))
        missing = [name for name in saved if name not in given]
        added = [name for name in given if name not in saved]
        changed = [name for name in given if name in saved and saved[name] != given[name]]
        parts = []
        if missing:
            parts.append(f"it has {_named(missing)}, which the program lacks")
        if added:
            parts.append(f"it lacks {_named(added)}")
        if changed:
            parts.append(f"the text (or a bound variable) of {_named(changed)} differs")
        return "; ".join(parts) or "the queries come in another order"

    @property
    def shares(self) -> list[list[list[int]]]:
        """Per template of the saved run: the positions of its queries, by their numbers."""
        return [
            [
                wholes(some, "templates", 0, len(self._program) - 1)
                for some in listed(members, "templates")
            ]
            for members, _ in (
                listed(each, "templates", 2)
                for each in listed(self._data["templates"], "templates")
            )
        ]

    def templates(self, program: CompiledQueries) -> list[Template]:
        """The templates of the saved run, whose queries a program has.

        Raises:
            StateError: if they are not templates of this program.
        """
        numbers = [number for members in self.shares for some in members for number in some]
        if len(set(numbers)) < len(numbers):
            refuse("templates", "a query is part of two")
        return saved_templates(program, self.shares)

    def with_own_states(self, shared: SharedProgram) -> SharedProgram:
        """A program whose equal queries share a state if their saved states are equal.

        They differ if one of the queries was added to the run after the other.
        """
        parts = self._data["queries"]
        if type(parts) is not list or len(parts) != len(shared.firsts):
            return shared
        firsts = [n if parts[n] != parts[first] else first for n, first in enumerate(shared.firsts)]
        return replace(shared, firsts=firsts)

    def restore(self, run: Evaluation) -> None:
        """Restore the state into a fresh run of the same program.

        Raises:
            StateError: if no such run can have saved the state; the fresh run is then unusable.
        """
        try:
            with without_collection():
                _restore(run, self._data, self._reader)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise StateError(f"the saved state is damaged: {error}") from error


def _named(names: Sequence[str]) -> str:
    return f"the quer{'y' if len(names) == 1 else 'ies'} {', '.join(names)}"


def _fixed(term: Term) -> Parameter:
    if isinstance(term, ox.BlankNode) or any(nodes_of(term)):
        refuse("bound", "a variable is fixed to a blank node")
    return term


def _restore(run: Evaluation, data: dict[str, Any], reader: Reader) -> None:
    clock = run.clock
    clock.domain = _domain(data["domain"], "domain", None)
    clock.closed = None if data["closed"] is None else _micros(data["closed"], "closed")
    if (clock.closed is None) != (clock.domain is None):
        refuse("closed", "there is a time without a kind of time, or the other way round")
    clock.time = _time(data["time"], "time", clock, reader)
    streams, written = run.listed.program.streams, run.listed.written
    everywhere = {*streams, *written}
    clock.ordinals = counts(data["ordinals"], "ordinals", everywhere, 0, PASSED)
    run.registered.times = counts(data["derived time"], "derived time", written, LEAST, GREATEST)
    run.registered.ordinals = counts(
        data["derived ordinal"], "derived ordinal", run.registered.times
    )
    _check_all(run.registered.ordinals, run.registered.times, "derived ordinal")
    clock.finished = flag(data["finished"], "finished")
    clock.events = whole(data["events"], "events")
    clock.triples = whole(data["triples"], "triples")
    clock.per_stream = counts(data["per stream"], "per stream", streams)
    _check_all(clock.per_stream, streams, "per stream")
    run.ended = counts(data["ended"], "ended", streams, LEAST, GREATEST)
    run.ahead = _ahead(run, data["ahead"], reader)
    entries = run.listed.entries
    for entry, events in zip(
        entries, listed(data["delayed"], "delayed", len(entries)), strict=True
    ):
        some = [reader.event(number, "delayed") for number in listed(events, "delayed")]
        entry.executor.delayed = some
    for division, saved in zip(
        run.listed.divisions.values(), listed(data["templates"], "templates"), strict=True
    ):
        numbers = division.template.queries
        made = wholes(listed(saved, "templates", 2)[1], "templates", length=len(numbers))
        division.matched.update(zip(numbers, made, strict=True))
    queries = listed(data["queries"], "queries", len(entries))
    if data["order"] != _order(run):
        refuse("order", "the queries come in another order")
    for entry, part in zip(entries, queries, strict=True):
        executor = entry.executor
        if executor.first is not entry:
            continue  # it shares the state of an equal query
        query, direct, delayed = executor.state, executor.direct, executor.delayed
        where = f"query {query.plan.name}"
        if delayed and direct:
            refuse(where, "events are delayed that it is handed at once")
        _restore_query(run, query, direct, record(part, where, _OF_QUERY), reader)
        _check_events(run, query, delayed)
        if clock.finished and (delayed or query.time is not None):
            refuse(where, "something waits after the end of the run")
    run.find_draining()


def _restore_query(
    run: Evaluation, query: QueryRun, direct: bool, data: dict[str, Any], reader: Reader
) -> None:
    plan, clock = query.plan, run.clock
    domain = _domain(data["domain"], "domain", "")
    if domain not in ("", clock.domain):
        refuse("domain", "a query has another kind of time than the run")
    time = _time(data["time"], "time", clock, reader)
    is_open = clock.time is not None and clock.time.micros == clock.closed and not clock.finished
    is_read = direct and not clock.ordinals.keys().isdisjoint(plan.streams)
    if time != (clock.time if is_open and is_read else None):
        refuse("time", "the open timestamp of a query is not that of the run")
    known = {} if time is None else clock.ordinals
    delivered = {stream: known.get(stream, 0) for stream in plan.streams}
    if data["delivered"] != delivered:
        refuse("delivered", "a query has had other events of the timestamp than the run")
    ordinal = min(delivered.values())
    if data["ordinal"] != ordinal:
        refuse("ordinal", "a query is at another instant than its events")
    kept = QueryState(
        time=time,
        domain=domain,
        ordinal=ordinal,
        opened=flag(data["opened"], "opened"),
        delivered=delivered,
        queued=_queued(query, time, ordinal, delivered, data["queued"], reader),
        ended=counts(data["ended"], "ended", run.ended, LEAST, GREATEST),
        matched=whole(data["matched"], "matched"),
        marked=whole(data["marked"], "marked"),
        shed=whole(data["shed"], "shed"),
    )
    if time is None and (kept.opened or kept.queued):
        refuse("time", "an instant is open without a timestamp")
    query.output.shown = {
        _values(solution, reader, len(query.output.variables)): _micros(micros, "shown")
        for solution, micros in (listed(row, "shown", 2) for row in listed(data["shown"], "shown"))
    }
    query.output.constructed = whole(data["constructed"], "constructed")
    restore_groups(plan, query.output.groups, data["groups"], clock, reader)
    restore_limit(query.output.limit, data["limit"], clock, reader)
    state = automata.read(data["automaton"], reader)
    check(query.native, state, dated=clock.domain == DATE_TIME, opened=kept.opened)
    now, _, _, micros, *_ = state.clock
    if now >= 0 and (clock.closed is None or (micros > clock.closed and not clock.finished)):
        refuse("clock", "the automaton is ahead of the run")
    if kept.opened and (now < 0 or time is None or time.micros != micros):
        refuse("opened", "the open instant is not that of the automaton")
    if clock.finished and (state.awaited or state.pending or state.begun or state.complete):
        refuse("awaited", "something waits after the end of the run")
    query.resume(kept, state)


def _ahead(run: Evaluation, data: Any, reader: Reader) -> list[Event]:
    """The events that wait for streams that have ended."""
    clock, streams = run.clock, set(run.listed.program.streams)
    events = [reader.event(number, "ahead") for number in listed(data, "ahead")]
    if any(one.instant > other.instant for one, other in pairwise(events)):
        refuse("ahead", "the events that wait are not in order")
    for event in events:
        if event.stream not in streams or clock.domain not in (None, event.time.domain):
            refuse("ahead", "an event is of no stream of the run, or of another kind of time")
        if clock.finished or (clock.closed is not None and event.time.micros < clock.closed):
            refuse("ahead", "an event waits whose time has passed")
    return events


def _queued(
    query: QueryRun,
    time: Timestamp | None,
    opened: int,
    delivered: Mapping[str, int],
    data: Any,
    reader: Reader,
) -> dict[int, list[Event]]:
    """By ordinal: events of the open timestamp whose instants are not open yet."""
    found: dict[int, list[Event]] = {}
    for row in listed(data, "queued"):
        number, numbers = listed(row, "queued", 2)
        ordinal = whole(number, "queued", max(opened, 1), MOST_ORDINAL)
        events = [reader.event(number, "queued") for number in listed(numbers, "queued")]
        streams = {event.stream for event in events}
        if ordinal in found or len(streams) < len(events) or not streams <= set(query.plan.streams):
            refuse("queued", "the streams of an instant are not those of the query, once each")
        if any(
            event.ordinal != ordinal or event.time != time or ordinal >= delivered[event.stream]
            for event in events
        ):
            refuse("queued", "an event is not of the open timestamp, or has another ordinal")
        found[ordinal] = events
    return found


def _check_events(run: Evaluation, query: QueryRun, delayed: Sequence[Event]) -> None:
    """Check that delayed events of a query follow the events that it has processed."""
    if not delayed:
        return
    core, clock = query.native.core, run.clock
    least = core.window.micros + 1 if core.window.now >= 0 else LEAST
    seen = {(event.stream, *event.instant) for event in delayed}
    if len(seen) < len(delayed):
        refuse("delayed", "an event is there twice")
    for event in delayed:
        if event.stream not in query.plan.streams or event.time.domain != clock.domain:
            refuse("delayed", "an event is of no stream of the query, or of another kind of time")
        if event.time.micros < least:
            refuse("delayed", "an event comes before the time that the automaton has come to")
    registered, streams = run.registered, {event.stream for event in delayed}
    last = {
        stream: (registered.times[stream], registered.ordinals[stream])
        for stream in streams & registered.times.keys()
    }
    if clock.time is not None:
        inputs = streams & {*clock.streams}
        last |= {s: (clock.time.micros, clock.ordinals.get(s, 0)) for s in inputs}
    if any(event.instant >= last.get(event.stream, (LEAST, 0)) for event in delayed):
        refuse("delayed", "an event comes after the last one of its stream")
    for stream, (micros, ordinal) in last.items():
        instants = [event.instant for event in delayed if event.stream == stream]
        if stream in run.registered.times and instants and max(instants) != (micros, ordinal - 1):
            refuse("delayed", "the last event of a registered stream is missing")


def _check_all(found: Mapping[str, int], names: Collection[str], where: str) -> None:
    if len(found) < len(set(names)):
        refuse(where, "a stream is missing")


def _values(data: Any, reader: Reader, length: int) -> tuple[Any, ...]:
    return tuple([reader.value(value) for value in listed(data, "a solution", length)])


def _micros(value: Any, where: str) -> int:
    return whole(value, where, LEAST, GREATEST)


def _domain(value: Any, where: str, nothing: Any) -> Any:
    if value is not nothing and value != nothing and value not in (NUMBER, DATE_TIME):
        refuse(where, "is not a kind of time")
    return value


def _time(value: Any, where: str, clock: StreamClock, reader: Reader) -> Timestamp | None:
    """A time that is not later than the run's, or None."""
    if value is None:
        return None
    time = reader.time(value, where)
    if clock.closed is None or time.micros > clock.closed or time.domain != clock.domain:
        refuse(where, "is ahead of the run, or another kind of time")
    return time

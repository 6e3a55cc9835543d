"""Restores a machine from the last checkpoint and the records of the journal after it.

A query that stopped the run has a record `fail`. It is taken out before the records are read again,
so they cannot stop the run a second time. A query that stops the run only now, or that a client
pauses or removes while an event is matched, is taken out in the same way, and everything is read
again from the checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from spaseq.errors import SpaseqError, StateError
from spaseq.live.state import Checkpoint
from spaseq.server.bodies import Body
from spaseq.server.feeds import FeedSettings, chunk_of
from spaseq.server.journal import Journal, Record
from spaseq.server.kb_graphs import KbGraph
from spaseq.server.machine import STATE_VERSION, Machine
from spaseq.server.places import RunStopped
from spaseq.server.problems import Problem
from spaseq.server.standing import Definition, compile_all


def recovered(
    make: Callable[[], Machine],
    checkpoint: Checkpoint | None,
    journal: Journal,
    log: Callable[[str], None],
    removed: Callable[[Machine], None] = lambda machine: None,
    reached: Callable[[int], None] = lambda number: None,
) -> Machine:
    """The machine after all records of the journal.

    Args:
        make: Makes a machine without a state.
        checkpoint: The last one.
        journal: The records after it, and those whose events waited at it.
        log: Reports queries that are taken out.
        removed: Called when queries have been removed, whose matches are no longer needed.
        reached: Called with the number of each record before it is executed; it may raise
            `QueriesLeft`.

    Raises:
        StateError: if the records do not fit the checkpoint.
    """
    stoppers: dict[tuple[int, str], str] = {}
    while True:
        failed = _failed(checkpoint, journal) | stoppers
        machine = make()
        try:
            _replay(machine, checkpoint, journal, failed, removed, reached)
            return machine
        except QueriesLeft:
            machine.close()
        except RunStopped as stopped:
            machine.close()
            for name, revision in blamed(machine, stopped):
                log(f"the query {name} has stopped the run and is taken out: {stopped}")
                stoppers[revision, name] = str(stopped)
                write_failure(journal, name, revision, str(stopped))


def outlined(machine: Machine, checkpoint: Checkpoint | None, journal: Journal) -> None:
    """Let a machine have the queries, graphs and feeds after all records, but no runs.

    This is what clients see while the records are executed. A record that cannot be read ends it;
    executing the records then says why.
    """
    failed = _failed(checkpoint, journal)
    if checkpoint is not None:
        machine.outline(upgraded(checkpoint.header["machine"]))
    with suppress(SpaseqError, Problem, KeyError, TypeError, ValueError):
        for record in journal.read(_start(checkpoint)):
            _outline(machine, record)
    for name, standing in list(machine.queries.items()):
        failure = failed.get((standing.revision, name))
        if failure is not None:
            machine.queries[name] = replace(standing, failure=failure)


def _outline(machine: Machine, record: Record) -> None:
    says: Mapping[str, Any] = record.says
    match says["do"]:
        case "query":
            machine.list_query(Definition.from_dict(says["definition"]), record.number)
        case "queries":
            for definition in says["definitions"]:
                machine.list_query(Definition.from_dict(definition), record.number)
        case "remove" if not says.get("drain"):
            machine.queries.pop(says["name"], None)
        case "kb":
            graph = KbGraph(record.number + 1, says["file"], "", says["triples"])
            machine.kb.graphs[says["iri"]] = graph
        case "kb-remove":
            machine.kb.graphs.pop(says["iri"], None)
        case "feed":
            machine.list_feed(FeedSettings(*says["settings"]))
        case _:
            pass


class QueriesLeft(BaseException):
    """Queries were paused or removed while an event was matched: their run has to be made again.

    Handlers of errors of events are not meant to catch it.
    """


def blamed(machine: Machine, stopped: RunStopped) -> list[tuple[str, int]]:
    """The queries to take out after an error, with their revisions."""
    return [
        (standing.definition.name, standing.revision)
        for standing in (*machine.queries.values(), *machine.draining)
        if stopped.blames(standing)
    ]


def _start(checkpoint: Checkpoint | None) -> int:
    """The first record after a checkpoint."""
    return 0 if checkpoint is None else int(checkpoint.header["journal"])


def failure_record(name: str, revision: int, failure: str) -> dict[str, Any]:
    """The record that says that a query is taken out."""
    return {"do": "fail", "name": name, "revision": revision, "failure": failure}


def write_failure(journal: Journal, name: str, revision: int, failure: str) -> None:
    """Record durably that a query is taken out.

    If the disk is full, this is found again after a restart.
    """
    with suppress(OSError):
        journal.append(failure_record(name, revision, failure))
        journal.sync()


def _failed(checkpoint: Checkpoint | None, journal: Journal) -> dict[tuple[int, str], str]:
    """(Revision, name) → failure of the queries that are taken out after a checkpoint."""
    return {
        (record.says["revision"], record.says["name"]): record.says["failure"]
        for record in journal.read(_start(checkpoint))
        if record.says["do"] == "fail"
    }


def _replay(
    machine: Machine,
    checkpoint: Checkpoint | None,
    journal: Journal,
    failed: Mapping[tuple[int, str], str],
    removed: Callable[[Machine], None],
    reached: Callable[[int], None],
) -> None:
    start, first = _start(checkpoint), _start(checkpoint)
    waiting: dict[int, list[tuple[str, frozenset[int]]]] = {}
    if checkpoint is not None:
        saved = checkpoint.header["machine"]
        waiting = machine.restore(upgraded(saved), checkpoint.run, failed)
        if "version" not in saved:
            machine.divide_all()
        again = [feed.again_from for feed in machine.feeds.values()]
        first = min([start, *waiting, *(record for record in again if record is not None)])
    for record in journal.read(first):
        reached(record.number)
        try:
            if record.number >= start:
                apply(machine, record, failed)
                if record.says["do"] in ("remove", "drained"):
                    removed(machine)
            else:
                _apply_again(machine, record, waiting.get(record.number, ()))
        except (SpaseqError, Problem, KeyError, TypeError, ValueError) as error:
            raise StateError(
                f"record {record.number} of the journal cannot be applied: {error}"
            ) from error


def upgraded(saved: Mapping[str, Any]) -> Mapping[str, Any]:
    """The state of a machine in the current version, from that or the first one.

    Raises:
        StateError: if it is of a later version.
    """
    version = saved.get("version", 1)
    if version == STATE_VERSION:
        return saved
    if version != 1:
        raise StateError(
            f"the state is of version {version}, and this spaseq reads versions up to "
            f"{STATE_VERSION}: use the spaseq that wrote it"
        )
    runs = [[*[*run, {}][:4], number] for number, run in enumerate(saved["runs"])]
    homes = {json.dumps(options): number for options, *_, number in runs}

    def standing(data: Sequence[Any]) -> list[Any]:
        """A query, with its run and the stream that it registers."""
        (query,) = Definition.from_dict(data[0]).compile().queries
        return [*data, homes.get(json.dumps(data[4]), -1), query.plan.registers_stream]

    return {
        **saved,
        "version": STATE_VERSION,
        "queries": [standing(data) for data in saved["queries"]],
        "draining": [[record, standing(data)] for record, data in saved["draining"]],
        "runs": runs,
        "streams": [
            {**stream, "reached": None, "domain": saved["domain"], "counts": [*stream["counts"], 0]}
            for stream in saved["streams"]
        ],
        "made": len(saved["streams"]),
    }


def _apply_again(
    machine: Machine, record: Record, waiting: Sequence[tuple[str, frozenset[int]]]
) -> None:
    """Read a record before the checkpoint again, for its events that waited and for open events."""
    says = record.says
    if says["do"] in ("chunk", "quiet", "end"):
        name = says["feed"]
        again = machine.feeds[name].again_from if name in machine.feeds else None
        if again is not None and record.number >= again:
            only = frozenset[int]().union(*(numbers for _, numbers in waiting))
            chunk = chunk_of(says, record.body) if says["do"] == "chunk" else None
            machine.feed_again(says["do"], name, chunk, record.number, only)
        return
    for iri, numbers in waiting:
        body = Body.of(says, record.body)
        machine.take_again(machine.streams[iri], body, record.number, numbers)


def apply(machine: Machine, record: Record, failed: Mapping[tuple[int, str], str]) -> None:
    """Execute a record."""
    says: Mapping[str, Any] = record.says
    match says["do"]:
        case "events":
            stream = machine.streams[says["stream"]]
            body = Body.of(says, record.body)
            machine.take(stream, machine.read(stream, body), record.number, body)
        case "feed":
            machine.add_feed(FeedSettings(*says["settings"]))
        case "chunk":
            chunk = chunk_of(says, record.body)
            machine.take_chunk(says["feed"], chunk, record.number, says.get("arrived", 0))
        case "quiet":
            last = machine.quiet(says["feed"])
            machine.take_last(says["feed"], last, record.number, says.get("arrived", 0))
        case "end":
            machine.end_feed(says["feed"], record.number, says.get("arrived", 0))
        case "watermark":
            machine.promise(machine.streams[says["stream"]], says["micros"], says["domain"])
        case "idle":
            machine.idle(machine.streams[says["stream"]])
        case "query":
            definition = Definition.from_dict(says["definition"])
            failure = failed.get((record.number, definition.name))
            if failure is not None:
                machine.put_failed(definition, record.number, failure, says["state"])
            else:
                machine.put_query(definition, definition.compile(), says["state"], record.number)
        case "queries":
            running = []
            for definition in map(Definition.from_dict, says["definitions"]):
                failure = failed.get((record.number, definition.name))
                if failure is None:
                    running.append(definition)
                else:
                    machine.put_failed(definition, record.number, failure)
            if running:
                machine.begin_queries(running, compile_all(running), record.number)
        case "join":
            # The record precedes the change, which may have failed in the same way before.
            with suppress(SpaseqError):
                definition = Definition.from_dict(says["definition"])
                machine.join(machine.needed_runs(definition, definition.compile()))
        case "divide":
            machine.divide_all()
        case "stream-remove":
            machine.remove_stream(machine.streams[says["stream"]])
        case "remove":
            machine.remove_query(
                says["name"], record.number, says.get("drain", False), says.get("until")
            )
        case "drained":
            machine.end_draining(says["record"])
        case "kb":
            graph = KbGraph(record.number + 1, says["file"], "", says["triples"])
            machine.put_kb(says["iri"], graph)
        case "kb-remove":
            machine.remove_kb(says["iri"])
        case "fail":
            pass  # its query was omitted from the beginning
        case other:
            raise StateError(f"record {record.number} of the journal says {other!r}")

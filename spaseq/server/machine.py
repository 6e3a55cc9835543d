"""The state of the server, as a machine: queries, streams, knowledge base, and their runs.

Time belongs to each component of connected streams and runs (`spaseq.server.components`).

The machine changes only by its methods, which the engine calls in the order of the journal
(`spaseq.server.engine`), and uses neither a clock nor random numbers. The same records therefore
lead to the same state, and to the same matches in the same order. Remote graphs of the knowledge
base are the exception: their answers are not in the journal.

A method that raises a `Problem` or an error of the package has changed nothing. An error while
events are matched stops a run: `RunStopped` names the queries to blame, which the engine removes
from the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spaseq.engine.changes import StatePolicy
from spaseq.errors import ChangeError
from spaseq.live.protocols import Chunk
from spaseq.program import Program
from spaseq.rdf.native._terms import Dictionary, EventBatch, Relevance, check
from spaseq.rdf.reorder import connected, horizon
from spaseq.results import Match
from spaseq.server.bodies import Body, BodyReader, ReadBody
from spaseq.server.components import Component, check_kinds
from spaseq.server.feeds import Feed, FeedSettings
from spaseq.server.inputs import Accepted, InputStream, Late
from spaseq.server.kb_graphs import KbGraph, KbGraphs
from spaseq.server.places import QueryPlaces, RunStopped
from spaseq.server.problems import Problem, not_found
from spaseq.server.repeats import Repeats, digest_of
from spaseq.server.run_options import RunSettings, options_of
from spaseq.server.run_set import RunSet, ServerRun, names_of
from spaseq.server.standing import (
    Definition,
    Standing,
    compile_all,
    compile_named,
    refused_by,
    services_of,
)

STATE_VERSION = 2
"""The version of the state: 2 has a time for each component; 1 had one for all streams."""


class Machine(QueryPlaces):
    """The state.

    Args:
        settings: What holds for all queries.
        kb_folder: Where the files of KB graphs are.
        found: Takes each match and its identifier, in order.
    """

    def __init__(self, settings: RunSettings, kb_folder: Path, found: Callable[[Match, str], None]):
        self.found = found
        self.kb = KbGraphs(kb_folder, settings.kb, settings.private)
        self._made_streams = 0
        """The number of streams that there have ever been."""
        self._readers: dict[str, BodyReader] = {}
        self.feeds: dict[str, Feed] = {}
        self.repeats = Repeats()
        self.matched: ServerRun | None = None
        """The run that matches events at the moment."""
        super().__init__(settings, RunSet(settings, self.kb))
        self._unread = Relevance(Dictionary())
        """The dictionary for reading while there is no run."""

    # ------------------------------------------------------------ queries

    def put_query(
        self, definition: Definition, program: Program, state: StatePolicy, revision: int
    ) -> None:
        """Add a query, or replace the query with its name.

        Raises:
            ChangeError, KbError, LimitExceeded: if the run cannot have it.
            Problem: if a KB graph cannot be added.
        """
        name = definition.name
        refused = refused_by(program, definition)
        if refused is not None:
            raise Problem(422, refused, "name")
        options = options_of(definition.entail, definition.limits, self._settings)
        before = self.queries.get(name)
        running = before if before is not None and before.is_running else None
        made = Standing(
            definition, revision, program.stream_names, -1, options,
            registers=program.queries[0].plan.registers_stream,
        )  # fmt: skip
        self.kb.add_services(services_of(program), self.runs.all)
        added = self.kb.add_endpoints(definition.kb, revision, self.runs.all)
        one: ServerRun | None = None
        try:
            if definition.paused:
                if running is not None:
                    self._leave(running, revision, state == "drain")
            else:
                check_kinds(self._components_of(made))
                if running is None:
                    one = self._enter(name, program, made)
                elif running.options != options or self._has_to_move(running, made, state):
                    one = self._move(running, program, made, state)
                else:
                    one = self._replace(running, program, state, revision)
        except BaseException:
            for iri in added:
                self.kb.remove(iri, self.runs.all)
            raise
        for iri in program.streams:
            self._add_stream(iri)
        if one is not None:
            made = replace(made, run=one.serial)
        self._keep(replace(made, born=self._begun(name, revision)))
        if running is not None:
            self._divide(running)

    def begin_queries(
        self, definitions: Sequence[Definition], program: Program, revision: int
    ) -> None:
        """Begin several queries together; no query is running, and their names are unused.

        Raises:
            KbError, LimitExceeded: if the run cannot have them.
            Problem: if a query registers another name than its own.
        """
        names = {definition.name for definition in definitions}
        numbers = {query.plan.name: number for number, query in enumerate(program.queries)}
        other = next((q.plan.name for q in program.queries if q.plan.name not in names), None)
        if other is not None:
            raise Problem(422, f"a query registers the name {other}: use it as its own", "name")
        options = options_of(None, {}, self._settings)
        self.kb.add_services(services_of(program), ())
        for iri in program.streams:
            self._add_stream(iri)
        known = dict(zip(program.names, program.sources, strict=True))
        plans = [program.queries[numbers[definition.name]].plan for definition in definitions]
        groups = connected([{*plan.streams, plan.registers_stream or ""} - {""} for plan in plans])
        for group in groups:
            some = [definitions[number] for number in group]
            one = self.runs.start(options, program if len(groups) == 1 else compile_all(some))
            for number, definition in zip(group, some, strict=True):
                streams = {each.name: each.iri.value for each in known[definition.name].streams}
                self._keep(
                    Standing(
                        definition, revision, streams, revision, options, run=one.serial,
                        registers=plans[number].registers_stream,
                    )
                )  # fmt: skip

    def _enter(self, name: str, program: Program, made: Standing) -> ServerRun:
        """Add a query to a run; returns the run."""
        options = made.options
        self.runs.check_registered(program, options, name)
        bound = self.runs.bound_to(options, made.streams.values(), made.registers)
        one = bound[0] if bound else self.runs.home(options, self._bounds(made))
        if one is None:
            self._components = None
            return self.runs.start(options, program)
        one.run.add(name, program, new_streams=True)
        one.group()
        return one

    def _replace(
        self, standing: Standing, program: Program, state: StatePolicy, record: int
    ) -> ServerRun:
        """Replace a running query by another version with the same options."""
        name, one = standing.definition.name, self._run_of(standing)
        if state == "keep" and one.source(name) == program.sources[0]:
            return one  # the text differs in its form alone
        self.runs.check_registered(program, standing.options, name)
        if state == "drain" and not one.has_begun:
            state = "fresh"
        one.leave_template(standing.definition)
        one.run.replace(name, program, state, new_streams=True)
        one.group()
        if state == "drain":
            self._drain(record, standing, None, one)
        return one

    def _move(
        self, standing: Standing, program: Program, made: Standing, state: StatePolicy
    ) -> ServerRun:
        """Replace a running query by another version with other options."""
        if state == "keep":
            raise ChangeError(
                f"the query {standing.definition.name} has other limits or entailment now, so it "
                "cannot keep its partial matches"
            )
        one = self._enter(standing.definition.name, program, made)
        try:
            self._leave(standing, made.revision, state == "drain")
        except BaseException:
            if len(one.names) > 1:
                one.run.remove(standing.definition.name)
            else:
                self.runs.end(one.serial)
            raise
        return one

    def join(self, serials: Sequence[int]) -> None:
        """Make one run of several ones, after the latest of their times.

        The events that wait for other streams until then are matched first.

        Raises:
            RunStopped: if a run stops.
            KbError, LimitExceeded, ChangeError: if a run cannot have the queries of another one.
        """
        runs = [one for serial in serials if (one := self.runs.of(serial)) is not None]
        if not runs:
            return  # a query that failed later is left out when the journal is read again
        main = max(runs, key=lambda one: (one.run.clock.closed is not None, one.run.clock.closed))
        closed = main.run.clock.closed
        if closed is not None:
            for component in self._components_of_runs(runs):
                self._match(component, closed + 1)  # no timestamp is open in one of the runs only
        for one in runs:
            if one is not main:
                homes = {(one.serial, name): main.serial for name in one.names}
                self.runs.join(main, one)
                main.uses += one.uses
                main.registers += one.registers
                self._move_standings(homes)
        main.group()

    def remove_query(
        self, name: str, record: int, drain: bool = False, until: float | None = None
    ) -> None:
        """Remove a query with its partial matches, and its versions that drain.

        Args:
            name: The query.
            record: The record of the journal that says so.
            drain: Whether the query finishes its partial matches first; its versions that drain
                already continue.
            until: When it has to have drained, in seconds since 1970.

        Raises:
            Problem: if there is no such query.
            ChangeError: if another one reads the stream that it registers, or it cannot drain.
        """
        standing = self.latest(name)
        if drain and standing.draining:
            raise ChangeError(f"the query {name} drains already")
        if not standing.draining:
            if standing.is_running:
                self._leave(standing, record, drain, until)
            del self.queries[name]
            self._count(standing, -1)
            self._divide(standing)
        if not drain:
            for number, version in self.draining.items():
                if version.definition.name == name:
                    self.end_draining(number)

    def put_failed(
        self, definition: Definition, revision: int, failure: str, state: StatePolicy = "fresh"
    ) -> None:
        """Add or replace a query that is known to have stopped the run."""
        before = self.queries.get(definition.name)
        if before is not None and before.is_running:
            self._leave(before, revision, state == "drain")
        program = definition.compile()
        options = options_of(definition.entail, definition.limits, self._settings)
        born = self._begun(definition.name, revision)
        self._keep(Standing(definition, revision, program.stream_names, born, options, failure))
        if before is not None:
            self._divide(before)
        # Its events are in the journal, including those of streams that no other query reads.
        for iri in program.streams:
            self._add_stream(iri)

    def fail_query(self, name: str, failure: str) -> None:
        """Take a query out of the run that it has stopped; its definition remains."""
        standing = self.query(name)
        if standing.is_running:
            self._take_out(standing.run, name)
        self._keep(replace(standing, failure=failure))
        self._divide(standing)

    # ------------------------------------------------------------ draining

    def _leave(
        self, standing: Standing, record: int, drain: bool, until: float | None = None
    ) -> None:
        """Take a query out of its run, immediately or when it has drained."""
        name, one = standing.definition.name, self._run_of(standing)
        if not drain or not one.has_begun:
            self._take_out(standing.run, name)
            return
        one.leave_template(standing.definition)
        one.run.remove(name, drain=True)
        self._drain(record, standing, until, one)

    def drained(self, now: float) -> list[int]:
        """The records of the versions that have drained, or whose time for draining is over.

        Args:
            now: Seconds since 1970.
        """
        return self.draining.over({one.serial: one.run for one in self.runs}, now)

    def end_draining(self, record: int) -> None:
        """End a draining version of a query, if it still exists."""
        version = self.draining.take(record)
        one = None if version is None else self.runs.of(version.run)
        if version is not None and one is not None:
            # The run ends drained versions before any other change.
            one.run.finish(close=False)
            if version.draining in one.run.draining:
                self._take_out(version.run, version.draining)
            self._count(version, -1)
            self._divide(version)

    def _take_out(self, serial: int, name: str) -> None:
        """Take a query out of its run; `name` is its name there."""
        one = self.runs.of(serial)
        assert one is not None
        if self.draining:
            # The run ends drained versions before any other change, which may leave one query.
            one.run.finish(close=False)
        if len(one.names) > 1:
            if name in self.queries:
                one.leave_template(self.queries[name].definition, keeps=False)
            one.run.remove(name)
            return
        # A run has at least one query. Without a run, no event waits, and time begins anew.
        self.runs.end(serial)
        self._components = None

    # ------------------------------------------------------------ knowledge base

    def put_kb(self, iri: str, graph: KbGraph) -> None:
        """Add a KB graph or replace it; see `KbGraphs.put`."""
        self.kb.put(iri, graph, self.runs.all)

    def remove_kb(self, iri: str) -> None:
        """Remove a KB graph.

        Raises:
            Problem: if there is no such graph, or a query names it.
        """
        if iri not in self.kb.graphs:
            raise not_found(f"there is no KB graph <{iri}>")
        for name, standing in self.queries.items():
            if standing.is_running and iri in self._kb_graphs(standing):
                raise Problem(409, f"the query {name} reads the KB graph <{iri}>", "in-use")
        self.kb.remove(iri, self.runs.all)

    def _kb_graphs(self, standing: Standing) -> set[str]:
        """The KB graphs that a running query names."""
        one = self._run_of(standing)
        return {kb.iri.value for kb in one.source(standing.definition.name).kbs}

    # ------------------------------------------------------------ streams

    def _add_stream(self, iri: str) -> InputStream:
        stream = self.streams.get(iri)
        if stream is None:
            reading = self._settings.reading
            stream = InputStream(iri, self._made_streams, reading.lateness or 0)
            self._made_streams += 1
            self.streams[iri] = stream
            self._readers[iri] = BodyReader(iri, reading, stream.domain)
        return stream

    def remove_stream(self, stream: InputStream) -> None:
        """Forget a stream that no query reads.

        Raises:
            Problem: if a query reads it, or a source feeds it.
        """
        iri = stream.iri
        for name, standing in self.listed.items():
            if iri in standing.connects:
                raise Problem(409, f"the query {name} reads the stream <{iri}>", "in-use")
        for name, feed in self.feeds.items():
            if feed.settings.stream == iri:
                raise Problem(409, f"the source of {name} feeds the stream <{iri}>", "in-use")
        del self.streams[iri], self._readers[iri]

    def read(self, stream: InputStream, body: Body) -> ReadBody:
        """The events of a body.

        Raises:
            InputError, Problem: if it is malformed.
        """
        return self._readers[stream.iri].read(body, self._relevance(stream))

    def _relevance(self, stream: InputStream) -> Relevance:
        """The dictionary for events of a stream, before they are read."""
        component = self.component(stream)
        if component is None:
            return self._unread
        component.share_kind(stream)
        # Each run copies the events with its own term numbers; those of the first run are in use.
        return next(one.run.relevance for one in component.runs if stream.iri in one.streams)

    def take(
        self, stream: InputStream, read: ReadBody, record: int, body: Body | None = None
    ) -> Accepted:
        """Let the events of a body wait, and match those whose time has come.

        Args:
            stream: The stream.
            read: The events.
            record: The record of the journal that has them.
            body: The body; None: one that cannot be repeated, and arrived long ago.

        Raises:
            RunStopped: if the run stops.
        """
        stream.rejected += read.rejected
        batches = [] if read.batch is None else [read.batch]
        arrived = 0 if body is None else body.arrived
        refused = self._take(stream, batches, record, arrived)
        count = sum(map(len, batches)) - len(refused)
        taken = Accepted(count, refused, read.rejected, read.errors)
        if body is not None and body.key:
            self.repeats.add(body.key, self.digest(stream.iri, body), taken.to_dict(record))
        return taken

    def digest(self, name: str, body: Body) -> str:
        """What identifies the content of a body of a stream; empty, if it cannot be repeated."""
        return digest_of(self.stream(name).iri, body.media_type, body.data) if body.key else ""

    def _take(
        self, stream: InputStream, batches: Sequence[EventBatch], record: int, arrived: int = 0
    ) -> list[Late]:
        """Let the events of a record wait, and match those whose time has come."""
        stream.is_idle = False
        component = self.component(stream)
        if component is None:
            # There is no query to see the events, and time has not begun.
            stream.events += sum(map(len, batches))
            stream.begin_anew()
            return []
        refused: list[Late] = []
        first, most = 0, self._settings.max_ahead
        for batch in batches:
            limit = None
            if most is not None and len(batch):
                limit = horizon(component.streams, most, batch.time(0).domain, arrived)
            refused += stream.take(batch, record, first, limit, arrived)
            first += len(batch)
        if batches:
            self._release(component)
        return refused

    def take_again(
        self, stream: InputStream, body: Body, record: int, only: frozenset[int]
    ) -> None:
        """Restore events that waited at a checkpoint."""
        batch = self.read(stream, body).batch
        assert batch is not None
        stream.wait_again(batch, record, 0, only)

    # ------------------------------------------------------------ feeds

    def add_feed(self, settings: FeedSettings) -> None:
        """Let a source feed a stream from now on."""
        domain = self.streams[settings.stream].domain
        self.feeds[settings.name] = Feed(settings, self._settings.reading, domain)

    def list_feed(self, settings: FeedSettings) -> None:
        """List a feed that reads nothing here; for `recovery.outlined`."""
        if settings.stream not in self.streams:
            self._add_stream(settings.stream)
        self.add_feed(settings)

    def take_chunk(self, name: str, chunk: Chunk, record: int, arrived: int = 0) -> list[Late]:
        """Decode a chunk of a feed, and match the events whose time has come.

        Raises:
            RunStopped: if the run stops.
        """
        feed = self.feeds[name]
        stream, rejected = self.streams[feed.settings.stream], feed.rejected
        batches = feed.take(chunk, record, self._relevance(stream))
        stream.rejected += feed.rejected - rejected
        return self._take(stream, batches, record, arrived)

    def quiet(self, name: str) -> list[EventBatch]:
        """The open event of a quiet feed, if it is complete, for `take_last`."""
        return self.feeds[name].quiet(self._relevance(self._fed(name)))

    def _fed(self, name: str) -> InputStream:
        """The stream of a feed."""
        return self.streams[self.feeds[name].settings.stream]

    def take_last(
        self, name: str, batches: Sequence[EventBatch], record: int, arrived: int = 0
    ) -> list[Late]:
        """Take the open event of a quiet feed.

        Raises:
            RunStopped: if the run stops.
        """
        self.feeds[name].has_been_quiet(record)
        return self._take(self._fed(name), batches, record, arrived)

    def end_feed(self, name: str, record: int, arrived: int = 0) -> list[Late]:
        """Take the last events of a source that has ended, and let the others not wait for it.

        Raises:
            RunStopped: if the run stops.
        """
        feed, stream = self.feeds[name], self._fed(name)
        refused = self._take(stream, feed.end(record, self._relevance(stream)), record, arrived)
        self.idle(stream)
        return refused

    def feed_again(
        self, what: str, name: str, chunk: Chunk | None, record: int, only: frozenset[int]
    ) -> None:
        """Restore events of a feed that waited at a checkpoint.

        Args:
            what: What the record is: `chunk`, `quiet` or `end`.
            name: The feed.
            chunk: The chunk; None for the others.
            record: The record.
            only: The numbers of the events in it.
        """
        feed, stream, first = self.feeds[name], self._fed(name), 0
        relevance = self._relevance(stream)
        if chunk is not None:
            batches = feed.take_again(chunk, record, relevance)
        elif what == "quiet":
            batches = feed.quiet(relevance)
            feed.has_been_quiet(record)
        else:
            batches = feed.end(record, relevance)
        for batch in batches:
            stream.wait_again(batch, record, first, only)
            first += len(batch)

    def first_needed(self) -> int | None:
        """The first record that a checkpoint made now needs; None: none of those there are."""
        needed = [stream.first_record for stream in self.streams.values()]
        needed += [
            feed.first_record(self._fed(name).first_record) for name, feed in self.feeds.items()
        ]
        return min((record for record in needed if record is not None), default=None)

    # ------------------------------------------------------------ time

    def promise(self, stream: InputStream, micros: int, domain: str) -> None:
        """Record that no event of a stream comes before a time.

        Raises:
            Problem: for a time of another kind than the times of the events.
        """
        self.check_domain(stream, domain)
        stream.is_idle = False
        component = self.component(stream)
        if component is not None:
            stream.domain.conflict(domain, f"the watermark of <{stream.iri}>")
            stream.promise(micros)
            self._release(component)

    def check_domain(self, stream: InputStream, domain: str) -> None:
        """Refuse a time of another kind than those of the events.

        Raises:
            Problem: with both kinds.
        """
        component = self.component(stream)
        if component is not None:
            component.share_kind(stream)
            if stream.domain.kind and domain != stream.domain.kind:
                raise Problem(422, stream.domain.conflict(domain, "the watermark"), "time")

    def idle(self, stream: InputStream) -> None:
        """Stop a stream from holding back the others until its next event."""
        stream.is_idle = True
        component = self.component(stream)
        if component is not None:
            self._release(component)

    # ------------------------------------------------------------ matching

    def _release(self, component: Component) -> None:
        """Match the events whose time has come."""
        bound = component.bound
        if bound is not None:
            self._match(component, bound)

    def _match(self, component: Component, bound: int) -> None:
        """Match the events up to a time, and close the time before it."""
        released = {stream.iri: stream.release(bound) for stream in component.streams}
        for one in component.runs:
            self.matched = one
            try:
                self._emit(one.matches(self.streams, released, bound))
            except Exception as error:
                self._emit(one.run.unreturned)
                blamed = one.run.failing or getattr(error, "name", None)
                names = [name for name in one.names if name == blamed] or one.suspects
                raise RunStopped(one.serial, names, error) from error
        component.set_floors()

    def _emit(self, found: Iterable[Match]) -> None:
        for match in found:
            check()
            self.found(match, match.id)

    # ------------------------------------------------------------ checkpoints

    def state(self) -> dict[str, Any]:
        """Everything except the states of the runs, as data for `restore`."""
        return {
            "version": STATE_VERSION,
            "queries": [standing.state() for standing in self.queries.values()],
            "draining": self.draining.state(),
            "runs": self.runs.state(),
            "streams": [stream.state() for stream in self.streams.values()],
            "feeds": [f.state(self._fed(n).first_record) for n, f in self.feeds.items()],
            "kb": self.kb.state(),
            "made": self._made_streams,
            "repeats": self.repeats.state(),
        }

    def restore(
        self, saved: Mapping[str, Any], blob: bytes, failed: Mapping[tuple[int, str], str]
    ) -> dict[int, list[tuple[str, frozenset[int]]]]:
        """Return to a checkpoint.

        Args:
            saved: What `state` returned.
            blob: What `RunSet.save` returned.
            failed: (Revision, name) of a query → the failure that took it out later.

        Returns:
            Record → the streams and indexes of events that wait.
        """
        waiting = self.outline(saved)
        self._resume(saved["runs"], blob)
        for name, standing in list(self.queries.items()):
            failure = failed.get((standing.revision, name))
            if failure is not None and standing.is_running:
                self.fail_query(name, failure)
        for record, version in self.draining.items():
            if (version.revision, version.definition.name) in failed:
                self.end_draining(record)
        return waiting

    def outline(self, saved: Mapping[str, Any]) -> dict[int, list[tuple[str, frozenset[int]]]]:
        """Return to a checkpoint without its runs; see `restore`."""
        for data in saved["queries"]:
            standing = Standing.restored(data)
            self.queries[standing.definition.name] = standing
        self.draining.restore(saved["draining"])
        self.kb.restore(saved["kb"])
        self.repeats.restore(saved.get("repeats", ()))
        waiting: dict[int, list[tuple[str, frozenset[int]]]] = {}
        for data in saved["streams"]:
            self._made_streams = data["number"]
            stream = self._add_stream(data["iri"])
            for record, indexes in stream.restore(data).items():
                waiting.setdefault(record, []).append((stream.iri, indexes))
        self._made_streams = saved["made"]
        for data in saved["feeds"]:
            feed = Feed.restored(data, self._settings.reading, self.streams)
            self.feeds[feed.settings.name] = feed
        return waiting

    def _resume(self, saved: Sequence[Any], blob: bytes) -> None:
        """Resume the runs of a checkpoint."""
        standings = [s for s in (*self.queries.values(), *self.draining) if s.is_running]
        known: dict[int, dict[str, Definition]] = {}
        for standing in standings:
            known.setdefault(standing.run, {})[standing.name_in_run] = standing.definition
        programs = [
            compile_named((name, (left | known.get(serial, {}))[name]) for name in names)
            for serial, names, left in names_of(saved)
        ]
        numbers = {iri: stream.number for iri, stream in self.streams.items()}
        self.runs.restore(saved, blob, programs, numbers)
        for standing in standings:
            self._count(standing, 1)

    def close(self) -> None:
        """Release the connections of the runs."""
        self.runs.close()

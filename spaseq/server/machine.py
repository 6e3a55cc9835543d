"""The state of the server, as a machine: queries, streams, knowledge base, and their runs.

The machine changes only by its methods, which the engine calls in the order of the journal
(`spaseq.server.engine`), and uses neither a clock nor random numbers. The same records therefore
lead to the same state, and to the same matches in the same order. Remote graphs of the knowledge
base are the exception: their answers are not in the journal.

A method that raises a `Problem` or an error of the package has changed nothing. An error while
events are matched stops a run: `RunStopped` names the queries to blame, which the engine removes
from the run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spaseq.engine.changes import StatePolicy
from spaseq.errors import ChangeError
from spaseq.io.read_options import TimeDomain
from spaseq.live.protocols import Chunk
from spaseq.program import Program
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._dictionary import Dictionary
from spaseq.rdf._relevance import Relevance
from spaseq.rdf.time import from_micros, json_value
from spaseq.records import dataclass
from spaseq.results import Match
from spaseq.runs import Run
from spaseq.server.bodies import Body, BodyReader, ReadBody
from spaseq.server.draining import DrainingVersions
from spaseq.server.feeds import Feed, FeedSettings
from spaseq.server.inputs import InputStream, Late, bound_of, holder_of
from spaseq.server.kb_graphs import KbGraph, KbGraphs
from spaseq.server.problems import Problem, not_found
from spaseq.server.run_options import RunOptions, RunSettings, options_of
from spaseq.server.run_set import RunSet, ServerRun, names_of
from spaseq.server.standing import Definition, Standing, compile_named, refused_by, services_of


class RunStopped(Exception):
    """A run stopped in the middle of an event.

    Args:
        options: The options of its queries.
        names: The names in the run of the queries to blame; all, if it is not known which.
        error: What happened.
    """

    def __init__(self, options: RunOptions, names: Collection[str], error: Exception):
        super().__init__(str(error))
        self.options = options
        self.names = names
        self.error = error

    def blames(self, standing: Standing) -> bool:
        """Whether a query is to blame."""
        own = standing.draining or standing.definition.name
        return standing.is_running and standing.options == self.options and own in self.names


@dataclass(frozen=True, slots=True)
class Accepted:
    """The outcome of a body of events."""

    accepted: int
    late: list[Late]
    rejected: int
    errors: list[str]


class Machine:
    """The state.

    Args:
        settings: What holds for all queries.
        kb_folder: Where the files of KB graphs are.
        found: Takes each match and its identifier, in order.
    """

    def __init__(self, settings: RunSettings, kb_folder: Path, found: Callable[[Match, str], None]):
        self._settings = settings
        self.found = found
        self.queries: dict[str, Standing] = {}
        self.draining = DrainingVersions()
        self.streams: dict[str, InputStream] = {}
        self.kb = KbGraphs(kb_folder, settings.kb, settings.private)
        self.domain = TimeDomain()
        self._readers: dict[str, BodyReader] = {}
        self.feeds: dict[str, Feed] = {}
        self.runs = RunSet(settings, self.kb)
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
        self.kb.add_services(services_of(program), self.runs.all)
        added = self.kb.add_endpoints(definition.kb, revision, self.runs.all)
        try:
            if definition.paused:
                if running is not None:
                    self._leave(running, revision, state == "drain")
            elif running is None:
                self._enter(name, program, options)
            elif running.options != options:
                self._move(running, program, options, state, revision)
            else:
                self._replace(running, program, state, revision)
        except BaseException:
            for iri in added:
                self.kb.remove(iri, self.runs.all)
            raise
        born = self._begun(name, revision)
        self.queries[name] = Standing(definition, revision, program.stream_names, born, options)
        for iri in program.streams:
            self._add_stream(iri)

    def _begun(self, name: str, revision: int) -> int:
        """The record that registered the query with a name, or its version that still drains."""
        born = self.born(name)
        return revision if born is None else born

    def born(self, name: str) -> int | None:
        """The record that registered the query with a name; None if there is none."""
        standing = self.queries.get(name)
        if standing is not None:
            return standing.born
        return next((version.born for version in self.draining.of(name)), None)

    def begin_queries(
        self, definitions: Sequence[Definition], program: Program, revision: int
    ) -> None:
        """Begin several queries together; no query is running, and their names are unused.

        Raises:
            KbError, LimitExceeded: if the run cannot have them.
            Problem: if a query registers another name than its own.
        """
        names = {definition.name for definition in definitions}
        other = next((q.plan.name for q in program.queries if q.plan.name not in names), None)
        if other is not None:
            raise Problem(422, f"a query registers the name {other}: use it as its own", "name")
        options = options_of(None, {}, self._settings)
        self.kb.add_services(services_of(program), ())
        self.runs.start(options, program)
        known = dict(zip(program.names, program.sources, strict=True))
        for definition in definitions:
            streams = {one.name: one.iri.value for one in known[definition.name].streams}
            standing = Standing(definition, revision, streams, revision, options)
            self.queries[definition.name] = standing
        for iri in program.streams:
            self._add_stream(iri)

    def _enter(self, name: str, program: Program, options: RunOptions) -> None:
        """Add a query to the run of its options."""
        self.runs.check_registered(program, options, name)
        one = self.runs.of(options)
        if one is None:
            self.runs.start(options, program)
        else:
            one.run.add(name, program, new_streams=True)
            one.group()

    def _replace(
        self, standing: Standing, program: Program, state: StatePolicy, record: int
    ) -> None:
        """Replace a running query by another version with the same options."""
        name, one = standing.definition.name, self._run_of(standing)
        if state == "keep" and one.source(name) == program.sources[0]:
            return  # the text differs in its form alone
        self.runs.check_registered(program, standing.options, name)
        if state == "drain" and not one.has_begun:
            state = "fresh"
        one.leave_template(standing.definition)
        one.run.replace(name, program, state, new_streams=True)
        one.group()
        if state == "drain":
            self.draining.add(record, standing, None, one.run)

    def _move(
        self,
        standing: Standing,
        program: Program,
        options: RunOptions,
        state: StatePolicy,
        record: int,
    ) -> None:
        """Replace a running query by another version with other options."""
        if state == "keep":
            raise ChangeError(
                f"the query {standing.definition.name} has other limits or entailment now, so it "
                "cannot keep its partial matches"
            )
        self._enter(standing.definition.name, program, options)
        try:
            self._leave(standing, record, state == "drain")
        except BaseException:
            self._take_out(options, standing.definition.name)
            raise

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
        self.queries[definition.name] = Standing(
            definition, revision, program.stream_names, born, options, failure
        )
        # Its events are in the journal, including those of streams that no other query reads.
        for iri in program.streams:
            self._add_stream(iri)

    def fail_query(self, name: str, failure: str) -> None:
        """Take a query out of the run that it has stopped; its definition remains."""
        standing = self.query(name)
        if standing.is_running:
            self._take_out(standing.options, name)
        self.queries[name] = replace(standing, failure=failure)

    # ------------------------------------------------------------ draining

    def _run_of(self, standing: Standing) -> ServerRun:
        """The run of a query that is running or drains."""
        one = self.runs.of(standing.options)
        assert one is not None
        return one

    def _leave(
        self, standing: Standing, record: int, drain: bool, until: float | None = None
    ) -> None:
        """Take a query out of its run, immediately or when it has drained."""
        name, one = standing.definition.name, self._run_of(standing)
        if not drain or not one.has_begun:
            self._take_out(standing.options, name)
            return
        one.leave_template(standing.definition)
        one.run.remove(name, drain=True)
        self.draining.add(record, standing, until, one.run)

    def drained(self, now: float) -> list[int]:
        """The records of the versions that have drained, or whose time for draining is over.

        Args:
            now: Seconds since 1970.
        """
        return self.draining.over({one.options: one.run for one in self.runs}, now)

    def end_draining(self, record: int) -> None:
        """End a draining version of a query, if it still exists."""
        version = self.draining.take(record)
        one = None if version is None else self.runs.of(version.options)
        if version is not None and one is not None:
            # The run ends drained versions before any other change.
            one.run.finish(close=False)
            if version.draining in one.run.draining:
                self._take_out(version.options, version.draining)

    @property
    def listed(self) -> dict[str, Standing]:
        """The queries by name; for a removed query, its last draining version."""
        return {version.definition.name: version for version in self.draining} | self.queries

    def latest(self, name: str) -> Standing:
        """The query with a name; if there is none, its last draining version.

        Raises:
            Problem: if there is neither.
        """
        standing = self.queries.get(name)
        if standing is not None:
            return standing
        versions = self.draining.of(name)
        return versions[-1] if versions else self.query(name)

    def _take_out(self, options: RunOptions, name: str) -> None:
        """Take a query out of its run; `name` is its name there."""
        one = self.runs.of(options)
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
        self.runs.end(options)
        if not self.runs:
            self.domain.kind = self.domain.origin = ""
            for stream in self.streams.values():
                stream.begin_anew()

    def query(self, name: str) -> Standing:
        """The query of a name.

        Raises:
            Problem: if there is none.
        """
        standing = self.queries.get(name)
        if standing is None:
            raise not_found(f"there is no query {name}")
        return standing

    def running(self, name: str) -> tuple[Run, int]:
        """The run that has the query of a name, and its number there; see `latest`.

        Raises:
            Problem: if it is not running.
        """
        standing = self.latest(name)
        one = self.runs.of(standing.options)
        if not standing.is_running or one is None:
            raise Problem(409, f"the query {name} is {standing.status}", "not-running")
        number = one.number(standing.draining or name)
        if number is None:
            raise Problem(409, f"the query {name} has drained", "not-running")
        return one.run, number

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
            stream = InputStream(iri, len(self.streams), reading.lateness or 0)
            self.streams[iri] = stream
            self._readers[iri] = BodyReader(iri, reading, self.domain)
        return stream

    def stream(self, name: str) -> InputStream:
        """The stream with an IRI, or with a name in the queries.

        Raises:
            Problem: if there is none, or the queries use the name for several streams.
        """
        if name in self.streams:
            return self.streams[name]
        iris = self.names().get(name, [])
        if not iris:
            raise not_found(f"no query reads the stream {name}")
        if len(iris) > 1:
            raise Problem(409, f"the queries use the name {name} for several streams", "ambiguous")
        return self.streams[iris[0]]

    def names(self) -> dict[str, list[str]]:
        """Name of a stream in the queries → its IRIs."""
        found: dict[str, dict[str, None]] = {}
        for standing in (*self.queries.values(), *self.draining):
            for name, iri in standing.streams.items():
                if iri in self.streams:
                    found.setdefault(name, {})[iri] = None
        return {name: list(iris) for name, iris in found.items()}

    def _active(self) -> list[InputStream]:
        """The streams that queries read."""
        return [self.streams[iri] for iri in self.runs.streams]

    def readers_of(self, iri: str) -> list[str]:
        """The queries that read a stream."""
        plans = (plan for one in self.runs for plan in one.plans)
        return list(dict.fromkeys(plan.shown for plan in plans if iri in plan.streams))

    @property
    def holder(self) -> InputStream | None:
        """The stream that holds back the others, if one does."""
        return holder_of(self._active())

    def read(self, stream: InputStream, body: Body) -> ReadBody:
        """The events of a body.

        Raises:
            InputError, Problem: if it is malformed.
        """
        return self._readers[stream.iri].read(body, self._relevance)

    @property
    def _relevance(self) -> Relevance:
        # Each run copies the events with its own term numbers; those of the first run are in use.
        return next((run.relevance for run in self.runs.all), self._unread)

    def take(self, stream: InputStream, read: ReadBody, record: int) -> Accepted:
        """Let the events of a body wait, and match those whose time has come.

        Raises:
            RunStopped: if the run stops.
        """
        stream.rejected += read.rejected
        batches = [] if read.batch is None else [read.batch]
        late = self._take(stream, batches, record)
        return Accepted(sum(map(len, batches)) - len(late), late, read.rejected, read.errors)

    def _take(self, stream: InputStream, batches: Sequence[EventBatch], record: int) -> list[Late]:
        """Let the events of a record wait, and match those whose time has come."""
        stream.is_idle = False
        if not self.runs:
            # There is no query to see the events, and time has not begun.
            stream.events += sum(map(len, batches))
            self.domain.kind = self.domain.origin = ""
            return []
        late: list[Late] = []
        first = 0
        for batch in batches:
            late += stream.take(batch, record, self.runs.closed, first)
            first += len(batch)
        if batches:
            self._release()
        return late

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
        self.feeds[settings.name] = Feed(settings, self._settings.reading, self.domain)

    def take_chunk(self, name: str, chunk: Chunk, record: int) -> list[Late]:
        """Decode a chunk of a feed, and match the events whose time has come.

        Raises:
            RunStopped: if the run stops.
        """
        feed = self.feeds[name]
        stream, rejected = self.streams[feed.settings.stream], feed.rejected
        batches = feed.take(chunk, record, self._relevance)
        stream.rejected += feed.rejected - rejected
        return self._take(stream, batches, record)

    def quiet(self, name: str) -> list[EventBatch]:
        """The open event of a quiet feed, if it is complete, for `take_last`."""
        return self.feeds[name].quiet(self._relevance)

    def take_last(self, name: str, batches: Sequence[EventBatch], record: int) -> list[Late]:
        """Take the open event of a quiet feed.

        Raises:
            RunStopped: if the run stops.
        """
        feed = self.feeds[name]
        feed.has_been_quiet(record)
        return self._take(self.streams[feed.settings.stream], batches, record)

    def end_feed(self, name: str, record: int) -> list[Late]:
        """Take the last events of a source that has ended, and let the others not wait for it.

        Raises:
            RunStopped: if the run stops.
        """
        feed = self.feeds[name]
        stream = self.streams[feed.settings.stream]
        late = self._take(stream, feed.end(record, self._relevance), record)
        self.idle(stream)
        return late

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
        feed, first = self.feeds[name], 0
        if chunk is not None:
            batches = feed.take_again(chunk, record, self._relevance)
        elif what == "quiet":
            batches = feed.quiet(self._relevance)
            feed.has_been_quiet(record)
        else:
            batches = feed.end(record, self._relevance)
        for batch in batches:
            self.streams[feed.settings.stream].wait_again(batch, record, first, only)
            first += len(batch)

    def first_needed(self) -> int | None:
        """The first record that a checkpoint made now needs; None: none of those there are."""
        needed = [stream.first_record for stream in self.streams.values()]
        for feed in self.feeds.values():
            needed.append(feed.first_record(self.streams[feed.settings.stream].first_record))
        return min((record for record in needed if record is not None), default=None)

    # ------------------------------------------------------------ time

    def promise(self, stream: InputStream, micros: int, domain: str) -> None:
        """Record that no event of a stream comes before a time.

        Raises:
            Problem: for a time of another kind than the times of the events.
        """
        self.check_domain(domain)
        stream.is_idle = False
        if not self.runs:
            return
        self.domain.conflict(domain, "the watermark")
        stream.promise(micros)
        self._release()

    def check_domain(self, domain: str) -> None:
        """Refuse a time of another kind than those of the events.

        Raises:
            Problem: with both kinds.
        """
        if self.domain.kind and domain != self.domain.kind:
            raise Problem(422, self.domain.conflict(domain, "the watermark"), "time")

    def idle(self, stream: InputStream) -> None:
        """Stop a stream from holding back the others until its next event."""
        stream.is_idle = True
        self._release()

    # ------------------------------------------------------------ matching

    def _release(self) -> None:
        """Match the events whose time has come."""
        streams = self._active()
        for stream in self.streams.values():
            if stream not in streams:
                stream.drop()
        bound = bound_of(streams)
        if bound is None:
            return
        released = {stream.iri: stream.release(bound) for stream in streams}
        for one in self.runs:
            try:
                self._emit(one.matches(self.streams, released, bound))
            except Exception as error:
                self._emit(one.run.unreturned)
                blamed = one.run.failing or getattr(error, "name", None)
                names = [name for name in one.names if name == blamed] or one.suspects
                raise RunStopped(one.options, names, error) from error

    def _emit(self, found: Iterable[Match]) -> None:
        for match in found:
            self.found(match, match.id)

    @property
    def watermark(self) -> Any:
        """The time that the runs have reached, as in matches; None before the first event."""
        closed, domain = self.runs.closed, self.runs.domain
        return None if closed is None or domain is None else json_value(from_micros(closed, domain))

    # ------------------------------------------------------------ checkpoints

    def state(self) -> dict[str, Any]:
        """Everything except the states of the runs, as data for `restore`."""
        return {
            "queries": [standing.state() for standing in self.queries.values()],
            "draining": self.draining.state(),
            "runs": self.runs.state(),
            "streams": [stream.state() for stream in self.streams.values()],
            "feeds": [
                feed.state(self.streams[feed.settings.stream].first_record)
                for feed in self.feeds.values()
            ],
            "kb": self.kb.state(),
            "domain": [self.domain.kind, self.domain.origin],
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
        for data in saved["queries"]:
            standing = Standing.restored(data)
            self.queries[standing.definition.name] = standing
        self.draining.restore(saved["draining"])
        self.kb.restore(saved["kb"])
        self.domain.kind, self.domain.origin = saved["domain"]
        waiting: dict[int, list[tuple[str, frozenset[int]]]] = {}
        for data in saved["streams"]:
            stream = self._add_stream(data["iri"])
            for record, indexes in stream.restore(data).items():
                waiting.setdefault(record, []).append((stream.iri, indexes))
        for data in saved["feeds"]:
            feed = Feed.restored(data, self._settings.reading, self.domain)
            self.feeds[feed.settings.name] = feed
        self._resume(saved["runs"], blob)
        for name, standing in list(self.queries.items()):
            failure = failed.get((standing.revision, name))
            if failure is not None and standing.is_running:
                self.fail_query(name, failure)
        for record, version in self.draining.items():
            if (version.revision, version.definition.name) in failed:
                self.end_draining(record)
        return waiting

    def _resume(self, saved: Sequence[Any], blob: bytes) -> None:
        """Resume the runs of a checkpoint."""
        programs = []
        for options, names, left in names_of(saved):
            known = left | {
                standing.draining or standing.definition.name: standing.definition
                for standing in (*self.queries.values(), *self.draining)
                if standing.options == options
            }
            programs.append(compile_named((name, known[name]) for name in names))
        numbers = {iri: stream.number for iri, stream in self.streams.items()}
        self.runs.restore(saved, blob, programs, numbers)

    def close(self) -> None:
        """Release the connections of the runs."""
        self.runs.close()

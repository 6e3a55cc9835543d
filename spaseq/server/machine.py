"""The state of the server, as a machine: queries, streams, knowledge base, and the run of them.

The machine changes only by its methods, which the engine calls in the order of the journal
(`spaseq.server.engine`), and asks neither the clock nor a random number. So the same records lead
to the same state, and to the same matches in the same order. Remote graphs of the knowledge base
are the exception: what they answer is not in the journal.

A method that raises a `Problem` or an error of the package has changed nothing. An error while
events are matched stops the run: `RunStopped` names the query to blame, which the engine takes out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spaseq.engine.changes import StatePolicy
from spaseq.errors import ChangeError, QueryWarning
from spaseq.io.read_options import ReadOptions, TimeDomain
from spaseq.live.protocols import Chunk
from spaseq.program import Program
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._dictionary import Dictionary
from spaseq.rdf._relevance import Relevance
from spaseq.rdf.time import from_micros, json_value
from spaseq.results import Match
from spaseq.runs import Run
from spaseq.server.bodies import Body, BodyReader, ReadBody
from spaseq.server.draining import DrainingVersions
from spaseq.server.feeds import Feed, FeedSettings
from spaseq.server.inputs import InputStream, Late, bound_of, holder_of
from spaseq.server.kb_graphs import KbGraph, KbGraphs
from spaseq.server.problems import Problem, not_found
from spaseq.server.releasing import matches_up_to
from spaseq.server.standing import Definition, Standing, compile_named, refused_by, services_of


class RunStopped(Exception):
    """The run stopped in the middle of an event.

    Args:
        query: The query to blame; None: not known.
        error: What happened.
    """

    def __init__(self, query: str | None, error: Exception):
        super().__init__(str(error))
        self.query = query
        self.error = error


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What holds for all queries.

    Args:
        reading: How events are read, with the lateness.
        entail: `rdfs` or `owl-ql`.
        limits: The limits of `Program.start`.
        kb: The graphs that are given at the start: IRI → path or URL.
        private: Whether the names of endpoints in queries may have private addresses.
    """

    reading: ReadOptions
    entail: str | None
    limits: Mapping[str, Any]
    kb: Mapping[str, str]
    private: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """What has become of a body of events."""

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
        self.run: Run | None = None
        self._unread = Relevance(Dictionary())
        """What is read while there is no run."""

    # ------------------------------------------------------------ queries

    def put_query(
        self, definition: Definition, program: Program, state: StatePolicy, revision: int
    ) -> None:
        """Add a query, or replace the one of its name.

        Raises:
            ChangeError, KbError, LimitExceeded: if the run cannot have it.
            Problem: if a KB graph cannot be added.
        """
        name = definition.name
        refused = refused_by(program, definition)
        if refused is not None:
            raise Problem(422, refused, "name")
        before = self.queries.get(name)
        running = before is not None and before.is_running
        self.kb.add_services(services_of(program), self.run)
        added = self.kb.add_endpoints(definition.kb, revision, self.run)
        try:
            if definition.paused:
                if running:
                    self._leave(name, revision, state == "drain")
            elif running and state == "keep" and self._is_same(name, program):
                pass  # the text differs in its form alone
            elif running and state == "drain" and self._has_begun:
                self._replace_draining(name, program, revision)
            else:
                self._enter(name, program, state, running)
        except BaseException:
            for iri in added:
                self.kb.remove(iri, self.run)
            raise
        born = self._begun(name, revision)
        self.queries[name] = Standing(definition, revision, program.stream_names, born)
        for iri in program.streams:
            self._add_stream(iri)

    def _begun(self, name: str, revision: int) -> int:
        """The record that registered the query of a name, or its version that still drains."""
        born = self.born(name)
        return revision if born is None else born

    def born(self, name: str) -> int | None:
        """The record that registered the query of a name; None: there is none."""
        standing = self.queries.get(name)
        if standing is not None:
            return standing.born
        return next((version.born for version in self.draining.of(name)), None)

    def begin_queries(
        self, definitions: Sequence[Definition], program: Program, revision: int
    ) -> None:
        """Begin several queries together; there is no running one, and none of their names.

        Raises:
            KbError, LimitExceeded: if the run cannot have them.
            Problem: if a query registers another name than its own.
        """
        names = {definition.name for definition in definitions}
        other = next((q.plan.name for q in program.queries if q.plan.name not in names), None)
        if other is not None:
            raise Problem(422, f"a query registers the name {other}: use it as its own", "name")
        self.kb.add_services(services_of(program), None)
        self.run = self._started(program)
        known = dict(zip(program.names, program.sources, strict=True))
        for definition in definitions:
            streams = {one.name: one.iri.value for one in known[definition.name].streams}
            self.queries[definition.name] = Standing(definition, revision, streams, revision)
        for iri in program.streams:
            self._add_stream(iri)

    def _is_same(self, name: str, program: Program) -> bool:
        """Whether the run has exactly this query already."""
        run = self.run
        if run is None:
            return False
        present = dict(zip(run.program.names, run.program.sources, strict=True))
        return present.get(name) == program.sources[0]

    def _enter(self, name: str, program: Program, state: StatePolicy, running: bool) -> None:
        """Add a query to the run, or replace it there."""
        if self.run is None:
            self.run = self._started(program)
        elif running:
            self.run.replace(name, program, state, new_streams=True)
        else:
            self.run.add(name, program, new_streams=True)

    def _started(self, program: Program) -> Run:
        # Clients look into each query, so none is evaluated with another.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QueryWarning)
            return program.start(
                kb=self.kb.sources(), entail=self._settings.entail, prune=False, share=False,
                **self._settings.limits,
            )  # fmt: skip

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
                self._leave(name, record, drain, until)
            del self.queries[name]
        if not drain:
            for number, version in self.draining.items():
                if version.definition.name == name:
                    self.end_draining(number)

    def put_failed(
        self, definition: Definition, revision: int, failure: str, state: StatePolicy = "fresh"
    ) -> None:
        """Add or replace a query that is known to stop the run."""
        before = self.queries.get(definition.name)
        if before is not None and before.is_running:
            self._leave(definition.name, revision, state == "drain")
        program = definition.compile()
        streams = program.stream_names
        born = self._begun(definition.name, revision)
        self.queries[definition.name] = Standing(definition, revision, streams, born, failure)
        # Its events are in the journal, also those of a stream that no other query reads.
        for iri in program.streams:
            self._add_stream(iri)

    def fail_query(self, name: str, failure: str) -> None:
        """Take a query out of the run that has stopped it; its definition stays."""
        standing = self.query(name)
        if standing.is_running:
            self._take_out(name)
        self.queries[name] = replace(standing, failure=failure)

    # ------------------------------------------------------------ draining

    @property
    def _has_begun(self) -> bool:
        """Whether an event has come, so that a query can have partial matches."""
        return self.run is not None and self.run.clock.closed is not None

    def _leave(self, name: str, record: int, drain: bool, until: float | None = None) -> None:
        """Take a query out of the run, at once or when it has drained."""
        if not drain or not self._has_begun:
            self._take_out(name)
            return
        assert self.run is not None
        standing = self.queries[name]
        self.run.remove(name, drain=True)
        self.draining.add(record, standing, until, self.run)

    def _replace_draining(self, name: str, program: Program, record: int) -> None:
        """Replace a query, whose version before drains."""
        assert self.run is not None
        standing = self.queries[name]
        self.run.replace(name, program, "drain", new_streams=True)
        self.draining.add(record, standing, None, self.run)

    def end_draining(self, record: int) -> None:
        """End a version of a query that drains, if it is still there."""
        version = self.draining.take(record)
        if version is not None and self.run is not None:
            # The run ends what has drained before any other change.
            self.run.finish(close=False)
            if version.draining in self.run.draining:
                self._take_out(version.draining)

    @property
    def listed(self) -> dict[str, Standing]:
        """The queries by name; for a removed one, its last version that drains."""
        return {version.definition.name: version for version in self.draining} | self.queries

    def latest(self, name: str) -> Standing:
        """The query of a name; without one, its last version that drains.

        Raises:
            Problem: if there is neither.
        """
        standing = self.queries.get(name)
        if standing is not None:
            return standing
        versions = self.draining.of(name)
        return versions[-1] if versions else self.query(name)

    def _take_out(self, name: str) -> None:
        run = self.run
        assert run is not None
        if self.draining:
            # The run ends what has drained before any other change, and this may leave one query.
            run.finish(close=False)
        if len(run.program.names) > 1:
            run.remove(name)
            return
        # A run has at least one query. Without any, nothing waits, and time begins anew.
        run.close()
        self.run = None
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
        if not standing.is_running or self.run is None:
            raise Problem(409, f"the query {name} is {standing.status}", "not-running")
        names = [query.plan.name for query in self.run.program.queries]
        own = standing.draining or name
        if own not in names:
            raise Problem(409, f"the query {name} has drained", "not-running")
        return self.run, names.index(own)

    # ------------------------------------------------------------ knowledge base

    def put_kb(self, iri: str, graph: KbGraph) -> None:
        """Add a KB graph or replace it; see `KbGraphs.put`."""
        self.kb.put(iri, graph, self.run)

    def remove_kb(self, iri: str) -> None:
        """Remove a KB graph.

        Raises:
            Problem: if there is no such graph, or a query names it.
        """
        if iri not in self.kb.graphs:
            raise not_found(f"there is no KB graph <{iri}>")
        for name, standing in self.queries.items():
            if standing.is_running and iri in self._kb_graphs(name):
                raise Problem(409, f"the query {name} reads the KB graph <{iri}>", "in-use")
        self.kb.remove(iri, self.run)

    def _kb_graphs(self, name: str) -> set[str]:
        """The KB graphs that a running query names."""
        if self.run is None:
            return set()
        known = dict(zip(self.run.program.names, self.run.program.sources, strict=True))
        return {kb.iri.value for kb in known[name].kbs} if name in known else set()

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
        """The stream of an IRI, or of a name in the queries.

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
        """The streams that queries read, in the order of the run."""
        if self.run is None:
            return []
        read = set(self.run.program.streams)
        return [self.streams[iri] for iri in self.run.clock.streams if iri in read]

    def readers_of(self, iri: str) -> list[str]:
        """The queries that read a stream."""
        if self.run is None:
            return []
        readers = [q.plan.shown for q in self.run.program.queries if iri in q.plan.streams]
        return list(dict.fromkeys(readers))

    @property
    def holder(self) -> InputStream | None:
        """The stream that holds the others back, if one does."""
        return holder_of(self._active())

    def read(self, stream: InputStream, body: Body) -> ReadBody:
        """The events of a body.

        Raises:
            InputError, Problem: if it is malformed.
        """
        return self._readers[stream.iri].read(body, self._relevance)

    @property
    def _relevance(self) -> Relevance:
        return self._unread if self.run is None else self.run.relevance

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
        if self.run is None:
            # No query is there to see the events, and time has not begun.
            stream.events += sum(map(len, batches))
            self.domain.kind = self.domain.origin = ""
            return []
        late: list[Late] = []
        first = 0
        for batch in batches:
            late += stream.take(batch, record, self.run.clock.closed, first)
            first += len(batch)
        if batches:
            self._release()
        return late

    def take_again(
        self, stream: InputStream, body: Body, record: int, only: frozenset[int]
    ) -> None:
        """Let events wait that waited at a checkpoint."""
        batch = self.read(stream, body).batch
        assert batch is not None
        stream.wait_again(batch, record, 0, only)

    # ------------------------------------------------------------ feeds

    def add_feed(self, settings: FeedSettings) -> None:
        """A source feeds a stream from now on."""
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
        """A feed has been quiet for a while: its open event, if it is whole, for `take_last`."""
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
        """A source has ended: take its last events, and let the others not wait for its stream.

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
        """Let events of a feed wait that waited at a checkpoint.

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
        """No event of a stream comes before a time.

        Raises:
            Problem: for another kind of time than that of the events.
        """
        self.check_domain(domain)
        stream.is_idle = False
        if self.run is None:
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
        """A stream does not hold the others back until it speaks again."""
        stream.is_idle = True
        self._release()

    # ------------------------------------------------------------ matching

    def _release(self) -> None:
        """Match the events whose time has come."""
        run, streams = self.run, self._active()
        if run is None:
            return
        for stream in self.streams.values():
            if stream not in streams:
                stream.drop()
        bound = bound_of(streams)
        if bound is None:
            return
        try:
            self._emit(matches_up_to(run, streams, bound))
        except Exception as error:
            self._emit(run.unreturned)
            named = getattr(error, "name", None)
            known = {*self.queries, *self.draining.definitions()}
            blamed = run.failing or (named if named in known else None)
            raise RunStopped(blamed, error) from error

    def _emit(self, found: Iterable[Match]) -> None:
        for match in found:
            self.found(match, match.id)

    @property
    def watermark(self) -> Any:
        """The time that the run has reached, as in matches; None: no event has come."""
        clock = None if self.run is None else self.run.clock
        if clock is None or clock.closed is None or clock.domain is None:
            return None
        return json_value(from_micros(clock.closed, clock.domain))

    # ------------------------------------------------------------ checkpoints

    def state(self) -> dict[str, Any]:
        """All but the run, as data for `restore`."""
        return {
            "queries": [
                [
                    standing.definition.to_dict(),
                    standing.revision,
                    dict(standing.streams),
                    standing.born,
                    standing.failure,
                ]
                for standing in self.queries.values()
            ],
            "draining": self.draining.state(),
            "order": [] if self.run is None else list(self.run.program.names),
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
            blob: What `Run.save` returned; empty if there was no run.
            failed: (Revision, name) of a query → the failure that took it out later.

        Returns:
            Record → the streams and indexes of events that wait.
        """
        for data, *rest in saved["queries"]:
            definition = Definition.from_dict(data)
            self.queries[definition.name] = Standing(definition, *rest)
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
        if blob:
            known = {name: one.definition for name, one in self.queries.items()}
            known |= self.draining.definitions()
            program = compile_named((name, known[name]) for name in saved["order"])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", QueryWarning)
                self.run = program.resume(
                    blob, self.kb.sources(), prune=False, share=False, **self._settings.limits
                )
        for name, standing in list(self.queries.items()):
            failure = failed.get((standing.revision, name))
            if failure is not None and standing.is_running:
                self.fail_query(name, failure)
        for record, version in self.draining.items():
            if (version.revision, version.definition.name) in failed:
                self.end_draining(record)
        return waiting

    def close(self) -> None:
        """Release the connections of the run."""
        if self.run is not None:
            self.run.close()

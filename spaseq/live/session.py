"""Opens the parts of a live run (sources, sink and state), and resumes it.

The state belongs to the queries, the sources, the output and the options that determine the events.
If one of them differs from the stored one, the run is refused with a message about the difference,
because its positions and partial matches would have another meaning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import Any

from spaseq.engine.checkpoint import fingerprints
from spaseq.engine.moved_state import moved
from spaseq.errors import SpaseqError, StateError
from spaseq.io.formats import AUTO, Shape, fitting_format
from spaseq.io.read_options import COLLECTED, ReadOptions, TimeDomain
from spaseq.io.remote_files import is_remote_file
from spaseq.io.source import Source as Reader
from spaseq.live import registry
from spaseq.live.addresses import redacted
from spaseq.live.changed_queries import (
    Continued,
    StatePolicy,
    StoredQueries,
    apart,
    continued,
    listed_fingerprints,
)
from spaseq.live.coordinator import Coordinator, Input, Timing
from spaseq.live.decoders import DocumentDecoder, MessageDecoder
from spaseq.live.file_sink import FileSink
from spaseq.live.late import LateLines
from spaseq.live.opening import opened_source
from spaseq.live.posix import require_posix
from spaseq.live.protocols import (
    AcknowledgingSource,
    OrderingSource,
    Sink,
    Source,
    WaitingSink,
)
from spaseq.live.state import Checkpoint, StateFolder
from spaseq.live.status import Status
from spaseq.live.streams import Decoder, LateEvent, Stream
from spaseq.parser import format_query
from spaseq.pipeline import Observer, shapes
from spaseq.program import Program
from spaseq.rdf.native._framing import Minter
from spaseq.rdf.native._terms import Relevance
from spaseq.rdf.reorder import AHEAD
from spaseq.records import dataclass
from spaseq.runs import Run


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """The options of a live run.

    Args:
        follow: Whether files and folders may grow.
        state: The state folder; None: no state.
        policy: What to do about queries that have changed since the state was saved: `refuse` it,
            `keep` their partial matches if these fit the new versions, `drain` the old versions
            beside the new ones, or continue the streams at their positions with `fresh` ones.
            Queries that have not changed keep their state.
        policies: The same for single queries, by name.
        late: The file of late events.
        output: The output file or URL; None: standard output.
        format: The format of matches.
        terminal: Whether the output is a terminal.
        limit: The number of matches after which the run stops.
        timing: Durations.
        close: Whether the end of all sources closes every window; if not, waiting matches are
            stored in the state, and a later run continues.
        leading: The columns of tables before those of the solution.
    """

    follow: bool = False
    state: str | None = None
    policy: StatePolicy = "refuse"
    policies: Mapping[str, StatePolicy] = field(default_factory=dict)
    late: str | None = None
    output: str | None = None
    format: str = AUTO
    terminal: bool = False
    limit: int | None = None
    timing: Timing = field(default_factory=Timing)
    close: bool = True
    leading: tuple[str, ...] = ()


class Session:
    """An open live run: `go` runs it, `close` releases everything.

    Args:
        program: The queries.
        streams: Stream IRI → paths or URLs.
        reading: How events are read.
        options: The options of the live run.
        kb: The knowledge base, as for `Program.start`.
        entail: As for `Program.start`.
        limits: The limits of `Program.start`.
        log: Reports what happens to sources and state.

    Raises:
        SpaseqError: if something cannot be opened, the options cannot be used together, or the
            operating system is Windows.
        StateError: if the state belongs to another run.
    """

    def __init__(
        self,
        program: Program,
        streams: Mapping[str, Sequence[str]],
        reading: ReadOptions,
        options: LiveOptions,
        kb: Mapping[str, Any] | Any = None,
        entail: str | None = None,
        limits: Mapping[str, Any] | None = None,
        log: Callable[[str], None] = lambda text: None,
    ):
        require_posix("a live run")
        _check(reading, options)
        self._program = program
        if options.timing.max_ahead is not None and reading.lateness is None:
            # After an event that is set aside, the next one is not out of order.
            reading = replace(reading, lateness=0)
        self._reading = reading
        self._options = options
        self._streams = streams
        self._log = log
        self._domain = TimeDomain()
        self._state: StateFolder | None = None
        self._late: LateLines | None = None
        self._sink: Sink | None = None
        self.is_finished = False
        """Whether the state says that the run had already reached its end."""
        self.sources: list[Reader] = []
        """The counters of the streams."""
        try:
            self._open(kb, entail, limits or {})
        except BaseException:
            self.close()
            raise

    def _open(self, kb: Any, entail: str | None, limits: Mapping[str, Any]) -> None:
        options = self._options
        stored: dict[int, Checkpoint] = {}
        continued: dict[int, Continued] = {}
        identifier = ""
        if options.state is not None:
            self._state = StateFolder(options.state, self._log)
            identifier = self._state.identifier
            for one, found in self._fitting(self._state.checkpoints()):
                stored[one.number], continued[one.number] = one, found
        # Errors in sources are found before the output is opened and truncated.
        sources = {
            iri: opened_source(iri, urls, self._log, options.follow)
            for iri, urls in self._streams.items()
        }
        self._sink = self._opened_sink(list(continued.values()))
        if isinstance(self._sink, WaitingSink):
            self._sink.waiting.log = self._log
        tokens = {number: one.header["token"] for number, one in stored.items()}
        number = self._sink.resume(identifier, tokens)
        checkpoint = stored.get(number)
        if self._state is not None:
            self._state.discard_after(number)
        self.run = self._started(checkpoint, continued.get(number), kb, entail, limits)
        self.is_finished = self.run.clock.finished
        if options.late is not None:
            self._late = LateLines(options.late, checkpoint is not None)
        if checkpoint is not None:
            kind, origin = checkpoint.header["domain"]
            self._domain.kind, self._domain.origin = kind, origin
            self._log(f"continuing at checkpoint {number}")
        positions = {} if checkpoint is None else checkpoint.header["positions"]
        inputs = [
            self._input(place, iri, urls, sources[iri], positions.get(iri))
            for place, (iri, urls) in enumerate(self._streams.items())
        ]
        self.coordinator = Coordinator(
            self.run,
            inputs,
            self._sink,
            options.timing,
            self._state,
            number,
            self._header,
            options.limit,
            self._log,
            options.close,
        )

    # ------------------------------------------------------------ parts

    def _started(
        self,
        checkpoint: Checkpoint | None,
        continued: Continued | None,
        kb: Any,
        entail: str | None,
        limits: Mapping[str, Any],
    ) -> Run:
        if checkpoint is None or continued is None:
            return self._program.start(kb=kb, entail=entail, **limits)
        program = continued.program
        if checkpoint.header["queries"] == listed_fingerprints(program):
            return program.resume(checkpoint.run, kb, **limits)
        # Each query that is kept needs a separate state.
        run = program.start(kb=kb, entail=entail, share=not continued.kept, **limits)
        if continued.kept:
            blob = apart(checkpoint.run, _stored(checkpoint), run.kb.current)
            blob = moved(blob, run.evaluation, continued.kept, continued.draining)
            run = program.resume(blob, run.kb.current, share=False, **limits)
        # The streams may continue in the middle of an instant.
        run.clock.has_gaps = True
        return run

    def _policy(self, name: str) -> StatePolicy:
        return self._options.policies.get(name, self._options.policy)

    def _continued(self, checkpoint: Checkpoint) -> Continued:
        """The treatment of the queries of a checkpoint."""
        try:
            return continued(self._program, _stored(checkpoint), self._policy)
        except StateError as error:
            raise StateError(f"--state {self._options.state}: {error}") from error

    def _input(
        self,
        place: int,
        iri: str,
        urls: Sequence[str],
        source: Source,
        position: Mapping[str, Any] | None,
    ) -> Input:
        if self._state is not None and not source.replays:
            self._log(
                f"the stream <{iri}> cannot be read again: after a crash, its events since the "
                "last checkpoint are missing"
            )
        shown = list(map(redacted, urls))
        reader = Reader(iri, shown, self._reading, place, self._domain, self._log)
        self.sources.append(reader)
        keeps = self._state is not None

        def decode(reader: Reader, relevance: Relevance, minter: Minter | None) -> Decoder:
            if source.messages:
                return MessageDecoder(reader, relevance, minter, shown[0])
            return DocumentDecoder(reader, relevance, minter, keeps)

        stream = Stream(reader, self.run.relevance, decode, self._take_late, keeps)
        if isinstance(source, OrderingSource):
            stream.complete = source.order_after
        if keeps and isinstance(source, AcknowledgingSource):
            source.expect_checkpoints()
        if position is None or not (source.replays or source.messages):
            return Input(source, stream)
        if not source.replays:
            return Input(source, stream, stream.go_on(position))
        return Input(source, stream, stream.resume(position))

    def _opened_sink(self, continued: Sequence[Continued]) -> Sink:
        options, keeps = self._options, self._state is not None
        if options.output is not None and registry.is_url(options.output, "sinks"):
            if options.format not in (AUTO, "jsonl"):
                raise SpaseqError(
                    f"--format {options.format} is for files: {redacted(options.output)} takes "
                    "matches as JSON"
                )
            if options.leading:
                raise SpaseqError(
                    f"--match-columns is for files: {redacted(options.output)} takes matches as "
                    "JSON"
                )
            return registry.open_sink(options.output, keeps)
        if keeps and options.output is not None and is_remote_file(options.output):
            raise SpaseqError(
                f"{redacted(options.output)}: such a file cannot be cut back and continued; with "
                "--state, write to a file of this machine, a database or a broker"
            )
        results, differing = self._shapes(continued)
        format = options.format
        if format == AUTO:
            format = fitting_format(results, options.output, options.terminal)
        if differing and format != "jsonl":
            raise StateError(
                f"the query {differing[0]} cannot drain into --format {format}, because its old "
                "version has other columns: use jsonl"
            )
        if keeps and options.output is None:
            self._log(
                "standard output cannot be cut back: after a crash, matches since the last "
                "checkpoint are written again"
            )
        return FileSink(options.output, format, results, keeps, options.limit)

    def _take_late(self, late: LateEvent) -> None:
        if self._late is not None:
            self._late.write(late)
            return
        batch, index, refusal = late
        behind = (refusal.bound - batch.micros(index)) / 1e6
        where = f"{batch.file}, line {batch.line(index)}"
        if refusal.reason == AHEAD:
            self._log(f"event dropped: {where}: it is {-behind:g} s ahead of the clock")
        else:
            self._log(f"late event dropped: {where}: it is {behind:g} s behind the watermark")

    def _shapes(self, continued: Sequence[Continued]) -> tuple[list[Shape], list[str]]:
        """The results of the queries, and the names of draining queries with other results."""
        found: dict[str, Shape] = {}
        differing = []
        for program in (self._program, *(each.program for each in continued)):
            for shape in shapes(program, self._options.leading):
                known = found.setdefault(shape.query, shape)
                if replace(known, prefixes=()) != replace(shape, prefixes=()):
                    differing.append(shape.query)
        return list(found.values()), differing

    # ------------------------------------------------------------ state

    def _belongings(self) -> dict[str, Any]:
        """The settings that determine the events and the output, for comparison."""
        reading = asdict(self._reading)
        for name in ("clock", "max_memory", "on_error"):
            del reading[name]
        found = {
            "streams": {iri: list(map(redacted, urls)) for iri, urls in self._streams.items()},
            "output": None if self._options.output is None else redacted(self._options.output),
            "format": self._options.format,
            "reading": reading,
        }
        return dict(json.loads(json.dumps(found)))  # in the form that JSON returns

    def _header(self) -> dict[str, Any]:
        program = self.run.program
        return {
            "queries": listed_fingerprints(program),
            "texts": {
                name: format_query(query)
                for query, name in zip(program.sources, program.names, strict=True)
            },
            "draining": dict(self.run.draining),
            "domain": [self._domain.kind, self._domain.origin],
            **self._belongings(),
        }

    def _fitting(self, checkpoints: Sequence[Checkpoint]) -> Iterator[tuple[Checkpoint, Continued]]:
        """The checkpoints that this run may continue, of some with the newest first.

        The newest must fit. An older one serves if the output does not reach the newest; if it is
        from before a change of the queries, it is left out, with those before it.
        """
        for one in checkpoints:
            try:
                self._check_stored(one)
                continued = self._continued(one)
            except StateError:
                if one is checkpoints[0]:
                    raise
                return
            yield one, continued

    def _check_stored(self, checkpoint: Checkpoint) -> None:
        """Refuse a checkpoint of another run."""
        header, own = checkpoint.header, self._belongings()
        where = f"--state {self._options.state} belongs to another run"
        if header["streams"] != own["streams"]:
            before, after = map(_sources_text, (header["streams"], own["streams"]))
            raise StateError(f"{where}: its sources were {before}, and are now {after}")
        for name, shown in (("output", "its output"), ("format", "its --format")):
            if header[name] != own[name]:
                before, after = (each[name] or "standard output" for each in (header, own))
                raise StateError(f"{where}: {shown} was {before}, and is now {after}")
        stored, now = header["reading"], own["reading"]
        differing = [name for name in now if stored.get(name) != now[name]]
        if differing:
            name = differing[0]
            raise StateError(
                f"{where}: it was read with {name.replace('_', ' ')} {stored.get(name)}, and now "
                f"{now[name]}"
            )
        draining = header.get("draining") or {}
        queries = [pair for pair in header["queries"] if pair[0] not in draining]
        difference = self._difference(queries)
        if difference:
            raise StateError(
                f"{where}: {difference}. --state-policy keep continues the partial matches of a "
                "changed query where they fit, drain finishes those of its old version, and fresh "
                "continues without them"
            )

    def _difference(self, stored: Sequence[Sequence[str]]) -> str:
        """The differences that are refused; empty if there are none."""
        before = {name: digest for name, digest in stored}  # noqa: C416 (of lists, not pairs)
        now = dict(fingerprints(self._program))
        parts = [f"the query {name} is missing" for name in before if name not in now]
        parts += [f"the query {name} is new" for name in now if name not in before]
        parts += [
            f"the query {name} has changed"
            for name in now
            if name in before and before[name] != now[name]
        ]
        if not parts and list(before) != list(now):
            parts = ["the queries come in another order"]
        names = [part.split()[2] for part in parts if part.startswith("the query ")] or [""]
        refused = any(self._policy(name) == "refuse" for name in names)
        return "; ".join(parts) if parts and refused else ""

    # ------------------------------------------------------------ running

    @property
    def written(self) -> int:
        """The number of matches written."""
        return 0 if self._sink is None else self._sink.written

    def stop(self) -> None:
        """Accept no more events, finish the batch and make a checkpoint. A signal may call this."""
        self.coordinator.stop()

    def go(
        self, observe: Observer | None = None, watch: Callable[[Status], None] | None = None
    ) -> None:
        """Run until the sources end, or `stop` is called.

        `observe` is called after each batch, `watch` twice a second; see `Coordinator.go`.
        """
        if self.is_finished:
            self._log("the run came to its end before; nothing is left to do")
            return
        self.coordinator.go(observe, watch)

    def close(self) -> None:
        """Close the sink, the file of late events and the state folder."""
        for part in (self._sink, self._late, self._state):
            if part is not None:
                part.close()
        self._sink = self._late = self._state = None


def _sources_text(sources: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"<{iri}> from {', '.join(urls)}" for iri, urls in sources.items())


def _stored(checkpoint: Checkpoint) -> StoredQueries:
    """The queries of a checkpoint."""
    header = checkpoint.header
    return StoredQueries(header["queries"], header.get("texts") or {}, header.get("draining") or {})


def _check(reading: ReadOptions, options: LiveOptions) -> None:
    """Refuse options that a live run does not have."""
    kind = reading.framing.kind
    if kind in (*COLLECTED, "subject"):
        raise SpaseqError(f"--events {kind} is for finished files, not for --follow or --state")
    if options.state is not None and options.limit is not None:
        raise SpaseqError("--limit and --state cannot be used together")

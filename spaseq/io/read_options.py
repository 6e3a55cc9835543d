"""Options of the readers, counters of a source, and the report of errors.

Readers report every error in the input to `Troubles.report`. It raises, or under
`on_error="skip"` logs and counts the error and returns, and the reader continues.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from spaseq.errors import InputError, InputUnit, SpaseqError
from spaseq.io.formats import stream_syntax
from spaseq.io.losses import Loss
from spaseq.io.rows.formats import ROW_FORMATS
from spaseq.io.time_path import MESSAGE_TIMES, Step, time_path
from spaseq.rdf.event import DATE_TIME, NUMBER
from spaseq.rdf.time import TimePrecision, TimeUnit
from spaseq.records import dataclass

if TYPE_CHECKING:
    from spaseq.io.statements import Malformed

OnError: TypeAlias = Literal["stop", "skip"]

WORKERS = 2
"""The default number of threads of a run."""

_TRIPLES = re.compile(r"triples:([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class Framing:
    """How statements are cut into events; `size` is the N of `triples:N`."""

    kind: Literal["auto", "graph", "message", "triples", "subject", "dataset", "member"]
    size: int = 0

    @staticmethod
    def parse(text: str) -> Framing:
        """Read `auto`, `graph`, `message`, `subject`, `dataset`, `member` or `triples:N`.

        Raises:
            ValueError: for any other text.
        """
        if text in _NAMED_FRAMINGS:
            return _NAMED_FRAMINGS[text]
        triples = _TRIPLES.fullmatch(text)
        if triples is None:
            raise ValueError(
                f"{text!r} is not a framing of events: "
                f"use {', '.join(_NAMED_FRAMINGS)} or triples:N (N at least 1)"
            )
        return Framing("triples", int(triples[1]))


_NAMED_FRAMINGS = {
    "auto": Framing("auto"),
    "graph": Framing("graph"),
    "message": Framing("message"),
    "subject": Framing("subject"),
    "dataset": Framing("dataset"),
    "member": Framing("member"),
}
COLLECTED = ("dataset", "member")
"""The framings that read all files before the first event."""


def clock_micros() -> int:
    """The wall clock, in microseconds since 1970-01-01T00:00:00Z."""
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How the sources of one run are read.

    Args:
        framing: how statements are cut into events.
        time_predicate: the IRI of the predicate of timestamps, or a path of predicates
            (spaseq/io/time_path.py); by default prov:generatedAtTime, and for messages, subjects
            and members the first of `MESSAGE_TIMES` they have.
        arrival_time: whether the timestamp of an event is its time of arrival, read on `clock`.
        unit: the unit of timestamps that are plain numbers.
        on_error: whether a malformed statement or event ends the run or is skipped.
        lateness: how many microseconds an event may be late and still be put in order; None:
            sources must be in order, and an event out of order is an error.
        syntax: a name in `spaseq.io.formats.STREAM_SYNTAXES` or, for streams with a mapping, in
            `spaseq.io.rows.formats.ROW_FORMATS`, instead of the file extension.
        clock: microseconds since 1970-01-01T00:00:00Z.
        time_precision: how a time finer than a microsecond is treated.
        contexts: files that replace remote JSON-LD contexts, by URL; "" is for every other URL and
            for documents without a context.
        time_column: the column of times, for tables whose mapping leaves `?_time` unbound.
        workers: the threads of a run. With 1, a source is read when its events are asked for; with
            more, another thread reads ahead, and one more decompresses; with 3 or more, that many
            parse a long N-Quads file. A live source is never read ahead, since its events are
            processed when they are complete.

    Raises:
        SpaseqError: for an unknown syntax, or a number of workers below 1.
    """

    framing: Framing = field(default_factory=lambda: Framing("auto"))
    time_predicate: str | None = None
    arrival_time: bool = False
    unit: TimeUnit = "s"
    on_error: OnError = "stop"
    lateness: int | None = None
    syntax: str | None = None
    clock: Callable[[], int] = clock_micros
    time_precision: TimePrecision = "error"
    contexts: Mapping[str, str] = field(default_factory=dict)
    reuse_graph_names: bool = False
    event_metadata: bool = False
    max_memory: int | None = None
    time_column: str | None = None
    workers: int = WORKERS

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise SpaseqError(f"--workers {self.workers}: a run has at least one thread")
        if self.syntax is not None and self.syntax not in ROW_FORMATS:
            stream_syntax(self.syntax)
        kind = self.framing.kind
        if self.time_predicate is not None:
            try:
                path = time_path(self.time_predicate)
            except ValueError as error:
                raise SpaseqError(f"--time-predicate: {error}") from error
            if len(path) == 1 and not path[0][1]:
                object.__setattr__(self, "time_predicate", path[0][0])
        if self.reuse_graph_names and self.event_metadata:
            raise SpaseqError(
                "--reuse-graph-names and --event-metadata cannot be used together: a statement "
                "about a name would not show which of its events it is about"
            )
        if self.reuse_graph_names and kind not in ("auto", "graph"):
            raise SpaseqError(f"--reuse-graph-names is for --events graph, not for {kind}")
        if self.event_metadata and kind not in ("auto", "graph", "dataset"):
            raise SpaseqError(f"--event-metadata is for --events graph and dataset, not for {kind}")
        if self.lateness is not None and kind in COLLECTED:
            raise SpaseqError(f"--events {kind} orders all events by time: leave out --lateness")

    def time_predicates(self) -> tuple[str, ...]:
        """The predicates of message timestamps in order of preference; none for a path."""
        return MESSAGE_TIMES if self.time_predicate is None else self.named_predicate()

    def named_predicate(self) -> tuple[str, ...]:
        """The predicate that `time_predicate` names; empty if it names none or a path."""
        return () if self.time_predicate is None or self.time_steps() else (self.time_predicate,)

    def time_steps(self) -> tuple[Step, ...]:
        """The steps of the path to an event's timestamp; empty for a predicate."""
        path = () if self.time_predicate is None else time_path(self.time_predicate)
        return () if len(path) == 1 and not path[0][1] else path


@dataclass(slots=True)
class Counters:
    """Counts of one source: events yielded, statements read, and everything that was skipped."""

    events: int = 0
    statements: int = 0
    skipped: int = 0
    late: int = 0
    ahead: int = 0
    """Events that were too far ahead of the clock, in a live run."""
    unused: int = 0
    """Triples of no event: under the `graph` framing, those in the default graph that are not
    timestamps."""
    pruned: int = 0
    """Triples of events that no query can use."""
    empty: int = 0
    """Empty messages without a time, which are not events."""
    losses: Callable[[], list[Loss]] = field(default=list, compare=False, repr=False)
    """Lists what was lost between the rows of tables and their events so far."""

    def without_use(self) -> int:
        """Triples that were read but not used."""
        return self.unused + self.pruned


@dataclass(slots=True)
class TimeDomain:
    """The domain of time of all sources of a run, which the first event sets."""

    kind: str = ""
    origin: str = ""

    def conflict(self, kind: str, origin: str) -> str:
        """The error about a timestamp of this domain; empty if it is the run's domain."""
        if not self.kind:
            self.kind, self.origin = kind, origin
        if kind == self.kind:
            return ""
        shown = {NUMBER: "a number", DATE_TIME: "a date"}
        return (
            f"the timestamp is {shown[kind]}, but that at {self.origin} is "
            f"{shown[self.kind]}; all streams of a run must use one or the other"
        )


def log_warning(text: str) -> None:
    """Write a warning to the log `spaseq.io`."""
    import logging  # costs more to import than the rest of this module, and is rarely needed

    logging.getLogger("spaseq.io").warning(text)


@dataclass(slots=True)
class Troubles:
    """Takes the reports of the readers of one source: raises, or logs and counts."""

    on_error: OnError
    counters: Counters
    log: Callable[[str], None] = log_warning
    malformed: Malformed | None = None
    """The last malformed line of a line-based file."""
    unit: InputUnit = "line"
    """The unit of positions in the file that is being read."""
    repeated_bytes: int = 0
    """Bytes that were read again after errors, and directives for messages."""
    note: str = ""
    """How the syntax of the file was recognised, for messages about the syntax."""

    def report(self, message: str, file: str, line: int | None) -> None:
        """Raise an `InputError`; under "skip" log and count it instead."""
        if self.note and message.startswith("not "):
            message = f"{message}; {self.note}"
        error = InputError(message, file, line, self.unit)
        if self.on_error == "stop":
            raise error
        self.counters.skipped += 1
        self.log(f"skipped: {error}")

    def late(self, message: str, file: str, line: int | None) -> None:
        """Count and log an event that is behind the watermark."""
        self.counters.late += 1
        self.log(f"late event dropped: {InputError(message, file, line, self.unit)}")

"""How a source is to be read, what was counted while reading it, and where trouble goes.

`Troubles.report` is the single gate of every error a reader meets: it raises, or, under
`on_error="skip"`, logs and counts and lets the reader go on. So no reader decides by itself
what an error means, and none can lose one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from spaseq.errors import InputError, InputUnit
from spaseq.io.formats import stream_syntax
from spaseq.rdf.event import DATE_TIME, NUMBER
from spaseq.rdf.time import TimePrecision, TimeUnit

OnError: TypeAlias = Literal["stop", "skip"]

GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime"
MESSAGE_TIMES = (
    GENERATED_AT,
    "http://www.w3.org/ns/sosa/resultTime",
    "https://www.w3.org/ns/activitystreams#published",
)

_TRIPLES = re.compile(r"triples:([1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class Framing:
    """How a sequence of statements is cut into events; `size` is the N of `triples:N`."""

    kind: Literal["auto", "graph", "message", "triples"]
    size: int = 0

    @staticmethod
    def parse(text: str) -> Framing:
        """`auto`, `graph`, `message` or `triples:N`; anything else is a ValueError."""
        if text in _NAMED_FRAMINGS:
            return _NAMED_FRAMINGS[text]
        triples = _TRIPLES.fullmatch(text)
        if triples is None:
            raise ValueError(
                f"{text!r} is no way to cut a file into events: "
                "use auto, graph, message or triples:N (N at least 1)"
            )
        return Framing("triples", int(triples[1]))


_NAMED_FRAMINGS = {
    "auto": Framing("auto"),
    "graph": Framing("graph"),
    "message": Framing("message"),
}


def clock_micros() -> int:
    """The wall clock, in microseconds of the epoch."""
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user says about the sources of one run.

    `lateness` (microseconds) is how far back an event may come and still be put in order;
    None means that sources are in order and one that is not is an error. `syntax` overrides
    the file extension. `clock` is read under `arrival_time`. `time_precision` is what a time finer
    than a microsecond becomes.
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

    def __post_init__(self) -> None:
        if self.syntax is not None:
            stream_syntax(self.syntax)

    def time_predicates(self) -> tuple[str, ...]:
        """The predicates of message timestamps, the one to be preferred first."""
        return MESSAGE_TIMES if self.time_predicate is None else (self.time_predicate,)


@dataclass(slots=True)
class Counters:
    """What one source gave: events delivered, statements read, and all that was left out."""

    events: int = 0
    statements: int = 0
    skipped: int = 0
    late: int = 0
    unused: int = 0
    """Default-graph triples under the `graph` framing that are no timestamp: of no event."""
    pruned: int = 0
    """Triples of events that no query can use."""

    def without_use(self) -> int:
        """Triples that were read for nothing."""
        return self.unused + self.pruned


@dataclass(slots=True)
class TimeDomain:
    """The one domain of time of all sources of a run: that of the first event read."""

    kind: str = ""
    origin: str = ""

    def conflict(self, kind: str, origin: str) -> str:
        """What is wrong with a timestamp of this domain; empty where it is that of the run."""
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
    """A line in the log `spaseq.io`."""
    import logging  # costs more than the rest of this module, and is rarely needed

    logging.getLogger("spaseq.io").warning(text)


@dataclass(frozen=True, slots=True)
class Malformed:
    """A line that cannot be read: its text, the next statement's, whether the file ends in it."""

    text: bytes
    following: bytes
    last: bool


@dataclass(slots=True)
class Troubles:
    """Where the readers of one source report: raises, or logs and counts."""

    on_error: OnError
    counters: Counters
    log: Callable[[str], None] = log_warning
    malformed: Malformed | None = None
    """The last malformed line of a line-based file."""
    unit: InputUnit = "line"
    """What the file being read is counted in."""

    def report(self, message: str, file: str, line: int | None) -> None:
        """Raise an `InputError`, or under "skip" log it, count it and return."""
        error = InputError(message, file, line, self.unit)
        if self.on_error == "stop":
            raise error
        self.counters.skipped += 1
        self.log(f"skipped: {error}")

    def late(self, message: str, file: str, line: int | None) -> None:
        """Count and log an event that came after its time was closed."""
        self.counters.late += 1
        self.log(f"late event left out: {InputError(message, file, line, self.unit)}")

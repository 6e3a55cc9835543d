"""Shorthands of the reader tests: text in, events out in a form that can be compared."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path

from spaseq.errors import InputError
from spaseq.io.read_options import Framing, ReadOptions
from spaseq.io.source import Source
from spaseq.rdf.event import Event

GENERATED = "<http://www.w3.org/ns/prov#generatedAtTime>"
DATE_TIME = "<http://www.w3.org/2001/XMLSchema#dateTime>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
STREAM = "http://example.org/s"


def at(graph: str, seconds: int | str) -> str:
    """The N-Quads line that gives a graph its time: a number, or the text of a date."""
    if isinstance(seconds, int):
        return f'<e:{graph}> {GENERATED} "{seconds}"^^{INTEGER} .\n'
    return f'<e:{graph}> {GENERATED} "{seconds}"^^{DATE_TIME} .\n'


def quad(graph: str, value: str = "<e:o>", subject: str = "<e:s>") -> str:
    return f"{subject} <e:p> {value} <e:{graph}> .\n"


def options(events: str = "auto", **given: object) -> ReadOptions:
    return ReadOptions(framing=Framing.parse(events), **given)  # type: ignore[arg-type]


class Reading:
    """A source over text, with what it logged and how it ended."""

    def __init__(self, folder: Path, text: str | bytes, name: str = "s.nq", events: str = "auto",
                 **given: object):  # fmt: skip
        data = text.encode() if isinstance(text, str) else text
        path = folder / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        self.path = str(path)
        self.log: list[str] = []
        self.error = ""
        self.source = Source(STREAM, [self.path], options(events, **given), log=self.log.append)
        self.events: list[Event] = []
        for event in self._until_error():
            self.events.append(event)

    def _until_error(self) -> Iterator[Event]:
        try:
            yield from self.source
        except InputError as error:
            self.error = str(error).replace(self.path, "FILE")

    @property
    def times(self) -> list[float]:
        return [event.time.micros / 1e6 for event in self.events]

    @property
    def names(self) -> list[str]:
        return [event.name.value if event.name else "" for event in self.events]

    @property
    def lines(self) -> list[int]:
        return [int(event.origin.rpartition(":")[2]) for event in self.events]

    @property
    def sizes(self) -> list[int]:
        return [len(event.facts) for event in self.events]


def shown(events: Iterable[Event]) -> list[str]:
    """`stream@seconds.ordinal` of each event."""
    return [f"{e.stream[-1]}@{e.time.micros // 10**6}.{e.ordinal}" for e in events]

"""An event of a batch as an `Event`.

Its attributes are decoded from the batch on first access and cached. The event references its
batch and so retains the batch's memory; `bare` makes a copy that does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spaseq.rdf.event import Event
from spaseq.rdf.native._terms import EventBatch


class EncodedEvent(Event):
    """The event at `index` of `batch`."""

    __slots__ = ("batch", "index")

    batch: EventBatch
    index: int

    def __init__(self, batch: EventBatch, index: int):
        object.__setattr__(self, "batch", batch)
        object.__setattr__(self, "index", index)

    def __getattr__(self, name: str) -> Any:
        """Decode an attribute on first access: the slots of `Event` are empty until then."""
        make = _PARTS.get(name)
        if make is None:
            raise AttributeError(f"an event has no {name}", name=name, obj=self)
        part = make(self.batch, self.index)
        object.__setattr__(self, name, part)
        return part

    @property
    def size(self) -> int:
        """The number of statements, including statements pruned on reading."""
        return self.batch.size(self.index)

    @property
    def is_pruned(self) -> bool:
        """Whether the reader dropped some of its statements, which no query can use."""
        return self.batch.kept(self.index) < self.batch.size(self.index)

    def bare(self) -> Event:
        """The event without its facts and without a reference to the batch."""
        return Event(self.stream, self.time, self.ordinal, (), self.name, self.origin)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            return NotImplemented
        return _compared(self) == _compared(other)

    def __hash__(self) -> int:
        return hash(_compared(self))

    def __reduce__(self) -> tuple[type[Event], tuple[Any, ...]]:
        """Pickle as a plain event, without the batch."""
        return Event, (*_compared(self), self.origin)


def _compared(event: Event) -> tuple[Any, ...]:
    return event.stream, event.time, event.ordinal, event.facts, event.name


def _origin(batch: EventBatch, index: int) -> str:
    line = batch.line(index)
    return f"{batch.file}:{line}" if line else ""


_PARTS = {
    "stream": lambda batch, _: batch.stream,
    "time": EventBatch.time,
    "ordinal": EventBatch.ordinal,
    "facts": lambda batch, index: tuple(batch.facts(index)),
    "name": EventBatch.name,
    "origin": _origin,
}


def encoded_events(batch: EventBatch) -> Iterator[EncodedEvent]:
    """The events of a batch, in order."""
    return (EncodedEvent(batch, index) for index in range(len(batch)))

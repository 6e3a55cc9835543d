"""The position of a stream: what is read again after it is what had not been processed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from spaseq.io.read_options import ReadOptions
from spaseq.io.source import Source
from spaseq.live.decoders import DocumentDecoder
from spaseq.live.protocols import Chunk
from spaseq.live.streams import LateEvent, Stream
from spaseq.rdf.event import n_triples
from spaseq.rdf.native._terms import Dictionary, Relevance

STREAM = "http://example.org/s"
STAMP = "<http://www.w3.org/ns/prov#generatedAtTime>"
SECOND = 1_000_000
LATENESS = 3 * SECOND


class Reading:
    """A stream that is read up to a place, processed up to a time, and may begin anew."""

    def __init__(self, text: bytes, lateness: int | None):
        self._text = text
        self._lateness = lateness
        self.found: list[tuple[int, str]] = []
        """The processed events: their times, and their triples with the labels of blank nodes."""
        self.late: list[int] = []
        self._clock: int | None = None
        self._place = 0
        self._stream = self._opened()

    def _opened(self) -> Stream:
        options = ReadOptions(lateness=self._lateness)
        source = Source(STREAM, ["s.nq"], options)
        return Stream(
            source,
            Relevance(Dictionary()),
            lambda reader, relevance, minter: DocumentDecoder(reader, relevance, minter, True),
            self._take_late,
            keeps=True,
        )

    def _take_late(self, event: LateEvent) -> None:
        batch, index, _ = event
        self.late.append(batch.micros(index))

    @property
    def frontier(self) -> int | None:
        return self._stream.frontier

    def read(self, until: int) -> None:
        """Read up to a place of the document."""
        if self._place < until:
            self._stream.take(self._chunk(self._place, until))
            self._place = until

    def _chunk(self, start: int, end: int) -> Chunk:
        return Chunk(self._text[start:end], {"offset": end}, "s.nq" if start == 0 else None, "s.nq")

    def process(self, idle: bool = False, behind: int = 0) -> None:
        """Process the events that no later one can precede; `idle`: all of them.

        `behind` is how far another stream is behind this one, in microseconds.
        """
        stream = self._stream
        assert stream.has_read_again
        bound = None
        if not idle:
            if stream.frontier is None:
                return
            bound = stream.frontier - (self._lateness is not None) - behind
        if stream.reorders:
            stream.order(bound)
        for batch, first in self._heads():
            index = first
            while index < len(batch) and (bound is None or batch.micros(index) <= bound):
                self._clock = batch.micros(index)
                self.found.append((self._clock, n_triples(batch.facts(index))))
                index += 1
            if index == first:
                break
            stream.advance(index)
        stream.floor = self._clock

    def _heads(self) -> Iterator[tuple[Any, int]]:
        while (head := self._stream.head)[0] is not None:
            yield head

    def restart(self, part: float) -> None:
        """Continue in another stream, at the position of this one, and read a part again."""
        saved: Mapping[str, Any] | None = json.loads(json.dumps(self._stream.position()))
        reached, self._place = self._place, 0
        domain = self._stream.domain
        self._stream = self._opened()
        if saved is not None:
            self._place = self._stream.resume(saved)["offset"]
            assert self._stream.domain == domain
        else:
            self.found.clear()
            self.late.clear()
            self._clock = None
        self._stream.floor = self._clock
        self.read(self._place + int(part * (reached - self._place)))


def document(seed: int, lateness: int | None) -> tuple[bytes, list[int]]:
    """Events with blank nodes, and the places behind them."""
    chance = random.Random(seed)
    text, places, now = b"", [], 0
    for number in range(40):
        now += chance.choice((0, 0, 1, 2, 5))
        time = now if lateness is None else max(0, now - chance.choice((0, 0, 1, 2, 3, 4)))
        name = f"<urn:e:{number}>"
        text += (
            f'{name} {STAMP} "{time}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
            f'_:b{number} <urn:p> "{number}" {name} .\n'
        ).encode()
        places.append(len(text))
    return text, places


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("lateness", [None, 0, LATENESS])
def test_a_stream_that_begins_anew_processes_what_another_does(
    seed: int, lateness: int | None
) -> None:
    text, places = document(seed, lateness)
    plain, anew = Reading(text, lateness), Reading(text, lateness)
    chance = random.Random(seed)
    for place in places:
        if chance.random() < 0.4:
            continue
        idle, behind = chance.random() < 0.15, chance.randint(0, 4) * SECOND
        for reading in (plain, anew):
            reading.read(place)
            reading.process(idle, behind)
        assert anew.found == plain.found
        if lateness is not None:
            assert anew.frontier == plain.frontier
        for _ in range(chance.choice((0, 0, 1, 2))):
            anew.restart(chance.random())
    for reading in (plain, anew):
        reading.read(len(text))
        reading.process(idle=True)
    assert anew.found == plain.found
    assert sorted(set(anew.late)) == sorted(set(plain.late))

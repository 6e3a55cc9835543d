"""All that reading a file gives: by the compiled readers, or by the plain one as a model."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

from plain_reader import plain_events
from reading import STREAM, options

from spaseq.errors import InputError
from spaseq.io.lines import Lines
from spaseq.io.source import Source
from spaseq.rdf.event import Event
from spaseq.rdf.native._terms import Relevance

_NAMELESS = re.compile(r"_:[0-9a-z]{17,}")
"""A blank node that has no label in the file; each reader names it at random."""


class Outcome:
    """All that reading gave, to be compared."""

    def __init__(
        self,
        path: Path,
        plain: bool,
        relevance: Relevance | None = None,
        open_lines: Callable[[str], Lines] = Lines,
        **given: object,
    ):
        ticks = itertools.count(7_000_000, 3)
        settings = options(clock=lambda: next(ticks), **given)  # type: ignore[arg-type]
        self.log: list[str] = []
        source = Source(
            STREAM, [str(path)], settings, 3, log=self.log.append, relevance=relevance,
            open_lines=open_lines,
        )  # fmt: skip
        self.events: list[Event] = []
        self.error = ""
        try:
            for event in plain_events(source) if plain else source:
                self.events.append(event)
        except InputError as error:
            self.error = _NAMELESS.sub("[]", str(error))
        finally:
            # What an error keeps alive lets go of its file only when it is collected. A thread
            # that reads ahead has closed it.
            if isinstance(source.lines, Lines):
                source.lines.close()
        self.log = [_NAMELESS.sub("[]", line) for line in self.log]
        self.counters = source.counters
        self.shown = [
            (str(e.time.term), e.time.micros, e.time.domain, e.ordinal, e.name, e.origin,
             [tuple(map(str, fact)) for fact in e.facts], e.stream)
            for e in self.events
        ]  # fmt: skip


def assert_same(
    read: Outcome, model: Outcome, data: bytes, late: bool = False, placed: bool = True
) -> None:
    assert read.shown == model.shown, data
    assert read.error == model.error, data
    if placed and not late:
        assert read.log == model.log, data
    elif placed:
        # The reader reports late events after it has read their block.
        assert sorted(read.log) == sorted(model.log), data
    else:
        # What the parser says of a line depends on the lines it has seen behind it.
        assert _places(read.log) == _places(model.log), data
    assert read.counters == model.counters, data


def _places(log: list[str]) -> list[str]:
    return sorted(line.partition(", column")[0] for line in log)

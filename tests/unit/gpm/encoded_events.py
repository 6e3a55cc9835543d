"""Patterns matched over encoded events, as a run reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spaseq.gpm.matchers import Matchers
from spaseq.gpm.pattern import compile_pattern
from spaseq.gpm.program import compile_gpm
from spaseq.parser import ast, parse_expression, parse_pattern
from spaseq.rdf.encoded import encoded_events
from spaseq.rdf.event import Event, Fact
from spaseq.rdf.native._terms import EventBatch

EX = "http://example.org/"


def matchers(
    *texts: str | ast.GroupGraphPattern, filters: Sequence[str] = (), kb=None, at: str | None = None
) -> Matchers:
    """The matchers of some patterns, all with the same local filters."""
    conditions = [parse_expression(text, {"": EX}) for text in filters]
    patterns = [parse_pattern(t, {"": EX}) if isinstance(t, str) else t for t in texts]
    return Matchers(
        [compile_pattern(compile_gpm(pattern, at, None), conditions) for pattern in patterns], kb
    )


def batch_of(found: Matchers, events: Iterable[Iterable[Fact]]) -> EventBatch:
    """Events as numbers of the matchers' dictionary."""
    batch = EventBatch(found.dictionary)
    for facts in events:
        batch.add(facts)
    return batch


def encoded(found: Matchers, events: Iterable[Iterable[Fact]]) -> Sequence[Event]:
    """The events of one batch."""
    return tuple(encoded_events(batch_of(found, events)))

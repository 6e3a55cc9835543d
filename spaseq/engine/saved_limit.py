"""`LIMIT … EVERY` in saved state: the spans that have not ended, and the results withheld."""

from __future__ import annotations

from typing import Any

from spaseq.engine.result_limit import ResultLimit, Span
from spaseq.engine.stream_clock import StreamClock
from spaseq.rdf.checked import GREATEST, LEAST, listed, refuse, whole
from spaseq.rdf.codec import Reader, Writer

_WHERE = "limit"


def save_limit(limit: ResultLimit | None, writer: Writer) -> Any:
    """The state of a limit, as plain data; None without a limit."""
    if limit is None:
        return None
    spans = [
        [[writer.value(term) for term in key], span.begin, span.given]
        for key, span in limit.spans.items()
    ]
    return [limit.withheld, spans]


def restore_limit(limit: ResultLimit | None, data: Any, clock: StreamClock, reader: Reader) -> None:
    """Restore the state of a limit.

    Raises:
        StateError: if no run of the query can have saved the data.
    """
    if limit is None:
        if data is not None:
            refuse(_WHERE, "the query has no LIMIT")
        return
    withheld, rows = listed(data, _WHERE, 2)
    limit.withheld = whole(withheld, _WHERE)
    if limit.every is None and listed(rows, _WHERE):
        refuse(_WHERE, "the query has no EVERY")
    before = LEAST
    for row in listed(rows, _WHERE):
        values, begin, given = listed(row, _WHERE, 3)
        key = tuple([reader.value(value) for value in listed(values, _WHERE, limit.width)])
        if any(isinstance(term, bool | int | float | str | tuple) for term in key):
            refuse(_WHERE, "a value is not a term")
        began = whole(begin, _WHERE, before, GREATEST)
        if clock.closed is None or (began > clock.closed and not clock.finished):
            refuse(_WHERE, "a result is ahead of the run")
        if key in limit.spans:
            refuse(_WHERE, "a value is there twice")
        limit.spans[key] = Span(began, whole(given, _WHERE, 1, limit.most))
        before = began
    if limit.every is not None and limit.spans:
        first = next(iter(limit.spans.values())).begin
        if before - first >= limit.every:
            refuse(_WHERE, "a span has ended")

"""`LIMIT n PER ?k EVERY d`: the first results of an instant, or of a span of time, for each value.

Without `EVERY`, counting restarts at every instant, and nothing is remembered. With `EVERY`, the
first result for a value opens a span of time `d`, in which at most `n` results for that value are
returned; the first result after the span opens another. Withheld results are counted and have no
other effect. State: a count for each value that opened a span less than `d` ago.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from spaseq.plan.logical import Output
from spaseq.rdf.event import Term

Key: TypeAlias = tuple[Term | None, ...]
"""The values of the variables of `PER`; None: unbound."""
R = TypeVar("R")


@dataclass(slots=True)
class Span:
    """A span of time of one value: its start in microseconds, and the number of its results."""

    begin: int
    given: int


class ResultLimit:
    """The limit of one query.

    Args:
        output: The output of a plan with a `limit`.
    """

    def __init__(self, output: Output):
        assert output.limit is not None
        self.most = output.limit
        self.every = output.every
        self.width = len(output.per)
        """The number of variables of `PER`."""
        self._counts = not output.limits_instants
        self.spans: dict[Key, Span] = {}
        """With `EVERY`: the spans that have not ended, in the order in which they began."""
        self.withheld = 0
        """The number of results withheld under `PER` or `EVERY`."""

    def take_over(self, before: ResultLimit) -> None:
        """Continue from what an equal limit has counted."""
        self.spans = {key: Span(span.begin, span.given) for key, span in before.spans.items()}
        self.withheld = before.withheld

    def first(self, results: Iterable[R], key: Callable[[R], Key], now: int) -> list[R]:
        """The results of one instant, given in order, that the limit retains.

        Args:
            results: The results.
            key: The values of the variables of `PER` of a result.
            now: The end of the results, in microseconds.
        """
        results = list(results)
        if not self._counts:
            return results[: self.most]
        self.expire(now)
        spans = {} if self.every is None else self.spans
        given = []
        for result in results:
            span = spans.setdefault(key(result), Span(now, 0))
            if span.given < self.most:
                span.given += 1
                given.append(result)
        self.withheld += len(results) - len(given)
        return given

    def expire(self, now: int) -> None:
        """Forget the spans that have ended at a time, in microseconds."""
        if self.every is None:
            return
        while self.spans:
            oldest = next(iter(self.spans))
            if now - self.spans[oldest].begin < self.every:
                return
            del self.spans[oldest]

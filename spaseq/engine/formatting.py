"""Makers that write the matches of a run instead of creating objects.

A sink gives a run a block and a function that makes a maker for a query
(`Evaluation.format_with`). A query whose matches the core does not make one by one has no such
maker, and its matches remain objects. Matches must be written in order. The compiled loop makes
them in order, so queries of both kinds can be mixed. Python code lists the matches of an event
before they are written, so `in_order` lets the makers make objects there if there are matches of
both kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from spaseq.engine.native._matches import MatchMaker

if TYPE_CHECKING:
    from spaseq.engine.native.query_run import NativeRun
    from spaseq.engine.run_query import Executor


class Block(Protocol):
    """What makers write to."""

    makes_objects: bool
    """Whether the makers currently make objects."""


class Make(Protocol):
    """Makes the maker of a query's matches under a name; None if these must be objects.

    With `columns`, the query selects only these columns of its automaton.
    """

    def __call__(
        self, native: NativeRun, query: str, columns: Sequence[str] | None = None, /
    ) -> MatchMaker | None: ...


class Formatting:
    """The block and the makers of one run.

    Args:
        block: What the makers write to.
        make: Makes the maker of a query.
        mixed: Whether some matches of the run are objects: those of some queries, or of queries
            that equal another one.
    """

    def __init__(self, block: Block, make: Make, mixed: bool):
        self.block = block
        self.make = make
        self.mixed = mixed

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """A context in which matches are listed before they are written."""
        if not self.mixed:
            yield
            return
        self.block.makes_objects = True
        try:
            yield
        finally:
            self.block.makes_objects = False


def writing(block: Block, make: Make, executors: Sequence[Executor]) -> Formatting | None:
    """Have makers write the matches of queries from now on; None if no query has a maker.

    Args:
        block: What the makers write to.
        make: Makes the maker of a query.
        executors: What evaluates the queries.
    """
    made = []
    for executor in executors:
        if executor.division is not None:
            made.append(executor.division.write_with(make))
        else:
            copied = [query.plan.shown for query in executor.queries[1:]]
            made.append(executor.state.write_with(make, copied))
    if not any(made):
        return None
    several = any(len(executor.members) > 1 for executor in executors)
    return Formatting(block, make, several or not all(made))

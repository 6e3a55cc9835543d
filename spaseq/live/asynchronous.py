"""`arun`: the pipeline for asyncio. Sources may be asynchronous iterables.

The pipeline of `spaseq.run` works in a separate thread, for which the event loop never waits. An
asynchronous source is an iterator to that thread; each of its items is fetched in the event loop.
Cost: two hand-overs between threads per event of such a source and per match, about 0.1 ms.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from spaseq.engine.compiled import in_short
from spaseq.errors import SpaseqError
from spaseq.execute import check_keywords, check_mapping, run
from spaseq.inputs import Stream
from spaseq.program import AnyQuery, Program, compile_queries
from spaseq.rdf.accepted import AnyEvent, Bindable
from spaseq.result import ROWS, Result
from spaseq.results import Match

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

_END: Any = object()


class AsyncResult:
    """The matches of one call of `spaseq.arun`: a `Result` for asyncio.

    `async for` yields each match as soon as it is certain. `to_arrow`, `to_pandas`, `to_polars` and
    `to_batches` take the same arguments as in `Result`. Use it with `async with`, or call
    `aclose`, if you do not read it to the end.

    Example:
        >>> async with spaseq.arun(query, {"sensors": sensors()}) as result:
        ...     async for match in result:
        ...         await notify(match["room"])
    """

    def __init__(self, program: Program, streams: Mapping[str, Any], options: Mapping[str, Any]):
        self._program = program
        self._streams = streams
        self._options = options
        self._steps: AsyncGenerator[Any, None] | None = None
        self._is_taken = False
        """Whether a table takes the matches."""

    def __repr__(self) -> str:
        state = "not read yet" if self._steps is None else "being read"
        return f"<AsyncResult of {in_short(self._program)}; {state}>"

    def __aiter__(self) -> AsyncResult:
        return self

    async def __anext__(self) -> Match:
        if self._is_taken:
            raise self._already_read()
        if self._steps is None:
            self._steps = self._stepping(iter)
        return cast(Match, await anext(self._steps))

    async def aclose(self) -> None:
        """Stop reading: close the sources, and the connections of the run.

        Example:
            >>> await result.aclose()
        """
        if self._steps is None:
            self._steps = _nothing()
        await self._steps.aclose()

    async def __aenter__(self) -> AsyncResult:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    def to_batches(self, size: int = ROWS, **options: Any) -> AsyncIterator[pa.RecordBatch]:
        """The matches as record batches, with `async for`.

        Args:
            size: The number of rows of a batch.
            options: `columns` and `types`, as for `Result.to_batches`.

        Raises:
            SpaseqError: while iterating, as for `Result.to_batches`.

        Example:
            >>> async for batch in spaseq.arun(query, streams).to_batches(1000):
            ...     await send(batch)
        """
        return self._begin(lambda result: result.to_batches(size, **options))

    async def to_arrow(self, **options: Any) -> pa.Table:
        """The matches as a table of pyarrow.

        Args:
            options: `columns` and `types`, as for `Result.to_arrow`.

        Raises:
            SpaseqError: as for `Result.to_arrow`.

        Example:
            >>> table = await spaseq.arun(query, streams).to_arrow()
        """
        return await self._only(lambda result: result.to_arrow(**options))

    async def to_polars(self, **options: Any) -> pl.DataFrame:
        """The matches as a data frame of polars.

        Args:
            options: `columns` and `types`, as for `Result.to_polars`.

        Raises:
            SpaseqError: as for `Result.to_polars`.

        Example:
            >>> frame = await spaseq.arun(query, streams).to_polars()
        """
        return cast("pl.DataFrame", await self._only(lambda result: result.to_polars(**options)))

    async def to_pandas(self, **options: Any) -> pd.DataFrame:
        """The matches as a data frame of pandas.

        Args:
            options: `columns` and `types`, as for `Result.to_pandas`.

        Raises:
            SpaseqError: as for `Result.to_pandas`.

        Example:
            >>> frame = await spaseq.arun(query, streams).to_pandas()
        """
        return cast("pd.DataFrame", await self._only(lambda result: result.to_pandas(**options)))

    async def _only(self, make: Callable[[Result], Any]) -> Any:
        steps = self._begin(lambda result: iter([make(result)]))
        try:
            return await anext(steps)
        finally:
            await steps.aclose()

    def _begin(self, take: Callable[[Result], Iterator[Any]]) -> AsyncGenerator[Any, None]:
        if self._steps is not None:
            raise self._already_read()
        self._is_taken = True
        self._steps = self._stepping(take)
        return self._steps

    def _already_read(self) -> SpaseqError:
        return SpaseqError(
            "the matches of this result are being read already: call spaseq.arun again"
        )

    async def _stepping(self, take: Callable[[Result], Iterator[Any]]) -> AsyncGenerator[Any, None]:
        """The steps that `take` makes of the result, computed in a separate thread."""
        loop = asyncio.get_running_loop()
        bridges: list[_Bridge] = []
        given: dict[str, Any] = {}
        for name, content in self._streams.items():
            if hasattr(content, "__aiter__"):
                bridges.append(_Bridge(content, loop))
                content = bridges[-1]
            given[name] = content
        executor = ThreadPoolExecutor(1, thread_name_prefix="spaseq-arun")
        result: Result | None = None
        try:
            start = partial(run, self._program, given, **self._options)
            result = await loop.run_in_executor(executor, start)
            steps = await loop.run_in_executor(executor, take, result)
            while True:
                step = await loop.run_in_executor(executor, next, steps, None)
                if step is None:
                    return
                yield step
        finally:
            for bridge in bridges:
                bridge.stop()
            if result is not None:
                # The thread first completes its current work, which `stop` has cut short.
                await asyncio.shield(loop.run_in_executor(executor, result.close))
            executor.shutdown(wait=False)
            for bridge in bridges:
                await bridge.close()


async def _nothing() -> AsyncGenerator[Any, None]:
    """The steps of a result that was closed before it was read."""
    return
    yield


def arun(
    program: Program | AnyQuery | Sequence[AnyQuery],
    streams: Mapping[str, Stream | AsyncIterable[AnyEvent]],
    *,
    bind: Mapping[str, Bindable] | None = None,
    **options: Any,
) -> AsyncResult:
    """Run queries over streams for asyncio.

    Args:
        program: A compiled program, or one or several queries as for `spaseq.compile`.
        streams: As for `spaseq.run`; a stream may also be an asynchronous iterable of events, in
            time order.
        bind: Values of query variables.
        options: The other arguments of `spaseq.run`.

    Returns:
        An `AsyncResult`: iterate over it with `async for`, or await a table. Nothing is read
        before.

    Raises:
        ArgumentError: immediately, for an argument of a type that is not accepted.
        QueryError: immediately, if a query is invalid. All other errors of `spaseq.run` are raised
            while iterating, and those of asynchronous sources as they are.

    Example:
        >>> async for match in spaseq.arun(query, {"sensors": sensors()}):
        ...     print(match["room"])
    """
    check_mapping("streams", streams)
    check_keywords(options)
    if not isinstance(program, Program):
        program = compile_queries(program, bind=bind)
    elif bind:
        program = program.bind(bind)
    return AsyncResult(program, streams, options)


class _Stopped(Exception):
    """The consumer has stopped reading."""


class _Bridge:
    """An asynchronous iterable of an event loop as an iterator of another thread."""

    def __init__(self, items: Any, loop: asyncio.AbstractEventLoop):
        self._items = aiter(items)
        self._loop = loop
        self._waiting: Future[Any] | None = None
        self._is_stopped = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._is_stopped:
            raise _Stopped
        self._waiting = asyncio.run_coroutine_threadsafe(self._next(), self._loop)
        if self._is_stopped:
            self._waiting.cancel()
        try:
            item = self._waiting.result()
        except CancelledError:
            raise _Stopped from None
        if item is _END:
            raise StopIteration
        return item

    async def _next(self) -> Any:
        return await anext(self._items, _END)

    def stop(self) -> None:
        """Let the other thread continue, with an error."""
        self._is_stopped = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def close(self) -> None:
        """Close the iterable, if it can be closed."""
        close = getattr(self._items, "aclose", None)
        if close is not None:
            await close()

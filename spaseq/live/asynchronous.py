"""`arun`: the pipeline for asyncio. Sources may be asynchronous iterables.

The pipeline of `spaseq.run` works in a thread of its own, which the event loop never waits for. An
asynchronous source is an iterator to that thread; each of its items is fetched in the event loop.
Cost: two hand-overs between threads per event of such a source and per match, about 0.1 ms.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from spaseq.pipeline import run
from spaseq.program import Program, compile_queries
from spaseq.results import Match

_END: Any = object()


def arun(
    program: Program | str | Sequence[str],
    streams: Mapping[str, Any],
    *,
    bind: Mapping[str, object] | None = None,
    **options: Any,
) -> AsyncIterator[Match]:
    """Run queries over streams, and iterate over the matches with `async for`.

    Args:
        program: A compiled program, or the text of one or several queries.
        streams: As for `spaseq.run`; a stream may also be an asynchronous iterable of what an
            iterable of `spaseq.run` may have, in time order.
        bind: Values of query variables.
        options: The other arguments of `spaseq.run`.

    Raises:
        QueryError: immediately, if a query is invalid. All other errors of `spaseq.run` are raised
            while iterating, and those of asynchronous sources as they are.
    """
    if not isinstance(program, Program):
        program = compile_queries(program, bind=bind)
    elif bind:
        program = program.bind(bind)
    return _matches(program, streams, options)


async def _matches(
    program: Program, streams: Mapping[str, Any], options: Mapping[str, Any]
) -> AsyncIterator[Match]:
    loop = asyncio.get_running_loop()
    bridges: list[_Bridge] = []
    given: dict[str, Any] = {}
    for name, content in streams.items():
        if hasattr(content, "__aiter__"):
            bridges.append(_Bridge(content, loop))
            content = bridges[-1]
        given[name] = content
    executor = ThreadPoolExecutor(1, thread_name_prefix="spaseq-arun")
    found: Iterator[Match] | None = None
    try:
        start: Callable[[], Iterator[Match]] = partial(run, program, given, **options)
        found = await loop.run_in_executor(executor, start)
        while True:
            match = await loop.run_in_executor(executor, next, found, None)
            if match is None:
                return
            yield match
    finally:
        for bridge in bridges:
            bridge.stop()
        if found is not None:
            # The thread ends what it does first, which `stop` has cut short.
            await asyncio.shield(loop.run_in_executor(executor, partial(_close, found)))
        executor.shutdown(wait=False)
        for bridge in bridges:
            await bridge.close()


def _close(found: Iterator[Match]) -> None:
    """End a generator, which may have ended by an error of its own."""
    close = getattr(found, "close", None)
    if close is not None:
        close()


class _Stopped(Exception):
    """The consumer has gone."""


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

"""A run for asyncio: its calls are executed in a separate thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from spaseq.engine.changes import StatePolicy
from spaseq.engine.compiled import CompiledQueries
from spaseq.errors import ArgumentError, RunFailed, kind_of
from spaseq.rdf.accepted import Bindable
from spaseq.rdf.event import Event
from spaseq.rdf.native._terms import EventBatch, EventSequence
from spaseq.results import Match
from spaseq.runs import Run

if TYPE_CHECKING:
    from asyncio import Future

_T = TypeVar("_T")
_NEEDED = "a run, or a function that starts one, is needed (or use program.astart())"


class AsyncRun:
    """A run for asyncio, made by `Program.astart`: `async with program.astart() as run`.

    Its calls run in one thread, in the order in which they were made, so the event loop never waits
    for them. A cancelled call still completes; the next call returns its matches before its own.

    Args:
        start: A run, such as one that `Program.resume` returned, or a function that starts one.

    Raises:
        ArgumentError: for anything else.

    Example:
        >>> async with spaseq.AsyncRun(program.resume(blob)) as run:
        ...     await run.push("sensors", now, triples)
    """

    def __init__(self, start: Callable[[], Run] | Run):
        # Imported here, because programs without asyncio should start fast.
        from concurrent.futures import ThreadPoolExecutor

        if not (isinstance(start, Run) or callable(start)):
            raise ArgumentError(f"start: {_NEEDED}, not {kind_of(start)}")
        self._start = (lambda: start) if isinstance(start, Run) else start
        self._run: Run | None = None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="spaseq-run")
        self._abandoned: list[Future[list[Match]]] = []
        self._ended = False

    @property
    def run(self) -> Run:
        """The run itself, for calls while no other call is running."""
        if self._run is None:
            raise RuntimeError("the run has not started: async with program.astart() as run")
        return self._run

    async def __aenter__(self) -> AsyncRun:
        try:
            run = await self._call(self._start)
            if not isinstance(run, Run):
                raise ArgumentError(f"start: {_NEEDED}; the function returned {kind_of(run)}")
        except BaseException:
            self._end()
            raise
        self._run = run
        return self

    async def __aexit__(self, *raised: object) -> None:
        try:
            await self._call(self.run.close)
        finally:
            self._end()

    def _end(self) -> None:
        self._ended = True
        self._executor.shutdown(wait=False)

    async def push(self, stream: str, timestamp: Any, graph: Any, name: Any = None) -> list[Match]:
        """As `Run.push`."""
        return await self._matches(partial(self.run.push, stream, timestamp, graph, name))

    async def push_batch(self, events: Iterable[Event] | EventBatch | EventSequence) -> list[Match]:
        """As `Run.push_batch`, but returns all matches at once."""
        return await self._matches(lambda: list(self.run.push_batch(events)))

    async def advance(self, timestamp: Any) -> list[Match]:
        """As `Run.advance`."""
        return await self._matches(partial(self.run.advance, timestamp))

    async def finish(self, close: bool = True) -> list[Match]:
        """As `Run.finish`."""
        return await self._matches(partial(self.run.finish, close))

    async def add(self, name: str, program: CompiledQueries, *, new_streams: bool = False) -> None:
        """As `Run.add`, after the calls that were made before."""
        await self._call(partial(self.run.add, name, program, new_streams=new_streams))

    async def replace(
        self,
        name: str,
        program: CompiledQueries,
        state: StatePolicy = "fresh",
        *,
        new_streams: bool = False,
    ) -> None:
        """As `Run.replace`, after the calls that were made before."""
        await self._call(partial(self.run.replace, name, program, state, new_streams=new_streams))

    async def remove(self, name: str, *, drain: bool = False) -> None:
        """As `Run.remove`, after the calls that were made before."""
        await self._call(partial(self.run.remove, name, drain=drain))

    async def bind(self, **values: Bindable) -> None:
        """As `Run.bind`, after the calls that were made before."""
        await self._call(partial(self.run.bind, **values))

    async def save(self) -> bytes:
        """As `Run.save`."""
        return await self._call(self.run.save)

    async def stats(self) -> dict[str, Any]:
        """The counters of the run; see `Run.stats`.

        Example:
            >>> (await run.stats())["events"]
        """
        return await self._call(lambda: self.run.stats)

    async def _call(self, function: Callable[[], _T]) -> _T:
        return await self._submitted(function)

    def _submitted(self, function: Callable[[], _T]) -> Future[_T]:
        from asyncio import get_running_loop

        if self._ended:
            raise RunFailed("the run has ended: its async with block was left")
        return get_running_loop().run_in_executor(self._executor, function)

    async def _matches(self, function: Callable[[], list[Match]]) -> list[Match]:
        from asyncio import CancelledError, wait

        future = self._submitted(function)
        try:
            await wait([future])
        except CancelledError:
            self._abandoned.append(future)
            raise
        # The thread executes calls one after the other, so abandoned calls end before this one.
        abandoned, self._abandoned = self._abandoned, []
        found: list[Match] = []
        for one in abandoned:
            if one.exception() is None:
                found += one.result()
        return found + future.result()

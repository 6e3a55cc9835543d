"""The calls that the thread of the engine executes, and their answers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from spaseq.records import dataclass
from spaseq.server.problems import Problem

_T = TypeVar("_T")


@dataclass(slots=True)
class Call(Generic[_T]):
    """A call and its answer.

    Args:
        function: Is called between two events.
        future: The answer.
        size: The bytes that it holds in the queue.
        meanwhile: Is called instead in the midst of an event; None: the call waits.
    """

    function: Callable[[], _T]
    future: Future[_T]
    size: int
    meanwhile: Callable[[], _T] | None = None


@dataclass(slots=True)
class Answer:
    """The outcome of a call.

    Args:
        future: Whom to tell.
        result: What it returned.
        error: What it raised.
        first: The number of the next record before it.
        after: The number of the next record after it.
    """

    future: Future[Any]
    result: Any
    error: Exception | None
    first: int
    after: int

    def give(self) -> None:
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Stopping(BaseException):
    """The server stops in the midst of an event."""


def stopping() -> Problem:
    """The answer to calls while the server stops."""
    return Problem(503, "the server is stopping", "stopping", {"Retry-After": "1"})

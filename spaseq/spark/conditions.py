"""The error conditions of this package, in brackets in front of messages, as Spark writes its own.

An exception of a worker reaches the driver as text, inside one of Spark's exceptions. The condition
in the text says what failed, and `condition` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar, cast

from spaseq.errors import (
    EventError,
    InputError,
    KbError,
    LimitExceeded,
    QueryError,
    SpaseqError,
    StateError,
)

_CONDITIONS: tuple[tuple[type[SpaseqError], str], ...] = (
    (EventError, "SPASEQ_INVALID_EVENT"),
    (InputError, "SPASEQ_INVALID_INPUT"),
    (LimitExceeded, "SPASEQ_LIMIT_EXCEEDED"),
    (KbError, "SPASEQ_INVALID_KNOWLEDGE_BASE"),
    (QueryError, "SPASEQ_INVALID_QUERY"),
    (StateError, "SPASEQ_INVALID_CHECKPOINT"),
    (SpaseqError, "SPASEQ_ERROR"),
)
_WRITTEN = re.compile(r"\[(SPASEQ_[A-Z_]+)\]")
_Item = TypeVar("_Item")
_Method = Callable[..., Iterator[_Item]]
_Function = TypeVar("_Function", bound=Callable[..., Any])


def condition(error: BaseException) -> str | None:
    """The error condition of an exception: of this package, or of Spark about a failed worker.

    Returns:
        `SPASEQ_INVALID_EVENT`, `…_INPUT`, `…_KNOWLEDGE_BASE`, `…_QUERY`, `…_CHECKPOINT`,
        `SPASEQ_LIMIT_EXCEEDED`, or `SPASEQ_ERROR` for any other failure of this package; None for
        failures of others.

    Example:
        >>> import spaseq.spark as sps
        >>> try:
        ...     matches.collect()
        ... except Exception as error:
        ...     print(sps.condition(error))
    """
    for kind, name in _CONDITIONS:
        if isinstance(error, kind):
            return name
    found = _WRITTEN.search(str(error))
    return None if found is None else found[1]


def with_conditions(method: _Method[_Item]) -> _Method[_Item]:
    """A method that yields on a worker, with the condition in front of messages of failures."""

    @wraps(method)
    def conditioned(*args: Any, **named: Any) -> Iterator[_Item]:
        try:
            yield from method(*args, **named)
        except MemoryError as error:
            raise _exhausted(error) from error
        except (SpaseqError, ValueError) as error:
            _write(error)
            raise

    return conditioned


def with_condition(function: _Function) -> _Function:
    """A function that Spark calls, on a worker or to analyze a query: as `with_conditions`."""

    @wraps(function)
    def conditioned(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except MemoryError as error:
            raise _exhausted(error) from error
        except (SpaseqError, ValueError) as error:
            _write(error)
            raise

    return cast(_Function, conditioned)


def _write(error: Exception) -> None:
    """Put the condition in front of the message of an error of this package."""
    if _WRITTEN.search(str(error)) is None:
        name = condition(error) or "SPASEQ_ERROR"
        error.args = (f"[{name}] {error}", *error.args[1:])


def _exhausted(error: MemoryError) -> LimitExceeded:
    """The error for a worker without memory."""
    said = str(error) or "an allocation failed"
    found = LimitExceeded(
        f"a worker has no memory left: {said}. Bound the query with max_groups, max_steps or "
        "max_matches, or give the workers more memory (spark.executor.pyspark.memory)"
    )
    _write(found)
    return found

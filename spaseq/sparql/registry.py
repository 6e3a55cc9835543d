"""Functions of users: Python callables that queries call by an IRI.

`function` registers a callable for the process. A query refers to it by the IRI only, so a program
that calls it can be pickled; the process that starts the program must register the function, too.
A run looks up the callable when it starts. A function that no query calls costs nothing.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from spaseq.errors import ArgumentError
from spaseq.records import dataclass
from spaseq.sparql.builtins import NAMED_BY_IRI, Builtin

_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|\\^`]*")
_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Registered:
    """A callable, and how it is called."""

    entry: Builtin
    call: Callable[..., Any]
    terms: bool
    """Whether it receives RDF terms in place of plain Python values."""
    vectorized: bool
    """Whether it receives Arrow arrays of many calls at once."""

    @property
    def iri(self) -> str:
        return self.entry.name


_REGISTERED: dict[str, Registered] = {}


def function(iri: str, *, terms: bool = False, vectorized: bool = False) -> Callable[[_F], _F]:
    """Register the decorated callable as the function that queries call by this IRI.

    A query calls it as `<iri>(…)`, with arguments by position. Its result must depend only on its
    arguments: a run may cache results, and may call it for events that end in no match. An argument
    without a value is an error before the call. A call that raises an exception, or returns None,
    is a SPARQL error: a filter is false, and a variable of BIND is unbound.
    `Run.stats` counts the exceptions, with the first message.

    Args:
        iri: An absolute IRI. Registering it again replaces the callable for later runs.
        terms: Pass pyoxigraph terms. By default arguments are plain Python values: `int`,
            `Decimal`, `float`, `bool`, `str` (of IRIs, too), `datetime`, `date`, `timedelta`; a
            term without such a value stays a term. Results may be either.
        vectorized: Pass pyarrow arrays, one per argument, with one element per call, and expect an
            array, or a sequence, of as many results. For a batch of events the function is called
            once; see docs/python.md. Requires the extra `arrow`.

    Raises:
        ArgumentError: for an IRI that is not text, such as the callable itself.
        ValueError: for an IRI that is not absolute or belongs to a built-in function, or a callable
            without a signature of positional arguments.

    Example:
        >>> @spaseq.function("http://example.org/fn#double")
        ... def double(number):
        ...     return 2 * number
    """
    if not isinstance(iri, str):
        example = '@spaseq.function("http://example.org/fn#name")'
        raise ArgumentError(f"iri: the IRI of the function is needed, as in {example}")
    if not _IRI.fullmatch(iri):
        raise ValueError(f"a function needs an absolute IRI, not {iri!r}")
    if iri in NAMED_BY_IRI:
        raise ValueError(f"<{iri}> is a built-in function")
    if terms and vectorized:
        raise ValueError("a vectorized function receives Arrow arrays, so terms=True has no effect")

    def register(call: _F) -> _F:
        least, most, names = _arity(call)
        signature = f"<{iri}>({', '.join(f'?{name}' for name in names)})"
        entry = Builtin(iri, least, most, signature, kind="registered")
        _REGISTERED[iri] = Registered(entry, call, terms, vectorized)
        return call

    return register


def _arity(call: Callable[..., Any]) -> tuple[int, int | None, list[str]]:
    """(minimum and maximum number of arguments, names of the required ones)."""
    if not callable(call):
        raise ValueError(f"{call!r} is not callable")
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return 0, None, []  # some callables of C have no signature
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p.name for p in positional if p.default is p.empty]
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty:
            raise ValueError(
                f"queries pass arguments by position, but {parameter.name!r} of {call!r} is a "
                "required keyword"
            )
    rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return len(required), None if rest else len(positional), required


def registered(iri: str) -> Registered | None:
    """The function registered under an IRI."""
    return _REGISTERED.get(iri)


def registered_names() -> Iterable[str]:
    """The IRIs of all registered functions."""
    return tuple(_REGISTERED)


def named_function(iri: str) -> Builtin | None:
    """The function that an IRI names: one of the table, or a registered one."""
    known = NAMED_BY_IRI.get(iri)
    if known is not None:
        return known
    found = _REGISTERED.get(iri)
    return None if found is None else found.entry


def register_all(functions: Iterable[Registered]) -> None:
    """Register functions of another process, such as those of a Spark driver."""
    for each in functions:
        _REGISTERED[each.iri] = each


@contextmanager
def registry_restored() -> Iterator[None]:
    """Undo all registrations of a block; for tests."""
    before = dict(_REGISTERED)
    try:
        yield
    finally:
        _REGISTERED.clear()
        _REGISTERED.update(before)

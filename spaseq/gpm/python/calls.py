"""Calls of registered functions: values → plain objects → the callable → a value.

A run has one `Calls`. It looks a function up once, and counts the calls that failed. An exception
of a callable is an error in SPARQL's sense, and so is a result that is not a term.

**Vectorized functions.** A pattern is matched one event at a time, but a vectorized function should
be called once for many. In a first pass over a batch, `collect` therefore records the arguments of
calls instead of calling (each such call is then an error). It calls each function once with all
arguments, and caches the results for the second pass, which computes the rows. This is exact
because a function depends on its arguments only. A call that the first pass did not reach is made
individually.

Cost: a call converts its arguments and its result, about a microsecond each. The results of a
vectorized function are cached for the batch, at most `REMEMBERED_MAX` of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from spaseq.errors import SpaseqError
from spaseq.rdf.event import Term
from spaseq.rdf.native._values import Value
from spaseq.rdf.plain import plain, value_of
from spaseq.sparql.registry import Registered, registered

REMEMBERED_MAX = 1 << 16
"""The greatest number of results of one vectorized function that are cached."""
MESSAGE_MAX = 300
"""The greatest length of a message, in characters."""

Function: TypeAlias = Callable[..., Value | None]


@dataclass(slots=True)
class Failures:
    """How often a function failed, and its first failure."""

    count: int
    first: str


class Calls:
    """The registered functions that a run calls, and their failures by IRI."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}
        self._vectorized: list[_Vectorized] = []
        self._collecting = False
        self.failures: dict[str, Failures] = {}

    def function(self, iri: str) -> Function:
        """The function registered under an IRI.

        Raises:
            SpaseqError: if this process has not registered it.
        """
        known = self._functions.get(iri)
        if known is None:
            found = registered(iri)
            if found is None:
                raise SpaseqError(
                    f"the function <{iri}> is not registered in this process: import the module "
                    "that registers it before the run starts"
                )
            if found.vectorized:
                vectorized = _Vectorized(found, self)
                self._vectorized.append(vectorized)
                known = vectorized
            else:
                known = _single(found, self)
            self._functions[iri] = known
        return known

    @property
    def has_vectorized(self) -> bool:
        """Whether the run calls a vectorized function."""
        return bool(self._vectorized)

    def is_vectorized(self, name: str) -> bool:
        """Whether the run calls a vectorized function of this name."""
        return isinstance(self._functions.get(name), _Vectorized)

    def collect(self, match: Callable[[], object]) -> None:
        """Call the vectorized functions for all arguments that `match` encounters.

        `match` evaluates all patterns over a batch; its results are discarded. It is repeated while
        the results of one function lead to arguments of another.
        """
        for vectorized in self._vectorized:
            vectorized.forget()
        self._collecting = True
        try:
            for _ in self._vectorized:
                match()
                called = [vectorized.call_pending() for vectorized in self._vectorized]
                if not any(called):
                    return
        finally:
            self._collecting = False
            for vectorized in self._vectorized:
                vectorized.pending.clear()

    @property
    def collecting(self) -> bool:
        """Whether a first pass over a batch records arguments."""
        return self._collecting

    def failed(self, iri: str, error: BaseException) -> None:
        """Count a call that failed, except in the first pass over a batch."""
        if self._collecting:
            return
        known = self.failures.get(iri)
        if known is None:
            text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            self.failures[iri] = Failures(1, text[:MESSAGE_MAX])
        else:
            known.count += 1


def _single(of: Registered, calls: Calls) -> Function:
    call, iri, terms = of.call, of.iri, of.terms

    def called(*arguments: Value) -> Value | None:
        try:
            result = call(*[a.term if terms else plain(a) for a in arguments])
            return None if result is None else value_of(result)
        except Exception as error:
            calls.failed(iri, error)
            return None

    return called


class _Vectorized:
    """A function that receives Arrow arrays."""

    def __init__(self, of: Registered, calls: Calls):
        self._call = of.call
        self._iri = of.iri
        self._calls = calls
        self.pending: dict[tuple[Term, ...], tuple[Value, ...]] = {}
        """The arguments that the first pass recorded, by their terms."""
        self._known: dict[tuple[Term, ...], Value | Exception | None] = {}

    def __call__(self, *arguments: Value) -> Value | None:
        key = tuple([argument.term for argument in arguments])
        try:
            result = self._known[key]
        except KeyError:
            if self._calls.collecting:
                if len(self.pending) + len(self._known) < REMEMBERED_MAX:
                    self.pending[key] = arguments
                return None
            if len(self._known) >= REMEMBERED_MAX:
                self._known.clear()
            (result,) = self._results([arguments])
            self._known[key] = result
        if isinstance(result, Exception):
            self._calls.failed(self._iri, result)
            return None
        return result

    def forget(self) -> None:
        """Drop the results of the previous batch."""
        self._known.clear()

    def call_pending(self) -> bool:
        """Call the function once for all pending arguments; False if there were none."""
        pending, self.pending = self.pending, {}
        if not pending:
            return False
        results = self._results(list(pending.values()))
        self._known.update(zip(pending, results, strict=True))
        return True

    def _results(self, rows: Sequence[tuple[Value, ...]]) -> list[Value | Exception | None]:
        """The results of one call; if it fails, each row has the exception."""
        try:
            columns = [_array(column) for column in zip(*rows, strict=True)]
            found = _listed(self._call(*columns))
            if len(found) != len(rows):
                raise ValueError(f"it returned {len(found)} results for {len(rows)} calls")
        except Exception as error:
            return [error] * len(rows)
        return [_result(each) for each in found]


def _result(thing: Any) -> Value | Exception | None:
    try:
        return None if thing is None else value_of(thing)
    except Exception as error:
        return error


def _array(column: Sequence[Value]) -> Any:
    """The Arrow array of one argument: typed if its values have one type, else texts of terms."""
    import pyarrow as pa

    things = [plain(value) for value in column]
    try:
        return pa.array(things)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return pa.array([str(value.term) for value in column])


def _listed(result: Any) -> list[Any]:
    if hasattr(result, "to_pylist"):
        return list(result.to_pylist())
    if hasattr(result, "tolist"):
        return list(result.tolist())
    return list(result)

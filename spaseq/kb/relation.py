"""One pattern over one remote source → its solutions, all of them or by key.

The relation fetches all solutions once if they fit the source's limit. Otherwise it requests the
solutions for the keys in events, many keys per request, and caches the answers. Keys that may be
needed soon (prefetch) are added to a request that is sent anyway; they never make the needed keys
fail. A key whose solutions are unavailable has an error, or, if the source's `on_failure` or
`SILENT` says so, a row that binds only the key. Threads may share a relation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from threading import RLock
from time import monotonic
from typing import Protocol, cast

from spaseq.errors import EndpointError, KbError
from spaseq.kb.answer import Row, TooManyRows
from spaseq.kb.cache import Key, KeyCache
from spaseq.kb.client import Counters
from spaseq.kb.endpoint import Endpoint
from spaseq.kb.selection import ANY, select_text
from spaseq.parser import ast


class Respondent(Protocol):
    """A source that answers SELECT queries: an endpoint or a store."""

    @property
    def name(self) -> str: ...

    @property
    def endpoint(self) -> Endpoint: ...

    @property
    def counters(self) -> Counters: ...

    def rows(self, text: str, variables: Sequence[str], bound: int) -> list[Row]: ...

    def close(self) -> None: ...


class Relation:
    """The solutions of one pattern, over `variables`."""

    def __init__(
        self,
        source: Respondent,
        group: ast.GroupGraphPattern,
        variables: tuple[str, ...],
        silent: bool,
    ):
        self._source = source
        self._group = group
        self._variables = variables
        self._silent = silent
        self._lock = RLock()
        self._fetched = False
        self._all: Sequence[Row] | None = None
        self._caches: dict[tuple[str, ...], KeyCache] = {}
        self._failed: tuple[float, KbError] | None = None
        """The end of the pause after a failure, in monotonic seconds, and the failure."""

    @property
    def skips(self) -> bool:
        """Whether an event that needs unavailable solutions is skipped; else the run stops."""
        return self._source.endpoint.on_failure == "skip"

    # ------------------------------------------------------------------ all of it

    def all(self) -> Sequence[Row] | None:
        """Every solution; None if they must be requested by key.

        Raises:
            KbError: if the source fails, and `on_failure` is to stop the run.
        """
        with self._lock:
            if not self._fetched:
                self._all = self._fetch()
                self._fetched = True
            return self._all

    def complete(self, needed_by: str) -> Sequence[Row]:
        """Every solution, for patterns that cannot be requested by key.

        Raises:
            KbError: if the source fails, or has too many solutions.
        """
        rows = self.all()
        if rows is None:
            endpoint = self._source.endpoint
            if endpoint.join == "bind":
                why = "its join is 'bind'"
            else:
                why = f"it has more than {endpoint.rows:,} solutions (`rows`), or the fetch failed"
            raise KbError(
                f"a pattern over {self._source.name} would have to be fetched as a whole, for "
                f"{needed_by}, but {why}; the query was: {self._text(None)}"
            )
        return rows

    def _fetch(self) -> Sequence[Row] | None:
        endpoint = self._source.endpoint
        if endpoint.join == "bind":
            return None
        try:
            return self._request(self._text(endpoint.rows + 1), endpoint.rows)
        except TooManyRows:
            if endpoint.join == "auto":
                return None
            raise KbError(
                f"a pattern over {self._source.name} has more than {endpoint.rows:,} solutions; "
                "raise the `rows` of the Endpoint, or set join='auto' to join by key"
            ) from None
        except EndpointError:
            if self._silent:
                return [(None,) * len(self._variables)]
            if endpoint.on_failure == "stop" or endpoint.join != "auto":
                raise
            return None

    def _text(self, limit: int | None) -> str:
        return select_text(self._group, self._variables, limit)

    def _request(self, text: str, bound: int) -> Sequence[Row]:
        if not self._variables:
            return [()] if self._source.rows(text, (ANY,), bound) else []
        return list(dict.fromkeys(self._source.rows(text, self._variables, bound)))

    # ------------------------------------------------------------------ by key

    def of(
        self,
        names: tuple[str, ...],
        keys: Sequence[Key],
        ahead: Callable[[], Iterable[Key]] = tuple,
    ) -> tuple[dict[Key, Sequence[Row]], dict[Key, KbError]]:
        """The solutions for each key, and the errors of the keys without.

        Args:
            names: The variables of the keys.
            keys: The keys that are needed, each a tuple of the values of `names`.
            ahead: Returns keys that may be needed soon, each once; called if a request has room.
        """
        with self._lock:
            cache = self._caches.get(names)
            endpoint, counters = self._source.endpoint, self._source.counters
            if cache is None:
                cache = KeyCache(endpoint.cache, endpoint.keep, endpoint.keep_absent)
                self._caches[names] = cache
            solutions: dict[Key, Sequence[Row]] = {}
            missing: list[Key] = []
            used = cache.used
            for key in keys:
                rows = cache.get(key)
                if rows is None:
                    missing.append(key)
                else:
                    solutions[key] = rows
            counters.asked += len(keys)
            counters.known += len(solutions)
            counters.prefetched_used += cache.used - used
            for start in range(0, len(missing), endpoint.batch):
                some = missing[start : start + endpoint.batch]
                try:
                    self._rest()
                    answered = self._filled_up(names, some, cache, ahead)
                except KbError as error:
                    self._pause(error)
                    return solutions, self._without(names, missing[start:], error, solutions)
                for key, rows in answered.items():
                    cache.put(key, rows)
                solutions |= answered
            return solutions, {}

    def _filled_up(
        self,
        names: tuple[str, ...],
        keys: Sequence[Key],
        cache: KeyCache,
        ahead: Callable[[], Iterable[Key]],
    ) -> dict[Key, Sequence[Row]]:
        """The solutions of the needed keys, requested together with keys to prefetch.

        The solutions of prefetched keys go into the cache.
        """
        endpoint, counters = self._source.endpoint, self._source.counters
        room = min(endpoint.prefetch, endpoint.batch - len(keys), endpoint.cache // 2)
        if room <= 0:
            return self._answered(names, keys)
        needed = set(keys)
        others = (key for key in ahead() if key not in needed and not cache.has(key))
        more = list(islice(others, room))
        try:
            answered = self._answered(names, keys, more)
        except EndpointError as error:
            if not (more and error.final):
                raise
            return self._answered(names, keys)
        for key in more:
            rows = answered.pop(key, None)
            if rows is not None:
                cache.put(key, rows, ahead=True)
                counters.prefetched += 1
        return answered

    def _pause(self, error: KbError) -> None:
        endpoint = self._source.endpoint
        if self._failed is None and (self._silent or endpoint.on_failure != "stop"):
            self._failed = monotonic() + endpoint.pause, error

    def _rest(self) -> None:
        """Raise the last error again during the pause after a failure."""
        if self._failed is not None:
            until, error = self._failed
            if monotonic() < until:
                raise error
            self._failed = None

    def _answered(
        self, names: tuple[str, ...], keys: Sequence[Key], more: Sequence[Key] = ()
    ) -> dict[Key, Sequence[Row]]:
        """One request; if it has too many rows, repeat it without `more`, or in halves."""
        wanted = [*keys, *more]
        text = select_text(self._group, self._variables, None, names, wanted)
        columns = [self._variables.index(name) for name in names]
        answered: dict[Key, list[Row]] = {key: [] for key in wanted}
        try:
            rows = self._request(text, self._source.endpoint.rows)
        except TooManyRows:
            if more:
                return self._answered(names, keys)
            if len(keys) > 1:
                half = len(keys) // 2
                return self._answered(names, keys[:half]) | self._answered(names, keys[half:])
            raise EndpointError(
                self._source.name,
                text,
                f"one value has more than {self._source.endpoint.rows:,} solutions (`rows`)",
                final=True,
            ) from None
        for row in rows:
            mine = answered.get(cast(Key, tuple([row[column] for column in columns])))
            if mine is not None:
                mine.append(row)
        return dict(answered)

    def _without(
        self,
        names: tuple[str, ...],
        keys: Sequence[Key],
        error: KbError,
        solutions: dict[Key, Sequence[Row]],
    ) -> dict[Key, KbError]:
        """The errors of keys whose request failed, or unenriched rows for them in `solutions`."""
        if not self._silent and self._source.endpoint.on_failure != "unenriched":
            return dict.fromkeys(keys, error)
        self._source.counters.unenriched += len(keys)
        for key in keys:
            bound = dict(zip(names, key, strict=True))
            solutions[key] = [tuple([bound.get(name) for name in self._variables])]
        return {}

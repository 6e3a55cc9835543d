"""Matches → rows of a DataFrame, in the columns of spaseq/io/arrow_columns.py.

A row is the same in every task (spaseq/results/identity.py), so its `id` identifies it. Cost:
constant per term of a match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any, TypeAlias

import pyarrow as pa
import pyoxigraph as ox

from spaseq.io import time_column
from spaseq.io.arrow_columns import GROUPED, Columns
from spaseq.io.identity import Shown, TimeKind, decoded, plain, shown_time, witness_shown
from spaseq.io.native._columns import NativeColumn, NativeValues, Numbers, RowMaker, Strings
from spaseq.rdf.event import Term, n_triples
from spaseq.results import Match, Witness, triples_text
from spaseq.results.identity import match_digest, relabelled

Origin: TypeAlias = Callable[[Witness], str]
"""What identifies the event of a witness besides its place (spaseq/results/identity.py)."""

ROWS_AT_ONCE = 1024
"""The number of rows of a batch that `Rows` builds from objects."""
COMPILED_ROWS_AT_ONCE = 1 << 14
"""The same number for compiled code, whose rows are small. A batch costs Spark as much as hundreds
of rows.
"""


def batches(
    columns: Columns, matches: Iterable[Match], origin: Origin | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of matches, in batches."""
    rows = Rows(columns, origin)
    for match in matches:
        rows.add(match)
        if rows.full:
            yield rows.batch()
    if len(rows):
        yield rows.batch()


class Rows:
    """Builds rows from `Match` objects.

    Times are microseconds, or the results of `written_time` for columns of strings. The
    bindings of all rows are concatenated, and so are the events. Those of row i begin at the i-th
    offset in `_bindings` and `_events`; the offset None means null.
    """

    def __init__(self, columns: Columns, origin: Origin | None = None):
        self._columns = columns
        self._origin = origin
        self._has_id = columns.has("id")
        self._has_events = self._has_id or columns.has("events")
        self._has_texts = self._has_id or columns.has("bindings")
        self._ids: list[str] = []
        self._queries: list[str] = []
        self._starts: list[Any] = []
        self._ends: list[Any] = []
        self._values: dict[str, list[str | None]] = {name: [] for name in columns.variables}
        self._natives = {name: NativeValues() for name in columns.variables if columns.typed}
        self.natives: Mapping[str, NativeColumn] = {}
        """For typed columns: the columns of the variables in the last batch, by their names."""
        self._bindings: list[int | None] = []
        self._keys: list[str] = []
        self._items: list[str] = []
        self._events: list[int | None] = []
        self._shown: list[Shown] = []
        self._booleans: list[bool | None] = []
        self._graphs: list[str | None] = []
        self._results: list[int | None] = []
        self._matches: list[Match] = []
        self._known: dict[int, tuple[Shown, str, Mapping[Term, Term]]] = {}
        """By `id()` of a witness; `_matches` holds references to all of them."""

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def full(self) -> bool:
        """Whether the caller should fetch the batch now."""
        return len(self) >= ROWS_AT_ONCE

    def add(self, match: Match) -> None:
        """Add the row of a match."""
        kind, shown, parts, names = self._columns.kind, self._shown, [], dict[Term, Term]()
        self._matches.append(match)
        first = len(shown)
        identified = self._has_events or match.graph is not None or _has_nodes(match)
        for witness in match.events if identified else ():
            known = self._known.get(id(witness))
            if known is None:
                origin = "" if self._origin is None else self._origin(witness)
                known = self._known[id(witness)] = witness_shown(witness, kind, origin)
            shown.append(known[0])
            parts.append(known[1])
            if known[2]:
                names |= known[2]
        match = relabelled(match, parts, names)
        texts = list(map(n_triples, match.bindings.values())) if self._has_texts else []
        self._ids.append(match_digest(match, parts, texts) if self._has_id else "")
        self._queries.append(match.query)
        self._ends.append(shown_time(match.end, kind))
        if match.boolean is None:
            self._starts.append(shown_time(match.start, kind))
            self._events.append(first)
        else:
            # All matches of an instant give the same answer, so the row shows no events.
            self._starts.append(None)
            self._events.append(None)
            del shown[first:]
        self._booleans.append(match.boolean)
        self._results.append(match.results if match.boolean is None else None)
        self._graphs.append(None if match.graph is None else triples_text(match.graph))
        solution = match.bindings
        if match.boolean is None and match.graph is None:
            self._bindings.append(len(self._keys))
            if texts:
                self._keys += solution
                self._items += texts
        else:
            self._bindings.append(None)
            solution = {}
        for name, column in self._values.items():
            term = solution.get(name)
            column.append(None if term is None else plain(term))
            if self._natives:
                self._natives[name].add_term(term)

    def batch(self) -> pa.RecordBatch:
        """The rows added so far; the object is empty afterwards."""
        columns, kind = self._columns, self._columns.kind
        found = {
            "id": pa.array(self._ids, pa.string()),
            "query": pa.array(self._queries, pa.string()),
            "start": _times(self._starts, kind),
            "end": _times(self._ends, kind),
            "bindings": _maps(self._bindings, self._keys, self._items),
            "events": self._all_events(),
            "boolean": pa.array(self._booleans, pa.bool_()),
            "graph": pa.array(self._graphs, pa.string()),
        }
        if columns.grouped:
            found[GROUPED] = pa.array(self._results, pa.int64())
        for name, column in columns.variables.items():
            found[column] = pa.array(self._values[name], pa.string())
        self.natives = {
            columns.variables[name]: values.take(found[columns.variables[name]])
            for name, values in self._natives.items()
        }
        batch = columns.batch_of(found)
        for some in (
            *(self._ids, self._queries, self._starts, self._ends, *self._values.values()),
            *(self._bindings, self._keys, self._items, self._events, self._shown),
            *(self._booleans, self._graphs, self._results, self._matches),
        ):
            some.clear()
        self._known.clear()
        return batch

    def _all_events(self) -> pa.Array:
        gpms, streams, times, ordinals, names, keys, items = (
            zip(*self._shown, strict=True) if self._shown else [()] * 7
        )
        ends = [0, *accumulate(map(len, keys))]
        arrays = [
            pa.array(gpms, pa.string()),
            pa.array(streams, pa.string()),
            _times(times, self._columns.kind),
            pa.array(ordinals, pa.int64()),
            pa.array(names, pa.string()),
            _maps(ends[:-1], list(chain.from_iterable(keys)), list(chain.from_iterable(items))),
        ]
        ends_of_rows = pa.array([*self._events, len(self._shown)], pa.int32())
        return _lists_of_events(ends_of_rows, arrays)


def _has_nodes(match: Match) -> bool:
    """Whether a label in the solution is derived from an event."""
    return any(isinstance(term, ox.BlankNode | ox.Triple) for term in match.bindings.values())


class CompiledRows:
    """Rows that compiled code builds without `Match` objects.

    `maker` replaces the match maker of a run. The run then yields None when a batch is full.
    """

    def __init__(self, columns: Columns, maker: RowMaker):
        self._columns = columns
        self._maker = maker
        self.natives: Mapping[str, NativeColumn] = {}
        """As in `Rows`."""
        maker.begin(decoded, COMPILED_ROWS_AT_ONCE, columns)

    def set_columns(self, columns: Columns) -> None:
        """The same rows with another kind of time."""
        self._columns = columns

    def __len__(self) -> int:
        return self._maker.starts.count

    @property
    def full(self) -> bool:
        """Whether the caller should fetch the batch now."""
        return self._maker.full

    def batch(self) -> pa.RecordBatch:
        """The rows built so far; the object is empty afterwards."""
        made, kind = self._maker, self._columns.kind
        made.close()
        shown = [
            made.gpms.array(),
            made.streams.array(),
            time_column.column(made.times.array(), kind),
            made.ordinals.array(),
            made.names.array(),
            _compiled_maps(made.event_key_begins, made.event_keys, made.event_items),
        ]
        found = {
            "id": made.ids.array(),
            "query": made.queries.array(),
            "start": time_column.column(made.starts.array(), kind),
            "end": time_column.column(made.ends.array(), kind),
            "bindings": _compiled_maps(made.begins, made.keys, made.items),
            "events": _lists_of_events(made.event_begins.array().cast(pa.int32()), shown),
        }
        for column, texts in zip(self._columns.variables.values(), made.values, strict=True):
            found[column] = texts.array()
        natives = zip(self._columns.variables.values(), made.natives or (), strict=False)
        self.natives = {
            column: values.take(found[column])
            for column, values in natives
            if self._columns.has(column)
        }
        return self._columns.batch_of(found)


def _lists_of_events(begins: pa.Array, arrays: list[pa.Array]) -> pa.Array:
    fields = ["gpm", "stream", "time", "ordinal", "name", "bindings"]
    return pa.ListArray.from_arrays(begins, pa.StructArray.from_arrays(arrays, fields))


def _compiled_maps(begins: Numbers, keys: Strings, items: Strings) -> pa.Array:
    return pa.MapArray.from_arrays(begins.array().cast(pa.int32()), keys.array(), items.array())


def _maps(begins: Sequence[int | None], keys: Sequence[str], items: Sequence[str]) -> pa.Array:
    return pa.MapArray.from_arrays(
        pa.array([*begins, len(keys)], pa.int32()),
        pa.array(keys, pa.string()),
        pa.array(items, pa.string()),
    )


def _times(values: Sequence[Any], kind: TimeKind) -> pa.Array:
    if kind == "string":
        return pa.array(values, pa.string())
    return time_column.column(pa.array(values, pa.int64()), kind)

"""The columns of a DataFrame of matches, and the selection of the columns to compute.

The columns are `id`, `query`, `start`, `end`; one column of text per projected variable;
`bindings` for SELECT, `graph` for CONSTRUCT and `boolean` for ASK; `results` for queries with
GROUP; and `events`, the provenance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from spaseq.engine.compiled import CompiledQueries
from spaseq.io import time_column
from spaseq.io.identity import TimeKind
from spaseq.records import dataclass

if TYPE_CHECKING:
    from spaseq.io.formats import Shape

_FIXED = ("id", "query", "start", "end", "bindings", "graph", "boolean", "events")
GROUPED = "results"
"""The column of queries with GROUP."""
_TERMS = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of the matches of one or more queries.

    `variables` maps each projected variable to its column. Underscores are appended to a name that
    another column has, ignoring case, as Spark does. `wanted` lists the columns to compute, in
    order; None: all.
    """

    variables: Mapping[str, str]
    forms: frozenset[str]
    kind: TimeKind
    wanted: tuple[str, ...] | None = None
    grouped: bool = False
    """Whether a query has a GROUP: a row then shows the number of results of its group."""
    typed: bool = False
    """Whether to record the native types of the values of variables
    (spaseq/io/typed_columns.py)."""

    def has(self, name: str) -> bool:
        """Whether to compute a column."""
        return self.wanted is None or name in self.wanted

    def schema(self) -> pa.Schema:
        """The schema of the computed columns, for Arrow."""
        whole = self._whole()
        return whole if self.wanted is None else pa.schema([whole.field(n) for n in self.wanted])

    def names(self) -> list[str]:
        """The names of all columns, computed or not."""
        return list(self._whole().names)

    def _whole(self) -> pa.Schema:
        time = time_column.arrow_type(self.kind)
        event = pa.struct(
            [
                ("gpm", pa.string()),
                ("stream", pa.string()),
                ("time", time),
                ("ordinal", pa.int64()),
                ("name", pa.string()),
                ("bindings", _TERMS),
            ]
        )
        fields = [("id", pa.string()), ("query", pa.string()), ("start", time), ("end", time)]
        fields += [(column, pa.string()) for column in self.variables.values()]
        if "select" in self.forms:
            fields.append(("bindings", _TERMS))
        if "construct" in self.forms:
            fields.append(("graph", pa.string()))
        if "ask" in self.forms:
            fields.append(("boolean", pa.bool_()))
        if self.grouped:
            fields.append((GROUPED, pa.int64()))
        return pa.schema([*fields, ("events", pa.list_(event))])

    def batch_of(self, found: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """A batch of the computed columns. `found` maps names to arrays, also of other columns."""
        schema = self.schema()
        return pa.RecordBatch.from_arrays([found[name] for name in schema.names], schema=schema)


def columns_of(program: CompiledQueries, kind: TimeKind) -> Columns:
    """The columns of a program's matches."""
    outputs = [query.plan.output for query in program.queries]
    names = [column.name for output in outputs for column in output.columns]
    grouped = any(output.grouping is not None for output in outputs)
    return _columns(names, frozenset(output.form for output in outputs), kind, grouped)


def columns_of_shapes(shapes: Sequence[Shape], kind: TimeKind) -> Columns:
    """The columns of results of these shapes."""
    names = [name for shape in shapes for name in shape.columns]
    grouped = any(shape.grouped for shape in shapes)
    return _columns(names, frozenset(shape.form for shape in shapes), kind, grouped)


def _columns(names: Sequence[str], forms: frozenset[str], kind: TimeKind, grouped: bool) -> Columns:
    taken = {*_FIXED, GROUPED} if grouped else set(_FIXED)
    columns: dict[str, str] = {}
    for name in dict.fromkeys(names):
        column = name
        while column.lower() in taken:
            column += "_"
        taken.add(column.lower())
        columns[name] = column
    return Columns(columns, forms, kind, grouped=grouped)


def select_columns(wholes: Sequence[Columns], wanted: Sequence[str] | None) -> list[Columns]:
    """The results' columns, restricted to `wanted`; None: all columns.

    A result without any of these columns computes `query`, so that it still has its rows.

    Raises:
        ValueError: if no result has a wanted column, or `wanted` is empty.
    """
    if wanted is None:
        return list(wholes)
    there = dict.fromkeys(name for whole in wholes for name in whole.names())
    for name in wanted:
        if name not in there:
            raise ValueError(f"there is no column {name}; there are {', '.join(there)}")
    if not wanted:
        raise ValueError(f"columns is empty; there are {', '.join(there)}")
    made = []
    for whole in wholes:
        own = tuple(name for name in dict.fromkeys(wanted) if name in whole.names())
        made.append(replace(whole, wanted=own or ("query",)))
    return made

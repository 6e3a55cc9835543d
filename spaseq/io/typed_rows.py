"""The matches of a run → record batches with typed columns.

Where a run has one query whose matches the core makes one by one, compiled code builds the columns
without an object for a match (spaseq/io/native/columns/rows.pxi). Rows of other matches are
built from objects. Memory: the rows that have not been taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from spaseq.engine.evaluation import Evaluation
from spaseq.errors import SpaseqError
from spaseq.io import typed_columns
from spaseq.io.arrow_columns import Columns
from spaseq.io.arrow_rows import CompiledRows, Rows
from spaseq.io.identity import TimeKind
from spaseq.io.native._columns import NativeColumn, RowMaker
from spaseq.rdf.event import DATE_TIME
from spaseq.records import dataclass
from spaseq.results import Match


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows: the columns as text, and by column the native types of the variables' values."""

    texts: pa.RecordBatch
    natives: Mapping[str, NativeColumn]


class TypedRows:
    """Collects the rows of the matches of one run.

    Args:
        columns: The columns to compute.
        evaluation: The run.
    """

    def __init__(self, columns: Columns, evaluation: Evaluation):
        self._columns = replace(columns, typed=True)
        self._evaluation = evaluation
        self._rows: Rows | None = None
        """Rows from objects, which come before those of `_compiled`."""
        self._compiled: CompiledRows | None = None
        self._parts: list[Part] = []
        self._count = 0
        """The rows of the parts."""

    def __len__(self) -> int:
        """The rows that have not been taken."""
        objects = 0 if self._rows is None else len(self._rows)
        return self._count + objects + (0 if self._compiled is None else len(self._compiled))

    def attach(self) -> None:
        """Let the core make the rows of a run that has not begun, if it can."""
        evaluation = self._evaluation
        alone = all(map(evaluation.single, evaluation.listed.program.streams))
        native = evaluation.queries[0].native
        if not alone:
            return
        maker = native.made_by(RowMaker)
        if maker is not None:
            maker.whole()
            native.matches = maker
            self._compiled = CompiledRows(self._columns, maker)

    def _set_domain(self, domain: str | None) -> None:
        """Set the kind of the times; None, before the first event, means dates."""
        kind: TimeKind = "timestamp" if domain in (DATE_TIME, None) else "decimal"
        self._columns = replace(self._columns, kind=kind)

    def add(self, match: Match | None) -> None:
        """Add a match; None means that there may be rows of the core."""
        compiled = self._compiled
        if compiled is not None and len(compiled) and (match is not None or compiled.full):
            self.close_part()
        if match is None:
            return
        if self._rows is None:
            self._set_domain(match.end.domain)
            self._rows = Rows(self._columns)
        self._rows.add(match)
        if self._rows.full:
            self.close_part()

    def close_part(self) -> None:
        """End a part with the rows so far."""
        if self._compiled is not None and len(self._compiled):
            self._set_domain(self._evaluation.queries[0].domain)
            self._compiled.set_columns(self._columns)
        for rows in (self._rows, self._compiled):
            if rows is not None and len(rows):
                batch = rows.batch()
                self._parts.append(Part(batch, rows.natives))
                self._count += batch.num_rows

    def take(self) -> list[Part]:
        """The parts so far."""
        self.close_part()
        parts, self._parts, self._count = self._parts, [], 0
        return parts

    def schema(self, parts: Sequence[Part], types: Mapping[str, pa.DataType]) -> pa.Schema:
        """The schema that fits some parts. `types` has the types of columns that are given."""
        if not parts:
            self._set_domain(self._evaluation.clock.domain)
        fields = []
        variables = set(self._columns.variables.values())
        for field in self._columns.schema():
            wanted = types.get(field.name)
            if wanted is None and field.name in variables:
                columns = [part.natives[field.name] for part in parts]
                native, scale = typed_columns.common_native(columns)
                empty = NativeColumn(pa.array([], pa.string()), b"", b"")
                wanted = empty.array(native, scale).type
            fields.append(field if wanted is None else field.with_type(wanted))
        return pa.schema(fields)

    def typed(self, part: Part, schema: pa.Schema) -> pa.RecordBatch:
        """The rows of a part in a schema that `schema` returned.

        Raises:
            SpaseqError: if a value does not fit its type.
        """
        arrays = []
        for field in schema:
            natives = part.natives.get(field.name)
            if natives is not None:
                arrays.append(typed_columns.as_type(natives, field.type, field.name))
                continue
            try:
                arrays.append(part.texts.column(field.name).cast(field.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise SpaseqError(
                    f"the column {field.name} does not fit its type {field.type}: {error}"
                ) from error
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

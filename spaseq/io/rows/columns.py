"""The columns of a table → variables, and Arrow arrays → buffers that the compiled reader reads.

| Arrow | RDF |
|---|---|
| integers | xsd:integer |
| float, double | xsd:float, xsd:double |
| decimal | xsd:decimal |
| bool | xsd:boolean |
| string | xsd:string |
| timestamp | xsd:dateTime, in UTC with `Z` if the type has a zone |
| date, time | xsd:date, xsd:time |
| duration | xsd:dayTimeDuration |
| binary | xsd:hexBinary |

Literals have the canonical form that casts produce. The fields of a struct are separate columns,
named by their path. Lists and maps are not values. Cost: one vectorised conversion of an array.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from spaseq.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_NO_NAME = re.compile(r"\W")
COLUMN_MAX_BYTES = 1 << 30
"""What the texts of a column may have in one batch, or all columns in a row group of Parquet."""
SHORT_BYTES = 4
"""Bytes of each value of a column of texts that has few values, each of which occurs often."""
MAX_SCALE = 76
"""The most digits by which the point of a decimal may be moved; the compiled reader has room for
them."""
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Kind(IntEnum):
    """How the values of a buffer are written; the enum of _row_events.pyx has the same members."""

    NOTHING = 0
    TEXT = 1
    INTEGER = 2
    DECIMAL = 3
    DOUBLE = 4
    FLOAT = 5
    BOOLEAN = 6
    DATE_TIME = 7
    DATE = 8
    TIME = 9
    DURATION = 10
    HEX = 11
    UNSIGNED = 12
    TERM = 13


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field of a struct. `path` leads to it from the table's columns."""

    path: tuple[str, ...]
    variable: str
    type: Any
    unsupported: str = ""
    """The content of the column, if it is not one value per row."""

    @property
    def name(self) -> str:
        return ".".join(self.path)


def variable_of(path: tuple[str, ...]) -> str:
    """The name of the variable of a column."""
    return _NO_NAME.sub("_", "_".join(path)) or "_"


def columns_of(schema: Sequence[pa.Field]) -> list[Column]:
    """The columns of a schema, with each struct replaced by its fields."""
    return list(_columns((), schema))


def _columns(path: tuple[str, ...], fields: Sequence[pa.Field]) -> Iterator[Column]:
    import pyarrow as pa

    for field in fields:
        here = (*path, field.name)
        held = _storage(field.type)
        if pa.types.is_struct(held):
            yield from _columns(here, [held.field(i) for i in range(held.num_fields)])
            continue
        yield Column(here, variable_of(here), held, _unsupported(held))


def _storage(type_: pa.DataType) -> pa.DataType:
    """The type of the values themselves, inside an extension type or a dictionary."""
    import pyarrow as pa

    while True:
        if isinstance(type_, pa.BaseExtensionType):
            type_ = type_.storage_type
        elif pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
            type_ = type_.value_type
        else:
            return type_


def _unsupported(type_: pa.DataType) -> str:
    import pyarrow as pa

    is_ = pa.types
    if is_.is_map(type_):
        return "maps"
    if is_.is_nested(type_):
        return "unions" if is_.is_union(type_) else "lists"
    if is_.is_interval(type_):
        return "intervals"
    return ""


@dataclass(frozen=True, slots=True)
class Buffers:
    """The values of one array, as addresses of its buffers, which `owner` keeps alive.

    `scale` is the number of fractional digits of a decimal, or of ticks per second of a time, or
    of cells from one term to the next.
    """

    owner: Any
    kind: Kind
    offset: int
    values: int
    validity: int
    data: int
    scale: int
    zoned: bool


def buffers_of(array: pa.Array) -> Buffers:
    """The buffers of an array of a supported type.

    Raises:
        ValueError: if a number does not fit.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    is_ = pa.types
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif is_.is_dictionary(array.type):
            array = _decoded(array)
        elif is_.is_run_end_encoded(array.type):
            lengths = _lengths(array.values)
            if lengths is not None:
                runs = pa.RunEndEncodedArray.from_arrays(array.run_ends, lengths)
                _check_size(pc.run_end_decode(runs.slice(array.offset, len(array))))
            array = pc.run_end_decode(array)
        else:
            break
    type_ = array.type
    if is_.is_null(type_):
        return Buffers(array, Kind.NOTHING, 0, 0, 0, 0, 0, False)
    scale, zoned = 0, False
    if is_.is_string(type_) or is_.is_large_string(type_) or is_string_view(type_):
        kind, array = Kind.TEXT, array.cast(pa.string())
    elif is_.is_uint64(type_):
        kind = Kind.UNSIGNED
    elif is_.is_integer(type_):
        kind, array = Kind.INTEGER, array.cast(pa.int64())
    elif is_.is_decimal(type_):
        kind, scale = Kind.DECIMAL, type_.scale
        if not -MAX_SCALE <= scale <= MAX_SCALE:
            raise ValueError(f"decimals of scale {scale} are not supported")
        if not is_.is_decimal128(type_):
            array = array.cast(pa.decimal128(38, scale))
    elif is_.is_floating(type_):
        kind = Kind.DOUBLE if is_.is_float64(type_) else Kind.FLOAT
        array = array.cast(pa.float64())
    elif is_.is_boolean(type_):
        kind = Kind.BOOLEAN
    elif is_.is_timestamp(type_):
        kind, scale, zoned = Kind.DATE_TIME, _TICKS[type_.unit], type_.tz is not None
        array = array.cast(pa.int64())
    elif is_.is_date(type_):
        kind, array = Kind.DATE, array.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    elif is_.is_time(type_):
        kind, scale = Kind.TIME, _TICKS[type_.unit]
        array = array.cast(pa.int32() if is_.is_time32(type_) else pa.int64()).cast(pa.int64())
    elif is_.is_duration(type_):
        kind, scale, array = Kind.DURATION, _TICKS[type_.unit], array.cast(pa.int64())
    else:
        kind, array = Kind.HEX, array.cast(pa.binary())
    validity, *rest = array.buffers()
    addresses = [0 if buffer is None else buffer.address for buffer in rest]
    return Buffers(
        array,
        kind,
        array.offset,
        addresses[0],
        0 if validity is None else validity.address,
        addresses[1] if len(addresses) > 1 else 0,
        scale,
        zoned,
    )


def _lengths(values: pa.Array) -> pa.Array | None:
    """The lengths in bytes; None if the values are neither texts nor bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = _without_views(values)
    return pc.binary_length(values).cast(pa.int64()) if has_lengths(values.type) else None


def has_lengths(type_: pa.DataType) -> bool:
    """Whether a type is that of texts or bytes, but for views."""
    import pyarrow as pa

    is_ = pa.types
    return bool(
        is_.is_string(type_)
        or is_.is_large_string(type_)
        or is_.is_binary(type_)
        or is_.is_large_binary(type_)
    )


def check_row_groups(metadata: pq.FileMetaData, wanted: Set[str]) -> None:
    """Check the sizes of some columns of a Parquet file before they are decoded.

    Raises:
        ValueError: if a row group is too large.
    """
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunks = map(group.column, range(group.num_columns))
        size = sum(
            chunk.total_uncompressed_size
            for chunk in chunks
            if chunk.path_in_schema.partition(".")[0] in wanted
        )
        if size > COLUMN_MAX_BYTES:
            raise ValueError(
                f"the row group {number + 1} has {size >> 20:,} MiB in the columns that are read; "
                f"the limit is {COLUMN_MAX_BYTES >> 20:,} MiB (write the file with a smaller "
                "row_group_size)"
            )


def repeated_columns(metadata: pq.FileMetaData, schema: Sequence[pa.Field]) -> list[str]:
    """The columns of a Parquet file that repeat few texts, which are read as dictionaries."""
    found = set[str]()
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.total_uncompressed_size < SHORT_BYTES * chunk.num_values:
                found.add(chunk.path_in_schema)
    return [field.name for field in schema if field.name in found and has_lengths(field.type)]


def _without_views(values: pa.Array) -> pa.Array:
    """The same texts or bytes, not as views."""
    import pyarrow as pa

    plain = {"string_view": pa.string(), "binary_view": pa.binary()}.get(str(values.type))
    return values if plain is None else values.cast(plain)


def _check_size(lengths: pa.Array) -> None:
    """Check the size of a column before texts that it repeats are written out.

    Raises:
        ValueError: if it is too large.
    """
    import pyarrow.compute as pc

    size = pc.sum(lengths).as_py() or 0
    if size > COLUMN_MAX_BYTES:
        raise ValueError(
            f"{len(lengths):,} rows of it have {size >> 20:,} MiB; the limit is "
            f"{COLUMN_MAX_BYTES >> 20:,} MiB"
        )


def _decoded(array: pa.DictionaryArray) -> pa.Array:
    """The values of a dictionary array; pyarrow decodes no dictionary of views."""
    import pyarrow as pa

    lengths = _lengths(array.dictionary)
    if lengths is not None:
        _check_size(lengths.take(array.indices))
        array = pa.DictionaryArray.from_arrays(array.indices, _without_views(array.dictionary))
    return array.dictionary_decode()


def is_string_view(type_: pa.DataType) -> bool:
    """Whether a type is the view of strings, which old versions of pyarrow lack."""
    import pyarrow as pa

    return hasattr(pa, "string_view") and bool(type_ == pa.string_view())


def array_at(batch: pa.RecordBatch, path: tuple[str, ...]) -> pa.Array:
    """The array of a column, null where a struct around it is null.

    Raises:
        ValueError: if the array is malformed.
    """
    import pyarrow as pa

    array = batch.column(batch.schema.get_field_index(path[0]))
    array.validate(full=True)
    for name in path[1:]:
        while isinstance(array, pa.ExtensionArray):
            array = array.storage
        fields = array.flatten()
        array = fields[array.type.get_field_index(name)]
    return array

"""Columns of text → typed columns, by the datatypes of the variables' literals.

The column `bindings` still holds the complete terms of every row. A value that does not fit the
type of its column is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from spaseq.spark.schemas import refused_as, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Types: TypeAlias = Mapping[str, str] | Literal["infer"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
_WHOLE = (
    "integer", "nonPositiveInteger", "negativeInteger", "nonNegativeInteger", "positiveInteger",
    "long", "int", "short", "byte", "unsignedLong", "unsignedInt", "unsignedShort",
    "unsignedByte",
)  # fmt: skip
_SPARK = {
    **{_XSD + name: "bigint" for name in _WHOLE},
    _XSD + "decimal": "decimal(38,18)",
    _XSD + "double": "double",
    _XSD + "float": "double",
    _XSD + "boolean": "boolean",
    _XSD + "dateTime": "timestamp",
    _XSD + "dateTimeStamp": "timestamp",
    _XSD + "date": "date",
}
_NUMBERS = {"bigint", "decimal(38,18)", "double"}


def spark_schema(schema: pa.Schema) -> t.StructType:
    """The Spark schema of an Arrow schema."""
    return from_arrow_schema(schema)


def typed(matches: DataFrame, types: Types) -> DataFrame:
    """Matches with the columns of variables cast to types.

    Args:
        matches: the matches.
        types: the Spark type by column, or "infer" to derive the types from all matches, which
            evaluates the query once for this.

    Raises:
        ValueError: if a column does not exist, or for "infer" over a streaming DataFrame.
    """
    if types == "infer":
        with refused_as(
            'types="infer" runs a job, and a query function of a pipeline must not: name the types'
        ):
            types = _inferred(matches)
    names = schema_of(matches).names
    absent = [name for name in types if name not in names]
    if absent:
        raise ValueError(f"types: there is no column {absent[0]}; there are {', '.join(names)}")
    # Not `withColumns`, which Spark Connect resolves at once.
    return matches.select(
        *(
            f.col(name).try_cast(types[name]).alias(name) if name in types else f.col(name)
            for name in names
        )
    )


def _inferred(matches: DataFrame) -> dict[str, str]:
    if matches.isStreaming:
        raise ValueError(
            'types="infer" needs all matches, which a streaming query does not have: name the types'
        )
    if "bindings" not in matches.columns:
        if "graph" in matches.columns or "boolean" in matches.columns:
            return {}
        raise ValueError('types="infer" reads the column bindings, which columns does not list')
    pairs = matches.select(f.explode("bindings").alias("name", "term"))
    datatype = f.regexp_extract("term", r'"(?:@[^">]*|\^\^<([^>]*)>)?$', 1)
    is_literal = f.col("term").startswith('"')
    found: dict[str, set[str]] = {}
    rows = pairs.select("name", f.when(is_literal, datatype).alias("type")).distinct().collect()
    for name, datatype_found in rows:
        found.setdefault(name, set()).add(_SPARK.get(datatype_found or "", "string"))
    return {
        name: kind
        for name, kinds in found.items()
        if name in matches.columns and (kind := _common(kinds)) != "string"
    }


def _common(kinds: Iterable[str]) -> str:
    known = set(kinds)
    if len(known) == 1:
        return known.pop()
    return "double" if known <= _NUMBERS else "string"

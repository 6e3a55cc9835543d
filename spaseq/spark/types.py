"""Columns of text → typed columns, by what the variables' literals are.

Every row keeps its terms in full in `bindings`; a typed column is for computing with. A value
that does not fit its column is null there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

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
    """Arrow's schema in Spark's words."""
    return from_arrow_schema(schema)


def typed(matches: DataFrame, types: Types) -> DataFrame:
    """Matches with the columns of some variables cast; "infer" looks at all matches there are.

    Raises:
        ValueError: for a column that is not there, and "infer" over a stream.
    """
    if types == "infer":
        types = _inferred(matches)
    absent = [name for name in types if name not in matches.columns]
    if absent:
        raise ValueError(
            f"there is no column {absent[0]} to give a type; there are {', '.join(matches.columns)}"
        )
    return matches.withColumns({name: f.col(name).try_cast(to) for name, to in types.items()})


def _inferred(matches: DataFrame) -> dict[str, str]:
    if matches.isStreaming:
        raise ValueError(
            'types="infer" looks at the matches, which a stream has not yet: name them'
        )
    if "bindings" not in matches.columns:
        if "graph" in matches.columns or "boolean" in matches.columns:
            return {}
        raise ValueError(
            'types="infer" looks at the column bindings, which is not among those asked for'
        )
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

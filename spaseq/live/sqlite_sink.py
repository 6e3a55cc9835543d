"""Matches → a table of an SQLite database.

The table `matches` (or the one that `?table=` names) has one row per match: a stable `id`, the
query, start and end, the bindings and the whole match as JSON. With state, rows are committed in
one transaction with the number of the checkpoint, which the table `spaseq_checkpoints` holds per
state folder; a run that is killed therefore leaves no row that will be written again.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from spaseq.errors import SpaseqError
from spaseq.io.identity import plain
from spaseq.live.commits import agreed
from spaseq.live.waiting import Waiting
from spaseq.rdf.time import json_value
from spaseq.results import Match
from spaseq.runs import Run

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
WAIT_SECONDS = 30.0
"""Seconds to wait for another process that has locked the database."""
ATTEMPT_MILLIS = 1000
"""Seconds for which one attempt waits."""


class SqliteSink:
    """Writes rows.

    Args:
        url: `sqlite:PATH`, `sqlite:///PATH` or either with `?table=NAME`.
        keeps: Whether there will be checkpoints; otherwise each batch is committed.

    Raises:
        SpaseqError: if the database cannot be opened.
    """

    def __init__(self, url: str, keeps: bool):
        parts = urlsplit(url)
        path = unquote(parts.path)
        if parts.netloc or not path:
            raise SpaseqError(f"{url}: write sqlite:PATH, or sqlite:///PATH for an absolute path")
        options = parse_qs(parts.query, keep_blank_values=True)
        unknown = options.keys() - {"table"}
        if unknown:
            raise SpaseqError(f"{url}: there is no option {min(unknown)}, only table")
        self._table = options.get("table", ["matches"])[0]
        if not _NAME.fullmatch(self._table):
            raise SpaseqError(f"{url}: {self._table!r} cannot be the name of a table")
        self._url = url
        self._keeps = keeps
        self._state = ""
        self._rows: list[tuple[Any, ...]] = []
        self.waiting = Waiting(url)
        self.written = 0
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._db.execute(f"PRAGMA busy_timeout = {ATTEMPT_MILLIS}")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table} (id TEXT NOT NULL, query TEXT NOT NULL, "
                '"start", "end", bindings TEXT, match TEXT NOT NULL)'
            )
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS spaseq_checkpoints "
                "(state TEXT PRIMARY KEY, number INTEGER NOT NULL)"
            )
        except sqlite3.Error as error:
            raise SpaseqError(f"{url}: {error}") from error

    def resume(self, state: str, tokens: Mapping[int, Any]) -> int:
        self._state = state
        row = self._db.execute(
            "SELECT number FROM spaseq_checkpoints WHERE state = ?", (state,)
        ).fetchone()
        number = 0 if row is None else int(row[0])
        return agreed(self._url, number, tokens)

    def attach(self, run: Run) -> None:
        """Do nothing, since rows are made from match objects."""

    def write(self, match: Match) -> None:
        start = None if match.start is None else json_value(match.start)
        bindings = {name: plain(term) for name, term in match.bindings.items()}
        self._rows.append(
            (
                match.id,
                match.query,
                start,
                json_value(match.end),
                json.dumps(bindings, ensure_ascii=False),
                match.to_json(),
            )
        )
        self.written += 1

    def write_block(self) -> None:
        if self._rows and not self._keeps:
            self._commit(None)
        elif len(self._rows) >= 1000:
            self._insert()

    def prepare(self) -> Any:
        self._insert()
        return {}

    def commit(self, number: int) -> None:
        self._commit(number)

    def close(self) -> None:
        try:
            if self._db.in_transaction and self._keeps:
                self._db.rollback()
            elif not self._keeps:
                self._commit(None)
        finally:
            self._db.close()

    def _insert(self) -> None:
        rows, self._rows = self._rows, []
        try:
            if not self._db.in_transaction:
                self._again("BEGIN IMMEDIATE")
            self._db.executemany(f"INSERT INTO {self._table} VALUES (?, ?, ?, ?, ?, ?)", rows)
        except sqlite3.Error as error:
            raise SpaseqError(f"{self._url}: cannot be written: {error}") from error

    def _again(self, statement: str) -> None:
        """Execute a statement, and repeat it while another process has locked the database."""
        until = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                self._db.execute(statement)
                self.waiting.end()
                return
            except sqlite3.OperationalError as error:
                is_locked = error.sqlite_errorcode & 0xFF in (
                    sqlite3.SQLITE_BUSY,
                    sqlite3.SQLITE_LOCKED,
                )
                if not is_locked or time.monotonic() > until:
                    raise
                self.waiting.begin(error)

    def _commit(self, number: int | None) -> None:
        self._insert()
        try:
            if number is not None:
                self._db.execute(
                    "INSERT INTO spaseq_checkpoints VALUES (?, ?) "
                    "ON CONFLICT (state) DO UPDATE SET number = excluded.number",
                    (self._state, number),
                )
            self._again("COMMIT")
        except sqlite3.Error as error:
            raise SpaseqError(f"{self._url}: cannot be written: {error}") from error

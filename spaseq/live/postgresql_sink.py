"""Matches → a table of a PostgreSQL database.

The table `matches` (or the one that `table` names) has one row per match, with the columns of
`spaseq.live.sqlite_sink`. With state, the rows of a checkpoint are one transaction, which also
stores the number of the checkpoint in the table `spaseq_checkpoints`. The rows wait in memory until
then, so a transaction that was ended by a broken connection is repeated. After a commit without an
answer, the stored number shows whether it succeeded. Memory: the matches between two checkpoints.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from spaseq.errors import SpaseqError
from spaseq.io.identity import plain
from spaseq.live.addresses import client, redacted, secret
from spaseq.live.commits import agreed
from spaseq.live.receiving import Pauses
from spaseq.live.waiting import Waiting
from spaseq.rdf.time import json_value
from spaseq.results import Match
from spaseq.runs import Run

WAIT_SECONDS = 60.0
"""Seconds for which to try to reach the server again."""
_UNTRUSTED = "certificate verify failed"
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class PostgresqlSink:
    """Writes rows.

    Args:
        url: `postgresql://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE`, with the options `table` and
            `password-env`, and those of libpq, such as `sslmode`.
        keeps: Whether there will be checkpoints; otherwise each batch is committed.

    Raises:
        SpaseqError: for a wrong URL, or without the client.
    """

    def __init__(self, url: str, keeps: bool):
        self._shown = redacted(url)
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        self._table = options.pop("table", "matches")
        if not _NAME.fullmatch(self._table):
            raise SpaseqError(f"{self._shown}: {self._table!r} cannot be the name of a table")
        variable = options.pop("password-env", None)
        self._password = None if variable is None else secret(self._shown, variable)
        self._url = urlunsplit(parts._replace(query=urlencode(options)))
        self._psycopg = client("psycopg", "psycopg", "postgresql", "postgresql")
        self._keeps = keeps
        self._state = ""
        self._connection: Any = None
        self._rows: list[tuple[Any, ...]] = []
        self.waiting = Waiting(self._shown)
        self.written = 0

    # ------------------------------------------------------------ connection

    def _connect(self) -> None:
        more = {} if self._password is None else {"password": self._password}
        self._connection = self._psycopg.connect(
            self._url, connect_timeout=10, application_name="spaseq", **more
        )

    def _again(self, work: Callable[[Any], None]) -> None:
        """Do some work in one transaction, and repeat it if the connection breaks meanwhile."""
        pauses, until = Pauses(), time.monotonic() + WAIT_SECONDS
        while True:
            try:
                if self._connection is None or self._connection.closed:
                    self._connect()
                work(self._connection)
                self._connection.commit()
                self.waiting.end()
                return
            except self._psycopg.OperationalError as error:
                self._disconnect()
                if time.monotonic() > until or _is_refused(error):
                    raise self._failed(error) from error
                self.waiting.begin(error)
                time.sleep(pauses.following())
            except self._psycopg.Error as error:
                raise self._failed(error) from error

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _failed(self, error: Exception) -> SpaseqError:
        said = " ".join(str(error).split())
        if _UNTRUSTED in said:
            said += " (the option sslrootcert=FILE names the authority that has signed it)"
        return SpaseqError(f"{self._shown}: cannot be written: {said}")

    # ------------------------------------------------------------ sink

    def resume(self, state: str, tokens: Mapping[int, Any]) -> int:
        self._state = state
        self._again(self._create)
        return agreed(self._shown, self._number(), tokens)

    def _create(self, db: Any) -> None:
        """Create the tables. A lock prevents two runs from creating them at the same time."""
        db.execute("SELECT pg_advisory_xact_lock(7267712)")
        db.execute(
            f"CREATE TABLE IF NOT EXISTS {self._table} (id text NOT NULL, query text NOT NULL, "
            'start text, "end" text, bindings jsonb, match jsonb NOT NULL)'
        )
        db.execute(
            "CREATE TABLE IF NOT EXISTS spaseq_checkpoints "
            "(state text PRIMARY KEY, number bigint NOT NULL)"
        )

    def _number(self) -> int:
        """The number that was committed last."""
        found = 0

        def read(db: Any) -> None:
            nonlocal found
            row = db.execute(
                "SELECT number FROM spaseq_checkpoints WHERE state = %s", (self._state,)
            ).fetchone()
            found = 0 if row is None else int(row[0])

        self._again(read)
        return found

    def attach(self, run: Run) -> None:
        """Do nothing, since rows are made from match objects."""

    def write(self, match: Match) -> None:
        bindings = {name: plain(term) for name, term in match.bindings.items()}
        self._rows.append(
            (
                match.id,
                match.query,
                None if match.start is None else str(json_value(match.start)),
                str(json_value(match.end)),
                _json(json.dumps(bindings, ensure_ascii=False)),
                _json(match.to_json()),
            )
        )
        self.written += 1

    def write_block(self) -> None:
        if not self._keeps and self._rows:
            self._again(self._insert)
            self._rows.clear()

    def _insert(self, db: Any) -> None:
        with db.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {self._table} VALUES (%s, %s, %s, %s, %s, %s)", self._rows
            )

    def prepare(self) -> Any:
        self._again(lambda db: db.execute("SELECT 1"))  # so that `commit` will probably succeed
        return {}

    def commit(self, number: int) -> None:
        tried = False

        def write(db: Any) -> None:
            nonlocal tried
            row = db.execute(
                "SELECT number FROM spaseq_checkpoints WHERE state = %s", (self._state,)
            ).fetchone()
            if tried and row is not None and int(row[0]) == number:
                return  # the answer to the commit was lost
            tried = True
            self._insert(db)
            db.execute(
                "INSERT INTO spaseq_checkpoints VALUES (%s, %s) "
                "ON CONFLICT (state) DO UPDATE SET number = excluded.number",
                (self._state, number),
            )

        self._again(write)
        self._rows.clear()

    def close(self) -> None:
        try:
            self.write_block()
        finally:
            self._disconnect()


def _json(text: str) -> str:
    """JSON that PostgreSQL accepts: its texts cannot contain the character U+0000."""
    return _NUL.sub(r"\1\\ufffd", text) if "\\u0000" in text else text


def _is_refused(error: Any) -> bool:
    """Whether a retry is useless, because the server answered and refuses the user or database."""
    said = str(error)
    return any(
        text in said
        for text in (
            "authentication failed",
            "does not exist",
            "no pg_hba.conf entry",
            "permission",
            "does not support SSL",
            _UNTRUSTED,
        )
    )

"""PostgreSQL as a sink: transactions, kills, a server that comes back."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from followed import QUERY, Live, events, finished_run, lines, newest
from servers import Server, needs, postgresql, postgresql_url
from session_runs import Running
from test_following import append, event

from spaseq.errors import SpaseqError, StateError
from spaseq.live.postgresql_sink import PostgresqlSink, _json
from spaseq.live.session import LiveOptions
from spaseq.live.status import StatusTaker


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with postgresql(tmp_path_factory.mktemp("postgresql")) as started:
        yield started


def table(server: Server, name: str) -> list[str]:
    """The matches in a table, as JSON."""
    import psycopg

    with psycopg.connect(postgresql_url(server.port)) as db:
        exists: Any = db.execute("SELECT to_regclass(%s)", (name,)).fetchone()
        if exists[0] is None:
            return []
        return [row for (row,) in db.execute(f"SELECT match::text FROM {name} ORDER BY ctid")]


def kept(folder: Path) -> LiveOptions:
    return LiveOptions(follow=True, state=str(folder / "state"))


def bound(found: Sequence[str]) -> list[Any]:
    return [json.loads(line)["bindings"] for line in found]


def test_matches_are_rows(tmp_path: Path, server: Server) -> None:
    import psycopg

    path = tmp_path / "s.nq"
    append(path, event(1) + event(2))
    output = f"{postgresql_url(server.port)}?table=rows"
    with Running(tmp_path, str(path), output=output) as run:
        run.wait_for(lambda: len(table(server, "rows")) == 2)
    with psycopg.connect(postgresql_url(server.port)) as db:
        rows = db.execute(
            "SELECT id, query, start, \"end\", bindings->>'value' FROM rows ORDER BY start"
        ).fetchall()
    assert [row[1:] for row in rows] == [("query", "1", "1", "1"), ("query", "2", "2", "2")]
    assert len({row[0] for row in rows}) == 2


def test_rows_count_with_the_checkpoint(tmp_path: Path, server: Server) -> None:
    path = tmp_path / "s.nq"
    append(path, event(1) + event(2))
    output = f"{postgresql_url(server.port)}?table=kept"
    with Running(tmp_path, str(path), options=kept(tmp_path), output=output) as run:
        run.wait_for(lambda: len(table(server, "kept")) == 2)
    for checkpoint in (tmp_path / "state").glob("checkpoint-*"):
        checkpoint.unlink()
    with pytest.raises(StateError, match="the output is at checkpoint"):
        Running(tmp_path, str(path), options=kept(tmp_path), output=output)


def test_kills_change_no_row(tmp_path: Path, server: Server) -> None:
    kills, count = 4, 3000
    drawn = random.Random(8)
    text = list(events(count, 8))
    (tmp_path / "query.rq").write_text(QUERY, "utf-8")
    expected = finished_run(tmp_path, "".join(text))
    command = [
        "query.rq", "--stream", "readings=s.nq", "--follow",
        "--output", f"{postgresql_url(server.port)}?table=kills",
        "--state", "state", "--checkpoint-every", "100ms",
    ]  # fmt: skip
    path = tmp_path / "s.nq"
    path.touch()
    for number in range(kills + 1):
        live = Live(command, tmp_path)
        lock = tmp_path / "state" / "lock"
        live.wait_for(lambda: lines(lock) == [str(live.process.pid)])  # noqa: B023
        before = newest(tmp_path)
        share = count // (kills + 1)
        append(path, "".join(text[number * share : (number + 1) * share]))
        if number < kills:
            live.wait_for(lambda: newest(tmp_path) > before)  # noqa: B023
            time.sleep(drawn.uniform(0.0, 0.3))
            live.end(signal.SIGKILL)
            continue
        live.wait_for(lambda: len(table(server, "kills")) >= len(expected))
        assert live.end() == 0, live.said
    assert len(expected) > 100
    assert bound(table(server, "kills")) == bound(expected)


def test_a_server_that_comes_back(tmp_path: Path, server: Server) -> None:
    path = tmp_path / "s.nq"
    append(path, event(1))
    output = f"{postgresql_url(server.port)}?table=back"
    with Running(tmp_path, str(path), options=kept(tmp_path), output=output) as run:
        run.wait_for(lambda: len(table(server, "back")) == 1)
        server.stop()
        append(path, event(2))
        run.wait_for(lambda: any("trying again" in text for text in run.said))
        status = StatusTaker(run.session.coordinator).take()
        assert any("output: it cannot be written: " in text for text in status.obstacles())
        server.start()
        run.wait_for(lambda: len(table(server, "back")) == 2)
        run.wait_for(lambda: status.obstacles() == [])
    assert len(table(server, "back")) == 2
    assert any("written again" in text for text in run.said)


def test_a_commit_without_an_answer_counts_once(tmp_path: Path, server: Server) -> None:
    """The connection breaks after the server has committed."""
    import psycopg

    sink = PostgresqlSink(f"{postgresql_url(server.port)}?table=answers", True)
    assert sink.resume("a-state", {}) == 0
    row = ("id", "query", None, "1", "{}", "{}")
    sink._rows.append(row)
    sink.prepare()
    connection = sink._connection

    class Breaking:
        """A connection whose first commit gives no answer."""

        closed = False

        def execute(self, *given: Any) -> Any:
            return connection.execute(*given)

        def cursor(self) -> Any:
            return connection.cursor()

        def commit(self) -> None:
            connection.commit()
            raise psycopg.OperationalError("the connection is broken")

        def close(self) -> None:
            connection.close()

    sink._connection = Breaking()
    sink.commit(1)
    assert len(table(server, "answers")) == 1
    assert sink._number() == 1
    sink.close()


def test_a_server_that_refuses(server: Server) -> None:
    url = postgresql_url(server.port).removesuffix("/postgres") + "/absent?password=very-secret"
    sink = PostgresqlSink(url, False)
    with pytest.raises(SpaseqError, match=r'password=\*\*\*.*database "absent" does not') as caught:
        sink.resume("", {})
    assert "very-secret" not in str(caught.value)


def test_a_name_of_a_table_is_checked() -> None:
    needs("psycopg")
    with pytest.raises(SpaseqError, match="cannot be the name of a table"):
        PostgresqlSink("postgresql://h/d?table=x;y", False)


@pytest.mark.parametrize(
    ("given", "taken"),
    [(r'"a\u0000b"', r'"a\ufffdb"'), (r'"\\u0000"', r'"\\u0000"'), (r'"\\\u0000"', r'"\\\ufffd"')],
)
def test_the_character_that_postgresql_refuses(given: str, taken: str) -> None:
    assert _json(given) == taken

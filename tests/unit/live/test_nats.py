"""NATS JetStream as a source: positions, acknowledgements, restarts."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from followed import PATIENCE, QUERY, events, finished_run, newest
from servers import Server, nats_server, needs
from session_runs import Running, values
from test_following import event

from spaseq.errors import InputError, SpaseqError, StateError
from spaseq.io.read_options import ReadOptions
from spaseq.live.nats_source import NatsSource
from spaseq.live.session import LiveOptions

TIMED = ReadOptions(time_predicate="http://www.w3.org/ns/prov#generatedAtTime")


def using(server: Server, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
    """Do something with JetStream."""

    async def run() -> Any:
        import nats

        connection = await nats.connect(f"nats://127.0.0.1:{server.port}")
        try:
            return await work(connection.jetstream())
        finally:
            await connection.close()

    return asyncio.run(run())


def publish(
    server: Server, texts: Sequence[str], subject: str = "readings.a", kind: str | None = None
) -> None:
    """Publish messages, and wait for the server."""
    headers = None if kind is None else {"Content-Type": kind}

    async def work(jetstream: Any) -> None:
        for text in texts:
            await jetstream.publish(subject, text.encode(), headers=headers)

    using(server, work)


def make(server: Server, retention: str = "limits") -> None:
    """Make the stream."""
    using(server, lambda js: js.add_stream(name="R", subjects=["readings.*"], retention=retention))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with nats_server(tmp_path / "nats") as started:
        make(started)
        yield started


def kept(folder: Path) -> LiveOptions:
    return LiveOptions(follow=True, state=str(folder / "state"))


def url_of(server: Server, options: str = "") -> str:
    return f"nats://127.0.0.1:{server.port}/readings.*{options}"


def test_each_message_is_an_event(tmp_path: Path, server: Server) -> None:
    publish(server, [event(1), event(2)])
    with Running(tmp_path, url_of(server), reading=TIMED) as run:
        run.wait_for_matches(2)
        publish(server, [event(number) for number in range(3, 1200)])
        run.wait_for_matches(1199)
        turtle = "@prefix : <http://example.org/> .\n@prefix prov: <http://www.w3.org/ns/prov#> ."
        turtle += "\n:e prov:generatedAtTime 2000 . :s :value 2000 ."
        publish(server, [turtle], "readings.b", "text/turtle")
        run.wait_for_matches(1200)
    assert values(run.found) == [*(str(number) for number in range(1, 1200)), "2000"]


def test_the_time_is_that_of_the_stream(tmp_path: Path, server: Server) -> None:
    before = time.time()
    publish(server, ["<http://e/s> <http://example.org/value> <http://e/o> ."])
    with Running(tmp_path, url_of(server)) as run:
        run.wait_for_matches(1)
    from datetime import datetime

    found = datetime.fromisoformat(json.loads(run.found[0])["end"]).timestamp()
    assert before - 1 <= found <= time.time() + 1


@pytest.mark.parametrize("options", ["", "?durable=run"])
def test_a_run_continues_after_its_position(tmp_path: Path, server: Server, options: str) -> None:
    text = list(events(300, seed=5))
    (tmp_path / "query.rq").write_text(QUERY, "utf-8")
    expected = finished_run(tmp_path, "".join(text))
    for at in range(0, 300, 100):
        publish(server, text[at : at + 100])
        with Running(tmp_path, url_of(server, options), QUERY, kept(tmp_path), TIMED) as run:
            run.wait_for(lambda at=at: run.session.run.clock.events == at + 100)  # type: ignore[misc]
    assert bound(run.found) == bound(expected)


def bound(found: Sequence[str]) -> list[Any]:
    return [json.loads(line)["bindings"] for line in found]


def test_only_new_messages_are_read(tmp_path: Path, server: Server) -> None:
    publish(server, [event(1)])
    url = url_of(server, "?start=latest")
    with Running(tmp_path, url, options=kept(tmp_path), reading=TIMED) as run:
        run.wait_for(lambda: newest(tmp_path) > 1)
        time.sleep(0.5)
    publish(server, [event(2)])
    with Running(tmp_path, url, options=kept(tmp_path), reading=TIMED) as run:
        run.wait_for_matches(1)
    assert values(run.found) == ["2"]


def test_messages_are_acknowledged_after_the_checkpoint(tmp_path: Path) -> None:
    """A work queue keeps what was not acknowledged; killed before, the run gets it again."""
    with nats_server(tmp_path / "nats") as server:
        make(server, "workqueue")

        def left() -> int:
            state = using(server, lambda js: js.stream_info("R")).state
            return int(state.messages)

        publish(server, [event(1), event(2)])
        url = url_of(server, "?durable=run")
        source = NatsSource(url, str)
        source.expect_checkpoints()
        source.open(None)
        found: list[bytes] = []
        until = time.monotonic() + PATIENCE
        while len(found) < 2:
            assert time.monotonic() < until
            for chunk in source.poll(0.2) or ():
                found += [message[0] for message in chunk.together]
                found += [chunk.data] if chunk.data else []
        source.close()
        assert left() == 2
        with Running(tmp_path, url, options=kept(tmp_path), reading=TIMED) as run:
            run.wait_for_matches(2)
            run.wait_for(lambda: left() == 0)
            publish(server, [event(3)])
            run.wait_for_matches(3)
        assert values(run.found) == ["1", "2", "3"]


def test_without_state_messages_are_acknowledged_at_once(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats") as server:
        make(server, "workqueue")
        publish(server, [event(1), event(2)])
        with Running(tmp_path, url_of(server), reading=TIMED) as run:
            run.wait_for_matches(2)
            run.wait_for(lambda: using(server, lambda js: js.stream_info("R")).state.messages == 0)


@pytest.mark.parametrize("options", ["", "?durable=run"])
def test_a_server_that_comes_back(tmp_path: Path, server: Server, options: str) -> None:
    publish(server, [event(1), event(2)])
    with Running(tmp_path, url_of(server, options), reading=TIMED) as run:
        run.wait_for_matches(2)
        server.stop()
        run.wait_for(lambda: any("connecting again" in text for text in run.said))
        server.start()
        publish(server, [event(3)])
        run.wait_for_matches(3)
    assert values(run.found) == ["1", "2", "3"]


def test_another_stream_is_refused(tmp_path: Path, server: Server) -> None:
    publish(server, [event(1), event(2)])
    with Running(tmp_path, url_of(server), options=kept(tmp_path), reading=TIMED) as run:
        run.wait_for_matches(2)
    using(server, lambda js: js.delete_stream("R"))
    make(server)
    with pytest.raises(StateError, match="has read message 2, but the stream ends with 0"):
        Running(tmp_path, url_of(server), options=kept(tmp_path), reading=TIMED).join()


def test_a_subject_without_a_stream(tmp_path: Path, server: Server) -> None:
    url = f"nats://me:very-secret@127.0.0.1:{server.port}/others"
    run = Running(tmp_path, url, reading=TIMED)
    with pytest.raises(InputError, match=r"me:\*\*\*@.*there is no stream for the subject others"):
        run.join()
    assert not any("connecting again" in text for text in run.said)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nats://h", "write nats://HOST:PORT/SUBJECT"),
        ("nats://h/a/b", "write nats://HOST:PORT/SUBJECT"),
        ("nats://h/a?queue=x", "there is no option queue"),
    ],
)
def test_urls_are_checked(url: str, said: str) -> None:
    needs("nats")
    with pytest.raises(SpaseqError, match=said):
        NatsSource(url, str)

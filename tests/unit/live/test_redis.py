"""Redis streams as a source and as a sink: groups, positions, restarts."""

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
from servers import Server, needs, redis_server
from session_runs import Running, values
from test_following import append, event

from spaseq.errors import InputError, SpaseqError
from spaseq.io.read_options import ReadOptions
from spaseq.live.redis_streams import RedisSink, RedisSource
from spaseq.live.session import LiveOptions

GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"
TIMED = ReadOptions(time_predicate=GENERATED)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with redis_server(tmp_path / "redis") as started:
        yield started


def client(server: Server) -> Any:
    from redis import Redis

    return Redis(port=server.port)


def add(server: Server, texts: Sequence[str], **more: str) -> None:
    with client(server) as redis:
        for text in texts:
            redis.xadd("readings", {"data": text, **more})


def kept(folder: Path) -> LiveOptions:
    return LiveOptions(follow=True, state=str(folder / "state"))


def url_of(server: Server, options: str = "") -> str:
    return f"redis://127.0.0.1:{server.port}/readings{options}"


def test_each_entry_is_an_event(tmp_path: Path, server: Server) -> None:
    add(server, [event(1), event(2)])
    with Running(tmp_path, url_of(server), reading=TIMED) as run:
        run.wait_for_matches(2)
        add(server, [event(3)])
        with client(server) as redis:
            redis.xadd("readings", {"other": "x"})
        add(server, [event(4)])
        run.wait_for_matches(4)
    assert values(run.found) == ["1", "2", "3", "4"]
    assert any("has no field data" in text for text in run.said)


def test_the_time_is_that_of_the_identifier(tmp_path: Path, server: Server) -> None:
    with client(server) as redis:
        turtle = "@prefix : <http://example.org/> . :s :value 7 ."
        fields = {"data": turtle, "content-type": "text/turtle"}
        redis.xadd("readings", fields, id="1700000000000-0")
    with Running(tmp_path, url_of(server)) as run:
        run.wait_for_matches(1)
    assert json.loads(run.found[0])["end"] == "2023-11-14T22:13:20Z"


@pytest.mark.parametrize("options", ["", "?group=runs"])
def test_a_run_continues_after_its_position(tmp_path: Path, server: Server, options: str) -> None:
    url = url_of(server, options)
    text = list(events(300, seed=5))
    (tmp_path / "query.rq").write_text(QUERY, "utf-8")
    expected = finished_run(tmp_path, "".join(text))
    for at in range(0, 300, 60):
        add(server, text[at : at + 60])
        with Running(tmp_path, url, QUERY, kept(tmp_path), TIMED) as run:
            run.wait_for(lambda at=at: run.session.run.clock.events == at + 60)  # type: ignore[misc]
    assert bound(run.found) == bound(expected)


def bound(found: Sequence[str]) -> list[Any]:
    return [json.loads(line)["bindings"] for line in found]


def test_only_new_entries_are_read(tmp_path: Path, server: Server) -> None:
    add(server, [event(1)])
    url = url_of(server, "?start=latest")
    with Running(tmp_path, url, options=kept(tmp_path), reading=TIMED) as run:
        run.wait_for(lambda: newest(tmp_path) > 1)
    add(server, [event(2)])
    with Running(tmp_path, url, options=kept(tmp_path), reading=TIMED) as run:
        run.wait_for_matches(1)
    assert values(run.found) == ["2"]


def test_a_group_acknowledges_after_the_checkpoint(tmp_path: Path, server: Server) -> None:
    url = url_of(server, "?group=runs")
    add(server, [event(1), event(2)])
    with client(server) as redis:
        with Running(tmp_path, url, options=kept(tmp_path), reading=TIMED) as run:
            run.wait_for_matches(2)
            run.wait_for(lambda: redis.xpending("readings", "runs")["pending"] == 0)
        # Received by a run that ended before its checkpoint: sent again, before newer ones.
        add(server, [event(3)])
        redis.xreadgroup("runs", "spaseq", {"readings": ">"})
        add(server, [event(4)])
        with Running(tmp_path, url, options=kept(tmp_path), reading=TIMED) as run:
            run.wait_for_matches(4)
            run.wait_for(lambda: redis.xpending("readings", "runs")["pending"] == 0)
        # The checkpoint was stored, and the process ended before the acknowledgement.
        redis.xgroup_setid("readings", "runs", 0)
        redis.xreadgroup("runs", "spaseq", {"readings": ">"})
        add(server, [event(5)])
        with Running(tmp_path, url, options=kept(tmp_path), reading=TIMED) as run:
            run.wait_for_matches(5)
    assert values(run.found) == ["1", "2", "3", "4", "5"]


def test_a_group_divides_the_entries(tmp_path: Path, server: Server) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    urls = [url_of(server, f"?group=runs&consumer={name}") for name in ("one", "two")]
    with (
        Running(folders[0], urls[0], reading=TIMED) as one,
        Running(folders[1], urls[1], reading=TIMED) as two,
        client(server) as redis,
    ):
        for number in range(1, 101):
            add(server, [event(number)])
        one.wait_for(lambda: len(one.found) + len(two.found) == 100)
        # Without a state, entries are acknowledged at once.
        one.wait_for(lambda: redis.xpending("readings", "runs")["pending"] == 0)
    assert sorted(map(int, values([*one.found, *two.found]))) == list(range(1, 101))


@pytest.mark.parametrize("options", ["", "?group=runs"])
def test_a_server_that_comes_back(tmp_path: Path, server: Server, options: str) -> None:
    add(server, [event(1), event(2)])
    with Running(tmp_path, url_of(server, options), reading=TIMED) as run:
        run.wait_for_matches(2)
        server.stop()
        run.wait_for(lambda: any("connecting again" in text for text in run.said))
        source: Any = run.session.coordinator.inputs[0].source
        assert source.problem == "there is no connection"
        server.start()
        add(server, [event(3)])
        run.wait_for_matches(3)
        assert source.problem is None
    assert values(run.found) == ["1", "2", "3"]
    assert any("connected again" in text for text in run.said)


def test_a_sink_says_that_its_server_is_down(tmp_path: Path, server: Server) -> None:
    path = tmp_path / "s.nq"
    path.write_text(event(1), "utf-8")
    with Running(tmp_path, str(path), output=f"redis://127.0.0.1:{server.port}/down") as run:
        with client(server) as redis:
            run.wait_for(lambda: redis.xlen("down") == 1)
        server.stop()
        append(path, event(2))
        waiting = run.session.coordinator.output
        assert waiting is not None
        run.wait_for(lambda: waiting.problem is not None)
        server.start()
        run.wait_for(lambda: waiting.problem is None)
    with client(server) as redis:
        assert redis.xlen("down") == 2
    assert [text.partition(": ")[2][:17] for text in run.said if "/down" in text] == [
        "cannot be written", "written again",
    ]  # fmt: skip


def test_kills_change_no_match(tmp_path: Path, server: Server) -> None:
    """A group, killed at random moments and started again."""
    kills, count = 3, 2000
    drawn = random.Random(4)
    text = list(events(count, 4))
    (tmp_path / "query.rq").write_text(QUERY, "utf-8")
    expected = finished_run(tmp_path, "".join(text))
    command = [
        "query.rq", "--stream", f"readings={url_of(server, '?group=runs')}", "--follow",
        "--output", "out.jsonl", "--time-predicate", GENERATED,
        "--state", "state", "--checkpoint-every", "100ms",
    ]  # fmt: skip
    for number in range(kills + 1):
        live = Live(command, tmp_path)
        lock = tmp_path / "state" / "lock"
        live.wait_for(lambda: lines(lock) == [str(live.process.pid)])  # noqa: B023
        before = newest(tmp_path)
        share = count // (kills + 1)
        add(server, text[number * share : (number + 1) * share])
        if number < kills:
            live.wait_for(lambda: newest(tmp_path) > before)  # noqa: B023
            time.sleep(drawn.uniform(0.0, 0.3))
            live.end(signal.SIGKILL)
            continue
        live.wait_for(lambda: len(lines(tmp_path / "out.jsonl")) >= len(expected))
        assert live.end() == 0, live.said
    assert len(expected) > 50
    assert bound(lines(tmp_path / "out.jsonl")) == bound(expected)


def test_matches_are_entries(tmp_path: Path, server: Server) -> None:
    path = tmp_path / "s.nq"
    path.write_text("".join(event(number) for number in range(1, 4)), "utf-8")
    output = f"redis://127.0.0.1:{server.port}/2/rises?maxlen=100000"
    with Running(tmp_path, str(path), options=kept(tmp_path), output=output) as run:
        run.wait_for(lambda: run.session.written == 3)
    from redis import Redis

    with Redis(port=server.port, db=2) as redis:
        entries = redis.xrange("rises")
    assert len(entries) == 3
    fields = entries[0][1]
    assert json.loads(fields[b"data"])["bindings"]["value"]["value"] == "1"
    assert fields[b"content-type"] == b"application/json"
    assert len(fields[b"id"]) == 24


def test_a_server_that_refuses(tmp_path: Path, server: Server) -> None:
    url = url_of(server).replace("redis://", "redis://me:very-secret@")
    with pytest.raises(InputError, match=r"me:\*\*\*@.*the server refuses"):
        Running(tmp_path, url, reading=TIMED).join()
    with client(server) as redis:
        redis.set("readings", "no stream")
    with pytest.raises(InputError, match="the server refuses: WRONGTYPE"):
        Running(tmp_path, url_of(server), reading=TIMED).join()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://h", "write redis://HOST:PORT/"),
        ("redis://h/x/y", "write redis://HOST:PORT/"),
        ("redis://h:p/y", "the port is not a number"),
        ("redis://h/y?start=0", "start is earliest or latest"),
    ],
)
def test_urls_are_checked(url: str, said: str) -> None:
    needs("redis")
    with pytest.raises(SpaseqError, match=said):
        RedisSource(url, str)
    with pytest.raises(SpaseqError, match="maxlen is a number from 1"):
        RedisSink("redis://h/y?maxlen=0", False)

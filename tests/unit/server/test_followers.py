"""Subscribers that are written to together: each gets everything once, also a slow one."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from served import TRIG, Served, served, trade

from spaseq.server import following
from spaseq.server.following import Following

EACH = """\
PREFIX : <http://example.org/>
SELECT ?n WITHIN 10 SECONDS FROM STREAM trades <http://example.org/trades>
WHERE { SEQ(A) DEFINE GPM A ON trades { ?s :note ?n } }
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path, replay=100_000, idle=None) as running:
        yield running


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def _followers(server: Served) -> int:
    """How many subscribers have caught up."""
    hub = server.context.hub
    assert hub is not None
    return sum(len(one._followers) for one in list(hub._followings.values()))


def _notes(server: Served, first: int, count: int, size: int = 1) -> None:
    text = "@prefix : <http://example.org/> . @prefix prov: <http://www.w3.org/ns/prov#> .\n"
    for n in range(first, first + count):
        text += f':e{n} prov:generatedAtTime {n} . :e{n} {{ :s :note "{n}{"x" * size}" }}\n'
    answer = server.http.post("/v1/streams/trades/events", content=text, headers=TRIG)
    assert answer.status_code == 202, answer.text


def _read(lines: Iterator[str], holds: Callable[[list[Any]], bool]) -> list[tuple[str, Any]]:
    """(Kind, data) of server-sent events, until they are enough."""
    found: list[tuple[str, Any]] = []
    one: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(": ")
        if colon and name:
            one[name] = value
        elif not line and "event" in one:
            found.append((one["event"], json.loads(one["data"])))
            one = {}
            if holds(found):
                break
    return found


def _numbers(found: list[tuple[str, Any]]) -> list[int]:
    values = [data["bindings"]["n"]["value"] for kind, data in found if kind == "match"]
    return [int(value.rstrip("x")) for value in values]


def _has(count: int) -> Callable[[list[Any]], bool]:
    return lambda found: sum(kind == "match" for kind, _ in found) == count


def test_all_followers_get_every_match_once_and_in_order(server: Served) -> None:
    server.put("each", EACH)
    with ExitStack() as stack:
        answers = [
            stack.enter_context(
                httpx.stream("GET", f"{server.url}/v1/queries/each/matches", timeout=30,
                             headers={"Accept": kind})
            )
            for kind in ("text/event-stream", "text/event-stream", "application/x-ndjson") * 2
        ]  # fmt: skip
        _until(lambda: _followers(server) == 6)
        # More than the buffers of connections hold, while nobody reads.
        for first in range(0, 1200, 50):
            _notes(server, first, 50, 10000)
        _until(lambda: _followers(server) == 0)
        read = [answer.iter_lines() for answer in answers]
        for answer, lines in zip(answers, read, strict=True):
            if answer.headers["Content-Type"].startswith("text/event-stream"):
                assert _numbers(_read(lines, _has(1200))) == list(range(1200))
            else:
                assert _first_notes(lines, 1200) == list(range(1200))
        _notes(server, 1200, 1)
        _until(lambda: _followers(server) == 6)


def _first_notes(lines: Iterator[str], count: int) -> list[int]:
    """The numbers of the first matches in JSON lines."""
    found: list[int] = []
    while len(found) < count:
        one = json.loads(next(lines) or "{}")
        if "bindings" in one:
            found.append(int(one["bindings"]["n"]["value"].rstrip("x")))
    return found


def test_followers_learn_of_progress_and_late_events(server: Served) -> None:
    server.put("rise")
    with server.http.stream("GET", "/v1/queries/rise/matches") as answer:
        lines = answer.iter_lines()
        _until(lambda: _followers(server) == 1)
        with httpx.Client(base_url=server.url) as other:
            for body in (trade(1, 10), trade(5, 12), trade(3, 9)):
                other.post("/v1/streams/trades/events", content=body, headers=TRIG)
            found = _read(lines, lambda found: {kind for kind, _ in found} >= {"match", "late"})
            assert [kind for kind, _ in found if kind != "progress"] == ["match", "late"]
            other.post("/v1/streams/trades/watermark", json={"time": 7})
            found = _read(lines, lambda found: found[-1] == ("progress", {"watermark": 7}))
            assert [kind for kind, _ in found if kind != "progress"] == []
            other.delete("/v1/queries/rise")
            assert _read(lines, lambda found: False) == [("problem", {"removed": "rise"})]
        assert _followers(server) == 0


def test_a_follower_that_leaves_is_forgotten(server: Served) -> None:
    server.put("rise")
    hub = server.context.hub
    assert hub is not None
    with httpx.stream("GET", f"{server.url}/v1/queries/rise/matches", timeout=30):
        _until(lambda: _followers(server) == 1)
    _until(lambda: hub.count == 0)
    assert not hub._followings


def test_a_silent_channel_has_heartbeats(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "HEARTBEAT_SECONDS", 0.05)
    server.put("rise")
    with httpx.stream("GET", f"{server.url}/v1/queries/rise/matches", timeout=30) as answer:
        lines = answer.iter_lines()
        assert [next(lines) for _ in range(6)][::2] == [": spaseq", ": ", ": "]


class _Outlet:
    takes_more = True

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def frame(self, data: bytes) -> bytes:
        return b"<" + data + b">"

    def write(self, framed: bytes) -> None:
        self.written.append(framed)


class _Topic:
    watermark: Any = None
    end = 0


class _Channel:
    is_removed = False
    noticed = 0

    def __init__(self) -> None:
        self.topic = _Topic()


class _Follower:
    """Counts the blocks that are made for it."""

    def __init__(self, made: list[tuple[int, int]]):
        self.cursor, self.noticed, self.shown = 0, 0, None
        self.outlet = _Outlet()
        self.has_left = False
        self._made = made

    @property
    def place(self) -> Any:
        return self.cursor

    def block(self, end: int, noticed: int, watermark: Any) -> tuple[bytes, int]:
        after = min(end, self.cursor + 10)
        self._made.append((self.cursor, after))
        return b"." * (after - self.cursor), after

    def leave(self) -> None:
        self.has_left = True


def test_a_block_is_made_once_for_all_and_writes_are_apart() -> None:
    async def run() -> None:
        channel: Any = _Channel()
        made: list[tuple[int, int]] = []
        ended: list[bool] = []
        group = Following(asyncio.get_running_loop(), channel, lambda: ended.append(True))
        followers: list[Any] = [_Follower(made) for _ in range(50)]
        for follower in followers:
            group.add(follower)
        group.wake()
        made.clear()
        for _ in range(25):
            channel.topic.end += 1
            group.wake()  # within the tick: one write later has all of them
        followers[0].outlet.takes_more = False
        while followers[1].cursor < 25:
            await asyncio.sleep(0.001)
        assert made == [(0, 10), (10, 20), (20, 25)]
        assert followers[0].has_left
        assert [follower.cursor for follower in followers[1:]] == [25] * 49
        assert followers[1].outlet.written == [b"<..........>"] * 2 + [b"<.....>"]
        group.close()
        assert ended == [True]
        assert all(follower.has_left for follower in followers)

    asyncio.run(run())

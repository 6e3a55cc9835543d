"""The server stays in control: during long events, while it reads its journal, on a full disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from served import TRIG, Served, served, trades

from spaseq.server import context, engine, journal, operation_routes, topics

HEAD = "PREFIX : <http://example.org/>\nSELECT * WITHIN 1 HOUR FROM STREAM s :s WHERE { "
ENDLESS = HEAD + (
    "SEQ(A) DEFINE GPM A ON s { ?a :p ?x . ?b :p ?y . ?c :p ?z . ?d :p ?w "
    "FILTER(?x + ?y + ?z + ?w < 0) } }"
)
"""A query that takes hours for a large event."""
WAITING = HEAD + (
    "SEQ(A : B+ : C?) DEFINE GPM A ON s { :s0 :p ?x } DEFINE GPM B ON s { :s1 :p ?y } "
    "DEFINE GPM C ON s { :s2 :p ?z } }"
)
"""A query whose matches wait for their window, and double with each event of `MANY`."""
FIRST = HEAD + "SEQ(A) DEFINE GPM A ON s { :s0 :p ?x } }"
EVENTS = "/v1/streams/s/events"


def event(at: int, size: int = 1500) -> bytes:
    """An event of some triples."""
    prefixes = "@prefix : <http://example.org/> . @prefix prov: <http://www.w3.org/ns/prov#> .\n"
    triples = " . ".join(f":s{n} :p {n}" for n in range(size))
    return f"{prefixes}:g{at} prov:generatedAtTime {at} . :g{at} {{ {triples} }}\n".encode()


MANY = b"".join(event(at, 2) for at in range(1, 42))


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def asked(server: Served, path: str) -> httpx.Response:
    """The answer to a question, for which a machine under load may need several attempts."""
    deadline = time.monotonic() + 30
    answer = server.http.get(path)
    while answer.status_code != 200:
        assert time.monotonic() < deadline, answer.text
        answer = server.http.get(path)
    return answer


def change(server: Served, method: str, path: str, **arguments: Any) -> httpx.Response:
    """The answer to a change, for which a machine under load may need several attempts, too."""
    deadline = time.monotonic() + 30
    answer = server.http.request(method, path, **arguments)
    while answer.status_code == 503:
        assert time.monotonic() < deadline, answer.text
        answer = server.http.request(method, path, **arguments)
    return answer


@contextmanager
def pushing(
    server: Served, at: int, content: bytes | None = None
) -> Iterator[list[httpx.Response]]:
    """Within this context the server is in the midst of an event; then its answer has come."""
    answers: list[httpx.Response] = []
    content = event(at) if content is None else content

    def push() -> None:
        answers.append(httpx.post(server.url + EVENTS, content=content, headers=TRIG, timeout=60))

    thread = threading.Thread(target=push)
    thread.start()
    until(lambda: server.context.engine.busy_seconds > 0.2)
    try:
        yield answers
    finally:
        thread.join(60)
        assert not thread.is_alive()


def register(server: Served) -> None:
    assert server.put("first", FIRST).status_code == 201
    assert server.put("endless", ENDLESS).status_code == 201
    small = server.http.post(EVENTS, content=event(1, 2), headers=TRIG)
    assert small.status_code == 202


def values(server: Served) -> int:
    return len([line for line in server.lines("first") if "query" in line])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits."""
    monkeypatch.setattr(context, "BUSY_SECONDS", 0.3)
    monkeypatch.setattr(operation_routes, "BUSY_SECONDS", 0.3)
    monkeypatch.setattr(engine, "START_SECONDS", 0.3)
    monkeypatch.setattr(engine, "STOP_SECONDS", 0.3)
    monkeypatch.setattr(engine, "SLOW_SECONDS", 0.3)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("pauses", [False, True])
def test_a_long_event_blocks_neither_questions_nor_its_query_s_end(
    tmp_path: Path, pauses: bool
) -> None:
    with served(tmp_path) as server:
        register(server)
        with pushing(server, 2) as answers:
            get = server.http.get
            asked(server, "/healthz")
            assert asked(server, "/v1/queries").json()["total"] == 2
            assert asked(server, "/v1/streams").json()["items"][0]["events"] == 2
            shown = asked(server, "/metrics").text
            assert 'spaseq_query_running{query="endless"} 1.0' in shown
            until(lambda: get("/readyz").status_code == 503)
            (reason,) = get("/readyz").json()["not_ready"]
            assert "by one of the queries first, endless: pause or remove it" in reason
            until(lambda: reason.removeprefix("engine: ")[:20] in "".join(server.logged))
            for refused in (
                server.http.post(EVENTS, content=event(3, 2), headers=TRIG),
                server.put("third", FIRST),
                get("/v1/queries/first/why"),
            ):
                assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
                assert "pause or remove it" in refused.json()["detail"]
            path = "/v1/queries/endless"
            assert change(server, "DELETE", "/v1/queries/none").status_code == 404
            stale = {"If-Match": '"another"'}
            assert change(server, "DELETE", path, headers=stale).status_code == 412
            if pauses:
                paused = change(server, "PATCH", path, json={"paused": True})
                assert (paused.status_code, paused.json()["status"]) == (200, "paused")
            else:
                assert change(server, "DELETE", path).status_code == 204
        assert (answers[0].status_code, answers[0].json()["accepted"]) == (202, 1)
        assert values(server) == 2
        assert server.http.post(EVENTS, content=event(3), headers=TRIG).status_code == 202
    for _ in range(2):
        with served(tmp_path) as server:
            assert values(server) == 3
            status = server.http.get("/v1/queries/endless")
            assert status.json().get("status") == ("paused" if pauses else 404)
            assert server.http.get("/v1/streams/s").json()["events"] == 3


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("pauses", [False, True])
def test_matches_that_wait_and_double_end_with_their_query(tmp_path: Path, pauses: bool) -> None:
    """2^40 matches, without a bound on them."""
    path = "/v1/queries/waiting"
    with served(tmp_path) as server:
        for name, query in (("first", FIRST), ("waiting", WAITING)):
            assert server.put(name, query).status_code == 201
        with pushing(server, 1, MANY) as answers:
            asked(server, "/healthz")
            if pauses:
                assert change(server, "PATCH", path, json={"paused": True}).status_code == 200
            else:
                assert change(server, "DELETE", path).status_code == 204
        assert (answers[0].status_code, answers[0].json()["accepted"]) == (202, 41)
        assert values(server) == 41
    with served(tmp_path) as server:
        assert server.http.post(EVENTS, content=event(42), headers=TRIG).status_code == 202
        assert values(server) == 42
        assert server.http.get(path).json().get("status") == ("paused" if pauses else 404)


@pytest.mark.usefixtures("impatient")
def test_the_server_stops_while_waiting_matches_double(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert server.put("waiting", WAITING).status_code == 201
        with pushing(server, 1, MANY) as answers:
            begun = time.monotonic()
            server.stop()
            assert time.monotonic() - begun < 10
        assert answers[0].status_code == 503


def test_a_bound_on_matches_ends_a_query_whose_waiting_matches_double(tmp_path: Path) -> None:
    with served(tmp_path, run_limits={"max_matches": 1000}) as server:
        for name, query in (("first", FIRST), ("waiting", WAITING)):
            assert server.put(name, query).status_code == 201
        assert server.http.post(EVENTS, content=MANY, headers=TRIG).json()["accepted"] == 41
        assert values(server) == 41
        shown = server.http.get("/v1/queries/waiting").json()
        assert shown["status"] == "failed"
        assert "more than 1,000 matches are complete at 11 (--max-matches)" in shown["failure"]


@pytest.mark.usefixtures("impatient")
def test_the_server_stops_within_an_event_and_refuses_its_body(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        register(server)
        with pushing(server, 2) as answers:
            begun = time.monotonic()
            server.stop()
            assert time.monotonic() - begun < 10
        assert (answers[0].status_code, answers[0].headers["Retry-After"]) == (503, "1")
    with served(tmp_path) as server:
        assert values(server) == 1
        assert server.http.get("/v1/streams/s").json()["events"] == 1


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """The state of a server that was killed within an event that takes hours."""
    state = tmp_path / "killed"
    with served(tmp_path / "state") as server:
        register(server)
        with pushing(server, 2):
            shutil.copytree(tmp_path / "state", state)
            server.http.delete("/v1/queries/endless")
    return state


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("pauses", [False, True])
def test_the_server_obeys_before_it_has_read_its_journal(interrupted: Path, pauses: bool) -> None:
    with served(interrupted, waits=False) as server:
        ready = server.http.get("/readyz")
        assert (ready.status_code, ready.json()["not_ready"]) == (
            503, ["replaying: record 4 of 4 of the journal"],
        )  # fmt: skip
        assert asked(server, "/v1/queries").json()["total"] == 2
        for path in ("/healthz", "/v1/streams", "/metrics"):
            asked(server, path)
        for refused in (
            server.http.post(EVENTS, content=event(3, 2), headers=TRIG),
            server.http.get("/v1/queries/first/matches"),
            server.http.get("/v1/queries/first/why"),
        ):
            assert refused.status_code == 503, refused.text
            assert "the server reads its journal" in refused.json()["detail"]
            assert "Retry-After" in refused.headers
        path = "/v1/queries/endless"
        if pauses:
            assert change(server, "PATCH", path, json={"paused": True}).json()["status"] == "paused"
        else:
            assert change(server, "DELETE", path).status_code == 204
        until(lambda: server.http.get("/readyz").status_code == 200)
        assert values(server) == 2
        assert server.http.post(EVENTS, content=event(3), headers=TRIG).status_code == 202
        assert values(server) == 3
    with served(interrupted) as server:
        assert values(server) == 3


@pytest.mark.usefixtures("impatient")
def test_the_server_stops_while_it_reads_its_journal(interrupted: Path) -> None:
    begun = time.monotonic()
    with served(interrupted, waits=False) as server:
        assert server.http.get("/readyz").status_code == 503
    assert time.monotonic() - begun < 10
    with served(interrupted, paused=True) as server:
        assert server.http.get("/readyz").status_code == 200


def test_a_server_may_start_with_all_queries_paused(interrupted: Path) -> None:
    with served(interrupted, paused=True) as server:
        items = server.http.get("/v1/queries").json()["items"]
        assert {one["name"]: one["status"] for one in items} == {
            "endless": "paused",
            "first": "paused",
        }
        assert change(server, "DELETE", "/v1/queries/endless").status_code == 204
        resumed = server.http.patch("/v1/queries/first", json={"paused": False})
        assert resumed.json()["status"] == "running"
        assert server.http.post(EVENTS, content=event(3), headers=TRIG).status_code == 202
        assert values(server) == 1  # a paused query sees no events
    with served(interrupted) as server:
        assert values(server) == 1


def test_queries_of_a_folder_stay_paused(tmp_path: Path) -> None:
    folder = tmp_path / "queries"
    folder.mkdir()

    def states(server: Served) -> dict[str, str]:
        items = server.http.get("/v1/queries").json()["items"]
        return {one["name"]: one["status"] for one in items}

    (folder / "old.rq").write_text(FIRST)
    with served(tmp_path / "state", queries=str(folder)) as server:
        until(lambda: states(server) == {"old": "running"})
    (folder / "new.rq").write_text(FIRST)
    with served(tmp_path / "state", queries=str(folder), paused=True) as server:
        until(lambda: states(server) == {"new": "paused", "old": "paused"})
        server.http.patch("/v1/queries/old", json={"paused": False})
        (folder / "third.rq").write_text(FIRST)
        running = {"new": "paused", "old": "running", "third": "running"}
        until(lambda: states(server) == running)
    with served(tmp_path / "state", queries=str(folder)) as server:
        until(lambda: states(server) == running)


# ------------------------------------------------------------ a full disk


def full(*_: Any) -> Any:
    raise OSError(28, "No space left on device")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize("what", ["write", "sync"])
def test_a_query_can_be_paused_and_removed_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, pauses: bool
) -> None:
    """In the midst of an event that takes hours; the room for this is reserved."""
    path, reserve = "/v1/queries/endless", tmp_path / "reserve"

    def limited(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: full() if reserve.exists() else function(*given)

    with served(tmp_path) as server:
        register(server)
        assert reserve.stat().st_size == journal.ROOM_BYTES
        with pushing(server, 2) as answers, monkeypatch.context() as patch:
            if what == "write":
                patch.setattr(journal, "_write", limited(journal._write))
            else:
                patch.setattr("os.fdatasync", limited(os.fdatasync))
            if pauses:
                answer = change(server, "PATCH", path, json={"paused": True})
                assert (answer.status_code, answer.json()["status"]) == (200, "paused")
            else:
                assert change(server, "DELETE", path).status_code == 204
            assert not reserve.exists()
        assert answers[0].status_code == 202
        assert values(server) == 2
    with served(tmp_path) as server:
        assert server.http.get(path).json().get("status") == ("paused" if pauses else 404)
        assert values(server) == 2
        assert reserve.exists()


@pytest.mark.parametrize("what", ["write", "sync", "matches"])
def test_a_full_disk_refuses_bodies_and_the_server_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    pairs = [(time, time % 7) for time in range(1, 40)]
    with served(tmp_path / "state") as server:
        server.put("rise")
        assert server.push(*pairs[:20]).status_code == 202
        before = server.found()
        with server.http.stream("GET", "/v1/queries/rise/matches") as answer:
            with monkeypatch.context() as patch:
                patch.setattr(journal.Journal, "has_room", lambda self: False)
                if what == "write":
                    patch.setattr(journal, "_write", _writes_half)
                elif what == "sync":
                    patch.setattr("os.fdatasync", full)
                else:
                    patch.setattr(topics.os, "write", full)
                    patch.setattr(topics, "SPILL_BYTES", 100)
                with httpx.Client(base_url=server.url) as other:
                    for _ in range(2):
                        refused = other.post(
                            "/v1/streams/trades/events", content=trades(*pairs[20:]), headers=TRIG
                        )
                        assert refused.status_code == 503
                        assert refused.headers["Retry-After"] == "10"
                        assert "No space left on device" in refused.json()["detail"]
                    assert other.get("/healthz").status_code == 200
                    (reason,) = other.get("/readyz").json()["not_ready"]
                    assert reason.startswith("storage: ")
                assert server.context.engine._journal.next == 2
            with httpx.Client(base_url=server.url) as other:
                until(lambda: other.get("/readyz").status_code == 200)
                again = other.post(
                    "/v1/streams/trades/events", content=trades(*pairs[20:]), headers=TRIG
                )
            assert again.status_code == 202
            lines = answer.iter_lines()
            assert any(line == "event: match" for line in lines)  # it is still subscribed
        found = server.found()
        assert found[: len(before)] == before
    with served(tmp_path / "state") as server:
        assert server.found() == found
    with served(tmp_path / "expected") as server:
        server.put("rise")
        server.push(*pairs)
        assert server.found() == found


def _writes_half(file: Any, data: bytes) -> None:
    file.write(data[: len(data) // 2])
    full()


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="only root can mount a file system"
)
def test_a_small_disk_that_is_really_full(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    small = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(mount)]
    if subprocess.run(small, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        pairs = [(time, time % 50) for time in range(400)]
        with served(mount / "state", checkpoint=1000) as server:
            server.put("rise")
            refused = server.push(*pairs)
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10")
            assert server.http.get("/v1/queries/rise").json()["matches"] == 0
            subprocess.run(["mount", "-o", "remount,size=20m", str(mount)], check=True)
            until(lambda: server.http.get("/readyz").status_code == 200)
            assert server.push(*pairs).status_code == 202
            matches = server.http.get("/v1/queries/rise").json()["matches"]
        with served(tmp_path / "other") as server:
            server.put("rise")
            server.push(*pairs)
            assert server.http.get("/v1/queries/rise").json()["matches"] == matches
    finally:
        subprocess.run(["umount", "--lazy", str(mount)], check=True)


# ------------------------------------------------------------ repeated bodies


def test_a_repeated_body_changes_nothing(tmp_path: Path) -> None:
    def push(server: Served, key: str, *pairs: tuple[float, int]) -> httpx.Response:
        headers = {**TRIG, "Idempotency-Key": key}
        return server.http.post(
            "/v1/streams/trades/events", content=trades(*pairs), headers=headers
        )

    with served(tmp_path) as server:
        server.put("rise")
        first = push(server, "a", (1, 10), (2, 12))
        late = push(server, "b", (1, 9), (3, 13))
        assert late.json()["late"] == 1
        for _ in range(2):
            assert push(server, "a", (1, 10), (2, 12)).json() == first.json()
            assert push(server, "b", (1, 9), (3, 13)).json() == late.json()
        other = push(server, "a", (4, 10))
        assert (other.status_code, other.json()["type"]) == (422, "urn:spaseq:problem:repeated")
        assert push(server, "x" * 256, (4, 10)).status_code == 400
        found = server.found()
        assert len(found) == 3
    for makes_checkpoint in (True, False):
        with served(tmp_path) as server:
            assert push(server, "a", (1, 10), (2, 12)).json() == first.json()
            assert push(server, "b", (1, 9), (3, 13)).json() == late.json()
            assert server.found() == found
            if makes_checkpoint:
                server.http.post("/v1/checkpoints")


def test_an_event_of_a_cloud_is_known_by_its_source_and_id(tmp_path: Path) -> None:
    def push(source: str, number: str, *pairs: tuple[float, int], **more: str) -> httpx.Response:
        headers = {**TRIG, "ce-source": source, "ce-id": number, "ce-specversion": "1.0", **more}
        path = "/v1/streams/trades/events"
        return server.http.post(path, content=trades(*pairs), headers=headers)

    with served(tmp_path) as server:
        server.put("rise")
        first = push("/a", "1", (1, 10), (2, 12))
        assert push("/a", "1", (1, 10), (2, 12)).json() == first.json()
        assert len(server.found()) == 1
        assert push("/a", "2", (3, 13)).json()["accepted"] == 1
        assert push("/b", "1", (4, 14)).json()["accepted"] == 1
        assert push("/a", "1", (9, 9)).status_code == 422
        own = {"Idempotency-Key": "own"}
        assert push("/a", "1", (5, 15), **own).json()["accepted"] == 1


def test_a_refused_body_may_come_again_under_its_key(tmp_path: Path) -> None:
    headers = {**TRIG, "Idempotency-Key": "a"}
    with served(tmp_path) as server:
        server.put("rise")
        path = "/v1/streams/trades/events"
        assert (
            server.http.post(path, content=b"this is not TriG", headers=headers).status_code == 400
        )
        assert server.http.post(path, content=trades((1, 2)), headers=headers).status_code == 202


def test_the_memory_for_answers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from spaseq.server import repeats

    monkeypatch.setattr(repeats, "MAX_ANSWERS", 3)
    monkeypatch.setattr(repeats, "MAX_BYTES", 200)
    known = repeats.Repeats()
    for number in range(5):
        known.add(f"k{number}", "d", {"token": number})
    assert [known.find(f"k{number}", "d") for number in range(5)] == [
        None, None, {"token": 2}, {"token": 3}, {"token": 4},
    ]  # fmt: skip
    known.add("long", "d", {"errors": ["x" * 150]})
    assert [key for key, *_ in known.state()] == ["k4", "long"]
    again = repeats.Repeats()
    again.restore(known.state())
    assert again.state() == known.state()


# ------------------------------------------------------------ files of the knowledge base


def test_files_of_the_knowledge_base_go_with_their_graphs(tmp_path: Path) -> None:
    graph, turtle = "/v1/kb/http%3A%2F%2Fe.org%2Fg", {"Content-Type": "text/turtle"}

    def files() -> int:
        return len(list((tmp_path / "kb").iterdir()))

    with served(tmp_path) as server:
        for number in range(5):
            content = f"<http://e.org/a> a <http://e.org/{number}> ."
            assert server.http.put(graph, content=content, headers=turtle).is_success
        assert files() == 5
        assert server.http.post("/v1/checkpoints").status_code == 201
        assert files() == 1
        assert server.http.put(graph, content="<a:a> a <a:b> .", headers=turtle).is_success
        (tmp_path / "kb" / "left.nt").write_text("")
    with served(tmp_path) as server:
        assert files() == 1
        shown = server.http.get(graph, headers={"Accept": "application/n-triples"})
        assert shown.text.startswith("<a:a> ")
        assert server.http.delete(graph).status_code == 204
        assert server.http.post("/v1/checkpoints").status_code == 201
        assert files() == 0

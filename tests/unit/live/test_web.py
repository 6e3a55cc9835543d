"""Server-Sent Events, WebSockets, webhooks: reconnection, limits, signatures, secrets."""

from __future__ import annotations

import json
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from followed import lines, newest
from hypothesis import given
from hypothesis import strategies as st
from session_runs import Running, values
from test_following import event
from web_servers import EventFeed, Sockets, answer, event_feed, http_server, websocket_server

from spaseq.errors import InputError, SpaseqError
from spaseq.io.read_options import ReadOptions
from spaseq.kb.public_hosts import public_address
from spaseq.live import web
from spaseq.live.addresses import redacted
from spaseq.live.session import LiveOptions
from spaseq.live.sse_source import EventParser
from spaseq.live.webhook_sink import WebhookSink, signature

TIMED = ReadOptions(time_predicate="http://www.w3.org/ns/prov#generatedAtTime")


def kept(folder: Path) -> LiveOptions:
    return LiveOptions(follow=True, state=str(folder / "state"))


def some(*numbers: int) -> list[bytes]:
    return [event(number).encode() for number in numbers]


def numbers(first: int, last: int) -> list[str]:
    return [str(number) for number in range(first, last + 1)]


# ------------------------------------------------------------------ event streams


def test_a_broken_stream_continues_where_it_was(tmp_path: Path) -> None:
    feed = EventFeed()
    feed.cut_after = [3, 0, 2]
    feed.add(some(*range(1, 8)))
    with event_feed(feed) as url, Running(tmp_path, url, reading=TIMED) as run:
        run.wait_for_matches(7)
        feed.add(some(8))
        run.wait_for_matches(8)
    assert values(run.found) == numbers(1, 8)
    assert feed.asked[:4] == [None, "3", "3", "5"]
    assert any("connecting again" in text for text in run.said)
    assert any("connected again" in text for text in run.said)


def test_a_run_continues_after_the_last_id(tmp_path: Path) -> None:
    feed = EventFeed()
    feed.add(some(*range(1, 4)))
    with event_feed(feed) as url:
        with Running(tmp_path, url, options=kept(tmp_path), reading=TIMED) as run:
            run.wait_for_matches(3)
        feed.add(some(4, 5))
        with Running(tmp_path, url, options=kept(tmp_path), reading=TIMED) as run:
            run.wait_for_matches(5)
    assert values(run.found) == numbers(1, 5)
    assert feed.asked == [None, "3"]


def test_a_stream_without_ids_is_reported(tmp_path: Path) -> None:
    feed = EventFeed(ids=False)
    with event_feed(feed) as url, Running(tmp_path, url, reading=TIMED) as run:
        run.wait_for(lambda: feed.asked != [])
        feed.add(some(1))
        run.wait_for_matches(1)
    assert any("the events have no ids" in text for text in run.said)


def test_the_server_may_name_the_media_type(tmp_path: Path) -> None:
    feed = EventFeed(headers={"RDF-Message-Content-Type": "text/turtle"})
    feed.add([b"@prefix : <http://example.org/> .\n:s :value 7 ."])
    with event_feed(feed) as url:
        arrival = ReadOptions(arrival_time=True)
        with Running(tmp_path, url, reading=arrival) as run:
            run.wait_for_matches(1)
    assert values(run.found) == ["7"]


def test_credentials_are_sent_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEED_TOKEN", "very-secret")
    feed = EventFeed()
    feed.add(some(1))
    with event_feed(feed) as url:
        with Running(tmp_path, f"{url}#token-env=FEED_TOKEN", options=kept(tmp_path),
                     reading=TIMED) as run:  # fmt: skip
            run.wait_for_matches(1)
        named = url.replace("http://", "http://me:very-secret@")
        with Running(tmp_path, named, reading=TIMED) as other:
            other.wait_for(lambda: len(feed.seen) == 2)
            other.wait_for(lambda: newest(tmp_path) > 0)
    assert feed.seen[0]["Authorization"] == "Bearer very-secret"
    assert feed.seen[1]["Authorization"].startswith("Basic ")
    state = b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir())
    assert b"very-secret" not in state
    assert not any("very-secret" in text for text in [*run.said, *other.said])


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (404, {}, "it answered 404 Not Found"),
        (401, {}, "it answered 401 Unauthorized"),
        (200, {"content_type": "text/turtle"}, "it is text/turtle, not an event stream"),
        (302, {"location": "http://10.0.0.1/x"}, "10.0.0.1/x, a private address, which is not"),
        (302, {"location": "file:///etc/passwd"}, "it redirects to file:///etc/passwd, which is"),
    ],
)
def test_useless_answers_end_the_run(
    tmp_path: Path, status: int, headers: dict[str, str], said: str
) -> None:
    def handle(request: BaseHTTPRequestHandler) -> None:
        answer(request, status, **headers)

    with (
        http_server(handle) as address,
        pytest.raises(InputError, match=said),
        Running(tmp_path, f"{address}/x", reading=TIMED) as run,
    ):
        run.join()


def test_a_redirection_on_the_same_host_is_followed(tmp_path: Path) -> None:
    feed = EventFeed()
    feed.add(some(1))

    def handle(request: BaseHTTPRequestHandler) -> None:
        if request.path == "/old":
            answer(request, 307, location="/events")
        else:
            feed.handle(request)

    with http_server(handle) as address:
        with Running(tmp_path, f"{address}/old", reading=TIMED) as run:
            run.wait_for_matches(1)
        feed.close()
    assert values(run.found) == ["1"]


def test_the_server_ends_the_stream_with_204(tmp_path: Path) -> None:
    with (
        http_server(lambda request: answer(request, 204)) as address,
        Running(tmp_path, address + "/x", reading=TIMED) as run,
    ):
        run.join()
    assert run.found == []


@pytest.mark.parametrize(
    ("host", "public"),
    [("127.0.0.1", False), ("10.1.2.3", False), ("169.254.169.254", False), ("::1", False),
     ("1.1.1.1", True), ("no-such-host.invalid", False)],
)  # fmt: skip
def test_private_addresses_are_known(host: str, public: bool) -> None:
    assert (public_address(host) is not None) is public


def test_a_redirection_connects_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name has a public address when it is checked, and another one when it is asked again."""
    import httpx

    asked: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if len(asked) == 1:
            return httpx.Response(302, headers={"location": "https://rebound.example:8443/x?y"})
        if len(asked) == 2:
            return httpx.Response(307, headers={"location": "/z"})
        return httpx.Response(200, text="there")

    places = iter(["93.184.216.34", "127.0.0.1"])
    monkeypatch.setattr(
        "socket.getaddrinfo", lambda *given, **more: [(2, 1, 6, "", (next(places), 0))]
    )
    with (
        httpx.Client(transport=httpx.MockTransport(respond)) as http,
        web.opened(http, "https://feeds.example/a", {}, {"Authorization": "x"}) as (found, at),
    ):
        assert found.read() == b"there"
    assert at == "https://rebound.example:8443/z"
    assert [str(request.url) for request in asked] == [
        "https://feeds.example/a", "https://93.184.216.34:8443/x?y", "https://93.184.216.34:8443/z",
    ]  # fmt: skip
    for request in asked[1:]:
        assert request.headers["Host"] == "rebound.example:8443"
        assert request.extensions["sni_hostname"] == "rebound.example"
        assert "Authorization" not in request.headers


EVENTS = st.lists(
    st.tuples(
        st.sampled_from([None, "match", "late"]),
        st.lists(st.text(st.sampled_from("ab: é"), max_size=5), min_size=1, max_size=3),
        st.sampled_from([None, "7", "id:x"]),
    ),
    max_size=5,
)


@given(EVENTS, st.sampled_from(["\n", "\r\n", "\r"]), st.data())
def test_events_are_parsed_however_they_are_cut(
    events: list[tuple[str | None, list[str], str | None]], end: str, data: st.DataObject
) -> None:
    text, expected, last = "\ufeff", [], ""
    for kind, texts, name in events:
        text += f": comment{end}"
        text += f"event: {kind}{end}" if kind else ""
        text += f"id: {name}{end}" if name else ""
        text += "".join(f"data: {line}{end}" for line in texts) + end
        last = name or last
        expected.append((kind or "message", "\n".join(texts).encode(), last))
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    parser = EventParser()
    found = []
    for begin, stop in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        found += list(parser.feed(raw[begin:stop]))
    assert found == expected


def test_an_endless_event_is_an_error() -> None:
    def feed(piece: bytes) -> None:
        parser = EventParser()
        for _ in range(40):
            list(parser.feed(piece))

    for piece in (b"data: " + b"x" * (1 << 20) + b"\n", b"x" * (1 << 20)):
        with pytest.raises(ValueError, match="an event of more than"):
            feed(piece)


# ------------------------------------------------------------------ WebSockets


def test_each_message_of_a_websocket_is_an_event(tmp_path: Path) -> None:
    sockets = Sockets()
    with (
        websocket_server(sockets) as url,
        Running(tmp_path, f"{url}#send=subscribe%20all", reading=TIMED) as run,
    ):
        sockets.wait_for_connection()
        sockets.send([event(1), event(2).encode()])
        run.wait_for_matches(2)
        sockets.send([event(number) for number in range(3, 500)])
        run.wait_for_matches(499)
        sockets.cut()
        run.wait_for(lambda: any("connecting again" in text for text in run.said))
        run.wait_for(lambda: any("connected again" in text for text in run.said))
        sockets.wait_for_connection()
        sockets.send([event(500)])
        run.wait_for_matches(500)
    assert values(run.found) == numbers(1, 500)
    assert sockets.received == ["subscribe all"] * 2


def test_a_websocket_keeps_its_count_over_a_restart(tmp_path: Path) -> None:
    sockets = Sockets()
    with websocket_server(sockets) as url:
        for first in (1, 2):
            with Running(tmp_path, url, options=kept(tmp_path), reading=TIMED) as run:
                sockets.wait_for_connection()
                sockets.send([event(first)])
                run.wait_for_matches(first)
            run.wait_for(lambda: not sockets.connections)
    assert values(run.found) == numbers(1, 2)
    assert any("cannot be read again" in text for text in run.said)


def test_a_message_that_is_too_large_ends_the_run(tmp_path: Path) -> None:
    sockets = Sockets()
    with websocket_server(sockets) as url:
        run = Running(tmp_path, f"{url}#max-size=100", reading=TIMED)
        sockets.wait_for_connection()
        sockets.send(["x" * 101])
        with pytest.raises(InputError, match="a message of more than 100 bytes"):
            run.join()


@pytest.mark.parametrize("there", ["http://127.0.0.1:1/", "ws://127.0.0.1:1/", "/elsewhere"])
def test_a_websocket_that_redirects_is_refused(tmp_path: Path, there: str) -> None:
    def handle(request: BaseHTTPRequestHandler) -> None:
        answer(request, 302, location=there)

    with http_server(handle) as address:
        url = address.replace("http:", "ws:")
        with (
            pytest.raises(InputError, match="it redirects, which is not followed"),
            Running(tmp_path, url) as run,
        ):
            run.join()


# ------------------------------------------------------------------ webhooks


class Hook:
    """Receives webhooks; `statuses` are the next answers, then 200."""

    def __init__(self, statuses: list[int] | None = None):
        self.statuses = statuses or []
        self.taken: list[tuple[dict[str, str], bytes]] = []
        self.attempts = 0

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        self.attempts += 1
        status = self.statuses.pop(0) if self.statuses else 200
        if status == 200:
            self.taken.append(({k.lower(): v for k, v in request.headers.items()}, body))
        answer(request, status)


def source(folder: Path, count: int) -> str:
    path = folder / "s.nq"
    path.write_text("".join(event(number) for number in range(1, count + 1)), "utf-8")
    return str(path)


def test_matches_are_posted_signed_and_again_if_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", "whsec_c2VjcmV0IGtleQ==")
    hook = Hook([200, 503, 429, 200])
    with (
        http_server(hook.handle) as address,
        Running(tmp_path, source(tmp_path, 3), output=f"{address}/h#secret-env=HOOK_SECRET") as run,
    ):
        run.wait_for(lambda: len(hook.taken) == 3)
    assert hook.attempts == 5
    said = [text.partition(": ")[2] for text in run.said]
    assert said == [
        "cannot be written (it answered 503 Service Unavailable); trying again", "written again",
    ]  # fmt: skip
    found = [json.loads(body)["bindings"]["value"]["value"] for _, body in hook.taken]
    assert found == numbers(1, 3)
    headers, body = hook.taken[0]
    assert headers["content-type"] == "application/json"
    wanted = signature(
        b"secret key", headers["webhook-id"], int(headers["webhook-timestamp"]), body
    )
    assert headers["webhook-signature"] == wanted
    assert len({headers["webhook-id"] for headers, _ in hook.taken}) == 3


def test_the_signature_is_that_of_the_standard() -> None:
    """An example of standardwebhooks.com."""
    import base64

    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    identifier, seconds = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330
    body = b'{"test": 2432232314}'
    assert signature(key, identifier, seconds, body) == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


def test_a_match_that_is_refused_goes_to_the_dead_letters(tmp_path: Path) -> None:
    hook = Hook([200, 400])
    dead = tmp_path / "dead.jsonl"
    with (
        http_server(hook.handle) as address,
        Running(tmp_path, source(tmp_path, 3), output=f"{address}/h#dead={dead}") as run,
    ):
        run.wait_for(lambda: len(hook.taken) == 2 and len(lines(dead)) == 1)
    (letter,) = map(json.loads, lines(dead))
    assert letter["reason"] == "it answered 400 Bad Request"
    assert letter["attempts"] == 1
    assert letter["match"]["bindings"]["value"]["value"] == "2"


def test_without_dead_letters_the_run_fails(tmp_path: Path) -> None:
    hook = Hook([400])
    with http_server(hook.handle) as address:
        options = LiveOptions(follow=False)
        run = Running(tmp_path, source(tmp_path, 1), options=options, output=f"{address}/h")
        with pytest.raises(SpaseqError, match="could not be delivered: it answered 400"):
            run.join()


def test_a_checkpoint_waits_for_deliveries(tmp_path: Path) -> None:
    """What was not delivered is sent again after a restart: at least once, with the same id."""
    hook = Hook([500] * 3)
    with http_server(hook.handle) as address:
        url = f"{address}/h"
        path = source(tmp_path, 3)
        with Running(tmp_path, path, options=kept(tmp_path), output=url) as run:
            run.wait_for(lambda: len(hook.taken) == 3)
            run.wait_for(lambda: newest(tmp_path) > 0)
        with Running(tmp_path, path, options=kept(tmp_path), output=url) as run:
            time.sleep(0.5)
    assert [json.loads(body)["bindings"]["value"]["value"] for _, body in hook.taken] == numbers(
        1, 3
    )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://h/x#secret-env=NO_SUCH", "the environment variable NO_SUCH is not set"),
        ("http://h/x#tries=3", "there is no option tries"),
        ("http://h/x#retries=-1", "retries is a number from 0, not '-1'"),
        ("http:///x", "it names no host"),
    ],
)
def test_urls_of_webhooks_are_checked(url: str, said: str) -> None:
    with pytest.raises(SpaseqError, match=said):
        WebhookSink(url, False)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("kafka://h:1/t", "kafka://h:1/t"),
        ("kafka://me:pw@h/t", "kafka://me:***@h/t"),
        ("mqtts://me:p@w@h/t", "mqtts://me:***@h/t"),
        ("https://h/x?access_token=abc&b=1#c", "https://h/x?access_token=***&b=1#c"),
        ("https://h/x?api_key=abc#secret-env=NAME", "https://h/x?api_key=***#secret-env=NAME"),
        ("redis://:pw@h/1", "redis://:***@h/1"),
        ("readings.nq", "readings.nq"),
        ("postgresql://u@h/db?password=x", "postgresql://u@h/db?password=***"),
    ],
)
def test_urls_are_shown_without_secrets(url: str, shown: str) -> None:
    assert redacted(url) == shown

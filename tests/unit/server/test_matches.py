"""Subscriptions: SSE, NDJSON, WebSocket and RDF Messages; replay, progress, late events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from served import RISE, Served, served
from websockets.asyncio.client import connect

CONSTRUCT = RISE.replace("SELECT ?company ?p1 ?p2", "CONSTRUCT { ?company :rose ?p2 }")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path, replay=8) as running:
        running.put("rise")
        yield running


def events_of(answer: httpx.Response, count: int) -> list[dict[str, Any]]:
    """The first SSE events of an answer that are not progress."""
    found: list[dict[str, Any]] = []
    one: dict[str, Any] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            one[name] = value
            continue
        if one.get("event") not in (None, "progress"):
            found.append({**one, "data": json.loads(one["data"])})
        one = {}
        if len(found) == count:
            return found
    return found


def test_server_sent_events_and_their_continuation(server: Served) -> None:
    with server.http.stream(
        "GET", "/v1/queries/rise/matches", headers={"Accept": "text/event-stream"}
    ) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        server.push((1, 10), (2, 12), (3, 13))
        first, second, third = events_of(answer, 3)
    assert [one["event"] for one in (first, second, third)] == ["match"] * 3
    assert first["data"]["bindings"]["p2"]["value"] == "12"
    with server.http.stream(
        "GET",
        "/v1/queries/rise/matches?follow=false",
        headers={"Accept": "text/event-stream", "Last-Event-ID": first["id"]},
    ) as answer:
        assert [one["id"] for one in events_of(answer, 9)] == [second["id"], third["id"]]


def test_a_match_that_the_buffer_does_not_have_is_gone(server: Served) -> None:
    server.push(*((time, time) for time in range(1, 4)))
    first = server.lines("rise")[0]["id"]
    for time in range(4, 12):
        server.push((time, time))
    gone = server.http.get("/v1/queries/rise/matches", headers={"Last-Event-ID": first})
    assert gone.status_code == 410
    kept = [one for one in server.lines("rise") if "bindings" in one]
    assert 4 <= len(kept) <= 8
    assert server.http.get("/v1/queries/rise").json()["matches"] == 55


def test_lines_end_with_progress_and_have_a_limit(server: Served) -> None:
    server.push((1, 10), (2, 12), (3, 13))
    *matches, progress = server.lines("rise")
    assert progress == {"progress": {"watermark": 3}}
    assert list(matches[0])[:2] == ["id", "query"]
    limited = server.lines("rise", limit=2)
    assert [one["id"] for one in limited] == [one["id"] for one in matches[:2]]


def test_a_watermark_makes_progress_without_events(server: Served) -> None:
    with server.http.stream(
        "GET", "/v1/queries/rise/matches", headers={"Accept": "application/x-ndjson"}
    ) as answer:
        server.push((1, 10))
        moved = server.http.post("/v1/streams/trades/watermark", json={"time": 50})
        assert moved.json()["watermark"] == 50
        for line in answer.iter_lines():
            if line and json.loads(line) == {"progress": {"watermark": 50}}:
                break
    late = server.push((49, 10)).json()
    assert (late["accepted"], late["late"]) == (0, 1)
    assert late["late_events"][0]["reason"] == "watermark"


def test_late_events_are_told(server: Served) -> None:
    with server.http.stream(
        "GET", "/v1/queries/rise/matches", headers={"Accept": "text/event-stream"}
    ) as answer:
        server.push((5, 10))
        assert server.push((3, 10)).json()["late"] == 1
        (late,) = events_of(answer, 1)
    assert late["event"] == "late"
    assert (late["data"]["time"], late["data"]["watermark"]) == (3, 5)


def test_rdf_messages_are_the_graphs_of_construct(server: Served) -> None:
    server.put("made", CONSTRUCT)
    server.push((1, 10), (2, 12), (3, 13))
    url = "/v1/queries/made/matches?follow=false&from=oldest"
    answer = server.http.get(url, headers={"Accept": "application/n-quads"})
    assert answer.text.splitlines()[:3] == [
        'VERSION "1.1-messages"',
        "<http://example.org/eBay> <http://example.org/rose> "
        '"12"^^<http://www.w3.org/2001/XMLSchema#integer> .',
        "MESSAGE",
    ]
    refused = server.http.get("/v1/queries/rise/matches", headers={"Accept": "application/n-quads"})
    assert refused.status_code == 406
    # They can be pushed again, as the events of another query.
    server.put("again", RISE.replace("trades", "rises").replace(":price", ":rose"))
    with_times = {"Content-Type": "application/n-quads"}
    pushed = server.http.post("/v1/streams/rises/events", content=answer.text, headers=with_times)
    assert pushed.status_code == 400
    assert "time" in pushed.json()["detail"]


def test_web_sockets(server: Served) -> None:
    async def listen() -> list[Any]:
        url = server.url.replace("http", "ws")
        async with connect(f"{url}/v1/queries/rise/matches?limit=1") as socket:
            await asyncio.to_thread(server.push, (1, 10), (2, 12))
            return [json.loads(text) async for text in socket]

    found = [one for one in asyncio.run(listen()) if one["event"] == "match"]
    assert [one["data"]["bindings"]["p2"]["value"] for one in found] == ["12"]


def test_the_end_of_a_query_ends_its_subscriptions(server: Served) -> None:
    with server.http.stream(
        "GET", "/v1/queries/rise/matches", headers={"Accept": "text/event-stream"}
    ) as answer:
        server.http.delete("/v1/queries/rise")
        assert events_of(answer, 2)[0]["data"] == {"removed": "rise"}
    assert server.http.get("/v1/queries/rise/matches").status_code == 404

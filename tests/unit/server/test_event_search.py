"""The triples of an event that a match names, found again in the journal."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from served import TRIG, Served, served, trade


@pytest.fixture
def server(tmp_path: Path) -> Served:
    with served(tmp_path) as running:
        yield running


def triples(server: Served, graph: str, time: str) -> httpx.Response:
    return server.http.get("/v1/streams/trades/events", params={"graph": graph, "time": time})


def test_the_events_of_a_match_are_shown(server: Served) -> None:
    server.put("rise")
    server.push((1, 10), (2, 9))
    server.push((3, 12))
    found = {}
    for match in server.lines("rise"):
        for event in match.get("events", ()):
            answer = triples(server, event["graph"], str(event["time"]))
            assert answer.headers["Content-Type"] == "application/n-triples"
            found[event["time"]] = answer.text
    assert found.keys() == {1, 2, 3}
    price = "<http://example.org/eBay> <http://example.org/price> "
    assert all(text.startswith(f'{price}"') for text in found.values())
    assert '"12"' in found[3]


def test_one_of_many_bodies_with_names_alike(server: Served) -> None:
    server.put("rise")
    for second in range(1, 80):
        body = (
            "@base <http://example.org/trades/> . @prefix : <http://example.org/> .\n"
            f"<{second}/0> <http://www.w3.org/ns/prov#generatedAtTime> {second} . "
            f"<{second}/0> {{ :eBay :price {1000 - second} }}"
        )
        server.http.post("/v1/streams/trades/events", content=body, headers=TRIG)
    assert '"977"' in triples(server, "http://example.org/trades/23/0", "23").text


def test_an_event_that_never_was(server: Served) -> None:
    server.put("rise")
    server.push((1, 10))
    assert triples(server, "http://example.org/none", "1").status_code == 404
    assert triples(server, "http://example.org/t1", "2").status_code == 404
    assert server.http.get("/v1/streams/trades/events").status_code == 400
    assert server.http.get("/v1/streams/none/events?graph=a&time=1").status_code == 404


def test_an_event_of_a_source_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "trades.trig").write_bytes(trade(1, 10))
    sources = {"trades": [str(tmp_path / "trades.trig")]}
    with served(tmp_path / "state", sources=sources) as server:
        server.put("rise")
        server.push((2, 12))
        answer = triples(server, "http://example.org/t1", "1")
        assert answer.status_code == 404
        assert "those of sources are not found" in answer.json()["detail"]
        assert '"12"' in triples(server, "http://example.org/t2", "2").text

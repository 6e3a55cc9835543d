"""Health, metrics, checkpoints, the description of the API, KB graphs and streams."""

from __future__ import annotations

import json
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from served import RISE, TRIG, Served, served, trade
from starlette.routing import Route

from spaseq.client import Client, Notice
from spaseq.errors import StateError
from spaseq.live.metrics import METRICS
from spaseq.server.app import ROUTES
from spaseq.server.journal import Journal
from spaseq.server.openapi import OPERATIONS, document, template

KB = "/v1/kb/http%3A%2F%2Fexample.org%2Fkb"
WITH_KB = """\
PREFIX : <http://example.org/>
SELECT ?company ?p1 WITHIN 10 SECONDS
FROM STREAM trades <http://example.org/trades>
FROM <http://example.org/kb>
WHERE { SEQ(A)
  DEFINE GPM A ON trades {
    ?company :price ?p1 . GRAPH <http://example.org/kb> { ?company a :Tech } }
}
"""
TECH = "@prefix : <http://example.org/> . :eBay a :Tech ."
TURTLE = {"Content-Type": "text/turtle"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        yield running


def test_the_description_has_the_routes_and_no_others() -> None:
    routes = {
        (method, template(route.path))
        for route in ROUTES
        if isinstance(route, Route)
        for method in (route.methods or ()) - {"HEAD"}
    }
    assert routes == OPERATIONS.keys()


def test_the_description_is_whole(server: Served) -> None:
    served_one = server.http.get("/v1/openapi.json").json()
    assert served_one == document()
    assert served_one["openapi"].startswith("3.1")
    for path, methods in served_one["paths"].items():
        for operation in methods.values():
            named = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"}
            assert named == set(re.findall(r"\{(\w+)\}", path))
            assert all(answer["description"] for answer in operation["responses"].values())


def test_health_and_metrics(server: Served) -> None:
    assert server.http.get("/healthz").text == "ok\n"
    assert server.http.get("/readyz").json() == {"ready": True, "not_ready": []}
    server.put("rise")
    server.push((1, 10), (2, 12))
    text = server.http.get("/metrics").text
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert samples['spaseq_events_total{stream="http://example.org/trades"}'] == "2.0"
    assert samples['spaseq_matches_total{query="rise"}'] == "1.0"
    assert samples['spaseq_groups{query="rise",place="2: A : B"}'] == "2.0"
    assert samples["spaseq_subscribers"] == "0.0"
    named = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert named == {name for name, metric in METRICS.items() if metric.serves}
    # Late events are not among the accepted ones.
    assert server.push((1, 9)).json()["late"] == 1
    lines = server.http.get("/metrics").text.splitlines()
    assert 'spaseq_events_total{stream="http://example.org/trades"} 2.0' in lines
    assert 'spaseq_late_events_total{stream="http://example.org/trades"} 1.0' in lines


def test_equal_queries_have_metrics_of_their_own(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.put("rise")
        server.put("same", RISE)
    with served(tmp_path) as server:
        server.push((1, 10), (2, 12))
        lines = server.http.get("/metrics").text.splitlines()
        shown = [
            f'spaseq_groups{{query="{name}",place="2: A : B"}} 2.0' for name in ("rise", "same")
        ]
        assert {*shown} <= {*lines}


def test_kb_graphs_are_versioned_and_used_at_once(server: Served) -> None:
    assert server.put("tech", WITH_KB).status_code in (201, 422)
    first = server.http.put(KB, content=TECH, headers=TURTLE)
    assert first.status_code == 201
    assert server.put("tech", WITH_KB).status_code in (200, 201)
    server.push((1, 10))
    assert [m["bindings"]["p1"]["value"] for m in server.lines("tech") if "query" in m] == ["10"]
    stale = server.http.put(KB, content=TECH, headers={**TURTLE, "If-Match": '"0"'})
    assert stale.status_code == 412
    other = server.http.put(KB, content="<http://a> a <http://b> .", headers=TURTLE)
    assert (other.status_code, other.json()["triples"]) == (200, 1)
    assert other.headers["ETag"] != first.headers["ETag"]
    server.push((2, 11))
    assert len([m for m in server.lines("tech") if "query" in m]) == 1
    wrong = server.http.put(KB, content="<http://a> a\n <http://b> :", headers=TURTLE)
    assert (wrong.status_code, wrong.json()["line"]) == (400, 2)
    shown = server.http.get(KB, headers={"Accept": "application/n-triples"})
    assert shown.text.startswith("<http://a> ")
    assert server.http.delete(KB).status_code == 409
    server.http.delete("/v1/queries/tech")
    assert server.http.delete(KB).status_code == 204
    assert server.http.get(KB).status_code == 404


def test_kb_graphs_survive_a_restart(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.http.put(KB, content=TECH, headers=TURTLE)
        server.put("tech", WITH_KB)
    with served(tmp_path) as server:
        server.push((1, 10))
        assert len([m for m in server.lines("tech") if "query" in m]) == 1
        assert server.http.get(KB).json()["triples"] == 1


def test_two_streams_wait_for_each_other_until_one_is_idle(tmp_path: Path) -> None:
    text = RISE.replace(
        "FROM STREAM trades <http://example.org/trades>",
        "FROM STREAM trades <http://example.org/trades> FROM STREAM news <http://example.org/news>",
    ).replace("GPM A ON trades", "GPM A ON news")
    with served(tmp_path, idle=0.3) as server:
        server.put("both", text)
        assert server.push((1, 10), stream="news").json()["accepted"] == 1
        shown = {one["iri"]: one for one in server.http.get("/v1/streams").json()["items"]}
        trades = shown["http://example.org/trades"]
        assert (trades["holds_back"], trades["watermark"]) == (True, None)
        server.push((2, 12))
        server.push((3, 13))
        assert server.found("both") == []  # the time of the news may still be 1
        deadline = time.monotonic() + 10
        while server.found("both") != [(10, 12), (10, 13)]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert server.http.get("/v1/streams/news").json()["idle"]
        late = server.push((1, 10), stream="http%3A%2F%2Fexample.org%2Fnews").json()
        assert late["late_events"][0]["reason"] == "idle"


def test_lateness_puts_events_in_order(tmp_path: Path) -> None:
    from spaseq.io.read_options import ReadOptions

    with served(tmp_path, reading=ReadOptions(lateness=5_000_000)) as server:
        server.put("rise")
        assert server.push((3, 13), (1, 10), (9, 11)).json()["late"] == 0
        assert server.found() == [(10, 13)]
        assert server.push((3.5, 9)).json()["late"] == 1
        assert server.http.get("/v1/streams/trades").json()["waiting"] == 1
    with served(tmp_path, reading=ReadOptions(lateness=5_000_000)) as server:
        # The event that waited at the checkpoint waits again.
        assert server.http.get("/v1/streams/trades").json()["waiting"] == 1
        server.http.post("/v1/streams/trades/watermark", json={"time": 20})
        assert server.found() == [(10, 13), (10, 11)]


def test_a_body_in_temporal_representation_is_an_event_for_each_time(server: Served) -> None:
    server.put("rise")
    body = {
        "id": "http://example.org/eBay",
        "@context": {"price": "http://example.org/cents"},
        "price": {
            "type": "Property",
            "values": [[n, f"2026-01-05T09:00:0{n}Z"] for n in (1, 2, 3)],
        },
    }
    answer = server.http.post(
        "/v1/streams/trades/events",
        content=json.dumps(body),
        headers={"Content-Type": "application/ngsi-ld+json"},
    )
    assert (answer.status_code, answer.json()["accepted"]) == (202, 3)


def test_bodies_in_several_syntaxes(server: Served) -> None:
    server.put("rise")
    prov = "http://www.w3.org/ns/prov#generatedAtTime"
    number = "http://www.w3.org/2001/XMLSchema#integer"

    def post(media_type: str, text: str, **parameters: str) -> int:
        answer = server.http.post(
            "/v1/streams/trades/events", content=text, params=parameters,
            headers={"Content-Type": media_type},
        )  # fmt: skip
        assert answer.status_code == 202, answer.text
        return int(answer.json()["accepted"])

    ebay, price = "<http://example.org/eBay>", "<http://example.org/price>"
    quads = (
        f'<http://example.org/g> <{prov}> "1"^^<{number}> .\n'
        f'{ebay} {price} "1"^^<{number}> <http://example.org/g> .\n'
    )
    assert post("application/n-quads", quads) == 1
    turtle = f"{ebay} {price} 2 ; <{prov}> 2 ."
    assert post("text/turtle", turtle) == 1
    messages = f'VERSION "1.1-messages"\n{ebay} {price} "3"^^<{number}> .\n'
    messages += f'<http://example.org/m> <{prov}> "3"^^<{number}> .\nMESSAGE\n'
    messages += f'{ebay} {price} "4"^^<{number}> .\n'
    messages += f'<http://example.org/m> <{prov}> "4"^^<{number}> .\n'
    assert post("application/n-quads", messages) == 2
    context = '"@context": {"@vocab": "http://example.org/"}, "@id": "http://example.org/eBay"'
    line = f'{{{context}, "price": 5, "{prov}": 5}}'
    assert post("application/ld+json", line) == 1
    assert post("application/x-ndjson", line.replace("5", "6") + "\n") == 1
    skipped = quads.replace('"1"', '"7"') + "not a quad\n"
    answer = server.http.post(
        "/v1/streams/trades/events?on-error=skip", content=skipped,
        headers={"Content-Type": "application/n-quads"},
    ).json()  # fmt: skip
    assert (answer["accepted"], answer["rejected"]) == (1, 1)
    assert len(server.found()) == 21
    refused = server.http.post(
        "/v1/streams/trades/events", content="x", headers={"Content-Type": "text/csv"}
    )
    assert refused.status_code == 415


def test_a_malformed_body_is_refused_whole(server: Served) -> None:
    server.put("rise")
    wrong = trade(1, 10) + b":t2 prov:generatedAtTime"
    answer = server.http.post("/v1/streams/trades/events", content=wrong, headers=TRIG)
    assert (answer.status_code, answer.json()["line"]) == (400, 3)
    assert server.push((1, 10)).json()["accepted"] == 1
    assert server.http.get("/v1/streams/trades").json()["events"] == 1
    nowhere = server.http.post("/v1/streams/none/events", content=trade(1, 1), headers=TRIG)
    assert nowhere.status_code == 404


def test_checkpoints_wait_for_everything_before(server: Served) -> None:
    server.put("rise")
    assert server.push((1, 10)).status_code == 202
    first = server.http.post("/v1/checkpoints").json()["number"]
    numbers: list[int] = []

    def make() -> None:
        numbers.append(server.http.post("/v1/checkpoints").json()["number"])

    threads = [threading.Thread(target=make) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert min(numbers) > first


def test_a_checkpoint_that_cannot_be_written_says_so(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.put("rise")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("spaseq.live.state.StateFolder.write_aside", fail)
    assert server.http.post("/v1/checkpoints").status_code == 507
    monkeypatch.undo()
    assert server.http.post("/v1/checkpoints").status_code == 201


def test_watermarks_are_numbers_or_dates(server: Served) -> None:
    server.put("rise")
    post = server.http.post
    for wrong in ({}, {"time": True}, {"time": "yesterday"}, []):
        assert post("/v1/streams/trades/watermark", json=wrong).status_code == 422
    moved = post("/v1/streams/trades/watermark", json={"time": "2026-01-01T00:00:00Z"})
    assert moved.status_code == 202
    assert post("/v1/streams/trades/watermark", json={"time": 5}).status_code == 422


def test_a_torn_record_is_cut_off(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.put("rise")
        server.push((1, 10))
        copies = tmp_path.with_name("copy")
        shutil.copytree(tmp_path, copies)
    (journal,) = copies.glob("journal-*")
    with open(journal, "ab") as file:
        file.write(b"\x10\x00\x00\x00\xff\xff")
    with served(copies) as server:
        server.push((2, 12))
        assert server.found() == [(10, 12)]
        assert any("cut off 6 bytes of an incomplete record" in line for line in server.logged)


def test_a_damaged_file_of_the_journal_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for number in range(4):
        journal.append({"number": number}, b"x" * 10)
        if number == 1:
            journal._size = 1 << 40  # another file is begun
    journal.close()
    again = Journal(tmp_path)
    assert [record.says["number"] for record in again.read(1)] == [1, 2, 3]
    again.forget(2)
    assert again.first == 2
    with pytest.raises(StateError, match="begins at record 2, but 0 is needed"):
        list(again.read(0))
    again.close()
    journal = Journal(tmp_path)
    journal._size = 1 << 40
    journal.append({"number": 4})
    first = tmp_path / "journal-2"
    data = first.read_bytes()
    first.write_bytes(data[:40] + b"?" + data[41:])
    with pytest.raises(StateError, match="is damaged: it ends at record"):
        list(journal.read(2))
    journal.close()


CHAIN = """\
PREFIX : <http://example.org/>
REGISTER STREAM <http://example.org/high> AS
CONSTRUCT { ?company :high ?p1 } WITHIN 10 SECONDS
FROM STREAM trades <http://example.org/trades>
WHERE { SEQ(A) DEFINE GPM A ON trades { ?company :price ?p1 } }
"""
"""A query that registers a stream."""


@pytest.mark.parametrize("waits", [False, True])
def test_a_query_may_name_a_graph_that_was_added_while_others_run(
    tmp_path: Path, waits: bool
) -> None:
    with served(tmp_path) as server:
        server.put("rise")
        if waits:  # events of the reader of a registered stream wait until their time closes
            assert server.put("high", CHAIN).status_code == 201
            reader = RISE.replace("org/trades", "org/high").replace("trades <", "high <")
            reader = reader.replace("ON trades", "ON high").replace(":price", ":high")
            assert server.put("reader", reader).status_code == 201
            assert server.push((0, 1)).json()["accepted"] == 1
        for content in ("<http://a> a <http://b> .", TECH):  # twice before an event
            assert server.http.put(KB, content=content, headers=TURTLE).is_success
        made = server.put("tech", WITH_KB)
        assert made.status_code == 201, made.text
        server.push((1, 10), (2, 12))
        assert [m["bindings"]["p1"]["value"] for m in server.lines("tech") if "query" in m] == [
            "10",
            "12",
        ]
    with served(tmp_path) as server:
        server.push((3, 13))
        assert len([m for m in server.lines("tech") if "query" in m]) == 3


def test_answers_are_not_delayed(server: Served) -> None:
    server.http.get("/healthz")
    (connection,) = server.connections
    peer = connection.transport.get_extra_info("socket")
    assert peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_body_says_its_syntax_and_is_not_empty(server: Served) -> None:
    server.put("rise")
    path, body = "/v1/streams/trades/events", trade(1, 10)
    for kind in ("", "application/octet-stream", "application/x-www-form-urlencoded"):
        request = server.http.build_request("POST", path, content=body)
        request.headers.update({"Content-Type": kind} if kind else {})
        answer = server.http.send(request)
        assert answer.status_code == 415
        assert "Content-Type: application/n-quads" in answer.json()["detail"]
    empty = server.http.post(path, content=b"", headers=TRIG)
    assert (empty.status_code, empty.json()["detail"]) == (
        400,
        "the body is empty: it has no events",
    )
    assert server.push((1, 10)).status_code == 202


def test_an_event_stream_of_a_removed_query_does_not_come_back(server: Served) -> None:
    server.put("rise")
    stream, lines = {"Accept": "text/event-stream"}, {"Accept": "application/x-ndjson"}
    with server.http.stream("GET", "/v1/queries/rise/matches", headers=stream) as answer:
        with httpx.Client(base_url=server.url) as other:
            assert other.delete("/v1/queries/rise").status_code == 204
        said = "".join(answer.iter_text())
        assert said.endswith('event: problem\ndata: {"removed": "rise"}\n\n')
    assert server.http.get("/v1/queries/rise/matches", headers=stream).status_code == 204
    assert server.http.get("/v1/queries/rise/matches", headers=lines).status_code == 404
    assert server.http.get("/v1/queries/never/matches", headers=stream).status_code == 404
    with Client(server.url) as client:
        assert list(client.subscribe("rise")) == [Notice("error", {"removed": "rise"})]
    server.put("rise")
    assert server.lines("rise", limit=1) == []


def test_a_service_manager_is_told_what_the_server_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "200000")
        with served(tmp_path / "st"):
            assert [manager.recv(99) for _ in range(3)] == [b"READY=1", *[b"WATCHDOG=1"] * 2]
        while (said := manager.recv(99)) == b"WATCHDOG=1":
            pass
        assert said == b"STOPPING=1"

"""Looking inside a running query: plan, groups, and why an event advances it or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from served import RISE, Served, served

PREFIX = "@prefix : <http://example.org/> . "


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        running.put("other", RISE.replace("?p2 > ?p1", "?p2 < ?p1"))
        running.put("rise")
        running.push((1, 10), (2, 12), (3, 11))
        yield running


def explained(server: Served, media_type: str) -> Any:
    return server.http.get("/v1/queries/rise/explain", headers={"Accept": media_type})


def test_the_plan_as_text_json_and_drawing(server: Served) -> None:
    assert (
        "SEQ" in explained(server, "text/plain").text
        or "A : B" in explained(server, "text/plain").text
    )
    live = explained(server, "application/json").json()["live"]
    assert live["matches"] == 2
    waiting = [place["waiting"] for place in live["places"] if not place["start"]]
    assert waiting == [3]
    drawn = explained(server, "image/svg+xml")
    assert "script" not in drawn.headers["Content-Security-Policy"]
    picture = ElementTree.fromstring(drawn.text)
    marks = [node.attrib for node in picture.iter() if "data-waiting" in node.attrib]
    assert [(mark["data-place"], mark["data-waiting"]) for mark in marks] == [("2", "3")]
    passed = {
        node.attrib["data-edge"]: node.attrib["data-passed"]
        for node in picture.iter()
        if "data-edge" in node.attrib
    }
    assert passed == {"1-2": "3", "2-0": "2"}


def test_groups_have_registers_and_times(server: Served) -> None:
    found = server.http.get("/v1/queries/rise/groups").json()
    assert found["total"] == 3
    one = next(g for g in found["items"] if g["registers"]["p1"]["value"] == "12")
    assert (one["earliest"], one["latest"], one["until"]) == (2, 2, 12)
    assert one["registers"]["company"] == {"type": "uri", "value": "http://example.org/eBay"}
    keyed = server.http.get("/v1/queries/rise/groups", params={"key": "p1=12", "place": 2}).json()
    assert keyed["total"] == 1
    assert server.http.get("/v1/queries/rise/groups", params={"key": "p1=99"}).json()["total"] == 0
    assert server.http.get("/v1/queries/rise/groups", params={"limit": 1}).json()["total"] == 3


def test_groups_of_long_partial_matches_start_with_their_first_event(server: Served) -> None:
    text = RISE.replace("SEQ(A : B)", "SEQ(A+ : B)")
    server.put("long", text)
    server.push((4, 10), (5, 12), (6, 11))
    found = server.http.get("/v1/queries/long/groups").json()["items"]
    assert min(group["earliest"] for group in found) == 4


@pytest.mark.parametrize(
    ("graph", "at", "expected"),
    [
        (":eBay :price 13", 4, (True, True, 3)),
        (":eBay :price 11", 4, (True, True, 1)),
        (":IBM :price 13", 4, (True, True, 0)),
        (":eBay :cost 13", 4, (False, False, 0)),
    ],
)
def test_why_one_event_advances_a_query(
    server: Served, graph: str, at: float, expected: tuple[bool, bool, int]
) -> None:
    answer = server.http.post(
        "/v1/queries/rise/why", json={"graph": f"{PREFIX}{graph} .", "at": at}
    )
    first, second = answer.json()["patterns"]
    (place,) = second["places"]
    assert (first["matches"], second["matches"], place["fitting"]) == expected
    if graph.startswith(":IBM"):
        assert "?company is <http://example.org/IBM> here" in place["because"][0]
    if graph == ":eBay :price 11":
        assert any("?p1 = 12" in reason for reason in place["because"])
    if graph == ":eBay :cost 13":
        assert second["because"] == ["no event has the predicate :price"]


def test_the_time_of_one_event_may_be_a_date(tmp_path: Path) -> None:
    with served(tmp_path) as dated:
        dated.put("rise")
        graph = f"{PREFIX}:eBay :price 13 ."

        def ask(at: Any) -> Any:
            return dated.http.post("/v1/queries/rise/why", json={"graph": graph, "at": at})

        assert ask("2026-01-01T01:00:00+01:00").json()["at"] == "2026-01-01T00:00:00Z"
        assert ask("yesterday").status_code == 422
        moved = dated.http.post(
            "/v1/streams/trades/watermark", json={"time": "2026-01-01T00:00:00Z"}
        )
        assert moved.status_code == 202
        assert ask("2026-01-01T00:00:01Z").json()["patterns"][0]["matches"]


def test_why_of_a_query_and_of_what_is_no_event(server: Served) -> None:
    assert "query rise: 2 matches" in server.http.get("/v1/queries/rise/why").text
    for wrong in ({}, {"graph": ":a"}, {"graph": f"{PREFIX}:a :b 1 .", "at": True}):
        assert server.http.post("/v1/queries/rise/why", json=wrong).status_code in (400, 422)
    assert server.http.post("/v1/queries/none/why", json={"graph": ""}).status_code == 404
    assert server.http.get("/v1/queries/rise").json()["matches"] == 2


def test_expressions_of_results_that_err_are_counted_and_named(tmp_path: Path) -> None:
    head, where = RISE.split("WITHIN", 1)
    doubled = head.replace("SELECT ?company ?p1 ?p2", "SELECT (STR(?company) * ?p1 AS ?x) ?p2")
    summed = head.replace(
        "SELECT ?company ?p1 ?p2", "SELECT (SUM(STR(?p1)) AS ?x) (COUNT(*) AS ?n)"
    )
    with served(tmp_path) as server:
        server.put("doubled", f"{doubled}WITHIN{where}")
        server.put("summed", f"{summed}WITHIN{where} GROUP OVER 9 SECONDS")
        server.push((1, 10), (2, 12), (3, 13))
        assert len([line for line in server.lines("doubled") if "bindings" in line]) == 3
        shown = server.http.get("/v1/queries/doubled/why").text
        assert (
            "SELECT: (STR(?company) * ?p1 AS ?x) only erred, 3 times: "
            '"http://example.org/eBay" * 10: a string and a number'
        ) in shown
        shown = server.http.get("/v1/queries/summed/why").text
        assert (
            "SELECT: (SUM(STR(?p1)) AS ?x) only erred, 2 times: "
            'SUM(STR(?p1)) is unbound, because "10" is a string'
        ) in shown

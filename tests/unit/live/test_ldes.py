"""Linked Data Event Streams as a source: order, pages that change, positions."""

from __future__ import annotations

import json
import random
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from followed import PATIENCE, newest
from session_runs import Running, values
from web_servers import EventStream, answer, http_server

from spaseq.errors import InputError, SpaseqError, StateError
from spaseq.live.ldes_page import read_page
from spaseq.live.ldes_source import LdesSource
from spaseq.live.session import LiveOptions


def kept(folder: Path) -> LiveOptions:
    return LiveOptions(follow=True, state=str(folder / "state"))


def filled(count: int, size: int = 3) -> EventStream:
    stream = EventStream(size)
    for second in range(1, count + 1):
        stream.add(second, f":value {second}")
    return stream


def numbers(first: int, last: int) -> list[str]:
    return [str(number) for number in range(first, last + 1)]


def url_of(address: str) -> str:
    return f"ldes+{address}/stream#refresh=0.05"


def test_members_come_in_ascending_order(tmp_path: Path) -> None:
    stream = filled(10)
    with http_server(stream.handle) as address, Running(tmp_path, url_of(address)) as run:
        run.wait_for_matches(10)
        stream.add(11, ":value 11 ; :in [ :unit :C ]")
        run.wait_for_matches(11)
        for second in range(12, 20):
            stream.add(second, f":value {second}")
            run.wait_for_matches(second)
    assert values(run.found) == numbers(1, 19)
    assert json.loads(run.found[0])["end"] == "2026-01-01T00:00:01Z"
    # Pages that are immutable are read once.
    assert stream.asked.count("/stream/0") == 1


def test_a_run_continues_after_its_position(tmp_path: Path) -> None:
    stream = filled(7)
    with http_server(stream.handle) as address:
        with Running(tmp_path, url_of(address), options=kept(tmp_path)) as run:
            run.wait_for_matches(7)
            run.wait_for(lambda: newest(tmp_path) > 1)
        stream.add(8, ":value 8")
        stream.add(9, ":value 9")
        stream.add(10, ":value 10")
        stream.asked.clear()
        with Running(tmp_path, url_of(address), options=kept(tmp_path)) as run:
            run.wait_for_matches(10)
    assert values(run.found) == numbers(1, 10)
    # What ends before the position is not read again.
    assert "/stream/0" not in stream.asked
    assert "/stream/3" not in stream.asked


def test_a_server_that_fails_for_a_while(tmp_path: Path) -> None:
    stream = filled(7)
    stream.fail = 2
    with http_server(stream.handle) as address, Running(tmp_path, url_of(address)) as run:
        run.wait_for_matches(7)
        stream.fail = 2
        stream.add(8, ":value 8")
        run.wait_for_matches(8)
    assert values(run.found) == numbers(1, 8)
    assert any("trying again" in text for text in run.said)


def read(source: LdesSource, count: int) -> tuple[list[bytes], list[tuple[int, Any]]]:
    """At least so many members, and the positions after numbers of them."""
    found: list[bytes] = []
    positions: list[tuple[int, Any]] = []
    until = time.monotonic() + PATIENCE
    while len(found) < count:
        assert time.monotonic() < until, len(found)
        for chunk in source.poll(0.02) or ():
            found += [message[0] for message in chunk.together]
            positions.append((len(found), chunk.position))
    return found, positions


@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_repeated_from_every_position(seed: int) -> None:
    """Members arrive late, on the page that may change, while the source reads."""
    drawn = random.Random(seed)
    stream = EventStream(1000)
    late = list(range(1, 30))
    drawn.shuffle(late)
    with http_server(stream.handle) as address:
        first = LdesSource(url_of(address), str)
        first.open(None)
        found: list[bytes] = []
        saved: list[tuple[int, Any]] = []
        for number, second in enumerate(late, 1):
            stream.members.append((second, f":value {second}"))
            more, positions = read(first, 1) if number % 3 == 0 else ([], [])
            saved += [(len(found) + at, position) for at, position in positions]
            found += more
        if len(found) < len(late):
            found += read(first, len(late) - len(found))[0]
        for at, position in saved:
            complete = json.loads(json.dumps(first.order_after(position)))
            again = LdesSource(url_of(address), str)
            again.open(complete)
            repeated = read(again, len(late) - at)[0] if at < len(late) else []
            assert sorted(repeated) == sorted(found[at:])
            assert repeated == found[at:]
            again.close()
        first.close()


def test_a_member_that_is_gone_is_an_error() -> None:
    stream = filled(3)
    with http_server(stream.handle) as address:
        source = LdesSource(url_of(address), str)
        source.open({"time": 0, "passed": [], "count": 0, "order": ["http://example.org/gone"]})
        with pytest.raises(StateError, match=r"the member http://example\.org/gone, which"):
            read(source, 4)
        source.close()


@pytest.mark.parametrize(
    ("status", "headers", "body", "said"),
    [
        (404, {}, b"", "it answered 404 Not Found"),
        (200, {"content_type": "text/html"}, b"<p>", "the media type text/html names no RDF"),
        (200, {"content_type": "text/turtle"}, b"<a> <b>", "not Turtle: "),
        (302, {"location": "http://192.168.0.1/"}, b"", "a private address, which is not followed"),
        (
            200,
            {"content_type": "text/turtle"},
            b"<> <https://w3id.org/tree#relation> [ "
            b"<https://w3id.org/tree#node> <http://169.254.169.254/latest> ] .",
            "redirects to http://169.254.169.254/latest, a private address",
        ),
        (
            200,
            {"content_type": "text/turtle"},
            b"<#c> <https://w3id.org/tree#member> <#m> . <#m> <http://e/p> 1 .",
            "the event stream has no ldes:timestampPath",
        ),
    ],
)
def test_useless_answers_end_the_run(
    tmp_path: Path, status: int, headers: dict[str, str], body: bytes, said: str
) -> None:
    def handle(request: BaseHTTPRequestHandler) -> None:
        answer(request, status, body, **headers)

    with http_server(handle) as address, pytest.raises(InputError, match=said):
        Running(tmp_path, url_of(address)).join()


PAGE = """
@prefix tree: <https://w3id.org/tree#> . @prefix ldes: <https://w3id.org/ldes#> .
@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:c a ldes:EventStream ; ldes:timestampPath :at ; tree:member :m, :n .
:m :at "2026-01-01T00:00:00Z"^^xsd:dateTime ; :in [ :deep [ :deeper :x ] ] ; :other :n .
:n :at 5 . :x :is :elsewhere .
:m { :s :in :graph }
"""


def test_what_belongs_to_a_member() -> None:
    page = read_page(PAGE.encode(), "application/trig", "http://e/", None)
    first, second = sorted(page.members, key=lambda member: member.identifier)
    assert [line.split()[1] for line in first.data.decode().splitlines()].count(
        "<http://e/in>"
    ) == 2
    assert b"deeper" in first.data
    assert b"elsewhere" not in first.data
    assert (second.identifier, second.micros) == ("http://e/n", 5_000_000)


def test_options_are_checked() -> None:
    with pytest.raises(SpaseqError, match="refresh is a number from"):
        LdesSource("ldes+http://h/x#refresh=0", str)

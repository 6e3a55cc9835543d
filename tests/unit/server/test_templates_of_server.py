"""Standing queries that are evaluated as one: what they find, over changes and restarts.

`SPASEQ_EXAMPLES` is the number of drawn cases, `SPASEQ_SEED` the first.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from served import Served, served

import spaseq
from spaseq.plan import prefixes, templates
from spaseq.server import run_set
from spaseq.server.run_set import ServerRun

EXAMPLES = max(2, int(os.environ.get("SPASEQ_EXAMPLES", "60")) // 30)
SEED = int(os.environ.get("SPASEQ_SEED", "0"))
INTEGER = '"%d"^^<http://www.w3.org/2001/XMLSchema#integer>'
STREAM = "http://example.org/r"
HEAD = f"PREFIX : <http://example.org/> SELECT %s WITHIN %s FROM STREAM r <{STREAM}> WHERE {{ "
SHAPES = (
    "SEQ(A ; B) DEFINE GPM A ON r { :x%c :p ?v FILTER(?v > %t) } "
    "DEFINE GPM B ON r { :x%c :p ?w } }",
    "SEQ(A : B) DEFINE GPM A ON r { ?x :p ?v FILTER(?v > %t) } DEFINE GPM B ON r { ?y :p ?w } }",
    "SEQ(A ; B ; %e) DEFINE GPM A ON r { ?x :p ?v } DEFINE GPM B ON r { ?x :p ?w } "
    "DEFINE GPM %e ON r { :x%c :p ?u FILTER(?u > %t) } }",
    "SEQ(A ; B) DEFINE GPM A ON r { ?x :p ?v } DEFINE GPM B ON r { ?y :p ?w FILTER(?w > %t) } }",
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (templates, prefixes, run_set):
        monkeypatch.setattr(module, "LEAST", 2)


def drawn_query(draw: random.Random) -> str:
    text = HEAD % (draw.choice(("*", "?v")), draw.choice(("9 SECONDS", "UNBOUNDED")))
    text += draw.choice(SHAPES)
    for mark, value in (("%c", draw.randrange(3)), ("%t", draw.randrange(4)),
                        ("%e", draw.choice("CD"))):  # fmt: skip
        text = text.replace(mark, str(value))
    return text


def triple(sensor: int, value: int) -> bytes:
    return f"<http://example.org/x{sensor}> <http://example.org/p> {INTEGER % value} .".encode()


def push(server: Served, second: int, sensor: int, value: int) -> None:
    body = (
        "@prefix : <http://example.org/> . @prefix prov: <http://www.w3.org/ns/prov#> .\n"
        f":e{second} prov:generatedAtTime {second} . :e{second} {{ :x{sensor} :p {value} }}\n"
    )
    answer = server.http.post(
        "/v1/streams/r/events", content=body, headers={"Content-Type": "application/trig"}
    )
    assert answer.status_code == 202, answer.text


def found(server: Served, name: str) -> list[str]:
    return sorted(
        json.dumps(
            {n: int(v["value"]) for n, v in one["bindings"].items() if n != "x" and n != "y"}
        )
        for one in server.lines(name)
        if "bindings" in one
    )


def the_run(server: Served) -> ServerRun:
    (one,) = server.context.engine.machine.runs
    return one


def shared(server: Served) -> set[str]:
    """The queries that are evaluated with others."""
    one = the_run(server)
    evaluation = one.run.evaluation
    queries = evaluation.listed.queries
    return {query.name for query in queries if query.executor.division} - one.left.keys()


class Reference:
    """A run of one query."""

    def __init__(self, text: str):
        self.run = spaseq.compile(text, names=["q"]).start(prune=False)
        self.found: list[str] = []

    def give(self, second: int, sensor: int, value: int) -> None:
        for match in self.run.push(STREAM, second, triple(sensor, value)):
            values = {n: v for n, v in match.values.items() if n not in ("x", "y")}
            self.found.append(json.dumps(values))

    def replace(self, text: str, state: str) -> None:
        self.run.replace("q", spaseq.compile(text, names=["q"]), state)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES))
def test_queries_that_come_and_go_find_what_each_finds_alone(seed: int, tmp_path: Path) -> None:
    """The server begins again and again with its files as they are, as after a kill."""
    draw = random.Random(seed)
    alone: dict[str, Reference] = {}
    numbers, seconds = count(), count(1)
    for part in range(3):
        folder = tmp_path / str(part)
        with served(folder) as server:
            check(server, alone)
            if part == 0:
                for value in "12":
                    put(server, alone, numbers, HEAD % ("*", "9 SECONDS") + SHAPES[1], value)
                assert len(shared(server)) == 2
            for _ in range(12):
                change(server, alone, draw, numbers, seconds)
            check(server, alone)
            if draw.random() < 0.5:
                assert server.http.post("/v1/checkpoints").status_code < 300
            shutil.copytree(folder, tmp_path / str(part + 1))


def put(
    server: Served, alone: dict[str, Reference], numbers: Iterator[int], text: str, value: str = ""
) -> None:
    """Register a query; `value` is its threshold, if it is not there yet."""
    name, text = f"q{next(numbers)}", text.replace("%t", value)
    assert server.put(name, text).status_code == 201
    alone[name] = Reference(text)


def change(
    server: Served,
    alone: dict[str, Reference],
    draw: random.Random,
    numbers: Iterator[int],
    seconds: Iterator[int],
) -> None:
    """Push an event, or change the queries."""
    kind = draw.choice(("put", "put", "replace", "drain", "remove", *["event"] * 6))
    if kind == "put" or not alone:
        for _ in range(draw.choice((1, 3))):
            put(server, alone, numbers, drawn_query(draw))
        return
    name = draw.choice(sorted(alone))
    if kind == "event":
        event = next(seconds), draw.randrange(3), draw.randrange(6)
        push(server, *event)
        for each in alone.values():
            each.give(*event)
    elif kind == "remove":
        if len(alone) > 1:
            assert server.http.delete(f"/v1/queries/{name}").status_code == 204
            del alone[name]
    else:
        state, text = "fresh" if kind == "replace" else kind, drawn_query(draw)
        answer = server.put(name, text, params={"state": state})
        assert answer.status_code == 200, answer.text
        alone[name].replace(text, state)


def check(server: Served, alone: dict[str, Reference]) -> None:
    for name, each in alone.items():
        assert found(server, name) == sorted(each.found), name


def test_a_look_at_a_query_shows_what_is_its_own(tmp_path: Path) -> None:
    """Queries with constants, thresholds and common steps, beside the same ones on their own."""
    texts = []
    for shape in SHAPES:
        for number in range(3):
            text = HEAD % ("*", "9 SECONDS") + shape.replace("%c", str(number))
            texts.append(text.replace("%t", str(number)).replace("%e", "CDE"[number]))
    with served(tmp_path) as server:
        for number, text in enumerate(texts):
            for one in server.context.engine.machine.runs:
                one.tried = 0
            server.put(f"q{number}", text)
        assert len(shared(server)) == len(texts)
        for second in range(1, 7):
            push(server, second, second % 3, 6 - second % 4)

        def seen() -> list[tuple[object, object, object]]:
            answers = []
            for number in range(len(texts)):
                found = server.http.get(f"/v1/queries/q{number}/groups").json()
                items = sorted(json.dumps(one, sort_keys=True) for one in found["items"])
                event = {"graph": "<http://example.org/x1> <http://example.org/p> 5 .", "at": 7}
                why = server.http.post(f"/v1/queries/q{number}/why", json=event).json()
                live = server.http.get(
                    f"/v1/queries/q{number}/explain", headers={"Accept": "application/json"}
                ).json()["live"]
                answers.append((items, why, live["matches"]))
            return answers

        together = seen()
        the_run(server).run.divide()
        assert not shared(server)
        assert together == seen()
        assert any(items for items, *_ in together)


def test_queries_leave_a_template_one_by_one(tmp_path: Path) -> None:
    text = HEAD % ("*", "9 SECONDS") + SHAPES[1]
    with served(tmp_path) as server:
        for number in range(6):
            server.put(f"q{number}", text.replace("%t", str(number)))
        push(server, 1, 1, 9)
        assert len(shared(server)) == 6
        server.http.delete("/v1/queries/q0")
        server.put("q1", text.replace("%t", "7"), params={"state": "keep"})
        assert shared(server) == {"q2", "q3", "q4", "q5"}
        assert sorted(the_run(server).names) == [f"q{n}" for n in range(1, 6)]
        metrics = server.http.get("/metrics").text
        assert 'spaseq_groups{query="q2",place=' in metrics
        assert "evaluated with others" not in metrics
        server.http.delete("/v1/queries/q2")  # half of them have left
        assert not shared(server)
        assert not the_run(server).left
        push(server, 2, 1, 0)
        assert {name: len(found(server, name)) for name in the_run(server).names} == {
            f"q{n}": 1 for n in (1, 3, 4, 5)
        }

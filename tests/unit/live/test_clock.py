"""Event time that follows the clock of the machine where nothing comes."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from followed import STREAM
from session_runs import Running
from test_following import append

from spaseq.cli import main
from spaseq.live.coordinator import Timing
from spaseq.live.session import LiveOptions

ABSENT = """
PREFIX : <http://example.org/>
SELECT ?value WITHIN 1 SECONDS FROM STREAM readings <http://example.org/readings>
WHERE { SEQ(A ; !B)
  DEFINE GPM A ON readings { ?s :value ?value }
  DEFINE GPM B ON readings { ?s :other ?o } }
"""
OTHERS = "http://example.org/others"
EITHER = """
PREFIX : <http://example.org/>
SELECT ?value WITHIN 10 SECONDS
FROM STREAM readings <http://example.org/readings> FROM STREAM others <http://example.org/others>
WHERE { SEQ(A | B)
  DEFINE GPM A ON readings { ?s :value ?value } DEFINE GPM B ON others { ?s :value ?value } }
"""
CLOCK = Timing(quiet=0.1, clock=0.2, checkpoint=0.1)


def event(name: str, at: datetime) -> str:
    stamp = at.isoformat().replace("+00:00", "Z")
    return (
        f"<http://example.org/{name}> <http://www.w3.org/ns/prov#generatedAtTime> "
        f'"{stamp}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
        f'<http://example.org/s> <http://example.org/value> "{name}" '
        f"<http://example.org/{name}> .\n"
    )


def test_an_absence_becomes_certain_without_another_event(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    now = datetime.now(UTC)
    append(path, event("a", now))
    with Running(tmp_path, str(path), ABSENT, timing=CLOCK) as run:
        run.wait_for_matches(1)
        assert datetime.now(UTC) >= now + timedelta(seconds=1)


def test_without_the_clock_it_does_not(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    append(path, event("a", datetime.now(UTC) - timedelta(seconds=60)))
    with Running(tmp_path, str(path), ABSENT) as run:
        run.wait_for(lambda: run.session.run.clock.events == 1)
        time.sleep(0.5)
        assert run.found == []


def test_a_quiet_stream_holds_no_other_one_back(tmp_path: Path) -> None:
    one, two = tmp_path / "one.nq", tmp_path / "two.nq"
    two.touch()
    append(one, event("a", datetime.now(UTC)))
    sources = {STREAM: [str(one)], OTHERS: [str(two)]}
    with Running(tmp_path, sources, EITHER, timing=CLOCK) as run:
        run.wait_for_matches(1)


def test_events_that_the_clock_has_passed_are_late(tmp_path: Path) -> None:
    path, late = tmp_path / "s.nq", tmp_path / "late.jsonl"
    options = LiveOptions(follow=True, late=str(late), state=str(tmp_path / "state"))
    append(path, event("a", datetime.now(UTC)))
    with Running(tmp_path, str(path), ABSENT, options, timing=CLOCK) as run:
        run.wait_for_matches(1)
        passed = datetime.now(UTC) - timedelta(seconds=1)
        append(path, event("b", passed))
        run.wait_for(lambda: run.session.sources[0].counters.late == 1)
    assert '"reason": "clock"' in late.read_text("utf-8")
    # The time that the run has reached is part of its state.
    append(path, event("c", passed + timedelta(milliseconds=10)))
    with Running(tmp_path, str(path), ABSENT, options, timing=CLOCK) as run:
        run.wait_for(lambda: run.session.sources[0].counters.late == 1)
        append(path, event("d", datetime.now(UTC)))
        run.wait_for_matches(2)


def test_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.rq").write_text(ABSENT, "utf-8")
    append(tmp_path / "s.nq", event("a", datetime.now(UTC)))
    command = ["run", str(tmp_path / "q.rq"), "--stream", f"readings={tmp_path / 's.nq'}"]
    assert main([*command, "--clock"]) == 0
    assert main([*command, "--clock", "3s"]) == 0
    assert main([*command, "--clock", "3s", "--graph-quiet", "never"]) == 2
    assert "--clock would overtake the open graph" in capsys.readouterr().err


def test_events_far_ahead_are_set_aside(tmp_path: Path) -> None:
    path, late = tmp_path / "s.nq", tmp_path / "late.jsonl"
    options = LiveOptions(late=str(late), state=str(tmp_path / "state"))
    timing = Timing(quiet=0.1, checkpoint=0.1, max_ahead=60)
    now = datetime.now(UTC)
    append(path, event("first", now + timedelta(hours=1)))  # the first one is compared with now
    append(path, event("a", now))
    append(path, event("wrong", now + timedelta(days=9000)))
    append(path, event("b", now + timedelta(seconds=30)))
    with Running(tmp_path, str(path), options=options, timing=timing) as run:
        run.wait_for_matches(2)
        run.wait_for(lambda: run.session.coordinator.inputs[0].stream.ended)
    found = [json.loads(line)["bindings"]["value"]["value"] for line in run.found]
    assert found == ["a", "b"]
    counters = run.session.sources[0].counters
    assert (counters.ahead, counters.late) == (2, 0)
    asides = [json.loads(line) for line in late.read_text().splitlines()]
    assert [one["graph"].rpartition("/")[2] for one in asides] == ["first", "wrong"]
    assert {one["reason"] for one in asides} == {"ahead"}
    assert 3_500 < asides[0]["ahead"] <= 3_600
    assert "watermark" not in asides[0]

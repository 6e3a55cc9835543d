"""What a live process says about itself: `/metrics`, `/readyz`, progress, messages in JSON."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import httpx
import pytest
from followed import Live, events
from prometheus_client.parser import text_string_to_metric_families
from test_following import append

import spaseq
from spaseq.cli import main
from spaseq.cli.watching import Rates
from spaseq.live.coordinator import Coordinator
from spaseq.live.monitoring import LOOPBACK, Monitor, parse_address
from spaseq.live.status import CheckpointStatus, QueryStatus, Status, StatusTaker, StreamStatus

READINGS = "http://example.org/readings"
ONE = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
TWO = """
PREFIX : <http://example.org/>
SELECT ?s ?low ?high
WITHIN 30 SECONDS
FROM STREAM readings <http://example.org/readings>
FROM STREAM others <http://example.org/others>
WHERE {
  SEQ(A : B)
  DEFINE GPM A ON readings { ?s :value ?low . FILTER(?low < 10) }
  DEFINE GPM B ON others { ?s :value ?high . FILTER(?high > 90) }
}
"""


@contextmanager
def running(folder: Path, *more: str, query: str = TWO) -> Iterator[tuple[Live, str]]:
    """A live process with metrics, and its address."""
    (folder / "query.rq").write_text(query, "utf-8")
    live = Live(
        ["query.rq", "--stream", "readings=r.nq", "--stream", "others=o.nq", "--follow",
         "--output", "out.jsonl", "--metrics", ":0", *more],
        folder,
    )  # fmt: skip
    found: list[str] = []

    def has_address() -> bool:
        found[:] = re.findall(r"metrics at (http://127\.0\.0\.1:\d+)/metrics", live.said)
        return bool(found)

    try:
        live.wait_for(has_address)
        yield live, found[0]
    finally:
        live.finish() if live.process.poll() is not None else live.end()


def samples(url: str) -> dict[tuple[str, str], float]:
    """(name, value of the first label by name) → value."""
    text = httpx.get(f"{url}/metrics").raise_for_status().text
    return {
        (sample.name, next((value for _, value in sorted(sample.labels.items())), "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_running_process_is_measured(tmp_path: Path) -> None:
    append(tmp_path / "r.nq", "".join(events(400, 1)))
    with running(tmp_path, "--state", "state", "--checkpoint-every", "100ms") as (live, url):
        assert httpx.get(f"{url}/healthz").status_code == 200
        live.wait_for(lambda: samples(url).get(("spaseq_events_total", READINGS)) == 400)

        def is_waiting() -> bool:
            answer = httpx.get(f"{url}/readyz")
            return answer.status_code == 503 and "others" in str(answer.json()["not_ready"])

        # Nothing has come from the other stream yet, so it holds this one back.
        live.wait_for(is_waiting)
        assert samples(url)["spaseq_holds_back", "http://example.org/others"] == 1
        assert samples(url)["spaseq_waiting_events", READINGS] > 300
        append(tmp_path / "o.nq", "".join(events(400, 2, stream="o")))
        live.wait_for(lambda: samples(url).get(("spaseq_matches_total", "query"), 0) > 0)
        live.wait_for(lambda: httpx.get(f"{url}/readyz").status_code == 200)
        live.wait_for(lambda: samples(url)["spaseq_checkpoint_number", ""] > 1)
        found = samples(url)
        assert found["spaseq_groups", "2: A : B"] > 0
        assert found["spaseq_checkpoint_size_bytes", ""] > 1000
        assert 0 <= found["spaseq_checkpoint_age_seconds", ""] < 60
        assert found["spaseq_checkpoint_failures_total", ""] == 0
        assert found["spaseq_late_events_total", READINGS] == 0
        assert found["spaseq_queue_bytes", READINGS] == 0
        assert found["spaseq_ready", ""] == 1
        assert httpx.get(f"{url}/other").status_code == 404
        live.process.send_signal(signal.SIGTERM)
        assert live.process.wait(60) == 0
    written = (tmp_path / "out.jsonl").read_text("utf-8").splitlines()
    assert len(written) == found["spaseq_matches_total", "query"]


def test_idle_streams_are_named_but_do_not_make_a_run_unready(tmp_path: Path) -> None:
    append(tmp_path / "r.nq", "".join(events(20, 1)))
    with running(tmp_path, "--idle", "300ms") as (live, url):
        live.wait_for(
            lambda: "http://example.org/others" in httpx.get(f"{url}/readyz").json()["idle"]
        )
        assert httpx.get(f"{url}/readyz").status_code == 200


def test_messages_are_json_objects(tmp_path: Path) -> None:
    append(tmp_path / "r.nq", "".join(events(20, 1)))
    append(tmp_path / "o.nq", "".join(events(20, 2)))
    with running(tmp_path, "--log-format", "json", "--stats", "--progress") as (live, url):
        live.wait_for(lambda: "run: it is starting" not in httpx.get(f"{url}/readyz").text)
        live.process.send_signal(signal.SIGTERM)
        live.process.wait(60)
        said = [json.loads(line) for line in live.said.splitlines()]
    assert {entry["level"] for entry in said} == {"info"}
    assert all(re.fullmatch(r"20\d\d-.*T.*Z", entry["time"]) for entry in said)
    (told,) = [entry for entry in said if entry["message"] == "statistics"]
    assert told["statistics"]["written"] == 0


def test_errors_are_json_objects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "query.rq").write_text("SELECT", "utf-8")
    assert main(["run", "query.rq", "--log-format", "json"]) == 2
    assert main(["run", "missing.rq", "--log-format", "json"]) == 2
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert first["level"] == second["level"] == "error"
    assert "query.rq" in first["message"]
    assert "missing.rq" in second["message"]
    assert main(["run", "missing.rq"]) == 2
    assert capsys.readouterr().err.startswith("spaseq: error: ")


def test_addresses() -> None:
    assert parse_address("9100") == parse_address(":9100") == (LOOPBACK, 9100)
    assert parse_address("0.0.0.0:80") == ("0.0.0.0", 80)
    assert parse_address("[::1]:80") == ("::1", 80)
    for wrong in ("", "host", "host:", "host:99999", "::1:80", "h:-1"):
        with pytest.raises(ValueError, match="is not HOST:PORT"):
            parse_address(wrong)


def test_an_address_in_use_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "query.rq").write_text(TWO, "utf-8")
    append(tmp_path / "r.nq", "")
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        status = main(
            ["run", str(tmp_path / "query.rq"), "--stream", f"readings={tmp_path / 'r.nq'}",
             "--stream", f"others={tmp_path / 'r.nq'}", "--metrics", str(port)]
        )  # fmt: skip
    assert status == 2
    assert f"--metrics {LOOPBACK}:{port}: cannot listen" in capsys.readouterr().err


def test_an_address_beyond_loopback_needs_permission(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "query.rq").write_text(TWO, "utf-8")
    append(tmp_path / "r.nq", "")
    run = ["run", str(tmp_path / "query.rq"), "--stream", f"readings={tmp_path / 'r.nq'}",
           "--stream", f"others={tmp_path / 'r.nq'}"]  # fmt: skip
    for host in ("0.0.0.0", "[::]", "192.0.2.1", "spaseq.example"):
        assert main([*run, "--metrics", f"{host}:0"]) == 2
        assert f"--metrics {host}:0: beyond loopback" in capsys.readouterr().err
    for host in ("localhost", "127.0.0.2"):
        assert main([*run, "--metrics", f"{host}:0"]) == 0
    capsys.readouterr()
    assert main([*run, "--metrics", "0.0.0.0:0", "--insecure"]) == 0
    assert "metrics at http://0.0.0.0:" in capsys.readouterr().err
    (tmp_path / "config.toml").write_text(
        '[watch]\nmetrics = "0.0.0.0:0"\ninsecure = true', "utf-8"
    )
    assert main([*run, "--config", str(tmp_path / "config.toml")]) == 0
    capsys.readouterr()
    assert main([*run, "--insecure"]) == 2
    assert "--insecure is for --metrics" in capsys.readouterr().err


def stream(**changed: object) -> StreamStatus:
    fields: dict[str, object] = {
        "iri": READINGS, "events": 0, "late": 0, "rejected": 0, "watermark": None, "shown": None,
        "lag": None, "waiting": 0, "queued": 0, "silent": 0.0, "is_open": True, "is_idle": False,
        "has_ended": False, "holds_back": False, "problem": None,
    }  # fmt: skip
    return StreamStatus(**{**fields, **changed})  # type: ignore[arg-type]


def test_what_is_not_ready_is_named() -> None:
    monitor = Monitor(LOOPBACK, 0)
    try:
        assert monitor.ready()["not_ready"] == ["run: it is starting"]
        late = CheckpointStatus(3, 10, 45.0, 10.0, 0.0, 0.0, 0)
        streams = [stream(problem="no broker answers"), stream(iri="http://e/o", is_open=False)]
        monitor.show(Status(-1000.0, 0, 0, streams, [], late))
        missing = monitor.ready()["not_ready"]
        assert missing[0] == f"stream <{READINGS}>: no broker answers"
        assert missing[1] == "stream <http://e/o>: its source is not open yet"
        assert missing[2] == "checkpoint: the last one is 45 s old"
        assert "busy with one batch" in missing[3]
    finally:
        monitor.close()


def test_equal_queries_have_a_status_of_their_own() -> None:
    """The run counts the groups that they share once."""
    run = spaseq.compile([TWO, TWO], names=["first", "second"]).start(share=False)
    run.push(READINGS, 1, f"<urn:s> <http://example.org/value> {ONE} .")
    run.push(READINGS, 2, b"")
    coordinator = SimpleNamespace(
        run=run, holder=lambda: None, checkpoints=None, events=0, written=0, inputs=[], output=None
    )
    status = StatusTaker(cast(Coordinator, coordinator)).take()
    assert [query.name for query in status.queries] == ["first", "second"]
    assert [sum(query.groups.values()) for query in status.queries] == [1, 1]
    assert status.groups == 1


def test_a_line_of_progress() -> None:
    rates = Rates()
    query = QueryStatus("q", 1, 0, {"A : B": 1200, "B : C": 34})
    one = stream(shown="2026-01-01T00:00:05Z", lag=7.25)
    rates.line(Status(10.0, 1000, 5, [one], [query], None))
    two = stream(iri="http://example.org/quotes", shown="7", holds_back=True)
    assert rates.line(Status(12.0, 5000, 8, [one, two], [query], None)) == (
        "2,000 events/s · 1.5 matches/s · 1,234 partial matches · "
        "readings at 2026-01-01T00:00:05Z, 7.2 s behind the clock · "
        "quotes at 7, holds the others back"
    )

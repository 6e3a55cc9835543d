"""Several streams: time, idle streams, late events; sources of third parties."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from followed import STREAM, last, lines
from session_runs import EACH, Running, values
from test_following import append, event, numbers

from spaseq.errors import InputError, SpaseqError
from spaseq.io.read_options import Framing, ReadOptions
from spaseq.live import registry
from spaseq.live.coordinator import Timing
from spaseq.live.protocols import Chunk, Position
from spaseq.live.session import LiveOptions

OTHER = "http://example.org/others"
BOTH = """
PREFIX : <http://example.org/>
SELECT ?value ?other
WITHIN 100 SECONDS
FROM STREAM readings <http://example.org/readings>
FROM STREAM others <http://example.org/others>
WHERE {
  SEQ(A : B)
  DEFINE GPM A ON readings { ?s :value ?value }
  DEFINE GPM B ON others { ?s :value ?other }
}
"""


def pairs(found: Sequence[str]) -> list[tuple[str, str]]:
    bound = [json.loads(line)["bindings"] for line in found]
    return [(each["value"]["value"], each["other"]["value"]) for each in bound]


def two(folder: Path) -> tuple[Path, Path, dict[str, list[str]]]:
    first, second = folder / "a.nq", folder / "b.nq"
    first.touch()
    second.touch()
    return first, second, {STREAM: [str(first)], OTHER: [str(second)]}


# ------------------------------------------------------------------ time


def test_streams_are_merged_by_time(tmp_path: Path) -> None:
    first, second, streams = two(tmp_path)
    with Running(tmp_path, streams, BOTH) as run:
        append(first, event(1) + event(4))
        append(second, event(3, "x"))
        append(second, event(5, "y"))
        append(first, event(6))
        run.wait_for_matches(3)
    assert sorted(pairs(run.found)) == [("1", "3"), ("1", "5"), ("4", "5")]


def test_a_silent_stream_holds_the_others_back(tmp_path: Path) -> None:
    first, second, streams = two(tmp_path)
    with Running(tmp_path, streams, BOTH) as run:
        append(first, event(1) + event(4))
        append(second, event(3, "x") + event(9, "y"))
        run.wait_for_matches(1)
        # The last event of the other stream is complete only when its file has been quiet.
        coordinator = run.session.coordinator
        run.wait_for(lambda: coordinator.holder() is coordinator.inputs[0].stream)
        append(first, event(10))
        run.wait_for_matches(3)


def test_an_idle_stream_holds_nothing_back_and_its_late_events_are_kept(tmp_path: Path) -> None:
    first, second, streams = two(tmp_path)
    late = tmp_path / "late.jsonl"
    options = LiveOptions(follow=True, late=str(late))
    timing = Timing(quiet=0.1, idle=0.6)
    with Running(tmp_path, streams, BOTH, options, timing=timing) as run:
        append(first, event(1) + event(4))
        append(second, event(3, "x") + event(9, "y"))
        run.wait_for_matches(3)
        assert any("is idle" in text for text in run.said)
        append(first, event(5) + event(20))
        run.wait_for(lambda: lines(late) != [])
        append(second, event(21, "z"))
        run.wait_for_matches(6)
        counters = run.session.sources[0].counters
        assert counters.late == 1
    said = last(late)
    assert said["reason"] == "idle"
    assert (said["time"], said["watermark"], said["lateness"]) == (5, 9, 4.0)
    assert said["graph"] == "http://example.org/e/5"
    assert sorted(pairs(run.found))[-1] == ("4", "9")


def test_late_events_say_why(tmp_path: Path) -> None:
    path, late = tmp_path / "s.nq", tmp_path / "late.jsonl"
    append(path, event(1) + event(9) + event(5) + event(2) + event(20))
    options = LiveOptions(follow=True, late=str(late))
    reading = ReadOptions(lateness=5_000_000)
    with Running(tmp_path, str(path), options=options, reading=reading) as run:
        run.wait_for_matches(3)
    assert values(run.found) == numbers(1, 5, 9)
    said = last(late)
    assert said["reason"] == "lateness"
    assert (said["time"], said["watermark"], said["lateness"]) == (2, 4, 2.0)
    assert "triples" in said
    assert said["line"] == 7


# ------------------------------------------------------------------ third parties


class Numbers:
    """A source of a third party: messages with times of their own, read again on request."""

    messages = True
    replays = True

    def __init__(self, url: str, log: Any):
        self._left = int(url.partition(":")[2])
        self._at = 0
        self.acknowledged: list[Position] = []

    def open(self, position: Position | None) -> None:
        self._at = 0 if position is None else position["next"]

    def poll(self, timeout: float) -> Sequence[Chunk] | None:
        if self._at >= self._left:
            return None
        number, self._at = self._at, self._at + 1
        turtle = f"<http://example.org/s> <http://example.org/value> {number} ."
        quads = f'_:s <http://example.org/value> "{number}" .\n'
        data, media_type = (turtle, "text/turtle; charset=utf-8") if number % 2 else (quads, None)
        return [
            Chunk(data.encode(), {"next": self._at}, media_type=media_type, time=number * 1_000_000)
        ]

    def acknowledge(self, position: Position) -> None:
        self.acknowledged.append(position)

    def close(self) -> None:
        pass


class Listing:
    """A sink of a third party."""

    found: list[str] = []  # noqa: RUF012 (of all instances)

    def __init__(self, url: str, keeps: bool):
        self.written = 0
        self.found.clear()

    def resume(self, state: str, tokens: Any) -> int:
        return max(tokens, default=0)

    def attach(self, run: Any) -> None:
        pass

    def write(self, match: Any) -> None:
        self.written += 1
        self.found.append(match.to_json())

    def write_block(self) -> None:
        pass

    def prepare(self) -> Any:
        return None

    def commit(self, number: int) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def third_party(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry points of an installed package with the schemes `numbers` and `listing`."""
    entries = [
        EntryPoint("numbers", f"{__name__}:Numbers", "spaseq_sources"),
        EntryPoint("listing", f"{__name__}:Listing", "spaseq_sinks"),
    ]

    def found(group: str, name: str | None = None) -> EntryPoints:
        return EntryPoints(
            entry for entry in entries if entry.group == group and name in (None, entry.name)
        )

    monkeypatch.setattr(registry, "entry_points", found)


@pytest.mark.usefixtures("third_party")
def test_a_package_adds_schemes(tmp_path: Path) -> None:
    run = Running(tmp_path, "numbers:9", output="listing:here")
    run.join()
    assert values(Listing.found) == numbers(*range(9))
    times = [json.loads(line)["end"] for line in Listing.found]
    assert times[3] == "1970-01-01T00:00:03Z"


@pytest.mark.usefixtures("third_party")
def test_messages_continue_at_their_position(tmp_path: Path) -> None:
    options = LiveOptions(state=str(tmp_path / "state"))
    with Running(tmp_path, "numbers:100000", options=options) as run:
        run.wait_for(lambda: len(run.found) > 50)
    first = len(run.found)
    assert first < 100_000
    with Running(tmp_path, "numbers:100000", options=options) as run:
        run.wait_for(lambda: len(run.found) > first + 50)
    found = values(run.found)
    assert found == numbers(*range(len(found)))


@pytest.mark.usefixtures("third_party")
def test_messages_have_no_framing_of_files(tmp_path: Path) -> None:
    with pytest.raises(SpaseqError, match="--events triples is for files"):
        Running(tmp_path, "numbers:9", reading=ReadOptions(framing=Framing.parse("triples:2")))


@pytest.mark.usefixtures("third_party")
def test_an_error_in_a_message_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poll = Numbers.poll

    def broken(self: Numbers, timeout: float) -> Sequence[Chunk] | None:
        chunks = poll(self, timeout)
        if chunks and chunks[0].position["next"] == 4:
            return [Chunk(b"broken", {"next": 4}, time=3_000_000)]
        return chunks

    monkeypatch.setattr(Numbers, "poll", broken)
    run = Running(tmp_path, "numbers:9")
    with pytest.raises(InputError, match="numbers:9, message 4:1"):
        run.join()
    assert values(run.found) == numbers(0, 1, 2)


def test_an_unknown_scheme_lists_the_known_ones() -> None:
    with pytest.raises(SpaseqError, match=r"there is no sink for nowhere: \(known are .*sqlite"):
        registry.open_sink("nowhere:x", False)
    assert not registry.is_url("nowhere:x", "sinks")
    assert registry.is_url("nowhere://x", "sinks")
    assert not registry.is_url("C", "sources")
    assert EACH

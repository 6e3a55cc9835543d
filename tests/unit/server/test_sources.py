"""Streams that sources feed: positions, restarts, mistakes, and sources beside pushes."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served import RISE, served, trade, trades

from spaseq.engine.changes import StatePolicy
from spaseq.errors import StateError
from spaseq.io.read_options import ReadOptions
from spaseq.live.protocols import Chunk
from spaseq.live.state import Checkpoint
from spaseq.server.feeds import FeedSettings, chunk_of, chunk_record
from spaseq.server.journal import Journal
from spaseq.server.machine import Machine, RunSettings
from spaseq.server.recovery import recovered
from spaseq.server.serve import Options
from spaseq.server.standing import Definition

TRADES, NEWS = "http://example.org/trades", "http://example.org/news"
BOTH = """\
PREFIX : <http://example.org/>
SELECT ?company ?p ?n
WITHIN 20 SECONDS
FROM STREAM trades <http://example.org/trades>
FROM STREAM news <http://example.org/news>
WHERE {
  SEQ(A : B)
  DEFINE GPM A ON trades { ?company :price ?p }
  DEFINE GPM B ON news { ?company :price ?n }
}
"""


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _n_quads(*pairs: tuple[float, int]) -> bytes:
    return b"".join(
        f'<http://e/{at}> <http://www.w3.org/ns/prov#generatedAtTime> "{at}"'
        "^^<http://www.w3.org/2001/XMLSchema#decimal> .\n"
        f"<http://example.org/eBay> <http://example.org/price> {_number(price)} <http://e/{at}> .\n"
        f"_:b <http://example.org/note> _:c <http://e/{at}> .\n".encode()
        for at, price in pairs
    )


def _number(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trades.nq"


def _append(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


# ------------------------------------------------------------------ against a server


def test_a_followed_file_feeds_a_stream_from_the_first_query_on(tmp_path: Path, file: Path) -> None:
    file.write_bytes(_n_quads((1, 10), (2, 12)))
    with served(tmp_path / "state", sources={"trades": [str(file)]}) as server:
        assert any("is read when a query reads this stream" in text for text in server.logged)
        server.put("rise")
        _until(lambda: server.found() == [(10, 12)])
        _append(file, _n_quads((3, 15)))
        _until(lambda: len(server.found()) == 3)
        [stream] = server.http.get("/v1/streams").json()["items"]
        assert stream["events"] == 3
        assert stream["sources"] == [{"name": "trades", "places": [str(file)], "status": "reading"}]
        assert server.http.get("/readyz").status_code == 200


def test_a_restart_continues_behind_what_was_read(tmp_path: Path, file: Path) -> None:
    data = _n_quads((1, 10), (2, 12), (3, 15))
    cut = len(_n_quads((1, 10), (2, 12))) + 30  # within the third event
    file.write_bytes(data[:cut])
    sources = {"trades": [str(file)]}
    with served(tmp_path / "state", sources=sources) as server:
        server.put("rise")
        # The second one may still grow, because a line is not whole.
        _until(lambda: server.http.get("/v1/streams/trades").json()["events"] == 1)
    _append(file, data[cut:])
    with served(tmp_path / "state", sources=sources) as server:
        _until(lambda: len(server.found()) == 3)
        assert server.found() == [(10, 12), (10, 15), (12, 15)]
        assert server.http.get("/v1/streams/trades").json()["events"] == 3


def test_sources_and_pushes_meet_in_the_order_of_time(tmp_path: Path, file: Path) -> None:
    file.write_bytes(_n_quads((1, 10), (5, 50)))
    with served(tmp_path / "state", sources={"trades": [str(file)]}, idle=None) as server:
        server.put("both", BOTH)
        _until(lambda: server.http.get("/v1/streams/trades").json()["events"] == 2)
        server.push((3, 30), (7, 70), stream="news")
        _until(lambda: len(server.lines("both")) >= 2)
        found = [
            (int(one["bindings"]["p"]["value"]), int(one["bindings"]["n"]["value"]))
            for one in server.lines("both")
            if "bindings" in one
        ]
        assert found == [(10, 30)]  # the news of 7 waits for trades behind 5
        assert server.push((6, 60)).json()["accepted"] == 1
        assert server.http.get("/v1/streams/trades").json()["events"] == 3


def test_a_mistake_ends_one_source_and_nothing_else(tmp_path: Path, file: Path) -> None:
    file.write_bytes(_n_quads((1, 10), (2, 12)) + b"no quads\n" + _n_quads((3, 15)))
    sources = {"trades": [str(file)]}
    for _ in range(2):  # also after a restart
        with served(tmp_path / "state", sources=sources) as server:
            server.put("rise")
            _until(lambda: bool(server.http.get("/readyz").json()["not_ready"]))
            [missing] = server.http.get("/readyz").json()["not_ready"]
            assert missing.startswith("source of trades: ")
            assert "trades.nq:7: " in missing
            assert server.found() == [(10, 12)]
            [source] = server.http.get("/v1/streams/trades").json()["sources"]
            assert source["status"] == "failed"
    with served(tmp_path / "state", sources=sources) as server:
        assert server.push((4, 20)).json()["accepted"] == 1
        assert server.found() == [(10, 12), (10, 20), (12, 20)]


def test_malformed_lines_are_left_out_if_the_operator_says_so(tmp_path: Path, file: Path) -> None:
    file.write_bytes(_n_quads((1, 10), (2, 12)) + b"no quads\n" + _n_quads((3, 15)))
    reading = ReadOptions(on_error="skip")
    with served(tmp_path / "state", sources={"trades": [str(file)]}, reading=reading) as server:
        server.put("rise")
        _until(lambda: len(server.found()) == 3)
        stream = server.http.get("/v1/streams/trades").json()
        assert stream["rejected"] == 1
        assert "trades.nq:7: " in stream["sources"][0]["errors"][0]


def test_another_source_for_the_same_state_is_refused(tmp_path: Path, file: Path) -> None:
    file.write_bytes(_n_quads((1, 10)))
    with served(tmp_path / "state", sources={"trades": [str(file)]}) as server:
        server.put("rise")
        _until(lambda: server.http.get("/v1/streams/trades").json()["events"] == 1)
    with (
        pytest.raises(StateError, match=r"the source of the stream trades was .*trades\.nq, and"),
        served(tmp_path / "state", sources={"trades": [str(file) + "2"]}),
    ):
        pass


def test_a_query_that_is_taken_out_costs_the_others_nothing(tmp_path: Path, file: Path) -> None:
    options = Options(run_limits={"max_groups": 3})
    file.write_bytes(b"")
    with served(tmp_path / "state", options, sources={"trades": [str(file)]}) as server:
        server.put("rise")
        server.put("short", RISE.replace("10 SECONDS", "2 SECONDS"))
        for at in range(1, 8):
            _append(file, _n_quads((at, 10 + at)))
            _until(lambda: server.http.get("/v1/streams/trades").json()["events"] == at)  # noqa: B023
            if at == 2:
                assert server.http.post("/v1/checkpoints").status_code == 201
        assert server.http.get("/v1/queries/rise").json()["status"] == "failed"
        expected = [(a, b) for b in range(12, 18) for a in range(max(11, b - 2), b)]
        assert sorted(server.found("short")) == sorted(expected)


def test_a_lone_folder_is_read_file_after_file(tmp_path: Path) -> None:
    folder = tmp_path / "incoming"
    folder.mkdir()
    (folder / "a.trig").write_bytes(trades((1, 10), (2, 12)))
    with served(tmp_path / "state", sources={TRADES: [str(folder)]}) as server:
        server.put("rise")
        _until(lambda: server.found() == [(10, 12)])
        (folder / "b.trig").write_bytes(trade(3, 15))
        _until(lambda: len(server.found()) == 3)


# ------------------------------------------------------------------ against the machine


class _Drawn:
    """A drawn history of records, on a machine of its own."""

    def __init__(self, folder: Path, draw: random.Random):
        self.folder, self.draw = folder, draw
        folder.mkdir()
        (folder / "kb").mkdir()
        self.journal = Journal(folder, print)
        self.matches: list[str] = []
        self.checkpoint: Checkpoint | None = None
        self.needed = 0
        """The first record that it needs."""
        self.kept = 0
        """The matches that the checkpoint has."""
        self.machine = self._made()

    def _made(self) -> Machine:
        settings = RunSettings(ReadOptions(), None, {}, {})
        return Machine(settings, self.folder / "kb", lambda m, i: self.matches.append(m.to_json()))

    def do(self, says: dict[str, Any], data: bytes = b"") -> None:
        """Write a record, and do what it says as the engine does."""
        record = self.journal.append(says, data)
        machine = self.machine
        if says["do"] == "query":
            definition = Definition.from_dict(says["definition"])
            state: StatePolicy = says["state"]
            machine.put_query(definition, definition.compile(), state, record)
        elif says["do"] == "feed":
            machine.add_feed(FeedSettings(*says["settings"]))
        elif says["do"] == "chunk":
            machine.take_chunk(says["feed"], chunk_of(says, data), record)
        elif says["do"] == "end":
            machine.end_feed(says["feed"], record)
        else:
            machine.promise(machine.streams[says["stream"]], says["micros"], says["domain"])

    def quiet(self, name: str) -> None:
        last = self.machine.quiet(name)
        if last:
            record = self.journal.append({"do": "quiet", "feed": name})
            self.machine.take_last(name, last, record)

    def save(self) -> None:
        """Make a checkpoint, as data; records that it does not need are forgotten."""
        machine = self.machine
        needed = machine.first_needed()
        header = {"journal": self.journal.next, "machine": machine.state()}
        self.checkpoint = Checkpoint(1, json.loads(json.dumps(header)), machine.runs.save())
        forgotten, self.needed = self.needed, self.journal.next if needed is None else needed
        assert self.needed >= forgotten
        self.kept = len(self.matches)

    def crash(self) -> None:
        """Begin again at the checkpoint; it must not read a record that it does not need."""
        del self.matches[self.kept :]
        self.machine.close()
        self.machine = self._made()
        needed, read = self.needed, self.journal.read

        class Guarded:
            append, sync = self.journal.append, self.journal.sync

            def read(self, number: int) -> Iterator[Any]:
                assert number >= needed
                return read(number)

        journal: Any = Guarded()
        self.machine = recovered(self._made, self.checkpoint, journal, print)


def _chunks(data: bytes, name: str, cuts: list[int]) -> Iterator[Chunk]:
    begin = 0
    for end in [*sorted(cuts), len(data)]:
        yield Chunk(data[begin:end], {"offset": end}, name if not begin else None, name)
        begin = end


def _messages(events: list[bytes], draw: random.Random) -> Iterator[Chunk]:
    at = 0
    while at < len(events):
        some = events[at : at + draw.choice((1, 1, 3))]
        at += len(some)
        if len(some) == 1:
            yield Chunk(some[0], {"count": at}, media_type="application/trig")
        else:
            together = [(one, "application/trig", None) for one in some]
            yield Chunk(b"", {"count": at}, together=together)


@pytest.mark.parametrize("seed", range(24))
def test_crashes_at_any_time_lose_and_repeat_nothing(tmp_path: Path, seed: int) -> None:
    """A drawn history with checkpoints and crashes finds what the same one finds without."""
    found = []
    for crashes in (False, True):
        draw = random.Random(seed)
        dice = random.Random(seed + 1000)
        history = _Drawn(tmp_path / str(crashes), draw)
        kind = ("nq", "trig", "messages")[seed % 3]
        times = sorted(draw.sample(range(40), 16))
        pairs = [(at, draw.randrange(9)) for at in times]
        if kind == "messages":
            chunks = list(_messages([trade(*pair) for pair in pairs], draw))
        else:
            data = _n_quads(*pairs) if kind == "nq" else trades(*pairs)
            cuts = draw.sample(range(1, len(data)), draw.randrange(1, 14))
            chunks = list(_chunks(data, f"file.{kind}", cuts))
        both = Definition("both", BOTH)
        feed = ["trades", TRADES, [f"file.{kind}"], kind == "messages", True]
        history.do({"do": "query", "definition": both.to_dict(), "state": "fresh"})
        history.do({"do": "feed", "settings": feed})
        news = [["news", NEWS, ["other.trig"], True, True]]
        history.do({"do": "feed", "settings": news[0]})
        later = 0
        for number, chunk in enumerate(chunks):
            history.do(*chunk_record("trades", chunk))
            if draw.random() < 0.3:
                history.quiet("trades")
            if draw.random() < 0.4:
                later += draw.randrange(1, 12)
                one = Chunk(trade(later, number), {"count": later}, media_type="application/trig")
                history.do(*chunk_record("news", one))
            if draw.random() < 0.1:
                limits = draw.choice(({}, {}, {"max_groups": 1000}))
                query = Definition(f"rise{number}", RISE, limits=limits)
                history.do({"do": "query", "definition": query.to_dict(), "state": "fresh"})
            if crashes and dice.random() < 0.4:
                history.save()
            if crashes and dice.random() < 0.4:
                history.crash()
        history.do({"do": "end", "feed": "trades"})
        if crashes:
            history.save()
            history.crash()
        micros = 10**8
        for iri in (NEWS, TRADES):
            says = {"do": "watermark", "stream": iri, "micros": micros, "domain": "number"}
            history.do(says)
        found.append(history.matches)
        assert history.machine.streams[TRADES].events == len(pairs)
        history.journal.close()
        history.machine.close()
    assert found[1] == found[0]


def test_chunks_are_the_same_in_the_journal() -> None:
    plain = Chunk(b"x", {"offset": 1}, "d", "p", True, "text/turtle", 7, False)
    mixed = Chunk(b"", {"n": 1}, together=[(b"ab", "t", 1), (b"", None, 2), (b"c", "t", 3)])
    equal = Chunk(b"", {"n": 1}, together=[(b"ab", None, None), (b"c", None, None)])
    mark = Chunk(b"", {"n": 2}, mark=True)
    for chunk in (plain, mixed, equal, mark):
        says, body = chunk_record("f", chunk)
        again = chunk_of(json.loads(json.dumps(says)), body)
        for name in ("data", "position", "document", "path", "ends", "media_type", "time", "mark"):
            assert getattr(again, name) == getattr(chunk, name)
        assert list(again.together) == list(chunk.together)

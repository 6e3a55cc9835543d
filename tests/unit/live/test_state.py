"""Checkpoints: damage, locks, changed queries, kills."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from followed import PATIENCE, QUERY, ROOT, Live, events, killed_until_done, lines, rows
from session_runs import EACH, TIMING, Running, values
from test_following import append, event, numbers

from spaseq.errors import SpaseqError, StateError
from spaseq.io.read_options import ReadOptions
from spaseq.live.file_sink import COMPARED_BYTES
from spaseq.live.session import LiveOptions
from spaseq.live.state import StateFolder


def kept(folder: Path) -> LiveOptions:
    return LiveOptions(follow=True, state=str(folder / "state"))


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints, the newest first."""
    found = (folder / "state").glob("checkpoint-*[0-9]")
    return sorted(found, key=lambda path: int(path.name.partition("-")[2]), reverse=True)


def started(folder: Path, count: int = 3) -> Path:
    """A stream of which a stopped run has found `count` matches."""
    path = folder / "s.nq"
    append(path, "".join(event(number) for number in range(1, count + 1)))
    with Running(folder, str(path), options=kept(folder)) as run:
        run.wait_for_matches(count)
        run.wait_for(lambda: len(checkpoints(folder)) == 2)
    return path


# ------------------------------------------------------------------ exactly once


@pytest.mark.parametrize(
    ("output", "kills"), [("out.jsonl", 6), ("out.csv", 2), ("sqlite:out.db", 4)]
)
def test_kills_change_no_match(tmp_path: Path, output: str, kills: int) -> None:
    found, expected, killed = killed_until_done(tmp_path, output, 6000, kills, seed=len(output))
    assert killed == kills
    assert len(expected) > 100
    if output == "out.csv":
        assert found[0] == "s,low,high"
        assert len(found) == len(expected) + 1
        return
    assert found == expected
    assert "continuing at checkpoint" in (tmp_path / "log").read_text("utf-8")


def test_output_after_the_checkpoint_is_cut_off(tmp_path: Path) -> None:
    path = started(tmp_path)
    append(tmp_path / "out.jsonl", '{"half a match')
    append(path, event(4))
    with Running(tmp_path, str(path), options=kept(tmp_path)) as run:
        run.wait_for_matches(4)
    assert values(run.found) == numbers(1, 2, 3, 4)


def test_an_output_that_lost_matches_is_refused(tmp_path: Path) -> None:
    path = started(tmp_path)
    (tmp_path / "out.jsonl").write_text("", "utf-8")
    with pytest.raises(StateError, match="the output has 0 bytes, but had"):
        Running(tmp_path, str(path), options=kept(tmp_path))


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace('"1"', '"7"', 1),  # as long as before
        lambda text: text.replace('"1"', '"1234"', 1),
        lambda text: text.replace('"1"', '""', 1),
        lambda text: text.partition("\n")[2] + " " * 1000,
    ],
)
def test_an_output_whose_earlier_lines_were_edited_is_refused(
    tmp_path: Path, edit: Callable[[str], str]
) -> None:
    path, out = started(tmp_path), tmp_path / "out.jsonl"
    text = out.read_text("utf-8")
    assert edit(text) != text
    out.write_text(edit(text), "utf-8")
    with pytest.raises(StateError, match=r"the output (was changed|has \d+ bytes)"):
        Running(tmp_path, str(path), options=kept(tmp_path))
    assert out.read_text("utf-8") == edit(text)
    out.write_text(text, "utf-8")
    append(path, event(4))
    with Running(tmp_path, str(path), options=kept(tmp_path)) as run:
        run.wait_for_matches(4)


def test_only_the_end_of_a_long_output_is_compared(tmp_path: Path) -> None:
    """A change far ahead is noticed if it moves the lines behind it."""
    path, out = started(tmp_path, 400), tmp_path / "out.jsonl"
    text = out.read_text("utf-8")
    assert len(text) > COMPARED_BYTES + 1000
    for edited, refused in ((text.replace('"1"', '"11"', 1), True), ("[" + text[1:], False)):
        out.write_text(edited, "utf-8")
        if refused:
            with pytest.raises(StateError, match="was changed"):
                Running(tmp_path, str(path), options=kept(tmp_path))
        else:
            append(path, event(401))
            with Running(tmp_path, str(path), options=kept(tmp_path)) as run:
                run.wait_for(lambda: len(lines(out)) == 401)


def test_open_windows_survive(tmp_path: Path) -> None:
    """A match whose first event was read before the stop, and whose last one after it."""
    text = list(events(300, seed=5))
    path = tmp_path / "s.nq"
    append(path, "".join(text))
    with Running(tmp_path, str(path), QUERY) as run:
        run.wait_for(lambda: len(run.found) > 20)
    expected = run.found
    path.unlink()
    for at in range(0, 300, 30):
        append(path, "".join(text[at : at + 30]))
        with Running(tmp_path, str(path), QUERY, kept(tmp_path)) as run:
            run.wait_for(lambda at=at: run.session.run.clock.events == at + 30)  # type: ignore[misc]
    assert run.found == expected


def test_a_locked_database_is_reported_and_awaited(tmp_path: Path) -> None:
    path, db = tmp_path / "s.nq", tmp_path / "out.db"
    append(path, event(1))
    with Running(tmp_path, str(path), options=kept(tmp_path), output=f"sqlite:{db}") as run:
        run.wait_for(lambda: len(rows(db)) == 1)
        with closing(sqlite3.connect(db, timeout=10, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            append(path, event(2))
            run.wait_for(lambda: any("trying again" in text for text in run.said))
            other.execute("ROLLBACK")
        run.wait_for(lambda: len(rows(db)) == 2)
    assert any("written again" in text for text in run.said)


@pytest.mark.parametrize("lateness", [0, 3_000_000])
def test_late_and_reordered_events_survive(tmp_path: Path, lateness: int) -> None:
    """Events out of order, some of them too late, with a stop after every few events."""
    order = [5, 3, 4, 9, 7, 8, 6, 2, 12, 11, 10, 9, 20, 17, 19, 18, 30, 26, 28, 29]
    names = [f"{number}-{place}" for place, number in enumerate(order)]
    text = [event(number, name) for number, name in zip(order, names, strict=True)]
    path, late = tmp_path / "s.nq", tmp_path / "late.jsonl"
    reading = ReadOptions(lateness=lateness)
    append(path, "".join(text))
    options = LiveOptions(follow=True, late=str(late))
    with Running(tmp_path, str(path), options=options, reading=reading) as run:
        run.wait_for(lambda: run.session.sources[0].counters.events == len(order))
        run.wait_for(lambda: run.found != [])
    expected, late_expected = run.found, lines(late)
    path.unlink()
    late.unlink()
    options = LiveOptions(follow=True, late=str(late), state=str(tmp_path / "state"))
    for at in range(0, len(order), 4):
        append(path, "".join(text[at : at + 4]))
        with Running(tmp_path, str(path), options=options, reading=reading) as run:
            run.wait_for(lambda: run.has_read(path))
    assert values(run.found) == values(expected)
    assert len(late_expected) > 0
    assert sorted(lines(late)) == sorted(late_expected)


# ------------------------------------------------------------------ damage


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path: Path) -> None:
    path = started(tmp_path)
    newest = checkpoints(tmp_path)[0]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    append(path, event(4))
    with Running(tmp_path, str(path), options=kept(tmp_path)) as run:
        run.wait_for_matches(4)
        assert any("is skipped: it is damaged" in text for text in run.said)
    assert values(run.found) == numbers(1, 2, 3, 4)


def test_no_intact_checkpoint_is_an_error(tmp_path: Path) -> None:
    path = started(tmp_path)
    for checkpoint in checkpoints(tmp_path):
        checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
    with pytest.raises(StateError, match="no checkpoint is intact"):
        Running(tmp_path, str(path), options=kept(tmp_path))


def test_every_cut_and_changed_byte_is_noticed(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path / "state"), lambda text: None)
    folder.store(1, {"some": "header"}, b"the state of a run")
    folder.close()
    path = checkpoints(tmp_path)[0]
    whole = path.read_bytes()
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]):
            path.write_bytes(damaged)
            again = StateFolder(str(tmp_path / "state"), lambda text: None)
            with pytest.raises(StateError, match="no checkpoint is intact"):
                again.checkpoints()
            again.close()


def test_two_checkpoints_are_kept(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path / "state"), lambda text: None)
    for number in range(1, 13):
        folder.store(number, {}, bytes(number))
    assert [(one.number, len(one.run)) for one in folder.checkpoints()] == [(12, 12), (11, 11)]
    folder.close()


# ------------------------------------------------------------------ whose state it is


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    append(path, event(1))
    with Running(tmp_path, str(path), options=kept(tmp_path)) as run:
        run.wait_for_matches(1)
        with pytest.raises(SpaseqError, match=f"another run uses this folder .*{os.getpid()}"):
            StateFolder(str(tmp_path / "state"), lambda text: None)


def test_changed_queries_are_refused_or_begin_anew(tmp_path: Path) -> None:
    path = started(tmp_path)
    other = EACH.replace("?s :value ?value", "?s :value ?value FILTER(?value != 5)")
    with pytest.raises(StateError, match="the query query has changed"):
        Running(tmp_path, str(path), other, kept(tmp_path))
    append(path, event(4))
    fresh = LiveOptions(follow=True, state=str(tmp_path / "state"), policy="fresh")
    with Running(tmp_path, str(path), other, fresh) as run:
        run.wait_for_matches(4)
    assert values(run.found) == numbers(1, 2, 3, 4)


def test_other_sources_and_options_are_refused(tmp_path: Path) -> None:
    path = started(tmp_path)
    append(tmp_path / "other.nq", event(1))
    with pytest.raises(StateError, match=r"its sources were <.*> from .*, and are now <"):
        Running(tmp_path, str(tmp_path / "other.nq"), options=kept(tmp_path))
    with pytest.raises(StateError, match="it was read with unit s, and now ms"):
        Running(tmp_path, str(path), options=kept(tmp_path), reading=ReadOptions(unit="ms"))
    with pytest.raises(StateError, match=r"its output was .*, and is now "):
        Running(tmp_path, str(path), options=kept(tmp_path), output=str(tmp_path / "b.jsonl"))


def test_a_table_of_another_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    append(path, event(1))
    output = f"sqlite:{tmp_path}/out.db"
    with Running(tmp_path, str(path), options=kept(tmp_path), output=output) as run:
        run.wait_for(lambda: len(checkpoints(tmp_path)) == 2)
    (tmp_path / "out.db").unlink()
    with pytest.raises(StateError, match="they do not belong together"):
        Running(tmp_path, str(path), options=kept(tmp_path), output=output)


def test_formats_that_cannot_be_continued_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpaseqError, match="cannot be continued after a restart"):
        Running(tmp_path, "s.nq", options=kept(tmp_path), output=str(tmp_path / "out.trig"))


def test_a_finished_run_stays_finished(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    append(path, event(1))
    options = LiveOptions(state=str(tmp_path / "state"))
    Running(tmp_path, str(path), options=options).join()
    run = Running(tmp_path, str(path), options=options)
    run.join()
    assert values(run.found) == numbers(1)
    assert run.said[-1] == "the run came to its end before; nothing is left to do"


# ------------------------------------------------------------------ signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_run_in_order(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "query.rq").write_text(EACH, "utf-8")
    append(tmp_path / "s.nq", event(1))
    live = Live(
        [
            "query.rq",
            "--stream",
            "readings=s.nq",
            "--follow",
            "--state",
            "state",
            "-o",
            "out.jsonl",
        ],
        tmp_path,
    )
    live.wait_for(lambda: len(lines(tmp_path / "out.jsonl")) == 1)
    assert live.end(number) == 0
    assert len(checkpoints(tmp_path)) == 1


def test_tail_in_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "query.rq").write_text(EACH, "utf-8")
    append(tmp_path / "s.nq", event(1))
    tail = subprocess.Popen(["tail", "-f", "s.nq"], cwd=tmp_path, stdout=subprocess.PIPE)
    assert tail.stdout is not None
    live = Live(
        ["query.rq", "--stream", "readings=-", "--follow", "-o", "out.jsonl"],
        tmp_path,
        stdin=tail.stdout.fileno(),
    )
    try:
        for number in (2, 3):
            live.wait_for(lambda n=number: len(lines(tmp_path / "out.jsonl")) == n - 1)  # type: ignore[misc]
            append(tmp_path / "s.nq", event(number))
        live.wait_for(lambda: len(lines(tmp_path / "out.jsonl")) == 3)
    finally:
        tail.kill()
        tail.wait()
        tail.stdout.close()
    assert live.finish() == 0
    assert values(lines(tmp_path / "out.jsonl")) == numbers(1, 2, 3)


def test_the_command_refuses_what_excludes_itself(tmp_path: Path) -> None:
    (tmp_path / "query.rq").write_text(EACH, "utf-8")
    append(tmp_path / "s.nq", event(1))

    def said(*more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "spaseq", "run", "query.rq", "--stream", "readings=s.nq", *more],
            cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.returncode == 2, done.stderr
        return done.stderr

    assert "--limit and --state cannot be used together" in said("--state", "state", "--limit", "1")
    assert "for finished files" in said("--follow", "--events", "dataset")
    assert "must be positive" in said("--follow", "--idle", "0")
    assert "--checkpoint-every needs the folder" in said("--checkpoint-every", "1s")
    assert "--checkpoint-every: " in said("--state", "state", "--checkpoint-every", "often")
    assert said("--state", "query.rq").startswith("spaseq: error: --state query.rq")
    assert TIMING.checkpoint > 0

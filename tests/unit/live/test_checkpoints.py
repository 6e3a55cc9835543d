"""Checkpoints that a copy of the process writes: failures, and matches that have to wait."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from followed import ROOT
from session_runs import Running, values
from test_following import append, event, numbers
from test_state import checkpoints, kept

from spaseq.errors import SpaseqError
from spaseq.live import checkpoints as module
from spaseq.live.process_copy import IS_SUPPORTED, Copy, NotWritten, Written
from spaseq.live.state import StateFolder

pytestmark = pytest.mark.skipif(not IS_SUPPORTED, reason="processes are copied on Linux only")
PLAIN = StateFolder.write_aside


def rows(path: Path) -> list[str]:
    """The values in a table of matches."""
    with closing(sqlite3.connect(path)) as db:
        found = db.execute("SELECT bindings ->> 'value' FROM matches ORDER BY rowid")
        return [str(value) for (value,) in found]


def slowly(flag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies wait while a file exists."""

    def write(self: StateFolder, number: int, header: Mapping[str, Any], run: bytes) -> Written:
        while flag.exists():
            time.sleep(0.005)
        return PLAIN(self, number, header, run)

    monkeypatch.setattr(StateFolder, "write_aside", write)


def test_a_full_disk_stops_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = tmp_path / "full"
    full.touch()

    def write(self: StateFolder, number: int, header: Mapping[str, Any], run: bytes) -> Written:
        if full.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return PLAIN(self, number, header, run)

    monkeypatch.setattr(StateFolder, "write_aside", write)
    path = tmp_path / "s.nq"
    append(path, event(1))
    with Running(tmp_path, str(path), options=kept(tmp_path)) as run:
        run.wait_for(lambda: any("cannot be written: No space left" in text for text in run.said))
        append(path, event(2))
        run.wait_for_matches(2)
        assert checkpoints(tmp_path) == []
        full.unlink()
        run.wait_for(lambda: len(checkpoints(tmp_path)) > 0)
    made = run.session.coordinator.checkpoints
    assert made is not None
    assert made.failed > 0
    append(path, event(3))
    with Running(tmp_path, str(path), options=kept(tmp_path)) as run:
        run.wait_for_matches(3)
    assert values(run.found) == numbers(1, 2, 3)


def test_the_last_checkpoint_has_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(self: StateFolder, number: int, header: Mapping[str, Any], run: bytes) -> Written:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "s.nq"
    append(path, event(1))
    monkeypatch.setattr(StateFolder, "write_aside", write)
    run = Running(tmp_path, str(path), options=kept(tmp_path))
    run.wait_for_matches(1)
    run.session.stop()
    with pytest.raises(SpaseqError, match="checkpoint 1 cannot be written: No space left"):
        run.join()


def test_a_copy_that_is_killed_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flag = tmp_path / "slow"
    flag.touch()
    slowly(flag, monkeypatch)
    path = tmp_path / "s.nq"
    append(path, event(1))
    with Running(tmp_path, str(path), options=kept(tmp_path)) as run:
        made = run.session.coordinator.checkpoints
        assert made is not None
        run.wait_for(lambda: made._pending is not None)
        assert made._pending is not None
        os.kill(made._pending.copy._pid, signal.SIGKILL)
        run.wait_for(lambda: any("was ended by signal 9; the run" in text for text in run.said))
        flag.unlink()
        run.wait_for(lambda: len(checkpoints(tmp_path)) == 2)


def test_a_transaction_has_no_match_after_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Matches that are found while a copy writes wait for the next checkpoint."""
    flag = tmp_path / "slow"
    slowly(flag, monkeypatch)
    path, table = tmp_path / "s.nq", tmp_path / "out.db"
    append(path, event(1))
    with Running(tmp_path, str(path), options=kept(tmp_path), output=f"sqlite:{table}") as run:
        made = run.session.coordinator.checkpoints
        assert made is not None
        run.wait_for(lambda: rows(table) == numbers(1))
        flag.touch()
        run.wait_for(lambda: made.holds and made._pending is not None)
        append(path, event(2))
        run.wait_for(lambda: len(made._held) > 0)
        number = made.number
        assert rows(table) == numbers(1)
        made.interval, made._due = 1e9, 1e18
        flag.unlink()
        run.wait_for(lambda: made.number == number + 1)
        time.sleep(0.05)
        assert rows(table) == numbers(1)
    assert rows(table) == numbers(1, 2)


def test_the_run_waits_where_too_many_matches_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_HELD_MATCHES", 3)
    path, table = tmp_path / "s.nq", tmp_path / "out.db"
    append(path, "".join(event(number) for number in range(1, 400)))
    with Running(tmp_path, str(path), options=kept(tmp_path), output=f"sqlite:{table}") as run:
        run.wait_for(lambda: len(rows(table)) == 399)
    assert rows(table) == numbers(*range(1, 400))


def test_a_copy_that_fails_says_why() -> None:
    def broken() -> Written:
        raise SpaseqError("broken")

    def wrong() -> Written:
        raise KeyError("key")

    def full() -> Written:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(SpaseqError, match=r"^broken$"):
        Copy(broken).result()
    with pytest.raises(SpaseqError, match="KeyError: 'key'"):
        Copy(wrong).result()
    with pytest.raises(NotWritten, match="No space left"):
        Copy(full).result()
    assert Copy(lambda: Written("a path", 7)).result() == Written("a path", 7)


SLEEPING = """
import os
import time
from spaseq.live.process_copy import Copy, Written

def work():
    # Here the copy has asked for the signal.
    print(os.getpid(), flush=True)
    time.sleep(600)
    return Written("x", 1)

copy = Copy(work)
time.sleep(600)
"""


def test_a_copy_ends_with_its_parent() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPING], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    number = int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()

    def is_alive() -> bool:
        try:
            return Path(f"/proc/{number}/stat").read_text("ascii").split()[2] not in "ZX"
        except OSError:
            return False

    until = time.monotonic() + 10
    while is_alive() and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_alive()


def test_unfinished_files_are_removed(tmp_path: Path) -> None:
    folder = StateFolder(str(tmp_path), print)
    folder.write_aside(1, {}, b"state")
    folder.close()
    assert len(list(tmp_path.glob("*.new"))) == 1
    folder = StateFolder(str(tmp_path), print)
    assert list(tmp_path.glob("*.new")) == []
    assert folder.checkpoints() == []
    folder.close()

"""Two workers that are processes of their own, of two cores each, find what the engine finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import test_numbering
from test_match_stream import readings, wanted, write_files

DRIVER = Path(__file__).with_name("clusters_driver.py")
MEMORY = 3 << 30
"""Bytes that two workers, a master and a driver want."""


def test_two_workers(tmp_path: Path) -> None:
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if free < MEMORY:
        pytest.skip(f"a cluster of two workers needs 3 GB of memory, {free >> 20} MB are free")
    events = readings(160, 7)
    write_files(tmp_path / "events", events, 7)
    paths = test_numbering.write(tmp_path / "shuffled", 3, 5)
    query = test_numbering.QUERIES["key"]
    folders = [str(tmp_path / "events"), str(tmp_path), str(tmp_path / "shuffled" / "events")]
    command = [sys.executable, str(DRIVER), *folders, query]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["workers"] == 2
    assert found["batch"] == found["stream"] == sorted(wanted(events).elements())
    alone = test_numbering.engine(query, paths)
    assert len(alone) > 3
    assert found["shuffled"] == alone

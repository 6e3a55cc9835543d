"""A client of Spark Connect, without `SparkContext` and JVM, finds what the engine finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from connect_client import chosen, events_of
from jobs import kind_of
from test_match_stream import readings, wanted, write_files
from test_suite import _knowledge, _program

from spaseq.io.arrow_columns import columns_of
from spaseq.io.arrow_rows import batches
from spaseq.kb.snapshot import open_kb

CLIENT = Path(__file__).with_name("connect_client.py")


def test_a_client(connect_server: str, tmp_path: Path) -> None:
    events = readings(160, 7)
    write_files(tmp_path / "events", events, 7)
    own = [str(CLIENT.parents[1]), str(CLIENT.parents[2])]
    folders = os.pathsep.join([*own, os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, str(CLIENT), connect_server, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": folders},
    )
    assert result.returncode == 0, result.stderr[-3000:]
    found = json.loads(result.stdout.splitlines()[-1])
    for case in chosen():
        run = _program(case).start(open_kb(_knowledge(case)), entail=case.entail)
        some = events_of(case)
        made = batches(
            columns_of(run.program, kind_of(some)), [*run.push_batch(some), *run.finish()]
        )
        rows = [row for batch in made for row in batch.to_pylist()]
        assert rows, case
        assert sorted(found["cases"][str(case)]) == sorted(row["id"] for row in rows), case
        if str(case) == found["table"][0]:
            assert found["table"][1] == sorted(row["start"] for row in rows)
    assert found["stream"] == sorted(text.split()[0] for text in wanted(events).elements())

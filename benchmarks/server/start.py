"""How long a server with many standing queries takes until it answers.

At the first start, the queries come from a folder of files, at the second from the state. Each
query has a different constant in its filter.

    python benchmarks/server/start.py --queries 1000
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import psutil

QUERY = """\
PREFIX : <http://example.org/>
SELECT ?p1 ?p2 WITHIN 10 SECONDS FROM STREAM trades <http://example.org/trades>
WHERE {{ SEQ(A : B)
  DEFINE GPM A ON trades {{ :company{number} :price ?p1 . FILTER(?p1 > {bound}) }}
  DEFINE GPM B ON trades {{ :company{number} :price ?p2 . FILTER(?p2 > ?p1) }} }}
"""


def started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """A server, and its URL once it listens."""
    process = subprocess.Popen(
        [sys.executable, "-m", "spaseq", "serve", "--listen", ":0", *arguments],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if "listening at " in line:
            # The server blocks once the pipe of its log is full, so a thread empties it.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, line.rpartition("listening at ")[2].strip()
    raise SystemExit("the server does not start")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        files, state = Path(name) / "queries", Path(name) / "state"
        files.mkdir()
        for number in range(given.queries):
            text = QUERY.format(number=number, bound=number % 50)
            (files / f"q{number}.rq").write_text(text)
        for what in ("from the folder", "from the state"):
            begun = time.monotonic()
            process, url = started("--queries", str(files), "--state", str(state))
            running = httpx.get(f"{url}/v1/queries", params={"limit": 1}, timeout=60).json()
            elapsed, used = time.monotonic() - begun, psutil.Process(process.pid).cpu_times()
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            if running["total"] != given.queries:
                raise SystemExit(f"{running['total']} of {given.queries} queries")
            print(
                f"{what}: {given.queries} queries answer after {elapsed:.2f} s and "
                f"{used.user + used.system:.2f} s of processor time"
            )


if __name__ == "__main__":
    main()

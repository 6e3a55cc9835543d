"""Serve the smart grid's queries, generate its streams, and open the console.

    python examples/smart-grid/serve_demo.py --speed 240 --port 8642

Ends with Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import webbrowser
from pathlib import Path

FOLDER = Path(__file__).parent
KB = "http://example.org/smart-grid/kb"


def started(port: int, queries: Path) -> tuple[subprocess.Popen[str], str]:
    """A server with the queries of a folder, and its URL once it listens."""
    command = [
        sys.executable, "-m", "spaseq", "serve", "--manage", "--listen", f"127.0.0.1:{port}",
        "--queries", str(queries), "--kb", f"{KB}={FOLDER / 'kb.ttl'}",
    ]  # fmt: skip
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    for line in server.stderr:
        print(line, end="", file=sys.stderr)
        if "listening at " in line:
            return server, line.split("listening at ")[1].strip()
    raise SystemExit(server.wait())


def drain(server: subprocess.Popen[str]) -> None:
    """Read the audit log, which would fill the pipe, and show none of it."""
    assert server.stderr is not None
    for _ in server.stderr:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--speed", default="240", help="seconds of the grid in one second")
    parser.add_argument("--port", type=int, default=8642)
    parser.add_argument("--instants", help="stop after so many instants of the grid")
    arguments = parser.parse_args()
    # SIGTERM ends the demo as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(FOLDER / "query.rq", Path(folder) / "passing-clouds.rq")
        for path in (FOLDER / "standing").glob("*.rq"):
            shutil.copy(path, folder)
        server, url = started(arguments.port, Path(folder))
        generate = [sys.executable, str(FOLDER / "live.py"), "--speed", arguments.speed, url]
        if arguments.instants:
            generate += ["--instants", arguments.instants]
        generator = subprocess.Popen(generate)
        print(f"\nThe console is at {url}/ (Ctrl-C ends the demo)\n", flush=True)
        if os.environ.get("DISPLAY") or sys.platform in ("darwin", "win32"):
            webbrowser.open(url)
        threading.Thread(target=drain, args=(server,), daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            (generator if arguments.instants else server).wait()
        for process in (generator, server):
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    main()

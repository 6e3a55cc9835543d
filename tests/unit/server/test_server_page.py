"""A user who follows docs/server.md sees what it shows; `…` stands for anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import test_docs
from served import served

DOCUMENT = test_docs.ROOT / "docs" / "server.md"
URL = "http://127.0.0.1:8642"


def commands() -> list[tuple[str, str]]:
    return [
        pair
        for block in test_docs.blocks(DOCUMENT)
        if block.language == "bash"
        for pair in test_docs.transcript(block.text)
    ]


def pattern(shown: str) -> str:
    """The expression that an output fits; a line that ends in `…` shows its beginning."""
    lines = [
        re.escape(line).replace("…", ".*?") + (".*" if line.endswith("…") else "")
        for line in shown.rstrip("\n").split("\n")
    ]
    return "\n".join(lines)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_page_can_be_followed(tmp_path: Path) -> None:
    for block in test_docs.blocks(DOCUMENT):
        if block.name is not None:
            (tmp_path / block.name).write_text(block.text)
    (tmp_path / "spaseq").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m spaseq "$@"\n')
    (tmp_path / "spaseq").chmod(0o755)
    begun, *others = commands()
    assert begun[0].startswith("spaseq serve")
    with served(tmp_path / "state") as server:
        assert server.logged[-1] == f"listening at {server.url}"
        environment = {
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "SPASEQ_SERVER": server.url,
            "PYTHONPATH": str(test_docs.ROOT),
        }
        for command, shown in others:
            done = subprocess.run(
                ["bash", "-c", command.replace(URL, server.url)],
                cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60,
            )  # fmt: skip
            printed = done.stdout.rstrip("\n")
            assert re.fullmatch(pattern(shown), printed, re.DOTALL), (command, printed, done.stderr)
    assert len(others) >= 9


def test_the_command_says_where_it_listens_and_ends_in_order(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "spaseq", "serve", "--listen", ":0", "--state", str(tmp_path)],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    line = process.stderr.readline()
    assert re.fullmatch(r"[0-9T:.-]+Z info listening at http://127\.0\.0\.1:[0-9]+\n", line)
    process.terminate()
    assert process.wait(30) == 0
    assert process.stderr.read() == ""
    process.stderr.close()
    assert (tmp_path / "checkpoint-1").exists()

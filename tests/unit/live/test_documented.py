"""The commands of docs/live.md that need a server print what is shown.

They are in `bash` blocks, with the addresses that the servers usually have.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import test_docs
from channels import CHANNELS, PATIENCE

DOCUMENT = test_docs.ROOT / "docs" / "live.md"
COMMANDS = [
    (block.line, command, wanted)
    for block in test_docs.blocks(DOCUMENT)
    if block.language == "bash"
    for command, wanted in test_docs.transcript(block.text)
]
URL = re.compile(rf"(?<![\w+])({'|'.join(map(re.escape, sorted(CHANNELS, key=len)[::-1]))}):")


def scheme_of(command: str) -> str:
    found = URL.search(command)
    assert found, f"{command}: no test has a server for it"
    return found[1]


def test_every_scheme_is_shown() -> None:
    from spaseq.live.registry import SINKS, SOURCES

    text = DOCUMENT.read_text("utf-8")
    for scheme in SOURCES:
        assert re.search(rf"--stream '?trades={_secure(scheme)}:", text), scheme
    for scheme in SINKS:
        assert re.search(rf"--output '?{_secure(scheme)}:", text), scheme


def _secure(scheme: str) -> str:
    """A pattern of a scheme and of the same over TLS, of which one is shown."""
    if scheme.endswith("s") and scheme not in ("nats", "ws"):
        scheme = scheme.removesuffix("s")
    return f"{re.escape(scheme)}s?"


@pytest.mark.parametrize(
    ("line", "command", "wanted"), COMMANDS, ids=[f"line-{line}" for line, _, _ in COMMANDS]
)
def test_commands_print_what_is_shown(
    line: int, command: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for block in test_docs.blocks(DOCUMENT):
        if block.name is not None:
            (tmp_path / block.name).write_text(block.text, "utf-8")
    with CHANNELS[scheme_of(command)](tmp_path / "server") as channel:
        for name, real in channel.names.items():
            command = command.replace(name, real)
        words = shlex.split(command)
        assert words[0] == "spaseq"
        process = subprocess.Popen(
            [sys.executable, "-m", "spaseq", *words[1:]],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(test_docs.ROOT), **channel.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        writer = None
        if channel.after_start is not None and "--stream trades=trades.trig" not in command:
            writer = threading.Thread(target=channel.after_start)
            writer.start()
        try:
            said, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
            if writer is not None:
                writer.join(PATIENCE)
        for name, real in channel.names.items():
            said = said.replace(real, name)
        assert said == wanted, f"docs/live.md:{line}"
        if "--output" in words:
            found = [json.loads(text)["bindings"] for text in channel.taken()]
            prices = sorted((each["p1"]["value"], each["p2"]["value"]) for each in found)
            assert prices == [
                ("10", "11"), ("10", "12"), ("10", "15"), ("11", "15"), ("12", "15"),
            ]  # fmt: skip

"""`spaseq serve --config`: the options of the command in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from spaseq.cli import serve_command
from spaseq.cli.config import SERVE
from spaseq.server.serve import Options

FILE = """\
queries = ["of-run.rq"]   # for `spaseq run`
[reading]
lateness = "1h"
[serve]
listen = ":9000"
queries = "rules"
state = "${STATE:-kept}"
manage = true
lateness = "5s"
idle = "never"
allow-url = ["https://data.example/"]
kb = { "http://example.org/kb" = "kb.ttl" }
sink = { table = "sqlite:matches.db" }
queries-sink = ["table"]
max-groups = 7
max-memory = 1000
replay = 12
tokens = "/etc/tokens"
[streams.trades]
source = ["a.nq", "b.nq"]
[streams."http://example.org/news"]
source = "mqtt://localhost/news"
"""


def _given(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    """The options that the server is started with, or the result of a refusal."""
    found: list[Options] = []
    monkeypatch.setattr("spaseq.server.serve.serve", lambda options: found.append(options))
    result = CliRunner().invoke(serve_command.serve, arguments)
    return found[0] if found else result


def test_keys_are_the_options() -> None:
    options = [p for p in serve_command.serve.params if isinstance(p, click.Option)]
    names = {p.opts[0].removeprefix("--"): p.name for p in options}
    del names["config"], names["stream"]  # a section of its own has the streams
    assert names == dict(SERVE)


def test_a_file_gives_defaults_and_the_command_line_has_precedence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rules").mkdir()
    path = tmp_path / "spaseq.toml"
    path.write_text(FILE)
    options = _given(monkeypatch, "--config", str(path), "--replay", "99")
    assert isinstance(options, Options), options.output
    assert (options.host, options.port, options.manages) == ("127.0.0.1", 9000, True)
    assert (options.queries, options.state) == (str(tmp_path / "rules"), str(tmp_path / "kept"))
    assert options.tokens == "/etc/tokens"
    assert (options.idle, options.replay) == (None, 99)
    assert options.sinks == {"table": "sqlite:matches.db"}
    assert list(options.folder_sinks) == ["table"]
    assert options.sources == {
        "trades": [str(tmp_path / "a.nq"), str(tmp_path / "b.nq")],
        "http://example.org/news": ["mqtt://localhost/news"],
    }
    assert options.reading.lateness == 5_000_000
    assert list(options.allowed_urls) == ["https://data.example/"]
    assert options.kb == {"http://example.org/kb": str(tmp_path / "kb.ttl")}
    assert (options.run_limits["max_groups"], options.run_limits["max_memory"]) == (7, 1000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[serve]\nlisten = 9000\n", "line 2: serve.listen: a text is needed, not a whole number"),
        ("[serve]\n\nstream = 'a=b'\n", "line 3: serve.stream: there is no option stream"),
        ("[serve]\n[streams.a]\nsource = 'a'\nmap = 'b'\n", "line 4: streams.a.map: the server"),
        ("[state]\nfolder = 's'\n", "there is no section [serve]"),
        ("[serve]\nstate = '${NOT_SET}'\n", "the environment variable NOT_SET is not set"),
        ("[serve]\nidle = 'soon'\n", "--idle"),
        ("serve = 1\n", "line 1: serve: a table is needed"),
    ],
)
def test_mistakes_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    path = tmp_path / "spaseq.toml"
    path.write_text(text)
    result = _given(monkeypatch, "--config", str(path))
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())

"""`run --config`: files, environment variables, errors with lines, `--print-config`, checks."""

from __future__ import annotations

import socket
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path

import click
import pytest

from spaseq.cli import main
from spaseq.cli.config import hidden, line_of, load

QUERY = """
PREFIX : <http://example.org/>
SELECT ?company ?p1 WITHIN 10 SECONDS FROM STREAM trades <http://example.org/trades>
WHERE { SEQ(A) DEFINE GPM A ON trades { ?company :price ?p1 . FILTER(?p1 > ?least) } }
"""
TRADES = """
@prefix : <http://example.org/> .
@prefix prov: <http://www.w3.org/ns/prov#> .
:t1 prov:generatedAtTime 1 .   :t1 { :eBay :price 10 }
:t2 prov:generatedAtTime 2 .   :t2 { :eBay :price 12 }
:t3 prov:generatedAtTime 3 .   :t3 { :eBay :price 15 }
"""
CONFIG = """\
queries = ["rise.rq"]
bind = { least = 11 }

[streams.trades]
source = "trades.trig"

[output]
sink = "${NAME}.csv"
format = "csv"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rise.rq").write_text(QUERY, "utf-8")
    (tmp_path / "trades.trig").write_text(TRADES, "utf-8")
    (tmp_path / "pipeline.toml").write_text(CONFIG, "utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("NAME", "rises")
    return tmp_path


def test_a_file_holds_the_options(folder: Path) -> None:
    assert main(["run", "--config", "../pipeline.toml"]) == 0
    assert (folder / "rises.csv").read_text("utf-8").split() == [
        "company,p1", "http://example.org/eBay,12", "http://example.org/eBay,15",
    ]  # fmt: skip


def test_the_command_line_replaces_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "--config", "../pipeline.toml", "--bind", "least=14", "-o", "-"]
    assert main([*command, "--format", "tsv"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["<http://example.org/eBay>\t15"]
    assert not (folder / "rises.csv").exists()
    text = "SELECT ?p WITHIN 1 SECONDS FROM STREAM trades <http://example.org/trades> WHERE { "
    text += "SEQ(A) DEFINE GPM A ON trades { ?c ?q ?p } }"
    command = ["run", "-q", text, "--stream", "trades=../trades.trig", "-o", "-"]
    (folder / "pipeline.toml").write_text('[output]\nformat = "csv"\nlimit = 1', "utf-8")
    assert main([*command, "--config", "../pipeline.toml"]) == 0
    assert capsys.readouterr().out.split() == ["p", "10"]


def test_live_options(folder: Path) -> None:
    more = '\n[live]\ngraph-quiet = "1s"\n[state]\nfolder = "state"\ncheckpoint-every = "1s"\n'
    (folder / "pipeline.toml").write_text(CONFIG + more, "utf-8")
    assert main(["run", "--config", "../pipeline.toml"]) == 0
    assert (folder / "state" / "checkpoint-1").exists()
    assert (folder / "rises.csv").read_text("utf-8").count("\n") == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("queries = [", "invalid value (at end of document)"),
        ("a = 1\n", "line 1: a: there is no option a"),
        (
            '[output]\nsink = "x"\nformat = 7\n',
            "line 3: output.format: a text is needed, not a whole number",
        ),
        (
            "[limits]\n\nmax-groups = 'x'",
            "line 3: limits.max-groups: a whole number is needed, not a text",
        ),
        (
            "[live]\nfollow = true\nfolow = 1",
            "line 3: live.folow: there is no option folow; did you mean `follow`?",
        ),
        (
            "[streams.a]\nsource = 'x'\n[streams.b]\nfile = 'x'",
            "line 4: streams.b.file: there is no option file",
        ),
        ("[streams.a]\nmap = 'x'", "line 1: streams.a: source is missing"),
        ("queries = 'q.rq'", "line 1: queries: a list is needed, not a text"),
        ("streams = 3", "line 1: streams: not a table"),
        ("[output]\nsink = 'x'\nlate = '${UNSET}'", "line 3: output.late: the environment"),
        (
            "query = ['x']\n[stream.s]\nsource = 'x'",
            "line 2: stream: there is no option stream; did you mean `streams`?",
        ),
    ],
)
def test_errors_name_the_line(folder: Path, text: str, message: str) -> None:
    path = folder / "wrong.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(click.UsageError) as caught:
        load(str(path), {})
    assert str(caught.value).startswith(f"{path}, {message}") or str(caught.value).startswith(
        f"{path}: {message}"
    )


def test_a_missing_file_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--config", "missing.toml"]) == 2
    assert "missing.toml: cannot be read: No such file" in capsys.readouterr().err


def test_variables(folder: Path) -> None:
    path = folder / "other.toml"
    path.write_text('query = ["${A}-${B:-x}-$${A}"]\n[streams.s]\nsource="kafka://${A}/t"', "utf-8")
    settings = load(str(path), {"A": "secret"})
    assert settings.defaults["texts"] == ["secret-x-${A}"]
    assert settings.defaults["streams"] == ["s=kafka://secret/t"]
    assert settings.secrets == {"secret": "A"}


def test_print_config_hides_secrets(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = '[state]\nfolder = "state"\n[kb]\n"http://example.org/kb" = "http://me:pw@kb/sparql"\n'
    (folder / "pipeline.toml").write_text(CONFIG + more, "utf-8")
    command = ["run", "--config", "../pipeline.toml", "--lateness", "5s", "--print-config"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "pw" not in text
    assert tomllib.loads(text) == {
        "queries": [str(folder / "rise.rq")],
        "bind": {"least": "11"},
        "kb": {"http://example.org/kb": "http://me:***@kb/sparql"},
        "reading": {"lateness": "5s"},
        "output": {"sink": str(folder / "${NAME}.csv"), "format": "csv"},
        "state": {"folder": str(folder / "state")},
        "streams": {"trades": {"source": [str(folder / "trades.trig")]}},
    }
    # What is printed can be read again.
    (folder / "again.toml").write_text(text.replace("***", "pw"), "utf-8")
    assert load(str(folder / "again.toml")).defaults["lateness"] == "5s"


def test_what_is_hidden() -> None:
    assert hidden("kafka://u:p@h/t?password=x&b=1", {}) == "kafka://u:***@h/t?password=***&b=1"
    assert hidden("sink: kafka://h/t?key=a,b", {}) == "sink: kafka://h/t?key=a,b"
    url = "https://h/x?key=abc#token-env=T&dead=d.jsonl"
    assert hidden(f"{url}: connected", {}) == f"{url.replace('abc', '***')}: connected"
    assert hidden("http://h/x?token=abc", {"abc": "PW"}) == "http://h/x?token=${PW}"
    assert hidden("http://u:abc@h", {"abc": "PW", "ab": "SHORT"}) == "http://u:${PW}@h"


def test_lines_of_keys() -> None:
    text = 'a.b = 1\n# [x]\n["x y".z]  # note\nc-d = { e = 1 }\n\n[[l]]\nm = 1\n'
    assert line_of(text, ["a", "b"]) == 1
    assert line_of(text, ["x y", "z"]) == 3
    assert line_of(text, ["x y", "z", "c-d", "e"]) == 4
    assert line_of(text, ["l", "m"]) == 7
    assert line_of(text, ["nothing"]) == 1


# ------------------------------------------------------------------ checks


def test_check_config_says_what_it_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--config", "../pipeline.toml", "--check-config"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "ok      query rise: reads <http://example.org/trades>"
    assert said[1].startswith("ok      stream <http://example.org/trades>: ")
    assert said[1].endswith(f"{len(TRADES)} bytes")
    assert said[2].endswith("${NAME}.csv: does not exist yet")
    assert sorted(path.name for path in folder.iterdir()) == [
        "elsewhere", "pipeline.toml", "rise.rq", "trades.trig",
    ]  # fmt: skip


def test_check_config_fails_for_what_is_missing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "trades.trig").unlink()
    (folder / "state").mkdir()
    (folder / "state" / "checkpoint-3").write_bytes(b"damaged")
    command = ["run", "--config", "../pipeline.toml", "--check-config", "--state", "../state"]
    assert main([*command, "-o", "nowhere/x.csv"]) == 2
    captured = capsys.readouterr()
    failed = [line for line in captured.out.splitlines() if line.startswith("failed  ")]
    assert "trades.trig: there is no such file" in failed[0]
    assert "the folder nowhere does not exist" in failed[1]
    assert "no checkpoint is intact" in failed[2]
    assert captured.err == "spaseq: error: 3 of 4 checks failed\n"


@pytest.mark.parametrize("scheme", ["http", "mqtt", "redis"])
def test_check_config_tries_the_connection(
    folder: Path, capsys: pytest.CaptureFixture[str], scheme: str
) -> None:
    command = ["run", str(folder / "rise.rq"), "--check-config"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"{scheme}://user:geheim@127.0.0.1:{server.getsockname()[1]}/trades"
        command += ["--stream", f"trades={url}"]
        assert main(command) == 0
    out = capsys.readouterr().out
    assert "/trades: the server accepts connections" in out
    assert main([*command, "-o", url]) == 2
    out = capsys.readouterr().out
    assert out.count("/trades: Connection refused") == 2
    assert "geheim" not in out


def test_check_config_makes_no_dead_letter_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", str(folder / "rise.rq"), "--check-config"]
    command += ["--stream", f"trades={folder / 'trades.trig'}"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/h"
        assert main([*command, "-o", f"{url}#dead={folder / 'dead.jsonl'}"]) in (0, 2)
        assert "the server accepts connections" in capsys.readouterr().out
        assert not (folder / "dead.jsonl").exists()
        assert main([*command, "-o", f"{url}#dead={folder / 'none' / 'dead.jsonl'}"]) == 2
        assert "the folder" in capsys.readouterr().out


def test_check_config_connects(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "kb.ttl").write_text("<http://e/a> <http://e/b> 1 .", "utf-8")
    query = QUERY.replace("WHERE {", "FROM NAMED <http://example.org/kb> WHERE {").replace(
        "?company :price ?p1 .", "?company :price ?p1 . GRAPH <http://example.org/kb> { ?x ?y ?z }"
    )
    (folder / "rise.rq").write_text(query, "utf-8")
    with closing(sqlite3.connect(folder / "out.db")) as db:
        db.execute("CREATE TABLE other (x)")
    command = ["run", "--config", "../pipeline.toml", "--check-config"]
    command += ["--kb", "http://example.org/kb=../kb.ttl", "-o", f"sqlite:{folder / 'out.db'}"]
    status = main([*command, "--state", "state"])
    said = capsys.readouterr()
    assert status == 0, said
    assert "kb <http://example.org/kb>: ../kb.ttl: 1 triples" in said.out
    assert f"output: sqlite:{folder / 'out.db'}: connected" in said.out
    assert "state: state: does not exist yet" in said.out

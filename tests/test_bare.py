"""The package as `pip install .` gives it, with its required dependencies alone.

The examples of the README work there. Whatever needs more says in one line which extra to install.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from bare_environment import BareEnvironment, Outcome, make_environment
from test_docs import README, ROOT, blocks, transcript

from spaseq.cli import command_line
from spaseq.io.formats import SINKS
from spaseq.live import registry

EXTRA = re.compile(r"spaseq: error: [^\n]*pip install '?spaseq\[\w+\]'?[^\n]*\n\Z")
QUERY = ["warming.rq", "--stream", "sensors=sensors.trig"]
QUERY += ["--kb", "http://example.org/house=house.ttl"]
NEEDS_EXTRA = {"jelly", "arrow", "parquet"}
"""The formats of results that are written with packages of an extra."""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the environment has links")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> BareEnvironment:
    return make_environment(tmp_path_factory.mktemp("bare"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the README, and some tables."""
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    for block in blocks(README):
        if block.name is not None:
            (tmp_path / block.name).write_text(block.text, "utf-8")
    (tmp_path / "rows.csv").write_text("t,v\n0,1\n")
    (tmp_path / "rows.jsonl").write_text('{"t": 0, "v": 1}\n')
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    (tmp_path / "rows.arrow").write_bytes(b"ARROW1\0\0")
    (tmp_path / "rows.rq").write_text(
        "PREFIX : <http://example.org/> CONSTRUCT { [] :v ?v } WHERE { BIND(?t AS ?_time) }"
    )
    (tmp_path / "events.jelly").write_bytes(b"\x10\x0a")
    (tmp_path / "events.nq.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    (tmp_path / "spaseq.toml").write_text('query = "warming.rq"\n')
    return tmp_path


def needs_extra(outcome: Outcome) -> bool:
    """Whether a command ended with the one line that names an extra."""
    return outcome.status == 2 and EXTRA.search(outcome.errors) is not None


def test_the_readme_works_without_extras(bare: BareEnvironment, folder: Path) -> None:
    seen = 0
    for block in blocks(README):
        if block.language == "console":
            for command, wanted in transcript(block.text):
                if not command.startswith("make "):
                    outcome = bare.spaseq(*_words(command), folder=folder)
                    assert outcome == Outcome(0, wanted, ""), command
                    seen += 1
        elif block.language == "pycon":
            outcome = bare.run([str(bare.python), "-c", _session(block.text)], folder)
            assert outcome == Outcome(0, _shown(block.text), "")
            seen += 1
    assert seen >= 2


def _words(command: str) -> list[str]:
    import shlex

    return shlex.split(command)[1:]


def _session(text: str) -> str:
    """The statements of a doctest, as one program."""
    lines = [line[4:] for line in text.splitlines() if line.startswith((">>> ", "... "))]
    return "\n".join(lines) + "\n"


def _shown(text: str) -> str:
    return "".join(line + "\n" for line in text.splitlines() if not line.startswith((">>>", "...")))


def test_the_five_minutes_name_the_extra_that_they_install(
    bare: BareEnvironment, folder: Path
) -> None:
    start = ROOT / "docs" / "start.md"
    commands = []
    for block in blocks(start):
        if block.name is not None:
            (folder / block.name).write_text(block.text, "utf-8")
        elif block.language == "console":
            commands += [_words(command) for command, _ in transcript(block.text)]
    outcomes = bare.each(commands, folder)
    assert len(outcomes) == len(commands) > 2
    for command, outcome in zip(commands, outcomes, strict=True):
        assert needs_extra(outcome), (command, outcome)
        assert "spaseq[arrow]" in outcome.errors


def test_every_command_starts(bare: BareEnvironment, folder: Path) -> None:
    works = {
        "run": [*QUERY],
        "check": ["warming.rq"],
        "fmt": ["warming.rq"],
        "explain": ["warming.rq", "--svg"],
        "convert": ["sensors.trig", "sensors.nq"],
        "plot": ["matches.jsonl", "-o", "plot.svg"],
        "generate": ["stock", "--out", "stock"],
        "bench": [*QUERY, "--repeat", "1"],
        "completion": ["bash"],
    }
    asks = {"map": ["rows.rq", "rows.csv"], "serve": []}
    other = {"remote": ["--server", "http://127.0.0.1:9", "list"]}
    assert works.keys() | asks.keys() | other.keys() == command_line.commands.keys()
    bare.each([["run", *QUERY, "--output", "matches.jsonl"]], folder)
    for name, outcome in _each(bare, folder, works):
        assert outcome.status == 0, (name, outcome)
        assert "Traceback" not in outcome.errors
    for name, outcome in _each(bare, folder, asks):
        assert needs_extra(outcome), (name, outcome)
    for name, outcome in _each(bare, folder, other):
        assert outcome.status == 2, (name, outcome)
        assert "no server answers there" in outcome.errors


def _each(
    bare: BareEnvironment, folder: Path, commands: dict[str, list[str]]
) -> Iterator[tuple[str, Outcome]]:
    outcomes = bare.each([[name, *rest] for name, rest in commands.items()], folder)
    return zip(commands, outcomes, strict=True)


def test_every_format_is_written_or_names_its_extra(bare: BareEnvironment, folder: Path) -> None:
    names = ["auto", *SINKS]
    outcomes = bare.each([["run", *QUERY, "--format", name] for name in names], folder)
    for name, outcome in zip(names, outcomes, strict=True):
        if name in NEEDS_EXTRA:
            assert needs_extra(outcome), (name, outcome)
        else:
            assert outcome.status == 0, (name, outcome)
            assert outcome.errors == ""
            assert "kitchen" in outcome.out


def test_options_sources_and_sinks_name_their_extras(bare: BareEnvironment, folder: Path) -> None:
    run = ["run", *QUERY]
    commands = [
        [*run, "--metrics", ":0"],
        [*run, "--print-config"],
        ["run", "--config", "spaseq.toml"],
        ["serve", "--config", "spaseq.toml"],
        ["map", "--suggest", "rows.csv"],
        ["convert", "sensors.trig", "out.jelly"],
    ]
    for file in ("rows.csv", "rows.parquet", "rows.arrow"):
        stream = ["--stream", f"sensors={file}", "--map", "sensors=rows.rq"]
        commands.append(["run", "warming.rq", *stream, *QUERY[3:]])
    files = ["s3://b/x.nq", "gs://b/x.nq", "az://b/x.nq", "hdfs://b/x.nq", "https://h/x.nq.gz"]
    without_extra = {"http", "https", "ldes+http", "ldes+https", "sqlite"}
    sources = [f"{scheme}://127.0.0.1:9/x" for scheme in {*registry.SOURCES} - without_extra]
    sinks = [f"{scheme}://127.0.0.1:9/x" for scheme in {*registry.SINKS} - without_extra]
    assert len(sources) > 5 < len(sinks)
    for url in [*files, *sources, "events.nq.zst"]:
        commands.append(["run", "warming.rq", "--stream", f"sensors={url}", *QUERY[3:]])
    for url in [*sinks, "s3://b/x.csv", "x.parquet"]:
        commands.append([*run, "--output", url])
    for command, outcome in zip(commands, bare.each(commands, folder), strict=True):
        assert needs_extra(outcome), (command, outcome)


def test_sqlite_state_threads_and_json_need_no_extra(bare: BareEnvironment, folder: Path) -> None:
    run = ["run", *QUERY]
    commands = [
        ["map", "--suggest", "rows.jsonl"],
        ["map", "rows.rq", "rows.jsonl"],
        [
            "run",
            "warming.rq",
            "--stream",
            "sensors=rows.jsonl",
            "--map",
            "sensors=rows.rq",
            *QUERY[3:],
        ],
        [*run, "--output", "sqlite:matches.db"],
        [*run, "--state", "state", "--output", "matches.csv"],
        [*run, "--workers", "2", "--stats", "--why", "--progress"],
    ]
    for command, outcome in zip(commands, bare.each(commands, folder), strict=True):
        assert outcome.status == 0, (command, outcome)
        assert "Traceback" not in outcome.errors


def test_tables_in_python_name_their_extra(bare: BareEnvironment, folder: Path) -> None:
    program = """
import spaseq
text = open("warming.rq").read()
given = {"streams": {"sensors": "sensors.trig"}, "kb": {"http://example.org/house": "house.ttl"}}
print([match.values["low"] for match in spaseq.run(text, **given)])
for name in ("to_arrow", "to_polars", "to_pandas"):
    try:
        getattr(spaseq.run(text, **given), name)()
    except spaseq.SpaseqError as error:
        print(name, "pip install 'spaseq[" in str(error))
"""
    outcome = bare.run([str(bare.python), "-c", program], folder)
    lines = ["[12]", "to_arrow True", "to_polars True", "to_pandas True"]
    assert outcome == Outcome(0, "".join(f"{line}\n" for line in lines), "")

"""The examples in the documents: queries match, commands print, Python runs, links resolve.

Fenced blocks of README.md and docs/*.md are run in the order of the text:

* `sparql`, then `matches` (or `error`): the query finds exactly these matches in the
  `events` (and `kb`) that were shown last, on the engine and on the reference semantics.
  Several `sparql` blocks before one `matches` run together. The notation of events and
  matches is that of `cases.py`; a line `or` stands between alternatives, and each line of
  a `kb` block begins with its graph.
* a block whose first line has a name behind its language is a file of that name.
* `console`: a line after `$` is a command, what follows is what it prints.
* `pycon`: a doctest; the blocks of one document share their names.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pytest
from cases import EXAMPLE, Case, Result, _case, differences
from test_suite import engine, oracle

import spaseq
from spaseq.cli import main

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)(?: ([^\n`]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    document: str
    line: int
    language: str
    name: str | None
    text: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


@cache
def blocks(path: Path) -> tuple[Block, ...]:
    text = path.read_text("utf-8")
    return tuple(
        Block(
            str(path.relative_to(ROOT)),
            text.count("\n", 0, found.start()) + 1,
            found[1],
            found[2],
            found[3],
        )
        for found in FENCE.finditer(text)
    )


def test_every_fence_of_the_documents_is_read() -> None:
    for path in DOCUMENTS:
        fences = re.findall(r"^\s*```", path.read_text("utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(blocks(path)), path


# ------------------------------------------------------------------ queries


@dataclass(frozen=True)
class Example:
    """Queries with what they find in some events."""

    at: Block
    queries: tuple[str, ...]
    events: str
    kb: Mapping[str, str]

    @property
    def wanted(self) -> str:
        return self.at.text

    def case(self) -> Case:
        lines = [line for line in self.wanted.splitlines() if line]
        alternatives = [list(part) for kept, part in groupby(lines, "or".__ne__) if kept]
        return _case(
            {
                "name": str(self.at),
                "section": "",
                "queries": list(self.queries),
                "events": "\n".join(self._read()),
                "kb": dict(self.kb),
                "alternatives": alternatives or [[]],
            },
            self.at.document,
        )

    def _read(self) -> Iterator[str]:
        """The events of the streams that the queries declare."""
        text = " ".join(self.queries)
        declared = set(re.findall(r"FROM\s+STREAM\s+\w+\s+:(\w+)", text, re.IGNORECASE))
        return (line for line in self.events.splitlines() if line.split()[0] in declared)


def examples(path: Path, language: str) -> Iterator[Example]:
    """The examples that end with a block of a language."""
    queries: list[str] = []
    events, kb = "", dict[str, str]()
    for block in blocks(path):
        if block.language == "events":
            events, kb = block.text, {}
        elif block.language == "kb":
            kb = knowledge(block.text)
        elif block.language == "sparql" and block.name is None:
            queries.append(block.text)
        elif block.language in ("matches", "error"):
            assert queries, f"{block}: no query before it"
            if block.language == language:
                yield Example(block, tuple(queries), events, kb)
            queries = []
    assert not queries, f"{path}: a query without matches"


def knowledge(text: str) -> dict[str, str]:
    """Lines of `:graph triples`, to the Turtle of each graph."""
    graphs: dict[str, str] = {}
    for line in text.splitlines():
        name, triples = line.split(None, 1)
        iri = EXAMPLE + name.removeprefix(":")
        graphs[iri] = graphs.get(iri, "") + triples.rstrip(" .") + " .\n"
    return graphs


MATCHING = [example for path in DOCUMENTS for example in examples(path, "matches")]
FAILING = [example for path in DOCUMENTS for example in examples(path, "error")]


@pytest.mark.parametrize("adapter", [engine, oracle], ids=["engine", "oracle"])
@pytest.mark.parametrize("example", MATCHING, ids=lambda example: str(example.at))
def test_queries_find_the_matches_shown(
    example: Example, adapter: Callable[[Case, Path], list[Result]], tmp_path: Path
) -> None:
    case = example.case()
    seen = adapter(case, tmp_path)
    found = [differences(wanted, seen) for wanted in case.alternatives]
    assert not all(found), f"{example.at}\n{found[0]}"


@pytest.mark.parametrize("example", FAILING, ids=lambda example: str(example.at))
def test_a_faulty_query_is_explained_as_shown(example: Example) -> None:
    (text,) = example.queries
    with pytest.raises(spaseq.QueryError) as caught:
        spaseq.compile(text)
    assert str(caught.value) == example.wanted.rstrip("\n")


# ------------------------------------------------------------------ commands, files, Python


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place to run a document in: the examples are where they are in the checkout."""
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def spark_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Spark stays in the folder it was started in: other tests may have started one elsewhere."""
    if find_spec("pyspark") is None:
        yield
        return
    # As in tests/spark/settings.py.
    options = (
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Dspark.sql.codegen.wholeStage=false",
        "-Dspark.python.daemon.module=preloading_daemon",
    )
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", " ".join(options))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests" / "spark"), prepend=os.pathsep)
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    for owner, name in (
        (SparkContext, "_gateway"),
        (SparkContext, "_jvm"),
        (SparkContext, "_active_spark_context"),
        (SparkSession, "_instantiatedSession"),
    ):
        monkeypatch.setattr(owner, name, None)
    yield
    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context.stop()
    if SparkContext._gateway is not None:
        SparkContext._gateway.shutdown()
        SparkContext._gateway.proc.stdin.close()  # it ends with its standard input
        SparkContext._gateway.proc.wait()


@pytest.mark.usefixtures("spark_of_its_own")
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_and_sessions_print_what_is_shown(path: Path, folder: Path) -> None:
    shared: dict[str, object] = {}
    for block in blocks(path):
        if block.name is not None:
            (folder / block.name).write_text(block.text, "utf-8")
        elif block.language == "console":
            for command, wanted in transcript(block.text):
                if command.startswith("make "):
                    continue
                assert printed(command) == wanted, f"{block}: {command}"
        elif block.language == "pycon":
            run_session(block, shared)


def transcript(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a block, each with what follows it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command = re.match(r"(?:.*\\\n)*.*\n", part)
        assert command
        yield command[0].replace("\\\n", " ").strip(), part[command.end() :]


def printed(command: str) -> str:
    words = shlex.split(command)
    if words[0] == "cat":
        return "".join(Path(name).read_text("utf-8") for name in words[1:])
    assert words[0] == "spaseq", f"{command}: documents show spaseq, cat and make only"
    with TemporaryFile("w+", encoding="utf-8") as file:
        with writing_to(file):
            main(words[1:])
        file.seek(0)
        return file.read()


@contextmanager
def writing_to(file: IO[str]) -> Iterator[None]:
    """What this process prints, from compiled code too, as if `> file 2>&1` were at its start."""
    kept = os.dup(1), os.dup(2)
    for number in (1, 2):
        os.dup2(file.fileno(), number)
    try:
        with (
            open(1, "w", encoding="utf-8", closefd=False) as out,
            open(2, "w", encoding="utf-8", closefd=False, buffering=1) as errors,
            redirect_stdout(out),
            redirect_stderr(errors),
        ):
            yield
    finally:
        for number, before in zip((1, 2), kept, strict=True):
            os.dup2(before, number)
            os.close(before)


def test_make_demo_prints_what_the_readme_shows() -> None:
    if not (Path(sys.prefix) / "bin" / "spaseq").exists() or shutil.which("make") is None:
        pytest.skip("make demo needs make, and the package installed in this environment")
    shown = re.search(r"^\$ make demo\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
    assert shown
    # As if the environment had just been set up: it is the one these tests run in.
    options = ["--silent", "--no-print-directory", "-o", f"{sys.prefix}/.ready"]
    result = subprocess.run(
        ["make", *options, f"VENV={sys.prefix}", "demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == shown[1]


def run_session(block: Block, shared: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(
        block.text, {}, block.document, block.document, block.line
    )
    test.globs = shared
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    runner.run(test, out=said.append, clear_globs=False)
    assert runner.failures == 0, "".join(said)


# ------------------------------------------------------------------ links


def anchors(path: Path) -> set[str]:
    """The names by which the headings of a document can be linked to."""
    text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings: Sequence[str] = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in LINK.findall(path.read_text("utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        assert there.exists(), f"{path.name}: {target}"
        if anchor:
            assert anchor in anchors(there), f"{path.name}: {target}"

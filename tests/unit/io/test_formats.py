"""The tables of formats: unknown names, the names derived from an entry, a new entry."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyoxigraph as ox
import pytest

from spaseq.errors import SpaseqError
from spaseq.io import formats
from spaseq.io.formats import (
    SINKS,
    STREAM_SYNTAXES,
    Shape,
    SinkFormat,
    StreamSyntax,
    fitting_format,
    sink_format,
)
from spaseq.io.read_options import Framing, ReadOptions
from spaseq.io.sinks import open_sink
from spaseq.io.source import Source
from spaseq.rdf.compression import COMPRESSIONS
from spaseq.rdf.formats import N_TRIPLES, SYNTAXES, RdfSyntax, parser_format, syntax_of_extension
from spaseq.results import Match

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda: ReadOptions(syntax="n5"), "'n5' is not a syntax of streams; use nq, .* or jelly"),
        (
            lambda: open_sink("xls", [Shape("q", "select")]),
            "'xls' is not a format of results; use table, jsonl, csv, .* or parquet",
        ),
    ],
)
def test_an_unknown_name_lists_the_known(use: Callable[[], object], said: str) -> None:
    with pytest.raises(SpaseqError, match=said):
        use()


@pytest.mark.parametrize("syntax", SYNTAXES.values(), ids=lambda syntax: syntax.name)
def test_entries_agree_with_the_parser(syntax: RdfSyntax) -> None:
    known = parser_format(syntax)
    assert (known.name, known.supports_datasets) == (syntax.title, syntax.named_graphs)
    for extension in syntax.extensions:
        assert ox.RdfFormat.from_extension(extension) in (known, None)
        assert syntax_of_extension(extension.upper()) == syntax
    for media_type in syntax.media_types:
        assert ox.RdfFormat.from_media_type(media_type) == known


@pytest.mark.parametrize("form", ["select", "construct", "ask"])
@pytest.mark.parametrize("known", SINKS.values(), ids=lambda known: known.name)
def test_each_format_writes_a_document_without_matches(known: SinkFormat, form: str) -> None:
    shapes = [Shape("q", form, ("v",))]  # type: ignore[arg-type]
    if form not in known.forms:
        with pytest.raises(SpaseqError, match=f"{known.name} has no form .* {form.upper()}"):
            sink_format(known.name, shapes)
        return
    out = io.BytesIO() if known.binary else io.StringIO()
    sink_format(known.name, shapes).open(out, shapes).close()
    assert bool(out.getvalue()) == (known.name not in ("jsonl", "nquads"))


@pytest.mark.parametrize(
    ("path", "is_terminal", "forms", "format"),
    [
        (None, False, "select", "jsonl"),
        (None, True, "select", "table"),
        (None, True, "construct", "jsonl"),
        ("out.CSV", True, "select", "csv"),
        ("a.b/out.nq", False, "select", "nquads"),
        ("a.csv/out", False, "select", "jsonl"),
        ("out.ttl", False, "construct", "turtle"),
    ],
)
def test_the_output_selects_the_format(
    path: str | None, is_terminal: bool, forms: str, format: str
) -> None:
    shapes = [Shape("q", forms, ("v",))]  # type: ignore[arg-type]
    assert fitting_format(shapes, path, is_terminal) == format


def test_no_two_formats_have_one_extension() -> None:
    known = [extension for sink in SINKS.values() for extension in sink.extensions]
    assert len(known) == len(set(known))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, extra in (
        ("jelly_writer", "jelly", "jelly"),
        ("arrow_writer", "arrow", "arrow"),
        ("arrow_writer", "parquet", "arrow"),
    ):
        monkeypatch.setitem(sys.modules, f"spaseq.io.{module}", None)
        monkeypatch.delattr(f"spaseq.io.{module}", raising=False)
        with pytest.raises(SpaseqError, match=rf"pip install 'spaseq\[{extra}\]'"):
            SINKS[name].open(io.BytesIO(), [])


def test_the_documentation_lists_the_tables() -> None:
    text = (ROOT / "docs" / "formats.md").read_text("utf-8")
    rows = [
        "| syntax | `--input-format` | extensions | media types | written by |",
        "|---|---|---|---|---|",
    ]
    for known in STREAM_SYNTAXES.values():
        syntax = known.syntax
        extensions = ", ".join(f"`.{name}`" for name in syntax.extensions)
        media_types = ", ".join(f"`{name}`" for name in syntax.media_types)
        writer = f"`--format {known.writer}`" if known.writer else ""
        cells = (syntax.title, f"`{syntax.name}`", extensions, media_types, writer)
        rows.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    assert "\n".join(rows) in text
    table = text[text.index("| format | extension | for |") :].partition("\n\n")[0]
    named = [
        name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])
    ]
    assert sorted(named) == sorted(SINKS)
    for compression in COMPRESSIONS.values():
        assert compression.name in text


def test_the_tables_agree() -> None:
    assert {known.writer for known in STREAM_SYNTAXES.values()} - {None} <= SINKS.keys()
    extensions = [e for known in STREAM_SYNTAXES.values() for e in known.syntax.extensions]
    assert len(extensions) == len(set(extensions))
    for known in STREAM_SYNTAXES.values():
        assert set(known.also) <= STREAM_SYNTAXES.keys()


def test_a_syntax_is_added_by_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Extension, option and reader are derived from the entry."""

    def read(file, syntax, troubles, messages) -> Iterator[tuple[ox.Quad, int]]:  # type: ignore[no-untyped-def]
        while line := file.readline():
            named = [ox.NamedNode(f"urn:{word}") for word in line.decode().split()]
            yield ox.Quad(*named, ox.DefaultGraph()), file.number  # type: ignore[arg-type]

    words = StreamSyntax(replace(N_TRIPLES, name="words", title="Words"), read, "frame")
    monkeypatch.setitem(STREAM_SYNTAXES, "words", words)  # type: ignore[arg-type]
    (tmp_path / "a.words").write_text("a b c\na b d\n")
    (tmp_path / "b.data").write_text("a b c\n")
    for name, syntax, count in (("a.words", None, 2), ("b.data", "words", 1)):
        options = ReadOptions(Framing.parse("triples:1"), syntax=syntax)
        events = list(Source("urn:s", [str(tmp_path / name)], options))
        assert len(events) == count
        assert str(events[0].facts[0][0]) == "<urn:a>"


def test_a_sink_is_added_by_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Count:
        def __init__(self, out: io.TextIOBase) -> None:
            self.out, self.matches = out, 0

        def write(self, match: Match) -> None:
            self.matches += 1

        def close(self) -> None:
            self.out.write(str(self.matches))

    counting = SinkFormat("count", "text/plain", lambda out, shapes: Count(out), ("ask",))  # type: ignore[arg-type]
    monkeypatch.setitem(formats.SINKS, "count", counting)  # type: ignore[arg-type]
    path = tmp_path / "n"
    with open_sink("count", [Shape("q", "ask")], str(path)) as sink:
        sink.write(None)  # type: ignore[arg-type]
    assert path.read_text() == "1"


def test_the_command_line_names_the_formats_without_reading_the_parser() -> None:
    code = "import sys, spaseq.cli; print([m for m in sys.modules if 'oxigraph' in m])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"

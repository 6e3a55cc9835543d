"""The formats of streams and of results: one entry of `STREAM_SYNTAXES` or `SINKS` each.

The readers, the sinks, the recognition of files and the command line derive their choices from
these two tables, and docs/formats.md lists them. A new syntax of streams is one entry, and a reader
if pyoxigraph does not parse the syntax. A new format of results is one entry and its writer. The
syntaxes that pyoxigraph parses are in spaseq/rdf/formats.py, since knowledge bases use them too.

Readers and writers are imported when they are first used, so that the command line can name the
formats without the cost of the imports, and because the reader of Jelly needs an optional package.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    BinaryIO,
    Literal,
    Protocol,
    TextIO,
    TypeAlias,
    runtime_checkable,
)

from spaseq.errors import InputError, InputUnit, SpaseqError
from spaseq.rdf.formats import (
    JSON_LD,
    N3,
    N_QUADS,
    N_TRIPLES,
    RDF_XML,
    TRIG,
    TURTLE,
    RdfSyntax,
    entry,
    one_of,
)
from spaseq.records import dataclass

if TYPE_CHECKING:
    from spaseq.engine.instants import QueryRun
    from spaseq.io.lines import Lines
    from spaseq.io.read_options import Troubles
    from spaseq.io.statements import Statement
    from spaseq.rdf.native._framing import EventReader
    from spaseq.rdf.native._terms import EventBatch
    from spaseq.results import Match

# ------------------------------------------------------------------ streams

StatementReader: TypeAlias = "Callable[[Lines, RdfSyntax, Troubles, bool], Iterator[Statement]]"
"""Reads (file, syntax, where errors are reported, whether it is cut into messages): the statements,
each with its line or frame, and `(None, line)` for each end of a message."""


EventSteps: TypeAlias = "Callable[[Lines, EventReader, Troubles, bool], Iterator[bool]]"
"""Reads (file, events, where errors are reported, whether it is cut into messages) into events;
yields each time that a batch may be yielded."""


@dataclass(frozen=True, slots=True)
class StreamSyntax:
    """How the files of a stream in one syntax are read."""

    syntax: RdfSyntax
    read: StatementReader | None
    """None: by a compiled reader, of lines (spaseq/rdf/native/nquads/nquads.pxi) or of documents
    (spaseq/io/documents.py)."""
    unit: InputUnit = "line"
    """What error messages count."""
    steps: EventSteps | None = None
    """A compiled reader that cuts the file into events itself."""
    has_messages: bool = False
    """Whether every file is cut into messages; a file in another syntax announces them."""
    begins: re.Pattern[bytes] | None = None
    """A pattern that only files in this syntax begin with, after blanks and comments."""
    binary: bool = False
    """Whether `begins` is compared with the first bytes without skipping anything."""
    also: tuple[str, ...] = ()
    """Syntaxes whose content does not contradict an extension of this one."""
    writer: str | None = None
    """The format of results that writes this syntax."""


def _jelly(
    file: Lines, syntax: RdfSyntax, troubles: Troubles, messages: bool
) -> Iterator[Statement]:
    try:
        from spaseq.io.jelly import jelly_statements
    except ImportError as error:
        raise InputError(
            "--events subject, dataset and member read Jelly with the package pyjelly: "
            f"pip install 'spaseq[jelly]' ({error})"
        ) from error
    return jelly_statements(file, troubles, messages)


def _jelly_steps(
    file: Lines, events: EventReader, troubles: Troubles, messages: bool
) -> Iterator[bool]:
    from spaseq.io.jelly_frames import jelly_steps

    return jelly_steps(file, events, troubles, messages)


def _n3(file: Lines, syntax: RdfSyntax, troubles: Troubles, messages: bool) -> Iterator[Statement]:
    from spaseq.io.messages import message_statements
    from spaseq.io.statements import document_statements

    return (message_statements if messages else document_statements)(file, syntax, troubles)


def _rdf_xml(
    file: Lines, syntax: RdfSyntax, troubles: Troubles, messages: bool
) -> Iterator[Statement]:
    from spaseq.io.rdf_xml import rdf_xml_statements

    return rdf_xml_statements(file, troubles)


def _json_ld(
    file: Lines, syntax: RdfSyntax, troubles: Troubles, messages: bool
) -> Iterator[Statement]:
    from spaseq.io.json_ld import json_ld_statements

    return json_ld_statements(file, troubles)


def _json_ld_lines(
    file: Lines, syntax: RdfSyntax, troubles: Troubles, messages: bool
) -> Iterator[Statement]:
    from spaseq.io.json_ld import json_ld_lines

    return json_ld_lines(file, troubles, messages)


def _ngsi_ld(
    file: Lines, syntax: RdfSyntax, troubles: Troubles, messages: bool
) -> Iterator[Statement]:
    from spaseq.io.json_ld import ngsi_ld_statements

    return ngsi_ld_statements(file, troubles, messages)


NDJSON_LD = RdfSyntax(
    "ndjsonld",
    "NDJSON-LD",
    "application/x-ndjson",
    named_graphs=True,
    other_media_types=("application/jsonl",),
)
NGSI_LD = RdfSyntax("ngsild", "NGSI-LD", "application/ld+json")
JELLY = RdfSyntax("jelly", "Jelly", "application/x-jelly-rdf", named_graphs=True)

_IRI, _LABEL = rb"<[^<>\s]*>", rb"_:[^\s<>\"]+"
# Possessive repetitions (`*+`) store nothing for each character that they match.
_LITERAL = rb'"(?:[^"\\\n]++|\\.)*+"(?:@[\w-]+|\^\^' + _IRI + rb")?"
_STATEMENT_LINE = re.compile(
    rb"(?:%b|%b)[ \t]*%b[ \t]*(?:%b|%b|%b)[ \t]*" % (_IRI, _LABEL, _IRI, _IRI, _LABEL, _LITERAL)
    + rb"(?:(?:%b|%b)[ \t]*)?\.[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z)" % (_IRI, _LABEL)
)

# The order is that in which the beginning of a file is compared with `begins`.
STREAM_SYNTAXES: Mapping[str, StreamSyntax] = {
    known.syntax.name: known
    for known in (
        StreamSyntax(
            N_QUADS,
            None,
            begins=_STATEMENT_LINE,
            also=("nt",),
            writer="nquads",
        ),
        StreamSyntax(N_TRIPLES, None, also=("nq",)),
        StreamSyntax(
            TRIG,
            None,
            begins=re.compile(rb"@?(?:prefix|base)\b", re.IGNORECASE),
            also=("nq", "nt", "ttl"),
            writer="trig",
        ),
        StreamSyntax(TURTLE, None, also=("nq", "nt", "trig")),
        StreamSyntax(N3, _n3, also=("nq", "nt", "trig", "ttl")),
        StreamSyntax(
            RDF_XML,
            _rdf_xml,
            begins=re.compile(rb"<\?xml\b|<!--|<!DOCTYPE\s+(?:\w+:)?RDF\b|<(?:\w+:)?RDF[\s>]"),
        ),
        StreamSyntax(
            NGSI_LD,
            _ngsi_ld,
            has_messages=True,
            begins=re.compile(
                rb"(?:\[\s*)?\{(?=[^{]{0,999}\"(?:notifiedAt|subscriptionId)\")"
                rb"(?=[^{]{0,999}\"type\"\s*:\s*\"Notification\")"
            ),
        ),
        StreamSyntax(
            NDJSON_LD,
            _json_ld_lines,
            has_messages=True,
            # A block of TriG also begins with a brace, but no statement in it begins with a string.
            begins=re.compile(rb"\{\s*\"[^\n]*\}[ \t\r]*\n\s*\{"),
            also=("jsonld",),
        ),
        StreamSyntax(
            JSON_LD,
            _json_ld,
            begins=re.compile(rb'\{\s*"(?:[^"\\]++|\\.)*+"\s*:|\[\s*\{'),
            writer="jsonld",
        ),
        StreamSyntax(
            JELLY,
            _jelly,
            "frame",
            _jelly_steps,
            has_messages=True,
            # A frame whose first row is the options, which name a physical type from 1 to 3.
            begins=re.compile(
                rb"(?:[\x80-\xff]{0,4}[\x01-\x7f])?(?:\x0a[\x80-\xff]{0,4}[\x01-\x7f]){2}"
                rb"(?:\x0a[\x00-\x7f][^\x00-\x08]*)?\x10[\x01-\x03]"
            ),
            binary=True,
            writer="jelly",
        ),
    )
}


def stream_syntax(name: str) -> StreamSyntax:
    """The entry of `STREAM_SYNTAXES`.

    Raises:
        SpaseqError: for a name that is not in it.
    """
    return entry(STREAM_SYNTAXES, name, "syntax of streams")


# ------------------------------------------------------------------ results

Form: TypeAlias = Literal["select", "construct", "ask"]
MATCH_COLUMNS = ("start", "end", "query")
"""The properties of a match that tables can show besides its solution."""
_ALL_FORMS: tuple[Form, ...] = ("select", "construct", "ask")


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of one query's results, which is known before the first result."""

    query: str
    form: Form
    columns: tuple[str, ...] = ()
    prefixes: tuple[tuple[str, str], ...] = ()
    """The (prefix, IRI) pairs that the queries declare."""
    grouped: bool = False
    """Whether it has a GROUP."""
    leading: tuple[str, ...] = ()
    """Columns of the match itself, before the others; see `MATCH_COLUMNS`."""


class Writer(Protocol):
    """One format: `write` each match in turn, then `close` the document once."""

    def write(self, match: Match) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class Holding(Protocol):
    """A writer that holds matches back until `flush`, for instance to align them."""

    def flush(self) -> None: ...


@runtime_checkable
class Columnar(Protocol):
    """A writer for which the core makes rows of columns; see spaseq/io/arrow_writer.py."""

    def attach(self, queries: Sequence[QueryRun]) -> bool: ...

    def write_rows(self, whole: bool) -> int: ...


@runtime_checkable
class Joining(Protocol):
    """A writer whose rows depend on whether there are rows before them."""

    def joined(self, block: memoryview, rows: int) -> memoryview: ...


@dataclass(frozen=True, slots=True)
class SinkFormat:
    """How results are written in one format."""

    name: str
    media_type: str
    open: Callable[[Any, Sequence[Shape]], Writer]
    """Makes the writer over an open file of text, or of bytes if `binary`; a header is written at
    once."""
    forms: tuple[Form, ...] = _ALL_FORMS
    """The forms of queries whose results can be written."""
    one_query: bool = False
    """Whether a document holds the results of one query only."""
    binary: bool = False
    extensions: tuple[str, ...] = ()
    """The extensions of output files that select the format."""
    leads: bool = False
    """Whether it can have `Shape.leading`."""


def _json_lines(out: TextIO, shapes: Sequence[Shape]) -> Writer:
    from spaseq.io.sinks import JsonLines

    return JsonLines(out)


def _csv(out: TextIO, shapes: Sequence[Shape]) -> Writer:
    from spaseq.io.sparql_results import Csv

    return Csv(out, shapes[0].columns, shapes[0].leading)


def _tsv(out: TextIO, shapes: Sequence[Shape]) -> Writer:
    from spaseq.io.sparql_results import Tsv

    return Tsv(out, shapes[0].columns, shapes[0].leading)


def _results_json(out: TextIO, shapes: Sequence[Shape]) -> Writer:
    from spaseq.io.sparql_results import ResultsJson

    return ResultsJson(out, shapes[0].columns, ask=shapes[0].form == "ask")


def _results_xml(out: TextIO, shapes: Sequence[Shape]) -> Writer:
    from spaseq.io.sparql_results import ResultsXml

    return ResultsXml(out, shapes[0].columns, ask=shapes[0].form == "ask")


def _table(out: TextIO, shapes: Sequence[Shape]) -> Writer:
    from spaseq.io.table import Table

    return Table(out, shapes)


def _rdf(name: str) -> Callable[[TextIO, Sequence[Shape]], Writer]:
    """Opens the writer with a name in spaseq/io/rdf_writer.py."""

    def open(out: TextIO, shapes: Sequence[Shape]) -> Writer:
        from spaseq.io import rdf_writer

        writer: Writer = getattr(rdf_writer, name)(out)
        return writer

    return open


def _jelly_frames(out: BinaryIO, shapes: Sequence[Shape]) -> Writer:
    try:
        from spaseq.io.jelly_writer import Jelly
    except ImportError as error:
        raise SpaseqError(
            f"Jelly is written with the package pyjelly: pip install 'spaseq[jelly]' ({error})"
        ) from error
    return Jelly(out)


def _columnar(name: str) -> Callable[[BinaryIO, Sequence[Shape]], Writer]:
    """Opens a table of spaseq/io/arrow_writer.py: `Arrow` or `Parquet`."""

    def open(out: BinaryIO, shapes: Sequence[Shape]) -> Writer:
        try:
            from spaseq.io import arrow_writer
        except ImportError as error:
            raise SpaseqError(
                f"{name} is written with the package pyarrow: pip install 'spaseq[arrow]' ({error})"
            ) from error
        kinds: dict[str, Callable[[BinaryIO], arrow_writer.File]] = {
            "Arrow": arrow_writer.ArrowFile,
            "Parquet": arrow_writer.ParquetFile,
        }
        return arrow_writer.Table(kinds[name](out), shapes)

    return open


_TABLES: tuple[Form, ...] = ("select",)
_RESULTS: tuple[Form, ...] = ("select", "ask")

SINKS: Mapping[str, SinkFormat] = {
    known.name: known
    for known in (
        SinkFormat("table", "text/plain", _table, _TABLES, leads=True),
        SinkFormat("jsonl", "application/jsonl", _json_lines, extensions=("jsonl", "ndjson")),
        SinkFormat(
            "csv", "text/csv", _csv, _TABLES, one_query=True, extensions=("csv",), leads=True
        ),
        SinkFormat(
            "tsv",
            "text/tab-separated-values",
            _tsv,
            _TABLES,
            one_query=True,
            extensions=("tsv",),
            leads=True,
        ),
        SinkFormat(
            "srj",
            "application/sparql-results+json",
            _results_json,
            _RESULTS,
            one_query=True,
            extensions=("srj",),
        ),
        SinkFormat(
            "srx",
            "application/sparql-results+xml",
            _results_xml,
            _RESULTS,
            one_query=True,
            extensions=("srx",),
        ),
        SinkFormat("trig", TRIG.media_type, _rdf("TriG"), extensions=("trig",)),
        SinkFormat("nquads", N_QUADS.media_type, _rdf("NQuads"), extensions=("nq",)),
        SinkFormat("turtle", TURTLE.media_type, _rdf("Turtle"), extensions=("ttl",)),
        SinkFormat("jsonld", JSON_LD.media_type, _rdf("JsonLd"), extensions=("jsonld",)),
        SinkFormat(
            "jelly", "application/x-jelly-rdf", _jelly_frames, binary=True, extensions=("jelly",)
        ),
        SinkFormat("messages", N_QUADS.media_type, _rdf("Messages")),
        SinkFormat(
            "arrow",
            "application/vnd.apache.arrow.stream",
            _columnar("Arrow"),
            binary=True,
            extensions=("arrow", "arrows"),
        ),
        SinkFormat(
            "parquet",
            "application/vnd.apache.parquet",
            _columnar("Parquet"),
            binary=True,
            extensions=("parquet",),
        ),
    )
}
_NOT_WRITTEN = frozenset(
    ("avro", "db", "feather", "html", "nt", "orc", "rdf", "sqlite", "xls", "xlsx", "xml")
)
"""Extensions of other formats, which a file of JSON lines would contradict."""
AUTO = "auto"
"""Stands for the format that fits the output."""


def fitting_format(shapes: Sequence[Shape], path: str | None, is_terminal: bool) -> str:
    """The format for `auto`.

    It is the one of the file's extension, or JSON lines; on a terminal a table, if a table can hold
    the results.

    Raises:
        SpaseqError: for the extension of a format that is not written.
    """
    if path is not None:
        extension = path.rpartition(".")[2].lower()
        for known in SINKS.values():
            if extension in known.extensions:
                return known.name
        if extension in _NOT_WRITTEN:
            raise SpaseqError(
                f"{path}: no output format has the extension .{extension}; choose one of "
                f"{', '.join(SINKS)} by --format"
            )
        return "jsonl"
    if is_terminal and all(shape.form in _TABLES and shape.columns for shape in shapes):
        return "table"
    return "jsonl"


def sink_format(name: str, shapes: Sequence[Shape]) -> SinkFormat:
    """The entry of `SINKS` for results of these shapes.

    Raises:
        SpaseqError: for a name that is not in it, and where the format cannot hold the results.
    """
    known = entry(SINKS, name, "format of results")
    general = [
        other.name
        for other in SINKS.values()
        if not other.one_query and set(other.forms) == set(_ALL_FORMS)
    ]
    if known.one_query and len(shapes) != 1:
        raise SpaseqError(
            f"{name} is one table and can hold the results of one query; "
            f"use --format {one_of(general)}"
        )
    for shape in shapes:
        if shape.form not in known.forms:
            raise SpaseqError(
                f"{name} has no form for the results of {shape.form.upper()}; "
                f"use --format {one_of(general)}"
            )
        if shape.leading and not known.leads:
            leading = [other.name for other in SINKS.values() if other.leads]
            raise SpaseqError(
                f"{name} has no columns to begin with {', '.join(shape.leading)}: "
                f"--match-columns is for --format {one_of(leading)}"
            )
    return known


# ------------------------------------------------------------------ events


class EventWriter(Protocol):
    """One syntax: `write` each event of a batch in turn, then `close` the document once."""

    def write(self, batch: EventBatch, index: int) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class EventFormat:
    """How events are written in one syntax."""

    name: str
    writer: str
    """Its class in spaseq/io/event_writers.py."""

    def open(self, out: BinaryIO) -> EventWriter:
        """The writer over an open file.

        Raises:
            SpaseqError: if a package is missing.
        """
        from spaseq.io import event_writers

        try:
            writer: EventWriter = getattr(event_writers, self.writer)(out)
        except ImportError as error:
            raise SpaseqError(
                f"{self.name} is written with the package pyjelly: pip install 'spaseq[jelly]' "
                f"({error})"
            ) from error
        return writer


EVENT_FORMATS: Mapping[str, EventFormat] = {
    known.name: known
    for known in (
        EventFormat("nq", "GraphLines"),
        EventFormat("nt", "MessageTriples"),
        EventFormat("trig", "GraphBlocks"),
        EventFormat("ttl", "MessageDocuments"),
        EventFormat("jsonld", "GraphArray"),
        EventFormat("jelly", "Frames"),
        EventFormat("messages", "MessageQuads"),
    )
}
"""By their names, which are the extensions of files; messages are N-Quads."""


def event_format(path: str, name: str | None) -> EventFormat:
    """The entry of `EVENT_FORMATS` with a name, or of the extension of an output file.

    Raises:
        SpaseqError: if there is none.
    """
    if name is not None:
        return entry(EVENT_FORMATS, name, "syntax of events")
    extension = path.rpartition(".")[2].lower()
    if extension not in EVENT_FORMATS:
        known = one_of([known for known in EVENT_FORMATS if known != "messages"], ".")
        raise SpaseqError(f"{path}: the extension must be {known}; or name the syntax with --to")
    return EVENT_FORMATS[extension]

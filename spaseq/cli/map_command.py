"""The command `spaseq map`: the events that a mapping creates from rows, or a first mapping."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING

import click

from spaseq.cli import arguments, reports
from spaseq.cli.groups import CommandWithExamples
from spaseq.io.rows.formats import ROW_FORMATS

if TYPE_CHECKING:
    from spaseq.rdf.event import Event, Term

_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime"
_PREFIXES = {
    "prov": "http://www.w3.org/ns/prov#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_LOCAL = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)


@click.command(
    "map",
    cls=CommandWithExamples,
    epilog="""\
  spaseq map --suggest trades.csv > trades.rq
  spaseq map trades.rq trades.csv --limit 3
  spaseq map trades.rq trades.parquet --time-column ts --format nquads > trades.nq
""",
)
@click.argument("files", nargs=-1, required=True, metavar="MAPPING.rq FILE...", type=click.Path())
@click.option("--suggest", is_flag=True, help="Print a first mapping for the columns of FILE.")
@click.option(
    "--time-column",
    metavar="NAME",
    help="The column that holds the time of a row. A mapping that binds ?_time does not need it.",
)
@click.option("--arrival-time", is_flag=True, help="Use the arrival time as the event's timestamp.")
@click.option(
    "--time-unit",
    type=click.Choice(("s", "ms", "us")),
    default="s",
    show_default=True,
    help="The unit of timestamps that are plain numbers.",
)
@click.option(
    "--input-format",
    type=click.Choice(ROW_FORMATS),
    help="The format of the files. By default their extension and content decide.",
)
@click.option(
    "--on-error",
    type=click.Choice(("stop", "skip")),
    default="stop",
    show_default=True,
    help="What to do with a malformed row.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(("trig", "nquads")),
    default="trig",
    show_default=True,
    help="The output format of events.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N events.")
@arguments.FUNCTIONS_OPTION
def map_command(
    files: Sequence[str],
    suggest: bool,
    time_column: str | None,
    arrival_time: bool,
    time_unit: str,
    input_format: str | None,
    on_error: str,
    format_: str,
    limit: int | None,
    functions: Sequence[str],
) -> None:
    """Print the events that a mapping creates from rows.

    With --suggest, print a mapping for the columns of the file. FILE is CSV or TSV with a header,
    JSON lines, Parquet or Arrow. The output is a stream: every event is a named graph with a
    timestamp.
    """
    arguments.load_functions(functions)
    if suggest:
        _suggest(files, input_format)
        return
    if len(files) < 2:
        raise click.UsageError("name a mapping and a file, or use --suggest FILE")
    if time_column is not None and arrival_time:
        raise click.UsageError("--time-column and --arrival-time cannot be used together")
    from spaseq.io.read_options import ReadOptions
    from spaseq.io.rows.formats import row_format_of
    from spaseq.io.rows.source import RowSource

    if row_format_of(files[0]) is not None:
        mappings = [path for path in files if row_format_of(path) is None] or ["MAPPING.rq"]
        rows = [path for path in files if row_format_of(path) is not None]
        order = " ".join((*mappings, *rows))
        raise click.UsageError(f"the mapping comes first: spaseq map {order}")

    mapping = arguments.mapping_file(files[0])
    for path in files[1:]:
        arguments.check_file(path, "MAPPING.rq FILE")
    options = ReadOptions(
        arrival_time=arrival_time,
        unit=time_unit,  # type: ignore[arg-type]
        on_error=on_error,  # type: ignore[arg-type]
        syntax=input_format,
        time_column=time_column,
    )
    source = RowSource("", files[1:], options, log=reports.log, mapping=mapping)
    shown = dict(mapping.tree.prologue.prefixes)
    writer = _nquads if format_ == "nquads" else _trig(shown)
    try:
        for number, event in enumerate(islice(source, limit), 1):
            for line in writer(event, number):
                reports.output(line)
    finally:
        reports.report_left_out([source])


def _suggest(files: Sequence[str], format_: str | None) -> None:
    from spaseq.io.rows.suggest import suggest

    if len(files) != 1:
        raise click.UsageError("--suggest takes one file")
    arguments.check_file(files[0], "--suggest")
    reports.output(suggest(files[0], format_).rstrip("\n"))


Writer = Callable[["Event", int], Iterator[str]]


def _nquads(event: Event, number: int) -> Iterator[str]:
    from spaseq.rdf.time import canonical_literal

    name = f"_:event{number}" if event.name is None else str(event.name)
    yield f"{name} <{_GENERATED_AT}> {canonical_literal(event.time)} ."
    for subject, predicate, value in event.facts:
        yield f"{subject} {predicate} {value} {name} ."


def _trig(prefixes: dict[str, str]) -> Writer:
    """A writer of TriG with the prefixes of a mapping, which precede the first event."""
    from spaseq.rdf.time import canonical_literal

    prefixes = {**_PREFIXES, **prefixes}
    if _PREFIXES["prov"] != prefixes["prov"]:
        raise click.UsageError("the mapping declares prov: as another namespace; use nquads")
    longest = sorted(prefixes.items(), key=lambda item: -len(item[1]))

    def shown(term: Term) -> str:
        text = str(term)
        for prefix, iri in longest:
            if text.startswith(f"<{iri}") and _LOCAL.fullmatch(text[len(iri) + 1 : -1]):
                return f"{prefix}:{text[len(iri) + 1 : -1]}"
            typed = f"^^<{iri}"
            if text.endswith(">") and typed in text and text.startswith('"'):
                head, _, local = text.rpartition(typed)
                if _LOCAL.fullmatch(local[:-1]):
                    return f"{head}^^{prefix}:{local[:-1]}"
        return text

    def written(event: Event, number: int) -> Iterator[str]:
        if number == 1:
            for prefix, iri in prefixes.items():
                yield f"@prefix {prefix}: <{iri}> ."
        name = f"_:event{number}" if event.name is None else shown(event.name)
        yield f"{name} prov:generatedAtTime {shown(canonical_literal(event.time))} ."
        yield f"{name} {{"
        for subject, facts in groupby(event.facts, lambda fact: fact[0]):
            said = [
                f"{'a' if str(predicate) == _TYPE else shown(predicate)} {shown(value)}"
                for _, predicate, value in facts
            ]
            yield f"  {shown(subject)} " + " ;\n    ".join(said) + " ."
        yield "}"

    return written

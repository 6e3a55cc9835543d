"""The command `convert`: a stream of events from one RDF syntax to another."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from spaseq.cli import arguments, reports
from spaseq.cli.groups import CommandWithExamples
from spaseq.cli.inputs import READING, read_options
from spaseq.cli.run_command import run
from spaseq.io.formats import EVENT_FORMATS, event_format


@click.command(
    cls=CommandWithExamples,
    epilog="""\
  spaseq convert trades.nq trades.jelly
  spaseq convert trades.nq.gz trades.nt
  spaseq convert data.nt events.trig --events triples:2
  spaseq convert - - --input-format jelly --to messages < trades.jelly
""",
)
@click.argument("source", metavar="IN")
@click.argument("output", metavar="OUT")
@click.option(
    "--to",
    "name",
    type=click.Choice(tuple(EVENT_FORMATS)),
    help="The syntax of OUT. By default its extension decides. messages is RDF Messages in "
    "N-Quads.",
)
def convert(source: str, output: str, name: str | None, **reading: Any) -> None:
    """Write the events of a stream in another syntax.

    Events keep their names and times.

    IN and OUT are files, or - for standard input and output. nq, trig and jsonld have one named
    graph per event; nt, ttl and messages are RDF Messages; Jelly has one frame per event.
    """
    from spaseq.errors import SpaseqError
    from spaseq.io.event_writers import write_events
    from spaseq.io.read_options import WORKERS
    from spaseq.io.rows.formats import row_format_of
    from spaseq.io.sinks import STDOUT, unwritable
    from spaseq.pipeline import file_sources

    if output == arguments.STDIN and name is None:
        raise click.UsageError("standard output has no extension: name the syntax with --to")
    format = event_format(output, name)
    if source != arguments.STDIN and not os.path.exists(source):
        raise click.UsageError(f"{source}: there is no such file")
    if row_format_of(source) is not None and reading["input_format"] is None:
        raise click.UsageError(
            f"{source} has rows, which a mapping turns into events: spaseq map MAPPING.rq {source} "
            f"prints them, and spaseq map --suggest {source} writes a mapping"
        )
    if source == arguments.STDIN and sys.stdin is None:
        raise click.UsageError("standard input is closed")
    (events,) = file_sources(
        {"": [source]}, read_options(**reading, time_column=None, workers=WORKERS), log=reports.log
    )
    shown = STDOUT if output == arguments.STDIN else output
    if output == arguments.STDIN:
        if sys.stdout is None:
            raise click.UsageError("standard output is closed; name a file")
        out = sys.stdout.buffer
    else:
        arguments.check_output(output, [source])
        try:
            out = open(output, "wb")  # noqa: SIM115 (closed below)
        except OSError as error:
            raise SpaseqError(f"{output}: cannot be written: {error.strerror or error}") from error
    try:
        try:
            writer = format.open(out)
            try:
                write_events(events.batches(), writer, out, events.live)
            finally:
                writer.close()
                out.flush()
        finally:
            if output != arguments.STDIN:
                out.close()
            reports.report_left_out([events])
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritable(shown, error) from error


convert.params += [option for option in run.params if option.name in READING]

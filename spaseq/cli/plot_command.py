"""The command `plot`: a time line of matches."""

from __future__ import annotations

import sys

import click

from spaseq.cli import arguments, reports
from spaseq.cli.groups import CommandWithExamples

MOST = 500  # repeated here, because importing the drawing would slow down `--help`


@click.command(
    cls=CommandWithExamples,
    epilog="  spaseq plot matches.jsonl > matches.svg\n"
    "  spaseq run query.rq --stream s=s.nq --format jsonl | spaseq plot - -o matches.svg\n",
)
@click.argument("file", metavar="MATCHES.jsonl")
@click.option("--output", "-o", metavar="FILE", help="The image. The default is standard output.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=MOST,
    show_default=True,
    metavar="N",
    help="Show the first N matches and count the others.",
)
def plot(file: str, output: str | None, limit: int) -> None:
    """Draw a time line of matches as an SVG image.

    MATCHES.jsonl is the output of `spaseq run --format jsonl`; - is standard input. Each bar is a
    match, and the dots on it are its events.
    """
    from spaseq.explain.timeline import plot as drawn
    from spaseq.explain.timeline import read_matches

    if file != arguments.STDIN:
        arguments.check_file(file, "MATCHES.jsonl")
    elif sys.stdin is None:
        raise click.UsageError("standard input is closed")
    if output is not None:
        arguments.check_output(output, [file])
    with click.open_file(file, "rb") as lines:
        picture = drawn(read_matches(lines, "<stdin>" if file == "-" else file), limit)
    if output is None:
        reports.output(str(picture).rstrip("\n"))
    else:
        picture.save(output)

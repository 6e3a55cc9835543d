"""The command `fmt`: format query files."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from spaseq.cli import arguments, reports
from spaseq.cli.groups import CommandWithExamples

DIFFERENT = 1
"""The exit status of `--check` if a file is formatted differently."""


@click.command(
    "fmt",
    cls=CommandWithExamples,
    epilog="  spaseq fmt queries/*.rq\n  spaseq fmt --check queries/*.rq\n"
    "  spaseq fmt - < query.rq\n",
)
@click.argument("files", nargs=-1, required=True, metavar="QUERY.rq...", type=click.Path())
@click.option(
    "--check",
    is_flag=True,
    help="Change no file. List the files that would change, and exit with status 1 if there are "
    "any.",
)
def fmt(files: Sequence[str], check: bool) -> int | None:
    """Format query files in place.

    The file name - reads standard input and writes standard output. Each clause and definition
    begins a line, braces indent by two spaces, and keywords are in capitals. The command keeps
    comments, other line breaks and the order of all parts. It also formats mappings of rows.
    """
    from spaseq.parser.layout import laid_out

    # All are read before the first is written, so that a faulty file changes none.
    read = arguments.read_queries(files)
    laid = [(query, laid_out(query.text, query.path)) for query in read]
    changed = [query.path for query, text in laid if text != query.text]
    if check:
        for path in changed:
            reports.log(f"{path} would be reformatted", prefix="")
        return DIFFERENT if changed else None
    for path, (query, text) in zip(files, laid, strict=True):
        if path == arguments.STDIN:
            sys.stdout.write(text)
        elif text != query.text:
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            reports.log(f"{path} changed", prefix="")
    return None

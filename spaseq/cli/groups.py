"""Commands and their group: help texts that end in examples, and silent broken pipes."""

from __future__ import annotations

import os
import sys
from typing import Any

import click


class QuietGroup(click.Group):
    """A group of commands that exits silently when the reader closes its output."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            return result
        except BrokenPipeError:
            # The interpreter flushes standard output at exit; that must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in `click.Group`; for a query in place of a command, the error shows the command."""
        if args and args[0] not in self.commands and args[0].endswith((".rq", ".sparql")):
            raise click.UsageError(
                f"{args[0]} is not a command; to run a query: spaseq run {args[0]} …", ctx
            )
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write(self.epilog, formatter)


class CommandWithExamples(click.Command):
    """A command whose epilog holds examples, printed verbatim."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write(self.epilog, formatter)


def _write(examples: str | None, formatter: click.HelpFormatter) -> None:
    if examples:
        formatter.write("\nExamples:\n" + examples)

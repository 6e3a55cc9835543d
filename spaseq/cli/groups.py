"""Commands and their group: help that ends in examples, and an end without noise."""

from __future__ import annotations

import os
import sys
from typing import Any

import click


class QuietGroup(click.Group):
    """A group of commands that ends well when whoever reads its output has left."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            return result
        except BrokenPipeError:
            # The interpreter flushes once more at its end; that must go nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write(self.epilog, formatter)


class CommandWithExamples(click.Command):
    """A single command; its epilog is examples, printed as they are written."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write(self.epilog, formatter)


def _write(examples: str | None, formatter: click.HelpFormatter) -> None:
    if examples:
        formatter.write("\nExamples:\n" + examples)

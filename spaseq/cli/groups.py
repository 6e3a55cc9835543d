"""Commands and their group: help texts that end in examples, and silent broken pipes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import click


class QuietGroup(click.Group):
    """A group of commands that exits silently when the reader closes its output.

    Args:
        instead: Words that other tools have as commands → what to write instead.
    """

    def __init__(self, *args: Any, instead: Mapping[str, str] = MappingProxyType({}), **given: Any):
        super().__init__(*args, **given)
        self._instead = instead

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            return result
        except click.UsageError as error:
            name = ctx.invoked_subcommand
            if error.ctx is None and name is not None and name in self.commands:
                # An option without its argument: click does not say of which command.
                error.ctx = click.Context(self.commands[name], ctx, name)
            raise
        except BrokenPipeError:
            # The interpreter flushes standard output at exit; that must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As in `click.Group`; the error for an option of a command shows where it belongs."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            owners = _commands_with(self, error.option_name)
            if not owners:
                raise
            meant = next((owner for owner in owners if owner.split()[-1] in args), owners[0])
            raise click.UsageError(
                f"{error.option_name} is an option of a command, and comes after it: "
                f"{ctx.command_path} {meant} {error.option_name} …",
                ctx,
            ) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in `click.Group`; `help COMMAND` shows the help of the command.

        For a query in place of a command, the error shows the command.
        """
        if args and args[0] == "help" and "help" not in self.commands:
            if not args[1:]:
                self.parse_args(ctx, ["--help"])
            return self.resolve_command(ctx, [*args[1:], "--help"])
        if args and args[0] not in self.commands and args[0].endswith((".rq", ".sparql")):
            raise click.UsageError(
                f"{args[0]} is not a command; to run a query: spaseq run {args[0]} …", ctx
            )
        if args and args[0] not in self.commands and args[0] in self._instead:
            meant = f"{ctx.command_path} {self._instead[args[0]]}"
            raise click.UsageError(f"{args[0]} is not a command; did you mean {meant}?", ctx)
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write(self.epilog, formatter)


class CommandWithExamples(click.Command):
    """A command whose epilog holds examples, printed verbatim."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write(self.epilog, formatter)


def _commands_with(group: click.Group, option: str) -> list[str]:
    """The commands of a group and of its groups that have an option."""
    found = []
    for name, command in group.commands.items():
        if any(option in (*one.opts, *one.secondary_opts) for one in command.params):
            found.append(name)
        if isinstance(command, click.Group):
            found += [f"{name} {inner}" for inner in _commands_with(command, option)]
    return found


def _write(examples: str | None, formatter: click.HelpFormatter) -> None:
    if examples:
        formatter.write("\nExamples:\n" + examples)

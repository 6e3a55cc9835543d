"""The command line: parses arguments, calls the package, and returns an exit status.

Only `main` converts errors to messages and exit statuses: 0 for success, 1 for a failure while
running, 2 for invalid arguments, queries or input, 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP
(`stopping`).
Commands import the engine when they run, so that `--help` and shell completion start fast.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

import click

from spaseq.cli.bench_command import bench
from spaseq.cli.commands import check, completion, explain, generate
from spaseq.cli.convert import convert
from spaseq.cli.fmt_command import fmt
from spaseq.cli.groups import QuietGroup
from spaseq.cli.map_command import map_command
from spaseq.cli.plot_command import plot
from spaseq.cli.remote_command import remote
from spaseq.cli.reports import discard_output, log, use_json, use_utf8
from spaseq.cli.run_command import run
from spaseq.cli.serve_command import serve
from spaseq.cli.stopping import Stopped, stoppable
from spaseq.errors import EventError, InputError, LimitExceeded, QueryError, SpaseqError

DONE, FAILED, UNUSABLE, INTERRUPTED = 0, 1, 2, 130


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from spaseq import __version__

        click.echo(f"spaseq {__version__}")
        context.exit()


_INSTEAD = {
    "eval": "run", "execute": "run", "match": "run", "query": "run", "why": "run … --why",
    "validate": "check", "lint": "check", "format": "fmt", "plan": "explain", "server": "serve",
    "start": "serve", "client": "remote", "benchmark": "bench", "version": "--version",
}  # fmt: skip


@click.group(
    cls=QuietGroup,
    instead=_INSTEAD,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\
  spaseq generate stock --out demo
  spaseq run demo/query.rq --stream trades=demo/trades.nq \\
    --kb http://example.org/stock/kb=demo/kb.ttl
""",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
@click.pass_context
def command_line(context: click.Context) -> None:
    """Find patterns in time over streams of RDF graphs."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


_COMMANDS = (
    run, check, fmt, explain, convert, map_command, plot, generate, bench, serve, remote,
    completion,
)  # fmt: skip
for _command in _COMMANDS:
    command_line.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; `arguments` default to `sys.argv[1:]`."""
    use_json(False)
    if os.name == "nt":
        use_utf8(sys.stdout, sys.stderr)
    try:
        with stoppable():
            status = command_line.main(
                None if arguments is None else list(arguments),
                prog_name="spaseq",
                standalone_mode=False,
            )
        return status if isinstance(status, int) else DONE
    except (click.Abort, KeyboardInterrupt) as error:
        stopped = error if isinstance(error, Stopped) else error.__cause__ or error.__context__
        if isinstance(stopped, Stopped):
            log(str(stopped))
            return stopped.status
        log("interrupted")
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return DONE
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx is not None else "spaseq"
        # click lists the choices of a missing argument on separate lines.
        said = " ".join(error.format_message().split())
        log(f"error: {said} (see {command} --help)")
        return UNUSABLE
    except click.ClickException as error:
        log(f"error: {error.format_message()}")
        return UNUSABLE
    except QueryError as error:
        log(str(error), prefix="", level="error")
        return UNUSABLE
    except InputError as error:
        log(f"error: {error}")
        return UNUSABLE
    except LimitExceeded as error:
        placed = error.diagnostic is not None
        log(str(error) if placed else f"error: {error}", prefix="" if placed else "spaseq: ")
        return FAILED
    except EventError as error:
        log(f"error: {error}")
        return FAILED
    except SpaseqError as error:
        log(f"error: {error}")
        return UNUSABLE
    except MemoryError as error:
        log(f"error: out of memory: {error or 'a part of the run'}; see --max-memory, --max-groups")
        return FAILED
    except OSError as error:
        place = error.filename or "standard output: cannot be written"
        log(f"error: {place}: {error.strerror or error}")
        discard_output()
        return FAILED
    finally:
        if arguments is None:
            # The process ends, so its last collections need not visit the imported modules.
            gc.freeze()

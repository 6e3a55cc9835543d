"""The options of `run` for live runs, and the live run itself."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from spaseq.cli import arguments, reasons, reports
from spaseq.cli.stopping import ending
from spaseq.cli.watching import monitored, several, shown_progress
from spaseq.records import dataclass

if TYPE_CHECKING:
    from spaseq.io.read_options import ReadOptions
    from spaseq.live.changed_queries import StatePolicy
    from spaseq.live.monitoring import Monitor
    from spaseq.live.session import LiveOptions
    from spaseq.pipeline import AtEnd
    from spaseq.program import Program

_F = TypeVar("_F", bound=Callable[..., Any])
NEVER = "never"

_OPTIONS = (
    click.option(
        "--follow",
        is_flag=True,
        help="Keep reading files that grow or are rotated, and folders that fill, until Ctrl-C or "
        "SIGTERM.",
    ),
    click.option(
        "--state",
        "state",
        metavar="DIR",
        help="Keep checkpoints in this folder. The same command then continues where it stopped, "
        "and the output file or table has each match exactly once.",
    ),
    click.option(
        "--checkpoint-every",
        default="10s",
        show_default=True,
        metavar="DURATION",
        help="The time between two checkpoints.",
    ),
    click.option(
        "--state-policy",
        "state_policy",
        multiple=True,
        metavar="[QUERY=]refuse|keep|drain|fresh",
        help="What to do with the state of a query that has changed: refuse it (the default), keep "
        "its partial matches if they fit, let its old version finish them, or start it fresh. Can "
        "be repeated for single queries.",
    ),
    click.option(
        "--idle",
        metavar="DURATION",
        help="Stop waiting for a stream that has been silent for this long.",
    ),
    click.option(
        "--clock",
        metavar="[DURATION]",
        is_flag=False,
        flag_value="1s",
        help="While no event arrives, advance event time with the clock of this machine, this far "
        "behind it (default: 1s). For sources whose timestamps are clock times.",
    ),
    click.option(
        "--max-ahead",
        metavar="DURATION",
        help="Set events aside that are further ahead of the clock of their streams (--late writes "
        "them), and events that are out of order.",
    ),
    click.option(
        "--graph-quiet",
        default="200ms",
        show_default=True,
        metavar="DURATION|never",
        help="Treat the open graph of a source as complete once the source has been silent for "
        "this long.",
    ),
    click.option(
        "--late",
        metavar="FILE",
        help="Write events that arrive too late to this file, as JSON lines with the reason.",
    ),
    click.option(
        "--metrics",
        metavar="HOST:PORT",
        help="Serve /metrics (Prometheus), /healthz and /readyz. :PORT listens on 127.0.0.1. Any "
        "address beyond loopback needs --insecure.",
    ),
    click.option(
        "--insecure",
        is_flag=True,
        help="Let --metrics listen beyond loopback, without encryption or a password.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(("text", "json")),
        default="text",
        show_default=True,
        is_eager=True,
        expose_value=False,
        callback=lambda context, parameter, value: reports.use_json(value == "json"),
        help="The format of messages on standard error.",
    ),
)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of `run` that are not part of the program, the sources or the KB."""

    format: str
    output: str | None
    limit: int | None
    progress: bool
    stats: bool
    stats_json: bool
    why: bool
    entail: str | None
    limits: Mapping[str, Any]
    at_end: AtEnd
    match_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options, as given."""

    follow: bool
    state: str | None
    checkpoint_every: str
    state_policy: Sequence[str]
    idle: str | None
    clock: str | None
    max_ahead: str | None
    graph_quiet: str
    late: str | None
    metrics: str | None
    insecure: bool

    def is_live(self, files: Mapping[str, Sequence[str]], output: str | None) -> bool:
        """Whether the live stage runs the command."""
        urls = [url for each in files.values() for url in each]
        return (
            self.follow
            or self.state is not None
            or self.idle is not None
            or self.clock is not None
            or self.max_ahead is not None
            or self.late is not None
            or self.metrics is not None
            or any(map(arguments.is_source_url, urls))
            or (output is not None and arguments.is_sink_url(output))
        )


def live_options(command: _F) -> _F:
    """Add the options to a command, which passes its keywords to `taken`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def taken(keywords: dict[str, Any]) -> Wanted:
    """Remove the options from the keywords of a command."""
    return Wanted(**{name: keywords.pop(name) for name in Wanted.__dataclass_fields__})


def run_live(
    program: Program,
    kb: Mapping[str, str],
    files: Mapping[str, Sequence[str]],
    reading: ReadOptions,
    wanted: Wanted,
    shown: RunOptions,
) -> None:
    """Run until the sources end or a signal arrives."""
    from spaseq.live.coordinator import Timing
    from spaseq.live.session import LiveOptions

    quiet = None if wanted.graph_quiet == NEVER else seconds(wanted.graph_quiet, "--graph-quiet")
    idle = None if wanted.idle is None else seconds(wanted.idle, "--idle")
    clock = None if wanted.clock is None else seconds(wanted.clock, "--clock")
    ahead = None if wanted.max_ahead is None else seconds(wanted.max_ahead, "--max-ahead")
    if clock is not None and quiet is None:
        raise click.UsageError(
            "--clock would overtake the open graph, so it cannot be used with --graph-quiet never"
        )
    every = seconds(wanted.checkpoint_every, "--checkpoint-every")
    output = None if shown.output == arguments.STDIN else shown.output
    policies = _policies(wanted.state_policy, program.names)
    options = LiveOptions(
        wanted.follow,
        wanted.state,
        policies.pop("", "refuse"),
        policies,
        wanted.late,
        output,
        shown.format,
        output is None and sys.stdout is not None and sys.stdout.isatty(),
        shown.limit,
        Timing(quiet, idle, every, clock, ahead),
        shown.at_end == "close",
        shown.match_columns,
    )
    with monitored(wanted.metrics, wanted.insecure) as monitor:
        _run(program, kb, files, reading, options, shown, monitor)


def _run(
    program: Program,
    kb: Mapping[str, str],
    files: Mapping[str, Sequence[str]],
    reading: ReadOptions,
    options: LiveOptions,
    shown: RunOptions,
    monitor: Monitor | None,
) -> None:
    from spaseq.errors import QueryWarning
    from spaseq.live.session import Session

    elapsed = reports.stopwatch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QueryWarning)  # `kb_warnings` has reported them
        session = Session(
            program, files, reading, options, kb, shown.entail, shown.limits, reports.log
        )
    run = session.run
    try:
        with (
            ending(session.stop),
            reasons.shown_on_signal(run) as answer,
            shown_progress(shown.progress) as progress,
        ):
            watch = several(progress, None if monitor is None else monitor.show)
            session.go(answer, watch)
    finally:
        written = session.written
        session.close()
        shed = sum(query.shed for query in run.queries)
        reports.report_left_out(session.sources, shed, options.late)
        reports.report_closed(sum(query.closed_by_end for query in run.queries))
        reports.report_failures(run.rows.matchers.calls.failures)
        reports.report_result_errors(run.evaluation)
        if shown.stats:
            reports.print_statistics(session.sources, run.stats, written, elapsed())
        if shown.stats_json:
            reports.print_json_statistics(session.sources, run.stats, written, elapsed())
        if shown.why:
            # The sources may be endless, so their first events are not read again.
            reports.log(run.why_not().rstrip("\n"), prefix="")
        elif not written and run.stats["events"]:
            reasons.print_first(run)


def _policies(given: Sequence[str], names: Sequence[str]) -> dict[str, StatePolicy]:
    """Name of a query → its policy; the empty name has that of all others."""
    found: dict[str, StatePolicy] = {}
    for text in given:
        name, _, policy = text.rpartition("=")
        if policy not in ("refuse", "keep", "drain", "fresh"):
            raise click.UsageError(f"--state-policy {text}: write refuse, keep, drain or fresh")
        if name and name not in names:
            raise click.UsageError(
                f"--state-policy {text}: there is no query {name}, only {', '.join(names)}"
            )
        found[name] = cast("StatePolicy", policy)
    return found


def check_paths(files: Mapping[str, Sequence[str]], follow: bool) -> None:
    """Refuse paths that a live run cannot read."""
    for paths in files.values():
        for path in paths:
            if arguments.is_source_url(path):
                continue
            if os.path.isdir(path):
                if len(paths) > 1:
                    raise click.UsageError(f"{path}: a folder is the only source of its stream")
            elif follow and not os.path.exists(path) and path != arguments.STDIN:
                folder = os.path.dirname(path) or "."
                if not os.path.isdir(folder):
                    raise click.UsageError(f"{path}: there is no folder {folder}")
            else:
                arguments.check_file(path, "--stream")


def seconds(text: str, option: str, least: float | None = None) -> float:
    """The seconds of a duration, which is positive, or at least `least`.

    Raises:
        click.UsageError: for any other text.
    """
    from spaseq.errors import EventError
    from spaseq.rdf.time import duration_micros

    try:
        micros = duration_micros(text)
    except EventError as error:
        raise click.UsageError(f"{option}: {error}") from error
    if micros < 0 or (micros == 0 and least is None):
        raise click.UsageError(f"{option}: the duration must be positive")
    return micros / 1e6

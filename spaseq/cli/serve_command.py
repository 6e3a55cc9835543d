"""`spaseq serve`: its options, and what they mean together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from spaseq.cli.arguments import byte_size
from spaseq.cli.config import serve_config_option
from spaseq.cli.groups import CommandWithExamples
from spaseq.cli.live_command import NEVER, seconds

if TYPE_CHECKING:
    from spaseq.server.serve import Options

_F = TypeVar("_F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--listen", default="127.0.0.1:8642", show_default=True, metavar="HOST:PORT",
                 help="The address to listen on; :PORT listens on 127.0.0.1. Any address beyond "
                 "loopback needs tokens and TLS."),
    click.option(
        "--queries",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False),
        help="Run the queries of the .rq files in this folder, and follow its changes.",
    ),
    click.option("--state", metavar="DIR",
                 help="Keep queries, state, accepted events and matches in this folder."),
    click.option("--paused", is_flag=True,
                 help="Start with all queries paused, so that none sees an event of the state."),
    click.option("--manage", is_flag=True,
                 help="Allow clients to change queries and the knowledge base."),
    click.option("--stream", "streams", multiple=True, metavar="NAME=SOURCE",
                 help="Feed a stream from a file, folder or URL. Repeat the option for more "
                 "files."),
    click.option("--sink", "sinks", multiple=True, metavar="NAME=URL",
                 help="A named sink to which queries can send their matches."),
    click.option("--queries-sink", "folder_sinks", multiple=True, metavar="NAME",
                 help="Send the matches of the queries in --queries to this sink."),
    click.option("--kb", "kbs", multiple=True, metavar="IRI=FILE|URL",
                 help="A graph of the knowledge base."),
    click.option("--entail", type=click.Choice(("rdfs", "owl-ql")),
                 help="Also match triples entailed by the schema of the knowledge base."),
    click.option("--lateness", metavar="DURATION",
                 help="Reorder the events of a stream that are late by at most this duration."),
    click.option("--idle", default="10s", show_default=True, metavar="DURATION|never",
                 help="Stop waiting for a stream that has been silent for this long."),
    click.option("--max-ahead", metavar="DURATION",
                 help="Set events aside that are further ahead of the clock of their streams."),
    click.option("--events", "framing", type=click.Choice(("auto", "graph", "message")),
                 default="auto", show_default=True, help="How bodies are split into events."),
    click.option("--time-predicate", metavar="IRI", help="The predicate of an event's timestamp."),
    click.option("--arrival-time", is_flag=True,
                 help="Use the arrival time as the event's timestamp."),
    click.option("--on-error", type=click.Choice(("stop", "skip")), default="stop",
                 show_default=True,
                 help="What to do with malformed data of --stream: stop reading the source, or "
                 "skip the data. Clients choose this in each request."),
    click.option("--checkpoint-every", default="10s", show_default=True, metavar="DURATION",
                 help="The time between two checkpoints."),
    click.option("--tokens", metavar="FILE",
                 help="A file with lines NAME ROLE[,ROLE] TOKEN. The roles are read, ingest and "
                 "manage. The environment variable SPASEQ_TOKENS can contain the lines instead."),
    click.option("--tls-cert", metavar="FILE", help="The certificate, in PEM."),
    click.option("--tls-key", metavar="FILE", help="The key of the certificate, in PEM."),
    click.option("--insecure", is_flag=True,
                 help="Listen beyond loopback without TLS, behind a proxy that encrypts."),
    click.option("--allow-url", "allowed_urls", multiple=True, metavar="URL",
                 help="Allow clients to name URLs below this one in queries and KB graphs."),
    click.option("--allow-private", is_flag=True,
                 help="Allow private addresses for the host names of such URLs."),
    click.option("--allow-origin", "origins", multiple=True, metavar="ORIGIN",
                 help="Allow web pages of this origin to use the server."),
    click.option("--max-groups", type=click.IntRange(1), metavar="N",
                 help="The maximum number of groups of partial matches per query."),
    click.option("--max-steps", type=click.IntRange(1), metavar="N",
                 help="The maximum number of steps of a query for one event."),
    click.option("--max-matches", type=click.IntRange(1), default=100_000, show_default=True,
                 metavar="N", help="The maximum number of matches per query that one event "
                 "completes, or that come out at one time because windows close."),
    click.option("--max-memory", type=byte_size, metavar="SIZE",
                 help="The maximum memory (bytes, or 512M, 2G) for the rows of one event in a "
                 "graph pattern."),
    click.option("--on-limit", type=click.Choice(("stop", "shed")), default="stop",
                 show_default=True,
                 help="What to do beyond a limit: stop the query, or drop the oldest groups."),
    click.option("--max-body", type=click.IntRange(1), default=1 << 24, show_default=True,
                 metavar="BYTES", help="The maximum size of a body of events or of a KB graph."),
    click.option("--max-queries", type=click.IntRange(1), default=10_000, show_default=True,
                 metavar="N", help="The maximum number of standing queries."),
    click.option("--max-subscribers", type=click.IntRange(1), default=4096, show_default=True,
                 metavar="N", help="The maximum number of simultaneous subscribers."),
    click.option("--log-format", type=click.Choice(("text", "json")), default="text",
                 show_default=True, help="The lines on standard error: text, or JSON objects."),
    click.option("--replay", type=click.IntRange(1), default=10_000, show_default=True,
                 metavar="N",
                 help="The number of matches per query that subscribers can read again."),
)  # fmt: skip


def _with_options(command: _F) -> _F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(
    cls=CommandWithExamples,
    epilog="  spaseq serve --manage --state state\n"
    "  spaseq serve --queries queries --listen :9000\n"
    "  spaseq serve --queries queries --stream trades=kafka://localhost/trades\n",
    context_settings={"allow_extra_args": True},
)
@_with_options
@serve_config_option
def serve(**given: Any) -> None:
    """Serve standing queries over HTTP (pip install spaseq[serve])."""
    if extra := click.get_current_context().args:
        raise click.UsageError(
            f"serve takes no queries as arguments: name their folder with --queries DIR, or add "
            f"them to the running server: spaseq remote add {extra[0]}"
        )
    from spaseq.server import require_packages

    require_packages()
    from spaseq.server.serve import serve as run

    run(_options(given))


def _options(given: dict[str, Any]) -> Options:
    from spaseq.io.read_options import Framing, ReadOptions
    from spaseq.live.monitoring import parse_address
    from spaseq.rdf.limits import BOUNDS
    from spaseq.rdf.time import duration_micros
    from spaseq.server.context import RequestLimits
    from spaseq.server.serve import Options

    try:
        host, port = parse_address(given["listen"])
    except ValueError as error:
        raise click.UsageError(f"--listen: {error}") from error
    if (given["tls_cert"] is None) != (given["tls_key"] is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    lateness = given["lateness"]
    if lateness is not None:
        seconds(lateness, "--lateness", least=0.0)
    ahead = given["max_ahead"]
    if ahead is not None:
        seconds(ahead, "--max-ahead")
    sinks = _pairs(given["sinks"], "--sink")
    for name in given["folder_sinks"]:
        if name not in sinks:
            raise click.UsageError(f"--queries-sink {name}: no --sink declares it")
    limits = {name: given[name] for name in (*BOUNDS, "on_limit")}
    return Options(
        host=host,
        port=port,
        state=given["state"],
        queries=given["queries"],
        manages=given["manage"],
        kb=_pairs(given["kbs"], "--kb"),
        sources=_sources(given["streams"]),
        sinks=sinks,
        folder_sinks=given["folder_sinks"],
        reading=ReadOptions(
            framing=Framing.parse(given["framing"]),
            time_predicate=given["time_predicate"],
            arrival_time=given["arrival_time"],
            on_error=given["on_error"],
            lateness=None if lateness is None else duration_micros(lateness),
        ),
        entail=given["entail"],
        run_limits=limits,
        max_ahead=None if ahead is None else duration_micros(ahead),
        idle=None if given["idle"] == NEVER else seconds(given["idle"], "--idle"),
        checkpoint=seconds(given["checkpoint_every"], "--checkpoint-every"),
        replay=given["replay"],
        limits=RequestLimits(
            body=given["max_body"],
            subscribers=given["max_subscribers"],
            queries=given["max_queries"],
        ),
        tokens=given["tokens"],
        certificate=given["tls_cert"],
        key=given["tls_key"],
        is_insecure=given["insecure"],
        allowed_urls=given["allowed_urls"],
        allow_private=given["allow_private"],
        origins=given["origins"],
        paused=given["paused"],
        logs_json=given["log_format"] == "json",
    )


def _sources(given: Sequence[str]) -> dict[str, list[str]]:
    """Name of a stream → its sources."""
    found: dict[str, list[str]] = {}
    for text in given:
        [(name, place)] = _pairs([text], "--stream").items()
        found.setdefault(name, []).append(place)
    if sum(place == "-" for places in found.values() for place in places) > 1:
        raise click.UsageError("--stream: standard input (-) can be used for one stream only")
    return found


def _pairs(given: Sequence[str], option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise click.UsageError(f"{option} {text}: write NAME=VALUE")
        if name in found:
            raise click.UsageError(f"{option} {name} is given twice")
        found[name] = value
    return found

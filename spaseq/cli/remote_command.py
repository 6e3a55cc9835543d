"""`spaseq remote`: the queries of a running server, from the shell."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from spaseq.cli.arguments import byte_size
from spaseq.cli.groups import QuietGroup
from spaseq.cli.reports import log
from spaseq.errors import InputError, SpaseqError

if TYPE_CHECKING:
    from spaseq.client import Client

_F = TypeVar("_F", bound=Callable[..., Any])
STDIN = "-"
DEFAULT_SERVER = "http://127.0.0.1:8642"
TOKEN_VARIABLE = "SPASEQ_TOKEN"
CHUNK_BYTES = 1 << 20
"""The size of a body when lines are pushed from a large file."""
_TYPES = {
    ".nq": "application/n-quads", ".nt": "application/n-triples", ".trig": "application/trig",
    ".ttl": "text/turtle", ".jsonld": "application/ld+json", ".ndjson": "application/x-ndjson",
    ".rdf": "application/rdf+xml", ".jelly": "application/x-jelly-rdf",
}  # fmt: skip


def _at_server(command: _F) -> _F:
    """Add the options that select the server; those of the group `remote` are their defaults."""

    @_server_options
    @wraps(command)
    def wrapped(
        server: str | None, token_env: str | None, timeout: float | None, **given: Any
    ) -> None:
        outer = click.get_current_context().parent
        group = {} if outer is None else outer.params
        url = server or group.get("server") or os.environ.get("SPASEQ_SERVER") or DEFAULT_SERVER
        token = os.environ.get(token_env or group.get("token_env") or TOKEN_VARIABLE)
        seconds = timeout or group.get("timeout")
        with _connected(url, token or None, seconds) as client:
            command(client, **given)

    return wrapped  # type: ignore[return-value]


def _server_options(command: _F) -> _F:
    server = click.option(
        "--server",
        metavar="URL",
        help=f"The server. The default is SPASEQ_SERVER, or {DEFAULT_SERVER}.",
    )
    token = click.option(
        "--token-env",
        metavar="NAME",
        help=f"The environment variable with the token. The default is {TOKEN_VARIABLE}.",
    )
    timeout = click.option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="How long to wait for an answer, and to push to a busy server. The default is 30 "
        "seconds for an answer, and as long as the server is busy.",
    )
    return server(token(timeout(command)))


@contextmanager
def _connected(server: str, token: str | None, timeout: float | None) -> Iterator[Client]:
    import httpx

    from spaseq.client import Client

    try:
        with Client(server, token, timeout=timeout) as client:
            yield client
    except httpx.ConnectError as error:
        raise SpaseqError(
            f"{server}: no server answers there ({error}): start one with spaseq serve, or name "
            "another by --server"
        ) from error
    except httpx.TimeoutException as error:
        raise SpaseqError(
            f"{server}: no answer in time: see --timeout SECONDS, and {server}/healthz"
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SpaseqError(f"{server}: {error or type(error).__name__}") from error


_INSTEAD = {
    "ls": "list", "queries": "list", "status": "list", "put": "add", "register": "add",
    "replace": "add", "delete": "rm", "remove": "rm", "send": "push", "tail": "watch",
    "matches": "watch",
}  # fmt: skip


@click.group(cls=QuietGroup, instead=_INSTEAD)
@_server_options
def remote(server: str | None, token_env: str | None, timeout: float | None) -> None:
    """Use a running server (`spaseq serve`)."""


@remote.command()
@click.argument("files", nargs=-1, required=True, metavar="QUERY.rq...")
@click.option("--name", help="The name of the query. The default is the name of the file.")
@click.option(
    "--replace",
    "state",
    type=click.Choice(("fresh", "keep", "drain")),
    default="fresh",
    show_default=True,
    help="What to do with the partial matches of the query that is replaced: drop them (fresh), "
    "keep them if they fit (keep), or let the old version finish them (drain).",
)
@click.option(
    "--bind",
    "bound",
    multiple=True,
    metavar="NAME=VALUE",
    help="Bind a variable of the query to a value.",
)
@click.option(
    "--sink",
    "sinks",
    multiple=True,
    metavar="NAME",
    help="Send the matches to a sink that the server declares.",
)
@click.option(
    "--entail",
    type=click.Choice(("none", "rdfs", "owl-ql")),
    help="The entailment of these queries, in place of the server's.",
)
@click.option(
    "--max-groups",
    type=click.IntRange(1),
    metavar="N",
    help="The maximum number of groups of partial matches per query.",
)
@click.option(
    "--max-steps",
    type=click.IntRange(1),
    metavar="N",
    help="The maximum number of steps of a query for one event.",
)
@click.option(
    "--max-matches",
    type=click.IntRange(1),
    metavar="N",
    help="The maximum number of matches of a query that one event completes.",
)
@click.option(
    "--max-memory",
    type=byte_size,
    metavar="SIZE",
    help="The maximum memory (bytes, or 512M, 2G) for the rows of one event in a graph pattern.",
)
@click.option(
    "--on-limit",
    type=click.Choice(("stop", "shed")),
    help="What to do beyond a limit: stop the query, or drop the oldest groups.",
)
@_at_server
def add(
    client: Client,
    files: Sequence[str],
    name: str | None,
    state: Any,
    bound: Sequence[str],
    sinks: Sequence[str],
    entail: Any,
    **limits: Any,
) -> None:
    """Register queries, or replace queries with the same names."""
    if name is not None and len(files) > 1:
        raise click.UsageError("--name is for one query")
    if name is None and STDIN in files:
        raise click.UsageError("a query from standard input needs --name")
    values = dict(_bound(text) for text in bound)
    for file in files:
        own = name or Path(file).stem
        client.put_query(
            own,
            _read(file).decode(),
            state,
            values,
            sinks=sinks,
            entail=entail,
            limits={limit: value for limit, value in limits.items() if value is not None},
        )
        click.echo(own)


def _bound(text: str) -> tuple[str, Any]:
    """`NAME=VALUE`; the value is JSON, or a plain text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--bind {text}: write NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


@remote.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@_at_server
def list_queries(client: Client, as_json: bool) -> None:
    """List the queries: name, status, matches."""
    queries = client.queries()
    width = max((len(one["name"]) for one in queries), default=0)
    for one in queries:
        if as_json:
            click.echo(json.dumps(one, ensure_ascii=False))
        else:
            failure = f"  {one['failure']}" if "failure" in one else ""
            click.echo(f"{one['name']:<{width}}  {one['status']:<7}  {one['matches']}{failure}")


@remote.command("rm")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--drain", is_flag=False, flag_value="", metavar="[DURATION]",
              help="First finish their partial matches, for at most this duration.")  # fmt: skip
@_at_server
def remove(client: Client, names: Sequence[str], drain: str | None) -> None:
    """Remove queries with their partial matches."""
    for name in names:
        client.remove_query(name, drain)


@remote.command()
@click.argument("stream")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--type", "media_type", help="The media type. By default the extension decides.")
@click.option("--on-error", type=click.Choice(("stop", "skip")), default="stop", show_default=True,
              help="What to do with malformed statements of N-Quads and N-Triples.")  # fmt: skip
@_at_server
def push(
    client: Client, stream: str, files: Sequence[str], media_type: str | None, on_error: str
) -> None:
    """Push the events of files, or of standard input (-), to a stream."""
    from spaseq.client import ServerError

    accepted = late = rejected = ahead = 0
    for file in files:
        kind = media_type or _TYPES.get(Path(file).suffix, "application/n-quads")
        lines = 0
        for body in _bodies(_read(file), kind):
            try:
                done = client.push(stream, body, kind, on_error == "skip")
            except ServerError as error:
                line = error.problem.get("line")
                if line is None:
                    raise
                raise InputError(str(error), file, lines + line) from error
            lines += body.count(b"\n")
            accepted += done.accepted
            late += done.late
            ahead += done.ahead
            rejected += done.rejected
    aside = f", ahead {ahead}" if ahead else ""
    click.echo(f"accepted {accepted}, late {late}, rejected {rejected}{aside}")


def _bodies(data: bytes, media_type: str) -> Iterator[bytes]:
    """A file as request bodies; N-Quads are cut between two graphs, any other file is one body."""
    if media_type != "application/n-quads" or b"MESSAGE" in data:
        yield data
        return
    start, at, graph = 0, 0, b""
    for line in data.splitlines(keepends=True):
        own = _graph_of(line)
        if own and own != graph:
            if at - start >= CHUNK_BYTES:
                yield data[start:at]
                start = at
            graph = own
        at += len(line)
    if start < len(data):
        yield data[start:]


def _graph_of(line: bytes) -> bytes:
    """The graph that a line of N-Quads is about: its name, or the subject that has the time."""
    words = line.split()
    if len(words) < 4 or words[0].startswith(b"#"):
        return b""
    return words[0] if b"generatedAtTime>" in words[1] else words[-2]


@remote.command()
@click.argument("name")
@click.option(
    "--from",
    "start",
    type=click.Choice(("now", "oldest")),
    default="now",
    show_default=True,
    help="Where to begin: with new matches, or with the oldest in the replay buffer.",
)
@click.option("--after", default="", metavar="ID", help="Continue after this match.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Stop after N matches.")
@click.option("--progress", is_flag=True, help="Also print watermarks and late events.")
@_at_server
def watch(
    client: Client, name: str, start: Any, after: str, limit: int | None, progress: bool
) -> None:
    """Print the matches of a query as JSON lines, until Ctrl-C."""
    from spaseq.client import ServedMatch

    for item in client.subscribe(name, start, after, limit):
        if isinstance(item, ServedMatch):
            click.echo(json.dumps({"id": item.id, **item.data}, ensure_ascii=False))
        elif item.kind == "reconnecting":
            log(f"{item.data['reason']}; trying again")
        elif progress or item.kind == "error":
            line = json.dumps({item.kind: dict(item.data)}, ensure_ascii=False)
            click.echo(line, err=item.kind == "error")
        sys.stdout.flush()


@remote.command()
@click.argument("name")
@click.option(
    "--event", metavar="FILE", help="Explain one event: a file with its graph in Turtle, or -."
)
@click.option("--at", metavar="TIME", help="The time of that event.")
@click.option("--stream", help="The stream of that event, if the query reads several.")
@_at_server
def why(client: Client, name: str, event: str | None, at: str | None, stream: str | None) -> None:
    """Show how far a query got and what stopped it, or explain one event."""
    if event is None:
        click.echo(client.why(name), nl=False)
        return
    moment: Any = at
    if at is not None:
        try:
            moment = float(at) if "." in at else int(at)
        except ValueError:
            moment = at
    answer = client.why_event(name, _read(event).decode(), moment, stream)
    for pattern in answer["patterns"]:
        click.echo(f"{pattern['gpm']}: {'matches' if pattern['matches'] else 'does not match'}")
        for reason in pattern["because"]:
            click.echo(f"  {reason}")
        for place in pattern.get("places", ()):
            if place["place"].split(": ", 1)[-1].startswith("^"):
                continue  # where every match begins
            click.echo(f"  {place['place']}: fits {place['fitting']} of {place['waiting']} groups")
            for reason in place["because"]:
                click.echo(f"    {reason}")


def _read(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()

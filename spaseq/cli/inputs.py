"""Arguments that several commands share: queries, and how streams are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from spaseq.cli import arguments, reports
from spaseq.cli.arguments import QueryFile

if TYPE_CHECKING:
    from spaseq.errors import QueryError
    from spaseq.io.read_options import ReadOptions
    from spaseq.program import Program

REGIMES = ("rdfs", "owl-ql")
# The options of `run` that determine how a stream is read.
READING = (
    "framing", "time_predicate", "arrival_time", "time_unit", "time_precision", "input_format",
    "contexts", "reuse_graph_names", "event_metadata", "max_memory", "on_error", "lateness",
)  # fmt: skip


def query_arguments(command: Callable[..., None]) -> Callable[..., None]:
    """The arguments that name the queries of a command."""
    files = click.argument("queries", nargs=-1, metavar="[QUERY.rq...]", type=click.Path())
    texts = click.option(
        "-q",
        "--query",
        "texts",
        multiple=True,
        metavar="TEXT",
        help="A query as text, in addition to the query files or instead of them. Can be repeated. "
        "The file name - stands for standard input.",
    )
    return files(texts(command))


def read_options(
    framing: str,
    time_predicate: str | None,
    arrival_time: bool,
    time_unit: str,
    time_precision: str,
    input_format: str | None,
    contexts: Sequence[str],
    reuse_graph_names: bool,
    event_metadata: bool,
    max_memory: int | None,
    on_error: str,
    lateness: str | None,
    time_column: str | None,
    workers: int,
) -> ReadOptions:
    """Check the options of the readers."""
    from spaseq.errors import EventError
    from spaseq.io.read_options import Framing, ReadOptions
    from spaseq.rdf.time import duration_micros

    if time_predicate is not None and arrival_time:
        raise click.UsageError("--time-predicate and --arrival-time cannot be used together")
    if time_column is not None and arrival_time:
        raise click.UsageError("--time-column and --arrival-time cannot be used together")
    try:
        cut = Framing.parse(framing)
        late = None if lateness is None else duration_micros(lateness)
    except ValueError as error:
        raise click.UsageError(f"--events: {error}") from error
    except EventError as error:
        raise click.UsageError(f"--lateness: {error}") from error
    return ReadOptions(
        framing=cut,
        time_predicate=time_predicate,
        arrival_time=arrival_time,
        unit=time_unit,  # type: ignore[arg-type]
        time_precision=time_precision,  # type: ignore[arg-type]
        on_error=on_error,  # type: ignore[arg-type]
        lateness=late,
        syntax=input_format,
        contexts=arguments.context_files(contexts),
        reuse_graph_names=reuse_graph_names,
        event_metadata=event_metadata,
        max_memory=max_memory,
        time_column=time_column,
        workers=workers,
    )


def needs_schema(entail: str | None, graphs: Collection[str]) -> None:
    """Refuse `--entail` without a knowledge base."""
    if entail is not None and not graphs:
        raise click.UsageError(
            f"--entail {entail} reads the schema from the knowledge base: add --kb 'IRI=FILE'"
        )


def compiled(queries: Sequence[QueryFile], values: dict[str, Any] | None = None) -> Program:
    """Compile query files and print their warnings; errors name the files."""
    from spaseq.errors import QueryError, render
    from spaseq.program import compile_queries

    paths = {query.name: query.path for query in queries}
    try:
        program = compile_queries(
            [query.text for query in queries],
            names=[query.name for query in queries],
            bind=values or None,
        )
    except QueryError as error:
        raise _named(error, paths) from error
    except ValueError as error:
        raise click.UsageError(f"--bind: {error}") from error
    warnings = {query.plan.source: query.plan.warnings for query in program.queries}
    for query in queries:
        for warning in warnings[query.text]:
            reports.log(render([warning], query.text, query.path), prefix="")
    return program


def _named(error: QueryError, paths: Mapping[str, str]) -> QueryError:
    """The error with the paths of the query files in place of the queries' names."""
    others = [_named(other, paths) for other in error.others]
    return type(error)(error.diagnostics, error.source, paths[error.name], others)

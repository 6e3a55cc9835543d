"""The command `run`: queries over streams, from files to written matches."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from spaseq.cli import arguments, reasons, reports
from spaseq.cli.config import config_options, config_queries, printed, settings_of
from spaseq.cli.groups import CommandWithExamples
from spaseq.cli.inputs import REGIMES, compiled, needs_schema, query_arguments, read_options
from spaseq.cli.live_command import RunOptions, check_paths, live_options, run_live, taken
from spaseq.cli.status_line import status_line
from spaseq.io.formats import AUTO, SINKS, STREAM_SYNTAXES, fitting_format
from spaseq.io.rows.formats import ROW_FORMATS

if TYPE_CHECKING:
    from spaseq.io.source import Source
    from spaseq.pipeline import AtEnd
    from spaseq.program import Program

ENTAIL = "Also match triples entailed by the schema of the knowledge base."


@click.command(
    cls=CommandWithExamples,
    epilog="""\
  spaseq run query.rq --stream http://example.org/trades=trades.nq
  spaseq run query.rq --stream trades=monday.nq.gz --stream trades=tuesday.nq.gz --format csv
  spaseq run query.rq --stream trades=- --lateness 5s < trades.nq
  spaseq run -q 'PREFIX : <http://example.org/> SELECT …' --stream trades=trades.nq
  spaseq run a.rq b.rq --stream main=data.nt --events triples:2 --kb http://example.org/kb=kb.ttl
  spaseq run query.rq --stream trades=trades.csv --map trades=trades.rq --time-column time
  spaseq run query.rq --stream main=data.trig --bind threshold=20 --output matches.jsonl --stats
""",
)
@query_arguments
@click.option(
    "--stream",
    "streams",
    multiple=True,
    metavar="IRI=FILE|URL",
    help="A file of a stream, or the URL of a file, a broker or a channel. IRI is the stream's IRI "
    "or its name in the query. Repeat the option for more files; - stands for standard input. Each "
    "stream of the queries needs one.",
)
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="NAME=MAPPING.rq",
    help="A mapping from the rows of a stream (CSV, TSV, JSON lines, Parquet, Arrow) to events: a "
    "SPARQL CONSTRUCT over the columns. `spaseq map --suggest` writes a first mapping.",
)
@click.option(
    "--time-column",
    metavar="NAME",
    help="The column that holds the time of a row. A mapping that binds ?_time does not need it.",
)
@click.option(
    "--kb",
    "kbs",
    multiple=True,
    metavar="IRI=FILE|FOLDER|URL",
    help="A graph of the knowledge base: an RDF file, the folder of a pyoxigraph store, or the URL "
    "of a SPARQL endpoint. The environment variable SPASEQ_KB_AUTH holds the credentials.",
)
@click.option("--entail", type=click.Choice(REGIMES), help=ENTAIL)
@arguments.FUNCTIONS_OPTION
@click.option(
    "--format",
    "format_",
    type=click.Choice((AUTO, *SINKS)),
    default=AUTO,
    show_default=True,
    help="The format of matches. auto chooses by the extension of --output; without a file, it is "
    "table on a terminal and jsonl in a pipe.",
)
@click.option(
    "--output",
    "-o",
    metavar="FILE|URL",
    help="The output file, or the URL of a file, a broker, a table or a webhook. The default is "
    "standard output.",
)
@click.option(
    "--match-columns",
    type=arguments.match_columns,
    default="",
    metavar="start,end,query",
    help="Begin each row of table, csv and tsv with some of these columns.",
)
@click.option(
    "--events",
    "framing",
    default="auto",
    show_default=True,
    metavar="auto|graph|message|subject|dataset|member|triples:N",
    help="How files are split into events: one event for each named graph (graph), RDF message "
    "(message), subject with its blank nodes (subject), graph of a data set in any order "
    "(dataset), tree:member (member), or N triples.",
)
@click.option(
    "--time-predicate",
    metavar="IRI|PATH",
    help="The predicate of an event's timestamp, or a path such as "
    "sosa:phenomenonTime/time:inXSDDateTimeStamp. The default is prov:generatedAtTime.",
)
@click.option(
    "--reuse-graph-names",
    is_flag=True,
    help="Accept a graph name that occurs again with another time, as another event.",
)
@click.option(
    "--event-metadata",
    is_flag=True,
    help="Add to an event the statements of the default graph about its graph.",
)
@click.option("--arrival-time", is_flag=True, help="Use the arrival time as the event's timestamp.")
@click.option(
    "--time-unit",
    type=click.Choice(("s", "ms", "us")),
    default="s",
    show_default=True,
    help="The unit of timestamps that are plain numbers.",
)
@click.option(
    "--time-precision",
    type=click.Choice(("error", "truncate", "round")),
    default="error",
    show_default=True,
    help="How to treat a timestamp finer than a microsecond.",
)
@click.option(
    "--input-format",
    type=click.Choice((*STREAM_SYNTAXES, *ROW_FORMATS)),
    help="The syntax of all streams. By default the content of a file decides, then its extension.",
)
@click.option(
    "--context",
    "contexts",
    multiple=True,
    metavar="[URL=]FILE",
    help="The file to use for the remote JSON-LD context at URL; without a URL, for all contexts "
    "that have no file. Contexts are never fetched.",
)
@click.option(
    "--bind",
    "bound",
    multiple=True,
    metavar="NAME=TERM",
    help="Bind a variable of the queries to a term, a number or a string.",
)
@click.option(
    "--on-error",
    type=click.Choice(("stop", "skip")),
    default="stop",
    show_default=True,
    help="What to do with a malformed line or event.",
)
@click.option(
    "--lateness",
    metavar="DURATION",
    help="Reorder events that are late by at most this duration (10s, 500ms, PT1M). Events that "
    "are later are dropped, counted and reported.",
)
@click.option(
    "--at-end",
    type=click.Choice(("close", "open")),
    default="close",
    show_default=True,
    help="What happens at the end of all streams. close: every window closes; a match that needs "
    'this has "closedByEnd": true in JSON. open: a match whose window is still open is omitted.',
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N matches.")
@click.option(
    "--max-groups",
    type=click.IntRange(min=1),
    metavar="N",
    help="The maximum number of groups of partial matches per query.",
)
@click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    metavar="N",
    help="The maximum number of steps that one event may take in a graph pattern or in the "
    "automaton, and of matches that it may complete.",
)
@click.option(
    "--max-matches",
    type=click.IntRange(min=1),
    metavar="N",
    help="The maximum number of matches per query that one event completes, or that come out at "
    "one time because windows close.",
)
@click.option(
    "--max-memory",
    type=arguments.byte_size,
    metavar="SIZE",
    help="The maximum memory (bytes, or 512M, 2G) for the rows of one event in a graph pattern, "
    "and for the statements that --events member and dataset store; dataset sorts the rest on "
    "disk.",
)
@click.option(
    "--on-limit",
    type=click.Choice(("stop", "shed")),
    default="stop",
    show_default=True,
    help="What to do beyond --max-groups, --max-steps or --max-matches: stop with an error, or "
    "shed (drop) the oldest groups or the matches beyond the limit.",
)
@click.option(
    "--workers",
    type=arguments.workers,
    default="2",
    show_default=True,
    metavar="N|auto",
    help="The number of threads that match: the events of large files are divided among them if "
    "matches share a key (spaseq explain names it). With 2 or more, files are also read and "
    "decompressed while earlier events are matched (pipes are not). auto is the number of "
    "processors.",
)
@live_options
@config_options
@click.option(
    "--progress",
    is_flag=True,
    help="Show progress on standard error: a bar on a terminal; for a live run, rates, watermarks "
    "and numbers of partial matches.",
)
@click.option("--stats", is_flag=True, help="Print statistics on standard error at the end.")
@click.option(
    "--stats-json",
    is_flag=True,
    help="Print the statistics as one line of JSON on standard error.",
)
@click.option(
    "--why",
    is_flag=True,
    help="At the end, explain on standard error how far the patterns of each query got and what "
    "stopped them. The signal USR1 prints the same during a run.",
)
def run(
    queries: Sequence[str],
    texts: Sequence[str],
    streams: Sequence[str],
    maps: Sequence[str],
    kbs: Sequence[str],
    entail: str | None,
    functions: Sequence[str],
    bound: Sequence[str],
    format_: str,
    output: str | None,
    match_columns: tuple[str, ...],
    at_end: AtEnd,
    limit: int | None,
    progress: bool,
    stats: bool,
    stats_json: bool,
    why: bool,
    max_groups: int | None,
    max_steps: int | None,
    max_matches: int | None,
    max_memory: int | None,
    on_limit: str,
    print_config: bool,
    check_config: bool,
    **reading: Any,
) -> int | None:
    """Run queries over streams and print their matches.

    Several queries share work, and can read streams that other queries register.
    """
    context = click.get_current_context()
    queries, texts = config_queries(context, queries, texts)
    if print_config:
        held = {**context.params, "queries": queries, "texts": texts}
        reports.output(printed(context, held).rstrip("\n"))
        return None
    wanted = taken(reading)
    given = context.get_parameter_source("checkpoint_every")
    if wanted.state is None and given == ParameterSource.COMMANDLINE:
        raise click.UsageError(
            "--checkpoint-every needs the folder of checkpoints: add --state DIR"
        )
    if wanted.insecure and wanted.metrics is None:
        raise click.UsageError("--insecure is for --metrics HOST:PORT, which is not given")
    arguments.load_functions(functions)
    options = read_options(max_memory=max_memory, **reading)
    read = arguments.read_queries(queries, texts)
    program = compiled(read, arguments.bound_values(bound, read))
    files = arguments.stream_files(streams, program, queries)
    is_live = wanted.is_live(files, output)
    click.get_current_context().with_resource(status_line(progress))
    if check_config:
        pass  # `check_all` reports what is missing
    elif is_live:
        check_paths(files, wanted.follow)
    else:
        arguments.check_files(files)
    mappings = arguments.mappings(maps, program)
    if options.time_column is not None and not mappings:
        raise click.UsageError("--time-column names a column of rows: add --map NAME=MAPPING.rq")
    graphs = arguments.kb_files(kbs, program)
    needs_schema(entail, graphs)
    if output not in (None, arguments.STDIN):
        inputs = [path for paths in files.values() for path in paths]
        read_files = [mapping.name for mapping in mappings.values()]
        arguments.check_output(output, [*inputs, *read_files, *graphs.values(), *queries])
    elif sys.stdout is None:
        raise click.UsageError("standard output is closed; name a file with --output")
    from spaseq.kb.coverage import kb_warnings
    from spaseq.pipeline import file_sources

    for warning in kb_warnings(read, program.sources, graphs, entail is not None):
        reports.log(warning, prefix="")
    if check_config:
        from spaseq.cli.checking import check_all
        from spaseq.live.posix import require_posix

        if is_live:
            require_posix("a live run")
        sink = None if output == arguments.STDIN else output
        settings = settings_of(context)
        secrets = {} if settings is None else settings.secrets
        return check_all(
            program, graphs, files, wanted.follow, sink, wanted.state, wanted.late, secrets
        )
    limits = {
        "max_groups": max_groups,
        "max_steps": max_steps,
        "max_matches": max_matches,
        "max_memory": max_memory,
        "on_limit": on_limit,
    }
    shown = RunOptions(
        format_,
        output,
        limit,
        progress,
        stats,
        stats_json,
        why,
        entail,
        limits,
        at_end,
        match_columns,
    )
    if is_live:
        if mappings:
            raise click.UsageError("--map reads finished files, so --follow and --state exclude it")
        run_live(program, graphs, files, options, wanted, shown)
        return None
    sources = file_sources(files, options, reports.log, mappings)
    _run(program, graphs, sources, shown)
    return None


def _run(
    program: Program, kb: dict[str, str], sources: Sequence[Source], options: RunOptions
) -> None:
    from spaseq.errors import QueryWarning
    from spaseq.io.sinks import open_sink
    from spaseq.keyed_runs import divided
    from spaseq.pipeline import BATCH, merged, pump, shapes
    from spaseq.rdf.limits import BOUNDS

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QueryWarning)  # `kb_warnings` has reported them
        # Queries that are evaluated as one have no separate counts, which --why needs.
        started = program.start(
            kb=kb, entail=options.entail, share=not options.why, **options.limits
        )
    for source in sources:
        source.relevance = started.relevance
    live = any(source.live for source in sources)
    path = None if options.output == arguments.STDIN else options.output
    elapsed = reports.stopwatch()
    is_terminal = path is None and sys.stdout.isatty()
    results, format = shapes(program, options.match_columns), options.format
    if format == AUTO:
        format = fitting_format(results, path, is_terminal)
    sink = open_sink(format, results, path, live or is_terminal)
    # Limits hold for all partial matches together, and reports count them.
    limits = (options.limits[name] for name in BOUNDS)
    reported = options.stats or options.stats_json or options.why
    several = None
    if not (reported or options.entail or any(limit is not None for limit in limits)):
        several = divided(started, program, sources, sink=sink)
    is_whole = False
    try:
        with (
            sink,
            reasons.shown_on_signal(started if several is None else None) as asked,
        ):
            watch = reasons.both(reports.progress_observer(sources), asked)
            streams = [source.stream for source in sources]
            events = merged(started, streams, sources, options.at_end)
            close = options.at_end == "close"
            batch = 1 if live else BATCH
            pump(several or started, events, sink, batch, options.limit, watch, close)
        is_whole = True
    finally:
        reports.report_left_out(sources, sum(query.shed for query in started.queries))
        reports.report_closed(sum(query.closed_by_end for query in started.queries))
        reports.report_failures(started.rows.matchers.calls.failures)
        reports.report_result_errors(started.evaluation)
        if options.stats:
            reports.print_statistics(sources, started.stats, sink.written, elapsed())
        if options.stats_json:
            reports.print_json_statistics(sources, started.stats, sink.written, elapsed())
    if options.why:
        reasons.print_all(started, sources)
    elif is_whole and not sink.written:
        reasons.print_first(started, sources)

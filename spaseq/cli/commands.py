"""The commands `run`, `check`, `explain`, `generate` and `completion`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaseq.cli import arguments, reasons, reports
from spaseq.cli.arguments import QueryFile
from spaseq.cli.checking import check_all
from spaseq.cli.config import config_options, config_queries, printed, settings_of
from spaseq.cli.groups import CommandWithExamples
from spaseq.cli.live_command import RunOptions, check_paths, live_options, run_live, taken
from spaseq.io.formats import AUTO, SINKS, STREAM_SYNTAXES, fitting_format
from spaseq.io.rows.formats import ROW_FORMATS

if TYPE_CHECKING:
    from spaseq.errors import QueryError
    from spaseq.io.read_options import ReadOptions
    from spaseq.io.source import Source
    from spaseq.pipeline import AtEnd
    from spaseq.program import Program

# Repeated here, because importing the generators for the choices would slow down `--help`.
DATASETS = ("smart-home", "stock", "cards", "traffic")
SHELLS = ("bash", "zsh", "fish")
REGIMES = ("rdfs", "owl-ql")
ENTAIL = "Also match triples entailed by the schema of the knowledge base."


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
    help="How the rows of a stream (CSV, TSV, JSON lines, Parquet, Arrow) become events: a SPARQL "
    "CONSTRUCT over the columns. `spaseq map --suggest` writes a first one.",
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
    "that have no file of their own. Contexts are never fetched.",
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
    "are even later are dropped, counted and reported.",
)
@click.option(
    "--at-end",
    type=click.Choice(("close", "open")),
    default="close",
    show_default=True,
    help="What happens at the end of all streams. close: every window closes; a match that needs "
    'this has "closedByEnd": true in JSON. open: a match whose window is still open is left out.',
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
    "--max-memory",
    type=arguments.byte_size,
    metavar="SIZE",
    help="The maximum memory (bytes, or 512M, 2G) for the rows of one event in a graph pattern, "
    "and for what --events member and dataset hold; dataset sorts the rest on disk.",
)
@click.option(
    "--on-limit",
    type=click.Choice(("stop", "shed")),
    default="stop",
    show_default=True,
    help="What to do beyond --max-groups or --max-steps: stop with an error, or shed (drop) the "
    "oldest groups.",
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
    arguments.load_functions(functions)
    options = read_options(max_memory=max_memory, **reading)
    read = arguments.read_queries(queries, texts)
    program = compiled(read, arguments.bound_values(bound, read))
    files = arguments.stream_files(streams, program, queries)
    is_live = wanted.is_live(files, output)
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
        sink = None if output == arguments.STDIN else output
        settings = settings_of(context)
        secrets = {} if settings is None else settings.secrets
        return check_all(
            program, graphs, files, wanted.follow, sink, wanted.state, wanted.late, secrets
        )
    limits = {
        "max_groups": max_groups,
        "max_steps": max_steps,
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

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QueryWarning)  # `kb_warnings` has reported them
        started = program.start(kb=kb, entail=options.entail, **options.limits)
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
    limits = (options.limits[name] for name in ("max_groups", "max_steps", "max_memory"))
    reported = options.stats or options.stats_json or options.why
    several = None
    if not (reported or options.entail or any(limit is not None for limit in limits)):
        several = divided(started, program, sources, sink=sink)
    is_whole = False
    try:
        with (
            sink,
            reports.progress_bar(options.progress, sources) as observe,
            reasons.shown_on_signal(started if several is None else None) as asked,
        ):
            watch = reasons.both(observe, asked)
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
        if options.stats:
            reports.print_statistics(sources, started.stats, sink.written, elapsed())
        if options.stats_json:
            reports.print_json_statistics(sources, started.stats, sink.written, elapsed())
    if options.why:
        reasons.print_all(started, sources)
    elif is_whole and not sink.written:
        reasons.print_first(started, sources)


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
        raise click.UsageError("--time-predicate and --arrival-time exclude each other")
    if time_column is not None and arrival_time:
        raise click.UsageError("--time-column and --arrival-time exclude each other")
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


@click.command(cls=CommandWithExamples, epilog="  spaseq check query.rq\n")
@query_arguments
@arguments.FUNCTIONS_OPTION
def check(queries: Sequence[str], texts: Sequence[str], functions: Sequence[str]) -> None:
    """Check queries without running them.

    The output is "ok", or each error with its line and column.
    """
    arguments.load_functions(functions)
    compiled(arguments.read_queries(queries, texts))
    reports.output("ok")


@click.command(
    cls=CommandWithExamples,
    epilog="  spaseq explain query.rq\n  spaseq explain query.rq --svg > query.svg\n",
)
@query_arguments
@click.option("--dot", is_flag=True, help="Print the automaton in Graphviz's DOT language.")
@click.option("--svg", is_flag=True, help="Print the automaton as an SVG image.")
@click.option("--mermaid", is_flag=True, help="Print the automaton as a flow chart of Mermaid.")
@click.option(
    "--kb",
    "kbs",
    multiple=True,
    metavar="IRI=FILE",
    help="A graph of the knowledge base, for --entail.",
)
@click.option("--entail", type=click.Choice(REGIMES), help="Show how entailment widens patterns.")
@arguments.FUNCTIONS_OPTION
def explain(
    queries: Sequence[str],
    texts: Sequence[str],
    dot: bool,
    svg: bool,
    mermaid: bool,
    kbs: Sequence[str],
    entail: str | None,
    functions: Sequence[str],
) -> None:
    """Show how queries are evaluated.

    The report covers graph patterns, places, registers, indexes and costs.
    """
    if dot + svg + mermaid > 1:
        raise click.UsageError("--dot, --svg and --mermaid exclude each other")
    arguments.load_functions(functions)
    program = compiled(arguments.read_queries(queries, texts))
    graphs = arguments.kb_files(kbs, program)
    needs_schema(entail, graphs)
    if graphs and entail is None:
        raise click.UsageError("--kb needs --entail: other plans do not depend on the KB")
    if dot or svg or mermaid:
        text = program.to_dot() if dot else program.to_svg() if svg else program.to_mermaid()
    else:
        text = program.explain(graphs, entail)
    reports.output(text.rstrip("\n"))


@click.command(
    cls=CommandWithExamples,
    epilog="  spaseq generate stock --events 10000 --out demo\n"
    "  spaseq run demo/query.rq --stream trades=demo/trades.nq --kb http://…=demo/kb.ttl\n",
)
@click.argument(
    "datasets", nargs=-1, required=True, metavar="DATASET...", type=click.Choice(DATASETS)
)
@click.option(
    "--events",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="The number of events over all streams.",
)
@click.option(
    "--seed",
    type=int,
    default=1,
    show_default=True,
    help="The seed of the random numbers. Equal seeds generate equal files.",
)
@click.option(
    "--out",
    "--output",
    "-o",
    "out",
    default=".",
    show_default=True,
    metavar="FOLDER",
    help="The output folder. Each of several data sets gets a subfolder.",
)
def generate(datasets: Sequence[str], events: int, seed: int, out: str) -> None:
    """Write synthetic streams with a knowledge base and a query.

    DATASET is smart-home, stock, cards or traffic. The command prints the names of the files.
    """
    from spaseq.generate import write

    for dataset in datasets:
        folder = Path(out) / dataset if len(datasets) > 1 else Path(out)
        for path in write(dataset, events, seed, folder):
            reports.output(str(path))


@click.command(
    cls=CommandWithExamples,
    epilog='  eval "$(spaseq completion bash)"\n'
    "  spaseq completion fish > ~/.config/fish/completions/spaseq.fish\n",
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell."""
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    root = context.find_root()
    assert script is not None
    reports.output(script(root.command, {}, "spaseq", "_SPASEQ_COMPLETE").source())

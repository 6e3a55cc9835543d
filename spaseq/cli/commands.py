"""The commands `check`, `explain`, `generate` and `completion`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from spaseq.cli import arguments, reports
from spaseq.cli.groups import CommandWithExamples
from spaseq.cli.inputs import REGIMES, compiled, needs_schema, query_arguments

# Repeated here, because importing the generators for the choices would slow down `--help`.
DATASETS = ("smart-home", "stock", "cards", "traffic")
SHELLS = ("bash", "zsh", "fish")


@click.command(cls=CommandWithExamples, epilog="  spaseq check query.rq\n")
@query_arguments
@arguments.FUNCTIONS_OPTION
def check(queries: Sequence[str], texts: Sequence[str], functions: Sequence[str]) -> None:
    """Check queries without running them.

    The output is "ok", or each error with its line and column. A note names a query whose matches
    can double with each event.
    """
    from spaseq.errors import render
    from spaseq.explain.cost import doubling_note

    arguments.load_functions(functions)
    given = arguments.read_queries(queries, texts)
    for query, file in zip(compiled(given).queries, given, strict=True):
        note = doubling_note(query)
        if note is not None:
            reports.log(render([note], query.plan.source, file.path), prefix="")
    reports.output("ok")


@click.command(
    cls=CommandWithExamples,
    epilog="  spaseq explain query.rq\n  spaseq explain query.rq --svg > query.svg\n",
)
@query_arguments
@click.option("--dot", is_flag=True, help="Print the automaton in Graphviz's DOT language.")
@click.option("--svg", is_flag=True, help="Print the automaton as an SVG image.")
@click.option("--mermaid", is_flag=True, help="Print the automaton as a Mermaid flow chart.")
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
        raise click.UsageError("--dot, --svg and --mermaid cannot be used together")
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

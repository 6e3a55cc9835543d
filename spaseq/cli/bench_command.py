"""The command `bench`: what a run costs, and how much of that is reading."""

from __future__ import annotations

import json
import os
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from spaseq.cli import arguments, reports
from spaseq.cli.groups import CommandWithExamples
from spaseq.cli.inputs import READING, compiled, query_arguments, read_options
from spaseq.cli.run_command import run
from spaseq.io.formats import SINKS

if TYPE_CHECKING:
    from spaseq.io.read_options import ReadOptions
    from spaseq.io.rows.mapping import RowMapping
    from spaseq.io.source import Source
    from spaseq.program import Program
    from spaseq.runs import Run

# The options of `run` that determine what is read and matched.
INPUT = {*READING, "streams", "maps", "time_column", "kbs", "entail", "bound", "workers"}


@click.command(
    cls=CommandWithExamples,
    epilog="""\
  spaseq bench query.rq --stream trades=trades.nq
  spaseq bench a.rq b.rq --stream trades=trades.trig.gz --repeat 9 --workers 1
  spaseq bench query.rq --stream trades=trades.nq --json > before.json
""",
)
@query_arguments
@arguments.FUNCTIONS_OPTION
@click.option(
    "--format",
    "format_",
    type=click.Choice(tuple(SINKS)),
    default="jsonl",
    show_default=True,
    help="The format in which matches are written and discarded.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    metavar="N",
    help="The number of measurements of each stage.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one line of JSON.")
def bench(
    queries: Sequence[str],
    texts: Sequence[str],
    functions: Sequence[str],
    format_: str,
    repeat: int,
    as_json: bool,
    streams: Sequence[str],
    maps: Sequence[str],
    kbs: Sequence[str],
    entail: str | None,
    bound: Sequence[str],
    **reading: Any,
) -> None:
    """Measure the speed of queries over files.

    The files are read alone, then read, matched and written, in turn. Times are processor times of
    all threads, and elapsed times; each line has the median, the minimum and the maximum.
    """
    arguments.load_functions(functions)
    options = read_options(**reading)
    read = arguments.read_queries(queries, texts)
    program = compiled(read, arguments.bound_values(bound, read))
    files = arguments.stream_files(streams, program, queries)
    arguments.check_files(files)
    for path in (path for paths in files.values() for path in paths):
        if not os.path.isfile(path):
            raise click.UsageError(f"{path} is read several times, so it must be a file")
    mappings = arguments.mappings(maps, program)
    bench = _Bench(
        program, files, mappings, arguments.kb_files(kbs, program), entail, options, format_
    )
    bench.whole()  # the first pass, which loads modules, is not measured
    figures = {name: _Figures([], []) for name in ("reading", "whole")}
    for _ in range(repeat):
        figures["reading"].measure(bench.reading)
        figures["whole"].measure(bench.whole)
    if as_json:
        reports.output(json.dumps(bench.record(figures)))
    else:
        for line in bench.lines(figures):
            reports.output(line)


@dataclass(frozen=True)
class _Figures:
    """The times of one stage, in seconds."""

    processor: list[float]
    elapsed: list[float]

    def measure(self, stage: Callable[[], None]) -> None:
        begun, started = time.process_time(), time.perf_counter()
        stage()
        self.processor.append(time.process_time() - begun)
        self.elapsed.append(time.perf_counter() - started)


@dataclass
class _Bench:
    program: Program
    files: dict[str, list[str]]
    mappings: dict[str, RowMapping]
    kb: dict[str, str]
    entail: str | None
    options: ReadOptions
    format: str
    events: int = 0
    triples: int = 0
    matches: int = 0

    def _start(self) -> tuple[Run, list[Source]]:
        from spaseq.errors import QueryWarning
        from spaseq.pipeline import file_sources

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QueryWarning)
            run = self.program.start(kb=self.kb, entail=self.entail)
        sources = file_sources(self.files, self.options, reports.log, self.mappings)
        for source in sources:
            source.relevance = run.relevance
        return run, sources

    def reading(self) -> None:
        """Read the files as a run does: triples that no query can use are not encoded."""
        from spaseq.pipeline import BATCH, batches, merged

        run, sources = self._start()
        events = merged(run, list(self.files), sources, "close")
        for _, failure in batches(events, BATCH):
            if failure is not None:
                raise failure

    def whole(self) -> None:
        """Read, match and write."""
        from spaseq.io.sinks import open_sink
        from spaseq.keyed_runs import divided
        from spaseq.pipeline import merged, pump, shapes

        run, sources = self._start()
        sink = open_sink(self.format, shapes(self.program), os.devnull, False)
        several = None if self.entail else divided(run, self.program, sources, sink=sink)
        with sink:
            pump(several or run, merged(run, list(self.files), sources, "close"), sink)
        self.events = sum(source.counters.events for source in sources)
        self.triples = sum(source.counters.statements for source in sources)
        self.matches = sink.written

    def _bytes(self) -> int:
        return sum(os.path.getsize(path) for paths in self.files.values() for path in paths)

    def lines(self, figures: dict[str, _Figures]) -> list[str]:
        """The table for people."""
        from statistics import median

        reading, whole = (figures[name] for name in ("reading", "whole"))
        rest = [max(w - r, 0.0) for r, w in zip(reading.processor, whole.processor, strict=True)]
        title = f"matching, {self.format} written"
        rows = [
            ("reading", reading.processor),
            (title, rest),
            ("the whole run", whole.processor),
            ("the whole run, elapsed", whole.elapsed),
        ]
        lines = [f"{'':26}{'seconds':>9}{'least–greatest':>18}{'events/s':>13}{'share':>8}"]
        for name, times in rows:
            seconds = median(times)
            spread = f"{min(times):.3f}–{max(times):.3f}"
            rate = f"{self.events / seconds:,.0f}" if seconds > 0 else "-"
            share = "" if times is whole.elapsed else f"{seconds / median(whole.processor):.0%}"
            line = f"{name:26}{seconds:>9.3f}{spread:>18}{rate:>13}{share:>8}"
            lines.append(line.rstrip())
        return [
            *lines,
            f"{self.events:,} events, {self.triples:,} triples, {self._bytes():,} bytes, "
            f"{self.matches:,} matches",
            f"medians of {len(whole.elapsed)}; the first three lines are processor time",
            _machine(),
        ]

    def record(self, figures: dict[str, _Figures]) -> dict[str, object]:
        """The figures for programs: all times in seconds, in the order of measurement."""
        return {
            "events": self.events,
            "triples": self.triples,
            "bytes": self._bytes(),
            "matches": self.matches,
            "format": self.format,
            "processor": {name: some.processor for name, some in figures.items()},
            "elapsed": {name: some.elapsed for name, some in figures.items()},
            "machine": _machine(),
        }


def _machine() -> str:
    from spaseq import __version__

    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            models = [line for line in lines if line.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    except OSError:
        pass  # not Linux
    return (
        f"spaseq {__version__}, Python {platform.python_version()}, {os.cpu_count()} × {name}, "
        f"{platform.system()}"
    )


bench.params += [option for option in run.params if option.name in INPUT]

"""Messages, the progress of a run and its statistics on standard error; answers on output.

A closed standard error is ignored; a closed or full standard output is an error.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TextIO

import click

from spaseq.cli.status_line import hide_line, shown_line
from spaseq.io.losses import Loss, worth_reporting

if TYPE_CHECKING:
    from spaseq.engine.evaluation import Evaluation
    from spaseq.gpm.python.calls import Failures
    from spaseq.io.source import Source
    from spaseq.pipeline import Progress


_as_json = False
BAR_WIDTH = 20
"""The characters of a bar of progress."""

_MEANINGS = {
    "matches written": "matches in the output",
    "seconds": "from the start of reading to the end of writing",
    "events per second": "events read in these seconds",
    "events": "events that the queries have processed",
    "triples": "triples of these events",
    "matches": "matches found; --limit and --at-end open write fewer",
    "late_events": "late events that reached the queries",
    "evaluated_gpms": "evaluations of a graph pattern against an event",
}
"""Counter of `--stats` → its meaning; those of states: `spaseq.nfa.counters`."""
_READ_LEGEND = (
    "skipped: malformed lines and events (--on-error skip); late: events that arrived too late; "
    "unused triples: triples outside of events, and triples that no query can use"
)


def use_json(wanted: bool) -> None:
    """Whether messages are JSON objects from now on (`--log-format json`)."""
    global _as_json
    _as_json = wanted


def is_json() -> bool:
    """Whether messages are JSON objects."""
    return _as_json


def use_utf8(*streams: TextIO | None) -> None:
    """Write UTF-8 with line feeds to files and pipes, as everywhere but on Windows.

    There Python uses the code page of the system, which lacks most characters, unless the stream is
    a console.
    """
    for stream in streams:
        if isinstance(stream, TextIOWrapper) and not stream.isatty():
            stream.reconfigure(encoding="utf-8", newline="\n")


def log(message: str, prefix: str = "spaseq: ", **fields: Any) -> None:
    """Print a message to standard error; `fields` are further keys of its JSON object."""
    if sys.stderr is None:
        return
    hide_line()
    if not _as_json:
        print(f"{prefix}{message}", file=sys.stderr, flush=True)
        return
    import json

    level = "error" if message.startswith("error: ") else "info"
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    entry = {"time": stamp, "level": level, "message": message.removeprefix("error: "), **fields}
    print(json.dumps(entry, ensure_ascii=False), file=sys.stderr, flush=True)


def output(text: str) -> None:
    """Print the result of a command to standard output."""
    if sys.stdout is None:
        raise click.UsageError("standard output is closed")
    click.echo(text)


def discard_output() -> None:
    """Discard buffered output after a failure, which the interpreter would flush at exit."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ else 1)
        os.close(nowhere)


def progress_observer(sources: Sequence[Source]) -> Callable[[Progress], None] | None:
    """What shows the progress of a run on the status line, if there is one."""
    line = shown_line()
    if line is None:
        return None
    total = _size([path for source in sources for path in source.files])
    read: dict[int, tuple[object, int]] = {}
    elapsed = stopwatch()

    def observe(progress: Progress) -> None:
        parts = [
            f"{progress.events:,} event{'s' if progress.events != 1 else ''}",
            f"{progress.matches:,} match{'es' if progress.matches != 1 else ''}",
            f"at {progress.last.time.term.value}",
            f"{elapsed():.0f} s",
        ]
        if total:
            parts.insert(0, _bar(_bytes_read(sources, read) / total))
        line.show(" · ".join(parts))

    return observe


def _bar(part: float) -> str:
    """A part of the whole as a bar."""
    done = round(min(part, 1) * BAR_WIDTH)
    return "━" * done + "─" * (BAR_WIDTH - done)


def _size(files: Sequence[str]) -> int | None:
    """The total size of the files in bytes; None if it is unknown."""
    try:
        return sum(os.stat(path).st_size for path in files if os.path.isfile(path)) or None
    except OSError:
        return None


def _bytes_read(sources: Sequence[Source], read: dict[int, tuple[object, int]]) -> int:
    """The number of bytes read so far, in finished files and in the current ones."""
    total = 0
    for source in sources:
        if source.lines is None:
            continue
        done = sum(os.stat(path).st_size for path in _finished_files(source))
        total += done + source.lines.position()
    return total


def _finished_files(source: Source) -> list[str]:
    names = [path for path in source.files if os.path.isfile(path)]
    current = source.lines.name if source.lines is not None else ""
    return names[: names.index(current)] if current in names else []


def report_left_out(sources: Sequence[Source], shed: int = 0, late_file: str | None = None) -> None:
    """Report skipped errors, late events, empty messages, unused streams and shed groups.

    `late_file` is the file that has the late events, if they were written to one.
    """
    skipped = sum(source.counters.skipped for source in sources)
    late = sum(source.counters.late for source in sources)
    ahead = sum(source.counters.ahead for source in sources)
    empty = sum(source.counters.empty for source in sources)
    if empty:
        were = "messages without a time were" if empty > 1 else "message without a time was"
        log(f"{empty:,} empty {were} skipped (--arrival-time gives them their arrival time)")
    if skipped:
        log(f"{skipped} error{'s' if skipped > 1 else ''} skipped (--on-error skip)")
    if late:
        were = "s arrived too late and were" if late > 1 else " arrived too late and was"
        place = "dropped (--lateness)" if late_file is None else f"written to {late_file}"
        log(f"{late} event{were} {place}")
    if ahead:
        were = "s were" if ahead > 1 else " was"
        place = "dropped" if late_file is None else f"written to {late_file}"
        log(f"{ahead} event{were} too far ahead of the clock (--max-ahead) and {place}")
    for source in sources:
        read = source.counters.statements
        if read and source.counters.pruned == read:
            log(
                f"no query can use any of the {read:,} triples of <{source.stream}>: compare the "
                "predicates and classes in the queries with those in the files"
            )
        for loss in worth_reporting(source.counters.losses()):
            log(str(loss))
    if shed:
        were = "s were" if shed > 1 else " was"
        log(f"{shed:,} group{were} shed (--on-limit shed): matches may be missing")


def report_closed(number: int) -> None:
    """Report the matches whose windows the end of input closed."""
    if number:
        were = "matches were" if number > 1 else "match was"
        log(
            f"{number:,} {were} certain only because "
            "the input ended (closedByEnd); --at-end open omits them"
        )


def report_failures(failures: Mapping[str, Failures]) -> None:
    """Report the registered functions that failed, with the first message of each."""
    for iri, found in failures.items():
        times = "once" if found.count == 1 else f"{found.count:,} times"
        log(f"the function <{iri}> failed {times}, first with {found.first}")


def report_result_errors(run: Evaluation) -> None:
    """Report the expressions of results that erred on bound values, with the first error."""
    if not any(any(query.result_errors()) for query in run.queries):
        return
    from spaseq.explain.erred import of_results

    several = len(run.listed.by_name) > 1
    for name, erred in of_results(run):
        log(f"{f'query {name}: ' if several else ''}{erred.gpm}: {erred}")


def meanings() -> dict[str, str]:
    """Counter of `--stats` → its meaning."""
    from spaseq.nfa.counters import MEANINGS

    return _MEANINGS | MEANINGS


def print_statistics(
    sources: Sequence[Source], stats: Mapping[str, Any], written: int, seconds: float
) -> None:
    """Print two tables to standard error: the input per stream, and the run's counters."""
    if _as_json:
        print_json_statistics(sources, stats, written, seconds)
        return
    if sys.stderr is None:
        return
    from rich.console import Console
    from rich.table import Table

    console = Console(stderr=True, highlight=False)
    read = Table(title="streams", caption=_READ_LEGEND, caption_justify="left")
    read.add_column("stream", overflow="fold")
    for column in ("events", "triples", "skipped", "late", "unused triples"):
        read.add_column(column, justify="right")
    for source in sources:
        counters = source.counters
        numbers = (
            counters.events, counters.statements, counters.skipped, counters.late,
            counters.without_use(),
        )  # fmt: skip
        read.add_row(f"<{source.stream}>", *(f"{number:,}" for number in numbers))
    console.print(read)
    counted = Table(title="run")
    counted.add_column("counter", overflow="fold")
    counted.add_column("value", justify="right")
    counted.add_column("meaning", overflow="fold")

    def add(name: str, value: str) -> None:
        counted.add_row(name, value, known.get(name, ""))

    known = meanings()
    events = sum(source.counters.events for source in sources)
    add("matches written", f"{written:,}")
    add("seconds", f"{seconds:.3f}")
    add("events per second", f"{events / seconds:,.0f}" if seconds else "-")
    for source in sources:
        for loss in source.counters.losses():
            what = loss.what or "rows without triples"
            add(f"mapping of <{source.stream}>: {what}", _lost(loss))
    for name, value in _flat(stats):
        add(name, f"{value:,}" if isinstance(value, int | float) else str(value))
    console.print(counted)


def print_json_statistics(
    sources: Sequence[Source], stats: Mapping[str, Any], written: int, seconds: float
) -> None:
    """Print the same counters to standard error as one line of JSON."""
    import json

    read = {
        source.stream: {
            "events": source.counters.events,
            "triples": source.counters.statements,
            "skipped": source.counters.skipped,
            "late": source.counters.late,
            "unused_triples": source.counters.without_use(),
            "empty_messages": source.counters.empty,
            "mapping_errors": [loss.as_data() for loss in source.counters.losses()],
        }
        for source in sources
    }
    counters = {"written": written, "seconds": round(seconds, 6), "read": read, "run": stats}
    if _as_json:
        log("statistics", statistics=counters)
        return
    log(json.dumps(counters), prefix="")


def _flat(stats: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in stats.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name} ")
        elif isinstance(value, list | tuple):
            for place, item in enumerate(value):
                if isinstance(item, Mapping) and "expression" in item:
                    yield f"{prefix}{name} of {item['gpm']}: {item['expression']}", _erred(item)
                    continue
                inner = item if isinstance(item, Mapping) else {str(place): item}
                yield from _flat(inner, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", value


def _erred(counted: Mapping[str, Any]) -> str:
    """The number of errors of a filter or a BIND, and the reason for them."""
    always = "each time, " if counted["always"] else ""
    return f"{always}{counted['errors']:,}" + (
        f": {example}" if (example := counted["example"]) else ""
    )


def _lost(loss: Loss) -> str:
    """The number of rows that a mapping lost for one reason."""
    unbound = f", unbound in {loss.unbound:,}" if loss.unbound else ""
    return f"{loss.count:,} of {loss.rows:,} rows{unbound}"


def stopwatch() -> Callable[[], float]:
    """A function that returns the seconds since this call."""
    begun = time.perf_counter()
    return lambda: time.perf_counter() - begun

"""Matches into every format: rows per second, by compiled writers and by those in Python.

A stream of readings, each followed by some costs of the same second; each match is a reading and a
later cost, with four columns of five. Events are read and matched as `spaseq run` does it, and the
rows are written to a file, by default `/dev/null`. `writing` is the processor time beyond that of
counting the matches in the same run, which reads and matches the same events; its rate is that of
rows. `all` is the whole way, from the bytes of the events to the bytes of the rows. `--costs`
says how many costs follow a reading: with more of them, more matches share their events. With
`--queries`, that many queries write into one file, each the same matches under its own variable;
those that are counted alone pass through a writer that writes none.

    python benchmarks/writing/matches.py --matches 100000
    python benchmarks/writing/matches.py --matches 100000 --costs 10
    python benchmarks/writing/matches.py --matches 100000 --queries 4
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import process_time

import spaseq
from spaseq.io.formats import SINKS
from spaseq.io.sinks import open_sink
from spaseq.io.source import Source
from spaseq.pipeline import matches, pump, shapes

STREAM = "http://example.org/readings"
QUERY = """
PREFIX : <http://example.org/>
SELECT ?sensor ?room ?value ?cost
WITHIN 1 SECOND
FROM STREAM readings :readings
WHERE {
  SEQ(Reading : Cost)
  DEFINE GPM Reading ON readings { ?sensor :value ?value ; :in ?room }
  DEFINE GPM Cost    ON readings { ?sensor :cost ?cost }
}
"""
XSD = "http://www.w3.org/2001/XMLSchema#"
COMPILED = ("jsonl", "csv", "tsv", "srj", "nquads", "trig", "messages", "arrow", "parquet")
PLAIN_SHARE = 20
"""A twentieth of the events is written by the writers in Python, which are slower."""


def write_stream(path: Path, readings: int, costs: int) -> None:
    """Readings with their costs, in N-Quads."""
    with path.open("w", encoding="utf-8") as out:
        for second in range(readings):
            day, rest = divmod(2 * second, 86400)
            clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
            date = f"20{26 + day // 336:02d}-{1 + day // 28 % 12:02d}-{1 + day % 28:02d}"
            sensor = f"<http://example.org/sensor/{second % 500}>"
            for part in range(costs + 1):
                event = f"<http://example.org/event/{second}/{part}>"
                stamp = f'"{date}T{clock}.{part + 1:03d}Z"^^<{XSD}dateTime>'
                out.write(f"{event} <http://www.w3.org/ns/prov#generatedAtTime> {stamp} .\n")
                number = (7919 * second + part) % 100_000
                value = f'"{number / 100}"^^<{XSD}double>'
                if part:
                    out.write(f"{sensor} <http://example.org/cost> {value} {event} .\n")
                    continue
                room = f"<http://example.org/room/{second % 37}>"
                out.write(f"{sensor} <http://example.org/value> {value} {event} .\n")
                out.write(f"{sensor} <http://example.org/in> {room} {event} .\n")


class Bench:
    """A stream in a file, and the ways to consume its matches."""

    def __init__(self, path: Path, output: str, queries: int):
        texts = [QUERY.replace("?cost", f"?cost{n}") for n in range(queries)]
        self._program = spaseq.compile(QUERY if queries == 1 else texts)
        self._queries = queries
        self._path = path
        self._output = output

    def _start(self) -> tuple[spaseq.Run, Source]:
        run = self._program.start()
        return run, Source(STREAM, [str(self._path)], relevance=run.relevance)

    def count(self) -> int:
        if self._queries > 1:
            return self._passed()
        run, source = self._start()
        counted = position = 0
        for batch in source.batches():
            counted += run.queries[0].native.tally(batch, position, 1 << 62)[1]
            position += len(batch)
        return counted

    def _passed(self) -> int:
        """The matches that pass through a compiled writer that writes none."""
        run, source = self._start()
        with open_sink("jsonl", shapes(self._program), os.devnull) as sink:
            sink.format_natively(run.evaluation, 0)
            return sum(1 for _ in matches(run, source))

    def objects(self, reads: bool) -> int:
        """Match objects, and their bindings if `reads`."""
        run, source = self._start()
        count = 0
        for match in matches(run, source):
            count += len(match.bindings) > 0 if reads else 1
        return count

    def write(self, format: str, natively: bool) -> int:
        run, source = self._start()
        with open_sink(format, shapes(self._program), self._output) as sink:
            if not natively:
                sink.format_natively = lambda *_: None  # type: ignore[method-assign]
            pump(run, source, sink)
        return sink.written


def timed(use: Callable[[], int], repeat: int) -> tuple[int, list[float]]:
    """The number of matches and the processor times."""
    times, count = [], 0
    for _ in range(repeat):
        started = process_time()
        count = use()
        times.append(process_time() - started)
    return count, times


def show(name: str, count: int, times: Sequence[float], counting: float, size: int | None) -> None:
    middle, own = statistics.median(times), max(statistics.median(times) - counting, 1e-9)
    rates = [count / max(time - counting, 1e-9) for time in times]
    spread = f"{min(rates):,.0f}–{max(rates):,.0f}"
    volume = "–" if size is None else f"{size / count:,.0f}"
    print(
        f"{name:24}{count:>10,}{middle:>9.3f}{count / own:>13,.0f}{spread:>25}"
        f"{count / middle:>12,.0f}{volume:>12}"
    )


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Matches into every format: rows per second.")
    parser.add_argument("--matches", type=int, default=100_000)
    parser.add_argument("--costs", type=int, default=1)
    parser.add_argument("--queries", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--output", default=os.devnull)
    parser.add_argument("--formats", nargs="+", choices=tuple(SINKS), default=list(SINKS))
    options = parser.parse_args(None if arguments is None else list(arguments))
    if options.queries > 1:
        options.formats = [name for name in options.formats if not SINKS[name].one_query]
    print(f"median of {options.repeat}, seconds of the processor")
    print(
        f"{'':24}{'matches':>10}{'seconds':>9}{'writing/s':>13}{'min–max':>25}"
        f"{'all/s':>12}{'bytes/row':>12}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for natively, share in ((True, 1), (False, PLAIN_SHARE)):
            readings = max(1, options.matches // options.costs // options.queries // share)
            path = Path(folder) / f"{share}.nq"
            write_stream(path, readings, options.costs)
            bench = Bench(path, options.output, options.queries)
            count, times = timed(bench.count, options.repeat)
            counting = statistics.median(times)
            if natively:
                show("counting alone", count, times, 0, None)
                for name, reads in (("objects", False), ("objects, bindings read", True)):
                    found, times = timed(lambda: bench.objects(reads), options.repeat)  # noqa: B023
                    assert found == count
                    show(name, count, times, counting, None)
            for format in options.formats:
                if natively and format not in COMPILED:
                    continue
                sized = Bench(path, str(Path(folder) / "out"), options.queries)
                sized.write(format, natively)
                size = (Path(folder) / "out").stat().st_size
                found, times = timed(lambda: bench.write(format, natively), options.repeat)  # noqa: B023
                assert found == count
                show(format if natively else f"{format} in Python", count, times, counting, size)


if __name__ == "__main__":
    main()

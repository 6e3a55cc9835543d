"""Drawn queries with every construct of the language's sequences: engine and reference agree.

Each query combines bounds, deadlines, absences, optional steps, iterations, groups, partitions,
LIMIT and AFTER MATCH, over a few drawn events. The package is compared with the reference
semantics (`tests/oracle.py`). Events are pushed one by one; in some cases the run is saved and
resumed after each of them. The command line, which reads the same events from files, is compared
with the package. One call of the command line runs many queries, each over separate streams.

    python tests/fuzz/queries.py --cases 10000 --seed 1
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from drawn_queries import any_clauses
from oracle import Reference, comparable
from strategies import EXAMPLE, Case

import spaseq
from spaseq.cli import main
from spaseq.errors import QueryError, StateError
from spaseq.parser import parse
from spaseq.rdf.time import canonical_literal
from spaseq.results import Match

GENERATED_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
BATCH = 100
"""The number of queries of one call of the command line."""
RESUMED = 5
"""One case in this many is saved and resumed after each event."""


@dataclass
class Tally:
    """The counts and differences of a campaign."""

    compared: int = 0
    resumed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    matches: int = 0
    matched: int = 0
    differences: list[str] = field(default_factory=list)


def package(case: Case, resumed: bool) -> list[Match]:
    """The matches of the package, an event at a time."""
    program = spaseq.compile(case.query, names=["q"])
    run = program.start()
    found: list[Match] = []
    for event in case.merged:
        found += run.push_batch([event])
        if resumed:
            run = program.resume(run.save())
    return [*found, *run.finish()]


def command_line(cases: Sequence[Case], folder: Path) -> list[list[dict[str, Any]]]:
    """The rows of the command line for each case; it runs once."""
    arguments: list[str] = ["run"]
    streams: list[str] = []
    for number, case in enumerate(cases):
        path = folder / f"q{number}.rq"
        own = rf"FROM STREAM \1 :\2x{number}"
        path.write_text(re.sub(r"FROM STREAM (\w+) :(\w+)", own, case.query), encoding="utf-8")
        arguments.append(str(path))
        for stream in case.streams:
            file = folder / f"{stream.removeprefix(EXAMPLE)}{number}.nq"
            file.write_text("".join(_lines(case, stream, number)), encoding="utf-8")
            streams += ["--stream", f"{stream}x{number}={file}"]
    output = folder / "matches.jsonl"
    with redirect_stderr(StringIO()):  # warnings, and a summary
        status = main([*arguments, *streams, "--format", "jsonl", "--output", str(output)])
    if status:
        raise RuntimeError(f"the command line ended with {status}")
    rows: list[list[dict[str, Any]]] = [[] for _ in cases]
    for line in output.read_text(encoding="utf-8").splitlines():
        row = _row(line)
        rows[int(row["query"].removeprefix("q"))].append(row)
    return rows


def _lines(case: Case, stream: str, number: int) -> Iterator[str]:
    """The file of a stream: N-Quads with a timestamp in front of each event."""
    for place, event in enumerate(case.streams[stream]):
        graph = f"<{EXAMPLE}graph/{number}/{stream.removeprefix(EXAMPLE)}/{place}>"
        yield f"{graph} {GENERATED_AT} {canonical_literal(event.time)} .\n"
        for fact in event.facts:
            yield " ".join(map(str, fact)) + f" {graph} .\n"


def _row(line: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(line, parse_float=Decimal)
    return row


def _plain(row: dict[str, Any]) -> str:
    """The part of a match that the rows of both sides contain."""
    events = [
        (e["gpm"], re.sub(r"x\d+$", "", e["stream"]), str(e["time"]), e["ordinal"])
        for e in row["events"]
    ]
    return repr((str(row["start"]), str(row["end"]), row.get("bindings"), events))


def objection(case: Case, found: Sequence[Match]) -> str:
    """How matches differ from those of the reference; "" if they do not."""
    return Reference(parse(case.query), case.streams, case.kb).objection(comparable(found))


def try_cases(seeds: Sequence[int], tally: Tally) -> None:
    """Compare the cases of some seeds; the command line is called once for all of them."""
    taken: list[tuple[int, Case, list[str]]] = []
    for seed in seeds:
        case = any_clauses(seed)
        try:
            found = package(case, resumed=False)
        except QueryError as error:
            tally.refused[error.diagnostics[0].message] += 1
            continue
        wrong = objection(case, found)
        if not wrong and seed % RESUMED == 0:
            tally.resumed += 1
            try:
                wrong = objection(case, package(case, resumed=True))
            except StateError as error:
                wrong = str(error)
            wrong = wrong and f"resumed: {wrong}"
        if wrong:
            tally.differences.append(f"seed {seed}: {wrong}\n{case!r}")
        tally.compared += 1
        tally.matches += len(found)
        tally.matched += bool(found)
        taken.append((seed, case, [_plain(_row(match.to_json())) for match in found]))
    with tempfile.TemporaryDirectory() as folder:
        rows = command_line([case for _, case, _ in taken], Path(folder)) if taken else []
    for (seed, case, wanted), seen in zip(taken, rows, strict=True):
        if Counter(map(_plain, seen)) != Counter(wanted):
            tally.differences.append(f"seed {seed}: the command line gives {seen}\n{case!r}")


def campaign(arguments: argparse.Namespace) -> int:
    tally, begun = Tally(), time.process_time()
    for first in range(arguments.seed, arguments.seed + arguments.cases, BATCH):
        last = min(first + BATCH, arguments.seed + arguments.cases)
        try_cases(range(first, last), tally)
        if len(tally.differences) >= arguments.stop:
            break
    for text in tally.differences:
        print(text)
    print(
        f"{tally.compared:,} cases ({tally.resumed:,} resumed too), "
        f"{tally.matched:,} with matches, {tally.matches:,} matches, "
        f"{len(tally.differences)} differences, "
        f"{time.process_time() - begun:.0f} s of processor time"
    )
    for message, count in tally.refused.most_common():
        print(f"refused {count:,} times: {message}")
    return 1 if tally.differences else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stop", type=int, default=5, help="stop after so many differences")
    raise SystemExit(campaign(parser.parse_args()))

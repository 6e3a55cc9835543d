"""The cost of an event for each construct, compared with `A ; B` with a shared variable.

Each event has one triple: an A, a B, a C, an N or something else, about one of some keys. There is
one event per second, and the window is 100 seconds. Events are read beforehand. The script measures
the processor time of matching and of counting the matches, for the constructs in turns. `ratio` is
the time of the construct divided by that of `A ; B`: the median, minimum and maximum of the
repeats.

    python benchmarks/query/constructs.py --events 50000 --repeat 5

`--record FILE` writes the figures as JSON, and `--svg FILE` draws them. `--drawn RECORD` draws a
record without measuring.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import re
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from time import process_time
from typing import Any

import pyoxigraph as ox

import spaseq
from spaseq.io.source import Source

EX = "http://example.org/"
STREAM = EX + "S"
PLAIN = "A ; B, shared variable"
FILTERED = "?k :b ?b FILTER({})"
QUERIES: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    PLAIN: ("A ; B", {}, ""),
    "A ; B, nothing shared": ("A ; B", {"A": "[] :a ?a", "B": "[] :b ?b"}, ""),
    "A : B": ("A : B", {}, ""),
    "A , B, partitions": ("A , B", {}, "PARTITION BY ?k"),
    "A : B, ?b > ?a": ("A : B", {"B": FILTERED.format("?b > ?a")}, ""),
    "A : B, ?a * ?b > c": ("A : B", {"B": FILTERED.format("?a * ?b > 900000")}, ""),
    "A ; B+, EMIT MAX": ("A ; B+", {}, "EMIT MAX"),
    "A ; B+, ?b > PREV(?b)": ("A ; B+", {"B": FILTERED.format("?b > PREV(?b, 0)")}, "EMIT MAX"),
    "A ; B+ ; C, ?c > SUM(?b)": (
        "A ; B+ ; C", {"C": "?k :c ?c FILTER(?c > SUM(?b))"}, "EMIT MAX",
    ),
    "A ; !N ; B": ("A ; !N ; B", {}, ""),
    "A ; !N WITHIN 5 s ; B": ("A ; !N WITHIN 5 SECONDS ; B", {}, ""),
    "A ; !N": ("A ; !N", {}, ""),
    "A ; B WITHIN 5 s": ("A ; B WITHIN 5 SECONDS", {}, ""),
    "A ; (B ; C) WITHIN 50 s": ("A ; (B ; C) WITHIN 50 SECONDS", {}, ""),
    "A ; B?": ("A ; B?", {}, ""),
    "(A | B) ; C": ("(A | B) ; C", {}, ""),
    "(A AND B) ; C": ("(A AND B) ; C", {}, ""),
    "A ; B, EMIT LAST": ("A ; B", {}, "EMIT LAST"),
    "A, GROUP BY ?k OVER 60 s": ("A", {}, "GROUP BY ?k OVER 60 SECONDS"),
    "A ; B, LIMIT 1 PER ?k EVERY 60 s": ("A ; B", {}, "LIMIT 1 PER ?k EVERY 60 SECONDS"),
    "A ; B, GRAPH of 10,000 triples": ("A ; B", {"B": "?k :b ?b GRAPH :kb { ?k :in ?r }"}, ""),
    "A ; B, a filter that errs": ("A ; B", {"B": FILTERED.format('?b < "x"')}, ""),
    "A ; B, a filter in Python": ("A ; B", {"B": FILTERED.format("?b >= 0 * RAND()")}, ""),
}  # fmt: skip
WIDTH, LEFT, ROW = 720, 250, 20


def query(name: str) -> str:
    """The query of a construct."""
    sequence, bodies, clauses = QUERIES[name]
    select, end = "SELECT *", ""
    if clauses.startswith("GROUP"):
        select, clauses, end = "SELECT ?k (AVG(?a) AS ?mean)", "", clauses
    elif clauses.startswith("LIMIT"):
        clauses, end = "", clauses
    names = sorted(set(re.findall(r"\b[ABCN]\b", sequence)))
    defines = " ".join(
        f"DEFINE GPM {each} ON S {{ {bodies.get(each, f'?k :{each.lower()} ?{each.lower()}')} }}"
        for each in names
    )
    return (
        f"PREFIX : <{EX}> {select} WITHIN 100 SECONDS FROM STREAM S <{STREAM}> {clauses} "
        f"WHERE {{ SEQ({sequence}) {defines} }} {end}"
    )


def events(count: int, keys: int, chance: random.Random) -> Iterator[str]:
    """The events as N-Quads: a statement and its time."""
    for number in range(count):
        (kind,) = chance.choices("abcnx", (4, 4, 2, 1, 9))
        graph, key = f"<{EX}g{number}>", chance.randrange(keys)
        yield (
            f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> "
            f'"{number}"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n'
            f"<{EX}k{key}> <{EX}{kind}> "
            f'"{chance.randrange(1000)}"^^<http://www.w3.org/2001/XMLSchema#integer> {graph} .\n'
        )


def knowledge(keys: int) -> list[ox.Triple]:
    """A room for each of 10,000 keys; the first ones are those of the events."""
    return [
        ox.Triple(
            ox.NamedNode(f"{EX}k{key}"), ox.NamedNode(EX + "in"), ox.NamedNode(f"{EX}r{key % 10}")
        )
        for key in range(max(keys, 10_000))
    ]


def matched(program: spaseq.Program, path: Path, kb: list[ox.Triple]) -> tuple[float, int]:
    """(processor time of matching, matches)."""
    run = program.start(kb={EX + "kb": kb})
    batches = list(Source(STREAM, [str(path)], relevance=run.relevance).batches())
    before = process_time()
    found = sum(1 for batch in batches for _ in run.push_batch(batch)) + len(run.finish())
    return process_time() - before, found


def measured(count: int, keys: int, repeat: int, seed: int) -> dict[str, dict[str, Any]]:
    """Construct → nanoseconds per event and ratio of each repeat, and the matches."""
    programs = {name: spaseq.compile(query(name)) for name in QUERIES}
    times: dict[str, list[float]] = {name: [] for name in QUERIES}
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.nq"
        path.write_text("".join(events(count, keys, random.Random(seed))), encoding="utf-8")
        kb = knowledge(keys)
        for _ in range(repeat):
            for name, program in programs.items():
                spent, counts[name] = matched(program, path, kb)
                times[name].append(spent)
    return {
        name: {
            "matches": counts[name],
            "nanoseconds": [round(1e9 * spent / count) for spent in times[name]],
            "ratio": [
                round(spent / plain, 2)
                for spent, plain in zip(times[name], times[PLAIN], strict=True)
            ],
        }
        for name in QUERIES
    }


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    lines = (
        Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    )
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "processor": models[0] if models else platform.processor(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
    }


def svg(record: Mapping[str, Any]) -> str:
    """The nanoseconds of an event as bars on a logarithmic axis, with their spread."""
    figures = record["figures"]
    height = ROW * len(figures) + 40
    title = "Processor time of an event, matches included, by construct"

    def x(nanoseconds: float) -> float:
        return LEFT + (WIDTH - LEFT - 70) * math.log10(max(nanoseconds, 10) / 10) / 4

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="currentColor" '
        f'aria-label="{escape(title)}"><style>svg{{color:#24292f}}'
        f"@media(prefers-color-scheme:dark){{svg{{color:#d0d7de}}}}</style>"
    ]
    for tick, shown in ((100, "100 ns"), (1_000, "1 µs"), (10_000, "10 µs"), (100_000, "100 µs")):
        parts.append(
            f'<path d="M{x(tick):.1f} 4V{height - 34}" stroke="currentColor" '
            f'stroke-dasharray="2 4"/>'
            f'<text x="{x(tick):.1f}" y="{height - 20}" text-anchor="middle">{shown}</text>'
        )
    for row, (name, each) in enumerate(figures.items()):
        y, spent = ROW * row + 8, each["nanoseconds"]
        middle = statistics.median(spent)
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 10}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{LEFT}" y="{y}" width="{x(middle) - LEFT:.1f}" height="12" fill="#0b8273"/>'
            f'<path d="M{x(min(spent)):.1f} {y + 6}H{x(max(spent)):.1f}" stroke="currentColor"/>'
            f'<text x="{x(max(spent)) + 6:.1f}" y="{y + 10}">{middle:,.0f}</text>'
        )
    parts.append(f'<text x="{LEFT}" y="{height - 4}">{escape(title)}</text></svg>\n')
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description="What an event costs, by construct.")
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--keys", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path, help="write the figures as JSON")
    parser.add_argument("--drawn", type=Path, help="draw this record instead of measuring")
    parser.add_argument("--svg", type=Path, help="draw the figures")
    options = parser.parse_args()
    if options.drawn:
        record = json.loads(options.drawn.read_text("utf-8"))
    else:
        figures = measured(options.events, options.keys, options.repeat, options.seed)
        command = f"constructs.py --events {options.events} --repeat {options.repeat}"
        record = {**machine(), "command": command, "figures": figures}
    for name, each in record["figures"].items():
        ratio = each["ratio"]
        print(
            f"{name:<34} {statistics.median(each['nanoseconds']):>7,.0f} ns  "
            f"ratio {statistics.median(ratio):.2f} ({min(ratio):.2f} to {max(ratio):.2f})  "
            f"{each['matches']:,} matches"
        )
    if options.record:
        options.record.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    if options.svg:
        options.svg.write_text(svg(record), "utf-8")


if __name__ == "__main__":
    main()

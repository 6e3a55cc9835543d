"""Matches of several constructs into a file: processor time of a match, beside that of `A ; B`.

Each event has one triple: an A, a B, a C, an N or something else, about one of ten keys. The events
are read and matched as in `spaseq run`, and the matches are written to `/dev/null`. A construct's
time is the total time minus that of a query over the same events without a match, divided by the
number of matches: the median of the repeats, with the minimum and maximum.

    python benchmarks/writing/constructs.py --events 20000
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import tempfile
from pathlib import Path
from time import process_time

import spaseq
from spaseq.io.sinks import open_sink
from spaseq.io.source import Source
from spaseq.pipeline import pump, shapes

EX = "http://example.org/"
STREAM = EX + "s"
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
NUMBER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
PLAIN = "A ; B"
SELECT = "SELECT *"
OVER = "GROUP BY ?k OVER 50 SECONDS"
SUM = "SELECT ?k (SUM(?b) AS ?sum)"
CONSTRUCTS = {
    PLAIN: (PLAIN, "", SELECT),
    "A ; B+": ("A ; B+", "", SELECT),
    "A ; !N": ("A ; !N", "", SELECT),
    "A ; !N WITHIN 5 s": ("A ; !N WITHIN 5 SECONDS", "", SELECT),
    "A ; B?": ("A ; B?", "", SELECT),
    "(A AND B)": ("(A AND B)", "", SELECT),
    "A : B, EMIT ANY": ("A : B", "EMIT ANY", SELECT),
    "A : B, EMIT NEXT": ("A : B", "EMIT NEXT", SELECT),
    "A : B, EMIT LAST": ("A : B", "EMIT LAST", SELECT),
    "A ; B+, EMIT MAX": ("A ; B+", "EMIT MAX", SELECT),
    "A ; !N, EMIT ANY": ("A ; !N", "EMIT ANY", SELECT),
    "A ; (B | B)": ("A ; (B | B)", "", SELECT),
    "A : B, LIMIT 2": ("A : B", "LIMIT 2", SELECT),
    "A : B, LIMIT 2 PER ?k": ("A : B", "LIMIT 2 PER ?k", SELECT),
    "A : B, LIMIT EVERY 5 s": ("A : B", "LIMIT 2 PER ?k EVERY 5 SECONDS", SELECT),
    "A : B, DISTINCT": ("A : B", "", "SELECT DISTINCT *"),
    "A ; B, (?a + ?b AS ?s)": (PLAIN, "", "SELECT ?k (?a + ?b AS ?s)"),
    "A ; B+, (COUNT(B) AS ?n)": ("A ; B+", "", "SELECT ?k (COUNT(B) AS ?n)"),
    "A ; B, CONSTRUCT": (PLAIN, "", "CONSTRUCT { [] :of ?k ; :first ?a ; :then ?b }"),
    "A ; B, ASK": (PLAIN, "", "ASK"),
    "GROUP": (PLAIN, OVER, SUM),
    "GROUP, HAVING": (PLAIN, f"{OVER} HAVING (?sum > 0)", SUM),
    "GROUP, (SUM / COUNT)": (PLAIN, OVER, "SELECT ?k (SUM(?b) / COUNT(*) AS ?mean)"),
    "GROUP, DISTINCT": (PLAIN, OVER, "SELECT DISTINCT ?k (COUNT(*) AS ?count)"),
    "GROUP, LIMIT 1": (PLAIN, f"{OVER} LIMIT 1", SUM),
    "GROUP, LIMIT EVERY 5 s": (PLAIN, f"{OVER} LIMIT 2 PER ?k EVERY 5 SECONDS", SUM),
    "GROUP, CONSTRUCT": (
        PLAIN,
        f"{OVER} LET (SUM(?b) AS ?sum)",
        "CONSTRUCT { [] :of ?k ; :is ?sum }",
    ),
    "GROUP, ASK": (PLAIN, f"{OVER} HAVING (COUNT(*) > 0)", "ASK"),
    "GROUP OVER TUMBLING": (PLAIN, "GROUP BY ?k OVER TUMBLING 20 SECONDS", SUM),
    "A : B, EMIT ANY, GROUP": ("A : B", f"EMIT ANY {OVER}", SUM),
    "A ; !N, GROUP": ("A ; !N", OVER, "SELECT ?k (SUM(?a) AS ?sum)"),
    "A ; B+, GROUP BY COUNT": (
        "A ; B+",
        "GROUP BY (COUNT(B) AS ?length) OVER 50 SECONDS",
        "SELECT ?length (COUNT(*) AS ?count)",
    ),
}
WITHOUT_MATCHES = ("A ; B", "none", SELECT)


def query(sequence: str, clause: str, head: str) -> str:
    """The query of a construct."""
    names = sorted(set(re.findall(r"\b[ABN]\b", sequence)))
    condition = "FILTER(?b < 0)" if clause == "none" else ""
    defines = " ".join(
        f"DEFINE GPM {name} ON s {{ ?k :{name.lower()} ?{name.lower()} "
        f"{condition if name == 'B' else ''} }}"
        for name in names
    )
    emit, *rest = re.split("(?=GROUP|LIMIT)", "" if clause == "none" else clause, maxsplit=1)
    return (
        f"PREFIX : <{EX}> {head} WITHIN 50 SECONDS FROM STREAM s <{STREAM}> {emit} "
        f"WHERE {{ SEQ({sequence}) {defines} }} {''.join(rest)}"
    )


def write_stream(path: Path, events: int, chance: random.Random) -> None:
    with path.open("w", encoding="utf-8") as out:
        for second in range(events):
            graph, key = f"<{EX}g{second}>", f"<{EX}k{chance.randrange(10)}>"
            (kind,) = chance.choices("abnx", (4, 4, 1, 9))
            out.write(f'{graph} {TIME} "{second}"{NUMBER} .\n')
            out.write(f'{key} <{EX}{kind}> "{chance.randrange(1000)}"{NUMBER} {graph} .\n')


def written(program: spaseq.Program, path: Path, format: str) -> tuple[float, int]:
    """(processor time, matches)."""
    run = program.start()
    source = Source(STREAM, [str(path)], relevance=run.relevance)
    before = process_time()
    with open_sink(format, shapes(program), os.devnull) as sink:
        pump(run, source, sink)
    return process_time() - before, sink.written


def main() -> None:
    parser = argparse.ArgumentParser(description="Processor time of a written match, by construct.")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--format", default="jsonl")
    parser.add_argument("--only", default="", help="constructs whose names contain this text")
    options = parser.parse_args()
    programs = {
        name: spaseq.compile(query(*each))
        for name, each in CONSTRUCTS.items()
        if name == PLAIN or options.only in name
    }
    bare = spaseq.compile(query(*WITHOUT_MATCHES))
    times: dict[str, list[float]] = {name: [] for name in programs}
    without, counts = [], dict[str, int]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.nq"
        write_stream(path, options.events, random.Random(1))
        for _ in range(options.repeat):
            without.append(written(bare, path, options.format)[0])
            for name, program in programs.items():
                spent, counts[name] = written(program, path, options.format)
                times[name].append(spent)
    base = statistics.median(without)
    own = {name: (statistics.median(some) - base) / counts[name] for name, some in times.items()}
    for name, some in times.items():
        least, most = (1e6 * (edge - base) / counts[name] for edge in (min(some), max(some)))
        print(
            f"{name:<26}{counts[name]:>9,} matches {1e6 * own[name]:>8.2f} us "
            f"({least:.2f} to {most:.2f})  ratio {own[name] / own[PLAIN]:.2f}"
        )


if __name__ == "__main__":
    main()

"""A sliding average over the results of one step: events per second, beside no GROUP.

Sensors report a temperature each; a reading has one quad besides its time, and comes every
`--every` milliseconds. The query averages the readings of a sensor over ten minutes, and asks for
averages above `--above`, which few groups have. Beside it in the same run: the query without GROUP,
which has a match for each reading; the same with a FILTER that leaves few; averages of all readings
together; MIN and MAX; the sliding average without HAVING, which has a solution for each reading;
and with the groups in Python, as for queries that the core does not group. The last two get the
first tenth of the readings, or `--part`.

Events are read before, so the times are those of matching alone. All are processor times. The ratio
is to the query without GROUP. `held` is the greatest number of results that groups held.

    python benchmarks/query/sliding.py --events 400000 --repeat 3
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from pathlib import Path
from time import process_time

import spaseq
from spaseq.io.source import Source

STREAM = "http://example.org/readings"
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
XSD = "http://www.w3.org/2001/XMLSchema#"
HEAD = (
    f"PREFIX : <http://example.org/> SELECT %s WITHIN 1 SECOND FROM STREAM S <{STREAM}> WHERE {{ "
)
STEP = "SEQ(A) DEFINE GPM A ON S {{ ?sensor :temperature ?t {} }} }} "
ALL = HEAD % "?sensor ?t" + STEP.format("")
FEW = HEAD % "?sensor ?t" + STEP.format("FILTER(?t > {above})")
MEAN = HEAD % "?sensor (AVG(?t) AS ?mean)" + STEP.format("") + "GROUP BY ?sensor OVER 10 MINUTES "
TOGETHER = HEAD % "(AVG(?t) AS ?mean)" + STEP.format("") + "GROUP OVER 10 MINUTES "
BEST = HEAD % "?sensor ?low" + STEP.format("") + "GROUP BY ?sensor OVER 10 MINUTES "
QUERIES = {
    "no GROUP": ALL,
    "no GROUP, few matches": FEW,
    "AVG": MEAN + "HAVING (?mean > {above})",
    "AVG of all": TOGETHER + "HAVING (?mean > {above})",
    "MIN and MAX": BEST + "LET (MIN(?t) AS ?low) HAVING (?low > {above} && MAX(?t) < 90)",
    "AVG, every solution": MEAN,
    "AVG, in Python": MEAN + "HAVING (?mean > {above})",
}
SLOW = ("AVG, every solution", "AVG, in Python")


def readings(path: Path, events: int, sensors: int, every: int, kind: str, seed: int) -> None:
    """Write the stream."""
    chance = random.Random(seed)
    with path.open("w", encoding="utf-8") as out:
        for number in range(events):
            graph = f"<http://example.org/r/{number}>"
            micros = f'"{number * every / 1000}"^^<{XSD}decimal>'
            shown = f"{chance.gauss(20, 5):.2f}" + ("e0" if kind == "double" else "")
            sensor = f"<http://example.org/s/{chance.randrange(sensors)}>"
            out.write(f"{graph} {TIME} {micros} .\n")
            out.write(
                f'{sensor} <http://example.org/temperature> "{shown}"^^<{XSD}{kind}> {graph} .\n'
            )


def match(path: Path, program: spaseq.Program, part: float, native: bool) -> tuple[float, ...]:
    """(events, matches, results held at most, processor seconds)."""
    run = program.start()
    groups = run.queries[0].output.groups
    if groups is not None and not native:
        run.queries[0].group_in_python()
    batches = list(Source(STREAM, [str(path)], relevance=run.relevance).batches())
    batches = batches[: max(1, round(part * len(batches)))]
    found = held = 0
    started = process_time()
    for batch in batches:
        found += sum(1 for _ in run.push_batch(batch))
        held = max(held, 0 if groups is None else groups.held_count)
    return sum(map(len, batches)), found, held, process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description="A sliding average over the results of one step.")
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--sensors", type=int, default=100)
    parser.add_argument("--every", type=int, default=10, help="milliseconds between two readings")
    parser.add_argument("--above", type=float, default=30.0)
    parser.add_argument("--kind", default="decimal", choices=("decimal", "double"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", type=float, default=0.1, help="for the last two")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    rates: dict[str, list[float]] = {name: [] for name in QUERIES}
    shown: dict[str, tuple[float, ...]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "readings.nq"
        readings(path, options.events, options.sensors, options.every, options.kind, options.seed)
        for _ in range(options.repeat):
            for name, text in QUERIES.items():
                program = spaseq.compile(text.replace("{above}", str(options.above)))
                part = options.part if name in SLOW else 1.0
                shown[name] = match(path, program, part, name != "AVG, in Python")
                rates[name].append(shown[name][0] / shown[name][3])
    print(
        f"{options.events:,} readings ({options.kind}) of {options.sensors} sensors, one every "
        f"{options.every} ms, seed {options.seed}, median of {options.repeat}"
    )
    print(f"{'':24}{'events/s':>12}{'min–max':>24}{'ratio':>8}{'matches':>10}{'held':>9}")
    yardstick = statistics.median(rates["no GROUP"])
    for name, found in rates.items():
        middle = statistics.median(found)
        spread = f"{min(found):,.0f}–{max(found):,.0f}"
        _, matches, held, _ = shown[name]
        print(
            f"{name:24}{middle:>12,.0f}{spread:>24}{middle / yardstick:>8.2f}"
            f"{matches:>10,}{held:>9,}"
        )


if __name__ == "__main__":
    main()

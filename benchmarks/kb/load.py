"""Loading a knowledge base from a file: processor time and memory, against pyoxigraph's parser.

The file has companies, each with a different name and one of ten sectors. Each measurement is a
separate process, because memory freed by one measurement would be reused by the next. The process
imports its modules and measures its resident memory. It then loads the file (`open_kb`), starts a
run whose query joins an event with the companies, or parses the file with pyoxigraph and drops the
triples. Ratios are of processor times in one round; memory is the peak above the memory after the
imports.

    python benchmarks/kb/load.py --triples 1000000 --repeat 5
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = "http://example.org/"
SECTORS = 10

MEASURED = """
import json, resource, sys, time
import pyoxigraph as ox
import spaseq
what, path = sys.argv[1:]
query = '''
SELECT * WITHIN 5 MINUTES FROM STREAM s <urn:s> WHERE { SEQ(A ; B)
  DEFINE GPM A ON s { ?company <urn:price> ?price .
    GRAPH <urn:kb> { ?company <https://schema.org/name> ?name ;
                              <http://w3id.org/spaseq/stock#sector> ?sector } }
  DEFINE GPM B ON s { ?company <urn:price> ?other } }
'''
program = spaseq.compile(query)
list(program.start(kb={"urn:kb": []}).finish())
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
before, began = resident(), time.process_time()
if what == "pyoxigraph":
    found = sum(1 for _ in ox.parse(path=path))
else:
    kb = spaseq.kb.open_kb({"urn:kb": path})
    found = len(kb)
    if what == "start":
        began = time.process_time()
        run = program.start(kb=kb)
seconds = time.process_time() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([seconds, (peak - before) / 1e6, (resident() - before) / 1e6, found]))
"""


def write(path: Path, triples: int) -> None:
    """Write companies as N-Triples or Turtle."""
    name, sector = "<https://schema.org/name>", "<http://w3id.org/spaseq/stock#sector>"
    with path.open("w") as file:
        for n in range(triples // 2):
            company = f"<{ROOT}stock/company/x{n}>"
            also = " ;" if path.suffix == ".ttl" else f" .\n{company}"
            file.write(f'{company} {name} "x{n}"{also} {sector} "sector {n % SECTORS}" .\n')


def measure(what: str, path: Path) -> tuple[float, float, float, int]:
    """Processor seconds, megabytes at the peak and at the end, and triples of one process."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, what, str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    seconds, peak, end, found = json.loads(done.stdout)
    return seconds, peak, end, found


def main() -> None:
    parser = argparse.ArgumentParser(description="Loading a knowledge base from a file.")
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    titles = ("seconds", "min–max", "x pyoxigraph", "peak MB", "MB", "triples")
    print(f"{options.triples:,} triples, median of {options.repeat}")
    print("{:16}{:>9}{:>14}{:>14}{:>9}{:>6}{:>11}".format("", *titles))
    with tempfile.TemporaryDirectory() as folder:
        for extension in ("nt", "ttl"):
            path = Path(folder) / f"kb.{extension}"
            write(path, options.triples)
            rounds = [
                {what: measure(what, path) for what in ("pyoxigraph", "load", "start")}
                for _ in range(options.repeat)
            ]
            for what in rounds[0]:
                seconds = [one[what][0] for one in rounds]
                ratio = statistics.median(one[what][0] / one["pyoxigraph"][0] for one in rounds)
                spread = f"{min(seconds):.2f}–{max(seconds):.2f}"
                _, peak, end, found = rounds[-1][what]
                print(
                    f"{extension + ', ' + what:16}{statistics.median(seconds):>9.2f}{spread:>14}"
                    f"{ratio:>14.2f}{peak:>9.0f}{end:>6.0f}{found:>11,}"
                )


if __name__ == "__main__":
    main()

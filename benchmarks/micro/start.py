"""Start-up time of `spaseq run` on a small file, and of `import spaseq; compile`.

Every row is a new interpreter, and the rows take turns. A time is the processor time of the whole
process, including system time, so that reading the modules counts too. The baseline is the
interpreter alone, which includes what the environment adds to every start. Modules are read from
bytecode, which a first pass writes to a separate folder. The query has two steps over trades; the
file has `--events` events. The last two rows are timed within the process: `compile` for the first
and the second time, without the imports. The script prints the median and the spread of the
repeats, and the number of modules at the end of the process.

    python benchmarks/micro/start.py --repeats 40
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from read_nquads import STOCK, write_stream

STREAM = "http://example.org/trades"
QUERY = f"""
PREFIX : <{STOCK}>
SELECT ?company ?p1 ?p2
WITHIN 1 MINUTE
FROM STREAM trades <{STREAM}>
WHERE {{
  SEQ(A ; B)
  DEFINE GPM A ON trades {{ ?a :company ?company ; :price ?p1 FILTER(?p1 > 90.0) }}
  DEFINE GPM B ON trades {{ ?b :company ?company ; :price ?p2 FILTER(?p2 < 10.0) }}
}}
"""
MODULES = "import sys; print('modules', len(sys.modules), file=sys.stderr)"
RUN = f"""
import atexit
@atexit.register
def modules():
    {MODULES}
import sys
from spaseq.cli import main
sys.exit(main())
"""
COMPILE = f"import sys, spaseq; spaseq.compile(sys.argv[1]); {MODULES}"
WITHIN = f"""
import sys, time, spaseq
spaseq.compile
for _ in range(int(sys.argv[2])):
    started = time.process_time()
    spaseq.compile(sys.argv[1])
print('seconds', time.process_time() - started, file=sys.stderr)
{MODULES}
"""


@dataclass(slots=True)
class Row:
    """A program in a new interpreter, and what its repeats took."""

    title: str
    arguments: list[str]
    seconds: list[float] = field(default_factory=list)
    modules: int = 0
    matches: int = 0

    def repeat(self, environment: dict[str, str]) -> None:
        """Run it once more.

        Raises:
            RuntimeError: if the process fails.
        """
        command = [sys.executable, *self.arguments]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
            child = subprocess.Popen(command, stdout=out, stderr=said, env=environment)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            said.seek(0)
            notes = said.read().decode()
            if child.returncode:
                raise RuntimeError(f"{self.title}: {notes}")
            self.matches = sum(1 for _ in out)
        figures = dict(line.split(maxsplit=1) for line in notes.splitlines())
        self.modules = int(figures["modules"])
        self.seconds.append(float(figures.get("seconds", used.ru_utime + used.ru_stime)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Starting the command, and importing the package.")
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        query, stream = Path(name, "query.rq"), Path(name, "trades.nq")
        query.write_text(QUERY, encoding="utf-8")
        write_stream(stream, given.events, given.seed)
        rows = [
            Row("python", ["-c", MODULES]),
            Row("spaseq run", ["-c", RUN, "run", str(query), "--stream", f"{STREAM}={stream}"]),
            Row("spaseq --version", ["-c", RUN, "--version"]),
            Row("import; compile", ["-c", COMPILE, QUERY]),
            Row("  compile", ["-c", WITHIN, QUERY, "1"]),
            Row("  compile again", ["-c", WITHIN, QUERY, "2"]),
        ]
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(name, "bytecode"))}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for row in rows:
            row.repeat(environment)
            row.seconds.clear()
        for _ in range(given.repeats):
            for row in rows:
                row.repeat(environment)
    print(f"{given.events:,} events, seed {given.seed}, median of {given.repeats}, processor time")
    print(f"{'':20}{'ms':>8}{'min-max':>16}{'- python':>10}{'modules':>9}{'matches':>9}")
    alone = statistics.median(rows[0].seconds)
    for row in rows:
        median = statistics.median(row.seconds)
        spread = f"{min(row.seconds) * 1e3:.1f}-{max(row.seconds) * 1e3:.1f}"
        above = "" if row.title.startswith(" ") else f"{(median - alone) * 1e3:.1f}"
        found = f"{row.matches:,}" if row.title == "spaseq run" else ""
        shown = f"{row.title:20}{median * 1e3:>8.1f}{spread:>16}{above:>10}{row.modules:>9}"
        print(f"{shown}{found:>9}".rstrip())


if __name__ == "__main__":
    main()

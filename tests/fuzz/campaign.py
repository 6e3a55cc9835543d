"""An hour of hostile documents, bodies and states, in one command.

    SPASEQ_HOSTILE_SECONDS=3600 python tests/fuzz/campaign.py

runs `hostile_documents.py` (documents of up to 10⁷ bytes in each syntax at each decoder, among them
the bodies of requests), `hostile_state.py` and `documents.py`, each for its part of the time, and
then `hostile_jelly.py`. It returns 1 if one of them finds a fault. `SPASEQ_SEED` is the seed,
`SPASEQ_HOSTILE_BYTES` the size of the documents made by hand, which are all read in any case, and
`SPASEQ_HOSTILE_STATES` the number of states that are tried in any case.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
SECONDS = float(os.environ.get("SPASEQ_HOSTILE_SECONDS", "3600"))
SEED = os.environ.get("SPASEQ_SEED", "0")
BYTES = os.environ.get("SPASEQ_HOSTILE_BYTES", "10000000")
STATES = os.environ.get("SPASEQ_HOSTILE_STATES", "100000")

PARTS = (
    ("hostile_documents.py", 0.5, ("--size", BYTES, "--seed", SEED)),
    ("hostile_state.py", 0.3, ("--states", STATES, "--seed", SEED, "--memory", "8000")),
    ("documents.py", 0.2, ("--seed", SEED)),
    ("hostile_jelly.py", 0, ("0", "999")),
)
"""A script, its part of the time, and its other arguments."""


def main() -> int:
    failed = []
    for script, part, arguments in PARTS:
        command = [sys.executable, str(HERE / script), *arguments]
        if part:
            command += ["--seconds", str(int(SECONDS * part))]
        print(f"== {script}", flush=True)
        began = time.monotonic()
        if subprocess.run(command).returncode:
            failed.append(script)
        print(f"   {time.monotonic() - began:.0f} s", flush=True)
    print("faults in " + ", ".join(failed) if failed else "no faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

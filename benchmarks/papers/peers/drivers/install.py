"""Installs other engines by name into build/peers, for the drivers here.

python benchmarks/papers/peers/drivers/install.py flink siddhi comunica rsp-js
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[4] / "build" / "peers"
PACKAGES = {
    "flink": ["apache-flink-libraries==1.20.1"],
    "siddhi": ["PySiddhi==5.1.0"],
    "comunica": ["@comunica/query-sparql-rdfjs@4", "n3@1"],
    "rsp-js": ["rsp-js@1.3.5"],
}
"""From PyPI, for their jars alone; those of `FROM_NPM` from npm."""
FROM_NPM = ("comunica", "rsp-js")


def main() -> None:
    for name in sys.argv[1:] or PACKAGES:
        folder = FOLDER / name
        folder.mkdir(parents=True, exist_ok=True)
        if name in FROM_NPM:
            command = ["npm", "install", "--silent", "--prefix", str(folder)]
        else:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
            command.append(str(folder))
        subprocess.run([*command, *PACKAGES[name]], check=True)
        print(f"{name}: {folder}")


if __name__ == "__main__":
    main()

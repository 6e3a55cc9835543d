"""Compiles and becomes a driver in Java: `java_driver.py flink` or `siddhi`.

The jars are those that `install.py` puts below build/peers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "java"
INSTALLED = Path(os.environ.get("SPASEQ_PEERS") or Path(__file__).parents[4] / "build" / "peers")
JARS = {
    "flink": ("FlinkDriver", "pyflink/lib"),
    "siddhi": ("SiddhiDriver", "__PySiddhiProxy/target/lib"),
}


def main(name: str) -> None:
    driver, below = JARS[name]
    jars = INSTALLED / name / below
    for reason, missing in (
        (f"no jars in {jars}; run install.py {name}", not jars.is_dir()),
        ("no Java compiler is installed", shutil.which("javac") is None),
    ):
        if missing:
            sys.exit(f"cannot: {reason}")
    classes = INSTALLED / "classes" / name
    classes.mkdir(parents=True, exist_ok=True)
    sources = [str(FOLDER / f"{one}.java") for one in ("Protocol", driver)]
    path = f"{jars}/*"
    subprocess.run(["javac", "-nowarn", "-proc:none", "-cp", path, "-d", str(classes), *sources],
                   check=True, stderr=subprocess.DEVNULL)  # fmt: skip
    os.execvp("java", ["java", "-Xmx4g", "-cp", f"{classes}:{path}", driver])


if __name__ == "__main__":
    main(sys.argv[1])

"""Reading compressed N-Quads, beside the decompressor alone.

The stream is that of `read_nquads.py`. For each compression three things are timed in turns: the
decompressor in one loop over the compressed bytes, with outputs as large as those of the readers;
the blocks of lines that the readers receive; and the events with two of seven predicates stored.
All times are processor times; the script prints the median and the spread of the repeats. The
events are compared with the events of the plain file.

    python benchmarks/micro/read_compressed.py --quads 800000
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import lzma
import statistics
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import cast

from read_nquads import KEPT, PER_EVENT, read_encoded, write_stream

from spaseq.io.lines import Lines
from spaseq.rdf.compression import COMPRESSIONS
from spaseq.rdf.native._terms import Dictionary, Relevance

_BLOCK = 1 << 18
_OUTPUT = 3 << 19
"""Bytes of output at once: without a bound, most of the time is that of fresh pages."""


def packers() -> dict[str, Callable[[bytes], bytes]]:
    """What compresses, by the names of `COMPRESSIONS`."""
    zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    return {
        "gzip": lambda data: gzip.compress(data, 6),
        "zstd": lambda data: cast(bytes, zstd.compress(data, 3)),
        "bzip2": bz2.compress,
        "xz": lambda data: lzma.compress(data, preset=1),
    }


def alone(path: Path, kind: str) -> int:
    """The bytes that the decompressor returns for the file."""
    make, _ = COMPRESSIONS[kind].open()
    member, size = make(), 0
    with path.open("rb", buffering=0) as file:
        while data := file.read(_BLOCK):
            size += len(member.decompress(data, _OUTPUT))
            while not (member.needs_input or member.eof):
                size += len(member.decompress(b"", _OUTPUT))
    return size


def lines(path: Path) -> int:
    """The bytes of the blocks of lines."""
    file = Lines(str(path))
    size = sum(end - start for some in file.pieces() for _, start, end in some)
    file.close()
    return size


def timed(task: Callable[[], object]) -> float:
    begun = process_time()
    task()
    return process_time() - begun


def shown(name: str, seconds: list[float], size: int) -> str:
    median, least, most = (
        size / seconds / 1e6 for seconds in (statistics.median(seconds), max(seconds), min(seconds))
    )
    return f"{name:24} {median:8.0f} MB/s  ({least:.0f} to {most:.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quads", type=int, default=800_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.nq"
        write_stream(plain, given.quads // PER_EVENT, 1)
        data = plain.read_bytes()
        relevance = Relevance(Dictionary(), KEPT)
        expected = read_encoded(plain, relevance)
        print(f"{expected[0]:,} quads in {expected[1]:,} events, {len(data):,} bytes")
        for kind, pack in packers().items():
            path = Path(folder) / f"packed.{kind}"
            path.write_bytes(pack(data))
            tasks: dict[str, Callable[[], object]] = {
                "decompressor": lambda path=path, kind=kind: alone(path, kind),
                "lines": lambda path=path: lines(path),
                "events": lambda path=path: read_encoded(path, relevance),
                "events, plain file": lambda: read_encoded(plain, relevance),
            }
            assert tasks["decompressor"]() == tasks["lines"]() == len(data)
            assert tasks["events"]() == expected
            times: dict[str, list[float]] = {name: [] for name in tasks}
            for _ in range(given.repeats):
                for name, task in tasks.items():
                    times[name].append(timed(task))
            print(f"\n{kind}, {path.stat().st_size:,} bytes")
            for name, seconds in times.items():
                print(shown(name, seconds, len(data)))
            first = statistics.median(times["decompressor"])
            for name in ("lines", "events"):
                print(f"{name} / decompressor: {first / statistics.median(times[name]):.2f}")


if __name__ == "__main__":
    main()

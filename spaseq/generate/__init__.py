"""Synthetic streams in the shape of the four data sets of the SPAseq paper.

`write` generates files from a data set's name, a number of events and a seed: one N-Quads file
per stream, named after the stream's name in the query, the knowledge base `kb.ttl`, and
`query.rq`, which has occasional matches. The same arguments generate the same bytes on every
machine and version of Python. Memory does not grow with the number of events.

The data sets follow those of the evaluation in Gillani, Zimmermann, Picard, Laforest,
*A query language for semantic complex event processing* (Semantic Web Journal 2019):
power, weather and storage of smart homes, stock trades, credit card payments, and city
traffic. Numbers, names and places are invented.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random

from spaseq.errors import SpaseqError
from spaseq.generate.cards import CARDS
from spaseq.generate.dataset import Dataset
from spaseq.generate.smart_home import SMART_HOME
from spaseq.generate.stock import STOCK
from spaseq.generate.traffic import TRAFFIC

DATASETS: dict[str, Dataset] = {
    "smart-home": SMART_HOME,
    "stock": STOCK,
    "cards": CARDS,
    "traffic": TRAFFIC,
}


def write(dataset: str, events: int, seed: int, out: Path) -> list[Path]:
    """Write a data set of `events` events over all streams into the folder `out`.

    Args:
        dataset: A key of `DATASETS`.
        events: The number of events, at least 1.
        seed: The seed of the random numbers.
        out: The folder, created if it does not exist.

    Returns:
        The paths written: the streams, then the knowledge base, then the query.

    Raises:
        SpaseqError: for an unknown data set, no events, or a folder that cannot be written.
    """
    if dataset not in DATASETS:
        known = ", ".join(DATASETS)
        raise SpaseqError(f"there is no data set {dataset!r}; choose one of {known}")
    if events < 1:
        raise SpaseqError(f"{events} events cannot be generated; the minimum is 1")
    chosen = DATASETS[dataset]
    try:
        return _write(chosen, events, seed, out)
    except OSError as error:
        raise SpaseqError(
            f"cannot write to {out}: {error.strerror or error}; choose a folder you may write to"
        ) from error


def _write(dataset: Dataset, events: int, seed: int, out: Path) -> list[Path]:
    out.mkdir(parents=True, exist_ok=True)
    world = dataset.populate(events, Random(seed))
    kb = out / "kb.ttl"
    with kb.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(world.knowledge())
    paths = [out / f"{name}.nq" for name in dataset.streams]
    files = [path.open("w", encoding="utf-8", newline="\n") for path in paths]
    try:
        writers = [file.write for file in files]
        for stream, text in islice(world.events(), events):
            writers[stream](text)
    finally:
        for file in files:
            file.close()
    query = out / "query.rq"
    query.write_text(dataset.query, encoding="utf-8", newline="\n")
    return [*paths, kb, query]

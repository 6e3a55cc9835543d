"""Changed states of all shapes: refused, or runs that work. A bounded part of `hostile_state.py`.

`SPASEQ_EXAMPLES` is the number of states of each shape (default 60, and 1 of each
hand-made case), `SPASEQ_SEED` the seed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator

import pytest
from hostile_state import OWN, Shape, examples, own_shapes, stop, suite_shapes

import spaseq
from spaseq.engine.envelope import MAX_EXPANSION, seal, unseal
from spaseq.errors import StateError

SEED = os.environ.get("SPASEQ_SEED", "0")
SHAPES = list(own_shapes())
EXAMPLES = os.environ.get("SPASEQ_EXAMPLES")


@pytest.fixture(autouse=True)
def _limited() -> Iterator[None]:
    """An endless loop fails the test."""
    before = signal.signal(signal.SIGALRM, stop)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_changed_state_is_refused_or_runs(shape: Shape) -> None:
    came = examples(shape, int(EXAMPLES or "60"), SEED)
    # Both must happen: otherwise nothing is tried, or nothing is checked.
    assert came["refused"]
    assert came["ran"]


def test_changed_states_of_the_hand_made_cases_are_refused_or_run() -> None:
    came: Counter[str] = Counter()
    for shape in suite_shapes():
        came += examples(shape, int(EXAMPLES or "1"), SEED)
    assert came["refused"] > came["ran"] > 0


def _two_steps() -> spaseq.Program:
    (shape,) = (shape for shape in SHAPES if shape.name == "range")
    return shape.program


def _saved() -> bytes:
    (shape,) = (shape for shape in SHAPES if shape.name == "range")
    return shape.saved()[3]


@pytest.mark.parametrize("field", range(13))
@pytest.mark.parametrize("value", [99999, -1, 2**31, 2**32 - 1, 2**63, 0.5, "x", None, []])
def test_each_field_of_a_label_is_checked(field: int, value: object) -> None:
    data = unseal(_saved())
    label = data["queries"][0]["automaton"]["labels"][0]
    label[field] = value
    try:
        run = _two_steps().resume(seal(data))
    except StateError:
        return
    # A line or an ordinal cannot be checked, so it is accepted as it is.
    assert value in {5: (99999, 2**31, 2**32 - 1), 8: (99999, 2**31)}.get(field, ())
    assert run.push("http://example.org/s", 9, b"") == []


def test_a_node_comes_after_what_it_follows() -> None:
    (shape,) = (shape for shape in SHAPES if shape.name == "iteration")
    data = unseal(shape.saved()[6])
    graph = data["queries"][0]["automaton"]["graph"]
    node = next(number for number, item in enumerate(graph) if len(item) == 3 and item[1] >= 0)
    graph[node][1] = node + 1
    with pytest.raises(StateError, match="graph"):
        shape.program.resume(seal(data))


BOMB = r"""
import re, sys, zlib
from pathlib import Path
from hashlib import blake2b
from spaseq.engine.envelope import MAGIC, VERSION, unseal
from spaseq.errors import StateError
packing, mebibytes = zlib.compressobj(1), 600
body = b"".join(packing.compress(b" " * (1 << 20)) for _ in range(mebibytes)) + packing.flush()
for size in (mebibytes << 20, 32 * len(body), 100):
    blob = MAGIC + VERSION.to_bytes(2, "big") + body + size.to_bytes(8, "big")
    try:
        unseal(blob + blake2b(blob, digest_size=16).digest())
    except StateError:
        continue
    sys.exit("was not refused")
# Unlike ru_maxrss, VmHWM does not include the process that started this one.
print(int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""


def test_a_small_state_does_not_unpack_to_a_large_one() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BOMB], capture_output=True, text=True, timeout=120, check=True
    )
    # Some 3 MB of blob may become 32 times as much, and would become 600 MB.
    assert int(done.stdout) < 300


def test_what_compresses_well_is_stored_as_it_is() -> None:
    data = {"zeros": [0] * 100_000}
    blob = seal(data)
    assert unseal(blob) == data
    assert len(blob) * MAX_EXPANSION >= 200_000
    assert len(zlib.compress(b"0," * 100_000)) * MAX_EXPANSION < 200_000


def test_all_shapes_have_states() -> None:
    assert {shape.name for shape in SHAPES} >= set(OWN)
    for shape in SHAPES:
        queries = [unseal(blob)["queries"][0] for blob in shape.saved()]
        # Groups of single events hold their results apart from the automaton.
        assert any(one["automaton"]["labels"] or one["groups"] for one in queries), shape.name


def test_what_waits_is_not_sought_at_every_instant_of_an_endless_window() -> None:
    (shape,) = (shape for shape in SHAPES if shape.name == "unbounded")
    data = unseal(shape.saved()[6])
    data["queries"][0]["automaton"]["clock"][0] = 2**40
    run = shape.program.resume(seal(data))
    assert run.stats
    assert unseal(run.save())["queries"][0]["automaton"]["clock"][0] == 2**40

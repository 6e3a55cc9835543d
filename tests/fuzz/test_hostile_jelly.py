"""Drawn and damaged Jelly: a part of `hostile_jelly.py`. `SPASEQ_EXAMPLES` is the number."""

from __future__ import annotations

import os

from hostile_jelly import compare


def test_the_compiled_reader_agrees_with_pyjelly() -> None:
    for seed in range(int(os.environ.get("SPASEQ_EXAMPLES", "400"))):
        assert compare(seed) == "", seed

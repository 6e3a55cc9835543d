"""Documents, drawn and damaged: a bounded part of `documents.py`.

`SPASEQ_EXAMPLES` is the number of documents (default 400), `SPASEQ_SEED` the seed.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

from documents import one, real_files

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "400"))
SEED = os.environ.get("SPASEQ_SEED", "0")


def test_documents_are_read_as_by_the_plain_reader(tmp_path: Path) -> None:
    draw = random.Random(f"documents {SEED}")
    files = real_files(os.environ.get("SPASEQ_DATA"))
    models = [one(tmp_path, draw, files)[0] for _ in range(EXAMPLES)]
    # Both must happen: otherwise nothing is read, or no error is compared.
    assert sum(len(model.events) for model in models) > EXAMPLES
    assert sum(bool(model.error or model.log) for model in models) > EXAMPLES // 10

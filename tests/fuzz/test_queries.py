"""A bounded part of the campaign of `queries.py`.

`SPASEQ_EXAMPLES` is the number of cases (default 100), `SPASEQ_SEED` the first seed.
"""

from __future__ import annotations

import os

from queries import Tally, try_cases

SEED = int(os.environ.get("SPASEQ_SEED", "0"))
EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "100"))


def test_drawn_queries_equal_the_reference_and_the_command_line() -> None:
    tally = Tally()
    try_cases(range(SEED, SEED + EXAMPLES), tally)
    assert not tally.differences, tally.differences[0]
    # Otherwise nothing is compared.
    assert tally.compared > EXAMPLES // 2
    assert tally.matched > EXAMPLES // 10

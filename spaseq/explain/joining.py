"""The join strategy of a query for `explain`: eager, or lazy from the last event.

Only sequences with a step that is compared with every waiting partial match are described
(`spaseq.nfa.native.lazy_join_tables`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from spaseq.engine.compiled import CompiledQueries
from spaseq.engine.native.query_run import NativeRun
from spaseq.nfa.native.lazy_join_tables import eager_because, visits_groups

Data = dict[str, Any]


def joining(program: CompiledQueries, number: int, joined: Sequence[Data] | None) -> Data | None:
    """Whether a query can be joined lazily, or why not; None if the question does not arise.

    `joined` has the result of `joined_so_far` for each query of a run.
    """
    query = program.queries[number]
    if not visits_groups(query.plan, query.automaton):
        return None
    reason = eager_because(query.plan, query.automaton)
    last = query.plan.gpms[query.plan.occurrences[-1].gpm].name
    so_far = None if joined is None or reason is not None else joined[number]
    return {"eager_because": reason, "last": last, "so_far": so_far}


def joined_so_far(native: NativeRun) -> Data:
    """The current strategy of a run for a query, and its cost so far."""
    core = native.core
    return {
        "lazily": core.lazy_join.lazy,
        "changes": core.lazy_join.switches,
        "rows_looked_at": core.lazy_join.searched,
        "rows_in_trials": core.lazy_join.sampled,
    }


def joining_text(data: Data | None) -> Iterator[str]:
    """A description of the result of `joining`."""
    if data is None:
        return
    if data["eager_because"] is not None:
        yield f"rows are joined eagerly: {data['eager_because']}"
        return
    yield (
        f"rows are joined eagerly, or lazily when {data['last']} occurs, rarest step first: "
        "whichever examines less"
    )
    measured = data["so_far"]
    if measured is not None:
        now = "lazily" if measured["lazily"] else "eagerly"
        times = f"{measured['changes']:,} time{'s' * (measured['changes'] != 1)}"
        yield (
            f"now {now}, switched {times}; {measured['rows_looked_at']:,} rows examined lazily, "
            f"{measured['rows_in_trials']:,} in samples"
        )

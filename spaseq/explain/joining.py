"""How a query's rows are joined, for people: as they come, or when the last one comes.

What is worth a word is a sequence a step of which is compared with every partial match that waits
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
    """Whether a query may be joined lazily, or why not; None where nobody would ask.

    `joined`: of each query what `joined_so_far` says.
    """
    query = program.queries[number]
    if not visits_groups(query.plan, query.automaton):
        return None
    reason = eager_because(query.plan, query.automaton)
    last = query.plan.gpms[query.plan.occurrences[-1].gpm].name
    so_far = None if joined is None or reason is not None else joined[number]
    return {"eager_because": reason, "last": last, "so_far": so_far}


def joined_so_far(native: NativeRun) -> Data:
    """How a run joins the rows of a query now, and what that has cost."""
    core = native.core
    return {
        "lazily": core.lazy_join.lazy,
        "changes": core.lazy_join.turns,
        "rows_looked_at": core.lazy_join.searched,
        "rows_in_trials": core.lazy_join.tried,
    }


def joining_text(data: Data | None) -> Iterator[str]:
    """The same in words."""
    if data is None:
        return
    if data["eager_because"] is not None:
        yield f"rows are joined as they come: {data['eager_because']}"
        return
    yield (
        f"rows are joined as they come, or lazily when {data['last']} comes, from the rarest on: "
        "whichever is seen to look at less"
    )
    seen = data["so_far"]
    if seen is not None:
        now = "lazily" if seen["lazily"] else "as they come"
        times = f"{seen['changes']:,} time{'s' * (seen['changes'] != 1)}"
        yield (
            f"now {now}, changed {times}; {seen['rows_looked_at']:,} rows looked at lazily, "
            f"{seen['rows_in_trials']:,} in trials"
        )

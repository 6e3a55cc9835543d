"""polars: as-of joins for the next event, inequality joins for all combinations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import polars as pl
from protocol import Event, Question, serve

Frames = Mapping[str, pl.DataFrame]


def prepare(question: Question, events: Sequence[Event]) -> Frames:
    """A frame for each kind, sorted by time; its columns have the kind in their names."""
    frames = {}
    for kind in question.kinds:
        some = [(time, key) for time, other, key in events if other == kind]
        columns = {f"t{kind}": [t for t, _ in some], f"k{kind}": [k for _, k in some]}
        frames[kind] = pl.DataFrame(columns, dict.fromkeys(columns, pl.Int64)).set_sorted(
            f"t{kind}"
        )
    return frames


def count(question: Question, frames: Frames) -> int:
    first, last = question.kinds[0], question.kinds[-1]
    found = frames[first].lazy()
    for before, after in pairwise(question.kinds):
        following = frames[after].lazy()
        if question.name == "next":
            found = found.join_asof(
                following,
                left_on=f"t{before}",
                right_on=f"t{after}",
                strategy="forward",
                allow_exact_matches=False,
                coalesce=False,
            )
            # The next event of a later one is never earlier, so the column stays sorted.
            found = found.filter(pl.col(f"t{after}").is_not_null()).set_sorted(f"t{after}")
            continue
        conditions = [
            pl.col(f"t{before}") < pl.col(f"t{after}"),
            pl.col(f"t{after}") <= pl.col(f"t{first}") + question.window,
        ]
        if question.name == "key":
            conditions.append(pl.col(f"k{before}") == pl.col(f"k{after}"))
        found = found.join_where(following, *conditions)
    within = pl.col(f"t{last}") <= pl.col(f"t{first}") + question.window
    return int(found.filter(within).select(pl.len()).collect().item())


if __name__ == "__main__":
    serve(prepare, count, ("next", "all", "key"))

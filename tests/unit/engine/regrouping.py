"""Runs whose queries join templates and leave them, as in the server."""

from __future__ import annotations

import spaseq
from spaseq.engine.regrouping import regrouped, separated
from spaseq.program import Program


def regroup(run: spaseq.Run) -> bool:
    """Let idle queries join templates; False if none can."""
    run.begin_change()
    change = regrouped(run.evaluation, Program)
    if change is not None:
        run.change(change)
    return change is not None


def separate(run: spaseq.Run, name: str) -> str | None:
    """Let a query leave its template; the name that it has there from now on, if it stays."""
    run.begin_change()
    found = separated(run.evaluation, name)
    if found is None:
        return None
    change, left = found
    run.change(change)
    run.evaluation.listed.silence([left] if left else [])
    return left

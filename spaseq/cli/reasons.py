"""Why nothing matched: one line after an empty run, `--why`, and the signal USR1."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from spaseq.cli import reports

if TYPE_CHECKING:
    from spaseq.explain.diagnosis import Sample
    from spaseq.io.source import Source
    from spaseq.pipeline import Observer, Progress
    from spaseq.runs import Run


def print_first(run: Run, sources: Sequence[Source] = ()) -> None:
    """Report in one line what never happened, only from counts if no sources can be reread."""
    from spaseq.explain.why_not import first_obstacle

    found = first_obstacle(run.evaluation, _sample(sources) if sources else None)
    if found is not None:
        reports.log(f"no match: {found} (--why tells more)")


def print_all(run: Run, sources: Sequence[Source]) -> None:
    """Report for each query how far its patterns got."""
    reports.log(run.why_not(events=_sample(sources)).rstrip("\n"), prefix="")


def _sample(sources: Sequence[Source]) -> Sample:
    from spaseq.explain.diagnosis import Sample
    from spaseq.io.first_events import first_events

    return Sample(*first_events(sources))


@contextmanager
def shown_on_signal(run: Run | None) -> Iterator[Observer | None]:
    """Report at SIGUSR1; within a batch, when the yielded observer is called after it.

    None stands for a run that is divided among threads, whose counts are separate until it ends.
    """
    known = getattr(signal, "SIGUSR1", None)
    if known is None or threading.current_thread() is not threading.main_thread():
        yield None
        return
    asked = False

    def report() -> None:
        nonlocal asked
        asked = False
        if run is None:
            reports.log(
                "several threads matched the events: --workers 1 reports how far the patterns got"
            )
        else:
            reports.log(run.why_not().rstrip("\n"), prefix="")

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        try:
            report()
        except RuntimeError:  # the run is within a batch
            asked = True

    def after_batch(progress: Progress) -> None:
        if asked:
            report()

    before = signal.signal(known, on_signal)
    try:
        yield after_batch
    finally:
        signal.signal(known, before)


def both(*observers: Observer | None) -> Observer | None:
    """One observer that calls all of those given."""
    known: list[Callable[[Progress], None]] = [each for each in observers if each is not None]
    if not known:
        return None
    if len(known) == 1:
        return known[0]

    def observe(progress: Progress) -> None:
        for each in known:
            each(progress)

    return observe

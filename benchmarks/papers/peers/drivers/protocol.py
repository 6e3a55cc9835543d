"""The driver's side of the protocol in ../README.md, for drivers in Python."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import process_time
from typing import TypeVar

Event = tuple[int, str, int]
"""(time, kind, key); times increase."""

Prepared = TypeVar("Prepared")


@dataclass(frozen=True, slots=True)
class Question:
    """What is counted: matches of `kinds` in this order, at most `window` from first to last.

    Attributes:
        name: `next`: from each event of the first kind, always the next event of the following
            kind. `all`: every combination. `key`: every combination of events with one key.
    """

    name: str
    window: int
    kinds: Sequence[str] = field(default_factory=tuple)


class Cannot(Exception):
    """The engine has no way to ask the question."""


def serve(
    prepare: Callable[[Question, Sequence[Event]], Prepared],
    count: Callable[[Question, Prepared], int],
    questions: Sequence[str],
) -> None:
    """Answer on standard output what is asked on standard input, until its end.

    Args:
        prepare: The events in the engine's own form; not measured.
        count: The number of matches; its processor time is reported.
        questions: The names of those that the engine can answer.
    """
    question: Question | None = None
    events: list[Event] = []
    prepared: Prepared | None = None
    for line in sys.stdin:
        first, *rest = line.split()
        if first == "question":
            name, window, *kinds = rest
            question, events, prepared = Question(name, int(window), kinds), [], None
            known = name in questions
            print("ready" if known else f"cannot: there is no way to ask for {name}", flush=True)
        elif first == "run":
            assert question is not None
            if prepared is None:
                prepared = prepare(question, events)
            started = process_time()
            found = count(question, prepared)
            print(found, process_time() - started, flush=True)
        else:
            time, kind, key = first.split(",")
            events.append((int(time), kind, int(key)))

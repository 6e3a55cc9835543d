"""Matches as JSON lines on standard input → a readable text on standard output.

Prints for each match its times, its bindings and its events. IRIs are shortened to their last two
parts. `spaseq run … | python examples/show.py`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from textwrap import fill
from typing import Any

WIDTH = 96


def short(term: Mapping[str, str]) -> str:
    """A term without its type; the last two parts of an IRI."""
    if term["type"] == "uri":
        return "/".join(term["value"].rstrip("/").split("/")[-2:])
    return term["value"]


def clock(time: object) -> str:
    """The time of day of a date; a number unchanged."""
    return str(time).partition("T")[2].rstrip("Z") or str(time)


def lines(match: Mapping[str, Any]) -> Iterable[str]:
    """The lines of one match: times, bindings, events."""
    if "boolean" in match:
        yield f"{match['query']}: {match['boolean']} at {match['end']}"
        return
    yield f"{match['query']}: {match['start']} to {match['end']}"
    bound = [f"{name}={short(term)}" for name, term in match.get("bindings", {}).items()]
    yield from (f"constructs {triple}" for triple in match.get("graph", "").splitlines())
    events = [f"{event['gpm']} {clock(event['time'])}" for event in match["events"]]
    for text in ("  ".join(bound), "of " + ", ".join(events)):
        if text:
            yield fill(text, WIDTH, initial_indent="    ", subsequent_indent="    ")


def main() -> None:
    for text in sys.stdin:
        for line in lines(json.loads(text)):
            print(line)


if __name__ == "__main__":
    main()

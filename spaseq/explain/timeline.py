"""Matches → a time line as SVG: a bar for each match, from its first to its last event.

Each event is a dot in the colour of its graph pattern. Matches that overlap are in different lanes,
and each query has its own part of the picture. A tooltip names the query, the times and the
bindings of a match. The input is matches, or the objects of the `jsonl` format. Cost: n log n.
"""

from __future__ import annotations

import heapq
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from spaseq.errors import InputError
from spaseq.explain.svg import LINE, escaped, image, text_at, text_width
from spaseq.records import dataclass
from spaseq.results import Match

MOST = 500
"""The default number of matches that a time line shows."""
WIDTH = 960.0
_LEFT, _TOP, _LANE = 16.0, 26.0, 22.0
_COLOURS = ("#3b82c4", "#e08a1e", "#2f9e44", "#b5509c", "#c9b021", "#7a5fd0", "#d9434b", "#3aa6a6")
_STEPS = (
    1e-6, 2e-6, 5e-6, 1e-5, 1e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
    86400, 172800, 604800, 2592000, 7776000, 31536000,
)  # fmt: skip
"""Distances between ticks, in seconds."""
MAX_SECONDS = 2.0**63 / 1e6
"""The last time of an event."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Picture:
    """An SVG image: notebooks show it, `save` writes it, and `str` is its text."""

    def __init__(self, svg: str):
        self._svg = svg

    def __str__(self) -> str:
        return self._svg

    def __repr__(self) -> str:
        return f"<SVG image, {len(self._svg):,} characters>"

    def _repr_svg_(self) -> str:
        return self._svg

    def save(self, path: str | Path) -> None:
        """Write the image to a file."""
        Path(path).write_text(self._svg, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Bar:
    """One match, with times in seconds."""

    query: str
    start: float
    end: float
    events: tuple[tuple[str, float], ...]
    title: str
    dated: bool


def plot(matches: Iterable[Match | Mapping[str, Any]], most: int = MOST) -> Picture:
    """A time line of matches.

    Args:
        matches: Matches, or objects of the `jsonl` format.
        most: The number of matches to show; a note counts the others.

    Raises:
        InputError: for an object that is not a match, and if dates and numbers are mixed as times.

    Example:
        >>> spaseq.plot(spaseq.run(query, streams)).save("matches.svg")
    """
    found = iter(matches)
    bars = [_bar(match) for match in islice(found, min(most, sys.maxsize))]
    return Picture(_drawn(bars, sum(1 for _ in found)))


def read_matches(lines: Iterable[bytes], name: str) -> Iterator[Mapping[str, Any]]:
    """The objects of a file in the `jsonl` format.

    Raises:
        InputError: for a line that is not a JSON object, with its number.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            match = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise InputError(f"{name}, line {number}: not UTF-8: {error.reason}") from error
        except RecursionError as error:
            raise InputError(f"{name}, line {number}: nested too deeply") from error
        except ValueError as error:
            raise InputError(f"{name}, line {number}: not JSON: {error}") from error
        if not isinstance(match, dict) or "query" not in match or "end" not in match:
            raise InputError(f"{name}, line {number}: not a match in the format jsonl")
        yield match


def _bar(match: Match | Mapping[str, Any]) -> _Bar:
    data = match.to_dict() if isinstance(match, Match) else match
    try:
        end, dated = _seconds(data["end"])
        start, _ = _seconds(data.get("start", data["end"]))
        query, events = str(data["query"]), data.get("events", ())
        dots = tuple((str(event["gpm"]), _seconds(event["time"])[0]) for event in events)
        bindings = dict(data.get("bindings") or {})
        lines = [f"{query}: {data.get('start', data['end'])} to {data['end']}"]
        lines += [f"?{name} = {_shown(term)}" for name, term in bindings.items()]
        lines += [f"{event['gpm']} at {event['time']}" for event in events]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"this is not a match: {str(data)[:80]}") from error
    return _Bar(query, start, end, dots, "\n".join(lines), dated)


def _shown(term: Any) -> str:
    value = term.get("value") if isinstance(term, Mapping) else term
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _seconds(time: Any) -> tuple[float, bool]:
    """A time in seconds, and whether it is a date."""
    if isinstance(time, str):
        moment = datetime.fromisoformat(time)
        return (moment - _EPOCH).total_seconds(), True
    seconds = float(time)
    if not abs(seconds) <= MAX_SECONDS:  # nor is NaN
        raise ValueError("no time of an event")
    return seconds, False


# ------------------------------------------------------------------ drawing


def _drawn(bars: Sequence[_Bar], left_out: int) -> str:
    if not bars:
        return image("no matches", [text_at("no matches", _LEFT, 24, "note left")], 200, 40)
    if len({bar.dated for bar in bars}) > 1:
        raise InputError("some matches have dates for times, and others numbers")
    first, last = min(bar.start for bar in bars), max(bar.end for bar in bars)
    step = _step((last - first) or 1.0)
    scale = (WIDTH - 2 * _LEFT) / ((last - first) or 1.0)
    colours = _colours(bars)

    def x(seconds: float) -> float:
        return _LEFT + (seconds - first) * scale if last > first else WIDTH / 2

    parts: list[str] = []
    y = _TOP
    for query in dict.fromkeys(bar.query for bar in bars):
        own = sorted((bar for bar in bars if bar.query == query), key=lambda bar: bar.start)
        found = f"{len(own):,} match{'es' if len(own) > 1 else ''}"
        parts.append(text_at(f"{query}: {found}", _LEFT, y, "name left"))
        lanes = _lanes(own, 14.0 / scale)
        parts += [
            _bar_drawn(bar, x, y + 20.0 + lane * _LANE, colours)
            for bar, lane in zip(own, lanes, strict=True)
        ]
        y += 34.0 + (max(lanes) + 1) * _LANE
    parts[:0] = _axis(first, last, step, x, y - 14.0, bars[0].dated)
    y += 22.0
    parts += _legend(colours, y)
    if left_out:
        y += LINE
        parts.append(text_at(f"{left_out:,} more matches are not shown", _LEFT, y, "note left"))
    counted = f"{len(bars):,} match{'es' * (len(bars) != 1)}"
    title = f"{counted} from {_tick(first, bars[0].dated, 0)} to "
    return image(title + _tick(last, bars[0].dated, 0), parts, WIDTH, y + 16.0)


def _colours(bars: Iterable[_Bar]) -> dict[str, str]:
    names = dict.fromkeys(gpm for bar in bars for gpm, _ in bar.events)
    return {name: _COLOURS[number % len(_COLOURS)] for number, name in enumerate(names)}


def _lanes(bars: Sequence[_Bar], gap: float) -> list[int]:
    """For each bar, in order of their starts, the first lane that is free."""
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    lanes = []
    for bar in bars:
        while busy and busy[0][0] <= bar.start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (bar.end + gap, lane))
        lanes.append(lane)
    return lanes


def _bar_drawn(bar: _Bar, x: Callable[[float], float], y: float, colours: Mapping[str, str]) -> str:
    one, other = x(bar.start), x(bar.end)
    times = [time for _, time in bar.events]
    # If several events have one time, each later one is a smaller dot on top.
    radii = [max(4.5 - 1.7 * times[:n].count(time), 1.1) for n, time in enumerate(times)]
    dots = "".join(
        f'<circle cx="{x(time):.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colours[gpm]}"/>'
        for (gpm, time), radius in zip(bar.events, radii, strict=True)
    )
    return (
        f'<g class="match"><title>{escaped(bar.title)}</title>'
        f'<rect class="box" x="{one - 7:.1f}" y="{y - 7:.1f}" width="{other - one + 14:.1f}" '
        f'height="14" rx="7"/>{dots}</g>'
    )


def _step(duration: float) -> float:
    year = _STEPS[-1]
    return next(
        (step for step in _STEPS if duration / step <= 8), year * -(-duration // (8 * year))
    )


def _axis(
    first: float,
    last: float,
    step: float,
    x: Callable[[float], float],
    bottom: float,
    dated: bool,
) -> list[str]:
    """Ticks at whole multiples of the step."""
    parts, number = [], -(-first // step)
    while (time := number * step) <= last:
        line = f"M{x(time):.1f} {_TOP + 6:g}V{bottom:.1f}"
        parts.append(f'<path class="way" stroke-dasharray="2 4" d="{line}"/>')
        shown = _tick(time, dated, step)
        half = text_width(shown, "note") / 2
        middle = min(max(x(time), half + 2), WIDTH - half - 2)
        parts.append(text_at(shown, middle, bottom + LINE, "note"))
        number += 1
    return parts


def _tick(seconds: float, dated: bool, step: float) -> str:
    if not dated:
        return f"{seconds:.6f}".rstrip("0").rstrip(".")
    moment = _EPOCH + timedelta(seconds=round(seconds, 6))
    if step >= 86400:
        return f"{moment:%Y-%m-%d}"
    if step >= 60:
        return f"{moment:%m-%d %H:%M}"
    text = f"{moment:%H:%M:%S}" if step else moment.isoformat().removesuffix("+00:00")
    return text if step >= 1 or not moment.microsecond else f"{moment:%H:%M:%S.%f}".rstrip("0")


def _legend(colours: Mapping[str, str], y: float) -> list[str]:
    parts, x = [], _LEFT
    for name, colour in colours.items():
        parts.append(f'<circle cx="{x + 5:.1f}" cy="{y - 4:.1f}" r="4.5" fill="{colour}"/>')
        parts.append(text_at(name, x + 14, y, "note left"))
        x += 30 + text_width(name, "note")
        if x > WIDTH - 120:
            break
    return parts

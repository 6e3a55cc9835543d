"""A figure → SVG: lines or bars with their spread over two axes, linear or logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from figure import Axis, Figure, Line

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 78, 18, 20, 54
COLOURS = ("#0b8273", "#8a3ffc", "#b4530a", "#0b6e99", "#a11d6b", "#5c6b76", "#9a7b00")
DASHES = {"ours": "", "other": "6 4", "claim": "2 4"}
GROUP, BAR = 0.8, 0.85
"""What the bars of a place take of the distance between places, and a bar of its share of that."""
MOST_PLACES = 8
"""Up to so many places are all marked."""
_SUFFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def svg(figure: Figure) -> str:
    """The figure as a picture of its own, which follows a light or dark page."""
    bars = bool(figure.x.places)
    xs = [point.x for line in figure.lines for point in line.points]
    if bars:
        xs = [-0.5, len(figure.x.places) - 0.5]
    ys = [value for line in figure.lines for point in line.points for value in point.values]
    if bars and figure.y.log:
        ys.append(figure.y.base)
    across = _scale(figure.x, xs, LEFT, WIDTH - RIGHT, from_zero=False)
    upward = _scale(figure.y, ys, HEIGHT - BOTTOM, TOP, from_zero=True)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} '
        f'{HEIGHT + 18 * len(figure.lines)}" font-family="system-ui, sans-serif" font-size="12" '
        f'fill="currentColor" role="img" aria-label="{escape(figure.question)}">'
    ]
    for tick, name in _places(figure.x, xs):
        x = across(tick)
        if not bars:
            parts.append(_rule(x, TOP, x, HEIGHT - BOTTOM))
        parts.append(_words(x, HEIGHT - BOTTOM + 18, name, "middle"))
    for tick in _ticks(figure.y, [*ys, 0.0] if not figure.y.log else ys):
        y = upward(tick)
        parts.append(_rule(LEFT, y, WIDTH - RIGHT, y))
        parts.append(_words(LEFT - 8, y + 4, _short(tick), "end"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(_words((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, figure.x.title, "middle"))
    parts.append(
        f'<text transform="translate(16 {middle:g}) rotate(-90)" text-anchor="middle">'
        f"{escape(figure.y.title)}</text>"
    )
    if bars:
        base = upward(figure.y.base)
        parts.append(_rule(LEFT, base, WIDTH - RIGHT, base, 0.6))
    for number, line in enumerate(figure.lines):
        colour = COLOURS[number % len(COLOURS)]
        if bars:
            width = GROUP / len(figure.lines)
            shift = (number - (len(figure.lines) - 1) / 2) * width
            parts.append(
                _bars(
                    line,
                    colour,
                    BAR * (across(width) - across(0)),
                    lambda x, s=shift: across(x + s),
                    upward,
                    figure.y.base,
                )
            )
        else:
            parts.append(_line(line, colour, across, upward))
        parts.append(_key(line, colour, HEIGHT + 18 * number, bars))
    return "\n".join([*parts, "</svg>\n"])


def _line(
    line: Line, colour: str, across: Callable[[float], float], upward: Callable[[float], float]
) -> str:
    places = [(across(point.x), upward(point.median)) for point in line.points]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    parts = [
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2" '
        f'stroke-dasharray="{DASHES[line.kind]}"/>'
    ]
    for point, (x, y) in zip(line.points, places, strict=True):
        low, high = upward(min(point.values)), upward(max(point.values))
        parts.append(
            f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{colour}" stroke-width="1.2"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{colour}"/>'
        )
    return "".join(parts)


def _bars(
    line: Line,
    colour: str,
    width: float,
    across: Callable[[float], float],
    upward: Callable[[float], float],
    base: float,
) -> str:
    parts = []
    for point in line.points:
        x, y, start = across(point.x), upward(point.median), upward(base)
        low, high = upward(min(point.values)), upward(max(point.values))
        parts.append(
            f'<rect x="{x - width / 2:.1f}" y="{min(y, start):.1f}" width="{width:.1f}" '
            f'height="{abs(start - y):.1f}" fill="{colour}"/>'
            f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="currentColor" stroke-width="1.2"/>'
            + _words(x, min(y, high, start) - 4, _short(float(f"{point.median:.2g}")), "middle", 10)
        )
    return "".join(parts)


def _key(line: Line, colour: str, y: float, bars: bool) -> str:
    if bars:
        sign = f'<rect x="{LEFT}" y="{y - 2:g}" width="26" height="12" fill="{colour}"/>'
        return sign + _words(LEFT + 34, y + 8, line.name, "start")
    return (
        f'<path d="M{LEFT} {y + 4:g}h26" stroke="{colour}" stroke-width="2" '
        f'stroke-dasharray="{DASHES[line.kind]}"/>' + _words(LEFT + 34, y + 8, line.name, "start")
    )


def _scale(
    axis: Axis, values: Sequence[float], start: float, end: float, from_zero: bool
) -> Callable[[float], float]:
    """A value → its coordinate."""
    low, high = min(values), max(values)
    if axis.log:
        low, high = math.log10(low), math.log10(high)
        margin = max(0.05 * (high - low), 0.05)
        low, high = low - margin, high + margin
        return lambda value: start + (math.log10(value) - low) / (high - low) * (end - start)
    if from_zero:
        low, high = 0.0, high * 1.08
    else:
        margin = 0.04 * (high - low) or 1.0
        low, high = low - margin, high + margin
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _places(axis: Axis, values: Sequence[float]) -> list[tuple[float, str]]:
    """Where the abscissa is marked, with what."""
    if axis.places:
        return [(float(number), name) for number, name in enumerate(axis.places)]
    places = sorted(set(values))
    few = len(places) <= MOST_PLACES and not axis.log
    return [(tick, _short(tick)) for tick in (places if few else _ticks(axis, values))]


def _ticks(axis: Axis, values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    if axis.log:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        steps = (1,) if last - first > 3 else (1, 2, 5)
        found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        return [tick for tick in found if 0.9 * low <= tick <= 1.1 * high]
    size = (high - low) / 5 or 1.0
    power = 10 ** math.floor(math.log10(size))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= size)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _short(value: float) -> str:
    """12000 → 12k."""
    for size, suffix in _SUFFIXES:
        if abs(value) >= size:
            return f"{value / size:g}{suffix}"
    return f"{value:g}"


def _rule(x: float, y: float, to_x: float, to_y: float, opacity: float = 0.14) -> str:
    return (
        f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}" stroke="currentColor" '
        f'stroke-opacity="{opacity}"/>'
    )


def _words(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(text)}</text>"
    )

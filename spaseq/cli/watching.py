"""`--progress` of live runs, and `--metrics`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from spaseq.cli import reports
from spaseq.cli.status_line import shown_line

if TYPE_CHECKING:
    from spaseq.live.monitoring import Monitor
    from spaseq.live.status import Status, StreamStatus

LINE_SECONDS = 10.0
"""Seconds between two lines of progress if standard error is not a terminal."""


@contextmanager
def monitored(address: str | None, is_insecure: bool = False) -> Iterator[Monitor | None]:
    """A monitor at an address `HOST:PORT`, which may be beyond loopback if `is_insecure`."""
    if address is None:
        yield None
        return
    from spaseq.live.monitoring import Monitor, is_loopback, parse_address

    try:
        host, port = parse_address(address)
    except ValueError as error:
        raise click.UsageError(f"--metrics: {error}") from error
    if not (is_insecure or is_loopback(host)):
        raise click.UsageError(
            f"--metrics {address}: beyond loopback, everyone who reaches the port can read the "
            "metrics, without encryption or a password; --insecure allows it"
        )
    monitor = Monitor(host, port)
    reports.log(f"metrics at {monitor.url}/metrics")
    try:
        yield monitor
    finally:
        monitor.close()


@contextmanager
def shown_progress(wanted: bool) -> Iterator[Callable[[Status], None] | None]:
    """Shows statuses: one changing line on a terminal, otherwise a line every ten seconds."""
    if not wanted or sys.stderr is None:
        yield None
        return
    rates = Rates()
    line = shown_line()
    if reports.is_json() or line is None:
        due = time.monotonic() + LINE_SECONDS

        def report(status: Status) -> None:
            nonlocal due
            if status.taken >= due:
                due = status.taken + LINE_SECONDS
                reports.log(rates.line(status))

        yield report
        return
    yield lambda status: line.show(rates.line(status))


def several(*parts: Callable[[Status], None] | None) -> Callable[[Status], None] | None:
    """One function that passes a status to all of them."""
    wanted = [part for part in parts if part is not None]
    if not wanted:
        return None

    def all_of_them(status: Status) -> None:
        for part in wanted:
            part(status)

    return all_of_them


class Rates:
    """Turns statuses into lines, with rates since the previous line."""

    def __init__(self) -> None:
        self._before: Status | None = None

    def line(self, status: Status) -> str:
        """The line for a status."""
        before, self._before = self._before, status
        events = matches = 0.0
        if before is not None and (seconds := status.taken - before.taken) > 0:
            events = (status.events - before.events) / seconds
            matches = (status.written - before.written) / seconds
        parts = [
            f"{events:,.0f} events/s",
            f"{matches:,.1f} matches/s",
            f"{status.groups:,} partial matches",
            *map(_stream, status.streams),
        ]
        return " · ".join(parts)


def _stream(stream: StreamStatus) -> str:
    name = stream.iri.rstrip("/#").rpartition("/")[2].rpartition("#")[2] or stream.iri
    if stream.has_ended:
        return f"{name} ended"
    text = f"{name} at {stream.shown or '-'}"
    if stream.lag is not None:
        text += f", {_duration(stream.lag)} behind the clock"
    if stream.is_idle:
        text += ", idle"
    elif stream.holds_back:
        text += ", holds the others back"
    return text


def _duration(seconds: float) -> str:
    if abs(seconds) < 120:
        return f"{seconds:.1f} s"
    minutes, hours = seconds / 60, seconds / 3600
    if abs(hours) < 2:
        return f"{minutes:.0f} min"
    return f"{hours:.0f} h" if abs(hours) < 48 else f"{hours / 24:,.0f} days"

"""Windows as one comparison: the minimum instant number at which a match ending now may start.

Instants are numbered densely as they open. `bound` never falls, so a partial match whose
latest start lies before it is dead. Cost: amortised constant per instant.
"""

from __future__ import annotations

from spaseq.nfa.window import WindowTimes
from spaseq.plan.logical import Window


class WindowClock(WindowTimes):
    """Instant numbers, and the first one still inside the window."""

    def __init__(self, window: Window, windows: int = 1):
        """`windows`: how many windows back a unit may look."""
        super().__init__(window)
        self._windows = windows
        self.now = -1
        """The number of the open (or last) instant."""
        self.bound = 0
        self.timestamp_start = 0
        """The first instant of the current timestamp."""
        self.micros: int | None = None
        """The current timestamp."""
        self._inside: dict[int, int] = {}
        """For each instant from `bound` to `now`: its time, or for `n EVENTS` its event count."""
        self._total = 0
        self._bounds: dict[int, int] = {}
        """For each instant a unit may look back to: the window's first one as it was then."""

    def open(self, micros: int) -> int:
        """Start the next instant, at a time not before the last one. Returns its number."""
        self.now += 1
        if self.micros != micros:
            self.timestamp_start = self.now
            self.micros = micros
        if self.window.kind == "events":
            self._inside[self.now] = 0
        elif self.window.kind != "unbounded":
            self._inside[self.now] = micros
            earliest = self.opening(micros)
            while self._inside[self.bound] < earliest:
                del self._inside[self.bound]
                self.bound += 1
        self._remember()
        return self.now

    def count(self) -> None:
        """Count an event at the open instant."""
        if self.window.kind != "events" or self.bound > self.now:
            return
        self._inside[self.now] += 1
        self._total += 1
        while self._total > self.window.size:
            self._total -= self._inside.pop(self.bound)
            self.bound += 1
        self._remember()

    def _remember(self) -> None:
        if self.window.kind != "unbounded":
            self._bounds[self.now] = self.bound
            reach = self.looked_back_to()
            for instant in range(next(iter(self._bounds)), reach):
                del self._bounds[instant]

    def bound_at(self, instant: int) -> int:
        """The least start of a match that ends at an instant a unit may look back to."""
        return self._bounds.get(instant, 0 if self.window.kind == "unbounded" else self.bound)

    def looked_back_to(self) -> int:
        """The least instant that a unit may look back to."""
        reach = self.bound
        for _ in range(1, self._windows):
            reach = self._bounds.get(reach, reach)
        return reach

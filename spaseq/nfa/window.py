"""Opening and closing times of the window of a match."""

from __future__ import annotations

from typing import assert_never

from spaseq.parser.ast import WindowKind
from spaseq.plan.logical import Window

LAST_MOMENT = 2**63 - 1
"""The greatest timestamp, in microseconds: windows that reach beyond it close then."""


class WindowTimes:
    """Times of a window of microseconds; compiled code has the same in `_tecs.pxd`."""

    def __init__(self, window: Window):
        self.window = window

    def opening(self, micros: int) -> int:
        """The earliest start, in microseconds, of a match that ends at `micros`.

        Raises:
            ValueError: for a window that is not one of time.
        """
        size = self.window.size
        match self.window.kind:
            case WindowKind.SPAN:
                return micros - size
            case WindowKind.TUMBLING:
                return micros // size * size
            case WindowKind.EVENTS | WindowKind.UNBOUNDED:
                raise ValueError("the window has no times")
            case unknown:
                assert_never(unknown)

    def closing(self, micros: int) -> int:
        """The closing time, in microseconds, of the window of a match that starts at `micros`.

        Raises:
            ValueError: for a window that is not one of time.
        """
        size = self.window.size
        match self.window.kind:
            case WindowKind.SPAN:
                closing = micros + size
            case WindowKind.TUMBLING:
                closing = (micros // size + 1) * size
            case WindowKind.EVENTS | WindowKind.UNBOUNDED:
                raise ValueError("the window has no times")
            case unknown:
                assert_never(unknown)
        return min(closing, LAST_MOMENT)

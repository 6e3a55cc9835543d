"""The order in which a source that merges several queues has passed on its messages.

After a restart its messages must arrive in the same order again, because a checkpoint counts them.
The thread of the source appends messages; the thread of the coordinator reads the order since the
last checkpoint and drops older messages.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class OrderLog(Generic[T]):
    """Items in the order of their messages. Hold `lock` while messages are passed on."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        """The number of messages passed on, since the first run."""
        self._items: deque[T] = deque()

    def append(self, item: T | None) -> None:
        """Record that a message is passed on; None: nothing about it needs to be remembered."""
        self.count += 1
        if item is not None:
            self._items.append(item)

    def after(self, count: int) -> tuple[int, list[T]]:
        """The messages passed on after a number of messages: how many have no item, and the items
        of the others, which follow them.
        """
        wanted = self.count - count
        known = len(self._items)
        return max(0, wanted - known), list(self._items)[max(0, known - wanted) :]

    def forget(self, count: int) -> None:
        """Record that a checkpoint covers this number of messages."""
        with self.lock:
            while len(self._items) > self.count - count:
                self._items.popleft()

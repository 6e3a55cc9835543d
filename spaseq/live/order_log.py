"""What a source that merges several queues has passed on since the last checkpoint, in order.

After a restart its messages have to come in the same order again, because a checkpoint counts them.
The thread of the source appends; that of the coordinator asks for the order and forgets.
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
        """A message is passed on; None: nothing has to be remembered of it."""
        self.count += 1
        if item is not None:
            self._items.append(item)

    def after(self, count: int) -> tuple[int, list[T]]:
        """What was passed on after a number of messages: how many without an item, and the items
        of the others, which follow them.
        """
        wanted = self.count - count
        known = len(self._items)
        return max(0, wanted - known), list(self._items)[max(0, known - wanted) :]

    def forget(self, count: int) -> None:
        """A checkpoint has this number of messages."""
        with self.lock:
            while len(self._items) > self.count - count:
                self._items.popleft()

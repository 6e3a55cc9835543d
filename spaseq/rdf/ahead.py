"""`Ahead`: the items of an iterator, made in a separate thread before they are requested.

Reading, decompressing and matching release the interpreter's lock, so they overlap if each has a
thread. The caller's thread makes the first item, and starts the other thread only if that pays: a
short input starts none. The thread waits while `QUEUED` items wait for the caller, which bounds
the memory. An exception of the iterator is raised after the items before it. The thread ends with
the iterator, after `stop`, and before the interpreter exits.

Cost: about 20 microseconds per item, and 100 for the thread.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Generator, Iterator
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")

QUEUED = 2
"""The most items that wait for the caller; two even out items of different cost."""


class Stopped(BaseException):
    """The caller wants no further items. Error handlers are not meant to catch it."""


class Lane(Generic[Item]):
    """The connection of the two threads: items in one direction, free places in the other."""

    def __init__(self) -> None:
        self._items: SimpleQueue[tuple[Item | None, BaseException | None]] = SimpleQueue()
        self._places: SimpleQueue[None] = SimpleQueue()
        self._stopped = False
        self._thread = 0
        for _ in range(QUEUED):
            self._places.put(None)

    @property
    def is_own(self) -> bool:
        """Whether the calling thread is the one that makes the items."""
        return self._thread == threading.get_ident()

    def put(self, item: Item) -> None:
        """Add an item as soon as there is a place; only for the thread that makes the items.

        Raises:
            Stopped: if the caller wants no further item.
        """
        self._places.get()
        self.check()
        self._items.put((item, None))

    def check(self) -> None:
        """To be called from time to time by an iterator that works long for an item.

        Raises:
            Stopped: if the caller wants no further item.
        """
        if self._stopped:
            raise Stopped

    def take(self) -> tuple[Item | None, BaseException | None]:
        """The next item, or the exception that ends the items."""
        taken = self._items.get()
        self._places.put(None)
        return taken

    def fill(self, items: Iterator[Item]) -> None:
        """Put all items: the work of the thread."""
        self._thread = threading.get_ident()
        end: BaseException = StopIteration()
        try:
            for item in items:
                self.put(item)
        except BaseException as error:
            end = error
        close_generator(items)
        self._items.put((None, end))

    def stop(self) -> None:
        """Let the thread end at its next call of `put` or `check`."""
        self._stopped = True
        self._places.put(None)


class Ahead(Generic[Item]):
    """An iterator over the items that `make` yields.

    Args:
        make: Returns the iterator; the argument is for its calls of `Lane.check` and `Lane.put`.
        pays: Called after the first item: whether to start a thread for the rest.
    """

    def __init__(
        self, make: Callable[[Lane[Item]], Iterator[Item]], pays: Callable[[], bool] | None = None
    ):
        self._lane: Lane[Item] = Lane()
        self._items = make(self._lane)
        self._pays = pays
        self._thread: threading.Thread | None = None
        self._begun = False

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        if self._thread is None:
            item = next(self._items)
            if not self._begun:
                self._begun = True
                if self._pays is None or self._pays():
                    self._start()
            return item
        made, end = self._lane.take()
        if end is None:
            return made  # type: ignore[return-value]
        self._join()
        try:
            raise end
        finally:
            del end  # it refers to this frame

    def stop(self) -> None:
        """End the thread and the iterator, which is closed if it is a generator."""
        if self._thread is None:
            close_generator(self._items)
        else:
            self._lane.stop()
            self._join()

    def _start(self) -> None:
        thread = threading.Thread(
            target=self._lane.fill, args=(self._items,), name="spaseq-ahead", daemon=True
        )
        self._items = iter(())
        self._thread = thread
        _running.add(self)
        thread.start()

    def _join(self) -> None:
        thread, self._thread = self._thread, None
        _running.discard(self)
        # The garbage collector may run this in the thread itself.
        if thread is not None and thread is not threading.current_thread():
            thread.join()


def close_generator(items: Iterator[object]) -> None:
    """Close an iterator that is a generator.

    If an error leaves a loop, its traceback would otherwise keep the generator alive, and a thread
    with it.
    """
    if isinstance(items, Generator):
        items.close()


_running: set[Ahead[Any]] = set()


@atexit.register
def _stop_all() -> None:
    """End the threads of iterators that are still referenced, before the interpreter exits."""
    for one in list(_running):
        one.stop()

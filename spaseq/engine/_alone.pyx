# cython: language_level=3
"""One run, one thread at a time: what a second thread asks meanwhile is refused.

A run is not locked for its user: threads that take turns see to that themselves. Its lock only
finds out where they do not, and does so before anything of the run has been looked at. It is
re-entrant, for what a run calls (events given by an iterator, say) may ask the run in turn.
"""

from functools import wraps


cdef class Alone:
    """The lock of one run."""

    cpdef int enter(self) except -1:
        """Refuse to go on where another thread is at work; else `leave` must follow.

        Raises:
            RuntimeError: where one is.
        """
        return go_in(self)

    cpdef int leave(self) except -1:
        """The thread at hand is done."""
        return go_out(self)

    def taking(self, matches):
        """An iterator whose steps are each alone."""
        return Taking(self, iter(matches))


cdef class Taking:
    """Matches that are made while they are taken."""

    cdef Alone alone
    cdef object matches

    def __cinit__(self, Alone alone not None, matches):
        self.alone, self.matches = alone, matches

    def __iter__(self):
        return self

    def __next__(self):
        go_in(self.alone)
        try:
            return next(self.matches)
        finally:
            go_out(self.alone)


def alone(method):
    """A method of a run, which has its lock as `alone`, with no other thread in any of these."""

    @wraps(method)
    def entered(self, *args, **kwargs):
        cdef Alone lock = self.alone
        go_in(lock)
        try:
            return method(self, *args, **kwargs)
        finally:
            go_out(lock)

    return entered

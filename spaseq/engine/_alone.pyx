# cython: language_level=3
"""The lock of a run, which admits one thread at a time and refuses a second one.

The lock does not make threads wait: they synchronise themselves. It detects a violation before the
second thread reads the state of the run. It is re-entrant, because code that a run calls (an
iterator over events, for example) can call the run.
"""

from functools import wraps


cdef class Alone:
    """The lock of one run."""

    cpdef int enter(self) except -1:
        """Acquire the lock; `leave` must follow.

        Raises:
            RuntimeError: if another thread holds it.
        """
        return go_in(self)

    cpdef int leave(self) except -1:
        """Release the lock."""
        return go_out(self)

    def taking(self, matches):
        """An iterator over matches that holds the lock during each step."""
        return Taking(self, iter(matches))

    def __reduce__(self):
        """Refuse copies: a run, which holds the lock, is not copied part by part."""
        raise TypeError(
            "a run can be neither copied nor pickled; its state can: program.resume(run.save())"
        )


cdef class Taking:
    """The iterator of `Alone.taking`."""

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
    """Decorate a method of a run: it holds the lock `self.alone`."""

    @wraps(method)
    def entered(self, *args, **kwargs):
        cdef Alone lock = self.alone
        go_in(lock)
        try:
            return method(self, *args, **kwargs)
        finally:
            go_out(lock)

    return entered

"""The lock of a run, which admits one thread at a time and refuses a second one.

The lock does not make threads wait: they synchronise themselves. It detects a violation before the
second thread reads the state of the run. It is re-entrant, because code that a run calls (an
iterator over events, for example) can call the run.
"""

cimport cython
from functools import wraps
from libc.stdint cimport uint32_t

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept nogil

cdef extern from *:
    """
    /* Set a word that is 0 to the owner; whether it was 0. */
    static inline int spaseq_claim(unsigned long *word, unsigned long owner) {
        unsigned long unowned = 0;
        return __atomic_compare_exchange_n(
            word, &unowned, owner, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    }
    static inline unsigned long spaseq_owner(unsigned long *word) {
        return __atomic_load_n(word, __ATOMIC_RELAXED);
    }
    static inline void spaseq_disclaim(unsigned long *word) {
        __atomic_store_n(word, 0, __ATOMIC_RELEASE);
    }
    """
    bint claim "spaseq_claim"(unsigned long* word, unsigned long owner) noexcept nogil
    unsigned long owner_of "spaseq_owner"(unsigned long* word) noexcept nogil
    void disclaim "spaseq_disclaim"(unsigned long* word) noexcept nogil


cdef class Alone:
    """The lock of one run."""

    cdef unsigned long owner    # the thread that holds the lock, 0: none
    cdef uint32_t depth         # its nested acquisitions

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


cdef inline bint is_held(Alone alone) noexcept:
    """Whether the calling thread holds the lock."""
    return owner_of(&alone.owner) == PyThread_get_thread_ident()


cdef inline int go_in(Alone alone) except -1:
    """As `Alone.enter`."""
    if not is_held(alone) and not claim(&alone.owner, PyThread_get_thread_ident()):
        raise RuntimeError("a run is for one thread at a time")
    alone.depth += 1
    return 0


cdef inline int go_out(Alone alone) noexcept:
    """As `Alone.leave`."""
    alone.depth -= 1
    if alone.depth == 0:
        disclaim(&alone.owner)
    return 0


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

    @cython.binding(True)
    @wraps(method)
    def entered(self, *args, **kwargs):
        cdef Alone lock = self.alone
        go_in(lock)
        try:
            return method(self, *args, **kwargs)
        finally:
            go_out(lock)

    return entered

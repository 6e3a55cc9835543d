"""The lock of a run; see _alone.pyx."""

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
    cdef unsigned long owner    # the thread that holds the lock, 0: none
    cdef uint32_t depth         # its nested acquisitions

    cpdef int enter(self) except -1
    cpdef int leave(self) except -1


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

# cython: language_level=3, boundscheck=False, wraparound=False
"""The steps that compiled loops take: a bound for each event, and regular looks at signals.

A loop that may run long counts its steps down. Every `SPELL` steps it reads a clock, and every
tenth of a second it lets Python run the handlers of the signals that have arrived. So Ctrl-C
interrupts the work of one event, also where that work needs no interpreter. An exception that a
handler raises leaves the loop as any other exception does.

Cost: a step is one subtraction; a look at the clock takes some 20 ns, the lock of the interpreter
is taken ten times a second at most.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #if defined(_WIN32)
    #include <windows.h>
    #define SPASEQ_OF_THREAD __declspec(thread)
    static unsigned long long spaseq_millis(void) { return GetTickCount64(); }
    #else
    #include <time.h>
    #define SPASEQ_OF_THREAD __thread
    static unsigned long long spaseq_millis(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000;
    }
    #endif

    /* Each thread looks at signals in its own time: Python handles them in the main one only. */
    static SPASEQ_OF_THREAD unsigned long long spaseq_due = 0;

    static int spaseq_is_due(void) {
        unsigned long long now = spaseq_millis();
        if (now < spaseq_due)
            return 0;
        spaseq_due = now + 100;
        return 1;
    }
    """
    bint is_due "spaseq_is_due"() noexcept nogil


cdef int heed() except -1 nogil:
    """Let Python handle the signals that have arrived, if the last look was long enough ago.

    Raises:
        KeyboardInterrupt, or what else a handler raises.
    """
    if is_due():
        with gil:
            PyErr_CheckSignals()
    return 0


cdef int bound_effort(Effort* effort, uint64_t most) noexcept nogil:
    """An event may take so many steps."""
    effort.left = effort.granted = effort.had = 0
    effort.most, effort.unlooked = most, SPELL
    return resume_effort(effort, 0)


cdef bint renew(Effort* effort) except -1 nogil:
    """Nothing is left of the last grant: another one, after a look at the clock if it is time."""
    effort.unlooked -= effort.granted
    effort.had += effort.granted
    effort.granted = 0
    if effort.unlooked == 0:
        effort.unlooked = SPELL
        heed()
    effort.granted = effort.left = min(effort.most - effort.had, effort.unlooked)
    return effort.left > 0


cdef bint take_more(Effort* effort, uint64_t count) except -1 nogil:
    """As `take_steps`, for more steps than are left of the last grant."""
    while count > effort.left:
        count -= effort.left
        effort.left = 0
        if not renew(effort):
            return False
    effort.left -= count
    return True

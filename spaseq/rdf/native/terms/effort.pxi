"""Step counters of compiled loops: a limit for each event, and regular checks for signals.

A loop that may run long counts its steps down. Every `STEPS_PER_CLOCK_READ` steps it reads the
clock, and every 40 ms it lets Python run the handlers of pending signals, so that Ctrl-C interrupts
the processing of one event even if that does not use the interpreter. A thread other than the main
one, which gets no signals, can have a function called instead (`attend`). An exception raised by a
handler or this function propagates from the loop.

Cost: a step is one subtraction; reading the clock takes about 20 ns, and the interpreter's lock is
acquired at most 25 times per second.
"""

from cpython.exc cimport PyErr_CheckSignals
from threading import get_ident

cdef extern from *:
    """
    #if defined(_WIN32)
    #include <windows.h>
    static unsigned long long spaseq_millis(void) { return GetTickCount64(); }
    #else
    #include <time.h>
    static unsigned long long spaseq_millis(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000;
    }
    #endif

    #if defined(_MSC_VER)
    #define SPASEQ_OF_THREAD __declspec(thread)
    #else
    #define SPASEQ_OF_THREAD __thread
    #endif

    /* Each thread has its own timer, since Python runs signal handlers in the main thread only. */
    static SPASEQ_OF_THREAD unsigned long long spaseq_due = 0;

    static int spaseq_is_due(void) {
        unsigned long long now = spaseq_millis();
        if (now < spaseq_due)
            return 0;
        spaseq_due = now + 40;
        return 1;
    }
    """
    bint is_due "spaseq_is_due"() noexcept nogil

cdef dict _attended = {}    # identifier of a thread → what its loops call


class Cancelled(BaseException):
    """Another thread wants this one to end. Error handlers are not meant to catch it."""


def attend(thread: int, function):
    """Have the compiled loops of a thread, given by its identifier, call a function regularly.

    Args:
        thread: The thread; `forget` ends this.
        function: Called in the thread, in the midst of an event, at least every 50 ms and at most
            every 40 ms. It must not use the run; what it raises ends the event, and so the run.
    """
    _attended[thread] = function


def cancel(thread: int):
    """End the compiled loops of a thread, given by its identifier, within some 40 ms."""
    attend(thread, _cancel)


def _cancel():
    raise Cancelled


def forget(thread: int):
    """End `attend` and `cancel`; call it when a thread ends, since another may get its number."""
    _attended.pop(thread, None)


def check():
    """As the compiled loops do: call it in loops of Python that may run long."""
    check_signals()


cdef int check_signals() except -1 nogil:
    """Let Python handle pending signals, at most every 40 ms.

    Raises:
        KeyboardInterrupt, or another exception of a signal handler.
        Cancelled: after `cancel`; an exception of the function given to `attend`.
    """
    if is_due():
        with gil:
            PyErr_CheckSignals()
            if _attended:
                function = _attended.get(get_ident())
                if function is not None:
                    function()
    return 0


cdef int limit_effort(Effort* effort, uint64_t most) noexcept nogil:
    """Start an event with a limit of `most` steps."""
    effort.left = effort.granted = effort.steps_before = 0
    effort.max_steps, effort.steps_to_clock = most, STEPS_PER_CLOCK_READ
    return resume_effort(effort, 0)


cdef bint grant_steps(Effort* effort) except -1 nogil:
    """Grant further steps after `left` has reached 0, and read the clock if it is due.

    Returns False if the limit is reached.
    """
    effort.steps_to_clock -= effort.granted
    effort.steps_before += effort.granted
    effort.granted = 0
    if effort.steps_to_clock == 0:
        effort.steps_to_clock = STEPS_PER_CLOCK_READ
        check_signals()
    effort.granted = effort.left = min(
        effort.max_steps - effort.steps_before, effort.steps_to_clock
    )
    return effort.left > 0


cdef bint count_steps_slow(Effort* effort, uint64_t count) except -1 nogil:
    """As `count_steps`, if `count` exceeds the rest of the last grant."""
    while count > effort.left:
        count -= effort.left
        effort.left = 0
        if not grant_steps(effort):
            return False
    effort.left -= count
    return True

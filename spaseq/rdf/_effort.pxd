"""The steps of compiled loops; see _effort.pyx."""

from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    STEPS_PER_CLOCK_READ = 1 << 14 # steps between two reads of the clock

# The limit of an effort without one: more steps than a run can take.
cdef extern from *:
    const uint64_t ENDLESS "INT64_MAX"

# The steps of one event: `left` counts down to the limit, or to the next read of the clock.
cdef struct Effort:
    uint64_t left
    uint64_t granted    # `left` at the last grant
    uint64_t steps_before # steps of the event before that grant
    uint64_t max_steps  # maximum number of steps of an event
    uint64_t steps_to_clock # steps until the next read of the clock

cdef int check_signals() except -1 nogil
cdef int limit_effort(Effort* effort, uint64_t most) noexcept nogil
cdef bint grant_steps(Effort* effort) except -1 nogil
cdef bint count_steps_slow(Effort* effort, uint64_t count) except -1 nogil


cdef inline int check_signals_rarely(uint32_t turn) except -1 nogil:
    """Check for signals in every 4096th turn of a loop over rows that are counted already."""
    if turn & 0xFFF == 0xFFF:
        check_signals()
    return 0


cdef inline int check_signals_often(uint32_t turn) except -1 nogil:
    """Check for signals in every 16th turn of a loop that makes Python objects."""
    if turn & 0xF == 0xF:
        check_signals()
    return 0


cdef inline int resume_effort(Effort* effort, uint64_t had) noexcept nogil:
    """Continue an event that has taken `had` steps so far."""
    effort.steps_to_clock -= effort.granted - effort.left
    effort.steps_before = had
    effort.granted = effort.left = min(effort.max_steps - had, effort.steps_to_clock)
    return 0


cdef inline int begin_event(Effort* effort) noexcept nogil:
    """Begin the next event at step 0; without a bound, steps are counted across events."""
    if effort.max_steps < ENDLESS:
        resume_effort(effort, 0)
    return 0


cdef inline uint64_t steps_of(const Effort* effort) noexcept nogil:
    """The number of steps of the event so far."""
    return effort.steps_before + effort.granted - effort.left


cdef inline bint count_step(Effort* effort) except -1 nogil:
    """Count one step of the event; False if the limit is reached."""
    if effort.left == 0 and not grant_steps(effort):
        return False
    effort.left -= 1
    return True


cdef inline bint count_steps(Effort* effort, uint64_t count) except -1 nogil:
    """Count `count` steps of the event; False if they exceed the limit."""
    if effort.left < count:
        return count_steps_slow(effort, count)
    effort.left -= count
    return True

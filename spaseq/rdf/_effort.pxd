"""The steps of compiled loops; see _effort.pyx."""

from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    SPELL = 1 << 14     # steps between two reads of the clock

# The limit of an effort without one: more steps than a run can take.
cdef extern from *:
    const uint64_t ENDLESS "INT64_MAX"

# The steps of one event: `left` counts down to the limit, or to the next read of the clock.
cdef struct Effort:
    uint64_t left
    uint64_t granted    # `left` at the last grant
    uint64_t had        # steps of the event before that grant
    uint64_t most       # maximum number of steps of an event
    uint64_t unlooked   # steps until the next read of the clock

cdef int heed() except -1 nogil
cdef int bound_effort(Effort* effort, uint64_t most) noexcept nogil
cdef bint renew(Effort* effort) except -1 nogil
cdef bint take_more(Effort* effort, uint64_t count) except -1 nogil


cdef inline int heed_rarely(uint32_t turn) except -1 nogil:
    """Check for signals in every 4096th turn of a loop over rows that are counted already."""
    if turn & 0xFFF == 0xFFF:
        heed()
    return 0


cdef inline int resume_effort(Effort* effort, uint64_t had) noexcept nogil:
    """Continue an event that has taken `had` steps so far."""
    effort.unlooked -= effort.granted - effort.left
    effort.had = had
    effort.granted = effort.left = min(effort.most - had, effort.unlooked)
    return 0


cdef inline int begin_event(Effort* effort) noexcept nogil:
    """The next event has taken no step; without a bound, steps are counted across events."""
    if effort.most < ENDLESS:
        resume_effort(effort, 0)
    return 0


cdef inline uint64_t spent_of(const Effort* effort) noexcept nogil:
    """The number of steps of the event so far."""
    return effort.had + effort.granted - effort.left


cdef inline bint take_step(Effort* effort) except -1 nogil:
    """Count one step of the event; False if the limit is reached."""
    if effort.left == 0 and not renew(effort):
        return False
    effort.left -= 1
    return True


cdef inline bint take_steps(Effort* effort, uint64_t count) except -1 nogil:
    """Count `count` steps of the event; False if they exceed the limit."""
    if effort.left < count:
        return take_more(effort, count)
    effort.left -= count
    return True

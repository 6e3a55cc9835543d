"""The steps of compiled loops; see _effort.pyx."""

from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    SPELL = 1 << 14     # steps between two reads of the clock

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


cdef inline int beat(uint32_t* beats) except -1 nogil:
    """Count an iteration of a loop without steps; every `SPELL` iterations check for signals."""
    beats[0] += 1
    if beats[0] & (SPELL - 1) == 0:
        heed()
    return 0


cdef inline int resume_effort(Effort* effort, uint64_t had) noexcept nogil:
    """Continue an event that has taken `had` steps so far."""
    effort.unlooked -= effort.granted - effort.left
    effort.had = had
    effort.granted = effort.left = min(effort.most - had, effort.unlooked)
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

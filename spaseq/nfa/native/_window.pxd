"""Instants and the window over them, in machine integers; see _window.pyx."""

from libc.stdint cimport INT64_MIN, int64_t, uint32_t, uint64_t

from spaseq.nfa.native._program cimport Tables
from spaseq.nfa.native._tecs cimport Label, instant_t

# A match that waits for its window to close, unless its group has ended by then.
cdef struct Awaited:
    Awaited* next
    uint32_t place
    uint32_t group
    uint64_t serial     # of the group
    uint32_t length
    Label* labels[1]    # `length` of them, the first event's first


cdef class Clock(Tables):
    cdef int64_t size
    cdef bint tumbling
    cdef readonly bint counted  # the window counts events
    cdef readonly bint endless  # there is no window: nobody asks for times, none are kept
    cdef int64_t total          # events inside it
    cdef uint32_t windows       # how many windows back somebody may look
    cdef int64_t* times         # a ring over the instants reach … now: their times, or if
    cdef uint32_t times_mask    # `counted` how many events they have
    cdef Awaited** awaited      # beside them: the waiting matches that start there
    cdef instant_t* bounds      # beside them: `bound` as it was then; NULL: `windows` is 1
    cdef uint64_t awaited_count
    cdef public uint64_t shed_matches   # waiting matches that went, for there were too many
    cdef public instant_t now
    cdef public instant_t bound
    cdef readonly instant_t reach   # nobody looks back to an earlier instant
    cdef public instant_t timestamp_start
    cdef public int64_t micros
    cdef public instant_t skipped   # no match may start before it

    cdef bint closes(self, int64_t micros) noexcept nogil
    cdef int count(self) noexcept nogil
    cdef int widen_times(self) except -1 nogil
    cdef int look_back(self) noexcept nogil


cdef inline int64_t opening_of(Clock clock, int64_t micros) noexcept nogil:
    """The earliest time of a match that ends at `micros`."""
    if clock.counted or clock.endless or micros < INT64_MIN + clock.size:
        return INT64_MIN
    return micros // clock.size * clock.size if clock.tumbling else micros - clock.size


cdef inline instant_t since_of(Clock clock) noexcept nogil:
    """No match may start before it."""
    return clock.bound if clock.bound > clock.skipped else clock.skipped


cdef inline instant_t bound_at(Clock clock, instant_t instant) noexcept nogil:
    """The least start of a match that ends at an instant."""
    return clock.bound if clock.bounds == NULL else clock.bounds[instant & clock.times_mask]


cdef inline int tick(Clock clock, int64_t micros) except -1 nogil:
    """The next instant begins, at a time not before the last one's."""
    cdef int64_t earliest = opening_of(clock, micros)
    clock.now += 1
    if clock.now == 0 or clock.micros != micros:
        clock.timestamp_start = clock.now
        clock.micros = micros
    if clock.now - clock.reach > clock.times_mask and not clock.endless:
        clock.widen_times()
    clock.times[clock.now & clock.times_mask] = 0 if clock.counted else micros
    clock.awaited[clock.now & clock.times_mask] = NULL
    if not clock.counted:
        while clock.times[clock.bound & clock.times_mask] < earliest:
            clock.bound += 1
    clock.reach = clock.bound
    if clock.bounds != NULL:
        clock.look_back()
    return 0

"""Instants and the window over them, in machine integers; see _window.pyx."""

cimport cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint32_t, uint64_t

from spaseq.nfa.native._tecs cimport Label, instant_t
from spaseq.rdf._moments cimport earlier, later, since_multiple

# A match that waits for its window to close, unless its group has been removed.
cdef struct Awaited:
    Awaited* next
    uint32_t place
    uint32_t group
    uint64_t serial     # of the group
    Label* deadline     # a deadline that the match has passed since its last label, or NULL
    uint32_t length
    Label* labels[1]    # `length` of them, the first event's first


@cython.final
cdef class Window:
    cdef int64_t size
    cdef bint tumbling
    cdef readonly bint counted  # the window counts events
    cdef readonly bint endless  # no window: no times are stored
    cdef int64_t total          # if `counted`: the events inside the window,
    cdef int64_t reached        # and, if there is a lookback, all since `reach`
    cdef uint32_t windows       # how many windows back a search may reach
    cdef int64_t* times         # a ring over the instants reach … now: their times, or if `counted`
                                # their numbers of events
    cdef int64_t* clock         # a ring beside it: the times, if `times` does not hold them and a
                                # guard needs them; else NULL
    cdef int64_t lookback       # microseconds before the window that a search may begin, or -1
    cdef instant_t back         # no instant of the lookback is earlier
    cdef uint32_t times_mask    # `counted` how many events they have
    cdef Awaited** awaited      # a ring beside it: the waiting matches that start there
    cdef instant_t* past_bounds # a ring beside it: `bound` as it was then; NULL if `windows` is 1
    cdef uint64_t awaited_count
    cdef public uint64_t shed_matches   # waiting matches shed under a limit
    cdef public instant_t now
    cdef public instant_t bound
    cdef readonly instant_t reach   # no search reaches an earlier instant
    cdef public instant_t timestamp_start
    cdef public int64_t micros
    cdef public instant_t skipped   # no match may start before it
    cdef public instant_t last_start    # no match may start after it

    cdef bint closes(self, int64_t micros) noexcept nogil
    cdef int count_event(self) noexcept nogil
    cdef int grow_ring(self) except -1 nogil
    cdef int extend_reach(self) noexcept nogil
    cdef int _look_back(self) noexcept nogil


cdef inline int64_t opening_of(Window window, int64_t micros) noexcept nogil:
    """The earliest start, in microseconds, of a match that ends at `micros`."""
    if window.counted or window.endless:
        return INT64_MIN
    return earlier(
        micros, since_multiple(micros, window.size) if window.tumbling else window.size
    )


cdef inline int64_t end_of(Window window, int64_t micros) noexcept nogil:
    """The last time inside the window of a match that starts at `micros`."""
    if window.tumbling:
        return later(micros, window.size - since_multiple(micros, window.size) - 1)
    return later(micros, window.size)


cdef inline int64_t closing_of(Window window, int64_t micros) noexcept nogil:
    """The closing time of the window of a match that starts at `micros`.

    A tumbling window closes before the events of that time, any other after them.
    """
    return later(end_of(window, micros), window.tumbling)


cdef inline instant_t since_of(Window window) noexcept nogil:
    """The least start of a match that ends now."""
    return window.bound if window.bound > window.skipped else window.skipped


cdef inline instant_t bound_at(Window window, instant_t instant) noexcept nogil:
    """The least start of a match that ends at an instant."""
    if window.past_bounds == NULL:
        return window.bound
    return window.past_bounds[instant & window.times_mask]


cdef inline int64_t time_of(Window window, instant_t instant) noexcept nogil:
    """The time of an instant within reach: of a window of time, or of one with a clock."""
    cdef int64_t* times = window.times if window.clock == NULL else window.clock
    return times[instant & window.times_mask]


cdef inline instant_t first_since(
    Window window, int64_t micros, instant_t instant
) noexcept nogil:
    """The least instant within reach, up to a given one, whose time is not before `micros`."""
    cdef instant_t low = window.reach, middle
    while low < instant:
        middle = low + (instant - low) // 2
        if time_of(window, middle) < micros:
            low = middle + 1
        else:
            instant = middle
    return instant


cdef inline int pass_time(Window window, int64_t micros) noexcept nogil:
    """Let the window end at a time between two instants."""
    cdef int64_t earliest = opening_of(window, micros)
    if not window.counted and not window.endless:
        while window.bound <= window.now and (
            window.times[window.bound & window.times_mask] < earliest
        ):
            window.bound += 1
    return 0


cdef inline int tick(Window window, int64_t micros) except -1 nogil:
    """Begin the next instant, at a time not before the last one's."""
    cdef int64_t earliest = opening_of(window, micros)
    window.now += 1
    if window.now == 0 or window.micros != micros:
        window.timestamp_start = window.now
        window.micros = micros
    if window.now - window.reach > window.times_mask and not (
        window.endless and window.clock == NULL
    ):
        window.grow_ring()
    window.times[window.now & window.times_mask] = 0 if window.counted else micros
    window.awaited[window.now & window.times_mask] = NULL
    if window.clock != NULL:
        window.clock[window.now & window.times_mask] = micros
    if not window.counted:
        while window.times[window.bound & window.times_mask] < earliest:
            window.bound += 1
    if window.past_bounds == NULL and window.lookback < 0:
        window.reach = window.bound
        return 0
    return window.extend_reach()

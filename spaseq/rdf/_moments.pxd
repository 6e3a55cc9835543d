"""Times and durations in microseconds: sums that remain representable.

A time that lies outside 64 bits counts as the nearest one inside. Durations are not negative. All
compiled code that moves a time by a duration, or rounds one, does so here.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t


cdef inline int64_t later(int64_t micros, int64_t duration) noexcept nogil:
    """The time a duration after another one, at most the greatest time."""
    return INT64_MAX if micros > INT64_MAX - duration else micros + duration


cdef inline int64_t earlier(int64_t micros, int64_t duration) noexcept nogil:
    """The time a duration before another one, at least the least time."""
    return INT64_MIN if micros < INT64_MIN + duration else micros - duration


cdef inline bint is_beyond(int64_t micros, int64_t since, int64_t duration) noexcept nogil:
    """Whether a time lies more than a duration after another one."""
    return since <= INT64_MAX - duration and micros > since + duration


cdef inline int64_t since_multiple(int64_t micros, int64_t duration) noexcept nogil:
    """The time since the last multiple of a duration: less than the duration, not negative."""
    return micros % duration

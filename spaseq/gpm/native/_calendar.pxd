"""Calendar arithmetic: fields of points in time, and points plus durations; see _calendar.pyx."""

from spaseq.gpm.native._operand cimport Operand

cdef enum Field:
    YEAR
    MONTH
    DAY_OF_MONTH
    HOURS
    MINUTES
    SECONDS

cdef int shift(Operand* to, const Operand* moved, const Operand* by, int sign) except -2 nogil
cdef int calendar_field(Operand* a, Field field) noexcept nogil

"""Points in time: their fields, and points moved by durations; see _moments.pyx."""

from spaseq.gpm.native._operators cimport Operand

cdef enum Field:
    YEAR
    MONTH
    DAY_OF_MONTH
    HOURS
    MINUTES
    SECONDS

cdef int shift(Operand* to, const Operand* moved, const Operand* by, int sign) except -2 nogil
cdef int take_field(Operand* a, Field field) noexcept nogil

"""Intervals that contain the numbers of several rows, for zone maps."""

from libc.stdint cimport uint32_t

from spaseq.rdf._literals cimport decode_record
from spaseq.rdf._terms cimport UNDECODED, TermRecord
from spaseq.rdf._values cimport Kind

# The bounds are doubles, to which numbers are rounded. From minus to plus infinity means that
# nothing is known, not even that the values are numbers.
cdef struct Interval:
    double low
    double high

# An interval for each of several columns.
cdef struct Box:
    const uint32_t* columns
    const Interval* intervals
    uint32_t width


cdef inline bint real_at(TermRecord* record, double* real) noexcept nogil:
    """The integer, decimal or double of a record, rounded to a double.

    False for any other value, for NaN, and for floats, since arithmetic with them rounds to float.
    """
    if record.kind == UNDECODED:
        decode_record(record)
    if record.kind == Kind.INTEGER:
        real[0] = <double>record.exact
        return True
    real[0] = record.further.real
    return (
        record.kind == Kind.DECIMAL or record.kind == Kind.WIDE or record.kind == Kind.DOUBLE
    ) and real[0] == real[0]

"""What is known of the numbers of several rows at once: that they lie between two others."""

from libc.stdint cimport uint32_t

from spaseq.rdf._literals cimport decode_record
from spaseq.rdf._terms cimport UNDECODED, TermRecord
from spaseq.rdf._values cimport Kind

# From minus to plus infinity: nothing is known, not even that they are numbers. Doubles, which the
# numbers have been rounded to.
cdef struct Interval:
    double low
    double high

# An interval for each of some columns of rows.
cdef struct Box:
    const uint32_t* columns
    const Interval* intervals
    uint32_t width


cdef inline bint real_at(TermRecord* record, double* real) noexcept nogil:
    """The integer, decimal or double of a record, rounded to a double; False: it is none, or NaN.

    A float is none here: arithmetic rounds what meets it to a float.
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

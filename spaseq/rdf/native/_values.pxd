"""The declarations of _values.pyx that other modules use."""


# Numbers are adjacent, from INTEGER to DOUBLE.
cpdef enum Kind:
    TRIPLE          # a triple term; the kinds after BLANK are those of literals
    IRI
    BLANK
    STRING
    LANG
    BOOLEAN
    INTEGER
    DECIMAL
    WIDE            # an integer or decimal beyond the limits of INTEGER and DECIMAL
    FLOAT
    DOUBLE
    POINT
    SPAN
    OTHER


cdef class Value:
    cdef readonly int kind
    cdef readonly object number
    cdef readonly double real
    cdef readonly str text
    cdef readonly object form
    cdef readonly object extra
    cdef object _term

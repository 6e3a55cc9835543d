"""Rows of tables → events; see _row_events.pyx."""

# As spaseq.io.rows.columns.Kind; the two are compared when the module is imported.
cpdef enum Kind:
    NOTHING
    TEXT
    INTEGER
    DECIMAL
    DOUBLE
    FLOAT
    BOOLEAN
    DATE_TIME
    DATE
    TIME
    DURATION
    HEX
    UNSIGNED
    TERM

# A value of kind TERM: the text of a term.
cdef struct Cell:
    const char* text        # NULL: no value
    size_t size

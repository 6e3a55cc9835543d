"""Rows of tables → events; see _rows.pyx."""

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

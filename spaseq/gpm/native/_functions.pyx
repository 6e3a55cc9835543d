# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Operands, operators and built-in functions of SPARQL expressions."""

include "functions/operand.pxi"
include "functions/calendar.pxi"
include "functions/operators.pxi"
include "functions/xpath_math.pxi"
include "functions/functions.pxi"

# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The bytecode of expressions, and filters that compare numbers."""

include "bytecode/numeric_filter.pxi"
include "bytecode/bytecode.pxi"

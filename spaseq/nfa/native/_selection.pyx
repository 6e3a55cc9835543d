# cython: language_level=3, boundscheck=False, wraparound=False
"""Which of the complete matches of an instant are results: EMIT and selection strategies."""

include "selection/complete.pxi"
include "selection/selection.pxi"

# cython: language_level=3, boundscheck=False, wraparound=False
"""Terms, values of numbers, the dictionary, batches of events, and the memory that holds them."""

include "terms/effort.pxi"
include "terms/memory.pxi"
include "terms/terms.pxi"
include "terms/numerals.pxi"
include "terms/dictionary.pxi"
include "terms/batch.pxi"
include "terms/window_terms.pxi"
include "terms/relevance.pxi"
include "terms/sequence.pxi"
include "terms/triple_table.pxi"

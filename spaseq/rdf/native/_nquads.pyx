# cython: language_level=3, boundscheck=False, wraparound=False
"""The reader of N-Quads and N-Triples."""

include "nquads/nquads_terms.pxi"
include "nquads/nquads.pxi"

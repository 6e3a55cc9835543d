# cython: language_level=3, boundscheck=False, wraparound=False
"""Matches, and the JSON and text of their terms."""

include "match/match.pxi"
include "match/json.pxi"
include "match/term_text.pxi"

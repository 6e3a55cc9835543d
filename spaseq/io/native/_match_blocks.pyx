# cython: language_level=3, boundscheck=False, wraparound=False
"""Matches as lines of text, also those of the parts of a stream that are evaluated apart."""

include "match_blocks/match_blocks.pxi"
include "match_blocks/part_matches.pxi"

# cython: language_level=3, boundscheck=False, wraparound=False
"""Matches as lines of text and as columns."""

include "match_rows/building.pxi"
include "match_rows/native_values.pxi"
include "match_rows/match_blocks.pxi"
include "match_rows/part_matches.pxi"
include "match_rows/rows.pxi"

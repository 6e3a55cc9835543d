# cython: language_level=3, boundscheck=False, wraparound=False
"""Complete matches, decoded and listed: from the automaton to objects and text."""

include "matches/decode.pxi"
include "matches/start_marks.pxi"
include "matches/gathered.pxi"
include "matches/matches.pxi"
include "matches/constructs.pxi"
include "matches/multi_matches.pxi"

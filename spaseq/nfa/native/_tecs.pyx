# cython: language_level=3, boundscheck=False, wraparound=False
"""The tables of an automaton, and the partial matches that it keeps: tECS, groups, windows."""

include "tecs/program.pxi"
include "tecs/tecs.pxi"
include "tecs/range_index.pxi"
include "tecs/groups.pxi"
include "tecs/sums.pxi"
include "tecs/window.pxi"
include "tecs/event.pxi"
include "tecs/instant.pxi"
include "tecs/row_buffer.pxi"
include "tecs/frontier.pxi"
include "tecs/ranges.pxi"

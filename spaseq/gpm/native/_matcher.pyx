# cython: language_level=3, boundscheck=False, wraparound=False
"""Matching a graph pattern against the graph of an event."""

include "matcher/rows.pxi"
include "matcher/marks.pxi"
include "matcher/entailed_views.pxi"
include "matcher/summary_graph.pxi"
include "matcher/path_search.pxi"
include "matcher/grouping.pxi"
include "matcher/matcher.pxi"

# cython: language_level=3, boundscheck=False, wraparound=False
"""The results of groups: aggregates over matches, and their rows."""

include "groups/result_sums.pxi"
include "groups/result_groups.pxi"
include "groups/group_results.pxi"
include "groups/group_matches.pxi"
include "groups/gathered_groups.pxi"

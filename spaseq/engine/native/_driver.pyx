# cython: language_level=3, boundscheck=False, wraparound=False
"""The loop over events: from batches through graph patterns into automata."""

include "driver/aggregates.pxi"
include "driver/views.pxi"
include "driver/graph_test.pxi"
include "driver/dispatch.pxi"
include "driver/driver.pxi"
include "driver/delayed.pxi"
include "driver/value_ranges.pxi"
include "driver/query_index.pxi"
include "driver/multi_driver.pxi"

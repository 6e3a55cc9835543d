# cython: language_level=3, boundscheck=False, wraparound=False
"""Events as lines, and the parts of a stream that are evaluated apart."""

include "events/event_lines.pxi"
include "events/event_parts.pxi"

# cython: language_level=3, boundscheck=False, wraparound=False
"""The reader of TriG and Turtle."""

include "turtle/turtle_tokens.pxi"
include "turtle/turtle_names.pxi"
include "turtle/turtle.pxi"

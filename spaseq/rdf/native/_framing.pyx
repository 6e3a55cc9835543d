# cython: language_level=3, boundscheck=False, wraparound=False
"""Frames: where the events of a document begin and end, and what their graphs are made of."""

include "framing/minting.pxi"
include "framing/closed_graphs.pxi"
include "framing/term_map.pxi"
include "framing/subjects.pxi"
include "framing/collector.pxi"
include "framing/framing.pxi"
include "framing/adoption.pxi"

# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Matches as columns of Arrow, and terms as their values."""

include "columns/building.pxi"
include "columns/native_values.pxi"
include "columns/rows.pxi"

# cython: language_level=3, boundscheck=False, wraparound=False
"""Pushed events: graphs of Python objects, and the call that no other call may interrupt."""

include "push/alone.pxi"
include "push/pushed_graphs.pxi"
include "push/push.pxi"

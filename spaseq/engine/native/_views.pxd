"""Views of registers that hold no term; see _views.pyx."""

cimport cython
from libc.stdint cimport uint32_t

from spaseq.engine.native._aggregates cimport NativeAggregates
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport term_t

cdef enum Showing:
    BOUND_ONLY  # a first value, once there is one
    NUMBER      # a count
    VALUE       # of an aggregate

# The view of a register that holds no term: its own cell of the environment.
cdef struct View:
    uint32_t register
    uint32_t cell
    Showing how


@cython.final
cdef class Views:
    cdef readonly bint any          # whether some expression has a view
    cdef View* views                # views[first[n]:first[n + 1]] belong to expression n
    cdef uint32_t* first
    cdef NativeAggregates aggregates

    cdef int refresh(self, EventBatch batch, uint32_t number, term_t* env) except -1 nogil


cdef inline bint has_views(Views views, uint32_t number) noexcept nogil:
    return views.any and views.first[number] < views.first[number + 1]

"""The matches of an instant, gathered; see _gathered.pyx."""

from libc.stdint cimport int64_t, uint32_t

from spaseq.engine.native._decode cimport DecodedStep, MatchDecoder
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._selection cimport Selection
from spaseq.nfa.native._tecs cimport Label, instant_t

# A match: labels[first:first + length], the label of its last step first.
cdef struct GatheredPath:
    instant_t start
    uint32_t first
    uint32_t length


cdef class Gathering:
    cdef AutomatonCore core
    cdef readonly Selection selection   # only its matches are gathered; None: all matches
    cdef MatchDecoder solving           # decodes the columns, or the variables of a template
    cdef MatchDecoder ordering          # decodes the sort key of matches of the same instants
    cdef object stage                   # the `OutputStage`
    cdef bint repeats, chooses, sorts, retains, compares, computes, constructs
    cdef readonly bint asks
    cdef readonly bint one              # one match for each last step suffices
    cdef Label** labels
    cdef uint32_t label_count, label_room
    cdef GatheredPath* paths
    cdef readonly uint32_t count        # number of matches
    cdef uint32_t path_room
    cdef list values                    # per match: its computed columns, or None
    cdef list graphs                    # per match that is retained: its triples, or None

    cdef int begin(self) noexcept
    cdef int add(self) except -1
    cdef int position_walk(self, uint32_t number) except -1
    cdef int64_t last_time(self) noexcept
    cdef list arranged(self, list steps, int64_t now)
    cdef list in_order(self, list steps)
    cdef tuple sort_key(self, uint32_t number, list steps)
    cdef list _once(self, list steps)
    cdef list _chosen(self, list order)
    cdef list _sorted(self, list order, list steps)
    cdef tuple _solution(self, uint32_t number, list steps)
    cdef DecodedStep _computed(self, tuple steps)

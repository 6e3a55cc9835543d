"""The starts that `AFTER MATCH SKIP TO` has ended; see _start_marks.pyx."""

cimport cython
from libc.stdint cimport uint8_t

from spaseq.engine.native._decode cimport MatchDecoder
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._tecs cimport instant_t
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._terms cimport term_t


@cython.final
cdef class StartMarks:
    cdef AutomatonCore core
    cdef Dictionary dictionary
    cdef MatchDecoder reading
    cdef object ended           # the `EndedStarts`
    cdef object taken           # the occurrences of the step named by SKIP TO, or None
    cdef bint last              # starts end at the last event of these, not at the first
    # Which of the starts before `over_end` have ended: a ring of `over_room`, a power of two.
    cdef uint8_t* over
    cdef instant_t over_room, over_end
    cdef dict over_keys         # with partitions: the keys whose start has ended, by start; or None
    cdef list newly_over        # (key, start, end) of the matches of this instant
    cdef Py_ssize_t over_keys_due # size of `over_keys` at which those before the window are removed
    cdef Py_ssize_t unsettled   # matches since `ended` was settled
    cdef instant_t restored_end # intervals of a saved state in `ended` lie before it

    cdef bint passes_over(self) except -1
    cdef int settle(self) except -1
    cdef int _mark(self, instant_t start, instant_t until) except -1
    cdef object _term(self, term_t number)

"""The state of a compiled automaton, part by part; see _snapshot.pyx."""

from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._groups cimport Dates
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._terms cimport term_t


cdef class CoreParts:
    cdef AutomatonCore core
    cdef Dictionary dictionary

    cdef tuple _dates(self, Dates* dates, bint over)
    cdef int _put_dates(self, Dates* dates, told) except -1
    cdef int _set_key(self, values) except -1
    cpdef object term(self, term_t number)

"""The state of a compiled automaton, part by part; see _parts.pyx."""

from spaseq.nfa._core cimport AutomatonCore
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._terms cimport term_t


cdef class CoreParts:
    cdef AutomatonCore core
    cdef Dictionary dictionary

    cpdef object term(self, term_t number)

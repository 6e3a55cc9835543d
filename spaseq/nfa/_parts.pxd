"""The state of a compiled automaton, part by part; see _parts.pyx."""

from libc.stdint cimport uint32_t

from spaseq.nfa._core cimport AutomatonCore
from spaseq.nfa._groups cimport Groups
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._terms cimport term_t


cdef class CoreParts:
    cdef AutomatonCore core
    cdef Dictionary dictionary

    cdef uint32_t _group(self, Groups groups, values)
    cpdef object term(self, term_t number)

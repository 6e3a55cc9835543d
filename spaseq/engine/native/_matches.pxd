"""The maker of matches; see _matches.pyx."""

from cpython.ref cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from spaseq.engine.native._decode cimport MatchDecoder, DecodedStep
from spaseq.engine.native._driver cimport NativeStep
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._earliest cimport Earliest
from spaseq.nfa.native._tecs cimport Label, instant_t
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._numerals cimport Numeral
from spaseq.rdf._terms cimport TermRecord
from spaseq.results._match cimport Match

# A label and its `DecodedStep`, or NULL. The instant and the stream identify the label, since its
# memory can be reused.
cdef struct Recent:
    const Label* label
    instant_t instant
    uint32_t stream
    PyObject* taken


cdef class MatchMaker:
    cdef NativeStep step
    cdef AutomatonCore core
    cdef Earliest earliest      # selects among the matches of an instant, or None
    cdef MatchDecoder ordering       # decodes the sort key of matches of the same instants
    cdef Dictionary dictionary
    cdef MatchDecoder reading
    cdef Recent* recent         # cache of RECENT entries, by the label's address
    cdef uint64_t epoch         # the oldest epoch of the core when the cache was emptied
    cdef readonly uint64_t made
    cdef Numeral numeral        # the numeral spelt last

    cdef Match match(self, object version)
    cdef bint pauses(self) noexcept
    cdef list in_order(self, object version)
    cdef DecodedStep taken(self, Label* label)
    cdef int forget(self) noexcept
    cdef bytes _texts(self, Label* label)
    cdef const TermRecord* record(self, Label* label, uint32_t place) noexcept

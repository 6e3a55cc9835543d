"""The state of a compiled automaton, part by part; see _snapshot.pyx."""

from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._conjunction cimport Conjunction
from spaseq.nfa.native._event cimport CurrentEvent
from spaseq.nfa.native._groups cimport Dates
from spaseq.nfa.native._instant cimport OpenInstant
from spaseq.nfa.native._joins cimport StepJoin
from spaseq.nfa.native._lazy_join cimport LazyJoin
from spaseq.nfa.native._program cimport Tables
from spaseq.nfa.native._transitions cimport Transitions
from spaseq.nfa.native._window cimport Window
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._terms cimport term_t


cdef class CoreParts:
    cdef AutomatonCore core
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef Conjunction conjunction
    cdef OpenInstant instant
    cdef StepJoin joins
    cdef Transitions transitions
    cdef LazyJoin lazy_join
    cdef Dictionary dictionary

    cdef tuple _dates(self, Dates* dates, bint over)
    cdef int _load_dates(self, Dates* dates, saved) except -1
    cdef int _set_key(self, values) except -1
    cpdef object term(self, term_t number)

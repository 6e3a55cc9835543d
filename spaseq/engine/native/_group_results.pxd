"""The results of an instant, for their groups; see _group_results.pyx."""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from spaseq.engine.native._decode cimport MatchDecoder
from spaseq.engine.native._matches cimport MatchMaker
from spaseq.engine.native._result_groups cimport NativeGroups
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._tecs cimport Label
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._numerals cimport Numeral
from spaseq.rdf._terms cimport TermRecord, term_t

# A result: its labels, first event first.
cdef struct Found:
    uint64_t first      # index in `labels`
    uint32_t length
    uint32_t group

# A group whose solution may be output, and its newest result.
cdef struct Showing:
    uint32_t group
    uint32_t found


cdef class ResultReader:
    cdef readonly NativeGroups groups
    cdef MatchMaker maker
    cdef AutomatonCore core
    cdef MatchDecoder replay
    cdef list names             # the variables and the keys that order results, by name: (name, key
                                # or None)
    cdef list expressions       # per key, then argument: its Expression; None for a variable
    cdef PyObject** linked      # the same; NULL for a variable
    cdef uint32_t* cells        # per key, then argument: the register of a variable
    cdef uint32_t* needed       # the registers that expressions read
    cdef uint32_t needed_count
    cdef int32_t* columns       # see `_find_columns`
    cdef uint64_t erring        # bits of the keys and arguments of a result that erred
    cdef term_t* env
    cdef Numeral* numerals      # spelt for the current key, then for the start and each argument
    cdef Label** labels         # of the results of the instant
    cdef uint64_t label_count, label_room
    cdef Found* found
    cdef uint32_t found_count, found_room
    cdef uint32_t* order        # the results in order
    cdef uint32_t* merged       # scratch of the same size
    cdef Showing* showing
    cdef uint32_t showing_count, showing_room
    cdef readonly uint32_t refused  # the position in its instant of a result that the groups refuse
    cdef uint64_t turn          # `match_generation` of the core after `take`

    cpdef uint32_t feed(
        self, EventBatch batch, uint32_t first, uint32_t stream, uint32_t file, int64_t position
    ) except? 0xFFFFFFFF
    cdef int take(self) except -1 nogil
    cdef int _collect(self) except -1 nogil
    cdef int _find_columns(self) except -1
    cdef bint _add_path(self, Label** path, uint32_t length) except -1 nogil
    cdef int _sort(self) except -1 nogil
    cdef int _settle_ties(self) except -1 with gil
    cdef int _show(self) except -1 nogil
    cdef int _fill(self, const Found* found) noexcept nogil
    cdef int _read(self, const Found* found) except -1 nogil
    cdef int _count_errors(self) except -1 nogil
    cdef const TermRecord* _record(self, term_t term, Numeral* numeral) noexcept nogil
    cdef int _value(
        self, uint32_t place, Numeral* numeral, const char** text, uint32_t* size
    ) except -1 nogil
    cdef int _remember(self, const Found* found) except -1 nogil
    cdef tuple steps(self, uint32_t found)
    cdef int64_t last_time(self) noexcept nogil
    cdef tuple shown_steps(self, uint32_t number)

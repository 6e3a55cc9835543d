"""The maker of matches; see _matches.pyx."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.engine.native._decode cimport DecodedStep, Ending, MatchDecoder
from spaseq.engine.native._driver cimport NativeStep
from spaseq.engine.native._gathered cimport Gathering
from spaseq.engine.native._start_marks cimport StartMarks
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._complete cimport Closing
from spaseq.nfa.native._selection cimport Selection
from spaseq.nfa.native._tecs cimport Label, instant_t
from spaseq.rdf._batch cimport EventBatch
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


cdef class FoundMatch(Match):
    cdef MatchDecoder reading
    cdef tuple steps
    cdef DecodedStep computed   # the computed columns, if there are any
    cdef Ending ending

    cdef tuple _witnesses(self)


cpdef list copies(list matches, str query)
cdef int add_copies(list matches, str query, list found) except -1


cdef class MatchMaker:
    cdef NativeStep step
    cdef AutomatonCore core
    cdef Selection selection    # among the matches of an instant, or None
    cdef Gathering gathering    # of the matches of an instant, or None
    cdef MatchDecoder ordering       # decodes the sort key of matches of the same instants
    cdef Dictionary dictionary
    cdef MatchDecoder reading
    cdef Recent* recent         # a cache of `1 << recent_bits` entries, by the label's address
    cdef uint32_t recent_bits   # 0: there is none yet
    cdef uint32_t displaced     # the entries that others have displaced since it grew
    cdef uint64_t epoch         # the oldest epoch of the core when the cache was emptied
    cdef Ending ending          # when the current match comes out
    # Of the current match, if there is a `gathering`: its computed columns, and its triples.
    cdef DecodedStep computed
    cdef tuple triples
    cdef TermRecord scratch     # of a computed column
    cdef public int64_t ended_at    # the time of the last event of the first stream to end
    cdef readonly uint64_t closed_by_end    # matches whose window the end of input has closed
    cdef readonly uint64_t made
    cdef Numeral numeral        # the numeral spelt last
    cdef StartMarks marks       # of AFTER MATCH SKIP TO, or None

    cdef Match match(self, object version)
    cdef int fill(self, FoundMatch match, object version) except -1
    cdef tuple steps(self)
    cdef int position_walk(self, uint32_t number) except -1
    cdef const TermRecord* computed_record(self, uint32_t place) noexcept
    cdef bint pauses(self) noexcept
    cdef list in_order(self, object version)
    cdef DecodedStep step_of_label(self, Label* label)
    cdef int forget(self) noexcept
    cdef int _widen(self) except -1
    cdef bytes _texts(self, Label* label)
    cdef const TermRecord* record(self, Label* label, uint32_t place) noexcept


cdef class Matches:
    cdef MatchMaker maker
    cdef EventBatch batch       # None: no further events
    cdef uint32_t first, stream, file
    cdef readonly uint32_t after
    cdef int64_t position
    cdef bint skip
    cdef object kb
    cdef object version
    cdef uint32_t count, at     # number and index of the nodes that end matches of the last event
    cdef bint walking           # the walk from node `at` has begun
    cdef instant_t since
    cdef list apart             # `since` per node, if each partition skips on its own
    cdef list ready             # matches that are gathered, or selected with ties, in order
    cdef list picks             # (node, number of its match) of the matches to make, or None
    cdef Py_ssize_t pick        # the next one of these
    cdef uint64_t listed        # the matches of the event so far
    cdef int64_t passed         # the earlier matches of node `at`
    cdef uint64_t turn          # `turn` of the core at the last advance of this iterator
    cdef Closing closing        # the matches that come out before the next event, or None
    cdef Ending ending          # of the matches that come out with it
    cdef int64_t ended_at
    cdef readonly bint failed   # an event or a match is unfinished after an error

    cdef int collect(self) except -1
    cdef int _gather(self) except -1
    cdef int _gather_complete(self) except -1
    cdef Matches repeated(self, MatchMaker maker)
    cdef Matches picked(self, MatchMaker maker, list picks)
    cdef bint _passes(self) except -1
    cdef bint _leaves(self) except -1
    cdef int _forget(self) noexcept
    cdef int close(self, before, int64_t ended_at) except -1
    cdef bint has_more(self) noexcept
    cdef object _made(self)
    cdef int _next_time(self) except -1
    cdef bint _walks(self) except -1
    cdef bint _advance_run(self) except -1

"""One query over encoded events; see _driver.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from cpython.ref cimport PyObject

from spaseq.engine.native._aggregates cimport NativeAggregates
from spaseq.engine.native._graph_test cimport GraphTest
from spaseq.engine.native._dispatch cimport (
    ANY,
    WORD,
    Dispatch,
    Reader,
    are_lone,
    lowest_bit,
    pass_by,
    wanted,
)
from spaseq.engine.native._views cimport Views
from spaseq.gpm.native._summary_graph cimport SummaryGraph
from spaseq.gpm.native._matcher cimport NativeMatcher
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._instant cimport OpenInstant
from spaseq.nfa.native._program cimport Conditions
from spaseq.nfa.native._window cimport Window
from spaseq.rdf._batch cimport EventBatch, EventRecord
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._terms cimport term_t
from spaseq.rdf._window_terms cimport WindowTerms

cdef enum Manner:
    IN_PYTHON = 1       # Python evaluates the pattern
    RECALLED = 2        # filters read its events after their instant


@cython.final
cdef class NativeStep:
    cdef readonly AutomatonCore core
    cdef SummaryGraph graph
    cdef readonly WindowTerms window
    cdef Dispatch dispatch
    cdef EventBatch batch           # of the current event
    cdef uint32_t stream            # of the current event
    cdef uint32_t index             # of the current event in its batch
    cdef bint apart                 # the matchers have another window: `had` is the position
    cdef int64_t had
    cdef object patterns            # the Matchers
    cdef list tasks                 # per GPM of the query, the number of its pattern
    cdef list matchers              # per GPM, its NativeMatcher; None if Python evaluates a part
    cdef PyObject** native          # the same as borrowed pointers
    cdef uint8_t* manners           # per GPM, a set of Manners
    cdef term_t* row                # a row of a GPM in Python, encoded
    cdef list filters               # per occurrence, its residual filters
    cdef list others                # per test, a GraphTest or Question; None for an Expression
    cdef PyObject** tests           # per test, its Expression; NULL for others
    cdef uint32_t* test_first       # per occurrence and one more
    cdef uint64_t* untrue           # per test: how often it was not true
    cdef readonly uint64_t evaluations # of residual filters, on rows and on blocks of rows
    cdef dict errors_before         # per occurrence, the errors of another run
    cdef readonly NativeAggregates aggregates
    cdef readonly list assigned     # per occurrence, the Expressions of its BINDs and Questions
    cdef Views views                # by occurrence for its filters, then by number for BINDs
    cdef uint32_t* assigned_first   # per occurrence, the number of its first BIND
    cdef bint steady                # an event without a reader only advances the time
    cdef Conditions conditions
    cdef EventBatch idle            # the current batch between two calls
    cdef object shown               # the last decoded event, and its batch and index
    cdef uint64_t shown_serial
    cdef uint32_t shown_index
    cdef EventBatch recalled        # the recalled event used last, encoded
    cdef object recalled_key
    cdef readonly object recalls     # (instant, stream) → Event, oldest first
    cdef public bint tumbles        # its results are grouped by tumbling windows
    cdef public bint gaps           # it receives a part of its stream: ordinals may be missing
    cdef readonly int64_t deadline  # the query stops before events from this time on, or INT64_MAX
    cdef readonly uint32_t reached  # the index of the event at which `run` returned or failed

    cdef int _link_tests(self, object patterns, filters) except -1
    cdef int ask(self, uint32_t number, const term_t* env) except -1 with gil
    cdef object answer(self, question, const term_t* env)
    cdef int count_event(self, int64_t position) except -1 nogil
    cdef bint test_graph(self, GraphTest test, const term_t* env) except -1
    cdef object _event(self)
    cdef bint feed_in_python(self, uint32_t gpm, const Reader* reader) except -1 with gil
    cdef term_t* _encoded(self, row) except NULL
    cpdef int check_exclusive(self) except -1
    cdef int _select_batch(self, EventBatch batch, uint32_t stream) except -1
    cdef int _release_batch(self) except -1
    cdef int event(
        self, Dispatch dispatch, uint32_t index, uint32_t stream, uint32_t file, uint64_t present,
        bint again,
    ) except -1 nogil
    cdef bint _follows(self, const EventRecord* event, uint8_t domain) except -1 nogil
    cdef bint waits_for_closing(self, EventBatch batch, uint32_t index) noexcept nogil
    cdef int feed_loaded(self, const Reader* reader) except -1 nogil
    cdef inline int feed_lone(
        self, const Reader* reader, NativeMatcher matcher
    ) except -1 nogil:
        """Feed the row of a lone reader in an event of one triple."""
        if matcher.match_single_triple(self.batch, self.index):
            self.core.feed_row(&reader.audience, matcher.result.cells, matcher.columns)
        return 0
    cdef inline int _read_lone(
        self, Dispatch dispatch, uint32_t index, uint32_t file, uint64_t readers
    ) except -1 nogil:
        """Feed the rows of an event of one triple, for readers that `are_lone`."""
        cdef Reader* reader
        self.index = index
        self.core.begin_event(self.batch, index, self.stream, file)
        while readers:
            reader = dispatch.here.first + lowest_bit(readers)
            reader.read += 1
            self.feed_lone(reader, <NativeMatcher>reader.matcher)
            readers &= readers - 1
        dispatch.unsettled[0] += 1
        return 0
    cdef int _feed_rows(self, const Reader* reader, NativeMatcher matcher) except -1 nogil
    cdef bint is_current(self, EventBatch batch) noexcept nogil
    cpdef uint32_t run(
        self, EventBatch batch, uint32_t first, uint32_t stream, uint32_t file, int64_t position
    ) except? 0xFFFFFFFF
    cdef uint32_t _run(
        self, uint32_t first, uint32_t stream, uint32_t file, int64_t position
    ) except? 0xFFFFFFFF nogil
    cdef uint32_t _advance(
        self, AutomatonCore core, Dispatch dispatch, Window window, OpenInstant instant,
        uint32_t first, uint32_t stream, uint32_t file, int64_t position,
    ) except? 0xFFFFFFFF nogil
    cdef uint64_t _count_some(
        self, uint64_t most, uint64_t* witnesses
    ) except? 0xFFFFFFFFFFFFFFFF nogil
    cdef uint64_t _count_accepted(
        self, bint skip, uint64_t most, uint64_t* witnesses
    ) except? 0xFFFFFFFFFFFFFFFF nogil

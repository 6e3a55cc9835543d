"""Chains that are joined when their last row comes; see _lazy_join.pyx."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from spaseq.nfa.native._row_buffer cimport KeptRows
from spaseq.nfa.native._event cimport CurrentEvent
from spaseq.nfa.native._instant cimport OpenInstant
from spaseq.nfa.native._partitions cimport Partitions
from spaseq.nfa.native._transitions cimport Transitions
from spaseq.nfa.native._range_index cimport Registers
from spaseq.nfa.native._ranges cimport Ranges
from spaseq.nfa.native._program cimport Tables, Way
from spaseq.nfa.native._tecs cimport Label, Tecs, instant_t
from spaseq.nfa.native._window cimport Window
from spaseq.rdf._terms cimport term_t


cdef struct ChainStep:
    uint32_t place
    uint32_t occurrence
    uint32_t way        # its own

# A residual filter, by its number among all, and the steps that it can be asked after, as bits.
cdef struct ChainTest:
    uint32_t number
    uint64_t needs

# How much was looked at for what, in rows or groups that one row was compared with; the older
# it is, the less it counts.
cdef struct Weights:
    double eager        # joining rows as they come
    double lazy         # joining them when the last one comes
    double rows         # that of the step before, of each row as it came
    double each         # groups that a row was compared with for each of these
    double trial        # joining lazily just to know what it costs
    double mean         # of one such trial
    instant_t since     # the instant from which on it is looked at again
    instant_t settled   # the instant of the last change to joining eagerly


@cython.final
cdef class LazyJoin:
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef Tecs tecs
    cdef OpenInstant instant
    cdef Transitions transitions
    cdef Partitions partitions  # None without PARTITION BY
    cdef uint32_t chain_length  # 0: nothing is ever joined lazily
    cdef ChainStep* chain
    cdef ChainTest* chain_tests
    cdef uint32_t chain_test_count
    cdef uint32_t* step_at      # per place
    cdef KeptRows** step_rows   # per step but the last
    cdef Ranges** step_ranges   # of these; NULL where no filter computes with them
    cdef Registers registers
    cdef uint64_t* chain_taken  # per step, the first of its rows that no group was made of yet
    cdef term_t* chain_env      # environments: before any row, then after each that was joined
    cdef Label** chain_labels   # per step: what has been joined
    cdef Way* chain_way         # the last step's
    cdef uint32_t chain_width
    cdef bint trial             # nothing is found or counted
    cdef uint64_t left          # rows that may still be looked at
    cdef bint fixed             # there is no choice
    cdef bint wanted            # but this: whether rows are joined lazily
    cdef bint bounded           # nor are the rows of the window kept
    cdef bint one               # one match that a row completes says as much as all
    cdef uint64_t match_worth   # rows looked at that a match counts as
    cdef uint64_t charged       # what matches have been counted as
    cdef Weights weights
    cdef public double worth        # what is looked at before it is weighed, or given up
    cdef readonly bint lazy     # rows are joined when the last one comes; there are no groups
    cdef readonly uint64_t searched # rows that were looked at lazily, and in trials
    cdef readonly uint64_t tried
    cdef public uint64_t turns      # how often it changed

    cdef bint may_follow(self, uint32_t gpm) noexcept nogil
    cdef int keep_step(self, Way* way, uint32_t width, Label** label) except -1 nogil
    cdef int _add_row(self, uint32_t step, Label* label) except -1 nogil
    cdef int put_step(self, uint32_t gpm, Label* label) except -1 nogil
    cdef KeptRows* rows_before(self, uint32_t step) noexcept nogil
    cdef int search(self, Way* way, uint32_t width, bint trial, uint64_t most) except -1 nogil
    cdef int _join_more(self, uint32_t depth, uint64_t joined) except -1 nogil
    cdef int _join_between(
        self, uint32_t depth, uint64_t joined, uint32_t step, instant_t low, instant_t high
    ) except -1 nogil
    cdef uint64_t _passed(
        self, uint32_t depth, uint64_t joined, uint32_t step, uint64_t number, uint64_t last,
        bint first,
    ) noexcept nogil
    cdef uint32_t _next_step(self, uint64_t joined) noexcept nogil
    cdef bint _filtered(self, uint64_t joined, uint32_t step) noexcept nogil
    cdef int _between(self, uint32_t step, instant_t* low, instant_t* high) noexcept nogil
    cdef uint32_t _index(self, uint32_t step, const term_t* env, term_t* term) noexcept nogil
    cdef int _try_row(
        self, uint32_t depth, uint64_t joined, uint32_t step, Label* label
    ) except -1 nogil
    cdef bint _agrees(self, uint64_t joined, uint32_t step, term_t* env) except -1 nogil
    cdef int _chained(self) except -1 nogil
    cdef int take_chained(self, Way* way, uint32_t width) except -1 nogil
    cdef int turn_eager(self, uint32_t width) except -1 nogil
    cdef int _make_groups(self) except -1 nogil
    cdef int turn_lazy(self) except -1 nogil
    cdef int try_lazily(self, Way* way, uint32_t width) except -1 nogil
    cdef uint64_t allowed(self) noexcept nogil
    cdef bint prefers_lazy(self) noexcept nogil
    cdef int grow_old(self) noexcept nogil

"""Lazy joins of chains; see _lazy_join.pyx."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from spaseq.nfa.native._row_buffer cimport RowBuffer
from spaseq.nfa.native._event cimport CurrentEvent
from spaseq.nfa.native._instant cimport OpenInstant
from spaseq.nfa.native._partitions cimport Partitions
from spaseq.nfa.native._transitions cimport Transitions
from spaseq.nfa.native._range_index cimport TermResolver
from spaseq.nfa.native._ranges cimport Ranges
from spaseq.nfa.native._program cimport Tables, EdgeRef
from spaseq.nfa.native._tecs cimport Label, Tecs, instant_t
from spaseq.nfa.native._window cimport Window
from spaseq.rdf._terms cimport term_t


cdef struct ChainStep:
    uint32_t place
    uint32_t occurrence
    uint32_t way        # its index among the ways

# A residual filter, by its number among all, and the set of steps that it needs, as bits.
cdef struct ChainTest:
    uint32_t number
    uint64_t needs

# Decaying counts of the rows and groups that each strategy examined.
cdef struct Weights:
    double eager        # by the eager strategy
    double lazy         # by the lazy strategy
    double rows         # rows of the preceding step, summed over the rows of each step
    double each         # groups visited per such row
    double trial        # by trials of the lazy strategy
    double mean         # mean cost of a trial
    instant_t since     # the instant of the last decay
    instant_t settled   # the instant of the last switch to the eager strategy


@cython.final
cdef class LazyJoin:
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef Tecs tecs
    cdef OpenInstant instant
    cdef Transitions transitions
    cdef Partitions partitions  # None without PARTITION BY
    cdef uint32_t chain_length  # 0: no lazy join
    cdef ChainStep* chain
    cdef ChainTest* chain_tests
    cdef uint32_t chain_test_count
    cdef uint32_t* step_at      # per place
    cdef RowBuffer** step_rows  # per step but the last
    cdef Ranges** step_ranges   # their zone maps; NULL where no filter computes with them
    cdef TermResolver registers
    cdef uint64_t* replay_next  # per step, the next row to replay
    cdef term_t* chain_env      # environments: before any row, then after each joined one
    cdef Label** chain_labels   # per step: the joined row
    cdef EdgeRef* chain_way     # way of the last step
    cdef uint32_t chain_width
    cdef bint trial             # a trial reports and counts nothing
    cdef uint64_t left          # rows that the search may still examine
    cdef bint strategy_fixed    # the strategy is fixed
    cdef bint fixed_lazy        # the fixed strategy: lazy or eager
    cdef bint bounded           # limits are set: the eager strategy stores no rows
    cdef bint one               # one match per completing row suffices
    cdef uint64_t match_rows    # cost of a match, in examined rows
    cdef uint64_t charged       # total cost charged for matches
    cdef Weights weights
    cdef public double min_rows     # examined rows before strategies are compared, or a search
                                    # abandoned
    cdef readonly bint lazy     # the lazy strategy is active; there are no groups
    cdef public uint64_t searched # rows examined by lazy joins, and below by trials
    cdef public uint64_t sampled
    cdef public uint64_t switches   # number of switches

    cdef bint may_follow(self, uint32_t gpm) noexcept nogil
    cdef int store_step(self, EdgeRef* way, uint32_t width, Label** label) except -1 nogil
    cdef int _add_row(self, uint32_t step, Label* label) except -1 nogil
    cdef int load_step(self, uint32_t gpm, Label* label) except -1 nogil
    cdef RowBuffer* rows_before(self, uint32_t step) noexcept nogil
    cdef int search(self, EdgeRef* way, uint32_t width, bint trial, uint64_t most) except -1 nogil
    cdef int _join_more(self, uint32_t depth, uint64_t joined) except -1 nogil
    cdef int _join_between(
        self, uint32_t depth, uint64_t joined, uint32_t step, instant_t low, instant_t high
    ) except -1 nogil
    cdef uint64_t _excluded_rows(
        self, uint32_t depth, uint64_t joined, uint32_t step, uint64_t number, uint64_t last,
        bint first,
    ) noexcept nogil
    cdef uint32_t _next_step(self, uint64_t joined) noexcept nogil
    cdef bint _filtered(self, uint64_t joined, uint32_t step) noexcept nogil
    cdef int _instant_range(self, uint32_t step, instant_t* low, instant_t* high) noexcept nogil
    cdef uint32_t _index(self, uint32_t step, const term_t* env, term_t* term) noexcept nogil
    cdef int _try_row(
        self, uint32_t depth, uint64_t joined, uint32_t step, Label* label
    ) except -1 nogil
    cdef bint _agrees(self, uint64_t joined, uint32_t step, term_t* env) except -1 nogil
    cdef int _complete_match(self) except -1 nogil
    cdef int join_chained(self, EdgeRef* way, uint32_t width) except -1 nogil
    cdef int switch_to_eager(self, uint32_t width) except -1 nogil
    cdef int _make_groups(self) except -1 nogil
    cdef int switch_to_lazy(self) except -1 nogil
    cdef int sample_lazy_cost(self, EdgeRef* way, uint32_t width) except -1 nogil
    cdef uint64_t row_budget(self) noexcept nogil
    cdef bint prefers_lazy(self) noexcept nogil
    cdef int decay_counts(self) noexcept nogil

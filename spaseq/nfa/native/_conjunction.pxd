"""The search for the buffered rows that an edge consumes; see _conjunction.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.nfa.native._event cimport CurrentEvent
from spaseq.nfa.native._row_buffer cimport RowBuffer
from spaseq.nfa.native._program cimport Edge, Occurrence, Place, Tables
from spaseq.nfa.native._tecs cimport Label, Tecs, instant_t
from spaseq.nfa.native._window cimport Window
from spaseq.rdf._moments cimport is_beyond
from spaseq.rdf._terms cimport term_t

cdef struct Range:
    uint32_t first
    uint32_t end

# One graph pattern of a step.
cdef struct Part:
    uint32_t occurrence
    uint32_t gpm
    uint32_t operand    # parts of one operand share a timestamp
    uint32_t part       # its position among all patterns of the step

# A filter that is evaluated as soon as all registers that it reads are bound.
cdef struct EarlyFilter:
    uint32_t number
    uint32_t read_first
    uint32_t read_end

cdef struct RowSearch

# Callback for a combination of rows, with the task of the search. 1: the search may stop.
ctypedef int (*OnCombination)(void* task, RowSearch* seek) except -1 nogil

# The parameters and the result of a search, as its callback sees them.
cdef struct RowSearch:
    uint32_t edge
    Range choices       # the alternatives: lists of parts
    const term_t* start     # the environment after the effects of the edge
    instant_t low       # events lie strictly between `low` and `high`
    instant_t high
    bint negated        # rows without partition variables count too
    Label* new_row      # a row that the combination must contain, NULL: any
    uint32_t new_gpm
    OnCombination found
    void* task
    # The combination.
    Part* parts
    uint32_t count
    Label** labels      # per part
    term_t* cells       # environments, `count` + 1 of them; the last is that after the edge
    term_t* env         # the last of `cells`
    term_t* assigned    # per part: the values of its BINDs, in `most_assigned` cells
    instant_t first
    instant_t last


@cython.final
cdef class Conjunction:
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef Tecs tecs
    cdef RowBuffer** row_buffers # per GPM; NULL where its rows are not searched
    cdef uint32_t gpm_count
    cdef uint32_t* gpms         # per occurrence
    cdef Range* searches        # per GPM, into `searchers`
    cdef uint32_t* searchers    # the places that search its rows
    cdef bint* whole            # per GPM: whether its rows may be witnesses
    cdef Range* columns         # per GPM, into `column_numbers`: the columns that its rows store
    cdef uint32_t* column_numbers
    cdef Range* place_edges     # per place
    cdef Range* edge_choices    # per edge
    cdef Range* edge_operands   # per edge of an any-order group, into `operand_choices`
    cdef bint* any_order        # per edge
    cdef Range* operand_choices
    cdef Range* choices
    cdef Part* parts
    cdef uint32_t most_parts
    cdef Range* early           # per occurrence, into `early_tests`
    cdef EarlyFilter* early_tests
    cdef uint32_t* early_read
    cdef bint buffers_rows      # whether any rows are buffered
    cdef term_t** levels        # environments of nested searches
    cdef Label*** level_labels
    cdef uint32_t depth, level_room
    cdef Label* last_label      # the last buffered row, and its GPM
    cdef uint32_t last_gpm
    cdef readonly uint64_t looked   # rows examined

    cdef int store_row(self, uint32_t gpm, uint32_t width, bint keyed) except -1 nogil
    cdef int search_edge(self, RowSearch* seek, const term_t* env) except -1 nogil
    cdef int search(self, RowSearch* seek) except -1 nogil
    cdef int _search_choice(self, RowSearch* seek) except -1 nogil
    cdef int _extend(self, RowSearch* seek, uint32_t depth) except -1 nogil
    cdef uint32_t _next_part(self, RowSearch* seek, uint32_t depth) noexcept nogil
    cdef bint _is_selective(self, RowSearch* seek, uint32_t part, uint32_t depth) noexcept nogil
    cdef bint _binds(self, const Occurrence* occurrence, uint32_t number) noexcept nogil
    cdef int _join_part(self, RowSearch* seek, uint32_t depth, uint32_t part) except -1 nogil
    cdef int _join_row(
        self, RowSearch* seek, uint32_t depth, uint32_t part, Label* label
    ) except -1 nogil
    cdef bint _filter_fails(
        self, RowSearch* seek, const term_t* env, term_t* joined
    ) except -1 nogil
    cdef bint _has_event_of(self, RowSearch* seek, const Label* label) noexcept nogil
    cdef int push_level(self) except -1 nogil


cdef inline int64_t least_micros(const RowSearch* seek) noexcept nogil:
    """The least time, in microseconds, of the rows of a combination."""
    cdef uint32_t i
    cdef int64_t least = seek.labels[0].micros
    for i in range(seek.count):
        if seek.labels[i].micros < least:
            least = seek.labels[i].micros
    return least


cdef inline int64_t greatest_micros(const RowSearch* seek) noexcept nogil:
    """The greatest time, in microseconds, of the rows of a combination."""
    cdef uint32_t i
    cdef int64_t greatest = seek.labels[0].micros
    for i in range(seek.count):
        if seek.labels[i].micros > greatest:
            greatest = seek.labels[i].micros
    return greatest


cdef inline bint in_time(Tables tables, const RowSearch* seek, int64_t since) noexcept nogil:
    """Whether the rows of a combination respect the bound of its edge, counted from a time."""
    cdef int64_t within = tables.edges[seek.edge].within
    cdef uint32_t i
    if within >= 0:
        for i in range(seek.count):
            if is_beyond(seek.labels[i].micros, since, within):
                return False
    return True


cdef Range* ranges_of(pairs) except NULL

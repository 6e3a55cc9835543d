"""The declarations of _selection.pyx that other modules use."""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._tecs cimport Awaited, Label, Node, Walk, instant_t
from spaseq.rdf.native._terms cimport term_t

# selection/complete.pxi


@cython.final
cdef class Closing:
    cdef AutomatonCore core
    cdef bint is_open           # only what is due before `before` comes out
    cdef int64_t before
    cdef bint begun             # there is a current time
    cdef readonly int64_t micros    # the current time
    cdef readonly bint is_deadline  # it is a deadline
    cdef instant_t start        # matches of earlier starts have come out
    cdef Awaited* rest          # the remaining matches of this start, in order
    cdef Awaited* match         # the current match
    cdef uint64_t listed        # the matches of the current time so far

    cdef bint next_time(self) except -1
    cdef bint next_match(self) except -1
    cdef int _first_start(self) noexcept
    cdef int set_walk(self) except -1

# selection/selection.pxi

# A list of instants, from the last one back; equal lists are shared.
cdef struct Trail:
    instant_t own
    uint32_t before     # NIL: this instant is the first
    uint32_t depth      # length of the list
    uint32_t other      # the next list of the hash chain
    uint32_t stream     # stream of its last event, if lists include streams

cdef enum Mode:
    LIMIT
    ANY
    NEXT
    LAST
    MAX

# The lists of a node or a union: kept[first:first + count], in order.
cdef struct SelectedTrails:
    size_t address
    uint32_t stamp      # differs from the current stamp: a stale entry
    uint32_t first
    uint32_t count

# A step of a match being enumerated, with the list that its node must hold.
cdef struct Part:
    Node* node
    uint32_t trail
    uint32_t depth      # number of steps after it

# A match: labels[first:first + length], from the last one back.
cdef struct Chosen:
    instant_t start
    uint32_t rank       # rank of its list among the selected ones
    uint32_t first
    uint32_t length


@cython.final
cdef class Selection:
    cdef AutomatonCore core
    cdef Mode mode
    cdef uint32_t most          # number of lists to select
    cdef bint by_event          # lists are sets of events, whose streams matter
    cdef uint64_t listed_now    # matches enumerated since `select` began
    cdef instant_t bound        # the least start of a match
    # The entries of nodes and unions, keyed by `union_t`.
    cdef SelectedTrails* known
    cdef uint32_t known_count, known_room, stamp
    cdef Trail* trails
    cdef uint32_t* heads        # by hash; as many heads as the room for trails
    cdef uint32_t trail_count, trail_room
    cdef uint32_t* kept
    cdef uint32_t kept_count, kept_room
    cdef uint32_t* best         # the lists of all matches
    cdef uint32_t best_count, best_room
    cdef uint32_t* both         # scratch to merge two lists
    cdef uint32_t both_room
    cdef size_t* todo           # addresses still to visit
    cdef uint32_t todo_count, todo_room
    cdef Part* parts            # steps still to follow
    cdef uint32_t part_count, part_room
    cdef Label** path           # labels of the match being enumerated, the last one's first
    cdef uint32_t path_room
    cdef Label** labels
    cdef uint32_t label_count, label_room
    cdef Chosen* chosen
    cdef uint32_t chosen_count, chosen_room
    # Scratch for the last nodes of one partition, and for the keys of the partitions.
    cdef Node** ends
    cdef term_t* keys
    cdef uint32_t* partition_of     # per last node
    cdef uint32_t end_room
    cdef readonly uint64_t looked   # nodes and unions visited so far
    cdef readonly uint64_t listed   # matches enumerated so far

    cdef inline uint32_t given(self) noexcept nogil:
        """The number of selected matches."""
        return min(self.chosen_count, self.most) if self.mode == Mode.LIMIT else self.chosen_count
    cdef inline bint has_ties(self) noexcept nogil:
        """Whether the limit applies to matches of the same instants, which are not in order."""
        return self.mode == Mode.LIMIT and self.chosen_count > self.best_count
    cdef int select(self, bint skip) except -1 nogil
    cdef int _select_apart(self, uint32_t count) except -1 nogil
    cdef int _select(self, Node** ends, uint32_t count) except -1 nogil
    cdef int position_walk(self, uint32_t number) except -1 nogil
    cdef int _set_walk(self, Walk walk, const Chosen* match) except -1 nogil
    cdef bint _visit_end(self, Node* end) except -1 nogil
    cdef int _visit_below(self, size_t top) except -1 nogil
    cdef uint32_t _below(self, size_t address, size_t* below) noexcept nogil
    cdef int _merge_below(self, size_t address, const size_t* below, uint32_t count) except -1 nogil
    cdef uint32_t _merged(
        self, uint32_t* into, uint32_t count, const uint32_t* others, uint32_t other_count
    ) except? 0xFFFFFFFF nogil
    cdef uint32_t _maximal(
        self, uint32_t* into, uint32_t count, const uint32_t* others, uint32_t other_count
    ) noexcept nogil
    cdef bint _contains(self, uint32_t one, uint32_t other) noexcept nogil
    cdef bint _precedes(self, uint32_t one, uint32_t other) noexcept nogil
    cdef bint _ends_later(self, uint32_t one, uint32_t other) noexcept nogil
    cdef uint32_t _trail(self, uint32_t before, const Label* last) except? 0xFFFFFFFF nogil
    cdef int _grow_trails(self) except -1 nogil
    cdef int _clear_trails(self) noexcept nogil
    cdef SelectedTrails* _find(self, size_t address) noexcept nogil
    cdef SelectedTrails* _enter(self, size_t address) except NULL nogil
    cdef int _push(self, size_t address) except -1 nogil
    cdef int _grow(self, uint32_t** trails, uint32_t* room, size_t wanted) except -1 nogil
    cdef bint _holds(self, size_t address, uint32_t trail) noexcept nogil
    cdef int _list(self, Node* end, uint32_t rank) except -1 nogil
    cdef int _stack(self, Node* node, uint32_t trail, uint32_t depth) except -1 nogil
    cdef int _add_selected(self, uint32_t length, uint32_t rank, instant_t start) except -1 nogil

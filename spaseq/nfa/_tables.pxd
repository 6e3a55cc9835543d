"""The tables of an automaton as the compiled core reads them; see _tables.pyx."""

from libc.stdint cimport int32_t, uint32_t, uint64_t

cdef enum:
    CLOSING = 119       # "w"

cdef enum Change:
    FORGET      # a register is unbound, or has no iterations
    COPY        # takes the value of another one
    FIRST       # the first iteration
    AGAIN       # one more iteration, up to a limit

# What taking an edge does to a register before the row is bound.
cdef struct Effect:
    Change change
    uint32_t register
    uint32_t other      # COPY: the register copied; AGAIN: the limit

cdef struct Bound:
    uint32_t register
    uint32_t least
    uint32_t below

cdef struct Link:
    int32_t target      # a place, or -1: the match is complete
    uint32_t bound_first
    uint32_t bound_end

cdef struct Edge:
    uint32_t occurrence
    uint32_t effect_first
    uint32_t effect_end
    uint32_t link_first
    uint32_t link_end
    uint32_t index      # of the groups' indexes, 0: all groups are visited
    uint32_t key_first  # the row's columns that the index reads
    uint32_t key_end
    int32_t compared    # the row's column that an ordered index compares, -1: there is none
    bint greater        # whether it must be the greater

# A column of a row, the register that takes its value, and one that takes it too.
cdef struct Binding:
    uint32_t column
    uint32_t register
    uint32_t last       # NOBODY: there is none

cdef struct Occurrence:
    uint32_t binding_first
    uint32_t binding_end
    uint64_t disagreed  # rows that did not agree with a partial match

# An edge that rows of a GPM may take.
cdef struct Way:
    uint32_t place
    uint32_t position
    uint32_t edge

# A guard of a place: rows of its GPM end the partial matches that wait there.
cdef struct Sighting:
    uint32_t place
    uint32_t occurrence
    uint32_t index      # of the groups' indexes, 0: all groups are visited
    uint32_t key_first
    uint32_t key_end
    bint negated        # written as a negation: partition variables may be unbound

cdef struct Place:
    char operator       # of the query; 0 at the start, CLOSING where matches wait
    uint32_t live_first
    uint32_t live_end
    uint32_t edge_first
    uint64_t reached    # counters for people, as in spaseq.nfa.group.PlaceState
    uint64_t early
    uint64_t unkeyed
    uint64_t unjoined
    uint64_t visited
    uint64_t joined
    uint64_t passed_over
    uint64_t outside
    uint64_t expired
    uint64_t ended      # groups that a guard ended
    uint64_t shed       # groups that went, for there were too many


cdef class Tables:
    cdef Place* places
    cdef uint32_t place_count
    cdef Edge* edges
    cdef Link* links
    cdef Bound* bounds
    cdef Effect* effects
    cdef Binding* bindings
    cdef Occurrence* occurrences
    cdef uint32_t occurrence_count
    cdef uint32_t* numbers      # live registers, key columns
    cdef uint32_t* way_first    # per GPM and one more, into `ways`
    cdef Way* ways
    cdef uint32_t* sighting_first   # per GPM and one more, into `sightings`
    cdef Sighting* sightings
    cdef uint32_t* firsts       # pairs: iteration register, the cell that says whether it is 1
    cdef uint32_t first_count
    cdef uint32_t* required_first   # per GPM and one more, into `required`
    cdef uint32_t* required         # columns that a row must bind
    cdef uint32_t* compared_first   # per GPM and one more, into `compared`
    cdef uint32_t* compared         # columns that are compared with what registers hold

"""Groups of the results of single events; see _result_groups.pyx."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from spaseq.gpm.native._operand cimport Operand
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._tecs cimport Label
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._numerals cimport Numeral
from spaseq.rdf._terms cimport SlotTable, TermRecord, int128

cdef enum:
    LIMBS = 67          # limbs of 32 bits from 2**-1074 on: the doubles, and room for a carry
    KINDS = 4           # INTEGER, DECIMAL, FLOAT, DOUBLE

cdef enum Measure:
    ALL                 # COUNT(*)
    BOUND               # COUNT of an argument
    SUM
    MEAN
    BEST                # MIN or MAX

cdef enum Comparison:
    LESS
    LESS_EQUAL
    MORE
    MORE_EQUAL
    EQUAL
    NOT_EQUAL

# The number of an argument.
cdef struct Number:
    int128 exact        # INTEGER: the number; DECIMAL: times 10**18
    double real         # FLOAT, DOUBLE
    uint8_t kind        # a Kind; OTHER: bound to no number; 0 with `unbound`: without a value
    bint unbound

# A result; after it come the numbers of its arguments, the sizes of the texts of its start and
# arguments, and the texts.
cdef struct Entry:
    int64_t end
    int64_t start
    Entry* later        # the next result of all groups
    Entry* next         # the next result of its group
    uint64_t number     # among the results of its group
    uint32_t group
    uint32_t domain     # 0: the times are numbers, 1: dates

# The exact sum of the values of an argument, from which values can be removed.
cdef struct Total:
    int128 integers
    int128 decimals     # times 10**18
    int64_t unbound     # values that are unbound or errors
    int64_t others      # values that are no numbers
    int64_t[KINDS] kinds
    int32_t lowest      # the limbs in use
    int32_t highest
    int64_t[LIMBS] limbs

# MIN or MAX: the results that no later one precedes, the best first.
cdef struct Queue:
    Entry** entries     # a ring
    uint32_t first
    uint32_t count
    uint32_t room

cdef struct Group:
    uint64_t hash
    char* key           # the texts of the key, each after its size; NULL: unused
    size_t key_size
    uint64_t count
    uint64_t added
    Entry* first
    Entry* last
    Total* totals       # per argument
    Queue* queues       # per MIN and MAX

cdef struct Best:
    uint32_t argument
    int8_t sign         # -1: MIN, 1: MAX

# A comparison of an aggregate with a number.
cdef struct Condition:
    Measure measure
    uint32_t place      # the argument, or the MIN or MAX
    Comparison comparison
    double bound
    bint whole          # the bound is an integer without rounding


cdef object timestamp_of(tuple begun)


cdef class NativeGroups:
    cdef readonly int64_t size
    cdef readonly uint64_t held
    cdef readonly uint32_t count
    cdef public bint inserted
    cdef uint32_t key_count
    cdef uint32_t argument_count
    cdef uint32_t best_count
    cdef uint32_t condition_count
    cdef uint32_t edge_count
    cdef int32_t* columns       # per edge: those of the keys, then of the arguments; -1: unbound
    cdef Best* bests
    cdef Condition* conditions
    cdef Entry* oldest
    cdef Entry* newest
    cdef Group* groups
    cdef uint32_t group_count, group_room
    cdef uint32_t* spare        # the numbers of unused groups
    cdef uint32_t spare_count
    cdef SlotTable table
    cdef char* key              # of the result that is added
    cdef size_t key_size, key_room
    cdef Number* numbers
    cdef const char** texts     # of its start and arguments
    cdef uint32_t* sizes
    cdef Numeral* numerals      # spelt for them
    cdef Operand operand

    cdef int take(self, AutomatonCore core, Dictionary dictionary) except -1 nogil
    cdef int _put_key(self, const char* text, uint32_t size) except -1 nogil
    cdef bint _read(self, uint32_t argument, const char* text, uint32_t size) noexcept nogil
    cdef bint _is_hard(self) noexcept nogil
    cdef int _add(self, int64_t start, uint32_t domain, int64_t end) except -1 nogil
    cdef uint32_t _find(self, uint64_t hash) noexcept nogil
    cdef uint32_t _new_group(self, uint64_t hash) except 0 nogil
    cdef int _enqueue(self, Group* group, uint32_t best, Entry* entry) except -1 nogil
    cdef int _expire(self, int64_t now) noexcept nogil
    cdef int _drop_oldest(self) noexcept nogil
    cdef bint _may_hold(self, const Group* group) noexcept nogil
    cdef tuple measured(self, uint32_t number)
    cdef bytes _text(self, Entry* entry, uint32_t place)
    cdef object _term(self, Entry* entry, uint32_t place)
    cdef tuple _begun(self, Entry* entry)

"""Groups of results; see _result_groups.pyx."""

from libc.stdint cimport int8_t, int64_t, uint8_t, uint32_t, uint64_t

from spaseq.engine.native._result_sums cimport Number, Total
from spaseq.gpm.native._operand cimport Operand
from spaseq.rdf._terms cimport SlotTable

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

# A result; after it come the numbers of its arguments, the sizes of the texts of its start and
# arguments, and the texts.
cdef struct Entry:
    int64_t end
    int64_t start
    Entry* later        # the next result of all groups
    Entry* next         # the next result of its group
    uint32_t group
    uint32_t domain     # 0: the times are numbers, 1: dates

# MIN or MAX of an argument, or the least start: the results that no later result precedes, best
# first.
cdef struct Queue:
    Entry** entries     # a ring
    uint32_t first
    uint32_t count
    uint32_t room

# A value of an argument under DISTINCT, in a group.
cdef struct Value:
    uint64_t hash
    uint64_t count      # results with the value
    Entry* newest       # of them
    uint32_t group
    uint32_t distinct   # which argument under DISTINCT

cdef struct Group:
    uint64_t hash
    char* key           # the texts of the key, each after its size; NULL: unused
    size_t key_size
    uint64_t count
    Entry* first
    Entry* last
    Total* totals       # per argument, then per argument under DISTINCT
    Queue* queues       # per MIN and MAX, then of the starts if they are not in order
    bint unordered      # some result started before an earlier one
    Entry** samples     # per SAMPLE, the oldest result with a value, or NULL
    uint64_t touched    # the last instant with results, as `NativeGroups.instant` counts
    char* shown         # the events of its newest result (_group_results.pyx)
    size_t shown_size   # 0: they are in Python
    size_t shown_room

cdef struct Best:
    uint32_t argument
    int8_t sign         # -1: MIN, 1: MAX

# A comparison of an aggregate with a number.
cdef struct Condition:
    Measure measure
    uint32_t place      # the total, or the MIN or MAX
    Comparison comparison
    double bound
    bint whole          # the bound is an integer without rounding

# The header that `NativeGroups.pack` writes.
cdef struct Head:
    int64_t start
    uint64_t count
    uint32_t domain
    uint32_t keys
    uint32_t totals
    uint32_t bests


cdef object timestamp_of(tuple begun)
cdef tuple measured(bytes packed)


cdef class NativeGroups:
    cdef readonly int64_t size
    cdef readonly bint tumbling
    cdef readonly uint64_t held
    cdef readonly uint64_t work
    cdef readonly uint32_t count
    cdef uint32_t key_count
    cdef uint32_t argument_count
    cdef uint32_t distinct_count
    cdef uint32_t best_count
    cdef uint32_t sample_count
    cdef uint32_t condition_count
    cdef uint8_t* summed        # per argument, whether there is a SUM or AVG of it
    cdef uint32_t* distincts    # the arguments under DISTINCT
    cdef uint32_t* samples      # the arguments of SAMPLE
    cdef Best* bests
    cdef Condition* conditions
    cdef Entry* oldest
    cdef Entry* newest
    cdef Group* groups
    cdef uint32_t group_count, group_room
    cdef uint32_t* spare        # the numbers of unused groups
    cdef uint32_t spare_count
    cdef SlotTable table
    cdef Value* values          # under DISTINCT
    cdef uint32_t value_count, value_room
    cdef uint32_t* spare_values
    cdef uint32_t spare_value_count
    cdef SlotTable value_table
    cdef uint64_t instant       # of the results that are added
    cdef char* key              # of the result that is added
    cdef size_t key_size, key_room
    cdef Number* numbers
    cdef const char** texts     # of its start and arguments
    cdef uint32_t* sizes
    cdef Operand operand
    cdef char* packed
    cdef size_t packed_size, packed_room
    cdef bint is_unbound        # whether a SUM, AVG, MIN or MAX of the packed group has no value

    cdef int put_key(self, const char* text, uint32_t size) except -1 nogil
    cdef bint read(self, uint32_t argument, const char* text, uint32_t size) noexcept nogil
    cdef uint32_t insert(self, int64_t start, uint32_t domain, int64_t end) except? 0 nogil
    cdef int _enqueue(self, Queue* queue, Entry* entry, const Best* best) except -1 nogil
    cdef int _order(self, Entry* one, Entry* other, const Best* best) except -2 nogil
    cdef uint32_t find(self) noexcept nogil
    cdef uint32_t _new_group(self, uint64_t hash) except 0 nogil
    cdef uint32_t _value_of(
        self, uint32_t group, uint32_t distinct, Entry* entry, uint64_t* hash
    ) noexcept nogil
    cdef int _add_value(
        self, Group* group, uint32_t number, uint32_t distinct, Entry* entry
    ) except -1 nogil
    cdef int _remove_value(
        self, Group* group, uint32_t number, uint32_t distinct, Entry* entry
    ) noexcept nogil
    cdef int expire_before(self, int64_t now) noexcept nogil
    cdef int _drop_oldest(self) noexcept nogil
    cdef bint may_hold(self, const Group* group) noexcept nogil
    cdef int _put(self, const void* data, size_t size) except -1
    cdef int _put_text(self, Entry* entry, uint32_t place) except -1
    cdef int _note_start(self, Group* group, Entry* entry) except -1 nogil
    cdef Entry* _first_start(self, const Group* group) noexcept nogil
    cdef bytes pack(self, uint32_t number)
    cdef const char* _text(self, Entry* entry, uint32_t place, uint32_t* size) noexcept nogil
    cdef object _term(self, Entry* entry, uint32_t place)
    cdef tuple _key(self, uint32_t number)

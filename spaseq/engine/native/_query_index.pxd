"""The queries that can use an event, by what their graph patterns require; see _query_index.pyx."""

cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from spaseq.engine.native._value_ranges cimport Ranges, leaf_of, reach_of
from spaseq.gpm.native._summary_graph cimport SummaryGraph, bit_of
from spaseq.rdf._batch cimport EventBatch, EventRecord, Triple
from spaseq.rdf._terms cimport term_t

cdef extern from *:
    """
    #define spaseq_lowest_of(word) ((uint32_t)__builtin_ctzll(word))
    """
    uint32_t lowest_of "spaseq_lowest_of"(uint64_t word) noexcept nogil

cdef enum:
    NO_TERM = 0
    BY_PREDICATE = 1    # the kinds of keys that a predicate has, as bits
    BY_VALUE = 2
    BY_OWNER = 4
    BY_RANGE = 8

# An entry of a posting list.
cdef struct Item:
    uint32_t post
    uint32_t query

# The queries that wait for events with one key.
cdef struct Postings:
    Item* items
    uint32_t count
    uint32_t room

# One key of one reader; `place` is its position among the items of its list, plus 1; 0: not there.
cdef struct Post:
    uint32_t list
    uint32_t query
    uint32_t place

# The intervals of one predicate of a stream; the list of node n of `ranges` is first_list + n.
cdef struct RangeLists:
    Ranges ranges
    uint32_t first_list

# A slot of the table of keys with a constant object or subject.
cdef struct KeySlot:
    uint64_t key        # stream, predicate and kind
    term_t term
    uint32_t list       # 0: the slot is free


@cython.final
cdef class QueryIndex:
    cdef SummaryGraph graph
    cdef uint32_t query_count
    cdef uint32_t stream_count
    cdef term_t known           # greater than every predicate of a key
    cdef uint8_t* kinds         # per stream and predicate: which kinds of keys exist
    cdef uint32_t* by_predicate # per stream and predicate: the list of its key, or 0
    cdef uint32_t* by_range     # per stream and predicate: its RangeLists, if it has some
    cdef RangeLists* ranges
    cdef uint32_t range_count
    cdef KeySlot* slots
    cdef uint32_t slot_mask
    cdef uint32_t slots_used
    cdef Postings* lists
    cdef uint32_t list_count
    cdef uint32_t list_room
    cdef Post* posts
    cdef uint32_t post_count
    cdef uint32_t post_room
    cdef uint64_t* marks        # a bit per query
    cdef uint64_t* groups       # a bit per word of `marks`
    cdef uint32_t group_count

    cdef int _set_ranges(self, keys) except -1
    cdef int add(self, uint32_t query, uint32_t stream, key) except -1
    cdef int _add_post(self, uint32_t query, uint32_t list) except -1
    cdef uint32_t _new_lists(self, uint32_t count) except 0
    cdef uint32_t _list_of(self, uint32_t stream, key) except 0
    cdef int _grow_slots(self) except -1
    cdef uint32_t find(self, uint64_t key, term_t term) noexcept nogil
    cdef int insert(self, uint32_t post) except -1 nogil
    cdef int remove(self, uint32_t post) noexcept nogil
    cdef int mark_number(
        self, const RangeLists* lists, EventBatch batch, term_t term
    ) noexcept nogil
    cdef inline int mark(self, uint32_t query) noexcept nogil:
        """Add a query to the marked ones."""
        self.marks[query >> 6] |= <uint64_t>1 << (query & 63)
        self.groups[query >> 12] |= <uint64_t>1 << (query >> 6 & 63)
        return 0
    cdef inline int mark_list(self, uint32_t number) noexcept nogil:
        """Mark the queries of a list."""
        cdef const Item* item = self.lists[number].items
        cdef const Item* end = item + self.lists[number].count
        while item < end:
            self.mark(item.query)
            item += 1
        return 0


cdef inline uint64_t key_of(uint32_t stream, term_t predicate, uint32_t kind) noexcept nogil:
    """A predicate of a stream and a kind of key, as one number."""
    return <uint64_t>stream << 35 | <uint64_t>predicate << 3 | kind


cdef inline uint64_t mark_event(
    QueryIndex self, uint32_t stream, EventBatch batch, const EventRecord* event
) noexcept nogil:
    """Mark the queries that can use an event; returns its views, see `present_in`.

    List 1 + stream has the queries that may use every event of a stream.
    """
    cdef const Triple* triple = batch.triples + event.first
    cdef const Triple* end = batch.triples + event.end
    cdef const uint8_t* kinds = self.kinds + <size_t>stream * self.known
    cdef const uint32_t* by_predicate = self.by_predicate + <size_t>stream * self.known
    cdef const uint32_t* by_range = self.by_range + <size_t>stream * self.known
    cdef uint64_t present = self.graph.whole
    cdef uint32_t view
    cdef uint8_t kind
    self.mark_list(1 + stream)
    while triple < end:
        if triple.predicate < self.graph.known:
            view = self.graph.view_of[triple.predicate]
            present |= <uint64_t>(view != 0) << (view & 63)
        kind = kinds[triple.predicate] if triple.predicate < self.known else 0
        if kind:
            if kind & BY_PREDICATE:
                self.mark_list(by_predicate[triple.predicate])
            if kind & BY_VALUE:
                self.mark_list(
                    self.find(key_of(stream, triple.predicate, BY_VALUE), triple.object)
                )
            if kind & BY_OWNER:
                self.mark_list(
                    self.find(key_of(stream, triple.predicate, BY_OWNER), triple.subject)
                )
            if kind & BY_RANGE:
                self.mark_number(
                    &self.ranges[by_range[triple.predicate]], batch, triple.object
                )
        triple += 1
    return present


cdef inline uint32_t next_marked(QueryIndex self, uint32_t* group) noexcept nogil:
    """Unmark the least marked query and return it; `query_count` if none is marked.

    `group` is 0 at first, and is where the search continues.
    """
    cdef uint32_t word, query
    while group[0] < self.group_count:
        if self.groups[group[0]]:
            word = group[0] << 6 | lowest_of(self.groups[group[0]])
            query = word << 6 | lowest_of(self.marks[word])
            self.marks[word] &= self.marks[word] - 1
            if self.marks[word] == 0:
                self.groups[group[0]] &= self.groups[group[0]] - 1
            return query
        group[0] += 1
    return self.query_count

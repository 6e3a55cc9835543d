"""An inverted index: the keys of an event → the queries that can use it.

A key is a predicate of a stream, alone, with a constant object or subject, or with an interval of
numbers as its object (`_value_ranges`). A graph pattern that requires a triple with a key has no
row that passes its filters over an event without one, so its query is listed under one key of each
alternative of the pattern (`dispatch_keys`). A list holds a query only while some partial match
waits for the pattern's rows. A query without a key, and one whose state changes with every event,
is in the list of its stream.

Cost of an event: constant per triple, logarithmic in the intervals of its predicate, and one step
per query listed under its keys.
"""

from math import isfinite

from spaseq.rdf.native._terms cimport Triple, mem_calloc, mem_free, mem_grow

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


cdef inline uint64_t key_of(uint32_t stream, term_t predicate, uint32_t kind) noexcept nogil:
    """A predicate of a stream and a kind of key, as one number."""
    return <uint64_t>stream << 35 | <uint64_t>predicate << 3 | kind


cdef class QueryIndex:
    """The index of one run.

    Args:
        graph: the summary graph of the matchers, whose views `mark_event` reports.
        queries: the number of queries.
        streams: the number of streams.
        keys: (stream, key) of all entries that will be added. A key is (predicate, kind, value): a
            predicate and a value in numbers of terms, or an interval; None for every event.
    """

    def __cinit__(self, SummaryGraph graph not None, uint32_t queries, uint32_t streams, keys):
        cdef size_t kinds
        self.graph = graph
        self.query_count = queries
        self.stream_count = streams
        self.known = max([key[0] for _, key in keys if key is not None], default=0) + 1
        self.group_count = (queries >> 12) + 1
        self.marks = <uint64_t*>mem_calloc(<size_t>self.group_count << 6, sizeof(uint64_t))
        self.groups = <uint64_t*>mem_calloc(self.group_count, sizeof(uint64_t))
        kinds = streams * <size_t>self.known
        self.kinds = <uint8_t*>mem_calloc(kinds, 1)
        self.by_predicate = <uint32_t*>mem_calloc(kinds, sizeof(uint32_t))
        self.by_range = <uint32_t*>mem_calloc(kinds, sizeof(uint32_t))
        self.slots = <KeySlot*>mem_calloc(16, sizeof(KeySlot))
        self.slot_mask = 15
        # List 0 is always empty. The next lists hold the queries that use every event of a stream.
        self._new_lists(1 + streams)
        self._set_ranges(keys)

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.list_count):
            mem_free(self.lists[i].items)
        for i in range(self.range_count):
            ranges_free(&self.ranges[i].ranges)
        mem_free(self.lists)
        mem_free(self.ranges)
        mem_free(self.posts)
        mem_free(self.slots)
        mem_free(self.kinds)
        mem_free(self.by_predicate)
        mem_free(self.by_range)
        mem_free(self.marks)
        mem_free(self.groups)

    cdef int _set_ranges(self, keys) except -1:
        """Make the lists of the intervals of each predicate."""
        cdef RangeLists* lists
        cdef size_t at
        cdef dict ends = {}
        for stream, key in keys:
            if key is not None and key[1] == BY_RANGE:
                ends.setdefault((stream, key[0]), set()).update(filter(isfinite, key[2]))
        self.ranges = <RangeLists*>mem_calloc(len(ends), sizeof(RangeLists))
        for (stream, predicate), some in ends.items():
            lists = &self.ranges[self.range_count]
            self.range_count += 1
            ranges_init(&lists.ranges, some)
            lists.first_list = self._new_lists(2 * lists.ranges.leaves)
            at = <uint32_t>stream * <size_t>self.known + <term_t>predicate
            self.by_range[at] = self.range_count - 1
            self.kinds[at] |= BY_RANGE
        return 0

    cdef int add(self, uint32_t query, uint32_t stream, key) except -1:
        """Append the entries of a key; they are not listed yet."""
        cdef RangeLists* lists
        cdef double low, high
        if key is None:
            return self._add_post(query, 1 + stream)
        if key[1] != BY_RANGE:
            return self._add_post(query, self._list_of(stream, key))
        low, high = key[2]
        lists = &self.ranges[self.by_range[stream * <size_t>self.known + <term_t>key[0]]]
        for node in nodes_within(&lists.ranges, low, high):
            self._add_post(query, lists.first_list + <uint32_t>node)
        return 0

    cdef int _add_post(self, uint32_t query, uint32_t list) except -1:
        if self.post_count == self.post_room:
            self.post_room = 2 * self.post_room + 16
            self.posts = <Post*>mem_grow(
                self.posts, self.post_room, sizeof(Post), b"the keys of the queries"
            )
        self.posts[self.post_count] = Post(list, query, 0)
        self.post_count += 1
        return 0

    cdef uint32_t _new_lists(self, uint32_t count) except 0:
        """The first of some new lists, which are empty."""
        cdef uint32_t i, first = self.list_count
        if first + count > self.list_room:
            self.list_room = 2 * (first + count)
            self.lists = <Postings*>mem_grow(
                self.lists, self.list_room, sizeof(Postings), b"the lists of queries by key"
            )
        for i in range(first, first + count):
            self.lists[i] = Postings(NULL, 0, 0)
        self.list_count += count
        return first if first else 1

    cdef uint32_t _list_of(self, uint32_t stream, key) except 0:
        """The list of a key without an interval, which is made on the first call."""
        cdef term_t predicate = key[0], term = key[2]
        cdef uint32_t kind = key[1], slot, found
        cdef size_t at = stream * <size_t>self.known + predicate
        cdef uint64_t number = key_of(stream, predicate, kind)
        self.kinds[at] |= <uint8_t>kind
        if kind == BY_PREDICATE:
            if self.by_predicate[at] == 0:
                self.by_predicate[at] = self._new_lists(1)
            return self.by_predicate[at]
        found = self.find(number, term)
        if found == 0:
            if 2 * self.slots_used >= self.slot_mask:
                self._grow_slots()
            slot = _slot_of(number, term) & self.slot_mask
            while self.slots[slot].list:
                slot = (slot + 1) & self.slot_mask
            found = self._new_lists(1)
            self.slots[slot] = KeySlot(number, term, found)
            self.slots_used += 1
        return found

    cdef int _grow_slots(self) except -1:
        cdef KeySlot* before = self.slots
        cdef uint32_t i, slot, count = self.slot_mask + 1
        self.slots = <KeySlot*>mem_calloc(2 * <size_t>count, sizeof(KeySlot))
        self.slot_mask = 2 * count - 1
        for i in range(count):
            if before[i].list:
                slot = _slot_of(before[i].key, before[i].term) & self.slot_mask
                while self.slots[slot].list:
                    slot = (slot + 1) & self.slot_mask
                self.slots[slot] = before[i]
        mem_free(before)
        return 0

    cdef uint32_t find(self, uint64_t key, term_t term) noexcept nogil:
        """The list of a key with a constant; the empty list 0 if there is none."""
        cdef uint32_t slot = _slot_of(key, term) & self.slot_mask
        while self.slots[slot].list:
            if self.slots[slot].key == key and self.slots[slot].term == term:
                return self.slots[slot].list
            slot = (slot + 1) & self.slot_mask
        return 0

    cdef int mark_number(
        self, const RangeLists* lists, EventBatch batch, term_t term
    ) noexcept nogil:
        """Mark the queries whose interval holds the number of a term, if it is one."""
        cdef double low = 0.0, high = 0.0
        cdef uint32_t leaf, last, node
        if not reach_of(batch, term, &low, &high):
            return 0
        leaf = leaf_of(&lists.ranges, low)
        last = leaf if low == high else leaf_of(&lists.ranges, high)
        while leaf <= last:
            node = lists.ranges.leaves + leaf
            while node:
                self.mark_list(lists.first_list + node)
                node >>= 1
            leaf += 1
        return 0

    cdef int insert(self, uint32_t number) except -1 nogil:
        """List an entry, unless it is listed."""
        cdef Post* post = &self.posts[number]
        cdef Postings* listed = &self.lists[post.list]
        if post.place:
            return 0
        if listed.count == listed.room:
            listed.room = 2 * listed.room + 4
            listed.items = <Item*>mem_grow(
                listed.items, listed.room, sizeof(Item), b"the queries that wait for an event"
            )
        listed.items[listed.count] = Item(number, post.query)
        listed.count += 1
        post.place = listed.count
        return 0

    cdef int remove(self, uint32_t number) noexcept nogil:
        """Remove an entry from its list, if it is there."""
        cdef Post* post = &self.posts[number]
        cdef Postings* listed = &self.lists[post.list]
        cdef Item* moved
        if post.place == 0:
            return 0
        listed.count -= 1
        moved = &listed.items[post.place - 1]
        moved[0] = listed.items[listed.count]
        self.posts[moved.post].place = post.place
        post.place = 0
        return 0


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


cdef inline uint32_t _slot_of(uint64_t key, term_t term) noexcept nogil:
    return <uint32_t>((key ^ <uint64_t>term << 32) * <uint64_t>0x9E3779B97F4A7C15u >> 32)

# cython: language_level=3, boundscheck=False, wraparound=False
"""An inverted index: the keys of an event → the queries that can use it.

A key is a predicate of a stream, alone or with a constant object or subject. A graph pattern that
requires a triple with a key has no row over an event without one, so its query is listed under one
key of each alternative of the pattern (`dispatch_keys`). A list holds a query only while some
partial match waits for the pattern's rows. A query without a key, and one whose state changes with
every event, is in the list of its stream.

Cost of an event: constant per triple, and one step per query listed under its keys.
"""

from spaseq.rdf._memory cimport mem_free, mem_grow, mem_calloc


cdef class QueryIndex:
    """The index of one run.

    Args:
        graph: the summary graph of the matchers, whose views `mark_event` reports.
        queries: the number of queries.
        streams: the number of streams.
        posts: (query, stream, key) of each entry. A key is (predicate, kind, term) in numbers of
            terms; None for every event.
    """

    def __cinit__(self, SummaryGraph graph not None, uint32_t queries, uint32_t streams, posts):
        cdef uint32_t i
        cdef Post* post
        self.graph = graph
        self.query_count = queries
        self.stream_count = streams
        self.known = max([key[0] for _, _, key in posts if key is not None], default=0) + 1
        self.group_count = (queries >> 12) + 1
        self.marks = <uint64_t*>mem_calloc(<size_t>self.group_count << 6, sizeof(uint64_t))
        self.groups = <uint64_t*>mem_calloc(self.group_count, sizeof(uint64_t))
        self.kinds = <uint8_t*>mem_calloc(streams * <size_t>self.known, 1)
        self.by_predicate = <uint32_t*>mem_calloc(streams * <size_t>self.known, sizeof(uint32_t))
        self._allocate(<uint32_t>len(posts), <uint32_t>len(posts) + 1 + streams)
        for i, (query, stream, key) in enumerate(posts):
            post = &self.posts[i]
            post.query = query
            post.list = 1 + <uint32_t>stream if key is None else self._list_of(stream, key)

    def __dealloc__(self):
        cdef uint32_t i
        if self.lists != NULL:
            for i in range(self.list_count):
                mem_free(self.lists[i].items)
        mem_free(self.lists)
        mem_free(self.posts)
        mem_free(self.slots)
        mem_free(self.kinds)
        mem_free(self.by_predicate)
        mem_free(self.marks)
        mem_free(self.groups)

    cdef int _allocate(self, uint32_t posts, uint32_t lists) except -1:
        cdef uint32_t size = 16
        while size < 2 * posts:
            size *= 2
        self.post_count = posts
        self.posts = <Post*>mem_calloc(posts, sizeof(Post))
        # List 0 is always empty; the next ones have what every event of a stream concerns.
        self.lists = <Postings*>mem_calloc(lists, sizeof(Postings))
        self.list_count = 1 + self.stream_count
        self.slots = <KeySlot*>mem_calloc(size, sizeof(KeySlot))
        self.slot_mask = size - 1
        return 0

    cdef uint32_t _list_of(self, uint32_t stream, key) except 0:
        """The list of a key, which is made on the first call."""
        cdef term_t predicate = key[0], term = key[2]
        cdef uint32_t kind = key[1], slot, found
        cdef size_t at = stream * <size_t>self.known + predicate
        cdef uint64_t number = key_of(stream, predicate, kind)
        self.kinds[at] |= <uint8_t>kind
        if kind == BY_PREDICATE:
            if self.by_predicate[at] == 0:
                self.by_predicate[at] = self.list_count
                self.list_count += 1
            return self.by_predicate[at]
        found = self.find(number, term)
        if found == 0:
            slot = _slot_of(number, term) & self.slot_mask
            while self.slots[slot].list:
                slot = (slot + 1) & self.slot_mask
            found = self.list_count
            self.slots[slot] = KeySlot(number, term, found)
            self.list_count += 1
        return found

    cdef uint32_t find(self, uint64_t key, term_t term) noexcept nogil:
        """The list of a key with a constant; list 0, which is empty, if there is none."""
        cdef uint32_t slot = _slot_of(key, term) & self.slot_mask
        while self.slots[slot].list:
            if self.slots[slot].key == key and self.slots[slot].term == term:
                return self.slots[slot].list
            slot = (slot + 1) & self.slot_mask
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


cdef inline uint32_t _slot_of(uint64_t key, term_t term) noexcept nogil:
    return <uint32_t>((key ^ <uint64_t>term << 32) * <uint64_t>0x9E3779B97F4A7C15u >> 32)

"""Statements → statements whose graph is the subject of their event.

An event is a subject with its blank nodes. A blank node belongs to the subject whose statement
refers to it, outside of triple terms: statements about the node follow that statement, or precede
it, as parsers pass on nested nodes. Statements about blank nodes to which no subject refers are
separate events, one for each connected part, named by a node to which none of its statements
refers.

Statements about nodes without a known subject wait. They are chained by node, so that a claim costs
time linear in the claimed statements, plus a sort. Beyond a limit, the parts that end in the older
half are passed on. Memory: the waiting statements and the blank nodes of one event.
"""

cimport cython
from libc.stdlib cimport qsort
from libc.string cimport memset

from spaseq.rdf.native._terms cimport mem_alloc, mem_free, mem_grow

cdef enum:
    NOWHERE = 0xFFFFFFFFu


cdef int by_place(const void* a, const void* b) noexcept nogil:
    cdef uint32_t x = (<const uint32_t*>a)[0]
    cdef uint32_t y = (<const uint32_t*>b)[0]
    return (x > y) - (x < y)


# ------------------------------------------------------------------ subjects


@cython.final
cdef class Subjects:
    """Assigns the statements of one file to subjects."""

    def __cinit__(self, uint32_t most=10000):
        self.most = most
        map_resize(&self.own, MAP_SLOTS)
        map_resize(&self.heads, MAP_SLOTS)
        self.clear()

    def __dealloc__(self):
        mem_free(self.own.slots)
        mem_free(self.heads.slots)
        mem_free(self.waiting)
        mem_free(self.claimed)
        mem_free(self.queue)
        mem_free(self.ready)

    cdef void clear(self) noexcept nogil:
        """Prepare for another file."""
        self.limit = self.most
        self.current = 0
        self.count = self.live = self.ready_count = 0
        map_clear(&self.own)
        map_clear(&self.heads)

    cdef int take(self, const Quad* quad) except -1 nogil:
        """Read a statement. Then `ready` has the statements whose event is now known."""
        cdef uint32_t i, claimed = 0
        self.ready_count = 0
        if quad.blank_subject and map_find(&self.own, quad.subject) == NULL:
            self.wait(quad)
            if self.live > self.limit:
                self.release()
            return 0
        if self.live and quad.blank_object == 1:
            claimed = self.claim(quad.object)
        if not quad.blank_subject and quad.subject != self.current:
            if self.live:
                self.roots(self.count)
            self.current = quad.subject
            map_clear(&self.own)
        for i in range(claimed):
            self.put(&self.waiting[self.claimed[i]].quad, self.current, True)
        self.put(quad, self.current, True)
        if self.count:
            self.compact(False)
        return 0

    cdef int rest(self) except -1 nogil:
        """The end of the file: `ready` then has the statements that still wait."""
        self.ready_count = 0
        if self.live:
            self.roots(self.count)
        return 0

    cdef int put(self, const Quad* quad, term_t graph, bint owned) except -1 nogil:
        """Pass on a statement; `owned`: its blank nodes are those of the current subject."""
        cdef Quad* put
        if self.ready_count == self.ready_room:
            self.ready = <Quad*>mem_grow(
                self.ready, 2 * <size_t>self.ready_room + 16, sizeof(Quad), "the statements"
            )
            self.ready_room = 2 * self.ready_room + 16
        put = &self.ready[self.ready_count]
        put[0] = quad[0]
        put.graph = graph
        self.ready_count += 1
        if owned:
            if quad.blank_subject:
                map_entry(&self.own, quad.subject, 0)
            if quad.blank_object == 1:
                map_entry(&self.own, quad.object, 0)
        return 0

    # ------------------------------------------------------------ waiting statements

    cdef int wait(self, const Quad* quad) except -1 nogil:
        """Keep a statement about a node whose subject is not known."""
        cdef uint32_t room
        if self.count == self.room:
            room = 2 * self.room + 16
            self.waiting = <Waiting*>mem_grow(
                self.waiting, room, sizeof(Waiting), "waiting statements"
            )
            self.claimed = <uint32_t*>mem_grow(
                self.claimed, room, sizeof(uint32_t), "waiting statements"
            )
            self.queue = <term_t*>mem_grow(
                self.queue, <size_t>room + 1, sizeof(term_t), "waiting statements"
            )
            self.room = room
        self.waiting[self.count].quad = quad[0]
        self.waiting[self.count].taken = False
        self.chain(self.count)
        self.count += 1
        self.live += 1
        return 0

    cdef int chain(self, uint32_t place) except -1 nogil:
        """Append a waiting statement to the chain of its node."""
        cdef Mapped* head = map_entry(&self.heads, self.waiting[place].quad.subject, NOWHERE)
        if head.value == NOWHERE:
            self.waiting[place].next = place
        else:
            self.waiting[place].next = self.waiting[head.value].next
            self.waiting[head.value].next = place
        head.value = place
        return 0

    cdef uint32_t claim(self, term_t node) noexcept nogil:
        """Claim the statements about all nodes that can be reached from a node.

        Returns their number; `claimed` are their positions in the order of the file.
        """
        cdef uint32_t i, last, at = 0, ahead = 1, count = 0
        cdef Mapped* head
        self.queue[0] = node
        while at < ahead:
            head = map_find(&self.heads, self.queue[at])
            at += 1
            if head == NULL or head.value == NOWHERE:
                continue
            last = head.value
            head.value = NOWHERE
            i = last
            while True:
                i = self.waiting[i].next
                self.waiting[i].taken = True
                self.claimed[count] = i
                count += 1
                if self.waiting[i].quad.blank_object == 1:
                    self.queue[ahead] = self.waiting[i].quad.object
                    ahead += 1
                if i == last:
                    break
        self.live -= count
        if count > 1:
            qsort(self.claimed, count, sizeof(uint32_t), by_place)
        return count

    cdef int roots(self, uint32_t behind) except -1 nogil:
        """Pass on the connected parts that have no statement at the position `behind` or after it.
        """
        cdef TermMap nodes
        cdef uint32_t *parents
        cdef uint32_t *part_of      # a node that is a root; and, behind those, a statement
        cdef uint32_t *last         # by part: the position of its last statement
        cdef uint32_t *first        # by part: where its statements begin in `order`
        cdef uint32_t *order
        cdef uint32_t *subjects     # by statement: the node
        cdef term_t *names          # by part
        cdef uint8_t *referred      # by node: whether a statement refers to it
        cdef uint32_t i, a, b, at, part, parts = 0, count = self.count
        cdef size_t size = count
        cdef void* block = mem_alloc(size * 12 * sizeof(uint32_t) + 2 * size + sizeof(uint32_t))
        if block == NULL:
            with gil:
                raise MemoryError
        parents = <uint32_t*>block
        part_of = parents + 2 * size
        last = part_of + 3 * size
        first = last + size
        order = first + size + 1
        subjects = order + size
        names = <term_t*>(subjects + size)
        referred = <uint8_t*>(names + size)
        memset(referred, 0, 2 * size)
        memset(first, 0, (size + 1) * sizeof(uint32_t))
        nodes.slots = NULL
        nodes.mask = nodes.used = 0
        try:
            map_resize(&nodes, MAP_SLOTS)
            for i in range(count):
                if self.waiting[i].taken:
                    continue
                a = node_of(&nodes, parents, self.waiting[i].quad.subject)
                subjects[i] = a
                if self.waiting[i].quad.blank_object == 1:
                    b = node_of(&nodes, parents, self.waiting[i].quad.object)
                    referred[b] = True
                    parents[root_of(parents, b)] = root_of(parents, a)
            for i in range(nodes.used):
                part_of[i] = NOWHERE
            # Parts are numbered in the order of their first statements.
            for i in range(count):
                if self.waiting[i].taken:
                    continue
                a = root_of(parents, subjects[i])
                if part_of[a] == NOWHERE:
                    part_of[a] = parts
                    names[parts] = 0
                    parts += 1
                part = part_of[a]
                part_of[2 * size + i] = part
                last[part] = i
                first[part + 1] += 1
                if names[part] == 0 and not referred[subjects[i]]:
                    names[part] = self.waiting[i].quad.subject
            for part in range(parts):
                first[part + 1] += first[part]
            for i in range(count):
                if not self.waiting[i].taken:
                    part = part_of[2 * size + i]
                    order[first[part]] = i
                    first[part] += 1
            at = 0
            for part in range(parts):
                if last[part] >= behind:
                    at = first[part]
                    continue
                if names[part] == 0:
                    names[part] = self.waiting[order[at]].quad.subject
                while at < first[part]:
                    self.put(&self.waiting[order[at]].quad, names[part], False)
                    self.waiting[order[at]].taken = True
                    self.live -= 1
                    at += 1
        finally:
            mem_free(nodes.slots)
            mem_free(block)
        return 0

    cdef int release(self) except -1 nogil:
        """Pass on the parts that end in the older half of the statements that wait."""
        self.compact(True)
        self.roots(self.count // 2)
        self.compact(True)
        self.limit = max(self.most, 2 * self.live)
        return 0

    cdef int compact(self, bint always) except -1 nogil:
        """Remove the statements that were passed on, if they are more than half or `always`."""
        cdef uint32_t i, count = 0
        if self.live == 0:
            self.count = 0
            map_clear(&self.heads)
            return 0
        if not always and self.count - self.live <= self.live + 64:
            return 0
        map_clear(&self.heads)
        for i in range(self.count):
            if not self.waiting[i].taken:
                self.waiting[count] = self.waiting[i]
                self.chain(count)
                count += 1
        self.count = count
        return 0

    cdef int move(self, EventBatch source, EventBatch target) except -1:
        """Continue in another batch."""
        cdef TermMap own = self.own
        cdef uint32_t i
        cdef Quad* quad
        self.ready_count = 0
        self.current = moved(source, self.current, target)
        if own.used:
            self.own.slots = NULL
            self.own.used = 0
            try:
                map_resize(&self.own, own.mask + 1)
                for i in range(own.mask + 1):
                    if own.slots[i].term:
                        map_entry(&self.own, moved(source, own.slots[i].term, target), 0)
            finally:
                mem_free(own.slots)
        self.compact(True)
        map_clear(&self.heads)
        for i in range(self.count):
            quad = &self.waiting[i].quad
            quad.subject = moved(source, quad.subject, target)
            quad.predicate = moved(source, quad.predicate, target)
            quad.object = moved(source, quad.object, target)
            self.chain(i)
        return 0


cdef inline uint32_t node_of(TermMap* nodes, uint32_t* parents, term_t term) except? 0 nogil:
    """The number of a node, which is a root if it is new."""
    cdef uint32_t count = nodes.used
    cdef uint32_t number = map_entry(nodes, term, count).value
    if nodes.used != count:
        parents[number] = number
    return number


cdef inline uint32_t root_of(uint32_t* parents, uint32_t node) noexcept nogil:
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node

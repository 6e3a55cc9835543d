"""One encoded event → its triples by predicate, ready to be joined.

The summary graph of SPECTRA: vertically partitioned views, one for each predicate that some
pattern names, and view 0 with every triple if a pattern has a variable as predicate. It is filled
once per event and serves all graph patterns. A join over a larger view requests sibling lists:
chains of the triples with the same subject, the same object, or both. They are built on the first
request, in time linear in the view; following one costs about the rows of the join.

The next event reuses the memory of views, lists and columns, so loading an event allocates nothing
once the largest event has been seen. Cost of `load`: linear in the event. Source: Gillani et al.,
SPECTRA (2016), sections 4 and 5.
"""

from libc.string cimport memset

from spaseq.rdf.native._terms cimport (
    arena_alloc_slow,
    arena_free,
    arena_reset,
    mem_alloc,
    mem_free,
    mem_realloc,
)


cdef inline uint32_t end_hash(term_t term) noexcept nogil:
    return (term * 2654435769u) >> 7


cdef inline uint32_t both_hash(term_t subject, term_t object) noexcept nogil:
    return ((subject * 2654435769u) ^ (object * 2246822519u)) >> 7


# The result of `_fill` if the triples of a view are not adjacent in the event.
cdef uint32_t SCATTERED = 0xFFFFFFFFu


cdef class SummaryGraph:
    """The views of the event that was loaded last.

    Args:
        predicates: those that have a view, as pyoxigraph terms; the views are numbered from 1.
        whole: whether view 0 is filled.
        deriver: fills the `derived` views behind those of the predicates.
    """

    def __cinit__(
        self, Dictionary dictionary not None, predicates, bint whole,
        Deriver deriver=None, uint32_t derived=0,
    ):
        cdef uint32_t i
        self.deriver = deriver
        self.dictionary = dictionary
        self.whole = whole
        numbers = [dictionary.intern(predicate) for predicate in predicates]
        if len(numbers) + derived >= 0xFFFF:
            raise OverflowError("a program's patterns can name at most 65,534 predicates")
        self.view_count = <uint32_t>len(numbers) + 1 + derived
        self.known = max(numbers, default=0) + 1
        self.views = <View*>mem_alloc(self.view_count * sizeof(View))
        self.view_of = <uint16_t*>mem_alloc(self.known * sizeof(uint16_t))
        self.filled = <uint16_t*>mem_alloc(self.view_count * sizeof(uint16_t))
        if self.views == NULL or self.view_of == NULL or self.filled == NULL:
            raise MemoryError
        memset(self.views, 0, self.view_count * sizeof(View))
        memset(self.view_of, 0, self.known * sizeof(uint16_t))
        for i in range(1, <uint32_t>len(numbers) + 1):
            self.view_of[<term_t>numbers[i - 1]] = i
        self.grow(64)

    def __dealloc__(self):
        mem_free(self.views)
        mem_free(self.filled)
        mem_free(self.view_of)
        mem_free(self.subjects)
        mem_free(self.predicates)
        mem_free(self.objects)
        mem_free(self.kinds)
        arena_free(&self.scratch)

    def extend(self, predicates):
        """Add views of further predicates after the existing ones, if there are no derived
        views."""
        cdef uint32_t i, count
        cdef term_t known
        cdef void* taken
        if self.deriver is not None:
            raise ValueError("derived views are the last ones")
        numbers = [self.dictionary.intern(predicate) for predicate in predicates]
        if self.view_count + len(numbers) >= 0xFFFF:
            raise OverflowError("a program's patterns can name at most 65,534 predicates")
        count = self.view_count + <uint32_t>len(numbers)
        taken = mem_realloc(self.views, count * sizeof(View))
        if taken == NULL:
            raise MemoryError
        self.views = <View*>taken
        taken = mem_realloc(self.filled, count * sizeof(uint16_t))
        if taken == NULL:
            raise MemoryError
        self.filled = <uint16_t*>taken
        known = max(self.known, max(numbers, default=0) + 1)
        taken = mem_realloc(self.view_of, known * sizeof(uint16_t))
        if taken == NULL:
            raise MemoryError
        self.view_of = <uint16_t*>taken
        memset(self.view_of + self.known, 0, (known - self.known) * sizeof(uint16_t))
        memset(self.views + self.view_count, 0, len(numbers) * sizeof(View))
        for i in range(<uint32_t>len(numbers)):
            self.view_of[<term_t>numbers[i]] = <uint16_t>(self.view_count + i)
        self.view_count, self.known, self.serial = count, known, 0

    def fill(self, EventBatch batch not None, uint32_t event):
        """Fill the views with the triples of an event."""
        if event >= batch.event_count:
            raise IndexError(f"the batch has {batch.event_count} events, not one at {event}")
        self.load(batch, event)

    def sizes(self) -> list:
        """Per view, the mean number of triples per event so far."""
        cdef uint32_t i
        cdef uint64_t built = self.built if self.built else 1
        return [self.views[i].seen / <double>built for i in range(self.view_count)]

    cdef int grow(self, uint32_t triples) except -1 nogil:
        # A triple may be in two views: that of its predicate and view 0.
        cdef size_t size = 2 * <size_t>triples * sizeof(term_t)
        cdef term_t* subjects = <term_t*>mem_realloc(self.subjects, size)
        if subjects != NULL:
            self.subjects = subjects
        cdef term_t* predicates = <term_t*>mem_realloc(self.predicates, size)
        if predicates != NULL:
            self.predicates = predicates
        cdef term_t* objects = <term_t*>mem_realloc(self.objects, size)
        if objects != NULL:
            self.objects = objects
        cdef uint16_t* kinds = <uint16_t*>mem_realloc(self.kinds, size)
        if kinds != NULL:
            self.kinds = kinds
        if subjects == NULL or predicates == NULL or objects == NULL or kinds == NULL:
            with gil:
                raise MemoryError
        self.room = triples
        return 0

    cdef int _load(self, EventBatch batch, uint32_t event) except -1 nogil:
        cdef const Triple* first = batch.triples + batch.events[event].first
        cdef const Triple* end = batch.triples + batch.events[event].end
        cdef uint32_t i, place, room = <uint32_t>(end - first)
        cdef View* view
        if batch.dictionary is not self.dictionary or (
            batch.version != self.dictionary.permanent.count
        ):
            with gil:
                raise ValueError("the batch was not encoded for this run")
        self.serial = 0
        if self.deriver is not None:
            self.deriver.derive(batch, event)
            room += (self.deriver.count + 1) // 2  # the columns hold twice the room
        if self.room < room:
            self.grow(2 * room)
        arena_reset(&self.scratch)
        self.empty()
        place = self._fill(first, end)
        if place == SCATTERED:
            self.empty()
            place = self._fill_sorted(first, end)
        if self.deriver is not None:
            place = self.fill_derived(place)
        if self.whole:
            self.present |= bit_of(0)
            self.fills(0, <uint32_t>(end - first))
            self.views[0].first = place
            for i in range(<uint32_t>(end - first)):
                self.subjects[place + i] = first[i].subject
                self.predicates[place + i] = first[i].predicate
                self.objects[place + i] = first[i].object
        for i in range(self.filled_count):
            view = &self.views[self.filled[i]]
            view.seen += view.count
        self.built += 1
        self.serial = batch.serial
        self.event = event
        return 0

    cdef int empty(self) noexcept nogil:
        """Empty all views."""
        cdef uint32_t i
        cdef View* view
        for i in range(self.filled_count):
            view = &self.views[self.filled[i]]
            view.count = 0
            if view.scanned:  # else nothing has asked for its lists
                view.scanned = 0
                memset(view.siblings, 0, SIDES * sizeof(Siblings))
        self.filled_count = 0
        self.present = 0
        return 0

    cdef uint32_t _fill(self, const Triple* triple, const Triple* end) noexcept nogil:
        """Fill the views in one pass; SCATTERED if the triples of some view are not adjacent."""
        cdef term_t* subjects = self.subjects
        cdef term_t* objects = self.objects
        cdef const uint16_t* view_of = self.view_of
        cdef term_t known = self.known
        cdef uint32_t number, place = 0
        cdef View* view
        while triple < end:
            number = view_of[triple.predicate] if triple.predicate < known else 0
            if number:
                view = &self.views[number]
                if view.count == 0:
                    view.first = place
                elif view.first + view.count != place:
                    return SCATTERED
                self.fills(number, 1)
                subjects[place], objects[place] = triple.subject, triple.object
                place += 1
            triple += 1
        return place

    cdef uint32_t _fill_sorted(self, const Triple* first, const Triple* end) noexcept nogil:
        """Fill the views with triples in any order: count the triples of each, then copy them."""
        cdef uint32_t i, at, place = 0, count = <uint32_t>(end - first)
        cdef View* view
        for i in range(count):
            self.kinds[i] = 0
            if first[i].predicate < self.known:
                self.kinds[i] = self.view_of[first[i].predicate]
            if self.kinds[i]:
                self.fills(self.kinds[i], 1)
        for i in range(self.filled_count):
            view = &self.views[self.filled[i]]
            view.first = place
            place += view.count
            view.count = 0
        for i in range(count):
            if self.kinds[i]:
                view = &self.views[self.kinds[i]]
                at = view.first + view.count
                self.subjects[at], self.objects[at] = first[i].subject, first[i].object
                view.count += 1
        return place

    cdef uint32_t fill_derived(self, uint32_t place) noexcept nogil:
        """Copy the derived triples into their views, from `place` on; returns the end."""
        cdef Derived* found = self.deriver.triples
        cdef uint32_t i, at, first_derived = self.filled_count
        cdef View* view
        for i in range(self.deriver.count):
            if found[i].target < LINK:
                self.fills(found[i].target, 1)
        for i in range(first_derived, self.filled_count):
            view = &self.views[self.filled[i]]
            view.first = place
            place += view.count
            view.count = 0
        for i in range(self.deriver.count):
            if found[i].target < LINK:
                view = &self.views[found[i].target]
                at = view.first + view.count
                self.subjects[at] = found[i].subject
                self.predicates[at] = found[i].predicate
                self.objects[at] = found[i].object
                view.count += 1
        return place

    cdef int link(self, uint32_t number, Side side) except -1 nogil:
        """Build the sibling lists of a view by one side."""
        cdef View* view = &self.views[number]
        cdef Siblings* siblings = &view.siblings[<int>side]
        cdef uint32_t i, size = 16
        cdef uint32_t* head
        cdef term_t subject, object
        if side != BY_SUBJECT and side != BY_OBJECT and side != BY_BOTH:
            with gil:
                raise SystemError(f"a view has no side {<int>side}")
        while size < view.count:
            size *= 2
        siblings.heads = <uint32_t*>arena_alloc_slow(&self.scratch, size * sizeof(uint32_t))
        siblings.next = <uint32_t*>arena_alloc_slow(&self.scratch, view.count * sizeof(uint32_t))
        if siblings.heads == NULL or siblings.next == NULL:
            siblings.heads = NULL
            with gil:
                raise MemoryError
        memset(siblings.heads, 0, size * sizeof(uint32_t))
        siblings.mask = size - 1
        i = view.count
        while i:  # from the end, so that lists are in the order of the triples
            i -= 1
            subject = self.subjects[view.first + i]
            object = self.objects[view.first + i]
            if side == BY_SUBJECT:
                head = &siblings.heads[end_hash(subject) & siblings.mask]
            elif side == BY_OBJECT:
                head = &siblings.heads[end_hash(object) & siblings.mask]
            else:
                head = &siblings.heads[both_hash(subject, object) & siblings.mask]
            siblings.next[i] = head[0]
            head[0] = i + 1
        return 0

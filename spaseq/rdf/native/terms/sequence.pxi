"""Events of one or several batches, in the order in which a run processes them.

The events of a stream remain in the order of their batch. `merge` orders the events of several
streams by instant, and the events of one instant by the number of their stream.
Cost: 8 bytes per event of a merged sequence; nothing for a single batch.
"""


cdef class EventSequence:
    """All events of one batch; of several batches, the ones that `append` adds."""

    def __cinit__(self, batches):
        cdef uint32_t i
        cdef EventBatch batch
        self.batches = list(batches)
        self.batch_at = <PyObject**>mem_calloc(len(self.batches), sizeof(PyObject*))
        for i in range(<uint32_t>len(self.batches)):
            batch = self.batches[i]
            self.batch_at[i] = <PyObject*>batch
        if len(self.batches) == 1:
            self.count = (<EventBatch>self.batches[0]).event_count
        else:
            self.room = 64
            self.positions = <Position*>mem_calloc(self.room, sizeof(Position))

    def __dealloc__(self):
        mem_free(self.batch_at)
        mem_free(self.positions)

    def __len__(self):
        return self.count

    cdef int append(self, uint32_t batch, uint32_t index) except -1:
        """Append an event of a batch; the sequence has several batches."""
        if self.count == self.room:
            self.room *= 2
            self.positions = <Position*>mem_grow(
                self.positions, self.room, sizeof(Position), b"the order of events"
            )
        self.positions[self.count].batch = batch
        self.positions[self.count].index = index
        self.count += 1
        return 0

    def position(self, number: int) -> tuple:
        """The batch of an event, and its index in it."""
        cdef Position found = self.at(self._checked(number))
        return self.batches[found.batch], found.index

    def parts(self, uint32_t first, uint32_t end) -> list:
        """(batch, first index, index after the last) of the events first:end, by batch."""
        cdef uint32_t i
        cdef Position found
        cdef dict ranges = {}
        if self.positions == NULL:
            return [(self.batches[0], first, end)] if end > first else []
        for i in range(first, min(end, self.count)):
            found = self.positions[i]
            start, _ = ranges.get(found.batch, (found.index, 0))
            ranges[found.batch] = start, found.index + 1
        return [(self.batches[batch], start, after) for batch, (start, after) in ranges.items()]

    cdef uint32_t _checked(self, object number) except? 0xFFFFFFFF:
        if not 0 <= number < self.count:
            raise IndexError(f"the sequence has {self.count} events, not one at {number}")
        return number


def merge(batches, firsts, until):
    """Merge events of several batches, one per stream, by (time, ordinal, number of the batch).

    Args:
        batches: The batches, in the order of their streams; None for a stream without events.
        firsts: Per batch, the index of its first event that is not merged yet.
        until: The instant of an event that may be followed by no further one of this call, as
            (time, ordinal, number of the stream), or None. Events after it are not merged.

    Returns:
        The sequence, which ends with the last event of one of the batches or before `until`, and
        the next `firsts`.
    """
    cdef EventSequence merged
    cdef EventBatch batch
    cdef uint32_t i, least
    cdef list given = [one for one in batches if one is not None]
    cdef list numbers = [i for i, one in enumerate(batches) if one is not None]
    cdef list after = list(firsts)
    cdef uint32_t* next
    cdef bint bounded = until is not None
    cdef int64_t last_micros = until[0] if bounded else 0
    cdef uint32_t last_ordinal = until[1] if bounded else 0
    cdef uint32_t last_number = until[2] if bounded else 0
    cdef const EventRecord* event
    cdef const EventRecord* first
    merged = EventSequence(given)
    if len(given) == 1:
        merged.room = 64
        merged.positions = <Position*>mem_calloc(merged.room, sizeof(Position))
        merged.count = 0
    next = <uint32_t*>mem_calloc(len(given), sizeof(uint32_t))
    try:
        for i in range(<uint32_t>len(given)):
            next[i] = after[numbers[i]]
        while given:
            least, first = 0, NULL
            for i in range(<uint32_t>len(given)):
                event = &(<EventBatch>merged.batch_at[i]).events[next[i]]
                if first == NULL or event.micros < first.micros or (
                    event.micros == first.micros and event.ordinal < first.ordinal
                ):
                    least, first = i, event
            if bounded and not _before(
                first, <uint32_t>numbers[least], last_micros, last_ordinal, last_number
            ):
                break
            merged.append(least, next[least])
            next[least] += 1
            if next[least] == (<EventBatch>merged.batch_at[least]).event_count:
                break
        for i in range(<uint32_t>len(given)):
            after[numbers[i]] = next[i]
    finally:
        mem_free(next)
    return merged, after


cdef inline bint _before(
    const EventRecord* event, uint32_t number, int64_t micros, uint32_t ordinal, uint32_t other
) noexcept nogil:
    """Whether an event precedes an instant and a stream."""
    if event.micros != micros:
        return event.micros < micros
    if event.ordinal != ordinal:
        return event.ordinal < ordinal
    return number < other

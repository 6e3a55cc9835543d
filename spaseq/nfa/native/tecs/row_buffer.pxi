"""The rows of one graph pattern, by age and by term, for guards and conjunctions to search.

Rows are numbered from 1 in the order of their instants and lie in a ring. An index chains the rows
whose terms in one column fall into one bucket, the newest first. Rows are never unlinked from a
chain: a chain ends at the first row that has been removed from the ring.

Invariants: a row below `first`, or of an instant below the bound of the window, is never followed;
row numbers decrease along a chain. Cost: adding and removing are constant (amortised), finding the
start of a time range is logarithmic.
"""

from spaseq.rdf.native._terms cimport mem_calloc, mem_free


cdef inline uint32_t _bucket(term_t term) noexcept nogil:
    return <uint32_t>((<uint64_t>term * 0x9E3779B97F4A7C15u) >> 32)


cdef RowBuffer* rows_alloc(columns) except NULL:
    """Create an empty buffer with an index for each of `columns`."""
    cdef RowBuffer* rows = <RowBuffer*>mem_calloc(1, sizeof(RowBuffer))
    cdef uint32_t i
    rows.first = rows.end = 1
    rows.indexes = <Index*>mem_calloc(len(columns), sizeof(Index))
    rows.index_count = <uint32_t>len(columns)
    for i, column in enumerate(columns):
        rows.indexes[i].column = column
    return rows


cdef int rows_free(RowBuffer* rows) noexcept nogil:
    """Free a buffer and its indexes; NULL is allowed."""
    cdef uint32_t i
    if rows == NULL:
        return 0
    for i in range(rows.index_count):
        mem_free(rows.indexes[i].newest)
        mem_free(rows.indexes[i].older)
    mem_free(rows.indexes)
    mem_free(rows.labels)
    mem_free(rows.instants)
    mem_free(rows.keyed)
    mem_free(rows)
    return 0


cdef int _chain_row(RowBuffer* rows, Index* index, uint64_t number) noexcept nogil:
    cdef uint32_t slot = number & (rows.room - 1)
    cdef uint32_t bucket = _bucket(rows.labels[slot].row[index.column]) & (rows.room - 1)
    index.older[slot] = index.newest[bucket]
    index.newest[bucket] = number
    return 0


cdef int _grow_rows(RowBuffer* rows) except -1 nogil:
    """Double the ring and rebuild the chains."""
    cdef uint32_t room = 2 * rows.room if rows.room else 64
    cdef Label** labels = <Label**>mem_calloc(room, sizeof(Label*))
    cdef instant_t* instants = <instant_t*>mem_calloc(room, sizeof(instant_t))
    cdef uint8_t* keyed = <uint8_t*>mem_calloc(room, sizeof(uint8_t))
    cdef uint64_t number
    cdef uint32_t i, old, new
    for number in range(rows.first, rows.end):
        old, new = number & (rows.room - 1), number & (room - 1)
        labels[new] = rows.labels[old]
        instants[new] = rows.instants[old]
        keyed[new] = rows.keyed[old]
    mem_free(rows.labels)
    mem_free(rows.instants)
    mem_free(rows.keyed)
    rows.labels, rows.instants, rows.keyed = labels, instants, keyed
    rows.room = room
    for i in range(rows.index_count):
        mem_free(rows.indexes[i].newest)
        mem_free(rows.indexes[i].older)
        rows.indexes[i].newest = rows.indexes[i].older = NULL
        rows.indexes[i].newest = <uint64_t*>mem_calloc(room, sizeof(uint64_t))
        rows.indexes[i].older = <uint64_t*>mem_calloc(room, sizeof(uint64_t))
        for number in range(rows.first, rows.end):
            _chain_row(rows, &rows.indexes[i], number)
    return 0


cdef int rows_add(RowBuffer* rows, Label* label, bint keyed) except -1 nogil:
    """Add a row, of an instant not before that of the last one."""
    cdef uint64_t number = rows.end
    cdef uint32_t slot, i
    if number - rows.first == rows.room:
        _grow_rows(rows)
    assert number == rows.first or (
        rows.instants[(number - 1) & (rows.room - 1)] <= label.instant
    )
    slot = number & (rows.room - 1)
    rows.labels[slot] = label
    rows.instants[slot] = label.instant
    rows.keyed[slot] = keyed
    rows.end += 1
    for i in range(rows.index_count):
        _chain_row(rows, &rows.indexes[i], number)
    return 0


cdef int rows_expire(RowBuffer* rows, instant_t bound) noexcept nogil:
    """Remove the rows of instants before `bound`."""
    while rows.first < rows.end and rows.instants[rows.first & (rows.room - 1)] < bound:
        rows.first += 1
    return 0


cdef uint64_t row_before(const RowBuffer* rows, instant_t high) noexcept nogil:
    """The number of the newest row of an instant before `high`, or `first` - 1."""
    cdef uint64_t low = rows.first, above = rows.end, middle
    if low < above and rows.instants[(above - 1) & (rows.room - 1)] < high:
        return above - 1
    while low < above:
        middle = (low + above) // 2
        if rows.instants[middle & (rows.room - 1)] < high:
            low = middle + 1
        else:
            above = middle
    return low - 1


cdef uint64_t row_until(const RowBuffer* rows, int64_t micros) noexcept nogil:
    """The number of the newest row not after a time, in microseconds, or `first` - 1."""
    cdef uint64_t low = rows.first, above = rows.end, middle
    while low < above:
        middle = (low + above) // 2
        if rows.labels[middle & (rows.room - 1)].micros <= micros:
            low = middle + 1
        else:
            above = middle
    return low - 1


cdef uint64_t chain_newest(const RowBuffer* rows, uint32_t index, term_t term) noexcept nogil:
    """The newest row whose column may hold a term; 0 if there is none."""
    if rows.room == 0:
        return 0
    return rows.indexes[index].newest[_bucket(term) & (rows.room - 1)]


cdef uint64_t chain_older(const RowBuffer* rows, uint32_t index, uint64_t number) noexcept nogil:
    """The next older row in the chain of a row that `chain_newest` or `chain_older` returned."""
    return rows.indexes[index].older[number & (rows.room - 1)]

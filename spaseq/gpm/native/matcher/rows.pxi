"""Tables of rows of term numbers: one growable block of memory each, and hash indexes in an arena.

This is a separate module because the matcher, the engine's driver and the Arrow reader share this
form of results. A table keeps its block when it is emptied (`count = 0`), so evaluating a pattern
again allocates nothing once the largest result has been seen.
"""

from libc.string cimport memcmp, memcpy, memset

from spaseq.rdf.limits import LimitReached
from spaseq.rdf.native._terms cimport (
    arena_alloc_slow,
    check_signals_rarely,
    mem_alloc,
    mem_free,
    mem_realloc,
)

# Rows by the hash of their keys: position + 1 of the first, and of the next; 0: none. A position
# has the bit MORE if there is a next one, which saves a read of memory.
cdef enum:
    MORE = 0x80000000u


cdef inline term_t* row_new(Rows* rows) except NULL nogil:
    """Append a row, which is not initialised; earlier rows may move."""
    if rows.count == rows.room:
        rows_grow(rows)
    rows.count += 1
    return row_at(rows, rows.count - 1)


cdef inline uint32_t key_hash(
    const term_t* row, const uint32_t* keys, uint32_t key_count
) noexcept nogil:
    cdef uint64_t hash = 0
    cdef uint32_t i
    for i in range(key_count):
        hash = (hash ^ row[keys[i]]) * 0x9E3779B97F4A7C15u
    return <uint32_t>(hash >> 32)


# Up to this many rows, comparing them one by one is cheaper than an index.
cdef uint32_t MAX_UNINDEXED = 8


cdef int rows_init(Rows* rows, uint32_t width, RowBudget* budget) except -1:
    rows.budget = budget
    rows.width = width
    rows.count = 0
    rows.room = 16
    rows.cells = <term_t*>mem_alloc((<size_t>rows.room * width or 1) * sizeof(term_t))
    if rows.cells == NULL:
        raise MemoryError
    return 0


cdef void rows_free(Rows* rows) noexcept nogil:
    mem_free(rows.cells)
    rows.cells = NULL


cdef int require(const RowBudget* budget, size_t size) except -1 nogil:
    """Refuse memory that the budget does not allow.

    Raises:
        LimitReached: for more bytes than are left.
    """
    if size > budget.left:
        with gil:
            raise LimitReached("memory", budget.pattern)
    return 0


cdef int rows_grow(Rows* rows) except -1 nogil:
    cdef size_t room = 2 * <size_t>rows.room
    cdef size_t more = rows.room * <size_t>rows.width * sizeof(term_t)
    cdef term_t* moved = NULL
    require(rows.budget, more)
    if room < MORE:
        moved = <term_t*>mem_realloc(rows.cells, (room * rows.width or 1) * sizeof(term_t))
    if moved == NULL:
        with gil:
            raise MemoryError("no memory for the rows of a graph pattern")
    rows.cells = moved
    rows.budget.left -= more
    rows.room = <uint32_t>room
    return 0


cdef int index_rows(
    RowIndex* index, const Rows* rows, const uint32_t* keys, uint32_t key_count, Arena* arena
) except -1 nogil:
    """Index rows by their keys, which every row binds."""
    cdef uint32_t i, size = 16
    cdef uint32_t* head
    index.heads = NULL
    if rows.count <= MAX_UNINDEXED or key_count == 0:
        return 0
    while size < 2 * <uint64_t>rows.count and size < 0x80000000u:
        size *= 2
    require(rows.budget, (rows.count + <size_t>size) * sizeof(uint32_t))
    index.next = <uint32_t*>arena_alloc_slow(arena, <size_t>rows.count * sizeof(uint32_t))
    index.heads = <uint32_t*>arena_alloc_slow(arena, <size_t>size * sizeof(uint32_t))
    if index.heads == NULL or index.next == NULL:
        with gil:
            raise MemoryError
    memset(index.heads, 0, <size_t>size * sizeof(uint32_t))
    index.mask = size - 1
    i = rows.count
    while i:  # from the end, so that lists are in the order of the rows
        i -= 1
        check_signals_rarely(i)
        head = &index.heads[key_hash(row_at(rows, i), keys, key_count) & index.mask]
        index.next[i] = head[0]
        head[0] = i + 1 | (MORE if head[0] else 0)
    return 0


cdef int drop_duplicates(Rows* rows, uint32_t columns, Arena* arena) except -1 nogil:
    """Keep the first of the rows that agree in their first columns."""
    cdef uint32_t i, at, kept = 0, size = 16
    cdef size_t compared = columns * sizeof(term_t)
    cdef uint64_t hash
    cdef uint32_t column
    cdef uint32_t* slots = NULL
    cdef term_t* row
    if rows.count < 2:
        return 0
    if rows.count > MAX_UNINDEXED:
        while size < 2 * <uint64_t>rows.count and size < 0x80000000u:
            size *= 2
        require(rows.budget, size * sizeof(uint32_t))
        slots = <uint32_t*>arena_alloc_slow(arena, size * sizeof(uint32_t))
        if slots == NULL:
            with gil:
                raise MemoryError
        memset(slots, 0, size * sizeof(uint32_t))
    for i in range(rows.count):
        check_signals_rarely(i)
        row = row_at(rows, i)
        if slots == NULL:
            at = 0
            while at < kept and memcmp(row_at(rows, at), row, compared) != 0:
                at += 1
            if at < kept:
                continue
        else:
            hash = 0
            for column in range(columns):
                hash = (hash ^ row[column]) * 0x9E3779B97F4A7C15u
            at = <uint32_t>(hash >> 32) & (size - 1)
            while slots[at] and memcmp(row_at(rows, slots[at] - 1), row, compared) != 0:
                at = (at + 1) & (size - 1)
            if slots[at]:
                continue
            slots[at] = kept + 1
        if kept != i:
            memcpy(row_at(rows, kept), row, rows.width * sizeof(term_t))
        kept += 1
    rows.count = kept
    return 0


cdef bint overlap(const term_t* left, const term_t* right, uint32_t width) noexcept nogil:
    """Whether two rows are compatible and bind a common slot."""
    cdef uint32_t slot
    cdef bint common = False
    for slot in range(width):
        if left[slot] and right[slot]:
            if left[slot] != right[slot]:
                return False
            common = True
    return common

"""Memory for the hot structures; see _memory.pyx."""

from libc.stddef cimport size_t

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define spaseq_prefetch(at) __builtin_prefetch(at)
    #else
    #define spaseq_prefetch(at) ((void)(at))
    #endif
    """
    void prefetch "spaseq_prefetch"(const void* at) noexcept nogil

ctypedef struct Chunk:
    Chunk* next
    size_t size         # bytes of data after this header

# Consecutive cache lines.
ctypedef struct Lines:
    void* block         # the block that contains them
    char* first

cdef enum:
    LINE = 64           # bytes

ctypedef struct Arena:
    Chunk* first        # chunks in the order they are filled; those after `last` are spare
    Chunk* last         # the chunk being filled
    size_t filled       # bytes used of `last`
    size_t used         # bytes allocated since the last reset

cdef void* take(size_t size) noexcept nogil
cdef void* resized(void* block, size_t size) noexcept nogil
cdef void* zeroed(size_t count, size_t size) except NULL nogil
cdef void* longer(void* block, size_t count, size_t size, const char* lacking) except NULL nogil
cdef int no_room(const char* lacking) except -1 nogil
cdef int lines_grow(
    Lines* lines, size_t held, size_t wanted, const char* lacking
) except -1 nogil
cdef void give_back(void* block) noexcept nogil

cdef Chunk* chunk_new(size_t size) noexcept nogil
cdef void chunks_free(Chunk* chunk) noexcept nogil
cdef void* arena_take(Arena* arena, size_t size) noexcept nogil


cdef inline void* arena_piece(Arena* arena, size_t size) noexcept nogil:
    """As `arena_take`, without a call if the current chunk has room."""
    cdef char* piece
    size = (size + 15) & ~<size_t>15
    if arena.last == NULL or arena.last.size - arena.filled < size:
        return arena_take(arena, size)
    piece = <char*>arena.last + sizeof(Chunk) + arena.filled
    arena.filled += size
    arena.used += size
    return piece


cdef void arena_reset(Arena* arena) noexcept nogil
cdef void arena_free(Arena* arena) noexcept nogil

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
    LINE_BYTES = 64     # bytes

ctypedef struct Arena:
    Chunk* first        # chunks in the order they are filled; those after `last` are spare
    Chunk* last         # the chunk being filled
    size_t filled       # bytes used of `last`
    size_t used         # bytes allocated since the last reset

cdef void* mem_alloc(size_t size) noexcept nogil
cdef void* mem_realloc(void* block, size_t size) noexcept nogil
cdef void* mem_calloc(size_t count, size_t size) except NULL nogil
cdef void* mem_grow(void* block, size_t count, size_t size, const char* purpose) except NULL nogil
cdef int raise_no_memory(const char* purpose) except -1 nogil
cdef int lines_grow(
    Lines* lines, size_t held, size_t wanted, const char* purpose
) except -1 nogil
cdef void mem_free(void* block) noexcept nogil

cdef Chunk* chunk_new(size_t size) noexcept nogil
cdef void chunks_free(Chunk* chunk) noexcept nogil
cdef void* arena_alloc_slow(Arena* arena, size_t size) noexcept nogil


cdef inline void* arena_alloc(Arena* arena, size_t size) noexcept nogil:
    """As `arena_alloc_slow`, without a call if the current chunk has room."""
    cdef char* piece
    size = (size + 15) & ~<size_t>15
    if arena.last == NULL or arena.last.size - arena.filled < size:
        return arena_alloc_slow(arena, size)
    piece = <char*>arena.last + sizeof(Chunk) + arena.filled
    arena.filled += size
    arena.used += size
    return piece


cdef void arena_reset(Arena* arena) noexcept nogil
cdef void arena_free(Arena* arena) noexcept nogil

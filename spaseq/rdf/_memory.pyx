# cython: language_level=3, boundscheck=False, wraparound=False
"""Memory that is asked for in blocks and counted.

Every block of the compiled modules comes from here, so that a test can say "nothing was
allocated" and mean it: `requests()` counts all demands on the system so far. Functions
return NULL where there is no memory, or raise a MemoryError, with the GIL or without.

An `Arena` hands out small pieces, aligned to 16 bytes, that are given back all at once.
A reset keeps its chunks, so an arena that is filled and reset again and again stops
asking for memory; chunks grow with the arena. Pieces never move. Cost: constant.

Blocks of a megabyte or more, which a large knowledge base or a large window needs and which are
read here and there, are whole large pages where the system has them: looking up one of a million
rows is then a matter of the memory, and not also of the tables that say where a page is. A block
gets large pages when it is first written, and where it begins at one: so none is moved to a larger
place page by page, as realloc does, but copied.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

cdef extern from *:
    """
    #include <stdlib.h>
    #include <string.h>
    #if defined(__linux__)
    #include <malloc.h>
    #include <sys/mman.h>
    #endif
    #define SPASEQ_LARGE ((size_t)1 << 20)
    #define SPASEQ_PAGE ((size_t)1 << 21)

    static void* spaseq_take(size_t size) {
    #if defined(__linux__) && defined(MADV_HUGEPAGE)
        void* block = NULL;
        if (size >= SPASEQ_LARGE) {
            size = (size + SPASEQ_PAGE - 1) & ~(SPASEQ_PAGE - 1);
            if (posix_memalign(&block, SPASEQ_PAGE, size) != 0)
                return NULL;
            (void)madvise(block, size, MADV_HUGEPAGE);
            return block;
        }
    #endif
        return malloc(size);
    }

    static void* spaseq_resized(void* block, size_t size) {
    #if defined(__linux__) && defined(MADV_HUGEPAGE)
        if (size >= SPASEQ_LARGE) {
            size_t held = block == NULL ? 0 : malloc_usable_size(block);
            void* moved = spaseq_take(size);
            if (moved == NULL)
                return NULL;
            if (held)
                memcpy(moved, block, held < size ? held : size);
            free(block);
            return moved;
        }
    #endif
        return realloc(block, size);
    }
    """
    void* spaseq_take(size_t size) noexcept nogil
    void* spaseq_resized(void* block, size_t size) noexcept nogil
    const size_t LARGE "SPASEQ_LARGE"
    const size_t PAGE "SPASEQ_PAGE"

cdef size_t CHUNK = 1 << 14
cdef size_t ALIGN = 16

cdef int64_t _requests = 0


def requests():
    """How often memory was asked of the system so far."""
    return _requests


cdef void* take(size_t size) noexcept nogil:
    global _requests
    _requests += 1
    return spaseq_take(size)


cdef void* resized(void* block, size_t size) noexcept nogil:
    global _requests
    _requests += 1
    return spaseq_resized(block, size)


cdef int no_room(const char* lacking) except -1 nogil:
    """Raise what says for which thing there is no memory."""
    with gil:
        raise MemoryError(f"no room for {lacking.decode()}")


cdef void* longer(void* block, size_t count, size_t size, const char* lacking) except NULL nogil:
    """A block with room for so many things; what is in it stays, and what comes is not set."""
    cdef void* moved = resized(block, count * size if count * size else 1)
    if moved == NULL:
        no_room(lacking)
    return moved


cdef void* zeroed(size_t count, size_t size) except NULL nogil:
    """Room for some things, all zero; for one where there are none."""
    cdef size_t wanted = (count if count else 1) * size
    cdef void* block = take(wanted)
    if block == NULL:
        no_room(b"more")
    memset(block, 0, wanted)
    return block


cdef int lines_grow(
    Lines* lines, size_t held, size_t wanted, const char* lacking
) except -1 nogil:
    """Room for so many lines of the cache; what the first `held` of them say stays."""
    cdef void* block = longer(NULL, wanted + 1, LINE, lacking)
    cdef char* first = <char*>((<size_t>block + LINE - 1) & ~<size_t>(LINE - 1))
    if held:
        memcpy(first, lines.first, held * LINE)
    give_back(lines.block)
    lines.block, lines.first = block, first
    return 0


cdef void give_back(void* block) noexcept nogil:
    free(block)


cdef Chunk* chunk_new(size_t size) noexcept nogil:
    """A chunk with room for so many bytes or some more, NULL where there is no memory."""
    cdef Chunk* chunk
    size += sizeof(Chunk)
    if size >= LARGE:
        size = (size + PAGE - 1) & ~<size_t>(PAGE - 1)
    chunk = <Chunk*>take(size)
    if chunk != NULL:
        chunk.next = NULL
        chunk.size = size - sizeof(Chunk)
    return chunk


cdef void chunks_free(Chunk* chunk) noexcept nogil:
    """Give a list of chunks back to the system."""
    cdef Chunk* following
    while chunk != NULL:
        following = chunk.next
        give_back(chunk)
        chunk = following


cdef void* arena_take(Arena* arena, size_t size) noexcept nogil:
    """A piece of the arena, NULL where there is no memory."""
    cdef Chunk* chunk
    cdef char* piece
    size = (size + ALIGN - 1) & ~(ALIGN - 1)
    while arena.last == NULL or arena.last.size - arena.filled < size:
        if arena.last != NULL and arena.last.next != NULL:
            # A spare chunk may be too small for this piece: then it stays empty.
            arena.last = arena.last.next
            arena.filled = 0
            continue
        chunk = chunk_new(max(size, CHUNK, min(arena.used // 4, LARGE)))
        if chunk == NULL:
            return NULL
        if arena.last == NULL:
            arena.first = chunk
        else:
            arena.last.next = chunk
        arena.last = chunk
        arena.filled = 0
    piece = <char*>arena.last + sizeof(Chunk) + arena.filled
    arena.filled += size
    arena.used += size
    return piece


cdef void arena_reset(Arena* arena) noexcept nogil:
    """Take everything back, and keep the chunks."""
    arena.last = arena.first
    arena.filled = 0
    arena.used = 0


cdef void arena_free(Arena* arena) noexcept nogil:
    """Give the chunks back to the system."""
    chunks_free(arena.first)
    arena.first = NULL
    arena.last = NULL
    arena.filled = 0
    arena.used = 0

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
place page by page, as realloc does.

What lives as long as a run and doubles now and then is made `longer`: such a block, once it is
large, is a mapping of its own, in front of which stands how long it is. The system makes room
behind it or moves the large pages as they are; nothing is copied, and what comes is touched when it
is used, so that the one event that makes a table longer does not pay for all that will be in it.
"""

from libc.stdint cimport int64_t
from libc.string cimport memmove, memset

cdef extern from *:
    """
    #include <stdlib.h>
    #include <string.h>
    #include <stdint.h>
    #if defined(__linux__)
    #include <malloc.h>
    #include <sys/mman.h>
    #endif
    #define SPASEQ_LARGE ((size_t)1 << 20)
    #define SPASEQ_PAGE ((size_t)1 << 21)
    #if defined(__GLIBC__) && defined(MADV_HUGEPAGE) && defined(MREMAP_MAYMOVE)
    #if !defined(__SANITIZE_ADDRESS__)  /* it watches what malloc gives */
    #define SPASEQ_MAPPED 1
    #endif
    #endif

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

    #if defined(__linux__) && defined(MADV_HUGEPAGE)
    /* What malloc keeps in a block stands in another one from now on. */
    static void* spaseq_moved(void* block, void* other, size_t size) {
        size_t held = block == NULL ? 0 : malloc_usable_size(block);
        if (other == NULL)
            return NULL;
        if (held)
            memcpy(other, block, held < size ? held : size);
        free(block);
        return other;
    }
    #endif

    static void* spaseq_resized(void* block, size_t size) {
    #if defined(__linux__) && defined(MADV_HUGEPAGE)
        if (size >= SPASEQ_LARGE)
            return spaseq_moved(block, spaseq_take(size), size);
    #endif
        return realloc(block, size);
    }

    #if defined(SPASEQ_MAPPED)
    /* Stands in front of a mapped block; the mark says that it is one. There malloc keeps how long
       a block is: no such number has the highest bit. */
    typedef struct { size_t size; uint64_t mark; } spaseq_head;
    #define SPASEQ_FRONT ((size_t)1 << 16)
    #define SPASEQ_MAPPED_FROM ((size_t)1 << 18)
    #define SPASEQ_MARK(block) ((uint64_t)1 << 63 | (uint64_t)(uintptr_t)(block))

    static int spaseq_mapped(void* block) {
        return block != NULL && ((uintptr_t)block & (SPASEQ_PAGE - 1)) == 0
            && ((spaseq_head*)block - 1)->mark == SPASEQ_MARK(block);
    }

    static void* spaseq_headed(char* block, size_t size) {
        spaseq_head* head = (spaseq_head*)block - 1;
        head->size = size;
        head->mark = SPASEQ_MARK(block);
        if (size > SPASEQ_PAGE)
            (void)madvise(block - SPASEQ_FRONT, SPASEQ_FRONT + size, MADV_HUGEPAGE);
        return block;
    }

    /* Addresses for so many bytes that begin at a large page, with room for the head. */
    static char* spaseq_addresses(size_t size) {
        size_t total = SPASEQ_FRONT + size + SPASEQ_PAGE;
        char* from = (char*)mmap(
            NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *first, *block;
        if (from == (char*)MAP_FAILED)
            return NULL;
        block = (char*)(
            ((uintptr_t)from + SPASEQ_FRONT + SPASEQ_PAGE - 1) & ~(uintptr_t)(SPASEQ_PAGE - 1));
        first = block - SPASEQ_FRONT;
        if (first != from)
            munmap(from, (size_t)(first - from));
        if (block + size != from + total)
            munmap(block + size, (size_t)(from + total - (block + size)));
        return block;
    }

    static void* spaseq_longer_mapping(char* block, size_t size) {
        size_t held = SPASEQ_FRONT + ((spaseq_head*)block - 1)->size;
        char *from = block - SPASEQ_FRONT, *to;
        if (SPASEQ_FRONT + size <= held)
            return block;
        if (mremap(from, held, SPASEQ_FRONT + size, 0) != MAP_FAILED)
            return spaseq_headed(block, size);
        to = spaseq_addresses(size);
        if (to == NULL)
            return NULL;
        /* Where it fails, the addresses may be somebody else's by now: they are not given back. */
        if (mremap(from, held, SPASEQ_FRONT + size, MREMAP_MAYMOVE | MREMAP_FIXED,
                   to - SPASEQ_FRONT) == MAP_FAILED)
            return NULL;
        return spaseq_headed(to, size);
    }
    #endif

    static void* spaseq_longer(void* block, size_t size) {
    #if defined(SPASEQ_MAPPED)
        size_t step = size > SPASEQ_PAGE ? SPASEQ_PAGE : SPASEQ_FRONT;
        size_t whole = (size + step - 1) & ~(step - 1);
        if (spaseq_mapped(block))
            return spaseq_longer_mapping((char*)block, whole);
        if (size >= SPASEQ_MAPPED_FROM) {
            char* made = (char*)spaseq_moved(block, spaseq_addresses(whole), size);
            return made == NULL ? NULL : spaseq_headed(made, whole);
        }
    #endif
        return spaseq_resized(block, size);
    }

    static void spaseq_give_back(void* block) {
    #if defined(SPASEQ_MAPPED)
        if (spaseq_mapped(block)) {
            size_t size = ((spaseq_head*)block - 1)->size;
            munmap((char*)block - SPASEQ_FRONT, SPASEQ_FRONT + size);
            return;
        }
    #endif
        free(block);
    }
    """
    void* spaseq_take(size_t size) noexcept nogil
    void* spaseq_resized(void* block, size_t size) noexcept nogil
    void* spaseq_longer(void* block, size_t size) noexcept nogil
    void spaseq_give_back(void* block) noexcept nogil
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
    """A block with room for so many things; what is in it stays, and what comes is not set.

    A block that has been made longer is made longer by this again, never `resized`.
    """
    global _requests
    _requests += 1
    cdef void* moved = spaseq_longer(block, count * size if count * size else 1)
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
    cdef size_t before = lines.first - <char*>lines.block
    cdef char* block = <char*>longer(lines.block, wanted + 1, LINE, lacking)
    cdef char* first = <char*>((<size_t>block + LINE - 1) & ~<size_t>(LINE - 1))
    if held and first != block + before:
        memmove(first, block + before, held * LINE)
    lines.block, lines.first = block, first
    return 0


cdef void give_back(void* block) noexcept nogil:
    spaseq_give_back(block)


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

"""The memory allocator of the compiled modules: counted blocks, arenas, large pages.

Every block of the compiled modules comes from here, so that a test can assert that nothing was
allocated: `requests()` counts all allocations. Functions return NULL if there is no memory, or
raise a MemoryError, with or without the GIL.

An `Arena` allocates small pieces, aligned to 16 bytes, which are freed all at once. A reset retains
its chunks, so an arena that is filled and reset repeatedly stops allocating; chunks grow with the
arena. Pieces never move. Cost: constant.

Blocks of a megabyte or more, which a large knowledge base or window needs and accesses at random,
use huge pages if the system has them, which avoids TLB misses. A block gets huge pages when it is
first written, and only if it is aligned to one, so such blocks are copied to aligned memory instead
of grown by realloc.

Tables that live as long as a run and double occasionally are grown by `mem_grow`. A large one is a
mapping of its own, preceded by a header with its size. The system extends the mapping or moves its
pages without copying, and new pages are touched only when used, so the event that grows a table
does not pay for its whole memory.
"""

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
    #if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they watch malloc */
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
    /* Copy a block of malloc to another one and free it. */
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
    /* The header before a mapped block, with a mark that identifies it. In a block of malloc that
       word is the size, which never has the highest bit. */
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

    /* Reserve `size` bytes aligned to a huge page, with room for the header before them. */
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
        /* If this fails, another thread may have mapped the addresses: they are not unmapped. */
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

    /* Threads count without a lock. */
    static inline int64_t spaseq_counted(int64_t *count, int64_t more) {
        return __atomic_add_fetch(count, more, __ATOMIC_RELAXED);
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
    int64_t counted "spaseq_counted"(int64_t* count, int64_t more) noexcept nogil
    const size_t LARGE "SPASEQ_LARGE"
    const size_t PAGE "SPASEQ_PAGE"

cdef size_t CHUNK = 1 << 14

cdef size_t ALIGN = 16

cdef int64_t _requests = 0


def requests():
    """The number of allocations so far."""
    return counted(&_requests, 0)


cdef void* mem_alloc(size_t size) noexcept nogil:
    counted(&_requests, 1)
    return spaseq_take(size)


cdef void* mem_realloc(void* block, size_t size) noexcept nogil:
    counted(&_requests, 1)
    return spaseq_resized(block, size)


cdef int raise_no_memory(const char* purpose) except -1 nogil:
    """Raise a MemoryError that names the purpose of the memory."""
    with gil:
        raise MemoryError(f"no room for {purpose.decode()}")


cdef void* mem_grow(void* block, size_t count, size_t size, const char* purpose) except NULL nogil:
    """Grow a block to `count` items of `size` bytes; new items are uninitialised.

    A block grown by this function must only be grown by this function, never `mem_realloc`.
    """
    counted(&_requests, 1)
    cdef void* moved = spaseq_longer(block, count * size if count * size else 1)
    if moved == NULL:
        raise_no_memory(purpose)
    return moved


cdef void* mem_calloc(size_t count, size_t size) except NULL nogil:
    """A zeroed block for `count` items of `size` bytes, at least one."""
    cdef size_t wanted = (count if count else 1) * size
    cdef void* block = mem_alloc(wanted)
    if block == NULL:
        raise_no_memory(b"more")
    memset(block, 0, wanted)
    return block


cdef int lines_grow(
    Lines* lines, size_t held, size_t wanted, const char* purpose
) except -1 nogil:
    """Grow to `wanted` cache lines, preserving the first `held` of them."""
    cdef size_t before = lines.first - <char*>lines.block
    cdef char* block = <char*>mem_grow(lines.block, wanted + 1, LINE_BYTES, purpose)
    cdef char* first = <char*>((<size_t>block + LINE_BYTES - 1) & ~<size_t>(LINE_BYTES - 1))
    if held and first != block + before:
        memmove(first, block + before, held * LINE_BYTES)
    lines.block, lines.first = block, first
    return 0


cdef void mem_free(void* block) noexcept nogil:
    spaseq_give_back(block)


cdef Chunk* chunk_new(size_t size) noexcept nogil:
    """A chunk with room for at least `size` bytes, or NULL."""
    cdef Chunk* chunk
    size += sizeof(Chunk)
    if size >= LARGE:
        size = (size + PAGE - 1) & ~<size_t>(PAGE - 1)
    chunk = <Chunk*>mem_alloc(size)
    if chunk != NULL:
        chunk.next = NULL
        chunk.size = size - sizeof(Chunk)
    return chunk


cdef void chunks_free(Chunk* chunk) noexcept nogil:
    """Free a list of chunks."""
    cdef Chunk* following
    while chunk != NULL:
        following = chunk.next
        mem_free(chunk)
        chunk = following


cdef void* arena_alloc_slow(Arena* arena, size_t size) noexcept nogil:
    """Allocate a piece of the arena; NULL if there is no memory."""
    cdef Chunk* chunk
    cdef char* piece
    size = (size + ALIGN - 1) & ~(ALIGN - 1)
    while arena.last == NULL or arena.last.size - arena.filled < size:
        if arena.last != NULL and arena.last.next != NULL:
            # A spare chunk that is too small for this piece stays empty.
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
    """Free all pieces, and retain the chunks."""
    arena.last = arena.first
    arena.filled = 0
    arena.used = 0


cdef void arena_free(Arena* arena) noexcept nogil:
    """Free the chunks."""
    chunks_free(arena.first)
    arena.first = NULL
    arena.last = NULL
    arena.filled = 0
    arena.used = 0

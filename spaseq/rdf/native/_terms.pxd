"""The declarations of _terms.pyx that other modules use."""

cimport cython
from cpython.ref cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport INT64_MAX, INT64_MIN, int16_t, int64_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcmp, memcpy

from spaseq.rdf.native._values cimport Kind

# terms/effort.pxi

cdef enum:
    STEPS_PER_CLOCK_READ = 1 << 14 # steps between two reads of the clock

# The limit of an effort without one: more steps than a run can take.
cdef extern from *:
    const uint64_t ENDLESS "INT64_MAX"

# The steps of one event: `left` counts down to the limit, or to the next read of the clock.
cdef struct Effort:
    uint64_t left
    uint64_t granted    # `left` at the last grant
    uint64_t steps_before # steps of the event before that grant
    uint64_t max_steps  # maximum number of steps of an event
    uint64_t steps_to_clock # steps until the next read of the clock


cdef int check_signals() except -1 nogil
cdef int limit_effort(Effort* effort, uint64_t most) noexcept nogil
cdef bint grant_steps(Effort* effort) except -1 nogil
cdef bint count_steps_slow(Effort* effort, uint64_t count) except -1 nogil


cdef inline int check_signals_rarely(uint32_t turn) except -1 nogil:
    """Check for signals in every 4096th turn of a loop over rows that are counted already."""
    if turn & 0xFFF == 0xFFF:
        check_signals()
    return 0


cdef inline int check_signals_often(uint32_t turn) except -1 nogil:
    """Check for signals in every 16th turn of a loop that makes Python objects."""
    if turn & 0xF == 0xF:
        check_signals()
    return 0


cdef inline int resume_effort(Effort* effort, uint64_t had) noexcept nogil:
    """Continue an event that has taken `had` steps so far."""
    effort.steps_to_clock -= effort.granted - effort.left
    effort.steps_before = had
    effort.granted = effort.left = min(effort.max_steps - had, effort.steps_to_clock)
    return 0


cdef inline int begin_event(Effort* effort) noexcept nogil:
    """Begin the next event at step 0; without a bound, steps are counted across events."""
    if effort.max_steps < ENDLESS:
        resume_effort(effort, 0)
    return 0


cdef inline uint64_t steps_of(const Effort* effort) noexcept nogil:
    """The number of steps of the event so far."""
    return effort.steps_before + effort.granted - effort.left


cdef inline bint count_step(Effort* effort) except -1 nogil:
    """Count one step of the event; False if the limit is reached."""
    if effort.left == 0 and not grant_steps(effort):
        return False
    effort.left -= 1
    return True


cdef inline bint count_steps(Effort* effort, uint64_t count) except -1 nogil:
    """Count `count` steps of the event; False if they exceed the limit."""
    if effort.left < count:
        return count_steps_slow(effort, count)
    effort.left -= count
    return True

# terms/memory.pxi

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

# terms/terms.pxi

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #ifdef __SSE2__
    #include <emmintrin.h>
    #endif
    typedef __int128 spaseq_int128;

    static inline uint64_t spaseq_mix(uint64_t a, uint64_t b) {
        unsigned __int128 product = (unsigned __int128)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }

    /* A hash of some bytes: multiply and fold, sixteen at a time. */
    static inline uint64_t spaseq_hash(const char *text, size_t size) {
        const uint64_t k0 = 0x2d358dccaa6c78a5ULL, k1 = 0x8bb84b93962eacc9ULL;
        uint64_t seed = k0 ^ size, a = 0, b = 0;
        while (size > 16) {
            memcpy(&a, text, 8);
            memcpy(&b, text + 8, 8);
            seed = spaseq_mix(a ^ k1, b ^ seed);
            text += 16;
            size -= 16;
        }
        a = b = 0;
        if (size >= 8) {
            memcpy(&a, text, 8);
            memcpy(&b, text + size - 8, 8);
        } else if (size >= 4) {
            uint32_t low, high;
            memcpy(&low, text, 4);
            memcpy(&high, text + size - 4, 4);
            a = low;
            b = high;
        } else if (size) {
            a = ((uint64_t)(uint8_t)text[0] << 16) | ((uint64_t)(uint8_t)text[size >> 1] << 8)
                | (uint8_t)text[size - 1];
        }
        return spaseq_mix(k1 ^ size, spaseq_mix(a ^ k1, b ^ seed));
    }

    /* The offset of the last quote of a text, which must have one. */
    static inline uint32_t spaseq_last_quote(const char *text, uint32_t size) {
    #ifdef __SSE2__
        const __m128i quote = _mm_set1_epi8('"');
        while (size >= 16) {
            unsigned found = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(
                _mm_loadu_si128((const __m128i *)(text + size - 16)), quote));
            if (found)
                return size - 16 + (31 - (uint32_t)__builtin_clz(found));
            size -= 16;
        }
    #endif
        while (text[size - 1] != '"')
            size--;
        return size - 1;
    }

    /* Copy the terms of a row: most rows are short, and a call would cost more than the copies.
       Terms are copied one by one, since a wide load of words just written separately stalls. */
    static inline void spaseq_copy_row(uint32_t *to, const uint32_t *from, uint32_t width) {
        if (width > 4) {
            memcpy(to, from, width * sizeof(uint32_t));
        } else if (width) {
            to[0] = from[0];
            if (width > 1) {
                to[1] = from[1];
                if (width > 2) {
                    to[2] = from[2];
                    if (width > 3)
                        to[3] = from[3];
                }
            }
        }
    }
    """
    ctypedef long long int128 "spaseq_int128"   # 128 bits, whatever Cython believes
    uint64_t hash_of "spaseq_hash"(const char* text, size_t size) noexcept nogil
    uint32_t last_quote "spaseq_last_quote"(const char* text, uint32_t size) noexcept nogil

# A term number. 0 is no term (unbound). The highest bits say which store has the term's record:
ctypedef uint32_t term_t

cdef enum:
    LOCAL = 0x80000000u         # one event batch
    WINDOWED = 0x40000000u      # the window's terms of a dictionary
    PLACE = 0x3FFFFFFFu         # mask of the record's number; neither bit set: permanent
    NUMERAL = 0x20000000u       # with WINDOWED: a numeral without a record, see numerals.pxi;
                                # no store has that many records

cdef enum:
    FIRST_PART = 4              # bytes before the subject of a triple term
    PARTS_END = 4               # bytes after its object

cdef enum:
    UNDECODED = 100             # the kind of a typed literal that is not yet decoded
    NO_ZONE = 32767

# The part of a value that depends on its kind.
cdef union Further:
    double real         # FLOAT, DOUBLE: the value; DECIMAL, WIDE: the nearest double
    int64_t months      # SPAN

cdef struct TermRecord:
    uint64_t hash       # of text[:size]
    const char* text    # as in N-Quads, escapes resolved: <iri>, _:label, "form", "form"@tag,
                        # "form"^^<datatype>, <<( s p o )>>; tags in lower case, never
                        # ^^xsd:string, one space between the parts of a triple term
    uint32_t size       # bytes of text
    uint32_t lexical    # bytes of the IRI, label or lexical form alone
    uint8_t kind        # a Kind of _values, or UNDECODED
    uint8_t form        # POINT, SPAN: which datatype (see _literals.pxd)
    int16_t zone        # POINT: minutes, or NO_ZONE
    uint32_t epoch      # windowed terms: the epoch that last used the term; terms of a batch:
                        # their last number in the window
    uint64_t given      # the stamp of that number, see WindowTerms; 0: none, or freed
    Further further
    int128 exact        # BOOLEAN, INTEGER: the number; DECIMAL: times 10**18; else attoseconds

cdef extern from *:
    void copy_row "spaseq_copy_row"(term_t* to, const term_t* row, uint32_t width) noexcept nogil

# Invariant: records[0] is unused, so that no term has the number 0.
cdef struct TermStore:
    TermRecord* records     # records[1:count]; growth moves them
    uint32_t count
    uint32_t room
    Arena bytes             # texts that are in no other buffer

cdef struct Slot:
    uint32_t tag        # the lower half of the hash; tag & mask is the start of the probe sequence
    term_t term         # 0: empty

cdef struct SlotTable:
    Slot* slots         # mask + 1 of them, never more than half full
    uint32_t mask
    uint32_t used

cdef extern from *:
    """
    /* Other threads may read the records of permanent terms; see dictionary.pxi. */
    #define spaseq_records(store) __atomic_load_n(&(store)->records, __ATOMIC_RELAXED)
    #define spaseq_publish_records(store, made) \\
        __atomic_store_n(&(store)->records, made, __ATOMIC_RELEASE)
    """
    TermRecord* shared_records "spaseq_records"(TermStore* store) noexcept nogil
    void publish_records "spaseq_publish_records"(
        TermStore* store, TermRecord* records
    ) noexcept nogil


cdef int slots_init(SlotTable* table, uint32_t capacity) except -1 nogil
cdef void slots_free(SlotTable* table) noexcept nogil
cdef int slots_grow(SlotTable* table) except -1 nogil


cdef inline bint record_is(
    const TermRecord* record, uint64_t hash, const char* text, uint32_t size
) noexcept nogil:
    return record.hash == hash and record.size == size and memcmp(record.text, text, size) == 0


cdef inline bint is_triple(const char* text) noexcept nogil:
    """Whether the text of a term is that of a triple term."""
    return text[0] == c"<" and text[1] == c"<"


cdef inline uint32_t second_part(const char* text) noexcept nogil:
    """Where the predicate of a triple term begins; the subject begins at `FIRST_PART`.

    Subjects and predicates have no spaces: they are IRIs and blank nodes.
    """
    cdef uint32_t at = FIRST_PART
    while text[at] != c" ":
        at += 1
    return at + 1


cdef inline uint32_t third_part(const char* text, uint32_t second) noexcept nogil:
    """Where the object of a triple term begins; it ends `PARTS_END` bytes before the end."""
    cdef uint32_t at = second
    while text[at] != c" ":
        at += 1
    return at + 1


cdef inline bint has_blank(const char* text, uint32_t size) noexcept nogil:
    """Whether a term is a blank node, or a triple term with one."""
    cdef uint32_t third
    while is_triple(text):
        if text[FIRST_PART] == c"_":
            return True
        third = third_part(text, second_part(text))
        text += third
        size -= third + PARTS_END
    return text[0] == c"_"


cdef inline void record_shape(TermRecord* record) noexcept nogil:
    """Set `lexical` and `kind` from the text; a typed literal stays UNDECODED."""
    cdef const char* text = record.text
    cdef uint32_t end = record.size
    if text[0] == c'<':
        record.kind = Kind.TRIPLE if is_triple(text) else Kind.IRI
        record.lexical = end - 2
    elif text[0] == c'_':
        record.kind = Kind.BLANK
        record.lexical = end - 2
    elif text[end - 1] == c'"':
        record.kind = Kind.STRING
        record.lexical = end - 2
    else:
        record.kind = UNDECODED if text[end - 1] == c'>' else Kind.LANG
        record.lexical = last_quote(text, end) - 1


cdef inline void slots_put(SlotTable* table, uint32_t tag, term_t term) noexcept nogil:
    """Insert a term whose text is not in the table; there must be room."""
    cdef uint32_t place = tag & table.mask
    while table.slots[place].term:
        place = (place + 1) & table.mask
    slots_put_at(table, place, tag, term)


cdef inline void slots_put_at(
    SlotTable* table, uint32_t place, uint32_t tag, term_t term
) noexcept nogil:
    """As `slots_put`, at the empty slot that `slots_next` has reached in the unchanged table."""
    cdef Slot* slot = &table.slots[place & table.mask]
    slot.tag, slot.term = tag, term
    table.used += 1


cdef inline term_t slots_next(const SlotTable* table, uint32_t tag, uint32_t* place) noexcept nogil:
    """The next term with this tag, or 0; `place` starts as the tag."""
    cdef const Slot* slot
    while True:
        slot = &table.slots[place[0] & table.mask]
        if slot.term == 0:
            return 0
        place[0] += 1
        if slot.tag == tag:
            return slot.term


cdef inline void slots_remove(SlotTable* table, uint32_t tag, term_t term) noexcept nogil:
    """Remove a term that is in the table, by backward-shift deletion."""
    cdef uint32_t gap = tag & table.mask
    cdef uint32_t place
    while table.slots[gap].term != term:
        gap = (gap + 1) & table.mask
    place = (gap + 1) & table.mask
    while table.slots[place].term:
        # It may move to the gap if that is within its probe sequence.
        if ((place - table.slots[place].tag) & table.mask) >= ((place - gap) & table.mask):
            table.slots[gap] = table.slots[place]
            gap = place
        place = (place + 1) & table.mask
    table.slots[gap].term = 0
    table.used -= 1

# Times and durations in microseconds: sums that remain representable.
#
# A time that lies outside 64 bits counts as the nearest one inside. Durations are not negative. All
# compiled code that moves a time by a duration, or rounds one, does so here.


cdef inline int64_t later(int64_t micros, int64_t duration) noexcept nogil:
    """The time a duration after another one, at most the greatest time."""
    return INT64_MAX if micros > INT64_MAX - duration else micros + duration


cdef inline int64_t earlier(int64_t micros, int64_t duration) noexcept nogil:
    """The time a duration before another one, at least the least time."""
    return INT64_MIN if micros < INT64_MIN + duration else micros - duration


cdef inline bint is_beyond(int64_t micros, int64_t since, int64_t duration) noexcept nogil:
    """Whether a time lies more than a duration after another one."""
    return since <= INT64_MAX - duration and micros > since + duration


cdef inline int64_t since_multiple(int64_t micros, int64_t duration) noexcept nogil:
    """The time since the last multiple of a duration: less than the duration, not negative."""
    return micros % duration

# terms/numerals.pxi

cdef extern from *:
    """
    static const double spaseq_powers[8] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    static const int64_t spaseq_rests[8] = {
        1000000000000000000, 100000000000000000, 10000000000000000, 1000000000000000,
        100000000000000, 10000000000000, 1000000000000, 100000000000
    };
    """
    const double[8] POWERS "spaseq_powers"
    const int64_t[8] RESTS "spaseq_rests"       # 10**18 / 10**places, for exact decimals

# After the tag bits of numerals, one bit says whether it is a decimal. An integer follows as its
# value plus OFFSET; a decimal as the number of fractional digits (3 bits), and all digits as a
# number plus DIGITS_OFFSET.
cdef enum:
    FRACTIONAL = 0x10000000
    OFFSET = 0x08000000
    DIGITS_OFFSET = 0x01000000
    MOST_PLACES = 7
    NUMERAL_SIZE = 64       # bytes that suffice for the text of any numeral

# The record of a numeral, and its text.
cdef struct Numeral:
    TermRecord record
    char[NUMERAL_SIZE] text


cdef const TermRecord* spell(Numeral* to, term_t numeral) noexcept nogil


cdef inline bint is_numeral(term_t term) noexcept nogil:
    return term >> 29 == (WINDOWED | NUMERAL) >> 29


cdef inline uint32_t places_of(term_t numeral) noexcept nogil:
    """The number of fractional digits, 0 for an integer."""
    return numeral >> 25 & 7 if numeral & FRACTIONAL else 0


cdef inline int64_t digits_of(term_t numeral) noexcept nogil:
    """The number without its decimal point."""
    if numeral & FRACTIONAL:
        return <int64_t>(numeral & 2 * DIGITS_OFFSET - 1) - DIGITS_OFFSET
    return <int64_t>(numeral & 2 * OFFSET - 1) - OFFSET


@cython.cdivision(True)
cdef inline double real_of(term_t numeral) noexcept nogil:
    """The number as a double, rounded once, since both operands are exact."""
    return <double>digits_of(numeral) / POWERS[places_of(numeral)]


cdef inline int128 exact_of(term_t numeral) noexcept nogil:
    """The number as stored in records: a decimal times 10**18."""
    if numeral & FRACTIONAL:
        return <int128>digits_of(numeral) * RESTS[places_of(numeral)]
    return digits_of(numeral)

# terms/dictionary.pxi

cdef extern from *:
    """
    /* A table of words. It is replaced as a whole when it grows, so that its mask and its words
       agree for a thread that reads it meanwhile. */
    typedef struct { uint64_t mask; uint64_t at[1]; } spaseq_words;

    static inline spaseq_words *spaseq_loaded(spaseq_words *const *place) {
        return __atomic_load_n(place, __ATOMIC_ACQUIRE);
    }
    static inline void spaseq_publish(spaseq_words **place, spaseq_words *table) {
        __atomic_store_n(place, table, __ATOMIC_RELEASE);
    }
    static inline uint64_t spaseq_word(const uint64_t *word) {
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    }
    static inline void spaseq_set_word(uint64_t *word, uint64_t value) {
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
    }
    """
    ctypedef struct Words "spaseq_words":
        uint64_t mask           # the number of words, a power of two, minus one
        uint64_t* at
    Words* loaded "spaseq_loaded"(Words** place) noexcept nogil
    void publish "spaseq_publish"(Words** place, Words* table) noexcept nogil
    uint64_t word_at "spaseq_word"(const uint64_t* word) noexcept nogil
    void set_word "spaseq_set_word"(uint64_t* word, uint64_t value) noexcept nogil

cdef enum:
    LONGEST_NAME = 48   # bytes at the end of an IRI in which its local name is searched
    NEAR = 512          # words of hints that stay in the L1 cache: 4 KB


cdef class Dictionary:
    cdef TermStore permanent
    cdef Words* slots               # the permanent terms by text: see `slot_of`; 0 is empty
    cdef Words* hints               # a Bloom filter in front of `slots`; see dictionary.pxi
    cdef uint64_t[8] families       # a bit for each family of terms, see `family_of`
    cdef list objects               # per permanent record: its pyoxigraph term, or None
    cdef uint32_t readers           # the threads that look terms up meanwhile, see `share`
    cdef void** retired             # blocks that these threads may still read
    cdef uint32_t retired_count, retired_room

    cdef term_t search(self, uint64_t hash, const char* text, uint32_t size) noexcept nogil
    cdef int _grow_slots(self) except -1
    cdef int _grow_hints(self) except -1
    cdef int _grow_records(self) except -1
    cdef int _retire(self, void* block) except -1
    cdef term_t enter(self, bytes text) except 0
    cpdef term_t intern(self, object term) except 0
    cpdef object term(self, term_t number)


cdef inline void awaited(Dictionary dictionary, uint64_t hash) noexcept nogil:
    """Prefetch the hint for a term with this hash, which may be looked up next."""
    cdef Words* hints = loaded(&dictionary.hints)
    prefetch(&hints.at[(hash >> 40) & hints.mask])


cdef inline uint64_t hint_of(uint64_t hash) noexcept nogil:
    """Three bits of a word, from bits of the hash that most tables do not use."""
    return (
        (<uint64_t>1 << (hash >> 22 & 63))
        | (<uint64_t>1 << (hash >> 28 & 63))
        | (<uint64_t>1 << (hash >> 34 & 63))
    )


cdef inline uint32_t family_of(const char* text, uint32_t size) noexcept nogil:
    """The family of a term, one of 512: equal for literals of a datatype, and IRIs of a namespace.

    It is a hash of the end of the datatype, or of the last bytes of the namespace. All other terms
    of one kind have the same family.
    """
    cdef uint64_t end
    cdef uint32_t at = size - 1, least = 8
    if size < 10 or text[0] == c"_":
        return text[0]
    if text[0] == c"<":
        least = max(least, size - min(size, <uint32_t>LONGEST_NAME))
        while at > least and text[at] != c"/" and text[at] != c"#" and text[at] != c":":
            at -= 1
    elif text[at] != c">":
        return text[0]
    memcpy(&end, text + at - 7, 8)
    return <uint32_t>(end * 0x9E3779B97F4A7C15u >> 55)


cdef inline term_t permanent_of(
    Dictionary dictionary, uint64_t hash, const char* text, uint32_t size
) noexcept nogil:
    """The number of the permanent term with this text, or 0."""
    cdef uint64_t hint = hint_of(hash)
    cdef Words* hints = loaded(&dictionary.hints)
    cdef Words* slots
    cdef uint32_t family
    if hints.mask >= NEAR:
        family = family_of(text, size)
        if not word_at(&dictionary.families[family >> 6]) >> (family & 63) & 1:
            return 0
        # Overlaps with the read of the hint, which suffices for most terms.
        slots = loaded(&dictionary.slots)
        prefetch(&slots.at[<uint32_t>hash & slots.mask])
    if word_at(&hints.at[(hash >> 40) & hints.mask]) & hint != hint:
        return 0
    return dictionary.search(hash, text, size)


cpdef bytes text_of(object term)
cpdef object term_of(bytes text, uint32_t lexical)
cdef object written_term(bytes text)

# terms/batch.pxi

cdef struct Triple:
    term_t subject
    term_t predicate
    term_t object

cdef struct EventRecord:
    int64_t micros          # its time
    uint64_t line           # its first line in the file, 0 if it was not read from one
    uint32_t first          # its triples are triples[first:end], possibly with duplicates
    uint32_t end
    uint32_t statements     # statements read, including pruned ones
    uint32_t ordinal
    term_t name             # of its graph, 0 for none
    term_t stamp            # the literal the time was read from, 0 for none
    term_t moment           # the time as a term, 0 until first used (see `moment`)
    uint8_t domain          # 0: the time is a number, 1: a date


cdef class EventBatch:
    cdef readonly Dictionary dictionary
    cdef TermStore local            # terms that are not permanent
    cdef SlotTable known            # the terms of the batch by text, including permanent ones
    cdef Triple* triples
    cdef uint32_t triple_count, triple_room
    cdef EventRecord* events
    cdef uint32_t event_count, event_room
    cdef list buffers               # the bytes objects that records of `local` point into
    cdef uint32_t version           # of the dictionary when the batch was started
    cdef readonly uint64_t serial   # unique to the current contents of the batch
    cdef TermStore* window          # of the run that processes the batch, else NULL
    cdef public str stream          # the IRI of the events' stream
    cdef public str file            # the file they were read from, "" for none

    cdef term_t enter(
        self, uint64_t hash, const char* text, uint32_t size, bint copied
    ) except 0 nogil
    cdef int add_triple(self, term_t subject, term_t predicate, term_t object) except -1 nogil
    cdef EventRecord* add_event(self) except NULL nogil
    cdef int prepare(self, EventBatch other) except -1
    cdef int _renew(self) noexcept
    cdef term_t encode(self, object term) except 0
    cdef term_t moment(self, uint32_t event) except 0 nogil
    cpdef object term(self, term_t number)
    cdef uint32_t _checked(self, object index) except? 0xFFFFFFFF


cdef inline TermRecord* record_of(EventBatch batch, term_t term) noexcept nogil:
    """The record of a local, permanent or window term; not for numerals.

    Interning may move the record.
    """
    if term & LOCAL:
        return &batch.local.records[term ^ LOCAL]
    if term & WINDOWED:
        return &batch.window.records[term ^ WINDOWED]
    return shared_records(&batch.dictionary.permanent) + term


cdef inline const TermRecord* written_record(
    EventBatch batch, term_t term, Numeral* numeral
) noexcept nogil:
    """Like `record_of`, but the record of a numeral is written to `numeral`."""
    return spell(numeral, term) if is_numeral(term) else record_of(batch, term)


cdef inline term_t known_term(
    EventBatch batch, uint64_t hash, const char* text, uint32_t size
) noexcept nogil:
    """The number of a term that is in the batch's table, else 0; numerals are not in it."""
    cdef uint32_t place = <uint32_t>hash
    cdef term_t term
    awaited(batch.dictionary, hash)
    while True:
        term = slots_next(&batch.known, <uint32_t>hash, &place)
        if term == 0 or record_is(record_of(batch, term), hash, text, size):
            return term

# terms/window_terms.pxi

# A range of the stream, and the texts of the terms whose last use is in it.
cdef struct Epoch:
    Arena bytes
    int64_t last        # the greatest position in it
    uint32_t* listed    # `count` terms: at least those whose last use is in this epoch
    uint32_t count
    uint32_t room


cdef class WindowTerms:
    cdef TermStore store
    cdef SlotTable slots
    cdef uint32_t free_record       # first of the free records, linked by `size`; 0: none
    cdef PyObject** objects         # per record: its pyoxigraph term; NULL until first used
    cdef uint32_t object_room
    cdef uint32_t object_count      # the number of objects that are not NULL
    cdef Epoch* epochs              # a ring: epoch e is at e % EPOCH_RING_SIZE, oldest to current
    cdef uint32_t oldest
    cdef uint32_t current
    cdef int64_t horizon
    cdef int64_t epoch_end          # the position at which the current epoch ends
    cdef bint started
    cdef readonly uint64_t entered  # uses of terms so far
    cdef readonly uint32_t live     # terms currently in the window
    cdef uint64_t stamp             # under one stamp, no number is assigned to two terms

    cdef int advance_epochs(self, int64_t position) except -1 nogil
    cdef inline int advance_to(self, int64_t position) except -1 nogil:
        """Like `advance_epochs`, with a fast path for positions in the current epoch."""
        if position < self.epoch_end and self.started:
            return 0
        return self.advance_epochs(position)
    cdef inline uint32_t cached_number(self, const TermRecord* wanted) noexcept nogil:
        """The last window number of a term of a batch, if it is still valid; else 0."""
        cdef uint32_t number = wanted.epoch
        if number < self.store.count and self.store.records[number].given == wanted.given:
            return number
        return 0
    cdef inline term_t intern(self, EventBatch batch, term_t term) except 0 nogil:
        """Use a term of a batch in the window and return its number there.

        Numbers of permanent terms and numerals do not change.
        """
        cdef uint32_t number
        if not term & LOCAL:
            return term
        self.entered += 1
        number = self.cached_number(record_of(batch, term))
        if number and self.store.records[number].epoch == self.current:
            return WINDOWED | number
        return self.intern_uncached(batch, term, number)
    cdef term_t intern_uncached(self, EventBatch batch, term_t term, uint32_t number) except 0 nogil
    cdef inline int renew(self, term_t term) except -1 nogil:
        """As `intern`, for a number that `lookup` has just returned for a term of the event."""
        self.entered += 1
        if is_numeral(term) or self.store.records[term ^ WINDOWED].epoch == self.current:
            return 0
        return self.move_to_current(term ^ WINDOWED)
    cdef int move_to_current(self, uint32_t number) except -1 nogil
    cdef term_t intern_text(self, const char* text, uint32_t size) except 0 nogil
    cdef inline term_t lookup(self, EventBatch batch, term_t term) noexcept nogil:
        """The number that `intern` would return if the window has the term; else the batch's one.

        For comparisons within the current event: different terms have different numbers.
        """
        cdef uint32_t number
        if not term & LOCAL:
            return term
        number = self.cached_number(record_of(batch, term))
        return WINDOWED | number if number else self.lookup_uncached(batch, term)
    cdef term_t lookup_uncached(self, EventBatch batch, term_t term) noexcept nogil
    cdef int _grow_objects(self) except -1
    cdef int _free_objects(self, const Epoch* epoch, uint32_t present) except -1
    cdef int64_t _end_of_epoch(self, int64_t position) noexcept nogil
    cdef int _free_epochs(self, uint32_t up_to) except -1 nogil
    cdef object term(self, term_t number)

# terms/relevance.pxi

cdef enum Keep:
    NOTHING     # no query can use a triple of this predicate
    EVERY       # some query may use any triple of this predicate
    SOME        # queries can use only triples with certain objects


cdef class Relevance:
    cdef readonly Dictionary dictionary
    cdef readonly bint everything   # some pattern may use any triple
    cdef uint32_t* by_predicate     # per permanent term below `size`: a Keep, or SOME + its number
    cdef term_t size
    cdef uint32_t* by_object        # per permanent term below `objects`: a set of numbers
    cdef term_t objects
    cdef uint8_t* sets              # a bit for each number, in `width` bytes; the first has none
    cdef uint32_t width

    cdef int _enter_objects(self, dict predicates_of, uint32_t width) except -1


cdef inline Keep keep_of(Relevance relevance, term_t predicate) noexcept nogil:
    """Which triples with this predicate to store; the predicate may be any term number, or 0."""
    if relevance.everything:
        return Keep.EVERY
    if predicate >= relevance.size:
        return Keep.NOTHING
    return <Keep>min(relevance.by_predicate[predicate], <uint32_t>Keep.SOME)


cdef inline bint keeps_object(Relevance relevance, term_t predicate, term_t value) noexcept nogil:
    """Whether to store a triple whose predicate has Keep.SOME."""
    cdef uint32_t number = relevance.by_predicate[predicate] - Keep.SOME
    if value >= relevance.objects:
        return False
    return relevance.sets[
        relevance.by_object[value] * <size_t>relevance.width + number // 8
    ] >> number % 8 & 1

# terms/sequence.pxi

# The position of an event: a batch of the sequence, and the index in it.
cdef struct Position:
    uint32_t batch
    uint32_t index


@cython.final
cdef class EventSequence:
    cdef readonly list batches
    cdef PyObject** batch_at        # the same, as borrowed pointers
    cdef Position* positions        # NULL: all events of the only batch
    cdef uint32_t count
    cdef uint32_t room

    cdef inline Position at(self, uint32_t number) noexcept nogil:
        """The position of an event."""
        cdef Position found
        if self.positions != NULL:
            return self.positions[number]
        found.batch, found.index = 0, number
        return found
    cdef int append(self, uint32_t batch, uint32_t index) except -1
    cdef uint32_t _checked(self, object number) except? 0xFFFFFFFF

"""Texts of terms and times → JSON, as `spaseq.results.data` and `json.dumps` write them.

A `Text` owns its growing buffer, which its creator frees. Texts of terms are those of records
(`spaseq.rdf.native._terms`): N-Quads with escapes resolved, in UTF-8. Cost: linear.
"""

from libc.stdint cimport uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy

from spaseq.rdf.native._literals cimport civil
from spaseq.rdf.native._terms cimport (
    FIRST_PART,
    PARTS_END,
    last_quote,
    mem_realloc,
    second_part,
    third_part,
)
from spaseq.rdf.time_text import EPOCH_DAY, date_time_text
from spaseq.results import keys

cdef enum:
    MAX_DIGITS = 20     # decimal digits of a 64-bit number

cdef int64_t SECOND = 1000000

cdef int64_t DAY = 86400 * SECOND

cdef int64_t FIRST_DAY = EPOCH_DAY

cdef bytes OPEN_IRI = f'{{"{keys.TYPE}": "{keys.URI}", "{keys.VALUE}": '.encode()

cdef bytes OPEN_BLANK_NODE = f'{{"{keys.TYPE}": "{keys.BLANK_NODE}", "{keys.VALUE}": '.encode()

cdef bytes OPEN_LITERAL = f'{{"{keys.TYPE}": "{keys.LITERAL}", "{keys.VALUE}": '.encode()

cdef bytes OPEN_TRIPLE = (
    f'{{"{keys.TYPE}": "{keys.TRIPLE}", "{keys.VALUE}": {{"{keys.SUBJECT}": '.encode()
)

cdef bytes PREDICATE = keys.following(keys.PREDICATE)

cdef bytes OBJECT = keys.following(keys.OBJECT)

cdef bytes DATATYPE = keys.following(keys.DATATYPE)

cdef bytes LANGUAGE = keys.following(keys.LANGUAGE)

cdef bytes DIRECTION = keys.following(keys.DIRECTION)

# The day that was written last, which most times share.
cdef struct Day:
    int64_t number      # since the epoch
    bint known
    char[11] date       # with the `T`

cdef Day last

last.known = False


cdef char* widen(Text* text, size_t size) except NULL:
    """Allocate room for `size` more bytes and return their address."""
    cdef char* moved = <char*>mem_realloc(text.begin, 2 * (text.size + size))
    if moved == NULL:
        raise MemoryError
    text.begin = moved
    text.room = 2 * (text.size + size)
    return text.begin + text.size


cdef int put_number(Text* text, int64_t number) except -1:
    cdef char[MAX_DIGITS + 1] digits
    cdef uint64_t rest = <uint64_t>number if number >= 0 else 0 - <uint64_t>number
    cdef int first = MAX_DIGITS + 1
    while True:
        first -= 1
        digits[first] = <char>(c"0" + rest % 10)
        rest //= 10
        if rest == 0:
            break
    if number < 0:
        first -= 1
        digits[first] = c"-"
    return put(text, digits + first, MAX_DIGITS + 1 - first)


cdef int put_string(Text* text, const char* what, size_t size) except -1:
    """Append a JSON string with its quotes."""
    # An escaped byte has at most six characters.
    cdef char* begin = room_for(text, 6 * size + 2)
    cdef char* out = begin
    cdef unsigned char letter
    cdef size_t plain
    out[0] = c'"'
    out += 1
    while True:
        plain = plain_bytes(what, size, JSON)
        copy_bytes(out, what, plain)
        out += plain
        if plain == size:
            break
        letter = <unsigned char>what[plain]
        what += plain + 1
        size -= plain + 1
        out[0] = c"\\"
        out[1] = (
            c"n" if letter == c"\n" else c"r" if letter == c"\r" else c"t" if letter == c"\t"
            else c"b" if letter == 8 else c"f" if letter == 12 else <char>letter
        )
        if out[1] < 0x20:
            snprintf(out + 1, 6, b"u%04x", <int>letter)
            out += 4
        out += 2
    out[0] = c'"'
    text.size += out + 1 - begin
    return 0


cdef int put_name(Text* text, const char* term, size_t size) except -1:
    """Append an IRI, or the label of a blank node with its `_:`."""
    if term[0] == c"<":
        return put_string(text, term + 1, size - 2)
    return put_string(text, term, size)


cdef int put_term(Text* text, const char* term, size_t size) except -1:
    """Append a term in the format of SPARQL's JSON results."""
    cdef size_t quote, end
    cdef uint32_t second, third
    if is_triple(term):
        second = second_part(term)
        third = third_part(term, second)
        put_bytes(text, OPEN_TRIPLE)
        put_term(text, term + FIRST_PART, second - 1 - FIRST_PART)
        put_bytes(text, PREDICATE)
        put_term(text, term + second, third - 1 - second)
        put_bytes(text, OBJECT)
        put_term(text, term + third, size - third - PARTS_END)
        put(text, b"}", 1)
    elif term[0] == c"<":
        put_bytes(text, OPEN_IRI)
        put_string(text, term + 1, size - 2)
    elif term[0] == c"_":
        put_bytes(text, OPEN_BLANK_NODE)
        put_string(text, term + 2, size - 2)
    else:
        # The last quote ends the lexical form: IRIs and language tags contain none.
        quote = last_quote(term, <uint32_t>size)
        put_bytes(text, OPEN_LITERAL)
        put_string(text, term + 1, quote - 1)
        if quote + 1 < size and term[quote + 1] == c"^":
            put_bytes(text, DATATYPE)
            put_string(text, term + quote + 4, size - quote - 5)
        elif quote + 1 < size:
            end = quote + 2
            while end < size and not (
                term[end] == c"-" and end + 1 < size and term[end + 1] == c"-"
            ):
                end += 1
            put_bytes(text, LANGUAGE)
            put_string(text, term + quote + 2, end - quote - 2)
            if end < size:
                # The base direction follows two hyphens.
                put_bytes(text, DIRECTION)
                put_string(text, term + end + 2, size - end - 2)
    return put(text, b"}", 1)


cdef int put_time(Text* text, int64_t micros, bint dated) except -1:
    """Append a date as a string, or a numeric timestamp as a number of seconds."""
    if dated:
        put(text, b'"', 1)
        put_date(text, micros)
        return put(text, b'"', 1)
    if micros % SECOND == 0:
        return put_number(text, micros // SECOND)
    # Python's division rounds correctly beyond the range in which doubles are exact.
    return put_bytes(text, repr(<object>micros / 1_000_000).encode())


cdef int put_date(Text* text, int64_t micros) except -1:
    """Append the canonical UTC form of a time since the epoch, as `date_time_text` writes it."""
    cdef int64_t days = micros // DAY
    cdef uint64_t rest = <uint64_t>(micros - days * DAY)
    cdef uint32_t seconds = <uint32_t>(rest // 1000000u), length = 20
    cdef uint32_t fraction = <uint32_t>(rest % 1000000u)
    cdef char* out
    if not last.known or last.number != days:
        if not _turn_to_day(days):
            return put_bytes(text, date_time_text(micros).encode())
    out = room_for(text, 40)
    memcpy(out, last.date, 11)
    _put_two(out + 11, seconds // 3600)
    _put_two(out + 14, seconds // 60 % 60)
    _put_two(out + 17, seconds % 60)
    out[13] = out[16] = c":"
    if fraction:
        out[19] = c"."
        _put_two(out + 20, fraction // 10000)
        _put_two(out + 22, fraction // 100 % 100)
        _put_two(out + 24, fraction % 100)
        length = 27
        while out[length - 2] == c"0":
            length -= 1
    out[length - 1] = c"Z"
    text.size += length
    return 0


cdef bint _turn_to_day(int64_t days) noexcept:
    """Spell a day; False for one whose year has not four digits."""
    cdef int64_t year
    cdef int month, day
    civil(days + FIRST_DAY, &year, &month, &day)
    if not 0 < year <= 9999:
        return False
    _put_two(last.date, <uint32_t>year // 100)
    _put_two(last.date + 2, <uint32_t>year % 100)
    _put_two(last.date + 5, month)
    _put_two(last.date + 8, day)
    last.date[4] = last.date[7] = c"-"
    last.date[10] = c"T"
    last.number, last.known = days, True
    return True


cdef inline void _put_two(char* out, uint32_t number) noexcept:
    """Write a number below 100 in two digits."""
    out[0] = <char>(c"0" + number // 10)
    out[1] = <char>(c"0" + number % 10)

# cython: language_level=3, boundscheck=False, wraparound=False
"""Texts of terms and times → JSON, as `spaseq.results.data` and `json.dumps` write them.

A `Text` owns its growing buffer, which its creator frees. Texts of terms are those of records
(`spaseq.rdf._terms`): N-Quads with escapes resolved, in UTF-8. Cost: linear.
"""

from libc.stdint cimport uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy

from spaseq.rdf._literals cimport civil
from spaseq.rdf._memory cimport mem_realloc

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
cdef bytes DATATYPE = keys.following(keys.DATATYPE)
cdef bytes LANGUAGE = keys.following(keys.LANGUAGE)
cdef bytes DIRECTION = keys.following(keys.DIRECTION)


cdef char* _more(Text* text, size_t size) except NULL:
    """Make room for `size` more bytes and return their address."""
    cdef char* moved
    if text.size + size > text.room:
        moved = <char*>mem_realloc(text.begin, 2 * (text.size + size))
        if moved == NULL:
            raise MemoryError
        text.begin = moved
        text.room = 2 * (text.size + size)
    return text.begin + text.size


cdef int put(Text* text, const char* what, size_t size) except -1:
    """Append bytes unchanged."""
    if size == 0:
        return 0
    memcpy(_more(text, size), what, size)
    text.size += size
    return 0


cdef int put_bytes(Text* text, bytes what) except -1:
    return put(text, what, len(what))


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
    cdef char* begin = _more(text, 6 * size + 2)
    cdef char* out = begin
    cdef unsigned char letter
    cdef size_t i
    out[0] = c'"'
    out += 1
    for i in range(size):
        letter = <unsigned char>what[i]
        if letter >= 0x20 and letter != c'"' and letter != c"\\":
            out[0] = <char>letter
            out += 1
            continue
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
    cdef size_t quote = size - 1, end
    if term[0] == c"<":
        put_bytes(text, OPEN_IRI)
        put_string(text, term + 1, size - 2)
    elif term[0] == c"_":
        put_bytes(text, OPEN_BLANK_NODE)
        put_string(text, term + 2, size - 2)
    else:
        # The last quote ends the lexical form: IRIs and language tags contain none.
        while term[quote] != c'"':
            quote -= 1
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
    cdef int64_t days = micros // DAY, rest = micros % DAY, year
    cdef int month, day, length, fraction
    cdef char* out
    if not dated:
        if micros % SECOND == 0:
            return put_number(text, micros // SECOND)
        # Python's division rounds correctly beyond the range in which doubles are exact.
        return put_bytes(text, repr(<object>micros / 1_000_000).encode())
    civil(days + FIRST_DAY, &year, &month, &day)
    if not 0 < year <= 9999:
        return put_bytes(text, f'"{date_time_text(micros)}"'.encode())
    out = _more(text, 40)
    fraction = <int>(rest % SECOND)
    rest = rest // SECOND
    length = snprintf(
        out, 40, b'"%04d-%02d-%02dT%02d:%02d:%02d.%06d', <int>year, month, day,
        <int>(rest // 3600), <int>(rest // 60 % 60), <int>(rest % 60), fraction,
    )
    while out[length - 1] == c"0" and fraction:
        length -= 1
    if not fraction:
        length -= 7
    out[length] = c"Z"
    out[length + 1] = c'"'
    text.size += length + 2
    return 0

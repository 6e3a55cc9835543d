# cython: language_level=3, boundscheck=False, wraparound=False
"""Numbers that are their own terms: nothing is entered, kept or forgotten for them.

Streams are full of small numbers that never come again. An xsd:integer or xsd:decimal of few digits
in canonical form has a window's number that is the value itself, in as many bits as there are
besides those that say so. So it is the same in all windows and for all time, and nobody has to look
for its value.

Invariant: whoever gives a window's number to a term asks `numeral_of` first, or one term had two;
a permanent term keeps its number. Cost: constant, and a division for each digit to `spell` one.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy, memset

from spaseq.rdf._literals cimport INTEGER_SIZE, Form, decode_record
from spaseq.rdf._terms cimport UNDECODED, hash_of
from spaseq.rdf._values cimport Kind

cdef const char* OF_INTEGER = b'"^^<http://www.w3.org/2001/XMLSchema#integer>'
cdef const char* OF_DECIMAL = b'"^^<http://www.w3.org/2001/XMLSchema#decimal>'

cdef enum:
    SUFFIX_SIZE = INTEGER_SIZE + 5      # of either
    LONGEST = 10                        # characters of a numeral: a sign, a point, eight digits


cdef bint _is_canonical(const TermRecord* record, const char* suffix) noexcept nogil:
    """Whether a number of a datatype is written as that writes it, but for zeros at its end."""
    cdef const char* text = record.text + 1
    cdef const char* end = text + record.lexical
    cdef uint32_t points = 0
    if record.size != record.lexical + SUFFIX_SIZE + 1 or memcmp(end, suffix, SUFFIX_SIZE) != 0:
        return False
    if text[0] == c'-':
        text += 1
        if text[0] == c'0' and end - text == 1:
            return False
    if text[0] == c'0' and end - text > 1 and text[1] != c'.':
        return False
    if not c'0' <= text[0] <= c'9':
        return False
    while text < end:
        points += text[0] == c'.'
        if text[0] != c'.' and not c'0' <= text[0] <= c'9':
            return False
        text += 1
    return points <= 1


cdef term_t _decimal_of(const TermRecord* record) noexcept nogil:
    """As `numeral_of`, for a decimal."""
    cdef const char* text = record.text + 1
    cdef const char* end = text + record.lexical
    cdef const char* point = NULL
    cdef bint negative = text[0] == c'-'
    cdef int64_t digits = 0
    cdef uint32_t places
    if record.lexical > LONGEST or not _is_canonical(record, OF_DECIMAL):
        return 0
    text += negative
    while text < end:
        if text[0] == c'.':
            point = text
        else:
            digits = 10 * digits + (text[0] - c'0')
        text += 1
    # An integral one has no point in canonical form, and then it is not told from an integer here.
    if point == NULL or end[-1] == c'0' or end[-1] == c'.':
        return 0
    places = <uint32_t>(end - point) - 1
    if places > MOST_PLACES or digits >= DIGITS_OFFSET:
        return 0
    digits = DIGITS_OFFSET - digits if negative else DIGITS_OFFSET + digits
    return WINDOWED | NUMERAL | FRACTIONAL | places << 25 | <uint32_t>digits


cdef term_t numeral_of(TermRecord* record) noexcept nogil:
    """The number that a term of a batch has in any window, 0 where it is given one."""
    cdef int64_t number
    if record.kind == UNDECODED:
        # Of other datatypes, the value may never be asked for.
        if record.size != record.lexical + SUFFIX_SIZE + 1:
            return 0
        decode_record(record)
    if record.kind == Kind.DECIMAL:
        return _decimal_of(record)
    if record.kind != Kind.INTEGER:
        return 0
    number = <int64_t>record.exact
    if number != record.exact or not -OFFSET <= number < OFFSET:
        return 0
    if record.form != Form.WHOLE and not _is_canonical(record, OF_INTEGER):
        return 0
    return WINDOWED | NUMERAL | <uint32_t>(number + OFFSET)


cdef const TermRecord* spell(Numeral* to, term_t numeral) noexcept nogil:
    """Write the text of a numeral; its record points to it."""
    cdef int64_t number = digits_of(numeral)
    cdef uint64_t left = <uint64_t>(number if number >= 0 else -number)
    cdef int64_t places = places_of(numeral)
    cdef char* end = to.text + NUMERAL_SIZE
    cdef char* text = end - SUFFIX_SIZE
    memcpy(text, OF_DECIMAL if places else OF_INTEGER, SUFFIX_SIZE)
    while True:
        text -= 1
        text[0] = <char>(c'0' + <int>(left % 10))
        left //= 10
        places -= 1
        if places == 0:
            text -= 1
            text[0] = c'.'
        elif left == 0 and places < 0:
            break
    if number < 0:
        text -= 1
        text[0] = c'-'
    text -= 1
    text[0] = c'"'
    memset(&to.record, 0, sizeof(TermRecord))
    to.record.text = text
    to.record.size = <uint32_t>(end - text)
    to.record.lexical = to.record.size - SUFFIX_SIZE - 1
    to.record.hash = hash_of(text, to.record.size)
    to.record.kind = Kind.DECIMAL if numeral & FRACTIONAL else Kind.INTEGER
    to.record.exact = exact_of(numeral)
    to.record.further.real = real_of(numeral)
    return &to.record

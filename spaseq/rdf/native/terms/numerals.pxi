"""Numerals: small numbers whose term number encodes the value, without a record in any table.

Streams contain many small numbers that never recur. The term number of an xsd:integer or
xsd:decimal of few digits encodes its digits and the number of fractional digits. It is the same in
all batches and windows, and its value needs no look-up. Integers must be in canonical form. A
decimal may end in zeros, as prices do, since these are among its digits. It has no leading zeros,
no plus sign, and at least one digit on each side of its point. Zero has no sign.

Invariant: a function that assigns a number to a text calls `numeral_of` first, so that no term has
two numbers; a permanent term has its permanent number. Cost: constant; `spell` divides once per
digit.
"""

from libc.string cimport memset

cdef const char* OF_INTEGER = b'"^^<http://www.w3.org/2001/XMLSchema#integer>'

cdef const char* OF_DECIMAL = b'"^^<http://www.w3.org/2001/XMLSchema#decimal>'

cdef enum:
    SUFFIX_SIZE = 45    # bytes of either suffix
    NAME_SIZE = 8       # bytes of the local name and the bracket in it
    LONGEST = 10        # characters of a numeral: a sign, a point, eight digits


cdef term_t numeral_of(const char* text, uint32_t size) noexcept nogil:
    """The term number of a text that is a numeral, else 0; not for permanent terms."""
    cdef const char* at = text + 1
    cdef const char* end = text + size - SUFFIX_SIZE
    cdef const char* point = NULL
    cdef const char* suffix = OF_INTEGER
    cdef bint negative
    cdef int64_t digits = 0
    cdef uint32_t digit, places
    if not SUFFIX_SIZE + 1 < size <= SUFFIX_SIZE + 1 + LONGEST or text[0] != c'"':
        return 0
    if end[SUFFIX_SIZE - NAME_SIZE] == c"d":
        suffix = OF_DECIMAL
    if memcmp(end, suffix, SUFFIX_SIZE) != 0:
        return 0
    negative = at[0] == c"-"
    at += negative
    # At least one digit precedes the point, and there are no leading zeros.
    if at == end or at[0] == c"." or (at[0] == c"0" and end - at > 1 and at[1] != c"."):
        return 0
    while at < end:
        digit = <uint32_t>(at[0] - c"0")
        if digit < 10:
            digits = 10 * digits + digit
        elif at[0] == c"." and point == NULL:
            point = at
        else:
            return 0
        at += 1
    if suffix == OF_INTEGER:
        digits = -digits if negative else digits
        if point != NULL or not -OFFSET <= digits < OFFSET or (negative and digits == 0):
            return 0
        return WINDOWED | NUMERAL | <uint32_t>(digits + OFFSET)
    # A decimal without a point could not be distinguished from an integer.
    if point == NULL:
        return 0
    places = <uint32_t>(end - point) - 1
    if places == 0 or places > MOST_PLACES or digits >= DIGITS_OFFSET or (
        negative and digits == 0
    ):
        return 0
    digits = DIGITS_OFFSET - digits if negative else DIGITS_OFFSET + digits
    return WINDOWED | NUMERAL | FRACTIONAL | places << 25 | <uint32_t>digits


cdef const TermRecord* spell(Numeral* to, term_t numeral) noexcept nogil:
    """Write the text and the record of a numeral."""
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

# cython: language_level=3, boundscheck=False, wraparound=False
"""Integers that are their own numbers: nothing is entered, kept or forgotten for them.

Streams are full of small integers that never come again. One that is written as xsd:integer writes
it, without a sign in front or zeros, has a window's number that is the integer itself, in as many
bits as there are besides those that say so. So it is the same in all windows and for all time, and
what is compared of it is at hand.

Invariant: whoever gives a window's number to a term asks `numeral_of` first, or one term had two;
a permanent term keeps its number. Cost: constant, and a few divisions to `spell` one.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy, memset

from spaseq.rdf._literals cimport INTEGER_SIZE, Form, decode_record
from spaseq.rdf._terms cimport UNDECODED, hash_of
from spaseq.rdf._values cimport Kind

cdef const char* SUFFIX = b'"^^<http://www.w3.org/2001/XMLSchema#integer>'

cdef enum:
    SUFFIX_SIZE = INTEGER_SIZE + 5


cdef bint _is_canonical(const TermRecord* record) noexcept nogil:
    """Whether an integer is written as xsd:integer writes it."""
    cdef const char* text = record.text + 1
    cdef uint32_t size = record.lexical
    if record.size != size + SUFFIX_SIZE + 1:
        return False
    if text[0] == c'-':
        text += 1
        size -= 1
    # A zero is its only digit, and has no sign.
    if not c'0' <= text[0] <= c'9' or (text[0] == c'0' and record.lexical > 1):
        return False
    return memcmp(text + size, SUFFIX, SUFFIX_SIZE) == 0


cdef term_t numeral_of(TermRecord* record) noexcept nogil:
    """The number that a term of a batch has in any window, 0 where it is given one."""
    cdef int64_t number
    if record.kind == UNDECODED:
        decode_record(record)
    if record.kind != Kind.INTEGER:
        return 0
    number = <int64_t>record.exact
    if number != record.exact or not -OFFSET <= number < OFFSET:
        return 0
    if record.form != Form.WHOLE and not _is_canonical(record):
        return 0
    return WINDOWED | NUMERAL | <uint32_t>(number + OFFSET)


cdef const TermRecord* spell(Numeral* to, term_t numeral) noexcept nogil:
    """Write the text of a numeral; its record points to it."""
    cdef int64_t number = integer_of(numeral)
    cdef uint64_t left = <uint64_t>(number if number >= 0 else -number)
    cdef char* end = to.text + NUMERAL_SIZE
    cdef char* text = end - SUFFIX_SIZE
    memcpy(text, SUFFIX, SUFFIX_SIZE)
    while True:
        text -= 1
        text[0] = <char>(c'0' + <int>(left % 10))
        left //= 10
        if left == 0:
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
    to.record.kind = Kind.INTEGER
    to.record.exact = number
    return &to.record

# cython: language_level=3, boundscheck=False, wraparound=False
"""Terms of N-Quads and N-Triples, from the places where they stand in a buffer to numbers.

Certain or ask: a term is accepted where it is known to be right, or where pyoxigraph, which
is asked about what looks unusual (an IRI in brackets, a rare language tag), says so; once
per batch and term. Nothing else is refused here: the answer is only "not sure". A term is
checked only where the table of the batch does not know it, and entered only where it is
wanted. It stays where it is in the buffer, which the batch keeps, unless it has escapes.

Cost: linear in the bytes. Source: RDF 1.2 N-Quads and N-Triples, section on grammar.
"""

import pyoxigraph as ox

from libc.string cimport memchr, memcmp, memcpy

from spaseq.io.native._tokens cimport (
    behind_space,
    iri_end,
    is_iri,
    is_tag,
    label_end,
    quote,
    same,
    tag_end,
    unescaped,
)
from spaseq.rdf._batch cimport known_term
from spaseq.rdf._memory cimport give_back, resized
from spaseq.rdf._terms cimport hash_of

cdef object NamedNode = ox.NamedNode
cdef object Literal = ox.Literal

cdef enum:
    MOST_TAGS = 10000

cdef const char* XSD_STRING = b"<http://www.w3.org/2001/XMLSchema#string>"
cdef const char* RDF_TAGGED = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#"
cdef enum:
    XSD_STRING_SIZE = 41
    RDF_TAGGED_SIZE = 44


cdef class TermReader:
    """What is known of the terms of a batch, and room to build some."""

    def __cinit__(self, EventReader events not None, *_):
        self.events = events
        self.tags = {}

    def __dealloc__(self):
        give_back(self.scratch)

    # ------------------------------------------------------------ terms

    cdef bint name_or_label(
        self, const char* text, size_t size, bint wanted, term_t* term
    ) except -1 nogil:
        """Whether an IRI or a blank node is certainly valid; its number where it is `wanted`.

        A label comes here only in its full length, and needs no check.
        """
        cdef uint64_t hash
        cdef Py_ssize_t length
        cdef bint copied = False
        if not wanted and text[0] == c"_":
            return True
        if not wanted and is_iri(text + 1, size - 2, &self.beginning):
            return True
        hash = hash_of(text, size)
        term[0] = known_term(self.events.batch, hash, text, <uint32_t>size)
        if term[0]:
            return True
        if text[0] == c"<" and not (wanted and is_iri(text + 1, size - 2, &self.beginning)):
            if memchr(text, c"\\", size) != NULL:
                self.reserve(size)
                length = unescaped(text + 1, text + size - 1, self.scratch + 1, False)
                if length < 0 or not self.asked_iri(self.scratch + 1, length):
                    return False
                self.scratch[0] = c"<"
                self.scratch[length + 1] = c">"
                text = self.scratch
                size = length + 2
                copied = True
                hash = hash_of(text, size)
                term[0] = known_term(self.events.batch, hash, text, <uint32_t>size)
                if term[0]:
                    return True
            elif not self.asked_iri(text + 1, size - 2):
                return False
        # What had to be asked is entered even if nobody wants it, not to be asked again.
        term[0] = self.events.batch.enter(hash, text, <uint32_t>size, copied)
        return True

    cdef int enter_valid(self, Token* token, uint64_t hash) except -1 nogil:
        """Give a token its number that is known to be valid and has no escapes."""
        token.term = known_term(self.events.batch, hash, token.text, <uint32_t>token.size)
        if token.term == 0:
            token.term = self.events.batch.enter(hash, token.text, <uint32_t>token.size, False)
        return 0

    cdef const char* object_token(
        self, const char* at, const char* end, Column* column, bint wanted, Quad* quad
    ) except? NULL nogil:
        """Behind the object at `at`; NULL where it is not sure."""
        cdef const char* close
        quad.blank_object = False
        if at[0] == c'"':
            return self.literal_token(at, end, column, wanted, &quad.object)
        if at[0] == c"<":
            close = iri_end(at, end)
        elif at[0] == c"_" and end - at > 2 and at[1] == c":":
            close = label_end(at, end)
            quad.blank_object = True
        else:
            return NULL
        if close == NULL or close - at > MOST:
            return NULL
        if (
            column.value.text != NULL and column.value.size == <size_t>(close - at)
            and same(column.value.text, at, close - at)
        ):
            quad.object = column.value.term
            return close
        column.value.text = NULL
        column.value.term = 0
        if not self.name_or_label(at, close - at, wanted, &column.value.term):
            return NULL
        column.value.text = at
        column.value.size = close - at
        quad.object = column.value.term
        return close

    cdef const char* literal_token(
        self, const char* at, const char* end, Column* column, bint wanted, term_t* term
    ) except? NULL nogil:
        """Behind the literal at `at`; NULL where it is not sure."""
        cdef const char* text = at
        cdef const char* close = at + 1
        cdef const char* suffix
        cdef size_t size
        cdef uint64_t hash
        cdef Py_ssize_t length
        cdef bint as_is = True      # its text is that of the buffer, up to `at`
        while True:
            close = quote(close, end)
            if close == end:
                return NULL
            if close[0] == c'"':
                break
            if close[0] != c"\\" or end - close < 2:
                return NULL
            as_is = False
            close += 2
        at = close + 1
        suffix = behind_space(at, end)
        if suffix < end and (suffix[0] == c"@" or suffix[0] == c"^"):
            as_is &= suffix == at
            if suffix[0] == c"@":
                at = self.language(suffix, end, &as_is)
                size = 0 if at == NULL else at - text
            else:
                if end - suffix < 3 or suffix[1] != c"^":
                    return NULL
                at = behind_space(suffix + 2, end)
                as_is &= at == suffix + 2
                suffix = at
                at = self.datatype(suffix, end, column)
                size = 0 if at == NULL else at - text
                if at != NULL and column.is_string:
                    suffix = at
                    size = close + 1 - text
            if at == NULL:
                return NULL
        else:
            suffix = at
            size = at - text
        if at - text > MOST:
            return NULL
        if as_is:
            if not wanted:
                return at
            if (
                column.value.text != NULL and column.value.size == size
                and same(column.value.text, text, size)
            ):
                term[0] = column.value.term
                return at
        else:
            size = self.build_literal(text, close, suffix, at)
            if size == 0:
                return NULL
            if not wanted:
                return at
            text = self.scratch
        hash = hash_of(text, size)
        term[0] = known_term(self.events.batch, hash, text, <uint32_t>size)
        if term[0] == 0:
            term[0] = self.events.batch.enter(hash, text, <uint32_t>size, not as_is)
        if as_is:
            column.value.text = text
            column.value.size = size
            column.value.term = term[0]
        return at

    cdef int build_literal(
        self, const char* at, const char* close, const char* suffix, const char* end
    ) except -1 nogil:
        """Write the literal whose quotes are at `at` and `close`; its size, 0: a bad escape.

        `suffix`: the tag, the datatype's IRI, or nothing, up to `end`.
        """
        cdef Py_ssize_t length
        cdef char* out
        cdef const char* letter
        self.reserve((close - at) + (end - suffix) + 8)
        out = self.scratch
        out[0] = c'"'
        length = unescaped(at + 1, close, out + 1, True)
        if length < 0:
            return 0
        out += length + 1
        out[0] = c'"'
        out += 1
        if suffix < end and suffix[0] == c"<":
            memcpy(out, b"^^", 2)
            out += 2
        letter = suffix
        while letter < end:
            out[0] = letter[0]
            if suffix[0] == c"@" and c"A" <= letter[0] <= c"Z":
                out[0] += c"a" - c"A"
            out += 1
            letter += 1
        return <int>(out - self.scratch)

    cdef const char* language(
        self, const char* at, const char* end, bint* is_plain
    ) except? NULL nogil:
        """Behind the tag whose `@` is at `at`; NULL where it is not sure."""
        cdef const char* close = tag_end(at + 1, end)
        cdef const char* stop = at + 1
        cdef const char* letter = at + 1
        while stop < close and not (stop[0] == c"-" and close - stop > 1 and stop[1] == c"-"):
            stop += 1
        if stop != close and (
            close - stop != 5
            or memcmp(stop, b"--ltr", 5) != 0 and memcmp(stop, b"--rtl", 5) != 0
        ):
            return NULL
        if not is_tag(at + 1, stop - at - 1) and not self.asked_tag(at + 1, stop - at - 1):
            return NULL
        while letter < stop:
            if c"A" <= letter[0] <= c"Z":
                is_plain[0] = False
            letter += 1
        return close

    cdef const char* datatype(
        self, const char* at, const char* end, Column* column
    ) except? NULL nogil:
        """Behind the datatype whose `<` is at `at`; NULL where it is not sure."""
        cdef const char* close
        cdef size_t size = column.datatype_size
        cdef term_t ignored = 0
        if column.datatype != NULL and <size_t>(end - at) > size:
            if same(at, column.datatype, size):
                return at + size
        if at == end or at[0] != c"<":
            return NULL
        close = iri_end(at, end)
        if close == NULL or close - at > MOST:
            return NULL
        size = close - at
        if size > RDF_TAGGED_SIZE and memcmp(at, RDF_TAGGED, RDF_TAGGED_SIZE) == 0:
            return NULL  # rdf:langString and the like are errors, which others explain
        if memchr(at, c"\\", size) != NULL:
            return NULL
        if not is_iri(at + 1, size - 2, &self.beginning) and not self.name_or_label(
            at, size, True, &ignored
        ):
            return NULL
        column.datatype = at
        column.datatype_size = size
        column.tight = (at - 1)[0] == c"^" and (at - 3)[0] == c'"'
        column.is_string = size == XSD_STRING_SIZE and memcmp(at, XSD_STRING, size) == 0
        return close

    cdef int reserve(self, size_t size) except -1 nogil:
        """See to it that `scratch` holds so many bytes."""
        cdef char* grown
        if size > self.scratch_room:
            grown = <char*>resized(self.scratch, 2 * size)
            if grown == NULL:
                with gil:
                    raise MemoryError
            self.scratch = grown
            self.scratch_room = 2 * size
        return 0

    # ------------------------------------------------------------ questions

    cdef bint asked_iri(self, const char* text, size_t size) except -1 nogil:
        """Whether pyoxigraph takes a text for an absolute IRI."""
        with gil:
            try:
                NamedNode(text[:size].decode())
            except ValueError:
                return False
            return True

    cdef bint asked_tag(self, const char* text, size_t size) except -1 nogil:
        """Whether pyoxigraph takes a text for a language tag."""
        with gil:
            tag = text[:size]
            if tag not in self.tags:
                if len(self.tags) == MOST_TAGS:
                    self.tags.clear()
                try:
                    Literal("", language=tag.decode())
                    self.tags[tag] = True
                except ValueError:
                    self.tags[tag] = False
            return self.tags[tag]

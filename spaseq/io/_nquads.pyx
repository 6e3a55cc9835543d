# cython: language_level=3, boundscheck=False, wraparound=False
"""Blocks of N-Quads or N-Triples lines to statements of an `EventReader`.

Certain or ask: a line is taken only where everything about it is known to be right. `read`
stops in front of any other, and whoever called it has that line judged by the parser of the
rest of the package (spaseq/io/statements.py) and goes on behind it; so no wording of an
error is known here. Single terms that look unusual (an IRI with a port, a rare language
tag) are asked of pyoxigraph, once per batch.

What makes it fast: a subject and a graph are mostly those of the line before, and are
compared with them before anything else; the predicate is guessed from the one that
followed its predecessor last time; a term is checked only where the table of the batch does
not know it; and the terms of triples that no query can use are checked but not entered.
Terms stay where they are in the buffer, which the batch keeps, except those with escapes.

Cost: linear in the bytes. Source: RDF 1.2 N-Quads and N-Triples, section on grammar.
"""

import pyoxigraph as ox

cimport cython
from libc.string cimport memchr, memcmp, memcpy, memset

from spaseq.io._tokens cimport (
    angle,
    is_iri,
    is_tag,
    label_end,
    not_utf8,
    quote,
    same,
    tag_end,
    unescaped,
)
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._memory cimport give_back, resized
from spaseq.rdf._relevance cimport Keep, keep_of, keeps_object
from spaseq.rdf._terms cimport hash_of

cdef object NamedNode = ox.NamedNode
cdef object Literal = ox.Literal

cdef enum:
    MOST = 0x7FFFFFFF       # bytes of a token
    MOST_TAGS = 10000

cdef const char* XSD_STRING = b"<http://www.w3.org/2001/XMLSchema#string>"
cdef const char* RDF_TAGGED = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#"
cdef enum:
    XSD_STRING_SIZE = 41
    RDF_TAGGED_SIZE = 44


cdef inline bint _is_space(char c) noexcept nogil:
    return c == c" " or c == c"\t"


cdef inline const char* _behind_space(const char* at, const char* end) noexcept nogil:
    while at < end and _is_space(at[0]):
        at += 1
    return at


cdef inline bint _continues(const Token* token, const char* at, const char* end) noexcept nogil:
    """Whether the same IRI or blank node as `token` stands at `at`; if unsure, not.

    An IRI ends where it ends; a blank node's label may go on.
    """
    if token.text == NULL or <size_t>(end - at) <= token.size:
        return False
    if not same(at, token.text, token.size):
        return False
    return at[0] == c"<" or _is_space(at[token.size])


cdef inline const char* _iri_end(const char* at, const char* end) noexcept nogil:
    """Behind the IRI whose `<` is at `at`; NULL where the line ends before it."""
    at = angle(at + 1, end)
    if at == end or at[0] != c">":
        return NULL
    return at + 1


cdef const char* _line_end(const char* at, const char* end) noexcept nogil:
    """Behind the line feed of the line, else the end."""
    cdef const char* feed = <const char*>memchr(at, c"\n", end - at)
    return end if feed == NULL else feed + 1


cdef const char* _rest_of_line(const char* at, const char* end) noexcept nogil:
    """Behind a line of which only space and a comment are left; NULL for anything else."""
    cdef const char* following
    at = _behind_space(at, end)
    if at == end:
        return end
    if at[0] == c"\n":
        return at + 1
    if at[0] != c"#":
        return NULL
    following = _line_end(at, end)
    if memchr(at, c"\r", following - at) != NULL:
        return NULL
    return following


@cython.final
cdef class LineReader:
    """Reads the lines of one file; `line` is the number of the next one."""

    def __cinit__(self, EventReader events not None, bint quads, uint64_t line=1):
        self.events = events
        self.quads = quads
        self.line = line
        self.generation = events.generation - 1
        self.tags = {}

    def __dealloc__(self):
        give_back(self.scratch)

    # ------------------------------------------------------------ blocks

    def read(self, bytes block not None, Py_ssize_t start, Py_ssize_t end):
        """Read block[start:end], whole lines; the position of the first not read."""
        cdef const char* begin = block
        cdef const char* at = begin + start
        cdef const char* stop = begin + end
        cdef const char* next = at
        cdef Found found = Found.NOTHING
        cdef Quad quad
        self.attach(block)
        if self.sound_block is not block or self.sound < at:
            self.sound = not_utf8(at, stop)
            self.sound_block = block
        if self.sound < stop:
            # Up to the line that is not UTF-8.
            stop = self.sound
            while stop > at and (stop - 1)[0] != c"\n":
                stop -= 1
        memset(&quad, 0, sizeof(Quad))
        with nogil:
            while at < stop:
                found = <Found>self.statement(at, stop, &next, &quad)
                if found == Found.STATEMENT:
                    quad.line = self.line
                    self.events.take(&quad)
                elif found == Found.DELIMITER:
                    self.events.delimit(self.line)
                elif found == Found.UNKNOWN:
                    break
                at = next
                self.line += 1
        return at - begin

    def behind_sure(self, bytes block not None, Py_ssize_t start, Py_ssize_t end):
        """Where the first line ends that is sure again, behind the one at `start`.

        What is said of a string without end depends on whether another quote follows, so
        lines with quotes are to be judged together with one that closes a string.
        """
        cdef const char* begin = block
        cdef const char* stop = begin + end
        cdef const char* at = _line_end(begin + start, stop)
        cdef const char* next = at
        cdef Found found
        cdef Quad quad
        self.attach(block)
        while at < stop:
            next = _line_end(at, stop)
            if not_utf8(at, next) == next:
                found = <Found>self.statement(at, next, &next, &quad)
                if found == Found.DELIMITER:
                    return next - begin
                if found == Found.STATEMENT and (
                    memchr(begin + start, c'"', at - (begin + start)) == NULL
                    or memchr(at, c'"', next - at) != NULL
                ):
                    return next - begin
                next = _line_end(at, stop)
            at = next
        return end

    def sure(self, bytes line not None):
        """The terms of the statement on a line of its own; () where there is none.

        None where the reader is not sure. The graph is None for the default graph.
        """
        cdef const char* begin = line
        cdef const char* stop = begin + len(line)
        cdef const char* next = begin
        cdef Found found
        cdef Quad quad
        cdef EventBatch batch = self.events.batch
        self.attach(line)
        if not_utf8(begin, stop) != stop:
            return None
        found = <Found>self.statement(begin, stop, &next, &quad)
        if found == Found.UNKNOWN or next != stop:
            return None
        if found != Found.STATEMENT:
            return ()
        numbers = (quad.subject, quad.predicate, quad.object, quad.graph)
        return tuple([batch.term(number) if number else None for number in numbers])

    def skip(self, uint64_t lines):
        """Some lines were read elsewhere."""
        self.line += lines

    cdef int attach(self, block) except -1:
        """Let the batch keep the block; forget tokens that lie in the buffers of another."""
        cdef EventBatch batch = self.events.batch
        cdef Py_ssize_t count = len(batch.buffers)
        if count == 0 or batch.buffers[count - 1] is not block:
            batch.buffers.append(block)
        if self.generation != self.events.generation:
            self.generation = self.events.generation
            self.subject.text = NULL
            self.graph.text = NULL
            self.beginning.size = 0
            memset(self.columns, 0, sizeof(self.columns))
            self.column = 0
        return 0

    # ------------------------------------------------------------ lines

    cdef int statement(
        self, const char* at, const char* end, const char** next, Quad* quad
    ) except -1 nogil:
        """Read one line: a `Found`. `next` is behind it unless it is unknown."""
        cdef const char* close
        cdef Column* column
        cdef bint wanted
        cdef const char* subject = NULL
        cdef size_t subject_size = 0
        at = _behind_space(at, end)
        if at == end or at[0] == c"\n" or at[0] == c"#":
            close = _rest_of_line(at, end)
            if close == NULL:
                return Found.UNKNOWN
            next[0] = close
            return Found.NOTHING
        # The subject, which is looked at below: not all are needed.
        if _continues(&self.subject, at, end):
            at += self.subject.size
        else:
            if at[0] == c"<":
                close = _iri_end(at, end)
            elif at[0] == c"_" and end - at > 2 and at[1] == c":":
                close = label_end(at, end)
            elif at[0] == c"M" and end - at >= 7 and memcmp(at, b"MESSAGE", 7) == 0:
                close = _rest_of_line(at + 7, end)
                if close == NULL:
                    return Found.UNKNOWN
                next[0] = close
                return Found.DELIMITER
            else:
                return Found.UNKNOWN
            if close == NULL or close - at > MOST:
                return Found.UNKNOWN
            subject = at
            subject_size = close - at
            at = close
        # The predicate.
        at = _behind_space(at, end)
        if at == end or at[0] != c"<":
            return Found.UNKNOWN
        column = &self.columns[self.columns[self.column].next]
        if _continues(&column.predicate, at, end):
            self.column = self.columns[self.column].next
            at += column.predicate.size
        else:
            close = _iri_end(at, end)
            if close == NULL or close - at > MOST:
                return Found.UNKNOWN
            column = self.predicate_column(at, close - at)
            if column == NULL:
                return Found.UNKNOWN
            at = close
        quad.predicate = column.predicate.term
        # The object.
        at = _behind_space(at, end)
        if at == end:
            return Found.UNKNOWN
        wanted = column.keep != Keep.NOTHING or column.timing
        quad.object = 0
        at = self.object_token(at, end, column, wanted, quad)
        if at == NULL:
            return Found.UNKNOWN
        quad.kept = column.keep == Keep.EVERY or (
            column.keep == Keep.SOME
            and keeps_object(self.events.relevance, quad.predicate, quad.object)
        )
        # The graph, the dot and the end of the line.
        at = _behind_space(at, end)
        quad.graph = 0
        if at < end and at[0] != c".":
            if not self.quads:
                return Found.UNKNOWN
            if _continues(&self.graph, at, end):
                at += self.graph.size
            else:
                if at[0] == c"<":
                    close = _iri_end(at, end)
                elif at[0] == c"_" and end - at > 2 and at[1] == c":":
                    close = label_end(at, end)
                else:
                    return Found.UNKNOWN
                if close == NULL or close - at > MOST:
                    return Found.UNKNOWN
                self.graph.text = NULL
                if not self.name_or_label(at, close - at, True, &self.graph.term):
                    return Found.UNKNOWN
                self.graph.text = at
                self.graph.size = close - at
                at = close
            quad.graph = self.graph.term
            at = _behind_space(at, end)
        if at == end or at[0] != c".":
            return Found.UNKNOWN
        close = _rest_of_line(at + 1, end)
        if close == NULL:
            return Found.UNKNOWN
        wanted = quad.kept or column.timing and quad.graph == 0
        if subject != NULL:
            self.subject.text = NULL
            self.subject.term = 0
            if not self.name_or_label(subject, subject_size, wanted, &self.subject.term):
                return Found.UNKNOWN
            self.subject.text = subject
            self.subject.size = subject_size
            self.blank_subject = subject[0] == c"_"
        elif wanted and self.subject.term == 0:
            self.name_or_label(self.subject.text, self.subject.size, True, &self.subject.term)
        quad.subject = self.subject.term
        quad.blank_subject = self.blank_subject
        next[0] = close
        return Found.STATEMENT

    cdef Column* predicate_column(self, const char* text, size_t size) except? NULL nogil:
        """The column of a predicate that was not the one expected; NULL: not a sure one."""
        cdef uint64_t hash = hash_of(text, size)
        cdef uint32_t slot = hash & (COLUMNS - 1)
        cdef Column* column = &self.columns[slot]
        cdef int i
        if (
            column.predicate.text == NULL or column.hash != hash
            or column.predicate.size != size or not same(column.predicate.text, text, size)
        ):
            column.predicate.text = NULL
            column.value.text = NULL
            column.datatype = NULL
            column.next = 0
            if not self.name_or_label(text, size, True, &column.predicate.term):
                return NULL
            column.hash = hash
            column.predicate.text = text
            column.predicate.size = size
            column.keep = keep_of(self.events.relevance, column.predicate.term)
            column.timing = False
            for i in range(3):
                if column.predicate.term == self.events.about[i]:
                    column.timing = True
        self.columns[self.column].next = slot
        self.column = slot
        return column

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
        term[0] = self.events.batch.find(hash, text, <uint32_t>size)
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
                term[0] = self.events.batch.find(hash, text, <uint32_t>size)
                if term[0]:
                    return True
            elif not self.asked_iri(text + 1, size - 2):
                return False
        # What had to be asked is entered even if nobody wants it, not to be asked again.
        term[0] = self.events.batch.enter(hash, text, <uint32_t>size, copied)
        return True

    cdef const char* object_token(
        self, const char* at, const char* end, Column* column, bint wanted, Quad* quad
    ) except? NULL nogil:
        """Behind the object at `at`; NULL where it is not sure."""
        cdef const char* close
        quad.blank_object = False
        if at[0] == c'"':
            return self.literal_token(at, end, column, wanted, &quad.object)
        if at[0] == c"<":
            close = _iri_end(at, end)
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
        suffix = _behind_space(at, end)
        if suffix < end and (suffix[0] == c"@" or suffix[0] == c"^"):
            as_is &= suffix == at
            if suffix[0] == c"@":
                at = self.language(suffix, end, &as_is)
                size = 0 if at == NULL else at - text
            else:
                if end - suffix < 3 or suffix[1] != c"^":
                    return NULL
                at = _behind_space(suffix + 2, end)
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
        term[0] = self.events.batch.find(hash, text, <uint32_t>size)
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
        close = _iri_end(at, end)
        if close == NULL or close - at > MOST:
            return NULL
        size = close - at
        if size > RDF_TAGGED_SIZE and memcmp(at, RDF_TAGGED, RDF_TAGGED_SIZE) == 0:
            return NULL  # rdf:langString and the like are errors, which others explain
        if memchr(at, c"\\", size) != NULL:
            return NULL
        if not is_iri(at + 1, size - 2, &self.beginning) and not self.name_or_label(at, size, True, &ignored):
            return NULL
        column.datatype = at
        column.datatype_size = size
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

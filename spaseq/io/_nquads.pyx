# cython: language_level=3, boundscheck=False, wraparound=False
"""Blocks of N-Quads or N-Triples lines to statements of an `EventReader`.

Certain or ask: a line is taken only where everything about it is known to be right. `read`
stops in front of any other, and whoever called it has that line judged by the parser of the
rest of the package (spaseq/io/statements.py) and goes on behind it; so no wording of an
error is known here.

What makes it fast: a subject and a graph are mostly those of the line before, and are
compared with them before anything else; the predicate is guessed from the one that
followed its predecessor last time, the end of a line from the line before; terms are checked
once, and those of triples that no query can use are not entered (spaseq/io/_scanning.pyx).

Cost: linear in the bytes. Source: RDF 1.2 N-Quads and N-Triples, section on grammar.
"""

cimport cython
from libc.string cimport memchr, memcmp, memset

from spaseq.io._framing cimport EventReader
from spaseq.io._scanning cimport MOST, Column, Token
from spaseq.io._tokens cimport (
    angle,
    behind_space,
    iri_end,
    is_iri,
    is_space,
    label_end,
    line_end,
    not_utf8,
    quote,
    rest_of_line,
    same,
)
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._relevance cimport Keep, keep_of, keeps_object
from spaseq.rdf._terms cimport hash_of


cdef inline bint _continues(const Token* token, const char* at, const char* end) noexcept nogil:
    """Whether the same IRI or blank node as `token` stands at `at`; if unsure, not.

    An IRI ends where it ends; a blank node's label may go on.
    """
    if token.text == NULL or <size_t>(end - at) <= token.size:
        return False
    if not same(at, token.text, token.size):
        return False
    return at[0] == c"<" or is_space(at[token.size])


@cython.final
cdef class LineReader(TermReader):
    """Reads the lines of one file; `line` is the number of the next one."""

    def __cinit__(self, EventReader events not None, bint quads, uint64_t line=1):
        self.quads = quads
        self.line = line
        self.generation = events.generation - 1

    # ------------------------------------------------------------ blocks

    cpdef Py_ssize_t read(
        self, bytes block, Py_ssize_t start, Py_ssize_t end
    ) except -1:
        """Read block[start:end], whole lines; the position of the first not read."""
        cdef const char* begin = block
        cdef const char* at = begin + start
        cdef const char* stop = begin + end
        cdef const char* next = at
        cdef Found found = Found.NOTHING
        cdef Quad quad
        self.attach(block)
        if self.sound_block is not block or self.sound <= at:
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
                next = self.behind_unused(at, stop)
                if next != NULL:
                    self.events.statements += 1
                    self.line += 1
                    at = next
                    continue
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
        cdef const char* at = line_end(begin + start, stop)
        cdef const char* next = at
        cdef Found found
        cdef Quad quad
        self.attach(block)
        while at < stop:
            next = line_end(at, stop)
            if not_utf8(at, next) == next:
                found = <Found>self.statement(at, next, &next, &quad)
                if found == Found.DELIMITER:
                    return next - begin
                if found == Found.STATEMENT and (
                    memchr(begin + start, c'"', at - (begin + start)) == NULL
                    or memchr(at, c'"', next - at) != NULL
                ):
                    return next - begin
                next = line_end(at, stop)
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
            self.tail = NULL
            self.beginning.size = 0
            memset(self.columns, 0, sizeof(self.columns))
            self.column = 0
        return 0

    # ------------------------------------------------------------ lines

    cdef const char* behind_unused(self, const char* at, const char* end) noexcept nogil:
        """Behind a line that is one more fact of the open graph, and of no use to a query.

        NULL unless it is like the line before but for its predicate, the one expected, and
        its object, and that is surely right. What `statement` finds is the same; it takes four
        times as long.
        """
        cdef uint32_t slot = self.columns[self.column].next
        cdef Column* column = &self.columns[slot]
        cdef const char* close
        if (
            column.keep != Keep.NOTHING or column.timing or not column.spaced
            or self.tail == NULL or self.tail_graph == 0 or self.subject.text == NULL
            or not self.events.is_open or self.tail_graph != self.events.name
            or <size_t>(end - at) <= self.subject.size + column.predicate.size + 2
            or not same(at, self.subject.text, self.subject.size)
        ):
            return NULL
        at += self.subject.size
        if not same(at, column.predicate.text - 1, column.predicate.size + 2):
            return NULL
        at += column.predicate.size + 2
        if at[0] == c'"':
            at = quote(at + 1, end)
            if at == end or at[0] != c'"':
                return NULL
            at += 1
            if at < end and at[0] == c"^":
                if (
                    column.datatype == NULL or not column.tight
                    or <size_t>(end - at) <= column.datatype_size + 2
                    or not same(at, column.datatype - 2, column.datatype_size + 2)
                ):
                    return NULL
                at += column.datatype_size + 2
        elif at[0] != c"<":
            return NULL
        elif (
            column.value.text != NULL and <size_t>(end - at) > column.value.size
            and same(at, column.value.text, column.value.size)
        ):
            at += column.value.size
        else:
            close = angle(at + 1, end)
            if close == end or close[0] != c">":
                return NULL
            if not is_iri(at + 1, close - at - 1, &self.beginning):
                return NULL
            at = close + 1
        if <size_t>(end - at) < self.tail_size or not same(at, self.tail, self.tail_size):
            return NULL
        self.column = slot
        return at + self.tail_size

    cdef int statement(
        self, const char* at, const char* end, const char** next, Quad* quad
    ) except -1 nogil:
        """Read one line: a `Found`. `next` is behind it unless it is unknown."""
        cdef const char* close
        cdef Column* column
        cdef bint wanted
        cdef const char* subject = NULL
        cdef size_t subject_size = 0
        at = behind_space(at, end)
        if at == end or at[0] == c"\n" or at[0] == c"#":
            close = rest_of_line(at, end)
            if close == NULL:
                return Found.UNKNOWN
            next[0] = close
            return Found.NOTHING
        # The subject, which is looked at below: not all are needed.
        if _continues(&self.subject, at, end):
            at += self.subject.size
        else:
            if at[0] == c"<":
                close = iri_end(at, end)
            elif at[0] == c"_" and end - at > 2 and at[1] == c":":
                close = label_end(at, end)
            elif at[0] == c"M" and end - at >= 7 and memcmp(at, b"MESSAGE", 7) == 0:
                close = rest_of_line(at + 7, end)
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
        column = &self.columns[self.columns[self.column].next]
        if (
            column.spaced and <size_t>(end - at) > column.predicate.size + 2
            and same(at, column.predicate.text - 1, column.predicate.size + 2)
        ):
            self.column = self.columns[self.column].next
            at += column.predicate.size + 2
        else:
            close = behind_space(at, end)
            if close == end or close[0] != c"<":
                return Found.UNKNOWN
            at = close
            close = iri_end(at, end)
            if close == NULL or close - at > MOST:
                return Found.UNKNOWN
            column = self.predicate_column(at, close - at)
            if column == NULL:
                return Found.UNKNOWN
            column.spaced = close < end and close[0] == c" " and (at - 1)[0] == c" "
            if column.spaced:
                column.predicate.text = at
            at = close
        quad.predicate = column.predicate.term
        quad.timing = column.timing
        if column.timing and subject != NULL:
            # Mostly the next event's graph: by the end of the line, what is asked is at hand.
            self.events.closed.expect(hash_of(subject, subject_size))
        # The object.
        at = behind_space(at, end)
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
        # The rest is mostly that of the line before.
        if (
            self.tail != NULL and <size_t>(end - at) >= self.tail_size
            and same(at, self.tail, self.tail_size)
        ):
            quad.graph = self.tail_graph
            close = at + self.tail_size
        else:
            close = self.rest(at, end, quad)
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
            # Whatever pyoxigraph was asked about has been entered.
            self.enter_valid(&self.subject)
        quad.subject = self.subject.term
        quad.blank_subject = self.blank_subject
        next[0] = close
        return Found.STATEMENT

    cdef const char* rest(
        self, const char* at, const char* end, Quad* quad
    ) except? NULL nogil:
        """Behind the line, of which the graph, the dot and maybe a comment are left.

        NULL where it is not sure.
        """
        cdef const char* begin = at
        cdef const char* close
        at = behind_space(at, end)
        quad.graph = 0
        self.tail = NULL
        if at < end and at[0] != c".":
            if not self.quads:
                return NULL
            if _continues(&self.graph, at, end):
                at += self.graph.size
            elif self.subject.term and _continues(&self.subject, at, end):
                # Mostly the first fact of an event, whose graph had its timestamp before it.
                self.graph = self.subject
                at += self.graph.size
            else:
                if at[0] == c"<":
                    close = iri_end(at, end)
                elif at[0] == c"_" and end - at > 2 and at[1] == c":":
                    close = label_end(at, end)
                else:
                    return NULL
                if close == NULL or close - at > MOST:
                    return NULL
                self.graph.text = NULL
                if not self.name_or_label(at, close - at, True, &self.graph.term):
                    return NULL
                self.graph.text = at
                self.graph.size = close - at
                at = close
            quad.graph = self.graph.term
            at = behind_space(at, end)
        if at == end or at[0] != c".":
            return NULL
        close = rest_of_line(at + 1, end)
        if close != NULL and (close - 1)[0] == c"\n":
            self.tail = begin
            self.tail_size = close - begin
            self.tail_graph = quad.graph
        return close

    cdef Column* predicate_column(self, const char* text, size_t size) except? NULL nogil:
        """The column of a predicate that was not the one expected; NULL: not a sure one."""
        cdef uint64_t hash = hash_of(text, size)
        cdef uint32_t first = hash & (COLUMNS - 1)
        cdef uint32_t slot = first
        cdef Column* column = &self.columns[slot]
        cdef int i
        for i in range(TRIED):
            slot = (first + i) & (COLUMNS - 1)
            column = &self.columns[slot]
            if column.predicate.text == NULL or (
                column.hash == hash and column.predicate.size == size
                and same(column.predicate.text, text, size)
            ):
                break
        else:
            slot = first
            column = &self.columns[slot]
            column.predicate.text = NULL
        if column.predicate.text == NULL:
            column.spaced = False
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

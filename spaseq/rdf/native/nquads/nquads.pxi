"""Blocks of N-Quads or N-Triples lines → statements of an `EventReader`.

The reader accepts a line only if it is certainly valid. `read` stops before any other line; the
caller parses that line with pyoxigraph (spaseq/io/statements.py) and continues after it. This
module therefore never reports an error.

A line is first compared with a prediction: the subject and the graph of the previous line, the
predicate that last followed the previous predicate, and the end of the previous line. Terms are
validated once, and terms of triples that no query can use are not entered
(spaseq/rdf/native/nquads/nquads_terms.pxi). A separate loop skips lines that match the prediction
entirely, up to a line that some query may use (spaseq/rdf/native/_nquads.pxd).

Cost: linear in the bytes. Source: RDF 1.2 N-Quads and N-Triples, section on grammar.
"""

cimport cython
from libc.string cimport memchr, memcmp, memset

from spaseq.rdf.native._framing cimport Cut
from spaseq.rdf.native._terms cimport EventBatch, Keep, hash_of, keep_of, keeps_object

cdef enum Found:
    NOTHING         # a blank line or a comment
    STATEMENT
    DELIMITER
    UNKNOWN         # a line for pyoxigraph


cdef inline bint _continues(const Token* token, const char* at, const char* end) noexcept nogil:
    """Whether the text at `at` is certainly the same IRI or blank node as `token`.

    An IRI ends with `>`; the label of a blank node may continue.
    """
    if token.text == NULL or <size_t>(end - at) <= token.size:
        return False
    if not same(at, token.text, token.size):
        return False
    return at[0] == c"<" or is_space(at[token.size])


cdef inline term_t graph_of(const Quad* quad) noexcept nogil:
    """The graph that contains a statement, or whose timestamp it is; 0: neither."""
    if quad.graph:
        return quad.graph
    return quad.subject if quad.timing else 0


@cython.final
cdef class LineReader(TermReader):
    """Reads the lines of one file; `line` is the number of the next line."""

    def __cinit__(self, EventReader events not None, bint quads, uint64_t line=1):
        self.quads = quads
        self.line = line
        self.generation = events.generation - 1

    # ------------------------------------------------------------ blocks

    cpdef Py_ssize_t read(
        self, bytes block, Py_ssize_t start, Py_ssize_t end
    ) except -1:
        """Read block[start:end], whole lines. Returns the position of the first line not read."""
        cdef const char* begin = block
        cdef const char* at = begin + start
        cdef const char* stop = begin + end
        cdef const char* next = at
        cdef Found found = Found.NOTHING
        cdef Quad quad
        self.attach(block)
        if self.sound_block is not block or self.sound <= at:
            if self.sound_block is block:
                # Another piece of the same block: the batch counts it as a buffer again.
                self.events.batch.buffers.append(block)
            self.sound = not_utf8(at, stop)
            self.sound_block = block
        if self.sound < stop:
            # Up to the first line that is not UTF-8.
            stop = self.sound
            while stop > at and (stop - 1)[0] != c"\n":
                stop -= 1
        memset(&quad, 0, sizeof(Quad))
        with nogil:
            while at < stop:
                if self.is_steady():
                    next = self.behind_usual(at, stop, &quad)
                    if next != at:
                        at = next
                        continue
                found = <Found>self.statement(at, stop, &next, &quad)
                if found == Found.STATEMENT:
                    quad.line = self.line
                    self.events.read_statement(&quad)
                elif found == Found.DELIMITER:
                    self.events.delimit(self.line)
                elif found == Found.UNKNOWN:
                    break
                at = next
                self.line += 1
        return at - begin

    def behind_sure(self, bytes block not None, Py_ssize_t start, Py_ssize_t end):
        """The end of the first certainly valid line after the line at `start`.

        pyoxigraph parses the lines up to there at once. Its error for an unterminated string
        depends on whether another quote follows, so a line with a quote needs the next line with a
        quote.
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

    def next_event(self, bytes block not None, Py_ssize_t start, Py_ssize_t end) -> int:
        """The first line of block[start:end] where an event begins, whatever precedes `start`.

        With graphs, this is a line whose graph differs from that of the previous statement; with
        messages, the line after a delimiter. -1: none is certain. The lines are not passed on to
        the reader of events.
        """
        cdef const char* begin = block
        cdef const char* stop = begin + end
        cdef const char* at = begin + start
        cdef const char* next = at
        cdef Found found
        cdef Quad quad
        cdef term_t name, open = 0
        self.attach(block)
        while at < stop:
            next = line_end(at, stop)
            found = Found.UNKNOWN
            if not_utf8(at, next) == next:
                found = <Found>self.statement(at, next, &next, &quad)
            if found == Found.UNKNOWN:
                next = line_end(at, stop)
            elif found == Found.DELIMITER and self.events.cut == Cut.MESSAGES:
                return next - begin if next < stop else -1
            elif found == Found.STATEMENT and self.events.cut == Cut.GRAPHS:
                name = graph_of(&quad)
                if name and open and name != open:
                    return at - begin
                if name:
                    open = name
            at = next
        return -1

    def close_before(self, bytes block not None, Py_ssize_t start, Py_ssize_t end) -> bool:
        """Close the open event if the line at `start` certainly begins another one.

        Returns whether no event is open then.
        """
        cdef const char* begin = block
        cdef const char* at = begin + start
        cdef const char* next = line_end(at, begin + end)
        cdef Quad quad
        cdef term_t name
        if not self.events.is_open:
            return True
        if self.events.cut != Cut.GRAPHS or not_utf8(at, next) != next:
            return False
        self.attach(block)
        if self.statement(at, next, &next, &quad) != Found.STATEMENT:
            return False
        name = graph_of(&quad)
        if name == 0 or name == self.events.name:
            return False
        self.events.close()
        return True

    def sure(self, bytes line not None):
        """The terms of the statement on one line; () if there is none.

        None if the reader is not sure. The graph is None for the default graph.
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

    def number(self, uint64_t line):
        """Set the number of the next line."""
        self.line = line

    def skip(self, uint64_t lines):
        """Skip lines that the caller has read."""
        self.line += lines

    cdef int attach(self, block) except -1:
        """Let the batch hold the block; drop tokens in the buffers of an earlier batch."""
        cdef EventBatch batch = self.events.batch
        cdef Py_ssize_t count = len(batch.buffers)
        cdef int i
        if count == 0 or batch.buffers[count - 1] is not block:
            batch.buffers.append(block)
        if self.generation != self.events.generation:
            self.generation = self.events.generation
            self.usual.subject.text = NULL
            self.graph.text = NULL
            self.usual.tail = NULL
            self.beginning.size = 0
            memset(self.columns, 0, sizeof(self.columns))
            for i in range(COLUMNS):
                self.columns[i].next = self.columns
            self.usual.column = self.columns
        return 0

    # ------------------------------------------------------------ lines

    cdef inline bint is_steady(self) noexcept nogil:
        """Whether a line that matches the prediction is one more fact of the open graph."""
        cdef term_t graph = self.tail_graph
        if self.events.needs_nodes:
            # Of the open subject.
            graph = 0 if self.blank_subject else self.usual.subject.term
        return (
            self.usual.column.next.usual and graph != 0
            and graph == self.events.name and self.events.is_open
            and self.usual.tail != NULL and self.usual.subject.text != NULL
        )

    cdef const char* behind_usual(
        self, const char* at, const char* end, Quad* quad
    ) except NULL nogil:
        """The end of the usual lines at `at` and of a line after them that a query may use.

        That line is read.
        """
        cdef const char* next = usual_lines(at, end, &self.usual, &self.beginning)
        self.events.statements += self.usual.count
        self.line += self.usual.count
        if self.usual.line == NULL:
            return next
        quad.line = self.line
        if not self.fact(quad):
            return self.usual.line
        self.line += 1
        return next

    cdef bint fact(self, Quad* quad) except -1 nogil:
        """Read the usual line that a query may use; False if it is not certainly valid."""
        cdef Column* column = self.usual.column
        cdef Token* subject = &self.usual.subject
        cdef Token value
        value.text = self.usual.object
        value.size = self.usual.close - self.usual.object
        value.term = 0
        if value.size > MOST:
            return False
        if (
            column.value.text == NULL or column.value.size != value.size
            or not same(column.value.text, value.text, value.size)
        ):
            if value.text[0] == c'"':
                self.enter_valid(&value, hash_of(value.text, value.size))
            elif not self.name_or_label(value.text, value.size, True, &value.term):
                return False
            # Field by field: reading the struct whole would stall on its recent partial writes.
            column.value.text = value.text
            column.value.size = value.size
            column.value.term = value.term
        if column.keep == Keep.SOME and not keeps_object(
            self.events.relevance, column.predicate.term, column.value.term
        ):
            self.events.statements += 1
            return True
        if subject.term == 0:
            # A term that pyoxigraph validated has been entered.
            self.enter_valid(subject, hash_of(subject.text, subject.size))
        quad.subject = subject.term
        quad.predicate = column.predicate.term
        quad.object = column.value.term
        quad.kept = True
        quad.timing = False
        quad.blank_subject = self.blank_subject
        quad.blank_object = False
        self.events.add(quad)
        return True

    cdef int statement(
        self, const char* at, const char* end, const char** next, Quad* quad
    ) except -1 nogil:
        """Read one line: a `Found`. `next` is its end, unless it is UNKNOWN."""
        cdef const char* close
        cdef Column* column = self.usual.column.next
        cdef bint wanted, checked = False
        cdef Token subject
        cdef uint64_t hash = 0
        subject.text = NULL
        at = behind_space(at, end)
        if at == end or at[0] == c"\n" or at[0] == c"#":
            close = rest_of_line(at, end)
            if close == NULL:
                return Found.UNKNOWN
            next[0] = close
            return Found.NOTHING
        # The subject, which is validated below only if it is needed.
        if _continues(&self.usual.subject, at, end):
            at += self.usual.subject.size
        else:
            if at[0] == c"<":
                close = iri_close(at, end, &self.beginning)
                checked = close != NULL
                if not checked:
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
            subject.text = at
            subject.size = close - at
            subject.term = 0
            at = close
        # The predicate.
        if (
            column.spaced and <size_t>(end - at) > column.predicate.size + 2
            and same(at, column.predicate.text - 1, column.predicate.size + 2)
        ):
            self.usual.column = column
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
            column.usual = column.spaced and not column.timing
            column.unused = column.keep == Keep.NOTHING
            if column.spaced:
                column.predicate.text = at
            at = close
        quad.predicate = column.predicate.term
        quad.timing = column.timing
        if column.timing and subject.text != NULL:
            # Mostly the next event's graph: its entry is prefetched by the end of the line.
            hash = hash_of(subject.text, subject.size)
            self.events.closed.expect(hash)
        # The object.
        at = behind_space(at, end)
        if at == end:
            return Found.UNKNOWN
        wanted = column.keep != Keep.NOTHING or column.timing or (
            self.events.needs_nodes and at[0] == c"_"
        )
        quad.object = 0
        at = self.object_of(at, end, column, wanted, quad)
        if at == NULL:
            return Found.UNKNOWN
        quad.kept = column.keep == Keep.EVERY or (
            column.keep == Keep.SOME
            and keeps_object(self.events.relevance, quad.predicate, quad.object)
        )
        # The rest is mostly equal to the rest of the previous line.
        if end - at >= 3 and at[0] == c" " and at[1] == c"." and at[2] == c"\n":
            quad.graph = self.tail_graph = 0
            self.usual.tail = at
            self.usual.tail_size = 3
            close = at + 3
        elif (
            self.tail_graph and self.usual.tail != NULL
            and <size_t>(end - at) >= self.usual.tail_size
            and same(at, self.usual.tail, self.usual.tail_size)
        ):
            quad.graph = self.tail_graph
            close = at + self.usual.tail_size
        else:
            close = self.rest(at, end, quad)
            if close == NULL:
                return Found.UNKNOWN
        wanted = quad.kept or column.timing and quad.graph == 0 or self.events.needs_nodes
        if subject.text != NULL:
            self.usual.subject.text = NULL
            if checked:
                if wanted:
                    if hash == 0:
                        hash = hash_of(subject.text, subject.size)
                    self.enter_valid(&subject, hash)
            elif not self.name_or_label(subject.text, subject.size, wanted, &subject.term):
                return Found.UNKNOWN
            self.usual.subject.text = subject.text
            self.usual.subject.size = subject.size
            self.usual.subject.term = subject.term
            self.blank_subject = subject.text[0] == c"_"
        elif wanted and self.usual.subject.term == 0:
            # A term that pyoxigraph validated has been entered.
            hash = hash_of(self.usual.subject.text, self.usual.subject.size)
            self.enter_valid(&self.usual.subject, hash)
        quad.subject = self.usual.subject.term
        quad.blank_subject = self.blank_subject
        next[0] = close
        return Found.STATEMENT

    cdef inline const char* object_of(
        self, const char* at, const char* end, Column* column, bint wanted, Quad* quad
    ) except? NULL nogil:
        """The end of the object at `at`; NULL if it is not certainly valid.

        The usual objects are read here: the IRI of the last triple of the predicate, an unused
        IRI, a literal without escapes of the datatype of that triple.
        """
        cdef const char* close
        cdef Token value
        if at[0] == c'"' and column.tight and column.datatype != NULL and not column.is_string:
            close = quote(at + 1, end)
            if (
                <size_t>(end - close) > column.datatype_size + 3 and close[0] == c'"'
                and same(close + 1, column.datatype - 2, column.datatype_size + 2)
            ):
                quad.blank_object = False
                close += column.datatype_size + 3
                if close - at > MOST:
                    return NULL
                if wanted:
                    value.text = at
                    value.size = close - at
                    if (
                        column.value.text == NULL or column.value.size != value.size
                        or not same(column.value.text, at, value.size)
                    ):
                        self.enter_valid(&value, hash_of(value.text, value.size))
                        column.value.text = at
                        column.value.size = value.size
                        column.value.term = value.term
                    quad.object = column.value.term
                return close
        elif at[0] == c"<":
            quad.blank_object = False
            if (
                column.value.text != NULL and <size_t>(end - at) > column.value.size
                and same(at, column.value.text, column.value.size)
            ):
                quad.object = column.value.term
                return at + column.value.size
            if not wanted:
                close = iri_close(at, end, &self.beginning)
                if close != NULL and close - at <= MOST:
                    column.value.text = at
                    column.value.size = close - at
                    column.value.term = 0
                    return close
        return self.object_token(at, end, column, wanted, quad)

    cdef const char* rest(
        self, const char* at, const char* end, Quad* quad
    ) except? NULL nogil:
        """The end of the line; the graph, the dot and possibly a comment remain to be read.

        NULL if it is not certainly valid.
        """
        cdef const char* begin = at
        cdef const char* close
        at = behind_space(at, end)
        quad.graph = 0
        self.usual.tail = NULL
        if at < end and at[0] != c".":
            if not self.quads:
                return NULL
            if self.usual.subject.term and _continues(&self.usual.subject, at, end):
                # Mostly the first fact of an event, after the timestamp of its graph.
                self.graph = self.usual.subject
                at += self.graph.size
            elif _continues(&self.graph, at, end):
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
            self.usual.tail = begin
            self.usual.tail_size = close - begin
            self.tail_graph = quad.graph
        return close

    cdef Column* predicate_column(self, const char* text, size_t size) except? NULL nogil:
        """The column of a predicate that was not predicted; NULL: not certainly an IRI."""
        cdef uint64_t hash = hash_of(text, size)
        cdef uint32_t first = hash & (COLUMNS - 1)
        cdef Column* column = &self.columns[first]
        cdef int i
        for i in range(TRIED):
            column = &self.columns[(first + i) & (COLUMNS - 1)]
            if column.predicate.text == NULL or (
                column.hash == hash and column.predicate.size == size
                and same(column.predicate.text, text, size)
            ):
                break
        else:
            column = &self.columns[first]
            column.predicate.text = NULL
        if column.predicate.text == NULL:
            column.spaced = column.usual = False
            column.value.text = NULL
            column.datatype = NULL
            column.next = self.columns
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
        self.usual.column.next = column
        self.usual.column = column
        return column

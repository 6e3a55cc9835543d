"""Pieces of a Turtle or TriG document → statements of an `EventReader`.

The reader accepts only text that is certainly valid. `read` stops at anything else; the caller
passes the current statement, or the rest of the document, to pyoxigraph (spaseq/io/documents.py).
This module therefore never reports an error.

A piece consists of whole lines, so only a long string can continue in the next piece. The reader is
a state machine over tokens whose state survives the end of a piece, and no byte is scanned twice.
The triples of a statement wait in `quads` until the statement is complete, so a statement that
pyoxigraph has to read leaves no triples behind. pyoxigraph returns the triples that one token
completes in reverse order. The reader does the same (`end_token`), because the order of triples
determines the names of blank nodes.

Spellings are first compared with predictions: a predicate with the one that last followed the
previous predicate, an object and a datatype with those of the last triple of the predicate. Terms
of triples that no query can use are validated but not entered into the batch.

Cost: linear in the bytes. Source: RDF 1.2 Turtle and TriG (grammars).
"""

cimport cython
import os
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t, uint8_t
from libc.stdio cimport snprintf
from libc.string cimport memchr, memcmp, memcpy, memset

from spaseq.rdf.native._framing cimport Cut, EventReader, Quad, moved
from spaseq.rdf.native._nquads cimport (
    Token,
    behind_space,
    iri_close,
    iri_end,
    is_iri,
    is_space,
    label_end,
    not_utf8,
    same,
    unescaped,
)
from spaseq.rdf.native._terms cimport (
    EventBatch,
    Keep,
    TermRecord,
    hash_of,
    keep_of,
    keeps_object,
    known_term,
    mem_free,
    mem_realloc,
    record_of,
    term_t,
)
from spaseq.rdf.syntax import DEEP_BRACKETS, MAX_NESTED_BRACKETS as _MAX_NESTED_BRACKETS, LimitError

# What the next token may be.
cdef enum State:
    START               # a statement, a directive, a block, or the end of a block
    BLOCK_OR_VERB       # the first term of a statement or the name of a graph precedes
    VERB
    OBJECT
    AFTER_OBJECT
    AFTER_SEMICOLON
    SUFFIX              # of a literal whose string is in `text`
    DATATYPE            # of the same, after ^^
    LONG                # the rest of a long string
    ANONYMOUS_SUBJECT   # after [
    ANONYMOUS_OBJECT
    AFTER_PROPERTIES    # after a subject [...]
    LIST_SUBJECT        # after (
    LIST_OBJECT
    LIST_NEXT
    GRAPH_NAME          # after the word GRAPH
    ANONYMOUS_GRAPH
    BLOCK
    PREFIX_NAME
    PREFIX_IRI
    BASE_IRI
    VERSION
    DIRECTIVE_DOT
    MESSAGE_DOT

# The forms of the text of a node.
cdef enum Form:
    NO_TEXT             # its number alone: a blank node without a label, or a term
    IRI                 # <...>, absolute and valid
    AT_NAME                # prefix:local
    OTHER               # another spelling of an IRI
    LABEL

# A term in subject position, which is entered into the batch when a triple needs it.
cdef struct Node:
    const char* text
    size_t size
    term_t term         # 0: not entered
    uint64_t number     # of a blank node without a label
    uint8_t form

# A predicate, and the form of the last triples with it; spellings are texts of the buffers.
cdef struct Predicate:
    uint64_t hash
    const char* text    # its spelling; NULL: an empty slot
    size_t size
    term_t term
    Predicate* next     # the predicate that followed it last
    bint spaced         # a space follows the spelling
    bint timing         # its objects are timestamps
    uint8_t keep        # a Keep: which of its triples a query can use
    Token value         # the last object that was an IRI or a literal
    bint value_is_name  # the value is a prefixed name
    const char* datatype    # the last spelling of a datatype; NULL: none
    size_t datatype_size
    const char* full        # its IRI: <...>
    size_t full_size
    bint is_direct          # the spelling is the IRI
    bint is_string          # it is xsd:string

cdef enum Enclosing:
    SUBJECT_PROPERTIES      # [...] that is a subject
    OBJECT_PROPERTIES
    SUBJECT_ITEMS           # (...) that is a subject
    OBJECT_ITEMS

# What is around the innermost brackets.
cdef struct Frame:
    Node subject
    Predicate* column
    term_t predicate
    uint8_t keep
    bint timing
    uint8_t kind        # an Enclosing: of the brackets inside it

cdef enum:
    COLUMNS = 64        # slots for predicates
    TRIED = 8           # slots probed from that of the hash on, before one is reused

cdef uint32_t MAX_NESTED_BRACKETS = _MAX_NESTED_BRACKETS

cdef enum:
    MOST_STRING = (1 << 28) - (1 << 16)     # bytes of a string; pyoxigraph judges longer ones

cdef const char* RDF_TYPE = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

cdef const char* RDF_FIRST = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#first>"

cdef const char* RDF_REST = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#rest>"

cdef const char* RDF_NIL = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#nil>"

cdef const char* LANG_STRING = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"

cdef const char* DIR_LANG_STRING = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString>"

cdef const char* XSD_STRING = b"<http://www.w3.org/2001/XMLSchema#string>"

cdef const char* OF_INTEGER = b'"^^<http://www.w3.org/2001/XMLSchema#integer>'

cdef const char* OF_DECIMAL = b'"^^<http://www.w3.org/2001/XMLSchema#decimal>'

cdef const char* OF_DOUBLE = b'"^^<http://www.w3.org/2001/XMLSchema#double>'

cdef const char* TRUE = b'"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'

cdef const char* FALSE = b'"false"^^<http://www.w3.org/2001/XMLSchema#boolean>'

cdef enum:
    TYPE_SIZE = 49
    FIRST_SIZE = 50
    REST_SIZE = 49
    NIL_SIZE = 48
    LANG_STRING_SIZE = 55
    DIR_LANG_STRING_SIZE = 58
    XSD_STRING_SIZE = 41
    OF_NUMBER_SIZE = 45     # OF_DOUBLE is one byte shorter
    TRUE_SIZE = 50
    FALSE_SIZE = 51


cdef inline bint _is(
    const char* text, size_t size, const char* known, size_t known_size
) noexcept nogil:
    return size == known_size and memcmp(text, known, size) == 0


cdef inline bint _is_blank(const Node* node) noexcept nogil:
    return node.form == Form.LABEL or node.number != 0


@cython.final
cdef class DocumentReader(NameReader):
    """Reads one document; `line` is the number of the line that is being read.

    Args:
        named_graphs: Whether the document is TriG.
        messages: Whether it may contain message delimiters.
        line: The number of its first line.
        base: Its base IRI.
    """

    cdef bint named_graphs      # TriG, not Turtle
    cdef bint messages          # message delimiters may occur
    cdef readonly uint64_t line     # the number of the line that is being read
    cdef State state
    cdef bint unsure            # pyoxigraph has to decide
    cdef uint32_t generation    # of the batch of the texts below

    # The statement that is being read.
    cdef const char* block_text     # the block
    cdef const char* begin      # where it begins in the block, behind the statement before it
    cdef readonly uint64_t begin_line
    cdef readonly uint64_t block_line   # where the open block of a graph begins
    cdef bint in_block
    cdef readonly bint block_begun      # a statement in it is complete
    cdef Node graph             # of the open block; the default graph has no form and no term
    cdef Node subject
    cdef Node last_subject      # of an earlier statement
    cdef Frame* frames
    cdef uint32_t depth, frame_room
    cdef uint32_t settled       # frames whose subjects have numbers
    cdef State after            # the state after an object
    cdef Quad* quads            # its statements so far
    cdef uint32_t count, room
    cdef uint32_t first         # the first of them that the present token completes
    cdef bint at_sign           # the directive began with an @
    cdef uint64_t message_line

    # The object that has just been read.
    cdef term_t value
    cdef bint blank_value
    cdef bint is_plain          # a string without suffix, which the next token completes
    cdef char* text             # the string of a literal that is not complete: "..., unescaped
    cdef size_t text_size, text_room
    cdef char mark              # the quotes of the open long string

    cdef bytes prefix_name      # of the directive that is being read
    cdef str next_base          # the base that it sets
    cdef bint has_base

    # Predicates.
    cdef Predicate columns[COLUMNS]
    cdef Predicate detached     # the predicate at hand if it is in no slot
    cdef Predicate items_first, items_rest      # rdf:first and rdf:rest
    cdef Predicate* column
    cdef uint64_t blanks        # blank nodes without a label so far
    cdef uint64_t seed          # of their labels
    cdef object sound_block     # a block that is valid UTF-8 up to `sound`
    cdef const char* sound

    def __cinit__(
        self, EventReader events not None, bint named_graphs, bint messages, uint64_t line,
        str base,
    ):
        self.named_graphs = named_graphs
        self.messages = messages
        self.line = self.begin_line = line
        self.generation = events.generation - 1
        self.seed = int.from_bytes(os.urandom(8), "little")
        self.after = State.AFTER_OBJECT
        self.column = self.columns
        self.set_base(base)

    def __dealloc__(self):
        mem_free(self.frames)
        mem_free(self.quads)
        mem_free(self.text)

    # ------------------------------------------------------------ pieces

    def read(self, bytes block not None, Py_ssize_t start, Py_ssize_t end):
        """Read block[start:end], whole lines; False before a statement that may be invalid.

        `statement_start` is the start of that statement, or of the statement that the piece leaves
        open.
        """
        cdef const char* stop = <const char*>block + end
        cdef const char* at = <const char*>block + start
        self.attach(block)
        self.block_text = block
        self.bytes_read += end - start
        self.begin = NULL
        if self.state == State.START:
            self.begin = at
            self.begin_line = self.line
        if self.sound_block is not block or self.sound <= at:
            if self.sound_block is block:
                # Another piece of the same block: the batch counts it as a buffer again.
                self.events.batch.buffers.append(block)
            self.sound = not_utf8(at, stop)
            self.sound_block = block
        if self.sound < stop:
            # Up to the first line that is not UTF-8.
            stop = self.sound
            while stop > at and (stop - 1)[0] != c"\n" and (stop - 1)[0] != c"\r":
                stop -= 1
            self.unsure = True
        with nogil:
            at = self.run(at, stop)
        if self.unsure:
            return False
        if self.state != State.START:
            self.settle()
        return True

    def statement_start(self, bytes block not None) -> int:
        """The offset in the block read last where the open statement begins; -1: before it."""
        return -1 if self.begin == NULL else self.begin - <const char*>block

    @property
    def is_open(self) -> bool:
        """Whether a statement has begun and is not complete."""
        return self.state != State.START

    def resume(self, uint64_t line):
        """Continue on a line, after a statement that the caller has read."""
        self.unsure = self.has_base = False
        self.block_begun = True
        self.state = State.START
        self.depth = self.settled = self.count = self.first = 0
        memset(&self.subject, 0, sizeof(Node))
        self.after = State.AFTER_OBJECT
        self.line = line

    def open_block(self):
        """The name of the open block, None for the default graph; False if no block is open."""
        if not self.in_block:
            return False
        return self.events.batch.term(self.graph.term) if self.graph.term else None

    def move(self, EventBatch source not None, EventBatch target not None):
        """Continue the open statement and the open block in another batch."""
        cdef uint32_t i
        cdef Quad* quad
        self.graph.term = moved(source, self.graph.term, target)
        self.last_subject.text = NULL
        if self.state == State.START:
            return
        self.subject.term = moved(source, self.subject.term, target)
        for i in range(self.depth):
            self.frames[i].subject.term = moved(source, self.frames[i].subject.term, target)
            self.frames[i].predicate = moved(source, self.frames[i].predicate, target)
        for i in range(self.count):
            quad = &self.quads[i]
            quad.subject = moved(source, quad.subject, target)
            quad.predicate = moved(source, quad.predicate, target)
            quad.object = moved(source, quad.object, target)
            quad.graph = moved(source, quad.graph, target)
        self.detach(
            moved(source, self.column.term, target), self.column.keep, self.column.timing
        )

    cdef void detach(self, term_t predicate, uint8_t keep, bint timing) noexcept nogil:
        """Continue with a predicate that is in no slot."""
        memset(&self.detached, 0, sizeof(Predicate))
        self.detached.term = predicate
        self.detached.keep = keep
        self.detached.timing = timing
        self.detached.next = self.columns
        self.column = &self.detached

    cdef int attach(self, block) except -1:
        """Let the batch hold the block; drop spellings in the buffers of an earlier batch."""
        cdef EventBatch batch = self.events.batch
        cdef Py_ssize_t count = len(batch.buffers)
        if count == 0 or batch.buffers[count - 1] is not block:
            batch.buffers.append(block)
        if self.generation != self.events.generation:
            self.generation = self.events.generation
            self.forget()
        return 0

    cdef int forget(self) except -1:
        """Drop all spellings and what they mean."""
        cdef int i
        if self.state != State.START:
            self.detach(self.column.term, self.column.keep, self.column.timing)
        else:
            self.column = self.columns
        NameReader.forget(self)
        self.last_subject.text = NULL
        memset(self.columns, 0, sizeof(self.columns))
        memset(&self.items_first, 0, sizeof(Predicate))
        memset(&self.items_rest, 0, sizeof(Predicate))
        for i in range(COLUMNS):
            self.columns[i].next = self.columns
        self.items_first.next = self.items_rest.next = self.columns
        return 0

    cdef int settle(self) except -1:
        """Enter the subjects of the open statement, whose texts may be freed with the piece."""
        cdef uint32_t i
        for i in range(self.settled, self.depth):
            self.frames[i].subject.term = self.term_of(&self.frames[i].subject)
            self.frames[i].subject.text = NULL
        self.settled = self.depth
        if self.subject.form != Form.NO_TEXT or self.subject.number:
            self.subject.term = self.term_of(&self.subject)
            self.subject.text = NULL
        return 0

    # ------------------------------------------------------------ tokens

    cdef const char* run(self, const char* at, const char* end) except NULL nogil:
        """Read the tokens up to the end, or up to one that is not certainly valid."""
        cdef const char* next
        cdef char c
        if self.state == State.LONG:
            next = self.long_rest(at, end)
            if next == NULL:
                self.unsure = True
                return at
            at = next
        while True:
            while at < end:
                c = at[0]
                if c == c" " or c == c"\t":
                    at += 1
                elif c == c"\n":
                    at += 1
                    self.line += 1
                elif c == c"#":
                    at = line_stop(at, end)
                elif c == c"\r":
                    at += 1
                    if at == end or at[0] != c"\n":
                        self.line += 1
                else:
                    break
            if at == end:
                return at
            c = at[0]
            if self.state == State.VERB:
                next = self.verb(at, end)
                if next == NULL:
                    break
                at = next
                self.state = State.OBJECT
                if self.column.timing and self.graph.term == 0:
                    # Mostly the next event's graph: its entry is prefetched by the end.
                    self.subject.term = self.term_of(&self.subject)
                    self.events.closed.expect(
                        record_of(self.events.batch, self.subject.term).hash
                    )
                if at == end or <uint8_t>at[0] <= c" " or at[0] == c"#":
                    continue
            if self.state == State.OBJECT:
                self.state = self.after
                next = self.object_at(at, end)
                if next == NULL:
                    break
                if self.state == self.after:
                    self.complete()
                else:
                    self.end_token()
                at = next
            elif self.state == State.AFTER_OBJECT:
                if c == c";":
                    self.end_token()
                    self.state = State.AFTER_SEMICOLON
                    at += 1
                elif c == c",":
                    self.end_token()
                    self.state = State.OBJECT
                    at += 1
                else:
                    next = self.end_of_list(at, end)
                    if next == NULL:
                        break
                    at = next
            elif self.state == State.AFTER_SEMICOLON:
                if c == c";":
                    at += 1
                elif c == c"." or c == c"]" or c == c"}":
                    next = self.end_of_list(at, end)
                    if next == NULL:
                        break
                    at = next
                else:
                    self.state = State.VERB
            elif self.state == State.START:
                next = self.begun(at, end)
                if next == NULL:
                    break
                at = next
            else:
                next = self.rare(at, end)
                if next == NULL:
                    break
                at = next
        self.unsure = True
        return at

    cdef inline void end_token(self) noexcept nogil:
        """Put the triples that one token has completed in reverse order."""
        cdef Quad quad
        cdef uint32_t low = self.first, high = self.count
        self.first = self.count
        while low + 1 < high:
            high -= 1
            quad = self.quads[low]
            self.quads[low] = self.quads[high]
            self.quads[high] = quad
            low += 1

    cdef const char* begun(self, const char* at, const char* end) except? NULL nogil:
        """The first token of a statement, a directive or a block, or the end of a block."""
        cdef const char* next
        cdef char c = at[0]
        if c == c"}" and self.in_block:
            self.in_block = False
            self.graph.term = 0
            self.begin, self.begin_line = at + 1, self.line
            return at + 1
        if c == c"[":
            self.state = State.ANONYMOUS_SUBJECT
            return at + 1
        if c == c"(":
            self.state = State.LIST_SUBJECT
            return at + 1
        if c == c"{" and self.named_graphs and not self.in_block:
            return self.block(at, end)
        if c == c"@":
            return self.directive(at, end)
        next = self.node_at(at, end, &self.subject)
        if next != NULL:
            self.state = State.VERB
            if self.named_graphs and not self.in_block:
                self.state = State.BLOCK_OR_VERB
            return next
        memset(&self.subject, 0, sizeof(Node))
        return self.keyword(at, end)

    cdef const char* block(self, const char* at, const char* end) except? NULL nogil:
        """The brace that opens the block of a graph, whose name is `subject`."""
        if at + 1 == end or at[1] == c"|":
            return NULL         # the end of the file, or an annotation
        self.graph = self.subject
        memset(&self.subject, 0, sizeof(Node))
        self.in_block = True
        self.block_begun = False
        self.state = State.START
        self.begin, self.begin_line = at + 1, self.line
        self.block_line = self.line
        return at + 1

    cdef const char* keyword(self, const char* at, const char* end) except? NULL nogil:
        """A keyword that begins a directive or the block of a graph, or delimits messages."""
        cdef const char* close = word_end(at, end)
        if self.in_block or close == at or not (
            close == end or separates(<uint8_t>close[0])
        ):
            return NULL
        self.at_sign = False
        if is_word(at, close, b"prefix"):
            self.state = State.PREFIX_NAME
        elif is_word(at, close, b"base"):
            self.state = State.BASE_IRI
        elif is_word(at, close, b"version"):
            self.state = State.VERSION
        elif self.named_graphs and is_word(at, close, b"graph"):
            self.state = State.GRAPH_NAME
        elif self.messages and is_word(at, close, b"message") and self.is_delimited(at, close, end):
            self.events.delimit(self.line)
            self.begin, self.begin_line = close, self.line
        else:
            return NULL
        return close

    cdef bint is_delimited(
        self, const char* at, const char* close, const char* end
    ) noexcept nogil:
        """Whether a message delimiter has space around it, so that every scanner recognises it."""
        cdef char before = c" " if at == self.block_text else (at - 1)[0]
        if not (is_space(before) or before == c"\n" or before == c"\r"):
            return False
        return close == end or is_space(close[0]) or (
            close[0] == c"\n" or close[0] == c"\r" or close[0] == c"#"
        )

    cdef const char* directive(self, const char* at, const char* end) except? NULL nogil:
        """The beginning of a directive with an @."""
        cdef const char* close = word_end(at + 1, end)
        if self.in_block or not (
            close == end or separates(<uint8_t>close[0]) or close[0] == c":" or close[0] == c"."
        ):
            return NULL
        self.at_sign = True
        if _is(at, close - at, b"@prefix", 7):
            self.state = State.PREFIX_NAME
        elif _is(at, close - at, b"@base", 5):
            self.state = State.BASE_IRI
        elif _is(at, close - at, b"@version", 8):
            self.state = State.VERSION
        elif self.messages and _is(at, close - at, b"@message", 8) and (
            self.is_delimited(at, close, end)
            or close < end and close[0] == c"." and self.is_delimited(at, close + 1, end)
        ):
            self.state = State.MESSAGE_DOT
            self.message_line = self.line
        else:
            return NULL
        return close

    cdef const char* rare(self, const char* at, const char* end) except? NULL nogil:
        """A token in a state that is not among the most frequent ones; NULL: not sure."""
        cdef const char* next = at
        cdef char c = at[0]
        cdef State state = self.state
        cdef Node node
        if state == State.BLOCK_OR_VERB:
            if c == c"{":
                self.subject.term = self.term_of(&self.subject)
                return self.block(at, end)
            self.state = State.VERB
        elif state == State.LIST_NEXT:
            if c == c")":
                return self.close_brackets(at)
            self.new_blank(&node)
            self.item(&self.items_rest, RDF_REST, REST_SIZE, &node)
            self.subject = node
            self.state = State.OBJECT
        elif state == State.LIST_OBJECT:
            if c == c")":
                self.nil_object()
                return at + 1
            self.new_blank(&node)
            self.value = self.wanted_node(&node)
            self.blank_value = True
            self.is_plain = False
            self.emit()
            self.push(Enclosing.OBJECT_ITEMS)
            self.begin_items(&node)
        elif state == State.LIST_SUBJECT:
            if c == c")":
                memset(&self.subject, 0, sizeof(Node))
                self.subject.term = self.entered(RDF_NIL, NIL_SIZE)
                self.state = State.VERB
                return at + 1
            self.new_blank(&self.subject)
            node = self.subject
            self.push(Enclosing.SUBJECT_ITEMS)
            self.begin_items(&node)
        elif state == State.ANONYMOUS_SUBJECT:
            self.new_blank(&self.subject)
            if c == c"]":
                self.state = State.VERB
                if self.named_graphs and not self.in_block:
                    self.state = State.BLOCK_OR_VERB
                return at + 1
            self.push(Enclosing.SUBJECT_PROPERTIES)
            self.state = State.VERB
        elif state == State.ANONYMOUS_OBJECT:
            self.new_blank(&node)
            if c == c"]":
                self.value = self.wanted_node(&node)
                self.blank_value = True
                self.state = self.after
                self.emit()
                self.end_token()
                return at + 1
            self.push(Enclosing.OBJECT_PROPERTIES)
            self.subject = node
            self.state = State.VERB
        elif state == State.AFTER_PROPERTIES:
            if c == c"." or c == c"}":
                return self.end_of_list(at, end)
            self.state = State.VERB
        elif state == State.SUFFIX or state == State.DATATYPE:
            return self.suffix(at, end)
        elif state == State.GRAPH_NAME:
            if c == c"[":
                self.state = State.ANONYMOUS_GRAPH
                return at + 1
            next = self.node_at(at, end, &self.subject)
            self.state = State.BLOCK
        elif state == State.ANONYMOUS_GRAPH:
            self.new_blank(&self.subject)
            self.state = State.BLOCK
            return at + 1 if c == c"]" else NULL
        elif state == State.BLOCK:
            if c != c"{":
                return NULL
            self.subject.term = self.term_of(&self.subject)
            return self.block(at, end)
        elif state == State.PREFIX_NAME:
            next = prefix_end(at, end)
            if next == NULL or not (next + 1 == end or separates(<uint8_t>next[1])):
                return NULL
            with gil:
                self.prefix_name = at[:next - at]
            next += 1
            self.state = State.PREFIX_IRI
        elif state == State.PREFIX_IRI or state == State.BASE_IRI:
            return self.declaration(at, end)
        elif state == State.VERSION:
            return self.version(at, end)
        elif state == State.DIRECTIVE_DOT:
            if c != c"." or self.begins_number(at, end):
                return NULL
            next = self.directive_end(at + 1)
        elif state == State.MESSAGE_DOT:
            if c != c"." or not self.is_delimited(at + 1, at + 1, end):
                return NULL
            self.events.delimit(self.message_line)
            next = self.directive_end(at + 1)
        else:
            return NULL
        return next

    # ------------------------------------------------------------ directives

    cdef const char* directive_end(self, const char* at) except NULL nogil:
        """The end of a directive; a base applies from here on."""
        self.state = State.START
        if self.has_base:
            self.has_base = False
            with gil:
                self.set_base(self.next_base)
        self.begin, self.begin_line = at, self.line
        return at

    cdef const char* declaration(self, const char* at, const char* end) except? NULL nogil:
        """The IRI of a prefix or a base."""
        cdef const char* close
        cdef term_t term = 0
        cdef TermRecord* record
        if at[0] != c"<":
            return NULL
        close = iri_end(at, end)
        if close == NULL or not self.iri(at, close - at, True, &term):
            return NULL
        record = record_of(self.events.batch, term)
        with gil:
            if self.state == State.PREFIX_IRI:
                self.declare(self.prefix_name, record.text[1:record.size - 1])
            else:
                self.has_base = True
                self.next_base = record.text[1:record.size - 1].decode()
        if self.at_sign:
            self.state = State.DIRECTIVE_DOT
            return close
        return self.directive_end(close)

    cdef const char* version(self, const char* at, const char* end) except? NULL nogil:
        """The label of a version."""
        cdef const char* close
        cdef bint escaped = False
        if at[0] != c'"' and at[0] != c"'" or (
            end - at >= 3 and at[1] == at[0] and at[2] == at[0]
        ):
            return NULL
        close = short_string_end(at, end, &escaped)
        if close == NULL or escaped:
            return NULL
        if self.at_sign:
            self.state = State.DIRECTIVE_DOT
            return close + 1
        return self.directive_end(close + 1)

    # ------------------------------------------------------------ statements

    cdef const char* end_of_list(self, const char* at, const char* end) except? NULL nogil:
        """The token after the objects of the last predicate; NULL: not certainly valid."""
        if at[0] == c"]":
            return self.close_brackets(at)
        if self.depth:
            return NULL
        if at[0] == c"." and not self.begins_number(at, end):
            self.commit()
            self.begin, self.begin_line = at + 1, self.line
            return at + 1
        if at[0] == c"}" and self.in_block:
            self.commit()
            return at           # the end of the block, in the state START
        return NULL

    cdef inline bint begins_number(self, const char* at, const char* end) noexcept nogil:
        """Whether the dot at `at` is a part of a number."""
        return end - at >= 2 and c"0" <= at[1] <= c"9"

    cdef int commit(self) except -1 nogil:
        """Pass on the triples of a complete statement."""
        cdef uint32_t i
        cdef term_t graph
        cdef Quad* quad
        for i in range(self.count):
            quad = &self.quads[i]
            graph = quad.graph
            if self.events.needs_nodes:
                graph = 0 if quad.blank_subject or quad.blank_object else quad.subject
            if not quad.kept and not quad.timing and graph and (
                graph == self.events.name and self.events.is_open
                and self.events.cut != Cut.TRIPLES
            ):
                self.events.statements += 1
            else:
                self.events.read_statement(quad)
        self.count = self.first = 0
        if self.subject.text != NULL:
            self.last_subject = self.subject
        memset(&self.subject, 0, sizeof(Node))
        self.state = State.START
        self.block_begun = True
        return 0

    cdef inline int complete(self) except -1 nogil:
        """Add the triple with the object that has just been read."""
        self.emit()
        if not self.is_plain:       # else the next token completes it
            self.end_token()
        return 0

    cdef inline int emit(self) except -1 nogil:
        """Add the triple of the current subject, predicate and object."""
        cdef Predicate* column = self.column
        cdef Quad* quad
        if self.count == self.room:
            self.make_room()
        quad = &self.quads[self.count]
        quad.predicate = column.term
        quad.object = self.value
        quad.graph = self.graph.term
        quad.line = self.line
        quad.timing = column.timing
        quad.blank_object = self.blank_value
        quad.kept = column.keep == Keep.EVERY or (
            column.keep == Keep.SOME
            and keeps_object(self.events.relevance, column.term, self.value)
        )
        if self.subject.term == 0 and (
            quad.kept or column.timing and quad.graph == 0 or self.events.needs_nodes
        ):
            self.subject.term = self.term_of(&self.subject)
        quad.subject = self.subject.term
        quad.blank_subject = _is_blank(&self.subject)
        self.count += 1
        return 0

    cdef int make_room(self) except -1 nogil:
        """Make room for more triples of a statement."""
        cdef Quad* grown = <Quad*>mem_realloc(
            self.quads, (2 * <size_t>self.room + 16) * sizeof(Quad)
        )
        if grown == NULL:
            with gil:
                raise MemoryError
        self.quads = grown
        self.room = 2 * self.room + 16
        return 0

    cdef int item(
        self, Predicate* predicate, const char* name, size_t size, Node* node
    ) except -1 nogil:
        """Add a triple of a list about `subject`; `node`: NULL for the empty list."""
        cdef Predicate* column = self.column
        self.column = self.list_predicate(predicate, name, size)
        self.is_plain = False
        self.blank_value = node != NULL
        if node != NULL:
            self.value = self.wanted_node(node)
        else:
            self.value = 0
            if self.is_wanted():
                self.value = self.entered(RDF_NIL, NIL_SIZE)
        self.emit()
        self.column = column
        return 0

    cdef Predicate* list_predicate(
        self, Predicate* predicate, const char* name, size_t size
    ) except NULL nogil:
        if predicate.term == 0:
            self.describe(predicate, self.entered(name, size))
        return predicate

    cdef int begin_items(self, Node* node) except -1 nogil:
        """Begin a list: its first node is the subject of its first item."""
        self.subject = node[0]
        self.column = self.list_predicate(&self.items_first, RDF_FIRST, FIRST_SIZE)
        self.state = State.OBJECT
        return 0

    cdef inline bint is_wanted(self) noexcept nogil:
        """Whether some query may use the triple, or its object is a timestamp."""
        return self.column.keep != Keep.NOTHING or self.column.timing

    cdef int nil_object(self) except -1 nogil:
        self.value = 0
        self.blank_value = self.is_plain = False
        if self.is_wanted():
            self.value = self.entered(RDF_NIL, NIL_SIZE)
        self.state = self.after
        self.emit()
        self.end_token()
        return 0

    cdef const char* close_brackets(self, const char* at) except? NULL nogil:
        """The bracket at `at`; NULL if it does not close the innermost brackets."""
        cdef Node node
        cdef uint8_t kind
        if self.depth == 0:
            return NULL
        kind = self.frames[self.depth - 1].kind
        if (at[0] == c")") != (
            kind == Enclosing.SUBJECT_ITEMS or kind == Enclosing.OBJECT_ITEMS
        ):
            return NULL
        node = self.subject
        if at[0] == c")":
            self.item(&self.items_rest, RDF_REST, REST_SIZE, NULL)
        self.pop()
        if kind == Enclosing.SUBJECT_PROPERTIES:
            self.state = State.AFTER_PROPERTIES
        elif kind == Enclosing.SUBJECT_ITEMS:
            self.state = State.VERB
        else:
            self.state = self.after
            if kind == Enclosing.OBJECT_PROPERTIES:
                self.value = self.wanted_node(&node)
                self.blank_value = True
                self.emit()
        self.end_token()
        return at + 1

    cdef int push(self, Enclosing kind) except -1 nogil:
        """Enter brackets."""
        cdef Frame* grown
        cdef Frame* frame
        if self.depth >= MAX_NESTED_BRACKETS:
            with gil:
                raise LimitError(DEEP_BRACKETS)
        if self.depth == self.frame_room:
            grown = <Frame*>mem_realloc(
                self.frames, (2 * <size_t>self.frame_room + 8) * sizeof(Frame)
            )
            if grown == NULL:
                with gil:
                    raise MemoryError
            self.frames = grown
            self.frame_room = 2 * self.frame_room + 8
        frame = &self.frames[self.depth]
        frame.subject = self.subject
        frame.column = self.column
        frame.predicate = self.column.term
        frame.keep = self.column.keep
        frame.timing = self.column.timing
        frame.kind = kind
        self.depth += 1
        self.set_after()
        return 0

    cdef void pop(self) noexcept nogil:
        """Leave the innermost brackets."""
        cdef Frame* frame
        self.depth -= 1
        self.settled = min(self.settled, self.depth)
        frame = &self.frames[self.depth]
        self.subject = frame.subject
        # Another predicate may have the slot by now, or another batch may have begun.
        if frame.column.term == frame.predicate and frame.column != &self.detached:
            self.column = frame.column
        else:
            self.detach(frame.predicate, frame.keep, frame.timing)
        self.set_after()

    cdef void set_after(self) noexcept nogil:
        self.after = State.AFTER_OBJECT
        if self.depth and (
            self.frames[self.depth - 1].kind == Enclosing.SUBJECT_ITEMS
            or self.frames[self.depth - 1].kind == Enclosing.OBJECT_ITEMS
        ):
            self.after = State.LIST_NEXT

    # ------------------------------------------------------------ subjects and predicates

    cdef void new_blank(self, Node* node) noexcept nogil:
        memset(node, 0, sizeof(Node))
        self.blanks += 1
        node.number = self.blanks

    cdef const char* node_at(
        self, const char* at, const char* end, Node* node
    ) except? NULL nogil:
        """The end of the subject or name of a graph at `at`; NULL: not sure, or a keyword."""
        cdef const char* close
        cdef const Node* last = &self.last_subject
        cdef bint escaped = False
        if last.text != NULL and <size_t>(end - at) > last.size and (
            same(at, last.text, last.size)
            and (at[0] == c"<" or separates(<uint8_t>at[last.size]))
        ):
            node[0] = last[0]
            return at + node.size
        memset(node, 0, sizeof(Node))
        node.text = at
        if at[0] == c"<":
            node.form = Form.IRI
            close = iri_close(at, end, &self.beginning)
            if close == NULL:
                close = iri_end(at, end)
                if close == NULL:
                    return NULL
                if not is_iri(at + 1, close - at - 2, &self.beginning):
                    node.form = Form.OTHER
                    if not self.iri(at, close - at, True, &node.term):
                        return NULL
        elif at[0] == c"_":
            if end - at < 3 or at[1] != c":":
                return NULL
            node.form = Form.LABEL
            close = label_end(at, end)
            if close == NULL or not label_ends(close, end):
                return NULL
        else:
            node.form = Form.AT_NAME
            close = prefix_end(at, end)
            if close == NULL:
                return NULL
            close = local_end(close + 1, end, &escaped)
            if close == NULL or not name_ends(close, end):
                return NULL
            # A name with escapes is built to be validated, so it is entered at once.
            if not self.name(at, close - at, escaped, escaped, &node.term):
                return NULL
        node.size = close - at
        return close if node.size <= MOST_TOKEN else NULL

    cdef term_t term_of(self, Node* node) except 0 nogil:
        """The number of a node, which is entered into the batch."""
        cdef char label[64]
        cdef int size
        cdef term_t term = node.term
        cdef uint64_t hash
        if term:
            return term
        if node.form == Form.IRI or node.form == Form.LABEL:
            hash = hash_of(node.text, node.size)
            term = known_term(self.events.batch, hash, node.text, <uint32_t>node.size)
            if term == 0:
                term = self.events.batch.enter(hash, node.text, <uint32_t>node.size, False)
        elif node.form == Form.AT_NAME:
            self.name(
                node.text, node.size, memchr(node.text, c"\\", node.size) != NULL, True, &term
            )
        else:
            size = snprintf(
                label, 64, b"_:b%016llx%llx",
                <unsigned long long>self.seed, <unsigned long long>node.number,
            )
            term = self.entered(label, size)
        node.term = term
        return term

    cdef term_t wanted_node(self, Node* node) except? 0 nogil:
        """The number of a blank node that is an object; 0 if nothing needs it."""
        return self.term_of(node) if self.is_wanted() or self.events.needs_nodes else 0

    cdef inline const char* verb(self, const char* at, const char* end) except? NULL nogil:
        """The end of the predicate at `at`; NULL if it is not certainly valid."""
        cdef const char* close
        cdef Predicate* column = self.column.next
        cdef Form form
        cdef bint escaped = False
        if column.spaced and <size_t>(end - at) > column.size and (
            same(at, column.text, column.size + 1)
        ):
            self.column = column
            return at + column.size + 1
        if at[0] == c"<":
            form = Form.IRI
            close = iri_end(at, end)
            if close == NULL:
                return NULL
        elif at[0] == c"a" and (at + 1 == end or separates(<uint8_t>at[1])):
            form = Form.NO_TEXT
            close = at + 1
        else:
            form = Form.AT_NAME
            close = prefix_end(at, end)
            if close == NULL:
                return NULL
            close = local_end(close + 1, end, &escaped)
            if close == NULL or not name_ends(close, end):
                return NULL
        column = self.predicate_column(at, close - at, form, escaped)
        if column == NULL:
            return NULL
        column.spaced = close < end and close[0] == c" "
        if column.spaced:
            column.text = at
        return close

    cdef Predicate* predicate_column(
        self, const char* text, size_t size, Form form, bint escaped
    ) except? NULL nogil:
        """The column of a predicate that was not predicted; NULL: not certainly an IRI."""
        cdef uint64_t hash = hash_of(text, size)
        cdef uint32_t first = hash & (COLUMNS - 1)
        cdef Predicate* column = &self.columns[first]
        cdef term_t term = 0
        cdef int i
        if size > MOST_TOKEN:
            return NULL
        for i in range(TRIED):
            column = &self.columns[(first + i) & (COLUMNS - 1)]
            if column.text == NULL or (
                column.hash == hash and column.size == size and same(column.text, text, size)
            ):
                break
        else:
            column = &self.columns[first]
            column.text = NULL
        if column.text == NULL:
            if form == Form.IRI:
                if not self.iri(text, size, True, &term):
                    return NULL
            elif form == Form.AT_NAME:
                if not self.name(text, size, escaped, True, &term):
                    return NULL
            else:
                term = self.entered(RDF_TYPE, TYPE_SIZE)
            memset(column, 0, sizeof(Predicate))
            column.next = self.columns
            column.hash = hash
            column.text = text
            column.size = size
            self.describe(column, term)
        self.column.next = column
        self.column = column
        return column

    cdef int describe(self, Predicate* column, term_t term) except -1 nogil:
        """Set the term of a predicate, and what follows from it."""
        cdef int i
        column.term = term
        column.keep = keep_of(self.events.relevance, term)
        column.timing = False
        for i in range(3):
            if term == self.events.about[i]:
                column.timing = True
        return 0

    # ------------------------------------------------------------ objects

    cdef inline const char* object_at(self, const char* at, const char* end) except? NULL nogil:
        """The end of the object at `at`; NULL if it is not certainly valid.

        Sets `state` if the next token continues the object.
        """
        cdef char c = at[0]
        cdef const char* close
        self.value = 0
        self.blank_value = False
        self.is_plain = False
        if c == c'"' or c == c"'":
            return self.string_object(at, end)
        if c == c"<":
            return self.iri_object(at, end)
        if c == c"[":
            self.state = State.ANONYMOUS_OBJECT
            return at + 1
        if c == c"(":
            self.state = State.LIST_OBJECT
            return at + 1
        if c == c"_":
            if end - at < 3 or at[1] != c":":
                return NULL
            close = label_end(at, end)
            if close == NULL or close - at > MOST_TOKEN or not label_ends(close, end):
                return NULL
            self.blank_value = True
            if self.is_wanted() or self.events.needs_nodes:
                self.value = self.token_term(at, close - at)
            return close
        if c"0" <= c <= c"9" or c == c"-" or c == c"+" or c == c".":
            return self.number_object(at, end)
        return self.name_object(at, end)

    cdef inline term_t token_term(self, const char* text, size_t size) except 0 nogil:
        """The number of a term whose text is in the buffer."""
        cdef uint64_t hash = hash_of(text, size)
        cdef term_t term = known_term(self.events.batch, hash, text, <uint32_t>size)
        if term == 0:
            term = self.events.batch.enter(hash, text, <uint32_t>size, False)
        return term

    cdef inline const char* iri_object(self, const char* at, const char* end) except? NULL nogil:
        cdef Predicate* column = self.column
        cdef const char* close
        if column.value.text != NULL and <size_t>(end - at) > column.value.size and (
            same(at, column.value.text, column.value.size)
        ):
            self.value = column.value.term
            return at + column.value.size
        close = iri_close(at, end, &self.beginning)
        if close != NULL and close - at <= MOST_TOKEN:
            if self.is_wanted():
                self.value = self.token_term(at, close - at)
        else:
            close = iri_end(at, end)
            if close == NULL or not self.iri(at, close - at, self.is_wanted(), &self.value):
                return NULL
        column.value.text = at
        column.value.size = close - at
        column.value.term = self.value
        column.value_is_name = False
        return close

    cdef const char* name_object(self, const char* at, const char* end) except? NULL nogil:
        cdef Predicate* column = self.column
        cdef const char* close
        cdef bint escaped = False
        if column.value_is_name and <size_t>(end - at) > column.value.size and (
            same(at, column.value.text, column.value.size)
            and separates(<uint8_t>at[column.value.size])
        ):
            self.value = column.value.term
            return at + column.value.size
        close = prefix_end(at, end)
        if close == NULL:
            close = word_end(at, end)
            if not word_ends(close, end):
                return NULL
            if _is(at, close - at, b"true", 4):
                if self.is_wanted():
                    self.value = self.entered(TRUE, TRUE_SIZE)
                return close
            if _is(at, close - at, b"false", 5):
                if self.is_wanted():
                    self.value = self.entered(FALSE, FALSE_SIZE)
                return close
            return NULL
        close = local_end(close + 1, end, &escaped)
        if close == NULL or not name_ends(close, end):
            return NULL
        if not self.name(at, close - at, escaped, self.is_wanted(), &self.value):
            return NULL
        column.value.text = at
        column.value.size = close - at
        column.value.term = self.value
        column.value_is_name = True
        return close

    cdef const char* number_object(self, const char* at, const char* end) except? NULL nogil:
        cdef NumberKind kind
        cdef const char* close = number_end(at, end, &kind)
        cdef const char* of_type = OF_INTEGER
        cdef size_t size = OF_NUMBER_SIZE
        if close == NULL or close - at > MOST_TOKEN:
            return NULL
        if not self.is_wanted():
            return close
        if kind == NumberKind.DECIMAL:
            of_type = OF_DECIMAL
        elif kind == NumberKind.DOUBLE:
            of_type = OF_DOUBLE
            size -= 1
        self.reserve((close - at) + 1 + size)
        self.scratch[0] = c'"'
        memcpy(self.scratch + 1, at, close - at)
        memcpy(self.scratch + 1 + (close - at), of_type, size)
        self.value = self.entered(self.scratch, (close - at) + 1 + size)
        return close

    cdef inline const char* string_object(self, const char* at, const char* end) except? NULL nogil:
        """The end of the literal at `at`, or the point where the next token continues it."""
        cdef const char* close
        cdef bint escaped = False
        cdef char mark = at[0]
        self.end_token()
        if end - at >= 3 and at[1] == mark and at[2] == mark:
            return self.long_string(at, end)
        close = short_string_end(at, end, &escaped)
        if close == NULL:
            return NULL
        return self.literal(at + 1, close, close + 1, end, escaped, False)

    cdef const char* long_string(self, const char* at, const char* end) except? NULL nogil:
        """Like `string_object`, for a long string."""
        cdef char mark = at[0]
        cdef const char* close = long_end(at + 3, end, mark)
        if close == NULL:
            self.mark = mark
            self.text_size = 0
            self.state = State.LONG
            self.line += line_count(at, end)
            self.gather(b'"', 1)
            self.gather(at + 3, end - at - 3)
            return end
        self.line += line_count(at, close)
        return self.literal(
            at + 3, close - 3, close, end, memchr(at, c"\\", close - at) != NULL, False
        )

    cdef const char* long_rest(self, const char* at, const char* end) except? NULL nogil:
        """The rest of a long string that begins in an earlier piece."""
        cdef const char* close = long_end(at, end, self.mark)
        if self.text_size + (end - at) > MOST_STRING:
            return NULL
        if close == NULL:
            self.line += line_count(at, end)
            self.gather(at, end - at)
            return end
        self.line += line_count(at, close)
        self.gather(at, close - 3 - at)
        self.state = self.after
        at = self.literal(self.text + 1, self.text + self.text_size, close, end, True, True)
        if at != NULL and self.state == self.after:
            self.complete()
        return at

    cdef int gather(self, const char* text, size_t size) except -1 nogil:
        """Append to the string of a literal that is not complete."""
        cdef char* grown
        if self.text_size + size + 2 > self.text_room:
            grown = <char*>mem_realloc(self.text, 2 * (self.text_size + size) + 64)
            if grown == NULL:
                with gil:
                    raise MemoryError
            self.text = grown
            self.text_room = 2 * (self.text_size + size) + 64
        memcpy(self.text + self.text_size, text, size)
        self.text_size += size
        return 0

    cdef inline const char* literal(
        self, const char* start, const char* stop, const char* at, const char* end, bint escaped,
        bint gathered,
    ) except? NULL nogil:
        """The end of the literal whose string is start[:stop - start] and ends before `at`.

        `gathered`: whether the string is in `text`. The suffix, if any, follows without space, or
        the next token continues the literal.
        """
        cdef Predicate* column = self.column
        cdef const char* suffix = at
        cdef const char* suffix_end = at
        cdef const char* close = at
        cdef const char* text = start - 1
        cdef size_t size
        cdef bint as_is = not escaped and text[0] == c'"'
        if stop - start > MOST_STRING:
            return NULL
        if end - at >= 3 and at[0] == c"^" and at[1] == c"^":
            close = at + 2
            if column.datatype != NULL and <size_t>(end - close) > column.datatype_size and (
                same(close, column.datatype, column.datatype_size)
                and (close[0] == c"<" or separates(<uint8_t>close[column.datatype_size]))
            ):
                close += column.datatype_size
            elif <uint8_t>close[0] <= c" " or close[0] == c"#":
                self.state = State.DATATYPE
                return close if self.stash(start, stop, escaped) else NULL
            else:
                close = self.datatype_at(close, end)
                if close == NULL:
                    return NULL
            if column.is_string:
                size = stop + 1 - text
            else:
                suffix, suffix_end = column.full, column.full + column.full_size
                as_is = as_is and column.is_direct and stop + 1 == at
                size = close - text
        elif at < end and at[0] == c"@":
            as_is = as_is and stop + 1 == at
            close = self.language(at, end, &as_is)
            if close == NULL or not name_ends(close, end):
                return NULL
            suffix_end = close
            size = close - text
        else:
            close = behind_space(at, end)
            if close == end or close[0] == c"@" or close[0] == c"^" or close[0] == c"#" or (
                close[0] == c"\n" or close[0] == c"\r"
            ):
                self.state = State.SUFFIX
                return at if self.stash(start, stop, escaped) else NULL
            close = at
            self.is_plain = True
            size = stop + 1 - text
        if not self.is_wanted() and not escaped:
            return close
        if not gathered and column.value.text != NULL and (
            column.value.size == <size_t>(close - text)
            and same(column.value.text, text, column.value.size)
        ):
            self.value = column.value.term
            return close
        if as_is and not gathered:
            if self.is_wanted():
                self.value = self.token_term(text, size)
        else:
            size = self.build_literal(text, stop, suffix, suffix_end)
            if size == 0:
                return NULL
            if self.is_wanted():
                self.value = self.entered(self.scratch, size)
        if not gathered:
            column.value.text = text
            column.value.size = close - text
            column.value.term = self.value
            column.value_is_name = False
        return close

    cdef bint stash(self, const char* start, const char* stop, bint escaped) except -1 nogil:
        """Store the string of a literal that the next token continues; False for a bad escape."""
        cdef Py_ssize_t size = stop - start
        if start != self.text + 1:
            self.text_size = 0
            self.gather(b'"', 1)
            self.gather(start, size)
        if escaped:
            size = unescaped(self.text + 1, self.text + 1 + size, self.text + 1, True)
        if size < 0:
            return False
        self.text[size + 1] = c'"'
        self.text_size = size + 2
        return True

    cdef const char* suffix(self, const char* at, const char* end) except? NULL nogil:
        """The token after a string that is in `text`."""
        cdef Predicate* column = self.column
        cdef const char* close = at
        cdef const char* full = at
        cdef size_t size
        cdef bint is_plain = True
        self.value = 0
        self.blank_value = self.is_plain = False
        if self.state == State.DATATYPE:
            close = self.datatype_at(at, end)
            if close == NULL:
                return NULL
            self.gather(b"^^", 2)
            self.gather(column.full, column.full_size)
            if column.is_string:
                self.text_size -= column.full_size + 2
        elif at[0] == c"@":
            close = self.language(at, end, &is_plain)
            if close == NULL or not name_ends(close, end):
                return NULL
            size = self.text_size
            self.gather(at, close - at)
            while size < self.text_size:
                if c"A" <= self.text[size] <= c"Z":
                    self.text[size] += c"a" - c"A"
                size += 1
        elif at[0] == c"^":
            if end - at < 2 or at[1] != c"^":
                return NULL
            self.state = State.DATATYPE
            return at + 2
        if self.is_wanted():
            self.value = self.entered(self.text, self.text_size)
        self.state = self.after
        self.emit()
        if close != at:
            self.end_token()
        return close            # if there is no suffix, the token at `at` completes the triple

    cdef const char* datatype_at(self, const char* at, const char* end) except? NULL nogil:
        """The end of the datatype at `at`; NULL if it is not certainly valid."""
        cdef Predicate* column = self.column
        cdef const char* close
        cdef TermRecord* record
        cdef term_t term = 0
        cdef bint escaped = False
        column.datatype = NULL
        if at >= end:
            return NULL
        if at[0] == c"<":
            close = iri_end(at, end)
            if close == NULL or close - at > MOST_TOKEN:
                return NULL
            column.is_direct = is_iri(at + 1, close - at - 2, &self.beginning)
            if not column.is_direct and not self.iri(at, close - at, True, &term):
                return NULL
        else:
            column.is_direct = False
            close = prefix_end(at, end)
            if close == NULL:
                return NULL
            close = local_end(close + 1, end, &escaped)
            if close == NULL or not name_ends(close, end):
                return NULL
            if not self.name(at, close - at, escaped, True, &term):
                return NULL
        if column.is_direct:
            column.full = at
            column.full_size = close - at
        else:
            record = record_of(self.events.batch, term)
            column.full = record.text
            column.full_size = record.size
        if _is(column.full, column.full_size, LANG_STRING, LANG_STRING_SIZE) or (
            _is(column.full, column.full_size, DIR_LANG_STRING, DIR_LANG_STRING_SIZE)
        ):
            return NULL
        column.is_string = _is(column.full, column.full_size, XSD_STRING, XSD_STRING_SIZE)
        column.datatype = at
        column.datatype_size = close - at
        return close

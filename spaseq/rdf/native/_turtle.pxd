"""Turtle and TriG → statements; see _turtle.pyx."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from spaseq.rdf.native._nquads_terms cimport Token
from spaseq.rdf.native._turtle_names cimport NameReader
from spaseq.rdf.native._quads cimport Quad
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport term_t

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
    NAME                # prefix:local
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


@cython.final
cdef class DocumentReader(NameReader):
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

    cdef void detach(self, term_t predicate, uint8_t keep, bint timing) noexcept nogil
    cdef int attach(self, block) except -1
    cdef int settle(self) except -1
    cdef const char* run(self, const char* at, const char* end) except NULL nogil
    cdef void end_token(self) noexcept nogil
    cdef const char* begun(self, const char* at, const char* end) except? NULL nogil
    cdef const char* block(self, const char* at, const char* end) except? NULL nogil
    cdef const char* keyword(self, const char* at, const char* end) except? NULL nogil
    cdef bint is_delimited(
        self, const char* at, const char* close, const char* end
    ) noexcept nogil
    cdef const char* directive(self, const char* at, const char* end) except? NULL nogil
    cdef const char* rare(self, const char* at, const char* end) except? NULL nogil
    cdef const char* directive_end(self, const char* at) except NULL nogil
    cdef const char* declaration(self, const char* at, const char* end) except? NULL nogil
    cdef const char* version(self, const char* at, const char* end) except? NULL nogil
    cdef const char* end_of_list(self, const char* at, const char* end) except? NULL nogil
    cdef bint begins_number(self, const char* at, const char* end) noexcept nogil
    cdef int commit(self) except -1 nogil
    cdef int complete(self) except -1 nogil
    cdef int emit(self) except -1 nogil
    cdef int make_room(self) except -1 nogil
    cdef int item(
        self, Predicate* predicate, const char* name, size_t size, Node* node
    ) except -1 nogil
    cdef Predicate* list_predicate(
        self, Predicate* predicate, const char* name, size_t size
    ) except NULL nogil
    cdef int begin_items(self, Node* node) except -1 nogil
    cdef bint is_wanted(self) noexcept nogil
    cdef int nil_object(self) except -1 nogil
    cdef const char* close_brackets(self, const char* at) except? NULL nogil
    cdef int push(self, Enclosing kind) except -1 nogil
    cdef void pop(self) noexcept nogil
    cdef void set_after(self) noexcept nogil
    cdef void new_blank(self, Node* node) noexcept nogil
    cdef const char* node_at(
        self, const char* at, const char* end, Node* node
    ) except? NULL nogil
    cdef term_t term_of(self, Node* node) except 0 nogil
    cdef term_t wanted_node(self, Node* node) except? 0 nogil
    cdef term_t token_term(self, const char* text, size_t size) except 0 nogil
    cdef const char* verb(self, const char* at, const char* end) except? NULL nogil
    cdef Predicate* predicate_column(
        self, const char* text, size_t size, Form form, bint escaped
    ) except? NULL nogil
    cdef int describe(self, Predicate* column, term_t term) except -1 nogil
    cdef const char* object_at(self, const char* at, const char* end) except? NULL nogil
    cdef const char* iri_object(self, const char* at, const char* end) except? NULL nogil
    cdef const char* name_object(self, const char* at, const char* end) except? NULL nogil
    cdef const char* number_object(self, const char* at, const char* end) except? NULL nogil
    cdef const char* string_object(self, const char* at, const char* end) except? NULL nogil
    cdef const char* long_string(self, const char* at, const char* end) except? NULL nogil
    cdef const char* long_rest(self, const char* at, const char* end) except? NULL nogil
    cdef int gather(self, const char* text, size_t size) except -1 nogil
    cdef const char* literal(
        self, const char* start, const char* stop, const char* at, const char* end, bint escaped,
        bint gathered,
    ) except? NULL nogil
    cdef bint stash(self, const char* start, const char* stop, bint escaped) except -1 nogil
    cdef const char* suffix(self, const char* at, const char* end) except? NULL nogil
    cdef const char* datatype_at(self, const char* at, const char* end) except? NULL nogil

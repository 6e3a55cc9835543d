"""The declarations of _framing.pyx that other modules use."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t

from spaseq.rdf.native._terms cimport EventBatch, EventRecord, Relevance, term_t

# A statement as the readers of files pass it on.

# Blank nodes have the file's labels here.
cdef struct Quad:
    term_t subject      # 0 if no query can use it
    term_t predicate
    term_t object       # 0 if no query can use it
    term_t graph        # 0: the default graph
    uint64_t line
    bint kept           # a query can use it
    bint timing         # its predicate is one of timestamps
    bint blank_subject
    int blank_object    # 1: the object is a blank node, 2: a triple term with one

# framing/minting.pxi

cdef struct Own:
    term_t label        # a blank node of the file; 0: an empty slot
    term_t node         # the blank node of the event


cdef term_t moved(EventBatch source, term_t term, EventBatch target) except? 0 nogil
cdef bint is_blank(EventBatch batch, term_t term) noexcept nogil


@cython.final
cdef class Minter:
    cdef uint32_t number        # of the source in its run
    cdef uint64_t made          # events so far
    cdef int64_t last           # the time of the last event
    cdef uint32_t ordinal
    cdef Own* owns              # the blank nodes of the open event: a hash table
    cdef uint32_t mask, known

    cdef void forget(self) noexcept nogil
    cdef term_t own(self, EventBatch batch, term_t label) except 0 nogil
    cdef term_t own_triple(self, EventBatch batch, term_t term) except 0 nogil
    cdef uint32_t put_own(
        self, EventBatch batch, const char* text, uint32_t size, char* out
    ) except 0 nogil
    cdef int _widen(self) except -1 nogil
    cdef void number_event(self, EventRecord* event) noexcept nogil
    cdef int move(self, EventBatch source, EventBatch target) except -1 nogil

# framing/closed_graphs.pxi

cdef struct Entry:
    uint32_t tag        # the lower half of the hash
    uint32_t offset     # of the text in `bytes`
    uint32_t size       # of it; with the flag SHORTENED the name is `beginning` and the text
    uint32_t before     # the position of the next older name of the chain
    uint32_t line       # the line where the graph began, at most 2**32 - 1
    uint32_t file       # the number of its file


@cython.final
cdef class ClosedNames:
    cdef Entry* entries     # a ring of `capacity`; position p is at index p - 1
    cdef uint32_t* heads    # 2 * capacity chains by hash: the position of the newest name, or 0
    cdef uint32_t next      # the position of the next name
    cdef uint32_t capacity, count
    cdef uint64_t* recent   # a bit per hash of the names since the last turn, and
    cdef uint64_t* older    # of the REMEMBERED names before them: no bit in either, no such name
    cdef uint32_t turn      # how many names were inserted since the last turn
    cdef char* bytes        # a ring of `room`: texts from the oldest entry's to `write`
    cdef size_t room, write
    cdef size_t held        # bytes of texts
    cdef char* beginning    # the common prefix, of the first name; NULL before a first name
    cdef uint32_t beginning_size

    cdef void expect(self, uint64_t hash) noexcept nogil
    cdef const Entry* find(self, uint64_t hash, const char* text, uint32_t size) noexcept nogil
    cdef bint _begins(self, const char* text, uint32_t size) noexcept nogil
    cdef int add(
        self, uint64_t hash, const char* text, uint32_t size, uint64_t line, uint32_t file
    ) except -1 nogil
    cdef int _begin(self, const char* text, uint32_t size) except -1 nogil
    cdef void _mark(self, uint64_t hash) noexcept nogil
    cdef void _forget(self) noexcept nogil
    cdef Entry* _oldest(self, uint32_t i) noexcept nogil
    cdef int _widen(self) except -1 nogil
    cdef int _make_room(self, uint32_t size) except -1 nogil

# framing/term_map.pxi

cdef struct Mapped:
    term_t term         # 0: an empty slot
    uint32_t value

# Open addressing; never more than half full.
cdef struct TermMap:
    Mapped* slots
    uint32_t mask
    uint32_t used

# framing/subjects.pxi

# A statement about a node to which no subject has referred.
cdef struct Waiting:
    Quad quad
    uint32_t next       # of the same node; the last one leads to the first
    bint taken          # it has been passed on


@cython.final
cdef class Subjects:
    cdef uint32_t most          # statements that may wait
    cdef uint32_t limit         # the same for this file, whose nodes may all be connected
    cdef term_t current         # the subject of the event, 0 before the first
    cdef TermMap own             # its blank nodes
    cdef Waiting* waiting
    cdef uint32_t count, live, room     # `live` of them have not been passed on
    cdef TermMap heads           # the last waiting statement of each node, or NOWHERE
    cdef uint32_t* claimed      # the positions of those that a statement refers to
    cdef term_t* queue          # nodes that are reached
    cdef Quad* ready            # what the last call passes on
    cdef uint32_t ready_count, ready_room

    cdef void clear(self) noexcept nogil
    cdef int take(self, const Quad* quad) except -1 nogil
    cdef int rest(self) except -1 nogil
    cdef int move(self, EventBatch source, EventBatch target) except -1
    cdef int put(self, const Quad* quad, term_t graph, bint owned) except -1 nogil
    cdef int wait(self, const Quad* quad) except -1 nogil
    cdef int chain(self, uint32_t place) except -1 nogil
    cdef uint32_t claim(self, term_t node) noexcept nogil
    cdef int roots(self, uint32_t behind) except -1 nogil
    cdef int release(self) except -1 nogil
    cdef int compact(self, bint always) except -1 nogil

# framing/collector.pxi

# A statement of a graph, or about its name.
cdef struct Fact:
    term_t subject
    term_t predicate
    term_t object
    uint32_t next           # of the same chain; 0: none
    uint32_t form

cdef struct Group:
    term_t name
    uint32_t file           # the number of its file
    uint64_t order          # its position among the groups, by their first statements
    uint64_t line           # of its first statement
    uint32_t first_fact, last_fact
    uint32_t first_stamp, last_stamp    # of the statements of the default graph about the name
    uint32_t statements     # facts that are not stored
    uint32_t described      # facts about the name
    uint8_t is_event        # it has quads or a timestamp

# An event of the batch, and what orders it.
cdef struct Place:
    int64_t micros
    uint64_t order
    uint32_t event
    uint32_t file


@cython.final
cdef class Collector:
    cdef readonly EventBatch batch  # the terms of the facts; then the events too
    cdef readonly list files        # the names of the files; this one is the last
    cdef bytes scope                # precedes the labels of blank nodes
    cdef const char* scope_text
    cdef size_t scope_size
    cdef readonly uint64_t unused   # statements of no event
    cdef uint64_t before            # the order of the first group
    cdef Fact* facts                # facts[0] is unused
    cdef uint32_t fact_count, fact_room
    cdef Group* groups
    cdef uint32_t count, room
    cdef uint32_t done              # groups that have become events or are none
    cdef TermMap names              # the number of the group of a name
    cdef Place* places
    cdef uint32_t placed, place_room

    cdef EventBatch source          # the batch whose terms were copied last
    cdef term_t* copies             # by local term of it: the term of `batch`, or 0
    cdef uint32_t copy_room
    cdef char* text                 # a label with its scope, or a blob
    cdef size_t text_size, text_room

    cdef term_t stored(self, EventBatch source, term_t term) except? 0 nogil
    cdef int new_source(self, EventBatch source) except -1
    cdef int write_scoped(self, const char* text, uint32_t size) except -1 nogil
    cdef term_t enter(self, const char* text, uint32_t size) except 0 nogil
    cdef uint32_t group(self, EventBatch source, term_t name, uint64_t line) except? 0 nogil
    cdef uint32_t group_of(self, term_t name, uint64_t line) except? 0 nogil
    cdef int describe(
        self, EventBatch source, const Quad* quad, bint is_stored
    ) except -1 nogil
    cdef int add(
        self, EventBatch source, uint32_t group, const Quad* quad, bint about
    ) except -1 nogil
    cdef uint32_t link(self, Group* group, bint about, uint32_t form) except 0 nogil
    cdef void quad_of(self, uint32_t fact, Quad* quad, uint64_t line) noexcept nogil
    cdef int place(self, const Group* group) except -1 nogil
    cdef int write(self, const void* bytes, size_t size) except -1 nogil
    cdef int write_term(self, term_t term) except -1 nogil
    cdef uint32_t length(self, uint32_t fact) noexcept nogil
    cdef int write_chain(self, uint32_t fact) except -1

# framing/framing.pxi

cdef enum Cut:
    GRAPHS
    MESSAGES
    TRIPLES
    WHOLE
    SUBJECTS
    DATASET

cdef struct Stamp:
    term_t term         # the object of the timestamp triple
    uint32_t rank       # of the predicate in the order of preference
    uint64_t line

# A fact of the open event whose predicate is a step of the path to the timestamp.
cdef struct PathFact:
    uint32_t step
    term_t source       # where the step starts: the subject, or the object of an inverse step
    term_t target
    uint64_t line

cdef enum:
    MOST_STEPS = 8


@cython.final
cdef class EventReader:
    cdef readonly EventBatch batch      # the batch that is being filled
    cdef Relevance relevance            # what the readers of files pass on as `kept`
    cdef Relevance used                 # what the queries use
    cdef bint sifts                     # the two differ
    cdef object questions
    cdef ClosedNames closed         # graphs with an IRI, of all files
    cdef ClosedNames closed_blanks  # graphs with a label, of this file
    cdef list files                 # the files so far; this one is files[file_number]
    cdef uint32_t file_number
    cdef Minter minter
    cdef Cut cut
    cdef bint needs_nodes       # the cut needs the subject and a blank object of every statement
    cdef Subjects subjects      # of the cut SUBJECTS
    cdef public uint32_t most_pending   # the statements that wait for their subject
    cdef public Collector collector     # of the cut DATASET
    cdef uint32_t group         # of the collector: the open one
    cdef uint32_t size          # of `triples:N`, its timestamp included
    cdef bint timed             # timestamps are read; else the time is that of the clock
    cdef bint inside            # a graph's timestamp may be one of its own triples
    cdef bint sorted            # events are yielded in the order of time
    cdef int64_t factor         # microseconds in a unit of numeric times
    cdef tuple predicates       # of timestamps, in order of preference
    cdef term_t about[3]        # their terms in the batch; 0 if there are fewer
    cdef bint reuse             # an IRI may name several graphs, each with its time
    cdef bint metadata          # default-graph triples about a graph's name are its event's facts
    cdef tuple steps            # the path to the timestamp: (predicate, whether inverse)
    cdef uint32_t step_count
    cdef term_t step_terms[MOST_STEPS]
    cdef bint step_inverse[MOST_STEPS]
    cdef uint32_t generation    # counts the batches
    cdef uint32_t patience      # buffers a batch without events may hold
    cdef public object follower     # `move(old, new)` is called when a batch replaces another

    # The open event.
    cdef bint is_open
    cdef uint64_t line
    cdef term_t name            # 0 if it has none
    cdef uint32_t first         # its triples are the triples of the batch from here on
    cdef uint32_t statements    # its facts, stored or not
    cdef bint about_inside      # one of them has the predicate of timestamps
    cdef bint has_labels        # a stored one has a blank node with the label of the file
    cdef bint labelled          # so has one of any event since the file was started
    cdef Stamp* stamps          # beside the graph
    cdef uint32_t stamp_count, stamp_room
    cdef Stamp* inner           # among its facts
    cdef uint32_t inner_count, inner_room
    cdef PathFact* path         # of the steps of the path
    cdef uint32_t path_count, path_room
    cdef Quad* prelude          # metadata about a graph that is not open; of one subject
    cdef uint32_t prelude_count, prelude_room
    cdef term_t refused         # a complete graph whose further quads are left out, or 0

    # The events before it.
    cdef uint64_t place         # how many were read
    cdef int known_domain       # of the run's times; -1: not known yet
    cdef bint begun             # there is a last event:
    cdef int64_t last_micros
    cdef term_t last_stamp
    cdef readonly uint64_t unused       # statements of no event
    cdef readonly bint filled           # the file had an event with statements
    cdef readonly uint64_t untimed      # empty messages of the file that have no time

    cdef int read_statement(self, const Quad* quad) except -1 nogil
    cdef int by_subject(self) except -1 nogil
    cdef int add(self, const Quad* quad) except -1 nogil
    cdef int collect(self, const Quad* quad) except -1 nogil
    cdef int keep(self, const Quad* quad) except -1 nogil
    cdef bint is_collected(self, const Quad* quad) noexcept nogil
    cdef bint is_used(self, const Quad* quad) noexcept nogil
    cdef int leave(self) except -1 nogil
    cdef int collected(self, Collector collector, uint32_t fact) except -1 nogil
    cdef void open(self, uint64_t line, term_t name) noexcept nogil
    cdef int end(
        self, int64_t micros, uint32_t ordinal, term_t name, term_t stamp, bint dated
    ) except -1
    cdef int enter(self, term_t name, uint64_t line) except -1 nogil
    cdef int time(self, const Quad* quad) except -1 nogil
    cdef int close(self) except -1 nogil
    cdef int conclude(self) except -1 nogil
    cdef int describe(self, const Quad* quad) except -1 nogil
    cdef int adopt(self) except -1 nogil
    cdef int step(self, const Quad* quad) except -1 nogil
    cdef int follow(self) except -1 nogil
    cdef int delimit(self, uint64_t line) except -1 nogil
    cdef int empty_message(self, uint64_t line) except -1 nogil
    cdef int close_triples(self) except -1 nogil
    cdef const Entry* closed_as(self, term_t name) noexcept nogil
    cdef object shown(self, term_t name)
    cdef object begin_of(self, const Entry* entry)
    cdef Stamp* preferred(self, uint32_t* count) noexcept nogil
    cdef int emit(self, Stamp* stamps, uint32_t count) except -1 nogil
    cdef int emit_at(
        self, int64_t micros, uint8_t domain, term_t stamp, bint usable
    ) except -1 nogil
    cdef bint when(
        self, Stamp* stamps, uint32_t count, int64_t* micros, uint8_t* domain
    ) except -1 nogil
    cdef bint asked_time(
        self, Stamp* stamps, uint32_t count, int64_t* micros, uint8_t* domain
    ) except -1
    cdef bint is_usable(self, int64_t micros, uint8_t domain, term_t stamp) except -1
    cdef int begin(self, EventBatch batch) except -1

"""Statements → events; see _framing.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from spaseq.rdf.native._closed_graphs cimport ClosedNames, Entry
from spaseq.rdf.native._collector cimport Collector, Group
from spaseq.rdf.native._minting cimport Minter
from spaseq.rdf.native._quads cimport Quad
from spaseq.rdf.native._subjects cimport Subjects
from spaseq.rdf._batch cimport EventBatch, EventRecord
from spaseq.rdf._relevance cimport Relevance
from spaseq.rdf._terms cimport term_t

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

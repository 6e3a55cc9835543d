"""The queries of a run over the same events; see _multi_driver.pyx."""

cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from spaseq.engine.native._delayed cimport DelayedEvents
from spaseq.engine.native._dispatch cimport Dispatch, Reader
from spaseq.engine.native._driver cimport NativeStep
from spaseq.engine.native._query_index cimport QueryIndex
from spaseq.gpm.native._matcher cimport NativeMatcher
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.rdf._batch cimport EventBatch, EventRecord
from spaseq.rdf._sequence cimport EventSequence
from spaseq.rdf._window_terms cimport WindowTerms

# The outcome of `_event`.
cdef enum Outcome:
    PROCESSED
    COMPLETED   # and some query has complete matches
    CLOSED      # not processed yet: matches of earlier timestamps come first
    REFUSED     # the event is out of order, or has to wait for an event of another stream

# What a ready query has.
cdef enum Ready:
    COMPLETE = 1    # complete matches of the last instant
    DUE = 2         # matches whose window has closed

cdef enum:
    NO_STREAM = 0xFFFFFFFF
    MOST_GROUPS = 64    # of a set of groups

# One query.
cdef struct Member:
    PyObject* step
    PyObject* dispatch
    PyObject* core
    uint32_t posts      # of its first reader in `post_first`
    uint32_t group      # the streams it reads
    uint32_t selected   # the stream of its dispatch, by its own numbers, or NO_STREAM
    uint32_t ordinal    # of the open instant
    bint reads_all      # it matches every event, since other queries count events that it skips
    bint steady         # an event without a reader only advances its time
    bint waits          # matches are complete when their instant closes
    bint delayed        # it reads a registered stream: events wait until their timestamp closes
    bint registers      # its matches are events of a registered stream
    int64_t passed      # if `delayed`: windows that close by then have closed
    bint opened         # an instant is open
    bint touched        # it has a batch
    bint timed          # it is in the heap of deadlines
    int64_t wakes       # the time of its entry there
    uint64_t waited     # the matches that have waited for their windows, as `wakes` knows them

# A set of streams that some queries read.
cdef struct StreamGroup:
    uint32_t first      # its streams are group_streams[first:end]
    uint32_t end
    uint32_t certain    # all its streams have passed the instants before this ordinal
    uint32_t held       # events that wait for its streams

# A matcher that several queries have.
cdef struct SharedMatcher:
    PyObject* matcher
    uint64_t tried      # its counter when it was settled last
    uint64_t awaited    # the events since then during which a partial match waited for its rows

# A shared matcher and a stream.
cdef struct SharedReader:
    uint32_t matcher
    uint32_t stream
    uint32_t open       # the number of queries that wait for its rows
    uint64_t since      # the events of the stream when it was counted last

cdef struct StreamState:
    int64_t micros      # the time of its last event
    uint32_t next       # the ordinal of its next event at that time
    bint begun
    uint64_t events

# An event that waits until other streams have passed earlier instants.
cdef struct Held:
    PyObject* batch
    uint32_t index
    uint32_t stream
    uint32_t file
    uint32_t ordinal
    uint64_t groups     # it waits for their streams

cdef struct Deadline:
    int64_t micros
    uint32_t query


@cython.final
cdef class MultiDriver:
    cdef QueryIndex index
    cdef list steps
    cdef WindowTerms window         # shared by all queries except those that count their own events
    cdef bint counted               # that window counts events
    cdef Member* members
    cdef uint32_t query_count
    cdef dict streams               # IRI → number
    cdef uint32_t stream_count
    cdef uint32_t* locals           # per query and stream: the query's number of the stream
    cdef uint64_t* seen             # per query and stream: the events that its readers counted
    cdef uint32_t reader_count      # the readers of all queries, plus one for each query
    cdef uint32_t* post_first       # per reader of each query, and one more: its first post
    cdef SharedMatcher* matchers
    cdef uint32_t matcher_count
    cdef SharedReader* shared
    cdef uint32_t shared_count
    cdef uint32_t* share_of         # per reader of each query: its SharedReader plus 1, or 0
    cdef StreamState* states
    cdef StreamGroup* groups
    cdef uint32_t group_count
    cdef uint32_t* group_streams
    cdef bint* group_reads          # per group and stream
    cdef bint plural                # some query reads several streams
    cdef uint32_t* opened           # queries that have, or had, an open instant
    cdef uint32_t opened_count
    cdef list held_batches          # of the held events
    cdef Held* held                 # by ordinal
    cdef uint32_t held_count, held_room
    cdef bint holds                 # events may be held
    cdef readonly bint in_closing   # timestamps are being closed: `run` continues with that
    cdef uint32_t closing           # the query that closes its timestamp; `query_count`: none
    cdef uint32_t held_at           # its next held event
    cdef DelayedEvents delayed      # those of the queries that read registered streams
    cdef bint delays                # there are such queries
    cdef EventSequence sequence     # the last one, whose batches `delayed` retains
    cdef readonly int64_t closing_micros    # timestamps before this one close, or have closed
    cdef uint32_t* touched
    cdef uint32_t touched_count
    cdef Deadline* deadlines        # a binary heap
    cdef uint32_t deadline_count
    cdef uint32_t* ready
    cdef uint8_t* ready_flags
    cdef int64_t* ready_until       # the windows that close by then are due
    cdef readonly uint32_t ready_count
    cdef uint32_t* batch_streams    # per batch of the current sequence
    cdef uint32_t* batch_files
    cdef uint32_t batch_room
    cdef readonly int64_t micros    # timestamps before this one are closed
    cdef readonly bint begun
    cdef int domain                 # -1: unknown
    cdef bint derives               # the summary graph has derived views
    cdef bint gaps                  # ordinals may be missing
    cdef readonly uint32_t reached  # the event at which `run` returned or failed
    cdef readonly uint32_t failing  # the query within which `run` failed
    cdef readonly uint64_t touches  # queries that processed an event, so far
    cdef readonly bint loaded       # the driver has the state of the queries

    cpdef uint32_t run(
        self, EventSequence events, uint32_t first, uint32_t end, int64_t position, files,
        bint holds,
    ) except? 0xFFFFFFFF
    cdef int _set_members(self, queries) except -1
    cdef int _set_groups(self, reads) except -1
    cdef int _set_index(self, keys, tasks) except -1
    cdef list _entries_of(self, uint32_t query, keys, tasks)
    cdef int _set_shared(self) except -1
    cdef uint32_t _stream_of(self, uint32_t query, uint32_t local) noexcept
    cdef int _settle_matcher(self, SharedMatcher* shared, NativeMatcher matcher) noexcept
    cdef int _share(self, uint32_t number, int change) noexcept nogil
    cdef int _load_member(self, uint32_t query, NativeStep step, Dispatch dispatch) except -1
    cdef int _refresh(
        self, uint32_t query, NativeStep step, Dispatch dispatch, AutomatonCore core
    ) except -1 nogil
    cdef int _rest(self, EventSequence events) except -1
    cdef uint32_t _run(
        self, EventSequence events, uint32_t first, uint32_t end, int64_t position
    ) except? 0xFFFFFFFF nogil
    cdef int _event(
        self, EventBatch batch, uint32_t index, uint32_t stream, uint32_t file, int64_t position
    ) except -1 nogil
    cdef uint64_t _waits_for_streams(
        self, uint32_t stream, const EventRecord* event
    ) noexcept nogil
    cdef bint _may_hold(self, const EventRecord* event) noexcept nogil
    cdef uint64_t _released(
        self, uint32_t stream, const EventRecord* event, uint64_t waiting
    ) noexcept nogil
    cdef int _release(
        self, uint32_t query, NativeStep step, Dispatch dispatch, AutomatonCore core,
        uint32_t ordinal,
    ) except -1 nogil
    cdef int _drop_released(self, uint64_t released, uint32_t ordinal) except -1 nogil
    cdef int _hold(
        self, EventBatch batch, uint32_t index, uint32_t stream, uint32_t file, uint64_t groups
    ) except -1 with gil
    cdef int _drop_held(self) except -1 with gil
    cdef uint32_t _certain(self, const StreamGroup* group) noexcept nogil
    cdef bint _pass(self, uint32_t stream) noexcept nogil
    cdef int _drop_closed(self) noexcept nogil
    cdef int _close_before(self, int64_t micros) except -1 nogil
    cdef bint _close(
        self, uint32_t query, NativeStep step, Dispatch dispatch, AutomatonCore core
    ) except -1 nogil
    cdef bint _close_delayed(
        self, uint32_t query, NativeStep step, Dispatch dispatch, AutomatonCore core
    ) except -1 nogil
    cdef bint _is_due(self, NativeStep step, AutomatonCore core, int64_t until) except -1 nogil
    cdef bint _process_held(
        self, uint32_t query, NativeStep step, Dispatch dispatch, AutomatonCore core
    ) except -1 nogil
    cdef int _end_instant(
        self, uint32_t query, NativeStep step, Dispatch dispatch, AutomatonCore core
    ) except -1 nogil
    cdef int _update(
        self, uint32_t query, Dispatch dispatch, AutomatonCore core
    ) except -1 nogil
    cdef int _touch(
        self, uint32_t query, NativeStep step, AutomatonCore core, EventBatch batch
    ) except -1 with gil
    cdef int _process(
        self, uint32_t query, NativeStep step, Dispatch dispatch, AutomatonCore core,
        EventBatch batch, uint32_t index, uint32_t stream, uint32_t file, uint64_t present,
        bint last,
    ) except -1 nogil
    cdef int _attend(
        self, uint32_t query, Dispatch dispatch, AutomatonCore core, bint all
    ) except -1 nogil
    cdef int _count_passed(self, uint32_t query, Dispatch dispatch) noexcept nogil
    cdef int _schedule(self, uint32_t query, NativeStep step, AutomatonCore core) except -1 nogil
    cdef int _wake_by(self, uint32_t query, int64_t micros) noexcept nogil
    cdef int _sift_up(self, uint32_t at, Deadline entry) noexcept nogil
    cdef uint32_t _pop_deadline(self) noexcept nogil
    cdef int _make_ready(self, uint32_t query, uint8_t flags, int64_t until) noexcept nogil

"""The declarations of _driver.pyx that other modules use."""

cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t

from spaseq.gpm.native._matcher cimport NativeMatcher, SummaryGraph
from spaseq.nfa.native._automaton cimport Audience, AutomatonCore
from spaseq.nfa.native._tecs cimport Conditions, EdgeRef, OpenInstant, Window
from spaseq.rdf.native._terms cimport (
    Arena,
    Dictionary,
    EventBatch,
    EventRecord,
    EventSequence,
    WindowTerms,
    term_t,
)

# driver/aggregates.pxi

cdef enum Fold:
    COUNTED
    SUMMED
    AVERAGED
    LEAST
    GREATEST
    SAMPLED
    JOINED

cdef struct Aggregate:
    Fold fold
    bint distinct           # repeated values are ignored
    const char* separator   # JOINED: the text between two values
    uint32_t separator_size


cdef class NativeAggregates:
    cdef WindowTerms window
    cdef Dictionary dictionary
    cdef Arena scratch          # texts of one step
    cdef Aggregate* aggregates  # per register; zero if it is no aggregate
    cdef list separators        # owns the bytes of `Aggregate.separator`
    cdef term_t zero, empty

    # `state` after one more value, which is a term of the window or a permanent term.
    cdef term_t add(
        self, EventBatch batch, uint32_t register, term_t state, term_t value
    ) except 0 nogil
    # The value of a state for expressions; 0: unbound.
    cdef int finish(
        self, EventBatch batch, uint32_t register, term_t state, term_t* value
    ) except -1 nogil
    cdef term_t number(self, uint32_t count) except 0 nogil
    cdef term_t known(self, const char* text, uint32_t size) except 0 nogil
    cdef term_t _fold(
        self, EventBatch batch, const Aggregate* how, term_t state, term_t value
    ) except 0 nogil
    cdef term_t _sum(self, EventBatch batch, term_t total, term_t value) except 0 nogil
    cdef term_t _better(
        self, EventBatch batch, term_t best, term_t value, int wanted
    ) except 0 nogil
    cdef term_t _joined(
        self, EventBatch batch, const Aggregate* how, term_t state, term_t value
    ) except 0 nogil
    cdef int _mean(self, EventBatch batch, term_t state, term_t* value) except -1 nogil

# driver/views.pxi

cdef enum Showing:
    BOUND_ONLY  # a first value, once there is one
    NUMBER      # a count
    VALUE       # of an aggregate

# The view of a register that holds no term: its own cell of the environment.
cdef struct View:
    uint32_t register
    uint32_t cell
    Showing how


@cython.final
cdef class Views:
    cdef readonly bint any          # whether some expression has a view
    cdef View* views                # views[first[n]:first[n + 1]] belong to expression n
    cdef uint32_t* first
    cdef NativeAggregates aggregates

    cdef int refresh(self, EventBatch batch, uint32_t number, term_t* env) except -1 nogil

# driver/graph_test.pxi


@cython.final
cdef class GraphTest:
    cdef NativeMatcher matcher
    cdef uint32_t count
    cdef uint32_t* cells    # of an environment, by column
    cdef term_t* row

    cdef bint holds(self, EventBatch given, EventBatch batch, const term_t* env) except -1 nogil

# driver/dispatch.pxi

cdef extern from *:
    """
    #define SPASEQ_ANY_VIEW (~(uint64_t)0)
    #define lowest_bit(word) ((uint32_t)__builtin_ctzll(word))
    """
    const uint64_t ANY "SPASEQ_ANY_VIEW"    # unknown: the event may have triples of any view
    uint32_t lowest_bit(uint64_t word) noexcept nogil

# GPMs that read a stream with one matcher: gpms[first:end].
cdef struct Reader:
    uint32_t first
    uint32_t end
    uint32_t stream
    uint64_t places     # the places that wait for its rows, see `bit_of_place`
    Audience audience   # its awaited GPMs at the last call of `attend`
    bint open           # some GPM is awaited, or every row is tracked
    uint64_t needed     # the views without which there is no row, see `bit_of`
    bint lone           # a single triple pattern that can match an event of one triple directly
    uint64_t read       # events read since the last `settle`
    uint64_t settled    # the part of its stream's `unsettled` that is counted
    bint shared         # other queries have the matcher: `MultiDriver` counts its events
    PyObject* matcher   # NativeMatcher; NULL: in Python or recalled, and wants every event

# The readers of a stream; the bit masks are valid for at most WORD readers.
cdef struct Audible:
    Reader* first
    Reader* end
    uint64_t lone       # the lone readers
    uint64_t open       # the open readers
    uint64_t* of_view   # by the bit of the only view that has triples, or WORD for none: which
                        # have all that they need; NULL: there are more


@cython.final
cdef class Dispatch:
    cdef AutomatonCore core
    cdef SummaryGraph graph
    cdef WindowTerms window
    cdef Reader* readers            # by stream
    cdef uint32_t reader_count
    cdef Audible* streams           # per stream
    cdef uint32_t stream_count
    cdef uint64_t* unsettled_of     # per stream: its events since the last `settle`
    cdef uint64_t* of_views         # storage of all `Audible.of_view`
    cdef Audible here               # the readers of the current stream
    cdef uint32_t* gpms
    cdef uint32_t* awaited          # storage of all audiences; `ways` likewise
    cdef EdgeRef** ways
    cdef bint* waits                # per GPM in `gpms`
    # The places that `attend` has dealt with; see `OpenInstant.changed_places`.
    cdef uint64_t turned
    cdef bint attentive             # the awaited patterns of `here` are up to date
    cdef uint64_t* unsettled        # of the current stream

    cdef int _list_readers(self, readers, matchers) except -1
    cdef inline int select(self, uint32_t stream) noexcept nogil:
        """Dispatch the events of a stream from now on."""
        self.here = self.streams[stream]
        self.unsettled = &self.unsettled_of[stream]
        return 0
    cdef int attend(self) noexcept nogil
    cdef int settle(self) noexcept nogil
    cdef int settle_all(self) noexcept nogil
    cdef int _settle_reader(self, Reader* reader) noexcept nogil
    cdef int attend_to(self, Reader* reader) noexcept nogil
    cdef int pass_time(self, int64_t micros) except -1 nogil


cdef inline uint64_t wanted(
    const Reader* reader, const Reader* last, uint64_t present
) noexcept nogil:
    """The open readers, of at most WORD, that have all needed views: one bit per reader.

    The loop is free of branches because their outcome would be unpredictable.
    """
    cdef uint64_t found = 0, bit = 1, absent = ~present
    while reader < last:
        found |= bit * <uint64_t>(<int>(reader.needed & absent == 0) & reader.open)
        bit <<= 1
        reader += 1
    return found

# driver/driver.pxi


@cython.final
cdef class NativeStep:
    cdef readonly AutomatonCore core
    cdef SummaryGraph graph
    cdef readonly WindowTerms window
    cdef Dispatch dispatch
    cdef EventBatch batch           # of the current event
    cdef uint32_t stream            # of the current event
    cdef uint32_t index             # of the current event in its batch
    cdef bint apart                 # the matchers have another window: `had` is the position
    cdef int64_t had
    cdef object patterns            # the Matchers
    cdef list tasks                 # per GPM of the query, the number of its pattern
    cdef list matchers              # per GPM, its NativeMatcher; None if Python evaluates a part
    cdef PyObject** native          # the same as borrowed pointers
    cdef uint8_t* manners           # per GPM, a set of Manners
    cdef term_t* row                # a row of a GPM in Python, encoded
    cdef list filters               # per occurrence, its residual filters
    cdef list others                # per test, a GraphTest or Question; None for an Expression
    cdef PyObject** tests           # per test, its Expression; NULL for others
    cdef uint32_t* test_first       # per occurrence and one more
    cdef uint64_t* untrue           # per test: how often it was not true
    cdef readonly uint64_t evaluations # of residual filters, on rows and on blocks of rows
    cdef dict errors_before         # per occurrence, the errors of another run
    cdef readonly NativeAggregates aggregates
    cdef readonly list assigned     # per occurrence, the Expressions of its BINDs and Questions
    cdef Views views                # by occurrence for its filters, then by number for BINDs
    cdef uint32_t* assigned_first   # per occurrence, the number of its first BIND
    cdef bint steady                # an event without a reader only advances the time
    cdef Conditions conditions
    cdef EventBatch idle            # the current batch between two calls
    cdef object shown               # the last decoded event, and its batch and index
    cdef uint64_t shown_serial
    cdef uint32_t shown_index
    cdef EventBatch recalled        # the recalled event used last, encoded
    cdef object recalled_key
    cdef readonly object recalls     # (instant, stream) → Event, oldest first
    cdef public bint tumbles        # its results are grouped by tumbling windows
    cdef public bint gaps           # it receives a part of its stream: ordinals may be missing
    cdef readonly int64_t deadline  # the query stops before events from this time on, or INT64_MAX
    cdef readonly uint32_t reached  # the index of the event at which `run` returned or failed

    cdef int _link_tests(self, object patterns, filters) except -1
    cdef int ask(self, uint32_t number, const term_t* env) except -1 with gil
    cdef object answer(self, question, const term_t* env)
    cdef int count_event(self, int64_t position) except -1 nogil
    cdef bint test_graph(self, GraphTest test, const term_t* env) except -1
    cdef object _event(self)
    cdef bint feed_in_python(self, uint32_t gpm, const Reader* reader) except -1 with gil
    cdef term_t* _encoded(self, row) except NULL
    cpdef int check_exclusive(self) except -1
    cdef int _select_batch(self, EventBatch batch, uint32_t stream) except -1
    cdef int _release_batch(self) except -1
    cdef int event(
        self, Dispatch dispatch, uint32_t index, uint32_t stream, uint32_t file, uint64_t present,
        bint again,
    ) except -1 nogil
    cdef bint _follows(self, const EventRecord* event, uint8_t domain) except -1 nogil
    cdef bint waits_for_closing(self, EventBatch batch, uint32_t index) noexcept nogil
    cdef int feed_loaded(self, const Reader* reader) except -1 nogil
    cdef inline int feed_lone(
        self, const Reader* reader, NativeMatcher matcher
    ) except -1 nogil:
        """Feed the row of a lone reader in an event of one triple."""
        if matcher.match_single_triple(self.batch, self.index):
            self.core.feed_row(&reader.audience, matcher.result.cells, matcher.columns)
        return 0
    cdef inline int _read_lone(
        self, Dispatch dispatch, uint32_t index, uint32_t file, uint64_t readers
    ) except -1 nogil:
        """Feed the rows of an event of one triple, for readers that `are_lone`."""
        cdef Reader* reader
        self.index = index
        self.core.begin_event(self.batch, index, self.stream, file)
        while readers:
            reader = dispatch.here.first + lowest_bit(readers)
            reader.read += 1
            self.feed_lone(reader, <NativeMatcher>reader.matcher)
            readers &= readers - 1
        dispatch.unsettled[0] += 1
        return 0
    cdef int _feed_rows(self, const Reader* reader, NativeMatcher matcher) except -1 nogil
    cdef bint is_current(self, EventBatch batch) noexcept nogil
    cpdef uint32_t run(
        self, EventBatch batch, uint32_t first, uint32_t stream, uint32_t file, int64_t position
    ) except? 0xFFFFFFFF
    cdef uint32_t _run(
        self, uint32_t first, uint32_t stream, uint32_t file, int64_t position
    ) except? 0xFFFFFFFF nogil
    cdef uint32_t _advance(
        self, AutomatonCore core, Dispatch dispatch, Window window, OpenInstant instant,
        uint32_t first, uint32_t stream, uint32_t file, int64_t position,
    ) except? 0xFFFFFFFF nogil
    cdef uint64_t _count_some(
        self, uint64_t most, uint64_t* witnesses
    ) except? 0xFFFFFFFFFFFFFFFF nogil
    cdef uint64_t _count_accepted(
        self, bint skip, uint64_t most, uint64_t* witnesses
    ) except? 0xFFFFFFFFFFFFFFFF nogil

# driver/delayed.pxi

# An event that a query processes when its timestamp closes.
cdef struct Delayed:
    PyObject* batch
    uint32_t index
    uint32_t stream
    uint32_t file
    uint32_t ordinal
    int64_t micros
    uint64_t arrival    # orders the events of one instant, before `number`
    uint64_t number

# The events of one query: events[first:end].
cdef struct DelayedList:
    Delayed* events
    uint32_t first
    uint32_t end
    uint32_t room
    bint sorted


@cython.final
cdef class DelayedEvents:
    cdef DelayedList* lists
    cdef uint32_t query_count
    cdef uint32_t* queries      # the queries that have, or had, events
    cdef uint32_t listed
    cdef bint* is_listed        # per query
    cdef uint64_t arrivals      # of input events
    cdef uint64_t count         # the events of all queries
    cdef uint64_t added         # the events ever added
    cdef dict batches           # address → batch, including batches that contain others

    cdef int add(
        self, uint32_t query, EventBatch batch, uint32_t index, uint32_t stream, uint32_t file,
        uint64_t arrival,
    ) except -1 nogil
    cdef int retain(self, EventBatch batch) except -1
    cdef int prune(self) except -1
    cdef const Delayed* first_before(self, uint32_t query, int64_t micros) noexcept nogil
    cdef int remove_first(self, uint32_t query) noexcept nogil
    cdef int drop_unlisted(self) noexcept nogil
    cdef int refit(self) except -1
    cdef int rest(self) except -1
    cdef int clear(self) except -1
    cdef list of(self, uint32_t query)

# driver/value_ranges.pxi

# The places of a set of intervals: their ends in ascending order. There is a leaf for each end and
# for each gap around the ends; `leaves` of them are the lower level of a tree whose root is 1.
cdef struct Ranges:
    double* ends
    uint32_t count
    uint32_t leaves

# driver/query_index.pxi

# An entry of a posting list.
cdef struct Item:
    uint32_t post
    uint32_t query

# The queries that wait for events with one key.
cdef struct Postings:
    Item* items
    uint32_t count
    uint32_t room

# One key of one reader; `place` is its position among the items of its list, plus 1; 0: not there.
cdef struct Post:
    uint32_t list
    uint32_t query
    uint32_t place

# The intervals of one predicate of a stream; the list of node n of `ranges` is first_list + n.
cdef struct RangeLists:
    Ranges ranges
    uint32_t first_list

# A slot of the table of keys with a constant object or subject.
cdef struct KeySlot:
    uint64_t key        # stream, predicate and kind
    term_t term
    uint32_t list       # 0: the slot is free


@cython.final
cdef class QueryIndex:
    cdef SummaryGraph graph
    cdef uint32_t query_count
    cdef uint32_t stream_count
    cdef term_t known           # greater than every predicate of a key
    cdef uint8_t* kinds         # per stream and predicate: which kinds of keys exist
    cdef uint32_t* by_predicate # per stream and predicate: the list of its key, or 0
    cdef uint32_t* by_range     # per stream and predicate: its RangeLists, if it has some
    cdef RangeLists* ranges
    cdef uint32_t range_count
    cdef KeySlot* slots
    cdef uint32_t slot_mask
    cdef uint32_t slots_used
    cdef Postings* lists
    cdef uint32_t list_count
    cdef uint32_t list_room
    cdef Post* posts
    cdef uint32_t post_count
    cdef uint32_t post_room
    cdef uint64_t* marks        # a bit per query
    cdef uint64_t* groups       # a bit per word of `marks`
    cdef uint32_t group_count

    cdef int _set_ranges(self, keys) except -1
    cdef int add(self, uint32_t query, uint32_t stream, key) except -1
    cdef int _add_post(self, uint32_t query, uint32_t list) except -1
    cdef uint32_t _new_lists(self, uint32_t count) except 0
    cdef uint32_t _list_of(self, uint32_t stream, key) except 0
    cdef int _grow_slots(self) except -1
    cdef uint32_t find(self, uint64_t key, term_t term) noexcept nogil
    cdef int insert(self, uint32_t post) except -1 nogil
    cdef int remove(self, uint32_t post) noexcept nogil
    cdef int mark_number(
        self, const RangeLists* lists, EventBatch batch, term_t term
    ) noexcept nogil
    cdef inline int mark(self, uint32_t query) noexcept nogil:
        """Add a query to the marked ones."""
        self.marks[query >> 6] |= <uint64_t>1 << (query & 63)
        self.groups[query >> 12] |= <uint64_t>1 << (query >> 6 & 63)
        return 0
    cdef inline int mark_list(self, uint32_t number) noexcept nogil:
        """Mark the queries of a list."""
        cdef const Item* item = self.lists[number].items
        cdef const Item* end = item + self.lists[number].count
        while item < end:
            self.mark(item.query)
            item += 1
        return 0

# driver/multi_driver.pxi

# What a ready query has.
cdef enum Ready:
    COMPLETE = 1    # complete matches of the last instant
    DUE = 2         # matches whose window has closed

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

"""The declarations of _matches.pyx that other modules use."""

cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t

from spaseq.engine.native._driver cimport NativeStep
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._selection cimport Closing, Selection
from spaseq.nfa.native._tecs cimport Label, Tables, instant_t
from spaseq.rdf.native._terms cimport Dictionary, EventBatch, Numeral, TermRecord, term_t
from spaseq.results.native._match cimport Match, Text

# matches/decode.pxi

# The source of a register's value: an event of the match, from 1 (0: unbound), and a column.
cdef struct Origin:
    uint32_t step
    uint32_t column

# A graph pattern of an edge; an edge over several events has several.
cdef struct StepPart:
    uint32_t edge
    uint32_t occurrence

# When a match comes out.
cdef struct Ending:
    bint later          # not with its last event but at `micros`, when a window closes or at a
                        # deadline
    int64_t micros
    bint by_input       # its window was closed by the end of input only

cdef class DecodedStep


cdef class MatchDecoder:
    cdef Tables tables
    cdef tuple names            # of the projected variables
    # Of the projected variables; from `cells` on: the number of a column that is computed.
    cdef uint32_t* registers
    cdef uint32_t column_count
    cdef str query
    cdef Origin* origins        # per register
    cdef size_t cells
    cdef MatchDecoder like      # has the same `parts` and `part_first`, and owns them; or None
    cdef bint owns_parts
    cdef StepPart* parts        # of all edges
    cdef uint32_t* part_first   # per edge
    cdef uint32_t edge_count
    cdef uint32_t awaited       # events of the current step that are still to follow
    cdef list steps             # per part
    cdef list streams
    # JSON prefixes: of a match, of an answer, of each binding, of each part's witness and of its
    # bindings.
    cdef bytes opening, answer
    cdef list column_openings, step_openings
    cdef list stream_texts      # in JSON
    cdef Text scratch           # memory for one witness

    cdef bytes json(
        self, tuple steps, object kb_version, const Ending* ending, DecodedStep values
    )
    cdef int put_json(
        self, Text* to, tuple steps, object kb_version, const Ending* ending, DecodedStep values,
        tuple graph,
    ) except -1
    cdef int put_answer(
        self, Text* text, DecodedStep last, object kb_version, const Ending* ending
    ) except -1
    cdef int _put_further(self, Text* text, object kb_version, bint by_input) except -1
    cdef int _put_bindings(self, Text* text, tuple steps, DecodedStep values) except -1
    cdef DecodedStep _source(
        self, uint32_t column, tuple steps, DecodedStep values, uint32_t* place
    )
    cdef dict bindings(self, tuple steps, DecodedStep values)
    cdef tuple solution(self, tuple steps, DecodedStep values)
    cdef tuple sort_key(self, tuple steps, DecodedStep values)
    cdef tuple sort_key_of(self, tuple bound, tuple steps, DecodedStep values)
    cdef tuple event_of(self, DecodedStep step)
    cdef bytes first_text(self, tuple steps)
    cdef tuple first_terms(self, tuple steps, uint32_t most)
    cdef int _set_parts(self, steps) except -1
    cdef int _replay(self, tuple steps) except -1
    cdef int begin(self) noexcept nogil
    cdef inline uint32_t part_of(self, const Label* label) noexcept nogil:
        return self.part_first[label.edge] + label.part
    cdef int follow_event(
        self, uint32_t number, uint32_t part, uint32_t events, const uint32_t* bound
    ) noexcept nogil


cdef class DecodedStep:
    cdef uint32_t part
    cdef uint32_t events        # of the whole step
    cdef int64_t micros
    cdef uint32_t ordinal, domain, stream, count
    # The literal of its time, the name of its graph, then its row: the size of each text (0:
    # unbound), then the texts.
    cdef bytes texts
    cdef list terms     # the `texts` decoded so far; None before the first use
    cdef object seen    # the decoded witness, None before the first use
    cdef object time    # of the event, None before the first use
    cdef bytes written  # the witness in JSON, None before the first use

    cdef const uint32_t* sizes(self) noexcept
    cdef const char* _text(self, uint32_t place) noexcept
    cdef object term(self, uint32_t place)
    cdef list read(self)
    cdef object timestamp(self)
    cdef object timestamp_at(self, int64_t micros)
    cdef int put_term(self, Text* text, uint32_t place) except -1
    cdef bytes json(self, MatchDecoder reading)
    cdef object witness(self, MatchDecoder reading)

# matches/start_marks.pxi


@cython.final
cdef class StartMarks:
    cdef AutomatonCore core
    cdef Dictionary dictionary
    cdef MatchDecoder reading
    cdef object ended           # the `EndedStarts`
    cdef object taken           # the occurrences of the step named by SKIP TO, or None
    cdef bint last              # starts end at the last event of these, not at the first
    # Which of the starts before `over_end` have ended: a ring of `over_room`, a power of two.
    cdef uint8_t* over
    cdef instant_t over_room, over_end
    cdef dict over_keys         # with partitions: the keys whose start has ended, by start; or None
    cdef list newly_over        # (key, start, end) of the matches of this instant
    cdef Py_ssize_t over_keys_due # size of `over_keys` at which those before the window are removed
    cdef Py_ssize_t unsettled   # matches since `ended` was settled
    cdef instant_t restored_end # intervals of a saved state in `ended` lie before it

    cdef bint passes_over(self) except -1
    cdef int settle(self) except -1
    cdef int _mark(self, instant_t start, instant_t until) except -1
    cdef object _term(self, term_t number)

# matches/gathered.pxi

# A match: labels[first:first + length], the label of its last step first.
cdef struct GatheredPath:
    instant_t start
    uint32_t first
    uint32_t length


cdef class Gathering:
    cdef AutomatonCore core
    cdef readonly Selection selection   # only its matches are gathered; None: all matches
    cdef MatchDecoder solving           # decodes the columns, or the variables of a template
    cdef MatchDecoder ordering          # decodes the sort key of matches of the same instants
    cdef object stage                   # the `OutputStage`
    cdef bint repeats, chooses, sorts, retains, compares, computes, constructs
    cdef readonly bint asks
    cdef readonly bint one              # one match for each last step suffices
    cdef Label** labels
    cdef uint32_t label_count, label_room
    cdef GatheredPath* paths
    cdef readonly uint32_t count        # number of matches
    cdef uint32_t path_room
    cdef list values                    # per match: its computed columns, or None
    cdef list graphs                    # per match that is retained: its triples, or None

    cdef int begin(self) noexcept
    cdef int add(self) except -1
    cdef int position_walk(self, uint32_t number) except -1
    cdef int64_t last_time(self) noexcept
    cdef list arranged(self, list steps, int64_t now)
    cdef list in_order(self, list steps)
    cdef tuple sort_key(self, uint32_t number, list steps)
    cdef list _once(self, list steps)
    cdef list _chosen(self, list order)
    cdef list _sorted(self, list order, list steps)
    cdef tuple _solution(self, uint32_t number, list steps)
    cdef DecodedStep _computed(self, tuple steps)

# matches/matches.pxi

# A label and its `DecodedStep`, or NULL. The instant and the stream identify the label, since its
# memory can be reused.
cdef struct Recent:
    const Label* label
    instant_t instant
    uint32_t stream
    PyObject* taken


cdef class FoundMatch(Match):
    cdef MatchDecoder reading
    cdef tuple steps
    cdef DecodedStep computed   # the computed columns, if there are any
    cdef Ending ending

    cdef tuple _witnesses(self)


cdef class MatchMaker:
    cdef NativeStep step
    cdef AutomatonCore core
    cdef Selection selection    # among the matches of an instant, or None
    cdef Gathering gathering    # of the matches of an instant, or None
    cdef MatchDecoder ordering       # decodes the sort key of matches of the same instants
    cdef Dictionary dictionary
    cdef MatchDecoder reading
    cdef Recent* recent         # a cache of `1 << recent_bits` entries, by the label's address
    cdef uint32_t recent_bits   # 0: there is none yet
    cdef uint32_t displaced     # the entries that others have displaced since it grew
    cdef uint64_t epoch         # the oldest epoch of the core when the cache was emptied
    cdef Ending ending          # when the current match comes out
    # Of the current match, if there is a `gathering`: its computed columns, and its triples.
    cdef DecodedStep computed
    cdef tuple triples
    cdef TermRecord scratch     # of a computed column
    cdef public int64_t ended_at    # the time of the last event of the first stream to end
    cdef readonly uint64_t closed_by_end    # matches whose window the end of input has closed
    cdef readonly uint64_t made
    cdef Numeral numeral        # the numeral spelt last
    cdef StartMarks marks       # of AFTER MATCH SKIP TO, or None

    cdef Match match(self, object version)
    cdef int fill(self, FoundMatch match, object version) except -1
    cdef tuple steps(self)
    cdef int position_walk(self, uint32_t number) except -1
    cdef const TermRecord* computed_record(self, uint32_t place) noexcept
    cdef bint pauses(self) noexcept
    cdef list in_order(self, object version)
    cdef DecodedStep step_of_label(self, Label* label)
    cdef int forget(self) noexcept
    cdef int _widen(self) except -1
    cdef bytes _texts(self, Label* label)
    cdef const TermRecord* record(self, Label* label, uint32_t place) noexcept


cdef class Matches:
    cdef MatchMaker maker
    cdef EventBatch batch       # None: no further events
    cdef uint32_t first, stream, file
    cdef readonly uint32_t after
    cdef int64_t position
    cdef bint skip
    cdef object kb
    cdef object version
    cdef uint32_t count, at     # number and index of the nodes that end matches of the last event
    cdef bint walking           # the walk from node `at` has begun
    cdef instant_t since
    cdef list apart             # `since` per node, if each partition skips on its own
    cdef list ready             # matches that are gathered, or selected with ties, in order
    cdef list picks             # (node, number of its match) of the matches to make, or None
    cdef Py_ssize_t pick        # the next one of these
    cdef uint64_t listed        # the matches of the event so far
    cdef int64_t passed         # the earlier matches of node `at`
    cdef uint64_t turn          # `turn` of the core at the last advance of this iterator
    cdef Closing closing        # the matches that come out before the next event, or None
    cdef Ending ending          # of the matches that come out with it
    cdef int64_t ended_at
    cdef readonly bint failed   # an event or a match is unfinished after an error

    cdef int collect(self) except -1
    cdef int _gather(self) except -1
    cdef int _gather_complete(self) except -1
    cdef Matches repeated(self, MatchMaker maker)
    cdef Matches picked(self, MatchMaker maker, list picks)
    cdef bint _passes(self) except -1
    cdef bint _leaves(self) except -1
    cdef int _forget(self) noexcept
    cdef int close(self, before, int64_t ended_at) except -1
    cdef bint has_more(self) noexcept
    cdef object _made(self)
    cdef int _next_time(self) except -1
    cdef bint _walks(self) except -1
    cdef bint _advance_run(self) except -1

"""The decoding of matches; see _decode.pyx."""

from libc.stdint cimport int64_t, uint32_t

from spaseq.nfa.native._program cimport Tables
from spaseq.nfa.native._tecs cimport Label
from spaseq.results._json cimport Text

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

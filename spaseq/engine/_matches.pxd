"""What makes matches; see _matches.pyx."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.engine._step cimport NativeStep
from spaseq.nfa._core cimport AutomatonCore
from spaseq.nfa._earliest cimport Earliest
from spaseq.nfa._tables cimport Tables
from spaseq.nfa._tecs cimport Label, instant_t
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._numerals cimport Numeral
from spaseq.rdf._terms cimport TermRecord
from spaseq.results._json cimport Text
from spaseq.results._match cimport Match

# Where a register got its value: a step of the match, counted from 1, and a column of its row.
cdef struct Origin:
    uint32_t step
    uint32_t column


cdef class Reading:
    cdef Tables tables
    cdef tuple names            # of the projected variables
    cdef uint32_t* registers    # they are read from
    cdef uint32_t column_count
    cdef str query
    cdef Origin* origins        # per register
    cdef size_t cells
    cdef list steps
    cdef list streams
    # The beginnings of parts in JSON: of a match, of each binding, of each edge's witness with
    # what stands behind the time, of each of its bindings.
    cdef bytes opening
    cdef list column_openings, step_openings
    cdef list stream_texts      # in JSON

    cdef bytes json(self, tuple steps, object kb_version)
    cdef dict bindings(self, tuple steps)
    cdef int _replay(self, tuple steps) except -1
    cdef int begin(self) noexcept
    cdef int go_on(self, uint32_t number, uint32_t edge, const uint32_t* bound) noexcept


cdef class Taken:
    cdef uint32_t edge
    cdef int64_t micros
    cdef uint32_t ordinal, domain, stream, count
    # The literal of its time, the name of its graph, then its row: the size of each text, 0
    # for what is not bound, then the texts.
    cdef bytes texts
    cdef list terms     # the same as terms, once somebody has asked for one
    cdef object seen    # the witness, once somebody has asked for it
    cdef object time    # of that
    cdef bytes written  # and that in JSON

    cdef const uint32_t* sizes(self) noexcept
    cdef const char* _text(self, uint32_t place) noexcept
    cdef list read(self)
    cdef int put_term(self, Text* text, uint32_t place) except -1
    cdef bytes json(self, Reading reading)
    cdef object witness(self, Reading reading)


# A label and the `Taken` made of it; NULL: none. And its event: later, the label of another one may
# lie there.
cdef struct Recent:
    const Label* label
    instant_t instant
    uint32_t stream
    PyObject* taken


cdef class MatchMaker:
    cdef NativeStep step
    cdef AutomatonCore core
    cdef Earliest earliest      # what chooses among the matches of an instant, None: nothing
    cdef Dictionary dictionary
    cdef Reading reading
    cdef Recent* recent         # labels that were taken, RECENT places by the label's address
    cdef uint64_t epoch         # the oldest of the core when these were last emptied
    cdef readonly uint64_t made
    cdef Numeral numeral        # that was spelt last

    cdef Match match(self, object version)
    cdef bint pauses(self) noexcept
    cdef list in_order(self, object version)
    cdef Taken taken(self, Label* label)
    cdef int forget(self) noexcept
    cdef bytes _texts(self, Label* label)
    cdef const TermRecord* record(self, Label* label, uint32_t place) noexcept

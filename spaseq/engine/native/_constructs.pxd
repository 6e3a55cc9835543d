"""Matches of a CONSTRUCT, and the events that they become; see _constructs.pyx."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.engine.native._decode cimport MatchDecoder
from spaseq.engine.native._matches cimport FoundMatch, MatchMaker
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport term_t

cdef enum TermKind:
    CONSTANT
    VARIABLE
    BLANK

# A term of a template.
cdef struct TemplateTerm:
    TermKind kind
    uint32_t number     # of the variable, of the blank node, or in `constants`
    uint64_t hash       # of a constant


cdef class ConstructedMatch(FoundMatch):
    cdef MatchDecoder values    # decodes the variables of the template
    cdef object instantiate
    cdef object number          # of the match among those of the query, from 1


cdef class ConstructMaker(MatchMaker):
    cdef MatchDecoder values    # decodes the variables of the template
    cdef TemplateTerm* terms    # three for each triple
    cdef uint32_t triple_count
    cdef list constants         # the texts of terms
    cdef object instantiate
    cdef bint misplaced         # whether the last event lacks a triple that is not valid

    cdef int _add_event(
        self, ConstructedMatch match, EventBatch batch, uint32_t ordinal
    ) except -1
    cdef term_t _enter(
        self, const TemplateTerm* term, ConstructedMatch match, EventBatch batch, bint subject,
        bint predicate,
    ) except? 0

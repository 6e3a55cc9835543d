# cython: language_level=3, boundscheck=False, wraparound=False
"""Events of a batch → lines of N-Triples or N-Quads, from the texts of their terms.

Cost: linear in the bytes.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memset

from spaseq.rdf._batch cimport EventBatch, EventRecord, written_record
from spaseq.rdf._memory cimport mem_free
from spaseq.rdf._numerals cimport Numeral
from spaseq.rdf._terms cimport term_t
from spaseq.results._json cimport Text, put, put_bytes
from spaseq.results._term_text cimport put_n_triples


def event_lines(EventBatch batch not None, index, bytes tail not None) -> bytes:
    """The triples of an event, one per line; `tail` ends each line."""
    cdef EventRecord* event = &batch.events[batch._checked(index)]
    cdef Text text
    cdef Numeral numeral
    cdef term_t[3] terms
    cdef uint32_t i, j
    memset(&text, 0, sizeof(Text))
    try:
        for i in range(event.first, event.end):
            terms[0] = batch.triples[i].subject
            terms[1] = batch.triples[i].predicate
            terms[2] = batch.triples[i].object
            for j in range(3):
                if j:
                    put(&text, b" ", 1)
                put_n_triples(&text, written_record(batch, terms[j], &numeral))
            put_bytes(&text, tail)
        return text.begin[:text.size]
    finally:
        mem_free(text.begin)

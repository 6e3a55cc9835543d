"""Events of a batch → lines of N-Triples or N-Quads, from the texts of their terms.

Cost: linear in the bytes.
"""

from libc.string cimport memset

from spaseq.rdf.native._terms cimport EventRecord, Numeral, mem_free, term_t, written_record
from spaseq.results.native._match cimport Text, put, put_bytes, put_n_triples


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

"""Texts of terms → N-Triples and CSV; see _term_text.pyx."""

from libc.stdint cimport uint32_t

from spaseq.rdf._terms cimport TermRecord, is_triple
from spaseq.results._json cimport N_TRIPLES, Text, plain_bytes, put

cdef int put_escaped(Text* text, const char* what, size_t size) except -1
cdef int put_triple_term(Text* text, const char* term, uint32_t size) except -1
cdef int put_csv_cell(Text* text, const TermRecord* term) except -1


cdef inline int put_n_triples(Text* text, const TermRecord* term) except -1:
    """Append a term in N-Triples, as pyoxigraph writes it."""
    if is_triple(term.text):
        return put_triple_term(text, term.text, term.size)
    if term.text[0] != c'"' or plain_bytes(term.text + 1, term.lexical, N_TRIPLES) == term.lexical:
        return put(text, term.text, term.size)
    put(text, term.text, 1)
    put_escaped(text, term.text + 1, term.lexical)
    return put(text, term.text + 1 + term.lexical, term.size - 1 - term.lexical)

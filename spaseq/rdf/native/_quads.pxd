"""A statement as the readers of files pass it on."""

from libc.stdint cimport uint32_t, uint64_t

from spaseq.rdf._terms cimport term_t

# Blank nodes have the file's labels here.
cdef struct Quad:
    term_t subject      # 0 if no query can use it
    term_t predicate
    term_t object       # 0 if no query can use it
    term_t graph        # 0: the default graph
    uint64_t line
    bint kept           # a query can use it
    bint timing         # its predicate is one of timestamps
    bint blank_subject
    int blank_object    # 1: the object is a blank node, 2: a triple term with one

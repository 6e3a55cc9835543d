# cython: language_level=3, boundscheck=False, wraparound=False
"""Filters with EXISTS that need a partial match, without a Python object for either.

Such a filter is a local one of a pattern that matches anything: its row is what the partial
match and a row have bound. Registers hold numbers of the window, or of the batch at hand; the
event has its own, so each term is looked up there: one that the event does not have keeps its
number, which is no other term's.
"""

from spaseq.rdf._batch cimport known_term, record_of
from spaseq.rdf._memory cimport give_back, zeroed
from spaseq.rdf._numerals cimport is_numeral
from spaseq.rdf._terms cimport LOCAL, WINDOWED, TermRecord


cdef class GraphTest:
    """A filter; `cells` are where an environment has the columns of the matcher's rows."""

    def __cinit__(self, NativeMatcher matcher not None, cells):
        cdef uint32_t i
        self.matcher = matcher
        self.count = <uint32_t>len(cells)
        self.cells = <uint32_t*>zeroed(self.count, sizeof(uint32_t))
        self.row = <term_t*>zeroed(matcher.width, sizeof(term_t))
        for i, cell in enumerate(cells):
            self.cells[i] = cell

    def __dealloc__(self):
        give_back(self.cells)
        give_back(self.row)

    cdef bint holds(self, EventBatch given, EventBatch batch, const term_t* env) except -1 nogil:
        """Whether it is true of an environment, of terms of the batch `given`.

        The event is the one of `batch` that the summary graph has loaded.
        """
        cdef const TermRecord* record
        cdef term_t term, found
        cdef uint32_t i
        for i in range(self.count):
            term = env[self.cells[i]]
            # A numeral is the same in all batches.
            if (term & WINDOWED and not is_numeral(term)) or (term & LOCAL and given is not batch):
                record = record_of(given, term)
                found = known_term(batch, record.hash, record.text, record.size)
                if found == 0 and term & LOCAL:
                    found = batch.enter(record.hash, record.text, record.size, True)
                if found:
                    term = found
            self.row[i] = term
        return self.matcher.accepts(batch, self.row)

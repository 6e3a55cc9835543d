"""Native filters with EXISTS over a partial match.

The filter is the local filter of a pattern without triples, and its row holds the bindings of the
partial match and of the row under test. Registers hold term numbers of the window or of the current
batch. If the event is in another batch, each term is looked up there. A term that does not occur in
the event keeps its number, which is unique.
"""

from spaseq.rdf.native._terms cimport (
    LOCAL,
    WINDOWED,
    TermRecord,
    is_numeral,
    known_term,
    mem_calloc,
    mem_free,
    record_of,
)


cdef class GraphTest:
    """A filter; `cells` has the cell of an environment for each column of the matcher's rows."""

    def __cinit__(self, NativeMatcher matcher not None, cells):
        cdef uint32_t i
        self.matcher = matcher
        self.count = <uint32_t>len(cells)
        self.cells = <uint32_t*>mem_calloc(self.count, sizeof(uint32_t))
        self.row = <term_t*>mem_calloc(matcher.width, sizeof(term_t))
        for i, cell in enumerate(cells):
            self.cells[i] = cell

    def __dealloc__(self):
        mem_free(self.cells)
        mem_free(self.row)

    @property
    def errors(self):
        """The number of errors so far, by cells of the environment."""
        _, (count,) = self.matcher.errors
        if count.example is not None:
            count.example = {
                self.cells[<uint32_t>column]: term for column, term in count.example.items()
                if column < self.count
            }
        return count

    cdef bint holds(self, EventBatch given, EventBatch batch, const term_t* env) except -1 nogil:
        """Whether the filter is true for an environment with terms of the batch `given`.

        The event is the one that the summary graph has loaded from `batch`.
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

"""SPARQL's functions on strings; see _strings.pyx."""

from spaseq.gpm.native._operators cimport Operand
from spaseq.rdf._memory cimport Arena
from spaseq.rdf._values cimport Kind

cdef void string_length(Operand* a) noexcept nogil
cdef void contains(Operand* a, const Operand* part) noexcept nogil
cdef void begins(Operand* a, const Operand* part) noexcept nogil
cdef void ends(Operand* a, const Operand* part) noexcept nogil
cdef void text_is(Operand* a, const Operand* part) noexcept nogil
cdef void before(Operand* a, const Operand* part) noexcept nogil
cdef void after(Operand* a, const Operand* part) noexcept nogil
cdef void substring(Operand* a, const Operand* start, const Operand* length) noexcept nogil
cdef int concatenate(Operand* a, int count, Arena* scratch) except -2 nogil
cdef int change_case(Operand* a, bint upper, Arena* scratch) except -2 nogil
cdef int language_matches(Operand* a, const Operand* wanted) noexcept nogil


cdef inline bint is_text(const Operand* of) noexcept nogil:
    return of.kind == Kind.STRING or of.kind == Kind.LANG

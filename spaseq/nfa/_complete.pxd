"""The complete matches of a core; see _complete.pyx."""

from spaseq.nfa._clock cimport Awaited

cdef list steps_of(Awaited* match)

"""The complete matches of a core; see _complete.pyx."""

from spaseq.nfa.native._window cimport Awaited

cdef list steps_of(Awaited* match)

"""The union of all groups in a range of a range index; see _sums.pyx."""

from libc.stdint cimport uint32_t, uint64_t

from spaseq.nfa.native._groups cimport Groups
from spaseq.nfa.native._range_index cimport Rank
from spaseq.nfa.native._tecs cimport Tecs, instant_t, union_t

# A range query for the groups with a hash and a rank whose value lies beyond a bound, and its
# result.
cdef struct Sum:
    uint64_t bucket
    double bound
    bint above          # values greater than the bound, otherwise less
    union_t members     # 0: empty
    instant_t latest

cdef int sum_of(
    Groups groups, uint32_t index, Tecs tecs, instant_t since, Sum* wanted
) except -1 nogil

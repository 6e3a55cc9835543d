# cython: language_level=3, boundscheck=False, wraparound=False
"""The automaton: what each event and each instant does to the partial matches."""

include "automaton/conjunction.pxi"
include "automaton/partitions.pxi"
include "automaton/negation.pxi"
include "automaton/joins.pxi"
include "automaton/deadlines.pxi"
include "automaton/transitions.pxi"
include "automaton/shedding.pxi"
include "automaton/lazy_join.pxi"
include "automaton/automaton.pxi"
include "automaton/snapshot.pxi"

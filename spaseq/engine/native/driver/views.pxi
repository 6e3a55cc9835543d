"""Views: registers with counts, aggregate states or first values, as terms for expressions.

Each view has its own cell of an environment; `refresh` computes it before an expression reads it.
Cost: constant per view.
"""

from spaseq.nfa.native._tecs cimport OPENED, VOID
from spaseq.rdf.native._terms cimport mem_calloc, mem_free

cdef dict SHOWN = {
    "first": Showing.BOUND_ONLY, "count": Showing.NUMBER, "aggregate": Showing.VALUE,
}


cdef class Views:
    """The views of all expressions.

    Args:
        views: per expression, (register, cell, kind) as from `RegisterFile.needed_views`; other
            kinds than those of `SHOWN` are terms and need no view.
        aggregates: the aggregates among the registers.
    """

    def __cinit__(self, views, NativeAggregates aggregates not None):
        cdef uint32_t i, end = 0
        listed = [[view for view in some if view[2] in SHOWN] for some in views]
        self.any = any(listed)
        self.aggregates = aggregates
        self.views = <View*>mem_calloc(sum(map(len, listed)), sizeof(View))
        self.first = <uint32_t*>mem_calloc(len(listed) + 1, sizeof(uint32_t))
        for i, some in enumerate(listed):
            for register, cell, kind in some:
                self.views[end] = View(register, cell, <Showing><int>SHOWN[kind])
                end += 1
            self.first[i + 1] = end

    def __dealloc__(self):
        mem_free(self.views)
        mem_free(self.first)

    cdef int refresh(self, EventBatch batch, uint32_t number, term_t* env) except -1 nogil:
        """Compute the cells of an expression's views."""
        cdef uint32_t i
        cdef View* view
        cdef term_t held
        for i in range(self.first[number], self.first[number + 1]):
            view = &self.views[i]
            held = env[view.register]
            if view.how == Showing.NUMBER:
                env[view.cell] = self.aggregates.number(held)
            elif view.how == Showing.VALUE:
                self.aggregates.finish(batch, view.register, held, &env[view.cell])
            else:
                env[view.cell] = 0 if held == OPENED or held == VOID else held
        return 0


cdef inline bint has_views(Views views, uint32_t number) noexcept nogil:
    return views.any and views.first[number] < views.first[number + 1]

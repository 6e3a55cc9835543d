"""Property paths with `*`, `+`, `?` and `!` over the views of one event, without the GIL.

A `PathSearch` visits pairs of a node and a state of the path's automaton
(`spaseq.gpm.native.path_automaton`), breadth first, each pair once. `PathJoin` extends rows by the
pairs of nodes that the path connects: it searches from an end that the row binds, and from every
possible start if the row binds neither. A path that may be empty connects a constant with itself,
and each node of the event with itself. It does not bind a variable to a term that is not a node of
the event.

Invariant: memory is that of the largest event so far, and only an event that is larger than all
earlier ones allocates. Cost of a search: linear in the links that it follows; each counts as a step
of the event, so `max_steps` bounds it.
Source: SPARQL 1.1 sections 9.3 and 18.4.
"""

cimport cython
from libc.string cimport memcpy

from spaseq.rdf.native._terms cimport count_step, mem_calloc, mem_free, mem_grow

cdef struct Link:
    uint32_t view
    bint forward
    uint32_t excluded_first     # the predicates that it must not have
    uint32_t excluded_end

# A view of up to MAX_SCANNED_LINKS triples is scanned for the links of a node; a larger one has
# lists.
cdef uint32_t MAX_SCANNED_LINKS = 4

cdef enum:
    START = 0
    ACCEPTED = 0xFFFFFFFFu      # in `visited`: the node has been found


# ------------------------------------------------------------------ the search


@cython.final
cdef class PathSearch:
    """
    Args:
        graph: the summary graph that it reads.
        views: the number of each key's view.
        automaton: a `PathAutomaton`.
    """

    cdef SummaryGraph graph
    cdef Link* links
    cdef uint32_t link_count
    cdef uint32_t* follow       # the links of state s: follow[follow_first[s]:follow_first[s + 1]]
    cdef uint32_t* follow_first
    cdef uint8_t* accepting     # per state
    cdef term_t* excluded
    cdef Marks visited          # (node, state), and (node, ACCEPTED)
    cdef uint64_t* frontier     # the pairs in the order in which they were reached
    cdef term_t* reached        # the nodes in an accepting state
    cdef uint32_t room          # of both
    cdef uint32_t end           # of the frontier
    cdef uint32_t reached_count

    def __cinit__(self, SummaryGraph graph not None, dict views not None, automaton):
        cdef Link* flat
        cdef uint32_t i = 0, at = 0
        self.graph = graph
        self.link_count = <uint32_t>len(automaton.links)
        self.links = <Link*>mem_calloc(self.link_count, sizeof(Link))
        self.follow = <uint32_t*>mem_calloc(sum(map(len, automaton.follow)), sizeof(uint32_t))
        self.follow_first = <uint32_t*>mem_calloc(self.link_count + 2, sizeof(uint32_t))
        self.accepting = <uint8_t*>mem_calloc(self.link_count + 1, 1)
        excluded = [term for link in automaton.links for term in link.excluded]
        self.excluded = <term_t*>mem_calloc(len(excluded), sizeof(term_t))
        for term in excluded:
            self.excluded[at] = graph.dictionary.intern(term)
            at += 1
        at = 0
        for link in automaton.links:
            flat = &self.links[i]
            flat.view = view_of(link.step, views)
            flat.forward = link.forward
            flat.excluded_first = at
            at += <uint32_t>len(link.excluded)
            flat.excluded_end = at
            i += 1
        i = at = 0
        for links in automaton.follow:
            for link in links:
                self.follow[at] = link
                at += 1
            i += 1
            self.follow_first[i] = at
        for state in automaton.accepting:
            self.accepting[<uint32_t>state] = True

    def __dealloc__(self):
        mem_free(self.links)
        mem_free(self.follow)
        mem_free(self.follow_first)
        mem_free(self.accepting)
        mem_free(self.excluded)
        marks_free(&self.visited)
        mem_free(self.frontier)
        mem_free(self.reached)

    cdef int begin_event(self) except -1 nogil:
        """Make room for every pair that a search of the event can visit.

        A pair other than the first is the end of a triple that its state's link follows.
        """
        cdef uint64_t pairs = 1
        cdef uint32_t i
        for i in range(self.link_count):
            pairs += self.graph.views[self.links[i].view].count
        marks_reserve(&self.visited, 2 * pairs)
        if pairs > self.room:
            self.frontier = <uint64_t*>mem_grow(
                self.frontier, 2 * pairs, sizeof(uint64_t), b"nodes to visit"
            )
            self.reached = <term_t*>mem_grow(
                self.reached, 2 * pairs, sizeof(term_t), b"nodes that a path reaches"
            )
            self.room = <uint32_t>(2 * pairs)
        return 0

    cdef bint search(self, Effort* effort, term_t start, term_t target) except -1 nogil:
        """Find the nodes that the path leads to: `reached`, up to the target if there is one.

        Returns False if the steps of the event are exhausted.
        """
        cdef uint32_t state, i, head = 0
        cdef term_t node
        self.end = self.reached_count = 0
        marks_empty(&self.visited)
        self._reach(start, START)
        while head < self.end:
            if target and self.reached_count and self.reached[self.reached_count - 1] == target:
                return True
            node = <term_t>(self.frontier[head] >> 32)
            state = <uint32_t>self.frontier[head]
            head += 1
            for i in range(self.follow_first[state], self.follow_first[state + 1]):
                if not self._follow(
                    effort, &self.links[self.follow[i]], node, self.follow[i] + 1
                ):
                    return False
        return True

    cdef bint _follow(
        self, Effort* effort, const Link* link, term_t node, uint32_t state
    ) except -1 nogil:
        """Reach a state at the far ends of all triples of a link that begin at a node."""
        cdef View* view = &self.graph.views[link.view]
        cdef const term_t* near = self.graph.subjects if link.forward else self.graph.objects
        cdef const term_t* far = self.graph.objects if link.forward else self.graph.subjects
        cdef Side side = BY_SUBJECT if link.forward else BY_OBJECT
        cdef uint32_t* chain = NULL
        cdef uint32_t at, position = view.count > 0
        if view.count > MAX_SCANNED_LINKS:
            if view.siblings[<int>side].heads == NULL:
                view.scanned += view.count      # it has lists to discard
                self.graph.link(link.view, side)
            chain = view.siblings[<int>side].next
            position = view.siblings[<int>side].heads[
                end_hash(node) & view.siblings[<int>side].mask
            ]
        while position:
            if not count_step(effort):
                return False
            at = view.first + position - 1
            if chain != NULL:
                position = chain[position - 1]
            else:
                position = position + 1 if position < view.count else 0
            if near[at] == node and (
                link.excluded_first == link.excluded_end
                or not self._excludes(link, self.graph.predicates[at])
            ):
                self._reach(far[at], state)
        return True

    cdef int _reach(self, term_t node, uint32_t state) noexcept nogil:
        if not mark(&self.visited, node, state):
            return 0
        self.frontier[self.end] = <uint64_t>node << 32 | state
        self.end += 1
        if self.accepting[state] and mark(&self.visited, node, ACCEPTED):
            self.reached[self.reached_count] = node
            self.reached_count += 1
        return 0

    cdef bint _excludes(self, const Link* link, term_t predicate) noexcept nogil:
        cdef uint32_t i
        for i in range(link.excluded_first, link.excluded_end):
            if self.excluded[i] == predicate:
                return True
        return False


def view_of(step, dict views):
    """The view of a step: that of its key, or view 0 of all triples."""
    return 0 if isinstance(step.key, int) else views[step.key]


# ------------------------------------------------------------------ the operator


@cython.final
cdef class PathJoin:
    """
    Args:
        graph: the summary graph that it reads.
        views: the number of each key's view.
        reach: an `algebra.Reach`.
    """

    cdef SummaryGraph graph
    cdef PathSearch ahead       # from the subject
    cdef PathSearch back        # from the object
    cdef int subject_slot       # -1: a constant
    cdef int object_slot
    cdef term_t subject
    cdef term_t object
    cdef int nodes              # the view of all nodes, if the path may be empty; else -1
    cdef readonly uint64_t needed   # the views without which the path leads nowhere; see `bit_of`
    cdef Marks started          # the nodes from which a search with two free ends has started

    def __cinit__(self, SummaryGraph graph not None, dict views not None, reach):
        self.graph = graph
        self.ahead = PathSearch(graph, views, reach.ahead)
        self.back = PathSearch(graph, views, reach.back)
        self.subject_slot, self.subject = self._end(reach.subject)
        self.object_slot, self.object = self._end(reach.object)
        self.nodes = -1 if reach.nodes is None else view_of(reach.nodes, views)
        for step in reach.ahead.required:
            self.needed |= bit_of(view_of(step, views))

    def __dealloc__(self):
        marks_free(&self.started)

    def _end(self, end):
        """The slot and the term of an end; one is -1 or 0."""
        return (end, 0) if isinstance(end, int) else (-1, self.graph.dictionary.intern(end))

    cdef bint extend(self, Effort* effort, const Rows* left, Rows* out) except -1 nogil:
        """Append each row of `left`, extended by all pairs of nodes that the path connects.

        Returns False if the steps of the event are exhausted.
        """
        cdef uint32_t i, j
        cdef const term_t* row
        cdef term_t subject, object
        self.ahead.begin_event()
        self.back.begin_event()
        for i in range(left.count):
            row = row_at(left, i)
            subject = self.subject if self.subject_slot < 0 else row[self.subject_slot]
            object = self.object if self.object_slot < 0 else row[self.object_slot]
            if subject:
                if not self.ahead.search(effort, subject, object):
                    return False
                for j in range(self.ahead.reached_count):
                    if (object == 0 or self.ahead.reached[j] == object) and (
                        self._may_connect(subject, self.ahead.reached[j])
                    ):
                        self._append(out, row, subject, self.ahead.reached[j])
            elif object:
                if not self.back.search(effort, object, 0):
                    return False
                for j in range(self.back.reached_count):
                    if self._may_connect(self.back.reached[j], object):
                        self._append(out, row, self.back.reached[j], object)
            elif not self._extend_from_all(effort, row, out):
                return False
        return True

    cdef bint _may_connect(self, term_t subject, term_t object) except -1 nogil:
        """Whether an empty path between two variables is one from a node of the event."""
        if subject != object or self.nodes < 0 or self.subject_slot < 0 or self.object_slot < 0:
            return True
        return self._is_end(subject, BY_SUBJECT) or self._is_end(subject, BY_OBJECT)

    cdef bint _is_end(self, term_t node, Side side) except -1 nogil:
        """Whether a node is the subject or the object of a triple of the event."""
        cdef View* view = &self.graph.views[self.nodes]
        cdef const term_t* ends = (
            self.graph.subjects if side == BY_SUBJECT else self.graph.objects
        ) + view.first
        cdef uint32_t position
        if view.siblings[<int>side].heads == NULL:
            if view.count == 0:
                return False
            view.scanned += view.count      # it has lists to discard
            self.graph.link(self.nodes, side)
        position = view.siblings[<int>side].heads[
            end_hash(node) & view.siblings[<int>side].mask
        ]
        while position and ends[position - 1] != node:
            position = view.siblings[<int>side].next[position - 1]
        return position != 0

    cdef bint _extend_from_all(self, Effort* effort, const term_t* row, Rows* out) except -1 nogil:
        """Extend a row from every node at which the path can begin."""
        cdef const Link* links = self.ahead.links
        cdef const uint32_t* first = self.ahead.follow
        cdef uint32_t i, count = self.ahead.follow_first[1]
        cdef uint64_t starts = 0
        if self.nodes >= 0:
            marks_reserve(&self.started, 2 * <uint64_t>self.graph.views[self.nodes].count)
            marks_empty(&self.started)
            return self._extend_from_view(effort, row, out, self.nodes, True) and (
                self._extend_from_view(effort, row, out, self.nodes, False)
            )
        for i in range(count):
            starts += self.graph.views[links[first[i]].view].count
        marks_reserve(&self.started, starts)
        marks_empty(&self.started)
        for i in range(count):
            if not self._extend_from_view(
                effort, row, out, links[first[i]].view, links[first[i]].forward
            ):
                return False
        return True

    cdef bint _extend_from_view(
        self, Effort* effort, const term_t* row, Rows* out, uint32_t view, bint subjects
    ) except -1 nogil:
        """Extend a row from the subjects or the objects of a view."""
        cdef const term_t* starts = self.graph.subjects if subjects else self.graph.objects
        cdef uint32_t i, first = self.graph.views[view].first
        for i in range(first, first + self.graph.views[view].count):
            if mark(&self.started, starts[i], START) and not (
                self._extend_from(effort, row, out, starts[i])
            ):
                return False
        return True

    cdef bint _extend_from(
        self, Effort* effort, const term_t* row, Rows* out, term_t start
    ) except -1 nogil:
        """Extend a row that binds neither end by the nodes that the path reaches from one."""
        cdef bint ring = self.subject_slot == self.object_slot
        cdef uint32_t j
        if not count_step(effort) or not self.ahead.search(effort, start, start if ring else 0):
            return False
        for j in range(self.ahead.reached_count):
            if not ring or self.ahead.reached[j] == start:
                self._append(out, row, start, self.ahead.reached[j])
        return True

    cdef int _append(
        self, Rows* out, const term_t* row, term_t subject, term_t object
    ) except -1 nogil:
        cdef term_t* extended = row_new(out)
        memcpy(extended, row, out.width * sizeof(term_t))
        if self.subject_slot >= 0:
            extended[self.subject_slot] = subject
        if self.object_slot >= 0:
            extended[self.object_slot] = object
        return 0

"""The declarations of _matcher.pyx that other modules use."""

cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport uint16_t, uint32_t, uint64_t, uint8_t

from spaseq.gpm.native._bytecode cimport Existence
from spaseq.rdf.native._terms cimport (
    Arena,
    Dictionary,
    Effort,
    EventBatch,
    EventRecord,
    Triple,
    term_t,
)

# matcher/rows.pxi

# The bytes that the tables of one graph pattern may still take.
cdef struct RowBudget:
    size_t left
    int pattern         # its number, for the error

# `count` rows of `width` terms each, 0 is unbound.
cdef struct Rows:
    term_t* cells
    RowBudget* budget
    uint32_t width
    uint32_t count
    uint32_t room

cdef struct RowIndex:
    uint32_t* heads     # NULL: no index; the rows are few, or there is no key
    uint32_t* next
    uint32_t mask


cdef inline term_t* row_at(const Rows* rows, uint32_t i) noexcept nogil:
    return rows.cells + <size_t>i * rows.width

# matcher/entailed_views.pxi

# A triple that a rule derives.
cdef struct Emission:
    uint32_t target
    term_t subject
    term_t predicate
    term_t object
    bint named          # only if the object of the triple is not a literal

# A triple for a view, or of a property of a chain.
cdef struct Derived:
    uint32_t target
    term_t subject
    term_t predicate
    term_t object
    uint32_t next_of_subject    # of links: the next in the list of this end, plus 1; 0: none
    uint32_t next_of_object

cdef struct Span:
    uint32_t first
    uint32_t end

# What a predicate entails: emissions for every triple, and the columns, plus 1, of what it entails
# together with a class as subject or object; 0: none.
cdef struct Rule:
    Span emissions
    uint32_t by_subject
    uint32_t by_object

cdef enum Direction:
    AHEAD = 1
    BACK = 2

# An entry of the hash table of the pairs of the background graph: where a link leads from an end.
cdef struct Keyed:
    uint32_t kind       # twice the link, and the Direction: never 0
    term_t end
    Span span

cdef struct Joined:
    uint32_t other      # the link that continues this one
    term_t result


@cython.final
cdef class Deriver:
    cdef readonly Dictionary dictionary
    cdef Rule* rules                # of each group: one per permanent term below `known`
    cdef Rule* otherwise            # per group: of all other predicates
    cdef term_t known
    cdef uint32_t groups
    cdef Emission* emissions
    cdef uint32_t emission_count
    cdef Span* columns              # each with a span for every permanent term below `ends`
    cdef term_t ends
    cdef Keyed* pairs
    cdef uint32_t pair_mask
    cdef term_t* beyond             # the ends to which the background graph leads
    cdef Span* ahead                # per link: the joins it begins
    cdef Span* back                 # per link: the joins it ends
    cdef Joined* joins
    cdef Derived* triples           # derived from the current event
    cdef uint32_t count, room
    cdef uint32_t* places           # of `triples` by hash, plus 1
    cdef uint32_t place_mask
    cdef uint32_t* heads            # of links, plus 1: by subject, then as many by object
    cdef uint32_t head_mask
    cdef uint32_t linked            # the number of links among `triples`
    cdef uint32_t reapplied             # the target of what chains derive
    cdef readonly uint32_t max_derived     # the limit of triples derived from one event

    cdef int derive(self, EventBatch batch, uint32_t event) except -1 nogil
    cdef int _apply(
        self, EventBatch batch, uint32_t group, term_t subject, term_t predicate, term_t object
    ) except -1 nogil
    cdef int _emit(
        self, EventBatch batch, Span span, term_t subject, term_t predicate, term_t object
    ) except -1 nogil
    cdef int _add(
        self, uint32_t target, term_t subject, term_t predicate, term_t object
    ) except -1 nogil
    cdef int _join_link(self, uint32_t at) except -1 nogil
    cdef int _list_link(self, uint32_t number) noexcept nogil
    cdef int _grow_heads(self, uint32_t before) except -1 nogil
    cdef Span _pairs(self, uint32_t link, Direction side, term_t end) noexcept nogil
    cdef int _grow_places(self) except -1 nogil
    cdef int _collect_rules(
        self, uint32_t group, rules, list numbers, dict emissions, dict columns
    ) except -1
    cdef Span _collect_emissions(self, given, list numbers, dict emissions) except *
    cdef int _lay_out_rules(self, emissions, columns) except -1
    cdef int _lay_out_joins(self, pairs, beyond, ahead, back) except -1

# matcher/summary_graph.pxi

cdef enum Side:
    BY_SUBJECT
    BY_OBJECT
    BY_BOTH
    SIDES           # how many there are

# Sibling lists, of triples with the same ends: position + 1 of the first by hash, and of the next
# by position; 0 ends a list. Triples of different ends may share a list.
cdef struct Siblings:
    uint32_t* heads     # mask + 1 of them; NULL: not built for this event
    uint32_t* next      # one per triple of the view
    uint32_t mask

# The triples of one predicate (view 0: of all of them), at [first:first + count] of the columns.
cdef struct View:
    uint32_t first
    uint32_t count
    uint32_t scanned        # triples that scans have read
    Siblings siblings[3]    # by Side
    uint64_t seen           # triples so far, of all events


cdef class SummaryGraph:
    cdef readonly Dictionary dictionary
    cdef term_t* subjects
    cdef term_t* predicates
    cdef term_t* objects
    cdef uint16_t* kinds        # per triple of the event: its view, while the views are filled
    cdef uint32_t room          # half of the triples for which the columns have room
    cdef View* views
    cdef readonly uint32_t view_count
    cdef uint16_t* filled       # the views that the last event filled
    cdef uint32_t filled_count
    cdef uint16_t* view_of      # per permanent term below `known`: the view of this predicate, or 0
    cdef term_t known
    cdef readonly bint whole    # whether view 0 is filled
    cdef Deriver deriver        # fills the last views, by entailment; None without such views
    cdef Arena scratch
    cdef uint64_t present           # the views that have triples, see `bit_of`
    cdef readonly uint64_t built    # events so far
    cdef uint64_t serial            # of the batch whose event the views hold
    cdef uint32_t event

    cdef inline int load(self, EventBatch batch, uint32_t event) except -1 nogil:
        """Fill the views with the triples of an event, unless they hold it already."""
        if self.serial == batch.serial and self.event == event:
            return 0
        return self._load(batch, event)
    cdef int _load(self, EventBatch batch, uint32_t event) except -1 nogil
    cdef inline int fills(self, uint32_t view, uint32_t triples) noexcept nogil:
        """Count `triples` more triples of the event in a view."""
        if self.views[view].count == 0 and triples:
            self.filled[self.filled_count] = <uint16_t>view
            self.filled_count += 1
            self.present |= bit_of(view)
        self.views[view].count += triples
        return 0
    cdef int empty(self) noexcept nogil
    cdef uint32_t _fill(self, const Triple* triple, const Triple* end) noexcept nogil
    cdef uint32_t _fill_sorted(self, const Triple* first, const Triple* end) noexcept nogil
    cdef uint32_t fill_derived(self, uint32_t place) noexcept nogil
    cdef int grow(self, uint32_t triples) except -1 nogil
    cdef int link(self, uint32_t view, Side side) except -1 nogil


cdef inline uint64_t bit_of(uint32_t view) noexcept nogil:
    """The bit of a view in `present`; beyond 64 views, several share a bit."""
    return <uint64_t>1 << (view & 63)


cdef inline uint64_t present_in(
    SummaryGraph graph, EventBatch batch, const EventRecord* event
) noexcept nogil:
    """The views that the triples of an event would fill, without derived ones; see `bit_of`."""
    cdef const Triple* triple = batch.triples + event.first
    cdef const Triple* end = batch.triples + event.end
    cdef uint64_t present = graph.whole
    cdef uint32_t view
    while triple < end:
        if triple.predicate < graph.known:
            view = graph.view_of[triple.predicate]
            present |= <uint64_t>(view != 0) << (view & 63)     # `bit_of`; none for view 0
        triple += 1
    return present

# matcher/matcher.pxi

# The operators. `spaseq.gpm.native.flatten` has the same list, and is compared with this one when
# `_matcher` is imported.
cpdef enum Operator:
    SEED
    BASIC
    JOIN
    LEFT_JOIN
    UNION
    MINUS
    FILTER
    EXTEND
    TABLE
    ALTERNATIVES
    REACH
    GROUP

# One end of a triple pattern.
cdef struct End:
    bint is_slot
    uint32_t number     # the slot of a variable, or a term

cdef struct Step:
    uint32_t view
    bint open           # the predicate is a variable
    bint apart          # subject and object have different slots
    int whole           # -1, or the slot of the triple term whose parts the ends are: no view
    End subject
    End predicate
    End object
    uint64_t tried      # rows that the step has extended
    uint64_t found      # rows that it has made of them

# The position of a step among its candidates, and the slots that it has bound in `work`.
cdef struct Cursor:
    uint32_t position   # the next candidate of the view, plus 1; 0: none
    uint32_t* chain     # the sibling lists that it follows; NULL: it scans
    bint bound_subject
    bint bound_predicate
    bint bound_object


@cython.final
cdef class BasicJoin:
    cdef SummaryGraph graph
    cdef dict views         # the number of each predicate's view
    cdef Step* steps
    cdef uint32_t count
    cdef Cursor* cursors    # one per step
    cdef term_t* work       # the row that the steps extend
    cdef uint32_t width
    cdef Effort effort      # the steps of the event
    cdef int pattern        # the number of the graph pattern, for the error
    cdef PyObject** batch   # the field of the matcher that holds the batch of the current event

    cdef int set_steps(self, uint32_t first, steps) except -1
    cdef End _end(self, end) except *
    cdef int extend(self, const Rows* left, Rows* out, uint32_t first, uint32_t end) except -1 nogil
    cdef bint match_singly(self, uint32_t first, uint32_t end, Rows* out) except -1 nogil
    cdef int _extend_singly(
        self, const Rows* left, Rows* out, uint32_t first, uint32_t end
    ) except -1 nogil
    cdef bint _fits_singly(self, term_t* row, uint32_t first, uint32_t end) noexcept nogil
    cdef int _open(self, Step* step, Cursor* cursor) except -1 nogil
    cdef int _charge_scan(self, uint32_t count) except -1 nogil
    cdef bint _advance(self, Step* step, Cursor* cursor) noexcept nogil
    cdef bint _take_apart(self, Step* step, Cursor* cursor) except -1 nogil
    cdef void _unbind(self, Step* step, Cursor* cursor) noexcept nogil
    cdef bint _fits_part(
        self, const End* end, const char* text, uint32_t size, bint* bound
    ) except -1 nogil
    cdef bint _fits(self, const End* end, term_t term, bint* bound) noexcept nogil


cdef inline int bind_ends(Step* step, const Triple* triple, term_t* row) noexcept nogil:
    """Bind the two ends of a step, which are different slots, to those of a triple."""
    row[step.subject.number], row[step.object.number] = triple.subject, triple.object
    step.tried += 1
    step.found += 1
    return 0

# An operator of `spaseq.gpm.algebra`; see `FlatNode` in `spaseq.gpm.native.flatten`.
cdef struct Node:
    Operator operator
    int left
    int right
    uint32_t first      # steps, operands or table
    uint32_t end
    uint32_t test_first # expressions
    uint32_t test_end
    int slot
    bint flag
    PyObject* part      # REACH: its PathJoin; GROUP: its Grouping; kept alive by `parts`
    Rows rows           # the result of the last evaluation
    RowIndex index      # TABLE: by the keys of the join that reads it, if `indexed`
    bint indexed
    Arena memory        # TABLE: memory of that index

# The operator of each EXISTS of an expression, by number: the context of `Existence`.
cdef struct ExistsNodes:
    PyObject* matcher
    uint32_t* nodes


@cython.final
cdef class NativeMatcher:
    cdef readonly SummaryGraph graph
    cdef readonly uint32_t columns      # variables: the first slots of a row
    cdef uint32_t width                 # all slots
    cdef int at                         # the slot of the AT variable, -1 without one
    cdef Node* nodes
    cdef uint32_t node_count
    cdef BasicJoin basic
    cdef uint32_t* operands
    cdef PyObject** tests               # the Expressions, kept alive by `expressions`
    cdef Existence* existences          # one per expression
    cdef ExistsNodes* exists_nodes      # one per expression
    cdef uint32_t local_first, local_end    # the local filters among the expressions
    cdef readonly list expressions
    cdef list parts
    cdef object flat                    # the FlatPattern, its steps in their current order
    cdef dict views                     # the number of each predicate's view
    cdef uint64_t needed                # the views that an event must fill for there to be a row
    # Shortcuts; each yields the same rows as the operators.
    cdef bint basic_only                # the pattern is one basic pattern of constant predicates
    cdef readonly bint single_step      # and one step, whose view and triple are all it reads
    cdef bint ends_only                 # and without filters, subject and object being all slots
    cdef PyObject* batch                # of the event being matched, borrowed
    cdef term_t* empty                  # a row without bindings
    cdef term_t* timed                  # a row with the event's time
    cdef const term_t* seed
    cdef term_t time
    cdef Arena scratch                  # the indexes of one evaluation
    cdef Rows* result                   # the rows of the last event: those of the last node
    cdef uint64_t serial                # of the batch of that event; 0: there is no result
    cdef uint32_t event
    cdef uint8_t* passed                # per row: whether it passed the local filters
    cdef uint32_t passed_room
    cdef RowBudget budget               # of the tables of rows
    cdef size_t made                    # bytes of the texts that BINDs have made for the event
    cdef uint64_t* untrue
    cdef readonly uint64_t tried        # events so far
    cdef readonly uint64_t found        # rows so far
    cdef uint64_t next_order            # the number of events after which `reorder` runs

    cdef int _allocate(self, uint32_t nodes, uint32_t operands, uint32_t tests) except -1
    cdef int _set_node(self, Node* flat, node) except -1
    cdef int _set_rows(self, Node* flat, slots, rows, EventBatch batch) except -1
    cdef int _set_expression(self, uint32_t number, code) except -1
    cdef uint64_t _needed(self, int number) noexcept
    cdef bint _is_basic_only(self, Node* root) noexcept
    cdef inline int match_event(self, EventBatch batch, uint32_t event) except -1 nogil:
        """Match an event, once: its rows in `result`, and in `passed` which pass the filters."""
        if self.serial == batch.serial and self.event == event:
            return 0
        return self._match_event(batch, event)
    cdef int _match_event(self, EventBatch batch, uint32_t event) except -1 nogil
    cdef inline int count_skipped(self, uint64_t events) noexcept nogil:
        """Count events that were skipped since they lack a predicate."""
        self.tried += events
        return 0
    cdef inline bint match_single_triple(self, EventBatch batch, uint32_t event) except -1 nogil:
        """Whether an event of one triple, in the only view of the pattern, has a row that passes.

        Equals `match_event`, without a summary graph.
        """
        if self.serial == batch.serial and self.event == event:
            return self.result.count > 0 and self.passed[0]
        if not self.ends_only:
            self._match_single_triple(batch, event)
            return self.result.count > 0 and self.passed[0]
        self.result.count = 1
        bind_ends(
            &self.basic.steps[self.nodes[self.node_count - 1].first],
            &batch.triples[batch.events[event].first], self.result.cells,
        )
        self.passed[0] = True
        self.tried += 1
        self.found += 1
        self.serial, self.event = batch.serial, event
        return True
    cdef int _match_single_triple(self, EventBatch batch, uint32_t event) except -1 nogil
    cdef bint accepts(self, EventBatch batch, const term_t* row) except -1 nogil
    cdef int run(self, uint32_t event) except -1 nogil
    cdef int filter_rows(self) except -1 nogil
    cdef int evaluate(self, int number) except -1 nogil
    cdef int join(self, Node* node) except -1 nogil
    cdef int seeded(self, Node* node) except -1 nogil
    cdef int index_right(self, Node* node, RowIndex* index) except -1 nogil
    cdef int _join_rows(self, Node* node, const term_t* left, const term_t* right) except -1 nogil
    cdef int _copy_row(self, Rows* rows, const term_t* row) except -1 nogil
    cdef int extend(self, Node* node) except -1 nogil
    cdef int reach(self, Node* node) except -1 nogil
    cdef int holds(self, uint32_t first, uint32_t end, const term_t* row) except -1 nogil
    cdef int reorder(self) except -1

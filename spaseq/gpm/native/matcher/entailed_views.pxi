"""The triples of an event → the triples that they entail, for the views that entailment widens.

The rules of `spaseq.rdf.entailment` are stored as numbers: an array by predicate, columns by
predicate and class, and, for chains of two properties, a hash table of the pairs of the background
graph. Only triples of some view are derived, each once; other triples of the event are skipped.
Rules of two groups (queries that see different graphs of the KB) never combine.

Memory is reused from event to event. Cost: linear in the derived triples.
"""

from libc.string cimport memset

from spaseq.errors import LimitExceeded
from spaseq.rdf.entailment import MOST_DERIVED, Part, View as EntailedView
from spaseq.rdf.native._terms cimport (
    is_numeral,
    is_triple,
    mem_calloc,
    mem_free,
    mem_realloc,
    record_of,
)

# Placeholders for terms in an emission: parts of the triple to which the rule is applied.
cdef enum:
    THE_SUBJECT = 0xFFFFFFFFu
    THE_PREDICATE = 0xFFFFFFFEu
    THE_OBJECT = 0xFFFFFFFDu

# Targets that are not views: from LINK on, the properties of chains; from REAPPLIED on, by group,
# the triples that chains derive, to which the rules are applied in turn.
cdef enum:
    LINK = 0x80000000u
    REAPPLIED = 0xC0000000u


cdef inline bint _is_literal(EventBatch batch, term_t term) noexcept nogil:
    """Whether a term cannot be a subject: a literal, or a triple term."""
    cdef const char* text
    if is_numeral(term):
        return True
    text = record_of(batch, term).text
    return text[0] == c'"' or is_triple(text)


cdef inline uint32_t _mixed(uint32_t a, term_t b, term_t c, term_t d) noexcept nogil:
    cdef uint64_t hash = (<uint64_t>a << 32 | b) * 0x9E3779B97F4A7C15u
    hash = (hash ^ (<uint64_t>c << 32 | d)) * 0xD6E8FEB86659FD93u
    return <uint32_t>(hash >> 32)


cdef class Deriver:
    """Derives triples by the rules of `groups`.

    Args:
        groups: the rules, per set of graphs that queries see.
        views: the number of each view of the summary graph; other targets are not derived.
        max_derived: the limit of triples derived from one event.
    """

    def __cinit__(
        self, Dictionary dictionary not None, groups, views, uint32_t max_derived=MOST_DERIVED
    ):
        self.dictionary = dictionary
        self.groups = <uint32_t>len(groups)
        self.max_derived = max_derived
        numbers = [dictionary.intern(one) for rules in groups for one in _predicates(rules)]
        self.known = max(numbers, default=0) + 1
        self.rules = <Rule*>mem_calloc(self.known * self.groups, sizeof(Rule))
        self.otherwise = <Rule*>mem_calloc(self.groups, sizeof(Rule))
        emissions, columns, pairs, beyond, ahead, back = {}, {}, {}, [], [], []
        for group, rules in enumerate(groups):
            first = len(ahead)
            numbers = [views.get(view, 0) for view in _views(rules)]
            numbers += [<uint32_t>LINK + first + link for link in range(len(rules.linked))]
            self._collect_rules(group, rules, numbers, emissions, columns)
            self._collect_joins(rules, first, ahead, back, pairs, beyond)
        self._lay_out_rules(emissions, columns)
        self._lay_out_joins(pairs, beyond, ahead, back)

    def __dealloc__(self):
        mem_free(self.rules)
        mem_free(self.otherwise)
        mem_free(self.emissions)
        mem_free(self.columns)
        mem_free(self.pairs)
        mem_free(self.beyond)
        mem_free(self.ahead)
        mem_free(self.back)
        mem_free(self.joins)
        mem_free(self.triples)
        mem_free(self.places)
        mem_free(self.heads)

    cdef int _collect_rules(
        self, uint32_t group, rules, list numbers, dict emissions, dict columns
    ) except -1:
        """Collect the rules of a group whose targets have a number."""
        cdef term_t name
        cdef Rule* rule = &self.rules[group * self.known]
        self.otherwise[group].emissions = self._collect_emissions(
            rules.otherwise, numbers, emissions
        )
        for name in range(self.known):
            rule[name] = self.otherwise[group]
        for predicate, given in rules.plain.items():
            name = self.dictionary.intern(predicate)
            rule[name].emissions = self._collect_emissions(given, numbers, emissions)
        for by_object, table in enumerate((rules.by_subject, rules.by_object)):
            for predicate, column in self._columns_of(table, numbers, emissions).items():
                name = self.dictionary.intern(predicate)
                number = columns.setdefault(frozenset(column.items()), len(columns) + 1)
                if by_object:
                    rule[name].by_object = number
                else:
                    rule[name].by_subject = number
        return 0

    def _columns_of(self, table, numbers, emissions):
        """By predicate: the spans of the emissions of each class that has rules with it."""
        found = {}
        for (predicate, term), given in table.items():
            span = self._collect_emissions(given, numbers, emissions)
            if span.first < span.end:
                column = found.setdefault(predicate, {})
                column[self.dictionary.intern(term)] = span.first, span.end
        return found

    cdef Span _collect_emissions(self, given, list numbers, dict emissions) except *:
        """The span of some emissions; classes with equal emissions share a span."""
        cdef Span span
        made = tuple([
            (numbers[number], *map(self._symbol, symbols), named)
            for number, *symbols, named in given if numbers[number]
        ])
        if made not in emissions:
            emissions[made] = self.emission_count
            self.emission_count += <uint32_t>len(made)
        span.first = emissions[made]
        span.end = span.first + <uint32_t>len(made)
        return span

    def _symbol(self, symbol):
        if symbol is Part.SUBJECT:
            return <uint32_t>THE_SUBJECT
        if symbol is Part.PREDICATE:
            return <uint32_t>THE_PREDICATE
        if symbol is Part.OBJECT:
            return <uint32_t>THE_OBJECT
        return self.dictionary.intern(symbol)

    def _collect_joins(self, rules, first_link, ahead, back, pairs, beyond):
        """Collect the joins of each link, and the pairs of the background graph that they need."""
        dictionary = self.dictionary
        for number, name in enumerate(rules.linked):
            link = first_link + number
            ahead.append([
                (first_link + join.right, dictionary.intern(join.result))
                for join in rules.joins if join.left == number
            ])
            back.append([
                (first_link + join.left, dictionary.intern(join.result))
                for join in rules.joins if join.right == number
            ])
            sides = (
                (AHEAD, 0, any(j.right == number for j in rules.joins)),
                (BACK, 1, any(j.left == number for j in rules.joins)),
            )
            for kind, side, used in sides:
                if used:
                    for term, others in rules.background[name][side].items():
                        first = len(beyond)
                        beyond.extend(dictionary.intern(other) for other in others)
                        pairs[2 * link + kind, dictionary.intern(term)] = first, len(beyond)

    cdef int _lay_out_rules(self, emissions, columns) except -1:
        """Copy the collected rules into arrays."""
        cdef uint32_t i, number
        cdef Span* column
        self.emissions = <Emission*>mem_calloc(self.emission_count, sizeof(Emission))
        for made, first in emissions.items():
            for i, (target, subject, predicate, object, named) in enumerate(made, first):
                self.emissions[i] = Emission(target, subject, predicate, object, named)
        self.ends = self.dictionary.permanent.count
        self.columns = <Span*>mem_calloc(len(columns) * <size_t>self.ends, sizeof(Span))
        for content, number in columns.items():
            column = self.columns + (number - 1) * <size_t>self.ends
            for end, (first, last) in content:
                column[<term_t>end] = Span(first, last)
        return 0

    cdef int _lay_out_joins(self, pairs, beyond, ahead, back) except -1:
        """Copy the collected joins and the background graph into arrays."""
        cdef uint32_t i, at, size = 16
        while size < 2 * len(pairs):
            size *= 2
        self.pair_mask = size - 1
        self.pairs = <Keyed*>mem_calloc(size, sizeof(Keyed))
        for (kind, end), (first, last) in pairs.items():
            at = _mixed(kind, end, 0, 0) & self.pair_mask
            while self.pairs[at].kind:
                at = (at + 1) & self.pair_mask
            self.pairs[at] = Keyed(kind, end, Span(first, last))
        self.beyond = <term_t*>mem_calloc(len(beyond), sizeof(term_t))
        for i, number in enumerate(beyond):
            self.beyond[i] = number
        self.ahead = <Span*>mem_calloc(len(ahead), sizeof(Span))
        self.back = <Span*>mem_calloc(len(back), sizeof(Span))
        self.joins = <Joined*>mem_calloc(sum(map(len, ahead)) + sum(map(len, back)), sizeof(Joined))
        at = 0
        for i in range(<uint32_t>len(ahead)):
            self.ahead[i] = Span(at, at + <uint32_t>len(ahead[i]))
            for other, result in ahead[i]:
                self.joins[at] = Joined(other, result)
                at += 1
            self.back[i] = Span(at, at + <uint32_t>len(back[i]))
            for other, result in back[i]:
                self.joins[at] = Joined(other, result)
                at += 1
        self.place_mask = 63
        self.places = <uint32_t*>mem_calloc(64, sizeof(uint32_t))
        if ahead:
            self.head_mask = 63
            self.heads = <uint32_t*>mem_calloc(128, sizeof(uint32_t))
        return 0

    # ---------------------------------------------------------------- an event

    def derived(self, EventBatch batch not None, uint32_t event):
        """The triples that an event entails, as numbers: (view, subject, predicate, object)."""
        if event >= batch.event_count:
            raise IndexError(f"the batch has {batch.event_count} events, not one at {event}")
        self.derive(batch, event)
        return [
            (self.triples[i].target, self.triples[i].subject, self.triples[i].predicate,
             self.triples[i].object)
            for i in range(self.count)
            if self.triples[i].target < LINK
        ]

    cdef int derive(self, EventBatch batch, uint32_t event) except -1 nogil:
        """Derive what an event entails into `triples`, with links and triples of chains."""
        cdef uint32_t group, i, first, end, before
        cdef Triple triple
        cdef Derived one
        self.count = self.linked = 0
        memset(self.places, 0, (<size_t>self.place_mask + 1) * sizeof(uint32_t))
        if self.heads != NULL:
            memset(self.heads, 0, 2 * (<size_t>self.head_mask + 1) * sizeof(uint32_t))
        first = batch.events[event].first
        end = batch.events[event].end
        for group in range(self.groups):
            before = self.count
            self.reapplied = REAPPLIED + group
            for i in range(first, end):
                triple = batch.triples[i]
                self._apply(batch, group, triple.subject, triple.predicate, triple.object)
            i = before
            while i < self.count:
                if self.triples[i].target == self.reapplied:
                    one = self.triples[i]
                    self._apply(batch, group, one.subject, one.predicate, one.object)
                i += 1
        return 0

    cdef int _apply(
        self, EventBatch batch, uint32_t group, term_t subject, term_t predicate, term_t object
    ) except -1 nogil:
        """Derive what one triple entails."""
        cdef Rule rule = self.otherwise[group]
        cdef Span span
        if predicate < self.known:
            rule = self.rules[group * self.known + predicate]
        self._emit(batch, rule.emissions, subject, predicate, object)
        if rule.by_subject and subject < self.ends:
            span = self.columns[(rule.by_subject - 1) * <size_t>self.ends + subject]
            self._emit(batch, span, subject, predicate, object)
        if rule.by_object and object < self.ends:
            span = self.columns[(rule.by_object - 1) * <size_t>self.ends + object]
            self._emit(batch, span, subject, predicate, object)
        return 0

    cdef Span _pairs(self, uint32_t link, Direction side, term_t end) noexcept nogil:
        """The ends to which the background graph leads from an end of a link."""
        cdef uint32_t kind = 2 * link + <uint32_t>side
        cdef uint32_t at = _mixed(kind, end, 0, 0) & self.pair_mask
        cdef Keyed* entry = &self.pairs[at]
        cdef Span none
        while entry.kind:
            if entry.end == end and entry.kind == kind:
                return entry.span
            at = (at + 1) & self.pair_mask
            entry = &self.pairs[at]
        none.first = none.end = 0
        return none

    cdef int _emit(
        self, EventBatch batch, Span span, term_t subject, term_t predicate, term_t object
    ) except -1 nogil:
        cdef Emission emission
        cdef uint32_t i
        for i in range(span.first, span.end):
            emission = self.emissions[i]
            if emission.named and _is_literal(batch, object):
                continue
            if emission.subject == THE_SUBJECT:
                emission.subject = subject
            elif emission.subject == THE_OBJECT:
                emission.subject = object
            if emission.predicate == THE_PREDICATE:
                emission.predicate = predicate
            if emission.object == THE_OBJECT:
                emission.object = object
            elif emission.object == THE_SUBJECT:
                emission.object = subject
            self._add(
                emission.target, emission.subject, emission.predicate, emission.object
            )
        return 0

    cdef int _add(
        self, uint32_t target, term_t subject, term_t predicate, term_t object
    ) except -1 nogil:
        """Add a triple to `triples`, once; a link is joined with earlier links."""
        cdef uint32_t at = _mixed(target, subject, predicate, object) & self.place_mask
        cdef Derived* known
        cdef Derived* moved
        while self.places[at]:
            known = &self.triples[self.places[at] - 1]
            if (known.subject == subject and known.object == object
                    and known.target == target and known.predicate == predicate):
                return 0
            at = (at + 1) & self.place_mask
        if self.count == self.room:
            moved = <Derived*>mem_realloc(
                self.triples, (2 * <size_t>self.room + 64) * sizeof(Derived)
            )
            if moved == NULL:
                with gil:
                    raise MemoryError
            self.triples = moved
            self.room = 2 * self.room + 64
        if self.count == self.max_derived:
            with gil:
                raise LimitExceeded(
                    f"more than {self.max_derived:,} triples follow from one event (MOST_DERIVED): "
                    "look for a transitive property or a chain that joins nearly everything"
                )
        self.triples[self.count] = Derived(target, subject, predicate, object, 0, 0)
        self.count += 1
        self.places[at] = self.count
        if 2 * self.count > self.place_mask:
            self._grow_places()
        if LINK <= target < REAPPLIED:
            self._join_link(self.count - 1)
        return 0

    cdef int _grow_places(self) except -1 nogil:
        """Double the hash table of `triples`."""
        cdef uint32_t i, at
        cdef uint32_t size = 2 * (self.place_mask + 1)
        cdef Derived* one
        cdef uint32_t* moved = <uint32_t*>mem_realloc(self.places, size * sizeof(uint32_t))
        if moved == NULL:
            with gil:
                raise MemoryError
        self.places = moved
        self.place_mask = size - 1
        memset(self.places, 0, size * sizeof(uint32_t))
        for i in range(self.count):
            one = &self.triples[i]
            at = _mixed(one.target, one.subject, one.predicate, one.object) & self.place_mask
            while self.places[at]:
                at = (at + 1) & self.place_mask
            self.places[at] = i + 1
        return 0

    # ---------------------------------------------------------------- chains

    cdef int _join_link(self, uint32_t number) except -1 nogil:
        """Derive what chains entail from a link, with the background graph and with earlier links.

        The derived triples are reapplied later. Adding one adds no link, so no list changes here.
        """
        cdef term_t subject = self.triples[number].subject
        cdef term_t object = self.triples[number].object
        cdef uint32_t link = self.triples[number].target - LINK
        cdef uint32_t i, j, at
        cdef Joined join
        cdef Span span
        self.linked += 1
        if self.linked > self.head_mask:
            self._grow_heads(number)
        self._list_link(number)
        for i in range(self.ahead[link].first, self.ahead[link].end):
            join = self.joins[i]
            span = self._pairs(join.other, AHEAD, object)
            for j in range(span.first, span.end):
                self._add(self.reapplied, subject, join.result, self.beyond[j])
            at = self.heads[_mixed(LINK + join.other, object, 0, 0) & self.head_mask]
            while at:
                if self.triples[at - 1].target == LINK + join.other:
                    if self.triples[at - 1].subject == object:
                        self._add(self.reapplied, subject, join.result, self.triples[at - 1].object)
                at = self.triples[at - 1].next_of_subject
        for i in range(self.back[link].first, self.back[link].end):
            join = self.joins[i]
            span = self._pairs(join.other, BACK, subject)
            for j in range(span.first, span.end):
                self._add(self.reapplied, self.beyond[j], join.result, object)
            at = _mixed(LINK + join.other, subject, 0, 1) & self.head_mask
            at = self.heads[self.head_mask + 1 + at]
            while at:
                if self.triples[at - 1].target == LINK + join.other:
                    if self.triples[at - 1].object == subject:
                        self._add(self.reapplied, self.triples[at - 1].subject, join.result, object)
                at = self.triples[at - 1].next_of_object
        return 0

    cdef int _list_link(self, uint32_t number) noexcept nogil:
        """Insert a link at the head of the lists of its ends."""
        cdef Derived* one = &self.triples[number]
        cdef uint32_t at = _mixed(one.target, one.subject, 0, 0) & self.head_mask
        one.next_of_subject = self.heads[at]
        self.heads[at] = number + 1
        at = self.head_mask + 1 + (_mixed(one.target, one.object, 0, 1) & self.head_mask)
        one.next_of_object = self.heads[at]
        self.heads[at] = number + 1
        return 0

    cdef int _grow_heads(self, uint32_t before) except -1 nogil:
        """Double the heads of the lists of links, and list the links before `before`."""
        cdef uint32_t i
        cdef uint32_t size = 2 * (self.head_mask + 1)
        cdef uint32_t* moved = <uint32_t*>mem_realloc(self.heads, 2 * size * sizeof(uint32_t))
        if moved == NULL:
            with gil:
                raise MemoryError
        self.heads = moved
        self.head_mask = size - 1
        memset(self.heads, 0, 2 * size * sizeof(uint32_t))
        for i in range(before):
            if LINK <= self.triples[i].target < REAPPLIED:
                self._list_link(i)
        return 0


def _views(rules):
    return [EntailedView(rules, target) for target in rules.targets]


def _predicates(rules):
    """The predicates that have separate rules."""
    return [
        *rules.plain,
        *(predicate for predicate, _ in rules.by_subject),
        *(predicate for predicate, _ in rules.by_object),
    ]

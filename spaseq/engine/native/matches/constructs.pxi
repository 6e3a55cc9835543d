"""Matches of a CONSTRUCT, and the events of a registered stream that they become.

This works for queries whose results depend on each other only by their order: they return every
match, each match is complete with its last event, and there are no duplicates. A match decodes its
graph on first access. The event of a match is encoded from the texts of its steps, without objects
for its terms.

Invariant: a match does not refer to the run.
Cost: linear in the steps of a match and the triples of the template; n log n for n matches of one
instant, whose keys are decoded.
"""

cimport cython

from spaseq.gpm.python.aggregates import order_key
from spaseq.rdf.native._terms cimport (
    EventRecord,
    hash_of,
    is_triple,
    known_term,
    mem_calloc,
    mem_free,
)

cdef enum TermKind:
    CONSTANT
    VARIABLE
    BLANK

# A term of a template.
cdef struct TemplateTerm:
    TermKind kind
    uint32_t number     # of the variable, of the blank node, or in `constants`
    uint64_t hash       # of a constant


cdef inline term_t entered(
    EventBatch batch, uint64_t hash, const char* text, uint32_t size
) except 0:
    """The number of a term of a batch."""
    cdef term_t known = known_term(batch, hash, text, size)
    return known if known else batch.enter(hash, text, size, True)


cdef class ConstructedMatch(FoundMatch):
    """A match of a CONSTRUCT; its graph, too, is decoded on first access."""

    cdef MatchDecoder values    # decodes the variables of the template
    cdef object instantiate
    cdef object number          # of the match among those of the query, from 1

    def to_json(self) -> str:
        return Match.to_json(self)

    cdef int decode_graph(self) except -1:
        with cython.critical_section(self.reading):
            if self.found_graph is None:
                self.found_graph = self.instantiate(
                    self.values.bindings(self.steps, None), self.number
                )
        return 0


cdef class ConstructMaker(MatchMaker):
    """Makes the matches of one run."""

    cdef MatchDecoder values    # decodes the variables of the template
    cdef TemplateTerm* terms    # three for each triple
    cdef uint32_t triple_count
    cdef list constants         # the texts of terms
    cdef object instantiate
    cdef bint misplaced         # whether the last event lacks a triple that is not valid

    def __dealloc__(self):
        mem_free(self.terms)

    def set_template(self, MatchDecoder values not None, triples, instantiate):
        """Set the template of the graphs, before the first match.

        Args:
            values: decodes the variables of the template.
            triples: three terms each: the text of a constant, the name of a variable, or the number
                of a blank node.
            instantiate: returns the graph of a match from its bindings and its number.
        """
        cdef uint32_t i
        cdef bytes text
        cdef list terms = [term for triple in triples for term in triple]
        self.values, self.instantiate, self.constants = values, instantiate, []
        self.triple_count = <uint32_t>len(triples)
        self.terms = <TemplateTerm*>mem_calloc(len(terms), sizeof(TemplateTerm))
        for i, term in enumerate(terms):
            if isinstance(term, bytes):
                text = term
                self.terms[i] = TemplateTerm(
                    TermKind.CONSTANT, <uint32_t>len(self.constants), hash_of(text, len(text))
                )
                self.constants.append(text)
            elif isinstance(term, str):
                self.terms[i] = TemplateTerm(TermKind.VARIABLE, values.names.index(term), 0)
            else:
                self.terms[i] = TemplateTerm(TermKind.BLANK, term, 0)

    def take_all(self, bint skip, int kb_version, int made) -> list:
        """The matches that were completed since the last call, in order.

        Args:
            skip: whether later matches start after the end of these.
            kb_version: the version of the KB that the matches report.
            made: the number of earlier matches.

        Raises:
            LimitReached: if there are too many.
        """
        cdef ConstructedMatch match
        cdef list found = list(self.take(skip, kb_version))
        if len(found) > 1:
            with cython.critical_section(self.reading):
                found.sort(key=self._key)
        for match in found:
            made += 1
            match.number = made
        return found

    def add_events(self, list matches not None, EventBatch batch not None, uint32_t ordinal):
        """Append the events of some matches to a batch; `ordinal` is that of the first one."""
        cdef ConstructedMatch match
        with cython.critical_section(self.reading):
            for match in matches:
                self._add_event(match, batch, ordinal)
                ordinal += 1

    cdef Match match(self, object version):
        cdef ConstructedMatch match = ConstructedMatch.__new__(ConstructedMatch)
        self.fill(match, version)
        match.values, match.instantiate = self.values, self.instantiate
        return match

    def _key(self, ConstructedMatch match):
        """The sort key of a match, in the order of `OutputStage`."""
        cdef DecodedStep step
        values, orders, _, occurrences, rows = self.ordering.sort_key(match.steps, None)
        solution = list(map(order_key, self.values.solution(match.steps, None)))
        instants, streams = [], []
        for step in match.steps:
            instants.append((step.micros, step.ordinal))
            streams.append(step.stream)
        return instants, streams, values, orders, solution, occurrences, rows

    cdef int _add_event(
        self, ConstructedMatch match, EventBatch batch, uint32_t ordinal
    ) except -1:
        cdef uint32_t i, j, first = batch.triple_count
        cdef term_t subject, predicate, value
        cdef const TemplateTerm* term = self.terms
        cdef DecodedStep last = <DecodedStep>match.steps[len(match.steps) - 1]
        cdef EventRecord* event
        cdef const char* stamp = last._text(0)
        cdef uint32_t size = last.sizes()[0]
        cdef term_t stamped = entered(batch, hash_of(stamp, size), stamp, size) if size else 0
        self.misplaced = False
        self.values._replay(match.steps)
        for i in range(self.triple_count):
            subject = self._enter(term, match, batch, True, False)
            predicate = self._enter(term + 1, match, batch, False, True)
            value = self._enter(term + 2, match, batch, False, False)
            term += 3
            if subject == 0 or predicate == 0 or value == 0:
                continue
            j = first
            while j < batch.triple_count and not (
                batch.triples[j].subject == subject and batch.triples[j].predicate == predicate
                and batch.triples[j].object == value
            ):
                j += 1
            if j == batch.triple_count:
                batch.add_triple(subject, predicate, value)
        if self.misplaced:
            match.decode_graph()    # counts the triples that are not valid
        event = batch.add_event()
        event.first, event.statements = first, batch.triple_count - first
        event.micros, event.domain, event.ordinal = last.micros, last.domain, ordinal
        event.stamp = stamped
        return 0

    cdef term_t _enter(
        self, const TemplateTerm* term, ConstructedMatch match, EventBatch batch, bint subject,
        bint predicate,
    ) except? 0:
        """The number of a term; 0 if it is unbound, or cannot be that part of a triple."""
        cdef bytes text
        cdef const Origin* origin
        cdef DecodedStep step
        cdef const char* begin
        cdef uint32_t size
        cdef uint64_t hash
        if term.kind == TermKind.VARIABLE:
            origin = &self.values.origins[self.values.registers[term.number]]
            if origin.step == 0:
                return 0
            step = <DecodedStep>match.steps[origin.step - 1]
            begin, size = step._text(origin.column + 2), step.sizes()[origin.column + 2]
            hash = hash_of(begin, size)
        elif term.kind == TermKind.CONSTANT:
            text = <bytes>self.constants[term.number]
            begin, size, hash = text, <uint32_t>len(text), term.hash
        else:
            text = f"_:m{match.number}n{term.number}".encode()
            begin, size = text, <uint32_t>len(text)
            hash = hash_of(begin, size)
        if (subject and (begin[0] == c'"' or is_triple(begin))) or (
            predicate and (begin[0] != c"<" or is_triple(begin))
        ):
            self.misplaced = True
            return 0
        return entered(batch, hash, begin, size)

"""Steps of a match → witnesses, bindings and JSON, on demand.

A `DecodedStep` is an event of a step, shared by all matches with the step: the texts of its terms,
and the objects decoded from them so far. A `MatchDecoder` has the names of a query's steps
and variables. It finds the step that bound each variable by replaying the edges of the match.

Invariant: neither refers to a run.
Cost: linear in the steps of a match and the effects of their edges; each witness is decoded once.
"""

cimport cython
import json
from cpython.bytes cimport PyBytes_AS_STRING
from libc.string cimport memset

from spaseq.gpm.python.aggregates import order_key, value_key
from spaseq.nfa.native._tecs cimport Binding, Change, Edge, Effect, Following, Occurrence
from spaseq.rdf.event import DATE_TIME, NUMBER, Timestamp
from spaseq.rdf.native._terms cimport mem_calloc, mem_free, written_term
from spaseq.results import Witness, keys, triples_text
from spaseq.results.native._match cimport put, put_bytes, put_name, put_number, put_term, put_time

# The JSON texts before a value. The first binding and the first event follow a bracket.
cdef bytes END = keys.following(keys.END)

cdef bytes BINDINGS = keys.following(keys.BINDINGS) + b"{"

cdef bytes EVENTS = keys.following(keys.EVENTS) + b"["

cdef bytes TRUE = keys.following(keys.BOOLEAN) + b"true"

cdef bytes CLOSED_BY_END = keys.following(keys.CLOSED_BY_END) + b"true"

cdef bytes KB = keys.following(keys.KB)

cdef bytes TIME = keys.following(keys.TIME)

cdef bytes ORDINAL = keys.following(keys.ORDINAL)

cdef bytes GRAPH = keys.following(keys.GRAPH)

cdef object UNREAD = object()   # stands for a term that is not decoded yet

cdef dict recent = {}           # text → IRI; most matches contain the same few

cdef Py_ssize_t RECENT_MAX = 4096


cdef object decoded(const char* text, uint32_t size):
    """The pyoxigraph term with a text; equal IRIs are often one object."""
    cdef bytes copied = text[:size]
    if text[0] != c"<":
        return written_term(copied)
    term = recent.get(copied)
    if term is None:
        if len(recent) >= RECENT_MAX:
            recent.clear()
        term = recent[copied] = written_term(copied)
    return term


cdef str _quoted(str text):
    return json.dumps(text, ensure_ascii=False)


cdef class MatchDecoder:
    """Decodes the witnesses and bindings of a query's matches.

    Args:
        query: its name.
        rows: the tables of its automaton (`spaseq.nfa.native.table_types.CoreTables`).
        columns: the projected variables, each with its register, or with the number of registers
            plus its place among the computed columns.
        steps: per edge, its graph patterns: the occurrence, the name of the GPM and the variables
            of its rows; None for a column that witnesses do not show.
        streams: their IRIs.
        like: a decoder with the same arguments except the name and the columns, or None. The new
            decoder shares everything that does not depend on these two.
    """

    def __cinit__(
        self, str query, rows, columns, steps, streams, MatchDecoder like=None,
    ):
        cdef uint32_t i
        self.tables = Tables(rows) if like is None else like.tables
        self.names = tuple([name for name, _ in columns])
        self.column_count = <uint32_t>len(columns)
        self.registers = <uint32_t*>mem_calloc(self.column_count, sizeof(uint32_t))
        for i, (_, register) in enumerate(columns):
            self.registers[i] = register
        self.cells = rows.cells
        self.origins = <Origin*>mem_calloc(self.cells, sizeof(Origin))
        self.query = query
        self.opening = f'{{"{keys.QUERY}": {_quoted(query)}, "{keys.START}": '.encode()
        self.answer = f'{{"{keys.QUERY}": {_quoted(query)}, "{keys.END}": '.encode()
        self.column_openings = [f"{_quoted(name)}: ".encode() for name in self.names]
        if like is not None:
            self.like = like if like.owns_parts else like.like
            self.parts, self.part_first = like.parts, like.part_first
            self.edge_count = like.edge_count
            self.steps, self.step_openings = like.steps, like.step_openings
            self.streams, self.stream_texts = like.streams, like.stream_texts
            return
        self._set_parts(steps)
        self.streams = list(streams)
        self.stream_texts = [_quoted(stream).encode() for stream in streams]
        self.step_openings = [
            (
                f'{{"{keys.GPM}": {_quoted(name)}, "{keys.STREAM}": '.encode(),
                [v if v is None else f"{_quoted(v)}: ".encode() for v in variables],
            )
            for name, variables in self.steps
        ]

    cdef int _set_parts(self, steps) except -1:
        cdef uint32_t edge, part = 0
        self.owns_parts = True
        self.parts = <StepPart*>mem_calloc(sum(map(len, steps)), sizeof(StepPart))
        self.part_first = <uint32_t*>mem_calloc(len(steps), sizeof(uint32_t))
        self.edge_count = <uint32_t>len(steps)
        self.steps = []
        for edge, patterns in enumerate(steps):
            self.part_first[edge] = part
            for occurrence, name, variables in patterns:
                self.parts[part] = StepPart(edge, occurrence)
                self.steps.append((name, variables))
                part += 1
        return 0

    def __dealloc__(self):
        if self.owns_parts:
            mem_free(self.parts)
            mem_free(self.part_first)
        mem_free(self.registers)
        mem_free(self.origins)
        mem_free(self.scratch.begin)

    cdef bytes json(
        self, tuple steps, object kb_version, const Ending* ending, DecodedStep values
    ):
        """A match of a SELECT in JSON, in the form of `spaseq.results.data`."""
        cdef Text text
        memset(&text, 0, sizeof(Text))
        try:
            self.put_json(&text, steps, kb_version, ending, values, None)
            return text.begin[:text.size]
        finally:
            mem_free(text.begin)

    cdef int put_json(
        self, Text* to, tuple steps, object kb_version, const Ending* ending, DecodedStep values,
        tuple graph,
    ) except -1:
        """Append a match in JSON, with its solution or the `graph` of a CONSTRUCT."""
        cdef Text text = to[0]
        cdef DecodedStep first = <DecodedStep>steps[0]
        cdef DecodedStep last = <DecodedStep>steps[len(steps) - 1]
        cdef uint32_t i
        try:
            put_bytes(&text, self.opening)
            put_time(&text, first.micros, first.domain)
            put_bytes(&text, END)
            put_time(&text, ending.micros if ending.later else last.micros, last.domain)
            if graph is None:
                self._put_bindings(&text, steps, values)
            else:
                put_bytes(&text, GRAPH)
                put_bytes(&text, _quoted(triples_text(graph)).encode())
                put_bytes(&text, EVENTS)
            for i in range(<uint32_t>len(steps)):
                if i:
                    put(&text, b", ", 2)
                put_bytes(&text, (<DecodedStep>steps[i]).json(self))
            put(&text, b"]", 1)
            self._put_further(&text, kb_version, ending.by_input)
            return 0
        finally:
            to[0] = text

    cdef int put_answer(
        self, Text* text, DecodedStep last, object kb_version, const Ending* ending
    ) except -1:
        """Append the answer of an ASK in JSON; `last` is the last event of the match."""
        put_bytes(text, self.answer)
        put_time(text, ending.micros if ending.later else last.micros, last.domain)
        put_bytes(text, TRUE)
        return self._put_further(text, kb_version, ending.by_input)

    cdef int _put_further(self, Text* text, object kb_version, bint by_input) except -1:
        """Append the optional keys, and end the match."""
        if by_input:
            put_bytes(text, CLOSED_BY_END)
        if kb_version != 1:
            put_bytes(text, KB)
            put_number(text, kb_version)
        return put(text, b"}", 1)

    cdef int _put_bindings(self, Text* text, tuple steps, DecodedStep values) except -1:
        cdef DecodedStep taken
        cdef uint32_t i, place = 0
        cdef bint several = False
        put_bytes(text, BINDINGS)
        self._replay(steps)
        for i in range(self.column_count):
            taken = self._source(i, steps, values, &place)
            if taken is None:
                continue
            if several:
                put(text, b", ", 2)
            several = True
            put_bytes(text, <bytes>self.column_openings[i])
            taken.put_term(text, place)
        put(text, b"}", 1)
        return put_bytes(text, EVENTS)

    cdef DecodedStep _source(
        self, uint32_t column, tuple steps, DecodedStep values, uint32_t* place
    ):
        """Where the term of a column is, after `_replay`; None if it is unbound.

        `values`: the computed columns, if there are any.
        """
        cdef uint32_t register = self.registers[column]
        cdef Origin* origin
        if register >= self.cells:
            place[0] = register - <uint32_t>self.cells + 2
            return values if values.sizes()[place[0]] else None
        origin = &self.origins[register]
        place[0] = origin.column + 2
        return <DecodedStep>steps[origin.step - 1] if origin.step else None

    cdef dict bindings(self, tuple steps, DecodedStep values):
        """The solution of a match, without unbound variables."""
        cdef uint32_t i, place = 0
        cdef DecodedStep taken
        cdef dict bindings = {}
        if self.column_count == 0:
            return bindings
        self._replay(steps)
        for i in range(self.column_count):
            taken = self._source(i, steps, values, &place)
            if taken is not None:
                bindings[self.names[i]] = taken.term(place)
        return bindings

    cdef tuple solution(self, tuple steps, DecodedStep values):
        """The terms of the columns; None for an unbound one."""
        cdef uint32_t i, place = 0
        cdef DecodedStep taken
        cdef list terms = []
        self._replay(steps)
        for i in range(self.column_count):
            taken = self._source(i, steps, values, &place)
            terms.append(None if taken is None else taken.term(place))
        return tuple(terms)

    cdef tuple sort_key(self, tuple steps, DecodedStep values):
        """The sort key of a match among those of its instants and streams, as `OutputStage` has it.

        The columns are the variables that order matches; `values` are the computed columns.
        """
        return self.sort_key_of(self.solution(steps, None), steps, values)

    cdef tuple sort_key_of(self, tuple bound, tuple steps, DecodedStep values):
        """As `sort_key`, with given values of the variables that order matches."""
        cdef list terms = []
        if values is not None:
            terms = values.read()[2:]
        return (
            list(map(value_key, bound)),
            list(map(order_key, bound)),
            list(map(order_key, terms)),
            [self.parts[(<DecodedStep>step).part].occurrence for step in steps],
            [list(map(order_key, (<DecodedStep>step).read()[2:])) for step in steps],
        )

    cdef tuple event_of(self, DecodedStep step):
        """An event of a match as (edge, events of its step, occurrence, row)."""
        cdef StepPart* part = &self.parts[step.part]
        return part.edge, max(step.events, 1), part.occurrence, step.read()[2:]

    cdef bytes first_text(self, tuple steps):
        """The text of the first column, which is bound."""
        cdef Origin* origin
        cdef DecodedStep taken
        self._replay(steps)
        origin = &self.origins[self.registers[0]]
        taken = <DecodedStep>steps[origin.step - 1]
        return taken._text(origin.column + 2)[:taken.sizes()[origin.column + 2]]

    cdef tuple first_terms(self, tuple steps, uint32_t most):
        """The terms of the first columns, which are bound."""
        cdef uint32_t i
        cdef Origin* origin
        cdef list terms = []
        self._replay(steps)
        for i in range(most):
            origin = &self.origins[self.registers[i]]
            terms.append((<DecodedStep>steps[origin.step - 1]).term(origin.column + 2))
        return tuple(terms)

    cdef int _replay(self, tuple steps) except -1:
        """Replay the steps to find the row that bound each register."""
        cdef uint32_t i
        cdef DecodedStep taken
        self.begin()
        for i in range(<uint32_t>len(steps)):
            taken = <DecodedStep>steps[i]
            self.follow_event(i, taken.part, taken.events, taken.sizes() + 2)
        return 0

    cdef int begin(self) noexcept nogil:
        """Unbind all registers."""
        memset(self.origins, 0, self.cells * sizeof(Origin))
        self.awaited = 0
        return 0

    cdef int follow_event(
        self, uint32_t number, uint32_t part, uint32_t events, const uint32_t* bound
    ) noexcept nogil:
        """Apply an event of a step of several `events`; the first one applies the edge.

        A column of the row is bound if its `bound` is not 0.
        """
        cdef uint32_t j, k
        cdef Edge* taken = &self.tables.edges[self.parts[part].edge]
        cdef Effect* effect
        cdef Occurrence* occurrence = &self.tables.occurrences[self.parts[part].occurrence]
        cdef Binding* binding
        if self.awaited == 0:
            for j in range(taken.effect_first, taken.effect_end):
                effect = &self.tables.effects[j]
                if effect.change == Change.FORGET:
                    self.origins[effect.register].step = 0
                elif effect.change == Change.COPY:
                    self.origins[effect.register] = self.origins[effect.other]
            self.awaited = events
        self.awaited -= 1
        for j in range(occurrence.binding_first, occurrence.assigned_end):
            binding = &self.tables.bindings[j]
            if bound[binding.column] and not self.origins[binding.register].step:
                self.origins[binding.register].step = number + 1
                self.origins[binding.register].column = binding.column
                for k in range(binding.follower_first, binding.follower_end):
                    if self.tables.followers[k].how == Following.LAST_VALUE:
                        self.origins[self.tables.followers[k].register] = (
                            self.origins[binding.register]
                        )
        return 0


@cython.freelist(64)
@cython.no_gc
cdef class DecodedStep:
    """An event of a step, shared by all matches with the step."""

    cdef const uint32_t* sizes(self) noexcept:
        return <const uint32_t*>PyBytes_AS_STRING(self.texts)

    cdef const char* _text(self, uint32_t place) noexcept:
        """The text of a term."""
        cdef const uint32_t* sizes = self.sizes()
        cdef const char* text = PyBytes_AS_STRING(self.texts) + self.count * sizeof(uint32_t)
        cdef uint32_t i
        for i in range(place):
            text += sizes[i]
        return text

    cdef object term(self, uint32_t place):
        """A term; None for an unbound column."""
        cdef uint32_t size
        if self.terms is None:
            self.terms = [UNREAD] * self.count
        term = self.terms[place]
        if term is UNREAD:
            size = self.sizes()[place]
            term = decoded(self._text(place), size) if size else None
            self.terms[place] = term
        return term

    cdef list read(self):
        """All terms, as `term` returns them."""
        cdef uint32_t i
        for i in range(self.count):
            self.term(i)
        return self.terms

    cdef object timestamp(self):
        """The time of the event."""
        if self.time is None:
            self.time = Timestamp(self.micros, DATE_TIME if self.domain else NUMBER, self.term(0))
        return self.time

    cdef object timestamp_at(self, int64_t micros):
        """A time of the same kind as that of the event."""
        return Timestamp(micros, DATE_TIME if self.domain else NUMBER)

    cdef int put_term(self, Text* text, uint32_t place) except -1:
        """Append a term in JSON."""
        return put_term(text, self._text(place), self.sizes()[place])

    cdef bytes json(self, MatchDecoder reading):
        """The witness in JSON."""
        cdef Text text
        cdef uint32_t i
        cdef bint several = False
        cdef bytes opening
        cdef list openings
        if self.written is not None:
            return self.written
        text = reading.scratch
        text.size = 0
        opening, openings = reading.step_openings[self.part]
        try:
            put_bytes(&text, opening)
            put_bytes(&text, <bytes>reading.stream_texts[self.stream])
            put_bytes(&text, TIME)
            put_time(&text, self.micros, self.domain)
            put_bytes(&text, ORDINAL)
            put_number(&text, self.ordinal)
            if self.sizes()[1]:
                put_bytes(&text, GRAPH)
                put_name(&text, self._text(1), self.sizes()[1])
            put_bytes(&text, BINDINGS)
            for i in range(<uint32_t>len(openings)):
                if self.sizes()[i + 2] and openings[i] is not None:
                    if several:
                        put(&text, b", ", 2)
                    several = True
                    put_bytes(&text, <bytes>openings[i])
                    self.put_term(&text, i + 2)
            put(&text, b"}}", 2)
            self.written = text.begin[:text.size]
        finally:
            reading.scratch = text
        return self.written

    cdef object witness(self, MatchDecoder reading):
        cdef uint32_t i
        cdef tuple variables
        cdef list terms
        if self.seen is None:
            name, variables = reading.steps[self.part]
            terms = self.read()
            bound = {}
            for i in range(<uint32_t>len(variables)):
                if terms[i + 2] is not None and variables[i] is not None:
                    bound[variables[i]] = terms[i + 2]
            stream = reading.streams[self.stream]
            self.seen = Witness(name, stream, self.timestamp(), self.ordinal, terms[1], bound)
        return self.seen

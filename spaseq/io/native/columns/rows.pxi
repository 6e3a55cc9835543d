"""Complete matches of the core → columns of rows, without an object for a match or a term.

The builders of the columns copy the texts from the records of the terms. Only the labels with blank
nodes, which are rare, use objects.

Invariant: the rows equal those that `Rows` (spaseq/io/arrow_rows.py) builds from `Match` objects.
Cost: linear in the bytes of each row.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from hashlib import blake2b
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from spaseq.engine.native._matches cimport MatchMaker, Origin
from spaseq.io.native._events cimport key_with, part_of_key
from spaseq.nfa.native._tecs cimport Label, Walk
from spaseq.rdf.native._terms cimport TermRecord, has_blank, is_triple, mem_free
from spaseq.results.native._match cimport Match, put, put_bytes, put_n_triples, put_number

cdef enum:
    DIGEST = 12             # bytes of a digest
    MAX_TEXT_BYTES = 1 << 24    # texts of a batch, without its last row


cdef class RowMaker(MatchMaker):
    """Builds the rows of the matches of one run that belong to one task."""

    forms = frozenset(("select",))

    cdef readonly Strings ids, queries, keys, items, gpms, streams, names, event_keys, event_items
    cdef readonly Numbers starts, ends, begins, event_begins, times, ordinals, event_key_begins
    cdef readonly list values   # by projected variable: its column
    cdef readonly list natives  # by projected variable: its `NativeValues`; None without types
    cdef Text digest            # input of the digest of the current match
    # Names in UTF-8.
    cdef bytes query
    cdef list variables
    cdef list stream_names
    cdef list gpm_names         # by part of a step
    cdef list part_variables    # by part: the variables of its rows
    cdef list part_orders       # by part: the indexes of its variables, sorted by name
    cdef object decode
    cdef int64_t first, behind
    cdef bint unbounded         # whether rows are made of all matches
    cdef dict columns           # by part: the columns of its rows that hold the key
    cdef uint32_t parts_there, part
    cdef uint32_t most          # rows of a batch
    # Whether rows have the columns `id`, `events` and `bindings`.
    cdef bint identified
    cdef bint provided
    cdef bint bound
    cdef list shown             # by projected variable: whether its column is computed
    cdef dict renamed           # terms of the current match, by step; see `_add_event`

    def __dealloc__(self):
        mem_free(self.digest.begin)

    def begin(self, decode, uint32_t most, columns):
        """Start with empty columns.

        Args:
            decode: computes the texts of a witness with blank nodes; `identity.decoded`.
            most: the number of rows after which `full` is true.
            columns: the columns to compute (spaseq/io/arrow_columns.py). Others stay empty.
        """
        steps = self.reading.steps
        self.decode, self.most = decode, most
        self.identified, self.provided = columns.has("id"), columns.has("events")
        self.bound = columns.has("bindings")
        self.shown = [columns.has(columns.variables[name]) for name in self.reading.names]
        self.renamed = {}
        memset(&self.digest, 0, sizeof(Text))
        self.query = (<str>self.reading.query).encode()
        self.variables = [name.encode() for name in self.reading.names]
        self.stream_names = [stream.encode() for stream in self.reading.streams]
        self.gpm_names = [name.encode() for name, _ in steps]
        self.part_variables = [[name.encode() for name in names] for _, names in steps]
        self.part_orders = [sorted(range(len(names)), key=names.__getitem__) for _, names in steps]
        self.ids, self.queries, self.keys, self.items = Strings(), Strings(), Strings(), Strings()
        self.gpms, self.streams, self.names = Strings(), Strings(), Strings()
        self.event_keys, self.event_items = Strings(), Strings()
        self.starts, self.ends, self.begins = Numbers(), Numbers(), Numbers()
        self.event_begins, self.times, self.ordinals = Numbers(), Numbers(), Numbers()
        self.event_key_begins = Numbers()
        self.values = [Strings() for _ in self.variables]
        self.natives = [NativeValues() for _ in self.variables] if columns.typed else None

    def restrict(self, int64_t first, int64_t behind, variables, uint32_t part, uint32_t parts):
        """Build rows only of matches whose end is at least `first` and less than `behind` and, if
        there are `variables`, whose key has the part `part` of `parts`.
        """
        self.first, self.behind = first, behind
        self.columns = {}
        self.part, self.parts_there = part, parts
        if variables:
            for number, (_, names) in enumerate(self.reading.steps):
                self.columns[number] = [names.index(name) for name in variables if name in names]

    def whole(self):
        """Make rows of all matches."""
        self.unbounded = True

    def close(self):
        """Append the end offset to the columns of offsets."""
        self.begins.add(self.keys.count)
        self.event_begins.add(self.gpms.count)
        self.event_key_begins.add(self.event_keys.count)

    cdef Match match(self, object version):
        """Add the row of the match that the core's walk has reached, if it belongs to the task."""
        cdef Walk walk = self.core.transitions.walk
        cdef uint32_t i
        cdef int64_t end = self.ending.micros if self.ending.later else walk.path[0].micros
        if not self.unbounded and (
            not self.first <= end < self.behind or not self._is_own(walk)
        ):
            return None
        self.made += 1
        self.renamed.clear()
        if self.identified:
            self.digest.size = 0
            put_bytes(&self.digest, self.query)
            put(&self.digest, b" ", 1)
            put_number(&self.digest, end)
        self.event_begins.add(self.gpms.count)
        self.reading.begin()
        for i in range(walk.length):
            self._add_event(walk.path[walk.length - 1 - i], i)
        self.begins.add(self.keys.count)
        for i in range(self.reading.column_count):
            self._add_binding(walk, i)
        if self.identified:
            self._add_digest()
        self.queries.add(PyBytes_AS_STRING(self.query), len(self.query))
        self.starts.add(walk.path[walk.length - 1].micros)
        self.ends.add(end)
        return None

    cdef bint pauses(self) noexcept:
        cdef Strings column
        cdef size_t texts = self.items.text.size + self.event_items.text.size
        for column in self.values:
            texts += column.text.size
        return self.starts.count >= self.most or texts > MAX_TEXT_BYTES

    @property
    def full(self):
        """Whether the caller should take the rows now."""
        return self.pauses()

    cdef bint _is_own(self, Walk walk) except -1:
        cdef Label* label = walk.path[walk.length - 1]
        cdef uint64_t seed = 0
        cdef uint32_t column
        if not self.columns:
            return True
        for column in self.columns[self.reading.part_of(label)]:
            seed = key_with(seed, self.record(label, column + 2))
        return part_of_key(seed, self.parts_there) == self.part

    # ---------------------------------------------------------------- events

    cdef int _add_event(self, Label* label, uint32_t step) except -1:
        """Add the event of a step. If it has blank nodes, `renamed` receives its terms."""
        cdef uint32_t part = self.reading.part_of(label)
        cdef bytes gpm = <bytes>self.gpm_names[part]
        cdef bytes stream = <bytes>self.stream_names[label.stream]
        self.reading.follow_event(step, part, label.parts, label.row)
        if self.provided:
            self.event_key_begins.add(self.event_keys.count)
            self.gpms.add(gpm, len(gpm))
            self.streams.add(stream, len(stream))
            self.times.add(label.micros)
            self.ordinals.add(label.ordinal)
        if self._has_nodes(label):
            return self._add_with_nodes(label, step)
        if self.provided:
            self._add_witness(label, <list>self.part_variables[part])
        if self.identified:
            put(&self.digest, b"\n", 1)
            put_bytes(&self.digest, gpm)
            put(&self.digest, b" ", 1)
            put_bytes(&self.digest, stream)
            put(&self.digest, b" ", 1)
            put_number(&self.digest, label.micros)
            put(&self.digest, b" ", 1)
            put_number(&self.digest, label.ordinal)
            self._digest_terms(
                label, <list>self.part_variables[part], <list>self.part_orders[part]
            )
        return 0

    cdef int _add_witness(self, Label* label, list names) except -1:
        """Add the name of an event and its bindings."""
        cdef uint32_t i
        cdef bytes variable
        cdef const TermRecord* name
        if label.name:
            name = self.record(label, 1)
            self.names.add(name.text + 1, name.lexical)
        else:
            self.names.skip()
        for i in range(label.width):
            if label.row[i]:
                variable = <bytes>names[i]
                self.event_keys.add(variable, len(variable))
                put_n_triples(&self.event_items.text, self.record(label, i + 2))
                self.event_items.close()
        return 0

    cdef int _digest_terms(self, Label* label, list names, list order) except -1:
        cdef uint32_t i
        for i in order:
            if label.row[i]:
                put(&self.digest, b" ", 1)
                put_bytes(&self.digest, <bytes>names[i])
                put(&self.digest, b" ", 1)
                put_n_triples(&self.digest, self.record(label, i + 2))
        return 0

    cdef bint _has_nodes(self, Label* label) noexcept:
        """Whether the name or a binding of a label is a blank node."""
        cdef uint32_t i
        cdef const TermRecord* record
        if label.name and self.record(label, 1).text[0] == c"_":
            return True
        for i in range(label.width):
            if label.row[i]:
                record = self.record(label, i + 2)
                if has_blank(record.text, record.size):
                    return True
        return False

    cdef int _add_with_nodes(self, Label* label, uint32_t step) except -1:
        cdef bytes text
        witness = self.step_of_label(label).witness(self.reading)
        (_, _, _, _, name, keys, items), place, bound, plain = self.decode(witness)
        if self.provided and name is None:
            self.names.skip()
        elif self.provided:
            text = name.encode()
            self.names.add(text, len(text))
        for key, item in zip(keys, items, strict=True) if self.provided else ():
            text = key.encode()
            self.event_keys.add(text, len(text))
            text = item.encode()
            self.event_items.add(text, len(text))
        if self.identified:
            put_bytes(&self.digest, place.encode())
        self.renamed[step] = {
            name: (term.encode(), plain[name].encode()) for name, term in bound.items()
        }
        return 0

    # ---------------------------------------------------------------- the solution

    cdef int _add_binding(self, Walk walk, uint32_t number) except -1:
        """Add the value of a column."""
        cdef uint32_t register = self.reading.registers[number]
        cdef Origin* origin = NULL
        cdef Strings column = <Strings>self.values[number]
        cdef NativeValues natives = None
        cdef bint shown = self.shown[number]
        cdef bytes text, plain
        cdef const TermRecord* record = NULL
        cdef Label* label
        cdef tuple relabelled = None
        if shown and self.natives is not None:
            natives = <NativeValues>self.natives[number]
        if register >= self.reading.cells:
            record = self.computed_record(register - <uint32_t>self.reading.cells)
            if record != NULL and has_blank(record.text, record.size):
                relabelled = self._relabelled(number)
        else:
            origin = &self.reading.origins[register]
            if origin.step:
                label = walk.path[walk.length - origin.step]
                record = self.record(label, origin.column + 2)
                if self.renamed and origin.step - 1 in self.renamed:
                    _, names = self.reading.steps[self.reading.part_of(label)]
                    relabelled = self.renamed[origin.step - 1][names[origin.column]]
        if record == NULL:
            if natives is not None:
                natives.skip()
            return column.skip() if shown else 0
        if self.bound:
            text = <bytes>self.variables[number]
            self.keys.add(text, len(text))
        if self.identified:
            put(&self.digest, b"\n", 1)
            put_bytes(&self.digest, <bytes>self.variables[number])
            put(&self.digest, b" ", 1)
        if relabelled is not None:
            text, plain = relabelled
            if self.bound:
                self.items.add(text, len(text))
            if self.identified:
                put_bytes(&self.digest, text)
            if shown:
                column.add(plain, len(plain))
            if natives is not None:
                natives.add(record)
            return 0
        if self.bound:
            put_n_triples(&self.items.text, record)
            self.items.close()
        if self.identified:
            put_n_triples(&self.digest, record)
        if natives is not None:
            natives.add(record)
        if shown and is_triple(record.text):
            put_n_triples(&column.text, record)
            column.close()
        elif shown:
            column.add(record.text + 1, record.lexical)
        return 0

    cdef tuple _relabelled(self, uint32_t number):
        """The value of a computed column with a blank node, in N-Triples and without delimiters."""
        from spaseq.io.identity import solution_shown

        match = MatchMaker.match(self, 1)
        self.made -= 1
        return solution_shown(match)[self.reading.names[number]]

    cdef int _add_digest(self) except -1:
        cdef bytes digest = blake2b(
            self.digest.begin[:self.digest.size], digest_size=DIGEST
        ).digest()
        cdef const uint8_t* number = <const uint8_t*>PyBytes_AS_STRING(digest)
        cdef char[2 * DIGEST] text
        cdef uint32_t i
        for i in range(DIGEST):
            text[2 * i] = b"0123456789abcdef"[number[i] >> 4]
            text[2 * i + 1] = b"0123456789abcdef"[number[i] & 15]
        return self.ids.add(text, 2 * DIGEST)

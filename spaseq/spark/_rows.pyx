# cython: language_level=3, boundscheck=False, wraparound=False
"""Complete matches of the core → what rows are made of, without `Match` objects.

A match costs its texts: a label is made texts once for all matches it is part of, straight
from the records of its terms, and a match is some entries in lists (`Rows` in
spaseq/spark/rows.py, which does the same for matches that are objects). What is rare goes
through the objects: labels with blank nodes, and literals whose text is not their form.

Invariant: the rows are those that `Rows.add` would make. Cost: linear in the steps of each match.
"""

from hashlib import blake2b

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.engine._matches cimport MatchMaker, Origin, Reading
from spaseq.nfa._tecs cimport Label, Walk
from spaseq.rdf._terms cimport TermRecord
from spaseq.results._match cimport Match
from spaseq.spark._columns cimport key_with, part_of_key


cdef class RowMaker(MatchMaker):
    """Makes rows of the matches of one run that belong to one task."""

    cdef list ids, queries, starts, ends, bindings, keys, items, events, shown
    cdef list values            # per projected variable, the list of its column
    cdef object decode
    cdef int64_t first, behind
    cdef dict columns           # per edge of the core: where the key stands in its rows
    cdef uint32_t parts_there, part

    def into(self, rows, decode):
        """Where rows go; `decode` makes of a witness what `rows` have of it."""
        self.ids, self.queries = rows.ids, rows.queries
        self.starts, self.ends = rows.starts, rows.ends
        self.bindings, self.keys, self.items = rows.bindings, rows.keys, rows.items
        self.events, self.shown = rows.events, rows.shown
        self.values = [rows.values[name] for name in self.reading.names]
        self.decode = decode

    def only(self, int64_t first, int64_t behind, variables, uint32_t part, uint32_t parts):
        """Make rows only of matches that end from `first` on, and before `behind`; and whose key
        belongs to a part of so many, where there are variables.
        """
        self.first, self.behind = first, behind
        self.columns = {}
        self.part, self.parts_there = part, parts
        if variables:
            for number, (_, names) in enumerate(self.reading.steps):
                self.columns[number] = [names.index(name) for name in variables if name in names]

    cdef Match match(self, object version):
        cdef Walk walk = self.core.walk
        cdef Reading reading = self.reading
        cdef uint32_t i
        cdef Label* last = walk.path[0]
        cdef Label* label
        cdef Origin* origin
        cdef list steps, parts
        cdef tuple step
        if not self.first <= last.micros < self.behind or not self._is_own(walk):
            return None
        steps = [None] * walk.length
        self.events.append(len(self.shown))
        parts = [f"{reading.query} {last.micros}"]
        self.made += 1
        reading.begin()
        for i in range(walk.length):
            label = walk.path[walk.length - 1 - i]
            key = <size_t>label
            found = self.known.get(key)
            if found is None:
                found = self.known[key] = self._spelt(label)
            step = <tuple>found
            steps[i] = step
            self.shown.append(step[0])
            parts.append(step[1])
            reading.go_on(i, self._edge(label), label.row)
        self.bindings.append(len(self.keys))
        for i in range(reading.column_count):
            origin = &reading.origins[reading.registers[i]]
            if not origin.step:
                (<list>self.values[i]).append(None)
                continue
            step = <tuple>steps[origin.step - 1]
            text = (<list>step[2])[origin.column]
            self.keys.append(reading.names[i])
            self.items.append(text)
            parts.append(f"\n{reading.names[i]} {text}")
            (<list>self.values[i]).append((<list>step[3])[origin.column])
        self.ids.append(blake2b("".join(parts).encode(), digest_size=12).hexdigest())
        self.queries.append(reading.query)
        self.starts.append(walk.path[walk.length - 1].micros)
        self.ends.append(last.micros)
        return None

    cdef bint _is_own(self, Walk walk) except -1:
        cdef Label* label = walk.path[walk.length - 1]
        cdef uint64_t seed = 0
        cdef uint32_t column
        if not self.columns:
            return True
        for column in self.columns[self._edge(label)]:
            seed = key_with(seed, self.record(label, column + 2))
        return part_of_key(seed, self.parts_there) == self.part

    cdef uint32_t _edge(self, Label* label) noexcept:
        return self.core.places[label.place].edge_first + label.position

    cdef tuple _spelt(self, Label* label):
        """(what rows show of it, what a digest has of it, its terms, the same plain) of a label."""
        cdef uint32_t i
        cdef const TermRecord* record
        cdef list texts = [None] * label.width
        cdef list plain = [None] * label.width
        cdef tuple variables
        name, variables = self.reading.steps[self._edge(label)]
        keys, items = [], []
        for i in range(label.width):
            if label.row[i] == 0:
                continue
            record = self.record(label, i + 2)
            if record.text[0] == c"_":
                return self._with_nodes(label)
            texts[i] = self._text(label, i, record)
            plain[i] = PyUnicode_DecodeUTF8(record.text + 1, record.lexical, NULL)
            keys.append(variables[i])
            items.append(texts[i])
        graph = None
        if label.name:
            record = self.record(label, 1)
            if record.text[0] == c"_":
                return self._with_nodes(label)
            graph = PyUnicode_DecodeUTF8(record.text + 1, record.lexical, NULL)
        stream = self.reading.streams[label.stream]
        place = f"\n{name} {stream} {label.micros} {label.ordinal}"
        if len(keys) == 1:
            place = f"{place} {keys[0]} {items[0]}"
        else:
            place += "".join([f" {key} {item}" for key, item in sorted(zip(keys, items))])
        shown = (name, stream, label.micros, label.ordinal, graph, keys, items)
        return shown, place, texts, plain

    cdef tuple _with_nodes(self, Label* label):
        cdef tuple variables
        witness = self.taken(label).witness(self.reading)
        shown, place, bound, plain = self.decode(witness)
        _, variables = self.reading.steps[self._edge(label)]
        return (
            shown, place, [bound.get(name) for name in variables],
            [plain.get(name) for name in variables],
        )

    cdef object _text(self, Label* label, uint32_t column, const TermRecord* record):
        """A term in N-Triples."""
        cdef uint32_t i
        cdef char letter
        if record.text[0] == c'"':
            for i in range(1, record.lexical + 1):
                letter = record.text[i]
                if not 32 <= letter < 127 or letter == c"\\" or letter == c'"':
                    return str(self.taken(label).read()[column + 2])
        return PyUnicode_DecodeUTF8(record.text, record.size, NULL)

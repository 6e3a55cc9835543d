# cython: language_level=3, boundscheck=False, wraparound=False
"""Sliding groups of the results of single events, without Python objects.

For queries of one step whose keys and arguments are variables, and whose aggregates are COUNT, SUM,
AVG, MIN and MAX without DISTINCT (`spaseq.engine.native_groups`). `feed` advances the automaton,
adds the match of each event to its group, and returns at an event whose group may have a solution:
one for which no condition of HAVING is known to be false. Conditions that compare an aggregate with
a number are tested here, with rounding taken into account; all others may be true.

A sum is exact. Integers and decimals are added as such; doubles as whole numbers of the least
double, in limbs of 32 bits: a limb of 64 bits holds the sum of 2**31 parts without a carry, so that
adding and removing a value touches three limbs. MIN and MAX are queues of the results that no later
result precedes.

A result with a number that does not fit (beyond 96 bits, infinite, NaN), or with different sorts of
numbers under MIN or MAX, is refused, and Python groups the results from then on.

Cost: constant for each result, amortised, and its expiry. Memory: the results inside `OVER`.
"""

from libc.math cimport fabs, frexp, isfinite, ldexp
from libc.string cimport memcmp, memcpy, memset

from spaseq.engine.native._driver cimport NativeStep
from spaseq.gpm.native._operand cimport load_text
from spaseq.nfa.native._tecs cimport Node
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._dictionary cimport text_of, written_term
from spaseq.rdf._effort cimport check_signals
from spaseq.rdf._memory cimport mem_alloc, mem_calloc, mem_free, mem_grow, raise_no_memory
from spaseq.rdf._numerals cimport exact_of, is_numeral, places_of, spell
from spaseq.rdf._terms cimport (
    WINDOWED,
    hash_of,
    slots_free,
    slots_grow,
    slots_init,
    slots_next,
    slots_put,
    slots_remove,
    term_t,
)
from spaseq.rdf._values cimport Kind

from spaseq.rdf.event import DATE_TIME, NUMBER, Timestamp

cdef enum:
    LEAST_EXPONENT = 1074
    FIT_BITS = 96               # an easy number has fewer bits
    SIGNALS_EVERY = 1 << 20     # events between two checks of signals
    ENTRY_BYTES = 48            # of an Entry, such that a Number may follow

cdef double[LIMBS] SCALES       # the value of one in each limb; the last ones are infinite
cdef uint32_t _limb
for _limb in range(LIMBS):
    SCALES[_limb] = ldexp(1.0, 32 * <int>_limb - LEAST_EXPONENT)

cdef dict MEASURES = {"COUNT": BOUND, "SUM": SUM, "AVG": MEAN, "MIN": BEST, "MAX": BEST}
cdef dict COMPARISONS = {
    "<": LESS, "<=": LESS_EQUAL, ">": MORE, ">=": MORE_EQUAL, "=": EQUAL, "!=": NOT_EQUAL
}


cdef inline Number* numbers_of(Entry* entry) noexcept nogil:
    return <Number*>(<char*>entry + ENTRY_BYTES)


cdef inline uint32_t* sizes_of(Entry* entry, uint32_t arguments) noexcept nogil:
    return <uint32_t*>(numbers_of(entry) + arguments)


cdef inline bint fits(int128 exact) noexcept nogil:
    cdef int128 most = <int128>1 << FIT_BITS
    return -most < exact < most


cdef inline int128 scaled(const Number* number) noexcept nogil:
    """An integer or decimal as a multiple of 10**-18; it fits, see `_is_hard`."""
    if number.kind == Kind.INTEGER:
        return number.exact * <int128>1000000000000000000
    return number.exact


cdef inline double plain(const Number* number) noexcept nogil:
    if number.kind == Kind.INTEGER:
        return <double>number.exact
    if number.kind == Kind.DECIMAL:
        return <double>number.exact / 1e18
    return number.real


cdef int add_real(Total* total, double real, int sign) noexcept nogil:
    """Add a finite double to the limbs, or subtract it."""
    cdef int exponent, shift
    cdef int64_t digits
    cdef uint64_t whole
    cdef uint32_t limb
    cdef uint64_t low, high
    if real == 0:
        return 0
    digits = <int64_t>ldexp(frexp(real, &exponent), 53)
    exponent += LEAST_EXPONENT - 53
    if exponent < 0:                    # a subnormal number: the digits below the least are 0
        digits >>= -exponent
        exponent = 0
    if digits < 0:
        digits, sign = -digits, -sign
    whole = <uint64_t>digits
    limb, shift = <uint32_t>exponent >> 5, exponent & 31
    # At most 53 + 31 bits, in three limbs.
    low = (whole & 0xFFFFFFFFu) << shift
    high = (whole >> 32) << shift
    total.limbs[limb] += sign * <int64_t>(low & 0xFFFFFFFFu)
    total.limbs[limb + 1] += sign * <int64_t>((low >> 32) + (high & 0xFFFFFFFFu))
    total.limbs[limb + 2] += sign * <int64_t>(high >> 32)
    total.lowest = min(total.lowest, <int32_t>limb)
    total.highest = max(total.highest, <int32_t>limb + 2)
    return 0


cdef int add_number(Total* total, const Number* number, int sign) noexcept nogil:
    """Add a value to a total, or remove it."""
    if number.unbound:
        total.unbound += sign
    elif number.kind == Kind.INTEGER:
        total.kinds[0] += sign
        total.integers += sign * number.exact
    elif number.kind == Kind.DECIMAL:
        total.kinds[1] += sign
        total.decimals += sign * number.exact
    elif number.kind == Kind.FLOAT:
        total.kinds[2] += sign
        add_real(total, number.real, sign)
    elif number.kind == Kind.DOUBLE:
        total.kinds[3] += sign
        add_real(total, number.real, sign)
    else:
        total.others += sign
    return 0


cdef double approximate(const Total* total, double* error) noexcept nogil:
    """The sum, with a bound on its error."""
    cdef double sum, size, part
    cdef int32_t i
    sum = <double>total.integers
    size = fabs(sum)
    part = <double>total.decimals / 1e18
    sum += part
    size += fabs(part)
    i = total.highest
    while i >= total.lowest:
        part = <double>total.limbs[i] * SCALES[i] if total.limbs[i] else 0
        sum += part
        size += fabs(part)
        i -= 1
    error[0] += size * 1e-13
    return sum


cdef object unlimited(int128 number):
    """A number as a Python integer."""
    cdef object high = <int64_t>(number >> 64)
    cdef object low = <uint64_t>(number & <int128>0xFFFFFFFFFFFFFFFFu)
    return (high << 64) + low


cdef object timestamp_of(tuple begun):
    """The start of a result, from (microseconds, whether it is a date, the text or None)."""
    micros, dated, text = begun
    written = None if text is None else written_term(text)
    return Timestamp(micros, DATE_TIME if dated else NUMBER, written)


cdef class NativeGroups:
    """The groups of one query.

    Args:
        size: The length of `OVER`, in microseconds.
        keys: The number of keys.
        columns: Per edge of the automaton, the columns of the keys, then of the arguments, in the
            rows of its graph pattern; -1 if it does not bind the variable.
        bests: (argument, whether MAX) of each MIN and MAX.
        conditions: (function, argument or index in `bests`, comparison, number, whether it is an
            integer) of conditions without which HAVING is false; the argument of COUNT(*) is None.
    """

    def __cinit__(
        self, int64_t size, uint32_t keys, uint32_t arguments, columns, bests, conditions,
    ):
        cdef uint32_t i, j, width = keys + arguments
        assert sizeof(Entry) <= ENTRY_BYTES
        self.size = size
        self.key_count, self.argument_count = keys, arguments
        self.edge_count = <uint32_t>len(columns)
        self.columns = <int32_t*>mem_calloc(self.edge_count * width + 1, sizeof(int32_t))
        for i, row in enumerate(columns):
            for j in range(width):
                self.columns[i * width + j] = row[j]
        self.best_count = <uint32_t>len(bests)
        self.bests = <Best*>mem_calloc(self.best_count + 1, sizeof(Best))
        for i, (argument, largest) in enumerate(bests):
            self.bests[i].argument = argument
            self.bests[i].sign = 1 if largest else -1
        self.condition_count = <uint32_t>len(conditions)
        self.conditions = <Condition*>mem_calloc(self.condition_count + 1, sizeof(Condition))
        for i, (function, place, comparison, bound, whole) in enumerate(conditions):
            self.conditions[i].measure = ALL if place is None else MEASURES[function]
            self.conditions[i].place = 0 if place is None else place
            self.conditions[i].comparison = COMPARISONS[comparison]
            self.conditions[i].bound = bound
            self.conditions[i].whole = whole
        self.numbers = <Number*>mem_calloc(arguments + 1, sizeof(Number))
        self.texts = <const char**>mem_calloc(arguments + 1, sizeof(char*))
        self.sizes = <uint32_t*>mem_calloc(arguments + 1, sizeof(uint32_t))
        self.numerals = <Numeral*>mem_calloc(arguments + 2, sizeof(Numeral))
        self.group_count = 1            # a term number, and so a group's, is not 0
        slots_init(&self.table, 16)

    def __dealloc__(self):
        cdef uint32_t i, j
        cdef Entry* entry = self.oldest
        while entry != NULL:
            self.oldest = entry.later
            mem_free(entry)
            entry = self.oldest
        if self.groups != NULL:
            for i in range(1, self.group_count):
                if self.groups[i].key != NULL:
                    mem_free(self.groups[i].key)
                if self.groups[i].queues != NULL:
                    for j in range(self.best_count):
                        mem_free(self.groups[i].queues[j].entries)
                mem_free(self.groups[i].queues)
                mem_free(self.groups[i].totals)
        mem_free(self.groups)
        mem_free(self.spare)
        slots_free(&self.table)
        mem_free(self.key)
        mem_free(self.columns)
        mem_free(self.bests)
        mem_free(self.conditions)
        mem_free(self.numbers)
        mem_free(self.texts)
        mem_free(self.sizes)
        mem_free(self.numerals)

    # ------------------------------------------------------------------ events

    def feed(
        self, NativeStep step not None, EventBatch batch not None, uint32_t first, uint32_t stream,
        uint32_t file, int64_t position,
    ):
        """Process the events of a batch from `first` on, as `NativeStep.run` does.

        Returns the index of the next event: as `NativeStep.run`, except that it goes on after an
        event whose group has no solution. If `inserted`, the match of the last event is in its
        group already.
        """
        cdef uint32_t index = first, before, checked = first
        cdef AutomatonCore core = step.core
        cdef Dictionary dictionary = step.graph.dictionary
        self.inserted = False
        step._select_batch(batch, stream)
        try:
            with nogil:
                while index < batch.event_count:
                    before = index
                    index = step._run(before, stream, file, position + before - first)
                    if index == before:
                        break
                    if core.instant.accepted_count and not self.take(core, dictionary):
                        break
                    if index - checked >= <uint32_t>SIGNALS_EVERY:
                        checked = index
                        check_signals()
        finally:
            step._release_batch()
        return index

    cdef int take(self, AutomatonCore core, Dictionary dictionary) except -1 nogil:
        """Add the match of an event; False if Python must go on with it."""
        cdef Label* label
        cdef Node* node
        cdef const int32_t* columns
        cdef const TermRecord* record
        cdef uint32_t i
        cdef term_t term
        cdef uint32_t group
        if core.instant.accepted_count != 1:
            return False
        node = core.instant.accepted[0]
        label = node.label
        if node.before or label.parts != 1:
            return False
        columns = self.columns + label.edge * (self.key_count + self.argument_count)
        self.key_size = 0
        for i in range(self.key_count):
            term = label.row[columns[i]] if columns[i] >= 0 else 0
            if term == 0:
                self._put_key(NULL, 0)
                continue
            if is_numeral(term):
                record = spell(&self.numerals[0], term)
            elif term & WINDOWED:
                record = &core.event.terms.store.records[term ^ WINDOWED]
            else:
                record = &dictionary.permanent.records[term]
            self._put_key(record.text, record.size)
        self.sizes[0] = 0
        if label.stamp:
            if is_numeral(label.stamp):
                record = spell(&self.numerals[0], label.stamp)
            elif label.stamp & WINDOWED:
                record = &core.event.terms.store.records[label.stamp ^ WINDOWED]
            else:
                record = &dictionary.permanent.records[label.stamp]
            self.texts[0], self.sizes[0] = record.text, record.size
        for i in range(self.argument_count):
            term = label.row[columns[self.key_count + i]] if columns[self.key_count + i] >= 0 else 0
            self.sizes[i + 1] = 0
            if term == 0:
                self.numbers[i].unbound = True
                continue
            self.numbers[i].unbound = False
            if is_numeral(term):
                record = spell(&self.numerals[i + 1], term)
                self.numbers[i].kind = Kind.DECIMAL if places_of(term) else Kind.INTEGER
                self.numbers[i].exact = exact_of(term)
            else:
                if term & WINDOWED:
                    record = &core.event.terms.store.records[term ^ WINDOWED]
                else:
                    record = &dictionary.permanent.records[term]
                if not self._read(i, record.text, record.size):
                    return False
            self.texts[i + 1], self.sizes[i + 1] = record.text, record.size
        group = <uint32_t>self._add(label.micros, label.domain, label.micros)
        if group == 0:
            return False
        if self._may_hold(&self.groups[group]):
            self.inserted = True
            return False
        core.event.match_generation += 1
        core.instant.accepted_count = 0
        return True

    # ------------------------------------------------------------------ results

    def add(self, key, arguments, start, int64_t end):
        """Add a result, as `take` does; False, without effect, if it is refused."""
        cdef uint32_t i
        cdef bytes text
        cdef list held = []
        self.key_size = 0
        for term in key:
            text = b"" if term is None else text_of(term)
            self._put_key(<const char*>text, <uint32_t>len(text))
        self.sizes[0] = 0
        if start.domain == NUMBER and start.written is not None:
            text = text_of(start.written)
            held.append(text)
            self.texts[0], self.sizes[0] = <const char*>text, <uint32_t>len(text)
        for i in range(self.argument_count):
            term = arguments[i]
            self.sizes[i + 1] = 0
            self.numbers[i].unbound = term is None
            if term is not None:
                text = text_of(term)
                held.append(text)
                self.texts[i + 1], self.sizes[i + 1] = <const char*>text, <uint32_t>len(text)
                if not self._read(i, self.texts[i + 1], self.sizes[i + 1]):
                    return False
        return self._add(start.micros, start.domain == DATE_TIME, end) != 0

    cdef int _put_key(self, const char* text, uint32_t size) except -1 nogil:
        """Append the text of a key to that of the result; size 0: unbound."""
        cdef size_t wanted = self.key_size + size + sizeof(uint32_t)
        if wanted > self.key_room:
            self.key = <char*>mem_grow(self.key, 2 * wanted, 1, b"the keys of a group")
            self.key_room = 2 * wanted
        memcpy(self.key + self.key_size, &size, sizeof(uint32_t))
        if size:
            memcpy(self.key + self.key_size + sizeof(uint32_t), text, size)
        self.key_size = wanted
        return 0

    cdef bint _read(self, uint32_t argument, const char* text, uint32_t size) noexcept nogil:
        """Decode the value of an argument; False if it is a number that does not fit."""
        cdef Number* number = &self.numbers[argument]
        cdef Operand* operand = &self.operand
        load_text(operand, text, size)
        number.kind = Kind.OTHER
        if operand.kind == Kind.WIDE:
            return False
        if operand.kind == Kind.INTEGER or operand.kind == Kind.DECIMAL:
            number.exact = operand.exact
            number.kind = operand.kind
            return fits(operand.exact)
        if operand.kind == Kind.FLOAT or operand.kind == Kind.DOUBLE:
            number.real = operand.real
            number.kind = operand.kind
            return isfinite(operand.real)
        return True

    cdef bint _is_hard(self) noexcept nogil:
        """Whether MIN or MAX could meet values that it does not compare."""
        cdef uint32_t i
        cdef const Number* number
        for i in range(self.best_count):
            number = &self.numbers[self.bests[i].argument]
            if number.unbound:
                continue
            if number.kind == Kind.OTHER:
                return True
            if number.kind == Kind.INTEGER and not (
                -(<int128>1 << 62) < number.exact < (<int128>1 << 62)
            ):
                return True
        return False

    cdef int _add(self, int64_t start, uint32_t domain, int64_t end) except -1 nogil:
        """Add the result that was read; its group, or 0 without effect if it is refused."""
        cdef uint64_t hash
        cdef uint32_t number, i
        cdef size_t size, texts = 0
        cdef Entry* entry
        cdef Group* group
        cdef char* text
        cdef uint32_t* sizes
        cdef Queue* queue
        cdef Entry* best
        cdef bint exact
        if self._is_hard() or self.held >= <uint64_t>1 << 30:
            return 0
        self._expire(end)
        hash = hash_of(self.key, self.key_size)
        number = self._find(hash)
        if number:
            # Values of one sort only: the queue compares exact numbers, or doubles.
            group = &self.groups[number]
            for i in range(self.best_count):
                queue = &group.queues[i]
                if queue.count and not self.numbers[self.bests[i].argument].unbound:
                    best = queue.entries[queue.first]
                    exact = numbers_of(best)[self.bests[i].argument].kind <= Kind.DECIMAL
                    if exact != (self.numbers[self.bests[i].argument].kind <= Kind.DECIMAL):
                        return 0
        for i in range(self.argument_count + 1):
            texts += self.sizes[i]
        size = ENTRY_BYTES + self.argument_count * sizeof(Number)
        size += (self.argument_count + 1) * sizeof(uint32_t) + texts
        entry = <Entry*>mem_alloc(size)
        if entry == NULL:
            raise_no_memory(b"the results of groups")
        if number == 0:
            number = self._new_group(hash)
        group = &self.groups[number]
        entry.end, entry.start, entry.domain = end, start, domain
        entry.group, entry.number = number, group.added
        entry.later = entry.next = NULL
        memcpy(numbers_of(entry), self.numbers, self.argument_count * sizeof(Number))
        sizes = sizes_of(entry, self.argument_count)
        memcpy(sizes, self.sizes, (self.argument_count + 1) * sizeof(uint32_t))
        text = <char*>(sizes + self.argument_count + 1)
        for i in range(self.argument_count + 1):
            if self.sizes[i]:
                memcpy(text, self.texts[i], self.sizes[i])
                text += self.sizes[i]
        if self.oldest == NULL:
            self.oldest = entry
        else:
            self.newest.later = entry
        self.newest = entry
        if group.first == NULL:
            group.first = entry
        else:
            group.last.next = entry
        group.last = entry
        group.count += 1
        group.added += 1
        self.held += 1
        for i in range(self.argument_count):
            add_number(&group.totals[i], &self.numbers[i], 1)
        for i in range(self.best_count):
            self._enqueue(group, i, entry)
        return number

    cdef int _enqueue(self, Group* group, uint32_t best, Entry* entry) except -1 nogil:
        """Add a result to the queue of a MIN or MAX."""
        cdef Queue* queue = &group.queues[best]
        cdef uint32_t argument = self.bests[best].argument
        cdef int sign = self.bests[best].sign
        cdef const Number* number = &numbers_of(entry)[argument]
        cdef const Number* other
        cdef bint better
        cdef uint32_t i, room
        cdef Entry** entries
        if number.unbound:
            return 0
        while queue.count:
            other = &numbers_of(
                queue.entries[(queue.first + queue.count - 1) & (queue.room - 1)]
            )[argument]
            if number.kind <= Kind.DECIMAL:
                better = (
                    scaled(number) < scaled(other) if sign < 0 else scaled(number) > scaled(other)
                )
            else:
                better = number.real < other.real if sign < 0 else number.real > other.real
            if not better:
                break
            queue.count -= 1
        if queue.count == queue.room:
            room = max(<uint32_t>4, 2 * queue.room)
            entries = <Entry**>mem_alloc(room * sizeof(Entry*))
            if entries == NULL:
                raise_no_memory(b"the results of groups")
            for i in range(queue.count):
                entries[i] = queue.entries[(queue.first + i) & (queue.room - 1)]
            mem_free(queue.entries)
            queue.entries, queue.first, queue.room = entries, 0, room
        queue.entries[(queue.first + queue.count) & (queue.room - 1)] = entry
        queue.count += 1
        return 0

    cdef uint32_t _find(self, uint64_t hash) noexcept nogil:
        """The group with the key of the result, or 0."""
        cdef uint32_t place = <uint32_t>hash
        cdef Group* group
        cdef uint32_t number
        while True:
            number = slots_next(&self.table, <uint32_t>hash, &place)
            if number == 0:
                return 0
            group = &self.groups[number]
            if group.hash == hash and group.key_size == self.key_size and (
                memcmp(group.key, self.key, self.key_size) == 0
            ):
                return number

    cdef uint32_t _new_group(self, uint64_t hash) except 0 nogil:
        """An empty group with the key of the result."""
        cdef uint32_t number, i, room
        cdef Group* group
        if 2 * (self.count + 2) > self.table.mask:
            slots_grow(&self.table)
        if self.spare_count:
            self.spare_count -= 1
            number = self.spare[self.spare_count]
            group = &self.groups[number]
        else:
            if self.group_count >= self.group_room:
                room = max(<uint32_t>16, 2 * self.group_room)
                self.groups = <Group*>mem_grow(
                    self.groups, room, sizeof(Group), b"the groups of results"
                )
                self.spare = <uint32_t*>mem_grow(
                    self.spare, room, sizeof(uint32_t), b"the groups of results"
                )
                self.group_room = room
            number = self.group_count
            group = &self.groups[number]
            memset(group, 0, sizeof(Group))
            group.totals = <Total*>mem_calloc(self.argument_count + 1, sizeof(Total))
            group.queues = <Queue*>mem_calloc(self.best_count + 1, sizeof(Queue))
            self.group_count += 1
        group.key = <char*>mem_alloc(self.key_size + 1)
        if group.key == NULL:
            raise_no_memory(b"the groups of results")
        memcpy(group.key, self.key, self.key_size)
        group.hash, group.key_size = hash, self.key_size
        group.count = group.added = 0
        group.first = group.last = NULL
        memset(group.totals, 0, self.argument_count * sizeof(Total))
        for i in range(self.argument_count):
            group.totals[i].lowest, group.totals[i].highest = LIMBS, -1
        for i in range(self.best_count):
            group.queues[i].first = group.queues[i].count = 0
        slots_put(&self.table, <uint32_t>hash, number)
        self.count += 1
        return number

    def expire(self, int64_t now):
        """Remove the results that the groups no longer hold at a time, in microseconds."""
        self._expire(now)

    cdef int _expire(self, int64_t now) noexcept nogil:
        while self.oldest != NULL and <int128>self.oldest.end <= <int128>now - self.size:
            self._drop_oldest()
        return 0

    cdef int _drop_oldest(self) noexcept nogil:
        cdef Entry* entry = self.oldest
        cdef Group* group = &self.groups[entry.group]
        cdef Queue* queue
        cdef uint32_t i
        self.oldest = entry.later
        self.held -= 1
        group.count -= 1
        group.first = entry.next
        if group.count == 0:
            slots_remove(&self.table, <uint32_t>group.hash, entry.group)
            mem_free(group.key)
            group.key = NULL
            self.spare[self.spare_count] = entry.group
            self.spare_count += 1
            self.count -= 1
        else:
            for i in range(self.argument_count):
                add_number(&group.totals[i], &numbers_of(entry)[i], -1)
            for i in range(self.best_count):
                queue = &group.queues[i]
                if queue.count and queue.entries[queue.first] == entry:
                    queue.first = (queue.first + 1) & (queue.room - 1)
                    queue.count -= 1
        mem_free(entry)
        return 0

    # ------------------------------------------------------------------ conditions

    cdef bint _may_hold(self, const Group* group) noexcept nogil:
        """Whether no condition of HAVING is known to be false."""
        cdef uint32_t i
        cdef Condition* condition
        cdef const Total* total
        cdef const Queue* queue
        cdef double value, error
        cdef int sign
        for i in range(self.condition_count):
            condition = &self.conditions[i]
            error = 0 if condition.whole else fabs(condition.bound) * 1e-9
            if condition.measure == ALL:
                value = <double>group.count
            elif condition.measure == BEST:
                queue = &group.queues[condition.place]
                if group.totals[self.bests[condition.place].argument].unbound or queue.count == 0:
                    return False
                value = plain(
                    &numbers_of(queue.entries[queue.first])[self.bests[condition.place].argument]
                )
                error = (fabs(value) + fabs(condition.bound)) * 1e-6 + 1e-12
            else:
                total = &group.totals[condition.place]
                if condition.measure == BOUND:
                    value = <double>(group.count - <uint64_t>total.unbound)
                elif total.unbound or total.others:
                    return False    # SUM and AVG are unbound: the condition is an error
                else:
                    error = 1e-12
                    value = approximate(total, &error)
                    # A result of floats has 24 bits.
                    error += (fabs(value) + fabs(condition.bound)) * 1e-6
                    if condition.measure == MEAN:
                        value /= <double>group.count
                        error += fabs(condition.bound) * 1e-6
            if not isfinite(value) or fabs(value) > 1e37:
                continue
            if value - condition.bound > error:
                sign = 1
            elif value - condition.bound < -error:
                sign = -1
            elif error > 0:
                continue
            else:
                sign = 0
            if condition.comparison == LESS:
                if sign >= 0:
                    return False
            elif condition.comparison == LESS_EQUAL:
                if sign > 0:
                    return False
            elif condition.comparison == MORE:
                if sign <= 0:
                    return False
            elif condition.comparison == MORE_EQUAL:
                if sign < 0:
                    return False
            elif condition.comparison == EQUAL:
                if sign != 0:
                    return False
            elif sign == 0:
                return False
        return True

    # ------------------------------------------------------------------ as Python objects

    def group(self, key):
        """The group of a key: (results, start, totals, values of MIN and MAX).

        A total is (unbound values, values that are no numbers, numbers of each kind, sum of the
        integers, of the decimals times 10**18, and of the others as a multiple of the least
        double). The value of MIN and MAX is None if an argument is unbound.
        """
        cdef uint32_t number
        cdef bytes text
        self.key_size = 0
        for term in key:
            text = b"" if term is None else text_of(term)
            self._put_key(<const char*>text, <uint32_t>len(text))
        number = self._find(hash_of(self.key, self.key_size))
        assert number
        count, begun, totals, best = self.measured(number)
        return count, timestamp_of(begun), totals, [
            None if each is None else written_term(each) for each in best
        ]

    cdef tuple measured(self, uint32_t number):
        """A group as `group` describes it, with texts in place of terms.

        The start is (microseconds, whether it is a date, the text of its literal or None).
        """
        cdef uint32_t i
        cdef int32_t j
        cdef Group* group = &self.groups[number]
        cdef Total* total
        cdef Queue* queue
        cdef list totals = [], best = []
        for i in range(self.argument_count):
            total = &group.totals[i]
            units = 0
            for j in range(total.lowest, total.highest + 1):
                if total.limbs[j]:
                    units += <object>total.limbs[j] << 32 * j
            totals.append((
                total.unbound, total.others,
                (total.kinds[0], total.kinds[1], total.kinds[2], total.kinds[3]),
                unlimited(total.integers), unlimited(total.decimals), units,
            ))
        for i in range(self.best_count):
            queue = &group.queues[i]
            if group.totals[self.bests[i].argument].unbound or queue.count == 0:
                best.append(None)
            else:
                best.append(
                    self._text(queue.entries[queue.first], self.bests[i].argument + 1)
                )
        return group.count, self._begun(group.first), totals, best

    cdef bytes _text(self, Entry* entry, uint32_t place):
        """The text of the start of a result, or of an argument, from 1; None if there is none."""
        cdef uint32_t i
        cdef uint32_t* sizes = sizes_of(entry, self.argument_count)
        cdef const char* text = <const char*>(sizes + self.argument_count + 1)
        for i in range(place):
            text += sizes[i]
        return text[:sizes[place]] if sizes[place] else None

    cdef object _term(self, Entry* entry, uint32_t place):
        cdef bytes text = self._text(entry, place)
        return None if text is None else written_term(text)

    cdef tuple _begun(self, Entry* entry):
        return entry.start, entry.domain, self._text(entry, 0)

    def results(self):
        """(key, arguments, start, end) of all results, oldest first."""
        cdef Entry* entry = self.oldest
        cdef const char* text
        cdef uint32_t i, size
        while entry != NULL:
            text = self.groups[entry.group].key
            key = []
            for i in range(self.key_count):
                memcpy(&size, text, sizeof(uint32_t))
                text += sizeof(uint32_t)
                key.append(written_term(text[:size]) if size else None)
                text += size
            arguments = [self._term(entry, i + 1) for i in range(self.argument_count)]
            yield tuple(key), tuple(arguments), timestamp_of(self._begun(entry)), entry.end
            entry = entry.later

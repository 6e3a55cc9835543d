"""Groups of results, without Python objects: `GROUP BY … OVER`.

A result has a key and the values of some arguments, as texts. `insert` adds the result that the
fields `key`, `numbers`, `texts` and `sizes` describe; `group_results.pxi` fills them in from the
automaton, and `add` from Python objects. Conditions of HAVING that compare an aggregate with a
number are tested here, with rounding taken into account; all others may be true.

Sums are exact (result_sums.pxi). MIN and MAX, and the least start, are queues of the results that
no later result precedes. DISTINCT counts the results of each value. SAMPLE refers to the oldest
result with a value. GROUP_CONCAT reads the texts of the results.

A result with a number under SUM or AVG that does not fit (beyond 96 bits, infinite, NaN) is
refused, and from then on Python groups the results.

Cost: amortised constant for each result and its expiry; `work` counts the results that queues and
samples examine. GROUP_CONCAT is linear when it is read. Memory: the results inside `OVER`.
"""

from libc.math cimport fabs, isfinite
from libc.stdint cimport int32_t, int64_t, int8_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcmp, memcpy, memset

from spaseq.gpm.native._functions cimport Operand, load_text, order, value_of
from spaseq.gpm.python.aggregates import order as order_of_all
from spaseq.rdf.event import DATE_TIME, NUMBER, Timestamp
from spaseq.rdf.native._terms cimport (
    SlotTable,
    hash_of,
    int128,
    mem_alloc,
    mem_calloc,
    mem_free,
    mem_grow,
    raise_no_memory,
    slots_free,
    slots_grow,
    slots_init,
    slots_next,
    slots_put,
    slots_remove,
    text_of,
    written_term,
)
from spaseq.rdf.native._values cimport Kind

cdef enum Measure:
    ALL                 # COUNT(*)
    BOUND               # COUNT of an argument
    SUM
    MEAN
    BEST                # MIN or MAX

cdef enum Comparison:
    LESS
    LESS_EQUAL
    MORE
    MORE_EQUAL
    EQUAL
    NOT_EQUAL

# A result; after it come the numbers of its arguments, the sizes of the texts of its start and
# arguments, and the texts.
cdef struct Entry:
    int64_t end
    int64_t start
    Entry* later        # the next result of all groups
    Entry* next         # the next result of its group
    uint32_t group
    uint32_t domain     # 0: the times are numbers, 1: dates

# MIN or MAX of an argument, or the least start: the results that no later result precedes, best
# first.
cdef struct Queue:
    Entry** entries     # a ring
    uint32_t first
    uint32_t count
    uint32_t room

# A value of an argument under DISTINCT, in a group.
cdef struct Value:
    uint64_t hash
    uint64_t count      # results with the value
    Entry* newest       # of them
    uint32_t group
    uint32_t distinct   # which argument under DISTINCT

cdef struct Group:
    uint64_t hash
    char* key           # the texts of the key, each after its size; NULL: unused
    size_t key_size
    uint64_t count
    Entry* first
    Entry* last
    Total* totals       # per argument, then per argument under DISTINCT
    Queue* queues       # per MIN and MAX, then of the starts if they are not in order
    bint unordered      # some result started before an earlier one
    Entry** samples     # per SAMPLE, the oldest result with a value, or NULL
    uint64_t touched    # the last instant with results, as `NativeGroups.instant` counts
    char* shown         # the events of its newest result (group_results.pxi)
    size_t shown_size   # 0: they are in Python
    size_t shown_room

cdef struct Best:
    uint32_t argument
    int8_t sign         # -1: MIN, 1: MAX

# A comparison of an aggregate with a number.
cdef struct Condition:
    Measure measure
    uint32_t place      # the total, or the MIN or MAX
    Comparison comparison
    double bound
    bint whole          # the bound is an integer without rounding

# The header that `NativeGroups.pack` writes.
cdef struct Head:
    int64_t start
    uint64_t count
    uint32_t domain
    uint32_t keys
    uint32_t totals
    uint32_t bests

cdef enum:
    ENTRY_BYTES = 48            # of an Entry, such that a Number may follow
    VALUE_SEED = 0x9E3779B1

cdef Best STARTS                # the least start is the best one

STARTS.argument, STARTS.sign = 0, -1

cdef dict MEASURES = {"COUNT": BOUND, "SUM": SUM, "AVG": MEAN, "MIN": BEST, "MAX": BEST}

cdef dict COMPARISONS = {
    "<": LESS, "<=": LESS_EQUAL, ">": MORE, ">=": MORE_EQUAL, "=": EQUAL, "!=": NOT_EQUAL
}

# The header of a total in `NativeGroups.pack`, before its limbs.
cdef struct Sum:
    int128 integers
    int128 decimals
    int64_t unbound
    int64_t others
    int64_t[KINDS] kinds
    int32_t lowest
    int32_t limbs


cdef inline Number* numbers_of(Entry* entry) noexcept nogil:
    return <Number*>(<char*>entry + ENTRY_BYTES)


cdef inline uint32_t* sizes_of(Entry* entry, uint32_t arguments) noexcept nogil:
    return <uint32_t*>(numbers_of(entry) + arguments)


cdef object unlimited(int128 number):
    """A 128-bit number as a Python integer."""
    cdef object high = <int64_t>(number >> 64)
    cdef object low = <uint64_t>(number & <int128>0xFFFFFFFFFFFFFFFFu)
    return (high << 64) + low


cdef object timestamp_of(tuple begun):
    """The start of a result, from (microseconds, whether it is a date, the text or None)."""
    micros, dated, text = begun
    written = None if text is None else written_term(text)
    return Timestamp(micros, DATE_TIME if dated else NUMBER, written)


cdef tuple measured(bytes packed):
    """A group as `pack` describes it: (results, start, totals, values, key), with texts as terms.

    The start is (microseconds, whether it is a date, the text of its literal or None). A total is
    (unbound values, values that are not numbers, numbers of each kind, sum of the integers, of the
    decimals times 10**18, and of the others as a multiple of the least double). The values are
    those of each MIN and MAX, then of each SAMPLE; None: unbound, as are the parts of the key.
    """
    cdef const char* text = packed
    cdef Head head
    cdef Sum sum
    cdef int64_t limb
    cdef int32_t j
    cdef uint32_t i
    cdef list key = [], totals = [], values = []
    memcpy(&head, text, sizeof(Head))
    text += sizeof(Head)
    for i in range(head.keys):
        key.append(_next_text(&text))
    begun = head.start, head.domain, _next_text(&text)
    for i in range(head.totals):
        memcpy(&sum, text, sizeof(Sum))
        text += sizeof(Sum)
        units = 0
        for j in range(sum.limbs):
            memcpy(&limb, text, sizeof(int64_t))
            text += sizeof(int64_t)
            if limb:
                units += <object>limb << 32 * (sum.lowest + j)
        totals.append((
            sum.unbound, sum.others, (sum.kinds[0], sum.kinds[1], sum.kinds[2], sum.kinds[3]),
            unlimited(sum.integers), unlimited(sum.decimals), units,
        ))
    for i in range(head.bests):
        values.append(_next_text(&text))
    return head.count, begun, totals, values, key


cdef object _next_text(const char** text):
    """The text at a place, after its size; None for size 0. Moves the place past it."""
    cdef uint32_t size
    memcpy(&size, text[0], sizeof(uint32_t))
    text[0] += sizeof(uint32_t)
    found = text[0][:size] if size else None
    text[0] += size
    return found


cdef class NativeGroups:
    """The groups of one query.

    Args:
        size: The length of `OVER`, in microseconds.
        tumbling: Whether it tumbles: no result expires before `clear`.
        keys: The number of keys.
        summed: Per argument, whether there is a SUM or AVG of it.
        distincts: The arguments of aggregates under DISTINCT. Their totals follow those of all
            arguments.
        bests: (argument, whether MAX) of each MIN and MAX.
        samples: The argument of each SAMPLE.
        conditions: (function, total or index in `bests`, comparison, number, whether it is an
            integer) of conditions without which HAVING is false; the total of COUNT(*) is None.
    """

    cdef readonly int64_t size
    cdef readonly bint tumbling
    cdef readonly uint64_t held
    cdef readonly uint64_t work
    cdef readonly uint32_t count
    cdef uint32_t key_count
    cdef uint32_t argument_count
    cdef uint32_t distinct_count
    cdef uint32_t best_count
    cdef uint32_t sample_count
    cdef uint32_t condition_count
    cdef uint8_t* summed        # per argument, whether there is a SUM or AVG of it
    cdef uint32_t* distincts    # the arguments under DISTINCT
    cdef uint32_t* samples      # the arguments of SAMPLE
    cdef Best* bests
    cdef Condition* conditions
    cdef Entry* oldest
    cdef Entry* newest
    cdef Group* groups
    cdef uint32_t group_count, group_room
    cdef uint32_t* spare        # the numbers of unused groups
    cdef uint32_t spare_count
    cdef SlotTable table
    cdef Value* values          # under DISTINCT
    cdef uint32_t value_count, value_room
    cdef uint32_t* spare_values
    cdef uint32_t spare_value_count
    cdef SlotTable value_table
    cdef uint64_t instant       # of the results that are added
    cdef char* key              # of the result that is added
    cdef size_t key_size, key_room
    cdef Number* numbers
    cdef const char** texts     # of its start and arguments
    cdef uint32_t* sizes
    cdef Operand operand
    cdef char* packed
    cdef size_t packed_size, packed_room
    cdef bint is_unbound        # whether a SUM, AVG, MIN or MAX of the packed group has no value

    def __cinit__(
        self, int64_t size, bint tumbling, uint32_t keys, summed, distincts, bests, samples,
        conditions,
    ):
        cdef uint32_t i
        cdef uint32_t arguments = <uint32_t>len(summed)
        assert sizeof(Entry) <= ENTRY_BYTES
        self.size, self.tumbling = size, tumbling
        self.key_count, self.argument_count = keys, arguments
        self.summed = <uint8_t*>mem_calloc(arguments + 1, 1)
        for i, each in enumerate(summed):
            self.summed[i] = each
        self.distinct_count = <uint32_t>len(distincts)
        self.distincts = <uint32_t*>mem_calloc(self.distinct_count + 1, sizeof(uint32_t))
        for i, each in enumerate(distincts):
            self.distincts[i] = each
        self.sample_count = <uint32_t>len(samples)
        self.samples = <uint32_t*>mem_calloc(self.sample_count + 1, sizeof(uint32_t))
        for i, each in enumerate(samples):
            self.samples[i] = each
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
        self.group_count = self.value_count = 1     # number 0 means none
        slots_init(&self.table, 16)
        slots_init(&self.value_table, 16)

    def __dealloc__(self):
        cdef uint32_t i, j
        cdef Entry* entry = self.oldest
        while entry != NULL:
            self.oldest = entry.later
            mem_free(entry)
            entry = self.oldest
        if self.groups != NULL:
            for i in range(1, self.group_count):
                mem_free(self.groups[i].key)
                if self.groups[i].queues != NULL:
                    for j in range(self.best_count + 1):
                        mem_free(self.groups[i].queues[j].entries)
                mem_free(self.groups[i].queues)
                mem_free(self.groups[i].totals)
                mem_free(self.groups[i].samples)
                mem_free(self.groups[i].shown)
        mem_free(self.groups)
        mem_free(self.spare)
        mem_free(self.values)
        mem_free(self.spare_values)
        slots_free(&self.table)
        slots_free(&self.value_table)
        mem_free(self.key)
        mem_free(self.summed)
        mem_free(self.distincts)
        mem_free(self.samples)
        mem_free(self.bests)
        mem_free(self.conditions)
        mem_free(self.numbers)
        mem_free(self.texts)
        mem_free(self.sizes)
        mem_free(self.packed)

    # ------------------------------------------------------------------ results

    def add(self, key, arguments, start, int64_t end):
        """Add a result; False, without effect, if it is refused."""
        cdef uint32_t i, number
        cdef bytes text
        cdef list held = []
        self.key_size = 0
        for term in key:
            text = b"" if term is None else text_of(term)
            self.put_key(<const char*>text, <uint32_t>len(text))
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
                if not self.read(i, self.texts[i + 1], self.sizes[i + 1]):
                    return False
        number = self.insert(start.micros, start.domain == DATE_TIME, end)
        if number:
            self.groups[number].shown_size = 0
        return number != 0

    cdef int put_key(self, const char* text, uint32_t size) except -1 nogil:
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

    cdef bint read(self, uint32_t argument, const char* text, uint32_t size) noexcept nogil:
        """Decode the value of an argument; False if it is a number that a sum cannot hold."""
        cdef Number* number = &self.numbers[argument]
        cdef Operand* operand = &self.operand
        load_text(operand, text, size)
        number.kind = Kind.OTHER
        if operand.kind == Kind.INTEGER or operand.kind == Kind.DECIMAL:
            if fits(operand.exact):
                number.exact = operand.exact
                number.kind = operand.kind
                return True
        elif operand.kind == Kind.FLOAT or operand.kind == Kind.DOUBLE:
            if isfinite(operand.real):
                number.real = operand.real
                number.kind = operand.kind
                return True
        elif operand.kind != Kind.WIDE:
            return True
        return not self.summed[argument]

    cdef uint32_t insert(self, int64_t start, uint32_t domain, int64_t end) except? 0 nogil:
        """Add the result that was read; its group, or 0 without effect if it is refused."""
        cdef uint64_t hash
        cdef uint32_t number, i
        cdef size_t size, texts = 0
        cdef Entry* entry
        cdef Group* group
        cdef char* text
        cdef uint32_t* sizes
        if self.held >= <uint64_t>1 << 30:
            return 0
        self.expire_before(end)
        for i in range(self.argument_count + 1):
            texts += self.sizes[i]
        size = ENTRY_BYTES + self.argument_count * sizeof(Number)
        size += (self.argument_count + 1) * sizeof(uint32_t) + texts
        entry = <Entry*>mem_alloc(size)
        if entry == NULL:
            raise_no_memory(b"the results of groups")
        number = self.find()
        if number == 0:
            number = self._new_group(hash_of(self.key, self.key_size))
        group = &self.groups[number]
        entry.end, entry.start, entry.domain = end, start, domain
        entry.group = number
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
            group.first = group.last = entry
        else:
            group.last.next = entry
            if group.unordered or start < group.last.start:
                self._note_start(group, entry)
            group.last = entry
        group.count += 1
        self.held += 1
        for i in range(self.argument_count):
            add_number(&group.totals[i], &self.numbers[i], 1)
        for i in range(self.distinct_count):
            self._add_value(group, number, i, entry)
        for i in range(self.best_count):
            if not self.numbers[self.bests[i].argument].unbound:
                self._enqueue(&group.queues[i], entry, &self.bests[i])
        for i in range(self.sample_count):
            if group.samples[i] == NULL and not self.numbers[self.samples[i]].unbound:
                group.samples[i] = entry
        return number

    cdef int _note_start(self, Group* group, Entry* entry) except -1 nogil:
        """Add a result to the queue of starts; the first call also adds all earlier results."""
        cdef Entry* earlier
        if not group.unordered:
            group.unordered = True
            earlier = group.first
            while earlier != entry:
                self._enqueue(&group.queues[self.best_count], earlier, &STARTS)
                earlier = earlier.next
        self._enqueue(&group.queues[self.best_count], entry, &STARTS)
        return 0

    cdef Entry* _first_start(self, const Group* group) noexcept nogil:
        """The result with the least start."""
        cdef const Queue* queue = &group.queues[self.best_count]
        return queue.entries[queue.first] if group.unordered else group.first

    cdef int _enqueue(self, Queue* queue, Entry* entry, const Best* best) except -1 nogil:
        """Add a result to the queue of a MIN or MAX, or of the starts."""
        cdef uint32_t i, room
        cdef Entry** entries
        while queue.count and self._order(
            entry, queue.entries[(queue.first + queue.count - 1) & (queue.room - 1)], best
        ) == best.sign:
            queue.count -= 1
            self.work += 1
        self.work += 1
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

    cdef int _order(self, Entry* one, Entry* other, const Best* best) except -2 nogil:
        """Compare two results: -1, 0 or 1."""
        cdef const Number* a
        cdef const Number* b
        cdef Operand first, second
        cdef const char* text
        cdef uint32_t size = 0
        cdef int found
        if best == &STARTS:
            return (one.start > other.start) - (one.start < other.start)
        a, b = &numbers_of(one)[best.argument], &numbers_of(other)[best.argument]
        if a.kind == b.kind == Kind.INTEGER or a.kind == b.kind == Kind.DECIMAL:
            return (a.exact > b.exact) - (a.exact < b.exact)
        if Kind.FLOAT <= a.kind <= Kind.DOUBLE and Kind.FLOAT <= b.kind <= Kind.DOUBLE:
            return (a.real > b.real) - (a.real < b.real)
        text = self._text(one, best.argument + 1, &size)
        load_text(&first, text, size)
        text = self._text(other, best.argument + 1, &size)
        load_text(&second, text, size)
        found = order(&first, &second)
        if found == 2:
            with gil:
                found = order_of_all(value_of(&first), value_of(&second))
        return found

    # ------------------------------------------------------------------ values under DISTINCT

    cdef uint32_t _value_of(
        self, uint32_t group, uint32_t distinct, Entry* entry, uint64_t* hash
    ) noexcept nogil:
        """The value of a result, or 0 if it is new; `hash` receives its hash."""
        cdef uint32_t number, size = 0, other_size = 0
        cdef uint32_t place = self.distincts[distinct] + 1
        cdef const char* text = self._text(entry, place, &size)
        cdef const char* other
        cdef Value* value
        cdef uint32_t slot
        hash[0] = hash_of(text, size) ^ (
            (<uint64_t>group * self.distinct_count + distinct) * <uint64_t>VALUE_SEED
        )
        slot = <uint32_t>hash[0]
        while True:
            number = slots_next(&self.value_table, <uint32_t>hash[0], &slot)
            if number == 0:
                return 0
            value = &self.values[number]
            if value.hash == hash[0] and value.group == group and value.distinct == distinct:
                other = self._text(value.newest, place, &other_size)
                if size == other_size and memcmp(text, other, size) == 0:
                    return number

    cdef int _add_value(
        self, Group* group, uint32_t number, uint32_t distinct, Entry* entry
    ) except -1 nogil:
        cdef uint64_t hash
        cdef uint32_t room, found
        cdef Value* value
        cdef const Number* read = &self.numbers[self.distincts[distinct]]
        cdef Total* total = &group.totals[self.argument_count + distinct]
        if read.unbound:
            total.unbound += 1
            return 0
        found = self._value_of(number, distinct, entry, &hash)
        if found:
            value = &self.values[found]
            value.count += 1
            value.newest = entry
            return 0
        if self.spare_value_count:
            self.spare_value_count -= 1
            found = self.spare_values[self.spare_value_count]
        else:
            if self.value_count >= self.value_room:
                room = max(<uint32_t>16, 2 * self.value_room)
                self.values = <Value*>mem_grow(
                    self.values, room, sizeof(Value), b"the values of groups"
                )
                self.spare_values = <uint32_t*>mem_grow(
                    self.spare_values, room, sizeof(uint32_t), b"the values of groups"
                )
                self.value_room = room
            found = self.value_count
            self.value_count += 1
        if 2 * (self.value_table.used + 2) > self.value_table.mask:
            slots_grow(&self.value_table)
        value = &self.values[found]
        value.hash, value.count, value.newest = hash, 1, entry
        value.group, value.distinct = number, distinct
        slots_put(&self.value_table, <uint32_t>hash, found)
        add_number(total, read, 1)
        return 0

    cdef int _remove_value(
        self, Group* group, uint32_t number, uint32_t distinct, Entry* entry
    ) noexcept nogil:
        cdef uint64_t hash
        cdef uint32_t found
        cdef const Number* read = &numbers_of(entry)[self.distincts[distinct]]
        cdef Total* total = &group.totals[self.argument_count + distinct]
        if read.unbound:
            total.unbound -= 1
            return 0
        found = self._value_of(number, distinct, entry, &hash)
        self.values[found].count -= 1
        if self.values[found].count == 0:
            slots_remove(&self.value_table, <uint32_t>hash, found)
            self.spare_values[self.spare_value_count] = found
            self.spare_value_count += 1
            add_number(total, read, -1)
        return 0

    # ------------------------------------------------------------------ groups

    cdef uint32_t find(self) noexcept nogil:
        """The group with the key of the result, or 0."""
        cdef uint64_t hash = hash_of(self.key, self.key_size)
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
        cdef uint32_t totals = self.argument_count + self.distinct_count
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
            group.totals = <Total*>mem_calloc(totals + 1, sizeof(Total))
            group.queues = <Queue*>mem_calloc(self.best_count + 1, sizeof(Queue))
            group.samples = <Entry**>mem_calloc(self.sample_count + 1, sizeof(Entry*))
            self.group_count += 1
        group.key = <char*>mem_alloc(self.key_size + 1)
        if group.key == NULL:
            raise_no_memory(b"the groups of results")
        memcpy(group.key, self.key, self.key_size)
        group.hash, group.key_size = hash, self.key_size
        group.count = group.touched = 0
        group.first = group.last = NULL
        group.unordered = False
        group.shown_size = 0
        memset(group.totals, 0, totals * sizeof(Total))
        for i in range(totals):
            group.totals[i].lowest, group.totals[i].highest = LIMBS, -1
        for i in range(self.best_count + 1):
            group.queues[i].first = group.queues[i].count = 0
        for i in range(self.sample_count):
            group.samples[i] = NULL
        slots_put(&self.table, <uint32_t>hash, number)
        self.count += 1
        return number

    def expire(self, int64_t now):
        """Remove the results that have left the groups by a time in microseconds."""
        self.expire_before(now)

    cdef int expire_before(self, int64_t now) noexcept nogil:
        if self.tumbling:
            return 0
        while self.oldest != NULL and <int128>self.oldest.end <= <int128>now - self.size:
            self._drop_oldest()
        return 0

    def clear(self):
        """Remove all results."""
        while self.oldest != NULL:
            self._drop_oldest()

    cdef int _drop_oldest(self) noexcept nogil:
        cdef Entry* entry = self.oldest
        cdef Entry* other
        cdef Group* group = &self.groups[entry.group]
        cdef Queue* queue
        cdef uint32_t i
        self.oldest = entry.later
        self.held -= 1
        group.count -= 1
        group.first = entry.next
        for i in range(self.distinct_count):
            self._remove_value(group, entry.group, i, entry)
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
            for i in range(self.best_count + 1):
                queue = &group.queues[i]
                if queue.count and queue.entries[queue.first] == entry:
                    queue.first = (queue.first + 1) & (queue.room - 1)
                    queue.count -= 1
            for i in range(self.sample_count):
                if group.samples[i] == entry:
                    other = entry.next
                    while other != NULL and numbers_of(other)[self.samples[i]].unbound:
                        other = other.next
                        self.work += 1
                    group.samples[i] = other
        mem_free(entry)
        return 0

    # ------------------------------------------------------------------ conditions

    cdef bint may_hold(self, const Group* group) noexcept nogil:
        """Whether no condition of HAVING is known to be false."""
        cdef uint32_t i
        cdef const Condition* condition
        cdef const Total* total
        cdef const Queue* queue
        cdef const Number* best
        cdef double value, error
        cdef int64_t numbers
        cdef int sign
        for i in range(self.condition_count):
            condition = &self.conditions[i]
            error = 0 if condition.whole else fabs(condition.bound) * 1e-9
            if condition.measure == ALL:
                value = <double>group.count
            elif condition.measure == BEST:
                queue = &group.queues[condition.place]
                if group.totals[self.bests[condition.place].argument].unbound or queue.count == 0:
                    continue        # the condition is an error, which Python counts
                best = &numbers_of(
                    queue.entries[queue.first]
                )[self.bests[condition.place].argument]
                if best.kind == Kind.OTHER:
                    continue
                value = plain(best)
                error = (fabs(value) + fabs(condition.bound)) * 1e-6 + 1e-12
            else:
                total = &group.totals[condition.place]
                numbers = total.kinds[0] + total.kinds[1] + total.kinds[2] + total.kinds[3]
                if condition.measure == BOUND:
                    value = <double>(numbers + total.others)
                elif total.unbound or total.others:
                    continue        # SUM and AVG are unbound, so the condition is an error
                else:
                    error = 1e-12
                    value = approximate(total, &error)
                    # A result of floats has 24 bits.
                    error += (fabs(value) + fabs(condition.bound)) * 1e-6
                    if condition.measure == MEAN:
                        value /= <double>numbers
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

    def number(self, key):
        """The group of a key."""
        cdef bytes text
        self.key_size = 0
        for term in key:
            text = b"" if term is None else text_of(term)
            self.put_key(<const char*>text, <uint32_t>len(text))
        return self.find()

    def numbers_in_order(self, bint newest):
        """The groups in the order of their newest results, or of their oldest ones."""
        cdef Entry* entry = self.oldest
        while entry != NULL:
            if entry == (
                self.groups[entry.group].last if newest else self.groups[entry.group].first
            ):
                yield entry.group
            entry = entry.later

    def group(self, uint32_t number):
        """(key, results, start, totals, values of MIN, MAX and SAMPLE) of a group (`measured`)."""
        count, begun, totals, values, key = measured(self.pack(number))
        return (
            tuple([None if each is None else written_term(each) for each in key]), count,
            timestamp_of(begun), totals,
            [None if each is None else written_term(each) for each in values],
        )

    def values_in_order(self, uint32_t number, uint32_t argument):
        """The values of an argument in a group, oldest first; None: unbound."""
        cdef Entry* entry = self.groups[number].first
        while entry != NULL:
            yield self._term(entry, argument + 1)
            entry = entry.next

    cdef bytes pack(self, uint32_t number):
        """What the aggregates of a group are computed from, as `measured` reads it."""
        cdef const Group* group = &self.groups[number]
        cdef const Total* total
        cdef const Queue* queue
        cdef Head head
        cdef Sum sum
        cdef uint32_t i
        cdef Entry* first = self._first_start(group)
        head.start, head.domain = first.start, first.domain
        head.count, head.keys = group.count, self.key_count
        head.totals = self.argument_count + self.distinct_count
        head.bests = self.best_count + self.sample_count
        self.packed_size = 0
        self.is_unbound = False
        self._put(&head, sizeof(Head))
        self._put(group.key, group.key_size)
        self._put_text(first, 0)
        for i in range(head.totals):
            total = &group.totals[i]
            sum.integers, sum.decimals = total.integers, total.decimals
            sum.unbound, sum.others = total.unbound, total.others
            if i < self.argument_count and self.summed[i] and (sum.unbound or sum.others):
                self.is_unbound = True
            memcpy(sum.kinds, total.kinds, KINDS * sizeof(int64_t))
            sum.lowest = total.lowest
            sum.limbs = max(0, total.highest - total.lowest + 1)
            self._put(&sum, sizeof(Sum))
            if sum.limbs:
                self._put(&total.limbs[total.lowest], sum.limbs * sizeof(int64_t))
        for i in range(self.best_count):
            queue = &group.queues[i]
            if group.totals[self.bests[i].argument].unbound or queue.count == 0:
                self.is_unbound = True
                self._put_text(NULL, 0)
            else:
                self._put_text(queue.entries[queue.first], self.bests[i].argument + 1)
        for i in range(self.sample_count):
            self._put_text(group.samples[i], self.samples[i] + 1)
        return self.packed[:self.packed_size]

    cdef int _put(self, const void* data, size_t size) except -1:
        """Append to `packed`."""
        if self.packed_size + size > self.packed_room:
            self.packed_room = 2 * (self.packed_size + size)
            self.packed = <char*>mem_grow(self.packed, self.packed_room, 1, b"a group of results")
        memcpy(self.packed + self.packed_size, data, size)
        self.packed_size += size
        return 0

    cdef int _put_text(self, Entry* entry, uint32_t place) except -1:
        """Append a text of a result after its size; a missing text has size 0."""
        cdef uint32_t size = 0
        cdef const char* text = NULL
        if entry != NULL:
            text = self._text(entry, place, &size)
        self._put(&size, sizeof(uint32_t))
        if size:
            self._put(text, size)
        return 0

    cdef const char* _text(self, Entry* entry, uint32_t place, uint32_t* size) noexcept nogil:
        """The text of the start of a result, or of an argument, from 1; size 0: there is none."""
        cdef uint32_t i
        cdef const uint32_t* sizes = sizes_of(entry, self.argument_count)
        cdef const char* text = <const char*>(sizes + self.argument_count + 1)
        for i in range(place):
            text += sizes[i]
        size[0] = sizes[place]
        return text

    cdef object _term(self, Entry* entry, uint32_t place):
        cdef uint32_t size = 0
        cdef const char* text = self._text(entry, place, &size)
        return written_term(text[:size]) if size else None

    cdef tuple _key(self, uint32_t number):
        cdef const char* text = self.groups[number].key
        cdef uint32_t i
        cdef list key = []
        for i in range(self.key_count):
            written = _next_text(&text)
            key.append(None if written is None else written_term(written))
        return tuple(key)

    def results(self):
        """(key, arguments, start, end) of all results, oldest first."""
        cdef Entry* entry = self.oldest
        cdef uint32_t i
        while entry != NULL:
            arguments = [self._term(entry, i + 1) for i in range(self.argument_count)]
            written = self._term(entry, 0)
            start = Timestamp(entry.start, DATE_TIME if entry.domain else NUMBER, written)
            yield self._key(entry.group), tuple(arguments), start, entry.end
            entry = entry.later

"""Selection for `EMIT` and `LIMIT n`: enumerates only the selected complete matches.

A match is the list of its events, or under `LIMIT` of their instants. All matches that end in one
node continue alike, so the best lists below a node or union can be computed from those of its
parts. They are computed once per instant, as far back as the window reaches. Lists are stored from
their last event back and share common beginnings; equal lists are shared as a whole. Then the
matches of the selected lists are enumerated, following only nodes that hold these lists.

- `LIMIT n` selects the n least lists of instants;
- `ANY` selects the least list of instants, then of streams;
- `NEXT` selects the least list of events: a common continuation preserves the order of two lists;
- `LAST` selects the greatest list from last to first;
- `MAX` selects the sets contained in no other: events added to both change nothing.

All modes except `LIMIT` select in each partition separately.

Invariant: the selection equals that of `spaseq.nfa.selection`, including all matches with the same
events. Under `LIMIT`, the selected matches are those whose instants are one of the first n lists,
with all
matches of the same instants: the first n by `spaseq.engine.output` are among them. Cost: linear in
the nodes and unions below the complete ones, times the lists that each of them holds (one, except
under `LIMIT` and `MAX`; under `MAX` its square), apart from the comparison of lists; and linear in
the enumerated matches.
"""

from libc.string cimport memcmp, memcpy, memset

from spaseq.nfa.native._tecs cimport UNION, Cell, cell_of, count_match
from spaseq.rdf.native._terms cimport check_signals, mem_calloc, mem_free, mem_grow

cdef const char* ALLOCATED_FOR = b"another choice among matches"

cdef uint32_t NIL = 0xFFFFFFFFu

cdef dict MODES = {
    "LIMIT": Mode.LIMIT, "ANY": Mode.ANY, "NEXT": Mode.NEXT, "LAST": Mode.LAST, "MAX": Mode.MAX
}


cdef class Selection:
    """Selects among the complete matches of a core.

    Args:
        core: the automaton; its steps are of single events.
        mode: of `EMIT`, or `LIMIT`.
        most: under `LIMIT`, the number of lists of instants to select.
    """

    def __cinit__(self, AutomatonCore core not None, str mode, uint32_t most=1):
        if mode not in MODES:
            raise ValueError(f"no choice among sets of events is called {mode}")
        self.core = core
        core.event.stores_final_nodes = True
        self.mode = <Mode><int>MODES[mode]
        self.most = most
        self.by_event = self.mode != Mode.LIMIT
        self.known_room = 64
        self.known = <SelectedTrails*>mem_calloc(self.known_room, sizeof(SelectedTrails))
        self.trail_room = 32
        self._grow_trails()

    def __dealloc__(self):
        mem_free(self.known)
        mem_free(self.trails)
        mem_free(self.heads)
        mem_free(self.kept)
        mem_free(self.best)
        mem_free(self.both)
        mem_free(self.todo)
        mem_free(self.parts)
        mem_free(self.path)
        mem_free(self.labels)
        mem_free(self.chosen)
        mem_free(self.ends)
        mem_free(self.keys)
        mem_free(self.partition_of)

    def pop_selected(self):
        """The selected matches among those completed since the last call.

        Returns (start, addresses of the labels, first to last) of each.
        """
        cdef uint32_t i, j
        cdef const Chosen* match
        cdef list found = []
        self.select(False)
        for i in range(self.chosen_count):
            match = &self.chosen[i]
            found.append((
                match.start,
                tuple([
                    <size_t>self.labels[match.first + match.length - 1 - j]
                    for j in range(match.length)
                ]),
            ))
        return found

    cdef int select(self, bint skip) except -1 nogil:
        """Select among the matches completed since the last call.

        With `skip`, later matches start after the end of these.
        """
        cdef uint32_t count = self.core.instant.accepted_count
        self.core.event.match_generation += 1
        self.listed_now = 0
        self.best_count = self.chosen_count = self.label_count = 0
        if self.core.partitions is None or not self.by_event:
            self._select(self.core.instant.accepted, count)
        else:
            self._select_apart(count)
        self.listed += self.chosen_count
        if skip:
            self.core.skip_past(count)
        self.core.instant.accepted_count = 0
        return 0

    cdef int _select_apart(self, uint32_t count) except -1 nogil:
        """Select among the complete matches of each partition."""
        cdef uint32_t i, j, members, found = 0, width = self.core.partitions.keys.width
        cdef size_t size = width * sizeof(term_t)
        if count > self.end_room:
            self.end_room = 2 * count
            self.ends = <Node**>mem_grow(self.ends, self.end_room, sizeof(Node*), ALLOCATED_FOR)
            self.partition_of = <uint32_t*>mem_grow(
                self.partition_of, self.end_room, sizeof(uint32_t), ALLOCATED_FOR
            )
            self.keys = <term_t*>mem_grow(self.keys, self.end_room, size, ALLOCATED_FOR)
        for i in range(count):
            self.core.partitions._key_of(self.core.instant.accepted[i].label)
            j = 0
            while j < found and memcmp(self.keys + j * width, self.core.partitions.key, size):
                j += 1
            if j == found:
                memcpy(self.keys + j * width, self.core.partitions.key, size)
                found += 1
            self.partition_of[i] = j
        for j in range(found):
            members = 0
            for i in range(count):
                if self.partition_of[i] == j:
                    self.ends[members] = self.core.instant.accepted[i]
                    members += 1
            self._select(self.ends, members)
        return 0

    cdef int _select(self, Node** ends, uint32_t count) except -1 nogil:
        """Select among the matches that end in some nodes; `chosen` are in order."""
        cdef uint32_t i, j
        cdef SelectedTrails* known
        self.best_count = 0
        self._clear_trails()
        self.bound = -1
        for i in range(count):
            if self._visit_end(ends[i]):
                known = self._find(<size_t>ends[i])
                self._grow(&self.best, &self.best_room, self.best_count + known.count)
                self.best_count = self._merged(
                    self.best, self.best_count, self.kept + known.first, known.count
                )
        for j in range(self.best_count):
            for i in range(count):
                if self._visit_end(ends[i]) and self._holds(<size_t>ends[i], self.best[j]):
                    self._list(ends[i], j)
        return 0

    cdef int position_walk(self, uint32_t number) except -1 nogil:
        """Position the core's walk at one of the selected matches."""
        return self._set_walk(self.core.transitions.walk, &self.chosen[number])

    cdef int _set_walk(self, Walk walk, const Chosen* match) except -1 nogil:
        while walk.path_room < match.length:
            walk._grow_path()
        memcpy(walk.path, self.labels + match.first, match.length * sizeof(Label*))
        walk.length, walk.start = match.length, match.start
        walk.stop()
        return 0

    # ---------------------------------------------------------------- the lists of nodes

    cdef bint _visit_end(self, Node* end) except -1 nogil:
        """Compute the lists of a last node; False if all of its matches have expired."""
        cdef instant_t bound = self.core.since_at(end)
        if end.latest < bound:
            return False
        if bound != self.bound:
            # The lists below depend on the bound.
            self.bound = bound
            self.known_count = self.kept_count = 0
            self.stamp += 1
            if self.stamp == 0:
                memset(self.known, 0, self.known_room * sizeof(SelectedTrails))
                self.stamp = 1
        if self._find(<size_t>end) == NULL:
            self._visit_below(<size_t>end)
        return True

    cdef int _visit_below(self, size_t top) except -1 nogil:
        """Compute the lists of a node; bottom-up without recursion."""
        cdef size_t[3] below
        cdef size_t address
        cdef uint32_t i, count, before
        self.todo_count = 0
        self._push(top)
        while self.todo_count:
            address = self.todo[self.todo_count - 1]
            count = self._below(address, below)
            before = self.todo_count
            for i in range(count):
                if self._find(below[i]) == NULL:
                    self._push(below[i])
            if self.todo_count == before:
                self.todo_count -= 1
                if self._find(address) == NULL:
                    self._merge_below(address, below, count)
        return 0

    cdef uint32_t _below(self, size_t address, size_t* below) noexcept nogil:
        """The addresses below a node or a union."""
        cdef Cell* cell
        cdef uint32_t count = 0
        if not address & UNION:
            below[0] = (<Node*>address).before
            return <uint32_t>(below[0] != 0)
        cell = cell_of(address)
        if cell.node != NULL:
            below[count] = <size_t>cell.node
            count += 1
        if cell.left != 0 and cell.left_latest >= self.bound:
            below[count] = cell.left
            count += 1
        if cell.right != 0 and cell.right_latest >= self.bound:
            below[count] = cell.right
            count += 1
        return count

    cdef int _merge_below(
        self, size_t address, const size_t* below, uint32_t count
    ) except -1 nogil:
        """Compute the lists of a node or a union whose parts are known."""
        cdef SelectedTrails* own
        cdef SelectedTrails* part
        cdef uint32_t i, found = 0, first = self.kept_count
        cdef size_t room = first + 1
        self.looked += 1
        if not self.looked & 0xFFF:
            check_signals()
        for i in range(count):
            room += self._find(below[i]).count
        self._grow(&self.kept, &self.kept_room, room)
        if address & UNION:
            for i in range(count):
                part = self._find(below[i])
                found = self._merged(
                    self.kept + first, found, self.kept + part.first, part.count
                )
        elif count == 0:
            self.kept[first] = self._trail(NIL, (<Node*>address).label)
            found = 1
        else:
            part = self._find(below[0])
            found = part.count
            for i in range(found):
                self.kept[first + i] = self._trail(
                    self.kept[part.first + i], (<Node*>address).label
                )
        own = self._enter(address)
        own.first, own.count = first, found
        self.kept_count += found
        return 0

    cdef uint32_t _merged(
        self, uint32_t* into, uint32_t count, const uint32_t* others, uint32_t other_count
    ) except? 0xFFFFFFFF nogil:
        """Merge the best trails into the former array; returns the number that it then holds."""
        cdef uint32_t i = 0, j = 0, total = 0
        if count == 0:
            memcpy(into, others, other_count * sizeof(uint32_t))
            return other_count
        if self.mode == Mode.MAX:
            return self._maximal(into, count, others, other_count)
        if self.most == 1 and other_count:
            if self._precedes(others[0], into[0]):
                into[0] = others[0]
            return 1
        self._grow(&self.both, &self.both_room, <size_t>count + other_count)
        while total < self.most and (i < count or j < other_count):
            if j == other_count or (i < count and not self._precedes(others[j], into[i])):
                if j < other_count and others[j] == into[i]:
                    j += 1
                self.both[total] = into[i]
                i += 1
            else:
                self.both[total] = others[j]
                j += 1
            total += 1
        memcpy(into, self.both, total * sizeof(uint32_t))
        return total

    cdef uint32_t _maximal(
        self, uint32_t* into, uint32_t count, const uint32_t* others, uint32_t other_count
    ) noexcept nogil:
        """Add the trails that no other trail contains, and remove those that they contain."""
        cdef uint32_t i, j, left
        for i in range(other_count):
            j = 0
            while j < count and not self._contains(into[j], others[i]):
                j += 1
            if j < count:
                continue
            left = 0
            for j in range(count):
                if not self._contains(others[i], into[j]):
                    into[left] = into[j]
                    left += 1
            into[left] = others[i]
            count = left + 1
        return count

    cdef bint _contains(self, uint32_t one, uint32_t other) noexcept nogil:
        """Whether a list has all events of another list."""
        cdef Trail* trails = self.trails
        while one != other and other != NIL:
            if one == NIL or trails[one].depth < trails[other].depth:
                return False
            if trails[one].own == trails[other].own:
                if trails[one].stream != trails[other].stream:
                    return False
                other = trails[other].before
            elif trails[one].own < trails[other].own:
                return False
            one = trails[one].before
        return True

    cdef bint _ends_later(self, uint32_t one, uint32_t other) noexcept nogil:
        """Whether a list has the latest event that is in only one of two lists."""
        cdef Trail* trails = self.trails
        while one != other:
            if one == NIL or other == NIL:
                return other == NIL
            if trails[one].own != trails[other].own:
                return trails[one].own > trails[other].own
            if trails[one].stream != trails[other].stream:
                return trails[one].stream < trails[other].stream
            one, other = trails[one].before, trails[other].before
        return False

    cdef bint _precedes(self, uint32_t one, uint32_t other) noexcept nogil:
        """Whether a list is better than another one.

        Under `LAST`, the better list is the one that ends later. Otherwise it is the lesser one,
        and a continuation precedes its prefix. Among equal instants, the streams decide at the
        first event that differs; under `NEXT` they do so before any later instant.
        """
        cdef Trail* trails = self.trails
        cdef bint level = trails[one].depth == trails[other].depth
        cdef bint before = trails[one].depth > trails[other].depth
        cdef bint differ = False
        if one == other:
            return False
        if self.mode == Mode.LAST:
            return self._ends_later(one, other)
        while trails[one].depth > trails[other].depth:
            one = trails[one].before
        while trails[other].depth > trails[one].depth:
            other = trails[other].before
        while one != other:
            if trails[one].own != trails[other].own:
                differ = True
                before = trails[one].own < trails[other].own
            elif trails[one].stream != trails[other].stream and (
                self.mode == Mode.NEXT or (level and not differ)
            ):
                before = trails[one].stream < trails[other].stream
            one, other = trails[one].before, trails[other].before
        return before

    # ---------------------------------------------------------------- tables

    cdef uint32_t _trail(self, uint32_t before, const Label* last) except? 0xFFFFFFFF nogil:
        """The list that extends another one by the instant of a label."""
        cdef instant_t own = last.instant
        cdef uint32_t stream = last.stream if self.by_event else 0
        cdef uint32_t* head = &self.heads[_place_of(before, own) & (self.trail_room - 1)]
        cdef uint32_t found = head[0]
        while found != NIL:
            if self.trails[found].own == own and self.trails[found].before == before and (
                self.trails[found].stream == stream
            ):
                return found
            found = self.trails[found].other
        if self.trail_count == self.trail_room:
            self._grow_trails()
            head = &self.heads[_place_of(before, own) & (self.trail_room - 1)]
        found = self.trail_count
        self.trail_count += 1
        self.trails[found].own, self.trails[found].before = own, before
        self.trails[found].stream = stream
        self.trails[found].depth = 1 if before == NIL else self.trails[before].depth + 1
        self.trails[found].other = head[0]
        head[0] = found
        return found

    cdef int _grow_trails(self) except -1 nogil:
        cdef uint32_t i, room = 2 * self.trail_room
        cdef uint32_t* head
        self.trails = <Trail*>mem_grow(self.trails, room, sizeof(Trail), ALLOCATED_FOR)
        self.heads = <uint32_t*>mem_grow(self.heads, room, sizeof(uint32_t), ALLOCATED_FOR)
        self.trail_room = room
        memset(self.heads, 0xFF, room * sizeof(uint32_t))
        for i in range(self.trail_count):
            head = &self.heads[_place_of(self.trails[i].before, self.trails[i].own) & (room - 1)]
            self.trails[i].other = head[0]
            head[0] = i
        return 0

    cdef int _clear_trails(self) noexcept nogil:
        cdef Trail* trail
        while self.trail_count:
            self.trail_count -= 1
            trail = &self.trails[self.trail_count]
            self.heads[_place_of(trail.before, trail.own) & (self.trail_room - 1)] = NIL
        return 0

    cdef SelectedTrails* _find(self, size_t address) noexcept nogil:
        """The entry of a node or a union, or NULL."""
        cdef uint32_t place = _hash(address) & (self.known_room - 1)
        while self.known[place].stamp == self.stamp:
            if self.known[place].address == address:
                return &self.known[place]
            place = (place + 1) & (self.known_room - 1)
        return NULL

    cdef SelectedTrails* _enter(self, size_t address) except NULL nogil:
        """Create the entry of a node or a union without one."""
        cdef SelectedTrails* old = self.known
        cdef uint32_t i, place, room = self.known_room
        if 2 * self.known_count >= room:
            self.known = <SelectedTrails*>mem_calloc(2 * <size_t>room, sizeof(SelectedTrails))
            self.known_room = 2 * room
            self.known_count = 0
            for i in range(room):
                if old[i].stamp == self.stamp:
                    self._enter(old[i].address)[0] = old[i]
            mem_free(old)
        place = _hash(address) & (self.known_room - 1)
        while self.known[place].stamp == self.stamp:
            place = (place + 1) & (self.known_room - 1)
        self.known_count += 1
        self.known[place].address, self.known[place].stamp = address, self.stamp
        return &self.known[place]

    cdef int _push(self, size_t address) except -1 nogil:
        if self.todo_count == self.todo_room:
            self.todo_room = 2 * self.todo_room + 16
            self.todo = <size_t*>mem_grow(self.todo, self.todo_room, sizeof(size_t), ALLOCATED_FOR)
        self.todo[self.todo_count] = address
        self.todo_count += 1
        return 0

    cdef int _grow(self, uint32_t** trails, uint32_t* room, size_t wanted) except -1 nogil:
        """Make room for `wanted` trails."""
        if wanted > room[0]:
            wanted = 2 * wanted + 16
            trails[0] = <uint32_t*>mem_grow(trails[0], wanted, sizeof(uint32_t), ALLOCATED_FOR)
            room[0] = <uint32_t>wanted
        return 0

    # ---------------------------------------------------------------- listing

    cdef bint _holds(self, size_t address, uint32_t trail) noexcept nogil:
        cdef SelectedTrails* known = self._find(address)
        cdef uint32_t i
        for i in range(known.count):
            if self.kept[known.first + i] == trail:
                return True
        return False

    cdef int _list(self, Node* end, uint32_t rank) except -1 nogil:
        """Enumerate the matches that end in a node and have the list of a rank."""
        cdef Part* part
        cdef size_t[3] below
        cdef size_t address
        cdef uint32_t i, trail, depth
        self.part_count = 0
        self._stack(end, self.best[rank], 0)
        while self.part_count:
            self.part_count -= 1
            part = &self.parts[self.part_count]
            depth, trail, address = part.depth, part.trail, <size_t>part.node
            if depth == self.path_room:
                self.path_room = 2 * self.path_room + 16
                self.path = <Label**>mem_grow(
                    self.path, self.path_room, sizeof(Label*), ALLOCATED_FOR
                )
            self.path[depth] = part.node.label
            trail = self.trails[trail].before
            if trail == NIL:
                self._add_selected(depth + 1, rank, part.node.latest)
                continue
            self.todo_count = 0
            self._push(address)
            while self.todo_count:
                self.todo_count -= 1
                for i in range(self._below(self.todo[self.todo_count], below)):
                    if not self._holds(below[i], trail):
                        continue
                    if below[i] & UNION:
                        self._push(below[i])
                    else:
                        self._stack(<Node*>below[i], trail, depth + 1)
        return 0

    cdef int _stack(self, Node* node, uint32_t trail, uint32_t depth) except -1 nogil:
        if self.part_count == self.part_room:
            self.part_room = 2 * self.part_room + 16
            self.parts = <Part*>mem_grow(self.parts, self.part_room, sizeof(Part), ALLOCATED_FOR)
        self.parts[self.part_count].node = node
        self.parts[self.part_count].trail = trail
        self.parts[self.part_count].depth = depth
        self.part_count += 1
        return 0

    cdef int _add_selected(self, uint32_t length, uint32_t rank, instant_t start) except -1 nogil:
        """Add the match on the path to the selected ones."""
        cdef Chosen* match
        if not count_match(self.core.event, &self.listed_now):
            self.part_count = 0
            return 0
        if self.chosen_count == self.chosen_room:
            self.chosen_room = 2 * self.chosen_room + 16
            self.chosen = <Chosen*>mem_grow(
                self.chosen, self.chosen_room, sizeof(Chosen), ALLOCATED_FOR
            )
        if self.label_count + length > self.label_room:
            self.label_room = 2 * (self.label_room + length)
            self.labels = <Label**>mem_grow(
                self.labels, self.label_room, sizeof(Label*), ALLOCATED_FOR
            )
        match = &self.chosen[self.chosen_count]
        match.start, match.rank = start, rank
        match.first, match.length = self.label_count, length
        memcpy(self.labels + self.label_count, self.path, length * sizeof(Label*))
        self.label_count += length
        self.chosen_count += 1
        return 0


cdef inline uint32_t _hash(size_t address) noexcept nogil:
    return <uint32_t>((address >> 3) * <size_t>0x9E3779B97F4A7C15u >> 32)


cdef inline uint32_t _place_of(uint32_t before, instant_t own) noexcept nogil:
    return _hash(<size_t>own << 32 ^ <size_t>before << 3)

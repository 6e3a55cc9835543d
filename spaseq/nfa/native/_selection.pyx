# cython: language_level=3
"""Selection for `EMIT`: enumerates only the selected ones of the complete matches.

A match is the list of its events. All matches that end in one node end bucket, so the best lists
below a node or union are computed once from those below it, as far as the window reaches:

- `NEXT` selects the least list of events: a common continuation preserves the order of two lists;
- `MAX` selects the sets contained in no other: events added to both change nothing;
- `LAST` selects the greatest list from last to first.

Then the matches of the selected lists are enumerated, following only nodes that hold them.

Invariant: within a partition, the selection equals that of `spaseq.nfa.selection`, with all matches
of the same events. Cost: linear in the nodes and unions below the complete ones, times the lists
that each of them holds; independent of the matches left out.
"""

from libc.stdint cimport uint32_t, uint64_t

from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._tecs cimport UNION, Cell, Node, cell_of, instant_t
from spaseq.rdf._effort cimport check_signals

from spaseq.rdf.limits import LimitReached

cdef object ENDLESS = float("inf")


cdef class Best:
    """Selects among the complete matches of a core.

    Args:
        core: the automaton.
        mode: of `EMIT`: MAX, NEXT or LAST.
        streams: number of streams.
    """

    cdef AutomatonCore core
    cdef str mode
    cdef uint32_t streams
    cdef instant_t bound
    cdef dict lists_of      # per node and cell, by address: its best lists
    cdef dict bits          # under MAX: a bit for each event
    cdef uint64_t left      # matches that may still be enumerated
    cdef readonly uint64_t looked   # nodes and unions visited so far
    cdef readonly uint64_t listed   # matches enumerated so far

    def __cinit__(self, AutomatonCore core not None, str mode, uint32_t streams):
        if mode not in ("MAX", "NEXT", "LAST"):
            raise ValueError(f"no choice among sets of events is called {mode}")
        self.core = core
        core.event.stores_final_nodes = True
        self.mode = mode
        self.streams = streams

    def pop_selected(self):
        """The selected ones of the matches completed since the last call.

        Returns (start, addresses of the labels, first to last) of each.
        """
        cdef uint32_t i
        cdef dict groups = {}
        cdef list found = []
        self.core.event.match_generation += 1
        self.left = self.core.event.effort.max_steps
        for i in range(self.core.instant.accepted_count):
            bound = self.core.since_at(self.core.instant.accepted[i])
            if self.core.instant.accepted[i].latest >= bound:
                groups.setdefault(self._partition(i), []).append(
                    (bound, <size_t>self.core.instant.accepted[i])
                )
        for ends in groups.values():
            found += self._selected(ends)
        self.core.instant.accepted_count = 0
        self.listed += len(found)
        return found

    cdef object _partition(self, uint32_t i):
        if self.core.partitions is None:
            return ()
        return self.core.partitions.key_at(self.core.instant.accepted[i].label)

    # ---------------------------------------------------------------- choosing

    cdef list _selected(self, list ends):
        """The selected matches that end in some nodes, (least start, node) each."""
        cdef list best = []
        cdef set wanted
        cdef list found = []
        cdef dict of_bound = {}
        self.bits = {}
        for bound, node in ends:
            if bound not in of_bound:
                of_bound[bound] = {}
            self.bound, self.lists_of = bound, of_bound[bound]
            best += self._best_lists(node, True)
        wanted = set(self._reduced(best))
        for bound, node in ends:
            self.bound, self.lists_of = bound, of_bound[bound]
            found += self._listed([(node, k) for k in self.lists_of[node] if k in wanted])
        return found

    cdef list _best_lists(self, size_t top, bint is_node):
        """The best lists of a node or union; computed bottom-up without recursion."""
        cdef list todo = [(top, is_node)]
        cdef list parts
        while todo:
            address, is_node = todo[len(todo) - 1]
            if address in self.lists_of:
                todo.pop()
                continue
            parts = self._parts(address, is_node)
            missing = [part for part in parts if part[0] not in self.lists_of]
            if missing:
                todo += missing
                continue
            todo.pop()
            self.looked += 1
            check_signals()
            if is_node:
                self.lists_of[address] = self._extended(address, parts)
            else:
                self.lists_of[address] = self._reduced(
                    [key for part in parts for key in self.lists_of[part[0]]]
                )
        return self.lists_of[top]

    cdef list _parts(self, size_t address, bint is_node):
        """The parts below a node or a union: (address, whether it is a node)."""
        cdef Cell* cell
        cdef Node* node
        cdef list parts
        if is_node:
            node = <Node*>address
            if node.before == 0 or node.latest < self.bound:
                return []
            return [(node.before, not node.before & UNION)]
        cell = cell_of(address)
        parts = [(<size_t>cell.node, True)] if cell.node != NULL else []
        if cell.left != 0 and cell.left_latest >= self.bound:
            parts.append((cell.left, not cell.left & UNION))
        if cell.right != 0 and cell.right_latest >= self.bound:
            parts.append((cell.right, not cell.right & UNION))
        return parts

    cdef list _extended(self, size_t address, list parts):
        """The best lists of a node: those below it, extended by its own event."""
        if not parts:
            return [self._added(address, None)]
        return [self._added(address, key) for key in self.lists_of[parts[0][0]]]

    cdef object _added(self, size_t address, key):
        """The events of a partial match, extended by those of a node."""
        cdef Node* node = <Node*>address
        if self.mode == "MAX":
            event = (node.label.instant, node.label.stream)
            return (0 if key is None else key) | 1 << self.bits.setdefault(event, len(self.bits))
        own = node.label.instant
        if self.mode == "LAST":
            own = own * self.streams + self.streams - 1 - node.label.stream
            return (own,) if key is None else (own, *key)
        own = own * self.streams + node.label.stream
        # The end sorts after all events: a continuation precedes its prefix.
        return (own, ENDLESS) if key is None else (*key[:-1], own, ENDLESS)

    cdef object _removed(self, size_t address, key):
        """The inverse of `_added`; None if the node is a start."""
        cdef Node* node = <Node*>address
        if node.before == 0:
            return None
        if self.mode == "MAX":
            return key & ~(1 << self.bits[node.label.instant, node.label.stream])
        if self.mode == "LAST":
            return key[1:]
        return (*key[:-2], ENDLESS)

    cdef list _reduced(self, list keys):
        """The best of some keys, each once."""
        cdef list kept
        if len(keys) < 2:
            return keys
        if self.mode == "MAX":
            kept = []
            for key in sorted(set(keys), key=_size, reverse=True):
                for other in kept:
                    if key & other == key:
                        break
                else:
                    kept.append(key)
            return kept
        if self.mode == "NEXT":
            return [min(keys)]
        # A continuation holds the latest event of the difference, so it is the greater.
        return [max(keys)]

    # ---------------------------------------------------------------- listing

    cdef list _listed(self, list ends):
        """The matches that end in some nodes with the given lists, (node, key) each."""
        cdef list found = []
        cdef list stack = [(end, kept, ()) for end, kept in ends]
        cdef Node* node
        while stack:
            check_signals()
            address, key, after = stack.pop()
            node = <Node*><size_t>address
            path = (<size_t>node.label, *after)
            rest = self._removed(address, key)
            if rest is None:
                if self.left == 0:
                    raise LimitReached("matches")
                self.left -= 1
                found.append((node.latest, path))
            else:
                stack += [(member, rest, path) for member in self._nodes_holding(address, rest)]
        return found

    cdef list _nodes_holding(self, size_t address, rest):
        """The nodes before a node that hold a list."""
        cdef list found = []
        cdef list todo = self._parts(address, True)
        while todo:
            part, is_node = todo.pop()
            self.looked += 1
            if rest in self.lists_of[part]:
                if is_node:
                    found.append(part)
                else:
                    todo += self._parts(part, False)
        return found


def _size(key):
    return key.bit_count()

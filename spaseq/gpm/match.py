"""One event (and the KB) → the rows of a graph pattern."""

from __future__ import annotations

from typing import TypeAlias

import pyoxigraph as ox

from spaseq.gpm.graphs import NamedGraphs
from spaseq.gpm.program import GpmProgram
from spaseq.gpm.sparql_text import Renderer
from spaseq.parser import ast
from spaseq.rdf.event import Event, Term

Row: TypeAlias = tuple[Term | None, ...]


class Matcher:
    """Evaluates one `GpmProgram`; never remembers an event."""

    def __init__(self, program: GpmProgram, kb: NamedGraphs | None):
        self.program = program
        self._kb = kb
        self._required = frozenset(
            ox.NamedNode(e.predicate.value)
            for e in program.pattern.elements
            if isinstance(e, ast.Triple) and isinstance(e.predicate, ast.Iri)
        )
        self.plan: tuple[str, ...] = ("pyoxigraph",)

    def relevant(self, event: Event) -> bool:
        if not self._required:
            return bool(event.facts)
        return self._required <= {p for _, p, _ in event.facts}

    def rows(self, event: Event) -> list[Row]:
        if not event.facts or not self.relevant(event):
            return []
        store = ox.Store()
        store.extend([ox.Quad(s, p, o) for s, p, o in event.facts])
        if self._kb is not None:
            wanted = self.program.kb_graphs
            for name in self._kb.names:
                if wanted is None or name.value in wanted:
                    store.extend(
                        [ox.Quad(s, p, o, name) for s, p, o in self._kb.triples(name)]
                    )
        r = Renderer()
        pattern = r.group(self.program.pattern)
        at = self.program.at
        if at is not None:
            pattern = f"{{ {pattern} VALUES {r.variable(at)} {{ {event.time.term} }} }}"
        cols = [r.variable(v)[1:] for v in self.program.variables]
        text = f"SELECT DISTINCT {' '.join('?' + c for c in cols) or '*'} WHERE {pattern}"
        return list({tuple(sol[i] for i in range(len(cols))) for sol in store.query(text)})

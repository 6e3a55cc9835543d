"""Graph patterns evaluated by pyoxigraph alone, the reference for this package's evaluators.

The store writes literals in canonical form, so data and constants must be canonical.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyoxigraph as ox

from spaseq.gpm.program import GpmProgram
from spaseq.gpm.python.row_operators import Row
from spaseq.parser.format import format_pattern
from spaseq.rdf.event import Event, Fact


def reference_rows(
    program: GpmProgram, event: Event, graphs: Mapping[ox.NamedNode, tuple[Fact, ...]]
) -> set[Row]:
    """The distinct solutions over the program's variables."""
    if not event.facts:
        return set()
    store = ox.Store()
    store.extend([ox.Quad(*fact) for fact in event.facts])
    for name, facts in graphs.items():
        store.extend([ox.Quad(*fact, name) for fact in facts])
        store.add_graph(name)
    pattern = format_pattern(program.pattern)
    if program.at is not None:
        pattern = f"{{ {pattern} VALUES ?{program.at} {{ {event.time.term} }} }}"
    columns = [f"?{name}" for name in program.variables]
    found = store.query(f"SELECT DISTINCT {' '.join(columns) or '*'} WHERE {pattern}")
    return {tuple(solution[name[1:]] for name in columns) for solution in found}

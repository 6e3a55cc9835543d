"""A program, a knowledge base and a regime → what each query sees under entailment.

Queries that see the same graphs of the KB share one closure, one schema and one set of
rules, made for exactly what their patterns ask. Cost: that of `spaseq.kb.closure`, once
when a run starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spaseq.engine.compiled import CompiledQueries
from spaseq.gpm.entail import targets, widenings
from spaseq.gpm.graphs import EntailedGraphs
from spaseq.kb.closure import closed
from spaseq.kb.snapshot import Kb
from spaseq.parser import ast
from spaseq.rdf.entailment import rules_of
from spaseq.rdf.schema import REGIMES

Entailed = Mapping[tuple[str, ...] | None, EntailedGraphs]
"""By the KB graphs that a query sees (None: all of them)."""


def entailed(program: CompiledQueries, kb: Kb, regime: str | None) -> Entailed:
    """The graphs under a regime; none where there is no regime.

    Raises:
        ValueError: for a regime that does not exist.
        KbError, LimitExceeded: where the KB cannot be closed.
    """
    if regime is None:
        return {}
    if regime not in REGIMES:
        raise ValueError(f"there is no entailment {regime!r}; choose from {', '.join(REGIMES)}")
    asked: dict[tuple[str, ...] | None, list[ast.Node]] = {}
    for query in program.queries:
        plan = query.plan
        nodes = asked.setdefault(plan.kb_graphs, [])
        for task in query.tasks:
            nodes += (program.tasks[task].program.pattern, *program.tasks[task].filters)
        nodes += (
            condition.expression
            for occurrence in plan.occurrences
            for condition in occurrence.conditions
        )
    found = {}
    for seen, nodes in asked.items():
        graphs = {name: kb.graph(name) for name in kb.names if seen is None or name.value in seen}
        closure = closed(graphs, regime)
        rules = rules_of(closure.schema, targets(nodes), closure.background)
        found[seen] = EntailedGraphs(closure.kb, rules)
    return found


def widened_patterns(program: CompiledQueries, entailed: Entailed) -> list[list[dict[str, Any]]]:
    """Per task: its triple patterns that entailment widens, and by how much, as data."""
    if not entailed:
        return [[] for _ in program.tasks]
    return [
        [
            {"triple": widening.text, **widening.counts}
            for widening in widenings(
                (task.program.pattern, *task.filters), entailed[task.program.kb_graphs].rules
            )
        ]
        for task in program.tasks
    ]

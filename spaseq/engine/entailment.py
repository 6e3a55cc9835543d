"""A program, a knowledge base and a regime → what each query sees under entailment.

Queries that see the same graphs of the KB share one closure, one schema and one set of
rules, made for exactly what their patterns ask. All that is made of a snapshot is kept by it:
runs over one snapshot share it, and a version in which the graphs in sight are the same
objects takes it over. Cost: that of `spaseq.kb.closure`, once for each version of the graphs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from spaseq.engine.compiled import CompiledQueries
from spaseq.errors import KbError
from spaseq.gpm.entailment import inputs, targets, widenings
from spaseq.gpm.named_graphs import CurrentGraphs, EntailedGraphs
from spaseq.gpm.relevance import Uses, outside
from spaseq.kb.closure import ClosedKb, closed
from spaseq.kb.snapshot import Kb
from spaseq.parser import ast
from spaseq.rdf.entailment import Rules, Target, rules_of
from spaseq.rdf.schema import REGIMES

Seen: TypeAlias = tuple[str, ...] | None
"""The KB graphs that a query sees (None: all of them)."""
Entailed = Mapping[Seen, EntailedGraphs]


@dataclass(frozen=True, slots=True)
class Closure:
    """Closed graphs, and what follows from events by their schema."""

    kb: Kb
    rules: Rules


class Entailment:
    """Closes snapshots of the KB under a regime, for the queries of a program.

    Raises:
        ValueError: for a regime that does not exist.
    """

    def __init__(self, program: CompiledQueries, regime: str | None):
        if regime is not None and regime not in REGIMES:
            raise ValueError(f"there is no entailment {regime!r}; choose from {', '.join(REGIMES)}")
        self._regime = regime
        self._targets = {} if regime is None else _targets(program)
        self._is_read = False
        self._read: Uses = None

    def read_with(self, used: Uses) -> None:
        """From now on readers leave out of events what is not of these uses."""
        self._is_read, self._read = True, used

    def closures(self, kb: Kb) -> Mapping[Seen, Closure]:
        """The graphs that queries see, closed; none where there is no regime.

        Raises:
            KbError, LimitExceeded: where they cannot be closed.
            KbError: where something follows from triples that readers leave out.
        """
        found = {seen: self._closure(kb, seen, asked) for seen, asked in self._targets.items()}
        if found and self._is_read:
            missing = outside(inputs(each.rules for each in found.values()), self._read)
            if missing is not None:
                raise KbError(_left_out(*map(str, missing)))
        return found

    def graphs(self, current: CurrentGraphs, kb: Kb) -> Entailed:
        """What queries see of the graphs of a run, to begin with."""
        return {
            seen: EntailedGraphs(current, closure.kb, closure.rules)
            for seen, closure in self.closures(kb).items()
        }

    def _closure(self, kb: Kb, seen: Seen, asked: tuple[Target, ...]) -> Closure:
        names = [name for name in kb.names if seen is None or name.value in seen]
        for name in names:
            place = kb.place(name)
            if place is not None:
                raise KbError(
                    f"the KB graph {name} is asked at {place}, and what follows from it cannot be "
                    f"told without all of it: under the entailment {self._regime} download it and "
                    "give the file, let the queries name other graphs (FROM), or leave the "
                    "entailment out (--entail, entail=)"
                )
        graphs = tuple((name, kb.graph(name)) for name in names)
        made = graphs, (self._regime, asked)
        if made not in kb.derived:
            assert self._regime is not None
            closure: ClosedKb | None = kb.derived.get((graphs, self._regime))
            if closure is None:
                closure = kb.derived[graphs, self._regime] = closed(dict(graphs), self._regime)
            rules = rules_of(closure.schema, asked, closure.background)
            kb.derived[made] = Closure(closure.kb, rules)
        result: Closure = kb.derived[made]
        return result


def _targets(program: CompiledQueries) -> dict[Seen, tuple[Target, ...]]:
    """What queries ask of events, by the graphs that they see."""
    asked: dict[Seen, list[ast.Node]] = {}
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
    return {seen: targets(nodes) for seen, nodes in asked.items()}


def _left_out(predicate: str, value: str) -> str:
    shown = {
        ("None", "None"): "any triple of an event",
        (predicate, "None"): f"triples of {predicate}",
    }.get((predicate, value), f"triples of {predicate} with {value}")
    return (
        f"with this version of the KB something follows from {shown}, which readers of this "
        "run leave out (`relevance`): save the run and resume it with the new KB and new "
        "readers, or have a run read without `relevance`"
    )


def widened_patterns(
    program: CompiledQueries, rules: Mapping[Seen, Rules]
) -> list[list[dict[str, Any]]]:
    """Per task: its triple patterns that entailment widens, and by how much, as data."""
    if not rules:
        return [[] for _ in program.tasks]
    return [
        [
            {"triple": widening.text, **widening.counts}
            for widening in widenings(
                (task.program.pattern, *task.filters), rules[task.program.kb_graphs]
            )
        ]
        for task in program.tasks
    ]

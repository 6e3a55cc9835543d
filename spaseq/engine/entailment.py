"""Closures of a knowledge base and rules for events, under an entailment regime.

Queries that read the same graphs of the KB share one closure, one schema and one set of rules,
which cover exactly the triple patterns of these queries. A snapshot caches its closures: runs over
one snapshot share them, and a later version with the same graph objects reuses them.

Cost: that of `spaseq.kb.closure`, once per version of the graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from spaseq.records import dataclass

Seen: TypeAlias = tuple[str, ...] | None
"""The KB graphs that a query reads (None: all graphs)."""
Entailed = Mapping[Seen, EntailedGraphs]


@dataclass(frozen=True, slots=True)
class Closure:
    """Closed graphs, and the rules that their schema implies for events."""

    kb: Kb
    rules: Rules


class Entailment:
    """Closes snapshots of the KB under a regime, for the queries of a program.

    Raises:
        ValueError: for an unknown regime.
    """

    def __init__(self, program: CompiledQueries, regime: str | None):
        if regime is not None and regime not in REGIMES:
            raise ValueError(f"there is no entailment {regime!r}; choose from {', '.join(REGIMES)}")
        self._regime = regime
        self._targets = {} if regime is None else _targets(program)
        self._is_read = False
        self._read: Uses = None

    def read_with(self, used: Uses) -> None:
        """Record that readers drop all triples outside of these uses."""
        self._is_read, self._read = True, used

    def changed(
        self,
        program: CompiledQueries,
        graphs: dict[Seen, EntailedGraphs],
        current: CurrentGraphs,
        kb: Kb,
    ) -> tuple[Entailment, Callable[[], None]]:
        """The entailment of a changed program.

        Args:
            program: The program.
            graphs: The graphs of the run, which are closed for it.
            current: The background graphs.
            kb: Their current version.

        Returns:
            The entailment, and what lets the graphs be as before.

        Raises:
            KbError, LimitExceeded: if a graph cannot be closed.
        """
        earlier = {seen: (each.closed, each.rules) for seen, each in graphs.items()}
        after = Entailment(program, self._regime)
        after._is_read, after._read = self._is_read, self._read

        def undo() -> None:
            for seen, before in earlier.items():
                graphs[seen].replace(*before)

        for seen, closure in after.closures(kb).items():
            if seen in graphs:
                graphs[seen].replace(closure.kb, closure.rules)
            else:
                graphs[seen] = EntailedGraphs(current, closure.kb, closure.rules)
        return after, undo

    def closures(self, kb: Kb) -> Mapping[Seen, Closure]:
        """The closed graphs that queries read; empty without a regime.

        Raises:
            KbError, LimitExceeded: if a graph cannot be closed.
            KbError: if a rule needs triples that readers drop.
        """
        found = {seen: self._closure(kb, seen, asked) for seen, asked in self._targets.items()}
        if found and self._is_read:
            missing = outside(inputs(each.rules for each in found.values()), self._read)
            if missing is not None:
                raise KbError(_left_out(*map(str, missing)))
        return found

    def graphs(self, current: CurrentGraphs, kb: Kb) -> dict[Seen, EntailedGraphs]:
        """The graphs of a run under entailment, at its start."""
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
                    f"the KB graph {name} is asked at {place}, and entailment needs all its "
                    f"triples: under the entailment {self._regime} download it and "
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
    """The triple patterns over events, by the KB graphs that their queries read."""
    asked: dict[Seen, list[ast.Node]] = {}
    for query in program.queries:
        plan = query.plan
        nodes = asked.setdefault(plan.kb_graphs, [])
        for task in query.tasks:
            pattern = program.patterns[task]
            nodes += (pattern.program.pattern, *pattern.filters)
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
    """Per task: the triple patterns that entailment widens, with counts, as data."""
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

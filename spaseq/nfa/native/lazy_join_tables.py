"""The conditions of the lazy join, and its tables for the compiled core.

A chain of single graph patterns under `:` matches if its rows, in the order of time, agree and
satisfy its filters. The rows can therefore be joined when the last one arrives, in any order
(`spaseq/nfa/native/automaton/lazy_join.pxi`). This pays where no index serves the filters of a step
before the last, whose rows are otherwise compared with every waiting group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from spaseq.nfa.automaton import ACCEPT, Automaton
from spaseq.nfa.native.conjunction_tables import Shared
from spaseq.nfa.native.range_tables import joins_whole
from spaseq.parser import ast
from spaseq.plan.logical import Condition, Occurrence, QueryPlan
from spaseq.rules import enabled

CHAIN_MIN_STEPS, CHAIN_MAX_STEPS = 3, 32
"""Bounds on the steps of a chain: a lazy join gains nothing with two steps, and the core has one
bit per step.
"""
LISTED_MATCH_ROWS, CANDIDATE_MATCH_ROWS = 4, 256
"""Rows examined in the time that one match takes: a match that is listed, and one that is only a
candidate of a selection."""

_ON_NUMBERS = frozenset(("<", "<=", ">", ">=", "+", "-", "*", "/"))


@dataclass(slots=True)
class ChainTables:
    """A chain as rows of numbers; without steps, the core never joins lazily."""

    steps: list[tuple[int, int]] = field(default_factory=list)
    """(place, occurrence), from the first step on."""
    columns: list[list[int]] = field(default_factory=list)
    """By step the columns that index its rows."""
    ranged: list[list[int]] = field(default_factory=list)
    """By step the columns whose values a filter over several steps compares or computes with."""
    tests: list[tuple[int, int]] = field(default_factory=list)
    """(number among all residual filters, set of steps that must be joined before it is evaluated).
    """
    one: bool = False
    """Whether one match per completing row suffices."""
    match_rows: int = LISTED_MATCH_ROWS
    """The cost of a listed match, in examined rows."""


def tables(plan: QueryPlan, automaton: Automaton) -> ChainTables:
    """The tables of the lazy join; empty if the core never joins lazily."""
    if not weighed(plan, automaton):
        return ChainTables()
    steps = _chain(automaton)
    assert steps is not None
    order = [plan.occurrences[occurrence] for _, occurrence in steps]
    numbers = _filter_numbers(plan)
    tests = []
    for step, occurrence in enumerate(order):
        for position, condition in enumerate(occurrence.residual):
            needs = _needs(plan, order, step, condition)
            assert needs is not None
            tests.append((numbers[occurrence.index] + position, needs))
    shared = Shared(plan)
    columns = [list(shared.columns(occurrence.gpm)) for occurrence in order]
    computed = _computed(order)
    ranged = [
        [column for column, name in enumerate(_names(plan, occurrence)) if name in computed]
        for occurrence in order
    ]
    chosen = plan.emit != "ALL" or plan.output.limit is not None
    grouped = plan.output.grouping is not None
    one = plan.output.form == "ask" and plan.emit == "ALL" and not grouped
    one = one and plan.skip_to is None
    return ChainTables(
        steps, columns, ranged, tests, one, CANDIDATE_MATCH_ROWS if chosen else LISTED_MATCH_ROWS
    )


def weighed(plan: QueryPlan, automaton: Automaton) -> bool:
    """Whether the core chooses between the lazy and the eager join."""
    return visits_groups(plan, automaton) and eager_because(plan, automaton) is None


def visits_groups(plan: QueryPlan, automaton: Automaton) -> bool:
    """Whether a step before the last is compared with groups one by one."""
    return any(
        _visits(plan, automaton, number, position)
        for number, place in enumerate(automaton.places)
        if not place.start
        for position, edge in enumerate(place.edges)
        if any(link.target != ACCEPT for link in automaton.atoms[edge.atom].links)
    )


def eager_because(plan: QueryPlan, automaton: Automaton) -> str | None:
    """Why a sequence is always joined eagerly; None if it may be joined lazily."""
    if not enabled("lazy_join"):
        return "the rule lazy_join is disabled"
    steps = _chain(automaton)
    if steps is None or plan.units or any(r.kind != "value" for r in plan.registers):
        return "it is not a chain of single graph patterns under :"
    if not CHAIN_MIN_STEPS <= len(steps) <= CHAIN_MAX_STEPS:
        return f"it has not {CHAIN_MIN_STEPS} to {CHAIN_MAX_STEPS} steps"
    if plan.emit == "STRICT":
        return "EMIT STRICT joins at the next instant only"
    if plan.window.is_endless:
        return "without a window all rows would be kept"
    order = [plan.occurrences[occurrence] for _, occurrence in steps]
    if any(occurrence.assignments for occurrence in order):
        return "a BIND over several steps is worked out where a row meets a partial match"
    for step, occurrence in enumerate(order):
        for condition in occurrence.residual:
            if any(isinstance(node, ast.Exists) for node in ast.walk(condition.expression)):
                return f"FILTER({condition.text}) tests the current event with EXISTS"
            if _needs(plan, order, step, condition) is None:
                return f"FILTER({condition.text}) reads what a later step may bind"
    return None


def _chain(automaton: Automaton) -> list[tuple[int, int]] | None:
    """(place, occurrence) of each step if `:` leads from each to the next only; else None."""
    if len(automaton.starts) != 1 or automaton.guards:
        return None
    found: list[tuple[int, int]] = []
    number = automaton.starts[0]
    while number != ACCEPT:
        place = automaton.places[number]
        if len(place.edges) != 1 or (found and place.operator != ":"):
            return None
        edge = place.edges[0]
        atom = automaton.atoms[edge.atom]
        if atom.kind != "single" or edge.actions or edge.within is not None:
            return None
        if len(atom.links) != 1 or atom.links[0].bounds:
            return None
        found.append((number, atom.occurrences[0]))
        if len(found) > len(automaton.places):
            return None
        number = atom.links[0].target
    return found


def _visits(plan: QueryPlan, automaton: Automaton, number: int, position: int) -> bool:
    """Whether rows of an edge are compared with more groups than an index returns."""
    place = automaton.places[number]
    if joins_whole(plan, automaton, number, position):
        return False
    served = {register for register, _ in place.keys[position]}
    order = place.orders[position]
    if order is not None:
        served.add(order[0])
    return any(
        register not in served and plan.registers[register].kind != "iterations"
        for register in place.live
    )


def _needs(
    plan: QueryPlan, order: Sequence[Occurrence], step: int, condition: Condition
) -> int | None:
    """The steps, as bits, that determine what a filter reads; None if it cannot be determined.

    A later step must not bind a variable that the filter does not see in the eager order.
    """
    needs = 1 << step
    for name in condition.reads:
        binding = [n for n, other in enumerate(order) if name in _names(plan, other)]
        certain = [n for n in binding if name in plan.gpms[order[n].gpm].certain and n <= step]
        if certain:
            needs |= 1 << certain[-1]
            continue
        if any(n > step for n in binding):
            return None
        needs |= sum(1 << n for n in binding)
    return needs


def _computed(order: Sequence[Occurrence]) -> frozenset[str]:
    """The variables of filters over several steps that compare or compute."""
    return frozenset(
        name
        for occurrence in order
        for condition in occurrence.residual
        if _computes(condition.expression)
        for name in condition.reads
    )


def _computes(expression: ast.Expr) -> bool:
    """Whether an expression has numbers and booleans only, and is not just a test for equality."""
    nodes = list(ast.walk(expression))
    return all(
        isinstance(n, ast.Var | ast.Literal | ast.Unary | ast.Binary) for n in nodes
    ) and any(isinstance(n, ast.Unary | ast.Binary) and n.operator in _ON_NUMBERS for n in nodes)


def _names(plan: QueryPlan, occurrence: Occurrence) -> Sequence[str]:
    return plan.gpms[occurrence.gpm].variables


def _filter_numbers(plan: QueryPlan) -> list[int]:
    """By occurrence the number of its first residual filter among all."""
    return list(_running(len(occurrence.residual) for occurrence in plan.occurrences))


def _running(counts: Iterator[int]) -> Iterator[int]:
    total = 0
    for count in counts:
        yield total
        total += count

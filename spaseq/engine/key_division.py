"""Whether the events of a query can be divided by a key among several runs, each in a thread.

A run that receives all events of some values of the key finds all matches of these values
(spaseq/plan/key_division.py). The key of an event must be known before its patterns are matched,
and each match must be certain at its last event, so that the matches of all runs can be put in the
order in which one run would find them.
"""

from __future__ import annotations

from spaseq.engine.aggregates import RunningAggregates
from spaseq.engine.compiled import CompiledQueries, CompiledQuery, shared_selection
from spaseq.engine.projection import projected_registers
from spaseq.gpm.key_ends import Ends, key_ends
from spaseq.gpm.pattern import Pattern
from spaseq.gpm.python.functions import FUNCTIONS
from spaseq.nfa.registers import RegisterFile
from spaseq.parser import ast
from spaseq.plan.key_division import ByKey, by_key
from spaseq.records import dataclass
from spaseq.sparql.builtins import XSD


@dataclass(frozen=True, slots=True)
class KeyDivision:
    """The division of a query's events by the values of a variable."""

    variable: str
    why: str
    """Why by this variable."""
    ends: Ends
    """The ends of triples whose values are the keys of an event."""


def key_division(program: CompiledQueries) -> KeyDivision | str:
    """The division of the events of a program, or the reason why one run has to read them all."""
    if len(program.queries) > 1:
        return "several queries run together"
    (query,) = program.queries
    keys = by_key(query.plan)
    if not isinstance(keys, ByKey):
        return keys.removeprefix("not by key: ")
    reason = _not_divided(program, query)
    if reason:
        return reason
    for variable in keys.variables:
        ends = _ends(program, query, variable)
        if ends is not None:
            return KeyDivision(variable, keys.why, ends)
    shown = ", ".join(f"?{name}" for name in keys.variables)
    return f"some graph pattern has no triple with {shown} and a constant predicate"


def _not_divided(program: CompiledQueries, query: CompiledQuery) -> str:
    """The reason why events are not divided whatever the key; "" if there is none."""
    plan = query.plan
    if len(plan.streams) > 1:
        return "it reads several streams"
    if program.asked or any(pattern.left_to_python for pattern in program.tasks):
        return "Python evaluates a part of it"
    if any(map(_calls_registered, program.tasks)):
        return "its graph patterns call registered functions"
    patterns = [pattern.program.pattern for pattern in program.tasks]
    if any(isinstance(node, ast.Graph | ast.Service) for node in ast.walk(tuple(patterns))):
        return "it reads the knowledge base"
    if query.automaton.waits or query.automaton.expires or shared_selection(query):
        return "its matches wait, or are selected from those of an instant"
    if projected_registers(query, RegisterFile(plan, RunningAggregates())) is None:
        return "its results are not made one by one at the last event of a match"
    return ""


def _calls_registered(pattern: Pattern) -> bool:
    """Whether a pattern calls functions of the caller, which need not allow calls from threads."""
    if pattern.native is None:
        return False
    called = {name for code in pattern.native.codes.values() for name, _ in code.code.functions}
    return any(name not in FUNCTIONS and not name.startswith(XSD) for name in called)


def _ends(program: CompiledQueries, query: CompiledQuery, variable: str) -> Ends | None:
    """The ends of triples that have the variable in all graph patterns."""
    ends: Ends = frozenset()
    for gpm, task in zip(query.plan.gpms, query.tasks, strict=True):
        native = program.tasks[task].native
        if native is None or variable not in gpm.variables:
            return None
        # Patterns that differ in the names of variables are one task; their columns agree.
        some = key_ends(native.root, gpm.variables.index(variable))
        if some is None:
            return None
        ends |= some
    return ends

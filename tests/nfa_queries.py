"""Queries for the tests of the automaton: short text in, plan, automaton or run out."""

from __future__ import annotations

import re
from collections.abc import Mapping

from spaseq.engine.aggregates import RunningAggregates
from spaseq.nfa.automaton import Automaton
from spaseq.nfa.compile import compile_automaton
from spaseq.nfa.registers import RegisterFile
from spaseq.parser import parse
from spaseq.plan.logical import QueryPlan
from spaseq.plan.planner import plan


def planned(
    seq: str,
    gpms: Mapping[str, str] | None = None,
    head: str = "SELECT *",
    clauses: str = "WITHIN 10 SECONDS",
) -> QueryPlan:
    """The plan of a query over one stream; GPM X that `gpms` leaves out is `{ [] :x ?x }`."""
    bodies = dict(gpms or {})
    for name in re.findall(r"\b[A-Z]\b", seq):
        bodies.setdefault(name, f"{{ [] :{name.lower()} ?{name.lower()} }}")
    defines = " ".join(f"DEFINE GPM {name} ON s {body}" for name, body in sorted(bodies.items()))
    text = (
        f"PREFIX : <http://example.org/> {head} {clauses} FROM STREAM s :s "
        f"WHERE {{ SEQ({seq}) {defines} }}"
    )
    return plan(parse(text))


def names(of: QueryPlan) -> list[str]:
    """The GPM of each occurrence."""
    return [of.gpms[occurrence.gpm].name for occurrence in of.occurrences]


def described(of: QueryPlan) -> str:
    """The automaton, one line per place."""
    return compile_automaton(of).describe(names(of))


def live(of: QueryPlan, automaton: Automaton | None = None) -> dict[str, list[str]]:
    """For each place, named by what it waits for, its live registers."""
    built = automaton or compile_automaton(of)
    out: dict[str, list[str]] = {}
    for place in built.places:
        operator = place.operator or "^"
        awaited = " | ".join(built.atom_text(edge.atom, names(of)) for edge in place.edges)
        again = " again" if any(a.again for edge in place.edges for a in edge.actions) else ""
        out[f"{operator} {awaited}{again}"] = [built.register_names[r] for r in place.live]
    return out


def register_file(of: QueryPlan) -> RegisterFile:
    return RegisterFile(of, RunningAggregates())

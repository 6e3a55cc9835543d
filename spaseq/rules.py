"""The optimisation rules of the engine, each with a name and a switch.

A rule makes a run faster and changes no result. To find out whether a rule is at fault for a wrong
answer, disable it: `SPASEQ_DISABLE=lazy_join,range_unions spaseq run ...`. Rules apply while a
query is compiled and while its run starts; a compiled program retains the rules of its compilation.
`explain` lists the rules that apply to a query.
"""

from __future__ import annotations

import os
from functools import cache

from spaseq.errors import SpaseqError

VARIABLE = "SPASEQ_DISABLE"

RULES = {
    "constant_dispatch": "events reach only the queries whose constants they can satisfy",
    "decided_ranges": "a comparison that a range decides is not evaluated",
    "early_filters": "a conjunction evaluates filters as soon as their variables are bound",
    "equality_index": "rows find waiting groups by the registers that must equal their columns",
    "first_chance_negation": "a negated event ends the groups it forbids as soon as it arrives",
    "lazy_join": "a chain joins backwards from its last event where that examines less",
    "numeric_filters": "filters over numbers run without a stack machine",
    "observed_order": "graph patterns reorder their joins by the sizes they observe",
    "pruning": "readers drop the triples that no query uses",
    "range_index": "rows find waiting groups by a register that a filter compares",
    "range_unions": "a row extends all groups of a range as one union",
    "single_triples": "an event of one triple is matched where it lies in its batch",
    "straight_edges": "a transition whose registers are known in advance is a list of copies",
    "templates": "queries that differ in constants or in what they select are evaluated as one",
}
"""The rules by name, each with what it does."""


def disabled() -> frozenset[str]:
    """The rules that the environment variable `SPASEQ_DISABLE` names, separated by commas.

    Raises:
        SpaseqError: for a name that is not a rule.
    """
    return _named(os.environ.get(VARIABLE, ""))


@cache
def _named(listed: str) -> frozenset[str]:
    names = {name.strip() for name in listed.split(",")} - {""}
    unknown = sorted(names - RULES.keys())
    if unknown:
        raise SpaseqError(
            f"{VARIABLE}: there is no rule {', '.join(unknown)}; the rules are {', '.join(RULES)}"
        )
    return frozenset(names)


def enabled(rule: str) -> bool:
    """Whether a rule applies.

    Raises:
        KeyError: for a name that is not a rule.
        SpaseqError: as `disabled`.
    """
    if rule not in RULES:
        raise KeyError(rule)
    return rule not in disabled()

"""Queries that combine deadlines, bounds, AFTER MATCH, GROUP and LIMIT, drawn by chance.

Each case is one of the other modules' cases whose last clauses are drawn anew. A combination that
the engine refuses has its own test; `combined` leaves it out.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from bounds import bounded
from choosing import choice, skip_to
from deadlines import timed
from drawn_groups import GroupDraw
from drawn_terms import starred
from strategies import Case

import spaseq
from spaseq.errors import QueryError
from spaseq.parser import ast, parse
from spaseq.plan.places import sequence_places

T = TypeVar("T")
KINDS = (timed, bounded, skip_to, skip_to, choice)
SKIPS = ("TO NEXT", "TO FIRST {name}", "TO LAST {name}", "PAST LAST EVENT")


class _Random:
    """The choices of a `GroupDraw`."""

    def __init__(self, chance: random.Random):
        self._chance = chance

    def of(self, options: Sequence[T]) -> T:
        return self._chance.choice(options)

    def number(self, least: int, most: int) -> int:
        return self._chance.randint(least, most)


def combined(seed: int) -> Case | None:
    """The case of a seed; None if the engine refuses it, or it has no variables."""
    chance = random.Random(seed)
    case = chance.choice(KINDS)(seed)
    query = parse(case.query)
    names = sorted(sequence_places(query.sequence).positive_names())
    variables = _variables(query, names)
    if not variables:
        return None
    text = re.sub(r"\}\s*(GROUP|LIMIT)[^}]*$", "}", case.query)
    if "AFTER MATCH" not in text and not isinstance(query.form, ast.Ask) and chance.random() < 0.5:
        skip = chance.choice(SKIPS).format(name=chance.choice(names))
        text = text.replace("WITHIN", f"AFTER MATCH SKIP {skip}\nWITHIN", 1)
    counted = f"COUNT({chance.choice(names)})"
    text, per = _grouped(text, query, variables, counted, chance)
    if chance.random() < 0.6:
        text += _limit(per, isinstance(query.form, ast.Ask), chance)
    case = replace(case, query=text)
    try:
        spaseq.compile(case.query)
    except QueryError:
        return None
    return starred(case, seed) if chance.random() < 0.2 else case


def _variables(query: ast.Query, names: Sequence[str]) -> list[str]:
    """The variables of positive GPMs, without those for one use."""
    patterns = [define.pattern for define in query.defines if define.name in names]
    nodes = [node for pattern in patterns for node in ast.walk(pattern)]
    found = {node.name for node in nodes if isinstance(node, ast.Var)}
    return sorted(name for name in found if not name.startswith("_"))


def _grouped(
    text: str, query: ast.Query, variables: list[str], counted: str, chance: random.Random
) -> tuple[str, list[str]]:
    """The query, perhaps with GROUP, and what PER may name."""
    form = query.form
    if not isinstance(form, ast.Select):
        return text, variables
    if chance.random() < 0.6:
        within, select = (
            re.findall(f"^{word}.*", text, re.MULTILINE)[0] for word in ("WITHIN", "SELECT")
        )
        drawn = GroupDraw(_Random(chance), variables, lambda: counted, within)
        return text.replace(select, drawn.form(select), 1) + drawn.clause, drawn.shown
    if form.distinct and form.items is not None:
        shown = [item.alias or item.expression for item in form.items]
        return text, [each.name for each in shown if isinstance(each, ast.Var)]
    return text, variables


def _limit(per: Sequence[str], asks: bool, chance: random.Random) -> str:
    clause = f" LIMIT {chance.choice((1, 1, 2, 3))}"
    if per and not asks and chance.random() < 0.6:
        clause += f" PER ?{chance.choice(per)}"
    if chance.random() < 0.7:
        clause += f" EVERY {chance.choice((1, 2, 3, 5))} SECONDS"
    return clause

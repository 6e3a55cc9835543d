"""The trace of a run: one line per transition of an automaton, on standard error.

`SPASEQ_TRACE=1` switches it on for the runs that start afterwards. A transition extends all partial
matches of a group, or of a range of groups, at once; a step over several events is one transition.
Matches that end at an event are reported as they are found, transitions to places when the instant
closes. Places have the numbers that `spaseq explain` shows. A traced run always joins eagerly,
since a lazy join has no transitions before its last step.

Cost: a run that is not traced tests a flag once per instant and per completed group.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spaseq.engine.place_names import Notation
from spaseq.nfa.native.register_tables import FAILED, NEVER_BOUND, OPENED
from spaseq.rdf.event import Term, n_triples

if TYPE_CHECKING:
    from spaseq.engine.native.query_run import NativeRun

VARIABLE = "SPASEQ_TRACE"
TERM_MAX_CHARACTERS = 40
"""Longer terms are shortened in the middle."""

_SPECIAL = {0: "unbound", OPENED: "open", NEVER_BOUND: "never bound", FAILED: "error"}


def traced() -> bool:
    """Whether the environment asks for a trace."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


class Tracer:
    """Writes the transitions of one query; an instance is the tracer of `OpenInstant.trace`."""

    def __init__(self, native: NativeRun):
        self._native = native
        self._notation = Notation(native.compiled)

    def __call__(self, address: int, target: int, values: Sequence[int]) -> None:
        label = self._native.parts.label(address)
        place, position = label[:2]
        edge = self._notation.automaton.places[place].edges[position]
        event = self._native.event_of(label, whole=False)
        plan = self._notation.plan
        stream = f"{event.stream} " if len(plan.streams) > 1 else ""
        source = f" ({event.origin})" if event.origin else ""
        print(
            f"trace {plan.name}: {stream}{event.time.term.value} #{event.ordinal}{source}: "
            f"place {self._notation.numbers[place]} -{self._notation.edge(edge)}-> "
            f"{self._target(target)}{self._registers(target, values)}",
            file=sys.stderr,
        )

    def _target(self, target: int) -> str:
        if target < 0:
            return "accept"
        number = self._notation.numbers.get(target)
        return "accept at the closing of the window" if number is None else f"place {number}"

    def _registers(self, target: int, values: Sequence[int]) -> str:
        if target < 0:
            return ""
        tables = self._native.tables
        _, first, end, _, _ = tables.places[target]
        shown = ", ".join(
            f"{self._notation.plan.registers[register].name} = {self._value(register, value)}"
            for register, value in zip(tables.numbers[first:end], values, strict=True)
        )
        return f" [{shown}]"

    def _value(self, register: int, value: int) -> str:
        described = self._notation.plan.registers[register]
        if described.is_number or described.function == "COUNT":
            return str(value)
        return _SPECIAL.get(value) or _shortened(self._native.parts.term(value))


def _shortened(term: Term | None) -> str:
    text = "None" if term is None else n_triples(term)
    if len(text) <= TERM_MAX_CHARACTERS:
        return text
    half = (TERM_MAX_CHARACTERS - 1) // 2
    return f"{text[:half]}…{text[-half:]}"

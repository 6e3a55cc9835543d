"""The parts of a query's matches that compiled code creates, without listing matches in Python.

The columns of a `SELECT` are registers, which matches read from the rows of their events, or
expressions, which the output stage computes. If results depend on each other, or need more than
registers, the matches of an instant are gathered first (`spaseq.engine.native._matches`).
"""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.engine.compiled import CompiledQuery, shared_selection
from spaseq.nfa.automaton import Automaton
from spaseq.nfa.native import tables
from spaseq.nfa.registers import RegisterFile
from spaseq.parser import ast
from spaseq.plan.logical import Condition, QueryPlan
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class Listing:
    """How the core lists the matches of an instant."""

    chooses: bool
    """Whether `EMIT` must choose among all of them."""
    repeats: bool
    """Whether a match can be found more than once."""


@dataclass(frozen=True, slots=True)
class Projection:
    """The columns of a query's matches, and how the matches are collected."""

    columns: Sequence[tuple[str, int | None]]
    """The columns of a SELECT, each with its register, or None if it is computed."""
    template: Sequence[tuple[str, int]]
    """The variables of the template of a CONSTRUCT, each with its register."""
    gathers: bool
    """Whether all matches of an instant are gathered before the first one is created."""

    @property
    def computed(self) -> list[int]:
        """The positions of the computed columns."""
        return [place for place, (_, register) in enumerate(self.columns) if register is None]

    def registers(self, first: int) -> list[tuple[str, int]]:
        """The columns with their registers; computed columns have numbers from `first`."""
        numbers = iter(range(first, first + len(self.columns)))
        return [(name, next(numbers) if r is None else r) for name, r in self.columns]


def listing(compiled: CompiledQuery) -> Listing | None:
    """How the core lists the matches of an instant of a query; None if Python lists them.

    Python lists them if `AFTER MATCH` affects matches that wait, that `EMIT` chooses among all
    matches of an instant, or of which `SKIP TO` must see each once.
    """
    plan, automaton = compiled.plan, compiled.automaton
    if _repeats_deadlines(automaton):
        return None
    skips = plan.skip_past_last or plan.skip_to is not None
    waits = automaton.waits or automaton.expires
    chooses = not _is_selected(compiled)
    if (skips and (waits or chooses)) or (chooses and plan.emit == "STRICT"):
        return None
    if automaton.ambiguous and plan.skip_to is not None:
        return None
    return Listing(chooses, automaton.ambiguous)


def projection(compiled: CompiledQuery, registers: RegisterFile) -> Projection | None:
    """The projection of a query; None if its results are grouped, or if Python makes its matches.

    Python makes them if it lists them (`listing`), and in queries that register a stream.
    """
    plan, output = compiled.plan, compiled.plan.output
    listed = listing(compiled)
    if listed is None or output.grouping is not None or plan.registers_stream is not None:
        return None
    columns = [(column.name, _register(plan, registers, column.value)) for column in output.columns]
    template = [(name, registers.number[register]) for name, register in output.template_registers]
    limited = output.limit is not None and (
        plan.skip_past_last or shared_selection(compiled) != "LIMIT"
    )
    computes = any(register is None for _, register in columns)
    gathers = limited or computes or output.distinct or output.form != "select"
    return Projection(columns, template, gathers or listed.chooses or listed.repeats)


def projected_registers(
    compiled: CompiledQuery, registers: RegisterFile
) -> list[tuple[str, int]] | None:
    """The columns of a SELECT with their registers, if matches are created one by one.

    None if results depend on each other (except by `LIMIT` and `EMIT`), columns are computed, or
    duplicates can occur.
    """
    found = projection(compiled, registers)
    return None if found is None or found.gathers else found.registers(0)


def _is_selected(compiled: CompiledQuery) -> bool:
    """Whether the core finds only the matches that `EMIT` selects."""
    plan = compiled.plan
    return (
        plan.emit == "ALL"
        or shared_selection(compiled) == plan.emit
        or tables.joins_strictly(plan, compiled.automaton)
    )


def _repeats_deadlines(automaton: Automaton) -> bool:
    """Whether a deadline begins an iteration; a deadline is not an event of the match."""
    return any(
        edge.actions
        for number, place in enumerate(automaton.places)
        if automaton.deadline(number) is not None
        for edge in place.edges
    )


def _register(plan: QueryPlan, registers: RegisterFile, value: Condition) -> int | None:
    """The register that holds a column; None if it is computed."""
    expression = value.expression
    if not isinstance(expression, ast.Var) or expression.name in registers.views:
        return None
    number = registers.number.get(expression.name)
    if number is None or plan.registers[number].kind not in ("value", "last"):
        return None
    return number

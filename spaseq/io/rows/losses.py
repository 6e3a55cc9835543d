"""The counters of a reader of rows → the losses of a table, with the reasons in words.

Cost: a few evaluations in Python for each expression that erred.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spaseq.errors import InputUnit, input_place
from spaseq.gpm.expression_errors import (
    error_text,
    prefixes_of,
    shown_term,
    values_text,
    with_prefixes,
)
from spaseq.gpm.python.entry import Scope
from spaseq.io.losses import Loss
from spaseq.io.native._row_events import RowReader
from spaseq.io.rows.columns import variable_of
from spaseq.io.rows.mapping import RowMapping
from spaseq.io.rows.plan import RowPlan, Step
from spaseq.parser import ast
from spaseq.parser.format import expression_line, term_text
from spaseq.rdf.event import Term

Misfit = tuple[tuple[str, ...], tuple[str, ...], int, int, str]
"""A field with values that are no terms: its path, the variables that are read from it or below it,
how many such values, the line of the first one, and its beginning."""


class TableLosses:
    """The losses of one table, of which `unit` is the unit of positions."""

    def __init__(
        self, mapping: RowMapping, plan: RowPlan, reader: RowReader, name: str, unit: InputUnit
    ):
        self._plan = plan
        self._reader = reader
        self._name = name
        self._unit = unit
        self._prefixes = prefixes_of(mapping.tree)
        self._misfits: dict[tuple[str, ...], Misfit] = {}

    def add_misfits(self, misfits: Sequence[Misfit]) -> None:
        """Count the values of a block of JSON that are no terms of their fields."""
        for path, variables, count, line, example in misfits:
            _, _, before, first, shown = self._misfits.get(path, (path, (), 0, line, example))
            self._misfits[path] = (path, variables, before + count, first, shown)

    def losses(self) -> Iterator[Loss]:
        """The losses so far."""
        rows, empty, first = self._reader.row_counts()
        for step, counts in zip(self._plan.steps, self._reader.step_errors(), strict=True):
            if counts[1] or counts[2]:
                yield self._of_step(step, *counts)
        for path, variables, count, line, example in self._misfits.values():
            own = variable_of(path)
            wanted = "one value" if own in variables else "an object"
            unbound = ", ".join(f"?{name}" for name in variables)
            are = "is" if len(variables) == 1 else "are"
            text = f"{example} is not {wanted}, so {unbound} {are} unbound"
            yield Loss("field", ".".join(path), count, rows, 0, self._place(line), text)
        misplaced = self._reader.misplaced_terms()
        for triple, (count, position, term) in zip(self._plan.template, misplaced, strict=True):
            if count and term is not None:
                yield self._of_triple(triple, count, rows, position, term)
        if empty:
            text = "no variable of the template has a value" if self._plan.triples else ""
            yield Loss("row", "", empty, rows, 0, self._place(first), text)

    def _place(self, position: int) -> str:
        return input_place(self._name, position, self._unit)

    def _of_step(
        self,
        step: Step,
        rows: int,
        erred: int,
        unbound: int,
        position: int,
        terms: list[Term] | None,
    ) -> Loss:
        element = step.element
        if isinstance(element, ast.Bind):
            expression = element.expression
            text = f"BIND({self._text(expression)} AS ?{element.variable.name})"
        else:
            expression = element.condition
            text = f"FILTER({self._text(expression)})"
        example, place = "", ""
        if terms is not None:
            row: dict[str, Term | None] = dict(zip(step.names, terms, strict=True))
            example = error_text(expression, row, Scope(), self._prefixes) or ""
            example = example or values_text(expression, row, self._prefixes)
            place = self._place(position)
        return Loss("expression", text, erred, rows, unbound, place, example)

    def _of_triple(
        self, triple: ast.Triple, count: int, rows: int, position: int, term: Term
    ) -> Loss:
        parts = (triple.subject, triple.predicate, triple.object)
        text = " ".join(term_text(part, self._prefixes) for part in parts)  # type: ignore[arg-type]
        shown = f"{shown_term(term, self._prefixes)} is no IRI; IRI(…) makes an IRI of a string"
        return Loss("triple", text, count, rows, 0, self._place(position), shown)

    def _text(self, expression: ast.Expr) -> str:
        return with_prefixes(expression_line(expression, self._prefixes), self._prefixes)

"""The errors of a filter or a BIND of a run, with the first row on which it erred."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from spaseq.rdf.event import Term

Example: TypeAlias = Mapping[Any, Term | None]
"""The terms that an expression read, by column or by the name of the variable."""


@dataclass(slots=True)
class ErrorCount:
    """The errors of one expression: a filter that errs is false, a BIND that errs binds nothing."""

    count: int = 0
    """Evaluations that gave no value."""
    has_value: bool = False
    """Whether another evaluation gave a value: a filter was true or false."""
    example: Example | None = None
    """The first row without a value."""

    def __bool__(self) -> bool:
        return self.count > 0

    def __add__(self, other: ErrorCount) -> ErrorCount:
        first = other.example if self.example is None else self.example
        return ErrorCount(self.count + other.count, self.has_value or other.has_value, first)

    def see(self, value: object, row: Callable[[], Example]) -> None:
        """Count an evaluation; None is an error. Only the first error needs its row."""
        if value is not None:
            self.has_value = True
            return
        self.count += 1
        if self.example is None:
            self.example = row()

    def named(self, names: Sequence[str]) -> ErrorCount:
        """The same count, with the names of the columns in place of their numbers."""
        if self.example is None:
            return self
        example = {
            names[column] if isinstance(column, int) else column: term
            for column, term in self.example.items()
        }
        return replace(self, example=example)

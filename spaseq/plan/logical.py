"""The logical plan of one query: what the text means, ready for the compilers.

Everything here is frozen and picklable. Expressions are SPARQL expressions again: every
`PREV`, aggregate and reference to another iteration has become a plain variable that
names a `Register`; `gpm` compiles them, `nfa` keeps the registers. Filters are split:

* *local*: decided by the mapping of one GPM alone, tested once per event;
* *key*: equality of variables that two steps share, or that a filter compares by `=`: an
  index of the automaton (the filter is tested all the same);
* *residual*: everything else, tested where partial match and event meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spaseq.errors import Diagnostic
from spaseq.parser import ast

RegisterKind = Literal["value", "previous", "first", "last", "aggregate", "count", "iterations"]


@dataclass(frozen=True, slots=True)
class Register:
    """One thing a partial match remembers.

    value       the variable's value; inside its iterated unit, the current iteration's
    previous    the value of the previous iteration of the current run (`PREV`)
    first, last the value of the first or last visible iteration
    aggregate   the running state of `function` over the visible iterations
    count       how many visible witnesses the GPM has (`COUNT(B)`)
    iterations  the number of the current iteration within its run, from 1

    `unit` is the iterated unit whose iterations the register follows (None: no iteration);
    a new iteration of `scope` makes it forget (None: never). `limit` bounds `iterations`:
    greater numbers need not be told apart.
    """

    name: str
    kind: RegisterKind
    variable: str = ""
    unit: int | None = None
    scope: int | None = None
    function: str = ""
    distinct: bool = False
    separator: str | None = None
    limit: int = 0

    @property
    def again(self) -> int | None:
        """The number of every iteration but the first, where these are not told apart."""
        return self.limit if self.kind == "iterations" and self.limit <= 2 else None


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression over register names, and the registers it reads."""

    expression: ast.Expr
    reads: frozenset[str]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A stateful BIND: `register` takes the value, and joins like any other."""

    variable: str
    value: Condition


@dataclass(frozen=True, slots=True)
class GpmPlan:
    """One GPM: the pattern each event is matched against, and its local filters.

    `local` name only variables of the pattern; `variables` (sorted, `at` last) is the
    order of a row's columns, `certain` those bound in every row.
    """

    name: str
    streams: tuple[str, ...]
    pattern: ast.GroupGraphPattern
    at: str | None
    variables: tuple[str, ...]
    certain: frozenset[str]
    local: tuple[Condition, ...]
    positive: bool


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place of a GPM in the SEQ, with what is decided only there."""

    index: int
    gpm: int
    units: tuple[int, ...]
    negated: bool
    assignments: tuple[Assignment, ...]
    residual: tuple[Condition, ...]
    counts: tuple[str, ...]
    """The `count` registers that a witness of this occurrence raises."""
    equalities: tuple[tuple[str, str], ...] = ()
    """(own variable, register) pairs that some residual filter wants equal by value."""
    comparisons: tuple[tuple[str, bool, str, int | None], ...] = ()
    """(own variable, whether it must be the greater, register, the unit in whose first iteration
    alone that is asked or None) of residual filters."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The values of its stateful BINDs, then its residual filters."""
        return (*(assignment.value for assignment in self.assignments), *self.residual)


@dataclass(frozen=True, slots=True)
class IteratedUnit:
    """A step under an iterating quantifier; `parent` is the next one around it."""

    parent: int | None
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Window:
    kind: Literal["span", "tumbling", "events", "unbounded"]
    size: int = 0
    """Microseconds, or events."""


@dataclass(frozen=True, slots=True)
class Projected:
    """One column of a SELECT; its expression may also name the columns before it."""

    name: str
    value: Condition


@dataclass(frozen=True, slots=True)
class Output:
    """What a match becomes: exactly one of `columns` (SELECT), `template`, neither (ASK)."""

    form: Literal["select", "construct", "ask"]
    columns: tuple[Projected, ...] = ()
    template: tuple[ast.Triple, ...] = ()
    template_registers: tuple[tuple[str, str], ...] = ()
    """(variable, register that holds it), in the order the template names them."""
    distinct: bool = False
    limit: int | None = None
    order: tuple[tuple[str, str], ...] = ()
    """(variable, register that holds it) of all variables of positive GPMs, in order of name:
    they order results of the same events. Empty where no clause depends on that order."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    name: str
    source: str
    streams: tuple[str, ...]
    """IRIs in the order of declaration, each once."""
    kb_graphs: tuple[str, ...] | None
    gpms: tuple[GpmPlan, ...]
    occurrences: tuple[Occurrence, ...]
    units: tuple[IteratedUnit, ...]
    registers: tuple[Register, ...]
    partition: tuple[str, ...]
    sequence: ast.Sequence
    window: Window
    emit: Literal["ALL", "ANY", "NEXT", "LAST", "MAX", "STRICT"]
    skip_past_last: bool
    output: Output
    registers_stream: str | None
    warnings: tuple[Diagnostic, ...]

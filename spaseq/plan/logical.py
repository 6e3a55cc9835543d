"""The logical plan of one query: its meaning, in the form that the compilers read.

All classes are frozen and picklable. Expressions are plain SPARQL expressions: the planner has
replaced every `PREV`, aggregate and reference to another iteration by a variable that names a
`Register`. `gpm` compiles the expressions, `nfa` maintains the registers. Filters are split:

* *local*: depends on the row of one GPM alone; evaluated once per event;
* *key*: an equality between two steps, by a shared variable or a filter with `=`; becomes an
  index of the automaton (the filter is still evaluated);
* *residual*: everything else; evaluated where a row meets a partial match.
"""

from __future__ import annotations

from typing import Literal

from spaseq.errors import Diagnostic
from spaseq.parser import ast
from spaseq.records import dataclass

RegisterKind = Literal[
    "value", "previous", "first", "last", "aggregate", "count", "iterations", "mark"
]


@dataclass(frozen=True, slots=True)
class Register:
    """One value that a partial match stores. `kind` says which:

    value       the variable's value; inside its iterated unit, the current iteration's
    previous    the value of the previous iteration of the current run (`PREV`)
    first, last the value of the first or last visible iteration
    aggregate   the running state of `function` over the visible iterations
    count       the number of visible witnesses of the GPM (`COUNT(B)`)
    iterations  the number of the current iteration within its run, from 1
    mark        half of the time from which the bound of a unit counts

    `unit` is the iterated unit whose iterations update the register (None: no iteration). A new
    iteration of `scope` resets it (None: never). `iterations` counts up to `limit`: greater
    numbers are equivalent.
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
    def is_number(self) -> bool:
        """Whether it holds a number that is not a term."""
        return self.kind in ("iterations", "count", "mark")

    @property
    def again(self) -> int | None:
        """The count of every iteration after the first if they are all equivalent, else None."""
        return self.limit if self.kind == "iterations" and self.limit <= 2 else None


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression over register names, and the registers it reads."""

    expression: ast.Expr
    reads: frozenset[str]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A stateful BIND: `variable` is bound to `value`, and joins like any other variable."""

    variable: str
    value: Condition


@dataclass(frozen=True, slots=True)
class GpmPlan:
    """One GPM: the pattern that each event is matched against, and its local filters.

    The filters `local` name only variables of the pattern. `variables` (sorted, `at` last) are
    the columns of a row in order; `certain` are the variables bound in every row.
    """

    name: str
    streams: tuple[str, ...]
    pattern: ast.GroupGraphPattern
    at: str | None
    variables: tuple[str, ...]
    certain: frozenset[str]
    local: tuple[Condition, ...]
    positive: bool
    floor: ast.Floor | None = None
    """In a template: the floor of the partial matches that wait for the GPM."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place of a GPM in the SEQ, with the conditions evaluated there."""

    index: int
    gpm: int
    units: tuple[int, ...]
    negated: bool
    assignments: tuple[Assignment, ...]
    residual: tuple[Condition, ...]
    counts: tuple[str, ...]
    """The `count` registers that a witness of this occurrence increments."""
    equalities: tuple[tuple[str, str], ...] = ()
    """(own variable, register) pairs that some residual filter requires to be equal by value."""
    comparisons: tuple[tuple[str, bool, str, int | None], ...] = ()
    """(own variable, whether it must be the greater, register, unit) of residual filters. If
    `unit` is not None, the comparison applies only in the first iteration of that unit."""

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
    """The window of a match; `spaseq.nfa.window` has its times."""

    kind: ast.WindowKind
    size: int = 0
    """Microseconds, or events."""

    @property
    def is_of_time(self) -> bool:
        """Whether the window closes at a time."""
        return self.kind.is_of_time

    @property
    def counts_events(self) -> bool:
        """Whether it limits the number of events."""
        return not self.is_of_time and self.kind is ast.WindowKind.EVENTS

    @property
    def is_endless(self) -> bool:
        """Whether matches may take any time."""
        return not self.is_of_time and self.kind is ast.WindowKind.UNBOUNDED

    @property
    def tumbles(self) -> bool:
        """Whether the window closes before the events of its closing time."""
        return self.kind.tumbles


@dataclass(frozen=True, slots=True)
class Projected:
    """One column of a SELECT; its expression may also name the columns before it."""

    name: str
    value: Condition


@dataclass(frozen=True, slots=True)
class ResultAggregate:
    """An aggregate over the results of a group; expressions name it by `name`."""

    name: str
    function: str
    argument: int | None
    """The index of its argument in `Grouping.arguments`; None for `COUNT(*)`."""
    distinct: bool
    separator: str | None


@dataclass(frozen=True, slots=True)
class Grouping:
    """`GROUP BY … OVER … LET … HAVING`.

    A result gives `keys` and `arguments`, which may name the keys before them. `lets`, then the
    columns of the output, then `having` name keys, aggregates, and the columns before them.
    """

    keys: tuple[Projected, ...]
    arguments: tuple[Condition, ...]
    aggregates: tuple[ResultAggregate, ...]
    lets: tuple[Projected, ...]
    having: tuple[ast.Expr, ...]
    size: int
    """Microseconds."""
    tumbling: bool


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a match: `columns` (SELECT), `template` (CONSTRUCT), or neither (ASK).

    With `grouping` it is the result of a group. Then the columns, and `template_registers`, name
    keys, aggregates and what `LET` binds in place of registers.
    """

    form: Literal["select", "construct", "ask"]
    columns: tuple[Projected, ...] = ()
    template: tuple[ast.Triple, ...] = ()
    template_registers: tuple[tuple[str, str], ...] = ()
    """(variable, register that holds it), in the order of the template."""
    distinct: bool = False
    limit: int | None = None
    """The number of `LIMIT`, for each instant or for each span of `every`."""
    per: tuple[str, ...] = ()
    """The variables of `PER`: the limit holds for each of their values."""
    every: int | None = None
    """`EVERY`, in microseconds."""
    order: tuple[tuple[str, str], ...] = ()
    """(variable, register that holds it) of all variables of positive GPMs, sorted by name. They
    order the results of the same events. Empty if no clause depends on that order."""
    grouping: Grouping | None = None

    @property
    def limits_instants(self) -> bool:
        """Whether `LIMIT` counts the results of an instant, whatever their values."""
        return self.limit is not None and not self.per and self.every is None


@dataclass(frozen=True, slots=True)
class SkipTo:
    """`AFTER MATCH SKIP TO`: a match ends the starts before its first or last event of some places.

    Its own start always ends; with `next`, no other one does.
    """

    target: Literal["next", "first", "last"]
    occurrences: frozenset[int] = frozenset()
    name: str = ""


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
    emit: ast.EmitMode
    skip_past_last: bool
    skip_to: SkipTo | None
    output: Output
    registers_stream: str | None
    warnings: tuple[Diagnostic, ...]
    shown_as: str | None = None
    """The name of the query in its matches, if it differs: an old version of a query that continues
    beside the new one has a separate name in the run."""

    @property
    def shown(self) -> str:
        """The name of the query in its matches."""
        return self.name if self.shown_as is None else self.shown_as

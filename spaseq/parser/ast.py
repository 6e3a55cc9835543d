"""The syntax tree of a SPAseq query: what the text says, with the place where it says it.

Nodes are frozen and compare by content; spans are left out of equality, so that
`parse(format(q)) == q`. Prefixed and relative IRIs are already absolute, lists and
`[...]` are already triples with blank nodes; nothing else is resolved: whether a GPM
exists, or a variable can be bound, is a question for `plan`.

Names follow the grammars of LANGUAGE (docs/language.md) and of SPARQL 1.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from spaseq.errors import NOWHERE, Span


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False)


# ------------------------------------------------------------------ RDF terms and variables


@dataclass(frozen=True, slots=True)
class Var:
    """`?name`, without its mark."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Iri:
    """An absolute IRI."""

    value: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal as written: `datatype` is absolute, `language` keeps its letters."""

    lexical: str
    datatype: str = "http://www.w3.org/2001/XMLSchema#string"
    language: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class BlankNode:
    """A blank node of a pattern or template; `label` is unique to the query."""

    label: str
    span: Span = _span()


Term: TypeAlias = Var | Iri | Literal | BlankNode


# ------------------------------------------------------------------ property paths


@dataclass(frozen=True, slots=True)
class InversePath:
    path: Path
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class SequencePath:
    paths: tuple[Path, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AlternativePath:
    paths: tuple[Path, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class RepeatPath:
    """`path*`, `path+` or `path?`."""

    path: Path
    modifier: OneOf["*", "+", "?"]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class NegatedPath:
    """`!(a | ^b)`: the forbidden predicates, forward and inverse."""

    forward: tuple[Iri, ...]
    inverse: tuple[Iri, ...]
    span: Span = _span()


Path: TypeAlias = Iri | InversePath | SequencePath | AlternativePath | RepeatPath | NegatedPath


# ------------------------------------------------------------------ expressions


@dataclass(frozen=True, slots=True)
class Unary:
    operator: OneOf["!", "-", "+"]
    operand: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Binary:
    """`left operator right`; `a + b + c` nests to the left."""

    operator: OneOf["||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"]
    left: Expr
    right: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class In:
    operand: Expr
    choices: tuple[Expr, ...]
    negated: bool
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """A built-in function, its name in capitals: `BOUND`, `STRLEN`, `IF`, `COALESCE`, …"""

    name: str
    arguments: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function named by an IRI: casts (`xsd:integer(?x)`) and extensions."""

    function: Iri
    arguments: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Exists:
    group: GroupGraphPattern
    negated: bool
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class GpmName:
    """A bare name as an aggregate's argument: `COUNT(B)`."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`COUNT`, `SUM`, `MIN`, `MAX`, `AVG`, `SAMPLE`, `GROUP_CONCAT`, and SPAseq's `FIRST`, `LAST`.

    `argument` is None for `COUNT(*)`. `separator` belongs to `GROUP_CONCAT` (None: a space).
    """

    name: str
    argument: Expr | GpmName | None
    distinct: bool = False
    separator: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Prev:
    """`PREV(?v)` or `PREV(?v, default)`."""

    variable: Var
    default: Expr | None = None
    span: Span = _span()


Expr: TypeAlias = (
    Var | Iri | Literal | Unary | Binary | In | Call | FunctionCall | Exists | Aggregate | Prev
)


# ------------------------------------------------------------------ graph patterns


@dataclass(frozen=True, slots=True)
class Triple:
    """A triple pattern, or a path pattern where `predicate` is no plain term."""

    subject: Term
    predicate: Var | Path
    object: Term
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Bind:
    expression: Expr
    variable: Var
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Optional:
    group: GroupGraphPattern
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Union:
    """`{…} UNION {…}`; two alternatives at least (one alone is a `SubGroup`)."""

    alternatives: tuple[GroupGraphPattern, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class SubGroup:
    """A nested `{…}`."""

    group: GroupGraphPattern
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Minus:
    group: GroupGraphPattern
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Graph:
    name: Var | Iri
    group: GroupGraphPattern
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Service:
    name: Var | Iri
    silent: bool
    group: GroupGraphPattern
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Values:
    """Inline data; None stands for `UNDEF`."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Iri | Literal | None, ...], ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class SubSelect:
    """A SPARQL sub-query: `{ SELECT … WHERE {…} GROUP BY … }`."""

    distinct: bool
    reduced: bool
    items: tuple[Projection, ...] | None
    """None for `SELECT *`."""
    where: GroupGraphPattern
    group_by: tuple[Projection, ...] = ()
    """Expressions, each with its `AS` variable or None."""
    having: tuple[Expr, ...] = ()
    order_by: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int | None = None
    values: Values | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class OrderKey:
    expression: Expr
    descending: bool
    span: Span = _span()


Element: TypeAlias = (
    Triple
    | Filter
    | Bind
    | Optional
    | Union
    | SubGroup
    | Minus
    | Graph
    | Service
    | Values
    | SubSelect
)


@dataclass(frozen=True, slots=True)
class GroupGraphPattern:
    """`{ … }`: the elements in the order of the text.

    A sub-query in braces is a group whose only element is a `SubSelect`.
    """

    elements: tuple[Element, ...]
    span: Span = _span()


# ------------------------------------------------------------------ sequence expressions


@dataclass(frozen=True, slots=True)
class GpmRef:
    """A GPM's name where it stands in the `SEQ`: one place."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Conjunction:
    """`(A & B)`, also written `<>`."""

    operands: tuple[Unit, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Disjunction:
    """`(A | B)`, also written `OR`."""

    operands: tuple[Unit, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """`(A AND B)`."""

    operands: tuple[Unit, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Quantifier:
    """At least `least` and at most `most` times (None: no upper bound).

    `+` is (1, None), `*` is (0, None), `{m}` is (m, m). `?` is `optional` with (0, 1):
    it is no iteration.
    """

    least: int
    most: int | None
    optional: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a sequence: the operator in front (None for the first), unit, quantifier."""

    operator: OneOf[",", ";", ":"] | None
    unit: Unit
    quantifier: Quantifier | None = None
    negated: bool = False
    span: Span = _span()
    operator_span: Span = _span()


@dataclass(frozen=True, slots=True)
class Sequence:
    """A sequence of steps: the whole `SEQ(…)`, or one in parentheses.

    `SEQ(A & B)` is a sequence of the one step `(A & B)`.
    """

    steps: tuple[Step, ...]
    span: Span = _span()


Unit: TypeAlias = GpmRef | Sequence | Conjunction | Disjunction | AnyOrder


# ------------------------------------------------------------------ the query


@dataclass(frozen=True, slots=True)
class Prologue:
    """`BASE` and `PREFIX`, kept for formatting only: IRIs in the tree are absolute."""

    base: str | None = None
    prefixes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Register:
    """`REGISTER QUERY name AS` or `REGISTER STREAM <iri> AS`."""

    kind: OneOf["QUERY", "STREAM"]
    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Projection:
    """`?v` (alias None) or `(expression AS ?alias)`."""

    expression: Expr
    alias: Var | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Select:
    """`items` is None for `SELECT *`."""

    items: tuple[Projection, ...] | None
    distinct: bool = False
    reduced: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Construct:
    template: tuple[Triple, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Ask:
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Within:
    """`WITHIN`: `kind` says which fields count.

    `microseconds` for a span and for tumbling windows, `events` for `n EVENTS`.
    """

    kind: OneOf["span", "tumbling", "events", "unbounded"]
    microseconds: int = 0
    events: int = 0
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class PartitionBy:
    variables: tuple[Var, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class FromStream:
    name: str
    iri: Iri
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class FromKb:
    iri: Iri
    named: bool
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Emit:
    mode: OneOf["ALL", "ANY", "NEXT", "LAST", "MAX", "STRICT"]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AfterMatch:
    mode: OneOf["KEEP ALL", "SKIP PAST LAST EVENT"]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Limit:
    count: int
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Define:
    """`DEFINE GPM name ON stream, … AT ?t { … }`."""

    name: str
    streams: tuple[str, ...]
    pattern: GroupGraphPattern
    at: Var | None = None
    span: Span = _span()
    name_span: Span = _span()
    stream_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query. A clause that may stand once is None where the text leaves it out."""

    form: Select | Construct | Ask
    sequence: Sequence
    defines: tuple[Define, ...]
    prologue: Prologue = Prologue()
    register: Register | None = None
    within: Within | None = None
    partition: PartitionBy | None = None
    streams: tuple[FromStream, ...] = ()
    kbs: tuple[FromKb, ...] = ()
    emit: Emit | None = None
    after_match: AfterMatch | None = None
    limit: Limit | None = None
    span: Span = _span()
    text: str = field(default="", compare=False, repr=False)


Node: TypeAlias = object


def walk(node: Node) -> Iterator[Node]:
    """Every dataclass node of a tree, itself first, in the order of the text."""
    if isinstance(node, tuple):
        for item in node:
            yield from walk(item)
    elif is_dataclass(node) and not isinstance(node, Span):
        yield node
        for part in fields(node):
            yield from walk(getattr(node, part.name))

"""The SPARQL part of the syntax tree: terms, paths, expressions, graph patterns.

`spaseq.parser.ast` defines the other nodes and re-exports these: import them from there.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal as OneOf
from typing import TypeAlias

from spaseq.errors import NOWHERE, Span
from spaseq.records import dataclass


def no_span() -> Span:
    """A span field that comparisons and `repr` ignore."""
    return field(default=NOWHERE, compare=False, repr=False)


# ------------------------------------------------------------------ RDF terms and variables


@dataclass(frozen=True, slots=True)
class Var:
    """A variable; `name` is without the `?`."""

    name: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Iri:
    """An absolute IRI."""

    value: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal as written: `datatype` is absolute, the case of `language` is preserved."""

    lexical: str
    datatype: str = "http://www.w3.org/2001/XMLSchema#string"
    language: str | None = None
    direction: str | None = None
    """The base direction of a literal with a language: `ltr` or `rtl`."""
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class BlankNode:
    """A blank node of a pattern or template; `label` is unique to the query."""

    label: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class TripleTerm:
    """A triple term without variables and blank nodes.

    One with some is a blank node of the pattern, whose parts a `Triple` describes (`of`).
    """

    subject: Iri
    predicate: Iri
    object: Constant
    span: Span = no_span()


Constant: TypeAlias = Iri | Literal | TripleTerm
Term: TypeAlias = Var | Constant | BlankNode


# ------------------------------------------------------------------ property paths


@dataclass(frozen=True, slots=True)
class InversePath:
    path: Path
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class SequencePath:
    paths: tuple[Path, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class AlternativePath:
    paths: tuple[Path, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class RepeatPath:
    """`path*`, `path+` or `path?`."""

    path: Path
    modifier: OneOf["*", "+", "?"]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class NegatedPath:
    """`!(a | ^b)`: the forbidden predicates, forward and inverse."""

    forward: tuple[Iri, ...]
    inverse: tuple[Iri, ...]
    span: Span = no_span()


Path: TypeAlias = Iri | InversePath | SequencePath | AlternativePath | RepeatPath | NegatedPath


# ------------------------------------------------------------------ expressions


@dataclass(frozen=True, slots=True)
class Unary:
    operator: OneOf["!", "-", "+"]
    operand: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Binary:
    """`left operator right`; `a + b + c` nests to the left."""

    operator: OneOf["||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"]
    left: Expr
    right: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class In:
    operand: Expr
    choices: tuple[Expr, ...]
    negated: bool
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Call:
    """A built-in function, with its name in upper case: `BOUND`, `STRLEN`, `IF`, …"""

    name: str
    arguments: tuple[Expr, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function named by an IRI: casts (`xsd:integer(?x)`) and extensions."""

    function: Iri
    arguments: tuple[Expr, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Exists:
    group: GroupGraphPattern
    negated: bool
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class GpmName:
    """A bare name as an aggregate's argument: `COUNT(B)`."""

    name: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`COUNT`, `SUM`, `MIN`, `MAX`, `AVG`, `SAMPLE`, `GROUP_CONCAT`, and SPAseq's `FIRST`, `LAST`.

    `argument` is None for `COUNT(*)`. `separator` applies to `GROUP_CONCAT` (None: a space).
    """

    name: str
    argument: Expr | GpmName | None
    distinct: bool = False
    separator: str | None = None
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Prev:
    """`PREV(?v)` or `PREV(?v, default)`."""

    variable: Var
    default: Expr | None = None
    span: Span = no_span()


Expr: TypeAlias = (
    Var | Constant | Unary | Binary | In | Call | FunctionCall | Exists | Aggregate | Prev
)


# ------------------------------------------------------------------ graph patterns


@dataclass(frozen=True, slots=True)
class Triple:
    """A triple pattern, or a path pattern if `predicate` is neither an IRI nor a variable.

    With `of`, it is not a triple of the graph: it says that the node `of`, which occurs in another
    triple of the same basic pattern, is a triple term with these parts.
    """

    subject: Term
    predicate: Var | Path
    object: Term
    span: Span = no_span()
    of: BlankNode | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Expr
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Bind:
    expression: Expr
    variable: Var
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Optional:
    group: GroupGraphPattern
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Union:
    """`{…} UNION {…}`, at least two alternatives (a single one is a `SubGroup`)."""

    alternatives: tuple[GroupGraphPattern, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class SubGroup:
    """A nested `{…}`."""

    group: GroupGraphPattern
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Minus:
    group: GroupGraphPattern
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Graph:
    name: Var | Iri
    group: GroupGraphPattern
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Service:
    name: Var | Iri
    silent: bool
    group: GroupGraphPattern
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Values:
    """Inline data; None is `UNDEF`."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Constant | None, ...], ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Projection:
    """`?v` (alias None) or `(expression AS ?alias)`."""

    expression: Expr
    alias: Var | None = None
    span: Span = no_span()


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
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class OrderKey:
    expression: Expr
    descending: bool
    span: Span = no_span()


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
    """`{ … }`: the elements in text order.

    A sub-query in braces is a group whose only element is a `SubSelect`.
    """

    elements: tuple[Element, ...]
    span: Span = no_span()

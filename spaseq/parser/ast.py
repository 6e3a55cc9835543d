"""The syntax tree of a SPAseq query; each node has the span of text it was parsed from.

Nodes are frozen and compare by content. Equality ignores spans, so that
`parse(format(q)) == q`. The parser makes prefixed and relative IRIs absolute, and turns lists
and `[...]` into triples with blank nodes. It resolves nothing else: `plan` checks whether a GPM
exists and whether a variable can be bound.

Node names follow the grammars of SPAseq (docs/language.md section 2) and of SPARQL 1.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, fields, is_dataclass, replace
from enum import StrEnum
from operator import attrgetter, is_
from typing import Any, TypeAlias, assert_never
from typing import Literal as OneOf

from spaseq.errors import Span
from spaseq.parser.sparql_ast import Aggregate as Aggregate
from spaseq.parser.sparql_ast import AlternativePath as AlternativePath
from spaseq.parser.sparql_ast import Binary as Binary
from spaseq.parser.sparql_ast import Bind as Bind
from spaseq.parser.sparql_ast import BlankNode as BlankNode
from spaseq.parser.sparql_ast import Call as Call
from spaseq.parser.sparql_ast import Constant as Constant
from spaseq.parser.sparql_ast import Element as Element
from spaseq.parser.sparql_ast import Exists as Exists
from spaseq.parser.sparql_ast import Expr as Expr
from spaseq.parser.sparql_ast import Filter as Filter
from spaseq.parser.sparql_ast import FunctionCall as FunctionCall
from spaseq.parser.sparql_ast import GpmName as GpmName
from spaseq.parser.sparql_ast import Graph as Graph
from spaseq.parser.sparql_ast import GroupGraphPattern as GroupGraphPattern
from spaseq.parser.sparql_ast import In as In
from spaseq.parser.sparql_ast import InversePath as InversePath
from spaseq.parser.sparql_ast import Iri as Iri
from spaseq.parser.sparql_ast import Literal as Literal
from spaseq.parser.sparql_ast import Minus as Minus
from spaseq.parser.sparql_ast import NegatedPath as NegatedPath
from spaseq.parser.sparql_ast import Optional as Optional
from spaseq.parser.sparql_ast import OrderKey as OrderKey
from spaseq.parser.sparql_ast import Path as Path
from spaseq.parser.sparql_ast import Prev as Prev
from spaseq.parser.sparql_ast import Projection as Projection
from spaseq.parser.sparql_ast import RepeatPath as RepeatPath
from spaseq.parser.sparql_ast import SequencePath as SequencePath
from spaseq.parser.sparql_ast import Service as Service
from spaseq.parser.sparql_ast import SubGroup as SubGroup
from spaseq.parser.sparql_ast import SubSelect as SubSelect
from spaseq.parser.sparql_ast import Term as Term
from spaseq.parser.sparql_ast import Triple as Triple
from spaseq.parser.sparql_ast import TripleTerm as TripleTerm
from spaseq.parser.sparql_ast import Unary as Unary
from spaseq.parser.sparql_ast import Union as Union
from spaseq.parser.sparql_ast import Values as Values
from spaseq.parser.sparql_ast import Var as Var
from spaseq.parser.sparql_ast import no_span
from spaseq.records import dataclass

# ------------------------------------------------------------------ sequence expressions


@dataclass(frozen=True, slots=True)
class GpmRef:
    """A GPM's name in the `SEQ`: one place."""

    name: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Conjunction:
    """`(A & B)`, also written `<>`."""

    operands: tuple[Unit, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Disjunction:
    """`(A | B)`, also written `OR`."""

    operands: tuple[Unit, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class AnyOrder:
    """`(A AND B)`."""

    operands: tuple[Unit, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Quantifier:
    """At least `least` and at most `most` times (None: no upper bound).

    `+` is (1, None), `*` is (0, None), `{m}` is (m, m). `?` is (0, 1) with `optional` set, since
    it makes a step optional without making it an iteration.
    """

    least: int
    most: int | None
    optional: bool = False
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Bound:
    """`WITHIN 5 SECONDS` after a step."""

    microseconds: int
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a sequence: its operator (None for the first step), unit and quantifier."""

    operator: OneOf[",", ";", ":"] | None
    unit: Unit
    quantifier: Quantifier | None = None
    negated: bool = False
    span: Span = no_span()
    operator_span: Span = no_span()
    bound: Bound | None = None


@dataclass(frozen=True, slots=True)
class Sequence:
    """A sequence of steps: the whole `SEQ(…)`, or one in parentheses.

    `SEQ(A & B)` is a sequence of the one step `(A & B)`.
    """

    steps: tuple[Step, ...]
    span: Span = no_span()


Unit: TypeAlias = GpmRef | Sequence | Conjunction | Disjunction | AnyOrder


# ------------------------------------------------------------------ the query


@dataclass(frozen=True, slots=True)
class Prologue:
    """`BASE`, `PREFIX` and `VERSION`, stored for formatting only: IRIs in the tree are absolute."""

    base: str | None = None
    prefixes: tuple[tuple[str, str], ...] = ()
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Register:
    """`REGISTER QUERY name AS` or `REGISTER STREAM <iri> AS`."""

    kind: OneOf["QUERY", "STREAM"]
    name: str
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Select:
    """`items` is None for `SELECT *`."""

    items: tuple[Projection, ...] | None
    distinct: bool = False
    reduced: bool = False
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Construct:
    template: tuple[Triple, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Ask:
    span: Span = no_span()


class WindowKind(StrEnum):
    """What limits a match. Whatever depends on the kind has a case for each, and for no other."""

    SPAN = "span"
    TUMBLING = "tumbling"
    EVENTS = "events"
    UNBOUNDED = "unbounded"

    @property
    def is_of_time(self) -> bool:
        """Whether the window closes at a time."""
        match self:
            case WindowKind.SPAN | WindowKind.TUMBLING:
                return True
            case WindowKind.EVENTS | WindowKind.UNBOUNDED:
                return False
            case _:
                assert_never(self)

    @property
    def tumbles(self) -> bool:
        """Whether it is of time and closes before the events of its closing time."""
        return self.is_of_time and self is WindowKind.TUMBLING

    def written(self, length: str) -> str:
        """What follows `WITHIN`; `length` is a duration, or a number of events."""
        match self:
            case WindowKind.SPAN:
                return length
            case WindowKind.TUMBLING:
                return f"TUMBLING {length}"
            case WindowKind.EVENTS:
                return f"{length} EVENTS"
            case WindowKind.UNBOUNDED:
                return "UNBOUNDED"
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True)
class Within:
    """`WITHIN`: `microseconds` applies to spans and tumbling windows, `events` to `n EVENTS`."""

    kind: WindowKind
    microseconds: int = 0
    events: int = 0
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class PartitionBy:
    variables: tuple[Var, ...]
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class FromStream:
    name: str
    iri: Iri
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class FromKb:
    iri: Iri
    named: bool
    span: Span = no_span()


EmitMode: TypeAlias = OneOf["ALL", "ANY", "NEXT", "LAST", "MAX", "STRICT"]
"""The modes of EMIT; `spaseq.nfa.selection` defines what each selects."""


@dataclass(frozen=True, slots=True)
class Emit:
    mode: EmitMode
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class AfterMatch:
    mode: OneOf["KEEP ALL", "SKIP PAST LAST EVENT", "SKIP TO NEXT", "SKIP TO FIRST", "SKIP TO LAST"]
    name: str = ""
    """The GPM of `SKIP TO FIRST` and `SKIP TO LAST`."""
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Over:
    """`OVER`: how far back a group reaches, or the length of its tumbling windows."""

    microseconds: int
    tumbling: bool = False
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class GroupResults:
    """`GROUP BY … OVER … LET … HAVING` over the results of a query."""

    keys: tuple[Projection, ...] = ()
    over: Over | None = None
    lets: tuple[Projection, ...] = ()
    having: tuple[Expr, ...] = ()
    span: Span = no_span()
    word_span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Every:
    """`EVERY`: the time for which the results that a limit returned count."""

    microseconds: int
    span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Limit:
    """`LIMIT n PER ?k EVERY d`."""

    count: int
    per: tuple[Var, ...] = ()
    every: Every | None = None
    span: Span = no_span()
    per_span: Span = no_span()


@dataclass(frozen=True, slots=True)
class Floor:
    """Of a step in a template: variables of `spaseq.plan.floors`, and the greatest rank."""

    register: str
    rank: str
    taken: str
    most: int


@dataclass(frozen=True, slots=True)
class Define:
    """`DEFINE GPM name ON stream, … AT ?t { … }`."""

    name: str
    streams: tuple[str, ...]
    pattern: GroupGraphPattern
    at: Var | None = None
    span: Span = no_span()
    name_span: Span = no_span()
    stream_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    floor: Floor | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query. A clause allowed at most once is None if the text omits it."""

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
    groups: GroupResults | None = None
    limit: Limit | None = None
    span: Span = no_span()
    text: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Mapping:
    """A `CONSTRUCT` that makes an event of each row of a table."""

    template: tuple[Triple, ...]
    where: GroupGraphPattern
    prologue: Prologue = Prologue()
    span: Span = no_span()
    text: str = field(default="", compare=False, repr=False)


Node: TypeAlias = object


_PLAIN = frozenset(("Span", "str", "bool", "int", "str | None", "int | None"))
"""The annotations of fields that hold no node."""


_PARTS: dict[type, tuple[str, ...] | None] = {}
"""A cache of `_parts`, which is called at every node of a tree."""


def _parts(kind: type) -> tuple[str, ...] | None:
    """The names of the fields of a class of nodes that may hold nodes; None for other classes."""
    if kind not in _PARTS:
        is_node = is_dataclass(kind) and kind is not Span
        named = fields(kind) if is_node else ()
        parts = tuple(part.name for part in named if part.type not in _PLAIN)
        _PARTS[kind] = parts if is_node else None
    return _PARTS[kind]


_Reader: TypeAlias = "Callable[[Any], tuple[Any, ...]]"

_READERS: dict[type, _Reader | bool] = {}
"""A cache of `_reader`."""


def _reader(kind: type) -> _Reader | bool:
    """A function that returns the parts of a node of a class, the last one first.

    True for classes of nodes without parts, False for classes that are not nodes.
    """
    parts = _parts(kind)
    if not parts:
        return parts is not None
    if len(parts) == 1:
        return lambda node: (getattr(node, parts[0]),)
    reader: _Reader = attrgetter(*reversed(parts))
    return reader


def walk(node: Node) -> Iterator[Node]:
    """Yield every dataclass node of a tree in preorder, which is text order."""
    pending = [node]
    while pending:
        one = pending.pop()
        kind = type(one)
        if kind is tuple:
            pending += one[::-1]  # type: ignore[index]
            continue
        if kind not in _READERS:
            _READERS[kind] = _reader(kind)
        reader = _READERS[kind]
        if reader is not False:
            yield one
            if reader is not True:
                pending += reader(one)


def rebuilt(node: Any, change: Callable[[Any], Any]) -> Any:
    """Replace each node by `change(node)`; where that is None, rebuild the node's children."""
    if isinstance(node, tuple):
        items = tuple([rebuilt(item, change) for item in node])
        return node if all(map(is_, node, items)) else items
    parts = _parts(type(node))
    if parts is None:
        return node
    changed = change(node)
    if changed is not None:
        return changed
    before = [getattr(node, part) for part in parts]
    after = [rebuilt(part, change) for part in before]
    if all(map(is_, before, after)):
        return node
    return replace(node, **dict(zip(parts, after, strict=True)))

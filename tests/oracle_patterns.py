"""Graph patterns and expressions of the reference semantics, evaluated by pyoxigraph.

A GPM over one event becomes a SPARQL query over a fresh store that holds the event's graph
as the default graph and the knowledge base as named graphs; an expression becomes a SELECT
over one row of `VALUES`. This module does not deal with sequences. Source: docs/language.md,
section 3. Cost: one pyoxigraph call for each new (pattern, event) and for each new
(expression, values); both are cached.

pyoxigraph treats literals with the same value as one term and writes them in canonical form. The
spelling of the data is restored. If a graph or the pattern has two spellings of one value, those
that are not canonical are replaced with literals of a special datatype. `oracle_numbers` evaluates
top-level filters, `SELECT` expressions and aggregates over numbers of many digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import oracle_numbers
import pyoxigraph as ox
from oracle_functions import CUSTOM

from spaseq.parser import ast, format_expression, format_pattern
from spaseq.rdf.event import Event, Fact, Term

HIDDEN = "spelled:"
BOOLEAN = "http://www.w3.org/2001/XMLSchema#boolean"
Mapped = dict[str, Term]


def rewritten(node: Any, change: Callable[[Any], Any | None]) -> Any:
    """The tree with each node replaced for which `change` returns one, from the root down."""
    if isinstance(node, tuple):
        return tuple(rewritten(item, change) for item in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = change(node)
    if changed is not None:
        return changed
    values = {part.name: getattr(node, part.name) for part in fields(node)}
    return replace(node, **{name: rewritten(value, change) for name, value in values.items()})


def variables_of(node: ast.Node) -> frozenset[str]:
    return frozenset(part.name for part in ast.walk(node) if isinstance(part, ast.Var))


def visible(group: ast.GroupGraphPattern | Iterable[ast.Element]) -> frozenset[str]:
    """The variables that a solution of the elements may bind (SPARQL 1.1, section 18.2.1)."""
    elements = group.elements if isinstance(group, ast.GroupGraphPattern) else group
    return frozenset().union(*(_visible_in(element) for element in elements))


def _visible_in(element: ast.Element) -> frozenset[str]:
    match element:
        case ast.Filter() | ast.Minus():
            return frozenset()
        case ast.Bind():
            return frozenset((element.variable.name,))
        case ast.Optional() | ast.SubGroup():
            return visible(element.group)
        case ast.Graph() | ast.Service():
            return visible(element.group) | variables_of(element.name)
        case ast.Union():
            return frozenset().union(*map(visible, element.alternatives))
        case ast.Values():
            return variables_of(element.variables)
        case ast.SubSelect():
            if element.items is None:
                return visible(element.where) | variables_of(element.values)
            return variables_of(tuple(i.alias or i.expression for i in element.items))
        case ast.Triple():
            return variables_of(element)


@dataclass(frozen=True, eq=False)
class Gpm:
    """The parts of a GPM: what SPARQL evaluates, then stateful BINDs in order, then filters."""

    name: str
    streams: frozenset[str]
    pattern: ast.GroupGraphPattern
    at: str | None
    assignments: tuple[ast.Bind, ...]
    filters: tuple[ast.Expr, ...]
    binds: frozenset[str]

    @cached_property
    def constants(self) -> list[ox.Literal]:
        return constants(self.pattern)

    @cached_property
    def computed(self) -> frozenset[str]:
        """The variables of arithmetic and comparisons, whose results have no spelling."""
        return frozenset(
            part.variable.name
            for part in ast.walk(self.pattern)
            if isinstance(part, ast.Bind) and isinstance(part.expression, ast.Unary | ast.Binary)
        )


def gpm_of(define: ast.Define, iris: Mapping[str, str]) -> Gpm:
    elements = define.pattern.elements
    stateful = [
        e
        for e in elements
        if isinstance(e, ast.Bind)
        and any(isinstance(part, ast.Aggregate | ast.Prev) for part in ast.walk(e.expression))
    ]
    while True:
        plain = [e for e in elements if e not in stateful and not isinstance(e, ast.Filter)]
        more = [
            e
            for e in plain
            if isinstance(e, ast.Bind) and not variables_of(e.expression) <= visible(plain)
        ]
        if not more:
            break
        stateful += more
    at = define.at.name if define.at else None
    return Gpm(
        define.name,
        frozenset(iris[name] for name in define.streams),
        ast.GroupGraphPattern(tuple(plain)),
        at,
        tuple(e for e in elements if isinstance(e, ast.Bind) and e in stateful),
        tuple(e.condition for e in elements if isinstance(e, ast.Filter)),
        visible(define.pattern) | ({at} if at else set()),
    )


class Graphs:
    """The graphs of the events and of the knowledge base, with a cache of their solutions."""

    def __init__(self, kb: Mapping[str, Sequence[Fact]]):
        self._kb = [
            ox.Quad(*fact, ox.NamedNode(iri))  # type: ignore[arg-type]
            for iri, facts in kb.items()
            for fact in facts
        ]
        self._stores: dict[tuple[int, frozenset[Term]], tuple[Event, ox.Store]] = {}
        self._solutions: dict[tuple[str, int], list[Mapped]] = {}
        self._patterns: dict[tuple[str, frozenset[Term]], str] = {}
        self._texts: dict[tuple[object, ...], tuple[ast.Expr, str]] = {}
        self._values: dict[tuple[object, ...], Term | None] = {}
        self._truths: dict[tuple[object, ...], bool] = {}
        self._searching: dict[int, tuple[ast.Expr, bool]] = {}
        """By id: an expression, kept so that its id stays unique, and whether it has an EXISTS."""

    def solutions(self, gpm: Gpm, event: Event) -> list[Mapped]:
        """eval(P, G, D): the distinct solutions, including the variable of `AT`."""
        key = (gpm.name, id(event))
        if key not in self._solutions:
            self._solutions[key] = list(self._solve(gpm, event)) if event.facts else []
        return self._solutions[key]

    def _solve(self, gpm: Gpm, event: Event) -> Iterable[Mapped]:
        spelled: dict[Term, set[Term]] = {}
        for literal in (*self._literals(event), *gpm.constants):
            spelled.setdefault(canonical(literal), set()).add(literal)
        odd = frozenset(
            literal
            for short, literals in spelled.items()
            for literal in literals - {short}
            if len(literals) > 1
        )
        result = self._store(event, odd).query(
            f"SELECT DISTINCT * {self._pattern(gpm, odd)}", custom_functions=CUSTOM
        )
        assert isinstance(result, ox.QuerySolutions)
        names = [variable.value for variable in result.variables]
        for row in result:
            found = {
                name: term if name in gpm.computed else self._as_written(term, spelled)
                for name, term in zip(names, row, strict=True)
                if term is not None
            }
            if gpm.at is not None and found.setdefault(gpm.at, event.time.term) != event.time.term:
                continue
            yield found

    def _pattern(self, gpm: Gpm, odd: frozenset[Term]) -> str:
        """The text of a pattern, with its constants replaced like the literals of the data."""
        key = (gpm.name, odd)
        if key not in self._patterns:
            pattern = rewritten(gpm.pattern, _without_case)
            self._patterns[key] = format_pattern(
                rewritten(pattern, lambda node: _hidden_in(node, odd))
            )
        return self._patterns[key]

    def _as_written(self, term: Term, spelled: Mapping[Term, set[Term]]) -> Term:
        if isinstance(term, ox.Triple):
            value = self._as_written(term.object, spelled)
            return ox.Triple(term.subject, term.predicate, value)
        if not isinstance(term, ox.Literal):
            return term
        if term.datatype.value.startswith(HIDDEN):
            return ox.Literal(
                term.value, datatype=ox.NamedNode(term.datatype.value.removeprefix(HIDDEN))
            )
        written = spelled.get(term, {term})
        return term if term in written else next(iter(written))

    def _literals(self, event: Event) -> list[Term]:
        objects = [fact[2] for fact in event.facts] + [quad.object for quad in self._kb]
        return [term for term in map(innermost, objects) if isinstance(term, ox.Literal)]

    def _store(self, event: Event, odd: frozenset[Term] = frozenset()) -> ox.Store:
        key = (id(event), odd)
        if key not in self._stores:
            store = ox.Store()
            for quad in [ox.Quad(*fact) for fact in event.facts] + self._kb:  # type: ignore[arg-type]
                term = hidden(quad.object) if innermost(quad.object) in odd else quad.object
                store.add(ox.Quad(quad.subject, quad.predicate, term, quad.graph_name))
            self._stores[key] = (event, store)
        return self._stores[key][1]

    def holds(self, condition: ast.Expr, values: Mapping[str, Term | None], event: Event) -> bool:
        """Whether a filter is true; an error is false."""
        key = (id(condition), *self._read(condition, values, event))
        if key not in self._truths:
            self._truths[key] = self._truth(condition, values, event)
        return self._truths[key]

    def _truth(self, condition: ast.Expr, values: Mapping[str, Term | None], event: Event) -> bool:
        try:
            return oracle_numbers.truth_of(condition, values)
        except oracle_numbers.NotNumericError:
            found = self._ask(condition, "IF(({}), true, false)", values, event)
        return found is not None and found.value == "true"

    def _read(
        self, expression: ast.Expr, values: Mapping[str, Term | None], event: Event | None
    ) -> tuple[tuple[tuple[str, Term], ...], int | None]:
        """What an expression reads: bound variables, and its event if it has an EXISTS."""
        if id(expression) not in self._searching:
            searches = any(isinstance(part, ast.Exists) for part in ast.walk(expression))
            self._searching[id(expression)] = (expression, searches)
        searches = event is not None and self._searching[id(expression)][1]
        bound = tuple((name, term) for name, term in values.items() if term is not None)
        return bound, id(event) if searches else None

    def value(
        self, expression: ast.Expr, values: Mapping[str, Term | None], event: Event | None
    ) -> Term | None:
        """The value of an expression; None for an error."""
        if isinstance(expression, ast.Var):
            return values.get(expression.name)
        try:
            computed = oracle_numbers.value_of(expression, values)
            return ox.Literal(computed) if isinstance(computed, bool) else computed
        except oracle_numbers.NotNumericError:
            found = self._ask(expression, "({})", values, event)
        if isinstance(expression, ast.Call) and expression.name in ("IF", "COALESCE"):
            given = [term for term in values.values() if isinstance(term, ox.Literal)]
            return next((term for term in given if canonical(term) == found), found)
        return found

    def _ask(
        self,
        expression: ast.Expr,
        form: str,
        values: Mapping[str, Term | None],
        event: Event | None,
    ) -> Term | None:
        bound, place = self._read(expression, values, event)
        key = (id(expression), form, bound, place)
        if key not in self._values:
            text = self._text(expression, frozenset(name for name, _ in bound))
            searched = place is not None and event is not None
            store = self._store(event) if searched else ox.Store()
            self._values[key] = _row(store, form.format(text), bound)
        return self._values[key]

    def _text(self, expression: ast.Expr, bound: frozenset[str]) -> str:
        key = (id(expression), bound)
        if key not in self._texts:

            def decide(node: Any) -> Any | None:
                if isinstance(node, ast.Exists):
                    return node
                if isinstance(node, ast.Call) and node.name == "BOUND":
                    (variable,) = node.arguments
                    assert isinstance(variable, ast.Var)
                    return ast.Literal(str(variable.name in bound).lower(), BOOLEAN)
                return None

            decided = rewritten(rewritten(expression, decide), _without_case)
            self._texts[key] = (expression, format_expression(decided))
        return self._texts[key][1]


def _row(store: ox.Store, text: str, values: Sequence[tuple[str, Term]]) -> Term | None:
    """One expression over one row; blank nodes, which `VALUES` cannot hold, are substituted."""
    blank = {n: t for n, t in values if has_node(t)}
    named = [(n, t) for n, t in values if n not in blank]
    columns = " ".join(f"?{name}" for name, _ in named)
    row = " ".join(written(term) for _, term in named)
    given = "".join(f"?{name} " for name in blank)
    data = f"VALUES ({columns}) {{ ({row}) }}" if named else ""
    result = store.query(
        f"SELECT {given}({text} AS ?the_result) WHERE {{ {data} }}",
        substitutions={ox.Variable(name): term for name, term in blank.items()} or None,
        custom_functions=CUSTOM,
    )
    assert isinstance(result, ox.QuerySolutions)
    found: Term | None = next(result)["the_result"]
    return found


def constants(pattern: ast.GroupGraphPattern) -> list[ox.Literal]:
    return [
        ox.Literal(node.lexical, datatype=ox.NamedNode(node.datatype))
        for node in ast.walk(pattern)
        if isinstance(node, ast.Literal) and node.language is None
    ]


def hidden(literal: Any) -> ox.Literal | ox.Triple:
    if isinstance(literal, ox.Triple):
        return ox.Triple(literal.subject, literal.predicate, hidden(literal.object))
    return ox.Literal(literal.value, datatype=ox.NamedNode(HIDDEN + literal.datatype.value))


def _without_case(node: Any) -> Any | None:
    """Compare with LANG() in lower case, because pyoxigraph has tags in lower case."""
    if isinstance(node, ast.In):
        parts: tuple[Any, ...] = (node.operand, *node.choices)
    elif isinstance(node, ast.Binary):
        parts = (node.left, node.right)
    elif isinstance(node, ast.Call) and node.name in ("SAMETERM", "STRSTARTS", "REGEX"):
        parts = node.arguments
    else:
        return None
    if not any(isinstance(part, ast.Call) and part.name == "LANG" for part in parts):
        return None
    small = [ast.Call("LCASE", (part,)) for part in parts]
    if isinstance(node, ast.In):
        return replace(node, operand=small[0], choices=tuple(small[1:]))
    if isinstance(node, ast.Binary):
        return replace(node, left=small[0], right=small[1])
    return replace(node, arguments=tuple(small))


def _hidden_in(node: Any, odd: frozenset[Term]) -> Any | None:
    """Replace constants that are terms of triples like the data's literals, but not in filters."""
    if isinstance(node, ast.Filter | ast.Bind):
        return node
    if not isinstance(node, ast.Literal) or node.language is not None:
        return None
    literal = ox.Literal(node.lexical, datatype=ox.NamedNode(node.datatype))
    return replace(node, datatype=HIDDEN + node.datatype) if literal in odd else None


def innermost(term: Term) -> Term:
    """The term, or the innermost object of a triple term."""
    return innermost(term.object) if isinstance(term, ox.Triple) else term


def has_node(term: Term) -> bool:
    """Whether a term is a blank node, or a triple term with one."""
    if isinstance(term, ox.Triple):
        return any(map(has_node, term))
    return isinstance(term, ox.BlankNode)


def written(term: Term) -> str:
    """A term as a query writes it."""
    if isinstance(term, ox.Triple):
        return f"<<( {term.subject} {term.predicate} {written(term.object)} )>>"
    return str(term)


_CANONICAL: dict[Term, Term] = {}


def canonical(literal: Term) -> Term:
    """The literal as pyoxigraph returns it."""
    if literal not in _CANONICAL:
        if has_node(literal):
            return literal
        text = f"SELECT ?v {{ VALUES ?v {{ {written(literal)} }} }}"
        _CANONICAL[literal] = next(ox.Store().query(text))["v"]  # type: ignore[arg-type]
    return _CANONICAL[literal]


# ------------------------------------------------------------------ order and aggregates


def ordered(terms: Sequence[Term], descending: bool = False) -> list[Term]:
    """The terms in the order of SPARQL's ORDER BY, which is stable here."""
    blank = sorted((t for t in terms if isinstance(t, ox.BlankNode)), key=str)
    other = [t for t in terms if not isinstance(t, ox.BlankNode)]
    if any(map(has_node, other)):
        triples = _triples_ordered([t for t in other if isinstance(t, ox.Triple)], descending)
        rest = ordered([t for t in terms if not isinstance(t, ox.Triple)], descending)
        return triples + rest if descending else rest + triples
    exactly = oracle_numbers.ordered(other, descending)
    if exactly is not None and not blank:
        return exactly
    rows = " ".join(f"({number} {written(term)})" for number, term in enumerate(other))
    by = "DESC(?v)" if descending else "?v"
    text = f"SELECT ?n {{ VALUES (?n ?v) {{ {rows} }} }} ORDER BY {by} ?n"
    found = [other[int(row["n"].value)] for row in ox.Store().query(text)]  # type: ignore[union-attr]
    return found + blank[::-1] if descending else blank + found


def _triples_ordered(triples: Sequence[ox.Triple], descending: bool) -> list[Term]:
    """By subject, predicate and object; `VALUES` cannot hold those with blank nodes."""
    found: list[Term] = []
    for subject in ordered(list(dict.fromkeys(t.subject for t in triples)), descending):
        about = [t for t in triples if t.subject == subject]
        for predicate in ordered(list(dict.fromkeys(t.predicate for t in about)), descending):
            some = [t for t in about if t.predicate == predicate]
            objects = ordered([t.object for t in some], descending)
            found += sorted(some, key=lambda t: objects.index(t.object))
    return found


_SUMS: dict[tuple[str, tuple[Term, ...]], Term | None] = {}


def aggregate(node: ast.Aggregate, values: Sequence[Term]) -> Term | None:
    """An aggregate over the values of the iterations that have a value, in their order."""
    if node.distinct:
        values = list(dict.fromkeys(values))
    match node.name:
        case "COUNT":
            return ox.Literal(len(values))
        case "SAMPLE":
            return values[0] if values else None
        case "MIN" | "MAX":
            return next(iter(ordered(values, node.name == "MAX")), None)
        case "GROUP_CONCAT":
            if any(isinstance(term, ox.BlankNode | ox.Triple) for term in values):
                return None
            separator = " " if node.separator is None else node.separator
            return ox.Literal(separator.join(term.value for term in values))
        case "SUM" | "AVG":
            return _arithmetic(node.name, tuple(values))
    raise AssertionError(node.name)


def _arithmetic(name: str, values: tuple[Term, ...]) -> Term | None:
    if (name, values) not in _SUMS:
        if any(isinstance(term, ox.BlankNode | ox.Triple) for term in values):
            return None
        try:
            return oracle_numbers.total(name, values)
        except oracle_numbers.NotNumericError:
            rows = " ".join(map(str, values))
        text = f"SELECT ({name}(?v) AS ?r) {{ VALUES ?v {{ {rows} }} }}"
        _SUMS[name, values] = next(ox.Store().query(text))["r"]  # type: ignore[arg-type]
    return _SUMS[name, values]

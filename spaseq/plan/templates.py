"""Combines queries that differ in constants, or in their SELECT, into one query: a template.

A constant that differs is a subject or object of a triple, or a side of a comparison in a filter,
at the top level of a GPM. The template has a variable in its place, and a variable for the number
of the query, on which all steps agree. A GPM with a constant that must be equal to a term of the
event gets a `VALUES` table of these constants, one row per query, so that an event finds its
queries by a look-up:

    { ?x :user "ann" ; :amount ?a FILTER(?a > 100) }          query 0
    { ?x :user "bob" ; :amount ?a FILTER(?a > 250) }          query 1

    { ?x :user ?.0 ; :amount ?a FILTER(?a > ?.1)
      VALUES (?.query ?.0 ?.1) { (0 "ann" 100) (1 "bob" 250) } }

A match of the template belongs to the query whose number it has. The first and the last step must
have such a table: every partial match then belongs to one query, so that the `;` of one query never
sees the events of another. Names of template variables begin with a dot, which is not possible in
the text of a query.

Queries that differ only in thresholds (`spaseq.plan.thresholds`), or in their SELECT, need no
number: the template is the least strict query, and also selects the compared variables. For
thresholds of steps after `;`, partial matches have floors (`spaseq.plan.floors`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from spaseq.parser import ast
from spaseq.plan.floors import floor_of, with_floor
from spaseq.plan.thresholds import (
    FLIPPED,
    Comparison,
    Threshold,
    ever_stricter,
    is_selective,
    kind_of_constant,
)
from spaseq.records import dataclass

NUMBER = ".query"
"""The variable for the number of the query."""
LEAST = 16
"""The least number of queries with different constants that make a template."""

_FEW = 16
"""Templates by thresholds with fewer queries than this on average are replaced by one by
look-up."""
_COMPARISONS = frozenset(("=", "!=", "<", ">", "<=", ">="))
_STRING = "http://www.w3.org/2001/XMLSchema#string"
_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"

Parameter: TypeAlias = ast.Iri | ast.Literal


def is_hidden(variable: str) -> bool:
    """Whether a variable is one of a template, which results do not show."""
    return variable.startswith(".")


def shown_name(gpm: str) -> str:
    """The name of a GPM without the prefix that a template has added."""
    return gpm.split(".", 2)[2] if gpm.startswith(".") else gpm


@dataclass(frozen=True, slots=True)
class Shareable:
    """A query that may be part of a template."""

    query: ast.Query
    columns: Sequence[str]
    """The variables that it selects."""
    next_steps: frozenset[str] = frozenset()
    """The GPMs after `;` for which partial matches can wait with a floor."""


@dataclass(frozen=True, slots=True)
class Site:
    """A position of a constant in a query."""

    gpm: int
    subject: str | None
    """The variable that a filter requires to be equal to the constant, as a term; None elsewhere.
    """
    looked_up: bool
    """Whether the constant must be equal to a term of the event."""
    comparison: Comparison | None = None
    """The comparison of which the constant is a threshold, if it is one."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A query whose constants are variables, and the constants."""

    query: ast.Query
    """The query without its SELECT and its name."""
    sites: tuple[Site, ...]
    constants: tuple[Parameter, ...]

    @property
    def comparisons(self) -> list[tuple[int, Comparison]]:
        """The positions of the thresholds among the constants, and their comparisons."""
        return [(n, s.comparison) for n, s in enumerate(self.sites) if s.comparison is not None]


@dataclass(frozen=True, slots=True)
class Template:
    """Several queries as one."""

    query: ast.Query
    members: tuple[tuple[int, ...], ...]
    """Per number that `NUMBER` can have: the queries with these constants, by their positions."""
    numbered: bool
    """Whether the query selects `NUMBER`, as its first column; else it has no such variable, and
    every match is one of all queries, as far as `thresholds` allow it."""
    thresholds: tuple[Threshold, ...] = ()
    """Comparisons with a constant of each query, in the order of `members[0]`. The query selects
    their variables first, or those of the floor of their GPM."""
    floors: tuple[tuple[int, ast.Floor], ...] = ()
    """The GPMs whose partial matches have floors."""
    branches: tuple[tuple[int, ...], ...] = ()
    """Per place in `members`: the occurrences of the query's steps among those of the template, if
    the queries share only their first steps (`spaseq.plan.prefixes`). Then a match belongs to the
    queries in whose branch it ends."""

    @property
    def queries(self) -> list[int]:
        """The positions of all queries."""
        return sorted(number for some in self.members for number in some)

    def renumbered(self, numbers: Mapping[int, int]) -> Template:
        """The template with new positions for its queries, by their former positions."""
        members = tuple(tuple(numbers[n] for n in some) for some in self.members)
        return replace(self, members=members)

    @property
    def common(self) -> list[int]:
        """Per branch: the number of its first occurrences that are also in another branch."""
        counts = Counter(occurrence for branch in self.branches for occurrence in branch)
        return [sum(counts[occurrence] > 1 for occurrence in branch) for branch in self.branches]

    @property
    def compared(self) -> list[str]:
        """The variables that say to which queries a match belongs."""
        floored = dict(self.floors)
        names = [each.variable for each in self.selecting]
        names += [name for each in floored.values() for name in (each.rank, each.taken)]
        return list(dict.fromkeys(names))

    @property
    def selecting(self) -> list[Threshold]:
        """The thresholds of GPMs without a floor."""
        floored = dict(self.floors)
        return [threshold for threshold in self.thresholds if threshold.gpm not in floored]


# ------------------------------------------------------------------ recognition


def templates(queries: Mapping[int, Shareable], least: int | None = None) -> list[Template]:
    """The templates of some queries, each with two queries at least.

    Args:
        queries: By position: the queries that may be part of a template.
        least: The least number of queries with different constants; by default `LEAST`.
    """
    shapes: dict[tuple[ast.Query, tuple[Site, ...]], list[tuple[int, Shape]]] = {}
    for number, each in queries.items():
        shape = shape_of(each)
        if shape is not None:
            shapes.setdefault((shape.query, shape.sites), []).append((number, shape))
    found = []
    for alike in shapes.values():
        found += _of_shape(alike, queries, LEAST if least is None else least)
    return found


def _of_shape(
    alike: Sequence[tuple[int, Shape]],
    queries: Mapping[int, Shareable],
    least: int,
) -> list[Template]:
    """The templates of queries of one shape: by look-up, or by thresholds."""
    equal: dict[tuple[Parameter, ...], list[int]] = {}
    for number, shape in alike:
        equal.setdefault(shape.constants, []).append(number)
    _, shape = alike[0]
    sequences = ever_stricter(list(equal), shape.comparisons)
    if len(equal) >= max(least, 2) and len(equal) < _FEW * len(sequences):
        members = tuple(map(tuple, equal.values()))
        whole = made(shape, list(equal), _selected(members, queries))
        if whole is not None:
            return [Template(whole, members, True)]
    found = []
    for sequence in sequences:
        for rows in [sequence] if len(sequence) >= least else [[row] for row in sequence]:
            some = [number for row in rows for number in equal[row]]
            # Equal queries share their state anyway.
            if len({queries[number].query for number in some}) > 1:
                constants = [row for row in rows for _ in equal[row]]
                found.append(_of_thresholds(shape, constants, some, queries))
    return found


def _of_thresholds(
    shape: Shape,
    rows: Sequence[tuple[Parameter, ...]],
    members: Sequence[int],
    queries: Mapping[int, Shareable],
) -> Template:
    """The template of queries with rows of constants that become ever stricter, or are equal."""
    thresholds = []
    for position, comparison in shape.comparisons:
        constants = [row[position] for row in rows]
        if any(constant != constants[0] for constant in constants):
            thresholds.append(
                Threshold(
                    shape.sites[position].gpm,
                    comparison.variable,
                    comparison.operator,
                    tuple(cast("list[ast.Literal]", constants)),
                )
            )
    steps, defines = shape.query.sequence.steps, shape.query.defines
    own: dict[int, list[Threshold]] = {}
    for threshold in thresholds:
        if not is_selective(steps, defines[threshold.gpm].name):
            own.setdefault(threshold.gpm, []).append(threshold)
    floors = tuple((gpm, floor_of(gpm, some)) for gpm, some in own.items())
    template = Template(shape.query, (tuple(members),), False, tuple(thresholds), floors)
    names = template.compared + _selected([members], queries)
    query = made(shape, rows[:1], list(dict.fromkeys(names)))
    assert query is not None
    for gpm, some in own.items():
        query = with_floor(query, gpm, some)
    return replace(template, query=query)


def joined(queries: Mapping[int, Shareable], members: Sequence[Sequence[int]]) -> Template | None:
    """The template with given members; None if the queries do not fit together.

    Args:
        queries: As for `templates`.
        members: The positions of the queries with each number.
    """
    if len(members) == 1:
        return _joined_by_thresholds(queries, members[0])
    rows: list[tuple[Parameter, ...]] = []
    first: Shape | None = None
    for some in members:
        shapes = [shape_of(queries[number]) for number in some if number in queries]
        if not shapes or len(shapes) < len(some) or any(one != shapes[0] for one in shapes):
            return None
        shape = shapes[0]
        first = first or shape
        if shape is None or first is None:
            return None
        if (shape.query, shape.sites) != (first.query, first.sites) or shape.constants in rows:
            return None
        rows.append(shape.constants)
    if first is None:
        return None
    query = made(first, rows, _selected(members, queries))
    if query is None:
        return None
    return Template(query, tuple(map(tuple, members)), True)


def _joined_by_thresholds(
    queries: Mapping[int, Shareable], members: Sequence[int]
) -> Template | None:
    """Like `joined`, for a template without numbers."""
    shapes = [shape_of(queries[number]) for number in members if number in queries]
    first = shapes[0] if shapes else None
    if first is None or len(shapes) < len(members):
        return None
    rows = []
    for shape in shapes:
        if shape is None or (shape.query, shape.sites) != (first.query, first.sites):
            return None
        rows.append(shape.constants)
    different = list(dict.fromkeys(rows))
    if ever_stricter(different, first.comparisons) != [different]:
        return None
    return _of_thresholds(first, rows, members, queries)


def _selected(members: Sequence[Sequence[int]], queries: Mapping[int, Shareable]) -> list[str]:
    """The variables that some of the queries select."""
    return list(dict.fromkeys(v for some in members for n in some for v in queries[n].columns))


def shape_of(shareable: Shareable) -> Shape | None:
    """The shape of a query; None if the query cannot be part of a template."""
    query = shareable.query
    steps = query.sequence.steps
    if not isinstance(query.form, ast.Select) or any(
        not isinstance(step.unit, ast.GpmRef) or step.bound is not None for step in steps
    ):
        return None
    if may_be_absent(steps[0]) or steps[0].quantifier is not None or may_be_absent(steps[-1]):
        return None
    sites: list[Site] = []
    constants: list[Parameter] = []
    defines = []
    for number, define in enumerate(query.defines):
        selects = is_selective(steps, define.name) or define.name in shareable.next_steps
        taker = _Taker(number, define.pattern, selects, sites, constants)
        defines.append(replace(define, pattern=taker.pattern()))
    return Shape(
        replace(
            query,
            form=ast.Select(None),
            defines=tuple(defines),
            prologue=ast.Prologue(),
            register=None,
            text="",
        ),
        tuple(sites),
        tuple(constants),
    )


def may_be_absent(step: ast.Step) -> bool:
    """Whether a match may lack a step."""
    quantifier = step.quantifier
    return step.negated or (quantifier is not None and quantifier.least == 0)


class _Taker:
    """Takes the constants out of one GPM; `selects`: comparisons can have thresholds."""

    def __init__(
        self,
        gpm: int,
        pattern: ast.GroupGraphPattern,
        selects: bool,
        sites: list[Site],
        constants: list[Parameter],
    ):
        self._gpm, self._pattern, self._selects = gpm, pattern, selects
        self._sites, self._constants = sites, constants
        triples = [e for e in pattern.elements if isinstance(e, ast.Triple) and e.of is None]
        ends = [end for triple in triples for end in (triple.subject, triple.object)]
        self._certain = {end.name for end in ends if isinstance(end, ast.Var)}
        """The variables that the triples bind."""
        self._bound = set(self._certain)
        """The variables among them that a table may bind, each once."""

    def pattern(self) -> ast.GroupGraphPattern:
        """The pattern with variables in place of the constants."""
        return replace(self._pattern, elements=tuple(map(self._element, self._pattern.elements)))

    def _element(self, element: ast.Element) -> ast.Element:
        if isinstance(element, ast.Filter):
            return replace(element, condition=self._condition(element.condition))
        if not isinstance(element, ast.Triple) or element.of is not None:
            return element
        if not isinstance(element.predicate, ast.Iri):
            return element
        subject, object_ = self._term(element.subject), self._term(element.object)
        return replace(element, subject=subject, object=object_)

    def _term(self, term: ast.Term) -> ast.Term:
        if isinstance(term, ast.Iri | ast.Literal):
            return self._take(term, None, looked_up=True)
        return term

    def _condition(self, condition: ast.Expr) -> ast.Expr:
        if not isinstance(condition, ast.Binary):
            return condition
        left, right = condition.left, condition.right
        if condition.operator == "&&":
            return replace(condition, left=self._condition(left), right=self._condition(right))
        if condition.operator not in _COMPARISONS:
            return condition
        if isinstance(right, ast.Iri | ast.Literal):
            return replace(condition, right=self._compared(condition.operator, left, right))
        if isinstance(left, ast.Iri | ast.Literal):
            operator = FLIPPED.get(condition.operator, condition.operator)
            return replace(condition, left=self._compared(operator, right, left))
        return condition

    def _comparison(self, operator: str, other: ast.Expr, constant: Parameter) -> Comparison | None:
        """The comparison of which a constant is a threshold, if it is one."""
        if not (self._selects and operator in FLIPPED and isinstance(other, ast.Var)):
            return None
        kind = kind_of_constant(constant)
        if kind is None or other.name not in self._certain:
            return None
        return Comparison(other.name, operator, kind)

    def _compared(self, operator: str, other: ast.Expr, constant: Parameter) -> ast.Expr:
        """The variable for a constant that is compared with another expression."""
        looked_up = (
            operator == "="
            and isinstance(other, ast.Var)
            and other.name in self._bound
            and _is_equal_as_term(constant)
        )
        if not looked_up:
            comparison = self._comparison(operator, other, constant)
            return self._take(constant, None, looked_up=False, comparison=comparison)
        assert isinstance(other, ast.Var)
        self._bound.remove(other.name)
        return self._take(constant, other.name, looked_up=True)

    def _take(
        self,
        constant: Parameter,
        subject: str | None,
        *,
        looked_up: bool,
        comparison: Comparison | None = None,
    ) -> ast.Var:
        self._sites.append(Site(self._gpm, subject, looked_up, comparison))
        self._constants.append(constant)
        return _variable(len(self._constants) - 1)


def _is_equal_as_term(constant: Parameter) -> bool:
    """Whether every term that equals a constant by value is the same term."""
    return isinstance(constant, ast.Iri) or constant.datatype == _STRING


def _variable(site: int) -> ast.Var:
    return ast.Var(f".{site}")


# ------------------------------------------------------------------ the template's query


def made(
    shape: Shape, rows: Sequence[tuple[Parameter, ...]], selected: Sequence[str]
) -> ast.Query | None:
    """The query of a template.

    Args:
        shape: The shape of its queries.
        rows: Their different constants.
        selected: The variables that it selects, beside `NUMBER`.

    Returns:
        None if partial matches could belong to several queries.
    """
    differ = [
        site for site in range(len(shape.sites)) if any(r[site] != rows[0][site] for r in rows)
    ]
    tables = {shape.sites[site].gpm for site in differ if shape.sites[site].looked_up}
    defines = shape.query.defines
    place = {define.name: number for number, define in enumerate(defines)}
    names = [step.unit.name for step in shape.query.sequence.steps]  # type: ignore[union-attr]
    first, last = place[names[0]], place[names[-1]]
    if differ and not (first in tables and last in tables):
        return None
    fixed: dict[str, Any] = {
        _variable(site).name: constant
        for site, constant in enumerate(rows[0])
        if site not in set(differ)
    }
    loose = [site for site in differ if shape.sites[site].gpm not in tables]
    patterns = []
    for number, define in enumerate(defines):
        own = [site for site in differ if shape.sites[site].gpm == number]
        pattern = _with_constants(define.pattern, fixed)
        if number in tables:
            held = own + (loose if number == first else [])
            pattern = _with_table(pattern, shape.sites, held, rows)
        patterns.append(replace(define, pattern=pattern))
    columns = [NUMBER, *selected] if differ else selected
    return replace(
        shape.query,
        form=ast.Select(tuple(ast.Projection(ast.Var(name)) for name in columns)),
        defines=tuple(patterns),
    )


def _with_constants(pattern: ast.GroupGraphPattern, fixed: Mapping[str, Any]) -> Any:
    def change(node: Any) -> Any:
        return fixed.get(node.name, node) if isinstance(node, ast.Var) else None

    return ast.rebuilt(pattern, change)


def _with_table(
    pattern: ast.GroupGraphPattern,
    sites: Sequence[Site],
    held: Sequence[int],
    rows: Sequence[tuple[Parameter, ...]],
) -> ast.GroupGraphPattern:
    """A pattern with the table of the constants of some sites, one row per query.

    The table binds a variable that must be equal to a constant, in place of the filter.
    """
    subjects = {site: sites[site].subject for site in held}
    dropped = {_variable(site).name for site, subject in subjects.items() if subject is not None}
    variables = [
        _variable(site) if subject is None else ast.Var(subject)
        for site, subject in subjects.items()
    ]
    table = ast.Values(
        (ast.Var(NUMBER), *variables),
        tuple(
            (ast.Literal(str(number), _INTEGER), *(row[site] for site in held))
            for number, row in enumerate(rows)
        ),
    )
    elements: list[ast.Element] = []
    for element in pattern.elements:
        if isinstance(element, ast.Filter):
            left = [c for c in _conjuncts(element.condition) if not _reads(c, dropped)]
            elements += [ast.Filter(condition, element.span) for condition in left]
        else:
            elements.append(element)
    return replace(pattern, elements=(*elements, table))


def _conjuncts(condition: ast.Expr) -> list[ast.Expr]:
    """The parts of a conjunction: a filter for each is equivalent to one filter for the whole."""
    if isinstance(condition, ast.Binary) and condition.operator == "&&":
        return [*_conjuncts(condition.left), *_conjuncts(condition.right)]
    return [condition]


def _reads(condition: ast.Expr, names: set[str]) -> bool:
    """Whether a condition is one of the equations that the table replaces."""
    return (
        isinstance(condition, ast.Binary)
        and condition.operator == "="
        and any(
            isinstance(side, ast.Var) and side.name in names
            for side in (condition.left, condition.right)
        )
    )

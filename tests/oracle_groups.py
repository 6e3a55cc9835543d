"""`GROUP BY … OVER … LET … HAVING` by brute force: each group solution from all its results.

This follows docs/language.md, section 6, "Groups of results", literally. No group is kept from one
instant to the next: each time, the results of a key that `OVER` covers are searched among all
results so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
from oracle_patterns import aggregate, rewritten, variables_of
from oracle_sequences import Entry, Reading

from spaseq.parser import ast
from spaseq.rdf.event import Fact, Term

if TYPE_CHECKING:
    from oracle import OracleMatch

Values = Mapping[str, Term | None]
_FAILING = ("SUM", "AVG", "MIN", "MAX")


class Groups:
    """The GROUP clause of one query; `positive` are the variables of positive GPMs."""

    def __init__(self, query: ast.Query, reading: Reading, positive: set[str]):
        assert query.groups is not None
        assert query.within is not None
        self._query, self._clause = query, query.groups
        self._reading, self._positive = reading, positive
        over = query.groups.over
        self.size = query.within.microseconds if over is None else over.microseconds
        self.tumbling = query.within.kind == "tumbling" if over is None else over.tumbling

    # -------------------------------------------------------------- results

    def result(self, entries: Sequence[Entry]) -> dict[str, Term | None]:
        """The solution of a result: the variables of positive GPMs, and the keys."""
        found = {name: self._reading.bare(name, (), entries) for name in self._positive}
        for key in self._clause.keys:
            if key.alias is not None:
                found[key.alias.name] = self._reading.value(key.expression, (), entries, None)
        return found

    def _key(self, match: OracleMatch) -> tuple[Term | None, ...]:
        assert isinstance(match.solution, Mapping)
        return tuple(match.solution.get(_name(key)) for key in self._clause.keys)

    # -------------------------------------------------------------- groups

    def solutions(self, results: Sequence[OracleMatch]) -> list[OracleMatch]:
        """All group solutions; `results` are in the order of results."""
        found = self._tumbling(results) if self.tumbling else self._sliding(results)
        return sorted(found, key=lambda match: match.moment)

    def _sliding(self, results: Sequence[OracleMatch]) -> Iterator[OracleMatch]:
        for number, newest in enumerate(results):
            later = [r for r in results[number + 1 :] if r.moment == newest.moment]
            if any(self._key(r) == self._key(newest) for r in later):
                continue
            reached = [
                r
                for r in results[: number + 1]
                if self._key(r) == self._key(newest) and r.end > newest.end - self.size
            ]
            yield from self._solution(reached, newest.end, newest.moment)

    def _tumbling(self, results: Sequence[OracleMatch]) -> Iterator[OracleMatch]:
        windows: dict[int, list[OracleMatch]] = {}
        for result in results:
            micros, phase, _ = result.moment
            windows.setdefault((micros - (phase < 0)) // self.size, []).append(result)
        for window, inside in windows.items():
            end = (window + 1) * self.size
            newest = {self._key(result): number for number, result in enumerate(inside)}
            for key in sorted(newest, key=lambda key: newest[key]):
                reached = [result for result in inside if self._key(result) == key]
                yield from self._solution(reached, end, (end, -1, 0))

    def _solution(
        self, results: Sequence[OracleMatch], end: int, moment: tuple[int, int, int]
    ) -> Iterator[OracleMatch]:
        """The solution of a group, if every HAVING is true."""
        newest, form = results[-1], self._query.form
        values: dict[str, Term | None] = dict(
            zip(map(_name, self._clause.keys), self._key(newest), strict=True)
        )
        shown: list[str] = []
        for item in self._clause.lets:
            values[_name(item)] = self._value(item.expression, results, values)
        for item in (form.items or ()) if isinstance(form, ast.Select) else ():
            values[_name(item)] = self._value(item.expression, results, values)
            shown.append(_name(item))
        if not all(self._holds(each, results, values) for each in self._clause.having):
            return
        limit = self._query.limit
        per = () if limit is None else tuple(values.get(name.name) for name in limit.per)
        solution: Any = {n: term for n in shown if (term := values[n]) is not None}
        if isinstance(form, ast.Construct):
            solution = tuple(instance(form.template, values.get))
        elif isinstance(form, ast.Ask):
            solution = True
        last = (newest.moment, newest.order)
        yield replace(
            newest,
            tied=tuple(r.witnesses for r in results if (r.moment, r.order) == last),
            start=min(result.start for result in results),
            end=end,
            moment=moment,
            solution=solution,
            results=len(results),
            per=per,
        )

    def _holds(self, expression: ast.Expr, results: Sequence[OracleMatch], values: Values) -> bool:
        plain, known = self._plain(expression, results, values)
        return self._reading.graphs.holds(plain, known, None)  # type: ignore[arg-type]

    def _value(
        self, expression: ast.Expr, results: Sequence[OracleMatch], values: Values
    ) -> Term | None:
        plain, known = self._plain(expression, results, values)
        return self._reading.graphs.value(plain, known, None)

    def _plain(
        self, expression: ast.Expr, results: Sequence[OracleMatch], values: Values
    ) -> tuple[ast.Expr, dict[str, Term | None]]:
        """The expression with a variable in place of each aggregate, and the variables' values."""
        aggregates: dict[str, Term | None] = {}

        def name(node: Any) -> ast.Var | None:
            if not isinstance(node, ast.Aggregate):
                return None
            slot = f"slot_{len(aggregates)}"
            aggregates[slot] = self._aggregate(node, results)
            return ast.Var(slot)

        plain = rewritten(expression, name)
        named = variables_of(plain)
        return plain, {n: v for n, v in {**values, **aggregates}.items() if n in named}

    def _aggregate(self, node: ast.Aggregate, results: Sequence[OracleMatch]) -> Term | None:
        if node.argument is None:
            return ox.Literal(len(results))
        assert not isinstance(node.argument, ast.GpmName)
        terms = [self._argument(node.argument, result) for result in results]
        if None in terms and node.name in _FAILING:
            return None
        return aggregate(node, [term for term in terms if term is not None])

    def _argument(self, expression: ast.Expr, match: OracleMatch) -> Term | None:
        assert isinstance(match.solution, Mapping)
        named = variables_of(expression)
        values = {name: match.solution.get(name) for name in named}
        return self._reading.graphs.value(expression, values, None)


def _name(item: ast.Projection) -> str:
    if item.alias is not None:
        return item.alias.name
    assert isinstance(item.expression, ast.Var)
    return item.expression.name


# ------------------------------------------------------------------ templates


def instance(template: Sequence[ast.Triple], value: Callable[[str], Term | None]) -> Iterator[Fact]:
    """The triples of a template, without those that are not valid RDF triples."""
    fresh: dict[str, Term | None] = {}
    seen = set()
    for triple in template:
        fact = tuple(
            _filled(term, value, fresh)
            for term in (triple.subject, triple.predicate, triple.object)
        )
        subject, predicate, value_of_it = fact
        proper = isinstance(subject, ox.NamedNode | ox.BlankNode)
        proper = proper and isinstance(predicate, ox.NamedNode) and value_of_it is not None
        if triple.of is not None:
            # It describes the parts of a triple term of another triple.
            fresh[triple.of.label] = ox.Triple(*fact) if proper else None  # type: ignore[arg-type]
        elif proper and fact not in seen:
            seen.add(fact)
            yield fact  # type: ignore[misc]


def _filled(
    term: Any, value: Callable[[str], Term | None], fresh: dict[str, Term | None]
) -> Term | None:
    match term:
        case ast.Var():
            return value(term.name)
        case ast.BlankNode():
            return fresh.setdefault(term.label, ox.BlankNode())
        case ast.Iri():
            return ox.NamedNode(term.value)
        case ast.TripleTerm():
            parts: Any = (
                _filled(part, value, fresh) for part in (term.subject, term.predicate, term.object)
            )
            return ox.Triple(*parts)
        case ast.Literal(lexical, datatype, language, direction):
            if language is not None:
                base = None if direction is None else ox.BaseDirection(direction)
                return ox.Literal(lexical, language=language, direction=base)
            return ox.Literal(lexical, datatype=ox.NamedNode(datatype))
    raise AssertionError(term)

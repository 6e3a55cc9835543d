"""Comparisons of language tags → case-insensitive comparisons.

RDF compares language tags without regard to case. The readers convert tags to lower case, so
`LANG(?x)` is always in lower case. This module converts the strings that a query compares with
it: `LANG(?x) = "de-CH"` becomes `LANG(?x) = "de-ch"`. The rewriting covers `=` and the other
comparisons, `IN`, `SAMETERM`, string tests and searches, and variables that only a `BIND` of a
tag binds. A server that answers patterns of the knowledge base may preserve the case of its
data, so `LANG` itself is converted in such patterns.

Cost: linear in the query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

from spaseq.parser import ast

_STRING = ast.Literal("").datatype
_COMPARISONS = frozenset(("=", "!=", "<", ">", "<=", ">="))
_PARTS = frozenset(("STR", "LCASE", "SUBSTR", "STRBEFORE", "STRAFTER"))
"""Functions that return a tag, or a part of one, if their first argument is a tag."""
_TESTS = frozenset(("SAMETERM", "CONTAINS", "STRSTARTS", "STRENDS", "STRBEFORE", "STRAFTER"))
_FLAGS_OF = {"REGEX": 2, "REPLACE": 3}
"""Functions with a pattern, and the index of their flags argument."""
_SELECTING = frozenset(("SAMPLE", "MIN", "MAX", "FIRST", "LAST"))


def tags_without_case(query: ast.Query) -> ast.Query:
    """The query with every comparison of a language tag made case-insensitive."""
    if not any(_is_lang(node) for node in ast.walk(query)):
        return query
    folded: ast.Query = _Folder(_tag_variables(query)).everywhere(query)
    return folded


def _is_lang(node: ast.Node) -> bool:
    return isinstance(node, ast.Call) and node.name == "LANG"


def _tag_variables(query: ast.Query) -> frozenset[str]:
    """The variables that hold only tags: everything that binds them is a `BIND` of a tag."""
    bound: Counter[str] = Counter()
    assigned: list[tuple[str, ast.Expr]] = []
    for node in ast.walk(query):
        if isinstance(node, ast.Triple | ast.Values | ast.Graph | ast.Service):
            bound.update(_bound_by(node))
        elif isinstance(node, ast.Bind):
            assigned.append((node.variable.name, node.expression))
        elif isinstance(node, ast.Projection) and node.alias is not None:
            assigned.append((node.alias.name, node.expression))
        elif isinstance(node, ast.Define) and node.at is not None:
            bound[node.at.name] += 1
    known: frozenset[str] = frozenset()
    while True:
        folder = _Folder(known)
        others = bound.keys() | {name for name, value in assigned if not folder.is_tag(value)}
        tags = frozenset(name for name, _ in assigned) - others
        if tags == known:
            return known
        known = tags


def _bound_by(node: ast.Triple | ast.Values | ast.Graph | ast.Service) -> Iterator[str]:
    parts: tuple[Any, ...]
    if isinstance(node, ast.Triple):
        parts = (node.subject, node.predicate, node.object)
    elif isinstance(node, ast.Values):
        parts = node.variables
    else:
        parts = (node.name,)
    return (part.name for part in parts if isinstance(part, ast.Var))


class _Folder:
    """Rewrites expressions; `tags` are the variables that hold language tags."""

    def __init__(self, tags: frozenset[str], remote: bool = False):
        self._tags = tags
        self._remote = remote

    def everywhere(self, node: Any) -> Any:
        return ast.rebuilt(node, self._change)

    def is_tag(self, expr: ast.Node) -> bool:
        """Whether the expression, if it has a value, is a language tag or a part of one."""
        match expr:
            case ast.Var(name):
                return name in self._tags
            case ast.Call("LANG"):
                return True
            case ast.Call(name, (first, *_)) if name in _PARTS:
                return self.is_tag(first)
            case ast.Call("IF", (_, then, otherwise)):
                return self.is_tag(then) and self.is_tag(otherwise)
            case ast.Call("COALESCE", choices):
                return bool(choices) and all(map(self.is_tag, choices))
            case ast.Aggregate(name, argument) if name in _SELECTING:
                return self.is_tag(argument)
            case ast.Prev(variable):
                return self.is_tag(variable)
        return False

    def _change(self, node: Any) -> Any | None:
        match node:
            case ast.Graph() | ast.Service() if not self._remote:
                return _Folder(self._tags, True).everywhere(node)
            case ast.Call("LANG", arguments) if self._remote:
                inner = replace(node, arguments=self.everywhere(arguments))
                return ast.Call("LCASE", (inner,), node.span)
            case ast.Binary(operator, left, right) if operator in _COMPARISONS:
                if self.is_tag(left) or self.is_tag(right):
                    return replace(node, left=self._small(left), right=self._small(right))
            case ast.In(operand, choices):
                return self._member(node, operand, choices)
            case ast.Call(name, (first, second)) if name in _TESTS:
                if self.is_tag(first) or self.is_tag(second):
                    return replace(node, arguments=(self._small(first), self._small(second)))
            case ast.Prev(variable, default) if default is not None and self.is_tag(variable):
                return replace(node, default=self._small(default))
            case ast.Call(name, (first, *_)) if name in _FLAGS_OF and self.is_tag(first):
                return self._search(node, _FLAGS_OF[name])
        return None

    def _small(self, expr: ast.Expr) -> ast.Expr:
        """The expression with a string value converted to lower case."""
        if self.is_tag(expr):
            return self.everywhere(expr)  # type: ignore[no-any-return]
        if isinstance(expr, ast.Literal):
            small = expr.datatype == _STRING
            return replace(expr, lexical=expr.lexical.lower()) if small else expr
        if isinstance(expr, ast.Iri):
            return expr
        folded = self.everywhere(expr)
        return ast.Call("COALESCE", (ast.Call("LCASE", (folded,), expr.span), folded), expr.span)

    def _member(
        self, node: ast.In, operand: ast.Expr, choices: tuple[ast.Expr, ...]
    ) -> ast.Expr | None:
        if self.is_tag(operand):
            return replace(
                node, operand=self._small(operand), choices=tuple(map(self._small, choices))
            )
        if not any(map(self.is_tag, choices)):
            return None
        # SPARQL defines IN by `=`; only comparisons with a tag are rewritten.
        equal = [ast.Binary("=", operand, choice, node.span) for choice in choices]
        either = reduce(lambda one, other: ast.Binary("||", one, other, node.span), equal)
        folded: ast.Expr = self.everywhere(either)
        return ast.Unary("!", folded, node.span) if node.negated else folded

    def _search(self, call: ast.Call, place: int) -> ast.Call:
        """The call with a pattern that ignores case."""
        arguments = tuple(map(self.everywhere, call.arguments))
        flags: ast.Expr = ast.Literal("i", span=call.span)
        if len(arguments) > place:
            given = arguments[place]
            if isinstance(given, ast.Literal):
                flags = replace(given, lexical=given.lexical + "i" * ("i" not in given.lexical))
            else:
                flags = ast.Call("CONCAT", (given, flags), call.span)
        return replace(call, arguments=(*arguments[:place], flags))

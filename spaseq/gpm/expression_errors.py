"""Why an expression errs on a row, with its values: `"12" < 15: a string and a number`.

SPARQL has no messages for errors: a filter that errs is false, and a BIND that errs binds nothing.
This module finds the innermost operation that has no value although its operands have one.

Cost: one evaluation in Python per node of the expression and level above it.
Source: SPARQL 1.1 section 17.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyoxigraph as ox

from spaseq.gpm.python.entry import Scope, compile_expression
from spaseq.parser import ast
from spaseq.parser.build_expression import PREDECLARED
from spaseq.parser.format import NO_PREFIXES, expression_line, term_text
from spaseq.plan.scope import subexpressions
from spaseq.plan.wording import listing
from spaseq.rdf.event import Term
from spaseq.rdf.native import _values

_KINDS = {
    _values.TRIPLE: "a triple term",
    _values.IRI: "an IRI",
    _values.BLANK: "a blank node",
    _values.STRING: "a string",
    _values.LANG: "a string with a language",
    _values.BOOLEAN: "a boolean",
    _values.INTEGER: "a number",
    _values.DECIMAL: "a number",
    _values.WIDE: "a number",
    _values.FLOAT: "a number",
    _values.DOUBLE: "a number",
    _values.POINT: "a date or time",
    _values.SPAN: "a duration",
}
LONGEST_TERM = 60
"""The maximum number of characters of a term in a message."""
_MAKES_IRIS = ("IRI", "URI")
_NOT_IN_IRIS = re.compile(r"[\x00-\x20<>\"{}|\\^`]")
"""The characters that RFC 3987 excludes."""
_SCOPE = re.compile(r" in (?:the match|unit \d+)$")
"""What a plan appends to an aggregate over iterations: which of them it sees."""
_IRI = re.compile(r'"(?:[^"\\]|\\.)*"|<([^\s<>"]*)>')
"""A string, or an IRI."""


def prefixes_of(query: ast.Query | ast.Mapping) -> dict[str, str]:
    """The prefixes that a query or a mapping can use: the predeclared ones, and its own."""
    return {**PREDECLARED, **dict(query.prologue.prefixes)}


def with_prefixes(text: str, prefixes: Mapping[str, str]) -> str:
    """The text of an expression, with prefixed names in place of absolute IRIs."""

    def shown(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else term_text(ast.Iri(found[1]), prefixes)

    return _IRI.sub(shown, text)


def kind_of(term: Term) -> str:
    """The kind of a term, in words: `a string`, `a number`."""
    kind = _values.decode(term).kind
    if kind in _KINDS:
        return _KINDS[kind]
    assert isinstance(term, ox.Literal)
    name = term.datatype.value.rpartition("#")[2]
    return f"a literal of type {name or term.datatype.value}"


def shown_term(term: Term, prefixes: Mapping[str, str] = NO_PREFIXES) -> str:
    """A term as a query writes it, cut if it is long."""
    text = term_text(as_node(term), prefixes)
    return text if len(text) <= LONGEST_TERM else f"{text[: LONGEST_TERM - 2]} …"


def as_node(term: Term) -> ast.Constant | ast.BlankNode:
    """A term of the data as a node of the syntax tree, for messages."""
    if isinstance(term, ox.NamedNode):
        return ast.Iri(term.value)
    if isinstance(term, ox.BlankNode):
        return ast.BlankNode(term.value)
    if isinstance(term, ox.Triple):
        parts: Any = map(as_node, term)
        return ast.TripleTerm(*parts)
    direction = None if term.direction is None else term.direction.value
    return ast.Literal(term.value, term.datatype.value, term.language, direction)


def values_text(
    expression: ast.Expr, row: Mapping[str, Term | None], prefixes: Mapping[str, str] = NO_PREFIXES
) -> str:
    """The values of the variables of an expression: `?x = 12, ?y unbound`."""
    names = dict.fromkeys(v.name for v in ast.walk(expression) if isinstance(v, ast.Var))
    parts = []
    for name in names:
        term = row.get(name)
        shown = " unbound" if term is None else f" = {shown_term(term, prefixes)}"
        parts.append(f"{named(name)}{shown}")
    return ", ".join(parts)


def error_text(
    condition: ast.Expr,
    row: Mapping[str, Term | None],
    scope: Scope,
    prefixes: Mapping[str, str] = NO_PREFIXES,
) -> str | None:
    """Why a condition or a value errs on a row; None if it does not."""
    return _Search(row, scope, prefixes).of_condition(condition)


def unlike_text(condition: ast.Expr, row: Mapping[str, Term | None], scope: Scope) -> str:
    """Why the two terms that a condition requires to be equal never are: their kinds."""
    if not (isinstance(condition, ast.Binary) and condition.operator == "="):
        return ""
    kinds = _Search(row, scope, NO_PREFIXES).kinds_of(condition)
    return f": {' and '.join(kinds)} are never equal" if len(set(kinds)) == 2 else ""


def named(name: str) -> str:
    """A variable, an aggregate or the value of the previous iteration, as a query writes it."""
    return _SCOPE.sub("", name) if "(" in name else f"?{name}"


def cause_of(aggregate: str) -> str:
    """The name, in a row, of the value because of which an aggregate has no value."""
    return f"{aggregate} errs on"


def _unbound_text(name: str, row: Mapping[str, Term | None], prefixes: Mapping[str, str]) -> str:
    reason, cause = "", row.get(cause_of(name))
    if name.startswith("PREV("):
        reason = ", as in every first iteration; a default gives it a value there"
    elif cause is not None:
        reason = f", because {shown_term(cause, prefixes)} is {kind_of(cause)}"
    return f"{named(name)} is unbound{reason}"


class _Search:
    """The evaluation of parts of an expression on one row."""

    def __init__(self, row: Mapping[str, Term | None], scope: Scope, prefixes: Mapping[str, str]):
        self._row = row
        self._scope = scope
        self._prefixes = prefixes
        self._slots = {name: slot for slot, name in enumerate(row)}
        self._env = tuple(row.values())

    def _value(self, expression: ast.Expr) -> Term | None:
        return compile_expression(expression, self._slots)(self._env, self._scope)

    def of_condition(self, condition: ast.Expr) -> str | None:
        """Like `error_text`, for a condition, which needs a truth value and not just a value."""
        value = self._value(condition)
        if value is None:
            return self._cause(condition)
        if _values.ebv(_values.decode(value)) is None:
            shown = shown_term(value, self._prefixes)
            return f"{shown} is {kind_of(value)}, which is neither true nor false"
        return None

    def kinds_of(self, expression: ast.Expr) -> list[str]:
        """The kinds of the operands, in words; operands without a value are omitted."""
        terms = [self._value(operand) for operand in subexpressions(expression)]
        return [kind_of(term) for term in terms if term is not None]

    def _cause(self, expression: ast.Expr) -> str:
        """Why an expression without a value has none."""
        if isinstance(expression, ast.Var):
            return _unbound_text(expression.name, self._row, self._prefixes)
        operands = subexpressions(expression)
        for operand in operands:
            if self._value(operand) is None:
                return self._cause(operand)
        if isinstance(expression, ast.Binary) and expression.operator in ("&&", "||"):
            for operand in operands:
                found = self.of_condition(operand)
                if found is not None:
                    return found
        terms = [self._value(operand) for operand in operands]
        if isinstance(expression, ast.Call) and expression.name in _MAKES_IRIS:
            found = self._no_iri(expression, terms)
            if found:
                return found
        kinds = listing(kind_of(term) for term in terms if term is not None)
        return f"{self._shown(expression, terms)}: {kinds}" if kinds else self._text(expression)

    def _no_iri(self, call: ast.Call, terms: list[Term | None]) -> str:
        """Why a string is no IRI; empty if the reason is another one."""
        if len(terms) != 1 or not isinstance(terms[0], ox.Literal):
            return ""
        found = _NOT_IN_IRIS.search(terms[0].value)
        shown = shown_term(terms[0], self._prefixes)
        if found is None:
            return "" if ":" in terms[0].value else f"{shown} is no absolute IRI"
        named = {" ": "a space", '"': "a quote"}.get(found[0], ascii(found[0]).replace("'", '"'))
        reason = f"{shown}: {named} is not allowed in an IRI"
        for variable in ast.walk(call):
            if isinstance(variable, ast.Var):
                value = self._row.get(variable.name)
                if isinstance(value, ox.Literal) and found[0] in value.value:
                    return f"{reason}; ENCODE_FOR_URI(?{variable.name}) encodes it"
        return reason

    def _shown(self, expression: ast.Expr, terms: list[Term | None]) -> str:
        """The operation, with its operands replaced by their values."""
        nodes = iter([None if term is None else as_node(term) for term in terms])
        operands = {id(operand) for operand in subexpressions(expression)}

        def change(node: object) -> object:
            return next(nodes) if id(node) in operands else None

        replaced = ast.rebuilt(expression, change)
        text = self._text(replaced)
        return text if len(text) <= 2 * LONGEST_TERM else self._text(expression)

    def _text(self, expression: ast.Expr) -> str:
        return expression_line(expression, self._prefixes)

"""SPARQL expressions → closures over rows and scopes.

An expression is compiled to its value or to its truth (effective boolean value), whichever is
needed, so that comparisons below `&&` or in a filter create no terms and no booleans. None is
SPARQL's error in both. Invariant: closures have no state; two evaluations on equal rows have equal
results, except for RAND, UUID, STRUUID and BNODE().

Cost: one Python call per node of the expression and one to decode each variable.
Source: SPARQL 1.1 sections 17.2 to 17.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.gpm.program import constant
from spaseq.gpm.python import pyoxigraph_call
from spaseq.gpm.python.functions import FUNCTIONS, KIND_TESTS
from spaseq.gpm.python.scope import Scope
from spaseq.parser import ast
from spaseq.rdf.conversion import cast, negate, plus
from spaseq.rdf.event import Term
from spaseq.rdf.native._values import (
    STRING,
    Value,
    add,
    boolean,
    decode,
    divide,
    ebv,
    equals,
    less,
    less_equal,
    multiply,
    subtract,
)
from spaseq.sparql.builtins import NAMED_BY_IRI, XSD

Env: TypeAlias = Sequence[Term | None]
ValueOf: TypeAlias = Callable[[Env, Scope], Value | None]
TruthOf: TypeAlias = Callable[[Env, Scope], bool | None]
Compare: TypeAlias = Callable[[Value, Value], bool | None]

_ARITHMETIC = {"+": add, "-": subtract, "*": multiply, "/": divide}
_COMPARISON: dict[str, tuple[Compare, bool]] = {
    "=": (equals, False),
    "<": (less, False),
    "<=": (less_equal, False),
    ">": (less, True),
    ">=": (less_equal, True),
}
"""Operator → (function, whether its operands are swapped)."""
_LOGICAL = frozenset(("||", "&&", "!=", *_COMPARISON))
_TRUTHS = frozenset((*KIND_TESTS, "BOUND", "SAMETERM"))
"""The functions and forms whose value is a boolean."""


class ExpressionCompiler:
    """Compiles expressions over rows whose columns are `slots`.

    The scope's `outer` binds the variables in `parameters`. `exists` compiles an EXISTS, whose
    filters it compiles with another `ExpressionCompiler`. The first `solution` columns (None: all)
    are the solution for which `BNODE(x)` creates blank nodes.
    """

    def __init__(
        self,
        slots: Mapping[str, int],
        parameters: frozenset[str],
        exists: Callable[[ast.Exists, Mapping[str, int], frozenset[str]], TruthOf],
        solution: int | None = None,
    ):
        self._slots = slots
        self._parameters = parameters
        self._exists = exists
        self._solution = solution

    # -------------------------------------------------------------- values

    def value(self, expr: ast.Expr) -> ValueOf:
        """The function that computes the value; None: an error, or unbound."""
        match expr:
            case ast.Var(name):
                return self._variable(name)
            case ast.Iri() | ast.Literal() | ast.TripleTerm():
                known = decode(constant(expr))
                return lambda env, scope: known
            case ast.Unary("-", operand):
                return _map(negate, self.value(operand))
            case ast.Unary("+", operand):
                return _map(plus, self.value(operand))
            case ast.Binary(operator, left, right) if operator not in _LOGICAL:
                return _map2(_ARITHMETIC[operator], self.value(left), self.value(right))
            case ast.FunctionCall():
                return self._named(expr)
            case ast.Call(name) if name not in _TRUTHS:
                return self._call(expr)
            case ast.Aggregate() | ast.Prev():
                raise TypeError(f"{type(expr).__name__} is not an expression over a row")
        truth = self.truth(expr)

        def value_of_truth(env: Env, scope: Scope) -> Value | None:
            found = truth(env, scope)
            return None if found is None else boolean(found)

        return value_of_truth

    def term(self, expr: ast.Expr) -> Callable[[Env, Scope], Term | None]:
        """The function that computes the value as a term."""
        if isinstance(expr, ast.Var):
            return self._lookup(expr.name)
        value = self.value(expr)

        def term_of(env: Env, scope: Scope) -> Term | None:
            found = value(env, scope)
            return None if found is None else found.term

        return term_of

    def _lookup(self, name: str) -> Callable[[Env, Scope], Term | None]:
        if name in self._parameters:
            return lambda env, scope: scope.outer.get(name)
        slot = self._slots.get(name)
        if slot is None:
            return lambda env, scope: None
        return lambda env, scope: env[slot]

    def _variable(self, name: str) -> ValueOf:
        slot = self._slots.get(name)
        if slot is None or name in self._parameters:
            lookup = self._lookup(name)

            def decode_outer(env: Env, scope: Scope) -> Value | None:
                found = lookup(env, scope)
                return None if found is None else decode(found)

            return decode_outer
        column: int = slot

        def decode_column(env: Env, scope: Scope) -> Value | None:
            found = env[column]
            return None if found is None else decode(found)

        return decode_column

    # -------------------------------------------------------------- truth

    def truth(self, expr: ast.Expr) -> TruthOf:
        """The function that computes the effective boolean value; None: an error."""
        match expr:
            case ast.Binary("||", left, right):
                return _either(self.truth(left), self.truth(right))
            case ast.Binary("&&", left, right):
                return _both(self.truth(left), self.truth(right))
            case ast.Binary("!=", left, right):
                return _not(_compare(equals, self.value(left), self.value(right)))
            case ast.Binary(operator, left, right) if operator in _COMPARISON:
                function, swapped = _COMPARISON[operator]
                if swapped:
                    left, right = right, left
                return _compare(function, self.value(left), self.value(right))
            case ast.Unary("!", operand):
                return _not(self.truth(operand))
            case ast.In(operand, choices, negated):
                inside = _member(self.value(operand), [self.value(choice) for choice in choices])
                return _not(inside) if negated else inside
            case ast.Exists():
                return self._exists(expr, self._slots, self._parameters)
            case ast.Call("BOUND", (ast.Var(name),)):
                lookup = self._lookup(name)
                return lambda env, scope: lookup(env, scope) is not None
            case ast.Call("SAMETERM", (left, right)):
                return _same_term(self.term(left), self.term(right))
            case ast.Call(name, (argument,)) if name in KIND_TESTS:
                return _test(KIND_TESTS[name], self.value(argument))
        value = self.value(expr)

        def truth_of_value(env: Env, scope: Scope) -> bool | None:
            found = value(env, scope)
            return None if found is None else ebv(found)

        return truth_of_value

    # -------------------------------------------------------------- calls

    def _call(self, call: ast.Call) -> ValueOf:
        name, arguments = call.name, call.arguments
        if name == "IF":
            return _choose(self.truth(arguments[0]), *map(self.value, arguments[1:]))
        if name == "COALESCE":
            return _first([self.value(argument) for argument in arguments])
        if name == "NOW":
            return lambda env, scope: decode(scope.now)
        if name == "BNODE":
            if not arguments:
                return lambda env, scope: decode(ox.BlankNode())
            return _blank(self.value(arguments[0]), self._solution)
        return _apply(FUNCTIONS[name], [self.value(argument) for argument in arguments])

    def _named(self, call: ast.FunctionCall) -> ValueOf:
        """A cast, a function of the table called by IRI, or a registered function."""
        name = call.function.value
        arguments = [self.value(argument) for argument in call.arguments]
        known = NAMED_BY_IRI.get(name)
        if known is None:
            return _registered(name, arguments)
        if known.kind == "function":
            return _apply(FUNCTIONS[name], arguments)
        (operand,) = arguments
        if known.by_reference:
            return _map(lambda value: _reference_cast(f"<{name}>", value), operand)
        local = name.removeprefix(XSD)
        return _map(lambda value: cast(local, value), operand)


def _registered(name: str, arguments: Sequence[ValueOf]) -> ValueOf:
    def called(env: Env, scope: Scope) -> Value | None:
        values = []
        for argument in arguments:
            value = argument(env, scope)
            if value is None:
                return None
            values.append(value)
        return scope.calls.function(name)(*values)

    return called


def _reference_cast(function: str, value: Value) -> Value | None:
    result = pyoxigraph_call.call(function, (value.term,))
    return None if result is None else decode(result)


# ------------------------------------------------------------------ combinators


def _map(function: Callable[[Value], Value | None], operand: ValueOf) -> ValueOf:
    def mapped(env: Env, scope: Scope) -> Value | None:
        value = operand(env, scope)
        return None if value is None else function(value)

    return mapped


def _map2(
    function: Callable[[Value, Value], Value | None], left: ValueOf, right: ValueOf
) -> ValueOf:
    def mapped(env: Env, scope: Scope) -> Value | None:
        first = left(env, scope)
        if first is None:
            return None
        second = right(env, scope)
        return None if second is None else function(first, second)

    return mapped


def _apply(function: Callable[..., Value | None], arguments: Sequence[ValueOf]) -> ValueOf:
    if len(arguments) == 1:
        return _map(function, arguments[0])

    def applied(env: Env, scope: Scope) -> Value | None:
        values = []
        for argument in arguments:
            value = argument(env, scope)
            if value is None:
                return None
            values.append(value)
        return function(*values)

    return applied


def _choose(condition: TruthOf, then: ValueOf, otherwise: ValueOf) -> ValueOf:
    def chosen(env: Env, scope: Scope) -> Value | None:
        truth = condition(env, scope)
        if truth is None:
            return None
        return then(env, scope) if truth else otherwise(env, scope)

    return chosen


def _first(choices: Sequence[ValueOf]) -> ValueOf:
    def first(env: Env, scope: Scope) -> Value | None:
        for choice in choices:
            value = choice(env, scope)
            if value is not None:
                return value
        return None

    return first


def _blank(label: ValueOf, width: int | None) -> ValueOf:
    """BNODE(x): one blank node per string, solution and event."""
    from hashlib import sha256  # imported here, since it loads OpenSSL

    def blank(env: Env, scope: Scope) -> Value | None:
        value = label(env, scope)
        if value is None or value.kind != STRING:
            return None
        event = scope.event
        place = None if event is None else (event.stream, event.instant)
        cells = [None if cell is None else str(cell) for cell in env[:width]]
        solution = repr((value.text, place, cells))
        return decode(ox.BlankNode("f" + sha256(solution.encode()).hexdigest()[:32]))

    return blank


def _either(left: TruthOf, right: TruthOf) -> TruthOf:
    def either(env: Env, scope: Scope) -> bool | None:
        first = left(env, scope)
        if first:
            return True
        second = right(env, scope)
        if second:
            return True
        return None if first is None or second is None else False

    return either


def _both(left: TruthOf, right: TruthOf) -> TruthOf:
    def both(env: Env, scope: Scope) -> bool | None:
        first = left(env, scope)
        if first is False:
            return False
        second = right(env, scope)
        if second is False:
            return False
        return None if first is None or second is None else True

    return both


def _not(operand: TruthOf) -> TruthOf:
    def negated(env: Env, scope: Scope) -> bool | None:
        truth = operand(env, scope)
        return None if truth is None else not truth

    return negated


def _compare(function: Compare, left: ValueOf, right: ValueOf) -> TruthOf:
    def compared(env: Env, scope: Scope) -> bool | None:
        first = left(env, scope)
        if first is None:
            return None
        second = right(env, scope)
        return None if second is None else function(first, second)

    return compared


def _test(function: Callable[[Value], bool], operand: ValueOf) -> TruthOf:
    def tested(env: Env, scope: Scope) -> bool | None:
        value = operand(env, scope)
        return None if value is None else function(value)

    return tested


def _same_term(
    left: Callable[[Env, Scope], Term | None], right: Callable[[Env, Scope], Term | None]
) -> TruthOf:
    def same(env: Env, scope: Scope) -> bool | None:
        first, second = left(env, scope), right(env, scope)
        return None if first is None or second is None else first == second

    return same


def _member(operand: ValueOf, choices: Sequence[ValueOf]) -> TruthOf:
    def member(env: Env, scope: Scope) -> bool | None:
        value = operand(env, scope)
        if value is None:
            return None
        result: bool | None = False
        for choice in choices:
            other = choice(env, scope)
            found = None if other is None else equals(value, other)
            if found:
                return True
            if found is None:
                result = None
        return result

    return member

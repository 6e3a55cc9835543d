"""SPARQL expressions → code for a small stack machine.

The code of an expression is flat data: per instruction one byte and one number, a pool of
constants, and the names of called functions. It refers to no dictionary and no stream;
`spaseq.gpm.native._bytecode` links it to a dictionary and runs it. Results are those of
`ExpressionCompiler`. `NotNative` refuses calls that only Python evaluates: volatile functions and
those that pyoxigraph computes.

Invariant: jumps lead forward, every instruction meets the same number of operands on every
path to it, and one is left at the end: the value of the expression. Cost: linear in the expression.

    >>> from spaseq.parser import parse_expression
    >>> print(compile_code(parse_expression("?p > 20 || BOUND(?q)"), {"p": 0, "q": 1}).code)
    0  CONSTANT      0  "20"^^<http://www.w3.org/2001/XMLSchema#integer>
    1  VARIABLE      0
    2  LESS
    3  JUMP_IF_TRUE  6
    4  BOUND         1
    5  OR
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

import pyoxigraph as ox

from spaseq.gpm.program import XSD_STRING, by_reference, constant
from spaseq.parser import ast
from spaseq.rdf.event import Term
from spaseq.records import dataclass
from spaseq.sparql.builtins import BUILTINS, NAMED_BY_IRI


class Operation(IntEnum):
    """What an instruction does; `n` is its operand.

    The `cpdef enum` of the same name in `_functions.pxd` is compared with this list on import.
    """

    NOTHING = 0  # push an error
    CONSTANT = 1  # push constants[n]
    VARIABLE = 2  # push the value of column n, or an error if it is unbound
    BOUND = 3  # push whether column n is bound
    EXISTS = 4  # push whether the pattern of EXISTS n matches
    SAME_TERM = 5
    EQUAL = 6
    NOT_EQUAL = 7
    LESS = 8
    LESS_EQUAL = 9
    ADD = 10
    SUBTRACT = 11
    MULTIPLY = 12
    DIVIDE = 13
    AND = 14
    OR = 15
    IS_TEXT = 16  # whether a string, with or without a language tag, has the text of another
    NOT = 17
    NEGATE = 18
    PLUS = 19
    TRUTH = 20  # the effective boolean value
    IS_IRI = 21
    IS_BLANK = 22
    IS_LITERAL = 23
    IS_NUMERIC = 24
    CAST = 25  # to the datatype functions[n]
    CALL = 26  # functions[n], with the number of arguments that the pool names
    JUMP = 27  # to instruction n
    JUMP_IF_TRUE = 28  # these three leave the operand that they test
    JUMP_IF_FALSE = 29
    JUMP_IF_ERROR = 30
    JUMP_UNLESS = 31  # pop; jump if it was false
    JUMP_IF_VALUE = 32  # pop an error; leave a value and jump
    BEGIN_IN = 33  # push false; below an error push an error and jump
    TRY_IN = 34  # pop a choice; jump if it equals the operand
    END_IN = 35  # drop the operand of IN below the answer
    IS_TRIPLE = 36


@dataclass(frozen=True, slots=True)
class ExpressionCode:
    """The code of one expression; `str()` shows one instruction per line."""

    operations: bytes
    operands: tuple[int, ...]
    constants: tuple[Term, ...]
    functions: tuple[tuple[str, int], ...]
    """Names of built-in functions and IRIs of others, each with its number of arguments."""
    columns: int
    """The least length of a row."""
    exists: int
    """The number of EXISTS."""

    def __str__(self) -> str:
        width = len(str(len(self.operations)))
        lines = []
        for place, (number, operand) in enumerate(zip(self.operations, self.operands, strict=True)):
            operation = Operation(number)
            shown = f"{place:{width}}  {operation.name:13}"
            if operation is Operation.CONSTANT:
                shown += f" {operand}  {self.constants[operand]}"
            elif operation in (Operation.CALL, Operation.CAST):
                name, count = self.functions[operand]
                shown += f" {operand}  {name}/{count}"
            elif operation in _WITH_OPERAND:
                shown += f" {operand}"
            lines.append(shown.rstrip())
        return "\n".join(lines)


_WITH_OPERAND = frozenset(
    (
        Operation.VARIABLE,
        Operation.BOUND,
        Operation.EXISTS,
        Operation.JUMP,
        Operation.JUMP_IF_TRUE,
        Operation.JUMP_IF_FALSE,
        Operation.JUMP_IF_ERROR,
        Operation.JUMP_UNLESS,
        Operation.JUMP_IF_VALUE,
        Operation.BEGIN_IN,
        Operation.TRY_IN,
    )
)


class Compiled(NamedTuple):
    """Code, and the patterns that its EXISTS instructions number; the code negates NOT EXISTS."""

    code: ExpressionCode
    exists: tuple[ast.Exists, ...]


class NotNative(Exception):
    """Only the Python operators evaluate the pattern or expression; `str()` gives the reason."""


def compile_code(expr: ast.Expr, slots: Mapping[str, int]) -> Compiled:
    """The code of an expression over rows with these columns; other variables are unbound.

    Raises:
        NotNative: if the expression has a call that only Python evaluates.
    """
    writer = _Writer(slots)
    writer.value(expr)
    return writer.written()


_BINARY = {
    "=": Operation.EQUAL,
    "!=": Operation.NOT_EQUAL,
    "<": Operation.LESS,
    "<=": Operation.LESS_EQUAL,
    ">": Operation.LESS,
    ">=": Operation.LESS_EQUAL,
    "+": Operation.ADD,
    "-": Operation.SUBTRACT,
    "*": Operation.MULTIPLY,
    "/": Operation.DIVIDE,
}
_INSTRUCTIONS = {
    each.name: Operation[each.opcode]
    for each in BUILTINS.values()
    if each.opcode and each.kind != "function"
}
"""The tests and forms that are one instruction; the result of each is a boolean."""

# Regular expressions without metacharacters, except an anchor at either end.
_PLAIN = re.compile(
    r"(?P<start>\^?)(?P<text>(?:[\w \-/:,;=@&%~'\"<>!]|\\[.\\\-/+*?()\[\]{}|^$])*)(?P<end>\$?)",
    re.ASCII,
)


class _Writer:
    """Writes the code of one expression, instruction after instruction."""

    def __init__(self, slots: Mapping[str, int]):
        self._slots = slots
        self._operations = bytearray()
        self._operands: list[int] = []
        self._constants: dict[Term, int] = {}
        self._functions: dict[tuple[str, int], int] = {}
        self._exists: list[ast.Exists] = []
        self._columns = 0

    def written(self) -> Compiled:
        code = ExpressionCode(
            bytes(self._operations),
            tuple(self._operands),
            tuple(self._constants),
            tuple(self._functions),
            self._columns,
            len(self._exists),
        )
        return Compiled(code, tuple(self._exists))

    def _put(self, operation: Operation, operand: int = 0) -> int:
        self._operations.append(operation)
        self._operands.append(operand)
        return len(self._operands) - 1

    def _land(self, *jumps: int) -> None:
        """Make these jumps lead to the next instruction."""
        for jump in jumps:
            self._operands[jump] = len(self._operands)

    def _constant(self, term: Term) -> None:
        self._put(Operation.CONSTANT, self._constants.setdefault(term, len(self._constants)))

    def _column(self, operation: Operation, name: str) -> bool:
        """Write an instruction on the column of a variable: whether it has one."""
        slot = self._slots.get(name)
        if slot is None:
            return False
        self._columns = max(self._columns, slot + 1)
        self._put(operation, slot)
        return True

    def _function(self, operation: Operation, name: str, count: int) -> None:
        known = self._functions.setdefault((name, count), len(self._functions))
        self._put(operation, known)

    # -------------------------------------------------------------- values

    def value(self, expr: ast.Expr) -> None:
        match expr:
            case ast.Var(name):
                if not self._column(Operation.VARIABLE, name):
                    self._put(Operation.NOTHING)
            case ast.Iri() | ast.Literal() | ast.TripleTerm():
                self._constant(constant(expr))
            case ast.Unary("!", operand):
                self.truth(operand)
                self._put(Operation.NOT)
            case ast.Unary(sign, operand):
                self.value(operand)
                self._put(Operation.NEGATE if sign == "-" else Operation.PLUS)
            case ast.Binary("&&", left, right):
                self._both(left, Operation.JUMP_IF_FALSE, right, Operation.AND)
            case ast.Binary("||", left, right):
                self._both(left, Operation.JUMP_IF_TRUE, right, Operation.OR)
            case ast.Binary(operator, left, right):
                if operator in (">", ">="):
                    left, right = right, left
                self.value(left)
                self.value(right)
                self._put(_BINARY[operator])
            case ast.In(operand, choices, negated):
                self._member(operand, choices)
                if negated:
                    self._put(Operation.NOT)
            case ast.Exists():
                self._put(Operation.EXISTS, len(self._exists))
                self._exists.append(expr)
                if expr.negated:
                    self._put(Operation.NOT)
            case ast.FunctionCall(function, arguments):
                self._refuse(expr)
                for argument in arguments:
                    self.value(argument)
                known = NAMED_BY_IRI.get(function.value)
                is_cast = known is not None and known.kind == "cast"
                operation = Operation.CAST if is_cast else Operation.CALL
                self._function(operation, function.value, len(arguments))
            case ast.Call():
                self._call(expr)
            case _:
                raise TypeError(f"there is no code for {type(expr).__name__}")

    def truth(self, expr: ast.Expr) -> None:
        """The effective boolean value."""
        self.value(expr)
        if not _is_truth(expr):
            self._put(Operation.TRUTH)

    def _both(self, left: ast.Expr, jump: Operation, right: ast.Expr, operation: Operation) -> None:
        self.truth(left)
        decided = self._put(jump)
        self.truth(right)
        self._put(operation)
        self._land(decided)

    def _member(self, operand: ast.Expr, choices: tuple[ast.Expr, ...]) -> None:
        self.value(operand)
        jumps = [self._put(Operation.BEGIN_IN)]
        for choice in choices:
            self.value(choice)
            jumps.append(self._put(Operation.TRY_IN))
        self._land(*jumps)
        self._put(Operation.END_IN)

    # -------------------------------------------------------------- calls

    def _refuse(self, call: ast.Call | ast.FunctionCall) -> None:
        name = by_reference(call)
        if name is not None:
            raise NotNative(f"{name} is left to pyoxigraph")
        if isinstance(call, ast.Call) and BUILTINS[call.name].volatile:
            raise NotNative(f"{call.name} is not a function of the row")

    def _call(self, call: ast.Call) -> None:
        self._refuse(call)
        match call:
            case ast.Call("BOUND", (ast.Var(name),)):
                if not self._column(Operation.BOUND, name):
                    self._constant(ox.Literal(False))
            case ast.Call("IF", (condition, then, otherwise)):
                self._choose(condition, then, otherwise)
            case ast.Call("COALESCE", choices):
                self._first(choices)
            case ast.Call("REGEX", (text, ast.Literal(pattern), *_)) if _plain(call):
                self._search(text, pattern)
            case ast.Call(name, arguments):
                for argument in arguments:
                    self.value(argument)
                if name in _INSTRUCTIONS:
                    self._put(_INSTRUCTIONS[name])
                else:
                    self._function(Operation.CALL, name, len(arguments))

    def _choose(self, condition: ast.Expr, then: ast.Expr, otherwise: ast.Expr) -> None:
        self.truth(condition)
        error = self._put(Operation.JUMP_IF_ERROR)
        unless = self._put(Operation.JUMP_UNLESS)
        self.value(then)
        end = self._put(Operation.JUMP)
        self._land(unless)
        self.value(otherwise)
        self._land(error, end)

    def _first(self, choices: tuple[ast.Expr, ...]) -> None:
        jumps = []
        for choice in choices:
            self.value(choice)
            jumps.append(self._put(Operation.JUMP_IF_VALUE))
        self._put(Operation.NOTHING)
        self._land(*jumps)

    def _search(self, text: ast.Expr, pattern: str) -> None:
        """A REGEX whose pattern is plain text, as a comparison of texts."""
        found = _PLAIN.fullmatch(pattern)
        assert found is not None
        self.value(text)
        self._constant(ox.Literal(re.sub(r"\\(.)", r"\1", found["text"])))
        if found["start"] and found["end"]:
            self._put(Operation.IS_TEXT)
            return
        name = "STRSTARTS" if found["start"] else "STRENDS" if found["end"] else "CONTAINS"
        self._function(Operation.CALL, name, 2)


def _is_truth(expr: ast.Expr) -> bool:
    """Whether the value is a boolean or an error, and thus its own effective boolean value."""
    match expr:
        case ast.Binary(operator):
            return operator not in ("+", "-", "*", "/")
        case ast.Unary(operator):
            return operator == "!"
        case ast.Call(name):
            return name in _INSTRUCTIONS or name == "BOUND"
    return isinstance(expr, ast.In | ast.Exists)


def _plain(call: ast.Call) -> bool:
    """Whether a REGEX has a constant pattern that is plain text, and no flag that changes it."""
    pattern, *flags = call.arguments[1:]
    return (
        isinstance(pattern, ast.Literal)
        and _PLAIN.fullmatch(pattern.lexical) is not None
        and all(
            isinstance(part, ast.Literal) and part.language is None and part.datatype == XSD_STRING
            for part in (pattern, *flags)
        )
        and all(isinstance(flag, ast.Literal) and flag.lexical in ("", "s") for flag in flags)
    )

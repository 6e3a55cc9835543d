"""Conditions over numbers: the code of an expression → steps between numbered numbers.

Most filters that correlate events are arithmetic, comparisons and their logic. Where every operand
is known to be a number or a truth, code needs neither a stack nor jumps: each step reads earlier
numbers and adds one more. `spaseq.gpm.native._bytecode` runs the steps.

    >>> from spaseq.gpm.native.bytecode import compile_code
    >>> from spaseq.parser import parse_expression
    >>> code = compile_code(parse_expression("?b > ?a * 1.05 && ?b < 100"), {"a": 0, "b": 1}).code
    >>> print(numeric_code(code))
    0  "1.05"^^<http://www.w3.org/2001/XMLSchema#decimal>
    1  "100"^^<http://www.w3.org/2001/XMLSchema#integer>
    2  column 0
    3  column 1
    4  MULTIPLY 2 0
    5  LESS 4 3
    6  LESS 3 1
    7  AND 5 6
"""

from __future__ import annotations

from typing import NamedTuple

from spaseq.gpm.native.bytecode import ExpressionCode, Operation
from spaseq.rdf.event import Term
from spaseq.rules import enabled

_ORDER = frozenset((Operation.LESS, Operation.LESS_EQUAL))
_COMPARISON = _ORDER | {Operation.EQUAL, Operation.NOT_EQUAL}
_ARITHMETIC = frozenset(
    (Operation.ADD, Operation.SUBTRACT, Operation.MULTIPLY, Operation.DIVIDE, Operation.NEGATE)
)
_EARLY = {Operation.AND: Operation.JUMP_IF_FALSE, Operation.OR: Operation.JUMP_IF_TRUE}
"""The jump over the right side of each; it does not affect the result if no operand is an error."""


class NumericStep(NamedTuple):
    """An operation on two earlier numbers; NOT and NEGATE have the same operand twice."""

    operation: Operation
    left: int
    right: int


class NumericCode(NamedTuple):
    """A condition; its numbers are the constants, the columns, then the results of the steps."""

    constants: tuple[Term, ...]
    columns: tuple[int, ...]
    steps: tuple[NumericStep, ...]

    def __str__(self) -> str:
        lines = [*map(str, self.constants), *(f"column {column}" for column in self.columns)]
        for operation, left, right in self.steps:
            alone = operation in (Operation.NOT, Operation.NEGATE)
            lines.append(f"{operation.name} {left}" + ("" if alone else f" {right}"))
        width = len(str(len(lines) - 1))
        return "\n".join(f"{number:{width}}  {line}" for number, line in enumerate(lines))


def numeric_code(code: ExpressionCode) -> NumericCode | None:
    """The condition in steps; None if it is not a condition over numbers.

    A condition that neither computes nor orders has no steps: the machine compares equal terms
    by their numbers, whatever the datatype.
    """
    if not enabled("numeric_filters"):
        return None
    read = zip(code.operations, code.operands, strict=True)
    columns = sorted({column for number, column in read if number == Operation.VARIABLE})
    given = len(code.constants) + len(columns)
    steps: list[NumericStep] = []
    stack: list[int] = []
    early: list[tuple[int, Operation, int]] = []

    def truths(*numbers: int) -> bool:
        """Whether all of these are truths; a number that is not a truth is numeric."""
        return all(n >= given and steps[n - given].operation not in _ARITHMETIC for n in numbers)

    for place, number in enumerate(code.operations):
        operation, operand = Operation(number), code.operands[place]
        match operation:
            case Operation.CONSTANT:
                stack.append(operand)
                continue
            case Operation.VARIABLE:
                stack.append(len(code.constants) + columns.index(operand))
                continue
            case Operation.JUMP_IF_TRUE | Operation.JUMP_IF_FALSE:
                early.append((operand, operation, stack[-1]))
                continue
            case Operation.PLUS if not truths(stack[-1]):
                continue
            case Operation.NOT | Operation.NEGATE:
                left = right = stack.pop()
                fits = truths(left) == (operation is Operation.NOT)
            case Operation.AND | Operation.OR:
                right, left = stack.pop(), stack.pop()
                fits = truths(left, right) and (
                    not early or early.pop() == (place + 1, _EARLY[operation], left)
                )
            case _ if operation in _COMPARISON or operation in _ARITHMETIC:
                right, left = stack.pop(), stack.pop()
                fits = not (truths(left) or truths(right))
            case _:
                fits = False
        if not fits:
            return None
        stack.append(given + len(steps))
        steps.append(NumericStep(operation, left, right))
    done = {step.operation for step in steps}
    if early or not truths(*stack) or done.isdisjoint(_ORDER | _ARITHMETIC):
        return None
    return NumericCode(code.constants, tuple(columns), tuple(steps))

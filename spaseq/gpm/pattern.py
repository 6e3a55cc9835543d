"""Graph patterns with their local filters, compiled: what is native and what is not.

The decision is made when a query is compiled; a `Pattern` is frozen and picklable. A pattern is
native as a whole or not at all. Its filters are native up to the first that is not; the Python
evaluator tests that one and the filters after it on the rows that pass the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from spaseq.gpm import algebra
from spaseq.gpm.native.bytecode import Compiled, NotNative, compile_code
from spaseq.gpm.native.existence import keyed
from spaseq.gpm.native.lower import Existences, Lowered, lower
from spaseq.gpm.program import GpmProgram
from spaseq.parser import ast
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class NativePattern:
    """The part of a pattern that the native matcher runs.

    `slots` names the slots of a row, the variables of the program first. `filters` are the native
    filters; `codes` has the bytecode of every expression.
    """

    root: algebra.Node
    slots: tuple[str, ...]
    exists: Existences
    filters: tuple[ast.Expr, ...]
    codes: Mapping[ast.Expr, Compiled]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A graph pattern and its local filters.

    `native` is None if the pattern runs on operators in Python. `left_to_python` names, for
    `explain`, what runs in Python and why.
    """

    program: GpmProgram
    filters: tuple[ast.Expr, ...]
    native: NativePattern | None = field(compare=False)
    left_to_python: tuple[str, ...] = field(compare=False)


def compile_pattern(program: GpmProgram, filters: Sequence[ast.Expr] = ()) -> Pattern:
    """The compiled pattern of a program, native as far as possible.

    The filter that is not native is found by halving: cost n log n for n filters.
    """
    filters = tuple(filters)
    try:
        native = _native(program, ())
    except NotNative as reason:
        return Pattern(program, filters, None, (str(reason),))
    known, tried, failing, why = 0, len(filters), len(filters) + 1, ""
    while known < tried:
        try:
            native, known = _native(program, filters[:tried]), tried
        except NotNative as reason:
            failing, why = tried, str(reason)
        tried = (known + failing) // 2
    return Pattern(program, filters, native, (why,) if why else ())


def canonical(pattern: Pattern) -> Pattern:
    """The pattern with canonical names of variables.

    Two patterns have equal canonical patterns iff they differ in the names of variables only.

    Patterns that query a knowledge base keep their names, since the requests contain them.
    """
    program, nodes = pattern.program, (pattern.program.pattern, *pattern.filters)
    if any(isinstance(node, ast.Graph | ast.Service) for node in ast.walk(nodes)):
        return pattern
    names = {name: f"column {number}" for number, name in enumerate(program.variables)}

    def change(node: object) -> object:
        if isinstance(node, ast.Var) and node.name in names:
            return replace(node, name=names[node.name])
        return None

    same = replace(
        program,
        pattern=ast.rebuilt(program.pattern, change),
        variables=tuple(names.values()),
        certain=frozenset(names[name] for name in program.certain),
        at=None if program.at is None else names[program.at],
    )
    return Pattern(same, ast.rebuilt(pattern.filters, change), None, ())


def _native(program: GpmProgram, filters: tuple[ast.Expr, ...]) -> NativePattern:
    lowered = lower(program.pattern, program.variables, filters)
    place = {name: slot for slot, name in enumerate(lowered.slots)}
    codes = {
        expression: compile_code(expression, place)
        for expression in (*_expressions(lowered), *filters)
    }
    exists = keyed(lowered.root, lowered.exists, filters)
    return NativePattern(lowered.root, lowered.slots, exists, filters, codes)


def _expressions(lowered: Lowered) -> Iterator[ast.Expr]:
    for root in (lowered.root, *lowered.exists.values()):
        for node in algebra.walk(root):
            match node:
                case algebra.LeftJoin():
                    yield from node.conditions
                case algebra.Filter():
                    yield node.condition
                case algebra.Extend():
                    yield node.expression
                case algebra.Group():
                    for column in node.columns:
                        yield from column.expressions


class SharedPatterns:
    """The numbers of patterns, found by their content without the names of variables."""

    def __init__(self) -> None:
        self._numbers: dict[Pattern, int] = {}
        self._keys: dict[int, Pattern] = {}

    def replace(self, patterns: Mapping[int, Pattern]) -> None:
        """Enter patterns, in place of those that had their numbers."""
        for number, pattern in patterns.items():
            before = self._keys.pop(number, None)
            if before is not None and self._numbers.get(before) == number:
                del self._numbers[before]
            key = canonical(pattern)
            if self._numbers.setdefault(key, number) == number:
                self._keys[number] = key

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget the patterns of some numbers."""
        for number in numbers:
            key = self._keys.pop(number, None)
            if key is not None:
                del self._numbers[key]

    def find(self, key: Pattern) -> int | None:
        """The number of the patterns with a `canonical` form; None if there is none."""
        return self._numbers.get(key)

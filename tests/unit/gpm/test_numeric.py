"""The numeric filter: its steps, its decisions, and its answers for a box.

It decides drawn conditions over numbers of all datatypes, spellings and sizes as the Python
evaluator, the stack machine and fractions do, or leaves them undecided; and it excludes no box that
has a row for which the condition is true. `SPASEQ_EXAMPLES` is the number of conditions (default
1500), `SPASEQ_SEED` the seed.
"""

from __future__ import annotations

import doctest
import os
from contextlib import suppress
from random import Random

import pyoxigraph as ox
import pytest

from spaseq.gpm.native import _bytecode as _numeric_filter
from spaseq.gpm.native import numeric_filter
from spaseq.gpm.native._bytecode import Expression
from spaseq.gpm.native.bytecode import ExpressionCode, Operation, compile_code
from spaseq.gpm.native.numeric_filter import NumericCode, NumericStep, numeric_code
from spaseq.gpm.python.expression import ExpressionCompiler
from spaseq.gpm.python.scope import Scope
from spaseq.parser import ast, parse_expression
from spaseq.parser.format import format_expression
from spaseq.rdf.event import Term
from spaseq.rdf.native._terms import Dictionary, EventBatch
from spaseq.rdf.native._values import decode
from tests.oracle_numbers import NotNumericError, truth_of
from tests.unit.rdf.literals import literal

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "1500"))
SEED = int(os.environ.get("SPASEQ_SEED", "0"))
SLOTS = {"a": 0, "b": 1, "c": 2}
COLUMNS = len(SLOTS)
ROWS = 12


def steps(text: str) -> str | None:
    found = numeric_code(compile_code(parse_expression(text), SLOTS).code)
    return None if found is None else str(found)


def test_the_example() -> None:
    assert doctest.testmod(numeric_filter).failed == 0


@pytest.mark.parametrize(
    "text",
    [
        "?a < ?b",
        "!(?a * ?b >= 7) || -?a = ?c && ?b / ?a != 1.5",
        "?a - ?b <= ?c && +?b > 0 && ?c > 0",
    ],
)
def test_conditions_over_numbers_have_steps(text: str) -> None:
    assert steps(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "?a",
        "?a = ?b",
        "?a = ?b || ?a != ?c",
        "?a + ?b",
        "?a * ?b > 1 && ?c",
        "?a && ?b > 1",
        "(?a < ?b) < ?c",
        "(?a < ?b) + 1 > 0",
        "(?a < ?b) = (?b < ?c)",
        "-(?a < ?b) > 1",
        "+(?a < ?b) || ?c > 1",
        "!?a || ?b < ?c",
        "ABS(?a) < ?b",
        "?a < ?nowhere",
        "?a IN (1, 2) && ?b < 3",
        "BOUND(?a) && ?a < 3",
        "IF(?a < 1, ?b < 1, ?c < 1)",
    ],
)
def test_what_is_not_all_numbers_has_none(text: str) -> None:
    assert steps(text) is None


def test_a_jump_that_skips_anything_else_is_not_left_out() -> None:
    """`?a < ?b`, and its negation if it is true: no compiler writes that."""
    operations = (Operation.VARIABLE, Operation.VARIABLE, Operation.LESS)
    for more in (
        ((Operation.JUMP_IF_FALSE, 5), (Operation.NOT, 0)),
        ((Operation.JUMP_IF_FALSE, 6), (Operation.CONSTANT, 0), (Operation.CONSTANT, 0)),
    ):
        code = ExpressionCode(
            bytes((*operations, *(operation for operation, _ in more))),
            (0, 1, 0, *(operand for _, operand in more)),
            (literal("1", "integer"),),
            (),
            2,
            0,
        )
        assert numeric_code(code) is None


def test_a_constant_that_is_no_number_leaves_nothing_to_decide() -> None:
    dictionary = Dictionary()
    for constant, expected in (("'x'", False), ("2.5", True), ("2e0", True)):
        code = compile_code(parse_expression(f"?a < {constant} && ?b > ?a"), SLOTS).code
        assert Expression(code, dictionary).is_numeric == expected


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("?b > ?a * 1.05 && ?b < 100", ("integer 50", "integer 60"), True),
        ("?b > ?a * 1.05 && ?b < 100", ("decimal 50.25", "decimal 52.75"), False),
        ("?a * ?b / ?c >= 2.50", ("decimal 0.789012", "decimal 12.5", "integer 4"), False),
        ("?a / ?b > 1.000", ("decimal 1234567.8901", "decimal 1234567.89"), True),
        ("?a - 0.1e0 < ?b", ("decimal 12.10", "double 12.000001"), True),
        ("?a * 1.50 != ?b", ("integer 1000000007", "decimal 1500000010.500"), False),
    ],
)
def test_numbers_of_usual_sizes_are_decided(
    text: str, given: tuple[str, ...], expected: bool
) -> None:
    expression, batch, row, _ = asked(text, given)
    assert expression.decide(batch, row) is expected
    assert expression.test(batch, row) is expected


def asked(
    text: str, given: tuple[str, ...]
) -> tuple[Expression, EventBatch, list[int], list[ox.Literal]]:
    """A condition, and a row of numbers as `datatype form` that are neither permanent nor more."""
    dictionary = Dictionary()
    expression = Expression(compile_code(parse_expression(text), SLOTS).code, dictionary)
    terms = [literal(form, name) for name, form in (term.split() for term in given)]
    batch = EventBatch(dictionary)
    row = [batch.number(term) for term in terms] + [0] * (COLUMNS - len(terms))
    return expression, batch, row, terms


def test_what_is_no_row_of_the_batch_is_refused() -> None:
    expression, batch, row, _ = asked("?a * ?b > 1 && ?c > 0", ("integer 1", "integer 2"))
    for wrong in ([], row[:2], [5_000_000, *row[1:]], [0x40000005, *row[1:]]):
        with pytest.raises(ValueError, match=r"a row must have|the batch has no term"):
            expression.decide(batch, wrong)
        with pytest.raises(ValueError, match=r"a row must have|the batch has no term"):
            expression.may(batch, wrong, [])
    with pytest.raises(ValueError, match="at most 16 columns, not 17"):
        expression.may(batch, row, [(0, 1.0, 2.0)] * 17)


# ------------------------------------------------------------------ drawn

OTHERS: tuple[Term | None, ...] = (
    None,
    ox.Literal("x"),
    ox.NamedNode("urn:x"),
    literal("1.5", "float"),
    literal("NaN", "double"),
    literal("INF", "double"),
    literal("-0.0", "double"),
    literal("true", "boolean"),
    literal("2020-01-31T10:00:00Z", "dateTime"),
)
"""What is no number, or is left to the machine."""


class Drawer:
    """Conditions over a few columns, and numbers for them."""

    def __init__(self, chance: Random):
        self.chance = chance

    def condition(self, depth: int) -> ast.Expr:
        kind = self.chance.choice(("compare", "compare", "logic", "not")) if depth else "compare"
        match kind:
            case "logic":
                operator = self.chance.choice(("&&", "||"))
                left, right = self.condition(depth - 1), self.condition(depth - 1)
                return ast.Binary(operator, left, right)
            case "not":
                return ast.Unary("!", self.condition(depth - 1))
        operator = self.chance.choice(("<", "<=", ">", ">=", "=", "!=", "<", ">"))
        return ast.Binary(operator, self.number(depth), self.number(self.chance.randint(0, 2)))

    def number(self, depth: int) -> ast.Expr:
        luck = self.chance.random()
        if depth == 0 or luck < 0.2:
            if luck < 0.6 or depth:
                return ast.Var(self.chance.choice(list(SLOTS)))
            term = self.term(self.chance.choice((0, 1, 2)))
            return ast.Literal(term.value, term.datatype.value)
        if luck < 0.3:
            return ast.Unary("-", self.number(depth - 1))
        operator = self.chance.choice("+-*/")
        return ast.Binary(operator, self.number(depth - 1), self.number(depth - 1))

    def term(self, size: int) -> ox.Literal:
        """A number of some size: from a few units to all that there is room for."""
        chance = self.chance
        whole = chance.randint(-(10 ** (1, 4, 9, 18)[size]), 10 ** (1, 4, 9, 18)[size])
        match chance.randrange(8):
            case 0 | 1 | 2:
                return literal(chance.choice(("", "", "0")) + str(abs(whole)), "integer")
            case 3 | 4:
                places = chance.choice((1, 2, 2, 7, 8, 12, 18))
                return literal(f"{whole}.{chance.randrange(10**places):0{places}}", "decimal")
            case 5:
                return literal(f"{whole}.{chance.choice(('0', '5', '50', '25'))}", "decimal")
        return literal(repr(whole * chance.choice((1.0, 0.1, 1e-9, 1e30))), "double")

    def other(self) -> Term | None:
        return self.chance.choice(OTHERS)


class Drawn:
    """One condition, ready, and rows for it, of numbers that lie more or less together."""

    def __init__(self, seed: int):
        chance = Random(seed)
        drawer = Drawer(chance)
        self.expr = drawer.condition(chance.choice((0, 1, 1, 2, 2, 3)))
        self.text = format_expression(self.expr)
        dictionary = Dictionary()
        self.expression = Expression(compile_code(self.expr, SLOTS).code, dictionary)
        self.batch = EventBatch(dictionary)
        size = chance.choice((0, 0, 1, 1, 2, 3))
        near = [drawer.term(size) for _ in range(chance.choice((2, 3, 6)))]
        odd = chance.choice((0, 0, 0, 0.1))
        self.rows: list[tuple[Term | None, ...]] = [
            tuple(
                drawer.other() if chance.random() < odd else chance.choice(near)
                for _ in range(COLUMNS)
            )
            for _ in range(ROWS)
        ]
        self.numbers = [
            [0 if term is None else self.batch.number(term) for term in row] for row in self.rows
        ]

    def box(self, columns: list[int]) -> list[tuple[int, float, float]]:
        """Between which doubles the rows lie; whatever is no number, anywhere."""
        found = []
        for column in columns:
            values = [_real(row[column]) for row in self.rows]
            known = [value for value in values if value is not None]
            if len(known) < len(values):
                found.append((column, float("-inf"), float("inf")))
            else:
                found.append((column, min(known), max(known)))
        return found


def _real(term: Term | None) -> float | None:
    if not isinstance(term, ox.Literal):
        return None
    value = decode(term)
    name = term.datatype.value.rpartition("#")[2]
    if name not in ("integer", "decimal", "double") or value.real != value.real:
        return None
    return float(term.value)


def test_what_is_decided_is_what_the_machine_decides() -> None:
    decided = rows = 0
    for seed in range(SEED, SEED + EXAMPLES):
        one = Drawn(seed)
        if not one.expression.is_numeric:
            continue
        truth = ExpressionCompiler(SLOTS, frozenset(), lambda *_: lambda env, scope: None).truth(
            one.expr
        )
        for terms, numbers in zip(one.rows, one.numbers, strict=True):
            expected = truth(terms, Scope())
            found = one.expression.decide(one.batch, numbers)
            assert found is None or found is expected, (seed, one.text, terms)
            assert one.expression.test(one.batch, numbers) is expected, (seed, one.text, terms)
            decided += found is not None
            rows += 1
    assert rows > 6 * EXAMPLES
    assert 0.4 * rows < decided < 0.95 * rows, decided / rows


def test_what_is_decided_is_what_the_stack_machine_computes_and_what_fractions_say() -> None:
    """`evaluate` runs the stack machine without shortcuts; the other reference has no limits."""
    machine = fractions = 0
    for seed in range(SEED, SEED + EXAMPLES):
        one = Drawn(seed)
        if not one.expression.is_numeric:
            continue
        for terms, numbers in zip(one.rows, one.numbers, strict=True):
            found = one.expression.decide(one.batch, numbers)
            if found is None:
                continue
            value = one.expression.evaluate(one.batch, numbers)
            assert one.batch.term(value).value == str(found).lower(), (seed, one.text, terms)
            machine += 1
            with suppress(NotNumericError):
                expected = truth_of(one.expr, dict(zip(SLOTS, terms, strict=True)))
                assert found is expected, (seed, one.text, terms)
                fractions += 1
    assert machine > 3 * EXAMPLES
    assert fractions > EXAMPLES, fractions


def test_a_step_that_the_filter_does_not_know_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = NumericCode((), (0, 1), (NumericStep(Operation.SAME_TERM, 0, 1),))
    monkeypatch.setattr(_numeric_filter, "numeric_code", lambda code: unknown)
    with pytest.raises(ValueError, match="the numeric filter has no step 5"):
        Expression(compile_code(parse_expression("?a < ?b"), SLOTS).code, Dictionary())


def test_what_is_true_of_a_row_may_be_of_its_box() -> None:
    excluded = boxes = 0
    for seed in range(SEED, SEED + EXAMPLES):
        one, chance = Drawn(seed), Random(seed)
        if not one.expression.is_numeric:
            continue
        columns = sorted(chance.sample(range(COLUMNS), chance.randint(1, COLUMNS)))
        given = chance.choice(one.numbers)
        rows = [
            [row[c] if c in columns else given[c] for c in range(COLUMNS)] for row in one.numbers
        ]
        bound = [0 if c in columns else given[c] for c in range(COLUMNS)]
        may = one.expression.may(one.batch, bound, one.box(columns))
        true = [row for row in rows if one.expression.test(one.batch, row)]
        assert may or not true, (seed, one.text, columns, one.rows)
        excluded += not may
        boxes += not true
    assert boxes > EXAMPLES / 10
    assert excluded > boxes / 3, excluded / boxes


# ------------------------------------------------------------------ limits


AT_THE_LIMITS = [
    # Integers that are one as doubles; products of more than 18 places; decimals beside doubles.
    ("?a < ?b", ("integer 9007199254740992", "integer 9007199254740993")),
    (
        "?a * ?b = ?c",
        ("decimal 0.000000001", "decimal 0.0000000015", "decimal 0.0000000000000000015"),
    ),
    ("?a * ?b > 0.0", ("decimal 0.0000000001", "decimal 0.0000000015")),
    ("?a / ?b = 0.666666666666666666", ("integer 2", "integer 3")),
    ("?a <= ?b && ?b <= ?a", ("decimal 2510686130.97276949", "double 2510686130.9727693")),
    ("?a + 1 > 0", ("integer 9223372036854775806",)),
    ("-?a > 0", ("integer -9223372036854775807",)),
    ("?a * ?b > 1", ("decimal 92233720368547758.07", "decimal 100.5")),
    ("?a * ?b > 1e308", ("double 1e200", "double 1e200")),
]


@pytest.mark.parametrize(("text", "given"), AT_THE_LIMITS)
def test_at_the_limits_too(text: str, given: tuple[str, ...]) -> None:
    expression, batch, row, terms = asked(text, given)
    assert expression.is_numeric
    compiler = ExpressionCompiler(SLOTS, frozenset(), lambda *_: lambda env, scope: None)
    truth = compiler.truth(parse_expression(text))
    assert truth((*terms, *[None] * (COLUMNS - len(terms))), Scope()) is True
    assert expression.decide(batch, row) in (None, True)
    assert expression.test(batch, row) is True
    box = [(column, float(term.value), float(term.value)) for column, term in enumerate(terms)]
    assert expression.may(batch, [0] * COLUMNS, box)

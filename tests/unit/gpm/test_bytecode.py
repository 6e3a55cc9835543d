"""Compiled code means what the closures of `ExpressionCompiler` mean."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping, Sequence
from random import Random

import pyoxigraph as ox
import pytest

from spaseq.gpm.native import _functions as _operators
from spaseq.gpm.native._bytecode import Expression
from spaseq.gpm.native.bytecode import ExpressionCode, NotNative, Operation, compile_code
from spaseq.gpm.python.entry import compile_expression
from spaseq.gpm.python.expression import ExpressionCompiler
from spaseq.gpm.python.scope import Scope
from spaseq.parser import ast, parse_expression
from spaseq.parser.format import format_expression
from spaseq.rdf.event import Term
from spaseq.rdf.native import _terms as _memory
from spaseq.rdf.native._terms import Dictionary, EventBatch
from spaseq.sparql.builtins import CASTS
from tests.unit.gpm.drawn_expressions import TERMS, drawn
from tests.unit.rdf.literals import literal

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "4000"))
SEED = int(os.environ.get("SPASEQ_SEED", "0"))
ROWS = 4
LINK = ox.NamedNode("urn:p")


class Rows:
    """A batch that is filled with the terms of rows, as events would bring them."""

    def __init__(self, permanent: Sequence[Term] = ()):
        self.dictionary = Dictionary()
        self.numbers: dict[Term, int] = {}
        for term in permanent:
            self.dictionary.intern(term)
        self.batch = EventBatch(self.dictionary)

    def row(self, terms: Sequence[Term | None]) -> list[int]:
        """The numbers of terms, 0 for None."""
        return [0 if term is None else self.batch.number(term) for term in terms]


def answers(
    expr: ast.Expr, slots: Mapping[str, int], row: Sequence[Term | None]
) -> tuple[bool | None, Term | None]:
    """Truth and value by the closures."""
    truth = ExpressionCompiler(slots, frozenset(), lambda *_: lambda env, scope: None).truth(expr)
    return truth(row, Scope()), compile_expression(expr, slots)(row, Scope())


def found(expression: Expression, rows: Rows, numbers: Sequence[int]) -> tuple[bool | None, object]:
    """Truth and value by the code."""
    truth = expression.test(rows.batch, numbers)
    number = expression.evaluate(rows.batch, numbers)
    return truth, rows.batch.term(number) if number else None


def test_drawn_expressions():
    chance = Random(SEED)
    left_out = 0
    for _ in range(EXAMPLES):
        expr, slots, table = drawn(chance, ROWS)
        try:
            code = compile_code(expr, slots).code
        except NotNative:
            left_out += 1
            continue
        rows = Rows(chance.sample(TERMS, 3))
        expression = Expression(code, rows.dictionary)
        rows.batch.clear()
        numbered = [rows.row(terms) for terms in table]
        for terms, numbers in zip(table, numbered, strict=True):
            expected = answers(expr, slots, terms)
            assert found(expression, rows, numbers) == expected, (format_expression(expr), terms)
        rows.batch.clear()
        for terms in table:
            again = found(expression, rows, rows.row(terms))
            assert again == answers(expr, slots, terms), (format_expression(expr), terms)
    assert left_out < EXAMPLES / 10


# ------------------------------------------------------------------ cases

CASES = (
    "?a",
    "?nowhere",
    "BOUND(?a)",
    "BOUND(?nowhere)",
    "?a = ?b || ?c",
    "?a && ?b",
    "!(?a != ?b) && (?b || ?nowhere)",
    "IF(?a, ?b, ?a = ?b)",
    "!IF(?a, ?b, ?a = ?b)",
    "IF(IF(?a, ?b, ?c), COALESCE(?b, ?c), ?a) = ?c",
    "COALESCE()",
    "COALESCE(?nowhere, ?a + ?b, ?c, 1)",
    "?a IN ()",
    "?a NOT IN (?b, ?nowhere, ?c)",
    "?a IN (?b, 1, 'abc', <http://a/>)",
    "sameTerm(?a, ?b)",
    "sameTerm(?a + 0, ?b)",
    "sameTerm(STR(?a), STR(?b))",
    "?a + ?b",
    "?a - ?b",
    "?a * ?b",
    "?a / ?b",
    "-?a",
    "+?a",
    "-(-?a) * ?b / ?c",
    "?a < ?b",
    "?a >= ?b",
    "?a = ?b",
    "isIRI(?a) || isBlank(?a) || isLiteral(?a) && !isNumeric(?a)",
    "STR(?a)",
    "LANG(?a)",
    "DATATYPE(?a)",
    "DATATYPE(?a + ?b)",
    "LANGMATCHES(LANG(?a), ?b)",
    "STRLEN(?a)",
    "SUBSTR(?a, ?b)",
    "SUBSTR(?a, ?b, ?c)",
    "UCASE(?a)",
    "LCASE(?a)",
    "CONCAT()",
    "CONCAT(?a)",
    "CONCAT(?a, ?b, ?c)",
    "STRBEFORE(?a, ?b)",
    "STRAFTER(?a, ?b)",
    "CONTAINS(?a, ?b)",
    "STRSTARTS(?a, ?b) || STRENDS(?a, ?b)",
    "CEIL(?a) + FLOOR(?b) + ROUND(?c)",
    "ABS(?a)",
    "ROUND(?a)",
    "YEAR(?a)",
    "MONTH(?a) + DAY(?a)",
    "HOURS(?a) * 3600 + MINUTES(?a) * 60 + SECONDS(?a)",
    "TZ(?a)",
    "TIMEZONE(?a) + ?b",
    "MD5(?a)",
    "STRDT(STR(?a), <http://www.w3.org/2001/XMLSchema#decimal>) + 1",
    "STRLANG(?a, 'en-GB')",
    "STRDT(?a, ?b)",
    "STRDT('2026-01-01', <http://www.w3.org/2001/XMLSchema#date>) < ?a",
    "STRDT(STR(?a), <http://www.w3.org/2001/XMLSchema#string>)",
    "ENCODE_FOR_URI(?a)",
    "IRI(?a)",
    "IRI(CONCAT('http://a.example/', STR(?a)))",
    "IRI(CONCAT('http://a.example/', ENCODE_FOR_URI(STR(?a)))) = ?b",
    "STRLEN(STR(IRI(CONCAT('urn:', STR(?a)))))",
    "REGEX(?a, '^ab')",
    "REGEX(?a, 'c$')",
    "REGEX(?a, '^abc$')",
    "REGEX(?a, 'b')",
    "REGEX(?a, 'b', 's')",
    "REGEX(?a, 'B', 'i')",
    "REGEX(?a, 'a.*c')",
    "REGEX(?a, '\\\\.5')",
    "REGEX(?a, '')",
    *(f"<http://www.w3.org/2001/XMLSchema#{name}>(?a)" for name in sorted(CASTS)),
)
SLOTS = {"a": 0, "b": 1, "c": 2}


@pytest.mark.parametrize("text", CASES)
def test_every_term_in_every_case(text):
    """Each term is `a` once; `b` and `c` are drawn."""
    chance = Random(text)
    expr = parse_expression(text)
    expression_of = compile_code(expr, SLOTS).code
    rows = Rows(TERMS[::7])
    expression = Expression(expression_of, rows.dictionary)
    rows.batch.clear()
    for term in (None, *TERMS):
        for _ in range(3):
            row = (term, chance.choice(TERMS), chance.choice((None, *TERMS)))
            assert found(expression, rows, rows.row(row)) == answers(expr, SLOTS, row), row


def test_iris_of_drawn_texts():
    """The native form of IRI accepts no text that is not an IRI."""
    chance = Random(SEED)
    parts = ("http", "urn", "://", ":", "/", "a", "ex.org", "9", "80", "#", "?", "%", "%2F", "[",
             "@", "ß", " ", "-", "\\", "", "^", "&x=1", "//", ".")  # fmt: skip
    code = compile_code(parse_expression("IRI(?a)"), {"a": 0}).code
    rows = Rows()
    expression = Expression(code, rows.dictionary)
    iris = 0
    for _ in range(EXAMPLES):
        text = "".join(chance.choices(parts, k=chance.randrange(8)))
        if chance.random() < 0.5:
            text = "http://" + text
        try:
            expected = ox.NamedNode(text)
        except ValueError:
            expected = None
        number = expression.evaluate(rows.batch, rows.row([ox.Literal(text)]))
        assert (rows.batch.term(number) if number else None) == expected, text
        iris += expected is not None
    assert EXAMPLES / 20 < iris < EXAMPLES


def test_all_pairs_compare():
    texts = ("?a = ?b", "?a != ?b", "?a < ?b", "?a <= ?b", "?a > ?b", "?a IN (?b)")
    for text in texts:
        expr = parse_expression(text)
        closure = ExpressionCompiler(SLOTS, frozenset(), lambda *_: lambda env, scope: None)
        truth = closure.truth(expr)
        rows = Rows()
        expression = Expression(compile_code(expr, SLOTS).code, rows.dictionary)
        rows.batch.clear()
        numbers = rows.row(TERMS)
        for a, left in zip(TERMS, numbers, strict=True):
            for b, right in zip(TERMS, numbers, strict=True):
                expected = truth((a, b, None), Scope())
                assert expression.test(rows.batch, (left, right)) is expected, (text, a, b)


def test_numbers_at_the_limits():
    """Arithmetic on numbers with as many bits as there are, and next to powers of ten."""
    chance = Random(SEED)
    slots = {"a": 0, "b": 1}
    exprs = [parse_expression(f"?a {operator} ?b") for operator in "+-*/"]
    exprs += [parse_expression(f"{name}(?a)") for name in ("ROUND", "CEIL", "FLOOR", "ABS")]
    rows = Rows()
    expressions = [Expression(compile_code(expr, slots).code, rows.dictionary) for expr in exprs]
    rows.batch.clear()

    def number() -> Term:
        sign = chance.choice(("", "-"))
        size = chance.getrandbits(chance.choice((3, 31, 63, 64, 100, 127)))
        if chance.random() < 0.3:
            size = 10 ** chance.randint(0, 38) + chance.randint(-1, 1)
        if chance.random() < 0.3:
            return literal(f"{sign}{min(size, 2**63 - 1)}", "integer")
        whole, fraction = divmod(min(size, 2**127 - 1), 10**18)
        return literal(
            f"{sign}{whole}.{fraction:018}", chance.choice(("decimal", "decimal", "double"))
        )

    for _ in range(EXAMPLES // 8):
        row = (number(), number())
        numbers = rows.row(row)
        for expr, expression in zip(exprs, expressions, strict=True):
            expected = answers(expr, slots, row)
            assert found(expression, rows, numbers) == expected, (format_expression(expr), row)


def test_doubles_are_written_as_the_reference_does():
    chance = Random(SEED)
    rows = Rows()
    for name, bits in (("double", 53), ("float", 24)):
        expr = parse_expression("-?a")
        expression = Expression(compile_code(expr, {"a": 0}).code, rows.dictionary)
        for _ in range(EXAMPLES // 4):
            real = chance.choice(
                (
                    chance.uniform(-1, 1) * 10 ** chance.randint(-5, 17),
                    round(chance.uniform(-1e6, 1e6), chance.randint(0, 12)),
                    chance.getrandbits(bits) / 2 ** chance.randint(0, bits + 10),
                )
            )
            row = (literal(repr(real), name),)
            assert found(expression, rows, rows.row(row)) == answers(expr, {"a": 0}, row), real


# ------------------------------------------------------------------ EXISTS


def test_exists_is_asked_for_by_number():
    expr = parse_expression("?a = 1 || (EXISTS { ?a ?b ?c } && NOT EXISTS { ?c ?b ?a })")
    code, exists = compile_code(expr, SLOTS)
    assert [pattern.negated for pattern in exists] == [False, True]
    assert code.exists == 2
    rows = Rows()
    expression = Expression(code, rows.dictionary)
    row = rows.row((literal("2", "integer"), None, None))
    asked = []

    def holds(number: int) -> bool:
        asked.append(number)
        return number == 0

    assert expression.test(rows.batch, row, holds) is True
    assert asked == [0, 1]
    assert expression.test(rows.batch, row, lambda number: number == 1) is False
    assert rows.batch.term(expression.evaluate(rows.batch, row, holds)) == ox.Literal(True)


def test_errors_in_exists_come_through():
    code = compile_code(parse_expression("NOT EXISTS { ?a ?b ?c }"), SLOTS).code
    rows = Rows()
    expression = Expression(code, rows.dictionary)

    def fails(number: int) -> bool:
        raise LookupError(number)

    for ask in (expression.test, expression.evaluate):
        with pytest.raises(LookupError):
            ask(rows.batch, (0, 0, 0), fails)
        with pytest.raises(ValueError, match="no function that decides"):
            ask(rows.batch, (0, 0, 0))


# ------------------------------------------------------------------ code as data


def test_the_machine_has_the_operations_of_the_compiler():
    compiled = {name: int(number) for name, number in _operators.Operation.__members__.items()}
    assert compiled == Operation.__members__
    beyond = ExpressionCode(bytes([2, len(Operation)]), (0, 0), (), (), 1, 0)
    with pytest.raises(ValueError, match="instruction 1 is out of place"):
        Expression(beyond, Rows().dictionary)


def test_code_is_data():
    code = compile_code(
        parse_expression("STRLEN(?a) > 2 && ?b IN (1, <urn:x>, 'é'@fr)"), SLOTS
    ).code
    again = pickle.loads(pickle.dumps(code))
    assert again == code
    assert hash(again) == hash(code)
    rows = Rows()
    expression = Expression(again, rows.dictionary)
    assert str(expression) == str(code)
    assert "CALL          0  STRLEN/1" in str(code)
    rows.batch.clear()
    row = rows.row((ox.Literal("abc"), ox.Literal("é", language="fr"), None))
    assert expression.test(rows.batch, row) is True


@pytest.mark.parametrize(
    "text",
    [
        "RAND()",
        "UUID()",
        "STRUUID()",
        "NOW()",
        "BNODE()",
        "BNODE(?a)",
        "?b + BNODE('x')",
        "REPLACE(?a, 'b*', 'c')",
        "REPLACE(?a, 'b', '$c')",
        "REPLACE(?a, ?b, 'c')",
        "REGEX(?a, ?b)",
        "REGEX(?a, '[[:alpha:]]')",
        "REGEX(?a, 'a{2000}')",
        "<http://www.w3.org/2001/XMLSchema#gYear>(?a)",
        "IF(?a, NOW(), ?b)",
    ],
)
def test_what_is_left_to_python(text):
    with pytest.raises(NotNative):
        compile_code(parse_expression(text), SLOTS)


GOOD = compile_code(parse_expression("?a + 1"), SLOTS).code


@pytest.mark.parametrize(
    "operations",
    [
        [],
        [(Operation.ADD, 0)],
        [(Operation.NOTHING, 0), (Operation.NOTHING, 0)],
        [(Operation.CONSTANT, 1)],
        [(Operation.VARIABLE, 1)],
        [(Operation.VARIABLE, -1)],
        [(Operation.EXISTS, 0)],
        [(Operation.CALL, 0)],
        [(Operation.NOTHING, 0), (Operation.JUMP, 0)],
        [(Operation.NOTHING, 0), (Operation.JUMP, 9)],
        [(Operation.JUMP, 2), (Operation.NOTHING, 0), (Operation.NOTHING, 0)],
        [(Operation.NOTHING, 0), (Operation.TRY_IN, 2)],
        [(Operation.NOTHING, 0), (Operation.JUMP_IF_VALUE, 2)],
        [(99, 0)],
    ],
)
def test_code_that_no_compiler_wrote_is_refused(operations):
    bad = ExpressionCode(
        bytes(operation for operation, _ in operations),
        tuple(operand for _, operand in operations),
        GOOD.constants,
        GOOD.functions,
        GOOD.columns,
        GOOD.exists,
    )
    with pytest.raises(ValueError, match=r"instruction|one value"):
        Expression(bad, Dictionary())


def test_rows_of_others_are_refused():
    rows = Rows()
    expression = Expression(GOOD, rows.dictionary)
    with pytest.raises(ValueError, match="another dictionary"):
        expression.test(EventBatch(Dictionary()), (0,))
    with pytest.raises(ValueError, match="1 columns, not 0"):
        expression.test(rows.batch, ())
    with pytest.raises(ValueError, match="no term"):
        expression.test(rows.batch, (77,))


# ------------------------------------------------------------------ memory


def test_steady_state_asks_for_no_memory():
    texts = (
        "CONCAT(UCASE(STR(?a)), '-', SUBSTR(?b, 2, 5)) > LCASE(?b)",
        "CONCAT(STR(?a * 1.5), ?b)",
        "?a / 3 + ?c",
        "IF(?a > 20, MD5(?b), DATATYPE(?c))",
        "?c * 1.1e0",
    )
    rows = Rows()
    expressions = [
        Expression(compile_code(parse_expression(text), SLOTS).code, rows.dictionary)
        for text in texts
    ]
    rows.batch.clear()
    before = 0
    for turn in range(50):
        rows.batch.clear()
        for i in range(40):
            row = rows.row(
                (
                    literal(f"{i}.25", "decimal"),
                    ox.Literal(f"some text {turn % 7} of {i}"),
                    literal(f"{i}.1", "double"),
                )
            )
            for expression in expressions:
                expression.test(rows.batch, row)
                assert expression.evaluate(rows.batch, row) != 0
        if turn == 10:
            before = _memory.requests()
    assert _memory.requests() == before


def test_comparing_interns_nothing():
    rows = Rows()
    expr = parse_expression("?a + 1 > ?b * 2 || CONCAT(STR(?a), 'x') = STR(?b)")
    expression = Expression(compile_code(expr, SLOTS).code, rows.dictionary)
    row = rows.row((literal("1", "integer"), literal("2.5", "decimal")))
    known, permanent = rows.batch.terms, len(rows.dictionary)
    assert expression.test(rows.batch, row) is False
    assert (rows.batch.terms, len(rows.dictionary)) == (known, permanent)
    assert rows.batch.term(expression.evaluate(rows.batch, row)) == ox.Literal(False)
    assert rows.batch.terms == known + 1

"""Random expressions over every operator and function, and random rows for them.

Unlike `expression_strategies` this leaves nothing out, draws evenly and is fast: it compares
two evaluators of this package with each other, not one with pyoxigraph.
"""

from __future__ import annotations

from random import Random

import pyoxigraph as ox

from spaseq.gpm.python.functions import KIND_TESTS
from spaseq.parser import ast
from spaseq.rdf.event import Term
from spaseq.rdf.native._values import (
    BLANK,
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    IRI,
    LANG,
    OTHER,
    POINT,
    SPAN,
    STRING,
    decode,
)
from spaseq.sparql.builtins import CASTS, GEOF, XSD, functions_by_name
from tests.unit.rdf.literals import OTHERS, TYPED, literal

TEXTS = {
    "integer": "2 3 10 -7 100 0005 1000000007 4611686018427387904",
    "decimal": "2.50 0.0 -0.0 -0.50 12.00 -1.5 0.25 731.5 99999999999.000000001 "
    "170141183460469231731.5 -170141183460469231731.687303715884105728 0.3 1e3",
    "double": "20 20.5 0.30000000000000004 123456.789 1e15 -0.5 999999999999999.9 1.7e20 1.71e20 "
    "-9.3e18 1e-7 123e-20",
    "float": "0.5 -0 1e10 123456.7 3.4028235e38 INF NaN",
    "dateTime": "2024-02-29T12:00:00Z 2020-03-31T23:30:00-05:30 2020-01-30T22:00:00 "
    "-0400-02-29T00:00:00.000000000000000001 5391559471918-12-31T00:00:00 2020-01-31T13:59:59Z",
    "date": "2019-02-28 2020-02-29+13:00 -0001-12-31",
    "duration": "P1M -P1M P13M PT36H -P1Y2M3DT4H P0D",
    "dayTimeDuration": "PT1.5S -PT0.25S P400D",
    "yearMonthDuration": "P1Y13M -P49M P9223372036854775807M",
}
MORE = (
    *(literal(text, name) for name, texts in TEXTS.items() for text in texts.split()),
    ox.Literal("abc"),
    ox.Literal("abc", language="en"),
    ox.Literal("Straße é😀"),
    ox.Literal("ÀB c", language="fr-be"),
    ox.Literal("abc", language="en", direction=ox.BaseDirection("ltr")),
    ox.Literal('a"b\\c\n@en'),
    ox.Literal("en"),
    ox.Literal("en-GB"),
    ox.Literal("*"),
    ox.Literal("3"),
    ox.Literal("-2.50"),
    ox.Literal("1e3"),
    ox.Literal("true"),
    ox.Literal("2020-01-31T00:00:00Z"),
    ox.Literal("P1D"),
    ox.Literal("INF"),
    ox.Literal(" 1"),
    ox.Literal("http://a/"),
    ox.NamedNode("http://example.org/é"),
    ox.NamedNode(XSD + "integer"),
)
TERMS: tuple[Term, ...] = (*TYPED, *OTHERS, *MORE)
KINDS: dict[str, tuple[int, ...]] = {
    "number": (INTEGER, INTEGER, DECIMAL, DECIMAL, FLOAT, DOUBLE),
    "text": (STRING, STRING, LANG),
    "time": (POINT, POINT, SPAN),
    "any": (IRI, BLANK, STRING, LANG, BOOLEAN, INTEGER, DECIMAL, FLOAT, DOUBLE, POINT, SPAN, OTHER),
}
BY_KIND = {kind: [term for term in TERMS if decode(term).kind == kind] for kind in KINDS["any"]}

PATTERNS = (
    *("", "a", "^a", "c$", "^abc$", "^$", "^", "$", "b c", r"a\.b", r"\^", r"\$", r"^\*", "é", "-"),
    *("[ab]+", "a|b", ".", "^a.c$", "(a|b)c", "B"),
)
REPLACED_PATTERNS = ("a", "^a", "c$", r"a\.b", "é", "[ab]+", "a|b", ".", "(a|b)c", "B", "(b)(é)?")
"""Patterns that do not match the empty text: REPLACE leaves those to pyoxigraph."""
DRAWN = tuple(
    entry
    for entry in functions_by_name().values()
    if not entry.volatile and not entry.by_reference and not entry.name.startswith(GEOF)
)
"""The functions that the evaluators compute, and that give the same result each time."""
GIVES = {
    sort: DRAWN if sort == "any" else tuple(each for each in DRAWN if each.result == sort)
    for sort in KINDS
}
CASTS_GIVING = {
    "number": ("integer", "decimal", "float", "double"),
    "text": ("string",),
    "time": ("dateTime", "date", "time", "duration", "yearMonthDuration", "dayTimeDuration"),
    "any": tuple(sorted(CASTS)),
}


class Drawer:
    """Draws an expression; `names` are the variables it may use, each of one sort."""

    def __init__(self, chance: Random):
        self.chance = chance
        self.sorts: dict[str, str] = {}

    def term(self, sort: str) -> Term | None:
        """A term for a variable of this sort: mostly of the sort, rarely none."""
        luck = self.chance.random()
        if luck < 0.06:
            return None
        kinds = KINDS["any" if luck < 0.15 else sort]
        return self.chance.choice(BY_KIND[self.chance.choice(kinds)])

    def row(self) -> list[Term | None]:
        return [self.term(sort) for sort in self.sorts.values()]

    def leaf(self, sort: str) -> ast.Expr:
        luck = self.chance.random()
        if luck < 0.35:
            found = self.term(sort)
            if isinstance(found, ox.NamedNode):
                return ast.Iri(found.value)
            if isinstance(found, ox.Literal):
                way = None if found.direction is None else found.direction.value
                return ast.Literal(found.value, found.datatype.value, found.language, way)
        if luck > 0.97:
            return ast.Var("nowhere")
        if self.sorts and luck < 0.6:
            return ast.Var(self.chance.choice(list(self.sorts)))
        name = f"x{len(self.sorts)}"
        self.sorts[name] = sort
        return ast.Var(name)

    def expr(self, sort: str, depth: int) -> ast.Expr:
        luck = self.chance.random()
        if luck < 0.1:
            sort = self.chance.choice(list(KINDS))
        if depth == 0 or luck > 0.95:
            return self.leaf(sort)
        draw = self.chance.choice(
            [self.operation] * (3 if sort in ("number", "time") else 1)
            + [self.call, self.call, self.cast, self.choice]
            + [self.truth] * (2 if sort == "any" else 0)
        )
        return draw(sort, depth - 1)

    def operation(self, sort: str, depth: int) -> ast.Expr:
        if self.chance.random() < 0.2:
            return ast.Unary(self.chance.choice("-+"), self.expr(sort, depth))
        operator = self.chance.choice("+-" if sort == "time" else "+-*/")
        return ast.Binary(operator, self.expr(sort, depth), self.expr(sort, depth))

    def call(self, sort: str, depth: int) -> ast.Expr:
        function = self.chance.choice(GIVES[sort])
        name, least, most = function.name, function.least, function.most
        if name == "REGEX":
            flags = self.chance.choice(([], [], [ast.Literal("s")], [ast.Literal("i")]))
            pattern = ast.Literal(self.chance.choice(PATTERNS))
            return ast.Call(name, (self.expr("text", depth), pattern, *flags))
        if name == "REPLACE":
            pattern = ast.Literal(self.chance.choice(REPLACED_PATTERNS))
            replacement = ast.Literal(self.chance.choice(("", "x", "$0é", "[$1]")))
            flags = self.chance.choice(([], [], [ast.Literal("s")], [ast.Literal("i")]))
            return ast.Call(name, (self.expr("text", depth), pattern, replacement, *flags))
        count = self.chance.randint(least, 3 if most is None else min(most, 3))
        wanted = function.arguments
        sorts = [wanted[min(place, len(wanted) - 1)] for place in range(count)]
        arguments = tuple(self.expr(sort, depth) for sort in sorts)
        if ":" in name:
            return ast.FunctionCall(ast.Iri(name), arguments)
        return ast.Call(name, arguments)

    def cast(self, sort: str, depth: int) -> ast.Expr:
        target = ast.Iri(XSD + self.chance.choice(CASTS_GIVING[sort]))
        source = self.chance.choice((sort, "any", "text"))
        return ast.FunctionCall(target, (self.expr(source, depth),))

    def choice(self, sort: str, depth: int) -> ast.Expr:
        if self.chance.random() < 0.5:
            parts = (self.truth("any", depth), self.expr(sort, depth), self.expr(sort, depth))
            return ast.Call("IF", parts)
        count = self.chance.randint(0, 3)
        return ast.Call("COALESCE", tuple(self.expr(sort, depth) for _ in range(count)))

    def truth(self, sort: str, depth: int) -> ast.Expr:
        kind = self.chance.choice(("compare", "compare", "logic", "not", "in", "test", "same"))
        alike = self.chance.choice(list(KINDS))
        if depth == 0 and kind in ("logic", "not", "in"):
            kind = "compare"
        match kind:
            case "logic":
                operator = self.chance.choice(("&&", "||"))
                return ast.Binary(operator, self.expr("any", depth), self.truth("any", depth - 1))
            case "not":
                return ast.Unary("!", self.expr("any", depth))
            case "in":
                count = self.chance.randint(0, 3)
                choices = tuple(self.expr(alike, depth - 1) for _ in range(count))
                return ast.In(self.expr(alike, depth - 1), choices, self.chance.random() < 0.5)
            case "test":
                if self.chance.random() < 0.3:
                    variables = (ast.Var("nowhere"), *map(ast.Var, self.sorts))
                    return ast.Call("BOUND", (self.chance.choice(variables),))
                name = self.chance.choice(list(KIND_TESTS))
                return ast.Call(name, (self.expr("any", depth),))
            case "same":
                return ast.Call("SAMETERM", (self.expr(alike, depth), self.expr(alike, depth)))
        operator = self.chance.choice(("=", "!=", "<", ">", "<=", ">="))
        return ast.Binary(operator, self.expr(alike, depth), self.expr(alike, depth))


def drawn(chance: Random, rows: int) -> tuple[ast.Expr, dict[str, int], list[list[Term | None]]]:
    """An expression, the columns of its variables, and rows for them."""
    drawer = Drawer(chance)
    depth = chance.choice((1, 2, 2, 3, 3, 4))
    expr = drawer.expr(chance.choice(("number", "text", "time", "any", "any")), depth)
    slots = {name: column for column, name in enumerate(drawer.sorts)}
    return expr, slots, [drawer.row() for _ in range(rows)]

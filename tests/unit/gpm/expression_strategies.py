"""Random SPARQL expressions over typed operands, and pyoxigraph's opinion of them.

Left out is what pyoxigraph itself gets wrong or leaves undefined: products of decimals that
need more than 18 digits, `dateTime + duration` (its optimiser swaps the operands), the order
of booleans, and the datatype and text of literals that are not in canonical form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyoxigraph as ox
from hypothesis import strategies as st

from spaseq.parser import ast
from spaseq.parser.format import format_expression
from spaseq.rdf.event import Term

XSD = "http://www.w3.org/2001/XMLSchema#"


def literal(text: str, name: str) -> ox.Literal:
    return ox.Literal(text, datatype=ox.NamedNode(XSD + name))


# Numbers whose sums and products have room in pyoxigraph's 64 and 128 bits; for all others see
# tests/unit/rdf/exact.py.
TERMS: dict[str, tuple[Term, ...]] = {
    "integer": tuple(literal(t, "integer") for t in ("0", "1", "-3", "7", "1000003")),
    "decimal": tuple(literal(t, "decimal") for t in ("0.5", "-2.25", "3", "1.1")),
    "double": tuple(literal(t, "double") for t in ("0", "-0", "1", "2.5", "0.1", "NaN", "INF")),
    "float": tuple(literal(t, "float") for t in ("1", "0.1", "-2.5", "16777216")),
    "boolean": (literal("true", "boolean"), literal("false", "boolean")),
    "string": tuple(map(ox.Literal, ("", "a", "abc", "Ab c", "1", "2.5", "true", "é😀"))),
    "language": (
        ox.Literal("a", language="en"),
        ox.Literal("abc", language="fr-be"),
        ox.Literal("a", language="en", direction=ox.BaseDirection.LTR),
    ),
    "dateTime": tuple(
        literal(t, "dateTime")
        for t in ("2020-01-31T10:00:00Z", "2020-02-01T00:30:15.25+02:00", "2020-01-31T10:00:00")
    ),
    "date": (literal("2020-02-29", "date"), literal("2020-03-01Z", "date")),
    "dayTimeDuration": (literal("PT1H", "dayTimeDuration"), literal("-P1DT1S", "dayTimeDuration")),
    "yearMonthDuration": (literal("P1Y2M", "yearMonthDuration"),),
    "iri": (ox.NamedNode("http://example.org/a"), ox.NamedNode("http://example.org/b")),
    "blank": (ox.BlankNode("b0"),),
    "other": (
        ox.Literal("x", datatype=ox.NamedNode("http://example.org/t")),
        literal("abc", "integer"),
    ),
    "small": tuple(literal(t, "integer") for t in ("0", "1", "-3", "2")),
    "unbound": (),
}
NUMBERS = ("integer", "decimal", "double", "float")
ANY = tuple(TERMS)


class ExpressionMaker:
    """Draws an expression and, as `env`, the bindings of its variables."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]):
        self._draw = draw
        self.env: dict[str, Term | None] = {}

    def pick(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def operand(self, *kinds: str) -> ast.Var:
        terms = TERMS[self.pick(*kinds)]
        name = f"x{len(self.env)}"
        self.env[name] = self.pick(*terms) if terms else None
        return ast.Var(name)

    def number(self, depth: int) -> ast.Expr:
        if depth == 0:
            return self.operand(*NUMBERS)
        kind = self.pick("+", "-", "*", "/", "unary", "function", "length", "field", "cast")
        match kind:
            case "+" | "-":
                return ast.Binary(kind, self.number(depth - 1), self.number(depth - 1))
            case "*" | "/":
                exact = ("integer", "double", "float") if kind == "*" else ("double", "float")
                return ast.Binary(kind, self.operand(*exact), self.operand(*exact))
            case "unary":
                return ast.Unary(self.pick("-", "+"), self.number(depth - 1))
            case "function":
                name = self.pick("ABS", "CEIL", "FLOOR", "ROUND")
                return ast.Call(name, (self.number(depth - 1),))
            case "length":
                return ast.Call("STRLEN", (self.text(depth - 1),))
            case "field":
                name = self.pick("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS")
                return ast.Call(name, (self.operand("dateTime", "date", "string"),))
        target = ast.Iri(XSD + self.pick("integer", "double", "float", "boolean"))
        return ast.FunctionCall(target, (self.operand(*NUMBERS, "boolean", "string"),))

    def text(self, depth: int) -> ast.Expr:
        if depth == 0:
            return self.operand("string", "string", "language", "integer")
        name = self.pick(
            "UCASE",
            "LCASE",
            "CONCAT",
            "SUBSTR",
            "STR",
            "LANG",
            "STRBEFORE",
            "STRAFTER",
            "ENCODE_FOR_URI",
            "MD5",
            "TZ",
            "STRLANG",
            "STRDT",
            "REPLACE",
        )
        match name:
            case "SUBSTR":
                bounds = [self.operand("small") for _ in range(self.pick(1, 2))]
                return ast.Call(name, (self.text(depth - 1), *bounds))
            case "CONCAT" | "STRBEFORE" | "STRAFTER":
                return ast.Call(name, (self.text(depth - 1), self.text(depth - 1)))
            case "STR" | "LANG":
                return ast.Call(name, (self.operand(*ANY),))
            case "TZ":
                return ast.Call(name, (self.operand("dateTime", "date"),))
            case "STRLANG":
                return ast.Call(name, (self.text(depth - 1), ast.Literal("en")))
            case "STRDT":
                return ast.Call(name, (self.text(depth - 1), ast.Iri("http://example.org/t")))
            case "REPLACE":
                found, put = ast.Literal("[ab]"), ast.Literal("$0é")
                return ast.Call(name, (self.text(depth - 1), found, put))
        return ast.Call(name, (self.text(depth - 1),))

    def truth(self, depth: int) -> ast.Expr:
        kind = self.pick("compare", "kind", "bound", "strings", "same", "regex", "lang", "span")
        if depth > 0:
            kind = self.pick(kind, "and", "not", "in", "value")
        match kind:
            case "and":
                operator = self.pick("&&", "||")
                return ast.Binary(operator, self.truth(depth - 1), self.truth(depth - 1))
            case "not":
                return ast.Unary("!", self.truth(depth - 1))
            case "in":
                choices = tuple(self.value(depth - 1) for _ in range(self.pick(1, 2)))
                return ast.In(self.value(depth - 1), choices, self.pick(True, False))
            case "value":
                return self.value(depth - 1)
            case "bound":
                return ast.Call("BOUND", (self.operand("integer", "unbound"),))
            case "kind":
                name = self.pick("ISIRI", "ISBLANK", "ISLITERAL", "ISNUMERIC")
                return ast.Call(name, (self.operand(*ANY),))
            case "same":
                return ast.Call("SAMETERM", (self.operand(*ANY), self.operand(*ANY)))
            case "strings":
                name = self.pick("CONTAINS", "STRSTARTS", "STRENDS")
                return ast.Call(name, (self.text(depth), self.text(0)))
            case "regex":
                pattern = self.pick("^a", "b.?c$", "[A-C ]+", "(a|c)*b", "a\\.b", "\\d", "x{0,1}")
                flags = self.pick((), (ast.Literal("i"),), (ast.Literal("s"),), (ast.Literal("?"),))
                return ast.Call("REGEX", (self.text(depth), ast.Literal(pattern), *flags))
            case "lang":
                tag = ast.Call("LANG", (self.operand("language", "string"),))
                return ast.Call("LANGMATCHES", (tag, ast.Literal(self.pick("*", "FR", "en", "f"))))
            case "span":
                gap = ast.Binary("-", self.operand("dateTime"), self.operand("dateTime"))
                return ast.Binary(self.pick("<", ">="), gap, self.operand("dayTimeDuration"))
        operator = self.pick("=", "!=", "<", ">", "<=", ">=")
        if operator in ("=", "!="):
            return ast.Binary(operator, self.operand(*ANY), self.operand(*ANY))
        ordered = tuple(kind for kind in ANY if kind != "boolean")
        return ast.Binary(operator, self.operand(*ordered), self.operand(*ordered))

    def value(self, depth: int) -> ast.Expr:
        kind = self.pick("number", "text", "term", "if", "coalesce") if depth > 0 else "term"
        match kind:
            case "number":
                return self.number(depth)
            case "text":
                return self.text(depth)
            case "if":
                parts = (self.truth(depth - 1), self.value(depth - 1), self.value(depth - 1))
                return ast.Call("IF", parts)
            case "coalesce":
                return ast.Call("COALESCE", (self.value(depth - 1), self.value(depth - 1)))
        return self.operand(*ANY)


@st.composite
def expressions(
    draw: Callable[[st.SearchStrategy[Any]], Any],
) -> tuple[ast.Expr, dict[str, Term | None]]:
    """An expression and the bindings of its variables."""
    maker = ExpressionMaker(draw)
    expr = maker.pick(maker.value, maker.truth, maker.number, maker.text)(maker.pick(1, 2, 3))
    return expr, maker.env


def reference_value(expr: ast.Expr, env: Mapping[str, Term | None]) -> Term | None:
    """The value of the expression by pyoxigraph, its variables bound by matching triples."""
    text = format_expression(expr)
    store = ox.Store()
    home = ox.NamedNode("urn:home")
    pattern = []
    for name, term in env.items():
        if term is not None:
            link = ox.NamedNode(f"urn:{name}")
            store.add(ox.Quad(home, link, term))
            pattern.append(f"{home} {link} ?{name} .")
    (solution,) = store.query(f"SELECT ({text} AS ?r) {{ {' '.join(pattern)} }}")
    return solution["r"]

"""Hypothesis strategies of syntax trees, as the parser could have made them.

SPARQL's rules of scope are kept by construction: a variable that `BIND`, `AS` or a sub-query
introduces, and the label of a blank node, are taken from a counter and used once.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from spaseq.parser import ast
from spaseq.parser.keywords import EMIT_MODES
from spaseq.sparql.builtins import AGGREGATES, BUILTINS, XSD

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

PREFIXES = (("", "http://e/"), ("ex", "http://example.org/ns#"), ("deep", "http://e/a/"))

_NAMES = ("A", "B", "a", "count", "Day", "seq", "LAST", "x_1", "Ä")
_LEXICAL = st.text(st.characters(exclude_categories=("Cs",)), max_size=6) | st.sampled_from(
    ['"', "\\", "\\u0041", "'''", "a\nb", "\r", "\t\b\f", '"""', "é\U0001f600", "\\n"]
)
_UNQUOTED = (
    ("integer", st.from_regex(r"[+-]?[0-9]{1,3}", fullmatch=True)),
    ("decimal", st.from_regex(r"[+-]?[0-9]{0,2}\.[0-9]{1,2}", fullmatch=True)),
    ("double", st.from_regex(r"[+-]?([0-9]{1,2}\.?[0-9]?|\.[0-9])[eE][+-]?[0-9]", fullmatch=True)),
    ("boolean", st.sampled_from(["true", "false"])),
)

variables = st.sampled_from([ast.Var(name) for name in ("x", "y", "p1", "Ωmega", "_", "7up")])
iris = st.builds(
    lambda namespace, local: ast.Iri(namespace + local),
    st.sampled_from([iri for _, iri in PREFIXES] + ["urn:x:", RDF, XSD, "HTTP://Q/../"]),
    st.sampled_from(["", "p", "p-1", "a.b", "a.", "-x", "q/r", "%20", "é", "(x)", "0", "type"]),
)
literals = st.one_of(
    st.builds(ast.Literal, _LEXICAL),
    st.builds(
        lambda text, tag: ast.Literal(text, RDF + "langString", tag),
        _LEXICAL,
        st.sampled_from(["en", "de-AT", "X-y"]),
    ),
    st.builds(
        lambda text, tag, way: ast.Literal(text, RDF + "dirLangString", tag, way),
        _LEXICAL,
        st.sampled_from(["en", "ar-Arab"]),
        st.sampled_from(["ltr", "rtl"]),
    ),
    st.builds(lambda text, iri: ast.Literal(text, iri.value), _LEXICAL, iris),
    *(st.builds(ast.Literal, text, st.just(XSD + name)) for name, text in _UNQUOTED),
    st.builds(ast.Literal, _LEXICAL, st.sampled_from([XSD + name for name, _ in _UNQUOTED])),
)


def _tuple(strategy: st.SearchStrategy[Any], least: int, most: int) -> st.SearchStrategy[Any]:
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


paths = st.recursive(
    iris
    | st.builds(ast.NegatedPath, _tuple(iris, 1, 2), _tuple(iris, 0, 2))
    | st.builds(ast.NegatedPath, st.just(()), _tuple(iris, 1, 2)),
    lambda inner: st.one_of(
        st.builds(ast.InversePath, inner),
        st.builds(ast.RepeatPath, inner, st.sampled_from("*+?")),
        st.builds(ast.SequencePath, _tuple(inner, 2, 3)),
        st.builds(ast.AlternativePath, _tuple(inner, 2, 3)),
    ),
    max_leaves=6,
)


class Maker:
    """Draws parts of one tree; its counter makes names that occur once."""

    def __init__(self, draw: Any):
        self._draw = draw
        self._count = 0

    def fresh(self) -> str:
        self._count += 1
        return f"n{self._count}"

    def one(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self._draw(strategy)

    def pick(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def several(self, make: Any, least: int, most: int) -> tuple[Any, ...]:
        return tuple(make() for _ in range(self._draw(st.integers(least, most))))

    # -------------------------------------------------------------- expressions

    def expression(self, depth: int, *, sequence: bool = True) -> ast.Expr:
        """`sequence`: outside sub-queries, where SPAseq's own expressions may stand."""

        def inner() -> ast.Expr:
            return self.expression(depth - 1, sequence=sequence)

        if depth <= 0:
            return self.one(st.one_of(variables, iris, literals))  # type: ignore[no-any-return]
        kind = self.pick("binary", "binary", "unary", "in", "call", "cast", "exists", "sequence")
        if kind == "binary":
            operators = ("||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/")
            return ast.Binary(self.pick(*operators), inner(), inner())
        if kind == "unary":
            return ast.Unary(self.pick("!", "-", "+"), inner())
        if kind == "in":
            return ast.In(inner(), self.several(inner, 0, 2), self.pick(True, False))
        if kind == "cast":
            return ast.FunctionCall(self.one(iris), self.several(inner, 0, 2))
        if kind == "exists":
            return ast.Exists(self.group(depth - 1), self.pick(True, False))
        if kind == "call" or not sequence:
            name = self.pick(*sorted(BUILTINS))
            least, most = BUILTINS[name].least, BUILTINS[name].most
            if name == "BOUND":
                asked = self.one(variables)
                return ast.Call(
                    name, (ast.Prev(asked) if sequence and self.pick(True, False) else asked,)
                )
            return ast.Call(name, self.several(inner, least, 3 if most is None else most))
        if self.pick(True, False):
            return ast.Prev(self.one(variables), self.pick(None, self.expression(0)))
        return self.aggregate()

    def aggregate(self) -> ast.Aggregate:
        name = self.pick(*AGGREGATES)
        argument = self.one(variables)
        if name == "COUNT":
            argument = self.pick(None, argument, ast.GpmName("B"), ast.GpmName("Day"))
        separator = self.pick(None, "", ", \n") if name == "GROUP_CONCAT" else None
        return ast.Aggregate(name, argument, self.pick(True, False), separator)

    # -------------------------------------------------------------- graph patterns

    def triple(self) -> ast.Triple:
        def node() -> ast.Term:
            return self.one(  # type: ignore[no-any-return]
                st.one_of(variables, iris, literals, st.just(ast.BlankNode(self.fresh())))
            )

        return ast.Triple(node(), self.one(st.one_of(variables, paths)), node())

    def group(self, depth: int) -> ast.GroupGraphPattern:
        if depth > 0 and self.pick(True, False, False, False):
            return ast.GroupGraphPattern((self.sub_select(depth - 1),))
        return ast.GroupGraphPattern(self.several(lambda: self.element(depth), 0, 3))

    def element(self, depth: int) -> ast.Element:
        if depth <= 0:
            return self.triple()
        kind = self.pick(
            "triple", "triple", "filter", "bind", "optional", "union", "group", "minus", "graph",
            "service", "values",
        )  # fmt: skip
        group = self.group(depth - 1) if kind != "union" else ast.GroupGraphPattern(())
        name = self.one(st.one_of(variables, iris))
        match kind:
            case "filter":
                return ast.Filter(self.expression(depth - 1, sequence=False))
            case "bind":
                expression = self.expression(depth - 1, sequence=False)
                return ast.Bind(expression, ast.Var(self.fresh()))
            case "optional":
                return ast.Optional(group)
            case "union":
                return ast.Union(self.several(lambda: self.group(depth - 1), 2, 3))
            case "group":
                return ast.SubGroup(group)
            case "minus":
                return ast.Minus(group)
            case "graph":
                return ast.Graph(name, group)
            case "service":
                return ast.Service(name, self.pick(True, False), group)
            case "values":
                return self.values()
        return self.triple()

    def values(self) -> ast.Values:
        names = self.one(st.lists(variables, max_size=2, unique=True))
        cells = st.one_of(iris, literals, st.none())
        rows = _tuple(_tuple(cells, len(names), len(names)), 0, 2)
        return ast.Values(tuple(names), self.one(rows))

    def sub_select(self, depth: int) -> ast.SubSelect:
        def alias() -> ast.Projection:
            return ast.Projection(self.expression(1, sequence=False), ast.Var(self.fresh()))

        grouped = self.pick(True, False)
        keys = (*self.several(alias, 0, 1), ast.Projection(ast.Var("x")))
        items: tuple[ast.Projection, ...] | None = (ast.Projection(ast.Var("x")),)
        if grouped:
            count = ast.Aggregate("SUM", ast.Binary("+", ast.Var("y"), ast.Var("x")))
            items = (*(items or ()), ast.Projection(count, ast.Var(self.fresh())))
        elif self.pick(True, False):
            items = None
        orders = self.several(
            lambda: ast.OrderKey(self.expression(1, sequence=False), self.pick(True, False)), 0, 2
        )
        distinct = self.pick(True, False)
        return ast.SubSelect(
            distinct,
            not distinct and self.pick(True, False),
            items,
            self.group(depth),
            keys if grouped else (),
            self.several(lambda: self.expression(1, sequence=False), 0, 1) if grouped else (),
            orders,
            self.pick(None, 0, 10),
            self.pick(None, 3),
            self.pick(None, self.values()),
        )

    # -------------------------------------------------------------- queries

    def unit(self, depth: int) -> ast.Unit:
        if depth <= 0:
            return ast.GpmRef(self.pick(*_NAMES))
        kind = self.pick(ast.Conjunction, ast.Disjunction, ast.AnyOrder, ast.Sequence, ast.GpmRef)
        if kind is ast.GpmRef:
            return ast.GpmRef(self.pick(*_NAMES))
        if kind is ast.Sequence:
            return self.sequence(depth - 1)
        return kind(self.several(lambda: self.unit(depth - 1), 2, 3))  # type: ignore[no-any-return]

    def sequence(self, depth: int) -> ast.Sequence:
        quantifiers = (
            None,
            None,
            ast.Quantifier(1, None),
            ast.Quantifier(0, None),
            ast.Quantifier(0, 1, True),
            ast.Quantifier(0, 1),
            ast.Quantifier(2, 2),
            ast.Quantifier(2, None),
            ast.Quantifier(0, 0),
            ast.Quantifier(3, 1),
        )
        steps = [
            ast.Step(self.pick(",", ";", ":"), self.unit(depth), self.pick(*quantifiers), negated)
            for negated in self.several(lambda: self.pick(False, False, True), 1, 4)
        ]
        first = steps[0]
        steps[0] = ast.Step(None, first.unit, first.quantifier, first.negated)
        return ast.Sequence(tuple(steps))

    def query(self) -> ast.Query:
        streams = self.several(lambda: ast.FromStream(self.pick(*_NAMES), self.one(iris)), 0, 2)
        return ast.Query(
            self.form(),
            self.sequence(2),
            self.several(self.define, 1, 2),
            ast.Prologue(self.pick(None, "http://base.example/x"), PREFIXES),
            self.pick(None, ast.Register("QUERY", "q1"), ast.Register("STREAM", "http://e/out")),
            self.pick(
                None,
                ast.Within(ast.WindowKind.UNBOUNDED),
                ast.Within(ast.WindowKind.EVENTS, events=7),
                ast.Within(ast.WindowKind.SPAN, self.one(st.integers(0, 2**62))),
                ast.Within(
                    ast.WindowKind.TUMBLING, self.pick(1, 999, 1000, 86_400_000_000, 3_600_000_001)
                ),
            ),
            self.pick(None, ast.PartitionBy((ast.Var("x"), ast.Var("y")))),
            streams,
            self.several(lambda: ast.FromKb(self.one(iris), self.pick(True, False)), 0, 2),
            self.pick(None, *map(ast.Emit, EMIT_MODES)),
            self.pick(None, ast.AfterMatch("KEEP ALL"), ast.AfterMatch("SKIP PAST LAST EVENT")),
            self.pick(None, self.result_groups()),
            self.pick(None, self.limit()),
        )

    def limit(self) -> ast.Limit:
        per = self.several(lambda: self.one(variables), 0, 2)
        return ast.Limit(3, per, self.pick(None, ast.Every(1_000_001), ast.Every(600_000_000)))

    def result_groups(self) -> ast.GroupResults:
        def item() -> ast.Projection:
            return ast.Projection(self.expression(2), ast.Var(self.fresh()))

        keys = self.several(item, 0, 1)
        keys += self.several(lambda: ast.Projection(self.one(variables)), 0, 2)
        over = self.pick(None, ast.Over(1_000_001), ast.Over(300_000_000, True))
        having = self.several(lambda: self.expression(2), 0, 2)
        return ast.GroupResults(keys, over, self.several(item, 0, 2), having)

    def form(self) -> ast.Select | ast.Construct | ast.Ask:
        kind = self.pick("select", "select", "construct", "ask")
        if kind == "ask":
            return ast.Ask()
        if kind == "construct":
            return ast.Construct(self.several(self.template_triple, 0, 3))
        distinct = self.pick(True, False)
        items = self.several(
            lambda: ast.Projection(self.expression(2), ast.Var(self.fresh())), 0, 2
        ) + self.several(lambda: ast.Projection(self.one(variables)), 1, 2)
        return ast.Select(self.pick(None, items), distinct, not distinct and self.pick(True, False))

    def template_triple(self) -> ast.Triple:
        triple = self.triple()
        return ast.Triple(triple.subject, self.one(st.one_of(variables, iris)), triple.object)

    def define(self) -> ast.Define:
        streams = self.several(lambda: self.pick(*_NAMES), 1, 2)
        at = self.pick(None, ast.Var("t"))
        return ast.Define(self.pick(*_NAMES), streams, self.group(2), at)


@st.composite
def queries(draw: Any) -> ast.Query:
    return Maker(draw).query()


@st.composite
def groups(draw: Any) -> ast.GroupGraphPattern:
    return Maker(draw).group(3)


@st.composite
def expressions(draw: Any) -> ast.Expr:
    return Maker(draw).expression(4)

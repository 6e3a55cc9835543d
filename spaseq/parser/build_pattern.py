"""Parse tree → graph patterns (SPARQL 1.1, productions [7] to [103]).

Lists and `[...]` become triples with fresh blank nodes, whose labels occur nowhere in the text.
Reified triples and annotations (SPARQL 1.2) become triples with `rdf:reifies`. A triple term with
variables or blank nodes becomes a blank node, and a triple that describes its parts (`Triple.of`).
A path of one predicate becomes that predicate.
"""

from __future__ import annotations

from typing import Any

from spaseq.errors import Span
from spaseq.parser import ast
from spaseq.parser.build_expression import MAX_CHAIN, RDF, ExpressionBuilder, TooDeep
from spaseq.parser.lalr import Part, Token, Tree, as_token, as_tree
from spaseq.parser.source import Source

_MAX_COUNT = 2**63 - 1


class PatternBuilder(ExpressionBuilder):
    """The builder's methods for groups, triples, paths and sub-queries."""

    def __init__(self, source: Source, prefixes: dict[str, str] | None = None):
        super().__init__(source, prefixes)
        self._fresh = "b"
        while f"_:{self._fresh}" in source.lexed:
            self._fresh += "b"
        self._fresh_count = 0
        self._whole_count = 0
        self._triples: list[ast.Triple] = []

    # -------------------------------------------------------------- groups

    def pattern(self, tree: Tree) -> ast.GroupGraphPattern:
        return self.group(tree.children[0])

    def group(self, tree: Part) -> ast.GroupGraphPattern:
        tree = as_tree(tree)
        self._check_dots(tree.children)
        outer, self._triples = self._triples, []
        elements: list[ast.Element] = []
        for child in tree.children:
            if isinstance(child, Token):
                continue  # a dot
            if child.rule == "triples":
                elements += self.triples(child)
            else:
                elements.append(self.build(child))
        self._triples = outer
        return ast.GroupGraphPattern(tuple(elements), self.span(tree))

    def _check_dots(self, children: list[Any]) -> None:
        """Allow one dot after each element; SPARQL allows more beside a `FILTER`."""
        previous: Any = None
        dots: list[Token] = []
        for child in [*children, None]:
            if isinstance(child, Token):
                dots.append(child)
                continue
            beside_filter = any(
                each is not None and each.rule == "filter" for each in (previous, child)
            )
            if dots and previous is None:
                self.source.report(
                    "a dot without a triple before it",
                    self.span(dots[0]),
                    "a dot ends a triple; remove this one",
                )
            elif len(dots) > 1 and not beside_filter:
                self.source.report(
                    "two dots in a row", self.span(dots[1]), "remove one; a dot ends one triple"
                )
            previous, dots = child, []

    def optional(self, tree: Tree) -> ast.Optional:
        return ast.Optional(self.group(tree.children[0]), self.span(tree))

    def union(self, tree: Tree) -> ast.Element:
        groups = tuple(self.group(child) for child in tree.children)
        if len(groups) == 1:
            return ast.SubGroup(groups[0], self.span(tree))
        return ast.Union(groups, self.span(tree))

    def minus(self, tree: Tree) -> ast.Minus:
        return ast.Minus(self.group(tree.children[0]), self.span(tree))

    def graph(self, tree: Tree) -> ast.Graph:
        name, group = tree.children
        return ast.Graph(self.build(name), self.group(group), self.span(tree))

    def service(self, tree: Tree) -> ast.Service:
        *silent, name, group = tree.children
        return ast.Service(self.build(name), bool(silent), self.group(group), self.span(tree))

    def filter(self, tree: Tree) -> ast.Filter:
        return ast.Filter(self.build(tree.children[0]), self.span(tree))

    def bind(self, tree: Tree) -> ast.Bind:
        expression, variable = tree.children
        return ast.Bind(self.build(expression), self.build(variable), self.span(tree))

    def values(self, tree: Tree) -> ast.Values:
        first = tree.children[0]
        span = self.span(tree)
        if isinstance(first, Token):
            column = tuple((self._datum(child),) for child in tree.children[1:])
            return ast.Values((self.var(first),), column, span)
        variables = tuple(self.build(child) for child in first.children)
        rows: list[tuple[ast.Constant | None, ...]] = []
        for row in tree.children[1:]:
            row = as_tree(row)
            if len(row.children) != len(variables):
                self.source.report(
                    f"a row of {len(row.children)} for {len(variables)} variables",
                    self.span(row),
                    "write one value per variable; UNDEF leaves a variable unbound",
                    self.span(first),
                    "the variables",
                )
            cells = [self._datum(child) for child in row.children[: len(variables)]]
            rows.append((*cells, *[None] * (len(variables) - len(cells))))
        return ast.Values(variables, tuple(rows), span)

    def _datum(self, part: Part) -> ast.Constant | None:
        return None if isinstance(part, Token) else self.build(part)  # a token is UNDEF

    # -------------------------------------------------------------- triples

    def triples(self, tree: Tree) -> list[ast.Triple]:
        """The triples of one subject; triples of nested nodes precede the triple they occur in."""
        self._triples = []
        subject = self._node(tree.children[0])
        if len(tree.children) == 2:
            self._properties(subject, tree.children[1], self._start(tree))
        return self._triples

    def _properties(self, subject: ast.Term, tree: Part, start: Span) -> None:
        tree = as_tree(tree)
        for verb, objects in zip(tree.children[::2], tree.children[1::2], strict=True):
            predicate = self._verb(verb)
            term: ast.Term = subject
            reifier: ast.Term | None = None
            for part in as_tree(objects).children:
                child = as_tree(part)
                span = start.to(self.span(child))
                if child.rule == "object":
                    term, reifier = self._node(child.children[0]), None
                    self._triples.append(ast.Triple(subject, predicate, term, span))
                    continue
                if not isinstance(predicate, ast.Var | ast.Iri):
                    self.source.report(
                        "an annotation of a property path",
                        self.span(child),
                        "only triples have annotations: write a predicate or a variable in place "
                        "of the path",
                    )
                    continue
                if child.rule == "reifier" or reifier is None:
                    reifier = self._reify((subject, predicate, term), child, span)
                if child.rule == "annotation":
                    self._properties(reifier, child.children[1], self.span(child))
                    reifier = None
            start = self.span(tree)

    # -------------------------------------------------------------- triple terms

    def triple_term(self, tree: Tree) -> ast.Term:
        subject, predicate, value = map(self._verb_or_node, _inner(tree))
        return self._term_of(subject, predicate, value, self.span(tree))

    def _verb_or_node(self, part: Part) -> Any:
        if isinstance(part, Token) and part.kind == "A":
            return self._verb(part)
        return self._node(part)

    def _term_of(self, subject: Any, predicate: Any, term: Any, span: Span) -> ast.Term:
        """A triple term: a constant, or a blank node whose parts a triple describes."""
        constants = (ast.Iri, ast.Literal, ast.TripleTerm)
        parts = (subject, predicate, term)
        if isinstance(subject, ast.Iri) and all(isinstance(part, constants) for part in parts):
            return ast.TripleTerm(subject, predicate, term, span)
        # No label of a text has a space.
        whole = ast.BlankNode(f"term {self._whole_count}", span)
        self._whole_count += 1
        self._triples.append(ast.Triple(subject, predicate, term, span, whole))
        return whole

    def reified(self, tree: Tree) -> ast.Term:
        subject, predicate, value, *reifier = _inner(tree)
        parts = tuple(map(self._verb_or_node, (subject, predicate, value)))
        return self._reify(parts, as_tree(reifier[0]) if reifier else tree, self.span(tree))

    def _reify(self, parts: tuple[Any, Any, Any], by: Tree, span: Span) -> ast.Term:
        """The reifier of a triple: the one that `by` names, otherwise a fresh blank node."""
        named = by.children if by.rule == "reifier" else []
        node = self._node(named[1]) if len(named) == 2 else self.anonymous(by)
        whole = self._term_of(*parts, span)
        self._triples.append(ast.Triple(node, ast.Iri(RDF + "reifies"), whole, span))
        return node

    def data_triple(self, tree: Tree) -> ast.TripleTerm:
        subject, predicate, value = map(self._verb_or_node, _inner(tree))
        return ast.TripleTerm(subject, predicate, value, self.span(tree))

    def _node(self, part: Part) -> ast.Term:
        if isinstance(part, Token) and part.kind == "BLANK_NODE_LABEL":
            return ast.BlankNode(part.text[2:], self.span(part))
        return self.build(part)  # type: ignore[no-any-return]

    def anonymous(self, tree: Tree) -> ast.BlankNode:
        label = f"{self._fresh}{self._fresh_count}"
        self._fresh_count += 1
        return ast.BlankNode(label, self.span(tree))

    def nil(self, tree: Tree) -> ast.Iri:
        return ast.Iri(RDF + "nil", self.span(tree))

    def property_node(self, tree: Tree) -> ast.BlankNode:
        node = self.anonymous(tree)
        self._properties(node, tree.children[0], node.span)
        return node

    def collection(self, tree: Tree) -> ast.BlankNode:
        nodes = [as_tree(child).children[0] for child in tree.children]
        cells = [self.anonymous(as_tree(child)) for child in tree.children]
        for index, (cell, node) in enumerate(zip(cells, nodes, strict=True)):
            last = index + 1 == len(cells)
            rest = self.nil(tree) if last else cells[index + 1]
            first, following = ast.Iri(RDF + "first"), ast.Iri(RDF + "rest")
            self._triples.append(ast.Triple(cell, first, self._node(node), cell.span))
            self._triples.append(ast.Triple(cell, following, rest, cell.span))
        return cells[0]

    # -------------------------------------------------------------- paths

    def _verb(self, part: Part) -> ast.Var | ast.Path:
        if isinstance(part, Token) and part.kind == "A":
            return ast.Iri(RDF + "type", self.span(part))
        return self.build(part)  # type: ignore[no-any-return]

    def path_alternative(self, tree: Tree) -> ast.Path:
        return ast.AlternativePath(self._paths(tree), self.span(tree))

    def path_sequence(self, tree: Tree) -> ast.Path:
        if len(tree.children) > MAX_CHAIN:
            raise TooDeep(tree)
        return ast.SequencePath(self._paths(tree), self.span(tree))

    def _paths(self, tree: Tree) -> tuple[Any, ...]:
        return tuple(self._verb(child) for child in tree.children)

    def path_inverse(self, tree: Tree) -> ast.Path:
        path: Any = self._verb(tree.children[0])
        return ast.InversePath(path, self.span(tree))

    def path_repeat(self, tree: Tree) -> ast.Path:
        path: Any = self._verb(tree.children[0])
        modifier: Any = as_token(tree.children[1]).text
        return ast.RepeatPath(path, modifier, self.span(tree))

    def path_negated(self, tree: Tree) -> ast.Path:
        forward: list[Any] = []
        inverse: list[Any] = []
        for child in tree.children:
            child = as_tree(child)
            iris = forward if child.rule == "path_forward" else inverse
            iris.append(self._verb(child.children[0]))
        span = self.span(tree)
        if not tree.children:
            # `!()` matches any predicate. Not every SPARQL processor accepts it, so write `a|!a`.
            one = ast.Iri(RDF + "type", span)
            return ast.AlternativePath((one, ast.NegatedPath((one,), (), span)), span)
        return ast.NegatedPath(tuple(forward), tuple(inverse), span)

    # -------------------------------------------------------------- sub-queries

    def sub_select(self, tree: Tree) -> ast.SubSelect:
        head, group, *modifiers = tree.children
        distinct, reduced, items = self.projection(as_tree(head))
        if items is not None:
            # A variable may be repeated; a repeated alias is an error that sparql_rules reports.
            once = dict.fromkeys(item for item in items if item.alias is None)
            items = tuple(item for item in items if item.alias or once.pop(item, 1) is None)
        parts: dict[str, Any] = {as_tree(part).rule: self.build(part) for part in modifiers}
        return ast.SubSelect(
            distinct, reduced, items, self.group(group), span=self.span(tree), **parts
        )

    def projection(self, head: Tree) -> tuple[bool, bool, tuple[ast.Projection, ...] | None]:
        """The head of a SELECT: DISTINCT, REDUCED, and the items (None for `*`)."""
        words = [child.kind for child in head.children if isinstance(child, Token)]
        trees = [child for child in head.children if isinstance(child, Tree)]
        items = None if "STAR" in words else tuple(self.select_item(child) for child in trees)
        return "DISTINCT" in words, "REDUCED" in words, items

    def select_item(self, tree: Tree) -> ast.Projection:
        expression, *alias = tree.children
        return ast.Projection(
            self.build(expression), self.build(alias[0]) if alias else None, self.span(tree)
        )

    group_key = select_item
    result_key = select_item
    let_item = select_item

    def group_by(self, tree: Tree) -> tuple[Any, ...]:
        return tuple(self.build(child) for child in tree.children)

    having = group_by
    let = group_by
    order_by = group_by

    def order_key(self, tree: Tree) -> ast.OrderKey:
        *direction, expression = tree.children
        descending = bool(direction) and as_token(direction[0]).text.upper() == "DESC"
        return ast.OrderKey(self.build(expression), descending, self.span(tree))

    def limit(self, tree: Tree) -> int:
        return self.integer(tree.children[0])

    offset = limit

    def integer(self, token: Part) -> int:
        """A count; one that exceeds 63 bits is reported and clamped."""
        digits = as_token(token).text
        value = int(digits) if len(digits) <= 19 else _MAX_COUNT + 1
        if value > _MAX_COUNT:
            self.source.report(
                "this number is too large", self.span(token), "write a number below 2⁶³"
            )
            return _MAX_COUNT
        return value


def _inner(tree: Tree) -> list[Part]:
    """The parts of a triple term or a reified triple, without the brackets."""
    return tree.children[1:-1]

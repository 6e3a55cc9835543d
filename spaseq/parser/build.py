"""Parse tree → syntax tree of a whole query (docs/language.md section 2).

The builder enforces what the grammar leaves open: clauses allowed at most once, one kind of
operator within one pair of parentheses, times in whole microseconds, templates without paths.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from spaseq.parser import ast
from spaseq.parser.build_pattern import PatternBuilder
from spaseq.parser.keywords import MICROSECONDS
from spaseq.parser.lalr import Part, Token, Tree, as_token, as_tree

_GROUPS: dict[str, tuple[Any, str]] = {
    "AMPERSAND": (ast.Conjunction, "&"),
    "SIMULTANEOUS": (ast.Conjunction, "&"),
    "VBAR": (ast.Disjunction, "|"),
    "OR": (ast.Disjunction, "|"),
    "AND": (ast.AnyOrder, "AND"),
}
_CLAUSES = {
    "within": ("within", "WITHIN"),
    "partition_by": ("partition", "PARTITION BY"),
    "emit": ("emit", "EMIT"),
    "after_match_keep": ("after_match", "AFTER MATCH"),
    "after_match_skip": ("after_match", "AFTER MATCH"),
    "after_match_next": ("after_match", "AFTER MATCH"),
    "after_match_first": ("after_match", "AFTER MATCH"),
    "after_match_last": ("after_match", "AFTER MATCH"),
    "group_results": ("groups", "GROUP"),
    "limit_results": ("limit", "LIMIT"),
}

_VERSIONS = ("1.1", "1.2", "1.2-basic")
"""The versions of SPARQL that a query may announce."""


class QueryBuilder(PatternBuilder):
    """The complete builder; one instance builds the tree of one text."""

    def query(self, tree: Tree) -> ast.Query:
        parts: dict[str, Any] = {}
        for child in tree.children:
            child = as_tree(child)
            if child.rule == "prologue":
                parts["prologue"] = self.prologue(child)
            elif child.rule.startswith("register"):
                parts["register"] = self.build(child)
            else:
                *head, body = child.children
                parts["form"] = self._form(child, head)
                parts |= self._body(as_tree(body))
        return ast.Query(**parts, span=self.span(tree), text=self.source.text)

    def mapping(self, tree: Tree) -> ast.Mapping:
        prologue, template, group = map(as_tree, tree.children)
        return ast.Mapping(
            prologue=self.prologue(prologue),
            template=self.template(template),
            where=self.group(group),
            span=self.span(tree),
            text=self.source.text,
        )

    # -------------------------------------------------------------- prologue and result form

    def prologue(self, tree: Tree) -> ast.Prologue:
        declared: dict[str, str] = {}
        version: str | None = None
        for child in tree.children:
            child = as_tree(child)
            if child.rule == "version_decl":
                version = self._version(as_token(child.children[0]))
                continue
            iri = self.absolute(as_token(child.children[-1]))
            if child.rule == "base_decl":
                self.base = iri
            else:
                prefix = as_token(child.children[0]).text[:-1]
                declared[prefix] = self.prefixes[prefix] = iri
        return ast.Prologue(self.base, tuple(declared.items()), version)

    def _version(self, token: Token) -> str:
        """The version of SPARQL that a query announces; it has no effect."""
        version = self.string(token)
        if version not in _VERSIONS:
            self.source.report(
                f"{token.text} is not a known version of SPARQL",
                self.span(token),
                f"the versions are {', '.join(_VERSIONS)}; the declaration may be omitted",
            )
        return version

    def register_query(self, tree: Tree) -> ast.Register:
        return ast.Register("QUERY", as_token(tree.children[0]).text, self.span(tree))

    def register_stream(self, tree: Tree) -> ast.Register:
        return ast.Register("STREAM", self.build(tree.children[0]).value, self.span(tree))

    def _form(self, tree: Tree, head: list[Any]) -> ast.Select | ast.Construct | ast.Ask:
        span = self.span(head[0])
        if tree.rule == "select":
            distinct, reduced, items = self.projection(head[0])
            return ast.Select(items, distinct, reduced, span)
        if tree.rule == "construct":
            return ast.Construct(self.template(head[0]), span)
        return ast.Ask(span)

    def template(self, tree: Tree) -> tuple[ast.Triple, ...]:
        self._check_dots(tree.children)
        out: list[ast.Triple] = []
        for child in tree.children:
            if isinstance(child, Token):
                continue  # a dot
            if child.rule != "triples":
                self.source.report(
                    "a CONSTRUCT template may contain only triples",
                    self.span(child),
                    "move this into the graph pattern of a DEFINE GPM",
                )
                continue
            for triple in self.triples(child):
                if not isinstance(triple.predicate, ast.Var | ast.Iri):
                    self.source.report(
                        "a property path in a CONSTRUCT template",
                        triple.predicate.span,
                        "a new triple has one predicate: write an IRI or a variable",
                    )
                out.append(triple)
        return tuple(out)

    # -------------------------------------------------------------- the body

    def _body(self, tree: Tree) -> dict[str, Any]:
        parts: dict[str, Any] = {"streams": (), "kbs": (), "defines": ()}
        several = {"from_stream": "streams", "from_kb": "kbs", "define": "defines"}
        for child in tree.children:
            child = as_tree(child)
            node = self.build(child)
            if child.rule in several:
                parts[several[child.rule]] += (node,)
                continue
            key, words = _CLAUSES.get(child.rule, ("sequence", "SEQ"))
            if key in parts:
                self.source.report(
                    f"duplicate {words}",
                    self.span(child),
                    "a query has at most one; remove one of the two",
                    parts[key].span,
                    "the first one",
                )
                continue
            parts[key] = node
        return parts

    def within(self, tree: Tree) -> ast.Within:
        span = self.span(tree)
        words = {child.kind: child for child in tree.children if isinstance(child, Token)}
        if "UNBOUNDED" in words:
            return ast.Within(ast.WindowKind.UNBOUNDED, span=span)
        if "EVENTS" in words:
            return ast.Within(
                ast.WindowKind.EVENTS, events=self.integer(words["INTEGER"]), span=span
            )
        kind = ast.WindowKind.TUMBLING if "TUMBLING" in words else ast.WindowKind.SPAN
        return ast.Within(kind, self._duration(tree), span=span)

    def _duration(self, tree: Tree, noun: str = "window") -> int:
        """The microseconds of the number and the unit at the end of a clause or bound."""
        number, unit = tree.children[-2:]
        return self._microseconds(number, as_token(unit).text.upper().removesuffix("S"), noun)

    def _microseconds(self, token: Part, unit: str, noun: str) -> int:
        number = Decimal(as_token(token).text)
        if number.is_zero():
            return 0
        if number.adjusted() > 18:
            self._too_long(token, noun)
            return 0
        exact = number * MICROSECONDS[unit] if number.adjusted() > -24 else None
        if exact is None or len(number.as_tuple().digits) > 24 or exact != int(exact):
            self.source.report(
                f"this {noun} is not a whole number of microseconds",
                self.span(token),
                "times have a resolution of one microsecond: round the number",
                incomplete=True,
            )
            return 0
        if exact >= 2**63:
            self._too_long(token, noun)
            return 0
        return int(exact)

    def _too_long(self, token: Part, noun: str) -> None:
        hint = _MAX_WINDOW_HINT if noun == "window" else _MAX_SPAN_HINT.format(noun)
        self.source.report(f"this {noun} is too long", self.span(token), hint, incomplete=True)

    def partition_by(self, tree: Tree) -> ast.PartitionBy:
        variables = tuple(self.build(child) for child in tree.children)
        return ast.PartitionBy(variables, self.span(tree))

    def from_stream(self, tree: Tree) -> ast.FromStream:
        name, iri = tree.children
        return ast.FromStream(as_token(name).text, self.build(iri), self.span(tree))

    def from_kb(self, tree: Tree) -> ast.FromKb:
        *named, iri = tree.children
        return ast.FromKb(self.build(iri), bool(named), self.span(tree))

    def emit(self, tree: Tree) -> ast.Emit:
        mode: Any = as_token(tree.children[0]).text.upper()
        return ast.Emit(mode, self.span(tree))

    def after_match_keep(self, tree: Tree) -> ast.AfterMatch:
        return ast.AfterMatch("KEEP ALL", span=self.span(tree))

    def after_match_skip(self, tree: Tree) -> ast.AfterMatch:
        return ast.AfterMatch("SKIP PAST LAST EVENT", span=self.span(tree))

    def after_match_next(self, tree: Tree) -> ast.AfterMatch:
        return ast.AfterMatch("SKIP TO NEXT", span=self.span(tree))

    def after_match_first(self, tree: Tree) -> ast.AfterMatch:
        return ast.AfterMatch("SKIP TO FIRST", as_token(tree.children[0]).text, self.span(tree))

    def after_match_last(self, tree: Tree) -> ast.AfterMatch:
        return ast.AfterMatch("SKIP TO LAST", as_token(tree.children[0]).text, self.span(tree))

    def group_results(self, tree: Tree) -> ast.GroupResults:
        parts: dict[str, Any] = {"keys": ()}
        for child in map(as_tree, tree.children):
            node = self.build(child)
            if child.rule == "result_key":
                parts["keys"] += (node,)
            else:
                parts[{"let": "lets"}.get(child.rule, child.rule)] = node
        word = self.source.span(tree.start, tree.start + len("GROUP"))
        return ast.GroupResults(**parts, span=self.span(tree), word_span=word)

    def over(self, tree: Tree) -> ast.Over:
        tumbling = len(tree.children) > 2
        return ast.Over(self._duration(tree, "time of OVER"), tumbling, self.span(tree))

    def limit_results(self, tree: Tree) -> ast.Limit:
        number, *rest = tree.children
        parts: dict[str, Any] = {}
        for child in map(as_tree, rest):
            parts[child.rule] = self.build(child)
            if child.rule == "per":
                parts["per_span"] = self.source.span(child.start, child.start + len("PER"))
        return ast.Limit(self.integer(as_token(number)), **parts, span=self.span(tree))

    def per(self, tree: Tree) -> tuple[ast.Var, ...]:
        return tuple(self.build(child) for child in tree.children)

    def every(self, tree: Tree) -> ast.Every:
        return ast.Every(self._duration(tree, "time of EVERY"), self.span(tree))

    def define(self, tree: Tree) -> ast.Define:
        *heads, group = tree.children
        names = [each for each in heads if isinstance(each, Token) and each.kind == "NAME"]
        at = [self.build(each) for each in heads if isinstance(each, Token) and each.kind == "VAR"]
        return ast.Define(
            names[0].text,
            tuple(name.text for name in names[1:]),
            self.group(group),
            at[0] if at else None,
            self.span(tree),
            self.span(names[0]),
            tuple(self.span(name) for name in names[1:]),
        )

    # -------------------------------------------------------------- the sequence

    def sequence(self, tree: Tree) -> ast.Sequence:
        unit = self.unit_group(tree)
        if isinstance(unit, ast.Sequence):
            return unit
        return ast.Sequence((ast.Step(None, unit, span=unit.span),), self.span(tree))

    def unit_group(self, tree: Tree) -> Any:
        """The contents of one pair of parentheses: a sequence, or a group of one operator."""
        span = self.span(tree)
        steps = tree.children[::2]
        glue = [each for each in tree.children[1::2] if isinstance(each, Token)]
        first = _GROUPS.get(glue[0].kind) if glue else None
        for token in glue:
            if _GROUPS.get(token.kind) != first:
                self.source.report(
                    f"{token.text} and {glue[0].text} are mixed in one pair of parentheses",
                    self.span(token),
                    "use parentheses to group the operands: (A & B), C  or  (A; B) | C",
                    self.span(glue[0]),
                    "the first operator",
                    incomplete=True,
                )
                return ast.Sequence((self._step(steps[0]),), span)
        if first is None:
            rest = [self._step(each, mark) for mark, each in zip(glue, steps[1:], strict=True)]
            return ast.Sequence((self._step(steps[0]), *rest), span)
        kind, sign = first
        return kind(tuple(self._operand(each, sign) for each in steps), span)

    def _operand(self, part: Part, sign: str) -> ast.Unit:
        step = self._step(part)
        if step.negated or step.quantifier is not None or step.bound is not None:
            if step.quantifier is None and not step.negated:
                hint = (
                    "enclose the operand in parentheses, such as (B WITHIN 5 SECONDS)"
                    if sign == "|"
                    else f"write the bound after the whole group: (A {sign} B) WITHIN 5 SECONDS"
                )
            elif step.negated:
                hint = f"write the negation as a separate step, outside the ({sign}) group"
            elif sign == "|":
                hint = "enclose the operand in parentheses, such as (B+)"
            else:
                hint = f"operands of {sign} are GPMs, or groups of GPMs joined by & or |"
            what = (
                "a negation" if step.negated else "a quantifier" if step.quantifier else "a bound"
            )
            self.source.report(f"{what} on an operand of {sign}", step.span, hint, incomplete=True)
        return step.unit

    def _step(self, part: Part, mark: Token | None = None) -> ast.Step:
        part = as_tree(part)
        negated = False
        quantifier = bound = None
        unit: Any = None
        for child in part.children:
            if isinstance(child, Tree):
                if child.rule == "quantifier":
                    quantifier = self.quantifier(child)
                elif child.rule == "bound":
                    bound = self.bound(child)
                else:
                    unit = self.build(child)
            elif child.kind == "NAME":
                unit = ast.GpmRef(child.text, self.span(child))
            else:
                negated = True
        span = self.span(part)
        if mark is None:
            return ast.Step(None, unit, quantifier, negated, span, bound=bound)
        operator: Any = mark.text
        return ast.Step(operator, unit, quantifier, negated, span, self.span(mark), bound)

    def bound(self, tree: Tree) -> ast.Bound:
        return ast.Bound(self._duration(tree, "bound"), self.span(tree))

    def quantifier(self, tree: Tree) -> ast.Quantifier:
        span = self.span(tree)
        head, *rest = tree.children
        first = as_token(head)
        if first.kind != "INTEGER":
            least, most, optional = {
                "PLUS": (1, None, False),
                "STAR": (0, None, False),
                "QMARK": (0, 1, True),
            }[first.kind]
            return ast.Quantifier(least, most, optional, span)
        least = self.integer(first)
        if not rest:
            return ast.Quantifier(least, least, False, span)
        return ast.Quantifier(least, self.integer(rest[1]) if len(rest) == 2 else None, False, span)


_MAX_SPAN_HINT = "the longest {} is about 292,000 years"
_MAX_WINDOW_HINT = "the longest window is about 292,000 years; WITHIN UNBOUNDED sets no limit"

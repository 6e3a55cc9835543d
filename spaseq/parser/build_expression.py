"""Parse tree → terms and expressions (SPARQL 1.1, productions [110] to [138]).

The builder has one method per rule of `grammar.lark`, named after the rule. It reports an error
in a term or a call with its position and puts a placeholder into the tree, so that one pass
finds all undeclared prefixes, wrong escapes and wrong arities.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from spaseq.errors import Span
from spaseq.parser import ast
from spaseq.parser.iri import RELATIVE, UNDECLARED, flaw, is_absolute, resolve
from spaseq.parser.lalr import Part, Token, Tree, as_token, as_tree
from spaseq.parser.language_tag import is_language_tag
from spaseq.parser.nearest import nearest
from spaseq.parser.source import Source
from spaseq.sparql.builtins import AGGREGATES, BUILTINS, SYNONYMS, XSD

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

PREDECLARED = {
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
}

# Prefixes that are often used undeclared (prefix.cc), for the hint of the error message.
_WELL_KNOWN = {
    "dbo": "http://dbpedia.org/ontology/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dct": "http://purl.org/dc/terms/",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "geof": "http://www.opengis.net/def/function/geosparql/",
    "geosparql": "http://www.opengis.net/ont/geosparql#",
    "math": "http://www.w3.org/2005/xpath-functions/math#",
    "qudt": "http://qudt.org/schema/qudt/",
    "saref": "https://saref.etsi.org/core/",
    "schema": "http://schema.org/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "time": "http://www.w3.org/2006/time#",
    "unit": "http://qudt.org/vocab/unit/",
}

_ECHAR = {
    "t": "\t",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "f": "\f",
    "\\": "\\",
    '"': '"',
    "'": "'",
}
_STRING_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_LOCAL_ESCAPE = re.compile(r"\\(.)")


_SPARQL_AGGREGATES = ", ".join(each.name for each in AGGREGATES.values() if not each.of_sequence)

# Later stages recurse over the tree; these limits protect the interpreter's stack.
MAX_NESTING = 100  # brackets
MAX_CHAIN = 250  # operands of one chain of operators


class TooDeep(Exception):
    """The text exceeds `MAX_NESTING` or `MAX_CHAIN`."""

    def __init__(self, part: Part):
        self.part = part
        super().__init__(part)


class ExpressionBuilder:
    """The builder's methods for terms and expressions; `build` dispatches for all rules."""

    def __init__(self, source: Source, prefixes: dict[str, str] | None = None):
        self.source = source
        self.base: str | None = None
        self.prefixes = dict(PREDECLARED if prefixes is None else PREDECLARED | prefixes)
        self._unknown_prefixes: set[str] = set()
        self._depth = 0

    def build(self, part: Part) -> Any:
        """The node of a variable's token, or of a tree, by the method named after its rule."""
        if isinstance(part, Token):
            return self.var(part)
        if self._depth == MAX_NESTING:
            raise TooDeep(part)
        self._depth += 1
        node = getattr(self, part.rule)(part)
        self._depth -= 1
        return node

    def span(self, part: Part) -> Span:
        """The span of a token or tree in the user's text."""
        return self.source.span(part.start, part.end)

    # -------------------------------------------------------------- terms

    def var(self, token: Token) -> ast.Var:
        return ast.Var(token.text[1:], self.span(token))

    def iri(self, tree: Tree) -> ast.Iri:
        token = as_token(tree.children[0])
        if token.kind == "IRIREF":
            return ast.Iri(self.absolute(token), self.span(token))
        return ast.Iri(self._expanded(token), self.span(token))

    def absolute(self, token: Token) -> str:
        """The absolute IRI of `<…>`, resolved against `BASE`."""
        reference = token.text[1:-1]
        if self.base is not None:
            reference = resolve(reference, self.base)
        elif not is_absolute(reference):
            self.source.report(
                f"the IRI {token.text} is relative, and the query declares no BASE",
                self.span(token),
                "write the whole IRI, such as <http://example.org/x>, or declare "
                "BASE <http://example.org/> before the query",
            )
            return RELATIVE + reference
        self._check_flaw(reference, token)
        return reference

    def _check_flaw(self, iri: str, token: Token) -> None:
        wrong = flaw(iri)
        if wrong:
            self.source.report(f"{token.text} is not an IRI", self.span(token), wrong)

    def _expanded(self, token: Token) -> str:
        prefix, _, local = token.text.partition(":")
        namespace = self.prefixes.get(prefix)
        if namespace is None:
            self._report_prefix(prefix, token)
            namespace = f"{UNDECLARED}{prefix}:"
        iri = namespace + _LOCAL_ESCAPE.sub(r"\1", local)
        self._check_flaw(iri, token)
        return iri

    def _report_prefix(self, prefix: str, token: Token) -> None:
        if prefix in self._unknown_prefixes:
            return
        self._unknown_prefixes.add(prefix)
        close = nearest(prefix, self.prefixes)
        if close is not None and prefix not in _WELL_KNOWN:
            hint = f"did you mean {close}:? Otherwise declare it: PREFIX {prefix}: <…>"
        else:
            namespace = _WELL_KNOWN.get(prefix, "http://example.org/")
            hint = f"add a line at the top: PREFIX {prefix}: <{namespace}>"
        self.source.report(f"the prefix {prefix}: is not declared", self.span(token), hint)

    def literal(self, tree: Tree) -> ast.Literal:
        token = as_token(tree.children[0])
        span = self.span(tree)
        if token.kind == "BOOLEAN":
            return ast.Literal(token.text.lower(), XSD + "boolean", span=span)
        if token.kind != "STRING":
            return ast.Literal(token.text, XSD + number_type(token.text), span=span)
        text = self.string(token)
        if len(tree.children) == 1:
            return ast.Literal(text, span=span)
        mark = tree.children[1]
        if isinstance(mark, Token):
            return self._tagged(text, mark, span)
        return ast.Literal(text, self.iri(mark).value, span=span)

    def _tagged(self, text: str, mark: Token, span: Span) -> ast.Literal:
        """A literal with a language tag and an optional base direction."""
        language, _, direction = mark.text[1:].partition("--")
        if not is_language_tag(language):
            self.source.report(
                f"@{language} is not a language tag",
                self.span(mark),
                "tags look like @en, @de-AT or @zh-Hant (RFC 5646)",
            )
        if not direction:
            return ast.Literal(text, RDF + "langString", language, None, span)
        if direction not in ("ltr", "rtl"):
            self.source.report(
                f"--{direction} is not a base direction",
                self.span(mark),
                f"a base direction is --ltr or --rtl, in lower case: @{language}--ltr",
            )
        return ast.Literal(text, RDF + "dirLangString", language, direction, span)

    def triple_expression(self, tree: Tree) -> ast.Expr:
        """A triple term in an expression: a constant, or a call of `TRIPLE`."""
        subject, predicate, value = map(self._part, tree.children[1:-1])
        constants = (ast.Iri, ast.Literal, ast.TripleTerm)
        if (
            isinstance(subject, ast.Iri)
            and isinstance(predicate, ast.Iri)
            and isinstance(value, constants)
        ):
            return ast.TripleTerm(subject, predicate, value, self.span(tree))
        return ast.Call("TRIPLE", (subject, predicate, value), self.span(tree))

    def _part(self, part: Part) -> ast.Expr:
        if isinstance(part, Token) and part.kind == "A":
            return ast.Iri(RDF + "type", self.span(part))
        return self.build(part)  # type: ignore[no-any-return]

    def string(self, token: Token) -> str:
        """The value of a quoted string; wrong escapes are reported."""
        width = 3 if token.text[:3] in ('"""', "'''") else 1
        body = token.text[width:-width]
        if "\\" not in body:
            return body
        start = token.start + width

        def character(match: re.Match[str]) -> str:
            if match[3] is None:
                return chr(int(match[1] or match[2], 16))
            known = _ECHAR.get(match[3])
            if known is None:
                self.source.report(
                    f"\\{match[3]} is not an escape"
                    if match[3] not in "uU"
                    else f"\\{match[3]} needs {4 if match[3] == 'u' else 8} hexadecimal digits",
                    self.source.span(start + match.start(), start + match.end()),
                    "the escapes are \\t \\n \\r \\b \\f \\\" \\' \\\\ \\uXXXX \\UXXXXXXXX; "
                    "write \\\\ for a backslash",
                )
                return match[0]
            return known

        return _STRING_ESCAPE.sub(character, body)

    # -------------------------------------------------------------- operators

    def expression(self, tree: Tree) -> ast.Expr:
        return self.build(tree.children[0])  # type: ignore[no-any-return]

    bracketed = expression

    def logical_or(self, tree: Tree, operator: Any = "||") -> ast.Expr:
        left: ast.Expr = self.build(tree.children[0])
        if len(tree.children) > MAX_CHAIN:
            raise TooDeep(tree)
        for child in tree.children[1:]:
            right = self.build(child)
            left = ast.Binary(operator, left, right, self._start(tree).to(self.span(child)))
        return left

    def logical_and(self, tree: Tree) -> ast.Expr:
        return self.logical_or(tree, "&&")

    def additive(self, tree: Tree) -> ast.Expr:
        left: ast.Expr = self.build(tree.children[0])
        rest = tree.children[1:]
        if len(rest) > 2 * MAX_CHAIN:
            raise TooDeep(tree)
        for sign, child in zip(rest[::2], rest[1::2], strict=True):
            operator: Any = as_token(sign).text
            right = self.build(child)
            left = ast.Binary(operator, left, right, self._start(tree).to(self.span(child)))
        return left

    multiplicative = additive
    relational = additive

    def _start(self, tree: Tree) -> Span:
        return self.span(tree.children[0])

    def unary(self, tree: Tree) -> ast.Expr:
        operator: Any = as_token(tree.children[0]).text
        return ast.Unary(operator, self.build(tree.children[1]), self.span(tree))

    def membership(self, tree: Tree) -> ast.Expr:
        choices = self._arguments(tree.children[-1])
        return ast.In(
            self.build(tree.children[0]), choices, len(tree.children) == 3, self.span(tree)
        )

    # -------------------------------------------------------------- calls

    def _arguments(self, tree: Part) -> tuple[ast.Expr, ...]:
        out: list[ast.Expr] = []
        for child in as_tree(tree).children:
            if isinstance(child, Token) and child.kind == "DISTINCT":
                self.source.report(
                    "DISTINCT is allowed only inside an aggregate",
                    self.span(child),
                    f"remove it; the aggregates are {_SPARQL_AGGREGATES}",
                )
            else:
                out.append(self.build(child))
        return tuple(out)

    def builtin(self, tree: Tree) -> ast.Expr:
        word, given = tree.children
        name = as_token(word).text.upper()
        name = SYNONYMS.get(name, name)
        arguments = self._arguments(given)
        known = BUILTINS[name]
        if not known.accepts(len(arguments)):
            self.source.report(
                f"{name} takes {known.arity}, but has {len(arguments)}",
                self.span(tree),
                f"write {known.call}",
            )
            return self._placeholder_call(arguments, tree)
        if name == "BOUND" and not _can_be_bound(arguments[0]):
            self.source.report(
                "BOUND takes a variable, not an expression",
                arguments[0].span,
                "write BOUND(?v), or BOUND(PREV(?v)); COALESCE(…) returns the first expression "
                "that has a value",
            )
            return self._placeholder_call(arguments, tree)
        match arguments:
            case (ast.Literal() as text,) if name == "IRI" and self.base is not None:
                # Only constants can be resolved: the base IRI is not known after parsing.
                arguments = (replace(text, lexical=resolve(text.lexical, self.base)),)
        return ast.Call(name, arguments, self.span(tree))

    def _placeholder_call(self, arguments: tuple[ast.Expr, ...], tree: Tree) -> ast.Expr:
        """A call that accepts any number of arguments, so that later checks examine them."""
        return ast.Call("COALESCE", arguments, self.span(tree))

    def function_call(self, tree: Tree) -> ast.Expr:
        return ast.FunctionCall(
            self.build(tree.children[0]), self._arguments(tree.children[1]), self.span(tree)
        )

    def exists(self, tree: Tree) -> ast.Expr:
        return ast.Exists(self.build(tree.children[-1]), len(tree.children) == 2, self.span(tree))

    def aggregate(self, tree: Tree) -> ast.Expr:
        name = as_token(tree.children[0]).text.upper()
        distinct = False
        argument: ast.Expr | ast.GpmName | None = None
        separator: str | None = None
        for child in tree.children[1:]:
            if isinstance(child, Tree):
                if child.rule == "separator":
                    separator = self._separator(name, child)
                else:
                    argument = self.build(child)
            elif child.kind == "DISTINCT":
                distinct = True
            elif child.kind == "NAME":
                argument = ast.GpmName(child.text, self.span(child))
            elif child.kind == "VAR":
                argument = self.var(child)
            elif name != "COUNT":
                self.source.report(
                    f"{name} needs a variable, not *",
                    self.span(child),
                    f"write {name}(?v); only COUNT takes *",
                )
        return ast.Aggregate(name, argument, distinct, separator, self.span(tree))

    def _separator(self, name: str, tree: Tree) -> str:
        token = as_token(tree.children[0])
        if name != "GROUP_CONCAT":
            self.source.report(
                f"{name} has no SEPARATOR", self.span(tree), "only GROUP_CONCAT has one"
            )
        return self.string(token)

    def prev(self, tree: Tree) -> ast.Expr:
        variable = self.build(tree.children[0])
        default = self.build(tree.children[1]) if len(tree.children) == 2 else None
        return ast.Prev(variable, default, self.span(tree))


def number_type(text: str) -> str:
    """The datatype of an unquoted number, as a local name in `xsd:`."""
    if "e" in text or "E" in text:
        return "double"
    return "decimal" if "." in text else "integer"


def _can_be_bound(argument: ast.Expr) -> bool:
    """Whether `BOUND` accepts the argument: a variable, or its value in another iteration."""
    match argument:
        case ast.Aggregate(name):
            return AGGREGATES[name].of_sequence
    return isinstance(argument, ast.Var | ast.Prev)

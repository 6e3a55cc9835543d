"""Syntax tree → text, such that `parse(format_query(q)) == q`.

`format_query` writes readable text: indented, IRIs shortened by the query's prefixes.
`format_pattern` and `format_expression` write for other SPARQL processors: absolute IRIs and no
prologue, with exactly the same terms. `expression_line`, `element_line` and `term_text` write for
messages. The writer adds parentheses only where the grammar would otherwise parse another tree.
Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from spaseq.parser import ast
from spaseq.parser.build_expression import PREDECLARED, RDF
from spaseq.parser.keywords import MICROSECONDS
from spaseq.sparql.builtins import XSD

NO_PREFIXES: Mapping[str, str] = {}

_LOCAL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_UNQUOTED = {
    XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD + "double": re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+"),
    XSD + "boolean": re.compile(r"true|false"),
}
_ESCAPES = str.maketrans(
    {
        "\\": "\\\\",
        '"': '\\"',
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\b": "\\b",
        "\f": "\\f",
    }
)

# Operator precedence: production [111] of SPARQL 1.1 is 0, [119] is 6.
_OR, _AND, _RELATION, _SUM, _PRODUCT, _SIGN, _PRIMARY = range(7)
_LEVEL = {"||": _OR, "&&": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT}
# The same for paths: [89], [90], [92], [91], [94].
_ALTERNATIVE, _SEQUENCE, _INVERSE, _REPEAT, _ATOM = range(5)

_OPERATORS = {",": ", ", ";": "; ", ":": " : "}
_SIGNS = {ast.Conjunction: " & ", ast.Disjunction: " | ", ast.AnyOrder: " AND "}


def format_query(query: ast.Query) -> str:
    """The query as text, laid out for reading."""
    prologue = query.prologue
    prefixes = PREDECLARED | dict(prologue.prefixes)
    writer = _Writer(prefixes)
    lines = [f"VERSION {_quoted(prologue.version)}"] if prologue.version is not None else []
    lines += [f"BASE <{prologue.base}>"] if prologue.base is not None else []
    lines += [f"PREFIX {prefix}: <{iri}>" for prefix, iri in prologue.prefixes]
    if lines:
        lines.append("")
    lines += writer.clauses(query)
    lines.append("WHERE {")
    lines.append(f"  SEQ {writer.sequence(query.sequence)}")
    for define in query.defines:
        at = f" AT ?{define.at.name}" if define.at else ""
        head = f"  DEFINE GPM {define.name} ON {', '.join(define.streams)}{at} "
        lines.append(head + writer.group(define.pattern, "  "))
    lines.append("}")
    if query.groups:
        lines.append(writer.groups(query.groups))
    if query.limit:
        lines.append(limit_text(query.limit))
    return "\n".join(lines) + "\n"


def expression_line(expression: ast.Expr, prefixes: Mapping[str, str] = NO_PREFIXES) -> str:
    """An expression on one line; line breaks occur only escaped, inside strings."""
    return re.sub(r"\s*\n\s*", " ", _Writer(prefixes).expression(expression, _OR))


def element_line(
    element: ast.Element,
    prefixes: Mapping[str, str] = NO_PREFIXES,
    terms: Sequence[ast.Element] = (),
) -> str:
    """An element of a graph pattern on one line, without a final dot.

    `terms` are the triples that describe its triple terms (`Triple.of`).
    """
    group = ast.GroupGraphPattern((*terms, element))
    text = _Writer(prefixes).group(group, "").removeprefix("{").removesuffix("}").strip()
    return re.sub(r"\s*\n\s*", " ", text).removesuffix(".").rstrip()


def term_text(term: ast.Term, prefixes: Mapping[str, str] = NO_PREFIXES) -> str:
    """A term as a query writes it."""
    return _Writer(prefixes).term(term)


def format_pattern(group: ast.GroupGraphPattern) -> str:
    """`{ … }` as SPARQL 1.1 text with absolute IRIs."""
    return _Writer({}).group(group, "")


def format_expression(expression: ast.Expr) -> str:
    """The expression as SPARQL 1.1 text with absolute IRIs, without outer parentheses."""
    return _Writer({}).expression(expression, _OR)


class _Writer:
    def __init__(self, prefixes: Mapping[str, str]):
        self._abbreviate = bool(prefixes)
        self._wholes: dict[str, ast.Triple] = {}
        """The parts of a triple term by the label of the blank node that stands for it."""
        # The longest namespace first, so that the shortest local name wins.
        self._namespaces = sorted(
            ((iri, prefix) for prefix, iri in prefixes.items()), key=lambda pair: -len(pair[0])
        )

    # -------------------------------------------------------------- clauses

    def clauses(self, query: ast.Query) -> list[str]:
        lines = []
        if query.register:
            name = query.register.name
            shown = name if query.register.kind == "QUERY" else f"<{name}>"
            lines.append(f"REGISTER {query.register.kind} {shown} AS")
        lines.append(self._form(query.form))
        if query.within:
            lines.append(f"WITHIN {_window(query.within)}")
        if query.partition:
            names = ", ".join(f"?{variable.name}" for variable in query.partition.variables)
            lines.append(f"PARTITION BY ({names})")
        lines += [f"FROM STREAM {each.name} {self.iri(each.iri)}" for each in query.streams]
        for kb in query.kbs:
            lines.append(f"FROM {'NAMED ' if kb.named else ''}{self.iri(kb.iri)}")
        if query.emit:
            lines.append(f"EMIT {query.emit.mode}")
        if query.after_match:
            after = query.after_match
            lines.append(" ".join(filter(None, ("AFTER MATCH", after.mode, after.name))))
        return lines

    def groups(self, groups: ast.GroupResults) -> str:
        words = ["GROUP"]
        if groups.keys:
            words.append(f"BY {' '.join(map(self._projection, groups.keys))}")
        if groups.over:
            tumbling = "TUMBLING " if groups.over.tumbling else ""
            words.append(f"OVER {tumbling}{duration_text(groups.over.microseconds)}")
        if groups.lets:
            words.append(f"LET {' '.join(map(self._projection, groups.lets))}")
        if groups.having:
            conditions = (f"({self.expression(each, _OR)})" for each in groups.having)
            words.append(f"HAVING {' '.join(conditions)}")
        return " ".join(words)

    def _form(self, form: ast.Select | ast.Construct | ast.Ask) -> str:
        if isinstance(form, ast.Ask):
            return "ASK"
        if isinstance(form, ast.Construct):
            return "CONSTRUCT " + self._block(self._elements(form.template, "  "), "")
        return self._select(form.distinct, form.reduced, form.items)

    def _select(
        self, distinct: bool, reduced: bool, items: tuple[ast.Projection, ...] | None
    ) -> str:
        words = "SELECT" + " DISTINCT" * distinct + " REDUCED" * reduced
        if items is None:
            return f"{words} *"
        return " ".join([words, *(self._projection(item) for item in items)])

    def _projection(self, item: ast.Projection) -> str:
        if item.alias is None:
            if isinstance(item.expression, ast.Var):
                return f"?{item.expression.name}"
            return f"({self.expression(item.expression, _OR)})"
        return f"({self.expression(item.expression, _OR)} AS ?{item.alias.name})"

    # -------------------------------------------------------------- the sequence

    def sequence(self, sequence: ast.Sequence) -> str:
        return f"({''.join(self._step(step) for step in sequence.steps)})"

    def _step(self, step: ast.Step) -> str:
        operator = _OPERATORS[step.operator] if step.operator else ""
        quantifier = _quantifier(step.quantifier) if step.quantifier else ""
        bound = f" WITHIN {duration_text(step.bound.microseconds)}" if step.bound else ""
        return f"{operator}{'!' * step.negated}{self._unit(step.unit)}{quantifier}{bound}"

    def _unit(self, unit: ast.Unit) -> str:
        if isinstance(unit, ast.GpmRef):
            return unit.name
        if isinstance(unit, ast.Sequence):
            return self.sequence(unit)
        return f"({_SIGNS[type(unit)].join(self._unit(each) for each in unit.operands)})"

    # -------------------------------------------------------------- graph patterns

    def group(self, group: ast.GroupGraphPattern, indent: str) -> str:
        match group.elements:
            case (ast.SubSelect() as select,):
                inner = indent + "  "
                return self._block([inner + self._sub_select(select, inner)], indent)
        return self._block(self._elements(group.elements, indent + "  "), indent)

    def _block(self, lines: list[str], indent: str) -> str:
        return "\n".join(["{", *lines, indent + "}"]) if lines else "{ }"

    def _elements(self, elements: Iterable[ast.Element], indent: str) -> list[str]:
        lines: list[str] = []
        subject: ast.Term | None = None
        elements = tuple(elements)
        self._wholes |= {
            element.of.label: element
            for element in elements
            if isinstance(element, ast.Triple) and element.of is not None
        }
        used = {term for element in elements for term in _ends(element)}
        for element in elements:
            if isinstance(element, ast.Triple) and element.of in used:
                continue
            if not isinstance(element, ast.Triple):
                lines.append(indent + self._element(element, indent))
                subject = None
                continue
            if element.of is not None:
                lines.append(indent + self._parts(element))
                subject = None
                continue
            pair = f"{self._verb(element.predicate)} {self.term(element.object)} ."
            if subject is not None and self._abbreviate and element.subject == subject:
                lines[-1] = lines[-1][:-1] + ";"
                lines.append(f"{indent}  {pair}")
            else:
                lines.append(f"{indent}{self.term(element.subject)} {pair}")
            subject = element.subject
        return lines

    def _element(self, element: ast.Element, indent: str) -> str:
        match element:
            case ast.Filter(condition):
                if isinstance(condition, ast.Exists):
                    return f"FILTER {self._exists(condition, indent)}"
                return f"FILTER ({self.expression(condition, _OR, indent)})"
            case ast.Bind(expression, variable):
                return f"BIND ({self.expression(expression, _OR, indent)} AS ?{variable.name})"
            case ast.Optional(group):
                return f"OPTIONAL {self.group(group, indent)}"
            case ast.Union(alternatives):
                return " UNION ".join(self.group(each, indent) for each in alternatives)
            case ast.SubGroup(group):
                return self.group(group, indent)
            case ast.Minus(group):
                return f"MINUS {self.group(group, indent)}"
            case ast.Graph(name, group):
                return f"GRAPH {self.term(name)} {self.group(group, indent)}"
            case ast.Service(name, silent, group):
                word = "SERVICE SILENT" if silent else "SERVICE"
                return f"{word} {self.term(name)} {self.group(group, indent)}"
            case ast.Values():
                return self._values(element)
            case ast.SubSelect():
                return self.group(ast.GroupGraphPattern((element,)), indent)
        return f"{self.term(element.subject)} {self._verb(element.predicate)} " + (
            f"{self.term(element.object)} ."
        )

    def _values(self, values: ast.Values) -> str:
        names = " ".join(f"?{variable.name}" for variable in values.variables)
        rows = [
            f"({' '.join('UNDEF' if cell is None else self.term(cell) for cell in row)})"
            for row in values.rows
        ]
        return f"VALUES ({names}) {{ {' '.join(rows)} }}"

    def _sub_select(self, select: ast.SubSelect, indent: str) -> str:
        head = self._select(select.distinct, select.reduced, select.items)
        lines = [f"{head} WHERE {self.group(select.where, indent)}"]
        if select.group_by:
            lines.append(f"GROUP BY {' '.join(self._projection(key) for key in select.group_by)}")
        if select.having:
            conditions = (f"({self.expression(each, _OR)})" for each in select.having)
            lines.append(f"HAVING {' '.join(conditions)}")
        if select.order_by:
            lines.append(f"ORDER BY {' '.join(self._order_key(key) for key in select.order_by)}")
        if select.limit is not None:
            lines.append(f"LIMIT {select.limit}")
        if select.offset is not None:
            lines.append(f"OFFSET {select.offset}")
        if select.values is not None:
            lines.append(self._values(select.values))
        return f"\n{indent}".join(lines)

    def _order_key(self, key: ast.OrderKey) -> str:
        return f"{'DESC' if key.descending else 'ASC'}({self.expression(key.expression, _OR)})"

    # -------------------------------------------------------------- paths

    def _verb(self, verb: ast.Var | ast.Path) -> str:
        return f"?{verb.name}" if isinstance(verb, ast.Var) else self._path(verb, _ALTERNATIVE)

    def _path(self, path: ast.Path, level: int) -> str:
        match path:
            case ast.AlternativePath(paths):
                own, text = _ALTERNATIVE, "|".join(self._path(each, _SEQUENCE) for each in paths)
            case ast.SequencePath(paths):
                own, text = _SEQUENCE, "/".join(self._path(each, _INVERSE) for each in paths)
            case ast.InversePath(inner):
                own, text = _INVERSE, "^" + self._path(inner, _REPEAT)
            case ast.RepeatPath(inner, modifier):
                own, text = _REPEAT, self._path(inner, _ATOM) + modifier
            case ast.NegatedPath(forward, inverse):
                names = [self._predicate(iri) for iri in forward]
                names += ["^" + self._predicate(iri) for iri in inverse]
                own, text = _ATOM, f"!({'|'.join(names)})"
            case _:
                own, text = _ATOM, self._predicate(path)
        return f"({text})" if own < level else text

    def _predicate(self, iri: ast.Iri) -> str:
        return "a" if self._abbreviate and iri.value == RDF + "type" else self.iri(iri)

    # -------------------------------------------------------------- expressions

    def expression(self, expression: ast.Expr, level: int, indent: str = "") -> str:
        """The text, in parentheses if its precedence is below `level`."""
        match expression:
            case ast.Binary(operator, left, right):
                own = _LEVEL.get(operator, _RELATION)
                # Relations do not chain; the other operators are left-associative.
                first = self.expression(left, own + (own == _RELATION), indent)
                text = f"{first} {operator} {self.expression(right, own + 1, indent)}"
            case ast.In(operand, choices, negated):
                own = _RELATION
                word = "NOT IN" if negated else "IN"
                text = f"{self.expression(operand, _SUM, indent)} {word} {self._list(choices)}"
            case ast.Unary(operator, operand):
                own = _SIGN
                text = self.expression(operand, _PRIMARY, indent)
                # The lexer would read a sign next to a digit as part of the number.
                text = f"{operator} {text}" if text[0] in "+-.0123456789" else operator + text
            case _:
                return self._primary(expression, indent)
        return f"({text})" if own < level else text

    def _primary(self, expression: ast.Expr, indent: str) -> str:
        match expression:
            case ast.Call(name, arguments):
                return name + self._list(arguments, indent)
            case ast.FunctionCall(function, arguments):
                return self.iri(function) + self._list(arguments, indent)
            case ast.Exists():
                return self._exists(expression, indent)
            case ast.Aggregate():
                return self._aggregate(expression)
            case ast.Prev(variable, default):
                second = "" if default is None else f", {self.expression(default, _OR, indent)}"
                return f"PREV(?{variable.name}{second})"
            case ast.Var() | ast.Iri() | ast.Literal() | ast.TripleTerm():
                return self.term(expression)
        raise TypeError(f"{type(expression).__name__} is not an expression")

    def _list(self, expressions: tuple[ast.Expr, ...], indent: str = "") -> str:
        return f"({', '.join(self.expression(each, _OR, indent) for each in expressions)})"

    def _exists(self, exists: ast.Exists, indent: str) -> str:
        word = "NOT EXISTS" if exists.negated else "EXISTS"
        return f"{word} {self.group(exists.group, indent)}"

    def _aggregate(self, aggregate: ast.Aggregate) -> str:
        match aggregate.argument:
            case None:
                text = "*"
            case ast.GpmName(name):
                text = name
            case argument:
                text = self.expression(argument, _OR)
        if aggregate.distinct:
            text = f"DISTINCT {text}"
        if aggregate.separator is not None:
            text += f"; SEPARATOR = {_quoted(aggregate.separator)}"
        return f"{aggregate.name}({text})"

    # -------------------------------------------------------------- terms

    def term(self, term: ast.Term) -> str:
        match term:
            case ast.Var(name):
                return f"?{name}"
            case ast.Iri():
                return self.iri(term)
            case ast.BlankNode(label):
                whole = self._wholes.get(label)
                return f"_:{label}" if whole is None else self._parts(whole)
            case ast.TripleTerm():
                return self._parts(term)
            case ast.Literal(lexical, datatype, language, direction):
                if language is not None:
                    suffix = "" if direction is None else f"--{direction}"
                    return f"{_quoted(lexical)}@{language}{suffix}"
                if datatype == XSD + "string":
                    return _quoted(lexical)
                if datatype in _UNQUOTED and _UNQUOTED[datatype].fullmatch(lexical):
                    return lexical
                return f"{_quoted(lexical)}^^{self.iri(ast.Iri(datatype))}"
        raise TypeError(f"{type(term).__name__} is not a term")

    def _parts(self, triple: ast.Triple | ast.TripleTerm) -> str:
        """A triple term."""
        subject, value = self.term(triple.subject), self.term(triple.object)
        return f"<<( {subject} {self._verb(triple.predicate)} {value} )>>"

    def iri(self, iri: ast.Iri) -> str:
        for namespace, prefix in self._namespaces:
            if iri.value.startswith(namespace) and _LOCAL.fullmatch(iri.value, len(namespace)):
                return f"{prefix}:{iri.value[len(namespace) :]}"
        return f"<{iri.value}>"


def _ends(element: ast.Element) -> tuple[ast.Term, ...]:
    """The subject and the object of a triple."""
    return (element.subject, element.object) if isinstance(element, ast.Triple) else ()


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _quantifier(quantifier: ast.Quantifier) -> str:
    match quantifier:
        case ast.Quantifier(0, 1, True):
            return "?"
        case ast.Quantifier(1, None):
            return "+"
        case ast.Quantifier(0, None):
            return "*"
        case ast.Quantifier(least, most) if least == most:
            return f"{{{least}}}"
        case _:
            bound = "" if quantifier.most is None else quantifier.most
            return f"{{{quantifier.least},{bound}}}"


def limit_text(limit: ast.Limit) -> str:
    """`LIMIT n PER ?k EVERY d`."""
    words = [f"LIMIT {limit.count}"]
    if limit.per:
        words.append(f"PER {' '.join(f'?{name.name}' for name in limit.per)}")
    if limit.every:
        words.append(f"EVERY {duration_text(limit.every.microseconds)}")
    return " ".join(words)


def _window(within: ast.Within) -> str:
    is_of_time = within.kind.is_of_time
    length = duration_text(within.microseconds) if is_of_time else str(within.events)
    return within.kind.written(length)


def duration_text(microseconds: int) -> str:
    """The duration in the largest unit that gives a whole number."""
    for unit, size in reversed(MICROSECONDS.items()):
        number, rest = divmod(microseconds, size)
        if not rest and (number or unit == "MILLISECOND"):
            return f"{number} {unit}{'S' * (number != 1)}"
    whole, rest = divmod(microseconds, 1000)
    return f"{whole}.{rest:03} MILLISECONDS"

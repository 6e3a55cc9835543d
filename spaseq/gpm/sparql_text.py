"""Syntax tree → SPARQL 1.1 text, for what is computed by pyoxigraph.

Variables and blank nodes are renamed to `v0, v1, …` and `b0, b1, …` in the order of their
first appearance, since the planner's variables may carry names that SPARQL has no way to
write (`rename=False` keeps the names, for people). `Renderer.names` is the mapping; the text
of equal trees is equal. IRIs are absolute,
so the text needs no prologue. Cost: linear in the tree.
"""

from __future__ import annotations

import pyoxigraph as ox

from spaseq.parser import ast

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


def constant(node: ast.Iri | ast.Literal) -> ox.NamedNode | ox.Literal:
    """The run-time term of an IRI or literal of the query."""
    if isinstance(node, ast.Iri):
        return ox.NamedNode(node.value)
    if node.language is not None:
        return ox.Literal(node.lexical, language=node.language)
    if node.datatype == XSD_STRING:
        return ox.Literal(node.lexical)
    return ox.Literal(node.lexical, datatype=ox.NamedNode(node.datatype))


class Renderer:
    """Writes trees as SPARQL; one instance shares one renaming over several trees."""

    def __init__(self, rename: bool = True) -> None:
        self._rename = rename
        self.names: dict[str, str] = {}
        self._blanks: dict[str, str] = {}

    def variable(self, name: str) -> str:
        """`?v3` for the variable `name`."""
        if not self._rename:
            return "?" + name
        return "?" + self.names.setdefault(name, f"v{len(self.names)}")

    def term(self, term: ast.Term) -> str:
        if isinstance(term, ast.Var):
            return self.variable(term.name)
        if isinstance(term, ast.BlankNode):
            if not self._rename:
                return "_:" + term.label
            return "_:" + self._blanks.setdefault(term.label, f"b{len(self._blanks)}")
        return str(constant(term))

    # -------------------------------------------------------------- paths

    def path(self, path: ast.Var | ast.Path) -> str:
        match path:
            case ast.Var(name):
                return self.variable(name)
            case ast.Iri():
                return str(constant(path))
            case ast.InversePath(inner):
                return f"^({self.path(inner)})"
            case ast.SequencePath(paths):
                return "(" + "/".join(f"({self.path(part)})" for part in paths) + ")"
            case ast.AlternativePath(paths):
                return "(" + "|".join(f"({self.path(part)})" for part in paths) + ")"
            case ast.RepeatPath(inner, modifier):
                return f"({self.path(inner)}){modifier}"
            case ast.NegatedPath(forward, inverse):
                parts = [str(constant(iri)) for iri in forward]
                parts += ["^" + str(constant(iri)) for iri in inverse]
                return "!(" + "|".join(parts) + ")"

    # -------------------------------------------------------------- expressions

    def expression(self, expr: ast.Expr) -> str:
        match expr:
            case ast.Var() | ast.Iri() | ast.Literal():
                return self.term(expr)
            case ast.Unary(operator, operand):
                return f"({operator} {self.expression(operand)})"
            case ast.Binary(operator, left, right):
                return f"({self.expression(left)} {operator} {self.expression(right)})"
            case ast.In(operand, choices, negated):
                word = "NOT IN" if negated else "IN"
                inside = ", ".join(map(self.expression, choices))
                return f"({self.expression(operand)} {word} ({inside}))"
            case ast.Call(name, arguments):
                return f"{name}({', '.join(map(self.expression, arguments))})"
            case ast.FunctionCall(function, arguments):
                return f"{constant(function)}({', '.join(map(self.expression, arguments))})"
            case ast.Exists(group, negated):
                return f"({'NOT ' if negated else ''}EXISTS {self.group(group)})"
            case ast.Aggregate():
                return self._aggregate(expr)
        raise TypeError(f"{type(expr).__name__} is no SPARQL expression")

    def _aggregate(self, aggregate: ast.Aggregate) -> str:
        argument = aggregate.argument
        if argument is None:
            inside = "*"
        elif isinstance(argument, ast.GpmName):
            raise TypeError("the name of a GPM is no argument of a SPARQL aggregate")
        else:
            inside = self.expression(argument)
        distinct = "DISTINCT " if aggregate.distinct else ""
        separator = ""
        if aggregate.separator is not None:
            separator = f"; SEPARATOR={ox.Literal(aggregate.separator)}"
        return f"{aggregate.name}({distinct}{inside}{separator})"

    # -------------------------------------------------------------- patterns

    def group(self, group: ast.GroupGraphPattern) -> str:
        return "{ " + " ".join(self.element(element) for element in group.elements) + " }"

    def element(self, element: ast.Element) -> str:
        match element:
            case ast.Triple(subject, predicate, object):
                return f"{self.term(subject)} {self.path(predicate)} {self.term(object)} ."
            case ast.Filter(condition):
                return f"FILTER({self.expression(condition)})"
            case ast.Bind(expression, variable):
                return f"BIND({self.expression(expression)} AS {self.variable(variable.name)})"
            case ast.Optional(group):
                return f"OPTIONAL {self.group(group)}"
            case ast.Union(alternatives):
                return " UNION ".join(map(self.group, alternatives))
            case ast.SubGroup(group):
                return self.group(group)
            case ast.Minus(group):
                return f"MINUS {self.group(group)}"
            case ast.Graph(name, group):
                return f"GRAPH {self.term(name)} {self.group(group)}"
            case ast.Service(name, silent, group):
                word = "SERVICE SILENT" if silent else "SERVICE"
                return f"{word} {self.term(name)} {self.group(group)}"
            case ast.Values():
                return self.values(element)
            case ast.SubSelect():
                return self.select(element)

    def values(self, values: ast.Values) -> str:
        head = " ".join(self.variable(variable.name) for variable in values.variables)
        rows = (
            "(" + " ".join("UNDEF" if cell is None else self.term(cell) for cell in row) + ")"
            for row in values.rows
        )
        return f"VALUES ({head}) {{ {' '.join(rows)} }}"

    def select(self, select: ast.SubSelect) -> str:
        parts = ["SELECT"]
        if select.distinct or select.reduced:
            parts.append("DISTINCT" if select.distinct else "REDUCED")
        parts.append("*" if select.items is None else " ".join(map(self._item, select.items)))
        parts.append("WHERE " + self.group(select.where))
        if select.group_by:
            parts.append("GROUP BY " + " ".join(map(self._item, select.group_by)))
        if select.having:
            conditions = (f"({self.expression(condition)})" for condition in select.having)
            parts.append("HAVING " + " ".join(conditions))
        if select.order_by:
            keys = (
                f"{'DESC' if key.descending else 'ASC'}({self.expression(key.expression)})"
                for key in select.order_by
            )
            parts.append("ORDER BY " + " ".join(keys))
        if select.limit is not None:
            parts.append(f"LIMIT {select.limit}")
        if select.offset is not None:
            parts.append(f"OFFSET {select.offset}")
        if select.values is not None:
            parts.append(self.values(select.values))
        return " ".join(parts)

    def _item(self, item: ast.Projection) -> str:
        if item.alias is None:
            if isinstance(item.expression, ast.Var):
                return self.variable(item.expression.name)
            return f"({self.expression(item.expression)})"
        return f"({self.expression(item.expression)} AS {self.variable(item.alias.name)})"

"""The graph pattern of a GPM → parts that the engine cannot execute, or that are nested too deep.

The parser has checked SPARQL's own scope rules. This module reports patterns that the engine
does not execute, a BIND to the variable of `AT`, and aggregates and `PREV` below the top level,
where the partial match is not visible. `check_variables` checks the filters and BINDs of the top
level itself. Cost: linear in the pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from spaseq.errors import Diagnostic, Span
from spaseq.parser import ast
from spaseq.plan.scope import commutes, subexpressions
from spaseq.plan.wording import variable

MAX_LEVELS = 250
"""Operators above one another in one GPM, since the compiler and the evaluation recurse."""


def check_pattern(define: ast.Define) -> Iterator[Diagnostic]:
    """The findings about one GPM's pattern and all groups inside it."""
    levels = _levels(define.pattern)
    if levels > MAX_LEVELS:
        yield Diagnostic(
            f"{define.name} has {levels:,} operators above one another; the maximum of one GPM is "
            f"{MAX_LEVELS}",
            define.name_span,
            "OPTIONAL, UNION, MINUS, GRAPH, SERVICE, BIND, VALUES, a nested FILTER and a path with "
            "alternatives or `*` count: combine some of them by UNION or VALUES of several rows, "
            "or divide the GPM",
        )
    for part in ast.walk(define.pattern):
        match part:
            case ast.Service():
                yield from _service(part)
            case ast.Exists(group=group):
                yield from _services_within(group)
            case ast.Values():
                yield from _repeated(part.variables)
            case ast.GroupGraphPattern(elements=elements):
                yield from _impossible([e for e in elements if isinstance(e, ast.Triple)])
    for element in define.pattern.elements:
        match element:
            case ast.Filter():
                yield from _below(groups_of_exists(element.condition))
            case ast.Bind():
                yield from _rebound_time(element, define.at)
                yield from _below(groups_of_exists(element.expression))
            case _:
                yield from _below(element)


def _levels(node: object, top: bool = True) -> int:
    """How many operators may be above one another in a pattern.

    The elements of a group count each, triples joined without paths once in a row; the group of
    each element is on top of those before it. Top-level filters run one after another.
    """
    if isinstance(node, ast.GroupGraphPattern):
        below = max((_levels(element, False) for element in node.elements), default=0)
        own = 0
        triples = False
        for element in node.elements:
            if isinstance(element, ast.Triple):
                own += not triples
                own += _path_levels(element.predicate)
            else:
                own += not (top and isinstance(element, ast.Filter))
            triples = isinstance(element, ast.Triple)
        return own + below
    if isinstance(node, tuple):
        return max((_levels(part, False) for part in node), default=0)
    if not is_dataclass(node) or isinstance(node, Span | ast.Triple):
        return 0
    return max((_levels(getattr(node, part.name), False) for part in fields(node)), default=0)


def _path_levels(path: object) -> int:
    """The operators that the parts of a path need if the path has no fixed chain of triples."""
    parts = [part for part in ast.walk(path) if isinstance(part, ast.AlternativePath)]
    repeated = any(isinstance(part, ast.RepeatPath) for part in ast.walk(path))
    return len(parts) + repeated


def _service(service: ast.Service) -> Iterator[Diagnostic]:
    """Services without a usable endpoint."""
    if isinstance(service.name, ast.Var):
        yield Diagnostic(
            f"SERVICE needs an IRI: a variable endpoint such as {variable(service.name.name)} is "
            "not supported",
            service.name.span,
            "write `SERVICE <http://…> { … }`, one for each endpoint, with UNION between them",
        )
    elif not service.name.value.lower().startswith(("http://", "https://")):
        yield Diagnostic(
            f"SERVICE <{service.name.value}> is not an HTTP endpoint",
            service.name.span,
            "write the URL of a SPARQL endpoint, which begins with http:// or https://",
        )


def _services_within(group: ast.GroupGraphPattern) -> Iterator[Diagnostic]:
    """Services in EXISTS that would need one request for each row outside."""
    for part in ast.walk(group):
        if isinstance(part, ast.Service) and not commutes(part.group):
            yield Diagnostic(
                "SERVICE in EXISTS may contain only triples, and filters over their variables",
                part.span,
                "move the other elements out of the EXISTS, before it",
            )


def _impossible(triples: list[ast.Triple]) -> Iterator[Diagnostic]:
    """Warn of triples that RDF does not allow, and which therefore no event has."""
    terms = {triple.of for triple in triples if triple.of is not None}
    for triple in triples:
        if not isinstance(triple.predicate, ast.Var | ast.Iri):
            continue  # the other end of a path may be its subject
        subject = triple.subject
        if isinstance(subject, ast.Literal):
            kind = "a literal"
        elif isinstance(subject, ast.TripleTerm) or subject in terms:
            kind = "a triple term"
        else:
            continue
        yield Diagnostic(
            f"no triple has {kind} as its subject, so this pattern matches nothing",
            subject.span,
            "write it as the object, or a variable in its place",
            severity="warning",
        )


def _repeated(names: tuple[ast.Var, ...]) -> Iterator[Diagnostic]:
    first: dict[str, Span] = {}
    for name in names:
        if name.name in first:
            yield Diagnostic(
                f"VALUES lists {variable(name.name)} twice",
                name.span,
                "delete one of the two",
                first[name.name],
                "the first",
            )
        first.setdefault(name.name, name.span)


def _rebound_time(bind: ast.Bind, at: ast.Var | None) -> Iterator[Diagnostic]:
    if at is not None and bind.variable.name == at.name:
        yield Diagnostic(
            f"BIND cannot bind {variable(at.name)}: AT already does",
            bind.variable.span,
            "bind another variable, and compare the two in a FILTER",
            at.span,
            "bound here",
        )


def groups_of_exists(expression: ast.Expr) -> tuple[ast.GroupGraphPattern, ...]:
    """The groups of `EXISTS` in an expression, groups nested in them excluded."""
    if isinstance(expression, ast.Exists):
        return (expression.group,)
    parts = subexpressions(expression)
    return tuple(group for part in parts for group in groups_of_exists(part))


# ------------------------------------------------------------------ below the top level


def _below(node: ast.Node) -> Iterator[Diagnostic]:
    """Aggregates and `PREV` in nested groups; aggregates of a sub-select are SPARQL's own."""
    match node:
        case ast.SubSelect():
            return
        case ast.Prev():
            yield _too_deep("PREV", "at the top level of a GPM", node.span)
        case ast.Aggregate():
            yield _too_deep(node.name, "at the top level of a GPM or in SELECT", node.span)
        case tuple():
            for item in node:
                yield from _below(item)
        case _ if is_dataclass(node) and not isinstance(node, Span):
            for part in fields(node):
                yield from _below(getattr(node, part.name))


def _too_deep(what: str, places: str, span: Span) -> Diagnostic:
    return Diagnostic(
        f"{what} is allowed only {places}: nested groups cannot read other iterations",
        span,
        "move the FILTER or BIND out of the inner braces",
    )

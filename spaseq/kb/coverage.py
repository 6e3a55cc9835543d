"""Queries and the graphs of the knowledge base → warnings about graphs that do not fit.

A graph that a query reads but that is missing from the KB is empty, and its pattern never matches.
The language allows that, but the cause is nearly always a typing error in one of the two IRIs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

from spaseq.errors import NOWHERE, Diagnostic, Span, render
from spaseq.parser import ast


class Text(Protocol):
    """The text of a query, and its file."""

    @property
    def text(self) -> str: ...
    @property
    def path(self) -> str: ...


def unread_warnings(queries: Iterable[ast.Query], given: Collection[str]) -> Iterator[str]:
    """One line for each graph that a query reads but that is not given, for users of Python."""
    for query in queries:
        graphs = [node for node in ast.walk(query) if isinstance(node, ast.Graph)]
        for warning in _unfed(graphs, [kb.iri.value for kb in query.kbs], given):
            yield f"{warning.message}; its pattern matches nothing until run.kb.load adds it"


def kb_warnings(
    files: Sequence[Text],
    queries: Sequence[ast.Query],
    given: Collection[str],
    schema: bool = False,
) -> list[str]:
    """The warnings as text, for users of the command line.

    They are about the graphs that each query reads, then about the graphs that no query reads.
    `schema` says whether queries read the schema of all graphs visible to them.
    """
    warnings: list[str] = []
    read: dict[str, None] = {}
    reads_all = False
    for file, query in zip(files, queries, strict=True):
        graphs = [node for node in ast.walk(query) if isinstance(node, ast.Graph)]
        seen = [kb.iri.value for kb in query.kbs]
        reads_all |= not seen and (
            schema or any(isinstance(graph.name, ast.Var) for graph in graphs)
        )
        services = [node for node in ast.walk(query) if isinstance(node, ast.Service)]
        names = [graph.name for graph in graphs] + [service.name for service in services]
        read |= dict.fromkeys(seen) | dict.fromkeys(
            name.value for name in names if isinstance(name, ast.Iri)
        )
        warnings += [
            render([warning], file.text, file.path) for warning in _unfed(graphs, seen, given)
        ]
    for iri in given:
        if iri not in read and not reads_all:
            listed = f"graphs read: {_shown(read)}"
            warnings.append(
                f"spaseq: warning: no query reads the KB graph <{iri}> given with --kb; "
                f"{listed}{_meant(iri, [other for other in read if other not in given])}"
            )
    return warnings


def _unfed(
    graphs: Sequence[ast.Graph], seen: Collection[str], given: Collection[str]
) -> Iterator[Diagnostic]:
    """Warnings about graphs that one query reads but that are not given.

    `seen` are the graphs of its FROM clauses. A graph of FROM that is not given is an error when
    the run starts, so it is not reported here.
    """
    reported: set[str] = set()
    for graph in graphs:
        if isinstance(graph.name, ast.Var):
            if not given and not seen and "" not in reported:
                reported.add("")
                yield _warning(
                    f"GRAPH ?{graph.name.name} reads the graphs of the KB, but none is given",
                    graph,
                    "add --kb 'IRI=FILE'; the triples of an event are matched without GRAPH",
                )
            continue
        iri = graph.name.value
        if iri in reported:
            continue
        reported.add(iri)
        if seen and iri not in seen:
            yield _warning(
                f"the KB graph <{iri}> is read, but FROM does not list it; "
                f"graphs of FROM: {_shown(seen)}{_meant(iri, seen)}",
                graph,
                f"add FROM NAMED <{iri}> to the query",
            )
        elif not seen and iri not in given:
            yield _warning(
                f"the KB graph <{iri}> is read, but not given; "
                f"graphs given: {_shown(given)}{_meant(iri, given)}",
                graph,
                f"add --kb '{iri}=FILE'",
            )


def _warning(message: str, graph: ast.Graph, hint: str) -> Diagnostic:
    return Diagnostic(message, _place(graph), hint, severity="warning")


def _place(graph: ast.Graph) -> Span:
    """The span of the graph's name; a name substituted by --bind has none."""
    return graph.span if graph.name.span == NOWHERE else graph.name.span


def _shown(iris: Collection[str]) -> str:
    return ", ".join(f"<{iri}>" for iri in iris) or "none"


def _meant(iri: str, known: Collection[str]) -> str:
    from difflib import get_close_matches  # imported here to keep valid queries fast

    close = get_close_matches(iri, list(known), n=1)
    return f"; did you mean <{close[0]}>?" if close else ""

"""Queries and the graphs of the knowledge base → warnings where the two do not fit.

A graph that is read and not given is empty, so that its pattern never matches: no error in
the language, and nearly always a slip of the pen in one of the two IRIs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Protocol

from spaseq.errors import NOWHERE, Diagnostic, Span, render
from spaseq.parser import ast


class Text(Protocol):
    """A query as it was written, and where."""

    @property
    def text(self) -> str: ...
    @property
    def path(self) -> str: ...


def unread_warnings(queries: Iterable[ast.Query], given: Collection[str]) -> Iterator[str]:
    """What the queries read in vain, a line each, in the words of Python."""
    for query in queries:
        graphs = [node for node in ast.walk(query) if isinstance(node, ast.Graph)]
        for warning in _unfed(graphs, [kb.iri.value for kb in query.kbs], given):
            yield f"{warning.message}; its pattern matches nothing until run.kb.load gives it"


def kb_warnings(
    files: Sequence[Text],
    queries: Sequence[ast.Query],
    given: Collection[str],
    schema: bool = False,
) -> list[str]:
    """The warnings as text: of each query by what it reads, then of the graphs nobody reads.

    `schema`: whether a query reads the schema of all graphs it sees.
    """
    found: list[str] = []
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
        found += [
            render([warning], file.text, file.path) for warning in _unfed(graphs, seen, given)
        ]
    for iri in given:
        if iri not in read and not reads_all:
            listed = f"graphs read: {_shown(read)}"
            found.append(
                f"spaseq: warning: no query reads the KB graph <{iri}> given with --kb; "
                f"{listed}{_meant(iri, [other for other in read if other not in given])}"
            )
    return found


def _unfed(
    graphs: Sequence[ast.Graph], seen: Collection[str], given: Collection[str]
) -> Iterator[Diagnostic]:
    """What one query reads in vain; `seen` are the graphs of its FROM, if it has one.

    A graph of FROM that is not given is left to the run: it is an error there.
    """
    told: set[str] = set()
    for graph in graphs:
        if isinstance(graph.name, ast.Var):
            if not given and not seen and "" not in told:
                told.add("")
                yield _warning(
                    f"GRAPH ?{graph.name.name} reads the graphs of the KB, but none is given",
                    graph,
                    "add --kb 'IRI=FILE'",
                )
            continue
        iri = graph.name.value
        if iri in told:
            continue
        told.add(iri)
        if seen and iri not in seen:
            yield _warning(
                f"the KB graph <{iri}> is read, but FROM leaves it out; "
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
    """A name that --bind has put there has no place of its own."""
    return graph.span if graph.name.span == NOWHERE else graph.name.span


def _shown(iris: Collection[str]) -> str:
    return ", ".join(f"<{iri}>" for iri in iris) or "none"


def _meant(iri: str, known: Collection[str]) -> str:
    close = get_close_matches(iri, list(known), n=1)
    return f"; did you mean <{close[0]}>?" if close else ""

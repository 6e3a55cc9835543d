"""What graph patterns need of a knowledge base."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Protocol, TypeAlias

import pyoxigraph as ox

from spaseq.errors import KbError, Span
from spaseq.parser import ast
from spaseq.rdf.event import Term
from spaseq.rdf.graph import Graph

KbRow: TypeAlias = "tuple[Term | None, ...]"
KbKey: TypeAlias = "tuple[Term, ...]"


class Relation(Protocol):
    """The solutions of a pattern that somebody else evaluates."""

    @property
    def skips(self) -> bool:
        """Whether an event that needs what could not be had is skipped; else the run stops."""

    def all(self) -> Sequence[KbRow] | None:
        """Every solution; None where they have to be asked for by key."""

    def complete(self, needed_by: str) -> Sequence[KbRow]:
        """Every solution; an error where they have to be asked for by key."""

    def of(
        self, names: tuple[str, ...], keys: Sequence[KbKey]
    ) -> tuple[Mapping[KbKey, Sequence[KbRow]], Mapping[KbKey, KbError]]:
        """The solutions for each key (values of `names`), and why there are none to be had."""


class NamedGraphs(Protocol):
    """The named graphs that `GRAPH` ranges over; unchanging while an event is matched."""

    @property
    def snapshot(self) -> object:
        """An object that stays the same for as long as the graphs do."""

    @property
    def names(self) -> tuple[ox.NamedNode, ...]:
        """The graphs there are, in a fixed order."""

    def graph(self, name: ox.NamedNode) -> Graph:
        """One that is held here; an empty one for a name that is not."""

    def asked(self, name: ox.NamedNode) -> bool:
        """Whether a graph is not held here, but asked for by `relation`."""

    def relation(
        self, name: ox.NamedNode, group: ast.GroupGraphPattern, variables: tuple[str, ...]
    ) -> Relation:
        """The solutions of a pattern over a graph that is asked for."""

    def service(
        self, iri: str, group: ast.GroupGraphPattern, variables: tuple[str, ...], silent: bool
    ) -> Relation:
        """The solutions of a pattern at an endpoint."""


def kb_parts(node: object, kb: NamedGraphs | None) -> Iterator[ast.Graph | ast.Service]:
    """The parts of a pattern or an expression that somebody else evaluates, at least in part."""
    if isinstance(node, ast.Service):
        yield node
        return
    if isinstance(node, ast.Graph):
        name = node.name
        asked = kb is not None and (
            any(map(kb.asked, kb.names))
            if isinstance(name, ast.Var)
            else kb.asked(ox.NamedNode(name.value))
        )
        if asked:
            yield node
            return
    if isinstance(node, tuple):
        for item in node:
            yield from kb_parts(item, kb)
    elif is_dataclass(node) and not isinstance(node, type | Span):
        for part in fields(node):
            yield from kb_parts(getattr(node, part.name), kb)

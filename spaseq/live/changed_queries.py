"""The queries of a checkpoint when a run continues with different queries: `--state-policy`.

Queries that have not changed keep their state. A changed query is refused, keeps the partial
matches of its old version, lets that version drain beside it, or begins anew. A query that drains
is stored in the checkpoint under a separate name, with its text, so the next run finds it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from spaseq.engine.changes import free_name
from spaseq.engine.checkpoint import SavedState, fingerprints
from spaseq.engine.compiled import CompiledQueries, CompiledQuery
from spaseq.engine.continuing import saved_difference
from spaseq.errors import StateError
from spaseq.parser import ast
from spaseq.plan.examine import read_queries
from spaseq.program import Program, compile_queries
from spaseq.records import dataclass

StatePolicy: TypeAlias = Literal["refuse", "keep", "drain", "fresh"]


@dataclass(frozen=True, slots=True)
class StoredQueries:
    """The queries of a checkpoint."""

    digests: Sequence[Sequence[str]]
    """The (name, digest) pairs in order."""
    texts: Mapping[str, str]
    """By name."""
    draining: Mapping[str, str]
    """The queries that drain: the name → the name in matches."""


@dataclass(frozen=True, slots=True)
class Continued:
    """The parts of a checkpoint that a run continues."""

    program: Program
    """The queries of the run, then those that drain."""
    kept: Mapping[str, str]
    """The names of the queries that continue their partial matches, and their stored names."""
    draining: Sequence[str]
    """Those among them that drain from now on."""


def listed_fingerprints(program: CompiledQueries) -> list[list[str]]:
    """The fingerprints of a program in the form in which JSON returns them."""
    return [list(pair) for pair in fingerprints(program)]


def continued(
    program: Program, stored: StoredQueries, policy: Callable[[str], StatePolicy]
) -> Continued:
    """The queries of a checkpoint that the run of a program continues.

    Raises:
        StateError: if the state of a query does not fit.
    """
    before = {name: digest for name, digest in stored.digests}  # noqa: C416 (of lists, not pairs)
    now = dict(fingerprints(program))
    kept: dict[str, str] = {}
    versions: dict[str, tuple[str, ast.Query]] = {}
    begun: list[str] = []
    for name, digest in before.items():
        drains = name in stored.draining
        if not drains and now.get(name) == digest:
            kept[name] = name
        elif drains or policy(name) == "drain":
            shown = stored.draining.get(name, name)
            own = free_name(shown, "draining", {*now, *versions})
            versions[own] = shown, _tree(stored, name)
            kept[own] = name
            if not drains:
                begun.append(own)
    for query in program.queries:
        name = query.plan.name
        is_changed = name in before and name not in stored.draining and name not in kept
        if is_changed and policy(name) == "keep":
            _check_fit(stored, name, query)
            kept[name] = name
    return Continued(program.beside(versions), kept, begun)


def apart(blob: bytes, stored: StoredQueries, kb: Any) -> bytes:
    """A saved state in which each query has a separate state.

    Args:
        blob: The saved state, in which queries may be evaluated as one.
        stored: Its queries.
        kb: The knowledge base of the run.

    Raises:
        StateError: if the state does not fit the queries.
    """
    if not SavedState(blob).shares:
        return blob
    names = [name for name, _ in stored.digests]
    where = "the queries that are evaluated as one cannot be continued apart"
    program = compile_queries([_text(stored, name, where) for name in names], names=names)
    return program.resume(blob, kb, share=False).save()


def _check_fit(stored: StoredQueries, name: str, query: CompiledQuery) -> None:
    where = f"the partial matches of {name} cannot be kept"
    old = compile_queries(_text(stored, name, where), names=[name]).queries[0]
    found = saved_difference(old, query)
    if found:
        raise StateError(
            f"{where}: {found}. --state-policy {name}=drain finishes them beside the new query, "
            "and fresh begins it without them"
        )


def _tree(stored: StoredQueries, name: str) -> ast.Query:
    text = _text(stored, name, f"the query {name} cannot drain")
    return read_queries([text], [name])[0]


def _text(stored: StoredQueries, name: str, where: str) -> str:
    if name not in stored.texts:
        raise StateError(f"{where}: the state does not have the text of the query")
    return stored.texts[name]

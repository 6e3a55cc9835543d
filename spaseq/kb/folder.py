"""SELECT queries → rows, over a pyoxigraph store in a folder, opened read-only.

Queries read the store's graph with the IRI of the KB graph, if there is one. Otherwise they read
the union of all graphs of the store, as for a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pyoxigraph as ox

from spaseq.errors import EndpointError, KbError
from spaseq.kb.answer import Row, TooManyRows
from spaseq.kb.client import Counters
from spaseq.kb.endpoint import Endpoint
from spaseq.rdf.event import Term, with_nodes


class StoreFolder:
    """Sends queries to one store."""

    def __init__(self, path: Path, graph: ox.NamedNode, prefix: str):
        self.name = str(path)
        self.endpoint = Endpoint("http://localhost/")
        """The limits, which are the defaults of an endpoint."""
        self.counters = Counters()
        self._given = path, graph, prefix
        self._prefix = prefix
        if not (path / "CURRENT").is_file():
            raise KbError(f"{path}: the folder is not a pyoxigraph store")
        try:
            self._store = ox.Store.read_only(str(path))
            named = self._store.contains_named_graph(graph)
        except (OSError, ValueError) as error:
            raise KbError(f"{path}: the store cannot be opened: {error}") from None
        self._dataset: dict[str, Any] = (
            {"default_graph": graph} if named else {"use_default_graph_as_union": True}
        )

    def __reduce__(self) -> tuple[type[StoreFolder], tuple[Path, ox.NamedNode, str]]:
        return StoreFolder, self._given

    def close(self) -> None:
        """Do nothing: the store closes when it is garbage-collected."""

    def rows(self, text: str, variables: Sequence[str], bound: int) -> list[Row]:
        """The solutions of a SELECT; see `Client.rows`."""
        self.counters.requests += 1
        rows: list[Row] = []
        solutions: ox.QuerySolutions | None = None
        try:
            solutions = cast(ox.QuerySolutions, self._store.query(text, **self._dataset))
            columns = {name.value: place for place, name in enumerate(solutions.variables)}
            places = [columns[name] for name in variables]
            for solution in solutions:
                if len(rows) == bound:
                    raise TooManyRows
                rows.append(tuple([self._own(solution[place]) for place in places]))
        except (OSError, SyntaxError, RuntimeError) as error:
            self.counters.failures += 1
            raise EndpointError(self.name, text, str(error)) from None
        finally:
            # pyoxigraph requires destruction in the creating thread; a traceback might outlive it.
            del solutions
        self.counters.rows += len(rows)
        return rows

    def _own(self, term: Any) -> Term | None:
        if isinstance(term, ox.BlankNode | ox.Triple):
            return with_nodes(term, lambda node: ox.BlankNode(f"{self._prefix}.{node.value}"))
        return cast("Term | None", term)

"""SELECT queries → rows, over a pyoxigraph store in a folder, which is only read.

The graph taken is the one that bears the KB graph's own IRI, if the store has it; else all
triples of the store, whatever graph they are in, as of a file.
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
from spaseq.rdf.event import Term


class StoreFolder:
    """Asks one store."""

    def __init__(self, path: Path, graph: ox.NamedNode, prefix: str):
        self.name = str(path)
        self.endpoint = Endpoint("http://localhost/")
        """The bounds, which are those of an endpoint."""
        self.counters = Counters()
        self._given = path, graph, prefix
        self._prefix = prefix
        if not (path / "CURRENT").is_file():
            raise KbError(f"{path}: is a folder, but no pyoxigraph store")
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
        """The store closes with the last use of it."""

    def rows(self, text: str, variables: Sequence[str], bound: int) -> list[Row]:
        """The solutions of a SELECT; see `Client.rows`."""
        self.counters.requests += 1
        rows: list[Row] = []
        found: ox.QuerySolutions | None = None
        try:
            found = cast(ox.QuerySolutions, self._store.query(text, **self._dataset))
            columns = {name.value: place for place, name in enumerate(found.variables)}
            places = [columns[name] for name in variables]
            for solution in found:
                if len(rows) == bound:
                    raise TooManyRows
                rows.append(tuple([self._own(solution[place]) for place in places]))
        except (OSError, SyntaxError, RuntimeError) as error:
            self.counters.failures += 1
            raise EndpointError(self.name, text, str(error)) from None
        finally:
            del found  # it must go in the thread it came in; the traceback of an error may not
        self.counters.rows += len(rows)
        return rows

    def _own(self, term: Any) -> Term | None:
        if isinstance(term, ox.BlankNode):
            return ox.BlankNode(f"{self._prefix}.{term.value}")
        return cast("Term | None", term)

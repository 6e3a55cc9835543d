"""The graphs of the knowledge base: files of the state folder, and endpoints."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from spaseq.kb.endpoint import Endpoint
from spaseq.kb.snapshot import graph_name
from spaseq.rdf.graph import Graph
from spaseq.records import dataclass
from spaseq.runs import Run
from spaseq.server.problems import Problem


@dataclass(frozen=True, slots=True)
class KbGraph:
    """A graph of the knowledge base.

    Args:
        version: The record of the journal that set it, from 1; 0: it was given at the start.
        file: The name of its file in the state folder.
        url: The endpoint that is queried for it.
        triples: How many it has, if it is in memory.
    """

    version: int
    file: str = ""
    url: str = ""
    triples: int = 0


class KbGraphs:
    """All graphs.

    Args:
        folder: Where the files are.
        given: The graphs that are given at the start: IRI → path or URL.
        private: Whether the names of endpoints in queries may have private addresses.
    """

    def __init__(self, folder: Path, given: Mapping[str, str], private: bool = False):
        self._folder = folder
        self._private = private
        self._services: set[str] = set()
        """The endpoints that queries use by `SERVICE`; for the run they are graphs."""
        self.graphs: dict[str, KbGraph] = {
            iri: KbGraph(0, url=place) for iri, place in given.items()
        }

    def put(self, iri: str, graph: KbGraph, runs: Sequence[Run]) -> None:
        """Add or replace a graph, also in the runs.

        Raises:
            KbError, LimitExceeded: if it cannot be read, or a run cannot use it.
            Problem: if a query asks a service of this IRI.
        """
        if iri in self._services:
            raise Problem(409, f"a query asks <{iri}> as a service", "kb")
        before = self.graphs.get(iri)
        source = self._source(graph)
        for number, run in enumerate(runs):
            try:
                self._set(run, iri, source)
                source = _in_memory(run, iri) or source
            except BaseException:
                for changed in runs[:number]:
                    if before is None:
                        changed.kb.unload(iri)
                    else:
                        self._set(changed, iri, self._source(before))
                raise
        self.graphs[iri] = graph

    def _set(self, run: Run, iri: str, source: Any) -> None:
        change = run.kb.replace if iri in self.graphs or iri in run.kb.graphs else run.kb.load
        change({iri: source})

    def remove(self, iri: str, runs: Sequence[Run]) -> None:
        """Remove a graph that no query names."""
        for run in runs:
            run.kb.unload(iri)
        del self.graphs[iri]

    def add_endpoints(
        self, urls: Mapping[str, str], revision: int, runs: Sequence[Run]
    ) -> list[str]:
        """Add the endpoints that a query specifies: IRI → URL; returns the new IRIs.

        Raises:
            Problem: if there is already a graph with the IRI from another source.
        """
        for iri, url in urls.items():
            if iri in self.graphs and self.graphs[iri].url != url:
                raise Problem(409, f"the KB graph <{iri}> is there already, from elsewhere", "kb")
        added = [iri for iri in urls if iri not in self.graphs]
        for iri in added:
            self.put(iri, KbGraph(revision + 1, url=urls[iri]), runs)
        return added

    def add_services(self, urls: Collection[str], runs: Sequence[Run]) -> None:
        """Restrict the requests of `SERVICE`: an endpoint with that IRI as a graph does so.

        Raises:
            Problem: if a graph with other content has the IRI.
        """
        for url in urls:
            if url in self.graphs and self.graphs[url].url != url:
                raise Problem(409, f"a KB graph has the IRI of the service <{url}>", "kb")
        added = [url for url in urls if url not in self._services and url not in self.graphs]
        if added:
            for run in runs:
                run.kb.load({url: self._service(url) for url in added})
        self._services.update(added)

    def _service(self, url: str) -> Endpoint:
        return Endpoint(url, public=not self._private)

    def _source(self, graph: KbGraph) -> Any:
        if graph.file:
            return self._folder / graph.file
        if graph.url.partition(":")[0] not in ("http", "https"):
            return graph.url
        # The operator may have given any address.
        is_restricted = graph.version > 0 and not self._private
        return Endpoint(graph.url, on_failure="skip", public=is_restricted)

    def sources(self, runs: Sequence[Run]) -> dict[str, Any]:
        """The graphs as `Program.start` takes them; those that a run has in memory are shared."""
        services: dict[str, Any] = {url: self._service(url) for url in sorted(self._services)}
        known = runs[0] if runs else None
        return services | {
            iri: (None if known is None else _in_memory(known, iri)) or self._source(graph)
            for iri, graph in self.graphs.items()
        }

    # ------------------------------------------------------------ checkpoints

    def state(self) -> dict[str, Any]:
        """The graphs as data for `restore`."""
        graphs = {
            iri: [graph.version, graph.file, graph.url, graph.triples]
            for iri, graph in self.graphs.items()
        }
        return {"graphs": graphs, "services": sorted(self._services)}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Return to a state."""
        self._services = set(saved["services"])
        for iri, (version, file, url, triples) in saved["graphs"].items():
            self.graphs[iri] = KbGraph(version, file, url, triples)


def _in_memory(run: Run, iri: str) -> Graph | None:
    """A graph of a run, which is immutable, so that other runs can use it too."""
    content = run.kb.latest.contents.get(graph_name(iri))
    return content if isinstance(content, Graph) else None

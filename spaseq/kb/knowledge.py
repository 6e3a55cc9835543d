"""The knowledge base of a run: the current snapshot and the pending one.

A change, from any thread, builds a complete new snapshot and stores it as the pending one; the
run adopts it between two events (`exchange`). So an event is matched against one version, and a
failed load changes nothing. A background thread, which ends with the run, repeatedly fetches remote
graphs that have a `refresh`.

Invariant: `current` changes only in `exchange`; versions count from 1.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Event, RLock, Thread
from typing import Any

import pyoxigraph as ox

from spaseq.errors import KbError
from spaseq.kb.client import Client
from spaseq.kb.relation import Relation, Respondent
from spaseq.kb.snapshot import Kb, Source, graph_name, open_kb, open_source
from spaseq.parser import ast
from spaseq.rdf.graph import Graph


class Knowledge:
    """The graphs that patterns read, and the operations that change them."""

    def __init__(
        self,
        given: Mapping[str, Source] | Kb,
        check: Callable[[Kb], object] | None = None,
    ):
        """`check` validates every snapshot that a change makes, and raises if it is unusable."""
        self.current = given if isinstance(given, Kb) else open_kb(given)
        self.version = 1
        """The version of the current snapshot."""
        self.failed_refreshes = 0
        self._given = {} if isinstance(given, Kb) else dict(given)
        self._owned = not isinstance(given, Kb)
        self._next: Kb | None = None
        self._number = 1
        self._usable = check
        self._lock = RLock()
        self._ended = Event()
        weakref.finalize(self, self._ended.set)

    # ------------------------------------------------------------------ the current snapshot

    @property
    def names(self) -> tuple[ox.NamedNode, ...]:
        """The names of the graphs."""
        return self.current.names

    @property
    def snapshot(self) -> object:
        """An object whose identity changes whenever the graphs do."""
        return self.current

    @property
    def graphs(self) -> tuple[str, ...]:
        """The IRIs of the graphs."""
        return self.current.graphs

    def has(self, graphs: Sequence[str]) -> bool:
        """Whether the current snapshot has some graphs."""
        return set(graphs) <= set(self.graphs)

    def graph(self, name: ox.NamedNode) -> Graph:
        """A graph in memory; an empty graph for any other name."""
        return self.current.graph(name)

    def is_remote(self, name: ox.NamedNode) -> bool:
        """Whether a graph is queried at its source rather than held in memory."""
        return self.current.is_remote(name)

    def relation(
        self, name: ox.NamedNode, group: ast.GroupGraphPattern, variables: tuple[str, ...]
    ) -> Relation:
        """The solutions of a pattern over a graph that is remote."""
        return self.current.relation(name, group, variables)

    def service(
        self, iri: str, group: ast.GroupGraphPattern, variables: tuple[str, ...], silent: bool
    ) -> Relation:
        """The solutions of a pattern at an endpoint: `SERVICE`."""
        return self.current.service(iri, group, variables, silent)

    @property
    def statistics(self) -> dict[str, Any]:
        """The counters of requests, by the IRI of the graph or the service."""
        return {iri: s.counters.to_dict() for iri, s in self.current.sources.items()}

    def __len__(self) -> int:
        return len(self.current)

    # ------------------------------------------------------------------ changes

    def load(self, sources: Mapping[str, Source]) -> int:
        """Add graphs and return the version that contains them.

        Raises:
            KbError, LimitExceeded: if a graph exists already, a source cannot be read, or the
                run cannot use it.
        """
        with self._lock:
            for iri in sources:
                if iri in self.latest.graphs:
                    raise KbError(f"the KB graph <{iri}> exists already: use replace")
            return self._change(sources)

    def replace(self, sources: Mapping[str, Source]) -> int:
        """Replace the contents of graphs, all at once, and return the version that has them.

        Raises:
            KbError, LimitExceeded: if there is no such graph, a source cannot be read, or the
                run cannot use it.
        """
        with self._lock:
            self._check(sources)
            return self._change(sources)

    def unload(self, *iris: str) -> int:
        """Remove graphs and return the version without them.

        Raises:
            KbError, LimitExceeded: if there is no such graph, or the run needs it.
        """
        with self._lock:
            self._check(iris)
            version = self._change({}, iris)
            for iri in iris:
                self._given.pop(iri, None)
            return version

    def reload(self, *iris: str) -> int:
        """Read graphs again from their sources and return the version that has the result.

        Without arguments, all graphs are read again whose source is not an iterator.

        Raises:
            KbError, LimitExceeded: if a source can be read only once, cannot be read now, or the
                run cannot use it.
        """
        with self._lock:
            self._check(iris)
            again = {
                iri: source
                for iri, source in self._given.items()
                if (not iris and not isinstance(source, Iterator)) or iri in iris
            }
            for iri in iris:
                if isinstance(again.get(iri), Iterator | None):
                    raise KbError(
                        f"the KB graph <{iri}> cannot be read again: its source was an iterator; "
                        "use a path, a URL, a store, a graph or a list"
                    )
            return self._change(again)

    def _check(self, iris: Mapping[str, Source] | tuple[str, ...]) -> None:
        for iri in iris:
            if iri not in self.latest.graphs:
                shown = ", ".join(f"<{other}>" for other in self.latest.graphs) or "none"
                raise KbError(f"there is no KB graph <{iri}>; the graphs are {shown}")

    @property
    def latest(self) -> Kb:
        """The snapshot that the next event is matched against, if no earlier one waits."""
        return self.current if self._next is None else self._next

    def _change(self, sources: Mapping[str, Source], removed: Sequence[str] = ()) -> int:
        """Make a pending snapshot in which some graphs come from these sources."""
        number = self._number + 1
        gone = set(map(graph_name, removed))
        contents: dict[ox.NamedNode, Graph | Respondent] = {
            name: content for name, content in self.latest.contents.items() if name not in gone
        }
        for iri, source in sources.items():
            name = graph_name(iri)
            place = list(contents).index(name) if name in contents else len(contents)
            same = contents.get(name)
            if isinstance(same, Client) and source == self._given.get(iri, object()):
                continue  # reuse the client and its connections
            contents[name] = open_source(iri, source, f"kb{place}v{number}")
        after = self.latest.renewed(contents, (*sources, *removed))
        after.fetch_like(self.current)
        if self._usable is not None:
            self._usable(after)
        self._given |= sources
        self._number = number
        self._next = after
        return number

    def exchange(self) -> bool:
        """Adopt the pending snapshot, if there is one; returns whether there was."""
        if self._next is None:
            return False
        with self._lock:
            assert self._next is not None
            self.current, self._next = self._next, None
            self.version = self._number
        return True

    @property
    def changes(self) -> bool:
        """Whether there is a pending snapshot."""
        return self._next is not None

    # ------------------------------------------------------------------ time

    def begin(self) -> None:
        """Start the thread that refreshes sources with a `refresh`, if there are any."""
        if any(source.endpoint.refresh for source in self.current.sources.values()):
            watched = weakref.ref(self)
            Thread(target=_refresh, args=(watched, self._ended), daemon=True).start()

    def refresh(self, iri: str) -> None:
        """Fetch the materialised solutions of one source again; a failure is only counted."""
        with self._lock:
            try:
                after = self.latest.renewed(self.latest.contents, [iri])
                after.fetch_like(self.current)
            except KbError:
                self.failed_refreshes += 1
                return
            self._number += 1
            self._next = after

    def close(self) -> None:
        """Stop refreshing and close the connections, at the end of the run."""
        self._ended.set()
        if self._owned:
            self.current.close()


def _refresh(watched: weakref.ref[Knowledge], ended: Event) -> None:
    """Refresh each source when it is due, until the run has ended."""
    due: dict[str, float] = {}
    while True:
        knowledge = watched()
        if knowledge is None:
            return
        now = time.monotonic()
        for iri, source in knowledge.current.sources.items():
            every = source.endpoint.refresh
            if every is None:
                continue
            if due.setdefault(iri, now + every) <= now:
                knowledge.refresh(iri)
                due[iri] = time.monotonic() + every
        wait = min(due.values(), default=now + 1.0) - time.monotonic()
        del knowledge
        if ended.wait(max(wait, 0.0)):
            return

"""Which queries there are, in which runs they are, and what they connect.

A query is in a run with queries of equal options that share a stream with it, or in a new one. When
the queries of a run are no longer connected, because one between them has left, the run is divided.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spaseq.engine.changes import StatePolicy
from spaseq.program import Program
from spaseq.rdf.reorder import BEFORE_ALL, connected
from spaseq.rdf.time import from_micros, json_value
from spaseq.runs import Run
from spaseq.server.components import Component, Holding, check_kinds, components_of
from spaseq.server.draining import DrainingVersions
from spaseq.server.inputs import InputStream
from spaseq.server.problems import Problem, not_found
from spaseq.server.run_options import RunSettings, options_of
from spaseq.server.run_set import RunSet, ServerRun
from spaseq.server.standing import Definition, Standing


class RunStopped(Exception):
    """A run stopped in the middle of an event.

    Args:
        run: The serial number of the run.
        names: The names in the run of the queries to blame; all, if it is not known which.
        error: What happened.
    """

    def __init__(self, run: int, names: Collection[str], error: Exception):
        super().__init__(str(error))
        self.run = run
        self.names = names
        self.error = error

    def blames(self, standing: Standing) -> bool:
        """Whether a query is to blame."""
        own = standing.name_in_run
        return standing.is_running and standing.run == self.run and own in self.names


class QueryPlaces:
    """The queries and their places.

    Args:
        settings: What holds for all queries.
        runs: The runs.
    """

    def __init__(self, settings: RunSettings, runs: RunSet):
        self._settings = settings
        self.runs = runs
        self.queries: dict[str, Standing] = {}
        self.draining = DrainingVersions()
        self.streams: dict[str, InputStream] = {}
        self._components: dict[str, Component] | None = None
        """IRI of a stream → its component; None: the streams of the runs have changed since."""

    # ------------------------------------------------------------ queries

    @property
    def listed(self) -> dict[str, Standing]:
        """The queries by name; for a removed query, its last draining version."""
        return {version.definition.name: version for version in self.draining} | self.queries

    def query(self, name: str) -> Standing:
        """The query of a name.

        Raises:
            Problem: if there is none.
        """
        standing = self.queries.get(name)
        if standing is None:
            raise not_found(f"there is no query {name}")
        return standing

    def latest(self, name: str) -> Standing:
        """The query with a name; if there is none, its last draining version.

        Raises:
            Problem: if there is neither.
        """
        standing = self.queries.get(name)
        if standing is not None:
            return standing
        versions = self.draining.of(name)
        return versions[-1] if versions else self.query(name)

    def born(self, name: str) -> int | None:
        """The record that registered the query with a name; None if there is none."""
        standing = self.queries.get(name)
        if standing is not None:
            return standing.born
        return next((version.born for version in self.draining.of(name)), None)

    def _begun(self, name: str, revision: int) -> int:
        """The record that registered the query with a name, or its version that still drains."""
        born = self.born(name)
        return revision if born is None else born

    def running(self, name: str) -> tuple[Run, int]:
        """The run that has the query of a name, and its number there; see `latest`.

        Raises:
            Problem: if it is not running.
        """
        standing = self.latest(name)
        one = self.runs.of(standing.run)
        if standing.is_running and one is None:
            raise Problem(503, "the server reads its journal", "replaying", {"Retry-After": "1"})
        if not standing.is_running or one is None:
            raise Problem(409, f"the query {name} is {standing.status}", "not-running")
        number = one.number(standing.draining or name)
        if number is None:
            raise Problem(409, f"the query {name} has drained", "not-running")
        return one.run, number

    def list_query(self, definition: Definition, revision: int) -> None:
        """List a query that does not run here; for `recovery.outlined`."""
        options = options_of(definition.entail, definition.limits, self._settings)
        born = self._begun(definition.name, revision)
        before = self.queries.get(definition.name)
        streams = {} if before is None else before.streams
        self.queries[definition.name] = Standing(definition, revision, streams, born, options)

    def _keep(self, standing: Standing) -> None:
        """Replace the previous version of a query, and count the streams of the new one."""
        name = standing.definition.name
        if name in self.queries:
            self._count(self.queries[name], -1)
        self.queries[name] = standing
        self._count(standing, 1)

    def _count(self, standing: Standing, by: int) -> None:
        """Count the streams of a query that is in a run (1), or is no longer there (-1)."""
        one = self.runs.of(standing.run)
        if standing.is_running and one is not None and one.count(standing, by):
            self._components = None

    def _drain(self, record: int, standing: Standing, until: float | None, one: ServerRun) -> None:
        """Remember that a query drains in its run."""
        before = list(self.draining)
        self._count(self.draining.add(record, standing, until, one.run), 1)
        after = list(self.draining)
        for version in before:
            if version not in after:
                self._count(version, -1)

    def _run_of(self, standing: Standing) -> ServerRun:
        """The run of a query that is running or drains."""
        one = self.runs.of(standing.run)
        assert one is not None
        return one

    # ------------------------------------------------------------ runs

    def needed_runs(self, definition: Definition, program: Program) -> list[int]:
        """The runs that have to be one before a query can be put, by their serial numbers.

        A query that reads registered streams is in the run of their writers.
        """
        options = options_of(definition.entail, definition.limits, self._settings)
        (query,) = program.queries
        plan, before = query.plan, self.queries.get(definition.name)
        needed = self.runs.bound_to(options, plan.streams, plan.registers_stream)
        if before is not None and before.is_running and before.options == options and needed:
            own = self._run_of(before)
            needed = [own, *[one for one in needed if one is not own]]
        return [] if definition.paused or len(needed) < 2 else [one.serial for one in needed]

    def _bounds(self, made: Standing) -> dict[str, int]:
        """IRI of a stream that a query reads → the least time of its next event."""
        components, streams = self.components, self.streams
        return {
            iri: streams[iri].next_time if iri in components else BEFORE_ALL
            for iri in made.streams.values()
        }

    def _has_to_move(self, running: Standing, made: Standing, state: StatePolicy) -> bool:
        """Whether a version has streams that are behind the run of the previous version."""
        if state == "keep" or self.runs.bound_to(
            made.options, made.streams.values(), made.registers
        ):
            return False
        return not self._run_of(running).fits(self._bounds(made))

    def check_join(self, serials: Sequence[int]) -> None:
        """Refuse to make one run of several ones with different kinds of time.

        Raises:
            Problem: with both kinds.
        """
        check_kinds(self._components_of_runs(one for one in self.runs if one.serial in serials))

    def _divide(self, standing: Standing) -> None:
        """Divide the run that a version of a query has left, if the others are not connected."""
        one, left = self.runs.of(standing.run), standing.connects
        if one is None or len(left) < 2:
            return
        others = (*self.queries.values(), *self.draining)
        if not any(v.is_running and v.run == one.serial and left <= v.connects for v in others):
            self._divide_run(one)

    def divide_all(self) -> None:
        """Divide each run whose queries are not connected."""
        for one in self.runs:
            self._divide_run(one)

    def _divide_run(self, one: ServerRun) -> None:
        # The run ends drained versions before any other change.
        one.run.finish(close=False)
        names_there = set(one.names)
        inside = [
            version
            for version in (*self.queries.values(), *self.draining)
            if version.is_running
            and version.run == one.serial
            and version.name_in_run in names_there
        ]
        groups = connected([version.connects for version in inside])
        if len(groups) < 2:
            return
        names = [[inside[number].name_in_run for number in group] for group in groups]
        numbers = {iri: stream.number for iri, stream in self.streams.items()}
        parts = self.runs.divide(one, names, numbers)
        one.uses.clear()
        one.registers.clear()
        homes: dict[tuple[int, str], int] = {}
        for part, group in zip(parts, groups, strict=True):
            for number in group:
                part.count(inside[number], 1)
                homes[one.serial, inside[number].name_in_run] = part.serial
        self._move_standings(homes)

    def _move_standings(self, homes: Mapping[tuple[int, str], int]) -> None:
        """Let queries be in other runs: (run before, name there) → run now, by serial numbers."""
        for name, version in self.queries.items():
            home = homes.get((version.run, version.name_in_run), version.run)
            self.queries[name] = replace(version, run=home)
        for record, version in self.draining.items():
            home = homes.get((version.run, version.name_in_run), version.run)
            self.draining.replace(record, replace(version, run=home))
        self._components = None

    # ------------------------------------------------------------ streams

    def names(self) -> dict[str, list[str]]:
        """Name of a stream in the queries → its IRIs."""
        found: dict[str, dict[str, None]] = {}
        for standing in (*self.queries.values(), *self.draining):
            for name, iri in standing.streams.items():
                if iri in self.streams:
                    found.setdefault(name, {})[iri] = None
        return {name: list(iris) for name, iris in found.items()}

    def stream(self, name: str) -> InputStream:
        """The stream with an IRI, or with a name in the queries.

        Raises:
            Problem: if there is none, or the queries use the name for several streams.
        """
        if name in self.streams:
            return self.streams[name]
        iris = self.names().get(name, [])
        if not iris:
            raise not_found(f"no query reads the stream {name}")
        if len(iris) > 1:
            raise Problem(409, f"the queries use the name {name} for several streams", "ambiguous")
        return self.streams[iris[0]]

    @property
    def components(self) -> Mapping[str, Component]:
        """IRI of a stream that queries read → its component."""
        found = self._components
        if found is None:
            found = self._components = components_of(self.runs, self.streams)
            for iri, stream in self.streams.items():
                if iri not in found:
                    stream.begin_anew()
            for component in found.values():
                component.set_floors()
        return found

    def component(self, stream: InputStream) -> Component | None:
        """The component of a stream; None if no query reads it."""
        return self.components.get(stream.iri)

    def _components_of(self, standing: Standing) -> list[Component]:
        """The components that a query connects."""
        near = [one for one in self.runs if not standing.connects.isdisjoint(one.connects)]
        return self._components_of_runs(near)

    def _components_of_runs(self, runs: Iterable[ServerRun]) -> list[Component]:
        """The components of some runs, without duplicates."""
        found = {id(c): c for one in runs for iri in one.streams for c in [self.components[iri]]}
        return list(found.values())

    @property
    def holders(self) -> dict[str, InputStream]:
        """IRI of a stream → the stream that holds back its component."""
        found: dict[str, InputStream] = {}
        for iri, component in self.components.items():
            holder = component.holder
            if holder is not None:
                found[iri] = holder
        return found

    def holding(self) -> list[Holding]:
        """The streams that hold back others."""
        held: dict[str, list[str]] = {}
        for iri, holder in self.holders.items():
            if holder.iri != iri:
                held.setdefault(holder.iri, []).append(iri)
        return [Holding(iri, self.streams[iri].heard, others) for iri, others in held.items()]

    def readers_of(self, iri: str) -> list[str]:
        """The queries that read a stream."""
        plans = (plan for one in self.runs for plan in one.plans)
        return list(dict.fromkeys(plan.shown for plan in plans if iri in plan.streams))

    def new_watermarks(self) -> dict[str, Any]:
        """Query → the time that its run has reached, as in matches; those that have moved."""
        found: dict[str, Any] = {}
        for one in self.runs:
            clock = one.run.clock
            if clock.closed is not None and clock.closed != one.published and clock.domain:
                one.published = clock.closed
                reached = json_value(from_micros(clock.closed, clock.domain))
                found |= dict.fromkeys([plan.shown for plan in one.plans], reached)
        return found

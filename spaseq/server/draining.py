"""The versions of queries that drain: they finish their partial matches and begin no others.

The run ends a version that has drained before any other change, but never its last query. The time
at which it does so may differ after a restart, but no match depends on it. The engine therefore
asks which versions have drained, and writes the answer to the journal as a record. Versions are
identified by the record that let them drain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from spaseq.runs import Run
from spaseq.server.standing import Standing


class DrainingVersions:
    """The versions that drain, the oldest first."""

    def __init__(self) -> None:
        self._versions: dict[int, Standing] = {}

    def __len__(self) -> int:
        return len(self._versions)

    def __iter__(self) -> Iterator[Standing]:
        return iter(list(self._versions.values()))

    def items(self) -> list[tuple[int, Standing]]:
        """The versions with their records."""
        return list(self._versions.items())

    def of(self, name: str) -> list[Standing]:
        """The versions of a query."""
        return [version for version in self if version.definition.name == name]

    def add(self, record: int, before: Standing, until: float | None, run: Run) -> Standing:
        """Record that a query has begun to drain in the run; returns the version.

        Args:
            record: The record of the journal that says so.
            before: The query as it was.
            until: When it has to have drained, in seconds since 1970; None: at any time.
            run: The run.
        """
        name = before.definition.name
        own = [key for key, shown in run.draining.items() if shown == name][-1]
        for number, version in self.items():
            if (version.run, version.draining) == (before.run, own):
                del self._versions[number]  # the run has ended it, so its name was free again
        self._versions[record] = replace(before, draining=own, until=until)
        return self._versions[record]

    def replace(self, record: int, version: Standing) -> None:
        """Replace a version by one in another run."""
        self._versions[record] = version

    def forget(self, name: str) -> None:
        """Remove the versions of a query."""
        for number, version in self.items():
            if version.definition.name == name:
                del self._versions[number]

    def take(self, record: int) -> Standing | None:
        """Remove a version and return it; None if it was already removed."""
        return self._versions.pop(record, None)

    def over(self, runs: Mapping[int, Run], now: float) -> list[int]:
        """The records of the versions that have drained, or whose time for draining is over.

        Args:
            runs: The runs by their serial numbers.
            now: Seconds since 1970.
        """
        present = {
            serial: {} if _has_drained(run) else run.draining for serial, run in runs.items()
        }
        return [
            record
            for record, version in self._versions.items()
            if version.draining not in present.get(version.run, {})
            or (version.until is not None and version.until <= now)
        ]

    # ------------------------------------------------------------ checkpoints

    def state(self) -> list[Any]:
        """The versions as data for `restore`."""
        return [[record, version.state()] for record, version in self._versions.items()]

    def restore(self, saved: list[Any]) -> None:
        """Return to a state."""
        for record, version in saved:
            self._versions[record] = Standing.restored(version)


def _has_drained(run: Run) -> bool:
    """Whether the only query of a run has drained."""
    closed = run.clock.closed
    if len(run.queries) > 1 or closed is None or not run.queries[0].drains:
        return False
    run.settle()
    run.evaluation.sync()
    return run.queries[0].has_drained(closed)

"""Entailment and limits: those of the server for all queries, and those of one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spaseq.io.read_options import ReadOptions
from spaseq.rdf.limits import BOUNDS
from spaseq.rdf.schema import REGIMES
from spaseq.records import dataclass
from spaseq.server.problems import Problem

_KNOWN = (*BOUNDS, "on_limit")
_POLICIES = ("stop", "shed")
NO_ENTAILMENT = "none"
_MAX_BOUND = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of all queries.

    Args:
        reading: How events are read, with the lateness.
        entail: `rdfs` or `owl-ql`.
        limits: The limits of `Program.start`.
        kb: The graphs that are given at the start: IRI → path or URL.
        private: Whether the names of endpoints in queries may have private addresses.
        max_ahead: How many microseconds an event may be ahead of the clock; None: any number.
    """

    reading: ReadOptions
    entail: str | None
    limits: Mapping[str, Any]
    kb: Mapping[str, str]
    private: bool = False
    max_ahead: int | None = None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of queries that share a run.

    Args:
        entail: The entailment regime.
        limits: Name → value of the limits that differ from those of the server, by name.
    """

    entail: str | None = None
    limits: tuple[tuple[str, Any], ...] = ()

    def to_list(self) -> list[Any]:
        """The options as data for `of_list`."""
        return [self.entail, dict(self.limits)]

    @staticmethod
    def of_list(data: Sequence[Any]) -> RunOptions:
        entail, limits = data
        return RunOptions(entail, tuple(sorted(limits.items())))


def options_of(entail: str | None, limits: Mapping[str, Any], settings: RunSettings) -> RunOptions:
    """The options of a query.

    Args:
        entail: Its entailment, or `none`; None: that of the server.
        limits: Its limits.
        settings: What holds for all queries.
    """
    own = settings.entail if entail is None else entail
    some = {name: value for name, value in limits.items() if value != settings.limits.get(name)}
    return RunOptions(None if own == NO_ENTAILMENT else own, tuple(sorted(some.items())))


def limits_of(options: RunOptions, settings: RunSettings) -> dict[str, Any]:
    """The limits of a run, as `Program.start` takes them.

    The server's limits may have become lower than a query's since the query was accepted.
    """
    limits = dict(settings.limits)
    for name, value in options.limits:
        most = limits.get(name)
        limits[name] = value if name not in BOUNDS or most is None else min(value, most)
    return limits


def may_share(limits: Mapping[str, Any]) -> bool:
    """Whether a run with some limits evaluates queries as one."""
    return all(limits.get(name) is None for name in BOUNDS if name != "max_matches")


def checked_entailment(data: Any) -> str | None:
    """The entailment in the JSON of a query.

    Raises:
        Problem: if there is no such regime.
    """
    known = (NO_ENTAILMENT, *REGIMES)
    if data is not None and data not in known:
        raise Problem(422, f"entail: one of {', '.join(known)}", "entail")
    return None if data is None else str(data)


def checked_limits(data: Any, settings: RunSettings) -> dict[str, Any]:
    """The limits in the JSON of a query.

    Raises:
        Problem: for other members or values, and for a bound above that of the server.
    """
    if data is None:
        return {}
    if not isinstance(data, dict) or data.keys() - set(_KNOWN):
        raise Problem(422, f"limits: an object with members of {', '.join(_KNOWN)}", "limits")
    found = {name: value for name, value in data.items() if value is not None}
    if found.get("on_limit", _POLICIES[0]) not in _POLICIES:
        raise Problem(422, f"limits: on_limit is {' or '.join(_POLICIES)}", "limits")
    for name in BOUNDS:
        value, most = found.get(name), settings.limits.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _MAX_BOUND:
            raise Problem(422, f"limits: {name} is a whole number from 1", "limits")
        if most is not None and value > most:
            raise Problem(422, f"limits: {name} is at most {most} on this server", "limits")
    return found

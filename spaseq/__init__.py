"""Semantic complex event processing: patterns in time over RDF graph streams.

The package is one pipeline, and a module imports only from stages to its left:

    records → errors → rules → sparql → rdf → parser → plan → gpm | nfa | kb → results
    → engine → explain | io → runs → async_runs → program → keyed_runs → pipeline → inputs
    → result → execute → live → frames → generate → spark | server | client → cli

`compile` turns query texts into a `Program`, `Program.start` creates a `Run`, and `Run.push`
yields each `Match` as soon as its last event arrives; `run` does all of this over files.

The names below are imported on first use, so that parsing a query or printing help does not
load the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spaseq import frames as frames
    from spaseq.async_runs import AsyncRun as AsyncRun
    from spaseq.errors import ArgumentError as ArgumentError
    from spaseq.errors import ChangeError as ChangeError
    from spaseq.errors import EventError as EventError
    from spaseq.errors import InputError as InputError
    from spaseq.errors import KbError as KbError
    from spaseq.errors import QueryError as QueryError
    from spaseq.errors import QueryWarning as QueryWarning
    from spaseq.errors import SpaseqError as SpaseqError
    from spaseq.execute import run as run
    from spaseq.explain.timeline import plot as plot
    from spaseq.kb.endpoint import Endpoint as Endpoint
    from spaseq.live.asynchronous import AsyncResult as AsyncResult
    from spaseq.live.asynchronous import arun as arun
    from spaseq.program import Program as Program
    from spaseq.program import compile_queries as compile
    from spaseq.rdf.event import Event as Event
    from spaseq.rdf.event import Timestamp as Timestamp
    from spaseq.rdf.plain import LangString as LangString
    from spaseq.result import Result as Result
    from spaseq.results import Match as Match
    from spaseq.results import Witness as Witness
    from spaseq.runs import Run as Run
    from spaseq.sparql.registry import function as function

__version__ = "0.2.0"

__all__ = [
    "ArgumentError",
    "AsyncResult",
    "AsyncRun",
    "ChangeError",
    "Endpoint",
    "Event",
    "EventError",
    "InputError",
    "KbError",
    "LangString",
    "Match",
    "Program",
    "QueryError",
    "QueryWarning",
    "Result",
    "Run",
    "SpaseqError",
    "Timestamp",
    "Witness",
    "arun",
    "compile",
    "function",
    "plot",
    "run",
]

_MODULES = {
    "ArgumentError": ("spaseq.errors", "ArgumentError"),
    "AsyncResult": ("spaseq.live.asynchronous", "AsyncResult"),
    "AsyncRun": ("spaseq.async_runs", "AsyncRun"),
    "ChangeError": ("spaseq.errors", "ChangeError"),
    "Endpoint": ("spaseq.kb.endpoint", "Endpoint"),
    "Event": ("spaseq.rdf.event", "Event"),
    "EventError": ("spaseq.errors", "EventError"),
    "InputError": ("spaseq.errors", "InputError"),
    "KbError": ("spaseq.errors", "KbError"),
    "LangString": ("spaseq.rdf.plain", "LangString"),
    "Match": ("spaseq.results", "Match"),
    "Program": ("spaseq.program", "Program"),
    "QueryError": ("spaseq.errors", "QueryError"),
    "QueryWarning": ("spaseq.errors", "QueryWarning"),
    "Result": ("spaseq.result", "Result"),
    "Run": ("spaseq.runs", "Run"),
    "SpaseqError": ("spaseq.errors", "SpaseqError"),
    "Timestamp": ("spaseq.rdf.event", "Timestamp"),
    "Witness": ("spaseq.results", "Witness"),
    "arun": ("spaseq.live.asynchronous", "arun"),
    "compile": ("spaseq.program", "compile_queries"),
    "function": ("spaseq.sparql.registry", "function"),
    "plot": ("spaseq.explain.timeline", "plot"),
    "run": ("spaseq.execute", "run"),
}


def __getattr__(name: str) -> Any:
    if name == "frames":
        return import_module("spaseq.frames")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _MODULES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

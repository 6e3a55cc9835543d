"""Semantic complex event processing: patterns in time over RDF graph streams.

The package is one pipeline, and a module imports only from stages to its left:

    errors → rdf → parser → plan → gpm | nfa | kb → results → engine | io → pipeline → generate → cli

`compile` turns query texts into a `Program`, `Program.start` makes a `Run`, `Run.push`
yields a `Match` the moment its last event arrives; `run` does all of it over files.
"""

from __future__ import annotations

from spaseq.engine.program import Program as Program
from spaseq.engine.program import compile_queries as compile
from spaseq.engine.run import Run as Run
from spaseq.errors import EventError as EventError
from spaseq.errors import InputError as InputError
from spaseq.errors import KbError as KbError
from spaseq.errors import QueryError as QueryError
from spaseq.errors import SpaseqError as SpaseqError
from spaseq.pipeline import run as run
from spaseq.rdf.event import Event as Event
from spaseq.results import Match as Match

__version__ = "0.1.0"

__all__ = [
    "Event",
    "EventError",
    "InputError",
    "KbError",
    "Match",
    "Program",
    "QueryError",
    "Run",
    "SpaseqError",
    "compile",
    "run",
]

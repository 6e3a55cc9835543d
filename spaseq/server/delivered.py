"""A match read from the replay buffer, with the attributes that the sinks of URLs use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pyoxigraph as ox

from spaseq.rdf.event import Term, Timestamp
from spaseq.server.inputs import time_of_json


class DeliveredMatch:
    """A match as JSON.

    Args:
        line: Its identifier, a space, and its JSON.
    """

    def __init__(self, line: bytes):
        identifier, _, text = line.partition(b" ")
        self.id = identifier.decode()
        self._text = text.decode()

    def to_json(self) -> str:
        """The match as the run wrote it."""
        return self._text

    @cached_property
    def _data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._text)
        return found

    @property
    def query(self) -> str:
        """The query that found it."""
        return str(self._data["query"])

    @property
    def start(self) -> Timestamp | None:
        """The time of its first event; None for an ASK."""
        value = self._data.get("start")
        return None if value is None else time_of_json(value)

    @property
    def end(self) -> Timestamp:
        """The time at which it was found."""
        return time_of_json(self._data["end"])

    @property
    def bindings(self) -> Mapping[str, Term]:
        """The solution; empty for a CONSTRUCT or ASK."""
        return {name: _term(data) for name, data in self._data.get("bindings", {}).items()}


def _term(data: Mapping[str, Any]) -> Term:
    """A term in the form of SPARQL's JSON results."""
    kind, value = data["type"], data["value"]
    if kind == "uri":
        return ox.NamedNode(value)
    if kind == "bnode":
        return ox.BlankNode(value)
    if kind == "triple":
        subject, predicate, object_ = (
            _term(value[name]) for name in ("subject", "predicate", "object")
        )
        return ox.Triple(subject, predicate, object_)  # type: ignore[arg-type]
    if "xml:lang" in data:
        direction = data.get("its:dir")
        return ox.Literal(
            value,
            language=data["xml:lang"],
            direction=None if direction is None else ox.BaseDirection(direction),
        )
    datatype = data.get("datatype")
    return ox.Literal(value, datatype=None if datatype is None else ox.NamedNode(datatype))

"""A template of triples → the N-Quads text of each event of a stream.

An event is a named graph. The triple with its timestamp
(`<graph> prov:generatedAtTime "…"^^xsd:dateTime`) is in the default graph, immediately before
the graph's quads: the timestamped graphs of the W3C RDF Stream Processing community group.

Prefixes are resolved when the template is made; an event then costs one `str.format`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from spaseq.rdf.calendar import days_before
from spaseq.rdf.time_text import EPOCH_DAY, date_time_text

BASE = "http://example.org/"
"""Relative IRIs of templates and knowledge bases are resolved against this one."""

PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "prov": "http://www.w3.org/ns/prov#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "saref": "https://saref.etsi.org/core/",
    "schema": "https://schema.org/",
    "grid": "http://w3id.org/spaseq/smart-grid#",
    "stock": "http://w3id.org/spaseq/stock#",
    "cards": "http://w3id.org/spaseq/cards#",
    "traffic": "http://w3id.org/spaseq/traffic#",
}

_DATATYPE = re.compile(r"\^\^(\w+):(\w+)$")
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_FIRST_INSTANT = (days_before(2026, 1, 5) - EPOCH_DAY) * DAY
"""All generated streams begin on this Monday; instants count milliseconds from its midnight."""


def event_template(*triples: str) -> str:
    """A `str.format` template of one event; the fields are {graph}, {time} and the triples' own.

    A triple is subject, predicate and object, with one blank between them and none inside:

    >>> event_template('<m/{m}> stock:price "{p}"^^xsd:decimal').splitlines()[1]
    ... # doctest: +ELLIPSIS
    '<http://example.org/m/{m}> <http://w3id.org/spaseq/stock#price> "{p}"^^<...#decimal> {graph} .'
    """
    lines = [f'{{graph}} {_term("prov:generatedAtTime")} "{{time}}"^^{_term("xsd:dateTime")} .\n']
    for triple in triples:
        subject, predicate, object_ = triple.split(" ")
        lines.append(f"{_term(subject)} {_term(predicate)} {_term(object_)} {{graph}} .\n")
    return "".join(lines)


def _term(text: str) -> str:
    if text == "a":
        return _term("rdf:type")
    if text.startswith("<"):
        return f"<{BASE}{text[1:]}"
    if text.startswith('"'):
        return _DATATYPE.sub(lambda found: f"^^<{PREFIXES[found[1]]}{found[2]}>", text)
    if text.startswith("_:"):
        return text
    prefix, _, name = text.partition(":")
    return f"<{PREFIXES[prefix]}{name}>"


def turtle_header(prefixes: Iterable[str]) -> str:
    """The prologue of a knowledge base in Turtle that uses these prefixes."""
    lines = [f"@base <{BASE}> ."]
    lines += [f"@prefix {prefix}: <{PREFIXES[prefix]}> ." for prefix in prefixes]
    return "\n".join(lines) + "\n\n"


class Calendar:
    """Milliseconds from the first midnight → the lexical form of an `xsd:dateTime`.

    The text of the last minute is cached, since streams ask for instants in ascending order.
    """

    __slots__ = ("_minute", "_text")

    def __init__(self) -> None:
        self._minute = -1
        self._text = ""

    def lexical(self, instant: int) -> str:
        minute, rest = divmod(instant, MINUTE)
        if minute != self._minute:
            self._minute = minute
            # Without the seconds and the zone, which are constant within the minute.
            self._text = date_time_text(1000 * (_FIRST_INSTANT + minute * MINUTE))[:-3]
        second, fraction = divmod(rest, 1000)
        if fraction:
            return f"{self._text}{second:02d}.{f'{fraction:03d}'.rstrip('0')}Z"
        return f"{self._text}{second:02d}Z"

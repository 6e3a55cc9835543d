"""The text of a timestamp's predicate or property path → its steps; the default predicates.

A path is IRIs or prefixed names between slashes, each possibly inverse:
`sosa:phenomenonTime/time:inXSDDateTimeStamp` or `^<http://example.org/about>/prov:endedAtTime`. An
IRI alone needs no brackets. Source: SPARQL 1.1, section 9.1 (sequence and inverse paths).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

import pyoxigraph as ox

Step: TypeAlias = tuple[str, bool]
"""The IRI of a predicate, and whether it is followed from object to subject."""

GENERATED_AT = "http://www.w3.org/ns/prov#generatedAtTime"
MESSAGE_TIMES = (
    GENERATED_AT,
    "http://www.w3.org/ns/sosa/resultTime",
    "https://www.w3.org/ns/activitystreams#published",
)
PREFIXES = {
    "as": "https://www.w3.org/ns/activitystreams#",
    "dcterms": "http://purl.org/dc/terms/",
    "ldes": "https://w3id.org/ldes#",
    "om-owl": "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "saref": "https://saref.etsi.org/core/",
    "schema": "http://schema.org/",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "time": "http://www.w3.org/2006/time#",
}
MOST_STEPS = 8
_STEP = re.compile(r"(\^?)(?:<([^<>]*)>|([A-Za-z][\w-]*):([\w.-]*))")


@lru_cache
def time_path(text: str) -> tuple[Step, ...]:
    """The steps of a path.

    Raises:
        ValueError: for a text that is not a path, with the reason.
    """
    is_bare = not text.startswith(("<", "^"))
    if _STEP.match(text) is None or (is_bare and text.partition(":")[2].startswith("//")):
        return ((_checked(text, text), False),)
    steps: list[Step] = []
    position = 0
    while True:
        found = _STEP.match(text, position)
        if found is None:
            raise ValueError(f"{text!r} is not a path of predicates: at {text[position:]!r}")
        inverse, iri, prefix, local = found.groups()
        if iri is None:
            if prefix not in PREFIXES:
                if len(steps) == 0 and not inverse and "<" not in text:
                    return ((_checked(text, text), False),)
                known = ", ".join(f"{name}:" for name in PREFIXES)
                raise ValueError(f"the prefix {prefix}: is not known ({known}); write <IRI>")
            iri = PREFIXES[prefix] + local
        steps.append((_checked(iri, text), bool(inverse)))
        position = found.end()
        if position == len(text):
            break
        if text[position] != "/":
            raise ValueError(f"{text!r} is not a path of predicates: at {text[position:]!r}")
        position += 1
    if len(steps) > MOST_STEPS:
        raise ValueError(f"{text!r} has more than {MOST_STEPS} steps")
    return tuple(steps)


def _checked(iri: str, text: str) -> str:
    try:
        return ox.NamedNode(iri).value
    except ValueError as error:
        raise ValueError(f"{text} is not an IRI") from error

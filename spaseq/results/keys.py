"""The keys of matches, witnesses and terms in JSON: a public interface (docs/formats.md).

`spaseq.results.data` builds plain data with these keys. The compiled writers of JSON
(`spaseq.results.native._match` and `spaseq.engine.native._matches`) read them when they are
imported. Terms have the keys of *SPARQL 1.2 Query Results JSON Format*.
"""

from __future__ import annotations

# A match.
QUERY = "query"
START = "start"
END = "end"
RESULTS = "results"
BOOLEAN = "boolean"
BINDINGS = "bindings"
GRAPH = "graph"
EVENTS = "events"
CLOSED_BY_END = "closedByEnd"
KB = "kb"

# A witness, which also has GRAPH and BINDINGS.
GPM = "gpm"
STREAM = "stream"
TIME = "time"
ORDINAL = "ordinal"

# A term.
TYPE = "type"
VALUE = "value"
LANGUAGE = "xml:lang"
DIRECTION = "its:dir"
DATATYPE = "datatype"

# The values of TYPE.
URI = "uri"
BLANK_NODE = "bnode"
LITERAL = "literal"
TRIPLE = "triple"

# The value of a triple term.
SUBJECT = "subject"
PREDICATE = "predicate"
OBJECT = "object"


def following(key: str) -> bytes:
    """The JSON text between a value and the value of the next key."""
    return f', "{key}": '.encode()

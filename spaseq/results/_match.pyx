# cython: language_level=3
"""One result of one query.

Who finds a match may leave open what it is made of, in a subclass that overrides `decode`:
times, bindings and events are then worked out when one of them is asked for, so that a match
that is only counted or passed on costs next to nothing.
"""

cimport cython

import json

from spaseq.results.data import match_to_dict

cdef tuple FIELDS = (
    "query", "start", "end", "bindings", "events", "variables", "graph", "boolean", "kb_version",
)


@cython.no_gc  # it refers to nothing that refers to matches
cdef class Match:
    """One result of one query; it does not change.

    `bindings` is the solution of a SELECT (unbound variables left out), `graph` the triples
    of a CONSTRUCT, `boolean` True for an ASK. `start` is the time of the first event, `end`
    that of the last, or the closing time for a match that had to wait for its window to close.
    `events` are the witnesses, step by step. `variables` names the projected columns in order,
    `kb_version` the version of the knowledge base when the match was complete.
    """

    __match_args__ = FIELDS

    def __init__(
        self, str query not None, start, end, bindings, events, tuple variables=(), graph=None,
        boolean=None, kb_version=1,
    ):
        self.query = query
        self.variables = variables
        self.graph = graph
        self.boolean = boolean
        self.kb_version = kb_version
        self.found_start = start
        self.found_end = end
        self.found_bindings = bindings
        self.found_events = events

    cdef int decode(self) except -1:
        """Fill in what has been left open; there is nothing in a match that was given all."""
        return 0

    @property
    def start(self):
        """The time of the first event."""
        if self.found_start is None:
            self.decode()
        return self.found_start

    @property
    def end(self):
        """The time at which the match was complete."""
        if self.found_end is None:
            self.decode()
        return self.found_end

    @property
    def bindings(self):
        """The solution: terms by the variables' names."""
        if self.found_bindings is None:
            self.decode()
        return self.found_bindings

    @property
    def events(self):
        """The witnesses, as a tuple."""
        if self.found_events is None:
            self.decode()
        return self.found_events

    def to_dict(self) -> dict:
        """The match as plain data, in the order its keys are written."""
        return match_to_dict(self)

    def to_json(self) -> str:
        """The match as one line of JSON."""
        return json.dumps(match_to_dict(self), ensure_ascii=False)

    def __eq__(self, other):
        if not isinstance(other, Match):
            return NotImplemented
        return _fields(self) == _fields(other)

    def __repr__(self):
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(FIELDS, _fields(self)))
        return f"Match({shown})"

    def __reduce__(self):
        return Match, _fields(self)

    def __replace__(self, **changes):
        """The match with other fields, as `copy.replace` makes it."""
        return Match(**(dict(zip(FIELDS, _fields(self))) | changes))


cdef tuple _fields(Match match):
    return (
        match.query, match.start, match.end, match.bindings, match.events, match.variables,
        match.graph, match.boolean, match.kb_version,
    )

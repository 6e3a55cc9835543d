"""One result of one query.

A subclass can override the `decode` methods to compute times, bindings, events and the graph on
first access, each on its own, so that a match that is only counted or passed on costs almost
nothing.
"""

cimport cython
import json

from spaseq.results.data import match_to_dict
from spaseq.results.identity import match_id
from spaseq.results.values import html_table, names_of, no_attribute, one_line, value_in, values_in

cdef tuple FIELDS = (
    "query", "start", "end", "bindings", "events", "variables", "graph", "boolean", "kb_version",
    "results",
    "closed_by_end",
)


@cython.no_gc  # a match cannot be part of a reference cycle
cdef class Match:
    """One result of one query, immutable.

    `match["x"]` is the value of the variable ?x as a plain Python object, None if it is unbound.
    `"x" in match` says whether there is such a variable, and iterating yields the names.
    `dict(match)` is `match.values`.

    Attributes:
        id: A text that identifies the match, the same in every run over the same events.
        query: The name of the query.
        start: The time of the first event.
        end: The time of the last event, or the closing time of the window if the match had to
            wait for it.
        bindings: The solution of a SELECT as terms, without unbound variables.
        values: The solution as plain Python values, None for unbound variables.
        events: The witnesses in the order of the steps.
        variables: The projected columns in order.
        graph: The triples of a CONSTRUCT, else None.
        boolean: True for an ASK, else None.
        kb_version: The version of the knowledge base when the match was completed.
        results: The number of results of the group, in a query with GROUP; else None.
        closed_by_end: Whether the end of input closed the window of the match, so that a longer
            input might not have it.
    """

    __match_args__ = FIELDS

    def __init__(
        self, str query not None, start, end, bindings, events, tuple variables=(), graph=None,
        boolean=None, kb_version=1, results=None, bint closed_by_end=False,
    ):
        self.query = query
        self.variables = variables
        self.boolean = boolean
        self.kb_version = kb_version
        self.results = results
        self.closed_by_end = closed_by_end
        self.found_start = start
        self.found_end = end
        self.found_bindings = bindings
        self.found_events = events
        self.found_graph = graph

    cdef int decode_times(self) except -1:
        """Compute the times, which are None; a complete match has them. So do the others."""
        return 0

    cdef int decode_bindings(self) except -1:
        return 0

    cdef int decode_events(self) except -1:
        return 0

    cdef int decode_graph(self) except -1:
        return 0

    @property
    def graph(self):
        """The triples of a CONSTRUCT, else None."""
        if self.found_graph is None:
            self.decode_graph()
        return self.found_graph

    @property
    def start(self):
        """The time of the first event."""
        if self.found_start is None:
            self.decode_times()
        return self.found_start

    @property
    def end(self):
        """The time at which the match was complete."""
        if self.found_end is None:
            self.decode_times()
        return self.found_end

    @property
    def bindings(self):
        """The solution: variable name → term."""
        if self.found_bindings is None:
            self.decode_bindings()
        return self.found_bindings

    @property
    def id(self) -> str:
        """A text that identifies the match: a digest of its query, end, events and solution.

        It is the same in every run over the same events, also after a restart and on Spark, and is
        the column `id` of tables. Matches that cannot be told apart have the same one: those of an
        ASK at one time, and matches that differ only in an event of which they show nothing.
        Cost: linear in the terms of the match, at each access.
        """
        return match_id(self)

    @property
    def values(self):
        """The solution: variable name → plain Python value, None if the variable is unbound.

        Numbers, booleans, strings, dates, times and durations are those of Python, language-tagged
        strings are `LangString`s, IRIs are `str`. Other terms stay pyoxigraph's. Each access makes
        a new dict, in the order of the SELECT.
        """
        return values_in(self)

    def __getitem__(self, name):
        """The plain value of a variable, as in `values`.

        Raises:
            KeyError: if the match has no such variable.
        """
        return value_in(self, name)

    def __getattr__(self, name):
        raise AttributeError(no_attribute(self, name))

    def __contains__(self, name):
        return name in names_of(self)

    def __iter__(self):
        return iter(names_of(self))

    def keys(self):
        """The names of the variables, so that `dict(match)` is `match.values`.

        Example:
            >>> row = {**match, "source": "live"}
        """
        return names_of(self)

    @property
    def events(self):
        """The witnesses, as a tuple."""
        if self.found_events is None:
            self.decode_events()
        return self.found_events

    def to_dict(self) -> dict:
        """The match as plain data, with keys in the order of the JSON output.

        Example:
            >>> match.to_dict()["bindings"]
        """
        return match_to_dict(self)

    def to_json(self) -> str:
        """The match as one line of JSON.

        Example:
            >>> print(match.to_json(), file=out)
        """
        return json.dumps(match_to_dict(self), ensure_ascii=False)

    def __eq__(self, other):
        if not isinstance(other, Match):
            return NotImplemented
        return _fields(self) == _fields(other)

    def __repr__(self):
        return one_line(self)

    def _repr_html_(self) -> str:
        """The match as a table, for notebooks."""
        return html_table(self)

    def __reduce__(self):
        return Match, _fields(self)

    def __replace__(self, **changes):
        """The match with other fields, for `copy.replace`."""
        return Match(**(dict(zip(FIELDS, _fields(self))) | changes))


cdef tuple _fields(Match match):
    return (
        match.query, match.start, match.end, match.bindings, match.events, match.variables,
        match.graph, match.boolean, match.kb_version, match.results, match.closed_by_end,
    )

"""The matches of an automaton that several queries share, divided among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from spaseq.engine.compiled import CompiledQueries
from spaseq.engine.instants import QueryRun
from spaseq.engine.native._decode import MatchDecoder
from spaseq.engine.native._matches import divided
from spaseq.engine.part_states import Part, PartStates
from spaseq.plan.templates import Template
from spaseq.results import Match


class Reader:
    """Decodes the matches of one query; it is made when its first match comes."""

    def __init__(self, query: QueryRun, name: str, columns: Sequence[str]):
        self._query, self._name, self._columns = query, name, columns

    @cached_property
    def reading(self) -> MatchDecoder:
        """The decoder, with the name and the columns of the query."""
        return self._query.native.reader(self._name, self._columns)


class Division:
    """Divides the matches of a template among its queries.

    Args:
        template: The template.
        public: The program that has its queries.
        query: Its state.
    """

    def __init__(self, template: Template, public: CompiledQueries, query: QueryRun):
        self.template = template
        self._public, self.query = public, query
        self.matched = dict.fromkeys(template.queries, 0)
        """The number of matches of each query so far."""
        readers = {
            number: Reader(query, plan.shown, [column.name for column in plan.output.columns])
            for number in template.queries
            for plan in [public.queries[number].plan]
        }
        self._readers = {
            _text(number) if template.numbered else None: tuple((n, readers[n]) for n in some)
            for number, some in enumerate(template.members)
        }

    def __call__(self, matches: Iterable[Match]) -> list[tuple[int, list[Match]]]:
        """(number of a query, its matches), by number."""
        return divided(matches, self._readers, self.matched)

    def parts(self) -> list[tuple[int, Part]]:
        """(number of a query, the query with its part of the state)."""
        states, numbered = PartStates(self.query), self.template.numbered
        return [
            (
                query,
                Part(
                    self.query,
                    states,
                    self._public.queries[query],
                    number if numbered else None,
                    self.matched[query],
                ),
            )
            for number, some in enumerate(self.template.members)
            for query in some
        ]


def _text(number: int) -> bytes:
    """A number as matches have it."""
    return f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>'.encode()

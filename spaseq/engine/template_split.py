"""The matches of an automaton that several queries share, divided among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from spaseq.engine.compiled import CompiledQuery
from spaseq.engine.embedding import Embedding, ends
from spaseq.engine.formatting import Make
from spaseq.engine.instants import QueryRun
from spaseq.engine.native._matches import (
    MatchDecoder,
    Matches,
    MatchMaker,
    Parts,
    divided,
    divided_by_thresholds,
)
from spaseq.engine.part_states import Part, PartStates
from spaseq.plan.floors import number_of
from spaseq.plan.templates import Template
from spaseq.rdf.event import Term
from spaseq.rdf.limits import LimitReached
from spaseq.results import Match

if TYPE_CHECKING:
    from spaseq.engine.native.query_run import NativeRun

NO_EMBEDDINGS: Mapping[int, Embedding] = MappingProxyType({})
_REMEMBERED = 4096
"""The number of values whose position among the thresholds is cached."""


class Reader:
    """Decodes or writes the matches of one query; made when its first match comes."""

    def __init__(self, query: QueryRun, name: str, columns: Sequence[str]):
        self._query, self._name, self._columns = query, name, columns
        self._maker: MatchMaker | None = None
        self._native: NativeRun | None = None

    @cached_property
    def reading(self) -> MatchDecoder:
        """The decoder, with the name and the columns of the query."""
        return self._query.native.reader(self._name, self._columns)

    def maker(self, make: Make) -> MatchMaker | None:
        """The maker that writes the matches, even after the automaton has been rebuilt."""
        native = self._query.native
        if self._native is not native:
            self._native, self._maker = native, make(native, self._name, self._columns)
        return self._maker


class Reached(dict[tuple[Term, ...], tuple[int, int]]):
    """The terms of the compared variables → the queries that have the match, as a range.

    Args:
        template: The template of the queries; the terms are those of `Template.compared`.
    """

    def __init__(self, template: Template):
        super().__init__()
        at = template.compared.index
        self._thresholds = [(at(each.variable), each) for each in template.selecting]
        self._floors = [(at(each.taken), at(each.rank)) for _, each in template.floors]
        self._most = len(template.members[0])

    def __missing__(self, terms: tuple[Term, ...]) -> tuple[int, int]:
        if len(self) >= _REMEMBERED:
            self.clear()
        ends = [self._most, *(each.reached(terms[place]) for place, each in self._thresholds)]
        ends += [number_of(terms[rank]) for _, rank in self._floors]
        first = max((number_of(terms[taken]) for taken, _ in self._floors), default=0)
        reached = self[terms] = first, min(ends)
        return reached


class Division:
    """Divides the matches of a template among its queries.

    Args:
        template: The template; its members are the serial numbers of queries.
        queries: The queries, by their serial numbers.
        state: Its state.
        embeddings: Where its queries lie in it, if it branches.
        matched: The matches so far of its queries.
    """

    def __init__(
        self,
        template: Template,
        queries: Mapping[int, CompiledQuery],
        state: QueryRun,
        embeddings: Mapping[int, Embedding],
        matched: Mapping[int, int],
    ):
        self.template = template
        self.silent: set[int] = set()
        """The queries that have left the template, whose matches are dropped."""
        self._embeddings = embeddings
        state.list_for(len(queries))
        self._queries, self._state = queries, state
        self.matched = dict.fromkeys(queries, 0) | dict(matched)
        """The number of matches of each query so far."""
        self._make: Make | None = None
        self.writes = False
        """Whether makers write the matches (`write_with`)."""
        readers = self._of = {
            number: Reader(state, plan.shown, [column.name for column in plan.output.columns])
            for number, query in queries.items()
            for plan in [query.plan]
        }
        members = [tuple((n, readers[n]) for n in some) for some in template.members]
        self._columns = len(template.compared)
        self._reached = Reached(template)
        self._ordered = members[0]
        self._readers: dict[bytes | int | None, tuple[tuple[int, Reader], ...]]
        if template.branches:
            self._readers = {
                edge: members[branch]
                for edge, branch in enumerate(ends(state.compiled, template.branches))
                if branch is not None
            }
        else:
            self._readers = {
                _text(number) if template.numbered else None: some
                for number, some in enumerate(members)
            }

    def write_with(self, make: Make) -> bool:
        """Have makers write the matches from now on; False if the queries have none."""
        self._make = make
        self.writes = self._ordered[0][1].maker(make) is not None
        return self.writes

    def __call__(
        self, matches: Iterable[Match], as_picks: bool = False
    ) -> list[tuple[int, list[Match]]]:
        """(serial number of a query, its matches).

        Raises:
            LimitExceeded: if one of the queries has too many.
        """
        kept = Parts(matches, self.matched, as_picks, self.silent, self._state.limits.most_matches)
        try:
            if self._columns:
                return divided_by_thresholds(
                    matches, kept, self._ordered, self._columns, self._reached
                )
            return divided(matches, kept, self._readers, bool(self.template.branches))
        except LimitReached as reached:
            if kept.refused < 0:
                raise
            raise self._state.exceeded(reached, self._queries[kept.refused]) from None

    def written(self, matches: Matches) -> list[tuple[int, MatchMaker | None, list[Any]]]:
        """(serial number of a query, the maker that writes its matches, the matches)."""
        assert self._make is not None
        return [
            (number, self._of[number].maker(self._make), picks)
            for number, picks in self(matches, as_picks=True)
        ]

    def parts(self) -> dict[int, Part]:
        """The part of the state that each query has."""
        numbered = self.template.numbered
        states = PartStates(self._state, self.template)
        return {
            query: Part(
                self._state,
                states,
                self._queries[query],
                number if numbered else None,
                place,
                self.matched[query],
                self._embeddings.get(query),
            )
            for number, some in enumerate(self.template.members)
            for place, query in enumerate(some)
        }


def _text(number: int) -> bytes:
    """A number as it occurs in matches."""
    return f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>'.encode()

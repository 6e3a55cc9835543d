"""The matches of an automaton that several queries share, divided among them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from spaseq.engine.branches import Embedding, ends
from spaseq.engine.compiled import CompiledQueries
from spaseq.engine.formatting import Make
from spaseq.engine.instants import QueryRun
from spaseq.engine.native._decode import MatchDecoder
from spaseq.engine.native._matches import (
    Matches,
    MatchMaker,
    Parts,
    divided,
    divided_by_thresholds,
)
from spaseq.engine.part_states import Part, PartStates
from spaseq.engine.sharing import SharedProgram
from spaseq.plan.floors import number_of
from spaseq.plan.templates import Template
from spaseq.rdf.event import Term
from spaseq.rdf.limits import LimitReached
from spaseq.results import Match

if TYPE_CHECKING:
    from spaseq.engine.native.query_run import NativeRun

NO_MATCHES: Mapping[int, int] = MappingProxyType({})
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
        template: The template.
        public: The program that has its queries.
        query: Its state.
        embeddings: Where its queries lie in it, if it branches.
        silent: The names of queries that have left a template, which drops their matches.
    """

    def __init__(
        self,
        template: Template,
        public: CompiledQueries,
        query: QueryRun,
        embeddings: Mapping[int, Embedding],
        silent: Collection[str] = (),
    ):
        self.template = template
        self.silent: frozenset[int] = frozenset()
        """The numbers of queries whose matches are dropped."""
        self._embeddings = embeddings
        query.list_for(len(template.queries))
        self._public, self.query = public, query
        self.matched = dict.fromkeys(template.queries, 0)
        """The number of matches of each query so far."""
        self.silence(silent)
        self._make: Make | None = None
        self.writes = False
        """Whether makers write the matches (`write_with`)."""
        readers = self._of = {
            number: Reader(query, plan.shown, [column.name for column in plan.output.columns])
            for number in template.queries
            for plan in [public.queries[number].plan]
        }
        members = [tuple((n, readers[n]) for n in some) for some in template.members]
        self._columns = len(template.compared)
        self._reached = Reached(template)
        self._ordered = members[0]
        self._readers: dict[bytes | int | None, tuple[tuple[int, Reader], ...]]
        if template.branches:
            self._readers = {
                edge: members[branch]
                for edge, branch in enumerate(ends(query.compiled, template.branches))
                if branch is not None
            }
        else:
            self._readers = {
                _text(number) if template.numbered else None: some
                for number, some in enumerate(members)
            }

    def silence(self, names: Collection[str]) -> None:
        """Drop the matches of queries of some names, and of no others."""
        queries = self._public.queries
        quiet = [n for n in self.template.queries if queries[n].plan.name in names]
        self.silent = frozenset(quiet)

    def write_with(self, make: Make) -> bool:
        """Have makers write the matches from now on; False if the queries have none."""
        self._make = make
        self.writes = self._ordered[0][1].maker(make) is not None
        return self.writes

    def __call__(
        self, matches: Iterable[Match], as_picks: bool = False
    ) -> list[tuple[int, list[Match]]]:
        """(number of a query, its matches), by number.

        Raises:
            LimitExceeded: if one of the queries has too many.
        """
        kept = Parts(matches, self.matched, as_picks, self.silent, self.query.limits.most_matches)
        try:
            if self._columns:
                return divided_by_thresholds(
                    matches, kept, self._ordered, self._columns, self._reached
                )
            return divided(matches, kept, self._readers, bool(self.template.branches))
        except LimitReached as reached:
            if kept.refused < 0:
                raise
            raise self.query.exceeded(reached, self._public.queries[kept.refused]) from None

    def written(self, matches: Matches) -> list[tuple[int, MatchMaker | None, list[Any]]]:
        """(number of a query, the maker that writes its matches, the matches), by number."""
        assert self._make is not None
        return [
            (number, self._of[number].maker(self._make), picks)
            for number, picks in self(matches, as_picks=True)
        ]

    def part(self, number: int) -> Part:
        """A query with its part of the state."""
        return dict(self.parts())[number]

    def parts(self) -> list[tuple[int, Part]]:
        """(number of a query, the query with its part of the state)."""
        numbered = self.template.numbered
        states = PartStates(self.query, self.template)
        return [
            (
                query,
                Part(
                    self.query,
                    states,
                    self._public.queries[query],
                    number if numbered else None,
                    place,
                    self.matched[query],
                    self._embeddings.get(query),
                ),
            )
            for number, some in enumerate(self.template.members)
            for place, query in enumerate(some)
        ]


def divisions_of(
    shared: SharedProgram,
    queries: Sequence[QueryRun],
    silent: Collection[str] = (),
    matched: Mapping[int, int] = NO_MATCHES,
) -> dict[int, Division]:
    """Per query of a run that is a template: what divides its matches.

    Args:
        shared: The program.
        queries: The states of the queries that it evaluates.
        silent: The names of queries that have left a template, which drops their matches.
        matched: The matches so far, by the numbers of the queries.
    """
    public, found = shared.public, {}
    for number, template in shared.templates.items():
        division = Division(template, public, queries[number], shared.embeddings, silent)
        division.matched.update({n: matched.get(n, 0) for n in template.queries})
        found[number] = division
    return found


def _text(number: int) -> bytes:
    """A number as it occurs in matches."""
    return f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>'.encode()

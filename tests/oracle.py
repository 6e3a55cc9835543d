"""The reference semantics: every match of a query over whole, finite streams, by brute force.

`evaluate` follows docs/language.md literally: all derivations (`oracle_sequences`), then windows,
`EMIT`, `AFTER MATCH`, `DISTINCT` and `LIMIT` in the order in which results are returned, then
solutions and graphs. It shares only the parser with the engine. `LIMIT`, `DISTINCT` and `EMIT ANY`
keep the first in the order of results. If several results are equal in this order, `evaluate` takes
one of them, and `objection` also accepts the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import Any

import pyoxigraph as ox
from oracle_groups import Groups, instance
from oracle_patterns import Graphs, canonical, gpm_of, ordered
from oracle_sequences import Derivations, Entry, Instant, Layout, Reading, Window

from spaseq.parser import ast, parse
from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Fact, Term, Timestamp

XSD = "http://www.w3.org/2001/XMLSchema#"
Solution = Mapping[str, Term] | tuple[Fact, ...] | bool
Moment = tuple[int, int, int]
"""The instant of a result: (micros, -1 before | 0 at | 1 after its events, ordinal)."""
Chosen = tuple[str, str, int, int, tuple[tuple[str, Term], ...]]
"""A witness: GPM, stream, micros, ordinal, mapping."""


@dataclass(frozen=True)
class OracleMatch:
    """One match; `events` has (instant, position of the stream's declaration) for each event."""

    query: str
    start: int
    end: int
    moment: Moment
    solution: Solution
    witnesses: tuple[Chosen, ...]
    partition: tuple[Term | None, ...] = ()
    events: frozenset[tuple[Instant, int]] = frozenset()
    row: tuple[Term | None, ...] = ()
    """The variables of positive GPMs, in order of name."""
    order: tuple[Any, ...] = ()
    """Its place in the order of results; equal where the language leaves the order open."""
    results: int | None = None
    """The number of results of a group."""
    tied: tuple[tuple[Chosen, ...], ...] = ()
    """The witnesses of each result that may count as the newest one of a group."""
    per: tuple[Term | None, ...] = field(default=(), compare=False)
    """The values of the variables of PER."""
    entries: tuple[Entry, ...] = field(default=(), compare=False, repr=False)

    @property
    def waited(self) -> bool:
        """Whether the match was returned when its window closed."""
        return self.moment[1] != 0

    @property
    def first(self) -> Moment:
        """Its first instant, comparable with moments."""
        micros, ordinal = min(instant for instant, _ in self.events)
        return (micros, 0, ordinal)

    @property
    def last(self) -> Moment:
        """Its last instant, comparable with moments."""
        micros, ordinal = max(instant for instant, _ in self.events)
        return (micros, 0, ordinal)


def evaluate(
    queries: str | ast.Query | Sequence[str | ast.Query],
    events: Mapping[str, Sequence[Event]],
    kb: Mapping[str, Sequence[Fact]] | None = None,
    name: str = "q",
) -> list[OracleMatch]:
    """The results of one query, or of several that may read each other's streams."""
    single = isinstance(queries, str | ast.Query)
    given: Sequence[str | ast.Query] = [queries] if single else queries  # type: ignore[assignment, list-item]
    todo: list[tuple[str, ast.Query]] = []
    for number, item in enumerate(given, 1):
        query = parse(item) if isinstance(item, str) else item
        registered = query.register is not None and query.register.kind == "QUERY"
        label = query.register.name if registered and query.register else name
        todo.append((label if single or registered else f"{name}{number}", query))
    known = dict(events)
    out: list[OracleMatch] = []
    while todo:
        made = {q.register.name for _, q in todo if q.register and q.register.kind == "STREAM"}
        ready = next(item for item in todo if not made & {s.iri.value for s in item[1].streams})
        todo.remove(ready)
        reference = Reference(ready[1], known, kb or {}, ready[0])
        out += reference.output
        if ready[1].register is not None and ready[1].register.kind == "STREAM":
            known[ready[1].register.name] = reference.stream(ready[1].register.name)
    return sorted(out, key=lambda match: match.moment)


class Reference:
    """One query over its events."""

    def __init__(
        self,
        query: ast.Query,
        events: Mapping[str, Sequence[Event]],
        kb: Mapping[str, Sequence[Fact]],
        name: str = "q",
    ):
        assert query.within is not None
        self.query, self.name = query, name
        iris = {stream.name: stream.iri.value for stream in query.streams}
        self.declared = list(dict.fromkeys(iris.values()))
        self.events = sorted(
            (event for iri in self.declared for event in events.get(iri, ())),
            key=lambda event: event.instant,
        )
        self.partition = tuple(v.name for v in query.partition.variables) if query.partition else ()
        chosen = {source.iri.value for source in query.kbs}
        self.graphs = Graphs({g: f for g, f in kb.items() if not chosen or g in chosen})
        gpms = {define.name: gpm_of(define, iris) for define in query.defines}
        layout = Layout(gpms)
        root = layout.steps(query.sequence, (), False)
        self.positive = {n for p in layout.places if not p.negated for n in p.gpm.binds}
        self.reading = Reading(layout, self.partition, self.graphs)
        self.groups = None if query.groups is None else Groups(query, self.reading, self.positive)
        self.window = Window(query.within, tuple(event.instant for event in self.events))
        self.derivations = Derivations(
            root, self.reading, self.events, self.window, self.partition, list(gpms.values())
        )

    # -------------------------------------------------------------- all matches

    @cached_property
    def matches(self) -> list[OracleMatch]:
        """Every match of the SEQ in its window, before EMIT and the later clauses."""
        found: dict[object, OracleMatch] = {}
        for m, due in self.derivations.matches():
            match = self._match(m.entries, due)
            found.setdefault(
                (frozenset(match.witnesses), shown(match.solution), match.moment), match
            )
        ranks = self._ranks(found.values())
        return sorted(
            (replace(match, order=self._order(match, ranks)) for match in found.values()),
            key=lambda match: (match.moment, match.order, sorted(map(str, match.witnesses))),
        )

    def _match(self, entries: Sequence[Entry], due: int | None) -> OracleMatch:
        """`due`: the closing time or deadline at which the match is returned."""
        entries = sorted(entries, key=lambda e: (e.event.instant, e.place.index))
        first, last = entries[0].event, entries[-1].event
        end, moment = last.time.micros, (last.time.micros, 0, last.ordinal)
        if due is not None:
            tumbling = self.window.clause.kind == "tumbling" and due == self.window.closing(first)
            end, moment = due, (due, -1 if tumbling else 1, 0)
        solution = self.solution(entries)
        return OracleMatch(
            self.name,
            first.time.micros,
            end,
            moment,
            solution,
            tuple(
                (
                    e.place.gpm.name,
                    e.event.stream,
                    *e.event.instant,
                    tuple(sorted(e.mapping.items(), key=lambda item: item[0])),
                )
                for e in entries
            ),
            self.derivations.group_key(entries),
            frozenset((e.event.instant, self.declared.index(e.event.stream)) for e in entries),
            self._row(entries),
            entries=tuple(entries),
            per=self._per(entries, solution),
        )

    def _per(self, entries: Sequence[Entry], solution: Solution) -> tuple[Term | None, ...]:
        """The values of PER, from variables of positive GPMs or aliases of SELECT."""
        names = [] if self.query.limit is None else [name.name for name in self.query.limit.per]
        if self.groups is not None:
            return ()
        return tuple(
            self.reading.bare(name, (), entries) if name in self.positive else solution.get(name)  # type: ignore[union-attr]
            for name in names
        )

    def _row(self, entries: Sequence[Entry]) -> tuple[Term | None, ...]:
        if self.groups is not None:
            return tuple(term for _, term in sorted(self.groups.result(entries).items()))
        return tuple(self.reading.bare(name, (), entries) for name in sorted(self.positive))

    def solution(self, entries: Sequence[Entry]) -> Solution:
        form = self.query.form
        if self.groups is not None:
            found = self.groups.result(entries)
            return {name: term for name, term in found.items() if term is not None}
        if isinstance(form, ast.Ask):
            return True
        if isinstance(form, ast.Construct):
            return tuple(
                instance(form.template, partial(self.reading.bare, path=(), entries=entries))
            )
        found: dict[str, Term | None] = {}
        if form.items is None:
            found = {name: self.reading.bare(name, (), entries) for name in self.positive}
        for item in form.items or ():
            if item.alias is None:
                assert isinstance(item.expression, ast.Var)
                found[item.expression.name] = self.reading.bare(item.expression.name, (), entries)
            else:
                plain, slots = self.reading.plain(item.expression)
                values = {**self.reading.values(slots, (), entries, None)}
                values.update({n: v for n, v in found.items() if n in values and v is not None})
                found[item.alias.name] = self.graphs.value(plain, values, None)
        return {name: term for name, term in found.items() if term is not None}

    # -------------------------------------------------------------- order

    def _ranks(self, matches: Iterable[OracleMatch]) -> dict[Term, int]:
        """Each term's place in ORDER BY order; terms that it compares as equal share one."""
        terms = {term for m in matches for term in m.row if term is not None}
        ranks: dict[Term, int] = {}
        before: Term | None = None
        for term in ordered(sorted(terms, key=str)):
            level = before is not None and tied(before, term)
            ranks[term] = len(ranks) + 1 if before is None or not level else ranks[before]
            before = term
        return ranks

    def _order(self, match: OracleMatch, ranks: Mapping[Term, int]) -> tuple[Any, ...]:
        """The events' instants in the order of the provenance, their streams, the variables."""
        instants = tuple(witness[2:4] for witness in match.witnesses)
        streams = tuple(self.declared.index(witness[1]) for witness in match.witnesses)
        row = tuple(ranks[term] if term is not None else 0 for term in match.row)
        return (instants, streams, row)

    # -------------------------------------------------------------- what is returned

    @cached_property
    def output(self) -> list[OracleMatch]:
        """What is emitted, in order."""
        emitted = Emitted(self)
        moments = by_moment(self.matches)
        for _, matches in moments:
            left = self._left(emitted.alive(matches))
            emitted.take(left, [] if self.groups else self._limited(left, emitted))
        if self.groups is not None:
            shown = Emitted(self)
            for _, solutions in by_moment(self.groups.solutions(emitted.left)):
                shown.take([], self._limited(solutions, shown))
            return shown.output
        return emitted.output

    def _left(self, alive: Sequence[OracleMatch]) -> list[OracleMatch]:
        """The matches of one moment that EMIT leaves, in their order."""
        left = {id(match) for rivals in by_partition(alive) for match in self.emit(rivals)}
        return [match for match in alive if id(match) in left]

    @property
    def mode(self) -> str:
        return self.query.emit.mode if self.query.emit else "ALL"

    def emit(self, matches: Sequence[OracleMatch]) -> list[OracleMatch]:
        """Apply EMIT to the ordered matches of one partition and moment."""
        match self.mode:
            case "ANY":
                return [match for match in matches if match.events == matches[0].events]
            case "STRICT":
                return [match for match in matches if self._contiguous(match)]
            case "MAX":
                return [m for m in matches if not any(m.events < other.events for other in matches)]
            case "NEXT" | "LAST":
                return [m for m in matches if all(self._wins(m.events, o.events) for o in matches)]
        return list(matches)

    def _wins(self, one: frozenset[Any], other: frozenset[Any]) -> bool:
        difference = one ^ other
        if not difference:
            return True
        if self.mode == "NEXT":
            return min(difference) in one
        return max(difference, key=lambda event: (event[0], -event[1])) in one

    def _contiguous(self, match: OracleMatch) -> bool:
        instants = sorted({instant for instant, _ in match.events})
        return all(
            self.derivations.contiguous(after, before, match.partition)
            for after, before in pairwise(instants)
        )

    def _limited(self, matches: Sequence[OracleMatch], emitted: Emitted) -> list[OracleMatch]:
        if isinstance(self.query.form, ast.Ask):
            matches = matches[:1]
        taken: list[OracleMatch] = []
        for match in matches:
            if not emitted.allows(match, taken):
                continue
            fresh = all(shown(match.solution) != shown(other.solution) for other in taken)
            if not self.distinct or (fresh and not emitted.remembers(match)):
                taken.append(match)
        return taken

    @property
    def distinct(self) -> bool:
        return isinstance(self.query.form, ast.Select) and self.query.form.distinct

    def stream(self, iri: str) -> list[Event]:
        """The results of a CONSTRUCT as a stream."""
        terms = {event.time.micros: event.time for event in self.events}
        domain = self.events[0].time.domain if self.events else NUMBER
        seen: Counter[int] = Counter()
        out = []
        for match in self.output:
            assert isinstance(match.solution, tuple)
            time = terms.get(match.end, timestamp(match.end, domain))
            out.append(Event(iri, time, seen[match.end], match.solution))
            seen[match.end] += 1
        return out

    def closed_by_end(self, match: OracleMatch) -> bool:
        """Whether the match ends at a closing time or deadline that some stream has not passed."""
        if not match.waited:
            return False
        last = dict.fromkeys(self.declared, -(2**63))
        last.update((event.stream, event.time.micros) for event in self.events)
        before = match.moment[1] < 0
        return any(t < match.end if before else t <= match.end for t in last.values())

    # -------------------------------------------------------------- judging another choice

    def objection(self, results: Sequence[Any]) -> str:
        """Why these results (made comparable) are not those of the query; "" if they are.

        Any choice among results that are equal in the order of results is accepted.
        """
        if isinstance(self.query.form, ast.Ask):
            return difference(comparable(self.output), results)
        if self.groups is not None:
            return difference(self._chosen(results), results)
        waiting = Counter(results)
        later = Counter(key for match in self.matches for key in comparable([match]))
        strange = [key for key in results if key not in later]
        if strange:
            return f"no match at all: {strange[0]}"
        if waiting - later:
            return f"a match comes twice: {next(iter(waiting - later))}"
        emitted = Emitted(self)
        for moment, matches in by_moment(self.matches):
            left = self._left(emitted.alive(matches))
            wanted = self._limited(left, emitted)
            chosen = []
            for match in matches:
                (key,) = comparable([match])
                later[key] -= 1
                # One of equal results at two moments, before and after the events of one time.
                if waiting[key] > later[key] or (waiting[key] and match in wanted):
                    waiting[key] -= 1
                    chosen.append(match)
            wrong = self._objection_at(left, chosen, emitted)
            if wrong:
                return f"at {moment}: {wrong}"
            emitted.take(left, chosen)
        return ""

    def _chosen(self, results: Sequence[Any]) -> list[Any]:
        """The solutions of groups; where results are tied for the newest, those of `results`."""
        left, chosen = Counter(results), []
        for match in self.output:
            choices = comparable(replace(match, witnesses=some) for some in match.tied)
            found = next((choice for choice in choices if left[choice] > 0), choices[0])
            left[found] -= 1
            chosen.append(found)
        return chosen

    def _objection_at(
        self, left: list[OracleMatch], chosen: list[OracleMatch], emitted: Emitted
    ) -> str:
        """`left` are the matches that EMIT leaves, in their order."""
        solutions = [shown(match.solution) for match in chosen]
        if self.distinct and len(set(solutions)) < len(solutions):
            return "a solution comes twice"
        for match in chosen:
            if match not in left:
                return f"must not come out: {comparable([match])[0]}"
            if self.distinct and emitted.remembers(match):
                return f"DISTINCT drops: {comparable([match])[0]}"
        wanted = self._limited(left, emitted)
        places = [Counter((match.order, match.per) for match in some) for some in (chosen, wanted)]
        if places[0] != places[1]:
            lacking = [match for match in wanted if match not in chosen]
            surplus = [match for match in chosen if match not in wanted]
            return f"missing: {comparable(lacking)}, in its place: {comparable(surplus)}"
        return ""


class Emitted:
    """The results returned so far, and the later results that they rule out."""

    def __init__(self, reference: Reference):
        self._reference = reference
        self._closed: dict[tuple[Term | None, ...], Moment] = {}
        self._ended: list[tuple[tuple[Term | None, ...], Moment, Moment]] = []
        """SKIP TO: (partition, a first instant, a later one): those in between are dropped."""
        self._times: dict[object, int] = {}
        self._given: dict[tuple[Term | None, ...], list[int]] = {}
        """For each value of PER, the ends of the results returned."""
        self.output: list[OracleMatch] = []
        self.left: list[OracleMatch] = []

    def alive(self, matches: Iterable[OracleMatch]) -> list[OracleMatch]:
        """The matches whose partial matches AFTER MATCH has not dropped."""
        return [
            match
            for match in matches
            if (match.partition not in self._closed or match.first > self._closed[match.partition])
            and not any(
                match.partition == partition and (match.first == low or low <= match.first < high)
                for partition, low, high in self._ended
            )
        ]

    def remembers(self, match: OracleMatch) -> bool:
        """Whether DISTINCT drops it: its solution was returned less than ω ago."""
        within = self._reference.window.clause
        before = self._times.get(shown(match.solution))
        if before is None:
            return False
        ever = within.kind in ("events", "unbounded")
        return ever or match.end - before < within.microseconds

    def allows(self, match: OracleMatch, taken: Sequence[OracleMatch]) -> bool:
        """Whether LIMIT allows another result, after `taken` results of the same instant."""
        limit = self._reference.query.limit
        if limit is None:
            return True
        given = [other.end for other in taken if other.per == match.per]
        if limit.every is None:
            return len(given) < limit.count
        begin, count = None, 0
        for end in (*self._given.get(match.per, ()), *given, match.end):
            if begin is None or end >= begin + limit.every.microseconds:
                begin, count = end, 0
            count += 1
        return count <= limit.count

    def take(self, left: Sequence[OracleMatch], matches: Sequence[OracleMatch]) -> None:
        """Return these matches; AFTER MATCH acts on all matches that EMIT left."""
        query = self._reference.query
        self.left += left
        for match in matches:
            self._times[shown(match.solution)] = match.end
            self._given.setdefault(match.per, []).append(match.end)
        after = query.after_match
        if after and after.mode.startswith("SKIP TO"):
            for match in left:
                taken = [
                    (e.event.time.micros, 0, e.event.ordinal)
                    for e in match.entries
                    if e.place.gpm.name == after.name
                ]
                high = match.first
                if taken:
                    high = max(taken) if after.mode == "SKIP TO LAST" else min(taken)
                self._ended.append((match.partition, match.first, high))
        if after and after.mode == "SKIP PAST LAST EVENT":
            for match in left:
                known = self._closed.get(match.partition, match.last)
                self._closed[match.partition] = max(known, match.last)
        asks = isinstance(query.form, ast.Ask)
        self.output += matches[:1] if asks else matches


def by_moment(matches: Iterable[OracleMatch]) -> list[tuple[Moment, list[OracleMatch]]]:
    groups: dict[Moment, list[OracleMatch]] = {}
    for match in matches:
        groups.setdefault(match.moment, []).append(match)
    return sorted(groups.items(), key=lambda item: item[0])


def by_partition(matches: Iterable[OracleMatch]) -> list[list[OracleMatch]]:
    groups: dict[tuple[Term | None, ...], list[OracleMatch]] = {}
    for match in matches:
        groups.setdefault(match.partition, []).append(match)
    return list(groups.values())


def timestamp(micros: int, domain: str) -> Timestamp:
    """A closing time as an event's timestamp."""
    if domain == DATE_TIME:
        date = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
        text, kind = date.isoformat().replace("+00:00", "Z"), "dateTime"
        if "." in text:
            text = text.rstrip("Z").rstrip("0").rstrip(".") + "Z"
    else:
        text, kind = f"{Decimal(micros).scaleb(-6).normalize():f}", "decimal"
        kind = kind if "." in text else "integer"
    return Timestamp(micros, domain, ox.Literal(text, datatype=ox.NamedNode(XSD + kind)))


@cache
def tied(one: Term, other: Term) -> bool:
    """Whether ORDER BY compares two terms as equal: it leaves them in either order."""
    return ordered([one, other])[0] is one and ordered([other, one])[0] is other


# ------------------------------------------------------------------ comparing


def shown(value: Any) -> object:
    """A solution, a mapping or a graph in a canonical, hashable form; all blank nodes are equal."""
    if value is True:
        return value
    if isinstance(value, Mapping):
        return tuple(sorted((name, _shown(term)) for name, term in value.items()))
    dataset = ox.Dataset(ox.Quad(*fact) for fact in value)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return tuple(sorted(map(str, dataset)))


def _shown(term: Term) -> str:
    if isinstance(term, ox.BlankNode):
        return "_:"
    if isinstance(term, ox.Triple):
        return f"<<( {' '.join(map(_shown, term))} )>>"
    if isinstance(term, ox.Literal) and term.datatype.value == XSD + "double":
        return str(canonical(term))
    return str(term)


def comparable(matches: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Matches, the oracle's or the engine's, as sorted (query, start, end, solution, witnesses).

    For an ASK, only query and end count.
    """
    return sorted(map(_comparable, matches), key=repr)


def _comparable(match: Any) -> tuple[Any, ...]:
    if isinstance(match, OracleMatch):
        if match.solution is True:
            return (match.query, None, match.end, True, ())
        witnesses = tuple(sorted((*w[:4], shown(dict(w[4]))) for w in match.witnesses))
        counted = () if match.results is None else (match.results,)
        return (match.query, match.start, match.end, shown(match.solution), witnesses, *counted)
    if match.boolean is not None:
        return (match.query, None, match.end.micros, True, ())
    solution = shown(match.bindings if match.graph is None else match.graph)
    witnesses = tuple(
        sorted((w.gpm, w.stream, w.time.micros, w.ordinal, shown(w.bindings)) for w in match.events)
    )
    counted = () if match.results is None else (match.results,)
    return (match.query, match.start.micros, match.end.micros, solution, witnesses, *counted)


def difference(wanted: Sequence[tuple[Any, ...]], seen: Sequence[tuple[Any, ...]]) -> str:
    """The missing and the unexpected matches; "" if there are none."""
    missing, extra = Counter(wanted) - Counter(seen), Counter(seen) - Counter(wanted)
    lines = [f"missing:    {key}" for key in sorted(missing.elements(), key=repr)]
    return "\n".join(lines + [f"unexpected: {key}" for key in sorted(extra.elements(), key=repr)])

"""The TOML suite as data: what each case says, and the notation its matches are written in.

Turns `tests/suite/*.toml` into `Case`s (queries, events, knowledge base, expected results)
without the package's own parser, so that the suite judges the package and not itself.
The format is told in `tests/suite/README.md`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

import pyoxigraph as ox

from spaseq.rdf.event import DATE_TIME, NUMBER, Event, Fact, Term, Timestamp, with_nodes

T = TypeVar("T")
SUITE = Path(__file__).parent / "suite"
EXAMPLE = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
PREFIXES = f"@prefix : <{EXAMPLE}> . @prefix xsd: <{XSD}> . @prefix rdf: <{RDF}> . "
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KEYS = {
    "name", "section", "query", "queries", "events", "kb", "matches", "alternatives",
    "error", "line", "column", "warnings", "skip", "entail",
}  # fmt: skip


# ------------------------------------------------------------------ what a case says


@dataclass(frozen=True, slots=True)
class Witness:
    gpm: str
    stream: str
    micros: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class Result:
    """One result, expected or seen: `query` counts from 0.

    `witnesses` is None for an ASK. The solution is one of `bindings`, `graph` and True;
    `loose` names the variables that are compared by value.
    """

    query: int
    witnesses: tuple[Witness, ...] | None
    end: int
    bindings: Mapping[str, Term] = field(default_factory=dict)
    graph: frozenset[Fact] | None = None
    boolean: bool = False
    loose: frozenset[str] = frozenset()
    group: tuple[int, int] | None = None
    """Of a group of results: the start, and the number of results."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One line of a case's `events`: blank nodes still bear the labels of the text."""

    stream: str
    text: str
    micros: int
    ordinal: int
    facts: tuple[Fact, ...]

    @property
    def time(self) -> Timestamp:
        return timestamp(self.text)

    @property
    def python_time(self) -> datetime | int | float:
        """The time as `Run.push` takes it."""
        if is_date(self.text):
            return instant_of(self.text)
        return int(self.text) if re.fullmatch(r"-?\d+", self.text) else float(self.text)


@dataclass(frozen=True)
class Case:
    name: str
    file: str
    section: str
    queries: tuple[str, ...]
    arrivals: tuple[Arrival, ...]
    kb: Mapping[str, tuple[Fact, ...]]
    alternatives: tuple[tuple[Result, ...], ...]
    error: str | None
    line: int | None
    column: int | None
    warnings: tuple[str, ...]
    skip: Mapping[str, str]
    entail: str | None = None

    def __str__(self) -> str:
        return f"{self.file}/{self.name}"

    @cached_property
    def streams(self) -> dict[str, list[Event]]:
        """The events of each stream, blank nodes named apart."""
        out: dict[str, list[Event]] = {}
        for number, arrival in enumerate(self.arrivals):
            facts = [_relabel(fact, f"e{number}") for fact in arrival.facts]
            event = Event(arrival.stream, arrival.time, arrival.ordinal, facts)
            out.setdefault(arrival.stream, []).append(event)
        return out

    @cached_property
    def merged(self) -> tuple[Arrival, ...]:
        """The events in an order in which a run takes them: by timestamp, streams in order."""
        return tuple(sorted(self.arrivals, key=lambda arrival: arrival.micros))

    @property
    def names(self) -> list[str]:
        """What the queries' results say they come from: the registered name, or `q1`, …"""
        return [_registered(query) or f"q{number}" for number, query in enumerate(self.queries, 1)]

    @property
    def single_stream(self) -> bool:
        declared = {iri for query in self.queries for iri in _declared(query).values()}
        return len(declared) == 1 and len(self.queries) == 1


# ------------------------------------------------------------------ loading


@cache
def load() -> tuple[Case, ...]:
    """Every case of every file, in file order; names are unique over the suite."""
    cases: list[Case] = []
    for path in sorted(SUITE.glob("*.toml")):
        for table in tomllib.loads(path.read_text(encoding="utf-8"))["case"]:
            try:
                cases.append(_case(table, path.stem))
            except Exception as error:
                raise ValueError(f"{path.name}, case {table.get('name')!r}: {error}") from error
    names = [case.name for case in cases]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"cases with one name: {', '.join(twice)}")
    return tuple(cases)


def _case(table: Mapping[str, object], file: str) -> Case:
    unknown = set(table) - KEYS
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    texts = table["queries"] if "queries" in table else [table["query"]]
    assert isinstance(texts, list)
    queries = tuple(_with_prefix(text) for text in texts)
    if len({"error", "matches", "alternatives"} & set(table)) != 1:
        raise ValueError("a case has one of error, matches and alternatives")
    wanted = table.get("alternatives", [table.get("matches", [])])
    kb = table.get("kb", {})
    assert isinstance(wanted, list)
    assert isinstance(kb, dict)
    warnings = table.get("warnings", [])
    assert isinstance(warnings, list)
    return Case(
        name=str(table["name"]),
        file=file,
        section=str(table["section"]),
        queries=queries,
        arrivals=tuple(_arrivals(str(table.get("events", "")))),
        kb={
            iri: tuple(_relabel(fact, f"kb{number}") for fact in turtle(text))
            for number, (iri, text) in enumerate(kb.items())
        },
        alternatives=tuple(tuple(expected(line, queries) for line in lines) for lines in wanted),
        error=_optional(table, "error", str),
        line=_optional(table, "line", int),
        column=_optional(table, "column", int),
        warnings=tuple(warnings),
        skip=dict(table.get("skip", {})),  # type: ignore[call-overload]
        entail=_optional(table, "entail", str),
    )


def _optional(table: Mapping[str, object], key: str, kind: type[T]) -> T | None:
    value = table.get(key)
    if value is not None and not isinstance(value, kind):
        raise ValueError(f"{key} must be a {kind.__name__}")
    return value


def _with_prefix(query: str) -> str:
    text = query.strip("\n")
    return text if re.search(r"PREFIX\s+:", text, re.I) else f"PREFIX : <{EXAMPLE}> " + text


def _arrivals(text: str) -> Iterator[Arrival]:
    seen: dict[tuple[str, int], int] = {}
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, time, *triples = line.split(None, 2)
        stream, micros = EXAMPLE + name, micros_of(time)
        ordinal = seen.get((stream, micros), 0)
        seen[stream, micros] = ordinal + 1
        yield Arrival(stream, time, micros, ordinal, tuple(turtle(" ".join(triples))))


# ------------------------------------------------------------------ times and terms


def is_date(text: str) -> bool:
    return re.match(r"-?\d{4,}-\d\d-\d\d", text) is not None


def instant_of(text: str) -> datetime:
    date = datetime.fromisoformat(text)
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def micros_of(text: str) -> int:
    if is_date(text):
        gap = instant_of(text) - EPOCH
        return (gap.days * 86_400 + gap.seconds) * 1_000_000 + gap.microseconds
    return int(Decimal(text) * 1_000_000)


def timestamp(text: str) -> Timestamp:
    """A time of an event line, as the engine holds it."""
    micros = micros_of(text)
    if is_date(text):
        lexical = instant_of(text).astimezone(UTC).isoformat().replace("+00:00", "Z")
        lexical = re.sub(r"(\.\d*?)0+Z", r"\1Z", lexical).replace(".Z", "Z")
        return Timestamp(micros, DATE_TIME, _typed(lexical, "dateTime"))
    kind = "integer" if re.fullmatch(r"-?\d+", text) else "decimal"
    return Timestamp(micros, NUMBER, _typed(text, kind))


def _typed(lexical: str, datatype: str) -> ox.Literal:
    return ox.Literal(lexical, datatype=ox.NamedNode(XSD + datatype))


def turtle(text: str) -> list[Fact]:
    """The distinct triples of a piece of Turtle whose last dot may be missing."""
    if not text.strip():
        return []
    quads = ox.parse(PREFIXES + text.rstrip(" .\n") + " .", format=ox.RdfFormat.TURTLE)
    return list(dict.fromkeys((quad.subject, quad.predicate, quad.object) for quad in quads))


def _relabel(fact: Fact, scope: str) -> Fact:
    subject, predicate, object_ = (
        with_nodes(term, lambda node: ox.BlankNode(f"{scope}x{node.value}")) for term in fact
    )
    return (subject, predicate, object_)


# ------------------------------------------------------------------ the notation of matches

_WITNESS = re.compile(r"(?P<gpm>\w+)@(?:(?P<stream>\w+)/)?(?P<time>[^\s#]+)(?:#(?P<ordinal>\d+))?")


def expected(line: str, queries: Sequence[str]) -> Result:
    """`q2: A@1 B@T/2#1 @end=12 | ?x=1 ?y~2.5`, read."""
    number = 0
    named = re.match(r"q(\d+): ", line)
    if named:
        number, line = int(named[1]) - 1, line[named.end() :]
    elif len(queries) > 1:
        raise ValueError(f"with several queries a match begins with the query's name: {line}")
    head, bar, solution = line.partition("|")
    if not bar:
        raise ValueError(f"a match needs a '|' in front of its solution: {line}")
    witnesses: list[Witness] = []
    end: int | None = None
    group: tuple[int, int] | None = None
    for token in head.split():
        if token.startswith("@end="):
            end = micros_of(token.removeprefix("@end="))
        elif token.startswith("@results="):
            count, start = token.removeprefix("@results=").split("/")
            group = micros_of(start), int(count)
        else:
            witnesses.append(_expected_witness(token, queries[number]))
    solution = solution.strip()
    asks = solution == "true"
    if end is None:
        end = max(witness.micros for witness in witnesses)
    shown = None if asks else tuple(witnesses)
    if solution.startswith("{"):
        graph = frozenset(turtle(solution.strip("{}")))
        return Result(number, shown, end, graph=graph, group=group)
    bindings, loose = _solution("" if asks else solution)
    return Result(number, shown, end, bindings, boolean=asks, loose=loose, group=group)


def _expected_witness(token: str, query: str) -> Witness:
    parts = _WITNESS.fullmatch(token)
    if parts is None:
        raise ValueError(f"{token!r} is no witness (GPM@[STREAM/]TIME[#ordinal])")
    declared = _declared(query)
    reads = re.search(rf"\bDEFINE\s+GPM\s+{parts['gpm']}\s+ON\s+(\w+(?:\s*,\s*\w+)*)", query, re.I)
    if reads is None:
        raise ValueError(f"{token!r}: the query defines no such GPM")
    streams = {declared[name.strip()] for name in reads[1].split(",")}
    named = EXAMPLE + parts["stream"] if parts["stream"] else None
    if named is None and len(streams) > 1:
        raise ValueError(f"{token!r} must name its stream")
    stream = named or next(iter(streams))
    return Witness(parts["gpm"], stream, micros_of(parts["time"]), int(parts["ordinal"] or 0))


def _registered(query: str) -> str | None:
    """The name under which a query is registered, or the IRI of its stream."""
    found = re.search(r"\bREGISTER\s+(?:QUERY\s+(\w+)|STREAM\s+:(\w+))", query, re.I)
    return found and (found[1] or EXAMPLE + found[2])


def _declared(query: str) -> dict[str, str]:
    """The query's stream names and their IRIs, read off its text."""
    return {
        name: iri or EXAMPLE + local
        for name, iri, local in re.findall(
            r"\bFROM\s+STREAM\s+(\w+)\s+(?:<([^>]*)>|:(\w+))", query, re.I
        )
    }


def _solution(text: str) -> tuple[dict[str, Term], frozenset[str]]:
    marks = list(re.finditer(r"(?:^|(?<=\s))\?(\w+)([=~])", text))
    if text and (not marks or marks[0].start() != 0):
        raise ValueError(f"{text!r} is no solution (?x=1 ?y=:e)")
    bindings: dict[str, Term] = {}
    ends = [*(mark.start() for mark in marks[1:]), len(text)][: len(marks)]
    for mark, end in zip(marks, ends, strict=True):
        value = text[mark.end() : end].strip()
        bindings[mark[1]] = ox.BlankNode("any") if value == "_:" else _term(value)
    return bindings, frozenset(mark[1] for mark in marks if mark[2] == "~")


def _term(text: str) -> Term:
    return turtle(f":s :p {text}")[0][2]


# ------------------------------------------------------------------ comparing


def differences(wanted: Sequence[Result], seen: Sequence[Result]) -> str:
    """What is missing and what is too much, in the suite's notation; "" where both agree."""
    left = list(seen)
    missing = []
    for result in wanted:
        found = next((one for one in left if _same(result, one)), None)
        if found is None:
            missing.append(result)
        else:
            left.remove(found)
    lines = [f"missing:    {show(result)}" for result in missing]
    return "\n".join(lines + [f"unexpected: {show(result)}" for result in left])


def _same(wanted: Result, seen: Result) -> bool:
    if (wanted.query, wanted.end, wanted.boolean) != (seen.query, seen.end, seen.boolean):
        return False
    if wanted.witnesses is not None and wanted.witnesses != seen.witnesses:
        return False
    if wanted.witnesses is not None and wanted.group != seen.group:
        return False
    if wanted.graph is not None or seen.graph is not None:
        return _isomorphic(wanted.graph or (), seen.graph or ())
    if wanted.bindings.keys() != seen.bindings.keys():
        return False
    return all(
        _agrees(value, seen.bindings[name], name in wanted.loose)
        for name, value in wanted.bindings.items()
    )


def _agrees(wanted: Term, seen: Term, loose: bool) -> bool:
    if isinstance(wanted, ox.BlankNode):
        return isinstance(seen, ox.BlankNode)
    if isinstance(wanted, ox.Triple) and isinstance(seen, ox.Triple):
        return all(_agrees(a, b, loose) for a, b in zip(wanted, seen, strict=True))
    if loose and isinstance(wanted, ox.Literal) and isinstance(seen, ox.Literal):
        return abs(float(wanted.value) - float(seen.value)) < 1e-9
    return wanted == seen


def _isomorphic(one: Iterable[Fact], other: Iterable[Fact]) -> bool:
    def canonical(facts: Iterable[Fact]) -> ox.Dataset:
        dataset = ox.Dataset(ox.Quad(*fact) for fact in facts)  # type: ignore[arg-type]
        dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
        return dataset

    return canonical(one) == canonical(other)


def show(result: Result) -> str:
    """A result in the notation of the suite."""
    parts = [f"q{result.query + 1}:"] if result.query else []
    for witness in result.witnesses or ():
        stream = witness.stream.removeprefix(EXAMPLE)
        ordinal = f"#{witness.ordinal}" if witness.ordinal else ""
        parts.append(f"{witness.gpm}@{stream}/{_seconds(witness.micros)}{ordinal}")
    if result.group is not None and result.witnesses:
        parts.append(f"@results={result.group[1]}/{_seconds(result.group[0])}")
    parts.append(f"@end={_seconds(result.end)} |")
    if result.boolean:
        parts.append("true")
    elif result.graph is not None:
        parts.append("{ " + " . ".join(sorted(_facts(result.graph))) + " }")
    else:
        parts += [f"?{name}={_shown(term)}" for name, term in sorted(result.bindings.items())]
    return " ".join(parts)


def _facts(graph: Iterable[Fact]) -> Iterator[str]:
    for fact in graph:
        yield " ".join(_shown(term) for term in fact)


def _seconds(micros: int) -> str:
    if abs(micros) > 10**14:
        return datetime.fromtimestamp(micros / 1e6, UTC).isoformat()
    return f"{Decimal(micros) / 1_000_000:f}"


def _shown(term: Term) -> str:
    if isinstance(term, ox.Triple):
        return f"<<( {' '.join(map(_shown, term))} )>>"
    text = str(term)
    if isinstance(term, ox.Literal) and term.datatype.value == XSD + "integer":
        return term.value
    if isinstance(term, ox.NamedNode) and term.value.startswith(EXAMPLE):
        return ":" + term.value.removeprefix(EXAMPLE)
    return text.replace(f"<{XSD}", "xsd:").removesuffix(">") if XSD in text else text

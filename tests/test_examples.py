"""The examples do what their READMEs say: command, matches, meaning, and vocabulary.

For each folder of `examples/`: the command in its README prints the matches in
`expected.jsonl`, and the reference semantics finds the same ones in the same files.
"""

from __future__ import annotations

import json
import re
import runpy
import shlex
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pyoxigraph as ox
import pytest
from oracle import OracleMatch, difference, evaluate

import spaseq
from spaseq.cli import main
from spaseq.generate import DATASETS, write
from spaseq.io.source import Source
from spaseq.parser import parse
from spaseq.rdf.event import Event, Term

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/expected.jsonl"))
QUERIES = sorted(path for name in NAMES for path in (EXAMPLES / name).glob("*.rq"))
STANDING = sorted(EXAMPLES.glob("*/standing/*.rq"))
"""Queries of the demonstration of the server, over generated streams."""
LONG = ("head-and-shoulders", "v-shape")
"""Queries for which the reference takes long: it is given the first half of their events."""
OWN = "http://w3id.org/spaseq/"
XSD = "http://www.w3.org/2001/XMLSchema#"
NUMBERS = {XSD + kind for kind in ("integer", "decimal", "double")}
TURTLE = ox.RdfFormat.TURTLE


# ------------------------------------------------------------------ what the command prints


def command(name: str) -> list[str]:
    """The arguments of the one `spaseq run` command in an example's README."""
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 1, f"the README of {name} has {len(blocks)} commands"
    words = shlex.split(blocks[0].replace("\\\n", " "))
    assert words[:2] == ["spaseq", "run"]
    return words[1:]


def expected(name: str) -> list[dict[str, Any]]:
    lines = (EXAMPLES / name / "expected.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def comparable_line(line: Mapping[str, Any]) -> str:
    """A line as text, the triples of a graph in one order."""
    line = dict(line)
    if "graph" in line:
        line["graph"] = sorted(line["graph"].splitlines())
    return json.dumps(line, sort_keys=True)


@pytest.mark.parametrize("name", NAMES)
def test_the_command_in_the_readme_prints_the_expected_matches(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(command(name)) == 0
    out, err = capfd.readouterr()
    assert err == ""
    printed = [json.loads(line) for line in out.splitlines()]
    assert sorted(map(comparable_line, printed)) == sorted(map(comparable_line, expected(name)))


@pytest.mark.parametrize("name", NAMES)
def test_every_query_of_an_example_has_between_three_and_forty_matches(name: str) -> None:
    found = [line["query"] for line in expected(name)]
    for path in (EXAMPLES / name).glob("*.rq"):
        assert 3 <= found.count(path.stem) <= 40, path


@pytest.mark.parametrize("name", NAMES)
def test_an_example_stays_small(name: str) -> None:
    assert sum(path.stat().st_size for path in (EXAMPLES / name).iterdir()) < 200_000


# ------------------------------------------------------------------ what the language says


@cache
def events(file: Path, stream: str) -> tuple[Event, ...]:
    return tuple(Source(stream, [str(file)]))


def meaning(path: Path, folder: Path, until: int | None = None) -> list[OracleMatch]:
    """The matches of a query over the streams and the knowledge base of a folder.

    Args:
        path: The query.
        folder: The folder.
        until: The time of the last event to be read, in microseconds.
    """
    query = parse(path.read_text(encoding="utf-8"))
    streams = {
        stream.iri.value: [
            event
            for event in events(folder / f"{stream.name}.trig", stream.iri.value)
            if until is None or event.time.micros <= until
        ]
        for stream in query.streams
    }
    facts = [
        (triple.subject, triple.predicate, triple.object)
        for triple in ox.parse(path=folder / "kb.ttl", format=TURTLE)
    ]
    return evaluate(query, streams, {query.kbs[0].iri.value: facts}, path.stem)


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_reference_semantics_finds_the_expected_matches(path: Path) -> None:
    wanted = [_of_line(line) for line in expected(path.parent.name) if line["query"] == path.stem]
    until = None
    if path.stem in LONG:
        # Without a negation, a match depends on no event after its last one.
        trades = events(path.parent / "trades.trig", parse(path.read_text()).streams[0].iri.value)
        until = trades[len(trades) // 2].time.micros
        wanted = [match for match in wanted if match[1] <= until]
    assert wanted
    seen = [_of_oracle(match) for match in meaning(path, path.parent, until)]
    assert not difference(wanted, seen)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with some hours of the streams that the demonstration of the server generates."""
    folder = tmp_path_factory.mktemp("live")
    generator = runpy.run_path(str(EXAMPLES / "smart-grid" / "live.py"))
    grid, start = generator["Grid"](Random(7)), datetime(2026, 1, 1, tzinfo=UTC)
    for when, happened in islice(generator["instants"](grid, start), 300):
        for stream in ("weather", "power", "storage"):
            if triples := [triple for name, triple in happened if name == stream]:
                with open(folder / f"{stream}.trig", "a", encoding="utf-8") as file:
                    file.write(generator["trig"](stream, when, triples))
    shutil.copy(EXAMPLES / "smart-grid" / "kb.ttl", folder)
    return folder


@pytest.mark.parametrize("path", STANDING, ids=lambda path: path.stem)
def test_a_standing_query_finds_what_the_reference_does(path: Path, live: Path) -> None:
    query = parse(path.read_text("utf-8"))
    streams = {stream.name: live / f"{stream.name}.trig" for stream in query.streams}
    kb = {query.kbs[0].iri.value: live / "kb.ttl"}
    found = [_of_line(json.loads(match.to_json())) for match in spaseq.run(path, streams, kb)]
    assert found
    assert not difference(found, [_of_oracle(match) for match in meaning(path, live)])


def _of_line(line: Mapping[str, Any]) -> tuple[Any, ...]:
    witnesses = tuple(
        (event["gpm"], event["stream"], _micros(event["time"]), event["ordinal"])
        for event in line["events"]
    )
    if "graph" in line:
        triples = ox.parse(line["graph"], format=ox.RdfFormat.N_TRIPLES)
        solution = frozenset((str(t.subject), str(t.predicate), str(t.object)) for t in triples)
    else:
        solution = frozenset(
            (name, _value(term["value"], term.get("datatype", ""), term["type"]))
            for name, term in line["bindings"].items()
        )
    return (_micros(line["start"]), _micros(line["end"]), solution, witnesses)


def _of_oracle(match: OracleMatch) -> tuple[Any, ...]:
    if isinstance(match.solution, tuple):
        solution = frozenset(tuple(map(str, fact)) for fact in match.solution)
    else:
        assert isinstance(match.solution, Mapping)
        solution = frozenset((name, _term(term)) for name, term in match.solution.items())
    return (match.start, match.end, solution, tuple(witness[:4] for witness in match.witnesses))


def _term(term: Term) -> tuple[str, object]:
    if isinstance(term, ox.Literal):
        return _value(term.value, term.datatype.value, "literal")
    return _value(term.value, "", "uri")


def _value(text: str, datatype: str, kind: str) -> tuple[str, object]:
    """A term, a number by its value: how a computed one is spelled is nobody's promise."""
    if datatype in NUMBERS:
        return ("number", Decimal(text))
    return (kind, text)


def _micros(lexical: str) -> int:
    return round(datetime.fromisoformat(lexical).timestamp() * 1_000_000)


# ------------------------------------------------------------------ vocabulary


@cache
def declared() -> frozenset[str]:
    """The terms that the vocabularies in `ontologies/` declare."""
    terms: set[str] = set()
    for path in (ROOT / "ontologies").glob("*.ttl"):
        terms |= {
            triple.subject.value
            for triple in ox.parse(path=path, format=TURTLE)
            if triple.predicate.value.endswith("#type") and isinstance(triple.subject, ox.NamedNode)
        }
    return frozenset(terms)


def own_terms(quads: Iterator[ox.Quad]) -> set[str]:
    found: set[str] = set()
    for quad in quads:
        for term in (quad.subject, quad.predicate, quad.object, quad.graph_name):
            iri = term.datatype if isinstance(term, ox.Literal) else term
            if isinstance(iri, ox.NamedNode) and iri.value.startswith(OWN):
                found.add(iri.value)
    return found


@pytest.mark.parametrize(
    "path",
    sorted(path for path in EXAMPLES.glob("*/*") if path.suffix in (".ttl", ".trig")),
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_the_data_of_the_examples_use_declared_terms_only(path: Path) -> None:
    assert own_terms(ox.parse(path=path)) <= declared()


@pytest.mark.parametrize("name", DATASETS)
def test_generated_data_use_declared_terms_only(name: str, tmp_path: Path) -> None:
    *streams, kb, _ = write(name, 500, 1, tmp_path)
    for path in [*streams, kb]:
        assert own_terms(ox.parse(path=path)) <= declared()


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_queries_use_declared_terms_only(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    prefixes = dict(re.findall(r"PREFIX (\w+): <([^>]*)>", text))
    body = re.sub(r'"[^"]*"|<[^>]*>|#.*', "", text)
    used = {
        prefixes[prefix] + local
        for prefix, local in re.findall(r"\b(\w+):(\w+)", body)
        if prefixes.get(prefix, "").startswith(OWN)
    }
    assert used
    assert used <= declared()


@pytest.mark.parametrize("syntax", ["trig", "nquads"])
def test_matches_written_as_rdf_use_declared_terms_only(
    syntax: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    formats = {"trig": ox.RdfFormat.TRIG, "nquads": ox.RdfFormat.N_QUADS}
    used: set[str] = set()
    for name in NAMES:
        assert main([*command(name), "--format", syntax]) == 0
        used |= own_terms(ox.parse(capfd.readouterr().out, format=formats[syntax]))
    assert {f"{OWN}ontology#{term}" for term in ("Match", "EventMatch", "hasEvent")} <= used
    assert used <= declared()


@pytest.mark.parametrize("path", sorted((ROOT / "ontologies").glob("*.ttl")), ids=lambda p: p.stem)
def test_every_declared_term_is_labelled_and_explained(path: Path) -> None:
    rdfs = "http://www.w3.org/2000/01/rdf-schema#"
    triples = list(ox.parse(path=path, format=TURTLE))
    about: dict[str, set[str]] = {}
    for triple in triples:
        if isinstance(triple.subject, ox.NamedNode):
            about.setdefault(triple.subject.value, set()).add(triple.predicate.value)
    for term, predicates in about.items():
        assert {rdfs + "label", rdfs + "comment"} <= predicates, term


def test_the_readme_of_the_ontologies_explains_every_term() -> None:
    text = (ROOT / "ontologies" / "README.md").read_text(encoding="utf-8")
    for term in declared():
        _, mark, local = term.rpartition("#")
        if mark:
            assert f"`{local}`" in text, term
        else:
            assert f"<{term}#>" in text, term

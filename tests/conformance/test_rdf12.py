"""The W3C suites of RDF 1.2: what events and knowledge bases make of every file.

Syntax tests: a file is read or refused. Evaluation tests of TriG: the triples are those of the
result, up to the labels of blank nodes. Canonical N-Triples: the terms are written as the result
has them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox
import pytest

from spaseq.errors import InputError, KbError
from spaseq.io.read_options import Framing, ReadOptions
from spaseq.io.source import Source
from spaseq.kb import open_kb
from spaseq.rdf.event import Fact, n_triples

DATA = os.environ.get("SPASEQ_DATA")
ROOT = Path(DATA or ".", "w3c", "rdf", "rdf12")
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
SUITES = (
    "rdf-n-triples/syntax", "rdf-n-triples/c14n", "rdf-n-quads/syntax", "rdf-n-quads/c14n",
    "rdf-trig/syntax", "rdf-trig/eval",
)  # fmt: skip

pytestmark = pytest.mark.skipif(DATA is None, reason="SPASEQ_DATA does not name the data sets")


def entries(suite: str) -> Iterator[tuple[str, Path, Path | None]]:
    """(kind, action, result) of each test of a manifest."""
    folder = ROOT / suite
    base = folder.as_uri() + "/"
    quads = list(ox.parse(path=folder / "manifest.ttl", base_iri=base))

    def of(subject: object, name: ox.NamedNode) -> Path | None:
        found = [q.object.value for q in quads if (q.subject, q.predicate) == (subject, name)]  # type: ignore[union-attr]
        return Path(found[0].removeprefix("file://")) if found else None

    for quad in quads:
        if quad.predicate == TYPE and "Test" in str(quad.object):
            action = of(quad.subject, ox.NamedNode(MF + "action"))
            if action is not None:
                kind = str(quad.object).rstrip(">").rpartition("#")[2]
                yield kind, action, of(quad.subject, ox.NamedNode(MF + "result"))


def of_kb(path: Path) -> list[Fact] | None:
    try:
        return list(open_kb({"http://e/kb": path}).graph(ox.NamedNode("http://e/kb")).facts)
    except KbError:
        return None


def of_event(path: Path) -> list[Fact] | None:
    options = ReadOptions(framing=Framing.parse("message"), arrival_time=True)
    try:
        return [fact for event in Source("urn:s", [str(path)], options) for fact in event.facts]
    except InputError as error:
        # A file without statements has no event, and is no error of the syntax.
        return [] if "no event in this file" in str(error) else None


def canonical(facts: list[Fact]) -> list[str]:
    dataset = ox.Dataset(ox.Quad(*fact) for fact in facts)  # type: ignore[arg-type]
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return sorted(map(str, dataset))


@pytest.mark.parametrize("suite", SUITES)
def test_files_are_read_or_refused(suite: str) -> None:
    count = 0
    for kind, action, result in entries(suite):
        count += 1
        for facts in (of_kb(action), of_event(action)):
            assert (facts is None) == ("Negative" in kind), action
            if facts is None or result is None:
                continue
            wanted = [(q.subject, q.predicate, q.object) for q in ox.parse(path=result)]
            assert canonical(facts) == canonical(list(dict.fromkeys(wanted))), action
    assert count >= 12


@pytest.mark.parametrize("suite", [each for each in SUITES if each.endswith("c14n")])
def test_terms_are_written_in_canonical_form(suite: str) -> None:
    for _, action, result in entries(suite):
        facts = of_kb(action)
        assert facts is not None
        assert result is not None
        lines = {" ".join(map(n_triples, fact)).replace("_:kb0.", "_:") for fact in facts}
        for line in result.read_text("utf-8").splitlines():
            statement = line.removesuffix(".").rstrip()
            assert any(statement.startswith(each) for each in lines), action

"""The W3C's N-Triples, N-Quads, Turtle and TriG suites, and published streams, as input.

The statements of a file are those its own parser gives, whatever way the reader cuts it;
what the suites call bad is an error with a line. Positive tests with triple terms or base
direction are statements like any other here; events refuse triple terms later.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyoxigraph as ox
import pytest
from reading import options

from spaseq.errors import InputError
from spaseq.io.lines import Lines
from spaseq.io.messages import message_statements
from spaseq.io.read_options import Counters, Troubles
from spaseq.io.recognition import extension_syntax
from spaseq.io.source import Source
from spaseq.io.statements import Statement, block_statements, document_statements
from spaseq.rdf.formats import parser_format

DATA = os.environ.get("SPASEQ_DATA")
pytestmark = pytest.mark.skipif(DATA is None, reason="SPASEQ_DATA does not name the data sets")
ROOT = Path(DATA or ".")
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
SUITES = [
    "rdf11/rdf-n-triples", "rdf11/rdf-n-quads", "rdf11/rdf-turtle", "rdf11/rdf-trig",
    "rdf12/rdf-n-triples/syntax", "rdf12/rdf-n-quads/syntax", "rdf12/rdf-trig/syntax",
]  # fmt: skip


def suite_files(suite: str) -> Iterator[tuple[Path, bool]]:
    """(file, whether it is to be accepted) for every syntax test of a manifest."""
    folder = ROOT / "w3c" / "rdf" / suite
    base = folder.as_uri() + "/"
    action = ox.NamedNode(MF + "action")
    quads = list(ox.parse(path=folder / "manifest.ttl", base_iri=base))
    typed = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    kinds = {q.subject: q.object.value for q in quads if q.predicate == typed}  # type: ignore[union-attr]
    for quad in quads:
        if quad.predicate == action and quad.subject in kinds:
            name = quad.object.value.removeprefix(base)  # type: ignore[union-attr]
            if "Syntax" in kinds[quad.subject]:
                yield folder / name, "Positive" in kinds[quad.subject]


def statements(path: Path, messages: bool = False) -> list[Statement]:
    known = extension_syntax(str(path))
    assert known is not None
    troubles = Troubles("stop", Counters())
    with closing(Lines(str(path))) as lines:
        if known.syntax.line_based:
            return [
                statement
                for first, block in lines.blocks()
                for statement in block_statements(first, block, str(path), known.syntax, troubles)
            ]
        read = message_statements if messages else document_statements
        return list(read(lines, known.syntax, troubles))


@pytest.mark.parametrize("suite", SUITES)
def test_w3c_syntax(suite: str) -> None:
    judged = 0
    for path, accepted in suite_files(suite):
        for messages in {False, "rdf11" in suite and path.suffix in (".ttl", ".trig")}:
            judged += 1
            if not accepted:
                with pytest.raises(InputError, match=r":\d+: not "):
                    statements(path, messages)
                continue
            read = [quad for quad, _ in statements(path, messages)]
            assert len(read) == len(set(read)) or path.suffix != ".nt"
            known = _parsed(path)
            assert _named(read) == _named(known), path
    assert judged > 20


def _parsed(path: Path) -> list[ox.Quad]:
    known = extension_syntax(str(path))
    assert known is not None
    data = b"\n".join(
        b"" if line.startswith(b"VERSION") else line for line in path.read_bytes().split(b"\n")
    )
    return list(ox.parse(data, format=parser_format(known.syntax), base_iri=path.as_uri()))


def _named(quads: list[ox.Quad | None]) -> list[str]:
    """Quads as text, minted blank nodes by the order in which they occur."""
    numbers: dict[str, str] = {}
    return [
        " ".join(
            numbers.setdefault(word, f"_:{len(numbers)}") if word.startswith("_:") else word
            for word in str(quad).split(" ")
        )
        for quad in quads
    ]


def test_lines_are_those_of_the_text() -> None:
    path = ROOT / "rdf-streams" / "jelly-samples" / "nq-syntax-tests.nq"
    text = path.read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    read = statements(path)
    for quad, line in read:
        assert quad is not None
        assert _named(list(ox.parse(text[line - 1], format=ox.RdfFormat.N_QUADS))) == _named([quad])
    assert len(read) == 42


def test_weather_stream() -> None:
    path = str(ROOT / "rdf-streams" / "assist-iot-weather.nq.gz")
    result_time = "http://www.w3.org/ns/sosa/resultTime"
    source = Source("urn:w", [path], options(time_predicate=result_time))
    events = list(source)
    assert len(events) == 869
    assert {len(event.facts) for event in events} == {115}
    assert events[0].time.term.value == "2023-01-02T15:36:37.065535Z"
    assert (source.counters.statements, source.counters.unused) == (99_935, 0)
    with pytest.raises(InputError, match=r"weather\.nq\.gz:1: the graph <.*> has no timestamp"):
        list(Source("urn:w", [path], options()))


def test_the_original_engines_streams() -> None:
    folder = ROOT / "spaseq"
    expected = {"data.nt": (2, 3), "site/streams/power1.nt": (5, 4)}
    for name, (size, _) in expected.items():
        events = list(Source("urn:s", [str(folder / name)], options(f"triples:{size}")))
        lines = (folder / name).read_text().count(" .")
        assert len(events) == lines // size
        assert [e.time.micros for e in events] == [i * 10**6 for i in range(len(events))]
    cards = str(folder / "tests-jar" / "credit-card" / "card10k.n3.gz")
    assert len(list(Source("urn:c", [cards], options("triples:2")))) == 20_001


def test_published_graphs() -> None:
    folder = ROOT / "rdf-streams"
    for path in sorted((folder / "csrbench").glob("data_*.ttl"))[:5]:
        lines = path.read_bytes().count(b"\n") + 1
        read = statements(path)
        assert [q for q, _ in read] == list(ox.parse(path=path))
        numbers = [number for _, number in read]
        assert numbers == sorted(numbers)
        assert numbers[-1] <= lines
    for name in ("riverbench_nanopubs.trig", "weather-graphs.trig"):
        path = folder / "jelly-samples" / name
        assert _named([q for q, _ in statements(path, True)]) == _named(list(ox.parse(path=path)))

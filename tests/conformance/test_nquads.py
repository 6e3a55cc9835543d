"""The compiled reader of N-Quads and N-Triples against the W3C suites and pyoxigraph.

Whatever it takes for a statement is one for pyoxigraph, term by term; what it is not sure of
it leaves to pyoxigraph, and among well-formed lines that is only what the tests name.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox
import pytest

from spaseq.rdf.event import Term
from spaseq.rdf.native._framing import EventReader
from spaseq.rdf.native._nquads import LineReader
from spaseq.rdf.native._terms import Dictionary, Relevance

DATA = os.environ.get("SPASEQ_DATA")
ROOT = Path(DATA or ".", "w3c", "rdf")
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
SUITES = [
    "rdf11/rdf-n-triples", "rdf11/rdf-n-quads", "rdf12/rdf-n-triples/syntax",
    "rdf12/rdf-n-quads/syntax",
]  # fmt: skip
FORMATS = {".nt": ox.RdfFormat.N_TRIPLES, ".nq": ox.RdfFormat.N_QUADS}

Terms = tuple[Term | None, ...]


def line_reader(quads: bool = True, relevance: Relevance | None = None) -> LineReader:
    events = EventReader(relevance or Relevance(Dictionary()), None, "e:s", None, 1)
    return LineReader(events, quads)


def parsed(line: bytes, syntax: ox.RdfFormat) -> list[Terms] | None:
    """What pyoxigraph makes of a line; None for an error."""
    try:
        quads = list(ox.parse(line, format=syntax))
    except SyntaxError:
        return None
    default = ox.DefaultGraph()
    return [
        (*quad.triple, None if quad.graph_name == default else quad.graph_name) for quad in quads
    ]


def suite_files(suite: str) -> Iterator[tuple[Path, bool]]:
    """(file, whether it is to be accepted) for every syntax test of a manifest."""
    folder = ROOT / suite
    base = folder.as_uri() + "/"
    quads = list(ox.parse(path=folder / "manifest.ttl", base_iri=base))
    kinds = {quad.subject: str(quad.object) for quad in quads if quad.predicate == TYPE}
    for quad in quads:
        kind = kinds.get(quad.subject, "")
        if quad.predicate == ox.NamedNode(MF + "action") and "Syntax" in kind:
            yield folder / str(quad.object)[1:-1].removeprefix(base), "Positive" in kind


@pytest.mark.skipif(DATA is None, reason="SPASEQ_DATA does not name the data sets")
@pytest.mark.parametrize("suite", SUITES)
def test_w3c_suite(suite: str) -> None:
    judged = 0
    for path, accepted in suite_files(suite):
        reader = line_reader(path.suffix == ".nq")
        unsure = []
        for line in path.read_bytes().split(b"\n"):
            found = reader.sure(line)
            known = parsed(line, FORMATS[path.suffix])
            if found is None:
                unsure.append((line, known))
            else:
                assert known == ([found] if found else []), line
        judged += 1
        if accepted:
            # Directives, and triple terms in other spellings, are somebody else's.
            assert all(b"VERSION" in line or b"<<(" in line for line, _ in unsure), path
        else:
            assert any(known is None for _, known in unsure), path
    assert judged > 20


SUBJECTS = [
    "<e:s>", "_:x", "_:x.y", "_:é·", "_:0-", "<http://é.example/ü?q=%C3%A9#f>",
    "<e:\\u00E9\\U0001F600>", "<http://[2001:db8::1]:8080/>", "<http://user:pw@h:80/p>",
    "<mailto:a@b.c>", "<urn:a:b>", "<http://h>", "<http://h#>", "<http://h?q?#a?/>", "<file:///x>",
    "<a+b-c.1:x>", "<e:>", "<e:\U0001f600>", "<http://example.org/" + "long/" * 12 + ">",
    "<\\u0061:b>", "<e:?\ue000>", "<e:!$&'()*+,;=:@/~>",
]  # fmt: skip
OBJECTS = [
    *SUBJECTS, '""', '"a"', '"a"@en', '"a"@EN-gb', '"a"@zh-Hant-TW', '"a"@en--ltr',
    '"a"@x-private', '"a"^^<e:d>', '"a"^^<http://www.w3.org/2001/XMLSchema#string>',
    '"\\t\\b\\n\\r\\f\\"\\\'\\\\"', '"\\u00e9\\U0001F600"', '"é\U0001f600\t\x7f\x01"',
    '"' + "long " * 20 + '"', '"a\\"@en"', '"\\\\"@en', '"a" ^^ <e:d>', '"a"\t@en', '"a"^^ <e:d>',
    '"\\u0041"^^<http://www.w3.org/2001/XMLSchema#string>', '"a"@de-AT', '"a"@gsw',
]  # fmt: skip
TRIPLE_TERMS = [
    "<<( <e:s> <e:p> <e:o> )>>", "<<( _:x <e:p> _:y )>>", '<<( <e:s> <e:p> "a )>> b" )>>',
    '<<( <e:s> <e:p> "a"@en )>>', '<<( <e:s> <e:p> "a"@en-gb--rtl )>>',
    '<<( <e:s> <e:p> "1.0"^^<http://www.w3.org/2001/XMLSchema#decimal> )>>',
    "<<( <e:s> <e:p> <<( _:x <e:q> <<( <e:s> <e:p> \"é\" )>> )>> )>>",
]  # fmt: skip
OTHERWISE_WRITTEN = [
    "<<(<e:s> <e:p> <e:o>)>>", "<<(  <e:s> <e:p>\t<e:o> )>>", '<<( <e:s> <e:p> "a\\t" )>>',
    '<<( <e:s> <e:p> "a"@EN )>>', "<<( <e:\\u0061> <e:p> <e:o> )>>",
    '<<( <e:s> <e:p> "a"^^<http://www.w3.org/2001/XMLSchema#string> )>>',
    "<<( <e:s> <e:p> " * 70 + "<e:o>" + " )>>" * 70,
]  # fmt: skip
OBJECTS += TRIPLE_TERMS
SPACES = ["", " ", "\t", "  ", " \t "]


def well_formed(draw: random.Random) -> str:
    space = [draw.choice(SPACES if draw.random() < 0.3 else [" "]) for _ in range(6)]
    if not space[3]:
        space[3] = " "  # what follows a label or a tag would continue it
    line = (
        f"{space[0].strip(' ')}{draw.choice(SUBJECTS)} {draw.choice(['<e:p>', *SUBJECTS[5:9]])}"
        f"{space[2]}{draw.choice(OBJECTS)}{space[3]}"
        f"{draw.choice(['', '<e:g> ', '_:g ', draw.choice(SUBJECTS) + ' '])}.{space[4]}"
    )
    return line + draw.choice(["", "", "# comment", "#"])


def test_well_formed_lines_are_sure() -> None:
    draw = random.Random(1)
    reader = line_reader()
    for _ in range(20_000):
        line = well_formed(draw).encode() + draw.choice([b"\n", b""])
        known = parsed(line, ox.RdfFormat.N_QUADS)
        assert known is not None, line
        assert reader.sure(line) == known[0], line


@pytest.mark.parametrize("term", OTHERWISE_WRITTEN)
def test_triple_terms_that_are_written_otherwise_are_left_to_the_parser(term: str) -> None:
    line = f"<e:s> <e:p> {term} .\n".encode()
    assert parsed(line, ox.RdfFormat.N_QUADS) is not None
    assert line_reader().sure(line) is None


BYTES = b"<>\"\\_:.@^# \t\n\r\0\x0c\x7f\x80\xff\xc3\xa9\xc2\xed\xa0\xf0\x9faZ09%[]{}|`'-/?=u"
SCRAPS = [
    b"\\u", b"\\U0001F600", b"\\u00e9", b"\\uD800", b"\\n", b"%4", b"%41", b"--ltr", b"--x", b"@en",
    b"^^", b"<e:x>", b"_:", b"..", b"\xc3\xa9", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"<<", b"://",
    b"#", b"<<( ", b" )>>",
]  # fmt: skip


def damaged(draw: random.Random, line: bytes) -> bytes:
    data = bytearray(line)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        place = draw.randrange(len(data) + 1)
        change = draw.randrange(5)
        if change == 0:
            del data[place : place + draw.choice([1, 1, 3])]
        elif change == 1:
            data[place:place] = bytes([draw.choice(BYTES)])
        elif change == 2:
            data[place : place + 1] = bytes([draw.randrange(256)])
        elif change == 3:
            data[place:place] = draw.choice(SCRAPS)
        else:
            data[place:place] = chr(draw.choice([0xA0, 0xB7, 0x300, 0xD7FF, 0xE000, 0xFDD0, 0xFFFD,
                                                 0xFFFE, 0x10000, 0x1FFFE, 0xE0001, 0x10FFFD])
                                    ).encode()  # fmt: skip
    return bytes(data)


@pytest.mark.parametrize("pruned", [False, True])
@pytest.mark.parametrize("quads", [False, True])
def test_damaged_lines_are_taken_only_where_pyoxigraph_takes_them(
    quads: bool, pruned: bool
) -> None:
    """One reader for all lines, so that what it keeps of earlier lines is tried too."""
    draw = random.Random(2 * quads + pruned)
    relevance = Relevance(Dictionary(), [(ox.NamedNode("e:q"), None)] if pruned else None)
    reader = line_reader(quads, relevance)
    syntax = FORMATS[".nq" if quads else ".nt"]
    taken = 0
    for _ in range(30_000):
        line = damaged(draw, well_formed(draw).encode())
        found = reader.sure(line)
        if found is None:
            continue
        taken += bool(found)
        known = parsed(line, syntax)
        if pruned:
            assert known is not None, line
            assert len(known) == (1 if found else 0), line
        else:
            assert known == ([found] if found else []), line
    assert taken > 1000

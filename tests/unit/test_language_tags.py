"""Language tags and base directions from text to text, the same through every reader and sink."""

from __future__ import annotations

import json
from pathlib import Path

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.cli import main

STREAM = """\
<urn:g1> <http://www.w3.org/ns/prov#generatedAtTime> 1 .
<urn:g1> { <urn:s> <urn:v> "a"@de-CH , "b"@EN--rtl . }
<urn:g2> <http://www.w3.org/ns/prov#generatedAtTime> 2 .
<urn:g2> { <urn:s> <urn:w> "a"@DE-ch , "b"@en--ltr , "b"@en , "c"@De-Ch . }
"""
JOINED = """
SELECT ?v (LANG(?v) AS ?l) WITHIN 10 SECONDS FROM STREAM S <urn:S>
WHERE { SEQ(A : B) DEFINE GPM A ON S { ?s <urn:v> ?v }
  DEFINE GPM B ON S { ?s <urn:w> ?w FILTER(?v = ?w && LANG(?w) = ?tag) } }
"""
COPIED = """
CONSTRUCT { ?s <urn:v> ?v } WITHIN 10 SECONDS FROM STREAM S <urn:S>
WHERE { SEQ(A) DEFINE GPM A ON S { ?s <urn:v> ?v } }
"""


def lines(text: str) -> str:
    """TriG as N-Quads with its tags as written: pyoxigraph would put them into small letters."""
    found = []
    for line in text.splitlines():
        graph, _, rest = line.partition(" { ")
        if not rest:
            time = line.replace(" 1 .", ' "1"^^<http://www.w3.org/2001/XMLSchema#integer> .')
            found.append(time.replace(" 2 .", ' "2"^^<http://www.w3.org/2001/XMLSchema#integer> .'))
            continue
        subject, predicate, *objects = rest.removesuffix(" . }").split(" ")
        found += [f"{subject} {predicate} {o} {graph} ." for o in objects if o != ","]
    return "\n".join(found) + "\n"


@pytest.mark.parametrize("syntax", ["trig", "nq"])
@pytest.mark.parametrize("tag", ["de-CH", "DE-ch", "de-ch"])
def test_capitals_of_tags_make_no_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], syntax: str, tag: str
) -> None:
    (tmp_path / f"s.{syntax}").write_text(STREAM if syntax == "trig" else lines(STREAM))
    (tmp_path / "q.rq").write_text(JOINED)
    command = ["run", f"{tmp_path}/q.rq", "--stream", f"S={tmp_path}/s.{syntax}"]
    assert main([*command, "--bind", f"tag={tag}"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["bindings"] == {
        "v": {"type": "literal", "value": "a", "xml:lang": "de-ch"},
        "l": {"type": "literal", "value": "de-ch"},
    }


@pytest.mark.parametrize("syntax", ["trig", "nq"])
@pytest.mark.parametrize("format", ["trig", "nquads"])
def test_constructed_graphs_keep_directions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], syntax: str, format: str
) -> None:
    (tmp_path / f"s.{syntax}").write_text(STREAM if syntax == "trig" else lines(STREAM))
    (tmp_path / "q.rq").write_text(COPIED)
    command = ["run", f"{tmp_path}/q.rq", "--stream", f"S={tmp_path}/s.{syntax}"]
    assert main([*command, "--format", format]) == 0
    kind = ox.RdfFormat.TRIG if format == "trig" else ox.RdfFormat.N_QUADS
    written = ox.parse(capsys.readouterr().out, format=kind)
    assert {q.object for q in written if q.predicate.value == "urn:v"} == {
        ox.Literal("a", language="de-ch"),
        ox.Literal("b", language="en", direction=ox.BaseDirection.RTL),
    }


def test_a_variable_is_fixed_to_a_literal_with_a_direction() -> None:
    query = """
    SELECT ?s WITHIN 10 SECONDS FROM STREAM S <urn:S>
    WHERE { SEQ(A) DEFINE GPM A ON S { ?s <urn:v> ?wanted } }"""
    wanted = ox.Literal("b", language="EN", direction=ox.BaseDirection.RTL)
    events = [(1, b'<urn:x> <urn:v> "b"@en--rtl .'), (2, b'<urn:y> <urn:v> "b"@en .')]
    matches = spaseq.run(query, streams={"S": events}, bind={"wanted": wanted})
    assert [match.bindings["s"] for match in matches] == [ox.NamedNode("urn:x")]
